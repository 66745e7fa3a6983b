"""Eigenvalues as Numba calls them: `np.linalg.eigh`, `eig` and what is built of them.

    numba_ez_xxxevd(kind, jobz, uplo, n, a, lda, w)                                     eigh, eigvalsh
    numba_ez_rgeev (kind, jobvl, jobvr, n, a, lda, wr, wi, vl, ldvl, vr, ldvr)          eig, eigvals of real matrices
    numba_ez_cgeev (kind, jobvl, jobvr, n, a, lda, w, vl, ldvl, vr, ldvr)               of complex ones

Where the primal asks for vectors they are kept. Where it asks for values only, the matrix is kept, and the adjoint
computes the vectors that it needs. A real matrix may have pairs of complex eigenvalues; then its adjoint is the real
part of that of a complex matrix.

Vectors of equal values are not a function of the matrix: any rotation of them serves. If cotangents come in for those,
the gradient is NaN (`over_gap`); equal values without cotangents of their vectors are no trouble. A complex vector is
one up to a phase, which LAPACK chooses (`settled_phase`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.module import Function, Module
from irad.ir.values import Value, const_int, zero
from irad.rules.blas.elements import Element, Number, choose, element_of
from irad.rules.lapack.matrices import (
    I64,
    NONE,
    ONE,
    PTR,
    Kernel,
    Matrix,
    any_nonzero,
    copy_part,
    given,
    kernel,
    take_vector,
    transpose,
)
from irad.rules.lapack.parts import copied, extent, kept_result, letter, shadow_or_null, workspace
from irad.ruleset.interface import AugmentedContext, CallRule, Effects, ReverseContext, Rule

_I8: Final = types.I8
_TRUE: Final = const_int(types.I1, 1)
_EQUAL: Final = (
    "equal eigenvalues: NaN if cotangents reach their vectors; of the values, that of the vectors LAPACK finds"
)
_DEFECTIVE: Final = _EQUAL + "; no full set of eigenvectors: NaN"
_GILES: Final = (
    "Giles 2008, Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
)
_EVD: Final = types.function_type(types.I32, (_I8, _I8, _I8, I64, PTR, I64, PTR))
_CGEEV: Final = types.function_type(types.I32, (_I8, _I8, _I8, I64, PTR, I64, PTR, PTR, I64, PTR, I64))
_RGEEV: Final = types.function_type(types.I32, (_I8, _I8, _I8, I64, PTR, I64, PTR, PTR, PTR, I64, PTR, I64))
_GESV: Final = types.function_type(types.I32, (_I8, I64, I64, PTR, I64, PTR, PTR, I64))


def over_gap(k: Kernel, numerator: Number, gap: Number, largest: Number, silent: Value) -> Number:
    """`numerator / gap` of two eigenvalues or singular values.

    A gap that is rounding error in comparison with the ``largest`` value gives NaN: the numerator of a function that
    does not mind how the vectors are turned is 0 there too, and the limit of the quotient is not known. The result is 0
    where the cotangents are ``silent``.
    """
    tied = gap.magnitude() <= k.number(8.0 * k.element.epsilon) * largest
    return choose(silent, k.nothing, choose(tied, k.number(math.nan), k.quotient(numerator, gap)))


def all_zero(k: Kernel, *values: Number) -> Value:
    """Whether all numbers are 0."""
    return functools.reduce(k.build.and_, [value.is_zero() for value in values])


def settled_phase(k: Kernel, turned: Number, size: Number, anchor: Number, known: Value = _TRUE) -> Number:
    """What LAPACK's choice of a complex vector's phase contributes: one component, the anchor, is real.

    Where another change would turn the vector by an angle, it is turned back by the anchor's. So i times the result is
    to be taken from the anchor's cotangent. Functions that do not mind the phase have no such turn. Where another has
    one, and the anchor is not known, or too small to tell a phase, the result is NaN.

    Args:
        k: where to.
        turned: the derivative with respect to the angle by which the vector is turned.
        size: of the terms that it is the sum of.
        anchor: the component.
        known: whether LAPACK is known to make it real.
    """
    telling = anchor.real.magnitude() > k.number(math.sqrt(k.element.epsilon))
    fixed = k.build.and_(known, k.build.and_(anchor.imag.is_zero(), telling))
    angle = choose(fixed, turned / anchor.real, k.number(math.nan))
    return choose(turned.magnitude() > k.number(1024.0 * k.element.epsilon) * size, angle, k.nothing)


def turn_of(k: Kernel, count: Value, read: Callable[[Value], tuple[Number, Number]]) -> tuple[Number, Number]:
    """The derivative with respect to a vector's phase, `Im(vᴴ v̄)`, and the size of its terms; ``read``: vᵢ and v̄ᵢ."""
    turned, size = k.real.variable(k.nothing), k.real.variable(k.nothing)
    with k.loop(count) as i:
        x, x_bar = read(i)
        k.real.add_to(turned, (x.conj() * x_bar).imag)
        k.real.add_to(size, x.magnitude() * x_bar.magnitude())
    return k.real.read(turned), k.real.read(size)


