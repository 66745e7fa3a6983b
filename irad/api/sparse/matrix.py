"""Derivatives that are sparse matrices: how the pattern is found, and which products are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

import numpy as np

from irad.api.functions import options_or_default
from irad.api.grad import grad
from irad.api.jacobians.call import returning
from irad.api.selection import Selection, selected
from irad.api.sparse.compression import Compression, by_columns, by_rows, by_symmetry, fewest_first
from irad.api.sparse.patterns import by_dependence, by_probing, found_pattern
from irad.api.sparse.prepared import PreparedMatrix, Runs
from irad.api.sparse.products import Product, products_of
from irad.data.structure import is_structure
from irad.errors import SignatureError, UnsupportedError
from irad.frontend.numba.cpu import location_of
from irad.message import with_article
from irad.options import Options

Mode: TypeAlias = Literal["forward", "reverse"]

_T = TypeVar("_T")
_PATTERNS: Final = (None, "dependence", "probe")


@dataclass(frozen=True, eq=False)
class SparseTask:
    """What is asked for.

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
        return sparse_derivative, self._rebuild

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
    """What a public function makes: its name is ``kind``, a Hessian is the Jacobian of the gradient.

    Raises:
        SignatureError: what is asked for makes no sense, or SciPy is not installed.
    """
    wanted, used, is_symmetric = selected(f, argnums, argnames), options_or_default(options), kind == "sparse_hessian"
    primal, (position,) = wanted.primal, wanted.positions
    _check_scipy(kind, primal)
    _check_choices(kind, primal, pattern, mode)
    function = primal
    if is_symmetric:
        function = grad(primal, position, has_aux, options=used)
    elif outputs is not None:
        function = returning(primal, selected(f, outputs).argnums, has_aux)
    modes: tuple[Mode, ...] = ("forward",) if is_symmetric else (mode,) if mode else ("forward", "reverse")
    task = SparseTask(kind, position - len(wanted.leading), pattern, modes, is_symmetric, check, has_aux, used)
    rebuild = (kind, f, argnums, argnames, pattern, mode, outputs, check, has_aux, used)
    return SparseDerivative(wanted, function, task, rebuild)


def _check_choices(kind: str, primal: Any, pattern: Any, mode: Any) -> None:
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


def _check_scipy(kind: str, primal: Any) -> None:
    try:
        import scipy.sparse  # noqa: F401  an optional dependency
    except ImportError:
        raise SignatureError(
            f"irad.{kind} needs SciPy, which is not installed",
            f"(a) pip install scipy or (b) irad.{kind.removeprefix('sparse_')}, which returns an array",
            "the result is a sparse matrix of SciPy's",
            location_of(primal.py_func),
        ) from None
