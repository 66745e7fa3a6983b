"""Operations of NVVM and inline PTX as operations of the kernel dialect.

Numba reaches what LLVM has no name for in three ways: functions that only NVVM knows (`llvm.nvvm.match.any.sync.i32`),
functions whose bodies Numba adds as text before it calls NVVM (`___numba_atomic_double_max`), and inline PTX. Each
callee and each piece of PTX has an entry in a table here: a function that builds the replacement. If there is none, the
call is refused, with the user's line. Libdevice's predicates of floats are comparisons here, since those need no rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.debug_info import source_location
from irad.ir.instructions import AtomicRMW, Call, CmpXchg, replace_uses
from irad.ir.module import Function, Module
from irad.ir.types import FloatType, IntType, Type
from irad.ir.values import InlineAsm, Undef, Value, const_float, const_int

# Makers of replacements: functions that build the operation that takes the place of a call.

Replacement: TypeAlias = Callable[[Builder, Call], Value]
"""Builds what stands in the place of a call, in front of it, and gives the result."""

_OWN: Final = ("convergent", "nounwind")
"""Attributes of what the dialect names itself: a call must not move to where other threads do not come."""


def own_call(b: Builder, symbol: str, result: Type, arguments: list[Value]) -> Value:
    """A call of an operation that the dialect names itself."""
    callee = b.module.declare(symbol, types.function_type(result, [each.type for each in arguments]), _OWN)
    return b.call(callee, arguments)


def operation(symbol: str) -> Replacement:
    """Replaces a call by one of an operation that the dialect names itself, with the same arguments."""
    return lambda b, call: own_call(b, symbol, call.type, call.arguments)


def intrinsic(symbol: str) -> Replacement:
    """Replaces a call by one of an intrinsic of LLVM, with the same arguments."""
    return lambda b, call: b.intrinsic(symbol, call.type, call.arguments)


# Atomic operations of NVVM and of Numba as LLVM's instructions.
#
# Numba adds the bodies of its own ones as text before it calls NVVM: loops of `cmpxchg`, which nobody could
# differentiate. As instructions they do the same, NaN included:
#
#     ___numba_atomic_double_nanmax   `atomicrmw fmax`: a NaN in memory gives way, a NaN as operand changes nothing
#     ___numba_atomic_double_max      a NaN in memory stays: the operand becomes NaN, and nothing changes
#
# Numba looks for that NaN once, before its loop; here an atomic load does.

ORDERING: Final = "monotonic"
_FLOATS: Final = ("float", "double")


def _atomic(b: Builder, opcode: str, pointer: Value, operand: Value) -> Value:
    inst = AtomicRMW(
        operand.type,
        operands=[pointer, operand],
        metadata=dict(b.metadata),
        opcode=opcode,
        ordering=ORDERING,
        align=_size(operand.type),
    )
    b.insert(inst)
    return inst


def _size(type_: Type) -> int:
    assert isinstance(type_, IntType | FloatType)
    return type_.bits // 8


def _instruction(opcode: str) -> Replacement:
    return lambda b, call: _atomic(b, opcode, *call.arguments)


def _that_keeps_nan(opcode: str) -> Replacement:
    def build(b: Builder, call: Call) -> Value:
        pointer, operand = call.arguments
        before = b.load(operand.type, pointer, align=_size(operand.type))
        before.ordering = ORDERING
        is_nan = b.fcmp("uno", before, before)
        nan = const_float(operand.type, float("nan"))
        return _atomic(b, opcode, pointer, b.select(is_nan, nan, operand))

    return build


def _atomic_calls() -> Iterator[tuple[str, Replacement]]:
    for word in _FLOATS:
        yield f"___numba_atomic_{word}_add", _instruction("fadd")
        yield f"___numba_atomic_{word}_sub", _instruction("fsub")
        for kind in ("max", "min"):
            yield f"___numba_atomic_{word}_{kind}", _that_keeps_nan(f"f{kind}")
            yield f"___numba_atomic_{word}_nan{kind}", _instruction(f"f{kind}")
    for kind, opcode in (("inc", "uinc_wrap"), ("dec", "udec_wrap")):
        yield f"___numba_atomic_u64_{kind}", _instruction(opcode)
        for spelled in ("p0", "p0i32"):  # what older LLVM does not upgrade
            yield f"llvm.nvvm.atomic.load.{kind}.32.{spelled}", _instruction(opcode)


_ATOMICS: Final[dict[str, Replacement]] = dict(_atomic_calls())
"""Replacements of calls, by the callee."""


# float16 in kernels, as LLVM's operations on `half`.
#
# To Numba a float16 is an integer of 16 bits. What it does with one is inline PTX, or a call of a function in C++
# that it would have NVIDIA's compiler compile: `__numba_wrapper_hsin(ptr result, i16)` in Numba's own CUDA target,
# `_ZL4hsin6__half_nbst(ptr result, ptr)` in numba-cuda; both return 0. Functions are computed in single precision and
# rounded, as CUDA does.

_Operation: TypeAlias = Callable[[Builder, list[Value]], Value]
"""Of halves; gives a half or, a comparison, a truth value."""

_BINARY: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_COMPARISONS: Final = {"eq": "oeq", "ne": "one", "ge": "oge", "gt": "ogt", "le": "ole", "lt": "olt"}
_INTRINSICS: Final = {"abs": "fabs", "fma": "fma", "max": "maxnum", "min": "minnum"}
_FUNCTIONS: Final = (
    *("sin", "cos", "tanh", "exp", "exp2", "exp10", "log", "log2", "log10"),
    *("sqrt", "rsqrt", "floor", "ceil", "trunc", "rint"),
)


def _in_single(symbol: str) -> _Operation:
    def build(b: Builder, operands: list[Value]) -> Value:
        wide = b.fpext(operands[0], types.FLOAT)
        callee = b.module.declare(symbol, types.function_type(types.FLOAT, [types.FLOAT]))
        return b.fptrunc(b.call(callee, [wide]), types.HALF)

    return build


def _reciprocal(b: Builder, operands: list[Value]) -> Value:
    wide = b.fpext(operands[0], types.FLOAT)
    return b.fptrunc(b.fdiv(const_float(types.FLOAT, 1.0), wide), types.HALF)


def _binary(opcode: str) -> _Operation:
    return lambda b, operands: b.binary(opcode, operands[0], operands[1])


def _compared(predicate: str) -> _Operation:
    return lambda b, operands: b.fcmp(predicate, operands[0], operands[1])


def _intrinsic(name: str) -> _Operation:
    return lambda b, operands: b.intrinsic(f"llvm.{name}.f16", types.HALF, operands)


_HALF_OPERATIONS: Final[dict[str, _Operation]] = {
    **{word: _binary(opcode) for word, opcode in _BINARY.items()},
    **{word: _compared(predicate) for word, predicate in _COMPARISONS.items()},
    **{word: _intrinsic(name) for word, name in _INTRINSICS.items()},
    **{word: _in_single(f"__nv_{word}f") for word in _FUNCTIONS},
    "neg": lambda b, operands: b.fneg(operands[0]),
    "rcp": _reciprocal,
}


def _bits(b: Builder, value: Value, type_: Type) -> Value:
    """A half as the integer that Numba has for it, a truth value as 0 or 1."""
    return b.zext(value, type_) if value.type is types.I1 else b.bitcast(value, type_)


def _inline(operation: _Operation) -> Replacement:
    def build(b: Builder, call: Call) -> Value:
        operands = [b.bitcast(each, types.HALF) for each in call.arguments]
        return _bits(b, operation(b, operands), call.type)

    return build


def _called(operation: _Operation) -> Replacement:
    """The operation of a function in C++, which takes halves by value or by address."""

    def build(b: Builder, call: Call) -> Value:
        result, *given = call.arguments
        operands = [
            b.load(types.HALF, each, align=2) if each.type is types.PTR else b.bitcast(each, types.HALF)
            for each in given
        ]
        found = operation(b, operands)
        b.store(_bits(b, found, types.I8 if found.type is types.I1 else types.I16), result)
        return const_int(types.I32, 0)

    return build


def _from_half(opcode: str) -> Replacement:
    return lambda b, call: b.cast(opcode, b.bitcast(call.arguments[0], types.HALF), call.type)


def _to_half(opcode: str) -> Replacement:
    return lambda b, call: b.bitcast(b.cast(opcode, call.arguments[0], types.HALF), call.type)


def _to_integer(opcode: str) -> Replacement:
    """The nearest integer, even on ties; the last of its type where there is none."""

    def build(b: Builder, call: Call) -> Value:
        nearest = b.intrinsic("llvm.rint.f16", types.HALF, [b.bitcast(call.arguments[0], types.HALF)])
        return b.intrinsic(f"llvm.{opcode}.sat.{call.type}.f16", call.type, [nearest])

    return build


_COMPARISON_PTX: Final = (
    "{{ .reg .pred __$$f16_cmp_tmp; setp.{op}.f16 __$$f16_cmp_tmp, $1, $2; selp.u16 $0, 1, 0, __$$f16_cmp_tmp; }}"
)


def _ptx() -> Iterator[tuple[str, Replacement]]:
    for word in ("add", "sub", "mul"):
        yield f"{word}.f16 $0,$1,$2;", _inline(_HALF_OPERATIONS[word])
    for word in ("neg", "abs"):
        yield f"{word}.f16 $0, $1;", _inline(_HALF_OPERATIONS[word])
    yield "fma.rn.f16 $0,$1,$2,$3;", _inline(_HALF_OPERATIONS["fma"])
    for word in _COMPARISONS:
        yield _COMPARISON_PTX.format(op=word), _inline(_HALF_OPERATIONS[word])
    for word in ("f32", "f64"):
        yield f"cvt.{word}.f16 $0, $1;", _from_half("fpext")
        yield f"cvt.rn.f16.{word} $0, $1;", _to_half("fptrunc")
    for bits in (8, 16, 32, 64):
        for sign, to_integer, to_half in (("s", "fptosi", "sitofp"), ("u", "fptoui", "uitofp")):
            yield f"cvt.rni.{sign}{bits}.f16 $0, $1;", _to_integer(to_integer)
            yield f"cvt.rn.f16.{sign}{bits} $0, $1;", _to_half(to_half)


_HALF_PTX: Final[dict[str, Replacement]] = dict(_ptx())
"""Replacements of inline PTX, by its text with single spaces."""

_CPP_OPERATORS: Final = {
    "pl": "add",
    "mi": "sub",
    "ml": "mul",
    "dv": "div",
    **{word: word for word in _COMPARISONS},
}
_CPP_PARAMETERS: Final = ("6__half", "6__halfS_", "6__halfS_S_")


def _half_calls() -> Iterator[tuple[str, Replacement]]:
    for word, operation in _HALF_OPERATIONS.items():
        yield f"__numba_wrapper_h{word}", _called(operation)
        for name in (f"h{word}", f"__h{word}"):
            for parameters in _CPP_PARAMETERS:
                yield f"_ZL{len(name)}{name}{parameters}_nbst", _called(operation)
    for spelled, word in _CPP_OPERATORS.items():
        yield f"_Z{spelled}RK6__halfS1__nbst", _called(_HALF_OPERATIONS[word])
    yield "_ZngRK6__half_nbst", _called(_HALF_OPERATIONS["neg"])


_HALF_CALLS: Final[dict[str, Replacement]] = dict(_half_calls())
"""Replacements of calls, by the callee."""


def is_compiled_elsewhere(symbol: str) -> bool:
    """True if Numba leaves a function to NVIDIA's compiler of C++, as it does with the operations of small floats."""
    return symbol.endswith("_nbst") or symbol.startswith("__numba_wrapper_")


