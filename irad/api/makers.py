"""The makers of derivatives as one table: `grad`, `pushforward`, `hvp`, `vjp` and the like, a row each.

A row says what a maker takes, what becomes of the arguments that are differentiated, what is returned, and where memory
or a direction that the caller passes stands among the parameters. From it follow the task, the callable that Python and
compiled code call, its signature, and its name in reprs, messages and the inspector.

`maker` decorates the public function of a row. Where that makes a callable, its body is a call of `made`, which hands a
`MakerCall` to a transform: what turns a function into a derivative. Those of reverse mode, of forward mode, and of
forward mode over reverse mode stand here and follow from the row; `made` is given any other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from numba.core.registry import CPUDispatcher
from numba.core.types import Type

from irad.api.functions import check_options, options_or_default, primal_of, remembered
from irad.api.jit import InspectableDerivative
from irad.api.nopython import offer_maker
from irad.api.selection import Selection, selected
from irad.frontend.calls.definition import Definition
from irad.frontend.calls.dispatcher import (
    INTERNAL,
    DerivativeDispatcher,
    intrinsic_call,
    make_wrapper,
    parameter_names,
    part_at,
    python_type,
    speculating,
)
from irad.frontend.calls.raising import public
from irad.frontend.calls.task import Returns, Role, Seed, Task
from irad.frontend.offered import refuse_in_compiled_code, refuse_on_device
from irad.options import Options, ZeroTimesInfinity
from irad.passes.mode import DEPENDENCE_MODE, FORWARD_MODE, REVERSE_MODE, Algebra, Mode, forward_mode, taylor_mode

_P = ParamSpec("_P")
_R = TypeVar("_R")
_D = TypeVar("_D", bound=DerivativeDispatcher)


class Takes(Enum):
    """Parameters of the public function of a row, besides options."""

    FUNCTION = "(f, argnums, …): makes a callable; in compiled code all that it takes is known by then"
    TUPLES = "(f, args, tangents, …): calls the callable of another row at once"
    ARGUMENTS = "(f, *args, …): runs the function at once, and makes what is called later"
    ANNOTATED = "(mode, f, *annotations): each argument says what becomes of it"


class Stands(Enum):
    """Position of the direction among the parameters."""

    FIRST = "before all arguments"
    AFTER = "after the last argument that is differentiated"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that a derivative has besides those of the function.

    Attributes:
        name: of the parameter.
        otherwise: its name where the function has one of that name.
    """

    name: str
    otherwise: str

    def among(self, names: Collection[str]) -> str:
        """Name of the parameter beside those of a function."""
        return self.otherwise if self.name in names else self.name


