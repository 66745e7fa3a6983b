"""The arguments of a launch as bytes: a struct of the kernel's parameters."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from irad.errors import SignatureError, UnsupportedError
from irad.ir import types
from irad.ir.types import Type


def pack(name: str, parameters: Sequence[tuple[Type, str]], arguments: Sequence[Any]) -> Any:
    """A buffer with the arguments, laid out as a struct.

    Raises:
        SignatureError: there are too many or too few, or one is not of its type.
    """
    if len(arguments) != len(parameters):
        raise SignatureError(
            f"{name} has {len(parameters)} parameters, {len(arguments)} arguments are given",
            "give one for each: " + ", ".join(f"{type_} {label}" for type_, label in parameters),
            "a kernel has no default values",
        )
    struct = types.struct_type([_in_memory(type_) for type_, _ in parameters])
    packed = bytearray(max(types.size_of(struct), 1))
    for offset, (type_, label), value in zip(types.field_offsets(struct), parameters, arguments, strict=True):
        data = _bytes(type_, label, value)
        packed[offset : offset + len(data)] = data
    return (ctypes.c_char * len(packed)).from_buffer(packed)


def _in_memory(type_: Type) -> Type:
    """Pointers of all address spaces are addresses."""
    return types.PTR if isinstance(type_, types.PointerType) else type_


def _bytes(type_: Type, label: str, value: Any) -> bytes:
    """One argument."""
    try:
        match type_:
            case types.PointerType():
                return int(value).to_bytes(8, "little")
            case types.IntType(bits=bits):
                size = types.size_of(type_)
                return (int(value) & ((1 << bits) - 1)).to_bytes(size, "little")
            case types.FloatType(bits=16 | 32 | 64 as bits) if type_ is not types.BFLOAT:
                return np.array(value, f"<f{bits // 8}").tobytes()
    except (TypeError, ValueError, OverflowError) as error:
        raise SignatureError(
            f"{value!r} is not a value for parameter {label} of the kernel",
            "give a number, or an address as an integer",
            f"the parameter is {type_}",
        ) from error
    raise UnsupportedError(
        f"parameter {label} of the kernel is {type_}",
        "pass numbers and arrays",
        "the executor passes integers, addresses and numbers of 16, 32 and 64 bits",
    )
