"""Singular values as Numba calls them: `np.linalg.svd`; built of it `cond`, `norm(…, 2)` and, as a whole, `pinv`.

    numba_ez_gesdd(kind, jobz, m, n, a, lda, s, u, ldu, vt, ldvt)                    jobz N: s only; S: k = min(m, n)
                                                                                     columns of u and rows of vt; A: all

`a` is destroyed. Vectors of equal singular values are not a function of the matrix; a pair of complex ones is one up to
a phase; see `spectra`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.values import ConstantInt, Value, const_int
from irad.rules.blas.elements import Number, choose, element_of
from irad.rules.lapack.matrices import I64, NONE, ONE, PTR, Kernel, Matrix, copy_part, given, kernel, take_vector
from irad.rules.lapack.parts import (
    check_letters,
    copied,
    extent,
    kept_result,
    letter,
    shadow_or_null,
    workspace,
)
from irad.rules.lapack.pseudo_inverse import keep_decomposition, product_behind, reverse_decomposition
from irad.rules.lapack.spectra import all_zero, over_gap, settled_phase, turn_of
from irad.ruleset.interface import AugmentedContext, CallRule, Effects, ReverseContext, Rule

_NUMPY: Final = "np.linalg.svd"
_I8: Final = types.I8
_GESDD: Final = types.function_type(types.I32, (_I8, _I8, I64, I64, PTR, I64, PTR, PTR, I64, PTR, I64))
_POLICY: Final = (
    "equal singular values: NaN if cotangents reach their vectors; of the values, that of the vectors LAPACK finds; of "
    "single vectors beyond the rank of the thin form: NaN"
)
_TOWNSEND: Final = "Townsend 2016, Differentiating the singular value decomposition; Giles 2008"


# ------------------------------------------------------------------------------------------------ decomposition


def _decompose_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, jobz, m, n, a, lda, s, u, ldu, vt, ldvt = call.arguments
    element, build = element_of(kind, _NUMPY), context.before
    rows, columns = context.value(m), context.value(n)
    if _values_only(jobz):
        matrix = copied(context, build, a, element, extent(build, rows, columns, context.value(lda)))
        return matrix, workspace(context, element, size_of_workspace(build, rows, columns))
    if product_behind(call) is not None:
        return keep_decomposition(context, call, element)
    width, height = _extents(build, context.value(jobz), rows, columns)
    ranked = build.intrinsic("llvm.smin.i64", I64, [rows, columns])
    left = kept_result(context, u, element, extent(build, rows, width, context.value(ldu)))
    right = kept_result(context, vt, element, extent(build, height, columns, context.value(ldvt)))
    square = build.add(build.mul(width, width), build.mul(height, height))
    other = build.mul(build.add(rows, width), height)
    size = build.add(build.add(square, other), build.add(build.mul(ranked, columns), ranked))
    return left, right, kept_result(context, s, element.real, ranked), workspace(context, element, size)


def _values_only(jobz: Value) -> bool:
    """Whether no vectors are asked for; refuses where that is chosen at run time. Thin or full may be."""
    if isinstance(jobz, ConstantInt):
        return letter(jobz, "NSA", _NUMPY) == "N"
    check_letters(jobz, "SA", _NUMPY)
    return False


def _extents(build: Builder, jobz: Value, rows: Value, columns: Value) -> tuple[Value, Value]:
    """Columns of u and rows of vt."""
    ranked = build.intrinsic("llvm.smin.i64", I64, [rows, columns])
    full = build.icmp("eq", build.and_(jobz, const_int(_I8, 0xDF - 0x100)), const_int(_I8, ord("A")))
    return build.select(full, rows, ranked), build.select(full, columns, ranked)


def _decompose_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, jobz, m, n, a, lda, s, u, ldu, vt, ldvt = call.arguments
    if not context.is_active(a):
        return
    element, build = element_of(kind, _NUMPY), context.builder
    rows, columns, lead = (context.value(v) for v in (m, n, lda))
    if _values_only(jobz):
        matrix, work = (context.value(v) for v in saved)
        alone = (I64, I64, PTR, PTR, PTR, I64, PTR)
        function = kernel(build.module, "svdvals_adjoint", element, alone, _values_alone_kernel)
        shadows = [shadow_or_null(context, s), context.shadow(a)]
        build.call(function, [rows, columns, matrix, *shadows, lead, work])
        return
    product = product_behind(call)
    if product is not None:
        reverse_decomposition(context, call, element, saved, product)
        return
    left, right, values, work = (context.value(v) for v in saved)
    parameters = (I64, I64, I64, I64, PTR, I64, PTR, I64, PTR, PTR, PTR, PTR, PTR, I64, PTR)
    function = kernel(build.module, "svd_adjoint", element, parameters, _decompose_kernel)
    extents = _extents(build, context.value(jobz), rows, columns)
    vectors = [left, context.value(ldu), right, context.value(ldvt), values]
    shadows = [shadow_or_null(context, v) for v in (u, vt, s)]
    build.call(function, [rows, columns, *extents, *vectors, *shadows, context.shadow(a), lead, work])


def _decompose_kernel(
    k: Kernel,
    m: Value,
    n: Value,
    width: Value,
    height: Value,
    u_data: Value,
    ldu: Value,
    vt_data: Value,
    ldvt: Value,
    s: Value,
    u_shadow: Value,
    vt_shadow: Value,
    s_shadow: Value,
    shadow: Value,
    lead: Value,
    work: Value,
) -> None:
    """Ā = U C Vᴴ, and what leaves the spaces of thin U and V.

    With X = Uᴴ Ū - Ūᴴ U, Y = Vᴴ V̄ - V̄ᴴ V: C = diag(s̄) + (X + Y)ᵢⱼ / 2 (sⱼ - sᵢ) + (X - Y)ᵢⱼ / 2 (sⱼ + sᵢ); towards the
    further columns of full U it is Xᵢⱼ / sⱼ, of full V -Yᵢⱼ / sᵢ.
    """
    build, ranked = k.build, k.smaller(m, n)
    mul = build.mul
    sizes = [mul(width, width), mul(height, height), mul(width, height), mul(m, height), mul(ranked, n), ranked]
    left, right, inner, product, wide, s_bar = k.take_parts(work, sizes)
    u, vt, bar = Matrix(u_data, ldu), Matrix(vt_data, ldvt), Matrix(shadow, lead)
    u_bar, vt_bar = Matrix(u_shadow, ldu), Matrix(vt_shadow, ldvt)
    gu, gv, core = Matrix(left, width), Matrix(right, height), Matrix(inner, width)
    take_vector(k.real, ranked, s_shadow, s_bar)
    _inner_products(k, width, m, ("c", u), ("n", u_bar), gu)
    _inner_products(k, height, n, ("n", vt), ("c", vt_bar), gv)
    if k.element.is_complex:
        _settle_phases(k, m, n, (u, u_bar, gu), (vt, vt_bar, gv))
    _fill_core(k, ranked, width, height, gu, gv, s, s_bar, core)
    _check_complement(k, ranked, width, gu, core)
    _check_complement(k, ranked, height, gv, core)
    total, thin = Matrix(product, m), Matrix(wide, ranked)
    tall, flat = build.icmp("slt", width, m), build.icmp("slt", height, n)
    with k.when(tall), k.loop(ranked) as j, k.loop(ranked) as i:  # minus the part of Ū in the space of U
        k.store(k.load(core, i, j) - k.quotient(k.load(gu, i, j), k.real.item(s, j)), core, i, j)
    with k.when(flat), k.loop(ranked) as j, k.loop(ranked) as i:
        k.store(k.load(core, i, j) - k.quotient(k.load(gv, j, i).conj(), k.real.item(s, i)), core, i, j)
    k.multiply(m, height, width, ("n", u), ("n", core), total)
    with k.when(build.and_(tall, given(k, u_shadow))), k.loop(ranked) as j, k.loop(m) as i:
        k.store(k.load(total, i, j) + k.quotient(k.load(u_bar, i, j), k.real.item(s, j)), total, i, j)
    k.multiply(m, n, height, ("n", total), ("n", vt), bar)
    with k.when(build.and_(flat, given(k, vt_shadow))):
        with k.loop(n) as j, k.loop(ranked) as i:
            k.store(k.quotient(k.load(vt_bar, i, j), k.real.item(s, i)), thin, i, j)
        k.multiply(m, n, ranked, ("n", u), ("n", thin), bar, keep=1.0)
    _clear(k, m, width, u_bar)
    _clear(k, height, n, vt_bar)


def _settle_phases(
    k: Kernel,
    m: Value,
    n: Value,
    left: tuple[Matrix, Matrix, Matrix],
    right: tuple[Matrix, Matrix, Matrix],
) -> None:
    """Adds to the inner products what the phases of pairs of vectors ask for.

    `gebrd` leaves the first components of all v real, or, if there are more columns than rows, those of all u; but for
    many more columns `gesdd` takes an LQ factorisation first, and then none are. By then there are 17/9 of the rows in
    LAPACK itself; three halves keep some distance.

    Args:
        k: where to.
        m, n: rows and columns.
        left, right: u, its cotangent and `Uᴴ Ū`; vᴴ, its cotangent and `Vᴴ V̄`. Cotangents may be null.
    """
    build, wide = k.build, k.build.icmp("slt", m, n)
    (u, _, gu), (vt, _, gv) = left, right
    near = build.icmp("slt", build.mul(n, const_int(I64, 2)), build.mul(m, const_int(I64, 3)))
    known = build.or_(build.icmp("sge", m, n), near)
    with k.loop(k.smaller(m, n)) as j:
        turned, size = _turn_of_pair(k, m, n, j, left[:2], right[:2])
        anchor = choose(wide, k.load(u, NONE, j), k.load(vt, j, NONE))
        angle = settled_phase(k, turned, size, anchor, known)
        with k.when(wide), k.loop(m) as i:
            k.store(k.load(gu, i, j) - (angle * k.load(u, NONE, i).conj()).times_i(), gu, i, j)
        with k.when(build.icmp("sge", m, n)), k.loop(n) as i:
            k.store(k.load(gv, i, j) - (angle * k.load(vt, i, NONE)).times_i(), gv, i, j)


def _turn_of_pair(
    k: Kernel, m: Value, n: Value, j: Value, left: tuple[Matrix, Matrix], right: tuple[Matrix, Matrix]
) -> tuple[Number, Number]:
    """`turn_of` the vectors of one singular value together."""
    turned, size = k.real.variable(k.nothing), k.real.variable(k.nothing)
    readers = (
        (m, left[1], lambda i: (k.load(left[0], i, j), k.load(left[1], i, j))),
        (n, right[1], lambda i: (k.load(right[0], j, i).conj(), k.load(right[1], j, i).conj())),
    )
    for length, shadow, read in readers:
        with k.when(given(k, shadow.data)):
            by_phase, terms = turn_of(k, length, read)
            k.real.add_to(turned, by_phase)
            k.real.add_to(size, terms)
    return k.real.read(turned), k.real.read(size)


def _clear(k: Kernel, rows: Value, columns: Value, shadow: Matrix) -> None:
    with k.when(given(k, shadow.data)), k.loop(columns) as j, k.loop(rows) as i:
        k.store(k.nothing, shadow, i, j)


def _inner_products(
    k: Kernel, size: Value, inner: Value, vectors: tuple[str, Matrix], shadow: tuple[str, Matrix], target: Matrix
) -> None:
    """Of vectors and cotangents; 0 where there is no cotangent."""
    with k.loop(size) as j, k.loop(size) as i:
        k.store(k.nothing, target, i, j)
    with k.when(given(k, shadow[1].data)):
        k.multiply(size, size, inner, vectors, shadow, target)


def _fill_core(
    k: Kernel, ranked: Value, width: Value, height: Value, gu: Matrix, gv: Matrix, s: Value, s_bar: Value, core: Matrix
) -> None:
    half, largest = k.number(0.5), k.real.item(s, NONE)

    def skew(g: Matrix, i: Value, j: Value) -> Number:
        return k.load(g, i, j) - k.load(g, j, i).conj()

    with k.loop(ranked) as j:
        with k.loop(ranked) as i:
            x, y, s_i, s_j = skew(gu, i, j), skew(gv, i, j), k.real.item(s, i), k.real.item(s, j)
            diagonal = k.build.icmp("eq", i, j)
            silent = all_zero(k, *(k.load(g, *place) for g in (gu, gv) for place in ((i, j), (j, i))))
            apart = over_gap(k, half * (x + y), s_j - s_i, largest, silent)
            together = k.quotient(half * (x - y), s_j + s_i)
            k.store(choose(diagonal, k.real.item(s_bar, j), apart) + together, core, i, j)
        with k.loop(width, ranked) as i:
            k.store(k.quotient(skew(gu, i, j), k.real.item(s, j)), core, i, j)
    with k.loop(height, ranked) as j, k.loop(ranked) as i:
        k.store(-k.quotient(skew(gv, i, j), k.real.item(s, i)), core, i, j)


def _check_complement(k: Kernel, ranked: Value, size: Value, g: Matrix, core: Matrix) -> None:
    """The further vectors of full U or V are any basis of their space: NaN if the cotangent asks for one of them."""
    largest = k.real.variable(k.nothing)
    with k.loop(size) as j, k.loop(size) as i:
        k.real.write(k.real.read(largest).maximum(k.load(g, i, j).magnitude()), largest)
    noise = k.number(1024.0 * k.element.epsilon) * k.real.read(largest)
    with k.loop(size, ranked) as j, k.loop(k.build.add(j, ONE), ranked) as i:
        turned = (k.load(g, i, j) - k.load(g, j, i).conj()).magnitude()
        with k.when(turned > noise):
            k.store(k.number(math.nan), core, NONE, NONE)


# ------------------------------------------------------------------------------------------------ values only


def size_of_workspace(build: Builder, rows: Value, columns: Value) -> Value:
    """Elements of working memory that `add_singular_values` needs."""
    ranked = build.intrinsic("llvm.smin.i64", I64, [rows, columns])
    vectors = build.mul(build.add(build.add(rows, columns), const_int(I64, 2)), ranked)
    return build.add(build.mul(rows, columns), vectors)


def add_singular_values(k: Kernel, m: Value, n: Value, a: Matrix, s_shadow: Value, shadow: Matrix, work: Value) -> None:
    """`shadow += U diag(s̄) Vᴴ`, with the vectors computed for it; takes the cotangent of the values."""
    function = kernel(k.build.module, "singular_values_adjoint", k.element, _VALUES, _values_kernel)
    k.build.call(function, [m, n, a.data, a.leading, s_shadow, shadow.data, shadow.leading, work])


_VALUES: Final = (I64, I64, PTR, I64, PTR, PTR, I64, PTR)


def _values_kernel(
    k: Kernel,
    m: Value,
    n: Value,
    matrix: Value,
    lead: Value,
    s_shadow: Value,
    shadow: Value,
    leading: Value,
    work: Value,
) -> None:
    build, ranked = k.build, k.smaller(m, n)
    sizes = [build.mul(m, n), build.mul(m, ranked), build.mul(ranked, n), ranked, ranked]
    copy, left, right, s, s_bar = k.take_parts(work, sizes)
    u, vt = Matrix(left, m), Matrix(right, ranked)
    take_vector(k.real, ranked, s_shadow, s_bar)
    copy_part(k, "all", m, n, Matrix(matrix, lead), Matrix(copy, m))
    gesdd = build.module.declare("numba_ez_gesdd", _GESDD)
    build.call(gesdd, [k.letter, const_int(_I8, ord("S")), m, n, copy, m, s, left, m, right, ranked])
    with k.loop(ranked) as j, k.loop(m) as i:
        k.store(k.load(u, i, j) * k.real.item(s_bar, j), u, i, j)
    k.multiply(m, n, ranked, ("n", u), ("n", vt), Matrix(shadow, leading), keep=1.0)


def _values_alone_kernel(
    k: Kernel, m: Value, n: Value, matrix: Value, s_shadow: Value, shadow: Value, lead: Value, work: Value
) -> None:
    """Ā = U diag(s̄) Vᴴ."""
    _clear(k, m, n, Matrix(shadow, lead))
    add_singular_values(k, m, n, Matrix(matrix, lead), s_shadow, Matrix(shadow, lead), work)


# ------------------------------------------------------------------------------------------------ rules


def _effects(reads: tuple[int, ...], writes: tuple[int, ...]) -> Effects:
    return Effects(reads=frozenset(reads), writes=frozenset(writes), other=False)


RULES: Final[tuple[Rule, ...]] = (
    CallRule(
        ("numba_ez_gesdd",), _effects((4,), (4, 6, 7, 9)), _decompose_reverse, _decompose_augmented, _TOWNSEND, _POLICY
    ),
)
