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

from collections.abc import Sequence
from typing import Final

from irad.errors import UnsupportedError
from irad.ir.instructions import CallSite
from irad.ir.module import Function, Module
from irad.ir.values import Value
from irad.rules.blas.elements import Element, Number, element_of
from irad.rules.lapack.matrices import I64, NONE, ONE, PTR, Kernel, Matrix, copy_part, given, kernel, take_vector
from irad.rules.lapack.parts import copied, extent, kept_result, same, shadow_or_null, workspace
from irad.ruleset.interface import AugmentedContext, CallRule, Effects, ReverseContext, Rule

_NUMPY: Final = "np.linalg.qr"


# ------------------------------------------------------------------------------------------------ Q from reflectors


def _assemble_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, m, n, k, a, lda, tau = call.arguments
    element, build = element_of(kind, _NUMPY), context.before
    if not same(n, k):
        raise UnsupportedError(
            "there is no derivative rule for more columns of Q than there are reflectors",
            f"call {_NUMPY}",
            "the additional columns are an arbitrary basis of the remaining space",
        )
    rows, columns = context.value(m), context.value(n)
    count = extent(build, rows, columns, context.value(lda))
    reflectors, scales = copied(context, build, a, element, count), kept_result(context, tau, element, columns)
    return (
        reflectors,
        scales,
        kept_result(context, a, element, count),
        workspace(context, element, build.mul(rows, columns)),
    )


def _assemble_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, m, n, _, a, lda, tau = call.arguments
    if not context.is_active(a):
        return
    element, build = element_of(kind, _NUMPY), context.builder
    reflectors, scales, q, work = (context.value(v) for v in saved)
    parameters = (I64, I64, PTR, PTR, PTR, PTR, PTR, I64, PTR)
    function = kernel(build.module, "assemble_adjoint", element, parameters, _assemble_kernel)
    arguments = [context.value(m), context.value(n), reflectors, scales, q, context.shadow(a)]
    build.call(function, [*arguments, shadow_or_null(context, tau), context.value(lda), work])


def _assemble_kernel(
    k: Kernel,
    m: Value,
    n: Value,
    reflectors: Value,
    scales: Value,
    q_data: Value,
    shadow: Value,
    tau_shadow: Value,
    lead: Value,
    work: Value,
) -> None:
    build = k.build
    v, bar, q = Matrix(reflectors, lead), Matrix(shadow, lead), Matrix(work, m)
    copy_part(k, "all", m, n, Matrix(q_data, lead), q)
    with k.loop(n) as i:
        below, length, scale = build.add(i, ONE), build.sub(m, i), k.item(scales, i)
        v_i, total = k.at(v, i, i), k.variable(k.nothing)
        with k.when(scale.is_nonzero()):
            # The cotangent of Q's column i is of no further use, so that of v takes its place.
            _reflect(k, length, v_i, scale, k.at(q, i, i), k.at(bar, i, i), total)
            with k.loop(n, below) as j:
                _reflect(k, length, v_i, scale, k.at(q, i, j), k.at(bar, i, j), total, k.at(bar, i, i))
        with k.when(scale.is_zero()):
            with k.loop(n, i) as j:
                k.add_to(total, -(k.load(bar, i, j) * k.load(q, i, j).conj()))
            with k.loop(m, below) as r:
                turn = k.variable(k.nothing)
                with k.loop(n, i) as j:
                    up = k.load(bar, r, j) * k.load(q, i, j).conj()
                    k.add_to(turn, up - k.load(bar, i, j).conj() * k.load(q, r, j))
                k.store(k.read(turn), bar, r, i)
        with k.when(given(k, tau_shadow)):
            k.put(k.item(tau_shadow, i) + k.read(total), tau_shadow, i)
        with k.loop(below) as r:
            k.store(k.nothing, bar, r, i)


# ------------------------------------------------------------------------------------------------ factorisation


def _factorise_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, m, n, a, lda, tau = call.arguments
    element, build = element_of(kind, _NUMPY), context.before
    rows, columns, lead = (context.value(v) for v in (m, n, lda))
    ranked = build.intrinsic("llvm.smin.i64", I64, [rows, columns])
    factors = kept_result(context, a, element, extent(build, rows, columns, lead))
    size = build.add(build.mul(rows, columns), ranked)
    return factors, kept_result(context, tau, element, ranked), workspace(context, element, size)


