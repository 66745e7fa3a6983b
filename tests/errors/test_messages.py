"""What irad says of every wrong program: word for word, and what holds of all messages.

`python scripts/make_errors_page.py` writes the expected texts again; look at the difference.
"""

from __future__ import annotations

import re

import numba
import pytest

import irad
from irad.errors import MAX_LINES
from irad.versions import numbers_of
from tests.errors.catalogue import GOLDEN, PROGRAMS, Program, normalised, outcome, programs
from tests.errors.page import PAGE, page

ALL = programs()
IDS = [str(program) for program in ALL]
# On no machine is there a place for a machine that is not supported, and none for options that are made by themselves.
WITHOUT_PLACE = {"platform/windows", "platform/byte_order"}
LLVM = re.compile(r"%[\w.]|@_Z|\bptr\b|\bi64\b|\bi32\b|\bdouble\b|0x[0-9a-f]{6}|getelementptr|_ZN")


# Numba before 0.67 places these at the function's definition.
WITH_OTHER_LINE = {"compiler/half_precision_inside"} if numbers_of(numba.__version__) < (0, 67) else set[str]()


def error_of(program: Program) -> irad.IradError:
    return outcome(program)[1]


@pytest.mark.parametrize("program", ALL, ids=IDS)
def test_the_text(program: Program):
    if str(program) in WITH_OTHER_LINE:
        pytest.skip("this Numba places the error elsewhere")
    assert normalised(str(error_of(program))) == program.golden.read_text(encoding="utf-8").rstrip("\n")


@pytest.mark.parametrize("program", ALL, ids=IDS)
def test_what_holds_of_all(program: Program):
    error = error_of(program)
    text = normalised(str(error))
    lines = text.splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= 120, "a sentence that nobody reads"
    assert not LLVM.search(text), "LLVM's names are shown where they are asked for"
    assert lines[0]
    assert not lines[0].endswith(".")
    for each in error.errors if isinstance(error, irad.UnsupportedProgram) else (error,):
        assert each.reason, "why"
        assert each.remedy, "what to do"
        assert len(each.problem) <= 160
    assert "\n  why " in text
    assert "\n  do  " in text


@pytest.mark.parametrize("program", ALL, ids=IDS)
def test_the_place_is_in_the_program_and_its_line_is_shown(program: Program):
    error = error_of(program)
    for each in error.errors if isinstance(error, irad.UnsupportedProgram) else (error,):
        if str(program) in WITHOUT_PLACE:
            assert each.location is None
            continue
        assert each.location is not None
        assert each.location.file == str(program.path)
        source = program.path.read_text(encoding="utf-8").splitlines()
        line = source[each.location.line - 1].strip()
        assert f"\n  at  {each.location}\n          {line}\n" in str(each)
        assert not line.startswith("@"), "the line of the def, not of a decorator"
        if each.focus is not None and "^" in str(each):
            start = str(each).split("\n")[3].index("^") - 10
            assert line[start:].startswith(each.focus)


@pytest.mark.parametrize("program", [p for p in ALL if "\nCHECKED = " in p.path.read_text()], ids=str)
def test_check_says_the_same(program: Program):
    function, arguments, argnums = outcome(program)[0].CHECKED
    report = irad.check(function, *arguments, argnums=argnums)
    assert not report.supported
    error = error_of(program)
    raised = error.errors if isinstance(error, irad.UnsupportedProgram) else (error,)
    assert list(dict.fromkeys(map(str, raised))) == list(map(str, report.problems))
    assert all(str(each) in str(report) for each in raised)


@pytest.mark.parametrize("program", ALL, ids=IDS)
def test_the_remedies_work(program: Program):
    outcome(program)[0].mended()


def test_every_expected_text_belongs_to_a_program():
    assert {path.relative_to(GOLDEN).with_suffix("") for path in GOLDEN.rglob("*.txt")} == {
        path.relative_to(PROGRAMS).with_suffix("") for path in PROGRAMS.rglob("*.py")
    }


def test_the_catalogue_covers_the_classes_that_users_meet():
    raised = {type(each) for p in ALL for each in getattr(error_of(p), "errors", (error_of(p),))}
    assert raised >= {
        irad.ActivityError,
        irad.BackendError,
        irad.NoRuleError,
        irad.RuleError,
        irad.SignatureError,
        irad.UnsupportedError,
    }
    assert len(ALL) >= 25


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), "run scripts/make_errors_page.py"
