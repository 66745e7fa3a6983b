"""What the documentation shows of reports is what is printed."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import numba
import pytest

import irad
from irad.report.model import (
    Addition,
    FunctionReport,
    KernelCode,
    LineFacts,
    Report,
    Stage,
    TapeEntry,
    TextLine,
    ValueFacts,
)
from tests.report.document import PATH, ROOT, document

VERSION = re.search(r"made with Numba (\d+\.\d+) on LLVM (\d+)", PATH.read_text(encoding="utf-8"))
assert VERSION is not None
IS_OF_THIS_NUMBA = numba.__version__.startswith(VERSION[1] + ".")
same_numba = pytest.mark.skipif(not IS_OF_THIS_NUMBA, reason="values have other numbers with another version of Numba")


@same_numba
def test_the_guide_is_current(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    text = PATH.read_text(encoding="utf-8")
    assert document(text) == text, "run scripts/make_inspector_doc.py"


def test_the_guide_names_all_stages_and_members():
    text = PATH.read_text(encoding="utf-8")
    for stage in Stage:
        assert f"| `{stage.value}` |" in text
    for kind in (Report, FunctionReport, ValueFacts, TapeEntry, LineFacts, TextLine, KernelCode, Addition):
        for member in kind.__dataclass_fields__:
            assert f"`{member}`" in text, f"{kind.__name__}.{member}"


def energy() -> Any:
    specification = importlib.util.spec_from_file_location("energy", ROOT / "docs" / "examples" / "energy.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.energy


@same_numba
def test_the_stages_in_the_architecture_are_real():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    part = text.partition("## One function from source to machine code")[2].partition("**6 Optimised.**")[0]
    found = irad.inspect(energy(), numba.float64[::1])
    names = ("prepared", "types", "activity", "adjoint", "plan")
    stages = "\n".join(found.stage(name, noise=name == "activity") for name in names)
    shown = {line.strip().replace("0x0000000000000000", "0.0") for line in stages.splitlines()}
    lines = re.findall(r"^(?:    |  )?(?:%|store|\w+\.\w.*:$).*", part, re.M)
    quoted = [line.partition(" ; ")[0].strip() for line in lines]
    assert len(quoted) > 25
    assert [line for line in quoted if ("…" not in line or "(…)" in line) and line not in shown] == []
