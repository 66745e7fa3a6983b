"""`sparse_jacobian` and `sparse_hessian`: matrices with few entries, computed from few products."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar, get_args

import numpy as np
from numba.core.registry import CPUDispatcher

from irad.api.functions import options_or_default
from irad.api.grad import grad
from irad.api.jacobians.call import returning
from irad.api.selection import Selection, selected
from irad.api.sparse.colouring import Compression, by_columns, by_rows, by_symmetry, fewest_first
from irad.api.sparse.patterns import blocks_of, by_dependence, by_probing, found_pattern
from irad.api.sparse.products import Product, products_of
from irad.data.structure import is_structure
from irad.errors import SignatureError, UnsupportedError
from irad.frontend.calls.raising import public
from irad.frontend.numba.cpu import location_of
from irad.frontend.offered import refuse_in_compiled_code
from irad.message import with_article
from irad.options import Options

# A sparse matrix whose pattern is known: products are computed, and the entries taken out of them.

_SEED: Final = 20261123


class Runs:
    """Products of the Jacobian, or its transpose, at some arguments and vectors.

    Arrays are restored before each run but the first, so that they are left as by one; as a context, at the end.

    Attributes:
        columns: how many the Jacobian has.
        aux: the auxiliary output of the last run.
    """

    def __init__(
        self, products: Callable[..., Any], args: tuple[Any, ...], columns: int, *, is_transposed: bool
    ) -> None:
        self._products, self._args, self.columns, self._is_transposed = products, args, columns, is_transposed
        arrays = (each for each in args if isinstance(each, np.ndarray) and each.flags.writeable)
        self._before = [(array, array.copy()) for array in arrays]
        self._is_first, self.aux = True, None

    def __call__(self, vectors: Any) -> Any:
        """From vectors, as the rows of an array, to their products; none where the vectors do not fit."""
        return self.run(vectors)[1]

    def rows(self) -> int:
        """Number of rows of the Jacobian. Leaves the arrays as they were."""
        with self:
            rows, _ = self.run(np.zeros((0, 0 if self._is_transposed else self.columns)))
        return int(rows)

    def run(self, vectors: Any) -> tuple[Any, Any]:
        """The number of rows of the Jacobian, and the products."""
        if not self._is_first:
            self.restore()
        self._is_first = False
        rows, products, *aux = self._products(vectors, *self._args)
        self.aux = aux[0] if aux else None
        return rows, products

    def __enter__(self) -> None:
        """Begins what leaves no trace in the arrays."""

    def __exit__(self, *_: object) -> None:
        """Gives the arrays the content that they had, also after an error."""
        self.restore()

    def restore(self) -> None:
        """Gives the arrays the content that they had."""
        for array, content in self._before:
            array[...] = content


class Derivative(Protocol):
    """A prepared sparse derivative."""

    def runs(self, product: Product, args: tuple[Any, ...]) -> Runs:
        """Products at the arguments."""
        ...

    def misfit(self, problem: str, remedy: str) -> SignatureError:
        """The error of a pattern that does not fit."""
        ...


class PreparedMatrix:
    """A sparse matrix whose pattern is known: call it with the arguments of the function.

    Attributes:
        pattern: a sparse matrix of bools.
        mode: "forward" where columns are computed together, "reverse" where rows are.
        colours: a number for each column, or row; those of one colour are computed together.
        products: how many products with a vector a call takes, without the check.
    """

    def __init__(self, derivative: Derivative, compression: Compression, *, checks: bool, has_aux: bool) -> None:
        self._derivative, self._compression, self._checks, self._has_aux = derivative, compression, checks, has_aux
        self.pattern, self.colours = compression.pattern, compression.colours
        self.mode, self.products = compression.mode, compression.count
        self._weights = np.random.default_rng(_SEED).uniform(1.0, 2.0, (1, self.colours.size))

    def __call__(self, *args: Any) -> Any:
        """The matrix, of SciPy's in the format CSC. Arguments are left as the function leaves them.

        Raises:
            SignatureError: the shape is not that of the pattern, or the pattern lacks an entry.
        """
        from scipy import sparse  # an optional dependency

        pattern, where = self.pattern, self._compression
        runs = self._derivative.runs(where.mode, args)
        if runs.columns != pattern.shape[1]:
            raise self._another_shape(f"{pattern.shape[1]} columns, the argument {runs.columns} numbers")
        checked, values = np.zeros(0), np.zeros(0)
        for first, last in blocks_of(self.colours):
            unit = (self.colours == np.arange(first, last)[:, np.newaxis]).astype(float)
            found = self._products(runs, np.vstack([self._weights, unit]) if self._checks and first == 0 else unit)
            if first == 0:
                values = np.zeros(pattern.nnz, found.dtype)
                checked, found = (found[0], found[1:]) if self._checks else (checked, found)
            mine = (first <= where.product) & (where.product < last)
            values[mine] = found[where.product[mine] - first, where.place[mine]]
        matrix = sparse.csc_array((values, pattern.indices, pattern.indptr), shape=pattern.shape)
        if self._checks:
            self._compare(matrix.T if self.mode == "reverse" else matrix, checked)
        return (matrix, runs.aux) if self._has_aux else matrix

    def _products(self, runs: Runs, vectors: Any) -> Any:
        rows, found = runs.run(vectors)
        if rows != self.pattern.shape[0]:
            raise self._another_shape(f"{self.pattern.shape[0]} rows, the value {rows} numbers")
        return found

    def _compare(self, matrix: Any, product: Any) -> None:
        """Compares with a product in a random direction: what the pattern lacks is in that, too."""
        weights = self._weights[0].astype(product.dtype)
        mine, scale = matrix @ weights, abs(matrix) @ weights
        bound = np.sqrt(np.finfo(product.dtype).eps) * (scale + np.finfo(product.dtype).eps * scale.max(initial=0.0))
        with np.errstate(invalid="ignore"):  # rows that are not finite tell nothing
            differs = np.isfinite(mine) & ~(abs(product - mine) <= bound)
        if differs.any():
            raise self._derivative.misfit(
                f"lacks an entry in {'column' if self.mode == 'reverse' else 'row'} {int(np.argmax(differs))}",
                "(a) prepare at these arguments as well, and pass the sum of both patterns as pattern= or (b) pass a "
                "pattern with every entry that may differ from zero",
            )

    def _another_shape(self, what: str) -> SignatureError:
        return self._derivative.misfit(f"has {what}", "prepare for arguments of this shape")

    def __repr__(self) -> str:
        return f"<{self._derivative!r}, prepared: {self.products} products>"


# Derivatives that are sparse matrices: how the pattern is found, and which products are computed.

Mode: TypeAlias = Literal["forward", "reverse"]

_T = TypeVar("_T")
_PATTERNS: Final = (None, "dependence", "probe")


@dataclass(frozen=True, eq=False)
class SparseTask:
    """The request for a sparse derivative.

    Attributes:
        kind: the name of the public function.
        position: of the argument in a call.
        pattern: None, "dependence", "probe", or the pattern itself.
        modes: by which products the matrix may be computed.
        is_symmetric: the matrix is.
        check: each result is compared with a further product.
        has_aux: the function returns ``(value, aux)``.
        options: how the derivative is created.
    """

    kind: str
    position: int
    pattern: Any
    modes: tuple[Mode, ...]
    is_symmetric: bool
    check: bool
    has_aux: bool
    options: Options


class SparseDerivative:
    """A sparse matrix, called like the function. It prepares itself in each call; `prepare` does that once."""

    def __init__(self, wanted: Selection, function: Any, task: SparseTask, rebuild: tuple[Any, ...]) -> None:
        self._wanted, self._primal, self._function, self.task = wanted, wanted.primal, function, task
        self._rebuild = rebuild

    def prepare(self, *args: Any) -> PreparedMatrix:
        """Finds the pattern, if none was given, and colours columns or rows.

        Args:
            args: arguments of the function, at which it takes the branches that matter.
        """
        self._check_argument(args)
        given = self.task.pattern
        is_found = given is None or isinstance(given, str)
        pattern = self._pattern(args) if is_found else self._given(given)
        pattern.sum_duplicates()
        ways = self._compressions(pattern)
        return self._first([lambda: self._prepared(next(ways), args) for _ in self.task.modes])

    def __call__(self, *args: Any) -> Any:
        """The matrix, prepared for these arguments alone."""
        return self.prepare(*args)(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        from irad.frontend.custom.pickled_rules import with_rules_of_libraries  # few derivatives are pickled

        return with_rules_of_libraries((sparse_derivative, self._rebuild))

    def __repr__(self) -> str:
        return f"<irad.{self.task.kind} of {self._primal.py_func.__qualname__}>"

    def runs(self, product: Product, args: tuple[Any, ...], *, has_marks: bool = False) -> Runs:
        """Products at the arguments; ``has_marks``: what the vectors hold is not to be watched in debug mode."""
        task, (position,) = self.task, self._wanted.positions
        options = replace(task.options, debug=False) if has_marks else task.options
        found = products_of(task.kind, product, self._function, position, task.has_aux, options)
        columns = np.asanyarray(args[task.position]).size
        return Runs(self._wanted.bound(found, leading=1), args, columns, is_transposed=product == "reverse")

    def misfit(self, problem: str, remedy: str) -> SignatureError:
        """The error of a pattern that does not fit."""
        return SignatureError(
            f"the pattern of the {self._matrix} of {self._primal.py_func.__qualname__} {problem}",
            remedy,
            "columns or rows that are computed together are told apart by the pattern",
            location_of(self._primal.py_func),
        )

    @property
    def _matrix(self) -> str:
        return "Hessian" if self.task.is_symmetric else "Jacobian"

    # ------------------------------------------------------------------------------------------------ preparation

    def _check_argument(self, args: tuple[Any, ...]) -> None:
        position = self.task.position
        if position >= len(args) or not (is_structure(args[position]) or np.asanyarray(args[position]).dtype.hasobject):
            return
        name = type(args[position]).__name__
        raise SignatureError(
            f"argument {position} of {self._primal.py_func.__qualname__} is {with_article(name)}, not an array",
            "(a) pass its numbers as one array, of which the function takes the parts or (b) "
            f"irad.{self.task.kind.removeprefix('sparse_')}, which takes numbers, arrays and structures of these",
            f"a sparse {self._matrix} has a column for each number of one array",
            location_of(self._primal.py_func),
        )

    def _compressions(self, pattern: Any) -> Iterator[Compression]:
        """The best first."""
        if self.task.is_symmetric:
            yield by_symmetry(pattern)
        elif len(self.task.modes) > 1:
            yield from fewest_first(pattern)
        else:
            yield (by_rows if self.task.modes == ("reverse",) else by_columns)(pattern)

    def _prepared(self, compression: Compression, args: tuple[Any, ...]) -> PreparedMatrix:
        """Compiles the products, too."""
        runs = self.runs(compression.mode, args)
        shape = (runs.rows(), runs.columns)
        if compression.pattern.shape != shape:
            raise self.misfit(
                f"has the shape {compression.pattern.shape}, the {self._matrix} has {shape}",
                "pass a matrix with a row for each number returned and a column for each number of the argument",
            )
        return PreparedMatrix(self, compression, checks=self.task.check, has_aux=self.task.has_aux)

    def _given(self, pattern: Any) -> Any:
        from scipy import sparse  # an optional dependency

        found: Any = sparse.csc_array(pattern, dtype=bool)
        if self.task.is_symmetric and (found.shape[0] != found.shape[1] or (found != found.T).nnz):
            raise self.misfit("is not symmetric", "pass pattern + pattern.T")
        return found

    def _pattern(self, args: tuple[Any, ...]) -> Any:
        ways: list[Callable[[], Any]] = []
        if self.task.pattern != "probe":
            ways.append(lambda: self._by_dependence(args))
        if self.task.pattern != "dependence":
            ways += [partial(self._by_probing, mode, args) for mode in self.task.modes]
        found = self._first(ways)
        return (found + found.T).tocsc() if self.task.is_symmetric else found

    @staticmethod
    def _first(ways: Sequence[Callable[[], _T]]) -> _T:
        """The first that is possible: what the function calls may lack a rule for one mode."""
        *others, last = ways
        for way in others:
            try:
                return way()
            except UnsupportedError:
                continue
        return last()

    def _by_dependence(self, args: tuple[Any, ...]) -> Any:
        runs = self.runs("sets", args, has_marks=True)
        with runs:
            return found_pattern(by_dependence(runs, np.asanyarray(args[self.task.position]).dtype), runs.columns)

    def _by_probing(self, mode: Mode, args: tuple[Any, ...]) -> Any:
        runs = self.runs(mode, args, has_marks=True)
        count = runs.columns if mode == "forward" else runs.rows()
        has_nan = not self._primal.targetoptions.get("fastmath")
        with runs:
            found = found_pattern(by_probing(runs, count, has_nan=has_nan), count)
        return found if mode == "forward" else found.T.tocsc()


def sparse_derivative(
    kind: str,
    f: Any,
    argnums: int,
    argnames: str | None,
    pattern: Any,
    mode: Mode | None,
    outputs: int | None,
    check: bool,
    has_aux: bool,
    options: Options | None,
) -> SparseDerivative:
    """The callable of a public function: its name is ``kind``, a Hessian is the Jacobian of the gradient.

    Raises:
        SignatureError: what is asked for makes no sense, or SciPy is not installed.
    """
    wanted, used, is_symmetric = selected(f, argnums, argnames), options_or_default(options), kind == "sparse_hessian"
    primal, (position,) = wanted.primal, wanted.positions
    _check_scipy(kind, primal)
    _check_choices(kind, primal, pattern, mode)
    function: Any = primal
    if is_symmetric:
        function = grad(primal, position, has_aux, options=used)
    elif outputs is not None:
        function = returning(primal, selected(f, outputs).argnums, has_aux)
    modes: tuple[Mode, ...] = ("forward",) if is_symmetric else (mode,) if mode else ("forward", "reverse")
    task = SparseTask(kind, position - len(wanted.leading), pattern, modes, is_symmetric, check, has_aux, used)
    rebuild = (kind, f, argnums, argnames, pattern, mode, outputs, check, has_aux, used)
    return SparseDerivative(wanted, function, task, rebuild)


def _check_choices(kind: str, primal: CPUDispatcher, pattern: Any, mode: Any) -> None:
    if isinstance(pattern, str) and pattern not in _PATTERNS:
        raise SignatureError(
            f"pattern={pattern!r} is not a pattern",
            '(a) pattern="dependence" or (b) pattern="probe" or (c) an array or sparse matrix that differs from zero '
            "where a derivative may or (d) leave it out",
            f"the pattern says which entries irad.{kind} computes",
            location_of(primal.py_func),
        )
    if mode is not None and mode not in get_args(Mode):
        raise SignatureError(
            f"mode={mode!r} is not a mode of irad.{kind}",
            '(a) mode="forward" or (b) mode="reverse" or (c) leave it out',
            "forward mode computes columns of the Jacobian, reverse mode rows",
            location_of(primal.py_func),
        )


def _check_scipy(kind: str, primal: CPUDispatcher) -> None:
    try:
        import scipy.sparse  # noqa: F401  an optional dependency
    except ImportError:
        raise SignatureError(
            f"irad.{kind} needs SciPy, which is not installed",
            f"(a) pip install scipy or (b) irad.{kind.removeprefix('sparse_')}, which returns an array",
            "the result is a sparse matrix of SciPy's",
            location_of(primal.py_func),
        ) from None


@public
def sparse_jacobian(
    f: Callable[..., Any],
    argnums: int = 0,
    has_aux: bool = False,
    *,
    pattern: Any = None,
    mode: Mode | None = None,
    outputs: int | None = None,
    check: bool = True,
    argnames: str | None = None,
    options: Options | None = None,
) -> SparseDerivative:
    """The Jacobian of an array with respect to an array as a sparse matrix of SciPy's.

    Columns that have no row in common are computed together, in forward mode, or rows that have no column in common, in
    reverse mode: a tridiagonal Jacobian takes three products, whatever its size. The matrix has a row for each number
    returned and a column for each number of the argument, in C order.

    Which entries may differ from zero is the *pattern*. It is found at the arguments of `prepare`, for the branches
    that the function takes there. ``"dependence"`` follows through the compiled code what each result is computed from,
    whatever the slopes are. ``"probe"`` looks where a NaN in the place of a tangent comes out. Unless it is given,
    dependence is followed; where that is not known of something that the function calls, as of matrix products and
    functions with rules of yours, the pattern is probed.

    Elsewhere the function may take other branches. Each Jacobian is therefore compared with a further product in a
    random direction, and a pattern that lacks an entry raises an error. ``check=False`` leaves that out: an entry that
    the pattern lacks then makes others wrong.

    Args:
        f: the function, as in `irad.grad`; it returns an array of floats or a float.
        argnums: the position of the argument, an array of floats.
        has_aux: ``f`` returns ``(value, aux)``, and the result is ``(jacobian, aux)``; with ``outputs``, ``aux`` is
            what ``f`` returns.
        pattern: "dependence", "probe", or an array or sparse matrix that differs from zero wherever a derivative may.
        mode: "forward" or "reverse"; None: the one that takes fewer products and passes through all that ``f`` calls.
        outputs: the position of the array that ``f`` writes its results to, in place of what it returns.
        check: whether each Jacobian is compared with one more product.
        argnames: in place of ``argnums``, the name of the parameter.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        A callable that takes the arguments of ``f``. Its method ``prepare`` takes them, too, and returns a callable to
        be reused, with the attributes ``pattern``, ``mode``, ``colours`` (of the columns or rows) and ``products`` (how
        many).

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
    return sparse_derivative(
        "sparse_jacobian", f, argnums, argnames, pattern, mode, outputs, check, bool(has_aux), options
    )