# ------------------------------------------------------------------------------------------------ Hermitian matrices


def _symmetric_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, jobz, uplo, n, a, lda, w = call.arguments
    element, build = element_of(kind, "np.linalg.eigh"), context.before
    letter(uplo, "L", "np.linalg.eigh")
    size, lead = context.value(n), context.value(lda)
    count = extent(build, size, size, lead)
    if letter(jobz, "NV", "np.linalg.eigh") == "N":
        return copied(context, build, a, element, count), workspace(context, element, _polynomial(build, size, 3, 2))
    work = workspace(context, element, _polynomial(build, size, 2, 1))
    return kept_result(context, a, element, count), work, kept_result(context, w, element.real, size)


def _symmetric_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, jobz, _, n, a, lda, w = call.arguments
    if not context.is_active(a):
        return
    element, build = element_of(kind, "np.linalg.eigh"), context.builder
    size, lead = context.value(n), context.value(lda)
    matrix, work, *values = (context.value(v) for v in saved)
    shadows = [context.shadow(a), shadow_or_null(context, w)]
    if letter(jobz, "NV", "np.linalg.eigh") == "N":
        function = kernel(build.module, "eigvalsh_adjoint", element, (I64, PTR, I64, PTR, PTR, PTR), _eigvalsh_kernel)
    else:
        function = kernel(build.module, "eigh_adjoint", element, (I64, PTR, I64, PTR, PTR, PTR, PTR), _eigh_kernel)
    build.call(function, [size, matrix, lead, *values, *shadows, work])


def _eigh_kernel(
    k: Kernel, n: Value, vectors: Value, lead: Value, values: Value, shadow: Value, w_shadow: Value, work: Value
) -> None:
    """Ā = V K Vᴴ, K = diag(w̄) + (Vᴴ V̄ - V̄ᴴ V)ᵢⱼ / 2 (wⱼ - wᵢ)."""
    square = k.build.mul(n, n)
    one, two, w_bar = k.take_parts(work, [square, square, n])
    v, bar, m, core = Matrix(vectors, lead), Matrix(shadow, lead), Matrix(one, n), Matrix(two, n)
    take_vector(k.real, n, w_shadow, w_bar)
    if k.element.is_complex:
        _settle_first_components(k, n, v, bar)
    k.multiply(n, n, n, ("c", v), ("n", bar), m)
    largest = k.real.read(_largest(k.real, n, values))
    with k.loop(n) as j:
        with k.loop(j) as i:
            gap, products = k.real.item(values, j) - k.real.item(values, i), (k.load(m, i, j), k.load(m, j, i).conj())
            half = k.number(0.5) * (products[0] - products[1])
            entry = over_gap(k, half, gap, largest, all_zero(k, *products))
            k.store(entry, core, i, j)
            k.store(entry.conj(), core, j, i)
        k.store(k.real.item(w_bar, j), core, j, j)
    k.multiply(n, n, n, ("n", v), ("n", core), m)
    k.multiply(n, n, n, ("n", m), ("c", v), core)
    copy_part(k, "strictly_lower", n, n, bar, bar)  # clears the upper triangle, which is not read
    _fold_lower(k, n, core, bar)


