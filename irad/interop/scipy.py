"""SciPy: derivatives in the form that its solvers take, and a `minimize` that fills them in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, Literal, TypeAlias, TypeVar, overload

import numba
import numpy as np
from numba.core import types
from numpy.typing import NDArray

import irad
from irad import data
from irad.errors import SignatureError
from irad.frontend.calls.raising import public
from irad.frontend.generated import function_from
from irad.options import Options
from irad.versions import needed

with needed("scipy"):
    import scipy
    from scipy import optimize

__all__ = ["Derivatives", "derivatives", "low_level_callable", "minimize"]

_Function: TypeAlias = Callable[..., Any]
_Number: TypeAlias = float | np.floating[Any]
_X = TypeVar("_X")
_R = TypeVar("_R")

if TYPE_CHECKING:
    from scipy import sparse

    class Minimum(optimize.OptimizeResult[Any], Generic[_X]):
        """SciPy's result of `minimize`, with ``x`` and ``jac`` in the form of ``x0``."""

        x: _X
        jac: _X
        fun: float
        success: bool
        status: int
        message: str
        nit: int
        nfev: int


_WITHOUT_GRADIENT: Final = {"nelder-mead", "powell", "cobyla", "cobyqa"}
_WITH_PRODUCTS: Final = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
_WITH_HESSIAN: Final = {"dogleg", "trust-exact"}
_DIFFERENCES: Final = ("2-point", "3-point", "cs")


class Derivatives(Generic[_X, _R]):
    """The derivatives of a function, made by `irad.interop.scipy.derivatives`; each is compiled on first use.

    All take the arguments of the function that are not fixed, in the order in which SciPy passes them. `hessp` and
    `jvp` take the direction after the differentiated argument, as ``hessp(x, p, *args)`` of SciPy does.

    Args:
        f: the function, as in `irad.interop.scipy.derivatives`.
        args: values of the last arguments, which are fixed.
        wrt: position or name of the argument that derivatives are taken with respect to.
        options: how the derivatives are created; see `irad.Options`.

    Examples:
        >>> import irad.interop.scipy
        >>> import numpy as np
        >>> d = irad.interop.scipy.derivatives(lambda x, c: c * np.sum(x**3), args=(2.0,))
        >>> x = np.array([1.0, 2.0])
        >>> d.fun(x), d.grad(x)
        (18.0, array([ 6., 24.]))
        >>> d.value_and_grad(x), d.hessp(x, np.array([1.0, 0.0]))
        ((18.0, array([ 6., 24.])), array([12.,  0.]))
        >>> d.hess(x)
        array([[12.,  0.],
               [ 0., 24.]])

    For a function that returns an array:

        >>> d = irad.interop.scipy.derivatives(lambda x: x * x)
        >>> value, product = d.jvp(x, np.array([1.0, 0.0]))
        >>> product
        array([2., 0.])
        >>> d.sparse_jac(x).toarray()
        array([[2., 0.],
               [0., 4.]])
        >>> d.pattern(x).nnz
        2

    `jac` returns the same Jacobian as an array, `sparse_hess` the Hessian as a sparse matrix.
    """

    def __init__(self, f: _Function, args: Sequence[Any], wrt: int | str, options: Options | None) -> None:
        self._function, self._args, self._options = f, tuple(args), options
        self._wrt: dict[str, Any] = {"argnames": wrt} if isinstance(wrt, str) else {"argnums": wrt}

    @cached_property
    def fun(self) -> Callable[..., _R]:
        """The function itself, compiled."""
        return self._fixed(self._function if hasattr(self._function, "py_func") else irad.jit(self._function))

    @cached_property
    def value_and_grad(self) -> Callable[..., tuple[_R, _X]]:
        """Value and gradient together: ``minimize(d.value_and_grad, x0, jac=True)``."""
        return self._made(irad.value_and_grad)

    @cached_property
    def grad(self) -> Callable[..., _X]:
        """The gradient: ``jac=d.grad`` of a function that returns a number."""
        return self._made(irad.grad)

    @cached_property
    def hess(self) -> Callable[..., NDArray[Any]]:
        """The Hessian as an array: ``hess=d.hess``."""
        return self._made(irad.hessian)

    @cached_property
    def hessp(self) -> Callable[..., _X]:
        """The product of the Hessian and a vector: ``hessp=d.hessp``."""
        return self._made(irad.hvp)

    @cached_property
    def jac(self) -> Callable[..., NDArray[Any]]:
        """The Jacobian of a function that returns an array, as an array, with a row for each number returned."""
        return self._made(irad.jacobian)

    @cached_property
    def jvp(self) -> Callable[..., tuple[_R, _R]]:
        """Value, and product of the Jacobian and a vector."""
        return self._made(irad.pushforward)

    @cached_property
    def sparse_jac(self) -> Callable[..., sparse.csc_array]:
        """The Jacobian as a sparse matrix of SciPy's. Its pattern is found at the first point, and grows if need be."""
        return self._fixed(_Sparse(partial(irad.sparse_jacobian, self._function, options=self._options, **self._wrt)))

    @cached_property
    def sparse_hess(self) -> Callable[..., sparse.csc_array]:
        """The Hessian as a sparse matrix of SciPy's, in the same way."""
        return self._fixed(_Sparse(partial(irad.sparse_hessian, self._function, options=self._options, **self._wrt)))

    def pattern(self, *given: Any) -> sparse.csc_array:
        """Places where the Jacobian may differ from zero, a sparse matrix of bools: ``jac_sparsity=d.pattern(x0)``."""
        sparse = irad.sparse_jacobian(self._function, options=self._options, **self._wrt)
        return sparse.prepare(*given, *self._args).pattern

    def _made(self, maker: _Function) -> _Function:
        return self._fixed(maker(self._function, options=self._options, **self._wrt))

    def _fixed(self, made: _Function) -> _Function:
        fixed = self._args
        return (lambda *given: made(*given, *fixed)) if fixed else made


