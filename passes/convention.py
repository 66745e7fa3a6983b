"""Conventions of the host that compiled a program: statuses, references, parallel loops.

A `HostConvention` is data in the `Request`, defined beside the front end that reads the host's programs. Passes ask it
instead of naming a symbol or a parameter of the host; what a host does not have is None or empty.
"""

from __future__ import annotations

import os

from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.records import dataclass


@dataclass(frozen=True, slots=True)
class ReferenceCounts:
    """The functions by which a host counts references to memory.

    Attributes:
        takes, drops: `void (ptr)`; memory is freed when its last reference is dropped.
        makes: prefixes of functions that return new memory with one reference to it.
        plain: `ptr (i64 bytes, …)`, those of them whose memory is only given back when the last reference is dropped.
            They return a header, or null.
        data, size: where in the header the address of the memory is, and how many bytes it has.
    """

    takes: str
    drops: str
    makes: str
    plain: tuple[str, ...]
    data: int
    size: int


@dataclass(frozen=True, slots=True)
class Bracket:
    """Two functions, one of which ends what the other began; its argument is a result or an argument of the other."""

    begins: str
    ends: str


@dataclass(frozen=True, slots=True)
class ParallelLoops:
    """Functions by which a host runs loops in its threads.

    Attributes:
        launch: `void (ptr kernel, ptr args, ptr dims, ptr steps, ptr data, i64 first, i64 arrays, i64 threads)`. The
            kernel is `void (ptr args, ptr dims, ptr steps, ptr data)`, its vectors those of a ufunc.
        threads: `i64 ()`, how many there are.
        thread: `i64 ()`, the number of the one that runs.
        lock: `void (ptr)` and `void (ptr)`, of an i32: what one thread of a process holds at a time.
        yielded: `ptr ()` and `void (ptr)`: lets other threads have that lock, and takes it again.
        around: calls around a launch, in the order in which they end.
    """

    launch: str
    threads: str
    thread: str
    lock: Bracket
    yielded: Bracket
    around: tuple[Bracket, ...]


@dataclass(frozen=True, slots=True)
class LibraryCode:
    """Code in a program that is not the user's: errors and reports name where the user calls it.

    Attributes:
        folders: where its files lie; each ends with a separator.
        generated: prefixes of the file names of generated functions, which do not exist.
        without_lines: prefixes of functions whose line numbers are meaningless.
        kernels: prefixes of functions that hold the body of a parallel loop.
        kernel_lines: number of lines of such a function around the body.
    """

    folders: tuple[str, ...] = ()
    generated: tuple[str, ...] = ()
    without_lines: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    kernel_lines: int = 0

    def holds(self, file: str) -> bool:
        """True if a file is part of it."""
        return file.startswith(self.folders) or os.path.basename(file).startswith(self.generated)


@dataclass(frozen=True, slots=True)
class HostConvention:
    """A host's convention.

    Attributes:
        result: the parameter for the memory of the entry's result; the entry returns a status.
        returned: the statuses with which a caller goes on; with others it leaves as well.
        exhausted: status that the entry of a derivative returns if there is no more memory for its tape.
        no_derivative: status that it returns if an indirect callee has no derivative.
        references: None where memory is freed explicitly.
        parallel: None where loops are not launched in threads.
        library: see there.
        is_shared: many threads run an entry at the same time on the same memory, but for what it allocates itself.
        is_inside: where that is so, the entry is called inside of a kernel: with other arguments by each thread, whose
            tape lies by itself. Else arguments are those of a launch, and words of the tapes of a warp alternate.
        ruled_result: the parameter for the memory of the result of functions that have rules; None: they have none.
        ends: functions that end the process: prefixes of their names.
    """

    result: int
    returned: tuple[int, ...]
    exhausted: int
    no_derivative: int
    references: ReferenceCounts | None = None
    parallel: ParallelLoops | None = None
    library: LibraryCode = LibraryCode()
    is_shared: bool = False
    is_inside: bool = False
    ruled_result: int | None = 0
    ends: tuple[str, ...] = ()

    def drops_reference(self, call: CallSite) -> bool:
        """True if a call drops a reference to memory."""
        counts = self.references
        return counts is not None and isinstance(call.callee, Function) and call.callee.name == counts.drops
