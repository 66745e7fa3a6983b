"""Symbols without a definition are found before the code is loaded."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from irad.backend.link import check_symbols, declared_symbols
from irad.errors import BackendError

MODULE = """
@PyExc_RuntimeError = external global ptr
@known = external global i64
define double @f(double %x) {
  %a = call double @sin(double %x)
  %b = call double @llvm.cos.f64(double %a)
  %c = call double @nobody_defines_this(double %b)
  ret double %c
}
declare double @sin(double)
declare double @llvm.cos.f64(double)
declare double @nobody_defines_this(double)
"""


def test_declared_symbols_leave_out_intrinsics() -> None:
    names = declared_symbols(llvm.parse_assembly(MODULE))
    assert sorted(names) == ["PyExc_RuntimeError", "known", "nobody_defines_this", "sin"]


def test_missing_symbols_are_named() -> None:
    with pytest.raises(BackendError, match="no definition of nobody_defines_this\n"):
        check_symbols(llvm.parse_assembly(MODULE), lambda name: name == "known")


def test_known_symbols_pass() -> None:
    check_symbols(llvm.parse_assembly(MODULE), lambda name: name in ("known", "nobody_defines_this"))
