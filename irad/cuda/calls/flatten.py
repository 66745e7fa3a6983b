"""Arguments of a kernel as LLVM parameters, like Numba's launch, for any device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numba.np import numpy_support

from irad.api.annotations import in_order
from irad.cuda.devices.device import ArrayView, Device
from irad.errors import SignatureError, SourceLocation
from irad.frontend.cuda.program import KernelProgram, flatten, load_kernel
from irad.frontend.values.abi import Argument, leaves_of
from irad.frontend.values.tree import Content
from irad.message import with_article


@dataclass(frozen=True)
class Primal:
    """A kernel for given argument types.

    Attributes:
        program: its text and signature.
    """

    program: KernelProgram

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """Arguments of the kernel, with their leaves by LLVM parameter."""
        parameters = self.program.signature.parameters
        starts = accumulate((len(each.flattened) for each in parameters), initial=0)
        return tuple(
            Argument(position, each.name, each.type, leaves_of(each.type, start))
            for position, (each, start) in enumerate(zip(parameters, starts, strict=False))
        )

    @property
    def count(self) -> int:
        """Number of LLVM parameters."""
        return sum(len(each.flattened) for each in self.program.signature.parameters) + self.program.raises

    @staticmethod
    def dtype_of(leaf: Content) -> np.dtype[Any]:
        """NumPy's dtype of a number."""
        return numpy_support.as_dtype(leaf.type)

    @property
    def name(self) -> str:
        """Name of the kernel, as the user wrote it."""
        return self.program.source.function


def primal_of(kernel: Any, device: Device, values: Sequence[Any]) -> Primal:
    """The kernel for the types of these arguments.

    Raises:
        SignatureError: one is not something that a kernel takes.
    """
    names = names_of(kernel)
    if len(names) != len(values):
        raise SignatureError(
            f"{kernel.py_func.__qualname__} takes {len(names)} arguments, and {len(values)} were given",
            f"pass one for each of its parameters: {', '.join(names)}",
            "kernels have no default arguments",
            location=SourceLocation.of(kernel.py_func),
        )
    types = tuple(_type_of(device, name, value) for name, value in zip(names, values, strict=True))
    return Primal(load_kernel(kernel, types))


def names_of(kernel: Any) -> tuple[str, ...]:
    """The names of a kernel's parameters."""
    code = kernel.py_func.__code__
    return tuple(code.co_varnames[: code.co_argcount])


def ordered(kernel: Any, given: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments in the order of the parameters."""
    return in_order(kernel.py_func, given, named)


def _type_of(device: Device, name: str, value: Any) -> Any:
    try:
        return device.type_of(value)
    except (ValueError, TypeError) as error:
        raise SignatureError(
            f"{name} is {with_article(type(value).__name__)}, which kernels cannot take",
            "pass arrays, numbers, records or tuples of these",
            str(error).partition("\n")[0],
        ) from None


def part_of(value: Any, leaf: Content) -> Any:
    """Part of an argument's value that a leaf describes."""
    for step in leaf.path:
        value = value[step]
    return value


def name_of(argument: Argument, leaf: Content) -> str:
    """A leaf in the words of Python: the argument, with the attributes and indices on the way."""
    return argument.name + "".join(f"[{step}]" for step in leaf.path)


def array_of(device: Device, argument: Argument, leaf: Content, value: Any) -> ArrayView:
    """The array or record that a leaf is.

    Raises:
        SignatureError: it is not in memory that kernels of this device can use.
    """
    found = device.view(part_of(value, leaf))
    if found is None:
        raise SignatureError(
            f"{argument} is {with_article(type(part_of(value, leaf)).__name__)}, which is not in the memory of the GPU",
            "(a) numba.cuda.to_device(array) or (b) a CuPy array or (c) run in irad.cuda.executor(), on NumPy arrays",
            "derivatives of kernels do not copy arrays between host and device",
        )
    return found


def flat_of(device: Device, primal: Primal, values: Sequence[Any]) -> list[int | float]:
    """The LLVM parameters of a call, without that of a record of exceptions.

    Arrays have been found to be in memory that kernels can use (`array_of`).
    """
    return flatten(primal.program.signature, [_viewed(device, value) for value in values])


def _viewed(device: Device, value: Any) -> Any:
    """The value with views in place of arrays, whatever library they are of."""
    if isinstance(value, tuple):
        return tuple(_viewed(device, each) for each in value)
    return device.view(value) or value
