"""LU and Cholesky factorisations as Numba calls them: `np.linalg.solve`, `inv`, `det`, `slogdet`, `cholesky`.

Numba's entry points take a letter for the type; matrices are column-major and are overwritten by their factors:

    numba_xgesv     (kind, n, nrhs, a, lda, ipiv, b, ldb)      a = P L U, then b = a⁻¹ b
    numba_xxgetrf   (kind, m, n, a, lda, ipiv)                 a = P L U
    numba_ez_xxgetri(kind, n, a, lda, ipiv)                    the inverse of a, from its factors
    numba_xxpotrf   (kind, uplo, n, a, lda)                    a = Uᴴ U, only the upper triangle is read and written

The factors that the primal computes are kept for the adjoint, which never factorises again. On the way in the shadow of
a factorised matrix holds the cotangent of the factors, on the way out that of the matrix. L and U share memory, and so
do their cotangents; the unit diagonal of L has none. Formulas are those of complex matrices, ᴴ is ᵀ for real ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from irad.errors import UnsupportedError
from irad.ir.instructions import CallSite, Load, Store, Terminator
from irad.ir.module import Block
from irad.ir.values import TrackedValue, Value, const_int
from irad.rules.dense.adjoint import Adjoint, IsActive, MatrixShape, Room, Sizes
from irad.rules.dense.kernel import I64, NONE
from irad.rules.dense.matrix import Matrix
from irad.rules.dense.routine import Routine, Work, numba_rule
from irad.rules.dense.saved import letter, same
from irad.rules.dense.tangent import Differential, Tangent
from irad.rules.dense.triangular import (
    exchange_rows,
    multiply_triangular,
    multiply_triangular_right,
    restore_rows,
    solve_triangular,
    solve_triangular_right,
)
from irad.rules.lapack.shared import sharing
from irad.ruleset.interface import Rule

GILES: Final = (
    "Giles 2008, Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
)
_SINGULAR: Final = "singular matrix: raises the primal's exception; slogdet returns constants there, with derivative 0"
_INDEFINITE: Final = "not positive definite: the primal raises"
_MURRAY: Final = "Murray 2016, Differentiation of the Cholesky decomposition, arXiv:1602.07527"
_FACTORISE: Final = "numba_xxgetrf"
_INVERT: Final = "numba_ez_xxgetri"
_LU: Final = "de Hoog, Anderssen, Lukas 2011, Differentiation of matrix functionals using triangular factorization"


_BLOCK: Final = 32


def squares(count: int) -> Work:
    """Working memory for ``count`` matrices of order n, to find the cotangent of the matrix."""
    return lambda sizes, active: Room([(sizes["n"], sizes["n"])] * count if active("a") else [])


def block(sizes: Sizes, active: IsActive) -> Room:
    """Working memory for a block."""
    width = const_int(I64, _BLOCK)
    return Room([(width, width)] if active("a") else [])


# ------------------------------------------------------------------------------------------------ LU


def factorise(r: Adjoint) -> None:
    """Ā = P L⁻ᴴ [strictly lower part of Lᴴ L̄ + upper part of Ū Uᴴ] U⁻ᴴ.

    Nothing happens where the cotangent is 0 throughout: a singular matrix has factors too. That of a determinant is a
    diagonal, for which the first system is solved on a triangle: as much work as an inversion.
    """
    k, lu, bar, (lower,) = r.k, r.matrix("new a"), r.bar("a"), r.work.matrices
    with k.when(bar.counts()):
        beside = bar.beside_diagonal.counts()
        with k.when(beside):
            lower.set(bar.strictly_lower)
            multiply_triangular("unit_lower_adjoint", lu, lower)
            bar.set(bar.upper)
            multiply_triangular_right("upper_adjoint", lu, bar)
            set_strictly_lower(bar, lower)
            solve_triangular_right("upper_adjoint", lu, bar)
        with k.unless(beside):
            with k.loop(bar.columns) as i:
                bar[i, i] = bar[i, i] * lu[i, i].conj()
            _divide_diagonal(lu, bar)
        solve_triangular("unit_lower_adjoint", lu, bar)
        restore_rows(bar, r.arrays["rows ipiv"])


def _divide_diagonal(u: Matrix, d: Matrix) -> None:
    """`D ← D U⁻ᴴ` for a diagonal D. The result is a lower triangle, of which a block of rows needs a part of U."""
    with _blocks(u) as (start, width):
        end = u.k.build.add(start, width)
        solve_triangular_right("upper_adjoint", u.sized(end, end), d.part(start, NONE, width, end))


@contextmanager
def _blocks(a: Matrix, *, down: bool = False) -> Iterator[tuple[Value, Value]]:
    """Loops over the diagonal blocks of a square matrix; gives start and width."""
    k, build = a.k, a.k.build
    count = build.sdiv(build.add(a.rows, const_int(I64, _BLOCK - 1)), const_int(I64, _BLOCK))
    with k.loop_down(count) if down else k.loop(count) as block:
        start = build.mul(block, const_int(I64, _BLOCK))
        yield start, k.smaller(const_int(I64, _BLOCK), build.sub(a.rows, start))


def set_upper(target: Matrix, source: Matrix) -> None:
    """Copies the upper triangle with the diagonal."""
    k = target.k
    with k.loop(target.columns) as j, k.loop(k.after(j)) as i:
        target[i, j] = source[i, j]


def set_strictly_lower(target: Matrix, source: Matrix) -> None:
    """Copies the lower triangle without the diagonal."""
    k = target.k
    with k.loop(target.columns) as j, k.loop(target.rows, k.after(j)) as i:
        target[i, j] = source[i, j]


def factorised(r: Tangent) -> None:
    """L̇ = L (strictly lower part of M), U̇ = (upper part of M) U; M = L⁻¹ Pᵀ Ȧ U⁻¹."""
    lu = r.matrix("a")
    with r.moving("a") as tangent:
        one, two, product = r.work.matrices
        exchange_rows(tangent, r.arrays["rows ipiv"])
        solve_triangular("unit_lower", lu, tangent)
        solve_triangular_right("upper", lu, tangent)
        one.set(lu.unit_lower)
        two.set(tangent.strictly_lower)
        product.set(one @ two)
        one.set(lu.upper)
        two.set(tangent.upper)
        set_strictly_lower(tangent, product)
        product.set(two @ one)
        set_upper(tangent, product)


def _factorisation(call: CallSite) -> Routine | None:
    _, m, n, *_ = call.arguments
    if _is_at_once(call):
        return None
    if not same(m, n):
        raise UnsupportedError(
            "there is no derivative rule for the LU factorisation of a non-square matrix",
            "factorise the square part",
            "the rule uses the inverse of the matrix, which exists only if it is square",
        )
    return _GETRF


# ------------------------------------------------------------------------------------------------ systems


def solve(r: Adjoint) -> None:
    """B̄ = A⁻ᴴ X̄ = P L⁻ᴴ U⁻ᴴ X̄, Ā -= B̄ Xᴴ; what leaves the factors for elsewhere comes first.

    Without right-hand sides OpenBLAS does not factorise, and nothing is to be done.
    """
    lu, bar = r.matrix("new a"), r.bar("b")
    with r.k.when(bar.counts()):
        solve_triangular("upper_adjoint", lu, bar)
        solve_triangular("unit_lower_adjoint", lu, bar)
        restore_rows(bar, r.arrays["rows ipiv"])
    with r.active("a") as a_bar, r.k.when(_has_sides(bar)):
        factorise(r)
        with r.k.when(bar.counts()):
            a_bar.add(-(bar @ r.matrix("new b").H))


def _has_sides(b: Matrix) -> Value:
    return b.k.build.icmp("sgt", b.columns, NONE)


def solved(r: Tangent) -> None:
    """Ẋ = A⁻¹ (Ḃ - Ȧ X); then the tangent of the factors. Without right-hand sides OpenBLAS does not factorise."""
    with r.k.when(_has_sides(r.tangent("b"))):
        _solve_tangents(r)
        factorised(r)


def _solved_alone(r: Tangent) -> None:
    """Tangents of a solution whose factors nothing reads: these get NaN for tangents."""
    with r.k.when(_has_sides(r.tangent("b"))):
        _solve_tangents(r)
        with r.moving("a") as tangent:
            tangent.fill(lambda i, j: r.k.number(math.nan))


def _solve_tangents(r: Tangent) -> None:
    k, lu, b_dot = r.k, r.matrix("a"), r.tangent("b")
    with k.when(b_dot.given):
        with r.moving("a") as tangent:
            b_dot.add(-(tangent @ r.matrix("b")))
        with k.when(b_dot.counts()):
            exchange_rows(b_dot, r.arrays["rows ipiv"])
            solve_triangular("unit_lower", lu, b_dot)
            solve_triangular("upper", lu, b_dot)


# ------------------------------------------------------------------------------------------------ inverses


def _invert(r: Adjoint) -> None:
    """Ā = -Xᴴ X̄ Xᴴ for X = A⁻¹."""
    x, bar, product = r.matrix("new a"), r.bar("a"), r.work.matrices[0]
    with r.k.when(bar.counts()):
        product.set(x.H @ bar)
        bar.set(-(product @ x.H))


def _invert_factors(r: Adjoint) -> None:
    """That, as the factors of A = P L U: with G = Pᵀ Ā, L̄ is the strictly lower part of G Uᴴ, Ū the upper of Lᴴ G."""
    _invert(r)
    lu, bar, (g, factor, product) = r.matrix("old a"), r.bar("a"), r.work.matrices
    exchange_rows(bar, r.arrays["rows ipiv"])
    g.set(bar)
    factor.set(lu.upper)
    bar.set(g @ factor.H)
    factor.set(lu.unit_lower)
    product.set(factor.H @ g)
    set_upper(bar, product)


def _inverted(r: Tangent) -> None:
    """Ẋ = -X Ȧ X for X = A⁻¹."""
    x, product = r.matrix("a"), r.work.matrices[0]
    with r.moving("a") as tangent:
        product.set(x @ tangent)
        tangent.set(-(product @ x))


def _multiply_factors(r: Tangent) -> None:
    """Makes of the tangents of the factors that of Pᵀ A = L U: L̇ U + L U̇."""
    lu, (factor, tangents, product) = r.matrix("a"), r.work.matrices
    with r.moving("a") as tangent:
        factor.set(lu.upper)
        tangents.set(tangent.strictly_lower)
        product.set(tangents @ factor)
        factor.set(lu.unit_lower)
        tangents.set(tangent.upper)
        product.add(factor @ tangents)
        tangent.set(product)


def _inverted_factors(r: Tangent) -> None:
    with r.active("a") as tangent:
        restore_rows(tangent, r.arrays["rows ipiv"])
        _inverted(r)


def _is_at_once(call: CallSite) -> bool:
    """True if a factorisation and the inversion of its factors are one step, as in `np.linalg.inv`.

    Then nothing lies between them but the check of the status, nothing else sees the factors, and the shadow can hold
    the cotangent of the matrix itself in between: that saves the way through the cotangents of L and U and back.
    """
    if call.callee.name == _INVERT:
        users = call.arguments[4].users if isinstance(call.arguments[4], TrackedValue) else ()
        factorisations = [u for u in users if isinstance(u, CallSite) and u.callee.name == _FACTORISE]
        return any(_inversion_behind(u) is call for u in factorisations)
    return _inversion_behind(call) is not None


def _inversion_behind(factorisation: CallSite) -> CallSite | None:
    """The inversion that comes next in memory, of the same factors; None where something else comes first."""
    block = factorisation.block
    assert block is not None
    rest = block.instructions[block.instructions.index(factorisation) + 1 :]
    ways = block.successors if isinstance(block.instructions[-1], Terminator) else []
    for path in [rest, *(rest + way.instructions for way in ways if _leads_to(block, way))]:
        touching = next((i for i in path if isinstance(i, Load | Store | CallSite)), None)
        if isinstance(touching, CallSite) and touching.callee.name == _INVERT:
            operands = zip(touching.arguments[1:], factorisation.arguments[2:], strict=True)
            if all(same(x, y) for x, y in operands):
                return touching
    return None


def _leads_to(block: Block, follower: Block) -> bool:
    """True if the follower is reached from this block only."""
    assert block.function is not None
    return [b for b in block.function.blocks if follower in b.successors] == [block]


# ------------------------------------------------------------------------------------------------ Cholesky


def _cholesky(r: Adjoint) -> None:
    cholesky(r.matrix("new a"), r.bar("a"), *r.work.matrices)


def cholesky(u: Matrix, bar: Matrix, square: Matrix) -> None:
    """Cotangent of A = Uᴴ U from that of U, in its place, block by block from the last one: twice the work of U.

    A block U_kk with U_ik above it and U_kr to its right comes from Uᴴ_kk U_kk = A_kk - Uᴴ_ik U_ik and
    Uᴴ_kk U_kr = A_kr - Uᴴ_ik U_ir.

    The lower triangle of the shadow stays as it is: LAPACK does not touch that of the matrix, and of the diagonal it
    reads the real part.

    Args:
        u, bar: the factor, and its cotangent.
        square: memory for a block.
    """
    k, build = u.k, u.k.build
    with k.when(bar.upper.counts()), _blocks(u, down=True) as (start, width):
        end = build.add(start, width)
        above, rest = u.part(NONE, start, start, width), build.sub(u.columns, end)
        diagonal, diagonal_bar = (a.part(start, start, width, width) for a in (u, bar))
        right, right_bar = (a.part(start, end, width, rest) for a in (u, bar))
        above_bar, product = bar.part(NONE, start, start, width), square.sized(width, width)
        with k.when(build.icmp("sgt", rest, NONE)):
            solve_triangular("upper", diagonal, right_bar)
            product.set(right @ right_bar.H)
            _subtract_upper(diagonal_bar, product)
            with k.when(build.icmp("sgt", start, NONE)):
                bar.part(NONE, end, start, rest).add(-(above @ right_bar))
                above_bar.add(-(u.part(NONE, end, start, rest) @ right_bar.H))
        _cholesky_block(diagonal, diagonal_bar)
        with k.when(build.icmp("sgt", start, NONE)):
            _fill_both(product, diagonal_bar)
            above_bar.add(-(above @ product))


def _subtract_upper(target: Matrix, source: Matrix) -> None:
    k = target.k
    with k.loop(target.columns) as j, k.loop(k.after(j)) as i:
        target[i, j] = target[i, j] - source[i, j]


def _fill_both(target: Matrix, upper: Matrix) -> None:
    """`target = U + Uᴴ`."""
    k = target.k
    with k.loop(target.columns) as j:
        with k.loop(j) as i:
            target[i, j], target[j, i] = upper[i, j], upper[i, j].conj()
        target[j, j] = 2.0 * upper[j, j].real


def _cholesky_block(u: Matrix, bar: Matrix) -> None:
    """That of a small matrix, column by column from the last one."""
    k = u.k
    with k.loop_down(u.columns) as j:
        x, x_bar = u.column(j), bar.column(j)
        half = 0.5 * x_bar[j].real / x[j].real
        x_bar[j] = half
        with k.loop(j) as row:
            x_bar[row] = x_bar[row] - (2.0 * half) * x[row]
        with k.loop_down(j) as i:
            y, y_bar = u.column(i), bar.column(i)
            amount = x_bar[i] / y[i].real
            x_bar[i] = amount
            y_bar[i] = y_bar[i] - x[i] * amount.conj()
            with k.loop(i) as row:
                x_bar[row] = x_bar[row] - y[row] * amount
                y_bar[row] = y_bar[row] - x[row] * amount.conj()


def _cholesky_tangent(r: Tangent) -> None:
    with r.moving("a") as tangent:
        cholesky_tangent(r.matrix("a"), tangent, *r.work.matrices)


def cholesky_tangent(u: Matrix, tangent: Matrix, s: Matrix, factor: Matrix, product: Matrix) -> None:
    """U̇ = Φ(U⁻ᴴ Ȧ U⁻¹) U on the upper triangle, Φ: upper part, diagonal halved."""
    k = u.k
    with k.loop(s.columns) as j:
        with k.loop(j) as i:
            s[i, j], s[j, i] = tangent[i, j], tangent[i, j].conj()
        s[j, j] = tangent[j, j].real
    solve_triangular("upper_adjoint", u, s)
    solve_triangular_right("upper", u, s)
    s.set(s.upper)
    with k.loop(s.columns) as j:
        s[j, j] = 0.5 * s[j, j].real
    factor.set(u.upper)
    product.set(s @ factor)
    set_upper(tangent, product)


def _upper_cholesky(call: CallSite) -> Routine:
    letter(call.arguments[1], "U", "np.linalg.cholesky")
    return _POTRF


# ------------------------------------------------------------------------------------------------ rules

_A: Final = MatrixShape("n", "n", "lda")
_SYSTEM: Final = {"a": _A, "b": MatrixShape("n", "nrhs", "ldb")}
_ROWS: Final = {"rows ipiv": "a"}
FACTORS_TANGENT: Final = Differential(after=factorised, needs=_ROWS, work=squares(3))
SOLUTION_TANGENT: Final = Differential(after=solved, needs={"rows ipiv": "a b"}, also_written="a", work=squares(3))
_GETRF: Final = Routine(
    "getrf",
    "kind _m n a lda ipiv",
    {"a": _A},
    {"new a": "a", "rows ipiv": "a"},
    factorise,
    "a",
    squares(1),
    tangent=FACTORS_TANGENT,
)
_GESV: Final = Routine(
    "gesv",
    "kind n nrhs a lda ipiv b ldb",
    _SYSTEM,
    {"new a": "a b", "rows ipiv": "a b", "new b": "a"},
    solve,
    "b",
    squares(1),
    tangent=replace(SOLUTION_TANGENT, alone=_solved_alone),
)
_INVERSION: Final = "kind n a lda ipiv"
_AT_ONCE: Final = Routine(
    "invert",
    _INVERSION,
    {"a": _A},
    {"new a": "a"},
    _invert,
    "a",
    squares(1),
    tangent=Differential(after=_inverted, work=squares(1)),
)
_GETRI: Final = Routine(
    "invert_factors",
    _INVERSION,
    {"a": _A},
    {"new a": "a", "old a": "a", "rows ipiv": "a"},
    _invert_factors,
    "a",
    squares(3),
    tangent=Differential(_multiply_factors, _inverted_factors, _ROWS, work=squares(3)),
)
_POTRF: Final = Routine(
    "potrf",
    "kind uplo n a lda",
    {"a": _A},
    {"new a": "a"},
    _cholesky,
    "a",
    block,
    tangent=Differential(after=_cholesky_tangent, work=squares(3)),
)

RULES: Final[tuple[Rule, ...]] = (
    sharing(
        numba_rule(
            "numba_xgesv",
            "np.linalg.solve",
            _GESV,
            reads=(3, 6),
            writes=(3, 5, 6),
            source=GILES,
            policy=_SINGULAR,
            factors=((3,), (6,)),  # the solution is in place of the right-hand sides: active wherever the matrix is
            own=(3,),
        )
    ),
    sharing(
        numba_rule(
            _FACTORISE,
            "an LU factorisation (np.linalg.inv, det, slogdet)",
            _factorisation,
            reads=(3,),
            writes=(3, 5),
            source=_LU,
            policy=_SINGULAR,
        )
    ),
    numba_rule(
        _INVERT,
        "np.linalg.inv",
        lambda call: _AT_ONCE if _is_at_once(call) else _GETRI,
        reads=(2, 4),
        writes=(2,),
        source=GILES,
        policy=_SINGULAR,
    ),
    numba_rule(
        "numba_xxpotrf",
        "np.linalg.cholesky",
        _upper_cholesky,
        reads=(3,),
        writes=(3,),
        source=_MURRAY,
        policy=_INDEFINITE,
    ),
)
