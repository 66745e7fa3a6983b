"""From a kernel in the kernel dialect to the text of one thread for this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import llvmlite.binding as llvm

from irad.backend.cuda.kernel import KernelModule
from irad.backend.executor.check import check_operations
from irad.backend.executor.code import host_machine
from irad.backend.executor.instrument import instrument
from irad.backend.executor.libdevice import define_libdevice
from irad.backend.executor.retarget import retarget
from irad.backend.executor.shared import SharedMemory, lay_out_shared
from irad.backend.executor.sites import Site, Sites
from irad.backend.executor.thread import make_thread
from irad.errors import InternalError, UnsupportedError
from irad.ir.debug_info import DebugInfo, source_location
from irad.ir.instructions import Call
from irad.ir.module import Function, Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.types import Type

_SCOPE: Final = "llvm.experimental.noalias.scope.decl"  # inlined calls leave it; it refers to metadata


@dataclass(frozen=True, slots=True)
class Lowered:
    """What the executor makes of a kernel.

    Attributes:
        text: LLVM text with the function of a thread.
        parameters: types and names of the kernel's parameters.
        shared: where shared arrays are.
        sites: places, by number.
    """

    text: str
    parameters: tuple[tuple[Type, str], ...]
    shared: SharedMemory
    sites: tuple[Site, ...]


def lower(kernel: KernelModule, *, races: bool) -> Lowered:
    """Rewrites a kernel.

    Args:
        kernel: as the front end made it.
        races: whether accesses to memory are logged.

    Raises:
        UnsupportedError: it does something that the executor does not know, which is named.
    """
    module = parse_module(kernel.text)
    function = module.functions.get(kernel.name)
    if function is None or function.is_declaration:
        raise InternalError(f"the kernel module does not define {kernel.name}")
    parameters = tuple((param.type, param.name or "") for param in function.params)
    check_operations(module)
    shared = lay_out_shared(module)
    machine = host_machine()
    retarget(module, llvm.get_process_triple(), str(machine.target_data))
    types = tuple(param.type for param in function.params)
    module, function = _inlined(module, kernel.name, machine)
    sites = Sites(DebugInfo(module))
    make_thread(function, shared, types, sites, instrument if races else None)
    _forget_metadata(module)
    define_libdevice(module)
    return Lowered(print_module(module), parameters, shared, tuple(sites.all))


def _inlined(module: Module, name: str, machine: Any) -> tuple[Module, Function]:
    """The module with all device functions inlined into the kernel.

    Raises:
        UnsupportedError: a device function calls itself.
    """
    others = [function for function in module.defined_functions() if function.name != name]
    for function in others:
        function.prefix, function.attributes = ("internal",), ("alwaysinline", "nounwind")
    parsed = llvm.parse_assembly(print_module(module))
    parsed.verify()
    pipeline = llvm.create_new_module_pass_manager()
    if others:
        pipeline.add_always_inliner_pass()
        pipeline.add_global_dead_code_eliminate_pass()
    pipeline.add_sroa_pass()
    pipeline.add_simplify_cfg_pass()
    pipeline.run(parsed, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(1)))
    module = parse_module(str(parsed))
    kernel = module.functions[name]
    for function in module.defined_functions():
        if function is not kernel:
            raise _recursion(module, function)
    return module, kernel


def _recursion(module: Module, function: Function) -> UnsupportedError:
    call = next((user for user in function.users if isinstance(user, Call)), None)
    return UnsupportedError(
        f"the executor cannot run the device function {function.name}, which calls itself or is called by its address",
        "write it as a loop",
        "device functions are inlined, since threads may wait in them",
        location=source_location(module, call) if call is not None else None,
    )


def _forget_metadata(module: Module) -> None:
    """Source lines have been read; without them LLVM is faster. What may alias holds within a thread only."""
    kept = module.shared_metadata("!{}")
    scopes = module.functions.get("llvm.experimental.noalias.scope.decl")
    for call in list(scopes.users) if scopes is not None else ():
        call.erase()
    for function in module.functions.values():
        function.metadata = ()
        for block in function.blocks:
            block.trailing_records = ()
            for inst in list(block.instructions):
                if isinstance(inst, Call) and getattr(inst.callee, "name", "") == _SCOPE:
                    inst.erase()
                    continue
                inst.debug_records = ()
                inst.metadata = {"invariant.load": kept} if "invariant.load" in inst.metadata else {}
    module.named_metadata.clear()
    number = int(kept[1:])
    module.metadata = {number: module.metadata[number]}