refuse_in_compiled_code(sparse_jacobian, "(a) irad.jacobian, which returns an array or (b) call it from Python")


@public
def sparse_hessian(
    f: Callable[..., Any],
    argnums: int = 0,
    has_aux: bool = False,
    *,
    pattern: Any = None,
    check: bool = True,
    argnames: str | None = None,
    options: Options | None = None,
) -> SparseDerivative:
    """The Hessian of a function that returns a float as a sparse matrix of SciPy's.

    It is put together of products with vectors, as `irad.hvp` computes them. Because it is symmetric, an entry may be
    read where it stands or where its mirror image does, so that they are fewer than those of a Jacobian with this
    pattern: two for a matrix with a full row, a full column and a diagonal. The matrix has a row and a column for each
    number of the argument, in C order.

    The pattern is that of the gradient's dependence on the argument, found as by `irad.sparse_jacobian`: what is linear
    in all numbers leaves no entry. Each Hessian is compared with a further product in a random direction.

    Args:
        f: the function, as in `irad.grad`.
        argnums: the position of the argument, an array of floats.
        has_aux: ``f`` returns ``(value, aux)``, and the result is ``(hessian, aux)``.
        pattern: "dependence", "probe", or an array or sparse matrix that is symmetric and differs from zero wherever a
            second derivative may.
        check: whether each Hessian is compared with one more product.
        argnames: in place of ``argnums``, the name of the parameter.
        options: how the derivatives are created; see `irad.Options`.

    Returns:
        A callable that takes the arguments of ``f``. Its method ``prepare`` takes them, too, and returns a callable to
        be reused, with the attributes ``pattern``, ``colours`` (of the columns) and ``products`` (how many).

    Raises:
        SignatureError: as `irad.sparse_jacobian`.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def chain(x):
        ...     return ((x[1:] - x[:-1]) ** 4).sum() + x[0] * x[-1]
        >>> prepared = irad.sparse_hessian(chain).prepare(np.ones(1000))
        >>> prepared.products <= 5
        True
        >>> prepared(np.arange(1000.0))[:3, :3].toarray()
        array([[ 12., -12.,   0.],
               [-12.,  24., -12.],
               [  0., -12.,  24.]])
    """
    return sparse_derivative("sparse_hessian", f, argnums, argnames, pattern, None, None, check, bool(has_aux), options)


refuse_in_compiled_code(sparse_hessian, "(a) irad.hessian, which returns an array or (b) call it from Python")
