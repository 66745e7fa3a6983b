"""batched_mul: products of many pairs of matrices, each by BLAS. Their derivatives are such products, too."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.linalg import check_blas_return, ensure_blas, get_blas_kind

import irad
from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_jitable, inner_njit
from irad.frontend.operands import floats
from irad.nn.shapes import Array
from irad.rules import AugmentedReturn, is_active

# Products of matrices that lie anywhere in contiguous memory, added to what is there: BLAS's gemm in full.
#
# NumPy's ``dot`` overwrites its result, and wants matrices that are contiguous.


@inner_jitable
def gemm(transpose_a, transpose_b, m, n, k, alpha, a, a_start, a_step, b, b_start, b_step, beta, c, c_start, c_step):
    """``c`` = alpha · a · b + beta · c, for matrices in rows of m × k, k × n and m × n elements.

    Args:
        transpose_a: whether memory holds the transpose of ``a``.
        transpose_b: whether memory holds the transpose of ``b``.
        m: rows of ``a``.
        n: columns of ``b``.
        k: columns of ``a``.
        alpha: a factor.
        a: contiguous array of any shape in which the matrix lies; all three have one type.
        a_start: number of its first element there.
        a_step: distance between its rows in memory.
        b: as of ``a``, as are the next two.
        b_start: see there.
        b_step: see there.
        beta: factor of the old ``c``, which is not read if it is zero.
        c: as of ``a``, as are the next two.
        c_start: see there.
        c_step: see there.
    """
    if m > 0 and n > 0:  # memory in columns is that of the transposes: cᵀ = bᵀ · aᵀ
        _gemm(
            *(transpose_b, transpose_a, n, m, k, c.dtype.type(alpha), b, b_start, max(b_step, 1)),
            *(a, a_start, max(a_step, 1), c.dtype.type(beta), c, c_start, c_step),
        )


@intrinsic
def _gemm(context, trans_a, trans_b, m, n, k, alpha, a, a_start, a_step, b, b_start, b_step, beta, c, c_start, c_step):
    """Gemm as Numba knows it, for matrices in columns."""
    ensure_blas()
    assert {a.layout, b.layout, c.layout} == {"C"}
    assert a.dtype == b.dtype == c.dtype
    size, flag = types.intp, types.boolean
    places = a, size, size, b, size, size, c.dtype, c, size, size
    return types.void(flag, flag, size, size, size, c.dtype, *places), _emit


def _emit(context, builder, signature, arguments):
    """Emits the call of Numba's gemm."""
    trans_a, trans_b, m, n, k, alpha, a, a_start, a_step, b, b_start, b_step, beta, c, c_start, c_step = arguments
    letter, size, pointer = ir.IntType(8), context.get_value_type(types.intp), ir.IntType(8).as_pointer()

    def transposed(flag):
        return builder.select(flag, letter(ord("t")), letter(ord("n")))

    def factor(value):
        slot = cgutils.alloca_once_value(builder, value)
        return builder.bitcast(slot, pointer)

    def place(array, value, start):
        data = context.make_array(array)(context, builder, value).data
        return builder.bitcast(builder.gep(data, [start]), pointer)

    kinds = [letter, letter, letter, size, size, size, pointer, pointer, size, pointer, size, pointer, pointer, size]
    callee = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.IntType(32), kinds), "numba_xxgemm")
    type_a, type_b, type_c = signature.args[6], signature.args[9], signature.args[13]
    flags = [letter(ord(get_blas_kind(type_c.dtype))), transposed(trans_a), transposed(trans_b)]
    factors = place(type_a, a, a_start), a_step, place(type_b, b, b_start), b_step, factor(beta)
    status = builder.call(callee, [*flags, m, n, k, factor(alpha), *factors, place(type_c, c, c_start), c_step])
    check_blas_return(context, builder, status)
    return context.get_dummy_value()


@njit
def batched_mul(a: Array, b: Array, transpose_a: bool = False, transpose_b: bool = False) -> Array:
    """Products of many matrices at once: ``out[i] = a[i] @ b[i]``.

    Args:
        a: matrices of shape (batch, m, k); one matrix for all products if its batch is 1.
        b: matrices of shape (batch, k, n); one matrix for all products if its batch is 1.
        transpose_a: whether ``a`` holds the transposed matrices, (batch, k, m).
        transpose_b: whether ``b`` holds the transposed matrices, (batch, n, k).

    Returns:
        New matrices of shape (batch, m, n).

    Raises:
        ValueError: the sizes do not fit each other.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> a, b = np.ones((4, 2, 3)), np.ones((1, 5, 3))
        >>> irad.nn.batched_mul(a, b, transpose_b=True).shape
        (4, 2, 5)
    """
    a, b = floats("batched_mul", a, b)
    return _mul(a, b, transpose_a, transpose_b)


