"""From a kernel of `numba.cuda` and argument types to its program. Start here."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import numpy as np
from numba.core import types

from irad.backend.cuda.kernel import KernelModule
from irad.compiling import step
from irad.errors import SignatureError, SourceLocation
from irad.frontend.cuda import device_derivatives, numba_cuda
from irad.frontend.cuda.dialect import to_dialect
from irad.frontend.cuda.signatures import types_for
from irad.frontend.custom import catalogue
from irad.kernel.inside import expand
from irad.records import dataclass

# Names that do not tell how often something was compiled: a kernel's derivatives are found by its text.
#
#     _ZN8__main__6kernelB3v17B106cw51c…   the 17th function that Numba compiled        →    B2v1
#     @_cudapy_smem_4                      the fourth array in shared memory            →    @_cudapy_smem_1
#
# Numbers start again at one, in the order of the text.

_MANGLED: Final = re.compile(r"_Z[\w.$]+")
_FUNCTION: Final = re.compile(r"B(?P<length>\d+)v(?P<number>\d+)(?=B)")
_ARRAY: Final = re.compile(r"(?P<stem>_cudapy_[a-z]mem_)(?P<number>\d+)")


def restart_counters(text: str, symbol: str) -> tuple[str, str]:
    """A module and a symbol of it, in which what Numba counts is numbered in the order of the text."""
    functions: dict[str, int] = {}
    arrays: dict[str, int] = {}

    def function(match: re.Match[str]) -> str:
        number = match["number"]
        if int(match["length"]) != 1 + len(number):
            return match[0]
        tag = f"v{functions.setdefault(number, len(functions) + 1)}"
        return f"B{len(tag)}{tag}"

    def name(match: re.Match[str]) -> str:
        return _FUNCTION.sub(function, match[0])

    def array(match: re.Match[str]) -> str:
        return f"{match['stem']}{arrays.setdefault(match[0], len(arrays) + 1)}"

    return _ARRAY.sub(array, _MANGLED.sub(name, text)), _MANGLED.sub(name, symbol)


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """An argument of a kernel.

    Attributes:
        name: as the user wrote it.
        type: Numba's.
        flattened: names of the LLVM parameters, in order. Those of an array are meminfo, parent, nitems, itemsize,
            data, then an extent for each axis, then a stride in bytes for each; those of a tuple or of a complex number
            are those of its parts. A record is one pointer.
    """

    name: str
    type: Any
    flattened: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """Signature of a kernel: the LLVM parameters are those of the arguments, in order."""

    parameters: tuple[KernelParameter, ...]

    @property
    def types(self) -> tuple[Any, ...]:
        """Numba's types of the arguments."""
        return tuple(each.type for each in self.parameters)


@dataclass(frozen=True, slots=True)
class KernelProgram:
    """A kernel for given argument types.

    Attributes:
        module: its text.
        signature: its parameters.
        source: where it is defined.
        raises: whether the address of a record of what it raises follows its arguments (`exceptions.py`).
    """

    module: KernelModule
    signature: KernelSignature
    source: SourceLocation
    raises: bool = False


_PROGRAMS: Final[weakref.WeakKeyDictionary[Any, dict[Any, KernelProgram]]] = weakref.WeakKeyDictionary()


def load_kernel(
    kernel: Callable[..., Any], argument_types: tuple[Any, ...], *, fastmath: bool | None = None
) -> KernelProgram:
    """The program of a kernel: compiled by Numba once, then remembered as long as the kernel lives.

    Args:
        kernel: a kernel of `numba.cuda.jit`, or a plain function.
        argument_types: Numba's.
        fastmath: in place of what the decorator says; device functions keep to theirs.

    Raises:
        numba.core.errors.NumbaError: Numba cannot compile it; the error is Numba's own.
        UnsupportedError: it uses an operation of the GPU that irad does not know.
        SignatureError: it has signatures, and none of them fits.
    """
    options = numba_cuda.options_of(kernel)
    argument_types = types_for(kernel, argument_types)
    if fastmath is not None:
        options = replace(options, fastmath=fastmath)
    known = _PROGRAMS.setdefault(kernel, {})
    key = argument_types, options, catalogue.epoch()  # device functions may have rules
    if key not in known:
        known[key] = _load(kernel, argument_types, options)
    return known[key]


def _load(kernel: Any, argument_types: tuple[Any, ...], options: numba_cuda.KernelOptions) -> KernelProgram:
    function = getattr(kernel, "py_func", kernel)
    source = SourceLocation.of(function)
    assert source is not None, "a kernel is a function of Python"
    with step(f"compiling {source.function} with Numba"):
        lowered = numba_cuda.lower(function, argument_types, options)
        text, names, raises = to_dialect(lowered, options)
        text, symbol = restart_counters(text, lowered.symbol)
        module = expand(KernelModule(text, symbol, options.fastmath, contract=True), device_derivatives.WANTED)
    rest = iter(names)
    parameters = (
        KernelParameter(name, type_, tuple(islice(rest, count)))
        for (name, type_), count in zip(lowered.arguments, lowered.counts, strict=True)
    )
    return KernelProgram(module, KernelSignature(tuple(parameters)), source, raises)


# Arguments of a launch as a kernel takes them: numbers and addresses, one for each LLVM parameter.

Flat = int | float
"""Value passed for an LLVM parameter."""


def flatten(signature: KernelSignature, arguments: Sequence[Any]) -> list[Flat]:
    """The values for the LLVM parameters of a kernel.

    Arrays are passed by address: whoever launches keeps them alive, and sees to it that their memory is where the
    kernel runs.

    Args:
        signature: signature of the kernel.
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


def _flat(name: str, type_: types.Type, value: Any) -> Iterator[Flat]:
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
                f"{name} is {type_}, which kernels cannot take",
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
            f"{name} is {type(value).__name__}, which is not an array that a kernel can take",
            "pass a NumPy, Numba or CuPy array",
            "kernels take the addresses of arrays",
        )
    return int(interface["data"][0])
