"""The pseudo-inverse as Numba computes it: `np.linalg.pinv` is a thin SVD, a scaling, and a product.

    gesdd('S', m, n, a, …, s, u, vt)                         a = U S Vᴴ; a is destroyed
    vt *= 1 / s, or u *= 1 / s                               for the r singular values above the threshold
    gemm('C', 'C', n, m, r, 1, vt, u, 0, a)                  a = A⁺

Taken one by one, the adjoint would go through singular vectors, which equal singular values leave open, though A⁺ does
not depend on the choice. So the two calls are recognised as a pair, by the memory that they share and that nothing else
sees: the product passes on the cotangent of A⁺ in the shadow of `a`, and the decomposition makes that of A from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.values import ConstantInt, TrackedValue, Value, const_int
from irad.rules.blas.elements import Element, Number, choose
from irad.rules.lapack.matrices import I64, PTR, Kernel, Matrix, any_nonzero, kernel
from irad.rules.lapack.parts import extent, kept_result, same, workspace
from irad.ruleset.interface import AugmentedContext, ReverseContext

_DECOMPOSITION: Final = "numba_ez_gesdd"
_PRODUCT: Final = "numba_xxgemm"
_CONJUGATED: Final = ord("C")
_THIN: Final = ord("S")


def ends_pseudo_inverse(product: CallSite) -> bool:
    """Whether a matrix product is the last step of a pseudo-inverse."""
    vectors = product.arguments[7]
    return any(product_behind(call) is product for call in _calls(vectors, _DECOMPOSITION))


def product_behind(decomposition: CallSite) -> CallSite | None:
    """The product that makes a pseudo-inverse of a decomposition, if there is one."""
    return next((c for c in _calls(decomposition.arguments[9], _PRODUCT) if _is_pair(decomposition, c)), None)


def _calls(pointer: Value, name: str) -> list[CallSite]:
    users = pointer.users if isinstance(pointer, TrackedValue) else {}
    return [user for user in users if isinstance(user, CallSite) and user.callee.name == name]


def _is_pair(decomposition: CallSite, product: CallSite) -> bool:
    kind, jobz, m, n, a, lda, _, u, ldu, vt, ldvt = decomposition.arguments
    kind_2, transa, transb, rows, columns, _, _, left, lead_1, right, lead_2, _, result, lead_3 = product.arguments
    letters = [v.value if isinstance(v, ConstantInt) else None for v in (jobz, transa, transb)]
    shared = (
        *((kind, kind_2), (n, rows), (m, columns), (a, result), (u, right), (vt, left)),
        *((ldvt, lead_1), (ldu, lead_2), (lda, m), (n, lead_3)),
    )
    return letters == [_THIN, _CONJUGATED, _CONJUGATED] and all(same(x, y) for x, y in shared)


def keep_decomposition(context: AugmentedContext, call: CallSite, element: Element) -> Sequence[Value]:
    """The augmented part of the decomposition in a pseudo-inverse."""
    _, _, m, n, _, _, s, u, ldu, vt, ldvt = call.arguments
    build = context.before
    rows, columns = context.value(m), context.value(n)
    ranked = build.intrinsic("llvm.smin.i64", I64, [rows, columns])
    left = kept_result(context, u, element, extent(build, rows, ranked, context.value(ldu)))
    right = kept_result(context, vt, element, extent(build, ranked, columns, context.value(ldvt)))
    sizes = _sizes(build, rows, columns, ranked)
    total = sizes[0]
    for size in sizes[1:]:
        total = build.add(total, size)
    return left, right, kept_result(context, s, element.real, ranked), workspace(context, element, total)


def _sizes(build: Builder, rows: Value, columns: Value, ranked: Value) -> list[Value]:
    """Of G U, of Gᵀ V and scaled U, and of two small matrices."""
    tall, square = build.mul(rows, ranked), build.mul(ranked, ranked)
    return [build.mul(columns, ranked), tall, tall, square, square]


def reverse_decomposition(
    context: ReverseContext, call: CallSite, element: Element, saved: Sequence[Value], product: CallSite
) -> None:
    """The adjoint of a pseudo-inverse, in place of that of its decomposition."""
    _, _, m, n, a, _, _, _, ldu, _, ldvt = call.arguments
    left, right, values, work = (context.value(v) for v in saved)
    rank = context.value(product.arguments[5])
    parameters = (I64, I64, I64, PTR, I64, PTR, I64, PTR, PTR, PTR)
    function = kernel(context.builder.module, "pinv_adjoint", element, parameters, _kernel)
    sizes = [context.value(m), context.value(n), rank]
    vectors = [left, context.value(ldu), right, context.value(ldvt)]
    context.builder.call(function, [*sizes, *vectors, values, context.shadow(a), work])


def _kernel(
    k: Kernel,
    m: Value,
    n: Value,
    rank: Value,
    u_data: Value,
    ldu: Value,
    vt_data: Value,
    ldvt: Value,
    s: Value,
    shadow: Value,
    work: Value,
) -> None:
    """Ā = -Xᴴ G Xᴴ + (I - A X) Gᴴ X Xᴴ + Xᴴ X Gᴴ (I - X A) with X = A⁺ and G = X̄, by Golub and Pereyra 1973.

    In the r singular vectors, P = Vᴴ G U: Ā = U K Vᴴ + Gᴴ V S⁻² Vᴴ + U S⁻² Uᴴ Gᴴ, K = -S⁻¹ P S⁻¹ - Pᴴ S⁻² - S⁻² Pᴴ.
    Where r is m the parts with I - A X are 0, where r is n those with I - X A.
    """
    build, ranked = k.build, k.smaller(m, n)
    parts = k.take_parts(work, _sizes(build, m, n, ranked))
    u, vt, bar = Matrix(u_data, ldu), Matrix(vt_data, ldvt), Matrix(shadow, m)
    g = Matrix(shadow, n)
    gu, gv, scaled = Matrix(parts[0], n), Matrix(parts[1], m), Matrix(parts[2], m)
    p, core = Matrix(parts[3], ranked), Matrix(parts[4], ranked)
    outside_u, outside_v = build.icmp("slt", rank, m), build.icmp("slt", rank, n)

    def value(j: Value) -> Number:
        return k.real.item(s, j)

    with k.when(any_nonzero(k, n, m, g)):
        k.multiply(n, rank, m, ("n", g), ("n", u), gu)
        k.multiply(m, rank, n, ("c", g), ("c", vt), gv)
        k.multiply(rank, rank, n, ("n", vt), ("n", gu), p)
        with k.loop(rank) as j:
            with k.loop(rank) as i:
                inverted = k.quotient(k.load(p, i, j), value(i) * value(j))
                by_u = choose(outside_u, k.quotient(k.load(p, j, i).conj(), value(j) * value(j)), k.nothing)
                by_v = choose(outside_v, k.quotient(k.load(p, j, i).conj(), value(i) * value(i)), k.nothing)
                k.store(-(inverted + by_u + by_v), core, i, j)
            with k.loop(m) as i:
                k.store(k.quotient(k.load(gv, i, j), value(j) * value(j)), gv, i, j)
                k.store(k.load(u, i, j) / (value(j) * value(j)), scaled, i, j)
        with k.when(build.xor(outside_u, const_int(outside_u.type, 1))), k.loop(rank) as j, k.loop(m) as i:
            k.store(k.nothing, gv, i, j)
        k.multiply(m, rank, rank, ("n", u), ("n", core), gv, keep=1.0)
        k.multiply(m, n, rank, ("n", gv), ("n", vt), bar)
        with k.when(outside_v):
            k.multiply(m, n, rank, ("n", scaled), ("c", gu), bar, keep=1.0)
