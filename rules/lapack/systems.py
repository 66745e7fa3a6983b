"""LU and Cholesky factorisations as Numba calls them: `np.linalg.solve`, `inv`, `det`, `slogdet`, `cholesky`.

Numba's entry points take a letter for the type; matrices are column-major and are overwritten by their factors:

    numba_xgesv     (kind, n, nrhs, a, lda, ipiv, b, ldb)      a = P L U, then b = a⁻¹ b
    numba_xxgetrf   (kind, m, n, a, lda, ipiv)                 a = P L U
    numba_ez_xxgetri(kind, n, a, lda, ipiv)                    the inverse of a, from its factors
    numba_xxpotrf   (kind, uplo, n, a, lda)                    a = Uᴴ U, only the upper triangle is read and written

The factors that the primal computes are kept for the adjoint, which never factorises again. On the way in the shadow of
a factorised matrix holds the cotangent of the factors, on the way out that of the matrix. L and U share memory, and so
do their cotangents; the unit diagonal of L has none. Formulas are those of complex matrices, ᴴ is ᵀ for real ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irad.errors import UnsupportedError
from irad.ir.instructions import CallSite, Load, Store, Terminator
from irad.ir.module import Block
from irad.ir.values import TrackedValue, Value, const_int
from irad.rules.blas.elements import Element, element_of
from irad.rules.lapack.matrices import (
    I64,
    ONE,
    PTR,
    Kernel,
    Matrix,
    any_nonzero,
    copy_part,
    exchange_rows,
    kernel,
    read_pivots,
    solve_triangular,
    transpose,
)
from irad.rules.lapack.parts import copied, extent, kept_result, letter, same, workspace
from irad.ruleset.interface import AugmentedContext, CallRule, Effects, ReverseContext, Rule

_SINGULAR: Final = "a singular matrix: what the primal raises; det and slogdet return constants there, derivative 0"
_INDEFINITE: Final = "not positive definite: the primal raises"
_GILES: Final = (
    "Giles 2008, Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
)
_MURRAY: Final = "Murray 2016, Differentiation of the Cholesky decomposition, arXiv:1602.07527"
_FACTORISE: Final = "numba_xxgetrf"
_INVERT: Final = "numba_ez_xxgetri"
_LU: Final = "de Hoog, Anderssen, Lukas 2011, Differentiation of matrix functionals using triangular factorization"


# ------------------------------------------------------------------------------------------------ LU


def _factorise_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, m, n, a, lda, ipiv = call.arguments
    element = element_of(kind, "an LU factorisation (np.linalg.inv, det, slogdet)")
    if _is_at_once(call):
        return ()
    if not same(m, n):
        raise UnsupportedError(
            "there is no derivative rule for the LU factorisation of a non-square matrix",
            "factorise the square part",
            "the rule uses the inverse of the matrix, which exists only if it is square",
        )
    size, lead = context.value(n), context.value(lda)
    factors = kept_result(context, a, element, extent(context.before, size, size, lead))
    return factors, _pivots(context, ipiv, size), _square(context, element, size, 3)


def _factorise_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, _, n, a, lda, _ = call.arguments
    if not saved or not context.is_active(a):
        return
    element, (factors, pivots, work) = element_of(kind, "np.linalg.det"), saved
    function = _factor_adjoint(context, element)
    size, lead = context.value(n), context.value(lda)
    arguments = [size, context.value(factors), lead, context.value(pivots), context.shadow(a), context.value(work)]
    context.builder.call(function, arguments)


def _factor_adjoint(context: ReverseContext, element: Element) -> Value:
    parameters = (I64, PTR, I64, PTR, PTR, PTR)
    return kernel(context.builder.module, "factor_adjoint", element, parameters, factor_kernel)


def factor_kernel(k: Kernel, n: Value, factors: Value, lead: Value, pivots: Value, shadow: Value, work: Value) -> None:
    """Ā = P L⁻ᴴ [strictly lower part of Lᴴ L̄ + upper part of Ū Uᴴ] U⁻ᴴ.

    Nothing happens where the cotangent is 0 throughout: a singular matrix has factors too.
    """
    lu, bar = Matrix(factors, lead), Matrix(shadow, lead)
    with k.when(any_nonzero(k, n, n, bar)):
        square = k.build.mul(n, n)
        one, two, product = (Matrix(part, n) for part in k.take_parts(work, [square] * 3))
        copy_part(k, "strictly_lower", n, n, bar, two)
        with k.when(any_nonzero(k, n, n, two)):  # it is 0 for determinants
            copy_part(k, "unit_lower", n, n, lu, one)
            k.multiply(n, n, n, ("c", one), ("n", two), product)
            with k.loop(n) as j, k.loop(n, k.build.add(j, ONE)) as i:
                k.store(k.load(product, i, j), bar, i, j)
        copy_part(k, "upper", n, n, lu, one)
        copy_part(k, "upper", n, n, bar, two)
        k.multiply(n, n, n, ("n", two), ("c", one), product)
        with k.loop(n) as j, k.loop(k.build.add(j, ONE)) as i:
            k.store(k.load(product, i, j), bar, i, j)
        solve_triangular(k, "unit_lower_adjoint", n, n, lu, bar)
        transpose(k, n, bar)
        solve_triangular(k, "upper", n, n, lu, bar)
        transpose(k, n, bar)
        exchange_rows(k, n, n, pivots, bar, backward=True)


def _pivots(context: AugmentedContext, ipiv: Value, size: Value) -> Value:
    """The row exchanges of a factorisation, on the tape as i64."""
    pivots = context.allocate(context.before.mul(size, const_int(I64, 8)))
    read_pivots(context.after, size, context.value(ipiv), pivots)
    return pivots


def _square(context: AugmentedContext, element: Element, size: Value, count: int) -> Value:
    """Working memory for square matrices."""
    before = context.before
    return workspace(context, element, before.mul(before.mul(size, size), const_int(I64, count)))


# ------------------------------------------------------------------------------------------------ systems


def _solve_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, n, nrhs, a, lda, ipiv, b, ldb = call.arguments
    element, before = element_of(kind, "np.linalg.solve"), context.before
    size, columns, lead_a, lead_b = (context.value(v) for v in (n, nrhs, lda, ldb))
    factors = kept_result(context, a, element, extent(before, size, size, lead_a))
    pivots = _pivots(context, ipiv, size)
    if not context.is_active(a):
        return factors, pivots
    solution = kept_result(context, b, element, extent(before, size, columns, lead_b))
    return factors, pivots, solution, _square(context, element, size, 3)


def _solve_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, n, nrhs, a, lda, _, b, ldb = call.arguments
    if not context.is_active(b):
        return
    element, build = element_of(kind, "np.linalg.solve"), context.builder
    size, columns, lead_a, lead_b = (context.value(v) for v in (n, nrhs, lda, ldb))
    factors, pivots = (context.value(v) for v in saved[:2])
    parameters = (I64, I64, PTR, I64, PTR, PTR, I64)
    transposed = kernel(build.module, "solve_adjoint", element, parameters, solve_kernel)
    build.call(transposed, [size, columns, factors, lead_a, pivots, context.shadow(b), lead_b])
    if context.is_active(a):
        # What leaves the factors for elsewhere comes first: it is 0 in np.linalg.solve.
        build.call(
            _factor_adjoint(context, element),
            [size, factors, lead_a, pivots, context.shadow(a), context.value(saved[3])],
        )
        outer = kernel(build.module, "subtract_outer", element, (I64, I64, PTR, I64, PTR, PTR, I64), outer_kernel)
        solution = context.value(saved[2])
        build.call(outer, [size, columns, context.shadow(b), lead_b, solution, context.shadow(a), lead_a])


def solve_kernel(
    k: Kernel, n: Value, columns: Value, factors: Value, lead_a: Value, pivots: Value, shadow: Value, lead_b: Value
) -> None:
    """B̄ = A⁻ᴴ X̄ = P L⁻ᴴ U⁻ᴴ X̄."""
    lu, bar = Matrix(factors, lead_a), Matrix(shadow, lead_b)
    with k.when(any_nonzero(k, n, columns, bar)):
        solve_triangular(k, "upper_adjoint", n, columns, lu, bar)
        solve_triangular(k, "unit_lower_adjoint", n, columns, lu, bar)
        exchange_rows(k, n, columns, pivots, bar, backward=True)


def outer_kernel(
    k: Kernel, n: Value, columns: Value, shadow: Value, lead_b: Value, solution: Value, target: Value, lead_a: Value
) -> None:
    """Ā -= B̄ Xᴴ."""
    bar, x = Matrix(shadow, lead_b), Matrix(solution, lead_b)
    with k.when(any_nonzero(k, n, columns, bar)):
        k.multiply(n, n, columns, ("n", bar), ("c", x), Matrix(target, lead_a), scale=-1.0, keep=1.0)


# ------------------------------------------------------------------------------------------------ inverses


def _invert_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, n, a, lda, ipiv = call.arguments
    element, before = element_of(kind, "np.linalg.inv"), context.before
    size, lead = context.value(n), context.value(lda)
    count = extent(before, size, size, lead)
    inverse, work = kept_result(context, a, element, count), _square(context, element, size, 3)
    if _is_at_once(call):
        return inverse, work
    return inverse, work, copied(context, context.before, a, element, count), _pivots(context, ipiv, size)


def _invert_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, n, a, lda, _ = call.arguments
    if not context.is_active(a):
        return
    element, build = element_of(kind, "np.linalg.inv"), context.builder
    size, lead = context.value(n), context.value(lda)
    inverse, work, *factored = (context.value(v) for v in saved)
    function = kernel(build.module, "invert_adjoint", element, (I64, PTR, I64, PTR, PTR), _invert_kernel)
    build.call(function, [size, inverse, lead, context.shadow(a), work])
    if factored:
        function = kernel(build.module, "product_adjoint", element, (I64, PTR, I64, PTR, PTR, PTR), _product_kernel)
        build.call(function, [size, factored[0], lead, factored[1], context.shadow(a), work])


def _invert_kernel(k: Kernel, n: Value, inverse: Value, lead: Value, shadow: Value, work: Value) -> None:
    """Ā = -Xᴴ X̄ Xᴴ for X = A⁻¹."""
    x, bar, product = Matrix(inverse, lead), Matrix(shadow, lead), Matrix(work, n)
    with k.when(any_nonzero(k, n, n, bar)):
        k.multiply(n, n, n, ("c", x), ("n", bar), product)
        k.multiply(n, n, n, ("n", product), ("c", x), bar, scale=-1.0)


def _product_kernel(
    k: Kernel, n: Value, factors: Value, lead: Value, pivots: Value, shadow: Value, work: Value
) -> None:
    """The factors of A = P L U: with G = Pᵀ Ā, L̄ is the strictly lower part of G Uᴴ, Ū the upper part of Lᴴ G."""
    lu, bar = Matrix(factors, lead), Matrix(shadow, lead)
    g, factor, product = (Matrix(part, n) for part in k.take_parts(work, [k.build.mul(n, n)] * 3))
    exchange_rows(k, n, n, pivots, bar, backward=False)
    copy_part(k, "all", n, n, bar, g)
    copy_part(k, "upper", n, n, lu, factor)
    k.multiply(n, n, n, ("n", g), ("c", factor), bar)
    copy_part(k, "unit_lower", n, n, lu, factor)
    k.multiply(n, n, n, ("c", factor), ("n", g), product)
    with k.loop(n) as j, k.loop(k.build.add(j, ONE)) as i:
        k.store(k.load(product, i, j), bar, i, j)


def _is_at_once(call: CallSite) -> bool:
    """Whether a factorisation and the inversion of its factors are one step, as in `np.linalg.inv`.

    Then nothing lies between them but the check of the status, nothing else sees the factors, and the shadow can hold
    the cotangent of the matrix itself in between: that saves the way through the cotangents of L and U and back.
    """
    if call.callee.name == _INVERT:
        users = call.arguments[4].users if isinstance(call.arguments[4], TrackedValue) else ()
        factorisations = [u for u in users if isinstance(u, CallSite) and u.callee.name == _FACTORISE]
        return any(_inversion_behind(u) is call for u in factorisations)
    return _inversion_behind(call) is not None


def _inversion_behind(factorisation: CallSite) -> CallSite | None:
    """The inversion that comes next in memory, of the same factors; None where something else comes first."""
    block = factorisation.block
    assert block is not None
    rest = block.instructions[block.instructions.index(factorisation) + 1 :]
    ways = block.successors if isinstance(block.instructions[-1], Terminator) else []
    for path in [rest, *(rest + way.instructions for way in ways if _leads_to(block, way))]:
        touching = next((i for i in path if isinstance(i, Load | Store | CallSite)), None)
        if isinstance(touching, CallSite) and touching.callee.name == _INVERT:
            operands = zip(touching.arguments[1:], factorisation.arguments[2:], strict=True)
            if all(same(x, y) for x, y in operands):
                return touching
    return None


def _leads_to(block: Block, follower: Block) -> bool:
    """Whether the follower is reached from this block only."""
    assert block.function is not None
    return [b for b in block.function.blocks if follower in b.successors] == [block]


# ------------------------------------------------------------------------------------------------ Cholesky


def _cholesky_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, uplo, n, a, lda = call.arguments
    element = element_of(kind, "np.linalg.cholesky")
    letter(uplo, "U", "np.linalg.cholesky")
    size, lead = context.value(n), context.value(lda)
    factor = kept_result(context, a, element, extent(context.before, size, size, lead))
    return factor, _square(context, element, size, 3)


def _cholesky_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, _, n, a, lda = call.arguments
    if not context.is_active(a):
        return
    element, build = element_of(kind, "np.linalg.cholesky"), context.builder
    function = kernel(build.module, "cholesky_adjoint", element, (I64, PTR, I64, PTR, PTR), cholesky_kernel)
    factor, work = (context.value(v) for v in saved)
    build.call(function, [context.value(n), factor, context.value(lda), context.shadow(a), work])


def cholesky_kernel(k: Kernel, n: Value, factor: Value, lead: Value, shadow: Value, work: Value) -> None:
    """Ā = S + Sᴴ on the upper triangle (Re S on the diagonal), S = U⁻¹ Φ(U Ūᴴ)ᴴ U⁻ᴴ, Φ: lower part, diagonal halved.

    The lower triangle of the shadow stays as it is: LAPACK does not touch that of the matrix, and of the diagonal it
    reads the real part.
    """
    u, bar = Matrix(factor, lead), Matrix(shadow, lead)
    one, two, s = (Matrix(part, n) for part in k.take_parts(work, [k.build.mul(n, n)] * 3))
    copy_part(k, "upper", n, n, u, one)
    copy_part(k, "upper", n, n, bar, two)
    with k.when(any_nonzero(k, n, n, two)):
        k.multiply(n, n, n, ("n", one), ("c", two), s)
        with k.loop(n) as j:
            with k.loop(j) as i:
                k.store(k.nothing, s, i, j)
            k.store(k.number(0.5) * k.load(s, j, j), s, j, j)
        solve_triangular(k, "upper", n, n, u, s)
        transpose(k, n, s)
        solve_triangular(k, "upper", n, n, u, s)
        with k.loop(n) as j:
            with k.loop(j) as i:
                k.store(k.load(s, i, j) + k.load(s, j, i).conj(), bar, i, j)
            k.store(k.load(s, j, j).real, bar, j, j)


# ------------------------------------------------------------------------------------------------ rules


def _effects(reads: tuple[int, ...], writes: tuple[int, ...]) -> Effects:
    return Effects(reads=frozenset(reads), writes=frozenset(writes), other=False)


RULES: Final[tuple[Rule, ...]] = (
    CallRule(("numba_xgesv",), _effects((3, 6), (3, 5, 6)), _solve_reverse, _solve_augmented, _GILES, _SINGULAR),
    CallRule((_FACTORISE,), _effects((3,), (3, 5)), _factorise_reverse, _factorise_augmented, _LU, _SINGULAR),
    CallRule((_INVERT,), _effects((2, 4), (2,)), _invert_reverse, _invert_augmented, _GILES, _SINGULAR),
    CallRule(("numba_xxpotrf",), _effects((3,), (3,)), _cholesky_reverse, _cholesky_augmented, _MURRAY, _INDEFINITE),
)
