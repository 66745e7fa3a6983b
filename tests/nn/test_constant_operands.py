"""What an operand costs that is declared constant: nothing.

Products of matrices are counted as they run, other kernels by the floating-point operations of the compiled derivative,
those of a function as often as it is called.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba import _helperlib

import irad
from irad import nn

_RANDOM = np.random.default_rng(3)
_GEMM = "numba_xxgemm"
_SIZE, _POINTER = ctypes.c_ssize_t, ctypes.c_void_p
_TYPE = ctypes.CFUNCTYPE(
    *(ctypes.c_int, ctypes.c_char, ctypes.c_char, ctypes.c_char, _SIZE, _SIZE, _SIZE, _POINTER),
    *(_POINTER, _SIZE, _POINTER, _SIZE, _POINTER, _POINTER, _SIZE),
)
_products = [0]


def _draw(*shape: int) -> Any:
    return _RANDOM.standard_normal(shape)


_address = _helperlib.c_helpers["xxgemm"]


@_TYPE
def _counting(*arguments: Any) -> int:
    _products[0] += 1
    return _TYPE(_address)(*arguments)


def _loss(f: Any, count: int) -> Any:
    """A weighted sum of what f returns; a new function, so that it is compiled with the counter in place."""
    names = ", ".join(f"a{i}" for i in range(count))
    scope: dict[str, Any] = {"f": f}
    exec(f"def loss(weights, {names}):\n    return (weights * f({names})).sum()\n", scope)
    return scope["loss"]


def _gradient(f: Any, count: int, active: tuple[int, ...]) -> Any:
    """The gradient of that sum with respect to some arguments."""
    return irad.grad(_loss(f, count), argnums=tuple(1 + i for i in active))


_BY_PRODUCTS: dict[str, tuple[Any, tuple[Any, ...], dict[tuple[int, ...], int]]] = {
    "batched_mul": (nn.batched_mul, (_draw(3, 2, 4), _draw(1, 4, 5)), {(0, 1): 9, (0,): 6, (1,): 6}),
    "dot_product_attention": (  # scores and values; scores again; values; weights; queries; keys
        nn.dot_product_attention,
        (_draw(1, 1, 5, 4), _draw(1, 1, 7, 4), _draw(1, 1, 7, 6)),
        {(0, 1, 2): 7, (0,): 5, (1,): 5, (2,): 4},
    ),
}


def _agree(found: dict[tuple[int, ...], list[Any]]) -> None:
    """Whether gradients with respect to some arguments are those with respect to all, which come first."""
    every, slopes = next(iter(found.items()))
    for active, some in found.items():
        for i, slope in zip(active, some, strict=True):
            np.testing.assert_allclose(slope, slopes[every.index(i)], rtol=1e-12, atol=1e-14)


def _quick_and_slow(names: Iterable[str]) -> list[Any]:
    """Those of a plain run, and those for which much is compiled."""
    quick = "batched_mul", "layernorm"
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


def count_products(name: str) -> None:
    """Checks how many products of matrices gradients take, in a process that has compiled none before."""
    llvm.add_symbol(_GEMM, ctypes.cast(_counting, ctypes.c_void_p).value)
    f, arguments, wanted = _BY_PRODUCTS[name]
    weights, ran, found = np.random.default_rng(5).standard_normal(f(*arguments).shape), {}, {}
    for active in wanted:
        gradient = _gradient(f, len(arguments), active)
        gradient(weights, *arguments)
        before = _products[0]
        found[active] = list(gradient(weights, *arguments))
        ran[active] = _products[0] - before
    assert ran == wanted, ran
    _agree(found)


@pytest.mark.parametrize("name", _quick_and_slow(_BY_PRODUCTS))
def test_products_of_matrices(name: str) -> None:
    code = f"from tests.nn.test_constant_operands import count_products; count_products({name!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _operations(text: str) -> int:
    """The operations of all functions that nothing calls, with those of what they call."""
    bodies = dict(re.findall(r"^define [^@]*@([^\s(]+)\(.*?\{$(.*?)^\}", text, re.MULTILINE | re.DOTALL))
    calls = {name: re.findall(r"\bcall [^@]*@([^\s(]+)\(", body) for name, body in bodies.items()}

    @cache
    def of(name: str) -> int:
        own = len(re.findall(r" = (?:fadd|fsub|fmul|fdiv|call [^@]*@llvm\.fmuladd)\b", bodies[name]))
        return own + sum(of(callee) for callee in calls[name] if callee in bodies)

    return sum(map(of, bodies.keys() - set(chain.from_iterable(calls.values()))))


_INDICES = np.array([2, 0, 2, 2, 4])
_BY_OPERATIONS: dict[str, tuple[Any, tuple[Any, ...], tuple[int, ...]]] = {
    "conv": (nn.conv, (_draw(2, 4, 6, 5), _draw(4, 4, 3, 3), 2, 1, 1, 1, True), (0, 1)),
    "conv_data": (nn.conv_data, (_draw(2, 4, 3, 3), _draw(4, 4, 3, 3), (2, 4, 5, 5), 2, 1, 1, 1, True), (0, 1)),
    "conv_filter": (nn.conv_filter, (_draw(2, 4, 5, 5), _draw(2, 4, 3, 3), (4, 4, 3, 3), 2, 1, 1, 1, True), (0, 1)),
    "depthwiseconv": (nn.depthwiseconv, (_draw(2, 3, 9), _draw(6, 1, 3), 2, 1, 2, True), (0, 1)),
    "grid_sample": (nn.grid_sample, (_draw(1, 2, 5, 5), np.tanh(_draw(1, 3, 3, 2))), (0, 1)),
    "batchnorm": (nn.batchnorm, (_draw(5, 3), np.zeros(3), np.ones(3), _draw(3), _draw(3), True), (0, 3, 4)),
    "layernorm": (nn.layernorm, (_draw(3, 4), _draw(4), _draw(4)), (0, 1, 2)),
    "bias_act": (nn.bias_act, (nn.sigmoid, _draw(3, 4, 5), _draw(4)), (1, 2)),
    "scatter": (nn.scatter, ("*", _draw(5, 2), _draw(5, 2), _INDICES), (1, 2)),
}


@pytest.mark.parametrize("name", _quick_and_slow(_BY_OPERATIONS))
def test_operations(name: str) -> None:
    f, arguments, every = _BY_OPERATIONS[name]
    weights, operations, found = np.random.default_rng(5).standard_normal(f(*arguments).shape), {}, {}
    for active in (every, *((i,) for i in every)):
        gradient = _gradient(f, len(arguments), active)
        found[active] = list(gradient(weights, *arguments))
        operations[active] = _operations("\n".join(gradient.inspect_llvm().values()))
    assert max(operations[active] for active in operations if active != every) < operations[every]
    _agree(found)