def _settle_first_components(k: Kernel, n: Value, v: Matrix, bar: Matrix) -> None:
    """The reduction to a tridiagonal matrix by `hetrd` leaves the first components of all vectors real."""
    with k.loop(n) as j:
        turned, size = turn_of(k, n, lambda i: (k.load(v, i, j), k.load(bar, i, j)))
        angle = settled_phase(k, turned, size, k.load(v, NONE, j))
        k.store(k.load(bar, NONE, j) - angle.times_i(), bar, NONE, j)


def _eigvalsh_kernel(
    k: Kernel, n: Value, matrix: Value, lead: Value, shadow: Value, w_shadow: Value, work: Value
) -> None:
    """Ā = V diag(w̄) Vᴴ; the shadow's upper triangle stays: LAPACK does not touch that of the matrix."""
    square = k.build.mul(n, n)
    one, two, three, w, w_bar = k.take_parts(work, [square, square, square, n, n])
    v, scaled, core = Matrix(one, n), Matrix(two, n), Matrix(three, n)
    take_vector(k.real, n, w_shadow, w_bar)
    copy_part(k, "all", n, n, Matrix(matrix, lead), v)
    arguments = [k.letter, const_int(_I8, ord("V")), const_int(_I8, ord("L")), n, v.data, n, w]
    k.build.call(k.build.module.declare("numba_ez_xxxevd", _EVD), arguments)
    with k.loop(n) as j, k.loop(n) as i:
        k.store(k.load(v, i, j) * k.real.item(w_bar, j), scaled, i, j)
    k.multiply(n, n, n, ("n", scaled), ("c", v), core)
    _fold_lower(k, n, core, Matrix(shadow, lead))


def _fold_lower(k: Kernel, n: Value, symmetric: Matrix, target: Matrix) -> None:
    """The cotangent of a Hermitian matrix as that of its lower triangle, which alone is read."""
    with k.loop(n) as j:
        k.store(k.load(symmetric, j, j).real, target, j, j)
        with k.loop(n, k.build.add(j, ONE)) as i:
            k.store(k.load(symmetric, i, j) + k.load(symmetric, j, i).conj(), target, i, j)


# ------------------------------------------------------------------------------------------------ general matrices


def _real_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, jobvl, jobvr, n, a, lda, wr, wi, _, _, vr, ldvr = call.arguments
    element, build = element_of(kind, "np.linalg.eig"), context.before
    letter(jobvl, "N", "np.linalg.eig")
    size = context.value(n)
    work = workspace(context, element, _polynomial(build, size, 14, 12))
    if letter(jobvr, "NV", "np.linalg.eig") == "N":
        return copied(context, build, a, element, extent(build, size, size, context.value(lda))), work
    vectors = kept_result(context, vr, element, extent(build, size, size, context.value(ldvr)))
    return vectors, work, *(kept_result(context, part, element, size) for part in (wr, wi))


def _real_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, _, jobvr, n, a, lda, wr, wi, _, _, vr, ldvr = call.arguments
    if not context.is_active(a):
        return
    element, build = element_of(kind, "np.linalg.eig"), context.builder
    size, shadow, lead = context.value(n), context.shadow(a), context.value(lda)
    w_shadows = [shadow_or_null(context, part) for part in (wr, wi)]
    matrix, work, *values = (context.value(v) for v in saved)
    if letter(jobvr, "NV", "np.linalg.eig") == "N":
        parameters = (I64, PTR, I64, PTR, PTR, PTR, PTR)
        function = kernel(build.module, "real_eigvals_adjoint", element, parameters, _real_eigvals_kernel)
        build.call(function, [size, matrix, lead, *w_shadows, shadow, work])
        return
    function, vectors = _real_eig_function(build.module, element), [matrix, context.value(ldvr), *values]
    build.call(function, [size, *vectors, shadow_or_null(context, vr), *w_shadows, shadow, lead, work])


def _complex_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, jobvl, jobvr, n, a, lda, w, _, _, vr, ldvr = call.arguments
    element, build = element_of(kind, "np.linalg.eig"), context.before
    letter(jobvl, "N", "np.linalg.eig")
    size = context.value(n)
    work = workspace(context, element, _polynomial(build, size, 5, 4))
    if letter(jobvr, "NV", "np.linalg.eig") == "N":
        return copied(context, build, a, element, extent(build, size, size, context.value(lda))), work
    vectors = kept_result(context, vr, element, extent(build, size, size, context.value(ldvr)))
    return vectors, work, kept_result(context, w, element, size)


