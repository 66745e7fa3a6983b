"""Eigenvalues and singular values as Numba calls them: `np.linalg.eigh`, `eig`, `svd` and what is built of them.

    numba_ez_xxxevd(kind, jobz, uplo, n, a, lda, w)                                     eigh, eigvalsh
    numba_ez_rgeev (kind, jobvl, jobvr, n, a, lda, wr, wi, vl, ldvl, vr, ldvr)          eig, eigvals of real matrices
    numba_ez_gesdd (kind, jobz, m, n, a, lda, s, u, ldu, vt, ldvt)                      svd, pinv, cond, norm

Where the primal asks for vectors they are kept. Where it asks for values only, the matrix is kept, and the adjoint
computes the vectors that it needs.

Vectors of equal values are no function of the matrix: any rotation of them serves. If cotangents come in for those, the
gradient is NaN (`over_gap`); equal values without cotangents of their vectors are no trouble.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.module import Function, Module
from irad.ir.types import FloatType
from irad.ir.values import Value, const_int, zero
from irad.rules.lapack_parts import copied, element, extent, kept_result, letter, shadow_or_null, workspace
from irad.rules.matrices import I64, ONE, PTR, Kernel, Matrix, copy_part, given, kernel, take_vector, transpose
from irad.ruleset.interface import CallRule, Effects, ForwardContext, ReverseContext, Rule

_I8: Final = types.I8
_GILES: Final = (
    "Giles 2008, Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
)
_EVD: Final = types.function_type(types.I32, (_I8, _I8, _I8, I64, PTR, I64, PTR))
_GEEV: Final = types.function_type(types.I32, (_I8, _I8, _I8, I64, PTR, I64, PTR, PTR, PTR, I64, PTR, I64))
_GESV: Final = types.function_type(types.I32, (_I8, I64, I64, PTR, I64, PTR, PTR, I64))


def over_gap(k: Kernel, numerator: Value, gap: Value, largest: Value, silent: Value) -> Value:
    """`numerator / gap` of two eigenvalues or singular values.

    A gap that is rounding error in comparison with the ``largest`` value gives NaN: the numerator of a function that
    does not mind how the vectors are turned is 0 there too, and the limit of the quotient is not known. The result is 0
    where the cotangents are ``silent``.
    """
    epsilon = 2.0**-52 if k.type is types.DOUBLE else 2.0**-23
    tied = k.build.fcmp("ole", k.magnitude(gap), k.build.fmul(k.number(8.0 * epsilon), largest))
    quotient = k.build.select(tied, k.number(math.nan), k.quotient(numerator, gap))
    return k.build.select(silent, k.nothing, quotient)


def all_zero(k: Kernel, *values: Value) -> Value:
    """Whether all numbers are 0."""
    tests = [k.build.fcmp("oeq", value, k.nothing) for value in values]
    return functools.reduce(k.build.and_, tests)


def kind_of(k: Kernel) -> Value:
    """The letter of a kernel's precision."""
    return const_int(_I8, ord("d" if k.type is types.DOUBLE else "s"))


def maximum(k: Kernel, a: Value, b: Value) -> Value:
    """The larger one."""
    return k.build.select(k.build.fcmp("ogt", a, b), a, b)


# ------------------------------------------------------------------------------------------------ symmetric matrices


def _symmetric_forward(context: ForwardContext, call: CallSite) -> Sequence[Value]:
    kind, jobz, uplo, n, a, lda, w = call.arguments
    type_, build = element(kind, "np.linalg.eigh"), context.before
    letter(uplo, "L", "np.linalg.eigh")
    size, lead = context.value(n), context.value(lda)
    count = extent(build, size, size, lead)
    if letter(jobz, "NV", "np.linalg.eigh") == "N":
        return copied(context, build, a, type_, count), workspace(context, type_, _polynomial(build, size, 3, 2))
    work = workspace(context, type_, _polynomial(build, size, 2, 1))
    return kept_result(context, a, type_, count), work, kept_result(context, w, type_, size)


def _symmetric_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, jobz, _, n, a, lda, w = call.arguments
    if not context.is_active(a):
        return
    type_, build = element(kind, "np.linalg.eigh"), context.builder
    size, lead = context.value(n), context.value(lda)
    matrix, work, *values = (context.value(v) for v in saved)
    shadows = [context.shadow(a), shadow_or_null(context, w)]
    if letter(jobz, "NV", "np.linalg.eigh") == "N":
        function = kernel(build.module, "eigvalsh_adjoint", type_, (I64, PTR, I64, PTR, PTR, PTR), _eigvalsh_kernel)
    else:
        function = kernel(build.module, "eigh_adjoint", type_, (I64, PTR, I64, PTR, PTR, PTR, PTR), _eigh_kernel)
    build.call(function, [size, matrix, lead, *values, *shadows, work])


