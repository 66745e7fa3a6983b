"""Least squares as Numba calls it: `np.linalg.lstsq`.

    numba_ez_gelsd(kind, m, n, nrhs, a, lda, b, ldb, s, rcond, rank)

On return the first n rows of b hold x = A⁺ b, s the singular values of A. If m > n = rank, the sum of squares of the
rows below is that of the residual r = b - A x; Numba uses nothing but that sum, and neither does the rule. `a`
is destroyed. The rank counts as constant: where it is not full, the derivative is that along matrices of the same rank,
and NaN where `rcond` leaves singular values out that are not 0, as the solution then depends on their vectors, too.
"""

from __future__ import annotations

import math
from typing import Final

from irad.ir.values import Value
from irad.rules.dense.adjoint import Adjoint, IsActive, MatrixShape, Operands, Room, Sizes, VectorShape
from irad.rules.dense.elements import Scalar, choose, quotient_or_zero
from irad.rules.dense.kernel import NONE, ONE, TWO, Kernel
from irad.rules.dense.matrix import Matrix, Vector
from irad.rules.dense.routine import Routine, numba_rule
from irad.rules.dense.tangent import Differential, Tangent
from irad.rules.lapack.reflectors import apply_reflectors, push_factorisation
from irad.rules.lapack.singular import (
    add_singular_values,
    room_for_values,
    set_singular_value_tangents,
)
from irad.ruleset.interface import Rule

_GOLUB_PEREYRA: Final = (
    "Golub, Pereyra 1973, The differentiation of pseudo-inverses and nonlinear least squares problems"
)

_NOISE: Final = 1024.0  # how many times the rounding error of the largest singular value one may have that counts as 0


def _room(sizes: Sizes, _: IsActive) -> Room:
    """The matrix, two right-hand sides, one, r, D; singular values, the rank, room for their adjoint, a column."""
    build, m, n, sides = sizes.build, sizes["m"], sizes["n"], sizes["nrhs"]
    longer = _longer(sizes)
    other = room_for_values(sizes.build, m, n).size(build)
    assert other is not None
    systems = [(m, n), (longer, build.mul(sides, TWO)), (longer, sides), (m, sides), (n, sides)]
    return Room(systems, [longer, TWO, other, m])


def _tangent_room(sizes: Sizes, active: IsActive) -> Room:
    """Memory of `_room`, and the matrix with one more column and its tangent."""
    room, extended = _room(sizes, active), (sizes["m"], sizes.build.add(sizes["n"], ONE))
    return Room([*room.matrices, extended, extended], room.vectors)


def _shorter(sizes: Sizes) -> Value:
    return sizes.smaller("m", "n")


def _longer(sizes: Sizes) -> Value:
    return sizes.build.intrinsic("llvm.smax.i64", sizes["m"].type, [sizes["m"], sizes["n"]])


def _gelsd(r: Adjoint) -> None:
    """b̄ = β + λ r, Ā = -b̄ xᴴ + r δᴴ + γ Dᴴ; β = A⁺ᴴ x̄, γ = A⁺ᴴ x, δ = A⁺ β, D = x̄ - Aᴴ β, λ for the residual."""
    k, s, build = r.k, r.sizes, r.k.build
    m, n, sides, rank, longer = s["m"], s["n"], s["nrhs"], r.arrays["int rank"], _longer(s)
    copy, two, one, res, d = r.work.matrices
    values, found, other, share = r.work.vectors
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
            content, bar_j = r.matrix("new b").column(j), b_bar.column(j)
            _set_residual_share(a, copy, values, rank, content, bar_j, res.column(j), share)
            with k.loop(m) as i:
                b_bar[i, j] = two[i, j] + share[i]
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
            with k.when(build.and_(_leaves_out(r, values, rank), bar.counts())):
                a_bar.fill(lambda i, j: k.number(math.nan))
        with r.active_vector("s") as s_bar:
            add_singular_values(a, s_bar, a_bar, other.data)


def _leaves_out(r: Operands, values: Vector, rank: Value) -> Value:
    """Test that singular values are left out that are not 0: towards their vectors those of the others turn."""
    k, build, least = r.k, r.k.build, _shorter(r.sizes)
    s, is_short = Vector(k.real, values.data, least), build.icmp("slt", rank, least)
    first = s[build.select(is_short, rank, NONE)]
    return build.and_(is_short, first > (_NOISE * k.element.epsilon) * s[NONE])


