"""What kernels can be given, and what memory they can have."""

from __future__ import annotations

import cmath

import numpy as np
import pytest
from numba import cuda, float64, from_dtype, types

import irad
import irad.cuda
from irad.frontend.cuda.program import flatten, load_kernel
from irad.ir.text.parser import parse_module
from tests.cuda.run import run

TABLE = np.arange(12.0).reshape(3, 4)
FORTRAN = np.asfortranarray(TABLE)
BODY = np.dtype([("mass", np.float64), ("position", np.float32, (3,)), ("count", np.int16)], align=True)
RECORD = from_dtype(BODY)
PAIR = from_dtype(np.dtype([("a", np.float64), ("n", np.int32), ("b", np.float64)], align=True))


def test_names_of_parameters():
    def kernel(x, a, z, pair):
        x[0, 0] = a

    signature = types.float64[:, :], types.int32, types.complex128, types.UniTuple(types.float64, 2)
    program = load_kernel(cuda.jit(kernel), signature)
    x, a, z, pair = program.signature.parameters
    assert x.flattened == (*(f"arg.x.{n}" for n in range(5)), "arg.x.5.0", "arg.x.5.1", "arg.x.6.0", "arg.x.6.1")
    assert (a.flattened, z.flattened) == (("arg.a",), ("arg.z.0", "arg.z.1"))
    assert len(pair.flattened) == 2
    assert program.signature.types == signature
    function = parse_module(program.module.text).functions[program.module.name]
    assert [each.name for each in function.params] == [*x.flattened, *a.flattened, *z.flattened, *pair.flattened]


def test_layouts_and_negative_indices():
    def kernel(a, b, c, d):
        i, j = cuda.grid(2)
        d[i, j] = a[i, j] + 10 * b[i, j] + 100 * c[-1 - i, -1 - j]

    a, c = np.arange(24.0).reshape(6, 4)[::2], np.asfortranarray(TABLE)
    d = np.zeros((3, 4))
    run(kernel, (3, 2), (1, 2), (a, TABLE, c, d))
    np.testing.assert_array_equal(d, a + 10 * TABLE + 100 * TABLE[::-1, ::-1])


def test_scalars_and_an_array_without_axes():
    def kernel(flag, small, big, unsigned, real, nothing, x):
        if flag:
            x[()] = small + big + unsigned + real

    for flag in (False, True):
        x = np.array(0.5)
        arguments = flag, np.int8(-3), 2**40, np.uint16(65535), np.float32(0.25), None, x
        kinds = (
            *(types.boolean, types.int8, types.int64, types.uint16, types.float32),
            *(types.Optional(types.float64), types.Array(types.float64, 0, "C")),
        )
        run(kernel, 1, 1, arguments, types=kinds)
        assert x == (-3 + 2**40 + 65535 + 0.25 if flag else 0.5)


def test_optional_numbers():
    def kernel(a, x):
        x[0] = -1.0 if a is None else a

    for value, wanted in ((None, -1.0), (4.5, 4.5)):
        x = np.zeros(1)
        run(kernel, 1, 1, (value, x), types=(types.Optional(types.float64), types.float64[::1]))
        assert x[0] == wanted


def test_complex_numbers():
    def kernel(z, w):
        i = cuda.grid(1)
        w[i] = w[i] * z + abs(w[i]) + cmath.exp(w[i] / 4) - w[i].conjugate()

    rng = np.random.default_rng(0)
    w = rng.normal(size=8) + 1j * rng.normal(size=8)
    wanted = w * (1 - 2j) + abs(w) + np.exp(w / 4) - w.conj()
    run(kernel, 1, 8, (1 - 2j, w))
    np.testing.assert_allclose(w, wanted, rtol=1e-14)


def test_tuples():
    def kernel(numbers, mixed, x):
        i = cuda.grid(1)
        x[i] = numbers[0] * numbers[2] + numbers[i] + mixed[0] * mixed[1][i]

    x, y = np.zeros(3), np.array([5.0, 6.0, 7.0])
    run(kernel, 1, 3, ((1.5, 2.5, 4.0), (3, y), x))
    np.testing.assert_array_equal(x, 6.0 + np.array([1.5, 2.5, 4.0]) + 3 * y)


def test_records():
    def kernel(one, many, x):
        i = cuda.grid(1)
        x[i] = one.mass * many[i].position[1] + many[i]["mass"]
        many[i].count = i + 1
        many[i].position[2] = x[i]

    many = np.zeros(4, BODY)
    many["mass"], many["position"] = np.arange(4), np.arange(12).reshape(4, 3)
    one = np.zeros(1, BODY)
    one["mass"] = 2.0
    x = np.zeros(4)
    wanted = 2.0 * many["position"][:, 1] + many["mass"]
    run(kernel, 1, 4, (one[0], many, x), types=(RECORD, types.Array(RECORD, 1, "C"), types.float64[::1]))
    np.testing.assert_array_equal(x, wanted)
    np.testing.assert_array_equal(many["count"], [1, 2, 3, 4])
    np.testing.assert_array_equal(many["position"][:, 2], wanted)