def _eigh_kernel(
    k: Kernel, n: Value, vectors: Value, lead: Value, values: Value, shadow: Value, w_shadow: Value, work: Value
) -> None:
    """Ā = V K Vᵀ, K = diag(w̄) + (Vᵀ V̄ - V̄ᵀ V)ᵢⱼ / 2 (wⱼ - wᵢ)."""
    build, square = k.build, k.build.mul(n, n)
    one, two, w_bar = k.take_parts(work, [square, square, n])
    v, bar, m, core = Matrix(vectors, lead), Matrix(shadow, lead), Matrix(one, n), Matrix(two, n)
    take_vector(k, n, w_shadow, w_bar)
    k.multiply(n, n, n, ("t", v), ("n", bar), m)
    largest = k.build.load(k.type, _largest(k, n, values))
    with k.loop(n) as j:
        with k.loop(j) as i:
            gap, products = build.fsub(k.item(values, j), k.item(values, i)), (k.load(m, i, j), k.load(m, j, i))
            half = build.fmul(k.number(0.5), build.fsub(*products))
            entry = over_gap(k, half, gap, largest, all_zero(k, *products))
            k.store(entry, core, i, j)
            k.store(entry, core, j, i)
        k.store(k.item(w_bar, j), core, j, j)
    k.multiply(n, n, n, ("n", v), ("n", core), m)
    k.multiply(n, n, n, ("n", m), ("t", v), core)
    copy_part(k, "strictly_lower", n, n, bar, bar)  # clears the upper triangle, which is not read
    _fold_lower(k, n, core, bar)


def _eigvalsh_kernel(
    k: Kernel, n: Value, matrix: Value, lead: Value, shadow: Value, w_shadow: Value, work: Value
) -> None:
    """Ā = V diag(w̄) Vᵀ; the shadow's upper triangle stays: LAPACK does not touch that of the matrix."""
    square = k.build.mul(n, n)
    one, two, three, w, w_bar = k.take_parts(work, [square, square, square, n, n])
    v, scaled, core = Matrix(one, n), Matrix(two, n), Matrix(three, n)
    take_vector(k, n, w_shadow, w_bar)
    copy_part(k, "all", n, n, Matrix(matrix, lead), v)
    arguments = [kind_of(k), const_int(_I8, ord("V")), const_int(_I8, ord("L")), n, v.data, n, w]
    k.build.call(k.build.module.declare("numba_ez_xxxevd", _EVD), arguments)
    with k.loop(n) as j, k.loop(n) as i:
        k.store(k.build.fmul(k.load(v, i, j), k.item(w_bar, j)), scaled, i, j)
    k.multiply(n, n, n, ("n", scaled), ("t", v), core)
    _fold_lower(k, n, core, Matrix(shadow, lead))


def _fold_lower(k: Kernel, n: Value, symmetric: Matrix, target: Matrix) -> None:
    """The cotangent of a symmetric matrix as that of its lower triangle, which alone is read."""
    with k.loop(n) as j:
        k.store(k.load(symmetric, j, j), target, j, j)
        with k.loop(n, k.build.add(j, ONE)) as i:
            k.store(k.build.fadd(k.load(symmetric, i, j), k.load(symmetric, j, i)), target, i, j)


# ------------------------------------------------------------------------------------------------ general matrices


def _general_forward(context: ForwardContext, call: CallSite) -> Sequence[Value]:
    kind, jobvl, jobvr, n, a, lda, wr, wi, _, _, vr, ldvr = call.arguments
    type_, build = element(kind, "np.linalg.eig"), context.before
    letter(jobvl, "N", "np.linalg.eig")
    size = context.value(n)
    work = workspace(context, type_, _polynomial(build, size, 5, 8))
    if letter(jobvr, "NV", "np.linalg.eig") == "N":
        return copied(context, build, a, type_, extent(build, size, size, context.value(lda))), work
    vectors = kept_result(context, vr, type_, extent(build, size, size, context.value(ldvr)))
    return vectors, work, *(kept_result(context, part, type_, size) for part in (wr, wi))


def _general_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, _, jobvr, n, a, lda, wr, _, _, _, vr, ldvr = call.arguments
    if not context.is_active(a):
        return
    type_, build = element(kind, "np.linalg.eig"), context.builder
    size, lead, w_shadow = context.value(n), context.value(lda), shadow_or_null(context, wr)
    matrix, work, *values = (context.value(v) for v in saved)
    if letter(jobvr, "NV", "np.linalg.eig") == "N":
        function = kernel(build.module, "eigvals_adjoint", type_, (I64, PTR, I64, PTR, PTR, PTR), _eigvals_kernel)
        build.call(function, [size, matrix, lead, w_shadow, context.shadow(a), work])
        return
    vectors = [matrix, context.value(ldvr), *values, shadow_or_null(context, vr)]
    build.call(_eig_function(build.module, type_), [size, *vectors, w_shadow, context.shadow(a), lead, work])


def _eig_function(module: Module, type_: FloatType) -> Function:
    return kernel(module, "eig_adjoint", type_, (I64, PTR, I64, PTR, PTR, PTR, PTR, PTR, I64, PTR), _eig_kernel)