@dataclass(frozen=True, slots=True)
class Maker:
    """A row of the table.

    Attributes:
        name: of the public function.
        role: of the arguments that are differentiated; None where each has its own, or the callable is Python code.
        returns: what the callable returns; in forward mode the tangent of the value stands for the gradient; None where
            each call says so.
        writes: the first parameter, where that is memory of the caller that the derivative is written to.
        direction: in forward mode the parameter for the direction.
        stands: where that stands.
        mode: in forward mode from the number of lanes to the mode; None: one lane, given by itself.
        of: the maker of the callable that this one differentiates, or calls; empty for the function itself.
        takes: parameters of the public function.
        in_code: where compiled code cannot call the public function, what to write in its place.
        on_device: the same where only device code cannot.
        variant: key that distinguishes the row from others of that name, which are used inside irad.
    """

    name: str
    role: Role | None
    returns: Returns | None
    writes: Parameter | None = None
    direction: Parameter | None = None
    stands: Stands = Stands.AFTER
    mode: Callable[[int], Mode] | None = None
    of: str = ""
    takes: Takes = Takes.FUNCTION
    in_code: str = ""
    on_device: str = ""
    variant: str = ""

    @property
    def key(self) -> str:
        """The row's key in the table."""
        return f"{self.name} {self.variant}".rstrip()

    @property
    def leading(self) -> int:
        """Number of parameters before those of the function."""
        return int(self.writes is not None) + int(self.direction is not None and self.stands is Stands.FIRST)

    def parameters(
        self, names: Collection[str], positions: Iterable[int]
    ) -> tuple[list[str], tuple[str, int] | None, str]:
        """The parameters before those of a function, the direction among them, and its name in code.

        Args:
            names: the parameters of the function.
            positions: of the arguments that are differentiated.
        """
        leading = [] if self.writes is None else [self.writes.among(names)]
        if self.direction is None:
            return leading, None, ""
        direction = self.direction.among(names)
        if self.stands is Stands.FIRST:
            return [*leading, direction], None, direction
        return leading, (direction, max(positions)), "{direction}"

    def task(
        self,
        positions: Iterable[int],
        options: Options,
        *,
        single: bool = False,
        has_aux: bool = False,
        lanes: int | None = None,
    ) -> Task:
        """The task of the callable.

        Args:
            positions: of the arguments that are differentiated.
            options: options of the derivative.
            single: one is named by itself, and not in a tuple.
            has_aux: the function returns ``(value, aux)``, and only ``value`` is differentiated.
            lanes: number of directions, or coefficients, given in tuples.
        """
        assert self.role is not None
        assert self.returns is not None
        is_forward, is_function = self.role is Role.TANGENT, self.takes is Takes.FUNCTION
        one_lane = FORWARD_MODE if is_forward else REVERSE_MODE
        return Task(
            roles=tuple((position, self.role) for position in positions),
            seed=Seed.NONE if is_forward else Seed.ONE if is_function else Seed.GIVEN,
            returns=self.returns,
            has_aux=has_aux,
            single=single,
            lends_shadows=is_function,
            options=options,
            mode=one_lane if self.mode is None else self.mode(lanes or 1),
            is_batched=self.mode is not None,
            speculates=is_function and not is_forward and options.speculates,
        )


_TANGENTS: Final = Parameter("tangents", f"{INTERNAL}tangents")
_SERIES: Final = Parameter("series", f"{INTERNAL}series")
_VECTOR: Final = Parameter("vector", f"{INTERNAL}vector")
_GRADIENT_OUT: Final = Parameter("out", "out_gradient")
_MATRIX_OUT: Final = Parameter("out", "out_jacobian")
_PRODUCT_OUT: Final = Parameter("out", "out_of_product")
_INTO_VECTOR: Final = Parameter("vector", "vector_of_product")
_NOT_JET: Final = "irad.taylor(f, order)(series, …), with a coefficient for each order in each series"
_NOT_LINEARIZE: Final = "irad.jvp(f, args, tangents), for each direction"
_NOT_SPLIT: Final = "(a) irad.vjp(f, …), whose pullback runs the function again, or (b) irad.autodiff(irad.Reverse, …)"
_DIRECTION_FIRST: Final = Maker(
    "pushforward",
    Role.TANGENT,
    Returns.VALUE_AND_GRADIENT,
    direction=_TANGENTS,
    stands=Stands.FIRST,
    variant="of a gradient",
)

