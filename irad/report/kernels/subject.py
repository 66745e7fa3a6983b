"""The subject of a report on a kernel: the kernel, the types of a launch, the differentiated arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
from numba.core import types

from irad.api.functions import is_kernel
from irad.cuda.calls.compiled import memory_of
from irad.cuda.calls.flatten import Primal, names_of
from irad.driver import Observer
from irad.errors import IradError, SignatureError, SourceLocation
from irad.frontend.cuda.exceptions import RECORD
from irad.frontend.cuda.program import KernelProgram, load_kernel
from irad.frontend.values.abi import leaves_of
from irad.frontend.values.tree import Content, LeafKind
from irad.ir.instructions import GetElementPtr, Instruction, Store
from irad.ir.text.parser import parse_module
from irad.ir.values import Parameter
from irad.ir.worklist import reachable
from irad.kernel.derive import KernelDerivative, derive_kernel
from irad.kernel.program import load
from irad.options import Options
from irad.passes.request import ParameterKind


@dataclass(frozen=True)
class KernelSubject:
    """A derivative of a kernel to be looked at.

    Attributes:
        primal: the kernel, as `numba.cuda.jit` made it.
        argument_types: Numba types, one per parameter.
        positions: the arguments that are differentiated.
        options: options of the derivative.
        launched_axes: along how many axes it is launched, where that is known.
    """

    primal: Any
    argument_types: tuple[Any, ...]
    positions: tuple[int, ...]
    options: Options
    launched_axes: int | None = None

    @property
    def signature(self) -> str:
        """Numba's types of the arguments."""
        return f"({', '.join(map(str, self.argument_types))})"

    @cached_property
    def program(self) -> KernelProgram:
        """The kernel's text and signature."""
        return load_kernel(self.primal, self.argument_types)

    @cached_property
    def device_functions(self) -> tuple[Callable[..., Any], ...]:
        """The device functions that the kernel names, and those that they name."""
        found = reachable([self.primal], lambda each: filter(is_kernel, _named(each.py_func)))
        return tuple(each.py_func for each in found if each is not self.primal)

    @cached_property
    def axes(self) -> int:
        """Along how many axes launches are looked at: where that is not known, as many as the kernel asks for."""
        if self.launched_axes is not None:
            return self.launched_axes
        functions = parse_module(load(self.program.module).text).functions
        used = [symbol for symbol, function in functions.items() if not all(map(_is_recorded, function.users))]
        axes = (number for number, axis in enumerate("xyz", 1) if any(_is_register(each, axis) for each in used))
        return max(axes, default=1)

    def derive(self, observe: Observer | None = None) -> KernelDerivative:
        """The derivative in reverse mode, as if no two arguments shared memory.

        Raises:
            IradError: the kernel cannot be differentiated.
        """
        primal = Primal(self.program)
        kinds, memory = _kinds(primal, self.positions), memory_of(primal)
        try:
            return derive_kernel(
                self.program.module, kinds, memory, self.options, apart=True, axes=self.axes, observe=observe
            )
        except IradError as error:
            error.location = error.location or self.program.source
            raise


def kernel_subject(
    kernel: Any, args: tuple[Any, ...], positions: Sequence[int] | None, options: Options | None
) -> KernelSubject:
    """The derivative of a kernel at arguments of some types.

    Args:
        kernel: of `numba.cuda.jit`.
        args: arguments of one launch, or Numba types in their place.
        positions: of the arguments to differentiate; by default all that hold floats.
        options: options of the derivative.

    Raises:
        SignatureError: the kernel does not take such arguments, or has no derivative with respect to them.
    """
    check_count(kernel, args)
    names = names_of(kernel)
    where = SourceLocation.of(kernel.py_func)
    kinds = tuple(each if isinstance(each, types.Type) else numba.typeof(each) for each in args)
    able = tuple(number for number, kind in enumerate(kinds) if any(map(_is_active, leaves_of(kind))))
    wanted = able if positions is None else tuple(positions)
    wrong = [number for number in wanted if number not in able]
    if wrong or not wanted:
        which = f"{names[wrong[0]]} of {kernel.py_func.__qualname__}" if wrong else kernel.py_func.__qualname__
        raise SignatureError(
            f"there is no derivative with respect to {which}",
            "name arguments that hold floating-point numbers",
            f"the arguments are {', '.join(f'{n}: {k}' for n, k in zip(names, kinds, strict=True))}",
            where,
        )
    return KernelSubject(kernel, kinds, wanted, options or Options.from_environment())


def check_count(kernel: Any, args: Sequence[Any]) -> None:
    """Refuses another number of arguments than a kernel has parameters.

    Raises:
        SignatureError: it is another one.
    """
    names = names_of(kernel)
    if len(args) != len(names):
        raise SignatureError(
            f"{kernel.py_func.__qualname__} takes {len(names)} arguments, and {len(args)} were given",
            f"pass one for each of its parameters: {', '.join(names)}",
            "kernels have no default arguments",
            location=SourceLocation.of(kernel.py_func),
        )


def _named(function: Callable[..., Any]) -> list[Any]:
    """The global and enclosing variables that a function uses."""
    names = inspect.getclosurevars(function)
    return [*names.globals.values(), *names.nonlocals.values()]


def _is_register(symbol: str, axis: str) -> bool:
    return symbol.startswith("llvm.nvvm.read.ptx.sreg.") and symbol.endswith(f".{axis}")


def _is_recorded(call: Instruction) -> bool:
    """True if what a call gives is only told with an exception."""
    places = [each.operands[1] if isinstance(each, Store) else None for each in call.users]
    roots = [place.operands[0] if isinstance(place, GetElementPtr) else place for place in places]
    return all(isinstance(root, Parameter) and root.name == RECORD for root in roots)


def _is_active(leaf: Content) -> bool:
    return leaf.kind is LeafKind.NUMBER or (leaf.has_memory and leaf.kind is not LeafKind.INERT)


def _kinds(primal: Primal, positions: Sequence[int]) -> list[ParameterKind]:
    """Kind of value that each LLVM parameter carries."""
    kinds = [ParameterKind.CONST] * primal.count
    for leaf in (leaf for each in primal.arguments if each.position in positions for leaf in each.leaves):
        if leaf.has_memory and leaf.kind is not LeafKind.INERT:
            kinds[leaf.data_index] = ParameterKind.SHADOW
        elif leaf.kind is LeafKind.NUMBER:
            kinds[leaf.index : leaf.index + leaf.float_count] = [ParameterKind.ACTIVE] * leaf.float_count
    return kinds
