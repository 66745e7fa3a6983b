"""Least squares as Numba calls it: `np.linalg.lstsq`.

    numba_ez_gelsd(kind, m, n, nrhs, a, lda, b, ldb, s, rcond, rank)

On return the first n rows of b hold x = A⁺ b, s the singular values of A. If m > n = rank, the sum of squares of the
rows below is that of the residual r = b - A x; Numba takes that sum and nothing else of them, and so does the rule. `a`
is destroyed. The rank counts as constant: where it is not full, the derivative is that along matrices of the same rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.values import Value, const_int
from irad.rules.blas.elements import Number, element_of
from irad.rules.lapack.matrices import I64, NONE, PTR, Kernel, Matrix, copy_part, given, kernel, transpose_into
from irad.rules.lapack.parts import copied, extent, kept_result, shadow_or_null, workspace
from irad.rules.lapack.singular import add_singular_values, size_of_workspace
from irad.ruleset.interface import AugmentedContext, CallRule, Effects, ReverseContext, Rule

_NUMPY: Final = "np.linalg.lstsq"
_GELSD: Final = types.function_type(types.I32, (types.I8, I64, I64, I64, PTR, I64, PTR, I64, PTR, types.DOUBLE, PTR))
_GOLUB_PEREYRA: Final = (
    "Golub, Pereyra 1973, The differentiation of pseudo-inverses and nonlinear least squares problems"
)


def _forward(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, m, n, nrhs, a, lda, b, ldb, _, _, rank = call.arguments
    element, build = element_of(kind, _NUMPY), context.before
    rows, columns, sides, lead_a, lead_b = (context.value(v) for v in (m, n, nrhs, lda, ldb))
    longer = build.intrinsic("llvm.smax.i64", I64, [rows, columns])
    matrix = copied(context, build, a, element, extent(build, rows, columns, lead_a))
    right = copied(context, build, b, element, extent(build, rows, sides, lead_b))
    solution = kept_result(context, b, element, extent(build, longer, sides, lead_b))
    found = context.after.zext(context.after.load(types.I32, context.value(rank)), I64)
    sizes = _sizes(build, rows, columns, sides, longer)
    total: Value = size_of_workspace(build, rows, columns)
    for size in sizes:
        total = build.add(total, size)
    return matrix, right, solution, found, workspace(context, element, total)


def _sizes(build: Builder, rows: Value, columns: Value, sides: Value, longer: Value) -> list[Value]:
    """Of the parts of the working memory: the matrix, two right-hand sides, r, D, singular values, rank."""
    mul, twice = build.mul, build.mul(sides, const_int(I64, 2))
    systems = [mul(rows, columns), mul(longer, twice), mul(longer, sides)]
    return [*systems, mul(rows, sides), mul(columns, sides), longer, const_int(I64, 2)]


def _reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, m, n, nrhs, a, lda, b, ldb, s, rcond, _ = call.arguments
    element, build = element_of(kind, _NUMPY), context.builder
    sizes = [context.value(v) for v in (m, n, nrhs, lda, ldb)]
    matrix, right, solution, rank, work = (context.value(v) for v in saved)
    parameters = (*[I64] * 5, PTR, PTR, PTR, I64, types.DOUBLE, PTR, PTR, PTR, PTR)
    function = kernel(build.module, "lstsq_adjoint", element, parameters, _kernel)
    shadows = [shadow_or_null(context, v) for v in (a, b, s)]
    build.call(function, [*sizes, matrix, right, solution, rank, context.value(rcond), *shadows, work])


def _kernel(
    k: Kernel,
    m: Value,
    n: Value,
    sides: Value,
    lead_a: Value,
    lead_b: Value,
    matrix: Value,
    right: Value,
    solution: Value,
    rank: Value,
    rcond: Value,
    a_shadow: Value,
    b_shadow: Value,
    s_shadow: Value,
    work: Value,
) -> None:
    """b̄ = β + λ r, Ā = -b̄ xᴴ + r δᴴ + γ Dᴴ; β = A⁺ᴴ x̄, γ = A⁺ᴴ x, δ = A⁺ β, D = x̄ - Aᴴ β, λ for the residual."""
    build = k.build
    longer = build.intrinsic("llvm.smax.i64", I64, [m, n])
    copy, two, one, residual, rest, values, found, other = k.take_parts(
        work, [*_sizes(build, m, n, sides, longer), NONE]
    )
    a, x, bar = Matrix(matrix, lead_a), Matrix(solution, lead_b), Matrix(b_shadow, lead_b)
    beta, gamma = Matrix(two, longer), Matrix(build.gep(k.element.type, two, [build.mul(longer, sides)]), longer)
    delta, r, d = Matrix(one, longer), Matrix(residual, m), Matrix(rest, n)
    gelsd, letter = build.module.declare("numba_ez_gelsd", _GELSD), k.letter

    with k.when(given(k, b_shadow)):
        copy_part(k, "all", n, sides, bar, beta)
        copy_part(k, "all", n, sides, x, gamma)
        transpose_into(k, m, n, a, Matrix(copy, n))
        both = build.mul(sides, const_int(I64, 2))
        build.call(gelsd, [letter, n, m, both, copy, n, two, longer, values, rcond, found])
        copy_part(k, "all", m, sides, Matrix(right, lead_b), r)
        k.multiply(m, sides, n, ("n", a), ("n", x), r, scale=-1.0, keep=1.0)
        copy_part(k, "all", n, sides, bar, d)
        k.multiply(n, sides, m, ("c", a), ("n", beta), d, scale=-1.0, keep=1.0)
        copy_part(k, "all", m, sides, beta, delta)
        copy_part(k, "all", m, n, a, Matrix(copy, m))
        build.call(gelsd, [letter, m, n, sides, copy, m, one, longer, values, rcond, found])
        with k.loop(sides) as j:
            share = _residual_share(k, m, n, j, x, bar)
            with k.loop(m) as i:
                k.store(k.load(beta, i, j) + share * k.load(r, i, j), bar, i, j)
            with k.loop(longer, m) as i:
                k.store(k.nothing, bar, i, j)
    with k.when(given(k, a_shadow)):
        a_bar = Matrix(a_shadow, lead_a)
        with k.loop(n) as j, k.loop(m) as i:
            k.store(k.nothing, a_bar, i, j)
        with k.when(given(k, b_shadow)):
            k.multiply(m, n, sides, ("n", bar), ("c", x), a_bar, scale=-1.0, keep=1.0)
            with k.when(build.icmp("slt", rank, m)):  # else r is 0
                k.multiply(m, n, sides, ("n", r), ("c", delta), a_bar, keep=1.0)
            with k.when(build.icmp("slt", rank, n)):  # else D is 0
                k.multiply(m, n, sides, ("n", gamma), ("c", d), a_bar, keep=1.0)
        with k.when(given(k, s_shadow)):
            add_singular_values(k, m, n, a, s_shadow, a_bar, other)


def _residual_share(k: Kernel, m: Value, n: Value, j: Value, x: Matrix, bar: Matrix) -> Number:
    """λ: the cotangent of the rows below the solution is λ times their content."""
    along, square = k.variable(k.nothing), k.real.variable(k.nothing)
    with k.loop(m, n) as i:
        content = k.load(x, i, j)
        k.add_to(along, k.load(bar, i, j) * content.conj())
        k.real.add_to(square, content.square())
    return k.quotient(k.read(along).real, k.real.read(square))


RULES: Final[tuple[Rule, ...]] = (
    CallRule(
        ("numba_ez_gelsd",),
        Effects(reads=frozenset({4, 6}), writes=frozenset({4, 6, 8, 10}), other=False),
        _reverse,
        _forward,
        _GOLUB_PEREYRA,
        "the rank counts as constant: where it is deficient, the derivative along matrices of the same rank",
    ),
)
