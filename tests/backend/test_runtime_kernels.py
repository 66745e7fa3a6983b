"""The loops over shadow memory, compiled without optimisation and with all of it, against NumPy."""

from __future__ import annotations

import re
from ctypes import CFUNCTYPE, c_int64, c_void_p
from functools import cache

import llvmlite.binding as ll
import numpy as np
import pytest

from irad.backend.runtime.support import FOLDER
from irad.backend.runtime.text import read


class Library:
    """The kernels compiled at one level of optimisation."""

    def __init__(self, level: int) -> None:
        ll.initialize_native_target()
        ll.initialize_native_asmprinter()
        self.module = ll.parse_assembly(read(FOLDER, "kernels").text().replace("linkonce_odr ", ""))
        self.module.verify()
        machine = ll.Target.from_default_triple().create_target_machine(
            cpu=ll.get_host_cpu_name(), features=ll.get_host_cpu_features().flatten(), opt=level, jit=True
        )
        options = ll.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = level == 3
        builder = ll.create_pass_builder(machine, options)
        builder.getModulePassManager().run(self.module, builder)
        self._engine = ll.create_mcjit_compiler(self.module, machine)
        self._engine.finalize_object()

    def call(self, name: str, target: int, source: int, extent: int) -> None:
        address = self._engine.get_function_address(f"irad.{name}")
        CFUNCTYPE(None, c_void_p, c_void_p, c_int64)(address)(target, source, extent)


@cache
def library(level: int) -> Library:
    return Library(level)


@pytest.fixture(params=[0, 3], ids=["O0", "O3"])
def lib(request: pytest.FixtureRequest) -> Library:
    return library(request.param)


FLOATS = {"f64": np.float64, "f32": np.float32}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 64, 1001])
@pytest.mark.parametrize("distance", [0, 1, 2, 3, 4, 7, 8, 16, 63, 64, 65, 1000, 1001, 1500])
@pytest.mark.parametrize("sign", [1, -1])
def test_copy_adjoint_is_that_of_memmove(lib: Library, name: str, count: int, distance: int, sign: int):
    dtype = FLOATS[name]
    memory = np.random.default_rng(count).standard_normal(2 * 1001 + 1500).astype(dtype)
    start = 1500 if sign < 0 else 0
    source, target = slice(start, start + count), slice(start + sign * distance, start + sign * distance + count)
    expected = memory.copy()
    cotangent = expected[target].copy()
    expected[target] = 0
    expected[source] += cotangent
    width = dtype().itemsize
    base = memory.ctypes.data
    lib.call(f"copy_adjoint_{name}", base + target.start * width, base + source.start * width, count * width)
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("count", [-1, 0, 1, 7, 64, 1001])
def test_add(lib: Library, name: str, count: int):
    dtype = FLOATS[name]
    rng = np.random.default_rng(1)
    target, term = rng.standard_normal(1200).astype(dtype), rng.standard_normal(1200).astype(dtype)
    expected = target.copy()
    expected[: max(count, 0)] += term[: max(count, 0)]
    lib.call(f"add_{name}", target.ctypes.data, term.ctypes.data, count)
    np.testing.assert_array_equal(target, expected)


def test_shadow_in_a_packed_record_need_not_be_aligned(lib: Library):
    record = np.zeros(3, np.dtype([("tag", "i1"), ("x", "f8", 4)]))
    record["x"] = np.arange(12).reshape(3, 4)
    lib.call("copy_adjoint_f64", record.ctypes.data + 1, record.ctypes.data + 34, 32)
    assert record["x"].tolist() == [[0, 0, 0, 0], [4, 6, 8, 10], [8, 9, 10, 11]]


@pytest.mark.parametrize("name", ["copy_adjoint_f64", "add_f64"])
def test_loops_vectorise(name: str):
    body = str(library(3).module)
    function = body[body.index(f"@irad.{name}(") :].split("\n}", 1)[0]
    assert re.search(r"fadd <\d+ x double>", function)
