"""Type checkers infer what derivatives and bridges take and return; wrong arguments are errors; examples have none."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
PARTNERS = {"torch": "torch", "jax": "jax", "pytensor": "pytensor", "dask": "dask", "ipopt": "cyipopt"}
CHECKERS = {
    "mypy": ["--config-file", str(HERE / "mypy.ini")],
    "pyright": ["--outputjson", "--pythonpath", sys.executable],
}
EXCUSED = ('Import "matplotlib', '"partition" is not a known attribute of "None"')
"""What Pyright says of an optional package, and of docstrings, which `python -OO` leaves out."""


def check(checker: str, *files: Path) -> None:
    """Runs a type checker, which is to find no mistake."""
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed: irad[check] has it")
    command = [sys.executable, "-m", checker, *CHECKERS[checker], *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if checker == "mypy":
        assert done.returncode == 0, done.stdout + done.stderr
    else:
        report = json.loads(done.stdout)
        found = [each for each in report["generalDiagnostics"] if each["severity"] == "error"]
        assert [each for each in found if not each["message"].startswith(EXCUSED)] == []
        assert report["summary"]["filesAnalyzed"] >= len(files)


@pytest.mark.parametrize("checker", CHECKERS)
def test_inferred_types_and_examples(checker: str):
    check(checker, HERE / "inferred.py", HERE / "interop_scipy.py", *EXAMPLES)


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("bridge", PARTNERS)
def test_inferred_types_of_a_bridge(bridge: str, checker: str):
    pytest.importorskip(PARTNERS[bridge], reason="nox -s types installs the partners")
    check(checker, HERE / f"interop_{bridge}.py")