def test_vector_types():
    def kernel(x):
        a = cuda.float64x3(x[0], x[1], x[2])
        b = cuda.float64x3(a.y, a.z, a.x)
        x[3] = a.x * b.x + a.y * b.y + a.z * b.z

    x = np.array([2.0, 3.0, 5.0, 0.0])
    run(kernel, 1, 1, (x,))
    assert x[3] == 2 * 3 + 3 * 5 + 5 * 2


def test_a_vector_type_as_argument_compiles():
    from numba.cuda.vector_types import vector_types

    def kernel(v, x):
        x[0] = v.x + v.w

    program = load_kernel(cuda.jit(kernel), (vector_types["float32x4"], types.float32[::1]))
    assert len(program.signature.parameters[0].flattened) == 4
    with pytest.raises(irad.SignatureError, match="which kernels cannot take"):
        flatten(program.signature, ((1, 2, 3, 4), np.zeros(1, np.float32)))


def test_constant_memory():
    def kernel(x):
        i, j = cuda.grid(2)
        table = cuda.const.array_like(TABLE)
        columns = cuda.const.array_like(FORTRAN)
        x[i, j] = table[i, j] * columns[2 - i, 3 - j] + TABLE[i, 0]

    x = np.zeros((3, 4))
    run(kernel, 1, (3, 4), (x,))
    np.testing.assert_array_equal(x, TABLE * TABLE[::-1, ::-1] + TABLE[:, :1])
    module = parse_module(load_kernel(cuda.jit(kernel), (types.float64[:, ::1],)).module.text)
    constants = [each for each in module.globals.values() if "addrspace(4)" in each.prefix]
    assert constants
    assert all(each.constant and each.initializer is not None for each in constants)


def test_local_memory_of_several_axes():
    def kernel(x):
        i = cuda.grid(1)
        mine = cuda.local.array((2, 3), float64)
        for a in range(2):
            for b in range(3):
                mine[a, b] = x[i] ** a * b
        total = 0.0
        for a in range(2):
            for b in range(3):
                total += mine[a, b]
        x[i] = total

    x = np.arange(5.0)
    run(kernel, 1, 5, (x,))
    np.testing.assert_array_equal(x, 3.0 + 3.0 * np.arange(5.0))


def test_records_in_shared_memory_have_derivatives():
    x, dx, y = np.arange(8.0), np.zeros(8), np.zeros(8)

    @cuda.jit
    def kernel(x, y):
        part = cuda.shared.array((4, 2), PAIR)
        t = cuda.threadIdx.x
        mine = part[t // 2, t % 2]
        mine.a = x[t]
        mine.n = 7 - t
        mine.b = x[t] ** 2
        cuda.syncthreads()
        y[t] = part[mine.n // 2, mine.n % 2].a * mine.b

    with irad.cuda.executor(races=True):
        irad.cuda.grad(kernel)[1, 8](irad.Duplicated(x, dx), irad.Duplicated(y, np.ones(8)))
    np.testing.assert_array_equal(y, x[::-1] * x**2)
    np.testing.assert_array_equal(dx, x[::-1] ** 2 + 2 * x * x[::-1])


def test_records_in_shared_memory():
    def kernel(x):
        part = cuda.shared.array(4, RECORD)
        i = cuda.threadIdx.x
        part[i].mass = x[i]
        part[i].count = i
        cuda.syncthreads()
        x[i] = part[3 - i].mass + part[3 - i].count

    x = np.array([1.0, 2.0, 4.0, 8.0])
    run(kernel, 1, 4, (x,), races=True)
    np.testing.assert_array_equal(x, [11.0, 6.0, 3.0, 1.0])


def test_views_in_a_kernel():
    def kernel(x):
        i = cuda.grid(1)
        every_second = x[1::2]
        every_second[i] += len(x) + every_second.shape[0]

    x = np.zeros(6)
    run(kernel, 1, 3, (x,))
    np.testing.assert_array_equal(x, [0, 9, 0, 9, 0, 9])


def test_arguments_that_cannot_be_passed():
    def kernel(x, n):
        x[0] = n

    signature = load_kernel(cuda.jit(kernel), (types.float64[::1], types.int64)).signature
    assert flatten(signature, (x := np.zeros(3), 4)) == [0, 0, 3, 8, x.ctypes.data, 3, 8, 4]
    with pytest.raises(irad.SignatureError, match="2 arguments"):
        flatten(signature, (np.zeros(3),))
    with pytest.raises(irad.SignatureError, match="x has 2 dimensions"):
        flatten(signature, (np.zeros((3, 1)), 4))
    with pytest.raises(irad.SignatureError, match="not an array that a kernel can take"):
        flatten(signature, (Shaped(), 4))


class Shaped:
    shape = (3,)
    dtype = np.float64
