"""What nobody has written is poisoned where the plugin says so; derivatives stay right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_SCRIPT = """
import ctypes
from tests.tools import poison
poison.install()
import numba, numpy as np, irad
from irad.frontend import resident
from irad.frontend.numba.library import build_library

@numba.njit
def unwritten(n):
    return np.empty(n)[n - 1]

assert abs(unwritten(5)) > 1e60

probe = '''
define double @probe() {
  %arena = call ptr @irad.arena_open()
  %place = call ptr @irad.arena_alloc(ptr %arena, i64 80)
  %last = getelementptr i8, ptr %place, i64 72
  %value = load volatile double, ptr %last
  call void @irad.arena_close(ptr %arena)
  ret double %value
}
'''
called = resident.named_in(probe)
resident.load(called)
library = build_library("probe", resident.inline_text(called) + probe, ())
function = ctypes.CFUNCTYPE(ctypes.c_double)(library.get_pointer_to_function("probe"))
assert np.isnan(function())

@numba.njit
def saves(x, n):
    for _ in range(n):
        x = np.sin(x) * x + 1.0
    return x

h = 1e-6
difference = (saves(0.5 + h, 9) - saves(0.5 - h, 9)) / (2 * h)
np.testing.assert_allclose(irad.grad(saves)(0.5, 9), difference, rtol=1e-6)
try:
    poison.install()
except RuntimeError:
    print("too late")
"""


def test_what_is_poisoned():
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env={**os.environ, "PYTHONMALLOC": "debug", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.stdout.split() == ["too", "late"], done.stderr
