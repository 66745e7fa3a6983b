"""QR factorisation as Numba calls it, `np.linalg.qr`, in two steps.

    numba_ez_geqrf(kind, m, n, a, lda, tau)      a = Q R: R in the upper triangle; below it and in tau the reflectors
    numba_ez_xxgqr(kind, m, n, k, a, lda, tau)   the columns of Q, from the reflectors below the diagonal of a

A reflector is H = I - τ v vᵀ with v = (1, what is stored below the diagonal); Q = H₁ H₂ … and R = … H₂ H₁ A. Both
adjoints take the reflectors off one after the other, so that they see every intermediate matrix and save none.

A column that is zero below the diagonal already has τ = 0 and no v: LAPACK leaves it and its sign alone. The derivative
there is that of the factorisation which goes on with this sign. v cannot express it, so where τ = 0 the shadow of v
holds the cotangent of the rotation that zeroes the column instead, from the second step to the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.instructions import CallSite
from irad.ir.module import Function, Module
from irad.ir.types import FloatType
from irad.ir.values import Value
from irad.rules.lapack_parts import copied, element, extent, kept_result, same, shadow_or_null, workspace
from irad.rules.matrices import I64, NONE, ONE, PTR, Kernel, Matrix, copy_part, given, kernel, take_vector
from irad.ruleset.interface import CallRule, Effects, ForwardContext, ReverseContext, Rule

_NUMPY: Final = "np.linalg.qr"


# ------------------------------------------------------------------------------------------------ Q from reflectors


def _assemble_forward(context: ForwardContext, call: CallSite) -> Sequence[Value]:
    kind, m, n, k, a, lda, tau = call.arguments
    type_, build = element(kind, _NUMPY), context.before
    if not same(n, k):
        raise UnsupportedError("more columns of Q than reflectors have no derivative rule", f"call {_NUMPY}")
    rows, columns = context.value(m), context.value(n)
    count = extent(build, rows, columns, context.value(lda))
    reflectors, scales = copied(context, build, a, type_, count), kept_result(context, tau, type_, columns)
    return (
        reflectors,
        scales,
        kept_result(context, a, type_, count),
        workspace(context, type_, build.mul(rows, columns)),
    )


def _assemble_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, m, n, _, a, lda, tau = call.arguments
    if not context.is_active(a):
        return
    type_, build = element(kind, _NUMPY), context.builder
    reflectors, scales, q, work = (context.value(v) for v in saved)
    parameters = (I64, I64, PTR, PTR, PTR, PTR, PTR, I64, PTR)
    function = kernel(build.module, "assemble_adjoint", type_, parameters, _assemble_kernel)
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
        turned, v_i = build.fcmp("une", scale, k.nothing), k.at(v, i, i)
        with k.when(turned):
            # The cotangent of Q's column i is of no further use, so that of v takes its place.
            scale_bar = _reflect(k, length, v_i, scale, k.at(q, i, i), k.at(bar, i, i), None)
            total = k.variable(scale_bar)
            with k.loop(n, below) as j:
                k.add_to(total, _reflect(k, length, v_i, scale, k.at(q, i, j), k.at(bar, i, j), k.at(bar, i, i)))
            with k.when(given(k, tau_shadow)):
                k.put(build.fadd(k.item(tau_shadow, i), build.load(k.type, total)), tau_shadow, i)
        with k.when(build.fcmp("oeq", scale, k.nothing)), k.loop(m, below) as r:
            turn = k.variable(k.nothing)
            with k.loop(n, i) as j:
                up = build.fmul(k.load(bar, r, j), k.load(q, i, j))
                k.add_to(turn, build.fsub(up, build.fmul(k.load(bar, i, j), k.load(q, r, j))))
            k.store(build.load(k.type, turn), bar, r, i)
        with k.loop(below) as r:
            k.store(k.nothing, bar, r, i)


# ------------------------------------------------------------------------------------------------ factorisation


def _factorise_forward(context: ForwardContext, call: CallSite) -> Sequence[Value]:
    kind, m, n, a, lda, tau = call.arguments
    type_, build = element(kind, _NUMPY), context.before
    rows, columns, lead = (context.value(v) for v in (m, n, lda))
    ranked = build.intrinsic("llvm.smin.i64", I64, [rows, columns])
    factors = kept_result(context, a, type_, extent(build, rows, columns, lead))
    size = build.add(build.mul(rows, columns), ranked)
    return factors, kept_result(context, tau, type_, ranked), workspace(context, type_, size)


def _factorise_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, m, n, a, lda, tau = call.arguments
    if not context.is_active(a):
        return
    type_, build = element(kind, _NUMPY), context.builder
    factors, scales, work = (context.value(v) for v in saved)
    parameters = (I64, I64, PTR, PTR, PTR, PTR, I64, PTR)
    function = kernel(build.module, "reflectors_adjoint", type_, parameters, _factorise_kernel)
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
        v_i = k.at(v, i, i)
        with k.when(build.fcmp("une", scale, k.nothing)):
            total = k.variable(k.item(tau_bar, i))
            with k.loop(n, below) as j:
                k.add_to(total, _reflect(k, length, v_i, scale, k.at(a, i, j), k.at(bar, i, j), k.at(bar, i, i)))
            _reverse_reflector(k, length, v_i, scale, k.at(a, i, i), k.at(bar, i, i), build.load(k.type, total))
        with k.when(build.fcmp("oeq", scale, k.nothing)), k.loop(m, below) as r:
            turn = k.variable(k.load(bar, r, i))
            with k.loop(n, below) as j:
                up = build.fmul(k.load(bar, i, j), k.load(a, r, j))
                k.add_to(turn, build.fsub(up, build.fmul(k.load(bar, r, j), k.load(a, i, j))))
            k.store(k.quotient(build.load(k.type, turn), k.load(a, i, i)), bar, r, i)


def _reverse_reflector(
    k: Kernel, length: Value, v: Value, scale: Value, column: Value, shadow: Value, scale_bar: Value
) -> None:
    """From the cotangents of β, v and τ to that of the column x they were made of; the column itself is restored.

    β = -sign(x₀) ‖x‖, τ = 1 - x₀ / β, v = x / (x₀ - β) behind its first element. ``column`` and ``shadow`` begin with β
    and its cotangent, and with those of v behind it; v is not in the column.
    """
    build = k.build
    beta, beta_bar = k.item(column, NONE), k.item(shadow, NONE)
    first = build.fmul(beta, build.fsub(k.number(1.0), scale))
    difference = build.fneg(build.fmul(scale, beta))
    along = k.variable(k.nothing)
    with k.loop(length, ONE) as i:
        k.add_to(along, build.fmul(k.item(shadow, i), k.item(v, i)))
    difference_bar = build.fneg(k.quotient(build.load(k.type, along), difference))
    by_beta = k.quotient(scale_bar, beta)
    beta_bar = build.fsub(beta_bar, difference_bar)
    beta_bar = build.fadd(beta_bar, build.fmul(by_beta, build.fsub(k.number(1.0), scale)))
    first_bar = build.fsub(difference_bar, by_beta)
    stretch = k.quotient(beta_bar, beta)
    k.put(build.fadd(first_bar, build.fmul(stretch, first)), shadow, NONE)
    k.put(first, column, NONE)
    with k.loop(length, ONE) as i:
        x = build.fmul(k.item(v, i), difference)
        x_bar = build.fadd(k.quotient(k.item(shadow, i), difference), build.fmul(stretch, x))
        k.put(x_bar, shadow, i)
        k.put(x, column, i)


# ------------------------------------------------------------------------------------------------ one column


def _reflect(
    k: Kernel, length: Value, v: Value, scale: Value, column: Value, shadow: Value, v_shadow: Value | None
) -> Value:
    """Takes a reflector off a column, y = H x: from y and ȳ to x and x̄ in their place.

    Args:
        k: where to.
        length: of the column, from the reflector's row on.
        v: the reflector; its first element counts as 1.
        scale: τ.
        column, shadow: y and ȳ.
        v_shadow: gets the cotangent of v behind its first element added; None: it replaces ``shadow`` instead of x̄.

    Returns:
        The cotangent of τ.
    """
    parameters = (I64, PTR, k.type, PTR, PTR, PTR)
    function = _reflect_function(k.build.module, k.type, "replace" if v_shadow is None else "add", parameters)
    return k.build.call(function, [length, v, scale, column, shadow, shadow if v_shadow is None else v_shadow])


def _reflect_function(module: Module, type_: FloatType, mode: str, parameters: tuple[types.Type, ...]) -> Function:
    def body(k: Kernel, length: Value, v: Value, scale: Value, column: Value, shadow: Value, v_shadow: Value) -> Value:
        build = k.build
        along, bar_along = k.variable(k.item(column, NONE)), k.variable(k.item(shadow, NONE))
        with k.loop(length, ONE) as i:
            k.add_to(along, build.fmul(k.item(v, i), k.item(column, i)))
            k.add_to(bar_along, build.fmul(k.item(v, i), k.item(shadow, i)))
        # x = H y, for H is its own inverse; vᵀ x = -vᵀ y, for H v = -v
        onto, bar_onto = build.load(k.type, along), build.load(k.type, bar_along)
        step, bar_step = build.fmul(scale, onto), build.fmul(scale, bar_onto)
        k.put(build.fsub(k.item(column, NONE), step), column, NONE)
        k.put(build.fsub(k.item(shadow, NONE), bar_step), shadow, NONE)
        with k.loop(length, ONE) as i:
            x = build.fsub(k.item(column, i), build.fmul(step, k.item(v, i)))
            y_bar = k.item(shadow, i)
            v_bar = build.fsub(build.fmul(step, y_bar), build.fmul(bar_step, x))
            k.put(x, column, i)
            if mode == "replace":
                k.put(v_bar, shadow, i)
            else:
                k.put(build.fsub(y_bar, build.fmul(bar_step, k.item(v, i))), shadow, i)
                k.put(build.fadd(k.item(v_shadow, i), v_bar), v_shadow, i)
        return build.fmul(onto, bar_onto)

    return kernel(module, f"reflect_and_{mode}", type_, parameters, body, type_)


# ------------------------------------------------------------------------------------------------ rules


def _effects(reads: tuple[int, ...], writes: tuple[int, ...]) -> Effects:
    return Effects(reads=frozenset(reads), writes=frozenset(writes), other=False)


RULES: Final[tuple[Rule, ...]] = (
    CallRule(("numba_ez_geqrf",), _effects((3,), (3, 5)), _factorise_reverse, _factorise_forward),
    CallRule(("numba_ez_xxgqr",), _effects((4, 6), (4,)), _assemble_reverse, _assemble_forward),
)