def _factorise_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, m, n, a, lda, tau = call.arguments
    if not context.is_active(a):
        return
    element, build = element_of(kind, _NUMPY), context.builder
    factors, scales, work = (context.value(v) for v in saved)
    parameters = (I64, I64, PTR, PTR, PTR, PTR, I64, PTR)
    function = kernel(build.module, "reflectors_adjoint", element, parameters, _factorise_kernel)
    arguments = [context.value(m), context.value(n), factors, scales, context.shadow(a), shadow_or_null(context, tau)]
    build.call(function, [*arguments, context.value(lda), work])


def _factorise_kernel(
    k: Kernel,
    m: Value,
    n: Value,
    factors: Value,
    scales: Value,
    shadow: Value,
    tau_shadow: Value,
    lead: Value,
    work: Value,
) -> None:
    build, ranked = k.build, k.smaller(m, n)
    matrix, tau_bar = k.take_parts(work, [build.mul(m, n), ranked])
    v, bar, a = Matrix(factors, lead), Matrix(shadow, lead), Matrix(matrix, m)
    copy_part(k, "upper", m, n, v, a)
    take_vector(k, ranked, tau_shadow, tau_bar)
    with k.loop_down(ranked) as i:
        below, length, scale = build.add(i, ONE), build.sub(m, i), k.item(scales, i)
        v_i, total = k.at(v, i, i), k.variable(k.item(tau_bar, i).conj())
        with k.when(scale.is_nonzero()):
            with k.loop(n, below) as j:
                columns = k.at(a, i, j), k.at(bar, i, j)
                _reflect(k, length, v_i, scale.conj(), *columns, total, k.at(bar, i, i))
            _reverse_reflector(k, length, v_i, scale, k.at(a, i, i), k.at(bar, i, i), k.read(total).conj())
        with k.when(scale.is_zero()):
            _reverse_rotation(k, m, n, i, a, bar, total)


def _reverse_rotation(k: Kernel, m: Value, n: Value, i: Value, a: Matrix, bar: Matrix, total: Value) -> None:
    """The cotangent of a column without a reflector; ``total`` is the conjugate of that of τ."""
    below, diagonal = k.build.add(i, ONE), k.load(a, i, i)
    with k.loop(n, below) as j:
        k.add_to(total, -(k.load(bar, i, j) * k.load(a, i, j).conj()))
    with k.loop(m, below) as r:
        turn = k.variable(k.load(bar, r, i))
        with k.loop(n, below) as j:
            up = k.load(bar, i, j).conj() * k.load(a, r, j)
            k.add_to(turn, up - k.load(bar, r, j) * k.load(a, i, j).conj())
        k.store(k.quotient(k.read(turn), diagonal.real), bar, r, i)
    if k.element.is_complex:
        turned = k.quotient(k.read(total).imag, diagonal.real)
        k.store(k.load(bar, i, i).real + turned.times_i(), bar, i, i)


def _reverse_reflector(
    k: Kernel, length: Value, v: Value, scale: Number, column: Value, shadow: Value, scale_bar: Number
) -> None:
    """From the cotangents of β, v and τ to that of the column x they were made of; the column itself is restored.

    β = -sign(Re x₀) ‖x‖, τ = 1 - x₀ / β, v = x / (x₀ - β) behind its first element. ``column`` and ``shadow`` begin
    with β and its cotangent, and with those of v behind it; v is not in the column.
    """
    beta, beta_bar, one = k.item(column, NONE).real, k.item(shadow, NONE).real, k.number(1.0)
    first, difference = beta * (one - scale), -(scale * beta)
    along = k.variable(k.nothing)
    with k.loop(length, ONE) as i:
        k.add_to(along, k.item(v, i).conj() * k.item(shadow, i))
    difference_bar = -k.quotient(k.read(along), difference.conj())
    by_beta = k.quotient(scale_bar, beta)
    beta_bar = beta_bar - difference_bar.real + (by_beta.conj() * (one - scale)).real
    first_bar = difference_bar - by_beta
    stretch = k.quotient(beta_bar, beta)
    k.put(first_bar + stretch * first, shadow, NONE)
    k.put(first, column, NONE)
    with k.loop(length, ONE) as i:
        x = k.item(v, i) * difference
        k.put(k.quotient(k.item(shadow, i), difference.conj()) + stretch * x, shadow, i)
        k.put(x, column, i)


