"""`irad check` of kernels: what it says, and its status."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from irad.cli import main

KERNELS = """
import math
from numba import cuda


@cuda.jit
def scale(x, a, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * math.sin(x[i])


@cuda.jit
def fenced(x, y):
    i = cuda.grid(1)
    cuda.threadfence()
    y[i] = x[i]


@cuda.jit
def careless(x, y):
    y[cuda.grid(1)] = x[cuda.grid(1)]


def plain(x):
    return x * x
"""
POINT = ("--args", "np.array([0.5, 1.5, 2.5]), 2.0, np.zeros(3)")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("check") / "kernels_to_check.py"
    path.write_text(KERNELS)
    return path


def check(file, name: str, *options: str) -> Result:
    return CliRunner().invoke(main, ["check", f"{file}:{name}", *options])


def test_a_kernel_is_checked(file):
    result = check(file, "scale", *POINT, "--launch", "1, 32", "--points", "1")
    assert result.exit_code == 0, result.output
    assert "The gradient is right here." in result.output
    assert "adds to the derivative of x plainly" in result.output
    found = json.loads(
        check(file, "scale", *POINT, "--launch", "1, 32", "--points", "1", "--json", "--wrt", "x,y").output
    )
    assert found["right"]
    assert [each["name"] for each in found["gradient"]["arguments"]] == ["x", "y"]
    assert any("no tape" in each for each in found["plan"])


def test_without_a_launch_it_is_said_what_is_supported(file):
    result = check(file, "scale", "--sig", "float64[::1], float64, float64[::1]")
    assert result.exit_code == 0, result.output
    assert "irad differentiates it with respect to x, a and y" in result.output
    assert "--launch" in result.output, "how to have the gradient checked"


def test_refused(file):
    result = check(file, "fenced", "--sig", "float64[::1], float64[::1]", "--launch", "1, 32")
    assert result.exit_code == 1
    assert "threadfence" in result.output
    assert "kernels_to_check.py:16" in result.output


def test_accesses_outside_of_arrays_are_found(file):
    result = check(file, "careless", "--args", "np.ones(3), np.zeros(3)", "--launch", "1, 32")
    assert result.exit_code != 0
    assert "careless" in result.output + str(result.exception)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("scale", (*POINT, "--launch", "32"), "is not the configuration of a launch"),
        ("scale", (*POINT, "--launch", "1, -2"), "is not a number of threads"),
        ("plain", ("--args", "2.0", "--launch", "1, 2"), "--launch is for CUDA kernels"),
        ("scale", (*POINT, "--wrt", "z"), "there is no parameter 'z'"),
    ],
)
def test_wrong_command_lines(file, name, options, said):
    result = check(file, name, *options)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
