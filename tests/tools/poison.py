"""Fills uninitialised memory with NaNs: a pytest plugin, for finding reads of it.

::

    PYTHONMALLOC=debug python -m pytest -p tests.tools.poison tests/programs

Poisoned are what derivatives take from an arena, the frame of each call and, when Python was started with
``PYTHONMALLOC=debug``, everything that Numba's runtime allocates: arrays, lists, shadows before they are zeroed. Python
fills those with huge numbers rather than NaNs, fills them again when they are freed, and aborts when bytes in front of
a block or after it have changed. The plugin must be loaded before anything is compiled.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils

from irad.backend.runtime import support
from irad.backend.runtime.text import LlvmText
from irad.frontend import resident
from irad.frontend.calls import sweeps as call_sweeps

_POISONED: Final = """\
define linkonce_odr noalias ptr @irad.arena_alloc(ptr %arena, i64 %size) nounwind alwaysinline {
entry:
  %place = call ptr @irad.arena_alloc_clean(ptr %arena, i64 %size)
  %none = icmp eq ptr %place, null
  br i1 %none, label %done, label %fill
fill:
  call void @llvm.memset.p0.i64(ptr %place, i8 -1, i64 %size, i1 false)
  br label %done
done:
  ret ptr %place
}
"""


def install() -> None:
    """Poisons all memory of derivatives that are compiled from now on.

    Raises:
        RuntimeError: derivatives have been compiled before.
    """
    if resident.is_loaded():
        raise RuntimeError("poison.install() comes too late: derivatives have been compiled")
    importlib.import_module("numba.core.runtime._nrt_python").memsys_use_cpython_allocator()
    poisoned = _with_poison(support.support())
    setattr(support, "support", lambda: poisoned)  # noqa: B010  (mypy forbids the assignment)
    frame_on_stack = call_sweeps.Sweeps.frame_on_stack

    def poisoned_frame(sweeps: call_sweeps.Sweeps) -> Any:
        place = frame_on_stack(sweeps)
        size = max(sweeps.derivation.compiled.derivative.frame_size, 1)
        cgutils.memset(sweeps.builder, place, ir.Constant(cgutils.intp_t, size), 0xFF)
        return place

    setattr(call_sweeps.Sweeps, "frame_on_stack", poisoned_frame)  # noqa: B010


def _with_poison(found: LlvmText) -> LlvmText:
    """The run-time support with an allocator that fills what it gives."""
    clean = found.functions["irad.arena_alloc"].text.replace("@irad.arena_alloc(", "@irad.arena_alloc_clean(", 1)
    return found.with_text(f"{clean}\n{_POISONED}")


def pytest_configure(config: object) -> None:
    """Pytest's hook: runs before any test is imported."""
    install()
