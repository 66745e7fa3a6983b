"""Products, systems of linear equations, inverses and determinants."""

from __future__ import annotations

from typing import Any, Final

from irad.cuda.arrays.ruleset import ArrayCall, Rule

# Products of vectors, matrices and tensors (on a GPU: cuBLAS).
#
# Source: Giles 2008, "Collected matrix derivative results", 2.2.


def _adjoint(call: ArrayCall, matrix: Any) -> Any:
    return call.xp.conj(call.xp.swapaxes(matrix, -1, -2))


def _reverse_matmul(call: ArrayCall, cotangent: Any, a: Any, b: Any, dtype: Any = None) -> tuple[Any, ...]:
    m = call.xp
    left = a[None, :] if a.ndim == 1 else a
    right = b[:, None] if b.ndim == 1 else b
    if b.ndim == 1:
        cotangent = cotangent[..., None]
    if a.ndim == 1:
        cotangent = cotangent[..., None, :]
    to_a = call.like(m.matmul(cotangent, _adjoint(call, right)), left) if call.is_active(a) else None
    to_b = call.like(m.matmul(_adjoint(call, left), cotangent), right) if call.is_active(b) else None
    return to_a if to_a is None else to_a.reshape(a.shape), to_b if to_b is None else to_b.reshape(b.shape)


def _reverse_tensordot(call: ArrayCall, cotangent: Any, a: Any, b: Any, axes: Any = 2) -> tuple[Any, ...]:
    m = call.xp
    if isinstance(axes, int):
        of_a, of_b = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        of_a, of_b = ([each] if isinstance(each, int) else list(each) for each in axes)
    of_a, of_b = [i % a.ndim for i in of_a], [i % b.ndim for i in of_b]
    free_a, free_b = ([i for i in range(x.ndim) if i not in used] for x, used in ((a, of_a), (b, of_b)))
    order_a, order_b = free_a + of_a, of_b + free_b
    moved_a, moved_b = m.transpose(a, order_a), m.transpose(b, order_b)
    rows = _size([a.shape[i] for i in free_a])
    columns = _size([b.shape[i] for i in free_b])
    inner = _size([a.shape[i] for i in of_a])
    left, right = moved_a.reshape(rows, inner), moved_b.reshape(inner, columns)
    cotangent = cotangent.reshape(rows, columns)
    to_a = m.matmul(cotangent, _adjoint(call, right)).reshape(moved_a.shape) if call.is_active(a) else None
    to_b = m.matmul(_adjoint(call, left), cotangent).reshape(moved_b.shape) if call.is_active(b) else None
    return _back(call, to_a, order_a), _back(call, to_b, order_b)


def _size(lengths: list[int]) -> int:
    found = 1
    for each in lengths:
        found *= each
    return found


def _back(call: ArrayCall, moved: Any, order: list[int]) -> Any:
    """Undoes a transposition."""
    return None if moved is None else call.xp.transpose(moved, sorted(range(len(order)), key=lambda i: order[i]))


def _reverse_dot(call: ArrayCall, cotangent: Any, a: Any, b: Any) -> tuple[Any, ...]:
    m = call.xp
    if m.ndim(a) == 0 or m.ndim(b) == 0:
        to_a = call.like(cotangent * m.conj(b), a) if call.is_active(a) else None
        return to_a, call.like(cotangent * m.conj(a), b) if call.is_active(b) else None
    return _reverse_tensordot(call, cotangent, a, b, ([a.ndim - 1], [max(b.ndim - 2, 0)]))


def _reverse_inner(call: ArrayCall, cotangent: Any, a: Any, b: Any) -> tuple[Any, ...]:
    if call.xp.ndim(a) == 0 or call.xp.ndim(b) == 0:
        return _reverse_dot(call, cotangent, a, b)
    return _reverse_tensordot(call, cotangent, a, b, ([a.ndim - 1], [b.ndim - 1]))


def _reverse_outer(call: ArrayCall, cotangent: Any, a: Any, b: Any) -> tuple[Any, ...]:
    m = call.xp
    to_a = m.matmul(cotangent, m.conj(b.reshape(-1))).reshape(a.shape) if call.is_active(a) else None
    to_b = m.matmul(m.conj(a.reshape(-1)), cotangent).reshape(b.shape) if call.is_active(b) else None
    return to_a, to_b


def _reverse_vdot(call: ArrayCall, cotangent: Any, a: Any, b: Any) -> tuple[Any, ...]:
    """The first factor is conjugated."""
    to_a = call.xp.conj(cotangent) * b.reshape(a.shape) if call.is_active(a) else None
    return to_a, cotangent * a.reshape(b.shape) if call.is_active(b) else None


