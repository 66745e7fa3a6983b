"""Lowers the kernel dialect for LLVM's NVPTX back end.

Input   a kernel in the kernel dialect.
Output  a module of irad's IR with the same meaning, in which every operation can be compiled.
Method  one instruction at a time:
        - mathematics goes to libdevice: LLVM ends the process on an intrinsic that the machine has no instruction for,
          and computes `frem` as `x - trunc(x / y) * y`, which is wrong for large quotients;
        - atomic operations are atomic on the device, not among all devices and the host, as CUDA's are; a subtraction
          adds the negated number, since there is an instruction for that and not for subtractions;
        - products and sums may be fused, if those of the primal may;
        - debug information becomes line marks (`lines`).
Limit   `irad.cuda.…` operations stay calls: `device/` defines them.

    %r = call double @llvm.sin.f64(double %x)         %r = call double @__nv_sin(double %x)
    atomicrmw fsub ptr %p, double %v monotonic        %n = fneg double %v
                                                      atomicrmw fadd ptr %p, double %n syncscope("device") monotonic
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Final

from irad.backend.cuda.kernel import DYNAMIC_SHARED, TRIPLE, KernelModule
from irad.errors import BackendError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import AtomicRMW, Binary, Call, CallSite, Cast, CmpXchg, Instruction, replace_uses
from irad.ir.module import Function, MetadataNode, Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ruleset.symbols import TABLE, emitted_symbol, integer_arguments, symbols_of_function

# Products and sums that may become fused multiply-adds, as nvcc and Numba have it.
#
# A fused operation rounds once where two round twice. Whoever differentiates has to know: what the forward sweep and
# the reverse sweep both compute may then be rounded differently in each, and decisions made from it are saved
# (`irad.passes.plan.agreement`). So the words are put on the primal, *before* it is differentiated (the front end does
# that); its derivative has them too, and `compile_ptx` puts them on the instructions that the derivative adds.
#
#     %p = fmul double %a, %b              %p = fmul contract double %a, %b
#     %s = fadd double %p, %c              %s = fadd contract double %p, %c          fma.rn.f64

_OPCODES: Final = frozenset({"fadd", "fsub", "fmul"})
_ENOUGH: Final = frozenset({"contract", "fast"})


def contracted(kernel: KernelModule) -> KernelModule:
    """The kernel for a GPU: LLVM may fuse its products and sums, and those of its derivative."""
    if kernel.contract:
        return kernel
    module = parse_module(kernel.text)
    allow_contraction(module)
    return replace(kernel, text=print_module(module), contract=True)


def allow_contraction(module: Module) -> None:
    """Puts the word on every product and sum."""
    for function in module.defined_functions():
        for inst in function.instructions():
            if isinstance(inst, Binary) and inst.opcode in _OPCODES and _ENOUGH.isdisjoint(inst.flags):
                inst.flags = (*inst.flags, "contract")


# Lines of the source in generated kernels, so that PTX has `.loc` marks, which tools for GPUs show.
#
# Input   a module; its instructions know their lines, functions that a derivation made do not say what they are.
# Output  the module with a subprogram for each such function; in its code everything counts as inlined there.
# Method  LLVM writes lines of functions with a subprogram only, and requires that the chain of calls that a line was
#         inlined through ends in that subprogram. Debug information is reduced to lines: with more, ptxas does not
#         optimise.
#
#     !21 = !DILocation(line: 7, scope: !9)        !21 = !DILocation(line: 7, scope: !9, inlinedAt: !40)
#                                                  !40 = distinct !DILocation(line: 0, scope: !41)
#                                                  !41 = distinct !DISubprogram(name: "k.reverse", …)

_LOCATION: Final = "!DILocation("
_UNIT: Final = "!DICompileUnit("
_INLINED: Final = "inlinedAt: "
_FILE: Final = "file: "


def attach_lines(module: Module) -> None:
    """Gives every function with code a subprogram, if the module has debug information."""
    for node in module.metadata.values():
        if node.text.startswith(_UNIT):
            for kind in ("FullDebug", "LineTablesOnly"):
                node.text = node.text.replace(f"emissionKind: {kind}", "emissionKind: DebugDirectivesOnly")
    units = module.named_metadata.get("llvm.dbg.cu", ())
    if units:
        for function in module.defined_functions():
            if "dbg" not in dict(function.metadata):
                _Attachment(module, function, units[0]).attach()


class _Attachment:
    """One function."""

    def __init__(self, module: Module, function: Function, unit: str) -> None:
        self.module, self.function = module, function
        file = _after(module.metadata[int(unit[1:])].text, _FILE)
        kind = module.shared_metadata("!DISubroutineType(types: !{null})")
        self.subprogram = self.node(
            f'!DISubprogram(name: "{function.name}", scope: {file}, file: {file}, type: {kind}, '
            f"spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: {unit})"
        )
        self.site = self.node(f"{_LOCATION}line: 0, scope: {self.subprogram})")
        self.moved: dict[str, str] = {}

    def attach(self) -> None:
        """Changes the function and its instructions."""
        self.function.metadata = (*self.function.metadata, ("dbg", self.subprogram))
        for inst in self.function.instructions():
            if "dbg" in inst.metadata:
                inst.metadata["dbg"] = self.move(inst.metadata["dbg"])
            elif isinstance(inst, CallSite):
                inst.metadata["dbg"] = self.site  # LLVM may inline the callee, and wants to know where

    def move(self, location: str) -> str:
        """The location at the end of whose chain of calls this function stands."""
        if location not in self.moved:
            old = self.module.metadata[int(location[1:])]
            around = _after(old.text, _INLINED)
            inner = old.text.removesuffix(")") if around is None else old.text.partition(f", {_INLINED}")[0]
            outer = self.site if around is None else self.move(around)
            self.moved[location] = self.node(f"{inner}, {_INLINED}{outer})", distinct=old.distinct)
        return self.moved[location]

    def node(self, text: str, *, distinct: bool = True) -> str:
        """A reference to a new node."""
        number = self.module.new_metadata_number()
        self.module.metadata[number] = MetadataNode(text, distinct)
        return f"!{number}"


def _after(text: str, label: str) -> str | None:
    """The reference after a label of a node, None without the label."""
    _, found, rest = text.partition(label)
    return rest.partition(",")[0].partition(")")[0] if found else None


FLUSHES: Final = '"denormal-fp-math-f32"="preserve-sign,preserve-sign"'
"""Numbers of single precision that are smaller than the smallest normal one count as zero."""
HOST_SYMBOLS: Final = frozenset({"vprintf", "malloc", "free", "__assertfail"})
"""Symbols that the driver defines for every kernel."""

_NATIVE: Final = {
    *("sqrt", "fabs", "copysign", "fmax", "fmin", "maximum", "minimum", "fma", "identity"),
    *("floor", "ceil", "trunc", "rint", "round"),
}
"""Functions of `irad.ruleset.symbols` whose intrinsics the machine has instructions for."""
_DEVICE_SCOPE: Final = "device"
_GLOBAL: Final = 1  # LLVM's address space of global memory on NVPTX


def lower_kernel(kernel: KernelModule) -> Module:
    """The module that is handed to LLVM."""
    module = parse_module(kernel.text)
    if kernel.name not in module.functions:
        raise BackendError(
            f"the kernel @{kernel.name} is not in its module",
            "name the kernel of the module",
            "a kernel module contains one kernel, selected by its name",
        )
    module.triple, module.layout = TRIPLE, None
    for function in module.defined_functions():
        for inst in list(function.instructions()):
            _lower(inst)
        if function.name != kernel.name:
            function.prefix = ("internal",)
        elif "internal" in function.prefix:
            function.prefix = ()
    _rename(module, kernel.name, entry_name(kernel.name))
    if DYNAMIC_SHARED in module.globals:
        module.globals[DYNAMIC_SHARED].name = _identifier(DYNAMIC_SHARED)
    _inline_single_calls(module)
    _point_to_global_memory(module.functions[entry_name(kernel.name)])
    attach_lines(module)
    if kernel.contract:
        allow_contraction(module)
    if kernel.fastmath:
        _flush_denormals(module)
    return module


def entry_name(symbol: str) -> str:
    """The name in PTX of a kernel."""
    return _identifier(symbol)


def _identifier(symbol: str) -> str:
    """The symbol with characters that PTX allows in names."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_$") else "_" for c in symbol)


