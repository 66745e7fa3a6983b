"""Numba's float16 operations, inline PTX on integers of 16 bits, as LLVM's operations on `half`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from irad.frontend.cuda.replacements import Replacement
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Call
from irad.ir.types import Type
from irad.ir.values import Value

_BINARY: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul"}
_COMPARISONS: Final = {"eq": "oeq", "ne": "one", "ge": "oge", "gt": "ogt", "le": "ole", "lt": "olt"}
_FLOATS: Final[tuple[tuple[str, Type], ...]] = (("f32", types.FLOAT), ("f64", types.DOUBLE))


def _half(b: Builder, call: Call, position: int = 0) -> Value:
    return b.bitcast(call.arguments[position], types.HALF)


def _bits(b: Builder, value: Value) -> Value:
    return b.bitcast(value, types.I16)


def _binary(opcode: str) -> Replacement:
    return lambda b, call: _bits(b, b.binary(opcode, _half(b, call), _half(b, call, 1)))


def _negation(b: Builder, call: Call) -> Value:
    return _bits(b, b.fneg(_half(b, call)))


def _intrinsic(symbol: str) -> Replacement:
    return lambda b, call: _bits(
        b, b.intrinsic(symbol, types.HALF, [_half(b, call, n) for n in range(len(call.arguments))])
    )


def _comparison(predicate: str) -> Replacement:
    return lambda b, call: b.zext(b.fcmp(predicate, _half(b, call), _half(b, call, 1)), types.I16)


def _from_half(opcode: str) -> Replacement:
    return lambda b, call: b.cast(opcode, _half(b, call), call.type)


def _to_half(opcode: str) -> Replacement:
    return lambda b, call: _bits(b, b.cast(opcode, call.arguments[0], types.HALF))


def _rounded(opcode: str) -> Replacement:
    """To an integer, to the nearest, even on ties."""

    def build(b: Builder, call: Call) -> Value:
        nearest = b.intrinsic("llvm.rint.f16", types.HALF, [_half(b, call)])
        suffix = f"{call.type}.f16"
        return b.intrinsic(f"llvm.{opcode}.sat.{suffix}", call.type, [nearest])

    return build


def _ptx() -> Iterator[tuple[str, Replacement]]:
    for word, opcode in _BINARY.items():
        yield f"{word}.f16 $0,$1,$2;", _binary(opcode)
    yield "neg.f16 $0, $1;", _negation
    yield "abs.f16 $0, $1;", _intrinsic("llvm.fabs.f16")
    yield "fma.rn.f16 $0,$1,$2,$3;", _intrinsic("llvm.fma.f16")
    for word, predicate in _COMPARISONS.items():
        yield _COMPARED.format(op=word), _comparison(predicate)
    for word, _ in _FLOATS:
        yield f"cvt.{word}.f16 $0, $1;", _from_half("fpext")
        yield f"cvt.rn.f16.{word} $0, $1;", _to_half("fptrunc")
    for bits in (8, 16, 32, 64):
        for sign, to_integer, to_float in (("s", "fptosi", "sitofp"), ("u", "fptoui", "uitofp")):
            yield f"cvt.rni.{sign}{bits}.f16 $0, $1;", _rounded(to_integer)
            yield f"cvt.rn.f16.{sign}{bits} $0, $1;", _to_half(to_float)


_COMPARED: Final = (
    "{{ .reg .pred __$$f16_cmp_tmp; setp.{op}.f16 __$$f16_cmp_tmp, $1, $2; selp.u16 $0, 1, 0, __$$f16_cmp_tmp; }}"
)

PTX: Final[dict[str, Replacement]] = dict(_ptx())
"""What stands in the place of inline PTX, by its text with single spaces."""
