"""Atomic operations never meet local memory: PTX leaves that undefined."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba import cuda, float64

import irad
import irad.cuda
from irad import Duplicated
from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.local_atomics import separate_local
from irad.backend.cuda.ptx import compile_ptx
from irad.backend.cuda.toolkit import assemble
from tests.cuda.ptx.tools import needs_libdevice, needs_ptxas

OPERATIONS = {
    "double": ["fadd", "fsub"],
    "i32": ["add", "and", "or", "xor", "max", "min", "umax", "umin", "xchg", "uinc_wrap", "udec_wrap"],
    "i64": ["add", "max", "cmpxchg"],
}


def atomic(opcode: str, type_: str, address: str) -> str:
    if opcode != "cmpxchg":
        return f"%r = atomicrmw {opcode} ptr {address}, {type_} %v monotonic"
    exchange = f"%pair = cmpxchg ptr {address}, {type_} %v, {type_} 0 monotonic monotonic"
    return f"{exchange}\n  %r = extractvalue {{ {type_}, i1 }} %pair, 0"


def kernel(opcode: str, type_: str) -> KernelModule:
    """A number of the thread's own or one of an array, as the thread has it."""
    text = f"""
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define ptx_kernel void @k(ptr %x, ptr %y, {type_} %v, i32 %n) {{
  %own = alloca [4 x {type_}]
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %at = getelementptr {type_}, ptr %own, i32 %n
  store {type_} %v, ptr %at
  %odd = trunc i32 %t to i1
  %a = select i1 %odd, ptr %own, ptr %x
  %p = getelementptr {type_}, ptr %a, i32 %n
  {atomic(opcode, type_, "%p")}
  %q = getelementptr {type_}, ptr %y, i32 %t
  store {type_} %r, ptr %q
  %w = load {type_}, ptr %at
  store {type_} %w, ptr %y
  ret void
}}
"""
    return KernelModule(text, "k")


@needs_ptxas
@pytest.mark.parametrize(("type_", "opcode"), [(t, o) for t, each in OPERATIONS.items() for o in each])
def test_the_space_is_asked_for(type_: str, opcode: str):
    ptx = compile_ptx(kernel(opcode, type_))
    assert ptx.count("isspacep.local") == 1
    assert len(re.findall(r"\batom\.", ptx)) == 1
    assemble(ptx, "sm_80")


def test_nothing_is_asked_where_the_space_is_known():
    known = """
define ptx_kernel void @k(ptr %x, i64 %n, i1 %c) {
  %own = alloca double
  call void @f(ptr %own)
  %p = getelementptr double, ptr %x, i64 %n
  %q = select i1 %c, ptr %p, ptr %x
  %r = atomicrmw fadd ptr %q, double 1.0 monotonic
  ret void
}
declare void @f(ptr)
"""
    text = str(llvm.parse_assembly(known))
    assert separate_local(text) is text


@cuda.jit
def either(x, y, n):
    own = cuda.local.array(4, float64)
    i = cuda.grid(1)
    for k in range(4):
        own[k] = x[i] * (k + 1)
    a = own if i % 2 == 0 else x
    s = 0.0
    for k in range(n):
        s += a[(i + k) % 4] ** 2
    y[i] = s


@needs_libdevice
@needs_ptxas
def test_a_derivative_adds_to_local_memory_plainly():
    x, y, n = np.linspace(1, 2, 8), np.zeros(8), 3
    dx, wanted = np.zeros(8), np.zeros(8)
    for i in range(8):
        for place in [(i + k) % 4 for k in range(n)]:
            if i % 2:
                wanted[place] += 2 * x[place]
            else:
                wanted[i] += 2 * x[i] * (place + 1) ** 2
    with irad.cuda.executor(races=True):
        irad.cuda.grad(either)[1, 8](Duplicated(x, dx), Duplicated(y, np.ones(8)), n)
    np.testing.assert_allclose(dx, wanted, rtol=1e-14)
    ptx = str(irad.inspect(either, x, y, n).ptx)
    assert ptx.count("isspacep.local") == ptx.count("atom.add.f64") > 0
