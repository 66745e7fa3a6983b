"""Kernels that are ready to run on the CPU.

kernel = load(module)
kernel.run((blocks, 1, 1), (threads, 1, 1), [address, size, 2.0])
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, Final

import llvmlite.binding as llvm
import numpy as np

from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.limits import LARGEST, Needs, bounds_of_launch, check_launch, limits_of
from irad.backend.cuda.ptx import LaunchBounds, compile_ptx
from irad.backend.cuda.toolkit import assemble
from irad.backend.executor.code import host_machine, loaded, optimise
from irad.backend.executor.dialect import WATCHES
from irad.backend.executor.launch import Extent, LaunchState
from irad.backend.executor.outcome import raise_for
from irad.backend.executor.printing import PRINTED, provide
from irad.backend.executor.rewriting.libdevice import libdevice_text, needs_libdevice
from irad.backend.executor.rewriting.lower import Lowered, lower
from irad.backend.executor.rewriting.thread import START
from irad.backend.executor.scheduler import IN_ORDER, Schedule, scheduler
from irad.backend.executor.trace import Counts, Trace
from irad.backend.runtime.support import FOLDER
from irad.backend.runtime.text import read
from irad.errors import SignatureError, UnsupportedError
from irad.ir import types
from irad.ir.types import Type
from irad.records import dataclass

# The arguments of a launch as bytes: a struct of the kernel's parameters.


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


_KEPT: Final = 128


@dataclass(frozen=True, slots=True)
class RunReport:
    """Report of a launch.

    Attributes:
        barriers: number of barriers passed by a block.
        warp_operations: shuffles, votes and the like, one for each group of threads that took part.
        accesses: to memory that threads share, if races were looked for.
    """

    barriers: int
    warp_operations: int
    accesses: Counts | None = None


class ExecutableKernel:
    """A kernel as machine code, which is freed with the object. Any number of threads may run it at the same time.

    Attributes:
        module: the module that it was made from.
        name: of the kernel, as messages have it.
        races: whether it looks for races.
    """

    def __init__(self, module: KernelModule, *, races: bool = False) -> None:
        self._lowered: Lowered = lower(module, races=races)
        self.module, self.name, self.races = module, self._lowered.name, races
        self._engine, self._start = _code(self._lowered)
        self._constants = [
            Extent(self._engine.get_global_value_address(name), size, "constant memory")
            for name, size in self._lowered.constants.items()
        ]

    @property
    def parameter_types(self) -> tuple[Type, ...]:
        """LLVM's types of the parameters."""
        return tuple(type_ for type_, _ in self._lowered.parameters)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Their names, as the kernel module has them."""
        return tuple(name for _, name in self._lowered.parameters)

    def run(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Sequence[Any],
        *,
        dynamic_shared: int = 0,
        schedule: Schedule = IN_ORDER,
        extents: Sequence[Extent] | None = None,
        gpu: str | None = None,
    ) -> RunReport:
        """Runs the threads of a grid.

        Args:
            grid: blocks along x, y, z.
            block: threads of a block along x, y, z.
            arguments: one for each parameter: addresses as integers, numbers as they are.
            dynamic_shared: bytes of dynamic shared memory.
            schedule: the order of threads and blocks.
            extents: all memory that the kernel may touch; accesses elsewhere are errors if races are looked for.
            gpu: the architecture whose limits count, as ``sm_90``; None for those that no GPU exceeds.

        Raises:
            SignatureError: the launch does not fit the kernel, or the GPU.
            BackendError: registers have to be counted, and ptxas is missing.
            BarrierError: threads wait for each other forever, or at different barriers.
            RaceError: two accesses are not ordered, if races are looked for.
            KernelBoundsError: an access is outside of ``extents``, if races are looked for.
        """
        limits, needs = (LARGEST, self._lowered.needs) if gpu is None else (limits_of(gpu), self._needs_on(gpu, block))
        check_launch(self.name, limits, needs, grid, block, dynamic_shared)
        packed = pack(self.name, self._lowered.parameters, arguments)
        with LaunchState(self._lowered, self._start, grid, block, packed, dynamic_shared) as state:
            state.order(schedule)
            known = None if extents is None else [*extents, *self._constants]
            trace = Trace(state, known, self.name) if self.races else None
            for first, last in state.portions(logged=trace is not None):
                status = scheduler().run(state.address, first, last)
                raise_for(status, state, self.name, trace)
                if trace is not None:
                    trace.look_through()
            counts = trace.end() if trace is not None else None
            return RunReport(state.launch.barriers, state.launch.exchanges, counts)

    def _needs_on(self, gpu: str, block: tuple[int, int, int]) -> Needs:
        """Resources needed on an architecture, if the kernel is compiled for the launch as it would be on the GPU."""
        bound = bounds_of_launch(self.module, block[0] * block[1] * block[2])
        return replace(self._lowered.needs, registers=_registers(self.module, gpu, bound))


@lru_cache(_KEPT)
def _registers(module: KernelModule, gpu: str, threads: int | None) -> int:
    return assemble(compile_ptx(module, gpu, bounds=LaunchBounds(threads)), gpu).registers


@lru_cache(_KEPT)
def load(module: KernelModule, *, races: bool = False) -> ExecutableKernel:
    """The kernel as machine code; the same object for the same text while it is among those used last.

    Args:
        module: the kernel.
        races: whether it looks for races, and for accesses outside of the arrays, which takes longer.

    Raises:
        UnsupportedError: it does something that the executor does not know.
    """
    return ExecutableKernel(module, races=races)


def _code(lowered: Lowered) -> tuple[Any, int]:
    """The engine and the address of the function of a thread.

    Raises:
        BackendError: a symbol is not defined.
    """
    machine = host_machine()
    module = llvm.parse_assembly(lowered.text)
    module.verify()
    if needs_libdevice(function.name for function in module.functions):
        module.link_in(llvm.parse_assembly(libdevice_text()))
    if PRINTED in {function.name for function in module.functions}:
        provide()
    if WATCHES & {function.name for function in module.functions}:
        module.link_in(llvm.parse_assembly(watch_text()))
    optimise(module, machine)
    engine = loaded(module, machine)
    return engine, engine.get_function_address(START)


@cache
def watch_text() -> str:
    """The checks of debug mode, which report to Python."""
    return read(FOLDER, "watch").text()
