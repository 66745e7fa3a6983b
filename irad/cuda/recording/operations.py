"""Operations that a tape records, each with the overwritten memory and its reversal.

An operation is reversed when the memory is as it was before the operation. A launch then runs its derivative, which
runs the kernel again; a copy moves the cotangents of what it wrote to what it read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from numba import cuda

from irad.cuda.calls.annotated import AnnotatedCall, ArrayPart
from irad.cuda.calls.memory import check_overlap, lie_apart, overlap
from irad.cuda.calls.vectors import add, is_contiguous, on_vectors
from irad.cuda.derivatives import DerivativeKernel
from irad.cuda.devices.device import ArrayView, Device, Launch
from irad.cuda.devices.pool import Buffer
from irad.cuda.recording.regions import Regions
from irad.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Saved:
    """Bytes as they were before an operation.

    Attributes:
        low, high: their addresses.
        buffer: the copy.
    """

    low: int
    high: int
    buffer: Buffer

    def restore(self, device: Device, stream: Any) -> None:
        """Restores the overwritten memory."""
        device.copy(self.low, self.buffer.address, self.high - self.low, stream)


class Operation(Protocol):
    """Something that was done on the device.

    Attributes:
        saved: overwritten contents that are needed again.
    """

    saved: list[Saved]

    @property
    def views(self) -> Sequence[ArrayView]:
        """The arrays that have a derivative."""
        ...

    @property
    def written(self) -> Sequence[ArrayView]:
        """Arrays that the operation may have written to."""
        ...

    @property
    def runs_again(self) -> bool:
        """True if it runs again while it is reversed."""
        ...

    def reverse(self, device: Device, regions: Regions, stream: Any) -> None:
        """Turns the cotangents of what it left in memory into those of what was there before."""
        ...


@dataclass(slots=True)
class LaunchOperation:
    """A launch of a kernel.

    Attributes:
        derivative: derivative of the kernel.
        launch: as it was.
        call: its arguments; the arrays have no shadows yet.
        writes: LLVM parameters through which the kernel may write.
    """

    derivative: DerivativeKernel
    launch: Launch
    call: AnnotatedCall
    writes: frozenset[int]
    saved: list[Saved] = field(default_factory=list)

    @property
    def views(self) -> Sequence[ArrayView]:
        """The arrays that have a derivative."""
        return [part.view for part in self.call.arrays if part.is_active]

    @property
    def written(self) -> Sequence[ArrayView]:
        """Arrays that the operation may have written to."""
        return [part.view for part in self.call.arrays if part.is_active and part.index in self.writes]

    @property
    def runs_again(self) -> bool:
        """The derivative runs the kernel, too."""
        return True

    def compile(self) -> None:
        """Makes the derivative: unsupported operations are refused when they are recorded."""
        self.derivative.compiled(self.call, self.launch, apart=lie_apart(self.call.arrays))

    def reverse(self, device: Device, regions: Regions, stream: Any) -> None:
        """Runs the derivative."""
        arrays = [_with_shadow(part, regions.shadow(part.view)) for part in self.call.arrays]
        call = replace(self.call, arrays=arrays)
        launch = replace(self.launch, stream=stream)
        self.derivative.run(device, launch, call, apart=check_overlap(arrays, ()))


def _with_shadow(part: ArrayPart, shadow: ArrayView) -> ArrayPart:
    return replace(part, shadows=(shadow,), is_workspace=False) if part.is_active else part


@dataclass(slots=True)
class CopyOperation:
    """A copy between contiguous arrays, of the device or of the host.

    Attributes:
        to, source: the arrays.
        is_first: whether the tape had not seen the memory before. Then the cotangents stay where they are as well: they
            are those of the first content that the tape has seen there.
    """

    to: ArrayView
    source: ArrayView
    is_first: bool = False
    saved: list[Saved] = field(default_factory=list)

    @property
    def views(self) -> Sequence[ArrayView]:
        """The arrays that have a derivative."""
        return [self.to, self.source] if self.to.dtype.kind in "fc" else []

    @property
    def written(self) -> Sequence[ArrayView]:
        """Arrays that the operation may have written to."""
        return [self.to] if self.to.dtype.kind in "fc" else []

    @property
    def runs_again(self) -> bool:
        """Only cotangents are moved."""
        return False

    def reverse(self, device: Device, regions: Regions, stream: Any) -> None:
        """Moves the cotangents."""
        on_vectors(
            device,
            add if self.is_first else _move,
            regions.shadow(self.source),
            regions.shadow(self.to),
            stream=stream,
        )


def copied(to: ArrayView, source: ArrayView, *, is_first: bool) -> CopyOperation:
    """The record of a copy.

    Raises:
        UnsupportedError: the arrays are not contiguous in the same way, or overlap.
    """
    alike = to.shape == source.shape and to.dtype == source.dtype and to.relevant_strides == source.relevant_strides
    if alike and is_contiguous(to) and not overlap(to, source):
        return CopyOperation(to, source, is_first)
    raise UnsupportedError(
        f"a copy of {source.dtype}{list(source.shape)} to {to.dtype}{list(to.shape)} cannot be recorded",
        "(a) copy between contiguous arrays of the same shape, dtype and order that do not overlap, or (b) in a kernel",
        "the tape moves cotangents the way the copy moved values",
    )


def _move(added: Any, taken: Any) -> None:
    """Adds the cotangents of a copy to those of its source, and takes them away."""
    i = cuda.grid(1)
    if i < taken.size:
        added[i] += taken[i]
        taken[i] = 0.0
