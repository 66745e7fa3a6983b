"""The program of a kernel's derivative: the kernel in the normal form that the engine reads.

Input   a kernel.
Output  `KernelProgram`: LLVM text with the entry
        `i32 @irad.entry(ptr unused, parameters…, shared arrays…, i32 dynamic)`, which returns 0. `dynamic` are the
        bytes of the dynamic shared array.
Method  everything the kernel calls is inlined, shared arrays become arguments, atomic sums calls; then LLVM's scalar
        pipeline for the machine of the kernel, and vectors are taken apart.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import llvmlite.binding as llvm

from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.limits import promises_of
from irad.backend.optimise import scalarise
from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite, Ret, replace_uses
from irad.ir.module import Function, Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.values import Parameter, const_int
from irad.kernel.half import widen_halves
from irad.kernel.leaving import leave_apart
from irad.kernel.operations import call_atomics, drop_bodies, is_part, set_aside
from irad.kernel.shared_memory import SPACE, SharedArray, pass_shared, shared_arrays
from irad.kernel.toolchain import NVPTX
from irad.passes.convention import HostConvention, LibraryCode
from irad.raw.normal_form.bit_moves import restore_types
from irad.raw.normal_form.masked import expand_masked
from irad.raw.normal_form.vectors import split_vectors
from irad.records import dataclass

ENTRY: Final = "irad.entry"
DYNAMIC_SIZE: Final = "irad.cuda.dynamic_shared_size"
_OBSTACLES: Final = frozenset({"noinline", "optnone"})
_APART: Final = "noalias"
_NO_IDIOMS: Final = '"no-builtins"'  # loops stay loops: the cotangents of a copied array are added one by one


def _folders(*packages: str) -> Iterator[str]:
    """Folders of packages that need not be loaded."""
    for package in packages:
        found = find_spec(package)
        if found is not None and found.origin is not None:
            yield os.path.dirname(found.origin) + os.sep


_OWN_FOLDERS: Final = tuple(str(Path(__file__).parents[1] / each) + os.sep for each in ("api", "frontend"))
"""Folders of the functions that irad has Numba compile."""
KERNEL: Final = HostConvention(
    result=0,
    returned=(0,),
    exhausted=1,
    no_derivative=2,
    library=LibraryCode(
        folders=(*_folders("numba", "numba_cuda"), *_OWN_FOLDERS), generated=("<irad.",), without_lines=("_ZN6cudapy",)
    ),
    is_shared=True,
)
"""Convention of the function that Numba puts around a kernel: only the name says that it is not the user's."""
INSIDE: Final = replace(KERNEL, returned=(0, -2, -3), exhausted=-4, no_derivative=-5, is_inside=True)
"""That of device functions, which are differentiated inside of a kernel; statuses are Numba's."""


@dataclass(frozen=True, slots=True)
class KernelProgram:
    """A kernel that the engine can read.

    Attributes:
        text: LLVM text in normal form.
        parameters: types and names of the kernel's own parameters.
        shared: its shared arrays, which the entry takes after them.
        apart: a module that defines the functions of rules, or nothing.
        leaves_apart: see `irad.kernel.leaving`.
        promises: the user's limits for registers and launches, as attributes.
    """

    text: str
    parameters: tuple[Parameter, ...]
    shared: tuple[SharedArray, ...]
    apart: str = ""
    leaves_apart: bool = False
    promises: tuple[str, ...] = ()


def load(kernel: KernelModule, axes: int = 3) -> KernelProgram:
    """The program of a kernel, which is going to be launched along a number of axes.

    Raises:
        UnsupportedError: it holds what irad cannot follow.
    """
    module = inlined(parse_module(kernel.text), kernel.name)
    apart = set_aside(module)
    function = module.functions[kernel.name]
    parameters, promises = tuple(function.params), promises_of(module, function)
    shared = shared_arrays(module)
    _become_entry(module, function, shared)
    call_atomics(module)
    _settle_axes(function, axes)
    made = normalised(module, ENTRY)
    # After LLVM's pipeline: it must not know that pointers are apart, only the engine may.
    promise_apart(param for param in made.functions[ENTRY].params if param.type is SPACE)
    leaves_apart = leave_apart(made.functions[ENTRY])
    return KernelProgram(print_module(made), parameters, tuple(shared), apart, leaves_apart, promises)