def _complex_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, _, jobvr, n, a, lda, w, _, _, vr, ldvr = call.arguments
    if not context.is_active(a):
        return
    element, build = element_of(kind, "np.linalg.eig"), context.builder
    size, shadow, lead, w_shadow = context.value(n), context.shadow(a), context.value(lda), shadow_or_null(context, w)
    matrix, work, *values = (context.value(v) for v in saved)
    if letter(jobvr, "NV", "np.linalg.eig") == "N":
        parameters = (I64, PTR, I64, PTR, PTR, PTR)
        function = kernel(build.module, "eigvals_adjoint", element, parameters, _complex_eigvals_kernel)
        build.call(function, [size, matrix, lead, w_shadow, shadow, work])
        return
    vectors = [matrix, context.value(ldvr), *values, shadow_or_null(context, vr)]
    build.call(_eig_function(build.module, element), [size, *vectors, w_shadow, shadow, lead, work])


# ------------------------------------------------------------------------------------------------ values only


def _real_eigvals_kernel(
    k: Kernel, n: Value, matrix: Value, lead: Value, wr_shadow: Value, wi_shadow: Value, shadow: Value, work: Value
) -> None:
    """As with vectors, which are computed first."""
    square, module = k.build.mul(n, n), k.build.module
    copy, vectors, wr, wi, unused, rest = k.take_parts(work, [square, square, n, n, n, square])
    copy_part(k, "all", n, n, Matrix(matrix, lead), Matrix(copy, n))
    arguments = [*_vectors_wanted(k), n, copy, n, wr, wi, unused, ONE, vectors, n]
    k.build.call(module.declare("numba_ez_rgeev", _RGEEV), arguments)
    arguments = [n, vectors, n, wr, wi, zero(PTR), wr_shadow, wi_shadow, shadow, lead, rest]
    k.build.call(_real_eig_function(module, k.element), arguments)


def _complex_eigvals_kernel(
    k: Kernel, n: Value, matrix: Value, lead: Value, w_shadow: Value, shadow: Value, work: Value
) -> None:
    """As with vectors, which are computed first."""
    square, module = k.build.mul(n, n), k.build.module
    copy, vectors, w, unused, rest = k.take_parts(work, [square, square, n, n, square])
    copy_part(k, "all", n, n, Matrix(matrix, lead), Matrix(copy, n))
    arguments = [*_vectors_wanted(k), n, copy, n, w, unused, ONE, vectors, n]
    k.build.call(module.declare("numba_ez_cgeev", _CGEEV), arguments)
    arguments = [n, vectors, n, w, zero(PTR), w_shadow, shadow, lead, rest]
    k.build.call(_eig_function(module, k.element), arguments)


def _vectors_wanted(k: Kernel) -> list[Value]:
    """The first arguments of geev."""
    return [k.letter, *(const_int(_I8, ord(job)) for job in "NV")]


# ------------------------------------------------------------------------------------------------ values and vectors


def _real_eig_function(module: Module, element: Element) -> Function:
    parameters = (I64, PTR, I64, PTR, PTR, PTR, PTR, PTR, PTR, I64, PTR)
    return kernel(module, "real_eig_adjoint", element, parameters, _real_eig_kernel)