def undefined_calls(module: Module) -> Iterator[tuple[str, Instruction]]:
    """Each function that is called and has no body here, with a call; intrinsics aside."""
    for name, function in module.functions.items():
        if function.is_declaration and function.users and not name.startswith("llvm."):
            yield name, next(iter(function.users))


def refuse_call(module: Module, name: str, call: Instruction) -> BackendError:
    """The error for a function that nobody defines on the device."""
    return BackendError(
        f"the kernel calls '{name}', which does not exist on the GPU",
        "(a) use a function that CUDA provides, or (b) write it as a device function",
        "a kernel is linked only with NVIDIA's mathematical library, libdevice",
        location=DebugInfo(module).location(call),
    )


def _lower(inst: Instruction) -> None:
    match inst:
        case Binary(opcode="frem") if inst.type in (types.FLOAT, types.DOUBLE):
            _replace(inst, "__nv_fmod" if inst.type is types.DOUBLE else "__nv_fmodf")
        case AtomicRMW():
            inst.syncscope = _DEVICE_SCOPE
            if inst.opcode == "fsub":
                inst.opcode = "fadd"
                inst.set_operand(1, Builder.before(inst).fneg(inst.operands[1]))
        case CmpXchg():
            inst.syncscope = _DEVICE_SCOPE
        case Call(callee=Function(name=str() as name)) if name in _library_names():
            _replace(inst, _library_names()[name])
        case _:
            pass


