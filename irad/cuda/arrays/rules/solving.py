"""Systems of linear equations, inverses and determinants.

Source: Giles 2008, "Collected matrix derivative results", 2.2 and 2.3.
"""

from __future__ import annotations

from typing import Any, Final

from irad.cuda.arrays.ruleset import ArrayCall, Rule


def _adjoint(call: ArrayCall, matrix: Any) -> Any:
    return call.xp.conj(call.xp.swapaxes(matrix, -1, -2))


def _reverse_inv(call: ArrayCall, cotangent: Any, a: Any) -> Any:
    inverse = _adjoint(call, call.result)
    return -call.xp.matmul(call.xp.matmul(inverse, cotangent), inverse)


def _reverse_solve(call: ArrayCall, cotangent: Any, a: Any, b: Any) -> tuple[Any, ...]:
    m, solution = call.xp, call.result
    is_vector = b.ndim == 1
    if is_vector:
        cotangent, solution = cotangent[..., None], solution[..., None]
    to_b = m.linalg.solve(_adjoint(call, a), cotangent)
    to_a = call.like(-m.matmul(to_b, _adjoint(call, solution)), a) if call.is_active(a) else None
    if is_vector:
        to_b = to_b[..., 0]
    return to_a, call.like(to_b, b) if call.is_active(b) else None


def _reverse_det(call: ArrayCall, cotangent: Any, a: Any) -> Any:
    """Of invertible matrices."""
    m = call.xp
    return (cotangent * m.conj(call.result))[..., None, None] * _adjoint(call, m.linalg.inv(a))


def _reverse_cholesky(call: ArrayCall, cotangent: Any, a: Any) -> Any:
    """Cotangent from that of the lower factor L: ½ L⁻ᴴ (P + Pᴴ) L⁻¹ with P the lower half of Lᴴ times the cotangent.

    Source: Murray 2016, "Differentiation of the Cholesky decomposition", 3.1.
    """
    m, factor = call.xp, call.result
    product = m.tril(m.matmul(_adjoint(call, factor), m.tril(cotangent)))
    product = product - 0.5 * product * m.eye(a.shape[-1])
    inverse = m.linalg.inv(factor)
    symmetric = 0.5 * m.matmul(_adjoint(call, inverse), m.matmul(product + _adjoint(call, product), inverse))
    return m.tril(symmetric, -1) * 2.0 + symmetric * m.eye(a.shape[-1])  # LAPACK reads the lower half alone


RULES: Final = (
    Rule("linalg.inv", _reverse_inv),
    Rule("linalg.solve", _reverse_solve, arrays=2),
    Rule("linalg.det", _reverse_det),
    Rule("linalg.cholesky", _reverse_cholesky),
)