class _Sparse:
    """A sparse derivative, prepared at the first point, and again where another branch has more entries."""

    def __init__(self, make: _Function) -> None:
        self._make = make
        self._prepared: Any = None

    def __call__(self, *given: Any) -> Any:
        if self._prepared is None:
            self._prepared = self._make().prepare(*given)
        try:
            return self._prepared(*given)
        except SignatureError:  # another branch, with entries that the pattern lacks
            grown = self._prepared.pattern + self._make().prepare(*given).pattern
            self._prepared = self._make(pattern=grown).prepare(*given)
            return self._prepared(*given)


@overload
def derivatives(
    f: Callable[Concatenate[_X, ...], _R],
    args: Sequence[Any] = (),
    wrt: Literal[0] = 0,
    *,
    options: Options | None = None,
) -> Derivatives[_X, _R]: ...


@overload
def derivatives(
    f: Callable[..., _R], args: Sequence[Any] = (), wrt: int | str = 0, *, options: Options | None = None
) -> Derivatives[Any, _R]: ...


@public
def derivatives(
    f: _Function, args: Sequence[Any] = (), wrt: int | str = 0, *, options: Options | None = None
) -> Derivatives[Any, Any]:
    """The derivatives of a function, in the form that SciPy's solvers take.

    Args:
        f: the function, as in `irad.grad`: a plain one or one of ``numba.njit``.
        args: values of the last arguments, which are fixed. Arguments that SciPy passes on itself (its ``args=``) must
            not be fixed.
        wrt: position or name of the argument that derivatives are taken with respect to: 1 for the right-hand side
            ``f(t, y)`` of ``solve_ivp``.
        options: how the derivatives are created; see `irad.Options`.

    Returns:
        An `irad.interop.scipy.Derivatives`.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or has no such argument.

    Examples:
        >>> import irad.interop.scipy
        >>> import numpy as np
        >>> from scipy.optimize import least_squares, minimize, root
        >>> def residuals(p):
        ...     return np.array([10.0 * (p[1] - p[0] ** 2), 1.0 - p[0]])
        >>> d = irad.interop.scipy.derivatives(residuals)
        >>> root(d.fun, np.array([-1.0, 2.0]), jac=d.jac).x
        array([1., 1.])
        >>> least_squares(d.fun, np.array([-1.0, 2.0]), jac=d.sparse_jac).x.round(6)
        array([1., 1.])
        >>> d = irad.interop.scipy.derivatives(lambda x, c: np.sum((x * x - c) ** 2), args=(4.0,))
        >>> minimize(d.value_and_grad, np.ones(3), jac=True, hessp=d.hessp, method="trust-ncg").x.round(4)
        array([2., 2., 2.])
    """
    return Derivatives(f, args, wrt, options)


