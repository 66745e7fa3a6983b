"""From the kernel dialect to what LLVM's NVPTX back end takes.

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
from functools import cache
from typing import Final

from irad.backend.cuda.contraction import allow_contraction
from irad.backend.cuda.kernel import DYNAMIC_SHARED, TRIPLE, KernelModule
from irad.backend.cuda.lines import attach_lines
from irad.errors import BackendError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import AtomicRMW, Binary, Call, Cast, CmpXchg, Instruction, replace_uses
from irad.ir.module import Function, Module
from irad.ir.text.parser import parse_module
from irad.ruleset.symbols import TABLE, emitted_symbol, integer_arguments, symbols_of_function

FLUSHES: Final = '"denormal-fp-math-f32"="preserve-sign,preserve-sign"'
"""Numbers of single precision that are smaller than the smallest normal one count as zero."""
HOST_SYMBOLS: Final = frozenset({"vprintf", "malloc", "free", "__assertfail"})
"""What the driver defines for every kernel."""

_NATIVE: Final = {
    *("sqrt", "fabs", "copysign", "fmax", "fmin", "maximum", "minimum", "fma", "identity"),
    *("floor", "ceil", "trunc", "rint", "round"),
}
"""Functions of `irad.ruleset.symbols` whose intrinsics the machine has instructions for."""
_DEVICE_SCOPE: Final = "device"
_GLOBAL: Final = 1


def lower_kernel(kernel: KernelModule) -> Module:
    """The module that is handed to LLVM."""
    module = parse_module(kernel.text)
    if kernel.name not in module.functions:
        raise BackendError(
            f"the kernel @{kernel.name} is not in its module",
            "name the kernel of the module",
            "a kernel module has one kernel, which it names",
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
    """The symbol with what PTX allows in names."""
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
        "(a) use a function that CUDA has, or (b) write it as a device function",
        "a kernel is linked with NVIDIA's library of mathematics and nothing else",
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
            "PTX allows fewer letters in names than LLVM, and two names became one",
        )
    function.name = new
    module.functions[new] = function


def _inline_single_calls(module: Module) -> None:
    """Functions that are called once, as sweeps are, go into their caller before anything is optimised.

    Optimised apart, a sweep would come to read its frame through an address that is chosen from several, and the frame
    could not become registers any more.
    """
    for function in module.defined_functions():
        called_once = function.prefix == ("internal",) and list(function.users.values()) == [1]
        if called_once and not {"noinline", "optnone"}.intersection(function.attributes):
            function.attributes = (*function.attributes, "alwaysinline")


def _point_to_global_memory(entry: Function) -> None:
    """Says of a kernel's parameters what LLVM cannot know: they have values, and their pointers lead to global memory.

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
    """What ``--ftz=true`` is to nvcc: for LLVM an attribute, for libdevice a flag of the module."""
    for function in module.defined_functions():
        function.attributes = (*function.attributes, FLUSHES)
    flag = module.shared_metadata('!{i32 4, !"nvvm-reflect-ftz", i32 1}')
    flags = module.named_metadata.get("llvm.module.flags", ())
    module.named_metadata["llvm.module.flags"] = (*flags, flag)
