"""From a kernel in the kernel dialect to the text of one thread for this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, cast

import llvmlite.binding as llvm

from irad.backend.compat import with_attribute
from irad.backend.cuda.kernel import DYNAMIC_SHARED, KernelModule
from irad.backend.cuda.limits import Needs, needs_of
from irad.backend.executor.code import host_machine
from irad.backend.executor.dialect import OPERATIONS, TABLES, WATCHES, Kind
from irad.backend.executor.layout import LAUNCH
from irad.backend.executor.printing import PRINTED, VPRINTF
from irad.backend.executor.rewriting.arrays import Arrays, Range, SharedMemory, lay_out_shared
from irad.backend.executor.rewriting.libdevice import define_libdevice, is_known
from irad.backend.executor.rewriting.retarget import retarget
from irad.backend.executor.rewriting.sites import Site, Sites
from irad.backend.executor.rewriting.thread import make_thread
from irad.errors import InternalError, UnsupportedError, UnsupportedProgram
from irad.ir import instructions as ir, types
from irad.ir.builder import Builder
from irad.ir.debug_info import DebugInfo, source_location
from irad.ir.instructions import Call, CallSite
from irad.ir.module import Function, Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.trip_count import constant_offset
from irad.ir.types import Type
from irad.ir.values import ConstantInt, GlobalVariable, InlineAsm, Value, const_int
from irad.records import dataclass

if TYPE_CHECKING:
    from irad.backend.executor.rewriting.arrays import SharedMemory
    from irad.backend.executor.rewriting.thread import Registers


# Refuses what the executor does not know, by name and line, before anything is compiled.

_TARGETS = ("nvvm", "amdgcn", "x86", "aarch64", "arm")


def check_operations(module: Module) -> None:
    """Looks at every call.

    Raises:
        UnsupportedError: names each operation that is not known.
    """
    debug = DebugInfo(module)
    errors = list(_problems(module, debug))
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise UnsupportedProgram(errors)


def _problems(module: Module, debug: DebugInfo) -> Iterator[UnsupportedError]:
    for variable in module.globals.values():
        if _is_undefined(variable):
            yield _refusal(f"the kernel uses the variable {variable.name}, which is not defined", None, debug)
    for function in module.defined_functions():
        for inst in function.instructions():
            if isinstance(inst, ir.CallSite) and (problem := _problem(inst)) is not None:
                yield _refusal(problem, inst, debug)
            elif isinstance(inst, ir.Alloca) and not all(isinstance(n, ConstantInt) for n in inst.operands):
                yield _refusal("the size of a local array is only known when the kernel runs", inst, debug)


def _is_undefined(variable: GlobalVariable) -> bool:
    is_declaration = variable.initializer is None
    is_known = variable.name == DYNAMIC_SHARED or str(variable.name).startswith(TABLES)
    return is_declaration and not is_known and "addrspace(3)" not in variable.prefix


def _problem(call: ir.CallSite) -> str | None:
    """The reason why the executor cannot carry out a call, or None."""
    callee = call.callee
    if isinstance(callee, InlineAsm):
        return f"the executor does not know inline assembly ({callee.text})"
    if not isinstance(callee, Function):
        return "the executor does not know calls through pointers"
    name = callee.name or ""
    if not callee.is_declaration or name in OPERATIONS | WATCHES | {VPRINTF} or is_known(name):
        return None
    if name.startswith("llvm.") and name.split(".")[1] not in _TARGETS:
        return None
    return f"the executor does not know {name}"


def _refusal(problem: str, inst: ir.Instruction | None, debug: DebugInfo) -> UnsupportedError:
    error = UnsupportedError(
        problem,
        "(a) leave the operation out when the kernel runs on the CPU or (b) run the kernel on a GPU",
        "on the CPU a kernel is rewritten operation by operation",
        location=debug.location(inst) if inst is not None else None,
    )
    if inst is not None:
        # The kernel itself calls the user's function; it has no name but its symbol.
        error.callers = tuple(place for place in debug.inline_chain(inst)[1:] if not place.function.startswith("_Z"))
    return error


# Has a thread log its accesses to memory that other threads see, in front of each.
#
# The log gives back the address to use, which is another one if the access is outside of its array, or of all arrays
# where it is not known which one it is to. Accesses to a thread's own memory are only checked.

_LOG = types.function_type(types.PTR, [types.PTR, types.PTR, types.I64, types.I32, types.I32, types.PTR, types.I64])
_WORDS = {Kind.READ: "read", Kind.WRITE: "write", Kind.ATOMIC: "atomic operation"}


def instrument(function: Function, registers: Registers, memory: SharedMemory, sites: Sites) -> None:
    """Adds the calls.

    Args:
        function: of a thread; its first block defines the registers.
        registers: special registers that the calls need.
        memory: the shared arrays, which are variables still.
        sites: gets the places of the accesses.
    """
    entry = Builder(function.entry)
    log = entry.load(types.PTR, entry.byte_offset(registers.launch, LAUNCH.offset("log_access")))
    arrays = Arrays(function.entry, memory, registers.launch)
    for block in function.blocks[1:]:
        for inst in list(block.instructions):
            for position, kind, size in _accesses(inst):
                address = inst.operands[position]
                unit = size.value if isinstance(size, ConstantInt) else 1
                found = arrays.range_of(address, unit)
                if found.is_private and _is_inside(address, unit, found):
                    continue
                build = Builder.before(inst)
                kind_ = build.and_(const_int(types.I32, kind), found.logged)
                number = const_int(types.I32, sites.add(_WORDS[kind], inst, found.array))
                what = [registers.thread, address, build.zext(size, types.I64), kind_, number, found.low, found.size]
                inst.set_operand(position, build.call(log, what, _LOG))


def _is_inside(address: Value, unit: int, array: Range) -> bool:
    """True if a constant offset shows that an access is inside of its array, as most of those to variables are."""
    offset = 0
    while isinstance(address, ir.GetElementPtr) and (more := constant_offset(address)) is not None:
        offset, address = offset + more, address.operands[0]
    return address is array.low and isinstance(array.size, ConstantInt) and 0 <= offset <= array.size.value - unit


def _accesses(inst: ir.Instruction) -> list[tuple[int, Kind, Value]]:
    """Addresses among the operands of an instruction: position, kind of access and number of bytes of each."""
    match cast("ir.AnyInstruction", inst):
        case ir.Load(ordering=ordering):
            return [(0, Kind.READ if ordering is None else Kind.ATOMIC, _bytes(inst.type))]
        case ir.Store(ordering=ordering):
            return [(1, Kind.WRITE if ordering is None else Kind.ATOMIC, _bytes(inst.operands[0].type))]
        case ir.AtomicRMW() | ir.CmpXchg():
            return [(0, Kind.ATOMIC, _bytes(inst.operands[1].type))]
        case ir.Call() as call if isinstance(call.callee, Function):
            name = call.callee.name or ""
            if name.startswith(("llvm.memcpy.", "llvm.memmove.")):
                return [(0, Kind.WRITE, inst.operands[2]), (1, Kind.READ, inst.operands[2])]
            if name.startswith("llvm.memset."):
                return [(0, Kind.WRITE, inst.operands[2])]
            return []
        case _:
            return []


def _bytes(type_: types.Type) -> Value:
    return const_int(types.I64, types.size_of(type_))


_NOT_INLINED: Final = ("noinline", "optnone")
_SCOPE: Final = "llvm.experimental.noalias.scope.decl"  # inlined calls leave it; it refers to metadata


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel, lowered for the executor.

    Attributes:
        text: LLVM text with the function of a thread.
        name: of the kernel, for messages.
        parameters: types and names of the kernel's parameters.
        shared: where shared arrays are.
        sites: places, by number.
        needs: resources that it needs of a GPU.
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