def _set_residual_share(
    a: Matrix, copy: Matrix, scales: Vector, rank: Value, content: Vector, bar: Vector, res: Vector, share: Vector
) -> None:
    """λ r, where the cotangent of the rows below the solution is λ times their content.

    Where r is 0, their content still has a tangent: that of Qᴴ b with A = Q R.
    """
    k, m, n = copy.k, copy.rows, copy.columns
    along, square = k.variable(), k.real.variable()
    with k.loop(m, n) as i:
        along.accumulate(bar[i] * content[i].conj())
        square.accumulate(content[i].square())
    factor = quotient_or_zero(along.value.real, square.value)
    share.fill(lambda i: factor * res[i])
    if k.build.module.opaque_guards:
        with k.when(_fits(k, m, n, rank, square.value)):
            copy.set(a)
            k.entry("numba_ez_geqrf", m, n, copy.data, m, scales.data)
            share.fill(lambda i: choose(k.build.icmp("slt", i, n), k.nothing, bar[i]))
            apply_reflectors(k, copy, Vector(k, scales.data, n), share)


def _fits(k: Kernel, m: Value, n: Value, rank: Value, square: Scalar) -> Value:
    """Test that the residual in the rows below the solution is exactly 0."""
    tells = k.build.and_(k.same(rank, n), k.build.icmp("slt", n, m))
    return k.build.and_(tells, square.is_zero())


def _tangent(r: Tangent) -> None:
    """ẋ = A⁺ (Ḃ - Ȧ x + ε - A h) + h; ε = A⁺ᴴ Ȧᴴ r, 0 if the rank is m; h = Ȧᴴ A⁺ᴴ x, needed if it is not n.

    The tangent of the rows below the solution is their content, times half the relative change of the sum of squares.
    """
    k, s, build = r.k, r.sizes, r.k.build
    m, n, sides, rank, longer = s["m"], s["n"], s["nrhs"], r.arrays["int rank"], _longer(s)
    copy, two, one, res, h, *_ = r.work.matrices
    values, found, other, _ = r.work.vectors
    a, b_dot, x = r.matrix("old a"), r.tangent("b"), r.matrix("b").sized(n, sides)
    right, last = one.sized(m, sides), (values.data, s["rcond"], found.data)
    short, free = build.icmp("slt", rank, m), build.icmp("slt", rank, n)

    with k.when(b_dot.given):
        res.set(r.matrix("old b").sized(m, sides))
        res.add(-(a @ x))
        right.set(b_dot.sized(m, sides))
        with r.moving("a") as a_dot:
            right.add(-(a_dot @ x))
        _set_residual_tangents(r, res, right)
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
        with r.moving("a"), k.when(_leaves_out(r, values, rank)):
            solution.fill(lambda i, j: k.number(math.nan))
    r.clear("s")
    with r.active_vector("s") as s_dot, r.moving("a") as a_dot:
        set_singular_value_tangents(a, a_dot, s_dot, other.data)
    r.clear("a")


def _set_residual_tangents(r: Tangent, res: Matrix, change: Matrix) -> None:
    k, m, n, rank = r.k, r.sizes["m"], r.sizes["n"], r.arrays["int rank"]
    copy, (a, a_dot), scales = r.work.matrices[0], r.work.matrices[-2:], r.work.vectors[0]
    content, b_dot = r.matrix("b"), r.tangent("b")
    with k.loop(res.columns) as j:
        along, square = k.variable(), k.real.variable()
        with k.loop(res.rows) as i:
            along.accumulate(res[i, j].conj() * change[i, j])
        with k.loop(res.rows, n) as i:
            square.accumulate(content[i, j].square())
        share, fits = quotient_or_zero(along.value.real, square.value), _fits(k, m, n, rank, square.value)
        with k.when(fits):  # the tangent of Qᴴ b with A = Q R
            a.sized(m, n).set(r.matrix("old a"))
            copy.set(r.matrix("old a"))
            k.entry("numba_ez_geqrf", m, n, copy.data, m, scales.data)
            a_dot.clear()
            with r.active("a") as tangent:
                a_dot.sized(m, n).set(tangent)
            with k.loop(m) as i:
                a[i, n], a_dot[i, n] = r.matrix("old b")[i, j], b_dot[i, j]
            push_factorisation(k, a, copy, Vector(k, scales.data, n), a_dot)
        with k.loop(res.rows, n) as i:
            b_dot[i, j] = share * content[i, j]
        with k.when(fits), k.loop(res.rows, n) as i:
            b_dot[i, j] = a_dot[i, n]


_GELSD: Final = Routine(
    "lstsq",
    "kind m n nrhs a lda b ldb s rcond rank",
    {
        "a": MatrixShape("m", "n", "lda"),
        "b": MatrixShape(_longer, "nrhs", "ldb"),
        "s": VectorShape(_shorter, is_real=True),
    },
    {"old a": "a b s", "old b": "a b s", "new b": "a b s", "int rank": "a b s"},
    _gelsd,
    "a b",
    _room,
    tangent=Differential(
        after=_tangent,
        needs={"old a": "a b s", "old b": "a b s", "int rank": "a b s"},
        also_written="s",
        work=_tangent_room,
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
        policy="the rank is treated as constant: if it is deficient, the derivative along matrices of the same rank; "
        "NaN if nonzero singular values are dropped",
    ),
)
