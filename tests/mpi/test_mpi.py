"""Programs under `mpiexec`, each a process group with a time limit: a deadlock fails, and does not hang.

One process compiles everything first; the ranks of the other runs load that from irad's cache.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guides import examples_of

ROOT = Path(__file__).parents[2]
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("numba_mpi") is None, reason="numba-mpi is an extra: nox -s bridges"),
    pytest.mark.skipif(MPIEXEC is None, reason="needs mpiexec: pip install mpich, or apt install mpich"),
]
# numba_mpi starts MPI where it is imported, so this process does not.

QUICK = ("halos", "extremes")
OTHERS = (
    *("ring", "not_waiting", "together", "sum_in_a_loop", "to_anybody", "tested", "without_data"),
    *("to_nobody", "shorter", "complex_numbers", "integers", "in_callees"),
)
LIMIT = 600  # seconds, far more than any run takes: of a machine that does many other things, too

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a module or a script on a number of ranks."""
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("cache")), "PYTHONPATH": str(ROOT)}

    def start(ranks: int, *arguments: str, limit: int = LIMIT) -> subprocess.CompletedProcess[str]:
        command = [str(MPIEXEC), "-n", str(ranks), sys.executable, *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=limit, check=False
        )

    return start


def passes(run: Run, ranks: int, action: str, *names: str) -> None:
    done = run(ranks, "-m", "tests.mpi.run", action, *names)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["passed", *names]


def test_a_few_programs_on_one_rank_and_on_three(run: Run):
    passes(run, 1, "check", *QUICK)
    passes(run, 3, "check", *QUICK)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_a_grid_of_which_each_rank_has_some_rows(run: Run, ranks: int):
    passes(run, ranks, "heat", "heat")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_programs(run: Run, ranks: int):
    passes(run, ranks, "check", *QUICK, *OTHERS)


def test_the_plan_that_saves_everything(run: Run):
    passes(run, 2, "oracle", "halos", "extremes", "tested")


def test_more(run: Run):
    """What takes derivatives of its own: of higher order, in several directions, with ties."""
    passes(run, 2, "more", "ties", "single_precision", "third_order", "jacobians", "constants", "lost_zeros")


def test_what_is_refused(run: Run):
    passes(run, 1, "refusals", "refusals")


def test_a_rank_that_raises_ends_the_others(run: Run):
    """mpi4py's own way: without it the other ranks would wait forever, as they would without derivatives."""
    done = run(2, "-m", "mpi4py", "-m", "tests.mpi.raising", limit=120)
    assert done.returncode != 0
    assert "this rank has no data" in done.stderr


@pytest.mark.parametrize("number", [0, 1])
def test_the_guide_on_several_ranks(run: Run, tmp_path: Path, number: int):
    """It prints the same on any number of ranks."""
    example = examples_of("docs/use_with/mpi.md")[number]
    script = tmp_path / "example.py"
    script.write_text(example.code, encoding="utf-8")
    done = run(3, str(script))
    assert done.returncode == 0, done.stderr
    assert done.stdout == example.output


def test_the_layout_of_records_is_that_of_the_support():
    text = (ROOT / "irad/backend/runtime/mpi.ll").read_text(encoding="utf-8")
    called = set(re.findall(r"declare i32 @(MPI_\w+)\(", text))
    source = (ROOT / "irad/frontend/numba/mpi.py").read_text(encoding="utf-8")
    assert called == set(re.findall(r'"(MPI_\w+)"', source))
