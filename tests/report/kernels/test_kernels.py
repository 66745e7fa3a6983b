"""What is reported of CUDA kernels; neither a GPU nor a driver is needed."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from numba import cuda, float64, int64

import irad
import irad.cuda
from irad.backend.cuda import toolkit
from irad.cli.inspect import inspect
from irad.errors import SignatureError, UnsupportedError
from irad.report.kernels.collect import cuda_name
from irad.report.model import Stage
from irad.source_text import names_in
from tests.cuda.ptx.tools import needs_libdevice, needs_ptxas

ARRAY = float64[::1]


@cuda.jit(device=True)
def square(t):
    return t * t


@cuda.jit
def reverse_squares(x, scale, y, n):
    tile = cuda.shared.array(32, float64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    tile[t] = square(x[i]) if i < n else 0.0
    cuda.syncthreads()
    if i < n:
        y[i] = scale * tile[31 - t]


FIRST = reverse_squares.py_func.__code__.co_firstlineno  # the decorator
TYPES = ARRAY, float64, ARRAY, int64


@pytest.fixture(scope="module")
def inspection():
    return irad.inspect(reverse_squares, *TYPES)


def line_of(inspection, offset: int):
    [found] = [facts for facts in inspection.report.lines if facts.line == FIRST + offset]
    return found


def test_active_variables_of_lines(inspection):
    assert set(line_of(inspection, 5).active) == {"tile", "x"}
    assert set(line_of(inspection, 5).constant) >= {"i", "t", "n"}
    assert set(line_of(inspection, 8).active) == {"y", "scale", "tile"}
    assert line_of(inspection, 4).active == (), "the x of threadIdx.x is not a variable"


def test_facts_name_what_is_in_the_source(inspection):
    [function] = inspection.report.functions
    assert function.name == "reverse_squares"
    assert "x, scale, y, tile" in function.variant
    operations = {value.operation for value in function.values}
    assert "call of cuda.syncthreads" in operations
    assert {"cuda.threadIdx.x on line"} <= {value.source.rpartition(" ")[0] for value in function.values}


def test_device_functions_belong_to_the_source(inspection):
    texts = [facts.text.strip() for facts in inspection.report.lines]
    assert "return t * t" in texts
    [product] = [v for v in inspection.report.functions[0].values if v.places and v.places[0].function == "square"]
    assert product.is_active


@pytest.mark.parametrize("stage", ["python", "llvm", "prepared", "types", "activity", "plan", "tape", "adjoint"])
def test_stages_before_the_code(inspection, stage):
    assert inspection.stage(stage).strip()


def test_the_stages_say_what_they_should(inspection):
    assert inspection.llvm.count("define") >= 2, "the device function is there"
    assert "_ZN" not in inspection.adjoint
    assert "reverse_squares.irad0.reverse" in inspection.adjoint
    assert "irad.entry" not in inspection.adjoint


@needs_libdevice
def test_ptx_has_lines_and_names(inspection):
    assert "ptx_kernel" in inspection.optimized
    text = inspection._collector.report([Stage.PTX]).stages[Stage.PTX]
    assert any(".entry reverse_squares(" in line.text for line in text.lines)
    at = {line.line for line in text.lines if "bar.sync" in line.text}
    assert FIRST + 6 in at
    loads = [line.line for line in text.lines if "ld.global" in line.text]
    assert FIRST + 5 in loads


@needs_ptxas
@needs_libdevice
def test_registers_are_counted(inspection):
    code = {each.arch: each for each in inspection.report.code}
    assert list(code) == ["sm_80", "sm_90", "sm_100"]
    assert code["sm_90"].primal_shared == 32 * 8
    assert code["sm_90"].shared == 2 * 32 * 8, "a shadow for each element"
    assert code["sm_90"].registers > code["sm_90"].primal_registers > 0
    assert f"{code['sm_90'].registers} registers (the kernel {code['sm_90'].primal_registers})" in str(inspection)
    assert json.loads(inspection.json())["code"][1]["registers"] == code["sm_90"].registers


def test_without_ptxas_a_note_says_what_to_install(monkeypatch):
    def missing(name: str):
        raise toolkit._missing(f"the program {name}", "nvidia-cuda-nvcc")

    monkeypatch.setattr("irad.backend.cuda.toolkit.find_tool", missing)
    report = irad.inspect(reverse_squares, *TYPES).report
    assert report.code == ()
    assert "pip install nvidia-cuda-nvcc" in report.note


@needs_libdevice
def test_the_page_has_all_stages(inspection):
    pytest.importorskip("jinja2")
    page = inspection.html()
    for stage in inspection._collector.stages:
        assert f'["{stage.value}",' in page


@needs_libdevice
def test_the_page_says_how_the_derivative_adds(inspection, browser, tmp_path):
    pytest.importorskip("jinja2")
    (tmp_path / "page.html").write_text(inspection.html(), encoding="utf-8")
    browser.open(tmp_path / "page.html")
    browser.find("#tab-shadows").click()
    rows = [
        [cell.text for cell in row.find_elements("css selector", "td")]
        for row in browser.all("#facts-shadows tbody tr")
    ]
    assert rows == [
        [each.memory, each.how, each.why, ", ".join(map(str, each.lines))] for each in inspection.report.additions
    ]
    assert {"x": "plainly", "scale": "by one atomic operation for each block"}.items() <= {
        memory: how for memory, how, *_ in rows
    }.items()
    browser.find("#tab-line").click()
    browser.click_line(FIRST + 5)
    assert (
        "to the derivative of x plainly, since no two threads access the same element"
        in browser.find("#facts-line").text
    )
    assert browser.complaints() == []


def test_explanations(inspection):
    assert "has a shadow" in inspection.explain("tile")
    assert "cuda.syncthreads" in inspection.explain(FIRST + 6)


def test_arguments_and_names_choose_what_is_differentiated():
    arguments = np.zeros(4), 1.0, np.zeros(4), 4
    found = irad.inspect(reverse_squares, *arguments, argnames=("x", "y"))
    assert "with respect to x, y, tile" in found.report.functions[0].variant
    with pytest.raises(SignatureError, match="no derivative with respect to n of reverse_squares"):
        irad.inspect(reverse_squares, *arguments, argnums=3)
    with pytest.raises(SignatureError, match="takes 4 arguments, and 1 were given"):
        irad.inspect(reverse_squares, arguments[0])


def test_the_derivative_of_a_kernel_is_inspected_as_the_kernel(inspection):
    dk = irad.cuda.grad(reverse_squares, options=irad.Options(plan="save_all"))
    found = irad.inspect(dk, *TYPES)
    assert repr(found) == repr(inspection)
    assert "save_all" in found.report.options
    assert found.plan != inspection.plan
    with pytest.raises(SignatureError, match="already created"):
        irad.inspect(dk, *TYPES, options=irad.Options())


def test_what_is_for_functions_says_what_is_for_kernels():
    with pytest.raises(
        SignatureError, match=r"(?s)reverse_squares is a CUDA kernel.*irad\.cuda\.grad\(reverse_squares\)"
    ):
        irad.grad(reverse_squares)
    with pytest.raises(SignatureError, match="square is a device function"):
        irad.tape_report(square)


def test_device_functions_are_functions_on_the_cpu():
    assert irad.grad(square)(3.0) == 6.0
    assert "irad differentiates it with respect to" in str(irad.check(square, 3.0))


def test_functions_for_the_cpu_are_inspected_without_numba_cuda():
    code = (
        "import sys, irad, numba\n"
        "print(irad.inspect(lambda x: x * x, numba.float64).adjoint.count('fmul'))\n"
        "print([name for name in sys.modules if name.startswith('numba.cuda')])\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_command_line(tmp_path):
    file = tmp_path / "kernels.py"
    file.write_text(
        "from numba import cuda\n\n\n@cuda.jit\ndef scale(x, a, y):\n    i = cuda.grid(1)\n"
        "    if i < x.size:\n        y[i] = a * x[i] ** 2\n"
    )
    types = ("--sig", "float64[::1], float64, float64[::1]")
    shown = CliRunner().invoke(inspect, [f"{file}:scale", *types, "--wrt", "x,a,y"])
    assert shown.exit_code == 0, shown.output
    assert "with respect to x, a, y" in shown.output
    plan = CliRunner().invoke(inspect, [f"{file}:scale", *types, "--stage", "plan", "--explain", "8", "--no-pager"])
    assert plan.exit_code == 0, plan.output
    assert "element of x" in plan.output
    profile = CliRunner().invoke(
        inspect,
        [f"{file}:scale", "--args", "np.ones(3), 2.0, np.ones(3)", "--html", str(tmp_path / "p.html"), "--profile"],
    )
    assert profile.exit_code != 0
    assert "a kernel has no profile" in str(profile.exception) + profile.output


@cuda.jit
def largest(x, y):
    i = cuda.grid(1)
    cuda.atomic.max(y, 0, x[i])


def test_a_kernel_that_is_refused_has_a_page():
    pytest.importorskip("jinja2")
    inspection = irad.inspect(largest, ARRAY, ARRAY)
    with pytest.raises(UnsupportedError):
        _ = inspection.report
    assert "not differentiated" in inspection.html()
    assert "atomicrmw fmax" in inspection.llvm


@pytest.mark.parametrize("stage", ["numba-ir", "asm", "adjoint-python"])
def test_stages_that_kernels_lack(inspection, stage):
    with pytest.raises(UnsupportedError, match="a CUDA kernel has no stage"):
        inspection.stage(stage)
    with pytest.raises(UnsupportedError):
        inspection.adjoint_as_python()


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("llvm.nvvm.read.ptx.sreg.tid.x", "cuda.threadIdx.x"),
        ("llvm.nvvm.read.ptx.sreg.laneid", "cuda.laneid"),
        ("irad.cuda.shfl.bfly.f64", "cuda.shfl_xor_sync"),
        ("irad.cuda.match.any.i32", "cuda.match_any_sync"),
        ("irad.cuda.barrier.and", "cuda.syncthreads_and"),
        ("sin", None),
    ],
)
def test_names_of_operations(symbol, name):
    assert cuda_name(symbol) == name


def test_names_in_a_line():
    assert names_in("    y[i] = f(x.real)  # and z") == {"y", "i", "f", "x"}
    assert names_in("  total = first + (second *") == {"total", "first", "second"}
    assert names_in("for i in range(3):") == {"i", "range"}
    assert names_in("'''a text that goes on") == set()
