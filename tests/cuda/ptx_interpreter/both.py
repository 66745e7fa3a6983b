"""What runs on the executor runs here again, as PTX, from the same memory: both must leave the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.ptx import compile_ptx
from irad.backend.executor.kernel import ExecutableKernel
from irad.backend.executor.launch import Extent
from tests.cuda.ptx_interpreter.launch import launch, region_of
from tests.cuda.ptx_interpreter.machine import ORDERS, Order, Size
from tests.cuda.ptx_interpreter.memory import Region

ARCHITECTURE: Final = "sm_80"
_NOT_COMPARED: Final = {
    "the tape",  # has addresses of shared memory, of which each engine has its own
    "the record of exceptions",  # has the thread that raised first
}
_TOLERANCE: Final = {8: 1e-10, 4: 2e-5, 2: 2e-2}


@dataclass(frozen=True)
class Recorded:
    """A launch on the executor.

    Attributes:
        before, after: the memory that it began with, and what it left.
    """

    module: KernelModule
    grid: Size
    block: Size
    arguments: Sequence[Any]
    shared: int
    before: list[Region]
    after: list[Region]

    @property
    def threads(self) -> int:
        return int(np.prod(self.grid)) * int(np.prod(self.block))

    @cached_property
    def ptx(self) -> str:
        return compile_ptx(self.module, ARCHITECTURE)

    def check(self, ptx: str = "", orders: Sequence[Order] = ORDERS) -> None:
        """Runs it as PTX in each order.

        Raises:
            AssertionError: it leaves something else.
            PtxFault: it is wrong.
        """
        for order in orders:
            memory = [replace(each, data=each.data.copy()) for each in self.before]
            launch(ptx or self.ptx, self.grid, self.block, self.arguments, memory, shared=self.shared, order=order)
            for found, wanted in zip(memory, self.after, strict=True):
                if found.name not in _NOT_COMPARED:
                    same(found, wanted)


@contextmanager
def recording(use: Callable[[Recorded], None]) -> Iterator[None]:
    """Hands over each launch on the executor whose memory is known, when it has ended."""
    run = ExecutableKernel.run

    def recorded(
        kernel: ExecutableKernel,
        grid: Size,
        block: Size,
        arguments: Sequence[Any],
        *,
        dynamic_shared: int = 0,
        extents: Sequence[Extent] | None = None,
        **options: Any,
    ) -> Any:
        before = regions(extents or ())
        report = run(kernel, grid, block, arguments, dynamic_shared=dynamic_shared, extents=extents, **options)
        if extents is not None:
            use(Recorded(kernel.module, grid, block, arguments, dynamic_shared, before, regions(extents)))
        return report

    ExecutableKernel.run = recorded  # type: ignore[method-assign]
    try:
        yield
    finally:
        ExecutableKernel.run = run  # type: ignore[method-assign]


@dataclass
class Comparison:
    """Compares launches.

    Attributes:
        largest: threads of a launch; larger ones are left out.
        seen: kernels and sizes; each is compared once.
    """

    largest: int = 1024
    seen: set[Any] = field(default_factory=set)

    def __call__(self, launched: Recorded) -> None:
        key = launched.module, tuple(launched.grid), tuple(launched.block)
        if key not in self.seen and launched.threads <= self.largest:
            self.seen.add(key)
            launched.check()


def regions(extents: Sequence[Extent]) -> list[Region]:
    """Copies of memory; extents that overlap are one."""
    merged: list[Extent] = []
    for each in sorted((each for each in extents if each.size), key=lambda each: each.address):
        last = merged[-1] if merged else None
        if last is not None and each.address < last.address + last.size:
            size = max(last.size, each.address + each.size - last.address)
            merged[-1] = replace(last, size=size, itemsize=min(last.itemsize, each.itemsize))
        else:
            merged.append(each)
    return [region_of(each.address, each.size, each.name, each.itemsize) for each in merged]


def same(found: Region, wanted: Region) -> None:
    """Numbers may differ by what rounding does to sums in another order; the types are not known, but integers that
    differ are not close as numbers: small ones are subnormal.

    Raises:
        AssertionError: memory differs.
    """
    if np.array_equal(found.data, wanted.data):
        return
    itemsize = found.itemsize if found.itemsize in _TOLERANCE else 8 if found.itemsize % 8 == 0 else 1
    whole = found.data.size // itemsize * itemsize
    left, right = (each.data[:whole].view(f"u{itemsize}") for each in (found, wanted))
    differs = left != right
    assert itemsize in _TOLERANCE, _different(found, wanted)
    assert np.array_equal(found.data[whole:], wanted.data[whole:]), _different(found, wanted)
    x, y = (each[differs].view(f"f{itemsize}") for each in (left, right))
    numbers = right.view(f"f{itemsize}")
    scale = np.max(np.abs(numbers[np.isfinite(numbers)]), initial=0.0)
    with np.errstate(all="ignore"):
        close = np.abs(x - y) <= _TOLERANCE[itemsize] * (np.abs(y) + scale)
        tiny = np.finfo(x.dtype).tiny
        close &= ((np.abs(x) >= tiny) | (x == 0)) & ((np.abs(y) >= tiny) | (y == 0))
    assert (close | (np.isnan(x) & np.isnan(y))).all(), _different(found, wanted)


def _different(found: Region, wanted: Region) -> str:
    at = int(np.flatnonzero(found.data != wanted.data)[0]) // 8 * 8
    ends = [each.data[at : at + 8].tobytes() for each in (found, wanted)]
    numbers = [np.frombuffer(each, "f8") if len(each) == 8 else each for each in ends]
    return f"{found.name} at byte {at}: PTX leaves {numbers[0]}, the executor {numbers[1]}"