# The tables, and the rewriting of calls by them.

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
    **_ATOMICS,
    **_HALF_CALLS,
}
"""Replacements of calls, by the callee."""

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
    **_HALF_PTX,
}
"""Replacements of inline PTX, by its text with single spaces."""

DIALECT: Final = (
    "llvm.nvvm.read.ptx.sreg.",
    "llvm.nvvm.barrier.cta.sync.aligned.all",
    "llvm.nvvm.bar.warp.sync",
    "llvm.nvvm.membar.",
    "llvm.nvvm.nanosleep",
)
"""Beginnings of the names of those operations of NVVM that belong to the dialect."""


def rewrite(module: Module, function: Function) -> None:
    """Brings the calls and atomic operations of a function into the dialect.

    Raises:
        UnsupportedError: there is one that the dialect does not have.
    """
    for inst in list(function.instructions()):
        match inst:
            case AtomicRMW():
                inst.ordering = ORDERING
            case CmpXchg():
                inst.success = inst.failure = ORDERING
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
            "(a) write it with other functions of numba.cuda or (b) report it, so that it can be added",
            "irad translates the operations of GPUs one by one, and does not support this one",
            source_location(module, call),
        )
    b = Builder.before(call)
    b.metadata = {kind: node for kind, node in call.metadata.items() if kind == "dbg"}
    replace_uses(call, replacement(b, call))
    call.erase()


def _is_foreign(symbol: str) -> bool:
    """True if a callee is neither of the dialect nor a function that others may define."""
    is_nvvms = symbol.startswith("llvm.nvvm.") and not symbol.startswith(DIALECT)
    return is_nvvms or is_compiled_elsewhere(symbol)


def _ptx_of(callee: InlineAsm) -> str:
    """The code between the first quotes of `asm sideeffect "…", "…"`, with single spaces."""
    quoted = callee.text.split('"')[1]
    return " ".join(quoted.replace("\\0A", " ").replace("\\09", " ").split())