# ------------------------------------------------------------------------------------------------ one column


def _reflect(
    k: Kernel,
    length: Value,
    v: Value,
    scale: Number,
    column: Value,
    shadow: Value,
    scale_shadow: Value,
    v_shadow: Value | None = None,
) -> None:
    """Takes a reflector off a column, y = H x: from y and ȳ to x and x̄ in their place.

    Args:
        k: where to.
        length: of the column, from the reflector's row on.
        v: the reflector; its first element counts as 1.
        scale: τ, not 0; its conjugate for y = Hᴴ x.
        column, shadow: y and ȳ.
        scale_shadow: gets the cotangent of the scale added.
        v_shadow: gets the cotangent of v behind its first element added; None: it replaces ``shadow`` instead of x̄.
    """
    function = _reflect_function(k.build.module, k.element, "replace" if v_shadow is None else "add")
    arguments = [length, v, column, shadow, shadow if v_shadow is None else v_shadow, scale_shadow]
    k.build.call(function, [*arguments, *scale.parts])


def _reflect_function(module: Module, element: Element, mode: str) -> Function:
    def body(
        k: Kernel,
        length: Value,
        v: Value,
        column: Value,
        shadow: Value,
        v_shadow: Value,
        scale_shadow: Value,
        *tau: Value,
    ) -> None:
        scale = Number(k.build, tau)
        along, bar_along = k.variable(k.item(column, NONE)), k.variable(k.item(shadow, NONE))
        with k.loop(length, ONE) as i:
            k.add_to(along, k.item(v, i).conj() * k.item(column, i))
            k.add_to(bar_along, k.item(v, i).conj() * k.item(shadow, i))
        # x = Hᴴ y, for H is unitary, and therefore vᴴ x = -(conj(τ) / τ) vᴴ y
        onto, bar_onto = k.read(along), k.read(bar_along)
        step, bar_step = scale.conj() * onto, scale.conj() * bar_onto
        k.put(k.item(column, NONE) - step, column, NONE)
        k.put(k.item(shadow, NONE) - bar_step, shadow, NONE)
        with k.loop(length, ONE) as i:
            x = k.item(column, i) - step * k.item(v, i)
            y_bar = k.item(shadow, i)
            v_bar = step.conj() * y_bar - bar_step.conj() * x
            k.put(x, column, i)
            if mode == "replace":
                k.put(v_bar, shadow, i)
            else:
                k.put(y_bar - bar_step * k.item(v, i), shadow, i)
                k.put(k.item(v_shadow, i) + v_bar, v_shadow, i)
        scale_bar = bar_onto * onto.conj()
        if element.is_complex:
            scale_bar = scale_bar * (scale / scale.conj())
        k.write(k.read(scale_shadow) + scale_bar, scale_shadow)

    parameters = (I64, *[PTR] * 5, *[element.scalar] * (2 if element.is_complex else 1))
    return kernel(module, f"reflect_and_{mode}", element, parameters, body)


# ------------------------------------------------------------------------------------------------ rules


def _effects(reads: tuple[int, ...], writes: tuple[int, ...]) -> Effects:
    return Effects(reads=frozenset(reads), writes=frozenset(writes), other=False)


_POLICY: Final = "deficient rank: infinite or NaN; a column that is zero below the diagonal keeps its sign"

RULES: Final[tuple[Rule, ...]] = (
    CallRule(("numba_ez_geqrf",), _effects((3,), (3, 5)), _factorise_reverse, _factorise_augmented, "", _POLICY),
    CallRule(("numba_ez_xxgqr",), _effects((4, 6), (4,)), _assemble_reverse, _assemble_augmented, "", _POLICY),
)