_ROWS: Final = (
    # reverse mode
    Maker("grad", Role.GRADIENT, Returns.GRADIENT),
    Maker("value_and_grad", Role.GRADIENT, Returns.VALUE_AND_GRADIENT),
    Maker("value_and_grad_into", Role.INTO, Returns.VALUE, writes=_GRADIENT_OUT),
    Maker("vjp", Role.GRADIENT, Returns.GRADIENT, takes=Takes.ARGUMENTS),
    # forward mode
    Maker("pushforward", Role.TANGENT, Returns.VALUE_AND_GRADIENT, direction=_TANGENTS),
    _DIRECTION_FIRST,
    replace(_DIRECTION_FIRST, variant="in lanes", mode=forward_mode),
    replace(_DIRECTION_FIRST, name="dependence", variant="", mode=lambda _: DEPENDENCE_MODE),
    Maker("taylor", Role.TANGENT, Returns.VALUE_AND_GRADIENT, direction=_SERIES, mode=taylor_mode),
    Maker("jvp", None, Returns.VALUE_AND_GRADIENT, of="pushforward", takes=Takes.TUPLES),
    Maker("jet", None, Returns.VALUE_AND_GRADIENT, of="taylor", takes=Takes.TUPLES, in_code=_NOT_JET),
    Maker("linearize", None, Returns.GRADIENT, of="pushforward", takes=Takes.ARGUMENTS, on_device=_NOT_LINEARIZE),
    # forward mode over reverse mode
    Maker("hvp", Role.TANGENT, Returns.GRADIENT, direction=_VECTOR, of="grad"),
    Maker("hvp_and_grad", Role.TANGENT, Returns.GRADIENT_AND_VALUE, direction=_VECTOR, of="grad"),
    Maker("hvp_into", None, Returns.VALUE, writes=_PRODUCT_OUT, direction=_INTO_VECTOR, of="value_and_grad_into"),
    Maker(
        "hvp_and_grad_into", None, Returns.VALUE, writes=_PRODUCT_OUT, direction=_INTO_VECTOR, of="value_and_grad_into"
    ),
    # matrices, by pushforwards or pullbacks
    Maker("jacobian", None, Returns.GRADIENT),
    Maker("value_and_jacobian", None, Returns.VALUE_AND_GRADIENT),
    Maker("value_and_jacobian_into", None, Returns.VALUE, writes=_MATRIX_OUT),
    Maker("hessian", None, Returns.GRADIENT, of="grad"),
    Maker("hessian_into", None, Returns.VALUE, writes=_MATRIX_OUT, of="grad"),
    # each argument is annotated
    Maker("autodiff", None, None, takes=Takes.ANNOTATED),
    Maker("split", None, None, takes=Takes.ANNOTATED, on_device=_NOT_SPLIT),
)
MAKERS: Final = {row.key: row for row in _ROWS}
"""The rows by key; the public functions have their names."""


# From a row to a callable.


@dataclass(frozen=True, slots=True)
class MakerCall:
    """A call of a maker from Python, as its transform is given it.

    Attributes:
        key: of the row.
        f: the user's function, which may be a method.
        wanted: the function, and with respect to what it is differentiated.
        has_aux: the function returns ``(value, aux)``, and only ``value`` is differentiated.
        options: options of the derivative.
        transform: None where it follows from the row.
    """

    key: str
    f: Any
    wanted: Selection
    has_aux: bool
    options: Options
    transform: Transform | None = None

    @property
    def row(self) -> Maker:
        """Row of the maker in the table."""
        return MAKERS[self.key]

    def rebuild(self, *more: object) -> tuple[Any, ...]:
        """Function and arguments from which pickle makes the callable again, those of the transform among them."""
        wanted = self.wanted
        asked = self.key, wanted.primal, wanted.argnums, None, self.has_aux, self.options, self.transform, *more
        return made, asked

    def again(self, options: Options, *more: object) -> Any:
        """A callable made like this one, with other options and other further arguments of the transform."""
        function, asked = replace(self, options=options).rebuild(*more)
        return function(*asked)

    def of_gradient(self, make: Callable[..., Any]) -> Any:
        """A derivative of the gradient; called from Python, it tells of zeros that won over infinities in the gradient.

        Args:
            make: makes it, of a gradient, with options, and with what `directional` takes to tell of zeros.
        """
        wanted, options = self.wanted, self.options
        gradient_with = partial(made, self.row.of, wanted.primal, wanted.argnums, None, self.has_aux)
        gradient, plain = gradient_with(options), None
        if options.speculates:
            plain = gradient_with(replace(options, zero_times_infinity="nan"))

        def shows_zeros(watched: bool) -> Any:
            return make(gradient.shows_all_zeros(False), replace(options, debug=watched))

        return make(gradient, options, plain, shows_zeros)


