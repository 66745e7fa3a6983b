"""`sparse_jacobian`: a Jacobian with few entries, of a few products instead of one for each column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from irad.api.functions import options_or_default, remembered
from irad.api.jacobians.call import Call, JacobianTask, returning
from irad.api.jacobians.colouring import colours_of
from irad.api.jacobians.probing import blocks_of, probed_pattern
from irad.api.jacobians.specialised import specialised
from irad.api.selection import selected
from irad.errors import SignatureError
from irad.frontend.calls.annotations import Returns
from irad.frontend.calls.dispatcher import INTERNAL, DerivativeDispatcher, make_wrapper, parameter_names
from irad.frontend.calls.raising import public
from irad.frontend.numba.cpu import location_of
from irad.options import Options

_KIND: Final = "sparse_jacobian"
_WIDTH: Final = 4
_SEED: Final = 20261123


@public
def sparse_jacobian(
    f: Callable[..., Any],
    argnums: int = 0,
    *,
    pattern: Any = "probe",
    outputs: int | None = None,
    check: bool = True,
    argnames: str | None = None,
    options: Options | None = None,
) -> SparseJacobian:
    """The Jacobian of an array with respect to an array as a sparse matrix of SciPy's.

    Columns that have no row in common are computed together, in forward mode: a tridiagonal Jacobian takes three
    products, whatever its size. The matrix has a row for each number returned and a column for each number of the
    argument, in C order.

    Which entries may differ from zero is the *pattern*. ``"probe"``: it is found at the arguments of `prepare`, where
    each result depends on the numbers that it is computed from in the branches taken there. Elsewhere the function may
    take other branches, or a derivative that was zero may not be. Each Jacobian is therefore compared with a further
    product in a random direction, and a pattern that lacks an entry raises an error. ``check=False`` leaves that out:
    an entry that the pattern lacks then makes others wrong.

    Args:
        f: the function, as in `irad.grad`; it returns an array of floats or a float.
        argnums: the position of the argument, an array of floats.
        pattern: "probe", or an array or sparse matrix that differs from zero wherever a derivative may.
        outputs: the position of the array that ``f`` writes its results to, in place of what it returns.
        check: whether each Jacobian is compared with one more product.
        argnames: in place of ``argnums``, the name of the parameter.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        A callable that takes the arguments of ``f``. Its method ``prepare`` takes them, too, and returns a callable to
        be reused, with the attributes ``pattern``, ``colours`` (of the columns) and ``products`` (how many).

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or SciPy is not installed; in a call: ``f`` maps no
            array to an array, or the pattern does not fit.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def residual(u):
        ...     r = u**3
        ...     r[1:] -= u[:-1]
        ...     return r
        >>> prepared = irad.sparse_jacobian(residual).prepare(np.ones(1000))
        >>> prepared.products
        2
        >>> prepared(np.arange(1000.0))[:3, :3].toarray()
        array([[ 0.,  0.,  0.],
               [-1.,  3.,  0.],
               [ 0., -1., 12.]])
    """
    wanted, options = selected(f, argnums, argnames), options_or_default(options)
    primal = wanted.primal
    _check_scipy(primal)
    if isinstance(pattern, str) and pattern != "probe":
        raise SignatureError(
            f"pattern={pattern!r} is not a pattern",
            '(a) pattern="probe" or (b) an array or sparse matrix that differs from zero where a derivative may',
            "the pattern says which entries of the Jacobian are computed",
            location_of(primal.py_func),
        )
    (known,) = wanted.positions
    target = primal if outputs is None else returning(primal, selected(f, outputs).argnums)
    products = wanted.bound(_products_of(target, known, options), leading=1)
    return SparseJacobian(target, known - len(wanted.leading), products, pattern, check)


def _check_scipy(primal: Any) -> None:
    try:
        import scipy.sparse  # noqa: F401  an optional dependency
    except ImportError:
        raise SignatureError(
            "irad.sparse_jacobian needs SciPy, which is not installed",
            "(a) pip install scipy or (b) irad.jacobian, which returns an array",
            "the result is a sparse matrix of SciPy's",
            location_of(primal.py_func),
        ) from None


def _products_of(primal: Any, position: int, options: Options) -> DerivativeDispatcher:
    """From directions, as the rows of an array, and the arguments of a function to the products with its Jacobian."""
    task = JacobianTask(_KIND, Returns.GRADIENT, (position,), True, _WIDTH, None, options)
    function = primal.py_func
    directions = f"{INTERNAL}directions"

    def build() -> DerivativeDispatcher:
        def write(argument_types: tuple[Any, ...]) -> Any:
            call = Call(primal, task, argument_types[1:])
            _check_types(call)
            return call.products()

        called = specialised(_KIND, [directions, *parameter_names(function)], write)
        wrapper = make_wrapper(_KIND, function, [directions], f"irad_call({directions}, {{arguments}})", called)
        rebuild = (_products_of, (primal, position, options))
        return DerivativeDispatcher(wrapper, called, primal, _KIND, rebuild, lambda result: result)

    return remembered(primal, task, build)


def _check_types(call: Call) -> None:
    structure, name = call.structure, call.function.__qualname__
    parts = [*structure.inputs, *structure.outputs]
    if len(parts) == 2 and structure.inputs[0].is_array and not any(part.is_complex or part.path for part in parts):
        return
    raise SignatureError(
        f"the Jacobian of {name} for these arguments is not one matrix of floats",
        "(a) pass an array of floats to a function that returns one or (b) irad.jacobian",
        "a sparse matrix has a row for each number returned and a column for each number of one argument",
        location_of(call.function),
    )


class SparseJacobian:
    """A sparse Jacobian, called like the function. It prepares itself in each call; `prepare` does that once."""

    def __init__(self, primal: Any, position: int, products: Callable[..., Any], pattern: Any, check: bool) -> None:
        self._primal, self._position, self._products = primal, position, products
        self._pattern, self.checks = pattern, check

    def prepare(self, *args: Any) -> PreparedJacobian:
        """Finds the pattern, if none was given, and colours the columns.

        Args:
            args: arguments of the function, where no derivative is zero that is not zero elsewhere.
        """
        from scipy import sparse  # an optional dependency

        runs = self.runs(args)
        if isinstance(self._pattern, str):
            found = probed_pattern(runs, runs.columns, self._mark(runs.columns))
        else:
            found = sparse.csc_array(self._pattern, dtype=bool)
            shape = (runs(np.zeros((1, runs.columns))).shape[1], runs.columns)
            if found.shape != shape:
                raise self.misfit(
                    f"has the shape {found.shape}, the Jacobian has {shape}",
                    "pass a matrix with a row for each number returned and a column for each number of the argument",
                )
        runs.restore()
        found.sum_duplicates()
        return PreparedJacobian(self, found)

    def __call__(self, *args: Any) -> Any:
        """The Jacobian, prepared for these arguments alone."""
        return self.prepare(*args)(*args)

    def __repr__(self) -> str:
        return f"<irad.{_KIND} of {self._primal.py_func.__qualname__}>"

    def _mark(self, columns: int) -> Any:
        """What is put in as a tangent to see where it goes; `fastmath` says that there is no NaN."""
        if not self._primal.targetoptions.get("fastmath"):
            return np.nan
        return np.random.default_rng(_SEED).uniform(1.0, 2.0, columns)

    def runs(self, args: tuple[Any, ...]) -> _Runs:
        """Products at the arguments."""
        return _Runs(self._products, args, np.size(args[self._position]))

    def misfit(self, problem: str, remedy: str) -> SignatureError:
        """The error of a pattern that does not fit."""
        return SignatureError(
            f"the pattern of the Jacobian of {self._primal.py_func.__qualname__} {problem}",
            remedy,
            "columns that have no row in common are computed together, and are told apart by the pattern",
            location_of(self._primal.py_func),
        )


class _Runs:
    """Products of the Jacobian at some arguments and vectors; arrays are restored before each call but the first."""

    def __init__(self, products: Callable[..., Any], args: tuple[Any, ...], columns: int) -> None:
        self._products, self._args, self.columns = products, args, columns
        arrays = (each for each in args if isinstance(each, np.ndarray) and each.flags.writeable)
        self._before = [(array, array.copy()) for array in arrays]
        self._is_first = True

    def __call__(self, directions: Any) -> Any:
        """From vectors, as the rows of an array, to their products."""
        if not self._is_first:
            self.restore()
        self._is_first = False
        return self._products(directions, *self._args)

    def restore(self) -> None:
        """Gives the arrays the content that they had."""
        for array, content in self._before:
            array[...] = content


class PreparedJacobian:
    """A sparse Jacobian whose pattern is known: call it with the arguments of the function.

    Attributes:
        pattern: a sparse matrix of bools.
        colours: a number for each column; columns of one colour are computed together.
        products: how many products of the Jacobian and a vector a call takes, without the check.
    """

    def __init__(self, jacobian: SparseJacobian, pattern: Any) -> None:
        self._jacobian, self.pattern = jacobian, pattern
        self.colours = colours_of(pattern)
        self.products = int(self.colours.max(initial=-1)) + 1
        self._of_entry = np.repeat(self.colours, np.diff(pattern.indptr))
        self._weights = np.random.default_rng(_SEED).uniform(1.0, 2.0, (1, pattern.shape[1]))

    def __call__(self, *args: Any) -> Any:
        """The Jacobian, a matrix of SciPy's in the format CSC. Arguments are left as the function leaves them.

        Raises:
            SignatureError: the shape is not that of the pattern, or the pattern lacks an entry.
        """
        from scipy import sparse  # an optional dependency

        pattern, runs, checks = self.pattern, self._jacobian.runs(args), self._jacobian.checks
        if runs.columns != pattern.shape[1]:
            raise self._another_shape(f"{pattern.shape[1]} columns, the argument {runs.columns} numbers")
        checked, values = np.zeros(0), np.zeros(0)
        for first, last in blocks_of(self.colours):
            unit = (self.colours == np.arange(first, last)[:, np.newaxis]).astype(float)
            found = runs(np.vstack([self._weights, unit]) if checks and first == 0 else unit)
            if found.shape[1] != pattern.shape[0]:
                raise self._another_shape(f"{pattern.shape[0]} rows, the value {found.shape[1]} numbers")
            if first == 0:
                values = np.zeros(pattern.nnz, found.dtype)
                checked, found = (found[0], found[1:]) if checks else (checked, found)
            mine = (first <= self._of_entry) & (self._of_entry < last)
            values[mine] = found[self._of_entry[mine] - first, pattern.indices[mine]]
        jacobian = sparse.csc_array((values, pattern.indices, pattern.indptr), shape=pattern.shape)
        if checks:
            self._compare(jacobian, checked)
        return jacobian

    def _compare(self, jacobian: Any, product: Any) -> None:
        """Compares with a product in a random direction: what the pattern lacks is in that, too."""
        weights = self._weights[0].astype(product.dtype)
        mine, scale = jacobian @ weights, abs(jacobian) @ weights
        bound = np.sqrt(np.finfo(product.dtype).eps) * (scale + np.finfo(product.dtype).eps * scale.max(initial=0.0))
        with np.errstate(invalid="ignore"):  # rows that are not finite tell nothing
            differs = np.isfinite(mine) & ~(abs(product - mine) <= bound)
        if differs.any():
            raise self._jacobian.misfit(
                f"lacks an entry in row {int(np.argmax(differs))}",
                "(a) prepare at these arguments as well, and pass the sum of both patterns as pattern= or (b) pass a "
                "pattern with every entry that may differ from zero",
            )

    def _another_shape(self, what: str) -> SignatureError:
        return self._jacobian.misfit(f"has {what}", "prepare for arguments of this shape")

    def __repr__(self) -> str:
        return f"<{self._jacobian!r}, prepared: {self.products} products>"