def normalised(module: Module, entry: str) -> Module:
    """A module in the normal form that the engine reads, of which one function stays visible."""
    made = parse_module(scalarise(print_module(module), (entry,), NVPTX))
    changed = [step(made) for step in (expand_masked, split_vectors, restore_types, widen_halves)]
    if any(changed):
        made = parse_module(scalarise(print_module(made), (entry,), NVPTX))
        restore_types(made)
        widen_halves(made)  # LLVM makes halves again of what is stored on every way
    return made


def promise_apart(params: Iterable[Parameter]) -> None:
    """Promises the engine that the memory of each pointer is reached through it alone.

    LLVM must not see the promise: it would take a barrier for a call that leaves such memory as it is, and keep a
    number in a register that other threads have overwritten.
    """
    for param in params:
        param.attributes = tuple(dict.fromkeys((*param.attributes, _APART)))


def forget_promises(module: Module) -> None:
    """Removes what `promise_apart` added, before LLVM optimises a derivative."""
    for function in module.defined_functions():
        for param in function.params:
            param.attributes = tuple(word for word in param.attributes if word != _APART)


def inlined(module: Module, name: str) -> Module:
    """A module, which is changed, with all that one of its functions calls in that function.

    Raises:
        UnsupportedError: a function calls itself.
    """
    drop_bodies(module)
    for group, words in module.attribute_groups.items():
        module.attribute_groups[group] = tuple(word for word in words if word not in _OBSTACLES)
    for function in module.defined_functions():
        kept = [word for word in function.attributes if word not in _OBSTACLES]
        if function.name != name:
            function.prefix = ("internal",)
            kept.append("alwaysinline")
        function.attributes = tuple(dict.fromkeys(kept))
    module.globals.pop("llvm.used", None)
    parsed = llvm.parse_assembly(print_module(module))
    pipeline = llvm.create_new_module_pass_manager()
    pipeline.add_always_inliner_pass()
    pipeline.add_global_dead_code_eliminate_pass()
    pipeline.run(parsed, NVPTX.scalar_pass_builder())
    made = parse_module(str(parsed))
    for function in made.defined_functions():
        if function.name != name and not is_part(function):
            raise _recursive(function, made.functions[name])
    return made


def _settle_axes(function: Function, axes: int) -> None:
    """Along the other axes there is one thread of one block."""
    for axis in "xyz"[axes:]:
        for register, number in (("tid", 0), ("ctaid", 0), ("ntid", 1), ("nctaid", 1)):
            for call in _calls_of(function, f"llvm.nvvm.read.ptx.sreg.{register}.{axis}"):
                replace_uses(call, const_int(types.I32, number))
                call.erase()


def _recursive(function: Function, kernel: Function) -> UnsupportedError:
    error = UnsupportedError(
        f"the kernel calls {function.name}, which calls itself",
        "write it as a loop",
        "the effects of recursive device functions on memory that threads share are not known at the call",
    )
    error.instruction = next(iter(_calls_of(kernel, str(function.name))), None)
    return error


def _calls_of(function: Function, symbol: str) -> list[CallSite]:
    calls = [inst for inst in function.instructions() if isinstance(inst, CallSite)]
    return [call for call in calls if isinstance(call.callee, Function) and call.callee.name == symbol]


def _become_entry(module: Module, function: Function, shared: list[SharedArray]) -> None:
    """Turns the kernel into a function as the engine knows them."""
    for param in function.params:
        param.name = param.name or "arg"
    pass_shared(function, shared)
    dynamic = Parameter(types.I32, "dynamic")
    for call in _calls_of(function, DYNAMIC_SIZE):
        replace_uses(call, dynamic)
        call.erase()
    # The first parameter of an entry is the place of its result (`HostConvention.result`).
    function.params = [Parameter(types.PTR, "unused", attributes=(_APART,)), *function.params, dynamic]
    function.function_type = types.function_type(types.I32, [param.type for param in function.params])
    for inst in list(function.instructions()):
        if isinstance(inst, Ret):
            Builder.before(inst).ret(const_int(types.I32, 0))
            inst.erase()
    function.convention, function.prefix, function.suffix = None, (), ()
    function.attributes = (*(word for word in function.attributes if not word.startswith("#")), _NO_IDIOMS)
    del module.functions[str(function.name)]
    function.name = ENTRY
    module.functions[ENTRY] = function
    module.named_metadata.pop("nvvm.annotations", None)
