"""Type checkers infer what derivatives take and return; wrong arguments are errors."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CHECKERS = {
    "mypy": ["--strict", "--warn-unused-ignores", "--config-file", str(HERE / "mypy.ini")],
    "pyright": ["--pythonpath", sys.executable],
}


@pytest.mark.parametrize("checker", CHECKERS)
def test_inferred_types(checker: str, tmp_path: Path):
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed: irad[check] has it")
    command = [sys.executable, "-m", checker, *CHECKERS[checker], str(HERE / "inferred.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
