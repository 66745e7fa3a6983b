"""Symbols: every name means one function, and Numba emits no other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba import njit, types
from numba.core.errors import NumbaError
from numba.np.ufunc_db import get_ufuncs

from irad.ir.types import DOUBLE, FLOAT, I32, I64
from irad.rules import ALL
from irad.ruleset.registry import Registry
from irad.ruleset.symbols import TABLE, emitted_symbol, helper_symbol, integer_arguments, symbols_of_function
from irad.testing.gradients.trial import optimisation_limited

REGISTRY = Registry.of(*ALL)


def test_a_symbol_means_one_function():
    owners: dict[str, str] = {}
    for name in TABLE:
        for symbol, _ in symbols_of_function(name):
            assert owners.setdefault(symbol, name) == name, symbol


def test_precisions():
    precisions = {symbol: type_ for name in TABLE for symbol, type_ in symbols_of_function(name)}
    assert precisions["llvm.powi.f32.i32"] is FLOAT
    assert precisions["numba_gamma"] is DOUBLE
    assert precisions["__nv_fast_sinf"] is FLOAT
    assert precisions["__nv_dadd_rn"] is DOUBLE
    assert precisions["__nv_fadd_rz"] is FLOAT
    assert precisions["__nv_fma_rn"] is DOUBLE
    assert precisions["__nv_fmaf_rn"] is FLOAT
    # C's own `gamma` is the logarithm of what Numba calls so.
    assert "gamma" not in precisions


@pytest.mark.parametrize("name", TABLE)
def test_every_function_has_a_rule_except_what_only_derivatives_call(name: str):
    symbol, _ = symbols_of_function(name)[0]
    assert (REGISTRY.lookup(symbol) is None) == (
        name in ("trigamma", "wofz_imag", "sinc_5", "csinc_5_re", "csinc_5_im")
    )


def test_what_calls_are_emitted_to():
    assert emitted_symbol("sin", DOUBLE, [DOUBLE], None) == "llvm.sin.f64"
    assert emitted_symbol("sin", FLOAT, [FLOAT], "x86_64-unknown-linux-gnu") == "llvm.sin.f32"
    assert emitted_symbol("tanh", FLOAT, [FLOAT], None) == "tanhf"
    assert emitted_symbol("powi", DOUBLE, [DOUBLE, I32], None) == "llvm.powi.f64.i32"
    assert emitted_symbol("ldexp", FLOAT, [FLOAT, I64], None) == "llvm.ldexp.f32.i64"
    assert emitted_symbol("tanh", FLOAT, [FLOAT], "nvptx64-nvidia-cuda") == "__nv_tanhf"
    assert emitted_symbol("maximum", FLOAT, [FLOAT, FLOAT], "nvptx64-nvidia-cuda") == "llvm.maximum.f32"
    assert helper_symbol("digamma", FLOAT) == "irad_digamma_f32"
    assert integer_arguments("jn") == {0}


# ------------------------------------------------------------------------------------------------ what Numba emits

F64, F32 = types.float64, types.float32
DOUBLES = ((F64,), (F64, F64), (F64, types.int64), (F64, F64, F64))
SINGLES = ((F32,), (F32, F32), (F32, types.int32))
COMPILED = [(s, "python") for s in DOUBLES] + [(s, "numpy") for s in (*SINGLES, (F64, F64))]


def functions() -> Iterator[str]:
    yield from (f"math.{name}" for name in dir(math) if callable(getattr(math, name)) and not name.startswith("_"))
    yield from (f"np.{ufunc.__name__}" for ufunc in get_ufuncs())
    yield from ("np.sinc", "np.around", "np.nan_to_num", "np.angle", "np.clip", "np.sign")
    yield from ("abs", "round", "pow", "divmod", "min", "max", "int", "float")


def callees(source: str, signature: tuple[types.Type, ...], error_model: str) -> set[str]:
    """Symbols that the compiled function calls and does not define; empty if Numba has no such function."""
    arguments = ", ".join("abc"[: len(signature)])
    scope: dict[str, Any] = {"math": math, "np": np}
    exec(f"def f({arguments}):\n    return {source}({arguments})", scope)
    options: dict[str, Any] = {"error_model": error_model, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled = njit(**options)(scope["f"])
    try:
        with optimisation_limited():
            compiled.compile(signature)
    except (NumbaError, TypeError, ValueError, NotImplementedError):
        return set()
    [text] = compiled.inspect_llvm().values()
    module = llvm.parse_assembly(text)
    found = set()
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                if instruction.opcode == "call":
                    callee = list(instruction.operands)[-1]
                    found.add(callee.name)
    declared = {function.name for function in module.functions if function.is_declaration}
    return found & declared


MEMORY = ("NRT_", "llvm.mem")


@pytest.mark.parametrize("source", list(functions()))
def test_every_callee_of_numba_is_known(source: str):
    found = {symbol for signature, model in COMPILED for symbol in callees(source, signature, model)}
    assert [s for s in sorted(found) if not s.startswith(MEMORY) and REGISTRY.lookup(s) is None] == []


def test_the_search_for_callees_finds_some():
    assert callees("math.sin", (F64,), "numpy") == {"llvm.sin.f64"} or callees("math.sin", (F64,), "numpy") == {"sin"}
    assert callees("math.erf", (F32,), "python") == {"erff"}
    assert callees("math.sin", (F64, F64), "numpy") == set()
