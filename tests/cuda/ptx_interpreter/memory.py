"""The memory of a launch: address spaces, bounds, alignment.

All of it is one array of bytes. `owner` says of each byte which variable or array it belongs to, 0 where there is
nothing. Addresses of global memory are those of the host, so that addresses in registers and in memory are the same as
on the executor. Shared and local memory have windows in the generic address space, far from the host's addresses and
from their own, so that an address that was not converted points nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tests.cuda.ptx_interpreter.faults import MemoryFault
from tests.cuda.ptx_interpreter.syntax import Variable

SHARED_WINDOW: Final = 1 << 60
LOCAL_WINDOW: Final = 1 << 61
_VARIABLES: Final = 1 << 56  # global and constant variables of the module
_SHARED_START: Final = 1 << 16
_LOCAL_START: Final = 1 << 20
_PAGE: Final = 256
_SIZES: Final = (1, 2, 4, 8)
_GENERIC: Final = (("global", 0), ("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW), ("const", 0))


@dataclass(frozen=True)
class Region:
    """An array of the host that the kernel may touch.

    Attributes:
        address: where the host has it.
        data: its bytes, which the launch changes.
        name: for messages.
        itemsize: bytes of an element.
    """

    address: int
    data: Any
    name: str = ""
    itemsize: int = 1


@dataclass
class Placed:
    """A region, or a variable, in the array.

    Attributes:
        address: of its first byte, in its space.
        place: of its first byte, in the array.
    """

    name: str
    address: int
    place: int
    size: int
    space: str


class Memory:
    """Of one launch.

    Args:
        regions: arrays of the host, of which no two overlap.
        variables: of the module and of its functions, in global, constant and shared memory.
        dynamic_shared: bytes that variables of no size have.
        block: of each thread.
        stack: bytes of local memory of a thread.
        garbage: what memory that nobody has written holds.
    """

    def __init__(
        self,
        regions: Sequence[Region],
        variables: Sequence[Variable],
        dynamic_shared: int,
        block: Any,
        stack: int,
        garbage: int,
    ) -> None:
        self._block, self._end, self.placed, self._regions = block, 0, list[Placed](), list(regions)
        self._addresses: dict[str, int] = {}
        for region in regions:
            self._place(region.name, region.address, region.data.size, "global")
        self._place_variables(variables)
        self._layout_shared(variables, dynamic_shared)
        self.stack = -(-max(stack, 1) // _PAGE) * _PAGE + _PAGE
        blocks = int(block.max()) + 1
        self.shared_place = self._reserve(0, self.shared_size * blocks)
        self.local_place = self._reserve(0, self.stack * len(block))
        self.shared_end = self.local_place
        self._fill(garbage, blocks)

    def _reserve(self, address: int, size: int) -> int:
        """A place that is aligned as the address."""
        place = -(-self._end // _PAGE) * _PAGE + _PAGE + address % _PAGE
        self._end = place + size
        return place

    def _place(self, name: str, address: int, size: int, space: str) -> None:
        self.placed.append(Placed(name, address, self._reserve(address, size), size, space))

    def _place_variables(self, variables: Sequence[Variable]) -> None:
        address = _VARIABLES
        for variable in variables:
            if variable.space in ("global", "const"):
                address = -(-address // max(variable.align, _PAGE)) * max(variable.align, _PAGE) + _PAGE * _PAGE
                self._addresses[variable.name] = address
                self._place(variable.name, address, variable.size, variable.space)
                address += variable.size

    def _layout_shared(self, variables: Sequence[Variable], dynamic: int) -> None:
        """Variables lie apart, so that an index beyond one does not hit the next."""
        self._shared: list[tuple[int, int]] = []
        top = 0
        for variable in (each for each in variables if each.space == "shared"):
            size = variable.size or dynamic
            top = -(-top // _PAGE) * _PAGE
            self._addresses[variable.name] = _SHARED_START + top
            self._shared.append((top, size))
            top += size + _PAGE
        self.shared_size = -(-top // _PAGE) * _PAGE + _PAGE

    def _fill(self, garbage: int, blocks: int) -> None:
        total = -(-self._end // _PAGE) * _PAGE + _PAGE
        self.bytes = np.full(total, garbage, np.uint8)
        self.owner = np.zeros(total, np.int32)
        for number, placed in enumerate(self.placed, 1):
            self.owner[placed.place : placed.place + placed.size] = number
        for region, placed in zip(self._regions, self.placed, strict=False):
            self.bytes[placed.place : placed.place + placed.size] = region.data
        number = len(self.placed)
        for block in range(blocks):
            for start, size in self._shared:
                number += 1
                place = self.shared_place + block * self.shared_size + start
                self.owner[place : place + size] = number
        self._first_frame = number + 1
        self._constant = np.zeros(total, bool)
        for placed in self.placed:
            self._constant[placed.place : placed.place + placed.size] = placed.space == "const"
        self.views = {size: self.bytes.view(f"u{size}") for size in _SIZES}
        order = sorted((each for each in self.placed if each.size), key=lambda each: each.address)
        self._starts = np.array([each.address for each in order] or [0], np.uint64)
        self._places = np.array([each.place for each in order] or [0], np.int64)
        self._spaces = np.array([each.space == "const" for each in order] or [True])
        self._sizes = np.array([each.size for each in order] or [0], np.int64)

    def initialise(self, variables: Sequence[Variable]) -> None:
        """Writes what variables of the module hold."""
        for variable in variables:
            if variable.space not in ("global", "const"):
                continue
            data = bytearray(variable.initial.ljust(variable.size, b"\0"))
            for offset, symbol, beyond in variable.addresses:
                data[offset : offset + 8] = (self._addresses[symbol] + beyond).to_bytes(8, "little")
            [placed] = (each for each in self.placed if each.name == variable.name)
            self.bytes[placed.place : placed.place + placed.size] = np.frombuffer(data, np.uint8)

    def finish(self) -> None:
        """Gives the host its arrays back."""
        for region, placed in zip(self._regions, self.placed, strict=False):
            region.data[:] = self.bytes[placed.place : placed.place + placed.size]

    def address_of(self, symbol: str) -> int | None:
        """Of a variable that is not local, in its own space."""
        return self._addresses.get(symbol)

    # --- local memory -------------------------------------------------------------------------------------------------

    def local_address(self, offset: Any) -> Any:
        """The address in local memory of an offset in a thread's stack."""
        return offset + _LOCAL_START

    def take_frame(self, threads: Any, offsets: Any, size: int, garbage: int) -> None:
        """Makes part of the stacks of threads accessible."""
        for place in (self.local_place + threads * self.stack + offsets).tolist():
            self.owner[place : place + size] = self._first_frame
            self.bytes[place : place + size] = garbage

    def drop_frame(self, threads: Any, offsets: Any, size: int) -> None:
        """Makes it inaccessible again."""
        for place in (self.local_place + threads * self.stack + offsets).tolist():
            self.owner[place : place + size] = 0

    # --- accesses -----------------------------------------------------------------------------------------------------

    def space_of(self, address: Any) -> Any:
        """The space of generic addresses: 0 global, 1 shared, 2 local."""
        return np.where(address >= LOCAL_WINDOW, 2, np.where(address >= SHARED_WINDOW, 1, 0))

    def locate(self, space: str, address: Any, threads: Any, size: int) -> tuple[Any, Any]:
        """Places of accesses in the array, and which of them are to memory that threads share.

        Raises:
            MemoryFault: one points nowhere, or is not aligned.
        """
        if space == "generic":
            return self._locate_generic(address, threads, size)
        match space:
            case "global" | "const":
                found = np.searchsorted(self._starts, address, side="right") - 1
                inner = (address - self._starts[found]).astype(np.int64)
                bad = (found < 0) | (inner + size > self._sizes[found]) | (inner < 0)
                bad |= self._spaces[found] != (space == "const")
                place = self._places[found] + inner
            case "shared":
                inner = (address - np.uint64(_SHARED_START)).astype(np.int64)
                bad = (inner < 0) | (inner + size > self.shared_size)
                place = self.shared_place + self._block[threads] * self.shared_size + inner
            case "local":
                inner = (address - np.uint64(_LOCAL_START)).astype(np.int64)
                bad = (inner < 0) | (inner + size > self.stack)
                place = self.local_place + threads * self.stack + inner
            case _:
                raise MemoryFault(f"accesses of .{space} are not known")
        place = np.where(bad, 0, place)
        owner = self.owner[place]
        bad |= (owner == 0) | (self.owner[place + size - 1] != owner)
        if bad.any():
            raise self._fault(space, address, threads, size, bad, "leads to no variable and no array")
        crooked = address % np.uint64(size) != 0
        if crooked.any():
            raise self._fault(space, address, threads, size, crooked, "is not aligned")
        return place, np.full(len(place), space in ("global", "shared"))

    def check_writable(self, place: Any) -> None:
        """Raises for constant memory."""
        if self._constant[place].any():
            raise MemoryFault("a store to constant memory")

    def _locate_generic(self, address: Any, threads: Any, size: int) -> tuple[Any, Any]:
        spaces = np.where(self._is_constant(address), 3, self.space_of(address))
        place, shared = np.zeros(len(address), np.int64), np.zeros(len(address), bool)
        for number, (space, window) in enumerate(_GENERIC):
            chosen = np.flatnonzero(spaces == number)
            if chosen.size:
                own = address[chosen] - np.uint64(window)
                place[chosen], shared[chosen] = self.locate(space, own, threads[chosen], size)
        return place, shared

    def _is_constant(self, address: Any) -> Any:
        found = np.searchsorted(self._starts, address, side="right") - 1
        inner = (address - self._starts[found]).astype(np.int64)
        return self._spaces[found] & (found >= 0) & (inner < self._sizes[found])

    def _fault(self, space: str, address: Any, threads: Any, size: int, bad: Any, what: str) -> MemoryFault:
        at = int(np.flatnonzero(bad)[0])
        where = int(address[at])
        return MemoryFault(f"thread {int(threads[at])}: {size} bytes at {where:#x} in .{space}: the address {what}")
