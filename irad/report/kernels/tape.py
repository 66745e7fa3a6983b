"""`irad.tape_report` of kernels: what the tapes of all threads take, measured on the executor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irad.api.annotations import Active, Const, Duplicated, MixedDuplicated, Reverse
from irad.api.functions import Launched, options_or_default
from irad.cuda.calls.memory import check_overlap
from irad.cuda.calls.slices import TapeUse, padded
from irad.cuda.derivatives import derivative_kernel
from irad.cuda.devices.emulated import EmulatedDevice
from irad.cuda.kernels import launch_of
from irad.data.copies import copied
from irad.data.structure import mapped
from irad.debug import tape as values
from irad.debug.tape import shown
from irad.errors import SourceLocation
from irad.kernel.derive import KernelDerivative
from irad.options import Options
from irad.report.kernels.collect import KernelCollector
from irad.report.kernels.subject import kernel_subject
from irad.report.results import TapeReport

# Plain arguments of a launch as the derivative takes them: copies, with shadows of zeros.


def annotated_copies(values: tuple[Any, ...], positions: Collection[int]) -> list[Any]:
    """Copies of the arguments, with annotations; arrays that share memory have shadows that share memory alike.

    Args:
        values: arguments of a kernel; arrays of a GPU are copied to the host.
        positions: of those that have a derivative.
    """
    copies = copied(mapped(on_host, values))
    shadows = mapped(_cleared, copied(copies))
    pairs = enumerate(zip(copies, shadows, strict=True))
    return [_annotated(*pair) if position in positions else Const(pair[0]) for position, pair in pairs]


def on_host(value: Any) -> Any:
    """An array of a GPU as one of NumPy; everything else as it is."""
    if isinstance(value, np.ndarray) or not hasattr(value, "__cuda_array_interface__"):
        return value
    return value.copy_to_host() if hasattr(value, "copy_to_host") else value.get()


def _cleared(value: Any) -> Any:
    """An array is filled with zeros, numbers are zeros."""
    match value:
        case np.ndarray():
            value.flags.writeable = True
            value.view(np.ndarray)[...] = np.zeros((), value.dtype)
            return value
        case np.void():
            return np.zeros(1, value.dtype)[0]
        case _:
            return 0.0


def _annotated(value: Any, shadow: Any) -> Any:
    match value:
        case tuple():
            return MixedDuplicated(value, shadow)
        case np.ndarray() | np.void():
            return Duplicated(value, shadow)
        case _:
            return Active(value)


@dataclass(frozen=True, slots=True)
class KernelTapeReport(TapeReport):
    """The memory that the tapes of all threads of a launch took.

    Attributes:
        threads: threads of the launch.
        per_thread: bytes that the thread with the largest tape used.
        buffer: bytes of the buffer that has a slice of this size for each thread, in whole warps.
        frame: values in the local memory of each thread between the sweeps.
        recomputed: number of values that the reverse sweep recomputes instead of loading, by line of the source.

    Examples:
        >>> import irad
        >>> import irad.cuda
        >>> import numpy as np
        >>> from numba import cuda
        >>> @cuda.jit
        ... def iterate(x, n):
        ...     i = cuda.grid(1)
        ...     for _ in range(n):
        ...         x[i] = 3.7 * x[i] * (1.0 - x[i])
        >>> report = irad.tape_report(irad.cuda.grad(iterate)[2, 16], np.full(32, 0.3), 100)
        >>> report.total, report.per_thread
        (25600, 800)
    """

    threads: int
    per_thread: int
    buffer: int
    frame: tuple[values.TapeUse, ...]
    recomputed: tuple[tuple[SourceLocation, int], ...]

    def __str__(self) -> str:
        return "\n".join([TapeReport.__str__(self), *(f"  {each}" for each in self._remarks())])

    def _remarks(self) -> list[str]:
        found = []
        if self.buffer:
            size = f"a buffer of {shown(self.buffer)}"
            found.append(f"{self.threads} threads, at most {shown(self.per_thread)} for one of them: {size}")
        frame = sum(use.bytes for use in self.frame)
        if frame:
            found.append(f"beside the tape each thread keeps {shown(frame)} in its local memory")
        for place, count in self.recomputed:
            found.append(f"{count} value{'s' * (count > 1)} recomputed: {place.file}:{place.line}")
        return found

    def _repr_html_(self) -> str:
        """HTML for notebooks: the bytes of each line."""
        return self._html(self._remarks())


def kernel_tape_report(
    launched: Launched, args: tuple[Any, ...], positions: int | Sequence[int] | None, options: Options | None
) -> KernelTapeReport:
    """Launches the derivative of a kernel on the executor, on copies of the arguments, and measures its tape.

    Args:
        launched: the kernel and how it is launched.
        args: its arguments, without annotations.
        positions: of the arguments that are differentiated; None for all that hold floats.
        options: options of the derivative.

    Raises:
        SignatureError: the kernel does not take such arguments.
        IradError: it cannot be differentiated.
    """
    wanted = (positions,) if isinstance(positions, int) else positions
    measuring = replace(options or launched.options or options_or_default(None), measure_tape=True)
    subject = kernel_subject(launched.kernel, args, wanted, measuring)
    derivative, use, threads = _measured(launched, annotated_copies(args, subject.positions), measuring)
    measured = use.measured.uses() if use.measured is not None else ()
    return KernelTapeReport(
        function=launched.kernel.py_func.__qualname__,
        uses=tuple(each for each in measured if each.storage != "frame"),
        derivative="irad.cuda.grad",
        threads=threads,
        per_thread=use.wanted,
        buffer=use.wanted * padded(threads) if use.wanted else 0,
        frame=values.uses_of(derivative.derivative.tape[-1:], (1,)),
        recomputed=_recomputed(KernelCollector(subject)),
    )


def _measured(launched: Launched, annotated: list[Any], options: Options) -> tuple[KernelDerivative, TapeUse, int]:
    """A launch, and how many threads it has."""
    device, launch = EmulatedDevice(), launch_of(launched.configuration)
    derivative = derivative_kernel(Reverse, launched.kernel, options)
    call = derivative.annotated(device, tuple(annotated), {})
    apart = check_overlap(call.arrays, call.numbers)
    derivative.run(device, launch, call, apart=apart)
    compiled = derivative.compiled(call, launch, apart=apart)
    return compiled, derivative.tape_use(compiled), launch.threads


def _recomputed(collector: KernelCollector) -> tuple[tuple[SourceLocation, int], ...]:
    """Number of values that are recomputed, by line: the most first."""
    places: dict[tuple[str, int], SourceLocation] = {}
    counts = Counter[tuple[str, int]]()
    for value in (value for function in collector.observed.functions for value in function.values):
        if value.plan.startswith("recomputed") and value.places:
            place = value.places[0]
            key = place.file, place.line
            places.setdefault(key, place)
            counts[key] += 1
    return tuple((places[key], count) for key, count in counts.most_common())