def _reverse_vecdot(call: ArrayCall, cotangent: Any, a: Any, b: Any, *, axis: int = -1) -> tuple[Any, ...]:
    """The first factor is conjugated."""
    m, given = call.xp, call.xp.expand_dims(cotangent, axis)
    to_a = call.like(m.conj(given) * b, a) if call.is_active(a) else None
    return to_a, call.like(given * a, b) if call.is_active(b) else None


def _reverse_kron(call: ArrayCall, cotangent: Any, a: Any, b: Any) -> tuple[Any, ...]:
    """The result by blocks: an axis of each factor in turn."""
    m, ndim = call.xp, max(a.ndim, b.ndim)
    rows, columns = ((1,) * (ndim - x.ndim) + x.shape for x in (a, b))
    blocks = cotangent.reshape(tuple(length for pair in zip(rows, columns, strict=True) for length in pair))
    own, inner = tuple(range(0, 2 * ndim, 2)), tuple(range(1, 2 * ndim, 2))
    of_a = m.conj(a).reshape(tuple(length for each in rows for length in (each, 1)))
    of_b = m.conj(b).reshape(tuple(length for each in columns for length in (1, each)))
    to_a = m.sum(blocks * of_b, axis=inner).reshape(a.shape) if call.is_active(a) else None
    return to_a, m.sum(blocks * of_a, axis=own).reshape(b.shape) if call.is_active(b) else None


def _reverse_cross(call: ArrayCall, cotangent: Any, a: Any, b: Any) -> tuple[Any, ...]:
    m = call.xp
    to_a = call.like(m.cross(m.conj(b), cotangent), a) if call.is_active(a) else None
    return to_a, call.like(m.cross(cotangent, m.conj(a)), b) if call.is_active(b) else None


def _cross_in_space(a: Any, b: Any, **_: Any) -> str | None:
    return None if a.shape[-1] == b.shape[-1] == 3 else "it has a rule for vectors of three components"


def _einsum_terms(subscripts: str, count: int) -> tuple[list[str], str]:
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow:
        letters = "".join(terms)
        output = "".join(sorted(each for each in set(letters) if letters.count(each) == 1))
    assert len(terms) == count
    return terms, output


def _einsum_is_plain(subscripts: Any, *operands: Any, optimize: Any = False) -> str | None:
    if not isinstance(subscripts, str):
        return "it has a rule for subscripts as text only"
    if "." in subscripts:
        return "it has no rule for an ellipsis"
    terms, _ = _einsum_terms(subscripts, len(operands))
    if any(len(set(term)) < len(term) for term in terms):
        return "it has no rule for a letter that an operand has twice"
    return None


def _reverse_einsum(
    call: ArrayCall, cotangent: Any, subscripts: str, *operands: Any, optimize: Any = False
) -> tuple[Any, ...]:
    m = call.xp
    terms, output = _einsum_terms(subscripts, len(operands))

    def to(position: int) -> Any:
        operand, term = operands[position], terms[position]
        if not call.is_active(operand):
            return None
        others = [(terms[i], m.conj(each)) for i, each in enumerate(operands) if i != position]
        known = set(output).union(*(each for each, _ in others))
        others += [  # letters that are summed up in this operand alone
            (letter, m.ones(operand.shape[i], cotangent.dtype)) for i, letter in enumerate(term) if letter not in known
        ]
        given = ",".join([output, *(each for each, _ in others)])
        found = m.einsum(f"{given}->{term}", cotangent, *(each for _, each in others))
        return call.like(m.broadcast_to(found, m.broadcast_shapes(found.shape, operand.shape)), operand)

    return None, *(to(position) for position in range(len(operands)))


_PRODUCTS: Final = (
    Rule("matmul", _reverse_matmul, arrays=2),
    Rule("dot", _reverse_dot, arrays=2),
    Rule("inner", _reverse_inner, arrays=2),
    *(Rule(name, _reverse_outer, arrays=2) for name in ("outer", "linalg.outer")),
    Rule("vdot", _reverse_vdot, arrays=2),
    *(Rule(name, _reverse_vecdot, arrays=2) for name in ("vecdot", "linalg.vecdot")),
    Rule("kron", _reverse_kron, arrays=2),
    Rule("cross", _reverse_cross, arrays=2, check=_cross_in_space),
    *(Rule(name, _reverse_tensordot, arrays=2) for name in ("tensordot", "linalg.tensordot")),
    Rule("einsum", _reverse_einsum, arrays=None, check=_einsum_is_plain),
)


# Systems of linear equations, inverses and determinants.
#
# Source: Giles 2008, "Collected matrix derivative results", 2.2 and 2.3.


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


_SOLVING: Final = (
    Rule("linalg.inv", _reverse_inv),
    Rule("linalg.solve", _reverse_solve, arrays=2),
    Rule("linalg.det", _reverse_det),
    Rule("linalg.cholesky", _reverse_cholesky),
)


RULES: Final = (*_PRODUCTS, *_SOLVING)
