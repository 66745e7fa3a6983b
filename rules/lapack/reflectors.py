"""QR factorisation as Numba calls it, `np.linalg.qr`, in two steps.

    numba_ez_geqrf(kind, m, n, a, lda, tau)      a = Q R: R in the upper triangle; below it and in tau the reflectors
    numba_ez_xxgqr(kind, m, n, k, a, lda, tau)   the columns of Q, from the reflectors below the diagonal of a

A reflector is H = I - τ v vᴴ with v = (1, what is stored below the diagonal); Q = H₁ H₂ … and R = … H₂ᴴ H₁ᴴ A, with
real numbers on the diagonal. Both adjoints take the reflectors off one after the other, so that they see every
intermediate matrix and save none.

A column that is zero below the diagonal and real on it already has τ = 0 and no v: LAPACK leaves it and its sign alone.
The derivative there is that of the factorisation which goes on with this sign. v cannot express it, so where τ = 0 the
shadow of v holds the cotangent of the rotation that zeroes the column instead, from the second step to the first. What
turns the diagonal to a real number is expressed by τ itself.
"""

from __future__ import annotations

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
    m, n = bar.rows, bar.columns
    q.set(r.matrix("new a"))
    with k.loop(n) as i:
        below, scale, v_i, total = k.after(i), scales[i], v.column(i, i), k.variable()
        with k.when(scale.is_nonzero()):
            # The cotangent of Q's column i is of no further use, so that of v takes its place.
            _reflect(v_i, scale, q.column(i, i), bar.column(i, i), total)
            with k.loop(n, below) as j:
                _reflect(v_i, scale, q.column(j, i), bar.column(j, i), total, bar.column(i, i))
        with k.when(scale.is_zero()):
            with k.loop(n, i) as j:
                total.accumulate(-(bar[i, j] * q[i, j].conj()))
            with k.loop(m, below) as row:
                turn = k.variable()
                with k.loop(n, i) as j:
                    turn.accumulate(bar[row, j] * q[i, j].conj() - bar[i, j].conj() * q[row, j])
                bar[row, i] = turn.value
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
    with k.loop_down(scales.size) as i:
        scale, v_i, total = scales[i], v.column(i, i), k.variable(tau_bar[i].conj())
        column, shadow = a.column(i, i), bar.column(i, i)
        with k.when(scale.is_nonzero()):
            with k.loop(a.columns, k.after(i)) as j:
                _reflect(v_i, scale.conj(), a.column(j, i), bar.column(j, i), total, shadow)
            _reverse_reflector(v_i, scale, column, shadow, total.value.conj())
        with k.when(scale.is_zero()):
            _reverse_rotation(i, a, bar, total)


def _reverse_rotation(i: Value, a: Matrix, bar: Matrix, total: Cell) -> None:
    """The cotangent of a column without a reflector; ``total`` is the conjugate of that of τ."""
    k, m, n = a.k, a.rows, a.columns
    below, diagonal = k.after(i), a[i, i]
    with k.loop(n, below) as j:
        total.accumulate(-(bar[i, j] * a[i, j].conj()))
    with k.loop(m, below) as row:
        turn = k.variable(bar[row, i])
        with k.loop(n, below) as j:
            turn.accumulate(bar[i, j].conj() * a[row, j] - bar[row, j] * a[i, j].conj())
        bar[row, i] = quotient_or_zero(turn.value, diagonal.real)
    if k.element.is_complex:
        turned = quotient_or_zero(total.value.imag, diagonal.real)
        bar[i, i] = bar[i, i].real + turned.times_i()


def _reverse_reflector(v: Vector, scale: Scalar, column: Vector, shadow: Vector, scale_bar: Scalar) -> None:
    """From the cotangents of β, v and τ to that of the column x they were made of; the column itself is restored.

    β = -sign(Re x₀) ‖x‖, τ = 1 - x₀ / β, v = x / (x₀ - β) behind its first element. ``column`` and ``shadow`` begin
    with β and its cotangent, and with those of v behind it; v is not in the column.
    """
    k, beta, beta_bar = v.k, column[NONE].real, shadow[NONE].real
    first, difference = beta * (1.0 - scale), -(scale * beta)
    along = k.variable()
    with k.loop(v.size, ONE) as i:
        along.accumulate(v[i].conj() * shadow[i])
    difference_bar = -quotient_or_zero(along.value, difference.conj())
    by_beta = quotient_or_zero(scale_bar, beta)
    beta_bar = beta_bar - difference_bar.real + (by_beta.conj() * (1.0 - scale)).real
    first_bar = difference_bar - by_beta
    stretch = quotient_or_zero(beta_bar, beta)
    shadow[NONE] = first_bar + stretch * first
    column[NONE] = first
    with k.loop(v.size, ONE) as i:
        x = v[i] * difference
        shadow[i] = quotient_or_zero(shadow[i], difference.conj()) + stretch * x
        column[i] = x


# ------------------------------------------------------------------------------------------------ tangents


