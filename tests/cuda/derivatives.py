"""The derivative of a test kernel, as text."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache

from numba.core import types

from irad.frontend.cuda.program import KernelProgram, KernelSignature, load_kernel
from irad.kernel.derive import KernelDerivative, derive_kernel
from irad.options import Options
from irad.passes.mode import REVERSE_MODE, Mode
from irad.passes.request import ParameterKind
from irad.ruleset.memory_type import MemoryType
from tests.cuda.case import Case

_DATA = 4  # where the data pointer is among the LLVM parameters of an array
_LLVM = {types.float32: "float", types.float64: "double"}


def program_of(case: Case) -> KernelProgram:
    return load_kernel(case.kernel, case.types())


@cache
def derivative_of(case: Case, mode: Mode = REVERSE_MODE) -> KernelDerivative:
    """With respect to all of the case's active arguments, as if no two of them shared memory."""
    program = program_of(case)
    kinds, memory = zip(*_parameters(program.signature, case.active), strict=True)
    grid = case.grid if isinstance(case.grid, tuple) else (case.grid,)
    return derive_kernel(program.module, kinds, memory, Options(), mode, apart=True, axes=len(grid))


def _parameters(
    signature: KernelSignature, active: Collection[int]
) -> Iterator[tuple[ParameterKind, MemoryType | None]]:
    """Kind and memory of each LLVM parameter."""
    for position, parameter in enumerate(signature.parameters):
        constant = (ParameterKind.CONST, None)
        flat: list[tuple[ParameterKind, MemoryType | None]] = [constant] * len(parameter.flattened)
        if position in active and isinstance(parameter.type, types.Array):
            element = parameter.type.dtype
            flat[_DATA] = ParameterKind.SHADOW, MemoryType(element.bitwidth // 8, ((0, _LLVM[element]),))
        elif position in active:
            flat[0] = ParameterKind.ACTIVE, None
        yield from flat
