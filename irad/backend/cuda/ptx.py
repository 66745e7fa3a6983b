"""Kernels to PTX, by the NVPTX back end of the LLVM that llvmlite has: no toolkit and no GPU are needed.

NVIDIA's own compiler is not asked: before Blackwell it reads the language of LLVM 7 only, into which what irad makes
would have to be translated back. Instructions and registers come out alike (bench/cuda_registers.py).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import llvmlite.binding as llvm

from irad.backend.cuda.kernel import TRIPLE, KernelModule
from irad.backend.cuda.limits import SMALL_PARAMETERS, parameter_bytes, target_of
from irad.backend.cuda.local_atomics import separate_local
from irad.backend.cuda.lowering import HOST_SYMBOLS, entry_name, lower_kernel, refuse_call, undefined_calls
from irad.backend.cuda.toolkit import find_libdevice
from irad.backend.runtime.text import read
from irad.errors import BackendError
from irad.ir.module import Module
from irad.ir.text.printer import print_module
from irad.records import dataclass

_DEVICE: Final = Path(__file__).parent / "device"
_FULL: Final = 3
# PTX 8.1 is the first that takes more bytes of parameters than `SMALL_PARAMETERS`.
_MANY_PARAMETERS_ISA: Final = 81
_SHUFFLES: Final = [{"mode": mode, "clamp": "0" if mode == "up" else "31"} for mode in ("idx", "down", "bfly", "up")]


@dataclass(frozen=True, slots=True)
class LaunchBounds:
    """Promises about launches, and the limits requested for them.

    Attributes:
        threads: the largest number of threads in a block.
        blocks: number of blocks that a multiprocessor must be able to hold.
        registers: the largest number for a thread; the rest is spilled.
    """

    threads: int | None = None
    blocks: int | None = None
    registers: int | None = None

    def attributes(self) -> tuple[str, ...]:
        """The function attributes of LLVM."""
        named = (("nvvm.maxntid", self.threads), ("nvvm.minctasm", self.blocks), ("nvvm.maxnreg", self.registers))
        return tuple(f'"{name}"="{value}"' for name, value in named if value is not None)


def compile_ptx(
    kernel: KernelModule,
    arch: str = "sm_80",
    *,
    level: int = _FULL,
    bounds: LaunchBounds | None = None,
) -> str:
    """A kernel as PTX; its entry is `entry_name` of its symbol.

    Args:
        kernel: in the kernel dialect.
        arch: the oldest GPU that it shall run on.
        level: of optimisation, 0 to 3.
        bounds: of the launch, beyond those that the kernel has already.

    Raises:
        BackendError: the kernel calls something that does not exist on the GPU; libdevice is needed and missing.
    """
    lowered = lower_kernel(kernel)
    machine = _machine(arch, level, _many_parameters(lowered, kernel.name))
    return machine.emit_assembly(_optimised(kernel, lowered, machine, level, bounds))


def optimised_text(kernel: KernelModule, arch: str = "sm_80") -> str:
    """The LLVM text that `compile_ptx` writes as PTX."""
    return str(_optimised(kernel, lower_kernel(kernel), _machine(arch, _FULL), _FULL, None))


def _many_parameters(lowered: Module, name: str) -> bool:
    """True if a kernel has more parameters than an old version of PTX takes."""
    return parameter_bytes([each.type for each in lowered.functions[entry_name(name)].params]) > SMALL_PARAMETERS


def _optimised(kernel: KernelModule, lowered: Module, machine: Any, level: int, bounds: LaunchBounds | None) -> Any:
    if bounds is not None:
        entry = lowered.functions[entry_name(kernel.name)]
        entry.attributes = (*entry.attributes, *bounds.attributes())
    needed = _check_calls(lowered)
    module = llvm.parse_assembly(print_module(lowered))
    module.data_layout = str(machine.target_data)
    _check_intrinsics(module)
    _link(module, needed, kernel.fastmath)
    module.verify()
    _optimise(module, machine, level)
    found = str(module)
    separated = separate_local(found)
    if separated is not found:
        module = llvm.parse_assembly(separated)
        module.verify()
    return module


def _machine(arch: str, level: int, many_parameters: bool = False) -> Any:
    _prepare_llvm()
    target, isa = target_of(arch)
    if many_parameters:
        isa = max(isa, _MANY_PARAMETERS_ISA)
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=target, features=f"+ptx{isa}", opt=level)


@cache
def _prepare_llvm() -> None:
    """Once in a process. Square roots in single precision are exact: `device/fast.ll` is for those that need not be."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.set_option("irad", "-nvvm-reflect-add=__CUDA_PREC_SQRT=1")


def _check_calls(module: Module) -> frozenset[str]:
    """The functions that have to be linked.

    Raises:
        BackendError: nobody defines one.
    """
    needed = set[str]()
    for name, call in undefined_calls(module):
        if name in HOST_SYMBOLS:
            continue
        if name not in _operations().names and name not in (_libdevice().names if name.startswith("__nv_") else ()):
            raise refuse_call(module, name, call)
        needed.add(name)
    return frozenset(needed)


def _check_intrinsics(module: Any) -> None:
    """LLVM would call an intrinsic that it does not know, by a name that PTX does not have."""
    for function in module.functions:
        if function.name.startswith("llvm.") and "; Unknown intrinsic" in str(function):
            raise BackendError(
                f"the kernel uses '{function.name}', which this version of LLVM does not know",
                "report it with the kernel",
                "irad uses LLVM's names for operations of GPUs",
            )


@dataclass(frozen=True, slots=True)
class _Library:
    """Functions to link.

    Attributes:
        bitcode: bitcode of the module.
        names: names that it defines.
    """

    bitcode: bytes
    names: frozenset[str]

    @staticmethod
    def of(module: Any) -> _Library:
        """Library from a parsed module."""
        defined = (f.name for f in module.functions if not f.is_declaration)
        return _Library(module.as_bitcode(), frozenset(defined))

    def link_into(self, module: Any) -> None:
        """Adds all, visible in the module only."""
        own = {f.name for f in module.functions if not f.is_declaration}
        library = llvm.parse_bitcode(self.bitcode)
        library.data_layout, library.triple = module.data_layout, module.triple
        for name in self.names & own:
            library.get_function(name).linkage = "available_externally"
        module.link_in(library)
        for name in self.names - own:
            module.get_function(name).linkage = "internal"


@cache
def _operations() -> _Library:
    return _Library.of(llvm.parse_assembly(read(_DEVICE, "operations", parameters=_SHUFFLES).text()))


@cache
def _fast() -> _Library:
    return _Library.of(llvm.parse_assembly(read(_DEVICE, "fast").text()))


@cache
def _libdevice() -> _Library:
    return _Library.of(llvm.parse_bitcode(find_libdevice().read_bytes()))


def _link(module: Any, needed: frozenset[str], fastmath: bool) -> None:
    """Adds the definitions of called functions; LLVM's optimiser removes those that are not needed."""
    if needed & _operations().names:
        _operations().link_into(module)
    if fastmath and needed & _fast().names:
        _fast().link_into(module)
    if any(name.startswith("__nv_") for name in needed):
        _libdevice().link_into(module)


def _optimise(module: Any, machine: Any, level: int) -> None:
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(level))
    first = llvm.create_new_module_pass_manager()
    first.add_always_inliner_pass()
    first.add_global_dead_code_eliminate_pass()  # most of libdevice is not needed
    first.run(module, builder)
    builder.getModulePassManager().run(module, builder)
