"""What the page carries, without a browser."""

from __future__ import annotations

import base64
import builtins
import dataclasses
import itertools
import json
import zlib
from importlib.util import find_spec
from typing import Any

import pytest

from irad.errors import IradError
from irad.report.html import render, summary
from irad.report.html.payload import Drawing, blocks, draw, head, script_json
from irad.report.model import FunctionReport, Report, Stage, StageText, TextLine, Times
from irad.report.shown.amounts import format_bytes, short_signature

needs_jinja2 = pytest.mark.skipif(find_spec("jinja2") is None, reason="no Jinja2: pip install jinja2")


def unpacked(packed: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def test_stages_survive_packing(report: Report):
    packed = blocks(report)
    assert set(packed) == {stage.value for stage in report.stages} | {"values"}
    for stage, text in report.stages.items():
        data = unpacked(packed[stage.value])
        assert data["text"].split("\n") == [line.text for line in text.lines]
        assert list(itertools.accumulate(data["line"])) == [line.line or 0 for line in text.lines]
        names = [data["values"][index - 1] if index else None for index in data["value"]]
        assert names == [line.value for line in text.lines]


@pytest.mark.parametrize("flags", [[], [True], [False, True, True, False, True], [True, False]])
def test_noise_is_where_it_begins_and_ends(report: Report, flags: list[bool]):
    lines = tuple(TextLine(str(i), is_noise=flag) for i, flag in enumerate(flags))
    text = StageText(Stage.LLVM, "llvm", lines)
    noise = unpacked(blocks(dataclasses.replace(report, stages={Stage.LLVM: text}))["llvm"])["noise"]
    ends = [*noise, len(flags)] if len(noise) % 2 else noise
    found = {i for a, b in zip(ends[::2], ends[1::2], strict=True) for i in range(a, b)}
    assert found == {i for i, flag in enumerate(flags) if flag}


def test_values_and_tape_refer_to_shown_lines_only(report: Report):
    data = head(report)
    lines = {entry[1]: entry[6] for entry in data["tape"]}
    assert lines == {"%a": 14, "%e": 16, "%slab": 16, "%w": None}
    values = unpacked(blocks(report)["values"])
    assert [(row[1], row[3], row[4]) for row in values["values"]] == [
        ("%e", 16, 3),
        ("%p", 16, 1),
        ("%i", 15, 0),
        ("%x", 11, 1),
    ]


@needs_jinja2
def test_no_text_can_end_the_script(report: Report):
    assert "</" not in script_json(head(report))
    assert json.loads(script_json(["</script><!--\u2028"])) == ["</script><!--\u2028"]
    page = render(report)
    assert page.count("</script>") == page.count("<script")


@needs_jinja2
def test_the_page_names_no_address_elsewhere(report: Report):
    page = render(report)
    assert "default-src 'none'" in page
    assert "http:" not in page
    assert "https:" not in page


@needs_jinja2
def test_titles_are_escaped(report: Report):
    page = render(dataclasses.replace(report, function="f.<locals>.g", options='"<&'))
    assert "f.&lt;locals&gt;.g" in page
    assert "<locals>" not in page


def test_summary(report: Report):
    [(name, formula)] = summary(report)
    assert name == "tape"
    assert formula.split(" + ") == [
        "64 B per call",
        "8 B per iteration of the loop of line 15",
        "what arrays and rules need per iteration of the loop of line 15",
        "32 B per iteration of the loop of line 16 in the loop of line 15",
    ]
    timed = dataclasses.replace(report, times=Times(0.004, 0.001, 0.75))
    assert summary(timed)[:3] == [
        ("gradient", "4 ms"),
        ("forward / reverse", "1 ms / 3 ms"),
        ("times the function", "4.0× of 1 ms"),
    ]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (2**20, "1.0 MiB"), (2**45, "32768.0 GiB")],
)
def test_bytes(count: int, text: str):
    assert format_bytes(count) == text


def test_types_of_arrays_in_the_heading():
    numba = "(array(float64, 1d, C), readonly array(float32, 2d, F), array(int64, 3d, A), int64) -> float64"
    assert short_signature(numba) == "(float64[::1], float32[::1, :], int64[:, :, :], int64) -> float64"


def test_without_jinja2_the_remedy_is_named(report: Report, monkeypatch: pytest.MonkeyPatch):
    original = builtins.__import__

    def missing(name: str, *args: Any, **options: Any) -> Any:
        if name == "jinja2":
            raise ImportError(name)
        return original(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(IradError, match="needs Jinja2") as caught:
        render(report)
    assert caught.value.remedy == "install it: pip install jinja2"


def graph(*calls: tuple[int, ...]) -> Drawing:
    functions = [
        FunctionReport(f"f{i}", f"function {i}", "by x", "a", "r", None, callees, (), ())
        for i, callees in enumerate(calls)
    ]
    return draw(functions)


@pytest.mark.parametrize(
    "calls",
    [
        ((),),
        ((1, 2), (3,), (3,), ()),
        ((1, 1, 2), (2,), ()),
        ((2, 3, 1), (), (1,), (2,)),
        ((0, 1), (0, 2), (1,)),
        tuple(tuple(range(i + 1, 12)) for i in range(12)),
    ],
)
def test_boxes_do_not_overlap_and_callees_are_right_of_callers(calls: tuple[tuple[int, ...], ...]):
    drawing = graph(*calls)
    assert [box.index for box in drawing.boxes] == list(range(len(calls)))
    for a, b in itertools.combinations(drawing.boxes, 2):
        apart = a.x + a.width < b.x or b.x + b.width < a.x or a.y + a.height < b.y or b.y + b.height < a.y
        assert apart, f"{a} and {b} overlap"
    pairs = {(edge.caller, edge.callee): edge.sites for edge in drawing.edges}
    assert pairs == {(i, callee): callees.count(callee) for i, callees in enumerate(calls) for callee in callees}
    for box in drawing.boxes:
        assert 0 <= box.x <= drawing.width - box.width
        assert 0 <= box.y <= drawing.height - box.height
    for edge in drawing.edges:
        caller, callee = drawing.boxes[edge.caller], drawing.boxes[edge.callee]
        is_forward = caller.x + caller.width < callee.x
        assert is_forward == (edge.lowest == 0.0)
        assert edge.lowest <= drawing.height


def test_only_edges_that_close_a_cycle_go_back():
    drawing = graph((1,), (2, 1), (3, 0), ())
    backward = {(edge.caller, edge.callee) for edge in drawing.edges if edge.lowest}
    assert backward == {(1, 1), (2, 0)}
