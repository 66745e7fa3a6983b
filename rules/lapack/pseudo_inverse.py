"""The pseudo-inverse as Numba computes it: `np.linalg.pinv` is a thin SVD, a scaling, and a product.

    gesdd('S', m, n, a, …, s, u, vt)                         a = U S Vᴴ; a is destroyed
    vt *= 1 / s, or u *= 1 / s                               for the r singular values above the threshold
    gemm('C', 'C', n, m, r, 1, vt, u, 0, a)                  a = A⁺

Taken one by one, the adjoint would go through singular vectors, which equal singular values leave open, though A⁺ does
not depend on the choice. So the two calls are recognised as a pair, by the memory that they share: the product passes
on the cotangent of A⁺ in the shadow of `a`, and the decomposition makes that of A from it. In forward mode the
decomposition leaves Ȧ there, and the product makes the tangent of A⁺ from it.

That holds as long as nothing else sees the vectors. A derivative of a pseudo-inverse does, so where it is to be
differentiated, it calls the decomposition with a small letter, which means the same and is not a pair's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from irad.ir.instructions import CallSite
from irad.ir.values import ConstantInt, TrackedValue, Value, const_int
from irad.rules.dense.adjoint import Adjoint, IsActive, MatrixShape, Room, Shapes, Sizes
from irad.rules.dense.elements import Scalar, choose, quotient_or_zero
from irad.rules.dense.kernel import I8, Kernel
from irad.rules.dense.matrix import Matrix, Vector
from irad.rules.dense.saved import same
from irad.rules.dense.tangent import Differential, Tangent
from irad.ruleset.expr import call_function
from irad.ruleset.guards import zero_of
from irad.ruleset.interface import CopyContext

_OPENS_DERIVATIVE: Final = "irad.arena_new"
_DECOMPOSITION: Final = "numba_ez_gesdd"
_PRODUCT: Final = "numba_xxgemm"
_CONJUGATED: Final = ord("C")
_THIN: Final = ord("S")
_ALSO_THIN: Final = ord("s")  # LAPACK does not tell letters apart by their size


def ends_pseudo_inverse(product: CallSite) -> bool:
    """True if a matrix product is the last step of a pseudo-inverse."""
    vectors = product.arguments[7]
    return any(product_behind(call) is product for call in _calls(vectors, _DECOMPOSITION))


def product_behind(decomposition: CallSite) -> CallSite | None:
    """The product that makes a pseudo-inverse of a decomposition, if there is one.

    None in a program with derivatives: those of a pseudo-inverse read the singular vectors, too, which therefore have
    to have derivatives themselves.
    """
    assert decomposition.block is not None
    assert decomposition.block.function is not None
    module = decomposition.block.function.module
    if module is not None and _OPENS_DERIVATIVE in module.functions:
        return None
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


def part_the_pair(context: CopyContext, decomposition: CallSite) -> None:
    """Keeps the next derivative, if there is going to be one, from taking the two calls of this one for a pair."""
    call = context.value(decomposition)
    if context.after.module.opaque_guards and isinstance(call, CallSite):
        call.set_operand(call.operands.index(decomposition.arguments[1]), const_int(I8, _ALSO_THIN))


def room_for_pseudo_inverse(sizes: Sizes, _: IsActive) -> Room:
    """G U, Gᴴ V, scaled U; P, C."""
    m, n, ranked = sizes["m"], sizes["n"], sizes.smaller("m", "n")
    return Room([(n, ranked), (m, ranked), (m, ranked), (ranked, ranked), (ranked, ranked)])


def pseudo_inverse_adjoint(r: Adjoint) -> None:
    """Ā = U C Vᴴ, and what leaves the spaces of thin U and V.

    Of the first r singular values the inverses count, of the others none: A⁺ = V F Uᴴ, F = diag(1/s₁ … 1/sᵣ, 0 … 0).
    With G the cotangent of A⁺ and P = Vᴴ G U, Cᵢⱼ = -Pᵢⱼ / sᵢ sⱼ for i, j ≤ r; where one of them is a, and the other
    one b > r, it is (Pᵢⱼ s_b / s_a + conj(Pⱼᵢ)) / (s_a² - s_b²); else 0. Towards what is outside the thin U it is
    Gᴴ V F² Vᴴ, outside V U F² Uᴴ Gᴴ. Where all others are 0 that is the formula of Golub and Pereyra 1973.
    """
    k, build, m, n, rank = r.k, r.k.build, r.sizes["m"], r.sizes["n"], r.sizes["rank"]
    u, vt, s = r.matrix("new u"), r.matrix("new vt"), r.vector("new s")
    gu, gv, scaled, p, core = r.work.matrices
    bar, g = Matrix.dense(k, r.shadows["a"], m, n), Matrix.dense(k, r.shadows["a"], n, m)
    outside_u, outside_v = build.icmp("slt", s.size, m), build.icmp("slt", s.size, n)

    with k.when(g.counts()):
        gu.set(g @ u)
        gv.set(g.H @ vt.H)
        p.set(vt @ gu)
        with k.loop(s.size) as j:
            counts_j = build.icmp("slt", j, rank)
            with k.loop(s.size) as i:
                counts_i, turned = build.icmp("slt", i, rank), p[j, i].conj()
                from_u = choose(build.and_(outside_u, counts_j), quotient_or_zero(turned, s[j] * s[j]), 0.0)
                from_v = choose(build.and_(outside_v, counts_i), quotient_or_zero(turned, s[i] * s[i]), 0.0)
                core[i, j] = _between(k, counts_i, counts_j, s[i], s[j], p[i, j], turned) - (from_u + from_v)
            with k.loop(m) as i:
                gv[i, j] = choose(counts_j, quotient_or_zero(gv[i, j], s[j] * s[j]), 0.0)
                scaled[i, j] = choose(counts_j, u[i, j] / (s[j] * s[j]), 0.0)
        with k.unless(outside_u):
            gv.clear()
        gv.add(u @ core)
        bar.set(gv @ vt)
        with k.when(outside_v):
            bar.add(scaled @ gu.H)


def _between(
    k: Kernel, counts_i: Value, counts_j: Value, s_i: Scalar, s_j: Scalar, p: Scalar, turned: Scalar
) -> Scalar:
    """An element of C, or of the tangent's K: of two singular values of which both, one or none count.

    Where the one that does not count is rounding error, the rank is deficient. How its vectors turn is not known then,
    nor the next derivative, which is NaN.
    """
    build = k.build
    larger, smaller = choose(counts_i, s_i, s_j), choose(counts_i, s_j, s_i)
    one = quotient_or_zero(p * (smaller / larger) + turned, (larger - smaller) * (larger + smaller))
    if build.module.opaque_guards:
        is_noise, steep = smaller <= math.sqrt(k.element.epsilon) * larger, (math.inf * smaller).parts[0]
        nothing = call_function("as_identity", build, [zero_of(steep.type), steep], k.element.scalar)
        one = one + choose(is_noise, Scalar(build, (nothing,)), 0.0)
    either = choose(build.or_(counts_i, counts_j), one, 0.0)
    return choose(build.and_(counts_i, counts_j), -quotient_or_zero(p, s_i * s_j), either)


# ------------------------------------------------------------------------------------------------ tangent


def _tangent_room(sizes: Sizes, _: IsActive) -> Room:
    """U, Vᴴ, Ȧ V, Uᴴ Ȧ, V K; P, K; the singular values."""
    m, n, ranked = sizes["m"], sizes["n"], sizes.smaller("m", "n")
    tall, flat, small = (m, ranked), (ranked, n), (ranked, ranked)
    return Room([tall, flat, tall, flat, (n, ranked), small, small], reals=[ranked])


def _tangent(r: Tangent) -> None:
    """Ẋ = V K Uᴴ, and what leaves the spaces of thin U and V, with X = A⁺.

    With P = Uᴴ Ȧ V, K is made of it as C of P in the adjoint. Towards what is outside the thin U it is V F² (Ȧ V)ᴴ,
    outside V Ȧᴴ U F² Uᴴ. The first r columns of u, or rows of vt, have been scaled: F is the product of their lengths.
    """
    k, build, m, n, rank = r.k, r.k.build, r.sizes["m"], r.sizes["n"], r.sizes["k"]
    u, vt, tangent_v, u_tangent, product, p, core = r.work.matrices
    s, x_dot, ranked = r.work.reals[0], r.tangent("a"), r.work.reals[0].size
    a_dot = Matrix.dense(k, x_dot.data, m, n)
    outside_u, outside_v = build.icmp("slt", ranked, m), build.icmp("slt", ranked, n)

    def counts(i: Value) -> Value:
        return build.icmp("slt", i, rank)

    with k.when(a_dot.counts()):
        _normalise(r.matrix("u").sized(m, ranked), r.matrix("vt").sized(ranked, n), u, vt, s)
        s.fill(lambda j: choose(counts(j), k.real.number(1.0) / s[j], Vector(k.real, r.sizes["s"], ranked)[j]))
        tangent_v.set(a_dot @ vt.H)
        u_tangent.set(u.H @ a_dot)
        p.set(u.H @ tangent_v)
        with core.each() as (i, j):
            turned = p[j, i].conj()
            total = _between(k, counts(i), counts(j), s[i], s[j], p[i, j], turned)
            total = total - choose(build.and_(outside_u, counts(i)), quotient_or_zero(turned, s[i] * s[i]), 0.0)
            core[i, j] = total - choose(build.and_(outside_v, counts(j)), quotient_or_zero(turned, s[j] * s[j]), 0.0)
        product.set(vt.H @ core)
        with k.when(outside_v), product.each() as (i, j):
            product[i, j] = product[i, j] + choose(counts(j), u_tangent[j, i].conj() / (s[j] * s[j]), 0.0)
        x_dot.set(product @ u.H)
        with k.when(outside_u):
            vt.fill(lambda i, j: choose(counts(i), vt[i, j] / (s[i] * s[i]), 0.0))
            x_dot.add(vt.H @ tangent_v.H)


def _normalise(u: Matrix, vt: Matrix, left: Matrix, right: Matrix, lengths: Vector) -> None:
    """Sets vectors of length 1, and the products of the lengths that they had."""
    k = u.k

    def length(count: Value, element: Callable[[Value], Scalar]) -> Scalar:
        # Divided by the largest element, squares neither overflow nor vanish.
        largest, squares = k.real.variable(), k.real.variable()
        with k.loop(count) as i:
            largest.value = largest.value.maximum(element(i).magnitude())
        with k.loop(count) as i:
            squares.accumulate((element(i) / largest.value).square())
        return largest.value * squares.value.root()

    with k.loop(lengths.size) as j:
        of_u = length(u.rows, lambda i: u[i, j])
        of_v = length(vt.columns, lambda i: vt[j, i])
        lengths[j] = of_u * of_v
        with k.loop(u.rows) as i:
            left[i, j] = u[i, j] / of_u
        with k.loop(vt.columns) as i:
            right[j, i] = vt[j, i] / of_v


def _singular_values(product: CallSite) -> Value:
    """Address of the singular values, of which the product has inverted those that count."""
    (decomposition,) = (c for c in _calls(product.arguments[7], _DECOMPOSITION) if product_behind(c) is product)
    return decomposition.arguments[6]


PRODUCT_SHAPES: Final[Shapes] = {
    "vt": MatrixShape("k", "n", "ldvt"),
    "u": MatrixShape("m", "k", "ldu"),
    "a": MatrixShape("n", "m", "lda"),
}
PRODUCT_PARAMETERS: Final = "kind _transa _transb n m k _alpha vt ldvt u ldu _beta a lda"
PRODUCT_TANGENT: Final = Differential(_tangent, work=_tangent_room)
PRODUCT_EXTRA: Final = {"s": _singular_values}
