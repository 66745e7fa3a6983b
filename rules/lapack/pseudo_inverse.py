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

from collections.abc import Callable
from typing import Final

from irad.ir.instructions import CallSite
from irad.ir.values import ConstantInt, TrackedValue, Value, const_int
from irad.rules.dense.adjoint import Adjoint, IsActive, MatrixShape, Room, Shapes, Sizes
from irad.rules.dense.elements import Scalar, choose, quotient_or_zero
from irad.rules.dense.kernel import I8
from irad.rules.dense.matrix import Matrix, Vector
from irad.rules.dense.saved import same
from irad.rules.dense.tangent import Differential, Tangent
from irad.ruleset.interface import CopyContext

_OPENS_DERIVATIVE: Final = "irad.arena_new"
_DECOMPOSITION: Final = "numba_ez_gesdd"
_PRODUCT: Final = "numba_xxgemm"
_CONJUGATED: Final = ord("C")
_THIN: Final = ord("S")
_ALSO_THIN: Final = ord("s")  # LAPACK does not tell letters apart by their size


def ends_pseudo_inverse(product: CallSite) -> bool:
    """Whether a matrix product is the last step of a pseudo-inverse."""
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
    """G U, Gᵀ V, scaled U; two small matrices."""
    m, n, ranked = sizes["m"], sizes["n"], sizes.smaller("m", "n")
    return Room([(n, ranked), (m, ranked), (m, ranked), (ranked, ranked), (ranked, ranked)])


def pseudo_inverse_adjoint(r: Adjoint) -> None:
    """Ā = -Xᴴ G Xᴴ + (I - A X) Gᴴ X Xᴴ + Xᴴ X Gᴴ (I - X A) with X = A⁺ and G = X̄, by Golub and Pereyra 1973.

    In the r singular vectors, P = Vᴴ G U: Ā = U K Vᴴ + Gᴴ V S⁻² Vᴴ + U S⁻² Uᴴ Gᴴ, K = -S⁻¹ P S⁻¹ - Pᴴ S⁻² - S⁻² Pᴴ.
    Where r is m the parts with I - A X are 0, where r is n those with I - X A.
    """
    k, build, m, n, rank = r.k, r.k.build, r.sizes["m"], r.sizes["n"], r.sizes["rank"]
    u, vt, s = r.matrix("new u").sized(m, rank), r.matrix("new vt").sized(rank, n), r.vector("new s")
    full_gu, full_gv, scaled, p, core = r.work.matrices
    gu, gv, scaled = full_gu.sized(n, rank), full_gv.sized(m, rank), scaled.sized(m, rank)
    p, core = p.sized(rank, rank), core.sized(rank, rank)
    bar, g = Matrix.dense(k, r.shadows["a"], m, n), Matrix.dense(k, r.shadows["a"], n, m)
    outside_u, outside_v = build.icmp("slt", rank, m), build.icmp("slt", rank, n)

    with k.when(g.counts()):
        gu.set(g @ u)
        gv.set(g.H @ vt.H)
        p.set(vt @ gu)
        with k.loop(rank) as j:
            with k.loop(rank) as i:
                inverted, turned = quotient_or_zero(p[i, j], s[i] * s[j]), p[j, i].conj()
                by_u = choose(outside_u, quotient_or_zero(turned, s[j] * s[j]), 0.0)
                by_v = choose(outside_v, quotient_or_zero(turned, s[i] * s[i]), 0.0)
                core[i, j] = -(inverted + by_u + by_v)
            with k.loop(m) as i:
                gv[i, j] = quotient_or_zero(gv[i, j], s[j] * s[j])
                scaled[i, j] = u[i, j] / (s[j] * s[j])
        with k.unless(outside_u):
            gv.clear()
        gv.add(u @ core)
        bar.set(gv @ vt)
        with k.when(outside_v):
            bar.add(scaled @ gu.H)


# ------------------------------------------------------------------------------------------------ tangent