# ------------------------------------------------------------------------------------------------ minimize


@overload
def minimize(
    fun: Callable[..., _Number],
    x0: NDArray[Any] | float | list[float],
    args: Any = (),
    method: str | _Function | None = None,
    *,
    bounds: Any = None,
    constraints: Any = (),
    callback: _Function | None = None,
    derivation: Options | None = None,
    **others: Any,
) -> Minimum[NDArray[np.float64]]: ...


@overload
def minimize(
    fun: Callable[..., _Number],
    x0: tuple[Any, ...],  # of numbers it is an array, a named tuple is a structure
    args: Any = (),
    method: str | _Function | None = None,
    *,
    bounds: Any = None,
    constraints: Any = (),
    callback: _Function | None = None,
    derivation: Options | None = None,
    **others: Any,
) -> Minimum[Any]: ...


@overload
def minimize(
    fun: Callable[..., _Number],
    x0: _X,
    args: Any = (),
    method: str | _Function | None = None,
    *,
    bounds: Any = None,
    constraints: Any = (),
    callback: _Function | None = None,
    derivation: Options | None = None,
    **others: Any,
) -> Minimum[_X]: ...


@public
def minimize(
    fun: _Function,
    x0: Any,
    args: Any = (),
    method: str | _Function | None = None,
    *,
    bounds: Any = None,
    constraints: Any = (),
    callback: _Function | None = None,
    derivation: Options | None = None,
    **others: Any,
) -> Any:
    """`scipy.optimize.minimize`, with the derivatives that the method can use.

    Methods that take products with the Hessian get those, `dogleg` and `trust-exact` get Hessians, all others that use
    a gradient get one. Constraints get gradients or Jacobians unless they bring their own.

    Args:
        fun: the function to be minimised, as in `irad.grad`, of ``x`` and ``args``.
        x0: where to start: an array, or any structure of arrays and numbers that `irad.data.to_vec` takes (dictionary,
            dataclass, jitclass, …). The functions are then given structures like it, and ``x`` and ``jac`` of the
            result are such structures.
        args: further arguments, which are constants.
        method: of SciPy.
        bounds: as in SciPy; for a structure in the order of ``irad.data.to_vec(x0)``.
        constraints: as in SciPy. Their functions are given ``x`` in the form of ``x0``.
        callback: as in SciPy, with ``x`` in the form of ``x0``.
        derivation: how derivatives are created; see `irad.Options`. ``options`` are those of SciPy's method.
        others: of SciPy, such as ``tol`` and ``options``; ``jac``, ``hess`` and ``hessp`` replace those of irad.

    Returns:
        SciPy's result.

    Raises:
        SignatureError: ``fun`` is not a function that Numba compiles, or ``x0`` holds no floats.

    Examples:
        >>> import irad.interop.scipy
        >>> import numpy as np
        >>> def loss(model, x, y):
        ...     return np.mean((model["slope"] * x + model["offset"] - y) ** 2)
        >>> x = np.linspace(0.0, 1.0, 20)
        >>> fit = irad.interop.scipy.minimize(loss, {"slope": 0.0, "offset": 0.0}, args=(x, 3.0 * x - 1.0))
        >>> {name: round(value, 4) for name, value in fit.x.items()}
        {'slope': 3.0, 'offset': -1.0}
    """
    args = args if isinstance(args, tuple) else (args,)
    point = _Point.of(x0)
    known = _Known(derivatives(fun, wrt=0, options=derivation), point)
    name = method.lower() if isinstance(method, str) else None
    given = {key: others.pop(key) for key in ("jac", "hess", "hessp") if others.get(key) is not None}
    if name in _WITHOUT_GRADIENT or "jac" in given:
        function = known.value
    else:
        function, given["jac"] = known.value_and_gradient, True
    if not {"hess", "hessp"} & set(given):
        if name in _WITH_PRODUCTS:
            given["hessp"] = known.product
        elif name in _WITH_HESSIAN:
            given["hess"] = known.hessian
    solve: Any = optimize.minimize  # whose stub lists methods and results one by one
    filled = constraints if name in _WITHOUT_GRADIENT else _filled(constraints, point, derivation)
    found: Any = solve(
        function,
        point.vector,
        args,
        method,
        bounds=bounds,
        constraints=filled,
        callback=None if callback is None else point.callback(callback),
        **given,
        **others,
    )
    if point.like is not None:
        found.update({key: point.structure(found[key]) for key in ("x", "jac") if np.ndim(found.get(key, 0.0)) == 1})
    return found


