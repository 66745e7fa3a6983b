"""Compiled derivatives of kernels, remembered as long as the kernel lives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm

from irad.api.functions import remembered
from irad.backend.cuda.kernel import KernelModule
from irad.cuda.calls.flatten import Primal
from irad.errors import IradError
from irad.frontend.values.abi import memory_of_parameter
from irad.kernel.derive import KernelDerivative, derive_kernel
from irad.kernel.program import ENTRY, load
from irad.kernel.toolchain import NVPTX
from irad.options import Options
from irad.passes.mode import Mode
from irad.passes.request import ParameterKind
from irad.ruleset.memory_type import MemoryType


@dataclass(frozen=True, slots=True)
class Wanted:
    """Key that distinguishes the derivatives of a kernel.

    Attributes:
        kinds: one for each LLVM parameter.
        mode: forward or reverse, with its width.
        apart: whether no array that has a derivative shares memory with another one.
        axes: along which it is launched.
        options: options of the derivation.
    """

    kinds: tuple[ParameterKind, ...]
    mode: Mode
    apart: bool
    axes: int
    options: Options


def derivative_of(kernel: Any, primal: Primal, wanted: Wanted) -> KernelDerivative:
    """The derivative of a kernel, made once.

    Args:
        kernel: the dispatcher that the user wrote.
        primal: it for the types of the arguments.
        wanted: description of the derivative.

    Raises:
        IradError: it cannot be differentiated.
    """
    key = "derivative", primal.program.module, wanted

    def build() -> KernelDerivative:
        try:
            return derive_kernel(
                primal.program.module,
                wanted.kinds,
                memory_of(primal),
                wanted.options,
                wanted.mode,
                apart=wanted.apart,
                axes=wanted.axes,
            )
        except IradError as error:
            error.location = error.location or primal.program.source
            raise

    return remembered(kernel, key, build)


def memory_of(primal: Primal) -> list[MemoryType | None]:
    """Memory that the LLVM parameters of a kernel point to."""
    found: list[MemoryType | None] = [None] * primal.count
    for argument in primal.arguments:
        parameters = primal.program.signature.parameters[argument.position].flattened
        ends = [*(leaf.index for leaf in argument.leaves[1:]), argument.leaves[0].index + len(parameters)]
        for leaf, end in zip(argument.leaves, ends, strict=True):
            for index in range(leaf.index, end):
                found[index] = memory_of_parameter(leaf, index - leaf.index, active=False)
    return found


@dataclass(frozen=True, slots=True)
class Accesses:
    """Accesses of a kernel to the memory that LLVM parameters point to.

    Attributes:
        read: those through which it may read.
        written: those through which it may write.
    """

    read: frozenset[int]
    written: frozenset[int]


def accesses_of(kernel: Any, module: KernelModule) -> Accesses:
    """Memory that a kernel reads and writes, as far as LLVM finds out."""
    return remembered(kernel, ("accesses", module), lambda: _accesses(module))


def _accesses(module: KernelModule) -> Accesses:
    parsed = llvm.parse_assembly(load(module).text)
    pipeline = llvm.create_new_module_pass_manager()
    pipeline.add_post_order_function_attributes_pass()
    pipeline.run(parsed, NVPTX.scalar_pass_builder())
    arguments = list(parsed.get_function(ENTRY).arguments)[1:]
    words = {
        index: {bytes(word).decode() for word in each.attributes}
        for index, each in enumerate(arguments)
        if str(each.type).startswith("ptr")
    }
    return Accesses(
        frozenset(index for index, each in words.items() if not each & {"readnone", "writeonly"}),
        frozenset(index for index, each in words.items() if not each & {"readnone", "readonly"}),
    )
