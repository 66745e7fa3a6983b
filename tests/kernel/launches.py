"""Launches of kernels and of their derivatives on the executor, without what users call in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from irad.backend.executor.kernel import RunReport, load
from irad.backend.executor.launch import Extent
from irad.backend.executor.scheduler import IN_ORDER, Schedule
from irad.frontend.cuda.program import KernelParameter, KernelProgram, flatten, load_kernel
from irad.kernel.derive import KernelDerivative, derive_kernel
from irad.options import Options
from irad.passes.mode import REVERSE_MODE, Mode
from irad.passes.request import ParameterKind
from irad.ruleset.memory_type import MemoryType
from irad.runtime_layouts import WARP
from tests.cuda.case import Case
from tests.cuda.run import extents

FLOATS = {"float64": "double", "float32": "float", "float16": "half"}
SLICE = 1 << 16


def extent(size: int | tuple[int, ...]) -> tuple[int, int, int]:
    given = (size,) if isinstance(size, int) else tuple(size)
    return (*given, *(1,) * (3 - len(given)))  # type: ignore[return-value]


def axes(case: Case) -> int:
    sizes = [(grid, block) for grid, block in zip(extent(case.grid), extent(case.block), strict=True)]
    return max(number for number, size in enumerate(sizes, 1) if number == 1 or size != (1, 1))


@dataclass(frozen=True)
class Launch:
    """A kernel with the arrays that have shadows."""

    case: Case
    program: KernelProgram
    active: frozenset[int]

    def kinds(self) -> tuple[list[ParameterKind], list[MemoryType | None]]:
        kinds: list[ParameterKind] = []
        memory: list[MemoryType | None] = []
        for position, parameter in enumerate(self.program.signature.parameters):
            for name in parameter.flattened:
                is_data = isinstance(parameter.type, numba.types.Array) and name == parameter.flattened[4]
                is_number = isinstance(parameter.type, numba.types.Float)
                kind = ParameterKind.CONST
                if position in self.active:
                    kind = ParameterKind.SHADOW if is_data else ParameterKind.ACTIVE if is_number else kind
                kinds.append(kind)
                memory.append(_memory(parameter) if is_data else None)
        return kinds, memory

    def derivative(self, mode: Mode = REVERSE_MODE, options: Options | None = None, **more: Any) -> KernelDerivative:
        kinds, memory = self.kinds()
        more.setdefault("axes", axes(self.case))
        return derive_kernel(self.program.module, kinds, memory, options or Options(), mode, **more)

    def run(self, arguments: Any, schedule: Schedule = IN_ORDER, *, races: bool = False) -> RunReport:
        kernel = load(self.program.module, races=races)
        case = self.case
        return kernel.run(
            extent(case.grid),
            extent(case.block),
            self.flat(arguments),
            dynamic_shared=case.shared,
            schedule=schedule,
            extents=extents(*arguments),
        )

    def flat(self, arguments: Any) -> list[Any]:
        return flatten(self.program.signature, arguments)

    def run_derivative(
        self,
        made: KernelDerivative,
        arguments: Any,
        beside: dict[int, Any],
        schedule: Schedule = IN_ORDER,
        *,
        races: bool = False,
        size: int = SLICE,
    ) -> tuple[RunReport, np.ndarray]:
        """Runs a derivative; ``beside`` are shadows, places of cotangents, or tangents, by position."""
        case, kinds = self.case, self.kinds()[0]
        order = [ParameterKind.SHADOW, ParameterKind.ACTIVE]
        given = {kind: [] for kind in order}
        flat_position = 0
        for position, parameter in enumerate(self.program.signature.parameters):
            found = kinds[flat_position : flat_position + len(parameter.flattened)]
            flat_position += len(parameter.flattened)
            for kind in order:
                if kind in found:
                    value = beside[position]
                    given[kind].append(value.ctypes.data if isinstance(value, np.ndarray) else value)
        threads = int(np.prod([*extent(case.grid), *extent(case.block)]))
        threads = -(-threads // WARP) * WARP
        tape = np.empty(threads * size if made.uses_tape else 1, np.uint8)
        of_tape = Extent(tape.ctypes.data, tape.nbytes, "the tape")
        report = np.zeros(2, np.int64)
        shared = (case.shared + 15) // 16 * 16
        trailing = [tape.ctypes.data, size, report.ctypes.data, shared]
        report_of_run = load(made.module, races=races).run(
            extent(case.grid),
            extent(case.block),
            [*self.flat(arguments), *given[ParameterKind.SHADOW], *given[ParameterKind.ACTIVE], *trailing],
            dynamic_shared=shared * made.shared_copies,
            schedule=schedule,
            extents=[*extents(*arguments, *beside.values(), report), of_tape],
        )
        return report_of_run, report


def launch_of(case: Case, active: tuple[int, ...] | None = None) -> Launch:
    program = load_kernel(case.kernel, case.types())
    return Launch(case, program, frozenset(case.active if active is None else active))


def _memory(parameter: KernelParameter) -> MemoryType | None:
    dtype = parameter.type.dtype
    if str(dtype) in FLOATS:
        return MemoryType(dtype.bitwidth // 8, ((0, FLOATS[str(dtype)]),))
    return MemoryType(dtype.bitwidth // 8, ((0, f"i{dtype.bitwidth}"),)) if hasattr(dtype, "bitwidth") else None