class _Point:
    """Position of the solver: a vector for SciPy, and for the user what the start was.

    Attributes:
        vector: the start as a vector.
        like: the structure of the start, None for an array.
    """

    def __init__(self, vector: NDArray[np.float64], like: Any) -> None:
        self.vector, self.like = vector, like

    @classmethod
    def of(cls, x0: Any) -> _Point:
        if isinstance(x0, np.ndarray | int | float) or (
            isinstance(x0, list | tuple) and not hasattr(x0, "_fields") and all(isinstance(i, int | float) for i in x0)
        ):
            return cls(np.asarray(x0, dtype=np.float64), None)
        vector = data.to_vec(x0)
        if not vector.size:
            raise SignatureError(
                f"the start, {type(x0).__name__}, holds no floats",
                "pass an array, or a structure of floats and arrays of floats",
                "SciPy minimises over a vector of floats",
            )
        return cls(vector, x0)

    def structure(self, vector: Any) -> Any:
        return vector if self.like is None else data.from_vec(np.asarray(vector, dtype=np.float64), self.like)

    def flat(self, structure: Any) -> Any:
        return structure if self.like is None else data.to_vec(structure)

    def of_vector(self, f: _Function) -> _Function:
        """A function of the user's point as one of a vector."""
        if self.like is None:
            return f
        taking = irad.jit(f.py_func) if hasattr(f, "py_func") else f  # those of numba.njit take no dictionaries
        return lambda vector, *rest: taking(self.structure(vector), *rest)

    def along_axes(self, product: Callable[[Any], Any]) -> Any:
        """The matrix of a linear map from the vector."""
        return np.stack([product(self.structure(axis)) for axis in np.eye(self.vector.size)], axis=-1)

    def callback(self, callback: _Function) -> _Function:
        if self.like is None:
            return callback
        if list(inspect.signature(callback).parameters) == ["intermediate_result"]:

            def report(intermediate_result: Any) -> Any:
                shown = {**intermediate_result, "x": self.structure(intermediate_result.x)}
                return callback(intermediate_result=optimize.OptimizeResult(**shown))

            return report
        return self.of_vector(callback)


class _Known:
    """Known parts of the function that is minimised, as functions of a vector."""

    def __init__(self, derivatives_: Derivatives[Any, Any], point: _Point) -> None:
        self._derivatives, self._point = derivatives_, point

    @property
    def value(self) -> _Function:
        return self._point.of_vector(self._derivatives.fun)

    def value_and_gradient(self, vector: Any, *args: Any) -> tuple[Any, Any]:
        value, gradient = self._derivatives.value_and_grad(self._point.structure(vector), *args)
        return value, self._point.flat(gradient)

    def product(self, vector: Any, direction: Any, *args: Any) -> Any:
        point = self._point
        return point.flat(self._derivatives.hessp(point.structure(vector), point.structure(direction), *args))

    def hessian(self, vector: Any, *args: Any) -> Any:
        point = self._point
        if point.like is None:
            return self._derivatives.hess(vector, *args)
        here = point.structure(vector)
        return point.along_axes(lambda axis: point.flat(self._derivatives.hessp(here, axis, *args)))