def _factorised(r: Tangent) -> None:
    """Column by column as the factorisation goes; ``a`` holds what is left of the matrix before each reflector."""
    k, a, factors, scales, tangent = r.k, r.matrix("old a"), r.matrix("a"), r.vector("tau"), r.tangent("a")
    r.clear("tau")
    with r.moving("a"), k.loop(scales.size) as i:
        scale, v, x_dot = scales[i], factors.column(i, i), tangent.column(i, i)
        beta, along, below = factors[i, i].real, k.variable(), k.after(i)
        with k.loop(v.size) as row:
            along.accumulate(a.column(i, i)[row].conj() * x_dot[row])
        # β² = xᴴ x, τ = 1 - x₀ / β, v = x / (x₀ - β), x₀ - β = -τ β
        beta_dot = choose(scale.is_zero(), x_dot[NONE].real, quotient_or_zero(along.value.real, beta))
        first_dot = x_dot[NONE]
        scale_dot = quotient_or_zero((1.0 - scale) * beta_dot - first_dot, beta)
        divisor = choose(scale.is_zero(), beta, -(scale * beta))
        with k.loop(v.size, ONE) as row:
            turned = choose(scale.is_zero(), 0.0, v[row] * (first_dot - beta_dot))
            x_dot[row] = quotient_or_zero(x_dot[row] - turned, divisor)
        x_dot[NONE] = beta_dot
        with k.loop(a.columns, below) as j:
            _push(v, x_dot, scale.conj(), scale_dot.conj(), -1.0, a.column(j, i), tangent.column(j, i))
        with r.active_vector("tau") as tau_dot:
            tau_dot[i] = scale_dot


def _assembled(r: Tangent) -> None:
    """Before the call: Q from the last reflector to the first, as LAPACK makes it, and its tangent beside it."""
    k, factors, scales, tangent, q = r.k, r.matrix("a"), r.vector("tau"), r.tangent("a"), r.work.matrices[0]
    m, n = tangent.rows, tangent.columns
    q.clear()
    with k.loop_down(n) as i:
        scale, scale_dot = scales[i], k.variable()
        with r.active_vector("tau") as tau_dot:
            scale_dot.value = tau_dot[i]
        v, v_dot = factors.column(i, i), tangent.column(i, i)
        with k.loop(n, k.after(i)) as j:
            _push(v, v_dot, scale, scale_dot.value, 1.0, q.column(j, i), tangent.column(j, i))
        with k.loop(i) as row:
            tangent[row, i] = k.nothing
        # Of this column of Q, which is H e₀
        q[i, i], v_dot[NONE] = 1.0 - scale, -scale_dot.value
        with k.loop(m, k.after(i)) as row:
            direction, turn = factors[row, i], tangent[row, i]
            q[row, i] = -(scale * direction)
            reflected = -(scale_dot.value * direction + scale * turn)
            tangent[row, i] = choose(scale.is_zero(), turn, reflected)


def _push(
    v: Vector, v_dot: Vector, scale: Scalar, scale_dot: Scalar, sense: float, column: Vector, tangent: Vector
) -> None:
    """Applies a reflector to a column and its tangent, y = H x = x - τ v vᴴ x, in place.

    Where τ = 0 the tangent of v is that of a rotation, G = v̇ e₀ᴴ - e₀ v̇ᴴ, for the adjoint of it with -1 as ``sense``.

    Args:
        v: the reflector; its first element counts as 1.
        v_dot: its tangent; the first element does not count.
        scale, scale_dot: τ and its tangent, or their conjugates.
        sense: 1.0 for H, -1.0 for Hᴴ.
        column, tangent: x and ẋ.
    """
    name = "push_reflector" if sense > 0.0 else "push_adjoint_reflector"
    v.k.outline(name, partial(_push_body, sense), v, v_dot, column, tangent, scale, scale_dot)


def _push_body(
    sense: float,
    k: Kernel,
    v: Vector,
    v_dot: Vector,
    column: Vector,
    tangent: Vector,
    scale: Scalar,
    scale_dot: Scalar,
) -> None:
    first = column[NONE]
    onto, onto_dot, turned = k.variable(first), k.variable(tangent[NONE]), k.variable()
    with k.loop(v.size, ONE) as i:
        onto.accumulate(v[i].conj() * column[i])
        onto_dot.accumulate(v[i].conj() * tangent[i])
        turned.accumulate(v_dot[i].conj() * column[i])
    with k.when(scale.is_zero()):
        tangent[NONE] = tangent[NONE] - scale_dot * first - sense * turned.value
        with k.loop(v.size, ONE) as i:
            tangent[i] = tangent[i] + sense * v_dot[i] * first
    with k.unless(scale.is_zero()):
        step = scale * onto.value
        step_dot = scale_dot * onto.value + scale * (onto_dot.value + turned.value)
        column[NONE] = first - step
        tangent[NONE] = tangent[NONE] - step_dot
        with k.loop(v.size, ONE) as i:
            column[i] = column[i] - step * v[i]
            tangent[i] = tangent[i] - step_dot * v[i] - step * v_dot[i]


# ------------------------------------------------------------------------------------------------ one column


def _reflect(
    v: Vector, scale: Scalar, column: Vector, shadow: Vector, scale_shadow: Cell, v_shadow: Vector | None = None
) -> None:
    """Takes a reflector off a column, y = H x: from y and ȳ to x and x̄ in their place.

    Args:
        v: the reflector; its first element counts as 1.
        scale: τ, not 0; its conjugate for y = Hᴴ x.
        column, shadow: y and ȳ.
        scale_shadow: gets the cotangent of the scale added.
        v_shadow: gets the cotangent of v behind its first element added; None: it replaces ``shadow`` instead of x̄.
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


_POLICY: Final = "deficient rank: infinite or NaN; a column that is zero below the diagonal keeps its sign"
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
