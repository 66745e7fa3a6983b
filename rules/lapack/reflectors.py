"""QR factorisation as Numba calls it, `np.linalg.qr`, in two steps.

    numba_ez_geqrf(kind, m, n, a, lda, tau)      a = Q R: R in the upper triangle; below it and in tau the reflectors
    numba_ez_xxgqr(kind, m, n, k, a, lda, tau)   the columns of Q, from the reflectors below the diagonal of a

A reflector is H = I - τ v vᴴ with v = (1, what is stored below the diagonal); Q = H₁ H₂ … and R = … H₂ᴴ H₁ᴴ A, with
real numbers on the diagonal. Both adjoints take the reflectors off one after the other, so that they see every
intermediate matrix and save none.

A column that is zero below the diagonal and real on it already has τ = 0 and v = 0: LAPACK leaves it and its sign
alone. The derivatives there are those of the factorisation that goes on with this sign. A reflector with τ near 0 has
the other sign; the identity is the reflector with τ = 2 and v = 0 and, after it, a change of the sign of row i of R. So
where τ = 0 the derivatives are those of τ + 2, of the same v, and of a diagonal and a row of R with the sign changed;
all columns of Q but i are 0 where the sign changes, and of that column the sign does not count. This holds in all
orders. The last row of a real matrix has no reflector: 1 is its only orthogonal factor with this sign.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from irad.errors import UnsupportedError
from irad.ir.instructions import CallSite
from irad.ir.values import Value
from irad.rules.dense.adjoint import Adjoint, MatrixShape, Room, Sizes, VectorShape
from irad.rules.dense.elements import Scalar, choose, quotient_or_zero
from irad.rules.dense.kernel import NONE, ONE, Cell, Kernel
from irad.rules.dense.matrix import Matrix, Vector
from irad.rules.dense.routine import Routine, numba_rule
from irad.rules.dense.saved import same
from irad.rules.dense.tangent import Differential, Tangent
from irad.ruleset.interface import Rule

_NUMPY: Final = "np.linalg.qr"


# ------------------------------------------------------------------------------------------------ Q from reflectors


def _assemble(r: Adjoint) -> None:
    k, v, scales, bar, q = r.k, r.matrix("old a"), r.vector("tau"), r.bar("a"), r.work.matrices[0]
    n = bar.columns
    q.set(r.matrix("new a"))
    with k.loop(n) as i:
        below, scale, v_i, total = k.after(i), _reflector(scales[i]), v.column(i, i), k.variable()
        # The cotangent of Q's column i is of no further use, so that of v takes its place.
        _reflect(v_i, scale, q.column(i, i), bar.column(i, i), total)
        with k.loop(n, below) as j:
            _reflect(v_i, scale, q.column(j, i), bar.column(j, i), total, bar.column(i, i))
        with r.active_vector("tau") as tau_bar:
            tau_bar[i] = tau_bar[i] + total.value
        with k.loop(below) as row:
            bar[row, i] = k.nothing


def _columns_of_q(call: CallSite) -> Routine:
    _, _, n, reflectors, *_ = call.arguments
    if not same(n, reflectors):
        raise UnsupportedError(
            "there is no derivative rule for more columns of Q than there are reflectors",
            f"call {_NUMPY}",
            "the additional columns are an arbitrary basis of the remaining space",
        )
    return _GQR


# ------------------------------------------------------------------------------------------------ factorisation


def _factorise(r: Adjoint) -> None:
    k, v, scales, bar = r.k, r.matrix("new a"), r.vector("new tau"), r.bar("a")
    a, tau_bar = r.work.matrices[0], r.work.vectors[0]
    a.set(v.upper)
    tau_bar.take(r.vector_bar("tau"))
    with k.loop_down(_reflectors(a, scales)) as i:
        scale, v_i, total = _reflector(scales[i]), v.column(i, i), k.variable(tau_bar[i].conj())
        column, shadow = a.column(i, i), bar.column(i, i)
        with k.when(scales[i].is_zero()), k.loop(a.columns, i) as j:
            a[i, j], bar[i, j] = -a[i, j], -bar[i, j]
        with k.loop(a.columns, k.after(i)) as j:
            _reflect(v_i, scale.conj(), a.column(j, i), bar.column(j, i), total, shadow)
        _reverse_reflector(v_i, scale, column, shadow, total.value.conj())


def _reverse_reflector(v: Vector, scale: Scalar, column: Vector, shadow: Vector, scale_bar: Scalar) -> None:
    """From the cotangents of β, v and τ to that of the column x they were made of; the column itself is restored.

    β = ±‖x‖, τ = 1 - x₀ / β, v = x / (x₀ - β) after its first element. ``column`` and ``shadow`` begin with β and its
    cotangent, and with those of v after it; v is not in the column.
    """
    k, beta, beta_bar = v.k, column[NONE].real, shadow[NONE].real
    first, difference = 1.0 - scale, -(scale * beta)
    along = k.variable()
    with k.loop(v.size, ONE) as i:
        along.accumulate(v[i].conj() * shadow[i])
    difference_bar = -quotient_or_zero(along.value, difference.conj())
    # The real part of τ changes in second order; of a column of zeros, which has only the first, it counts nothing.
    scale_bar = choose(beta.is_zero(), scale_bar - scale_bar.real, scale_bar)
    scale_bar_over_beta = quotient_or_zero(scale_bar, beta)
    beta_bar = beta_bar - difference_bar.real + (scale_bar_over_beta.conj() * first).real
    shadow[NONE] = difference_bar - scale_bar_over_beta + beta_bar * first
    column[NONE] = first * beta
    with k.loop(v.size, ONE) as i:
        shadow[i] = quotient_or_zero(shadow[i], difference.conj()) - beta_bar * (scale * v[i])
        column[i] = v[i] * difference


# ------------------------------------------------------------------------------------------------ tangents


def _factorised(r: Tangent) -> None:
    k, scales = r.k, r.vector("tau")
    r.clear("tau")

    def keep(i: Value, scale_dot: Scalar) -> None:
        with r.active_vector("tau") as tau_dot:
            tau_dot[i] = scale_dot

    with r.moving("a") as tangent:
        push_factorisation(k, r.matrix("old a"), r.matrix("a"), scales, tangent, keep)


def push_factorisation(
    k: Kernel,
    a: Matrix,
    factors: Matrix,
    scales: Vector,
    tangent: Matrix,
    keep: Callable[[Value, Scalar], None] = lambda i, scale_dot: None,
) -> None:
    """Column by column as the factorisation goes; ``a`` holds what is left of the matrix before each reflector.

    Args:
        k: where to.
        a: the matrix, which is destroyed; it may have more columns than there are reflectors.
        factors, scales: its R and reflectors.
        tangent: that of the matrix; becomes that of R and of the reflectors.
        keep: takes the tangent of each τ.
    """
    with k.loop(_reflectors(a, scales)) as i:
        scale, v, x_dot, keeps = _reflector(scales[i]), factors.column(i, i), tangent.column(i, i), scales[i].is_zero()
        along, diagonal, first_dot = k.variable(), factors[i, i].real, x_dot[NONE]
        beta = choose(keeps, -diagonal, diagonal)
        with k.loop(v.size) as row:
            along.accumulate(a.column(i, i)[row].conj() * x_dot[row])
        # β² = xᴴ x, τ = 1 - x₀ / β, v = x / (x₀ - β), x₀ - β = -τ β; of a column of zeros β is -x₀
        beta_dot = choose(beta.is_zero(), -first_dot.real, quotient_or_zero(along.value.real, beta))
        scale_dot = quotient_or_zero((1.0 - scale) * beta_dot - first_dot, beta)
        with k.loop(v.size, ONE) as row:
            x_dot[row] = quotient_or_zero(x_dot[row] - v[row] * (first_dot - beta_dot), -(scale * beta))
        x_dot[NONE] = beta_dot
        with k.loop(a.columns, k.after(i)) as j:
            _push(v, x_dot, scale.conj(), scale_dot.conj(), a.column(j, i), tangent.column(j, i))
        with k.when(keeps), k.loop(a.columns, i) as j:
            tangent[i, j] = -tangent[i, j]
        keep(i, scale_dot)


def _assembled(r: Tangent) -> None:
    """Before the call: Q from the last reflector to the first, as LAPACK makes it, and its tangent beside it."""
    k, factors, scales, tangent, q = r.k, r.matrix("a"), r.vector("tau"), r.tangent("a"), r.work.matrices[0]
    m, n = tangent.rows, tangent.columns
    q.clear()
    with k.loop_down(n) as i:
        scale, scale_dot = _reflector(scales[i]), k.variable()
        with r.active_vector("tau") as tau_dot:
            scale_dot.value = tau_dot[i]
        v, v_dot = factors.column(i, i), tangent.column(i, i)
        with k.loop(n, k.after(i)) as j:
            _push(v, v_dot, scale, scale_dot.value, q.column(j, i), tangent.column(j, i))
        with k.loop(i) as row:
            tangent[row, i] = k.nothing
        # Of this column of Q, which is H e₀, or -H e₀ where LAPACK keeps the sign
        sign = choose(scales[i].is_zero(), k.number(-1.0), 1.0)
        q[i, i], tangent[i, i] = sign * (1.0 - scale), -(sign * scale_dot.value)
        with k.loop(m, k.after(i)) as row:
            direction, turn = factors[row, i], tangent[row, i]
            q[row, i] = -(sign * (scale * direction))
            tangent[row, i] = -(sign * (scale_dot.value * direction + scale * turn))


def _push(v: Vector, v_dot: Vector, scale: Scalar, scale_dot: Scalar, column: Vector, tangent: Vector) -> None:
    """Applies a reflector to a column and its tangent, y = H x = x - τ v vᴴ x, in place.

    Args:
        v: the reflector; its first element counts as 1.
        v_dot: its tangent; the first element does not count.
        scale, scale_dot: τ and its tangent; their conjugates for Hᴴ.
        column, tangent: x and ẋ.
    """
    v.k.outline("push_reflector", _push_body, v, v_dot, column, tangent, scale, scale_dot)


def _push_body(
    k: Kernel, v: Vector, v_dot: Vector, column: Vector, tangent: Vector, scale: Scalar, scale_dot: Scalar
) -> None:
    first = column[NONE]
    onto, onto_dot = k.variable(first), k.variable(tangent[NONE])
    with k.loop(v.size, ONE) as i:
        onto.accumulate(v[i].conj() * column[i])
        onto_dot.accumulate(v[i].conj() * tangent[i] + v_dot[i].conj() * column[i])
    step = scale * onto.value
    step_dot = scale_dot * onto.value + scale * onto_dot.value
    column[NONE] = first - step
    tangent[NONE] = tangent[NONE] - step_dot
    with k.loop(v.size, ONE) as i:
        column[i] = column[i] - step * v[i]
        tangent[i] = tangent[i] - step_dot * v[i] - step * v_dot[i]


# ------------------------------------------------------------------------------------------------ one column


def apply_reflectors(k: Kernel, factors: Matrix, scales: Vector, y: Vector) -> None:
    """`y = Q y` for a vector that begins with a 0 for each reflector."""
    with k.loop_down(scales.size) as i:
        v, onto = factors.column(i, i), k.variable(y[i])
        with k.loop(v.size, ONE) as row:
            onto.accumulate(v[row].conj() * y[k.build.add(i, row)])
        step = _reflector(scales[i]) * onto.value
        y[i] = y[i] - step
        with k.loop(v.size, ONE) as row:
            place = k.build.add(i, row)
            y[place] = y[place] - step * v[row]


def _reflectors(a: Matrix, scales: Vector) -> Value:
    """Number of reflectors that depend on the matrix: one for each column, but none for the last row of a real one."""
    k = a.k
    return scales.size if k.element.is_complex else k.smaller(scales.size, k.build.sub(a.rows, ONE))


def _reflector(stored: Scalar) -> Scalar:
    """The number τ of the reflector that is differentiated, by that which LAPACK gives."""
    return stored + choose(stored.is_zero(), stored.lifted(2.0), 0.0)


def _reflect(
    v: Vector, scale: Scalar, column: Vector, shadow: Vector, scale_shadow: Cell, v_shadow: Vector | None = None
) -> None:
    """Takes a reflector off a column, y = H x: from y and ȳ to x and x̄ in their place.

    Args:
        v: the reflector; its first element counts as 1.
        scale: τ, not 0; its conjugate for y = Hᴴ x.
        column, shadow: y and ȳ.
        scale_shadow: gets the cotangent of the scale added.
        v_shadow: gets the cotangent of v after its first element added; None: it replaces ``shadow`` instead of x̄.
    """
    replaces = v_shadow is None
    name = "reflect_and_replace" if replaces else "reflect_and_add"
    operands = v, column, shadow, shadow if v_shadow is None else v_shadow, scale_shadow, scale
    v.k.outline(name, partial(_reflect_body, replaces), *operands)


def _reflect_body(
    replaces: bool,
    k: Kernel,
    v: Vector,
    column: Vector,
    shadow: Vector,
    v_shadow: Vector,
    scale_shadow: Cell,
    scale: Scalar,
) -> None:
    along, bar_along = k.variable(column[NONE]), k.variable(shadow[NONE])
    with k.loop(v.size, ONE) as i:
        along.accumulate(v[i].conj() * column[i])
        bar_along.accumulate(v[i].conj() * shadow[i])
    # x = Hᴴ y, for H is unitary, and therefore vᴴ x = -(conj(τ) / τ) vᴴ y
    onto, bar_onto = along.value, bar_along.value
    step, bar_step = scale.conj() * onto, scale.conj() * bar_onto
    column[NONE] = column[NONE] - step
    shadow[NONE] = shadow[NONE] - bar_step
    with k.loop(v.size, ONE) as i:
        x = column[i] - step * v[i]
        y_bar = shadow[i]
        v_bar = step.conj() * y_bar - bar_step.conj() * x
        column[i] = x
        if replaces:
            shadow[i] = v_bar
        else:
            shadow[i] = y_bar - bar_step * v[i]
            v_shadow[i] = v_shadow[i] + v_bar
    scale_bar = bar_onto * onto.conj()
    if k.element.is_complex:
        scale_bar = scale_bar * (scale / scale.conj())
    scale_shadow.value = scale_shadow.value + scale_bar


# ------------------------------------------------------------------------------------------------ rules


def _ranked(sizes: Sizes) -> Value:
    return sizes.smaller("m", "n")


_POLICY: Final = "deficient rank: infinite or NaN; if a column is zero below the diagonal, its sign is constant"
_A: Final = MatrixShape("m", "n", "lda")
_GEQRF: Final = Routine(
    "geqrf",
    "kind m n a lda tau",
    {"a": _A, "tau": VectorShape(_ranked)},
    {"new a": "a", "new tau": "a"},
    _factorise,
    "a",
    lambda sizes, _: Room([(sizes["m"], sizes["n"])], [_ranked(sizes)]),
    tangent=Differential(after=_factorised, needs={"old a": "a"}, also_written="tau"),
)
_GQR: Final = Routine(
    "gqr",
    "kind m n _k a lda tau",
    {"a": _A, "tau": VectorShape("n")},
    {"old a": "a tau", "tau": "a tau", "new a": "a tau"},
    _assemble,
    "a",
    lambda sizes, _: Room([(sizes["m"], sizes["n"])]),
    tangent=Differential(_assembled, work=lambda sizes, _: Room([(sizes["m"], sizes["n"])])),
)

RULES: Final[tuple[Rule, ...]] = (
    numba_rule("numba_ez_geqrf", _NUMPY, _GEQRF, reads=(3,), writes=(3, 5), policy=_POLICY),
    numba_rule("numba_ez_xxgqr", _NUMPY, _columns_of_q, reads=(4, 6), writes=(4,), policy=_POLICY),
)
