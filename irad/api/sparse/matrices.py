"""`sparse_jacobian` and `sparse_hessian`: matrices with few entries, computed from few products."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

import numpy as np
from numba.core.registry import CPUDispatcher

from irad.api.functions import options_or_default
from irad.api.grad import grad
from irad.api.jacobians.task import returning
from irad.api.selection import Selection, selected
from irad.api.sparse.colouring import Compression, by_columns, by_rows, by_symmetry, fewest_first, keep_colouring
from irad.api.sparse.entries import EntriesTask, Format, Layout, entries_of
from irad.api.sparse.patterns import by_dependence, by_probing, found_pattern
from irad.api.sparse.products import Product, products_of
from irad.data.structure import is_structure
from irad.errors import SignatureError, UnsupportedError
from irad.frontend.calls.dispatcher import is_kept
from irad.frontend.calls.raising import public
from irad.frontend.numba.messages import location_of
from irad.frontend.offered import refuse_in_compiled_code
from irad.message import with_article
from irad.options import Options
from irad.versions import install

# A sparse matrix whose pattern is known: products are computed, and the entries taken out of them.


class Runs:
    """Products of the Jacobian, or its transpose, at some arguments and vectors.

    Arrays are restored before each run but the first, so that they are left as by one; as a context, at the end.

    Attributes:
        columns: number of columns of the Jacobian.
    """

    def __init__(
        self, products: Callable[..., Any], args: tuple[Any, ...], columns: int, *, is_transposed: bool
    ) -> None:
        self._products, self._args, self.columns, self._is_transposed = products, args, columns, is_transposed
        self._content, self._is_first = Content(args), True

    def __call__(self, vectors: Any) -> Any:
        """From vectors, as the rows of an array, to their products; none if the vectors do not fit."""
        return self._run(vectors)[1]

    def rows(self) -> int:
        """Number of rows of the Jacobian. Leaves the arrays as they were."""
        with self._content:
            rows, _ = self._run(np.zeros((0, 0 if self._is_transposed else self.columns)))
        return int(rows)

    def _run(self, vectors: Any) -> tuple[Any, Any]:
        """The number of rows of the Jacobian, and the products."""
        if not self._is_first:
            self._content.restore()
        self._is_first = False
        rows, products, *_ = self._products(vectors, *self._args)
        return rows, products

    def __enter__(self) -> None:
        """Begins what leaves no trace in the arrays."""

    def __exit__(self, *_: object) -> None:
        """Gives the arrays the content that they had, also after an error."""
        self._content.restore()


class Content:
    """The content of the arrays among some arguments: at the end of the context they have it again."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        arrays = (each for each in args if isinstance(each, np.ndarray) and each.flags.writeable)
        self._before = [(array, array.copy()) for array in arrays]

    def restore(self) -> None:
        """Gives the arrays the content that they had."""
        for array, content in self._before:
            array[...] = content

    def __enter__(self) -> None:
        """Begins what leaves no trace in the arrays."""

    def __exit__(self, *_: object) -> None:
        """Gives the arrays the content that they had, also after an error."""
        self.restore()


