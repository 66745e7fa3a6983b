"""How much memory a call takes at its peak, as Linux counts it."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Final

from irad.benchmark.clock import Run

_PROCESS: Final = Path("/proc/self")


def peak_bytes(run: Run) -> int | None:
    """The most resident memory that one call takes beyond what the process holds before; None where nobody counts it.

    Pages that an earlier call left with the allocator are given back first. What is held longer than a call, as
    compiled code, does not count: ``run`` has been called before.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)  # glibc's
        (_PROCESS / "clear_refs").write_text("5")  # the peak is from now on
        before = _status("VmRSS")
        run()
        return max(_status("VmHWM") - before, 0)
    except (AttributeError, OSError):
        return None


def _status(name: str) -> int:
    for line in (_PROCESS / "status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise OSError(f"no {name} in /proc/self/status")