def _filled(constraints: Any, point: _Point, options: Options | None) -> Any:
    """Constraints with derivatives, in the form in which they were given."""
    if isinstance(constraints, list | tuple):
        return [_filled(each, point, options) for each in constraints]
    if isinstance(constraints, Mapping):
        jac = constraints.get("jac")
        made = _derivative(constraints["fun"], constraints.get("args", ()), point, options) if _is_asked(jac) else jac
        return {**constraints, "fun": point.of_vector(constraints["fun"]), "jac": made}
    if isinstance(constraints, optimize.NonlinearConstraint):
        jac = constraints.jac
        made = _derivative(constraints.fun, (), point, options) if _is_asked(jac) else jac
        changed = {"fun": point.of_vector(constraints.fun), "jac": made}
        return optimize.NonlinearConstraint(**{**vars(constraints), **changed})
    return constraints


def _is_asked(jac: Any) -> bool:
    """True if SciPy would take differences."""
    return jac is None or jac is False or (isinstance(jac, str) and jac in _DIFFERENCES)


def _derivative(f: _Function, args: Any, point: _Point, options: Options | None) -> _Function:
    """Gradient or Jacobian of the function of a constraint, as a function of a vector."""
    args = args if isinstance(args, tuple) else (args,)
    known = derivatives(f, options=options)
    is_number = np.ndim(point.of_vector(known.fun)(point.vector, *args)) == 0
    if point.like is None:
        return known.grad if is_number else known.jac
    if is_number:
        return lambda vector, *given: point.flat(known.grad(point.structure(vector), *given))
    return lambda vector, *given: point.along_axes(lambda axis: known.jvp(point.structure(vector), axis, *given)[1])


# ------------------------------------------------------------------------------------------------ compiled callbacks


@public
def low_level_callable(f: Callable[..., float], arguments: int = 1) -> scipy.LowLevelCallable:
    """A function of numbers, or its derivative, as a `scipy.LowLevelCallable`, which SciPy calls without Python.

    Args:
        f: a function of doubles that returns one, plain or of ``numba.njit``, or a derivative such as
            ``irad.grad(f)``.
        arguments: how many. Of one, its C signature is ``double (double)``; of more, ``double (int, double *)``, as
            ``scipy.integrate.quad`` and ``nquad`` take it, with ``args`` after the variable of integration.

    Returns:
        The `scipy.LowLevelCallable`, which keeps the code alive.

    Raises:
        SignatureError: there is no argument.
        BackendError: Numba cannot compile it for doubles.

    Examples:
        >>> import irad.interop.scipy
        >>> import math
        >>> from numba import njit
        >>> from scipy.integrate import quad
        >>> @njit
        ... def wave(x, frequency):
        ...     return math.sin(frequency * x)
        >>> slope = irad.interop.scipy.low_level_callable(irad.grad(wave), 2)
        >>> round(quad(slope, 0.0, 1.0, args=(3.0,))[0], 9) == round(math.sin(3.0), 9)
        True
    """
    if arguments < 1:
        raise SignatureError(
            f"a function of {arguments} arguments has no variable",
            "pass the number of variables, 1 or more",
            "SciPy passes a number to it, or an array of numbers",
        )
    called = f if hasattr(f, "py_func") or hasattr(f, "_numba_type_") else numba.njit(f)
    if arguments == 1:
        signature, source = types.double(types.double), "def call(x):\n    return f(x)\n"
    else:
        signature = types.double(types.intc, types.CPointer(types.double))
        names = ", ".join(f"x[{i}]" for i in range(arguments))
        source = f"def call(count, x):\n    return f({names})\n"
    compiled = numba.cfunc(signature)(function_from("call", source, "irad.interop.scipy", {"f": called}))
    pointer = compiled.ctypes
    pointer.irad_owner = compiled
    return scipy.LowLevelCallable(pointer)
