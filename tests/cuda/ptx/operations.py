"""Each operation of the kernel dialect in LLVM text, and the PTX that it has to become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from irad.backend.cuda.kernel import KernelModule


@dataclass(frozen=True)
class Operation:
    """A line of LLVM text whose result is `%r`.

    Attributes:
        name: for the test.
        text: of the line after `%r = `; without result, the whole line.
        result: type of the result, "" without one.
        ptx: what must stand in the PTX, in this order.
        declares: declarations that it needs.
    """

    name: str
    text: str
    result: str
    ptx: tuple[str, ...]
    declares: tuple[str, ...] = ()

    def lines(self, number: int = 0) -> str:
        if not self.result:
            return f"  {self.text}\n"
        stored = f"  %at{number} = getelementptr double, ptr %out, i64 {number}\n"
        return f"  %r{number} = {self.text}\n{stored}  store volatile {self.result} %r{number}, ptr %at{number}\n"


def kernel_of(operations: Sequence[Operation], *, fastmath: bool = False) -> KernelModule:
    """A kernel that does one after the other; parameters are ptr %out, float %f, double %d, i32 %i, i64 %l, half %h."""
    declares = "\n".join(dict.fromkeys(d for operation in operations for d in operation.declares))
    body = "".join(operation.lines(number) for number, operation in enumerate(operations))
    head = "define ptx_kernel void @k(ptr %out, float %f, double %d, i32 %i, i64 %l, half %h)"
    triple = 'target triple = "nvptx64-nvidia-cuda"'
    return KernelModule(f"{triple}\n{declares}\n{head} {{\n{body}  ret void\n}}\n", "k", fastmath)


def _call(
    symbol: str, result: str, arguments: Sequence[str], ptx: str | Sequence[str], words: str = "convergent nounwind"
) -> Operation:
    types = ", ".join(a.split(" ")[0] for a in arguments)
    text = f"call {result} @{symbol}({', '.join(arguments)})"
    wanted = (ptx,) if isinstance(ptx, str) else tuple(ptx)
    returned = "" if result == "void" else result
    return Operation(symbol, text, returned, wanted, (f"declare {result} @{symbol}({types}) {words}",))


def _registers() -> list[Operation]:
    found = []
    for register in ("tid", "ntid", "ctaid", "nctaid"):
        for axis in "xyz":
            symbol = f"llvm.nvvm.read.ptx.sreg.{register}.{axis}"
            found.append(_call(symbol, "i32", [], f"%{register}.{axis};", ""))
    found.append(_call("llvm.nvvm.read.ptx.sreg.laneid", "i32", [], "%laneid", ""))
    found.append(_call("llvm.nvvm.read.ptx.sreg.warpsize", "i32", [], ", 32;", ""))
    found.append(_call("irad.cuda.lanemask.lt", "i32", [], "%lanemask_lt"))
    found.append(_call("irad.cuda.dynamic_shared_size", "i32", [], "%dynamic_smem_size"))
    found.append(_call("irad.cuda.activemask", "i32", [], "activemask.b32"))
    return found


def _barriers() -> list[Operation]:
    return [
        _call("llvm.nvvm.barrier.cta.sync.aligned.all", "void", ["i32 0"], "bar.sync"),
        _call("irad.cuda.barrier.popc", "i32", ["i32 %i"], "bar.red.popc.u32"),
        _call("irad.cuda.barrier.and", "i32", ["i32 %i"], "bar.red.and.pred"),
        _call("irad.cuda.barrier.anywhere", "i32", ["i32 %i"], "barrier.red.and.pred"),
        _call("irad.cuda.barrier.or", "i32", ["i32 %i"], "bar.red.or.pred"),
        _call("llvm.nvvm.bar.warp.sync", "void", ["i32 15"], "bar.warp.sync \t15;"),
        _call("llvm.nvvm.membar.cta", "void", [], "membar.cta", ""),
        _call("llvm.nvvm.membar.gl", "void", [], "membar.gl", ""),
        _call("llvm.nvvm.membar.sys", "void", [], "membar.sys", ""),
        _call("llvm.nvvm.nanosleep", "void", ["i32 20"], "nanosleep.u32"),
    ]


def _warp() -> list[Operation]:
    found = []
    for mode, clamp in (("idx", 31), ("down", 31), ("bfly", 31), ("up", 0)):
        for type_, value in (("i32", "%i"), ("i64", "%l"), ("f32", "%f"), ("f64", "%d")):
            spelled = {"f32": "float", "f64": "double"}.get(type_, type_)
            one = (f"shfl.sync.{mode}.b32", f", 3, {clamp}, 255;")
            ptx = one if type_.endswith("32") else one + one
            arguments = ["i32 255", f"{spelled} {value}", "i32 3"]
            found.append(_call(f"irad.cuda.shfl.{mode}.{type_}", spelled, arguments, ptx))
    for kind, word in (("all", "all.pred"), ("any", "any.pred"), ("uni", "uni.pred"), ("ballot", "ballot.b32")):
        wanted = ("setp.ne.b32", f"vote.sync.{word}", ", 255;")
        found.append(_call(f"irad.cuda.vote.{kind}", "i32", ["i32 255", "i32 %i"], wanted))
    found.append(_call("irad.cuda.match.any.i32", "i32", ["i32 255", "i32 %i"], ("match.any.sync.b32", ", 255;")))
    found.append(_call("irad.cuda.match.any.i64", "i32", ["i32 255", "i64 %l"], ("match.any.sync.b64", ", 255;")))
    return found


def _atomics() -> list[Operation]:
    whole = {"add": "add.u", "and": "and.b", "or": "or.b", "xor": "xor.b", "xchg": "exch.b"}
    order = {"max": "max.s", "min": "min.s", "umax": "max.u", "umin": "min.u"}
    found = []
    for opcode, word in (whole | order).items():
        for type_, value in (("i32", "%i"), ("i64", "%l")):
            found.append(_atomic(opcode, type_, value, f"atom.global.{word}{type_[1:]}"))
    for type_, value in (("float", "%f"), ("double", "%d")):
        bits = 32 if type_ == "float" else 64
        found.append(_atomic("fadd", type_, value, f"atom.global.add.f{bits}"))
        found.append(_atomic("fsub", type_, value, (f"neg.f{bits}", f"atom.global.add.f{bits}")))
        found.append(_atomic("xchg", type_, value, f"atom.global.exch.b{bits}"))
        for opcode in ("fmax", "fmin"):
            found.append(
                _atomic(opcode, type_, value, (f"{opcode[1:]}.f{bits}", f"atom.relaxed.gpu.global.cas.b{bits}"))
            )
    found.append(_atomic("sub", "i32", "%i", ("neg.s32", "atom.global.add.u32")))
    found.append(_atomic("uinc_wrap", "i32", "%i", "atom.global.inc.u32"))
    found.append(_atomic("udec_wrap", "i32", "%i", "atom.global.dec.u32"))
    found.append(_atomic("uinc_wrap", "i64", "%l", "cas.b64"))
    found.append(_atomic("fadd", "half", "%h", "atom.global.add.noftz.f16"))
    exchange = "cmpxchg ptr %out, i64 %l, i64 5 monotonic monotonic"
    found.append(Operation("cmpxchg", exchange, "{ i64, i1 }", ("atom.relaxed.gpu.global.cas.b64",)))
    return found


def _atomic(opcode: str, type_: str, value: str, ptx: str | tuple[str, ...]) -> Operation:
    text = f"atomicrmw {opcode} ptr %out, {type_} {value} monotonic"
    return Operation(f"{opcode}.{type_}", text, type_, (ptx,) if isinstance(ptx, str) else ptx)


ALL: Final = (*_registers(), *_barriers(), *_warp(), *_atomics())