@inner_jitable
def _sizes(a, b, transpose_a, transpose_b):
    """(batch, m, k, n).

    Raises:
        ValueError: the shapes do not fit.
    """
    m, k = (a.shape[2], a.shape[1]) if transpose_a else (a.shape[1], a.shape[2])
    inner, n = (b.shape[2], b.shape[1]) if transpose_b else (b.shape[1], b.shape[2])
    if k != inner:
        raise FormattedValueError("batched_mul: matrices with {} columns times matrices with {} rows", k, inner)
    if a.shape[0] != b.shape[0] and a.shape[0] != 1 and b.shape[0] != 1:
        raise FormattedValueError("batched_mul: {} matrices times {} matrices", a.shape[0], b.shape[0])
    return (b.shape[0] if a.shape[0] == 1 else a.shape[0]), m, k, n


@inner_jitable
def _put_products(out, a, b, transpose_a, transpose_b, keep):
    """Adds the products to matrices times ``keep``; all to one where there is one."""
    batch, m, k, n = _sizes(a, b, transpose_a, transpose_b)
    for i in range(batch):
        at_a, at_b, at_out = i % a.shape[0] * m * k, i % b.shape[0] * k * n, i % out.shape[0] * m * n
        gemm(
            *(transpose_a, transpose_b, m, n, k, 1.0, a, at_a, a.shape[2], b, at_b, b.shape[2]),
            *(keep, out, at_out, n),
        )


@inner_njit
def _mul(a, b, transpose_a, transpose_b):
    batch, m, _, n = _sizes(a, b, transpose_a, transpose_b)
    out = np.empty((batch, m, n), a.dtype)
    _put_products(out, a, b, transpose_a, transpose_b, 0.0)
    return out


@inner_jitable
def _add_products(total, a, b, transpose_a, transpose_b):
    """Adds the products to matrices; to one where there is one."""
    _put_products(total, a, b, transpose_a, transpose_b, 1.0)


@inner_jitable
def _add_by_left(total, cotangent, b, transpose_a, transpose_b):
    """Adds the cotangent with respect to the left factors."""
    if transpose_a:
        _add_products(total, b, cotangent, transpose_b, True)
    else:
        _add_products(total, cotangent, b, False, not transpose_b)


@inner_jitable
def _add_by_right(total, cotangent, a, transpose_a, transpose_b):
    """Adds the cotangent with respect to the right factors."""
    if transpose_b:
        _add_products(total, cotangent, a, True, transpose_a)
    else:
        _add_products(total, a, cotangent, not transpose_a, False)


@irad.rules.augmented_primal(_mul)
def _mul_augmented(config, a, b, transpose_a, transpose_b):
    out = _mul(a.value, b.value, transpose_a.value, transpose_b.value)
    # The reverse needs each factor for the other's cotangent, so only one that is overwritten and needed is copied.
    left = a.value.copy() if config.overwritten[0] and is_active(b) else a.value
    right = b.value.copy() if config.overwritten[1] and is_active(a) else b.value
    return AugmentedReturn(out, np.zeros_like(out), (left, right))


@irad.rules.reverse(_mul)
def _mul_reverse(config, cotangent, tape, a, b, transpose_a, transpose_b):
    if is_active(cotangent):
        if is_active(a):
            _add_by_left(a.shadow, cotangent, tape[1], transpose_a.value, transpose_b.value)
        if is_active(b):
            _add_by_right(b.shadow, cotangent, tape[0], transpose_a.value, transpose_b.value)
    return None, None, None, None


@irad.rules.forward(_mul)
def _mul_forward(config, a, b, transpose_a, transpose_b):
    out = _mul(a.value, b.value, transpose_a.value, transpose_b.value)
    tangent = np.zeros_like(out)
    if is_active(a):
        _add_products(tangent, a.tangent, b.value, transpose_a.value, transpose_b.value)
    if is_active(b):
        _add_products(tangent, a.value, b.tangent, transpose_a.value, transpose_b.value)
    return out, tangent
