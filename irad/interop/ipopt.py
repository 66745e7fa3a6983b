"""Ipopt: nonlinear programs with the derivatives that it takes, sparse and in memory that is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

import irad
from irad.errors import SignatureError
from irad.frontend.calls.raising import public
from irad.message import with_article
from irad.options import Options
from irad.versions import needed

with needed("ipopt"):
    import cyipopt

__all__ = ["Problem", "problem"]

_Function: TypeAlias = Callable[..., Any]
_Array: TypeAlias = NDArray[np.float64]
_Places: TypeAlias = NDArray[np.integer[Any]]
_Bounds: TypeAlias = Sequence[ArrayLike | None] | None  # a pair
_Number: TypeAlias = float | np.floating[Any]
_INFINITE: Final = 2e19  # Ipopt takes bounds beyond 1e19 for none


class Problem(cyipopt.Problem):
    """A nonlinear program, made by `irad.interop.ipopt.problem`: a `cyipopt.Problem` with all of its options.

    `solve` starts Ipopt, which calls the other methods. They may also be called by hand; the next call of a method
    overwrites the arrays that it returned.

    Examples:
        >>> import irad.interop.ipopt
        >>> import numpy as np
        >>> program = irad.interop.ipopt.problem(lambda x: x[0] ** 3 * x[1], x0=np.ones(2))
        >>> program.gradient(np.array([2.0, 1.0]))
        array([12.,  8.])
        >>> rows, columns = program.hessianstructure()
        >>> rows.tolist(), columns.tolist(), program.hessian(np.array([2.0, 1.0]), np.zeros(0), 1.0)
        ([0, 1], [0, 0], array([12., 12.]))
    """

    objective: Callable[[_Array], float]
    gradient: Callable[[_Array], _Array]
    constraints: Callable[[_Array], NDArray[Any]]
    jacobian: Callable[[_Array], _Array]
    jacobianstructure: Callable[[], tuple[_Places, _Places]]
    hessian: Callable[[_Array, _Array, float], _Array]
    hessianstructure: Callable[[], tuple[_Places, _Places]]

    def __init__(self, functions: Functions, bounds: tuple[_Array, _Array], limits: tuple[_Array, _Array]) -> None:
        self._functions, self._calls = functions, _Calls(functions)
        super().__init__(functions.size, functions.count, self._calls, *bounds, *limits)

    def solve(self, x: ArrayLike, *multipliers: ArrayLike, **named: ArrayLike) -> tuple[_Array, dict[str, Any]]:
        """Solves the program from a start, as `cyipopt.Problem.solve` does.

        Args:
            x: the initial guess, with the shape of ``x0``.
            multipliers: as in cyipopt, for a warm start.
            named: the same by name.

        Returns:
            The solution, and cyipopt's dictionary of the status and the multipliers.

        Raises:
            SignatureError: ``x`` does not have as many numbers as ``x0``, or a pattern lacks an entry at some point.
            Exception: what one of the functions raised.
        """
        start = _start(x)
        if start.size != self._functions.size:
            raise SignatureError(
                f"the start has {start.size} numbers, the program has {self._functions.size} variables",
                "start from an array with the shape of x0",
                "the patterns of the derivatives are those for x0",
            )
        self._calls.failure = None
        found: tuple[_Array, dict[str, Any]] = super().solve(start, *multipliers, **named)
        if self._calls.failure is not None:
            raise self._calls.failure
        return found

    def __getattr__(self, name: str) -> Any:
        if name in _CALLED and name in self._functions.names:
            return getattr(self._functions, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class Functions:
    """The values and derivatives of a program, as Ipopt takes them.

    Attributes:
        size: the number of variables.
        count: the number of constraints.
        intermediate: what the user has Ipopt call in each iteration, or None.

    Args:
        objective: compiled by Numba.
        constraints: the same, or None.
        x0: where patterns are found.
        args: of both functions, after the variables.
        writes: how many numbers the constraints write to their first argument; None if they return them.
        make: from a maker of sparse derivatives and its arguments to the derivative.
        options: how derivatives are created.
    """

    intermediate: _Function | None = None

    def __init__(
        self,
        objective: Any,
        constraints: Any,
        x0: _Array,
        args: tuple[Any, ...],
        writes: int | None,
        make: Callable[..., Any],
        options: Options | None,
    ) -> None:
        self.size: int = x0.size
        self._args, self._make = args, make
        self._objective, self._constraints = objective, constraints
        self._value_and_grad_into = irad.value_and_grad_into(objective, options=options)
        self._gradient = np.empty(x0.size)
        self._value_and_grad_into(self._gradient, x0, *args)  # compiled before Ipopt runs, and refused here
        self._out = () if writes is None else (np.zeros(writes),)
        self.count = 0
        self._jacobian: Any = None
        self._hessian: Any = None
        if constraints is not None:
            places = {} if writes is None else {"argnums": 1, "outputs": 0}
            self._jacobian = make(irad.sparse_jacobian, constraints, **places).prepare(*self._out, x0, *args)
            self._slopes = np.empty(self._jacobian.rows.size)
            self.count = self._jacobian.pattern.shape[0]

    def with_hessian(self, x0: _Array) -> None:
        """Prepares the Hessian of the Lagrangian: its pattern is the same for all multipliers."""
        lagrangian = _lagrangian(self._objective, self._constraints, is_written=bool(self._out))
        given = (1.0, np.ones(self.count), *self._out) if self._constraints is not None else (1.0,)
        work = 3 if self._out else ()
        derivative = self._make(irad.sparse_hessian, lagrangian, lower=True, work=work)
        self._hessian = derivative.prepare(x0, *given, *self._args)
        self._curvatures = np.empty(self._hessian.rows.size)

    def objective(self, x: _Array) -> float:
        """The number that is minimised."""
        return self._objective(x, *self._args)

    def gradient(self, x: _Array) -> _Array:
        """The gradient of the objective."""
        self._value_and_grad_into(self._gradient, x, *self._args)
        return self._gradient

    def constraints(self, x: _Array) -> Any:
        """The values that have bounds."""
        returned = self._constraints(*self._out, x, *self._args)
        values = self._out[0] if self._out else returned
        if np.size(values) != self.count:
            raise SignatureError(
                f"the constraints have {np.size(values)} values here, and {self.count} at x0",
                "return the same number of values everywhere",
                "each value has bounds and a multiplier",
            )
        return values

    def jacobian(self, x: _Array) -> _Array:
        """The entries of the Jacobian of the constraints."""
        self._jacobian.values_into(self._slopes, *self._out, x, *self._args)
        return self._slopes

    def jacobianstructure(self) -> tuple[_Places, _Places]:
        """Rows and columns of these entries."""
        return (self._jacobian.rows, self._jacobian.columns) if self._jacobian is not None else (_NONE, _NONE)

    def hessian(self, x: _Array, multipliers: _Array, factor: float) -> _Array:
        """The entries of the lower triangle of the Hessian of ``factor * objective + multipliers @ constraints``."""
        given = (factor, multipliers, *self._out) if self._constraints is not None else (factor,)
        self._hessian.values_into(self._curvatures, x, *given, *self._args)
        return self._curvatures

    def hessianstructure(self) -> tuple[_Places, _Places]:
        """Rows and columns of these entries."""
        return self._hessian.rows, self._hessian.columns

    @property
    def names(self) -> tuple[str, ...]:
        """The methods that Ipopt calls; without a Hessian it approximates one."""
        return _CALLED if self._hessian is not None else _CALLED[:-2]


_NONE: Final = np.zeros(0, np.int64)
_CALLED: Final = (
    *("objective", "gradient", "constraints", "jacobian", "jacobianstructure"),
    *("hessian", "hessianstructure"),
)


class _Calls:
    """The functions of a program as cyipopt calls them: what they raise is kept, and ends the solve.

    cyipopt keeps an error as well, but goes on with numbers that were never written, and never forgets it.

    Attributes:
        failure: what was raised.
    """

    def __init__(self, functions: Functions) -> None:
        self.failure: BaseException | None = None
        self._functions = functions
        for name in functions.names:
            setattr(self, name, partial(self._call, getattr(functions, name)))

    def _call(self, function: _Function, *given: Any) -> Any:
        if self.failure is None:
            try:
                return function(*given)
            except BaseException as error:
                self.failure = error
        raise cyipopt.CyIpoptEvaluationError

    def intermediate(self, *given: Any) -> Any:
        """Ends the solve after an error, and calls what the user wants to be called in each iteration."""
        wanted = self._functions.intermediate
        if self.failure is not None:
            return False
        if wanted is None:
            return True
        try:
            return wanted(*given)
        except BaseException as error:
            self.failure = error
            return False


@public
def problem(
    objective: Callable[..., _Number],
    constraints: Callable[..., NDArray[Any] | _Number | None] | None = None,
    bounds: _Bounds = None,
    constraint_bounds: _Bounds = None,
    *,
    x0: ArrayLike,
    args: Any = (),
    writes: int | None = None,
    hessian: bool = True,
    check: bool = True,
    intermediate: Callable[..., bool | None] | None = None,
    derivation: Options | None = None,
) -> Problem:
    """A nonlinear program for Ipopt: the minimum of ``objective(x)`` with ``constraints(x)`` and ``x`` within bounds.

    Ipopt is given the gradient, the sparse Jacobian of the constraints, and the lower triangle of the sparse Hessian of
    the Lagrangian, ``factor * objective + multipliers @ constraints``. Their patterns are found at ``x0``, for the
    branches that the functions take there; where another branch has an entry that a pattern lacks, `Problem.solve`
    raises an error. All of them are compiled here, and from their second call on irad allocates nothing for them; what
    the functions allocate, their derivatives do as well.

    Args:
        objective: ``objective(x, *args)`` returns a float; a plain function or one of ``numba.njit``.
        constraints: ``constraints(x, *args)`` returns an array of floats, or a float.
        bounds: lower and upper bounds of the variables, a pair, each a number or an array with one for each variable.
            Infinities, and None in place of one or both, leave them out.
        constraint_bounds: bounds of the values of the constraints, in the same form; equal ones state an equation.
        x0: an array of one dimension, with a number for each variable.
        args: further arguments of both functions, in a tuple; they are constants.
        writes: number of values that ``constraints(out, x, *args)`` writes to ``out``; None if it returns them.
        hessian: whether Ipopt is given the Hessian; otherwise it approximates it.
        check: compare each sparse derivative with one more product, as `irad.sparse_jacobian` does.
        intermediate: a function that Ipopt calls in each iteration, as in cyipopt.
        derivation: how derivatives are created; see `irad.Options`.

    Returns:
        An `irad.interop.ipopt.Problem`, with the methods ``add_option`` and ``solve`` of `cyipopt.Problem`.

    Raises:
        SignatureError: shapes do not fit, bounds contradict each other, or a function is not one that Numba compiles.

    Examples:
        >>> import irad.interop.ipopt
        >>> import numpy as np
        >>> def cost(x):
        ...     return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]
        >>> def limits(x):
        ...     return np.array([np.prod(x), np.sum(x**2)])
        >>> x0 = np.array([1.0, 5.0, 5.0, 1.0])
        >>> program = irad.interop.ipopt.problem(cost, limits, (1.0, 5.0), ([25.0, 40.0], [np.inf, 40.0]), x0=x0)
        >>> program.add_option("print_level", 0)
        >>> program.add_option("sb", "yes")
        >>> x, info = program.solve(x0)
        >>> x.round(4), info["status"]
        (array([1.    , 4.743 , 3.8211, 1.3794]), 0)
    """
    start, args = _start(x0), args if isinstance(args, tuple) else (args,)
    _check_constraints(constraints, constraint_bounds, writes)
    limits = _bounds("bounds", bounds, start.size, "variables")
    made = [each if each is None or hasattr(each, "py_func") else irad.jit(each) for each in (objective, constraints)]
    make = partial(_made, check=check, options=derivation)
    functions = Functions(made[0], made[1], start, args, writes, make, derivation)
    if hessian:
        functions.with_hessian(start)
    functions.intermediate = intermediate
    return Problem(functions, limits, _bounds("constraint_bounds", constraint_bounds, functions.count, "constraints"))


def _check_constraints(constraints: _Function | None, constraint_bounds: Any, writes: int | None) -> None:
    if constraints is None and (constraint_bounds is not None or writes is not None):
        raise SignatureError(
            "bounds of constraints are given without constraints",
            "(a) pass constraints or (b) leave constraint_bounds and writes out",
            "bounds of the variables are passed as bounds",
        )
    if constraints is not None and constraint_bounds is None:
        raise SignatureError(
            "constraints are given without bounds of their values",
            "pass constraint_bounds, a pair of lower and upper bounds: (0.0, 0.0) for equations",
            "a constraint that has no bounds has no effect",
        )
    if writes is not None and (type(writes) is not int or writes < 1):
        raise SignatureError(
            f"writes={writes!r} is not a number of constraints",
            "pass the number of values that the constraints write to their first argument",
            "the array for their values is created before they are called",
        )


def _made(maker: _Function, f: Any, **named: Any) -> Any:
    return maker(f, format="coo", **named)


def _lagrangian(objective: Any, constraints: Any, *, is_written: bool) -> Any:
    """The Lagrangian as a function of the variables, a factor, the multipliers, and the further arguments."""
    if constraints is None:

        def lagrangian(x, factor, *args):  # type: ignore[no-untyped-def]
            return factor * objective(x, *args)

    elif is_written:

        def lagrangian(x, factor, multipliers, out, *args):  # type: ignore[no-untyped-def,misc]
            constraints(out, x, *args)
            total = factor * objective(x, *args)
            for i in range(out.size):
                total += multipliers[i] * out[i]
            return total

    else:

        def lagrangian(x, factor, multipliers, *args):  # type: ignore[no-untyped-def,misc]
            total = factor * objective(x, *args)
            for multiplier, value in zip(multipliers, np.asarray(constraints(x, *args)).flat):  # noqa: B905  not in Numba
                total += multiplier * value
            return total

    return irad.jit(lagrangian)


def _start(x: ArrayLike) -> _Array:
    """A start as an array of its own.

    Raises:
        SignatureError: it is not an array of one dimension.
    """
    try:
        found = np.array(x, np.float64)
    except (TypeError, ValueError):
        found = np.zeros(())
    if found.ndim != 1 or not found.size:
        what = f"has the shape {found.shape}" if isinstance(x, np.ndarray) else f"is {with_article(type(x).__name__)}"
        raise SignatureError(
            f"the start x0 {what}, and is not an array of numbers in one dimension",
            "pass a number for each variable; irad.data.to_vec makes an array of a structure",
            "Ipopt minimises over a vector",
        )
    return found


def _bounds(name: str, given: _Bounds, count: int, what: str) -> tuple[_Array, _Array]:
    """Lower and upper bounds, a number for each.

    Raises:
        SignatureError: they do not fit.
    """
    pair = (None, None) if given is None else given
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise SignatureError(
            f"{name} is not a pair",
            "pass (lower, upper), each a number, an array, or None",
            "there are lower and upper bounds",
        )
    found = []
    for side, each, none in zip(("lower", "upper"), pair, (-np.inf, np.inf), strict=True):
        values = np.asarray(none if each is None else each, np.float64)
        if values.shape not in ((), (count,)) or np.isnan(values).any():
            problem_ = f"have the shape {values.shape}" if not np.isnan(values).any() else "hold a NaN"
            raise SignatureError(
                f"the {side} {name} {problem_}, and there are {count} {what}",
                f"pass a number, or an array of the shape ({count},); infinities and None mean no bound",
                f"each of the {what} has a bound",
            )
        found.append(np.clip(np.broadcast_to(values, count), -_INFINITE, _INFINITE))
    crossed = np.flatnonzero(found[0] > found[1])
    if crossed.size:
        at = int(crossed[0])
        raise SignatureError(
            f"the lower {name} exceed the upper ones: {found[0][at]} > {found[1][at]} at {at}",
            "pass (lower, upper), in this order",
            "nothing lies within these bounds",
        )
    return found[0], found[1]
