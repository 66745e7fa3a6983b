"""Products of matrices that lie anywhere in contiguous memory, added to what is there: BLAS's gemm in full.

NumPy's ``dot`` overwrites its result, and wants matrices that are contiguous.
"""

from __future__ import annotations

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.linalg import check_blas_return, ensure_blas, get_blas_kind


@njit
def gemm(transpose_a, transpose_b, m, n, k, alpha, a, a_start, a_step, b, b_start, b_step, beta, c, c_start, c_step):
    """``c`` = alpha · a · b + beta · c, for matrices in rows of m × k, k × n and m × n elements.

    Args:
        transpose_a: whether memory holds the transpose of ``a``.
        transpose_b: likewise.
        m: rows of ``a``.
        n: columns of ``b``.
        k: columns of ``a``.
        alpha: a factor.
        a: contiguous array of any shape in which the matrix lies; all three have one type.
        a_start: number of its first element there.
        a_step: distance between its rows in memory.
        b: as of ``a``, likewise for the next two.
        b_start: see there.
        b_step: see there.
        beta: factor of the old ``c``, which is not read if it is zero.
        c: as of ``a``, likewise for the next two.
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
    """Calls it."""
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