def _eigvals_kernel(
    k: Kernel, n: Value, matrix: Value, lead: Value, w_shadow: Value, shadow: Value, work: Value
) -> None:
    """As with vectors, which are computed first."""
    square, module = k.build.mul(n, n), k.build.module
    copy, vectors, wr, wi, unused, rest = k.take_parts(work, [square, square, n, n, n, square])
    copy_part(k, "all", n, n, Matrix(matrix, lead), Matrix(copy, n))
    jobs = [const_int(_I8, ord(job)) for job in "NV"]
    computed = [wr, wi, unused, ONE, vectors, n]
    k.build.call(module.declare("numba_ez_rgeev", _GEEV), [kind_of(k), *jobs, n, copy, n, *computed])
    arguments = [n, vectors, n, wr, wi, zero(PTR), w_shadow, shadow, lead, rest]
    k.build.call(_eig_function(module, k.type), arguments)


def _eig_kernel(
    k: Kernel,
    n: Value,
    vectors: Value,
    lead_v: Value,
    wr: Value,
    wi: Value,
    v_shadow: Value,
    w_shadow: Value,
    shadow: Value,
    lead: Value,
    work: Value,
) -> None:
    """Ā = V⁻ᵀ K Vᵀ, K = diag(w̄) + (Vᵀ V̄')ᵢⱼ / (wⱼ - wᵢ), V̄' = V̄ without what only changes the length of a vector."""
    build, square = k.build, k.build.mul(n, n)
    one, two, three, w_bar, pivots = k.take_parts(work, [square, square, square, n, n])
    v, m, core, transposed = Matrix(vectors, lead_v), Matrix(one, n), Matrix(two, n), Matrix(three, n)
    take_vector(k, n, w_shadow, w_bar)
    _tangent_part(k, n, v, Matrix(v_shadow, lead_v), core)
    k.multiply(n, n, n, ("t", v), ("n", core), m)
    largest = k.build.load(k.type, _largest(k, n, wr))
    with k.loop(n) as j:
        with k.loop(n) as i:
            gap = build.fsub(k.item(wr, j), k.item(wr, i))
            product = k.load(m, i, j)
            entry = over_gap(k, product, gap, largest, all_zero(k, product))
            k.store(build.select(build.icmp("eq", i, j), k.item(w_bar, j), entry), core, i, j)
        with k.when(build.fcmp("une", k.item(wi, j), k.nothing)):
            k.store(k.number(math.nan), core, j, j)  # real eigenvalues only
    k.multiply(n, n, n, ("n", core), ("t", v), m)
    copy_part(k, "all", n, n, v, transposed)
    transpose(k, n, transposed)
    gesv = build.module.declare("numba_xgesv", _GESV)
    status = build.call(gesv, [kind_of(k), n, n, transposed.data, n, pivots, m.data, n])
    failed = build.icmp("ne", status, const_int(types.I32, 0))
    with k.loop(n) as j, k.loop(n) as i:
        entry = k.load(m, i, j)
        wrong = build.and_(failed, build.fcmp("une", entry, k.nothing))
        k.store(build.select(wrong, k.number(math.nan), entry), Matrix(shadow, lead), i, j)


def _tangent_part(k: Kernel, n: Value, v: Matrix, shadow: Matrix, target: Matrix) -> None:
    """Takes the cotangent of vectors of length 1, without its part along each vector."""
    with k.loop(n) as j, k.loop(n) as i:
        k.store(k.nothing, target, i, j)
    with k.when(given(k, shadow.data)), k.loop(n) as j:
        along = k.variable(k.nothing)
        with k.loop(n) as i:
            k.add_to(along, k.build.fmul(k.load(v, i, j), k.load(shadow, i, j)))
        length = k.build.load(k.type, along)
        with k.loop(n) as i:
            along_v = k.build.fmul(length, k.load(v, i, j))
            k.store(k.build.fsub(k.load(shadow, i, j), along_v), target, i, j)
            k.store(k.nothing, shadow, i, j)


def _largest(k: Kernel, count: Value, vector: Value) -> Value:
    """A variable with the largest magnitude."""
    largest = k.variable(k.nothing)
    with k.loop(count) as i:
        k.build.store(maximum(k, k.build.load(k.type, largest), k.magnitude(k.item(vector, i))), largest)
    return largest


def _polynomial(build: Builder, size: Value, squares: int, lines: int) -> Value:
    """`squares n² + lines n`."""
    coefficients = const_int(I64, squares), const_int(I64, lines)
    return build.mul(size, build.add(build.mul(size, coefficients[0]), coefficients[1]))


# ------------------------------------------------------------------------------------------------ rules


def _effects(reads: tuple[int, ...], writes: tuple[int, ...]) -> Effects:
    return Effects(reads=frozenset(reads), writes=frozenset(writes), other=False)


RULES: Final[tuple[Rule, ...]] = (
    CallRule(("numba_ez_xxxevd",), _effects((4,), (4, 6)), _symmetric_reverse, _symmetric_forward, _GILES),
    CallRule(("numba_ez_rgeev",), _effects((4,), (4, 6, 7, 8, 10)), _general_reverse, _general_forward, _GILES),
)