def _real_eig_kernel(
    k: Kernel,
    n: Value,
    vectors: Value,
    lead_v: Value,
    wr: Value,
    wi: Value,
    v_shadow: Value,
    wr_shadow: Value,
    wi_shadow: Value,
    shadow: Value,
    lead: Value,
    work: Value,
) -> None:
    """The adjoint in real numbers if all eigenvalues are real, else the real part of that in complex numbers."""
    module, paired = k.build.module, any_nonzero(k, n, ONE, Matrix(wi, n))
    with k.when(k.build.xor(paired, const_int(types.I1, 1))):
        take_vector(k, n, wi_shadow, work)
        arguments = [n, vectors, lead_v, wr, v_shadow, wr_shadow, shadow, lead, work]
        k.build.call(_eig_function(module, k.element), arguments)
    with k.when(paired):
        c, square = Kernel(k.build, Element(k.element.scalar, True)), k.build.mul(n, n)
        v, v_bar, bar, w, w_bar, rest = c.take_parts(work, [square, square, square, n, n, square])
        _unpack_values(k, c, n, (wr, wi), w)
        _unpack_values(k, c, n, (wr_shadow, wi_shadow), w_bar, (v, v_bar))
        _unpack_vectors(k, c, n, wi, Matrix(vectors, lead_v), Matrix(v, n), conjugates=True)
        _unpack_vectors(k, c, n, wi, Matrix(v_shadow, lead_v), Matrix(v_bar, n), conjugates=False)
        with k.when(given(k, v_shadow)), k.loop(n) as j, k.loop(n) as i:
            k.store(k.nothing, Matrix(v_shadow, lead_v), i, j)
        k.build.call(_eig_function(module, c.element), [n, v, n, w, v_bar, w_bar, bar, n, rest])
        with k.loop(n) as j, k.loop(n) as i:
            k.store(c.load(Matrix(bar, n), i, j).real, Matrix(shadow, lead), i, j)


def _unpack_values(
    k: Kernel,
    c: Kernel,
    n: Value,
    parts: tuple[Value, Value],
    target: Value,
    taken: tuple[Value, Value] | None = None,
) -> None:
    """Complex numbers from real and imaginary parts; out of shadows, which may be null, they are ``taken`` first."""
    if taken is not None:
        for part, place in zip(parts, taken, strict=True):
            take_vector(k, n, part, place)
        parts = taken
    with k.loop(n) as j:
        c.put(k.item(parts[0], j) + k.item(parts[1], j).times_i(), target, j)


def _unpack_vectors(
    k: Kernel, c: Kernel, n: Value, wi: Value, packed: Matrix, target: Matrix, *, conjugates: bool
) -> None:
    """Complex vectors, or their cotangents, as a real `geev` packs them: x, y stand for x + i y and x - i y.

    The second of a pair is the conjugate of the first, or, of a cotangent, 0. A pointer to packed ones may be null.
    """
    with k.loop(n) as j, k.loop(n) as i:
        c.store(c.nothing, target, i, j)
    with k.when(given(k, packed.data)), k.loop(n) as j:
        imag = k.item(wi, j)
        second, pair = k.nothing > imag, k.build.zext(imag.is_nonzero(), I64)
        start = k.build.sub(j, k.build.zext(second, I64))
        sign = choose(second, k.number(-1.0 if conjugates else 0.0), choose(imag > k.nothing, k.number(1.0), k.nothing))
        share = choose(second, k.number(1.0 if conjugates else 0.0), k.number(1.0))
        with k.loop(n) as i:
            x, y = k.load(packed, i, start), k.load(packed, i, k.build.add(start, pair))
            c.store(share * x + (sign * y).times_i(), target, i, j)


def _eig_function(module: Module, element: Element) -> Function:
    return kernel(module, "eig_adjoint", element, (I64, PTR, I64, PTR, PTR, PTR, PTR, I64, PTR), _eig_kernel)


