"""Environment of a result besides the code: machine, versions, commit."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("irad", "numba", "llvmlite", "numpy", "jax", "jaxlib", "torch", "autograd", "enzyme-ad")


def describe() -> dict[str, object]:
    """Machine, versions and commit, for the result file."""
    return {
        "commit": _git("rev-parse", "HEAD"),
        "modified": bool(_git("status", "--porcelain")),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "platform": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name)) is not None},
    }


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None  # an exported tree: there is no commit to name
    return done.stdout.strip()


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
