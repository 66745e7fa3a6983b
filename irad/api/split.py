"""`split`: the two sweeps of reverse mode, called separately, with annotated arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from llvmlite.ir import Value
from numba import njit, typeof
from numba.core import types
from numba.core.datamodel import models
from numba.core.imputils import lower_constant
from numba.core.registry import CPUDispatcher
from numba.core.types import Type
from numba.core.typing import Signature
from numba.extending import register_model, typeof_impl

from irad.api.annotations import BATCHES, ROLES, Annotation, AutodiffMode, Cache, Const, in_order
from irad.api.autodiff import Described, ModeType, annotated_task, annotation_class_of, annotation_of, check_batches
from irad.api.closures import (
    ClosureType,
    Tape,
    TapeType,
    closure_maker,
    gradients_type,
    pullback_maker,
    reverse_tape,
    tape_type,
)
from irad.api.functions import check_options, options_or_default, remembered
from irad.api.makers import MAKERS, maker
from irad.api.nopython import CallSite, function_behind, offer_call
from irad.api.selection import callee_of
from irad.debug.seal import Seal
from irad.errors import SignatureError
from irad.frontend.calls.definition import Definition
from irad.frontend.calls.raising import public
from irad.frontend.calls.separate_dispatcher import AugmentedDispatcher, Separate, Specialisation, returned_type
from irad.frontend.calls.task import Role, Seed, Task
from irad.frontend.emit import Emit
from irad.frontend.generated import emit_generated, function_from
from irad.frontend.numba.cpu import refuse_pullback
from irad.frontend.numba.messages import described, location_of
from irad.frontend.values import tree
from irad.frontend.values.tree import may_hold_floats
from irad.options import Options


class DefaultSeed:
    """The seed that was not given."""

    def __repr__(self) -> str:
        return "1 for a float"


DEFAULT_SEED: Final = DefaultSeed()
_ROLES: Final = {**ROLES, Cache: Role.WORKSPACE}


class AugmentedSweep:
    """Runs a function and saves what its reverse sweep needs; callable from Python and from compiled code.

    Attributes:
        mode: the mode of the split.
        kinds: the annotation of each argument, a class; that of the instance of a method first.
        sweep: the compiled forward sweep.
        leading: the instance of a method, annotated, in a tuple; () for a function.
    """

    def __init__(
        self,
        mode: AutodiffMode,
        kinds: tuple[type, ...],
        sweep: AugmentedDispatcher,
        leading: tuple[Annotation, ...] = (),
    ) -> None:
        self.mode, self.kinds, self.sweep, self.leading = mode, kinds, sweep, leading
        self.compiled: Any = None  # made by `irad.api.split`

    @public
    def __call__(self, *arguments: Annotation, **named: Annotation) -> Any:
        """Runs the function.

        Args:
            arguments: with the annotations given to `irad.split`.
            named: further ones, by the name of their parameter; not in compiled code.

        Returns:
            The tape; with ``irad.ReverseSplitWithPrimal`` ``(tape, value)``.

        Raises:
            SignatureError: an annotation or a shadow does not fit. Nothing has run then.
        """
        arguments = in_order(self.sweep.primal.py_func, (*self.leading, *arguments), named)
        check_annotations(self, tuple(map(type, arguments)))
        given = [argument.shadow for argument in arguments if hasattr(argument, "shadow")]
        number, value, state, shadows = self.sweep(*given, *(argument.value for argument in arguments))
        seal = self._seal(arguments, int(number), value)
        tape = Tape(self.sweep, number, state, shadows, (arguments, value), seal)
        return (tape, value) if self.mode.has_primal else tape

    def with_options(self, options: Options) -> AugmentedSweep:
        """A copy of the sweep with other options."""
        sweep = _sweep_of(self.sweep.primal, self.mode, self.kinds, options)
        return AugmentedSweep(self.mode, self.kinds, sweep, self.leading)

    def _seal(self, arguments: tuple[Any, ...], number: int, value: Any) -> Seal | None:
        if not self.sweep.options.debug:
            return None
        function = self.sweep.primal.py_func
        given = inspect.signature(function).bind(*(argument.value for argument in arguments)).arguments
        rules = self.sweep.specialisations[number].has_rules
        modified = self.mode.modified
        promised = [] if modified is None else [name for i, name in enumerate(given) if i not in modified]
        return Seal(function.__qualname__, location_of(function), list(given.items()), value, rules, promised)

    def __repr__(self) -> str:
        return f"<augmented sweep of {self.sweep.primal.py_func.__qualname__}>"


class ReverseSweep:
    """Runs the reverse sweep of a tape; callable from Python and from compiled code.

    Attributes:
        augmented: the forward sweep that makes its tapes.
    """

    def __init__(self, augmented: AugmentedSweep) -> None:
        self.augmented = augmented
        self.compiled: Any = None  # made by `irad.api.split`

    @public
    def __call__(self, tape: Tape, seed: Any = DEFAULT_SEED) -> tuple[Any, ...]:
        """The derivatives, as `irad.autodiff` gives them; those of ``Duplicated`` arguments are added to their shadows.

        Args:
            tape: what the forward sweep gave.
            seed: the cotangent of the value, with its structure; None where a part has none. The default is 1 for a
                float; arrays and tuples need one. ``seed=None``: the value has no cotangent. For several directions a
                tuple with one for each; the default is 1 in each.

        Returns:
            A tuple with one entry for each argument: the derivative for ``Active`` and ``MixedDuplicated``, None for
            the others.

        Raises:
            SignatureError: the tape is that of another function, or the seed does not fit.
            UsedTapeError: the tape has already been reversed.
            NonFiniteError: in debug mode, a derivative is NaN or infinite.
            ChangedBufferError: in debug mode, an argument has changed that ``modified`` does not name.
        """
        check_tape(self, getattr(tape, "sweep", None), f"a {type(tape).__name__}")
        found = tape.reverse(default_seed(tape.specialisation) if seed is DEFAULT_SEED else seed)
        return tuple(found[len(self.augmented.leading) :])

    def __repr__(self) -> str:
        return f"<reverse sweep of {self.augmented.sweep.primal.py_func.__qualname__}>"


@maker
def split(
    mode: AutodiffMode,
    f: Callable[..., Any],
    *annotations: type | Annotation,
    options: Options | None = None,
    **named: type | Annotation,
) -> tuple[AugmentedSweep, ReverseSweep]:
    """The two sweeps of reverse mode as two callables.

    ``augmented(*arguments)`` takes annotated arguments, runs the function and returns a tape, or ``(tape, value)`` with
    `irad.ReverseSplitWithPrimal`. ``reverse(tape)`` or ``reverse(tape, seed)`` returns the derivatives and adds to
    shadows, as `irad.autodiff` does. Any number of tapes may be alive, and be reversed in any order, in any thread. A
    tape holds the arguments and their shadows. It is freed when it has been reversed, or with the last reference to it;
    with ``mode(repeatable=True)`` it may be reversed again. This function and both that it returns can be called in
    compiled code, where a tape is a value like any other.

    Args:
        mode: `irad.ReverseSplit` or `irad.ReverseSplitWithPrimal`, or one of them with modifiers. Unless ``modified``
            names the arguments that may change between the sweeps, all may.
        f: the function, as in `irad.grad`; it may return anything.
        annotations: for each argument the class of its annotation, or an annotated argument as an example:
            `irad.Const`, `irad.Cache`, `irad.Active`, `irad.Duplicated`, `irad.DuplicatedNoNeed` or
            `irad.MixedDuplicated`; for several directions at once `irad.BatchDuplicated` and its variants. The tape
            holds the shadow of a ``Cache``.
        options: how the derivative is created; see `irad.Options`.
        named: further annotations, by the name of the parameter.

    Returns:
        ``(augmented, reverse)``.

    Raises:
        SignatureError: the mode is another one, or an annotation is missing.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def weighted(x, weight):
        ...     return weight * np.sum(x * x)
        >>> augmented, reverse = irad.split(irad.ReverseSplitWithPrimal, weighted, irad.Duplicated, irad.Active)
        >>> x, x_shadow = np.array([1.0, 2.0]), np.zeros(2)
        >>> tape, value = augmented(irad.Duplicated(x, x_shadow), irad.Active(3.0))
        >>> value
        15.0
        >>> reverse(tape)
        (None, 5.0)
        >>> x_shadow
        array([ 6., 12.])
    """
    primal, instance = callee_of(f)
    check_options(options)
    check_split_mode(mode, primal)
    leading = tuple(map(Const, instance))
    annotations = in_order(primal.py_func, (*leading, *annotations), named)
    mode = mode if mode.modified is None else mode(modified=[i + len(leading) for i in mode.modified])
    kinds = tuple(each if isinstance(each, type) else type(each) for each in annotations)
    for position, (kind, given) in enumerate(zip(kinds, annotations, strict=True)):
        if kind not in _ROLES:
            raise SignatureError(
                f"argument {position} of {primal.py_func.__qualname__} has no annotation of irad.split: {given!r}",
                "irad.Const, irad.Cache, irad.Active, irad.Duplicated, irad.DuplicatedNoNeed or irad.MixedDuplicated",
                "the annotation of an argument says whether it has a derivative, and where that goes",
                location_of(primal.py_func),
            )
    if mode.modified and mode.modified[-1] >= len(kinds):
        raise SignatureError(
            f"modified names argument {mode.modified[-1] - len(leading)}, but there are "
            f"{len(kinds) - len(leading)} annotations",
            f"use positions from 0 to {len(kinds) - len(leading) - 1}" if annotations else "leave modified out",
            "positions count from 0",
            location_of(primal.py_func),
        )
    check_batches(primal, kinds, is_forward=False)
    augmented = AugmentedSweep(mode, kinds, _sweep_of(primal, mode, kinds, options), leading)
    return augmented, ReverseSweep(augmented)


def _sweep_of(
    primal: CPUDispatcher, mode: AutodiffMode, kinds: tuple[type, ...], options: Options | None
) -> AugmentedDispatcher:
    def make() -> AugmentedDispatcher:
        chosen = options_or_default(options)
        task = annotated_task(mode, kinds, _ROLES, chosen)
        separate = Separate(
            MAKERS["split"].name,
            partial(_task_for, task=task),
            task.destinations,
            mode.modified,
            repeats=mode.repeatable,
            is_batched=any(kind in BATCHES for kind in kinds),
        )
        return AugmentedDispatcher(primal, separate, chosen, (_sweep_of, (primal, mode, kinds, options)))

    return remembered(primal, ("split", mode, kinds, options), make)


def _task_for(primal: CPUDispatcher, argument_types: tuple[Type, ...], task: Task) -> Task:
    """The task for arguments of some types: whether the value has a cotangent depends on what the function returns."""
    returned = tree.returned_leaves(returned_type(primal, argument_types, task.options))
    seed = Seed.GIVEN if any(map(may_hold_floats, returned)) else Seed.NONE
    return replace(task, seed=seed)


def check_split_mode(mode: Any, primal: CPUDispatcher) -> None:
    """Checks that a mode is one of `split`.

    Raises:
        SignatureError: it is another one, or none.
    """
    if isinstance(mode, AutodiffMode) and mode.is_split:
        return
    name = primal.py_func.__qualname__
    raise SignatureError(
        f"the first argument of irad.split is {mode!r}, which is not a mode with separate sweeps",
        f"(a) irad.split(irad.ReverseSplit, {name}, …) or (b) irad.ReverseSplitWithPrimal, which also returns the "
        f"value, or (c) irad.autodiff({mode!r}, {name}, …), for both sweeps in one call",
        "the order is irad.split(mode, function, annotations…)",
        location_of(primal.py_func),
    )


def check_annotations(augmented: AugmentedSweep, given: tuple[type | None, ...]) -> None:
    """Checks the annotations of a call against those given to `split`; None is a value without one.

    Raises:
        SignatureError: they are others.
    """
    if given == augmented.kinds:
        return
    wanted = ", ".join(f"irad.{kind.__name__}(…)" for kind in augmented.kinds)
    found = ", ".join(
        f"irad.{kind.__name__}(…)" if kind in ROLES else "a value without an annotation" for kind in given
    )
    raise SignatureError(
        f"{augmented!r} is called with {found or 'no arguments'}",
        f"call it with {wanted}" if wanted else "call it without arguments",
        "irad.split was given these annotations",
        location_of(augmented.sweep.primal.py_func),
    )


def check_tape(reverse: ReverseSweep, sweep: AugmentedDispatcher | None, given: str) -> None:
    """Checks that a tape is one of a reverse sweep.

    Args:
        reverse: the reverse sweep.
        sweep: the sweep that made the tape; None if there is no tape.
        given: the object given instead.

    Raises:
        SignatureError: it is not.
    """
    mine = reverse.augmented.sweep
    if sweep is mine:
        return
    name = mine.primal.py_func.__qualname__
    other = given if sweep is None else f"a tape of irad.{sweep.kind} of {sweep.primal.py_func.__qualname__}"
    raise SignatureError(
        f"{reverse!r} is given {other}",
        "pass a tape that the augmented sweep of the same irad.split returned; without the primal it returns the tape "
        "alone, with irad.ReverseSplitWithPrimal the pair (tape, value)",
        f"what {name} saved can only be read by its own reverse sweep, with the same annotations, mode and options",
        location_of(mine.primal.py_func),
    )


def default_seed(sweeps: Specialisation) -> Any:
    """The cotangent of the value if none is given; for several directions a tuple.

    Raises:
        SignatureError: the value has floats, and is not one.
    """
    if sweeps.seed is Seed.NONE:
        return None
    if isinstance(sweeps.value, types.Float):
        return 1.0 if sweeps.lanes is None else (1.0,) * sweeps.lanes
    function = sweeps.pullback.primal.py_func
    name = function.__qualname__
    raise SignatureError(
        f"{name} returns {described(sweeps.value)}, and its reverse sweep is given no cotangent",
        "(a) reverse(tape, seed), with the cotangent of the value or (b) reverse(tape, None), if the value has none",
        "only the cotangent of a single float has a default, 1",
        location_of(function),
    )


# In compiled code Numba sees each sweep as a compiled function, which is made when it is first used so.


def _typed(call: CallSite) -> Callable[..., Any]:
    """Gives the implementation of a call of `split`, which does nothing at run time: both sweeps are known then."""
    mode = call.first
    if not call.positional:
        raise TypeError("irad.split misses the function")
    f, *annotations = call.positional
    named = {name: annotation_class_of(kind) for name, kind in call.named.items()}
    known: Any = mode.mode if isinstance(mode, ModeType) else Described(mode)
    augmented, reverse = split(known, function_behind(f), *map(annotation_class_of, annotations), **named)
    scope = {"make": _as_value(augmented), "reverse": reverse}
    return call.function("    return make(()), reverse\n", scope)


offer_call(split, _typed)


def _as_value(augmented: AugmentedSweep) -> Any:
    """A wrapper by which Numba does not take the sweep for a function: it warns of tuples that begin with one."""
    names = ", ".join(f"a{i}" for i in range(len(augmented.kinds)))
    source = f"def augmented(kept, {names}):\n    return sweep({names})\n"
    apply = njit(function_from("augmented", source, "irad.split", {"sweep": augmented}))
    return closure_maker(ClosureType("augmented sweep", apply, types.Tuple(())))


@typeof_impl.register(AugmentedSweep)
def _type_of_augmented(sweep: AugmentedSweep, _: Any) -> types.Dispatcher:
    if sweep.compiled is None:
        names = [f"a{i}" for i in range(len(sweep.kinds) - len(sweep.leading))]
        sweep.compiled = _Compiled("augmented", names, partial(_augmented_call, sweep))
    return types.Dispatcher(sweep.compiled.dispatcher)


@typeof_impl.register(ReverseSweep)
def _type_of_reverse(sweep: ReverseSweep, _: Any) -> types.Dispatcher:
    if sweep.compiled is None:
        sweep.compiled = _Compiled("reverse", ["tape", "seed"], partial(_reverse_call, sweep), (DEFAULT_SEED,))
    return types.Dispatcher(sweep.compiled.dispatcher)


class DefaultSeedType(types.Type):
    """The type of the seed that was not given."""

    def __init__(self) -> None:
        super().__init__(name="default seed")


register_model(DefaultSeedType)(models.OpaqueModel)


@typeof_impl.register(DefaultSeed)
def _type_of_default(seed: DefaultSeed, _: Any) -> DefaultSeedType:
    return DefaultSeedType()


@lower_constant(DefaultSeedType)
def _constant_default(context: Any, builder: Any, numba_type: Type, value: Any) -> Any:
    return context.get_dummy_value()


class _Compiled:
    """A sweep as Numba sees it."""

    def __init__(
        self,
        name: str,
        parameters: Sequence[str],
        define: Callable[[tuple[Any, ...]], Any],
        defaults: tuple[Any, ...] | None = None,
    ) -> None:
        self.called = Definition(parameters, define)
        listed = ", ".join(parameters)
        source = f"def {name}({listed}):\n    return irad_call({listed})\n"
        function = function_from(name, source, "irad.split", {"irad_call": self.called.intrinsic})
        function.__defaults__ = defaults
        self.dispatcher = njit(function)


def _check_callee(sweep: AugmentedSweep) -> None:
    """Checks that compiled code can call the sweeps of a function.

    Raises:
        IradError: it cannot.
    """
    primal = sweep.sweep.primal
    refuse_pullback(primal)
    if sweep.leading:
        raise SignatureError(
            f"compiled code calls the sweeps of a method, {primal.py_func.__qualname__}",
            "(a) call them from Python or (b) split a function that takes the instance as its first argument",
            "the instance that the method is bound to is a Python object",
            location_of(primal.py_func),
        )


def _augmented_call(sweep: AugmentedSweep, given: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
    """The signature of a call of the augmented sweep, and its lowering."""
    _check_callee(sweep)
    annotations = [annotation_of(each) for each in given]
    check_annotations(sweep, tuple(None if each is None else type(each) for each in annotations))
    has_shadow = [hasattr(type(each), "shadow") for each in annotations]
    shadows = tuple(each.types[1] for each, has in zip(given, has_shadow, strict=True) if has)
    tape = tape_type(sweep.sweep, shadows, tuple(each.types[0] for each in given))
    names = [f"a{i}" for i in range(len(given))]
    values = "".join(f"{name}.value, " for name in names)
    targets = "".join(f"{name}.shadow, " for name, has in zip(names, has_shadow, strict=True) if has)
    result = "tape, value" if sweep.mode.has_primal else "tape"
    source = (
        f"def call({', '.join(names)}):\n"
        f"    number, value, state, shadows = forward({targets}{values})\n"
        f"    tape = make(state, shadows, ({values}value))\n"
        f"    return {result}\n"
    )
    call = function_from("call", source, "irad.split", {"forward": sweep.sweep, "make": pullback_maker(tape)})
    value = tape.alive.types[-1]
    returned = types.Tuple((tape, value)) if sweep.mode.has_primal else tape

    def lower(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
        return emit_generated(emit, call, signature, values)

    return returned(*given), lower


def _reverse_call(sweep: ReverseSweep, given: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
    """The signature of a call of the reverse sweep, and its lowering."""
    _check_callee(sweep.augmented)
    tape, seed = given
    check_tape(sweep, tape.sweep if isinstance(tape, TapeType) else None, described(tape))
    found = tape.specialisation
    is_default = isinstance(seed, DefaultSeedType)
    constant = default_seed(found) if is_default else None
    seed_type = typeof(constant) if is_default else seed
    returned = gradients_type(tape, seed_type)

    def lower(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
        context, builder, cotangent = emit.context, emit.builder, values[1]
        if is_default:
            cotangent = (
                context.get_dummy_value()
                if constant is None
                else context.get_constant_generic(builder, seed_type, constant)
            )
        return reverse_tape(emit, tape, values[0], (cotangent, seed_type), returned)

    return returned(*given), lower