def _tangent_room(sizes: Sizes, _: IsActive) -> Room:
    """U, Vᴴ, Ȧ V, Uᴴ Ȧ, V K; P, K; the inverse singular values."""
    m, n, rank = sizes["m"], sizes["n"], sizes["k"]
    tall, flat, small = (m, rank), (rank, n), (rank, rank)
    return Room([tall, flat, tall, flat, (n, rank), small, small], reals=[rank])


def _tangent(r: Tangent) -> None:
    """Ẋ = -X Ȧ X + X Xᴴ Ȧᴴ (I - A X) + (I - X A) Ȧᴴ Xᴴ X with X = A⁺, by Golub and Pereyra 1973.

    With P = Uᴴ Ȧ V and T = S⁻¹: Ẋ = V K Uᴴ + V T² (Ȧ V)ᴴ + Ȧᴴ U T² Uᴴ, K = -T P T - T² Pᴴ - Pᴴ T². Where r is m the
    parts with I - A X are 0, where r is n those with I - X A. The columns of u, or the rows of vt, have been scaled:
    T is the product of their lengths.
    """
    k, build, m, n, rank = r.k, r.k.build, r.sizes["m"], r.sizes["n"], r.sizes["k"]
    u, vt, by_v, by_u, product, p, core = r.work.matrices
    inverse, x_dot = r.work.reals[0], r.tangent("a")
    a_dot = Matrix.dense(k, x_dot.data, m, n)
    outside_u, outside_v = build.icmp("slt", rank, m), build.icmp("slt", rank, n)

    with k.when(a_dot.counts()):
        _normalise(r.matrix("u"), r.matrix("vt"), u, vt, inverse)
        by_v.set(a_dot @ vt.H)
        by_u.set(u.H @ a_dot)
        p.set(u.H @ by_v)
        with core.each() as (i, j):
            t_i, t_j, turned = inverse[i], inverse[j], p[j, i].conj()
            total = p[i, j] * t_i * t_j
            total = total + choose(outside_u, turned * t_i * t_i, 0.0)
            core[i, j] = -(total + choose(outside_v, turned * t_j * t_j, 0.0))
        product.set(vt.H @ core)
        with k.when(outside_v), product.each() as (i, j):
            product[i, j] = product[i, j] + by_u[j, i].conj() * inverse[j] * inverse[j]
        x_dot.set(product @ u.H)
        with k.when(outside_u):
            vt.fill(lambda i, j: vt[i, j] * inverse[i] * inverse[i])
            x_dot.add(vt.H @ by_v.H)


def _normalise(u: Matrix, vt: Matrix, left: Matrix, right: Matrix, inverse: Vector) -> None:
    """Sets vectors of length 1, and the products of the lengths that they had."""
    k = u.k

    def length(count: Value, element: Callable[[Value], Scalar]) -> Scalar:
        largest, squares = k.real.variable(), k.real.variable()
        with k.loop(count) as i:
            largest.value = largest.value.maximum(element(i).magnitude())
        with k.loop(count) as i:
            squares.accumulate((element(i) / largest.value).square())
        return largest.value * squares.value.root()

    with k.loop(inverse.size) as j:
        of_u = length(u.rows, lambda i: u[i, j])
        of_v = length(vt.columns, lambda i: vt[j, i])
        inverse[j] = of_u * of_v
        with k.loop(u.rows) as i:
            left[i, j] = u[i, j] / of_u
        with k.loop(vt.columns) as i:
            right[j, i] = vt[j, i] / of_v


PRODUCT_SHAPES: Final[Shapes] = {
    "vt": MatrixShape("k", "n", "ldvt"),
    "u": MatrixShape("m", "k", "ldu"),
    "a": MatrixShape("n", "m", "lda"),
}
PRODUCT_PARAMETERS: Final = "kind _transa _transb n m k _alpha vt ldvt u ldu _beta a lda"
PRODUCT_TANGENT: Final = Differential(_tangent, work=_tangent_room)
