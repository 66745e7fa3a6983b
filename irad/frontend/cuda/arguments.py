"""Arguments of a launch as a kernel takes them: numbers and addresses, one for each LLVM parameter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numba.core import types

from irad.errors import SignatureError
from irad.frontend.cuda.program import KernelSignature

Flat = int | float
"""What an LLVM parameter is given."""


def flatten(signature: KernelSignature, arguments: Sequence[Any]) -> list[Flat]:
    """The values for the LLVM parameters of a kernel.

    Arrays are passed by address: whoever launches keeps them alive, and sees to it that their memory is where the
    kernel runs.

    Args:
        signature: of the kernel.
        arguments: NumPy arrays, or what has `__cuda_array_interface__`; numbers, tuples, records.

    Raises:
        SignatureError: an argument cannot be passed.
    """
    if len(arguments) != len(signature.parameters):
        names = ", ".join(each.name for each in signature.parameters)
        raise SignatureError(
            f"the kernel takes {len(signature.parameters)} arguments ({names}), {len(arguments)} are given",
            "give one for each",
            "kernels have no default values",
        )
    flat: list[Flat] = []
    for parameter, value in zip(signature.parameters, arguments, strict=True):
        flat += _flat(parameter.name, parameter.type, value)
    return flat


def _flat(name: str, type_: Any, value: Any) -> Iterator[Flat]:
    match type_:
        case types.Array():
            yield from _array(name, type_, value)
        case types.Record():
            yield _address(name, value)
        case types.Complex():
            yield from (complex(value).real, complex(value).imag)
        case types.Boolean() | types.Integer():
            yield int(value)
        case types.Float():
            yield int(np.float16(value).view(np.uint16)) if type_.bitwidth == 16 else float(value)
        case types.BaseTuple():
            for part_type, part in zip(type_, value, strict=True):
                yield from _flat(name, part_type, part)
        case types.Optional():
            present = value is not None
            yield from _flat(name, type_.type, value if present else 0)
            yield int(present)
        case types.NPDatetime() | types.NPTimedelta():
            yield int(np.asarray(value).view(np.int64))
        case _:
            raise SignatureError(
                f"{name} is {type_}, which kernels cannot be given",
                "pass arrays, numbers, records, or tuples of them",
                "arguments of kernels are copied to the GPU bit by bit",
            )


def _array(name: str, type_: Any, value: Any) -> Iterator[Flat]:
    """No owner, no parent, items, bytes of an item, address, extents, strides."""
    shape, strides = tuple(value.shape), getattr(value, "strides", None)
    if len(shape) != type_.ndim:
        raise SignatureError(
            f"{name} has {len(shape)} dimensions",
            f"pass an array with {type_.ndim}",
            f"the kernel was compiled for {type_}",
        )
    itemsize = np.dtype(value.dtype).itemsize
    if strides is None:  # of what has the interface only: in the order of C
        strides = tuple(itemsize * int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
    yield from (0, 0, int(np.prod(shape)), itemsize, _address(name, value), *shape, *strides)


def _address(name: str, value: Any) -> int:
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None:
        interface = getattr(value, "__array_interface__", None)
    if interface is None:
        raise SignatureError(
            f"{name} is {type(value).__name__}, which has no memory that a kernel can be given",
            "pass an array of NumPy, Numba or CuPy",
            "kernels are given addresses",
        )
    return int(interface["data"][0])