def _eig_kernel(
    k: Kernel,
    n: Value,
    vectors: Value,
    lead_v: Value,
    values: Value,
    v_shadow: Value,
    w_shadow: Value,
    shadow: Value,
    lead: Value,
    work: Value,
) -> None:
    """Ā = V⁻ᴴ K Vᴴ, K = diag(w̄) + (Vᴴ V̄')ᵢⱼ / conj(wⱼ - wᵢ), V̄' = V̄ without what only changes length and phase."""
    build, square = k.build, k.build.mul(n, n)
    one, two, three, w_bar, pivots = k.take_parts(work, [square, square, square, n, n])
    v, m, core, transposed = Matrix(vectors, lead_v), Matrix(one, n), Matrix(two, n), Matrix(three, n)
    take_vector(k, n, w_shadow, w_bar)
    _tangent_part(k, n, v, Matrix(v_shadow, lead_v), core)
    k.multiply(n, n, n, ("c", v), ("n", core), m)
    largest = k.real.read(_largest(k, n, values))
    with k.loop(n) as j, k.loop(n) as i:
        gap, product = k.item(values, j) - k.item(values, i), k.load(m, i, j)
        entry = over_gap(k, product, gap.conj(), largest, product.is_zero())
        k.store(choose(build.icmp("eq", i, j), k.item(w_bar, j), entry), core, i, j)
    k.multiply(n, n, n, ("n", core), ("c", v), m)
    copy_part(k, "all", n, n, v, transposed)
    transpose(k, n, transposed)
    gesv = build.module.declare("numba_xgesv", _GESV)
    status = build.call(gesv, [k.letter, n, n, transposed.data, n, pivots, m.data, n])
    failed = build.icmp("ne", status, const_int(types.I32, 0))
    with k.loop(n) as j, k.loop(n) as i:
        entry = k.load(m, i, j)
        k.store(choose(build.and_(failed, entry.is_nonzero()), k.number(math.nan), entry), Matrix(shadow, lead), i, j)


def _tangent_part(k: Kernel, n: Value, v: Matrix, shadow: Matrix, target: Matrix) -> None:
    """Takes the cotangent of vectors of length 1, without its part along each vector, with what the phase asks for."""
    with k.loop(n) as j, k.loop(n) as i:
        k.store(k.nothing, target, i, j)
    with k.when(given(k, shadow.data)), k.loop(n) as j:
        along = k.variable(k.nothing)
        with k.loop(n) as i:
            k.add_to(along, k.load(v, i, j).conj() * k.load(shadow, i, j))
        length = k.read(along).real
        with k.loop(n) as i:
            k.store(k.load(shadow, i, j) - length * k.load(v, i, j), target, i, j)
        if k.element.is_complex:
            turned, size = turn_of(k, n, lambda i: (k.load(v, i, j), k.load(shadow, i, j)))
            anchor = _real_component(k, n, v, j)
            angle = settled_phase(k, turned, size, k.load(v, anchor, j))
            k.store(k.load(target, anchor, j) - angle.times_i(), target, anchor, j)
        with k.loop(n) as i:
            k.store(k.nothing, shadow, i, j)


def _real_component(k: Kernel, n: Value, v: Matrix, j: Value) -> Value:
    """The row of the largest component, which `geev` makes real."""
    build, largest = k.build, k.real.variable(k.number(-1.0))
    place = Builder.at_start(build.function.entry).alloca(I64)
    build.store(NONE, place)
    with k.loop(n) as i:
        value = k.load(v, i, j)
        size = choose(value.imag.is_zero(), value.real.magnitude(), k.number(-1.0))
        with k.when(size > k.real.read(largest)):
            k.real.write(size, largest)
            build.store(i, place)
    return build.load(I64, place)


def _largest(k: Kernel, count: Value, vector: Value) -> Value:
    """A variable with the largest magnitude."""
    largest = k.real.variable(k.nothing)
    with k.loop(count) as i:
        k.real.write(k.real.read(largest).maximum(k.item(vector, i).magnitude()), largest)
    return largest


def _polynomial(build: Builder, size: Value, squares: int, lines: int) -> Value:
    """`squares n² + lines n`."""
    coefficients = const_int(I64, squares), const_int(I64, lines)
    return build.mul(size, build.add(build.mul(size, coefficients[0]), coefficients[1]))


# ------------------------------------------------------------------------------------------------ rules


def _effects(reads: tuple[int, ...], writes: tuple[int, ...]) -> Effects:
    return Effects(reads=frozenset(reads), writes=frozenset(writes), other=False)


RULES: Final[tuple[Rule, ...]] = (
    CallRule(("numba_ez_xxxevd",), _effects((4,), (4, 6)), _symmetric_reverse, _symmetric_augmented, _GILES, _EQUAL),
    CallRule(("numba_ez_rgeev",), _effects((4,), (4, 6, 7, 8, 10)), _real_reverse, _real_augmented, _GILES, _DEFECTIVE),
    CallRule(
        ("numba_ez_cgeev",), _effects((4,), (4, 6, 7, 9)), _complex_reverse, _complex_augmented, _GILES, _DEFECTIVE
    ),
)
