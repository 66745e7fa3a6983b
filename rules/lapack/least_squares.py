"""Least squares as Numba calls it: `np.linalg.lstsq`.

    numba_ez_gelsd(kind, m, n, nrhs, a, lda, b, ldb, s, rcond, rank)

On return the first n rows of b hold x = A⁺ b, s the singular values of A. If m > n = rank, the sum of squares of the
rows below is that of the residual r = b - A x; Numba uses nothing but that sum, and neither does the rule. `a`
is destroyed. The rank counts as constant: where it is not full, the derivative is that along matrices of the same rank.
"""

from __future__ import annotations

from typing import Final

from irad.ir.values import Value
from irad.rules.dense.adjoint import Adjoint, IsActive, MatrixShape, Room, Sizes, VectorShape
from irad.rules.dense.elements import Scalar, quotient_or_zero
from irad.rules.dense.kernel import NONE, TWO
from irad.rules.dense.matrix import Matrix
from irad.rules.dense.routine import Routine, numba_rule
from irad.rules.dense.tangent import Differential, Tangent
from irad.rules.lapack.singular import (
    add_singular_values,
    room_for_values,
    set_singular_value_tangents,
)
from irad.ruleset.interface import Rule

_GOLUB_PEREYRA: Final = (
    "Golub, Pereyra 1973, The differentiation of pseudo-inverses and nonlinear least squares problems"
)


def _room(sizes: Sizes, _: IsActive) -> Room:
    """The matrix, two right-hand sides, one, r, D; singular values, the rank, and room for their adjoint."""
    build, m, n, sides = sizes.build, sizes["m"], sizes["n"], sizes["nrhs"]
    longer = _longer(sizes)
    other = room_for_values(sizes.build, m, n).size(build)
    assert other is not None
    systems = [(m, n), (longer, build.mul(sides, TWO)), (longer, sides), (m, sides), (n, sides)]
    return Room(systems, [longer, TWO, other])


def _longer(sizes: Sizes) -> Value:
    return sizes.build.intrinsic("llvm.smax.i64", sizes["m"].type, [sizes["m"], sizes["n"]])


def _gelsd(r: Adjoint) -> None:
    """b̄ = β + λ r, Ā = -b̄ xᴴ + r δᴴ + γ Dᴴ; β = A⁺ᴴ x̄, γ = A⁺ᴴ x, δ = A⁺ β, D = x̄ - Aᴴ β, λ for the residual."""
    k, s, build = r.k, r.sizes, r.k.build
    m, n, sides, rank, longer = s["m"], s["n"], s["nrhs"], r.arrays["int rank"], _longer(s)
    copy, two, one, res, d = r.work.matrices
    values, found, other = r.work.vectors
    a, b_bar = r.matrix("old a"), r.bar("b")
    x, bar = r.matrix("new b").sized(n, sides), b_bar.sized(n, sides)
    beta, gamma = two.sized(n, sides), two.part(NONE, sides, n, sides)
    delta, last = one.sized(n, sides), (values.data, s["rcond"], found.data)

    with k.when(b_bar.given):
        beta.set(bar)
        gamma.set(x)
        turned = Matrix.dense(k, copy.data, n, m)
        turned.set(a.H)
        k.entry("numba_ez_gelsd", n, m, two.columns, copy.data, n, two.data, longer, *last)
        res.set(r.matrix("old b").sized(m, sides))
        res.add(-(a @ x))
        d.set(bar)
        d.add(-(a.H @ beta.sized(m, sides)))
        one.sized(m, sides).set(beta.sized(m, sides))
        copy.set(a)
        k.entry("numba_ez_gelsd", m, n, sides, copy.data, m, one.data, longer, *last)
        with k.loop(sides) as j:
            share = _residual_share(m, n, j, r.matrix("new b"), b_bar)
            with k.loop(m) as i:
                b_bar[i, j] = two[i, j] + share * res[i, j]
            with k.loop(longer, m) as i:
                b_bar[i, j] = k.nothing
    with r.active("a") as a_bar:
        a_bar.clear()
        with k.when(b_bar.given):
            a_bar.add(-(b_bar.sized(m, sides) @ x.H))
            with k.when(build.icmp("slt", rank, m)):  # else r is 0
                a_bar.add(res @ delta.H)
            with k.when(build.icmp("slt", rank, n)):  # else D is 0
                a_bar.add(gamma.sized(m, sides) @ d.H)
        with r.active_vector("s") as s_bar:
            add_singular_values(a, s_bar, a_bar, other.data)


