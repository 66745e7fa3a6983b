"""The subject of a report: a function, the types of a call, the differentiated arguments, the resulting code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numba.core import types

from irad.api.annotations import Active, Const, Reverse, annotation_for
from irad.api.argument_types import with_types
from irad.api.autodiff import autodiff_of
from irad.api.functions import check_options, options_or_default, primal_of
from irad.api.grad import grad
from irad.api.selection import check_positions
from irad.api.vjp import augmented_of
from irad.errors import SignatureError, UnsupportedError
from irad.frontend.calls.dispatcher import DerivativeDispatcher
from irad.frontend.calls.problems import default_positions
from irad.frontend.calls.separate_dispatcher import AugmentedDispatcher, task_for
from irad.frontend.calls.separate_state import STATE_TYPE
from irad.frontend.calls.signature import without_derivative
from irad.frontend.calls.task import Role, Seed, Task
from irad.frontend.numba.reports import program_of
from irad.frontend.values import abi, gradients, layouts, tree
from irad.frontend.values.abi import Argument
from irad.frontend.values.tree import LeafKind
from irad.options import Options


@dataclass(frozen=True)
class Subject:
    """A derivative to be looked at.

    Attributes:
        primal: the dispatcher of the function.
        argument_types: Numba types, one per parameter, star arguments as one tuple.
        task: description of the derivative.
        arguments_may_change: whether the caller may overwrite the arguments between the sweeps.
        compiled: makes the code: (name, dispatcher, types that it is compiled for).
        again: the same with other options.
    """

    primal: Any
    argument_types: tuple[Any, ...]
    task: Task
    arguments_may_change: bool
    compiled: Callable[[], list[tuple[str, Any, tuple[Any, ...]]]]
    again: Callable[[Options], Subject] | None = None

    @property
    def signature(self) -> str:
        """Numba's types of the arguments."""
        return f"({', '.join(map(str, self.argument_types))})"


def subject_of(
    f: Any, args: tuple[Any, ...], argnums: int | Sequence[int] | None = None, options: Options | None = None
) -> Subject:
    """The derivative of a function at arguments of some types, or a derivative that irad made.

    Args:
        f: a function, as `irad.grad` takes it, or what `irad.grad`, `irad.value_and_grad` gave.
        args: arguments of one call, or Numba types in their place.
        argnums: positions to differentiate with respect to; by default all arguments that hold floats.
        options: options of the derivative.

    Raises:
        SignatureError: the function does not take such arguments, or has no derivative with respect to them.
        IradError: Numba cannot compile the function.
    """
    check_options(options)
    if isinstance(f, DerivativeDispatcher):
        subject = _of_derivative(f, args, argnums, options)
        again = lambda other: subject_of(_with_options(f, other), args)  # noqa: E731
    else:
        primal = primal_of(f)
        positions = None if argnums is None else check_positions(primal, argnums)
        chosen = options_or_default(options)
        subject = with_types(primal, args, lambda kinds: _of_function(primal, kinds, positions, chosen))
        again = lambda other: subject_of(f, args, argnums, other)  # noqa: E731
    return replace(subject, again=again)


def _with_options(derivative: DerivativeDispatcher, options: Options) -> Any:
    """A derivative made again with other options."""
    make, given = derivative._irad_rebuild
    known = [isinstance(each, Options) for each in given]
    at = known.index(True) if True in known else len(given) - 1  # where there are none, the last is None
    return make(*given[:at], options, *given[at + 1 :])


def _of_derivative(
    derivative: DerivativeDispatcher, args: tuple[Any, ...], argnums: int | Sequence[int] | None, options: Any
) -> Subject:
    if argnums is not None or options is not None:
        raise SignatureError(
            f"{derivative!r} is already created: its argnums and options cannot be changed",
            "inspect the function",
            "they are chosen when a derivative is created",
        )
    primal = derivative.primal
    if isinstance(derivative, AugmentedDispatcher):
        return with_types(primal, args, lambda kinds: _vjp(primal, kinds, derivative.options))
    task = derivative.task
    if task is None:
        raise UnsupportedError(
            f"{derivative!r} cannot be inspected",
            "inspect the function that it belongs to",
            "it is a part of a derivative, not a separate function",
        )

    def use(kinds: tuple[Any, ...]) -> Subject:
        program_of(primal, kinds)
        return Subject(primal, kinds, task, False, lambda: [_compiled(derivative, task, kinds, None)])

    return with_types(primal, args, use)


