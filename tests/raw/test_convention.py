"""Derivatives of C programs rely on nothing of Numba: no symbol of its runtime, none of its statuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irad.frontend.numba.convention import NUMBA
from tests.raw.toolchain import PROGRAMS, bitcode_of, differentiated, needs_clang, run

pytestmark = needs_clang

# One keeps a record of each iteration, one calls through pointers, one allocates, one recurses.
CHOSEN = ("newton", "function_pointer", "malloc_and_free", "recursion_with_arrays")
NUMBAS = re.compile(r"NRT_\w+|numba_\w+|PyEval_\w+|get_num_threads|get_thread_id|\w+_sched\b")
STATUS = re.compile(rf"\bi32 ({NUMBA.exhausted}|{NUMBA.no_derivative})\b")


@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_nothing_of_numba_is_emitted(name: str, plan: str, tmp_path: Path):
    [path] = [path for path in PROGRAMS if path.stem == name]
    made = differentiated(bitcode_of(path, 1, tmp_path), plan)
    text = str(made.module)
    assert "@irad.end_process" in text
    assert NUMBAS.findall(text) == []
    assert STATUS.search(text) is None
    done = run(made, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