def _residual_share(m: Value, n: Value, j: Value, x: Matrix, bar: Matrix) -> Scalar:
    """λ: the cotangent of the rows below the solution is λ times their content."""
    k = x.k
    along, square = k.variable(), k.real.variable()
    with k.loop(m, n) as i:
        content = x[i, j]
        along.accumulate(bar[i, j] * content.conj())
        square.accumulate(content.square())
    return quotient_or_zero(along.value.real, square.value)


def _tangent(r: Tangent) -> None:
    """ẋ = A⁺ (Ḃ - Ȧ x + ε - A h) + h; ε = A⁺ᴴ Ȧᴴ r, 0 if the rank is m; h = Ȧᴴ A⁺ᴴ x, needed if it is not n.

    The tangent of the rows below the solution is their content, times half the relative change of the sum of squares.
    """
    k, s, build = r.k, r.sizes, r.k.build
    m, n, sides, rank, longer = s["m"], s["n"], s["nrhs"], r.arrays["int rank"], _longer(s)
    copy, two, one, res, h = r.work.matrices
    values, found, other = r.work.vectors
    a, b_dot, x = r.matrix("old a"), r.tangent("b"), r.matrix("b").sized(n, sides)
    right, last = one.sized(m, sides), (values.data, s["rcond"], found.data)
    short, free = build.icmp("slt", rank, m), build.icmp("slt", rank, n)

    with k.when(b_dot.given):
        res.set(r.matrix("old b").sized(m, sides))
        res.add(-(a @ x))
        right.set(b_dot.sized(m, sides))
        with r.moving("a") as a_dot:
            right.add(-(a_dot @ x))
        _set_residual_tangents(n, r.matrix("b"), b_dot, res, right)
        with r.moving("a") as a_dot, k.when(build.or_(short, free)):
            two.sized(n, sides).set(a_dot.H @ res)
            two.part(NONE, sides, n, sides).set(x)
            Matrix.dense(k, copy.data, n, m).set(a.H)
            k.entry("numba_ez_gelsd", n, m, two.columns, copy.data, n, two.data, longer, *last)
            with k.when(short):
                right.fill(lambda i, j: right[i, j] + two[i, j])
            with k.when(free):
                h.set(a_dot.H @ two.part(NONE, sides, m, sides))
                right.add(-(a @ h))
        copy.set(a)
        k.entry("numba_ez_gelsd", m, n, sides, copy.data, m, one.data, longer, *last)
        solution = b_dot.sized(n, sides)
        solution.set(one.sized(n, sides))
        with r.moving("a"), k.when(free):
            solution.fill(lambda i, j: solution[i, j] + h[i, j])
    r.clear("s")
    with r.active_vector("s") as s_dot, r.moving("a") as a_dot:
        set_singular_value_tangents(a, a_dot, s_dot, other.data)
    r.clear("a")


def _set_residual_tangents(n: Value, content: Matrix, b_dot: Matrix, res: Matrix, change: Matrix) -> None:
    k = res.k
    with k.loop(res.columns) as j:
        along, square = k.variable(), k.real.variable()
        with k.loop(res.rows) as i:
            along.accumulate(res[i, j].conj() * change[i, j])
        with k.loop(res.rows, n) as i:
            square.accumulate(content[i, j].square())
        share = quotient_or_zero(along.value.real, square.value)
        with k.loop(res.rows, n) as i:
            b_dot[i, j] = share * content[i, j]


_GELSD: Final = Routine(
    "lstsq",
    "kind m n nrhs a lda b ldb s rcond rank",
    {
        "a": MatrixShape("m", "n", "lda"),
        "b": MatrixShape(_longer, "nrhs", "ldb"),
        "s": VectorShape(lambda sizes: sizes.smaller("m", "n"), is_real=True),
    },
    {"old a": "a b s", "old b": "a b s", "new b": "a b s", "int rank": "a b s"},
    _gelsd,
    "a b",
    _room,
    tangent=Differential(
        after=_tangent,
        needs={"old a": "a b s", "old b": "a b s", "int rank": "a b s"},
        also_written="s",
        work=_room,
    ),
)

RULES: Final[tuple[Rule, ...]] = (
    numba_rule(
        "numba_ez_gelsd",
        "np.linalg.lstsq",
        _GELSD,
        reads=(4, 6),
        writes=(4, 6, 8, 10),
        source=_GOLUB_PEREYRA,
        policy="the rank counts as constant: where it is deficient, the derivative along matrices of the same rank",
    ),
)
