"""float16 in kernels, as LLVM's operations on `half`.

To Numba a float16 is an integer of 16 bits. What it does with one is inline PTX, or a call of a function in C++ that it
would have NVIDIA's compiler compile: `__numba_wrapper_hsin(ptr result, i16)` in Numba's own CUDA target,
`_ZL4hsin6__half_nbst(ptr result, ptr)` in numba-cuda; both return 0. Functions are computed in single precision and
rounded, as CUDA does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from irad.frontend.cuda.replacements import Replacement
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Call
from irad.ir.types import Type
from irad.ir.values import Value, const_float, const_int

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


_OPERATIONS: Final[dict[str, _Operation]] = {
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
        yield f"{word}.f16 $0,$1,$2;", _inline(_OPERATIONS[word])
    for word in ("neg", "abs"):
        yield f"{word}.f16 $0, $1;", _inline(_OPERATIONS[word])
    yield "fma.rn.f16 $0,$1,$2,$3;", _inline(_OPERATIONS["fma"])
    for word in _COMPARISONS:
        yield _COMPARISON_PTX.format(op=word), _inline(_OPERATIONS[word])
    for word in ("f32", "f64"):
        yield f"cvt.{word}.f16 $0, $1;", _from_half("fpext")
        yield f"cvt.rn.f16.{word} $0, $1;", _to_half("fptrunc")
    for bits in (8, 16, 32, 64):
        for sign, to_integer, to_half in (("s", "fptosi", "sitofp"), ("u", "fptoui", "uitofp")):
            yield f"cvt.rni.{sign}{bits}.f16 $0, $1;", _to_integer(to_integer)
            yield f"cvt.rn.f16.{sign}{bits} $0, $1;", _to_half(to_half)


PTX: Final[dict[str, Replacement]] = dict(_ptx())
"""What stands in the place of inline PTX, by its text with single spaces."""

_CPP_OPERATORS: Final = {
    "pl": "add",
    "mi": "sub",
    "ml": "mul",
    "dv": "div",
    **{word: word for word in _COMPARISONS},
}
_CPP_PARAMETERS: Final = ("6__half", "6__halfS_", "6__halfS_S_")


def _calls() -> Iterator[tuple[str, Replacement]]:
    for word, operation in _OPERATIONS.items():
        yield f"__numba_wrapper_h{word}", _called(operation)
        for name in (f"h{word}", f"__h{word}"):
            for parameters in _CPP_PARAMETERS:
                yield f"_ZL{len(name)}{name}{parameters}_nbst", _called(operation)
    for spelled, word in _CPP_OPERATORS.items():
        yield f"_Z{spelled}RK6__halfS1__nbst", _called(_OPERATIONS[word])
    yield "_ZngRK6__half_nbst", _called(_OPERATIONS["neg"])


CALLS: Final[dict[str, Replacement]] = dict(_calls())
"""What stands in the place of a call, by the callee."""


def is_compiled_elsewhere(symbol: str) -> bool:
    """Whether Numba leaves a function to NVIDIA's compiler of C++, as it does with the operations of small floats."""
    return symbol.endswith("_nbst") or symbol.startswith("__numba_wrapper_")
