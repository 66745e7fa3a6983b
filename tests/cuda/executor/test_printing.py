"""Kernels print on the executor what they print on a GPU."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from numba import cuda

import irad.cuda
from irad import Duplicated
from irad.backend.executor.printing import formatted


@cuda.jit
def talking(x, y):
    i = cuda.grid(1)
    v = x[i]
    for k in range(2):
        if i < 2:
            print("thread", i, "has", v, k)
        v = v * v
    y[i] = v


WANTED = """thread 0 has 1.500000 0
thread 0 has 2.250000 1
thread 1 has -2.000000 0
thread 1 has 4.000000 1
"""


@pytest.mark.executor_only("the interpreter of PTX does not print")
def test_print(capsys: pytest.CaptureFixture[str]):
    x, dx = np.array([1.5, -2.0, 3.0]), np.zeros(3)
    with irad.cuda.executor():
        talking[1, 3](x, np.zeros(3))
        plain = capsys.readouterr().out
        irad.cuda.grad(talking)[1, 3](Duplicated(x, dx), Duplicated(np.zeros(3), np.ones(3)))
        derived = capsys.readouterr().out
    assert plain == WANTED
    assert derived == plain, "once, in the forward sweep"
    np.testing.assert_allclose(dx, 4 * x**3)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            "%d %5.2f|%-6d|%+d",
            [(ctypes.c_int32, -3), (ctypes.c_double, 2.71828), (ctypes.c_int32, 7), (ctypes.c_int32, 1)],
        ),
        ("%lld %llu %lx", [(ctypes.c_int64, -1), (ctypes.c_uint64, 1 << 63), (ctypes.c_uint64, 255)]),
        ("%u %o %X %%", [(ctypes.c_uint32, 4000000000), (ctypes.c_uint32, 8), (ctypes.c_uint32, 48879)]),
        ("%e %g %c", [(ctypes.c_double, 1e-5), (ctypes.c_double, 1e20), (ctypes.c_int32, 65)]),
    ],
)
def test_formats_are_those_of_c(text: str, values: list):
    fields = [(f"f{n}", kind) for n, (kind, _) in enumerate(values)]
    packed = type("Packed", (ctypes.Structure,), {"_fields_": fields})(*(value for _, value in values))
    buffer = ctypes.create_string_buffer(200)
    given = [kind(value) for kind, value in values]
    ctypes.CDLL(None).snprintf(buffer, ctypes.c_size_t(200), text.encode(), *given)
    assert formatted(text, ctypes.addressof(packed)) == buffer.value.decode()


def test_strings():
    word = ctypes.create_string_buffer(b"abc")
    place = ctypes.c_uint64(ctypes.addressof(word))
    assert formatted("<%5s>", ctypes.addressof(place)) == "<  abc>"
