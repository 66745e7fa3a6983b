"""Operations of NVVM and inline PTX as operations of the kernel dialect.

Numba reaches what LLVM has no name for in three ways: functions that only NVVM knows (`llvm.nvvm.match.any.sync.i32`),
functions whose bodies Numba adds as text before it calls NVVM (`___numba_atomic_double_max`), and inline PTX. Each
callee and each piece of PTX has an entry in a table here, in `atomics` or in `half_precision`: a function that builds
what stands in its place. What has none is refused, with the user's line. Libdevice's questions about floats are
comparisons here, since those need no rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from irad.errors import UnsupportedError
from irad.frontend.cuda import atomics, half_precision
from irad.frontend.cuda.replacements import Replacement, intrinsic, operation, own_call
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.debug_info import source_location
from irad.ir.instructions import AtomicRMW, Call, CmpXchg, replace_uses
from irad.ir.module import Function, Module
from irad.ir.values import InlineAsm, Undef, Value, const_float, const_int

_NONE: Final = const_int(types.I32, 0)


def _barrier(b: Builder, _: Call) -> Value:
    return b.intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", types.VOID, [_NONE])


def _counting_barrier(kind: str) -> Replacement:
    """A barrier with a predicate, a truth value to LLVM's intrinsic and a number to CUDA."""

    def build(b: Builder, call: Call) -> Value:
        found = own_call(b, f"irad.cuda.barrier.{kind}", types.I32, [b.zext(call.arguments[1], types.I32)])
        return found if call.type is types.I32 else b.icmp("ne", found, _NONE)

    return build


def _match_all(b: Builder, call: Call) -> Value:
    """All threads of the mask have one value if each finds the whole mask to have its own."""
    mask, value = call.arguments
    found = own_call(b, f"irad.cuda.match.any.{value.type}", types.I32, [mask, value])
    is_all = b.icmp("eq", found, mask)
    result = b.insert_value(Undef(call.type), b.select(is_all, mask, _NONE), 0)
    return b.insert_value(result, is_all, 1)


def _cached_load(is_volatile: bool) -> Replacement:
    """A load with a hint for the cache; `cv` asks for memory as it is now."""

    def build(b: Builder, call: Call) -> Value:
        load = b.load(call.type, call.arguments[0])
        load.volatile = is_volatile
        return load

    return build


def _cached_store(b: Builder, call: Call) -> Value:
    pointer, value = call.arguments
    return b.store(value, pointer)


def _classified(predicate: str, bound: float) -> Replacement:
    """A question about a float: how its magnitude compares with a number."""

    def build(b: Builder, call: Call) -> Value:
        operand = call.arguments[0]
        suffix = "f32" if operand.type is types.FLOAT else "f64"
        magnitude = b.intrinsic(f"llvm.fabs.{suffix}", operand.type, [operand])
        return b.zext(b.fcmp(predicate, magnitude, const_float(operand.type, bound)), call.type)

    return build


_PREDICATED: Final = ("popc", "and", "or")
_HINTED_BITS: Final = (8, 16, 32, 64)

CALLS: Final[Mapping[str, Replacement]] = {
    "llvm.nvvm.barrier0": _barrier,
    "llvm.nvvm.match.any.sync.i32": operation("irad.cuda.match.any.i32"),
    "llvm.nvvm.match.any.sync.i64": operation("irad.cuda.match.any.i64"),
    "llvm.nvvm.match.all.sync.i32": _match_all,
    "llvm.nvvm.match.all.sync.i64": _match_all,
    **{f"llvm.nvvm.barrier0.{kind}": operation(f"irad.cuda.barrier.{kind}") for kind in _PREDICATED},
    **{f"llvm.nvvm.barrier.cta.red.{kind}.aligned.all": _counting_barrier(kind) for kind in _PREDICATED},
    **{f"__nv_isnan{suffix}": _classified("uno", 0.0) for suffix in "df"},
    **{f"__nv_isinf{suffix}": _classified("oeq", math.inf) for suffix in "df"},
    **dict.fromkeys(("__nv_isfinited", "__nv_finitef"), _classified("olt", math.inf)),
    **atomics.CALLS,
    **half_precision.CALLS,
}
"""What stands in the place of a call, by the callee."""

PTX: Final[Mapping[str, Replacement]] = {
    "mov.u32 $0, %dynamic_smem_size;": operation("irad.cuda.dynamic_shared_size"),
    "mov.u32 $0, %lanemask_lt;": operation("irad.cuda.lanemask.lt"),
    "activemask.b32 $0;": operation("irad.cuda.activemask"),
    "nanosleep.u32 $0;": intrinsic("llvm.nvvm.nanosleep"),
    "brkpt;": intrinsic("llvm.debugtrap"),
    **{
        f"ld.global.{hint}.b{bits} $0, [$1];": _cached_load(is_volatile=hint == "cv")
        for hint in ("ca", "cg", "cs", "lu", "cv")
        for bits in _HINTED_BITS
    },
    **{
        f"st.global.{hint}.b{bits} [$0], $1;": _cached_store
        for hint in ("cg", "cs", "wb", "wt")
        for bits in _HINTED_BITS
    },
    **half_precision.PTX,
}
"""What stands in the place of inline PTX, by its text with single spaces."""

DIALECT: Final = (
    "llvm.nvvm.read.ptx.sreg.",
    "llvm.nvvm.barrier.cta.sync.aligned.all",
    "llvm.nvvm.bar.warp.sync",
    "llvm.nvvm.membar.",
    "llvm.nvvm.nanosleep",
)
"""How those operations of NVVM begin that belong to the dialect."""


def rewrite(module: Module, function: Function) -> None:
    """Brings the calls and atomic operations of a function into the dialect.

    Raises:
        UnsupportedError: there is one that the dialect does not have.
    """
    for inst in list(function.instructions()):
        match inst:
            case AtomicRMW():
                inst.ordering = atomics.ORDERING
            case CmpXchg():
                inst.success = inst.failure = atomics.ORDERING
            case Call():
                _rewrite_call(module, inst)
            case _:
                pass


def _rewrite_call(module: Module, call: Call) -> None:
    callee = call.callee
    if isinstance(callee, InlineAsm):
        code = _ptx_of(callee)
        replacement = PTX.get(code)
    else:
        code = str(callee.name)
        replacement = CALLS.get(code)
        if replacement is None and not _is_foreign(code):
            return
    if replacement is None:
        raise UnsupportedError(
            f"the kernel uses {code}, which irad does not know",
            "(a) write it with other functions of numba.cuda or (b) report it, so that irad can learn it",
            "irad translates what is particular to GPUs operation by operation, and this is not among them",
            source_location(module, call),
        )
    b = Builder.before(call)
    b.metadata = {kind: node for kind, node in call.metadata.items() if kind == "dbg"}
    replace_uses(call, replacement(b, call))
    call.erase()


def _is_foreign(symbol: str) -> bool:
    """Whether a callee is neither of the dialect nor a function that others may define."""
    is_nvvms = symbol.startswith("llvm.nvvm.") and not symbol.startswith(DIALECT)
    return is_nvvms or half_precision.is_compiled_elsewhere(symbol)


def _ptx_of(callee: InlineAsm) -> str:
    """The code between the first quotes of `asm sideeffect "…", "…"`, with single spaces."""
    quoted = callee.text.split('"')[1]
    return " ".join(quoted.replace("\\0A", " ").replace("\\09", " ").split())