def _of_function(primal: Any, kinds: tuple[Any, ...], given: tuple[int, ...] | None, options: Options) -> Subject:
    arguments = abi.arguments_of(primal.py_func, kinds)
    returned = program_of(primal, kinds).signature.return_type
    positions = given if given is not None else default_positions(primal, kinds)
    if not positions:
        raise without_derivative(primal, arguments)
    if isinstance(returned, types.Float):
        derivative = grad(primal, positions, options=options)
        task = derivative.task
        return Subject(primal, kinds, task, False, lambda: [_compiled(derivative, task, kinds, None)])
    if given is None and returned != types.none:
        return _vjp(primal, kinds, options)
    return _autodiff(primal, kinds, arguments, positions, returned, options)


def _autodiff(
    primal: Any,
    kinds: tuple[Any, ...],
    arguments: tuple[Argument, ...],
    positions: tuple[int, ...],
    returned: Any,
    options: Options,
) -> Subject:
    seed = Seed.NONE if returned == types.none else Seed.GIVEN
    annotations = tuple(_annotation(a) if a.position in positions else Const(None) for a in arguments)
    derivative = autodiff_of(primal, Reverse, annotations, seed, options)
    task = derivative.task
    assert task is not None
    return Subject(primal, kinds, task, False, lambda: [_compiled(derivative, task, kinds, returned)])


def _annotation(argument: Argument) -> Any:
    has_memory = {leaf.kind.has_memory for leaf in argument.leaves if leaf.kind is not LeafKind.INERT}
    kind = annotation_for(numbers=False in has_memory, memory=True in has_memory)
    return kind(None) if kind is Active else kind(None, None)


def _compiled(derivative: Any, task: Task, kinds: tuple[Any, ...], returned: Any) -> tuple[str, Any, tuple[Any, ...]]:
    targets = tuple(_destination(kinds[position], task.role_of(position)) for position in task.destinations)
    seeds = (_seed_type(returned),) if task.seed is Seed.GIVEN else ()
    return derivative.kind, derivative, (*_leading(derivative, targets), *seeds, *kinds)


def _seed_type(returned: Any) -> Any:
    """The type of a cotangent for all of a value that can have one."""
    return layouts.mapped(returned, _seed_of_part)


def _seed_of_part(returned: Any) -> Any:
    if isinstance(returned, types.Optional):
        return _seed_type(returned.type)
    has_seed = tree.kind_of(returned) in (LeafKind.NUMBER, LeafKind.ARRAY, LeafKind.RECORD)
    return gradients.owned_type(returned) if has_seed else types.none


def _leading(derivative: Any, targets: tuple[Any, ...]) -> tuple[Any, ...]:
    """The parameters in front of the function's own: ``out`` is one for a single argument, else a tuple."""
    if derivative.writes_into:
        return targets if derivative.task.single else (types.BaseTuple.from_types(targets),)
    return targets


def _destination(kind: Any, role: Role) -> Any:
    """The type of the memory for the derivative with respect to an argument; for a number, an array of one."""
    return types.Array(kind, 1, "C") if role is Role.INTO and isinstance(kind, types.Float) else kind


def _vjp(primal: Any, kinds: tuple[Any, ...], options: Options) -> Subject:
    task = task_for(primal, kinds, options)
    returned = program_of(primal, kinds).signature.return_type
    forward = augmented_of(primal, options)

    def compiled() -> list[tuple[str, Any, tuple[Any, ...]]]:
        forward.compile(kinds)
        sweeps = forward.specialisations[forward.number_of(kinds)]
        given = (STATE_TYPE, sweeps.shadows, _seed_type(returned))
        return [("vjp", forward, kinds), ("pullback", sweeps.pullback, given)]

    return Subject(primal, kinds, task, True, compiled)
