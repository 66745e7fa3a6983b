"""The innermost loop of products of matrices: one tile of the result, which stays in registers.

The two factors lie anywhere: their elements are found by a distance between neighbours, or by a table of places. So
neither an image in which windows overlap nor a transposed matrix has to be copied first, which BLAS does in each call.
"""

from __future__ import annotations

from typing import Any, Final

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from irad.frontend.inner import inner_overload

# A tile has twelve vectors, two of them side by side: with two for a row of the right factor and one for an element of
# the left they fit into 16 registers, and are as many as keep two units for multiply-and-add busy over their latency.
# The widths are those of AVX2 and AVX-512; other processors split or pair the vectors.

ROWS: Final = 6
_BYTES: Final = 128 if llvm.get_host_cpu_features().get("avx512f") else 64


def lanes(array):
    """Number of columns of a tile of numbers of this type."""
    raise NotImplementedError("for compiled code")


@inner_overload(lanes)
def _lanes(array):
    count = _BYTES * 8 // array.dtype.bitwidth
    return lambda array: count


@intrinsic
def as_places(context, room, count):
    """The beginning of a contiguous array of numbers as ``count`` integers, which must not outlive it."""
    return types.Array(types.int64, 1, "C")(room, types.intp), _emit_places


def _emit_places(context, builder, signature, arguments):
    """Emits an array of integers that owns no memory. NumPy's ``view`` takes longer to compile than it all."""
    table, size = signature.return_type, ir.Constant(ir.IntType(64), 8)
    places = context.make_array(table)(context, builder)
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    data = builder.bitcast(data, context.get_data_type(table.dtype).as_pointer())
    populate_array(places, data=data, shape=[arguments[1]], strides=[size], itemsize=size, meminfo=None)
    return places._getvalue()


@intrinsic
def multiply_tile(context, keep, count, a, a_start, a_rows, a_steps, b, b_start, b_steps, c, c_start, c_step):
    """``c[i, j]`` = Σ a[i, k] · b[k, j], added to what is there if ``keep``; `ROWS` rows and `lanes` columns of it.

    Args:
        keep: whether the old ``c`` is a summand.
        count: number of products that are added up for each element.
        a: contiguous array in which the left factor lies; all three have one type of numbers.
        a_start: a place in it, to which all others are relative.
        a_rows: distance from a row to the next, or the place of each, as a contiguous array of int64.
        a_steps: distance from a column to the next, or the place of each, as such an array.
        b: contiguous array in which the right factor lies.
        b_start: a place in it, to which all others are relative.
        b_steps: distance from a row to the next, or the place of each; the elements of a row are neighbours.
        c: contiguous array in which the tile lies.
        c_start: place of its first row in it; the elements of a row are neighbours.
        c_step: distance from a row to the next.
    """
    size, table = types.intp, types.Array(types.int64, 1, "C")

    def steps(given: Any) -> Any:
        return table if isinstance(given, types.Array) else size

    factors = a, size, steps(a_rows), steps(a_steps), b, size, steps(b_steps)
    return types.void(types.boolean, size, *factors, c, size, size), _emit


def _emit(context, builder, signature, arguments):
    """Emits the loop over columns of the left factor, with the tile in memory that LLVM puts into registers."""
    keep, count, a, a_start, a_rows, a_steps, b, b_start, b_steps, c, c_start, c_step = arguments
    of_a, of_rows, of_a_steps, of_b, of_b_steps, of_c = (signature.args[i] for i in (2, 4, 5, 6, 8, 9))
    number = context.get_value_type(of_c.dtype)
    width = of_c.dtype.bitwidth // 8
    half = _BYTES // width // 2
    vector, index = ir.VectorType(number, half), ir.IntType(32)

    def data(kind: Any, value: Any) -> Any:
        return context.make_array(kind)(context, builder, value).data

    def place(steps: Any, kind: Any, k: Any) -> Any:
        if isinstance(kind, types.Array):
            return builder.load(builder.gep(data(kind, steps), [k]))
        return builder.mul(steps, k)

    def halves(first: Any) -> list[Any]:
        ends = first, builder.gep(first, [ir.Constant(index, half)])
        return [builder.bitcast(end, vector.as_pointer()) for end in ends]

    def loaded(first: Any) -> list[Any]:
        return [builder.load(pointer, align=width) for pointer in halves(first)]

    def repeated(value: Any) -> Any:
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(index, 0))
        lanes = ir.Constant(ir.VectorType(index, half), [0] * half)
        return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), lanes)

    zero = ir.Constant(vector, [0.0] * half)
    sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(2)] for _ in range(ROWS)]
    left = builder.gep(data(of_a, a), [a_start])
    rows = [builder.gep(left, [place(a_rows, of_rows, count.type(i))]) for i in range(ROWS)]
    right = builder.gep(data(of_b, b), [b_start])
    with cgutils.for_range(builder, count) as loop:
        of_left, of_right = place(a_steps, of_a_steps, loop.index), place(b_steps, of_b_steps, loop.index)
        factors = loaded(builder.gep(right, [of_right]))
        for row, pair in zip(rows, sums, strict=True):
            each = repeated(builder.load(builder.gep(row, [of_left])))
            for slot, factor in zip(pair, factors, strict=True):
                product = builder.fmul(each, factor, flags=("contract",))
                builder.store(builder.fadd(builder.load(slot), product, flags=("contract",)), slot)
    for i, pair in enumerate(sums):
        target = builder.gep(data(of_c, c), [builder.add(c_start, builder.mul(c_step, c_step.type(i)))])
        for slot, pointer, old in zip(pair, halves(target), loaded(target), strict=True):
            total = builder.load(slot)
            builder.store(builder.select(keep, builder.fadd(total, old), total), pointer, align=width)
    return context.get_dummy_value()
