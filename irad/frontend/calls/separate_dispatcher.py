"""The forward sweep of `irad.vjp` and `irad.split` as a function of Numba's, with a pullback for each specialisation.

The sweeps are called separately: one fills a state, the other reads it. The state holds the tape
(`irad.frontend.calls.separate_state`); beside it are the shadows of the arguments, those that irad made and those that
the caller gave.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

from llvmlite.ir import Value
from numba import typeof
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.typing import Signature

from irad.errors import ActivityError, InternalError, IradError, UnsupportedProgram
from irad.frontend.calls import seeding
from irad.frontend.calls.definition import Definition
from irad.frontend.calls.dispatcher import INTERNAL, DerivativeDispatcher, make_wrapper, parameter_names
from irad.frontend.calls.lanes import no_directions, seed_types_of_lanes
from irad.frontend.calls.separate_state import augmented_type, gradients_type, layout_of
from irad.frontend.calls.separate_sweeps import check_final, emit_augmented, emit_pullback
from irad.frontend.calls.signature import check_representable, may_have_derivative, without_derivative
from irad.frontend.calls.sweeps import Extras
from irad.frontend.calls.task import Returns, Role, Seed, Task
from irad.frontend.calls.typed_call import check_targets, target_types, target_values
from irad.frontend.custom import rule_plugins, ruled_calls
from irad.frontend.derivation import Derivation, derivation_of
from irad.frontend.emit import Emit
from irad.frontend.numba import private
from irad.frontend.numba.boxing import with_numpy_numbers
from irad.frontend.numba.cpu import load_program
from irad.frontend.numba.private import compiler_lock
from irad.frontend.values import abi
from irad.frontend.values.tree import LeafKind
from irad.options import Options
from irad.passes.mode import reverse_mode
from irad.records import dataclass


@dataclass(frozen=True)
class Separate:
    """Settings for two sweeps that are called separately.

    Attributes:
        kind: the name of the public function.
        task_for: gives the task for argument types.
        otherwise: the task used instead if active values are stored in a constant argument.
        destinations: positions of the arguments whose shadow the caller gives.
        modified: positions of the arguments that may change between the sweeps; None: all.
        repeats: whether the reverse sweep may run more than once.
        is_batched: whether the caller gives a tuple of shadows for each of these arguments, one for each direction.
        width: the number of directions, where no shadows are given; None: one.
        writes_seeded: where the function returns nothing, the cotangent is that of the arrays that it writes to.
        active: positions of the arguments that are differentiated; None where that depends on their types.
    """

    kind: str
    task_for: Callable[[Any, tuple[Any, ...]], Task]
    destinations: tuple[int, ...] = ()
    modified: tuple[int, ...] | None = None
    repeats: bool = True
    is_batched: bool = False
    width: int | None = None
    writes_seeded: bool = False
    otherwise: Callable[[Any, tuple[Any, ...]], Task] | None = None
    active: frozenset[int] | None = None

    def derivation(self, primal: Dispatcher, argument_types: tuple[Any, ...], width: int | None) -> Derivation:
        """The derivation for some types of arguments, in several directions or, without a width, in one.

        Raises:
            IradError: there is none.
        """
        try:
            return self._derivation(primal, argument_types, width, self.task_for)
        except IradError as error:
            several = error.errors if isinstance(error, UnsupportedProgram) else (error,)
            if self.otherwise is None or not any(isinstance(each, ActivityError) for each in several):
                raise
        return self._derivation(primal, argument_types, width, self.otherwise)

    def _derivation(
        self,
        primal: Dispatcher,
        argument_types: tuple[Any, ...],
        width: int | None,
        task_for: Callable[[Any, tuple[Any, ...]], Task],
    ) -> Derivation:
        task, unmodified = task_for(primal, argument_types), frozenset[int]()
        task = replace(task, mode=reverse_mode(width or 1), is_batched=width is not None)
        if self.modified is not None:
            count = len(abi.arguments_of(primal.py_func, argument_types))
            unmodified = frozenset(range(count)).difference(self.modified)
        return derivation_of(primal, argument_types, task, arguments_may_change=True, unmodified=unmodified)


@dataclass(frozen=True)
class Specialisation:
    """The sweeps for some types of arguments.

    Attributes:
        number: that the forward sweep returns; it stands for the code of both sweeps, in every process.
        pullback: the compiled ``(state, shadows, cotangent) -> gradients``.
        value: the type of the value, as the forward sweep returns it.
        shadows: the type of the shadows.
        seed: whether the value has a cotangent.
        lanes: the number of directions, where there is a cotangent for each.
        has_rules: whether rules that users wrote take part.
        derive: gives the derivation that they are made from.
    """

    number: int
    pullback: DerivativeDispatcher
    value: Any
    shadows: Any
    seed: Seed
    lanes: int | None
    has_rules: bool
    derive: Callable[[], Derivation]


class AugmentedDispatcher(DerivativeDispatcher):
    """The forward sweep of a function: returns a number, the value, the state and the shadows of the arguments.

    It takes shadows that the caller gives in front of the arguments.

    Attributes:
        sweeps: the code that calls them.
        specialisations: the sweeps by that number.
        options: options of the derivative.
        numbers: the number for each tuple of argument types, after which the type of the given shadows may stand.

    Args:
        primal: the dispatcher of the function.
        sweeps: as above.
        options: as above.
        rebuild: as of a `DerivativeDispatcher`.
        form: what else tells it from others that are made again alike.
    """

    def __init__(
        self, primal: Dispatcher, sweeps: Separate, options: Options, rebuild: tuple[Any, ...], form: object = None
    ) -> None:
        self.sweeps, self.options = sweeps, options
        self.specialisations = dict[int, Specialisation]()
        self.numbers = dict[tuple[Any, ...], int]()
        names = parameter_names(primal.py_func)

        def define(given: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
            argument_types, derivation = given[: len(names)], self._derivation(given)
            targets = self._targets(derivation, given)
            check_targets(primal, derivation, targets, are_kept=True)
            number, result_type = _number_of(derivation, given), augmented_type(derivation, targets)
            task, has_rules = derivation.task, bool(derivation.compiled.derivative.ruled)
            lanes = task.mode.width if task.is_batched else None
            self._add(given, result_type, (number, task.seed, lanes, has_rules), lambda: derivation)

            def lower(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
                if private.shadow().differentiates():
                    library: Any = emit.context.active_code_library
                    library.pullback = primal.py_func.__qualname__
                held = tuple(zip(values, signature.args, strict=True))
                extras = Extras(target_values(emit.builder, targets, values[-1]) if targets else {}, held=held)
                return emit_augmented(emit, derivation, values[: len(argument_types)], number, extras)

            return result_type(*given), lower

        has_targets = bool(sweeps.destinations)
        call = Definition([*names, *(["irad_targets"] if has_targets else [])], define)
        leading = [f"{INTERNAL}target{position}" for position in sweeps.destinations]
        more = [f"({''.join(each + ', ' for each in leading)})"] if has_targets else []
        body = f"irad_call({', '.join(['{arguments}', *more])})"
        wrapper = make_wrapper(sweeps.kind, primal.py_func, leading, body, call)
        super().__init__(wrapper, call, primal, sweeps.kind, rebuild, lambda result: result, form=(options, form))
        self.active_positions = sweeps.active

    def number_of(self, given: Sequence[Any]) -> int:
        """The number of a specialisation, by the types that it was compiled for, the given shadows first."""
        return self.numbers[self._in_order(given)]

    def kept_beside(self, argument_types: tuple[Any, ...]) -> object:
        """Data that its pullback is made from, besides types, which go to disk with a specialisation."""
        found = self.specialisations[self.number_of(argument_types)]
        return found.number, found.seed, found.lanes, found.has_rules

    def take_loaded(self, argument_types: tuple[Any, ...], result_type: Any, beside: Any) -> None:
        """Makes the pullback of a specialisation that was loaded, which derives nothing unless it is compiled itself.

        Args:
            argument_types: those of the specialisation.
            result_type: the type that it returns.
            beside: by `kept_beside`.
        """
        given, number = self._in_order(argument_types), beside[0]

        @cache
        def derive() -> Derivation:
            with compiler_lock():
                derivation = self._derivation(given)
            # The layout of the state is that of the forward sweep that runs: another one would be read wrongly.
            if _number_of(derivation, given) != number:
                raise InternalError(
                    f"the forward sweep of {self.primal.py_func.__qualname__} was loaded from the cache on disk, and "
                    "does not fit the reverse sweep that is compiled now: delete the files of the cache"
                )
            return derivation

        self._add(given, result_type, beside, derive)

    def _in_order(self, given: Sequence[Any]) -> tuple[Any, ...]:
        """The types of the arguments, and then that of the tuple of given shadows, if there are any."""
        count = len(self.sweeps.destinations)
        taken = [typeof(each.value) if isinstance(each, types.Omitted) else each for each in given[count:]]
        return (*taken, types.BaseTuple.from_types(tuple(given[:count]))) if count else tuple(taken)

    def _derivation(self, given: tuple[Any, ...]) -> Derivation:
        argument_types = given[: len(given) - bool(self.sweeps.destinations)]
        return self.sweeps.derivation(self.primal, argument_types, _width_of(self.primal, self.sweeps, given))

    def _targets(self, derivation: Derivation, given: tuple[Any, ...]) -> Mapping[int, Any]:
        return target_types(self.primal, derivation.task, given[-1]) if self.sweeps.destinations else {}

    def _add(
        self, given: tuple[Any, ...], result_type: Any, known: tuple[Any, ...], derive: Callable[[], Derivation]
    ) -> None:
        number, seed, lanes, has_rules = known
        _, value, _, shadows = result_type.types
        form = self.options, (self._irad_rebuild, self._irad_form, given, number)
        pullback = _pullback(self.primal, derive, self.sweeps, lambda: self._targets(derive(), given), form)
        self.numbers[given] = number
        self.specialisations[number] = Specialisation(number, pullback, value, shadows, seed, lanes, has_rules, derive)


_OF_PROCESS: Final = re.compile(r"(?<=B)\d+v\d+|(?<=\.)[0-9a-f]{9,}\b|0x[0-9a-f]+|\b\d{10,}\b")
"""Parts in which texts of the same derivative may differ: numbers of functions, addresses."""


def _number_of(derivation: Derivation, given: tuple[Any, ...]) -> int:
    """A number that stands for a derivative and the types of its call, equal in every process."""
    text = _OF_PROCESS.sub("", derivation.compiled.library.text)
    layout = derivation.compiled.derivative.frame_size, layout_of(derivation)
    digest = hashlib.sha256(f"{given} {layout} {text}".encode()).hexdigest()
    return int(digest[:15], 16)


def _width_of(primal: Dispatcher, sweeps: Separate, given: tuple[Any, ...]) -> int | None:
    """The number of directions, which is that of the shadows given for the first argument; None: one, by itself.

    Raises:
        SignatureError: it is not known.
    """
    if not sweeps.is_batched:
        return sweeps.width
    first = given[-1].types[0]
    if not isinstance(first, types.BaseTuple) or not first.types:
        raise no_directions(primal)
    return len(first.types)


def _pullback(
    primal: Dispatcher,
    derive: Callable[[], Derivation],
    sweeps: Separate,
    targets_of: Callable[[], Mapping[int, Any]],
    form: tuple[Options, object],
) -> DerivativeDispatcher:
    """The reverse sweep of a specialisation as a function of Numba's.

    Args:
        primal: the dispatcher of the function.
        derive: gives the derivation, when it is compiled.
        sweeps: the code that calls it.
        targets_of: gives the types of the given shadows, by position.
        form: as of a `DerivativeDispatcher`.
    """

    def define(given: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
        derivation, targets = derive(), targets_of()
        seeds_arrays = sweeps.writes_seeded and derivation.task.seed is Seed.NONE
        for each in seed_types_of_lanes(primal, given[2], derivation.task):
            if seeds_arrays:
                check_final(primal.py_func.__qualname__, derivation.caller_arguments, each)
            else:
                seeding.check_seed(primal.py_func.__qualname__, derivation.return_type, each)

        def lower(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
            return emit_pullback(
                emit,
                derivation,
                targets,
                signature,
                values,
                repeats=sweeps.repeats,
                seeds_arrays=seeds_arrays,
            )

        return gradients_type(derivation, targets)(*given), lower

    def like(state: Any, shadows: Any, cotangent: Any) -> None:
        """Parameters of a pullback."""

    like.__name__ = primal.py_func.__name__
    like.__module__ = primal.py_func.__module__
    call = Definition(parameter_names(like), define)
    wrapper = make_wrapper("pullback", like, [], "irad_call({arguments})", call)
    return DerivativeDispatcher(wrapper, call, primal, "pullback", (_no_pickle, ()), with_numpy_numbers, form=form)


def _no_pickle() -> None:
    raise TypeError("a pullback holds memory of this process and cannot be pickled")


def task_for(
    primal: Dispatcher,
    argument_types: tuple[Any, ...],
    options: Options,
    argnums: tuple[int, ...] | None = None,
    *,
    shows_zeros: bool = False,
) -> Task:
    """Task of `irad.vjp` for arguments of some types; they may change before the pullback runs.

    Raises:
        SignatureError: none of them has a derivative.
    """
    check_representable(primal.py_func, argument_types)
    arguments = abi.arguments_of(primal.py_func, argument_types)
    wanted = [a.position for a in arguments if may_have_derivative(a)] if argnums is None else argnums
    roles = tuple((position, Role.GRADIENT) for position in wanted)
    if not roles:
        raise without_derivative(primal, arguments)
    writes_only = returned_type(primal, argument_types, options) == types.none and any(
        leaf.is_array and leaf.kind is LeafKind.ARRAY for a in arguments for leaf in a.leaves
    )
    seed = Seed.NONE if writes_only else Seed.GIVEN
    returns = Returns.VALUE_AND_GRADIENT  # so rules know the value is needed
    return Task(roles, seed, returns=returns, options=options, shows_zeros=shows_zeros)


def returned_type(primal: Dispatcher, argument_types: tuple[Any, ...], options: Options) -> Any:
    """The return type of a function."""
    with compiler_lock():
        rule_plugins.load()
        program = load_program(
            ruled_calls.caller_of(primal),
            argument_types,
            peels=not options.debug,
            checks=options.boundscheck,
            promotes=options.promotes,
        )
    return program.signature.return_type