class PreparedMatrix:
    """A sparse matrix whose pattern is known: call it with the arguments of the function.

    Attributes:
        pattern: a sparse matrix of bools; of a Hessian both triangles.
        rows: for each entry that is computed, its row, in the order of `values_into`.
        columns: for each of these entries its column.
        dtype: of the entries.
        mode: "forward" where columns are computed together, "reverse" where rows are.
        colours: a number for each column, or row; those of one colour are computed together.
        products: number of products with a vector in a call, without the check.
    """

    def __init__(self, derivative: SparseDerivative, compression: Compression, dtype: np.dtype[Any]) -> None:
        self._derivative, self._compression, self.dtype = derivative, compression, dtype
        self.pattern, self.colours = compression.pattern, compression.colours
        self.mode, self.products = compression.mode, compression.count
        task = derivative.task
        self.rows, self.columns, self._plan = task.layout.planned(compression, checks=task.check)
        self._entries = derivative.entries(self.mode)
        self._scratch: list[Any] = []  # memory that no call uses

    def __call__(self, *args: Any) -> Any:
        """The matrix, of SciPy's, in the format that was asked for. Arguments are left as the function leaves them.

        Raises:
            SignatureError: the shape is not that of the pattern, or the pattern lacks an entry.
        """
        values = np.zeros(self.rows.size)
        dtype, aux = self._fill(values, args)
        layout = self._derivative.task.layout
        matrix = layout.matrix(values.astype(dtype, copy=False), self.rows, self.columns, self.pattern.shape)
        return (matrix, aux) if self._derivative.task.has_aux else matrix

    def values_into(self, out: Any, *args: Any) -> Any:
        """Writes the entries to an array: those in `rows` and `columns`, in this order.

        From the second call on irad allocates no memory for arguments of the same shapes, if the arrays that are
        differentiated or written to are contiguous; what the function allocates, its derivative does as well.

        Args:
            out: an array with an element for each entry, of `dtype` or of a wider one. It must not share memory with
                the arguments. What it holds does not matter, and after an error it is undefined.
            args: of the function; they are left as the function leaves them.

        Returns:
            None, or ``aux`` with ``has_aux``.

        Raises:
            SignatureError: ``out`` is not such an array, the shape is not that of the pattern, or the pattern lacks an
                entry.

        Examples:
            >>> import irad
            >>> import numpy as np
            >>> from numba import njit
            >>> @njit
            ... def differences(x):
            ...     return x[1:] ** 2 - x[:-1]
            >>> prepared = irad.sparse_jacobian(differences).prepare(np.ones(3))
            >>> entries = np.empty(prepared.rows.size)
            >>> prepared.values_into(entries, np.array([1.0, 2.0, 3.0]))
            >>> [(int(i), int(j), float(v)) for i, j, v in zip(prepared.rows, prepared.columns, entries)]
            [(0, 0, -1.0), (0, 1, 4.0), (1, 1, -1.0), (1, 2, 6.0)]
        """
        if not isinstance(out, np.ndarray) or out.shape != self.rows.shape or not out.flags.writeable:
            given = f"of the shape {out.shape}" if isinstance(out, np.ndarray) else with_article(type(out).__name__)
            what = "read-only" if isinstance(out, np.ndarray) and out.shape == self.rows.shape else given
            raise self._derivative.misfit(
                f"has {self.rows.size} entries, and what they are to be written to is {what}",
                f"pass an array that can be written to, np.empty({self.rows.size})",
            )
        return self._fill(out, args)[1]

    def _fill(self, out: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
        """Writes the entries to ``out``, and returns their dtype, and ``aux``."""
        pattern, position = self.pattern, self._derivative.task.position
        columns = np.asanyarray(args[position]).size if position < len(args) else pattern.shape[1]  # Numba tells of it
        if columns != pattern.shape[1]:
            raise self._another_shape(f"{pattern.shape[1]} columns, the argument {columns} numbers")
        try:
            scratch = self._scratch.pop()
        except IndexError:
            scratch = np.empty(0, np.uint8)
        given = self._derivative.packed(args)
        rows, line, itemsize, scratch, *aux = self._entries(out, self._plan, scratch, *given)
        self._scratch.append(scratch)
        if rows != pattern.shape[0]:
            raise self._another_shape(f"{pattern.shape[0]} rows, the value {rows} numbers")
        if line >= 0:
            raise self._derivative.misfit(
                f"lacks an entry in {'column' if self.mode == 'reverse' else 'row'} {line}",
                "(a) prepare at these arguments as well, and pass the sum of both patterns as pattern= or (b) pass a "
                "pattern with every entry that may differ from zero",
            )
        return f"f{itemsize}", aux[0] if aux else None

    def _another_shape(self, what: str) -> SignatureError:
        return self._derivative.misfit(f"has {what}", "prepare for arguments of this shape")

    def __reduce__(self) -> tuple[Any, ...]:
        return PreparedMatrix, (self._derivative, self._compression, self.dtype)

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
        through: positions of the arrays that the function works in or writes its results to, counted with the instance
            of a method.
        layout: which entries there are, and in what order.
        has_aux: the function returns ``(value, aux)``.
        options: options of the derivative.
    """

    kind: str
    position: int
    pattern: Any
    modes: tuple[Mode, ...]
    is_symmetric: bool
    check: bool
    has_aux: bool
    through: tuple[int, ...]
    layout: Layout
    options: Options


class SparseDerivative:
    """A sparse matrix, called like the function. It prepares itself in each call; `prepare` does that once."""

    def __init__(self, wanted: Selection, function: Any, task: SparseTask, rebuild: tuple[Any, ...]) -> None:
        self._wanted, self._primal, self._function, self.task = wanted, wanted.primal, function, task
        self._rebuild = rebuild
        if is_kept(self._primal, task.options):
            keep_colouring()

    def prepare(self, *args: Any) -> PreparedMatrix:
        """Finds the pattern, if none was given, and colours columns or rows.

        Args:
            args: arguments of the function, at which it takes the branches that matter.
        """
        self._check_argument(args)
        args = self.packed(args)
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
        """Products at the arguments; ``has_marks``: debug mode must not watch the content of the vectors."""
        task, (position,) = self.task, self._wanted.positions
        options = replace(task.options, debug=False) if has_marks else task.options
        found = products_of(task.kind, product, self._function, position, task.has_aux, options)
        columns = np.asanyarray(args[task.position]).size
        return Runs(self._wanted.bound(found, leading=1), args, columns, is_transposed=product == "reverse")

    def packed(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with a contiguous copy of a read-only view, whose elements may lie in one place."""
        position = self.task.position
        given = args[position] if position < len(args) else None
        if not isinstance(given, np.ndarray) or given.flags.writeable or given.flags.c_contiguous:
            return args
        return (*args[:position], given.copy(), *args[position + 1 :])

    def entries(self, mode: Mode) -> Callable[..., Any]:
        """The derivative of `entries_of`, for the arguments of the user's function."""
        task, (position,) = self.task, self._wanted.positions
        function = self._primal if task.is_symmetric else self._function
        asked = EntriesTask(task.kind, mode == "forward", position, task.through, task.has_aux, task.options)
        return self._wanted.bound(entries_of(self._primal, function, asked), leading=3)

    def misfit(self, problem: str, remedy: str) -> SignatureError:
        """The error of a pattern that does not fit."""
        return SignatureError(
            f"the pattern of the {self._matrix} of {self._primal.py_func.__qualname__} {problem}",
            remedy,
            "the pattern separates columns or rows that are computed together",
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
        """Compiles the entries, too."""
        columns = np.asanyarray(args[self.task.position]).size
        plan = self.task.layout.empty_plan(compression, columns)
        with Content(args):
            rows, _, itemsize, *_ = self.entries(compression.mode)(np.empty(0), plan, np.empty(0, np.uint8), *args)
        if compression.pattern.shape != (rows, columns):
            raise self.misfit(
                f"has the shape {compression.pattern.shape}, the {self._matrix} has {(rows, columns)}",
                "pass a matrix with a row for each number returned and a column for each number of the argument",
            )
        return PreparedMatrix(self, compression, np.dtype(f"f{itemsize}"))

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
        """The first that is possible: a callee may lack a rule for one mode."""
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
    layout: Layout,
    work: int | Sequence[int] = (),
) -> SparseDerivative:
    """The callable of a public function: its name is ``kind``, a Hessian is the Jacobian of the gradient.

    Raises:
        SignatureError: an option is invalid, or SciPy is not installed.
    """
    wanted, used, is_symmetric = selected(f, argnums, argnames), options_or_default(options), kind == "sparse_hessian"
    primal, (position,) = wanted.primal, wanted.positions
    _check_scipy(kind, primal)
    _check_choices(kind, primal, pattern, mode, layout)
    function: Any = primal
    through = set(selected(f, work).positions if isinstance(work, int) or work else ())
    if is_symmetric:
        function = grad(primal, position, has_aux, options=used)
    elif outputs is not None:
        results = selected(f, outputs)
        function = returning(primal, results.argnums, has_aux)
        through |= set(results.positions)
    modes: tuple[Mode, ...] = ("forward",) if is_symmetric else (mode,) if mode else ("forward", "reverse")
    own = position - len(wanted.leading)
    task = SparseTask(kind, own, pattern, modes, is_symmetric, check, has_aux, tuple(sorted(through)), layout, used)
    rebuild = (kind, f, argnums, argnames, pattern, mode, outputs, check, has_aux, used, layout, work)
    return SparseDerivative(wanted, function, task, rebuild)


def _check_choices(kind: str, primal: CPUDispatcher, pattern: Any, mode: Any, layout: Layout) -> None:
    if layout.format not in get_args(Format):
        raise SignatureError(
            f"format={layout.format!r} is not a format of irad.{kind}",
            '(a) format="csc" or (b) format="csr" or (c) format="coo"',
            "the result is a SciPy matrix, and its format decides the order of its entries",
            location_of(primal.py_func),
        )
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
            f"(a) {install('scipy')} or (b) irad.{kind.removeprefix('sparse_')}, which returns an array",
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
    format: Format = "csc",
    work: int | Sequence[int] = (),
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
        format: of the matrix: "csc", "csr" or "coo", which has rows, columns and entries by columns.
        work: the position, or positions, of arrays of floats that ``f`` works in. It need not be said; ``values_into``
            then has no memory to allocate for their derivatives.
        argnames: in place of ``argnums``, the name of the parameter.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        A callable that takes the arguments of ``f``. Its method ``prepare`` takes them, too, and returns a callable to
        be reused, with the attributes ``pattern``, ``mode``, ``colours`` (of the columns or rows) and ``products`` (how
        many). Its method ``values_into(out, *args)`` writes the entries to an array that is passed in, in the order of
        its attributes ``rows`` and ``columns``, and allocates nothing from the second call on.

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
        "sparse_jacobian",
        f,
        argnums,
        argnames,
        pattern,
        mode,
        outputs,
        check,
        bool(has_aux),
        options,
        Layout(format),
        work,
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
    format: Format = "csc",
    lower: bool = False,
    work: int | Sequence[int] = (),
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
        format: of the matrix, as in `irad.sparse_jacobian`.
        lower: leave out the entries above the diagonal.
        work: as in `irad.sparse_jacobian`.
        argnames: in place of ``argnums``, the name of the parameter.
        options: how the derivatives are created; see `irad.Options`.

    Returns:
        A callable that takes the arguments of ``f``. Its method ``prepare`` takes them, too, and returns a callable to
        be reused, with the attributes ``pattern``, ``colours`` (of the columns) and ``products`` (how many), and the
        method ``values_into`` of those of `irad.sparse_jacobian`.

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
    layout = Layout(format, is_lower=bool(lower))
    return sparse_derivative(
        "sparse_hessian", f, argnums, argnames, pattern, None, None, check, bool(has_aux), options, layout, work
    )


refuse_in_compiled_code(sparse_hessian, "(a) irad.hessian, which returns an array or (b) call it from Python")
