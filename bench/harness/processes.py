"""A process for each case and tool: one that crashes, hangs or is not installed leaves the others alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any, Final

from bench.environment import ROOT
from bench.harness.worker import Request

ONE_THREAD: Final = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",  # compile times are those of a first time
}


class WorkerFailed(Exception):
    """The process has no figures; the message is one line that says why."""


def run_worker(request: Request, limit: float) -> dict[str, Any]:
    """The figures of a request, measured in a fresh process with one thread.

    Raises:
        WorkerFailed: it ended without any, or took longer than ``limit`` seconds.
    """
    return _run("bench.harness.worker", request.to_json(), limit=limit)


def run_ceilings(limit: float = 300.0) -> dict[str, float]:
    """Ceilings of the machine with one thread."""
    return _run("bench.harness.machine", limit=limit)


def _run(module: str, *arguments: str, limit: float) -> dict[str, Any]:
    command = [sys.executable, "-m", module, *arguments]
    environment = os.environ | ONE_THREAD
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise WorkerFailed(f"took more than {limit:.0f} s") from None
    if done.returncode < 0:
        raise WorkerFailed(f"ended by {signal.Signals(-done.returncode).name}")
    if done.returncode:
        raise WorkerFailed((done.stderr.strip().splitlines() or ["no message"])[-1])
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures
