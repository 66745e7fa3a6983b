"""`irad.split` in compiled code: the call itself, its two sweeps, and tapes that go there from Python and back.

Numba sees each sweep as a compiled function, which is made when it is first used so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from numba import njit, typeof
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.imputils import lower_constant
from numba.extending import NativeValue, box, overload, register_model, typeof_impl, unbox

from irad.api.compiled.autodiff import Described, ModeType, annotation_class_of, annotation_of
from irad.api.compiled.call_site import CallSite
from irad.api.compiled.closures import (
    ClosureType,
    TapeType,
    closure_maker,
    gradients_type,
    pullback_maker,
    reverse_tape,
    tape_type,
)
from irad.api.nopython import function_behind
from irad.api.split import (
    DEFAULT_SEED,
    AugmentedSweep,
    DefaultSeed,
    ReverseSweep,
    check_annotations,
    check_tape,
    default_seed,
    split,
)
from irad.api.tape import Tape
from irad.errors import SignatureError
from irad.frontend.calls.definition import Definition
from irad.frontend.calls.separate_state import STATE_TYPE
from irad.frontend.emit import Emit
from irad.frontend.generated import emit_generated, function_from
from irad.frontend.memory.shadows import MEMINFO_TYPE
from irad.frontend.numba.cpu import location_of, refuse_pullback
from irad.frontend.numba.messages import described
from irad.frontend.offered import refuse_on_device

refuse_on_device(
    split, "(a) irad.vjp(f, …), whose pullback runs the function again, or (b) irad.autodiff(irad.Reverse, …)"
)


@overload(split, prefer_literal=True, strict=False)
def _typed(mode: Any, /, *args: Any, **keywords: Any) -> Callable[..., Any]:
    """How Numba types a call of `split`, which leaves nothing to do at run time: both sweeps are known then."""
    call = CallSite("split", args, keywords)
    if not call.positional:
        raise TypeError("irad.split misses the function")
    f, *annotations = call.positional
    named = {name: annotation_class_of(kind) for name, kind in call.named.items()}
    known: Any = mode.mode if isinstance(mode, ModeType) else Described(mode)
    augmented, reverse = split(known, function_behind(f), *map(annotation_class_of, annotations), **named)
    scope = {"make": _as_value(augmented), "reverse": reverse}
    return call.function("    return make(()), reverse\n", scope)


def _as_value(augmented: AugmentedSweep) -> Any:
    """What makes the sweep a value that Numba does not take for a function: it warns of tuples that begin with one."""
    names = ", ".join(f"a{i}" for i in range(len(augmented.kinds)))
    source = f"def augmented(kept, {names}):\n    return sweep({names})\n"
    apply = njit(function_from("augmented", source, "irad.split", {"sweep": augmented}))
    return closure_maker(ClosureType("augmented sweep", apply, types.Tuple(())))


@typeof_impl.register(AugmentedSweep)
def _type_of_augmented(sweep: AugmentedSweep, _: Any) -> types.Dispatcher:
    if sweep.compiled is None:
        names = [f"a{i}" for i in range(len(sweep.kinds) - len(sweep.leading))]
        sweep.compiled = _Compiled("augmented", names, partial(_augmented, sweep))
    return types.Dispatcher(sweep.compiled.dispatcher)


@typeof_impl.register(ReverseSweep)
def _type_of_reverse(sweep: ReverseSweep, _: Any) -> types.Dispatcher:
    if sweep.compiled is None:
        sweep.compiled = _Compiled("reverse", ["tape", "seed"], partial(_reverse, sweep), (DEFAULT_SEED,))
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
def _constant_default(context: Any, builder: Any, numba_type: Any, value: Any) -> Any:
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
            "the instance that the method is bound to is an object of Python",
            location_of(primal.py_func),
        )


def _augmented(sweep: AugmentedSweep, given: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
    """The signature of a call of the augmented sweep, and what lowers it."""
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

    def lower(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        return emit_generated(Emit(context, builder), call, signature, values)

    return returned(*given), lower


def _reverse(sweep: ReverseSweep, given: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
    """The signature of a call of the reverse sweep, and what lowers it."""
    _check_callee(sweep.augmented)
    tape, seed = given
    check_tape(sweep, tape.sweep if isinstance(tape, TapeType) else None, described(tape))
    found = tape.specialisation
    is_default = isinstance(seed, DefaultSeedType)
    constant = default_seed(found) if is_default else None
    seed_type = typeof(constant) if is_default else seed
    returned = gradients_type(tape, seed_type)

    def lower(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        cotangent = values[1]
        if is_default:
            cotangent = (
                context.get_dummy_value()
                if constant is None
                else context.get_constant_generic(builder, seed_type, constant)
            )
        return reverse_tape(context, builder, tape, values[0], (cotangent, seed_type), returned)

    return returned(*given), lower


# --- tapes between Python and compiled code ---------------------------------------------------------------------------


@typeof_impl.register(Tape)
def _type_of_tape(tape: Tape, _: Any) -> TapeType:
    return TapeType(tape.sweep, tape.number, MEMINFO_TYPE)


@unbox(TapeType)
def _unbox_tape(kind: Any, tape: Any, c: Any) -> NativeValue:
    """A tape that Python gives: what it refers to is kept alive by the object."""
    if kind.alive != MEMINFO_TYPE:  # the wrapper for Python of a function that only compiled code calls
        c.pyapi.err_set_string("PyExc_TypeError", "a tape from Python has another type")
        return NativeValue(c.context.get_constant_null(kind), is_error=cgutils.true_bit)
    made = cgutils.create_struct_proxy(kind)(c.context, c.builder)
    saved = c.pyapi.object_getattr_string(tape, "saved")
    parts = c.pyapi.call_function_objargs(saved, ())
    failed = cgutils.alloca_once_value(c.builder, cgutils.is_null(c.builder, parts))
    with cgutils.if_likely(c.builder, c.builder.not_(c.builder.load(failed))):
        whole = c.unbox(types.Tuple((STATE_TYPE, kind.specialisation.shadows)), parts)
        made.state = c.builder.extract_value(whole.value, 0)
        made.shadows = c.builder.extract_value(whole.value, 1)
        made.alive = c.pyapi.nrt_meminfo_new_from_pyobject(c.context.get_constant_null(types.voidptr), tape)
        c.builder.store(whole.is_error, failed)
        c.pyapi.decref(parts)
    c.pyapi.decref(saved)
    return NativeValue(made._getvalue(), is_error=c.builder.load(failed))


@box(TapeType)
def _box_tape(kind: Any, value: Any, c: Any) -> Any:
    """A tape that is returned to Python."""
    held = cgutils.create_struct_proxy(kind)(c.context, c.builder, value)
    owners = [each for _, each in c.context.nrt.get_meminfos(c.builder, kind.alive, held.alive)]
    objects = [c.pyapi.nrt_meminfo_as_pyobject(each) for each in owners]
    alive = c.pyapi.tuple_pack(objects)
    state = c.box(STATE_TYPE, held.state)
    shadows = c.box(kind.specialisation.shadows, held.shadows)
    maker = c.env_manager.read_const(c.env_manager.add_const(partial(Tape, kind.sweep, kind.number)))
    made = c.pyapi.call_function_objargs(maker, (state, shadows, alive))
    for each in (state, shadows, alive, *objects):
        c.pyapi.decref(each)
    return made
