"""batched_mul, batched_vec: products of many pairs of matrices, each by BLAS. So are their derivatives."""

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
from irad.frontend.operands import floats_or_complex
from irad.nn.complex_parts import left_factors, parts, products_like, right_factors
from irad.nn.outputs import clear, empty, require_apart
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
def batched_mul(
    a: Array, b: Array, transpose_a: bool = False, transpose_b: bool = False, out: Array | None = None
) -> Array:
    """Products of many matrices at once: ``out[i] = a[i] @ b[i]``.

    Args:
        a: matrices of shape (batch, m, k), real or complex; one matrix for all products if its batch is 1.
        b: matrices of shape (batch, k, n); one matrix for all products if its batch is 1.
        transpose_a: whether ``a`` holds the transposed matrices, (batch, k, m).
        transpose_b: whether ``b`` holds the transposed matrices, (batch, n, k).
        out: where the result is written to, a contiguous array of its shape and type that shares no memory with the
            arguments; by default a new array.

    Returns:
        ``out``, or new matrices, of shape (batch, m, n).

    Raises:
        ValueError: the sizes do not fit each other.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> a, b = np.ones((4, 2, 3)), np.ones((1, 5, 3))
        >>> irad.nn.batched_mul(a, b, transpose_b=True).shape
        (4, 2, 5)
    """
    a, b = floats_or_complex("batched_mul", a, b)
    batch, m, _, n = _sizes(a, b, transpose_a, transpose_b)
    left, right = left_factors(a, transpose_a), right_factors(b, transpose_b)
    y = empty("batched_mul", out, (batch, m, n * parts(a)), left)
    require_apart(out, left)
    require_apart(out, right)
    _put_mul(y, left, right, transpose_a, transpose_b)
    return products_like(y, a)


@njit
def batched_vec(a: Array, b: Array, transpose_a: bool = False) -> Array:
    """Products of many matrices with vectors: ``out[i] = a[i] @ b[i]``.

    Args:
        a: matrices of shape (batch, m, n), real or complex; one matrix for all products if its batch is 1.
        b: vectors of shape (batch, n); or one of shape (n,) for all products.
        transpose_a: whether ``a`` holds the transposed matrices, (batch, n, m).

    Returns:
        New vectors of shape (batch, m).

    Raises:
        ValueError: the sizes do not fit each other.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> a = np.array([[[1.0, 2.0]], [[3.0, 4.0]]])
        >>> irad.nn.batched_vec(a, np.array([1.0, 10.0]))
        array([[21.],
               [43.]])
    """
    a, b = floats_or_complex("batched_vec", a, b)
    columns = b.reshape(_size_of_all(b.shape), b.shape[-1], 1)
    batch, m, _, _ = _sizes(a, columns, transpose_a, False)
    left, right = left_factors(a, transpose_a), right_factors(columns, False)
    y = np.empty((batch, m, parts(a)), left.dtype)
    _put_mul(y, left, right, transpose_a, False)
    return products_like(y, a).reshape(batch, m)


@inner_njit
def _size_of_all(shape):
    """Number of vectors."""
    return shape[0] if len(shape) > 1 else 1


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
def _put_mul(out, a, b, transpose_a, transpose_b):
    """Overwrites matrices with the products."""
    _put_products(out, a, b, transpose_a, transpose_b, 0.0)


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


@irad.rules.augmented_primal(_put_mul)
def _put_mul_augmented(config, out, a, b, transpose_a, transpose_b):
    _put_mul(out.value, a.value, b.value, transpose_a.value, transpose_b.value)
    # The reverse needs each factor for the other's cotangent, so only one that is overwritten and needed is copied.
    left = a.value.copy() if config.overwritten[1] and is_active(b) else a.value
    right = b.value.copy() if config.overwritten[2] and is_active(a) else b.value
    return AugmentedReturn(None, None, (left, right))


@irad.rules.reverse(_put_mul)
def _put_mul_reverse(config, cotangent, tape, out, a, b, transpose_a, transpose_b):
    if is_active(out):
        if is_active(a):
            _add_by_left(a.shadow, out.shadow, tape[1], transpose_a.value, transpose_b.value)
        if is_active(b):
            _add_by_right(b.shadow, out.shadow, tape[0], transpose_a.value, transpose_b.value)
        clear(out.shadow)
    return None, None, None, None, None


@irad.rules.forward(_put_mul)
def _put_mul_forward(config, out, a, b, transpose_a, transpose_b):
    _put_mul(out.value, a.value, b.value, transpose_a.value, transpose_b.value)
    if is_active(out):
        clear(out.tangent)
        if is_active(a):
            _add_products(out.tangent, a.tangent, b.value, transpose_a.value, transpose_b.value)
        if is_active(b):
            _add_products(out.tangent, a.value, b.tangent, transpose_a.value, transpose_b.value)