def _replace(inst: Instruction, symbol: str) -> None:
    """A call of libdevice in the place of an instruction."""
    operands = inst.arguments if isinstance(inst, Call) else inst.operands
    build = Builder.before(inst)
    build.metadata = {kind: node for kind, node in inst.metadata.items() if kind == "dbg"}
    replace_uses(inst, build.intrinsic(symbol, inst.type, operands, name=inst.name))
    inst.erase()


@cache
def _library_names() -> dict[str, str]:
    """Intrinsics without an instruction → libdevice's functions."""
    names = dict[str, str]()
    for function in TABLE.keys() - _NATIVE:
        if not TABLE[function].nv:
            continue
        for symbol, precision in symbols_of_function(function):
            if symbol.startswith("llvm.") and (not integer_arguments(function) or symbol.endswith(".i32")):
                names[symbol] = emitted_symbol(function, precision, (), TRIPLE)
    return names


def _rename(module: Module, old: str, new: str) -> None:
    function = module.functions.pop(old)
    if new in module.functions:
        raise BackendError(
            f"the module of the kernel has another function {new}",
            "rename one of them",
            "PTX allows fewer characters in names than LLVM, and two names became equal",
        )
    function.name = new
    module.functions[new] = function


def _inline_single_calls(module: Module) -> None:
    """Inlines functions that are called once, such as sweeps, before anything is optimised.

    Optimised apart, a sweep would come to read its frame through an address that is chosen from several, and the frame
    could not become registers any more.
    """
    for function in module.defined_functions():
        called_once = function.prefix == ("internal",) and list(function.users.values()) == [1]
        if called_once and not {"noinline", "optnone"}.intersection(function.attributes):
            function.attributes = (*function.attributes, "alwaysinline")


def _point_to_global_memory(entry: Function) -> None:
    """Says of a kernel's parameters what LLVM cannot know: they have values, and their pointers point to global memory.

    The back end would find the latter itself, but after all that could have used it.
    """
    build = Builder.at_start(entry.entry)
    for param in entry.params:
        if "noundef" not in param.attributes:
            param.attributes = (*param.attributes, "noundef")
        if param.type is types.PTR and param.users:
            near = build.cast("addrspacecast", param, types.pointer_type(_GLOBAL))
            generic = build.cast("addrspacecast", near, types.PTR)
            replace_uses(param, generic)
            assert isinstance(near, Cast)
            near.set_operand(0, param)


def _flush_denormals(module: Module) -> None:
    """Flushes denormals, like ``--ftz=true`` of nvcc: for LLVM an attribute, for libdevice a flag of the module."""
    for function in module.defined_functions():
        function.attributes = (*function.attributes, FLUSHES)
    flag = module.shared_metadata('!{i32 4, !"nvvm-reflect-ftz", i32 1}')
    flags = module.named_metadata.get("llvm.module.flags", ())
    module.named_metadata["llvm.module.flags"] = (*flags, flag)
