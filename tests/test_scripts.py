"""The scripts show what they install, and stop where that fails; pip is played by a script here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "environment.sh"
PIP = """#!/bin/sh
[ "$1" = - ] && { echo key; exit; }
echo 'Obtaining file:///here'
echo 'Collecting numpy>=1.26 (from irad)'
echo '  Downloading numpy-2.4.6-cp311-cp311-linux_x86_64.whl.metadata (6 kB)'
echo '  Downloading https://example.org/files/numpy-2.4.6-cp311-cp311-linux_x86_64.whl (16.6 MB)'
echo 'Processing /mirror/simple/rich-15.0.0-py3-none-any.whl (from irad)'
echo 'Installing collected packages: numpy, rich, irad'
exit $STATUS
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PIP)
    python.chmod(0o755)
    (tmp_path / ".venv" / ".irad-place").write_text(f"{tmp_path}\n")
    return tmp_path


def install(folder: Path, status: int) -> subprocess.CompletedProcess[str]:
    code = f"set -euo pipefail; source '{SCRIPT}'; ensure_environment test; echo ready"
    environment = {"PATH": "/usr/bin:/bin", "STATUS": str(status)}
    return subprocess.run(
        ["bash", "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_what_is_installed_is_shown_and_not_repeated(folder: Path):
    done = install(folder, 0)
    assert (done.returncode, done.stdout) == (0, "ready\n")
    lines = done.stderr.splitlines()
    assert lines[0].startswith("installing irad[test]")
    assert lines[1:-1] == [
        "  numpy>=1.26",
        "    Downloading numpy-2.4.6-cp311-cp311-linux_x86_64.whl (16.6 MB)",
        "  rich-15.0.0-py3-none-any.whl",
        "  installing 3 packages",
    ]
    assert install(folder, 1).stderr == ""  # the stamp says that all is there


def test_a_failure_stops(folder: Path):
    done = install(folder, 1)
    assert done.returncode != 0
    assert "ready" not in done.stdout
    assert not (folder / ".venv" / ".irad-test").exists()
