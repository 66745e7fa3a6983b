"""The makers of derivatives as one table: `grad`, `pushforward`, `hvp` and the like, a row each.

A row says what becomes of the arguments that are differentiated, what is returned, and where memory or a direction that
the caller passes stands among the parameters. From it follow the task, the callable that Python and compiled code call,
its signature, and its name in reprs, messages and the inspector. How compiled code calls the maker itself follows from
the signature of the public function (`irad.api.nopython.offer_maker`).

`made` is the way from a row to a callable; `derivative_of` is its last step, which `irad.autodiff` takes, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Final

from irad.api.functions import options_or_default, remembered
from irad.api.jit import InspectableDerivative
from irad.api.selection import Selection, selected
from irad.frontend.calls.definition import Definition
from irad.frontend.calls.dispatcher import INTERNAL, DerivativeDispatcher, intrinsic_call, make_wrapper, parameter_names
from irad.frontend.calls.result_types import python_type
from irad.frontend.calls.retry import part_at, speculating
from irad.frontend.calls.task import Returns, Role, Seed, Task
from irad.frontend.derivation import derivation_of
from irad.options import Options, ZeroTimesInfinity
from irad.passes.mode import DEPENDENCE_MODE, FORWARD_MODE, REVERSE_MODE, Algebra, Mode, forward_mode, taylor_mode


class Stands(Enum):
    """Where the direction stands among the parameters."""

    FIRST = "before all arguments"
    AFTER = "after the last argument that is differentiated"


@dataclass(frozen=True, slots=True)
class Maker:
    """A row of the table.

    Attributes:
        name: of the public function.
        role: of the arguments that are differentiated; None where each has its own, or the callable is Python code.
        returns: what the callable returns; in forward mode the tangent of the value stands for the gradient; None where
            each call says so.
        writes: whether the first parameter is memory of the caller that the derivative is written to.
        direction: in forward mode the parameter for the direction.
        stands: where that stands.
        mode: in forward mode from the number of lanes to the mode; None: one lane, given by itself.
        of: the maker of the gradient that is differentiated once more; empty for derivatives of the function itself.
    """

    name: str
    role: Role | None
    returns: Returns | None
    writes: bool = False
    direction: str | None = None
    stands: Stands = Stands.AFTER
    mode: Callable[[int], Mode] | None = None
    of: str = ""

    @property
    def leading(self) -> int:
        """How many parameters precede those of the function."""
        return int(self.writes) + int(self.direction is not None and self.stands is Stands.FIRST)

    def task(self, wanted: Selection, *, has_aux: bool, options: Options, lanes: int | None = None) -> Task:
        """What the callable does.

        Args:
            wanted: the function, and with respect to what it is differentiated.
            has_aux: it returns ``(value, aux)``, and only ``value`` is differentiated.
            options: how the derivative is made.
            lanes: how many directions, or coefficients, are given in tuples.
        """
        assert self.role is not None
        assert self.returns is not None
        is_forward = self.role is Role.TANGENT
        one_lane = FORWARD_MODE if is_forward else REVERSE_MODE
        return Task(
            roles=tuple((position, self.role) for position in wanted.positions),
            seed=Seed.NONE if is_forward else Seed.ONE,
            returns=self.returns,
            has_aux=has_aux,
            single=wanted.single,
            lends_shadows=True,
            options=options,
            mode=one_lane if self.mode is None else self.mode(lanes or 1),
            is_batched=self.mode is not None,
            speculates=not is_forward and options.speculates,
        )

    def gradient(self, wanted: Selection, *, has_aux: bool) -> Callable[[Options], Any]:
        """From options the gradient that is differentiated once more."""
        assert self.of
        return partial(made, self.of, wanted.primal, wanted.argnums, None, has_aux)


MAKERS: Final = {
    # reverse mode
    "grad": Maker("grad", Role.GRADIENT, Returns.GRADIENT),
    "value_and_grad": Maker("value_and_grad", Role.GRADIENT, Returns.VALUE_AND_GRADIENT),
    "value_and_grad_into": Maker("value_and_grad_into", Role.INTO, Returns.VALUE, writes=True),
    # forward mode
    "pushforward": Maker("pushforward", Role.TANGENT, Returns.VALUE_AND_GRADIENT, direction="tangents"),
    "pushforward in lanes": Maker(
        "pushforward",
        Role.TANGENT,
        Returns.VALUE_AND_GRADIENT,
        direction="tangents",
        stands=Stands.FIRST,
        mode=forward_mode,
    ),
    "pushforward of a gradient": Maker(
        "pushforward", Role.TANGENT, Returns.VALUE_AND_GRADIENT, direction="tangents", stands=Stands.FIRST
    ),
    "dependence": Maker(
        "dependence",
        Role.TANGENT,
        Returns.VALUE_AND_GRADIENT,
        direction="tangents",
        stands=Stands.FIRST,
        mode=lambda _: DEPENDENCE_MODE,
    ),
    "taylor": Maker("taylor", Role.TANGENT, Returns.VALUE_AND_GRADIENT, direction="series", mode=taylor_mode),
    # forward mode over reverse mode
    "hvp": Maker("hvp", Role.TANGENT, Returns.GRADIENT, direction="vector", of="grad"),
    "hvp_and_grad": Maker("hvp_and_grad", Role.TANGENT, Returns.GRADIENT_AND_VALUE, direction="vector", of="grad"),
    "hvp_into": Maker("hvp_into", None, Returns.VALUE, writes=True, direction="vector", of="value_and_grad_into"),
    "hvp_and_grad_into": Maker(
        "hvp_and_grad_into", None, Returns.VALUE, writes=True, direction="vector", of="value_and_grad_into"
    ),
    # matrices, by pushforwards or pullbacks
    "jacobian": Maker("jacobian", None, Returns.GRADIENT),
    "value_and_jacobian": Maker("value_and_jacobian", None, Returns.VALUE_AND_GRADIENT),
    "value_and_jacobian_into": Maker("value_and_jacobian_into", None, Returns.VALUE, writes=True),
    "hessian": Maker("hessian", None, Returns.GRADIENT, of="grad"),
    "hessian_into": Maker("hessian_into", None, Returns.VALUE, writes=True, of="grad"),
    # each argument is annotated, or has a cotangent of its own
    "autodiff": Maker("autodiff", None, None),
    "vjp": Maker("vjp", None, None),
}
"""By a name that is unique; the public functions have their own."""


def made(
    key: str,
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    argnames: str | Sequence[str] | None = None,
    has_aux: bool = False,
    options: Options | None = None,
    lanes: int | None = None,
    *,
    shows_zeros: bool = False,
) -> Any:
    """The callable that a row of the table makes of a function.

    Args:
        key: of the row.
        f: the function, or a method.
        argnums: as the user gave it.
        argnames: as the user gave it.
        has_aux: the function returns ``(value, aux)``, and only ``value`` is differentiated.
        options: as the user gave it.
        lanes: how many directions are given in a tuple; of a Taylor series its order.
        shows_zeros: that of its `Task`.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or has no such arguments.
    """
    row, wanted, options = MAKERS[key], selected(f, argnums, argnames), options_or_default(options)
    primal, has_aux = wanted.primal, bool(has_aux)
    rebuild = (made, (key, primal, wanted.argnums, None, has_aux, options, lanes))
    if row.of:
        found = _of_gradient(key, wanted, has_aux, options, rebuild)
    elif row.role is Role.TANGENT:
        tellers: tuple[Any, ...] = ()
        if row.mode is None and row.stands is Stands.AFTER and not shows_zeros:

            def showing(watched: bool) -> Any:
                shown = replace(options, debug=watched, cache=False)
                return made(key, primal, wanted.argnums, None, has_aux, shown, shows_zeros=True)

            tellers = (primal if options.speculates else None, showing)
        found = directional(
            key, wanted, options, rebuild, *tellers, has_aux=has_aux, lanes=lanes, is_showing=shows_zeros
        )
    else:
        task = row.task(wanted, has_aux=has_aux, options=options)
        found = remembered(primal, (key, task), lambda: _gradient(key, primal, task, rebuild))
    return wanted.bound(found, leading=row.leading)


def _gradient(key: str, primal: Any, task: Task, rebuild: tuple[Any, ...]) -> DerivativeDispatcher:
    certain = partial(_gradient, key, primal, replace(task, speculates=False), rebuild) if task.speculates else None

    # zero times infinity times zero is the right zero for a gradient: r² has it where r = sqrt(x²) is zero
    shows_zeros = partial(_showing_zeros, key, primal, task, rebuild, "zero")
    found = derivative_of(MAKERS[key], primal, task, rebuild, certain=certain, shows_zeros=shows_zeros)
    found.writes_into = bool(task.destinations)
    # … but its slope is lost
    found.shows_all_zeros = partial(_showing_zeros, key, primal, task, rebuild, "cotangent")
    return found


def _showing_zeros(
    key: str, primal: Any, task: Task, rebuild: tuple[Any, ...], which_wins: ZeroTimesInfinity, watched: bool
) -> DerivativeDispatcher:
    """A gradient with `Task.shows_zeros`."""
    options = replace(task.options, debug=watched, cache=False, zero_times_infinity=which_wins)
    return _gradient(key, primal, replace(task, speculates=False, shows_zeros=True, options=options), rebuild)


def directional(
    key: str,
    wanted: Selection,
    options: Options,
    rebuild: tuple[Any, ...],
    plain: Any = None,
    shows_zeros: Callable[[bool], DerivativeDispatcher] | None = None,
    *,
    has_aux: bool = False,
    lanes: int | None = None,
    kept: Collection[int] = (),
    is_showing: bool = False,
) -> DerivativeDispatcher:
    """A callable that takes the arguments of a function, and a direction.

    Args:
        key: of a row in forward mode.
        wanted: the function, and with respect to what it is differentiated.
        options: how the derivative is made.
        rebuild: how pickle makes it again.
        plain: the same function, of which zeros are not strong: where no result is NaN, calls from Python use that.
        shows_zeros: as `DerivativeDispatcher` takes it.
        has_aux: as in `made`.
        lanes: as in `made`.
        kept: positions of arguments whose tangents are not overwritten, whatever the function writes to.
        is_showing: `Task.shows_zeros`.
    """
    row, primal = MAKERS[key], wanted.primal
    task = row.task(wanted, has_aux=has_aux, options=options, lanes=lanes)
    task = replace(task, kept=frozenset(kept), shows_zeros=is_showing)

    def build(plain: Any) -> DerivativeDispatcher:
        certain = None if plain is None else partial(build, None)
        return derivative_of(row, primal, task, rebuild, plain, certain=certain, shows_zeros=shows_zeros)

    return remembered(primal, (key, task), lambda: build(plain))


def _of_gradient(
    key: str, wanted: Selection, has_aux: bool, options: Options, rebuild: tuple[Any, ...]
) -> DerivativeDispatcher:
    """The pushforward of a gradient."""
    gradient = MAKERS[key].gradient(wanted, has_aux=has_aux)

    def make(gradient: Any, options: Options, *tellers: Any) -> DerivativeDispatcher:
        of_gradient = selected(gradient, wanted.argnums)
        return directional(key, of_gradient, options, rebuild, *tellers, has_aux=has_aux, kept=of_gradient.positions)

    found: DerivativeDispatcher = telling(make, gradient, options)
    found.names_primal = False
    return found


def telling(make: Callable[..., Any], gradient_with: Callable[[Options], Any], options: Options) -> Any:
    """A derivative of a gradient that tells, called from Python, of zeros that won over infinities in the gradient.

    Args:
        make: makes it, of a gradient, with options, and with what `directional` takes to tell of zeros.
        gradient_with: the gradient with options.
        options: those of the call.
    """
    gradient, plain = gradient_with(options), None
    if options.speculates:
        plain = gradient_with(replace(options, zero_times_infinity="nan"))

    def shows_zeros(watched: bool) -> Any:
        return make(gradient.shows_all_zeros(False), replace(options, debug=watched, cache=False))

    return make(gradient, options, plain, shows_zeros)


def derivative_of(
    row: Maker,
    primal: Any,
    task: Task,
    rebuild: tuple[Any, ...],
    plain: Any = None,
    *,
    boxed_as: Callable[[Any], Any] | None = None,
    **tellers: Any,
) -> DerivativeDispatcher:
    """The derivative that does a task, with the parameters of a function and those that the row adds.

    Where the row adds none, there is one for each destination, and one for the seed, before all others.

    Args:
        row: of the table.
        primal: the dispatcher of the function.
        task: what is done.
        rebuild: how pickle makes it again.
        plain: as `directional` takes it.
        boxed_as: the ``python_type`` of the dispatcher; by default that of the task.
        tellers: further arguments of `DerivativeDispatcher`.
    """
    function, names, has_seed = primal.py_func, parameter_names(primal.py_func), task.seed is Seed.GIVEN
    call = intrinsic_call(primal, task, names, has_targets=bool(task.destinations), has_seed=has_seed)
    if plain is not None:
        call, task = _speculating(plain, task, names, call), replace(task, speculates=True)
    leading, passed, direction = _parameters(row, task, names)
    wrapper = make_wrapper(
        row.name, function, leading, f"irad_call({', '.join(['{arguments}', *passed])})", call, direction
    )
    kind = DerivativeDispatcher if task.is_forward or boxed_as is not None else InspectableDerivative
    return kind(wrapper, call, primal, row.name, rebuild, boxed_as or python_type(task), task, **tellers)


def _parameters(row: Maker, task: Task, names: Sequence[str]) -> tuple[list[str], list[str], tuple[str, int] | None]:
    """The parameters before those of the function, what is passed on after them, and a parameter among them."""
    if row.writes:
        out = "out" if "out" not in names else "out_gradient"
        return [out], [f"({out},)" if task.single else out], None
    if row.direction is None:
        targets = [f"{INTERNAL}target{position}" for position in task.destinations]
        seeds = [f"{INTERNAL}seed"] if task.seed is Seed.GIVEN else []
        return [*targets, *seeds], [*([f"({''.join(t + ', ' for t in targets)})"] if targets else []), *seeds], None
    name = row.direction if row.direction not in names else f"irad_{row.direction}"
    given = "{direction}" if row.stands is Stands.AFTER else name
    passed = f"({given},)" if task.single else _by_argument(given, task) if _is_by_lane(task) else given
    if row.stands is Stands.FIRST:
        return [name], [passed], None
    return [], [passed], (name, max(position for position, _ in task.roles))


def _is_by_lane(task: Task) -> bool:
    """Whether a tuple of directions is given, each of all arguments; a Taylor series is given for each argument."""
    return task.is_batched and task.mode.algebra is not Algebra.TAYLOR


def _by_argument(given: str, task: Task) -> str:
    """A tuple for each argument, of what is given for each direction."""
    lanes = range(task.mode.width)
    columns = ("".join(f"{given}[{lane}][{i}], " for lane in lanes) for i in range(len(task.roles)))
    return f"({''.join(f'({column}), ' for column in columns)})"


def _speculating(plain: Any, task: Task, names: Sequence[str], certain: Definition) -> Definition:
    task = replace(task, options=replace(task.options, zero_times_infinity="nan"))

    def repeats(given: tuple[Any, ...]) -> bool:
        return derivation_of(plain, given[: len(names)], task).may_have_zeros_that_are_not_strong

    call = intrinsic_call(plain, task, names, has_targets=True, has_seed=False)
    with_value = task.returns is Returns.VALUE_AND_GRADIENT
    is_alone = task.returns is Returns.GRADIENT and not task.has_aux
    where = part_at(*([1] if with_value else [] if is_alone else [0]))
    return speculating([*names, "irad_targets"], call, certain, repeats, where)
