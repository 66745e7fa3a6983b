"""How a message is laid out, apart from what irad raises."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest

from irad.errors import IradError, SourceLocation
from irad.message import WIDTH, definition_line, excerpt, labelled, remedies

LONG = "words " * 40


def decorator(function):
    return function


@decorator
@decorator
def decorated(x):
    return x


def test_all_parts_in_their_order():
    line = linecache.getline(__file__, 3).strip()
    error = IradError("it is wrong", "(a) this, or (b) that", "because", SourceLocation(__file__, 3, "f"), "x = y")
    error.callers = (SourceLocation("gone.py", 7, "g"),)
    error.llvm = "%x = fadd double %y, %y"
    assert str(error).splitlines() == [
        "it is wrong",
        f"  at  {__file__}:3 in f",
        f"          {line}",
        "      called from gone.py:7 in g",
        "  in  x = y",
        "  why because",
        "  do  (a) this",
        "      (b) that",
        "  llvm %x = fadd double %y, %y",
    ]


def test_the_least():
    assert str(IradError("it is wrong", "mend it")) == "it is wrong\n  do  mend it"


def test_a_detail_that_is_the_source_line_is_not_shown_twice():
    line = linecache.getline(__file__, 3).strip()
    error = IradError("a", "b", location=SourceLocation(__file__, 3), detail=line)
    assert str(error).count(line) == 1


@pytest.mark.parametrize(
    ("line", "focus", "marker"),
    [
        ("y = f(x)", "x", "      ^"),
        ("y = my_f(x)", "my_f", "    ^^^^"),
        ("y = a.f(x)", "f", None),
        ("y = a.f(x)", "a.f", "    ^^^"),
        ("work[i] = x", "work[i]", "^^^^^^^"),
        ("x = x + 1", "x", None),
        ("xx = x2", "x", None),
        ("y = f(x)", "(x)", None),
        ("y = f(x)", None, None),
    ],
)
def test_a_marker_stands_below_what_is_meant_and_nothing_else(line: str, focus: str | None, marker: str | None):
    shown = list(excerpt(line, focus))
    assert shown == [f"          {line}", *([f"          {marker}"] if marker else [])]


def test_long_lines_of_source_are_cut():
    (shown,) = excerpt("x = " + "1 + " * 100 + "y", "y")
    assert len(shown) == 130
    assert shown.endswith(" …")


def test_text_is_wrapped_below_its_label():
    first, *rest = labelled("why", LONG)
    assert first.startswith("  why words")
    assert all(line.startswith("      words") for line in rest)
    assert all(len(line) <= WIDTH for line in (first, *rest))
    assert " ".join((first[6:], *(line[6:] for line in rest))) == LONG.strip()


def test_long_words_are_not_broken():
    path = "/a/very-long/path" * 10
    assert list(labelled("in", path)) == [f"  in  {path}"]


def test_line_breaks_stay():
    assert list(labelled("in", "a\nb")) == ["  in  a", "      b"]


@pytest.mark.parametrize("text", ["(a) one or (b) two or (c) three", "(a) one, or (b) two; or (c) three"])
def test_each_remedy_has_a_line(text: str):
    assert list(remedies(text)) == ["  do  (a) one", "      (b) two", "      (c) three"]


def test_remedies_are_indented_below_their_letters():
    first, second, *_ = remedies(f"(a) {LONG} or (b) two")
    assert first.startswith("  do  (a) words")
    assert second.startswith("          words")


def test_an_or_within_a_remedy_is_none_between_remedies():
    assert list(remedies("use one or two")) == ["  do  use one or two"]


def test_the_definition_is_below_the_decorators():
    code = decorated.__code__
    assert definition_line(__file__, code.co_firstlineno) == code.co_firstlineno + 2
    assert SourceLocation.of(decorated) == SourceLocation(__file__, code.co_firstlineno + 2, "decorated")
    assert SourceLocation.of(len) is None


def test_a_decorator_of_several_lines(tmp_path: Path):
    file = tmp_path / "f.py"
    file.write_text("@njit(\n    fastmath=True,\n)\n# why\ndef f(x):\n    return x\n")
    assert definition_line(str(file), 1) == 5
    assert definition_line(str(tmp_path / "none.py"), 9) == 9