Transform: TypeAlias = Callable[..., Any]
"""From a `MakerCall`, and what else the public function passes on, to a derivative of `Selection.primal`."""


def maker(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorates the public function of a row, which users call, and compiled code where the row does not refuse that.

    Where that takes more than a function and what is known when it is compiled, its module says how it is typed.
    """
    called, row = public(function), MAKERS[function.__name__]
    if row.takes is Takes.FUNCTION:
        offer_maker(called)
    if row.in_code:
        refuse_in_compiled_code(called, row.in_code)
    if row.on_device:
        refuse_on_device(called, row.on_device)
    return called


def made(
    key: str,
    f: Any,
    argnums: int | Sequence[int] = 0,
    argnames: str | Sequence[str] | None = None,
    has_aux: bool = False,
    options: Options | None = None,
    transform: Transform | None = None,
    *more: object,
) -> Any:
    """The callable that a row of the table makes of a function.

    Args:
        key: of the row.
        f: the function, or a method.
        argnums: as the user gave it.
        argnames: as the user gave it.
        has_aux: the function returns ``(value, aux)``, and only ``value`` is differentiated.
        options: as the user gave it.
        transform: None where it follows from the row.
        more: further arguments of the transform.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or has no such arguments.
    """
    options = options_or_default(options)

    def make() -> Any:
        row, wanted = MAKERS[key], selected(f, argnums, argnames)
        call = MakerCall(key, f, wanted, bool(has_aux), options, transform)
        by_row = _pushed_gradient if row.of else in_directions if row.role is Role.TANGENT else _gradient
        return wanted.bound((transform or by_row)(call, *more), leading=row.leading)

    if not is_usual(f, argnums, argnames) or any(type(each) not in _PLAIN for each in more):
        return make()
    asked = (key, argnums, bool(has_aux), options, transform, *more, *map(type, more))  # True equals 1
    return remembered(primal_of(f), asked, make)


_PLAIN: Final = (type(None), int, bool, str)


def is_usual(f: Any, argnums: int | Sequence[int], argnames: str | Sequence[str] | None) -> bool:
    """True if a user's arguments identify a derivative, without a look at the function's parameters."""
    is_plain = type(argnums) is int or (type(argnums) is tuple and all(type(each) is int for each in argnums))
    return is_plain and argnames is None and not inspect.ismethod(f)


def made_as_usual(
    key: str,
    f: Any,
    argnums: int | Sequence[int],
    argnames: str | Sequence[str] | None,
    has_aux: bool,
    options: Options | None,
) -> Any:
    """Like `made`, but finds a derivative that was made without options again without a look at the environment."""
    if not is_usual(f, argnums, argnames):
        return made(key, f, argnums, argnames, has_aux, options)
    check_options(options)
    asked = (key, argnums, bool(has_aux), options)
    return remembered(primal_of(f), asked, lambda: made(key, f, argnums, argnames, has_aux, options))


# Reverse mode.


def _gradient(call: MakerCall) -> DerivativeDispatcher:
    wanted = call.wanted
    task = call.row.task(wanted.positions, call.options, single=wanted.single, has_aux=call.has_aux)
    return remembered(wanted.primal, (call.key, task), lambda: _gradient_that(call, task))


def _gradient_that(call: MakerCall, task: Task) -> DerivativeDispatcher:
    certain = partial(_gradient_that, call, replace(task, speculates=False)) if task.speculates else None

    def showing(which_wins: ZeroTimesInfinity, watched: bool) -> DerivativeDispatcher:
        options = replace(task.options, debug=watched, zero_times_infinity=which_wins)
        return _gradient_that(call, replace(task, speculates=False, shows_zeros=True, options=options))

    # zero times infinity times zero is the right zero for a gradient: r² has it where r = sqrt(x²) is zero
    shows_zeros = partial(showing, "zero")
    found = derivative_of(call.row, call.wanted.primal, task, call.rebuild(), certain=certain, shows_zeros=shows_zeros)
    # … but its slope is lost
    found.shows_all_zeros = partial(showing, "cotangent")
    return found


# Forward mode.


def in_directions(call: MakerCall, lanes: int | None = None, is_showing: bool = False) -> DerivativeDispatcher:
    """The transform of forward mode: tangents are carried along.

    Args:
        call: the call.
        lanes: number of directions given in a tuple; the order of a Taylor series.
        is_showing: `Task.shows_zeros`.
    """
    row, options = call.row, call.options
    tellers: tuple[Any, ...] = ()
    if row.mode is None and row.stands is Stands.AFTER and not is_showing:

        def showing(watched: bool) -> Any:
            return call.again(replace(options, debug=watched), None, True)

        tellers = (call.wanted.primal if options.speculates else None, showing)
    return directional(call, call.rebuild(lanes), *tellers, lanes=lanes, is_showing=is_showing)


def directional(
    call: MakerCall,
    rebuild: tuple[Any, ...],
    plain: Any = None,
    shows_zeros: Callable[[bool], DerivativeDispatcher] | None = None,
    *,
    lanes: int | None = None,
    kept: Collection[int] = (),
    is_showing: bool = False,
) -> DerivativeDispatcher:
    """A callable that takes the arguments of a function, and a direction.

    Args:
        call: of a row in forward mode.
        rebuild: function and arguments with which pickle recreates it.
        plain: the same function, of which zeros are not strong: where no result is NaN, calls from Python use that.
        shows_zeros: as `DerivativeDispatcher` takes it.
        lanes: as in `in_directions`.
        kept: positions of arguments whose tangents are not overwritten, whatever the function writes to.
        is_showing: `Task.shows_zeros`.
    """
    wanted = call.wanted
    task = call.row.task(wanted.positions, call.options, single=wanted.single, has_aux=call.has_aux, lanes=lanes)
    task = replace(task, kept=frozenset(kept), shows_zeros=is_showing)

    def build(plain: Any) -> DerivativeDispatcher:
        certain = None if plain is None else partial(build, None)
        return derivative_of(call.row, wanted.primal, task, rebuild, plain, certain=certain, shows_zeros=shows_zeros)

    return remembered(wanted.primal, (call.key, task), lambda: build(plain))


# Forward mode over reverse mode.


def _pushed_gradient(call: MakerCall) -> DerivativeDispatcher:
    """The pushforward of a gradient."""

    def make(gradient: Any, options: Options, *tellers: Any) -> DerivativeDispatcher:
        of_gradient = selected(gradient, call.wanted.argnums)
        pushed = replace(call, wanted=of_gradient, options=options)
        return directional(pushed, call.rebuild(), *tellers, kept=of_gradient.positions)

    found: DerivativeDispatcher = call.of_gradient(make)
    found.names_primal = False
    return found


# The dispatcher of a derivative.


def derivative_of(
    row: Maker,
    primal: CPUDispatcher,
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
        task: description of the operation.
        rebuild: function and arguments with which pickle recreates it.
        plain: as `directional` takes it.
        boxed_as: the ``python_type`` of the dispatcher; by default that of the task.
        tellers: further arguments of `DerivativeDispatcher`.
    """
    function, names, has_seed = primal.py_func, parameter_names(primal.py_func), task.seed is Seed.GIVEN
    call = intrinsic_call(primal, task, names, has_targets=bool(task.destinations), has_seed=has_seed)
    if plain is not None:
        call, task = _speculating(plain, task, names, call), replace(task, speculates=True)
    leading, passed, direction = _parameters(row, task, names)
    body = f"irad_call({', '.join(['{arguments}', *passed])})"
    wrapper = make_wrapper(row.name, function, leading, body, call, direction)
    kind = DerivativeDispatcher if task.is_forward or boxed_as is not None else InspectableDerivative
    boxed_as = boxed_as or python_type(task.returns, has_aux=task.has_aux)
    found = kind(wrapper, call, primal, row.name, rebuild, boxed_as, task, **tellers)
    found.writes_into = row.writes is not None
    return found


def derivative_by_code(
    kind: type[_D],
    row: Maker,
    primal: CPUDispatcher,
    call: Definition,
    rebuild: tuple[Any, ...],
    positions: Iterable[int],
    options: Options,
    *,
    boxed_as: Callable[[Any], Any] = lambda result: result,
    certain: Callable[[], DerivativeDispatcher] | None = None,
    shows_zeros: Callable[[bool], DerivativeDispatcher] | None = None,
    variant: object = None,
) -> _D:
    """The derivative that calls Python code, of the parameters that the row adds and those of a function.

    Args:
        kind: its class.
        row: of the table.
        primal: the dispatcher of the function.
        call: the function that the wrapper calls, with the parameters of the row first.
        rebuild: function and arguments with which pickle recreates it.
        positions: of the arguments that are differentiated.
        options: options of the derivative.
        boxed_as: its ``python_type``.
        certain: as `DerivativeDispatcher` takes it.
        shows_zeros: as `DerivativeDispatcher` takes it.
        variant: key that distinguishes it from others that are recreated in the same way.
    """
    positions = tuple(positions)
    leading, direction, given = row.parameters(parameter_names(primal.py_func), positions)
    passed = [*leading, *([given] if given else []), "{arguments}"]
    wrapper = make_wrapper(row.name, primal.py_func, leading, f"irad_call({', '.join(passed)})", call, direction)
    found = kind(
        wrapper,
        call,
        primal,
        row.name,
        rebuild,
        boxed_as,
        certain=certain,
        shows_zeros=shows_zeros,
        form=(options, (variant, certain is None)),
    )
    if options.debug and shows_zeros is not None:
        found.tell_of_zeros(shows_zeros)
    found.writes_into = row.writes is not None
    found.active_positions = frozenset(positions)
    return found


def _parameters(row: Maker, task: Task, names: Sequence[str]) -> tuple[list[str], list[str], tuple[str, int] | None]:
    """The parameters before those of the function, the arguments passed after them, and a parameter among them."""
    if row.writes is None and row.direction is None:
        targets = [f"{INTERNAL}target{position}" for position in task.destinations]
        seeds = [f"{INTERNAL}seed"] if task.seed is Seed.GIVEN else []
        return [*targets, *seeds], [*([f"({''.join(t + ', ' for t in targets)})"] if targets else []), *seeds], None
    leading, direction, given = row.parameters(names, (position for position, _ in task.roles))
    given = given or leading[0]
    passed = f"({given},)" if task.single else _by_argument(given, task) if _is_by_lane(task) else given
    return leading, [passed], direction


def _is_by_lane(task: Task) -> bool:
    """True if a tuple of directions is given, each of all arguments; a Taylor series is given for each argument."""
    return task.is_batched and task.mode.algebra is not Algebra.TAYLOR


def _by_argument(given: str, task: Task) -> str:
    """A tuple for each argument, with the values that are given for each direction."""
    lanes = range(task.mode.width)
    columns = ("".join(f"{given}[{lane}][{i}], " for lane in lanes) for i in range(len(task.roles)))
    return f"({''.join(f'({column}), ' for column in columns)})"


def _speculating(plain: Any, task: Task, names: Sequence[str], certain: Definition) -> Definition:
    task = replace(task, options=replace(task.options, zero_times_infinity="nan"))

    def repeats(given: tuple[Type, ...]) -> bool:
        from irad.frontend.derivation import derivation_of  # the engine: a derivative from disk does without

        return derivation_of(plain, given[: len(names)], task).may_have_zeros_that_are_not_strong

    call = intrinsic_call(plain, task, names, has_targets=True, has_seed=False)
    with_value = task.returns is Returns.VALUE_AND_GRADIENT
    is_alone = task.returns is Returns.GRADIENT and not task.has_aux
    where = part_at(*([1] if with_value else [] if is_alone else [0]))
    return speculating([*names, "irad_targets"], call, certain, repeats, where)
