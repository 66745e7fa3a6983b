"""From a kernel in the kernel dialect to the text of one thread for this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import llvmlite.binding as llvm

from irad.backend.compat import with_attribute
from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.limits import Needs, needs_of
from irad.backend.executor.code import host_machine
from irad.backend.executor.printing import PRINTED, VPRINTF
from irad.backend.executor.rewriting.arrays import SharedMemory, lay_out_shared
from irad.backend.executor.rewriting.check import check_operations
from irad.backend.executor.rewriting.instrument import instrument
from irad.backend.executor.rewriting.libdevice import define_libdevice
from irad.backend.executor.rewriting.retarget import retarget
from irad.backend.executor.rewriting.sites import Site, Sites
from irad.backend.executor.rewriting.thread import make_thread
from irad.errors import InternalError, UnsupportedError
from irad.ir import types
from irad.ir.debug_info import DebugInfo, source_location
from irad.ir.instructions import Call, CallSite
from irad.ir.module import Function, Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.types import Type

_NOT_INLINED: Final = ("noinline", "optnone")
_SCOPE: Final = "llvm.experimental.noalias.scope.decl"  # inlined calls leave it; it refers to metadata


@dataclass(frozen=True, slots=True)
class Lowered:
    """What the executor makes of a kernel.

    Attributes:
        text: LLVM text with the function of a thread.
        name: of the kernel, for messages.
        parameters: types and names of the kernel's parameters.
        shared: where shared arrays are.
        sites: places, by number.
        needs: what it takes of a GPU.
        constants: arrays of the module, most in constant memory, with their bytes, by symbol, if accesses are logged.
    """

    text: str
    name: str
    parameters: tuple[tuple[Type, str], ...]
    shared: SharedMemory
    sites: tuple[Site, ...]
    needs: Needs
    constants: Mapping[str, int] = field(default_factory=dict)


def lower(kernel: KernelModule, *, races: bool) -> Lowered:
    """Rewrites a kernel.

    Args:
        kernel: as the front end made it.
        races: whether accesses to memory are logged.

    Raises:
        UnsupportedError: it does something that the executor does not know, which is named.
    """
    machine = host_machine()
    module, function = _inlined(kernel, machine)
    parameters = tuple((param.type, param.name or "") for param in function.params)
    check_operations(module)
    needs = needs_of(module, kernel.name)
    shared = lay_out_shared(module)
    retarget(module, llvm.get_process_triple(), str(machine.target_data))
    if VPRINTF in module.functions:
        printing = module.functions[PRINTED] = module.functions.pop(VPRINTF)
        printing.name = PRINTED
    sites = Sites(DebugInfo(module), kernel.name)
    make_thread(function, shared, sites, instrument if races else None)
    _forget_metadata(module)
    define_libdevice(module)
    constants = _expose_constants(module) if races else {}
    return Lowered(print_module(module), sites.name, parameters, shared, tuple(sites.all), needs, constants)


def _expose_constants(module: Module) -> dict[str, int]:
    """Lets others ask for the addresses of constant arrays, and of their shadows; returns their bytes."""
    found = {name: each for name, each in module.globals.items() if each.initializer is not None}
    for each in found.values():
        each.prefix = tuple(word for word in each.prefix if word not in ("internal", "private"))
    return {name: types.size_of(each.value_type) for name, each in found.items()}


def _inlined(kernel: KernelModule, machine: Any) -> tuple[Module, Function]:
    """The module with all device functions inlined into the kernel.

    Raises:
        UnsupportedError: a device function calls itself.
    """
    parsed = llvm.parse_assembly(_without_noinline(kernel.text))
    parsed.verify()
    names = [each.name for each in parsed.functions if not each.is_declaration and each.name != kernel.name]
    parsed = with_attribute(parsed, names, "alwaysinline")
    for name in names:
        parsed.get_function(name).linkage = "internal"
    pipeline = llvm.create_new_module_pass_manager()
    pipeline.add_always_inliner_pass()
    pipeline.add_global_dead_code_eliminate_pass()
    pipeline.add_sroa_pass()
    pipeline.add_simplify_cfg_pass()
    pipeline.run(parsed, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(1)))
    module = parse_module(str(parsed))
    found = module.functions.get(kernel.name)
    if found is None or found.is_declaration:
        raise InternalError(f"the kernel module does not define {kernel.name}")
    for function in module.defined_functions():
        if function is not found:
            raise _recursion(module, function)
    return module, found


def _without_noinline(text: str) -> str:
    """The text without the words that forbid inlining; mostly it has none."""
    if not any(word in text for word in _NOT_INLINED):
        return text
    module = parse_module(text)
    for name, words in module.attribute_groups.items():
        module.attribute_groups[name] = tuple(word for word in words if word not in _NOT_INLINED)
    for function in module.functions.values():
        function.attributes = tuple(word for word in function.attributes if word not in _NOT_INLINED)
        for inst in function.instructions():
            if isinstance(inst, CallSite):
                inst.attributes = tuple(word for word in inst.attributes if word not in _NOT_INLINED)
    return print_module(module)


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
    scopes = module.functions.pop(_SCOPE, None)
    for call in list(scopes.users) if scopes is not None else ():
        call.erase()
    for function in module.functions.values():
        function.metadata = ()
        for block in function.blocks:
            block.trailing_records = ()
            for inst in block.instructions:
                inst.debug_records = ()
                inst.metadata = {"invariant.load": kept} if "invariant.load" in inst.metadata else {}
    module.named_metadata.clear()
    number = int(kept[1:])
    module.metadata = {number: module.metadata[number]}
