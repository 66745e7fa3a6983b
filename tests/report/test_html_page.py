"""The page in a browser: what a user clicks, types and sees."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from irad.report.html import notebook, render
from irad.report.model import LineFacts, Refusal, Report, Stage, StageText, TextLine
from tests.report.conftest import made_by_hand

pytest.importorskip("jinja2", reason="no Jinja2: pip install jinja2")
ENTER, ESCAPE, TAB, DOWN, UP, HOME, END, RIGHT, PAGE_DOWN = (
    "\ue007", "\ue00c", "\ue004", "\ue015", "\ue013", "\ue011", "\ue010", "\ue014", "\ue00f",
)  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, report: Report) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(report), encoding="utf-8")
    return path


@pytest.fixture
def page(browser: Any, file: Path) -> Iterator[Any]:
    browser.theme("light")
    browser.open(file)
    yield browser
    assert browser.complaints() == []


def test_the_line_that_saves_most_is_chosen_at_first(page: Any):
    assert page.find("#facts-line h3").text.startswith("Line 16")
    page.picture("first")


def test_no_pane_is_empty_before_a_click(browser: Any, tmp_path: Path):
    """Lines without code, such as the head of the function, are not chosen, however much they save or take."""
    file = tmp_path / "head.html"
    file.write_text(render(made_by_hand({14: 0.8, 16: 0.1})), encoding="utf-8")
    browser.open(file)
    assert browser.find("#source .row.cursor .c-line").text == "16"
    assert all(browser.shows(pane) for pane in range(3))
    assert browser.all("#facts-line tbody tr")
    browser.open(file, "#L14")
    assert browser.find("#source .row.cursor .c-line").text == "14"


def test_a_click_lights_up_the_lines_of_all_panes_that_come_from_there_and_no_others(page: Any):
    page.click_line(17)
    assert page.shows(0) == ["%r = fmul double %scale, %total"]
    assert page.shows(1) == page.shows(2) == []
    page.click_line(16)
    assert page.shows(0) == ["%e = call double @llvm.exp.f64(double %v)", "%p = fmul double %e, %v"]
    assert page.shows(1) == ["%16 = fmul double %23, %e", "%17 = fadd double %16, %15"]
    assert page.shows(2) == ["vmulsd xmm0, xmm1, xmm2"]
    assert page.find(".panel:has(#pane-1) .count").text == "2 lines"


def test_a_line_without_code_says_so(page: Any):
    page.click_line(14)
    assert [count.text for count in page.all("#panes .count")] == ["no code"] * 3
    assert "No value" in page.find("#facts-line").text


def test_what_is_known_of_a_line_is_beside_it(page: Any):
    [row] = [row for row in page.all("#source .row") if "np.exp" in row.text]
    assert row.find_element("class name", "c-call").text == "8"
    assert row.find_element("class name", "c-iteration").text == "24"
    assert row.find_element("class name", "rules").text == "exp"
    assert {v.text for v in row.find_elements("css selector", ".var.active")} == {"total", "x"}
    assert {v.text for v in row.find_elements("css selector", ".var.constant")} == {"i"}
    assert "active: total, x" in row.get_attribute("aria-label")
    assert page.all("#source .c-time") == []


def test_text_of_the_source_is_text(page: Any):
    assert page.all("#source b") == []
    assert "# <b>not markup</b> & </script>" in page.find("#source").text


def test_values_of_a_line_with_their_reasons(page: Any):
    page.click_line(16)
    rows = page.all("#facts-line tbody tr")
    assert [row.get_attribute("data-value") for row in rows] == ["%e", "%p"]  # what is saved comes first
    assert "dear to compute" in rows[0].text
    assert "rules/elementwise.py:40" in rows[0].text
    rows[1].click()
    assert [row.text.strip() for row in page.all(".row.value .c-code")] == ["%p = fmul double %e, %v"]


def test_another_stage_in_a_pane(page: Any):
    page.click_line(16)
    page.find("#stage-1 option[value=optimized]").click()
    page.wait("return document.querySelector('#pane-1').textContent.includes('%fast')")
    assert page.shows(1) == ["%fast = fmul fast double %e, %v"]
    assert page.shows(0)[0].startswith("%e")


def test_noise_is_shown_when_asked_for(page: Any):
    page.click_line(16)
    assert not any("NRT_incref" in text for text in page.shows(0))
    page.find(".panel:has(#pane-0) .noise input").click()
    assert any("NRT_incref" in text for text in page.shows(0))
    assert not page.find(".panel:has(#pane-1) .noise").is_displayed()


def test_only_lines_in_view_are_elements(page: Any):
    assert page.run("return document.querySelectorAll('#pane-0 .row').length") < 60
    assert page.run("return document.querySelector('#pane-0 .paper').offsetHeight") == 805 * 20


def test_a_line_of_a_stage_leads_to_the_source(page: Any):
    page.click_line(17)
    page.click_line(16)
    page.run("document.querySelector('#pane-1').scrollTop = 1e6")
    page.wait("return document.querySelector('#pane-1').textContent.includes('ret void')")
    [row] = [row for row in page.all("#pane-1 .row") if "ret void" in row.text]
    row.click()
    page.wait("return document.querySelector('#facts-line h3').textContent.startsWith('Line 11')")
    assert page.run("return location.hash") == "#L11"
    assert page.find("#source .row.cursor .c-line").text == "11"


def test_the_address_names_a_line(page: Any, file: Path):
    page.open(file, "#L17")
    assert page.find("#source .row.cursor .c-line").text == "17"


def test_search_finds_lines_of_all_stages_and_goes_there(page: Any):
    page.find("#search").send_keys("MORE = add i64 2, 39")
    page.wait("return document.querySelectorAll('#results [role=option]').length === 11")  # 39, 390 … 399
    assert page.find("#results .group").text.startswith("LLVM IR")
    assert "11 places" in page.find("#status").text
    page.keys(DOWN, DOWN, ENTER)
    page.wait("return document.activeElement.id === 'pane-0'")
    assert page.find("#pane-0 .row.cursor .c-code").text.strip() == "%more = add i64 2, 390"
    marked = page.run("return [...document.querySelectorAll('#pane-0 .row.cursor mark')].map(e => e.textContent)")
    assert "".join(marked) == "more = add i64 2, 39"
    assert not page.find("#results").is_displayed()


def test_search_opens_a_stage_that_no_pane_shows(page: Any):
    page.find("#search").send_keys("fmul fast")
    page.wait("return document.querySelectorAll('#results [role=option]').length === 1")
    page.keys(ENTER)
    page.wait("return document.querySelector('#pane-0').textContent.includes('%fast')")
    assert page.find("#stage-0").get_attribute("value") == "optimized"


def test_search_in_the_source_and_for_nothing(page: Any):
    page.find("#search").send_keys("return scale")
    page.wait("return document.querySelectorAll('#results [role=option]').length === 1")
    page.keys(ENTER)
    page.wait("return document.querySelector('#facts-line h3').textContent.startsWith('Line 17')")
    page.find("#search").clear()
    page.find("#search").send_keys("nowhere")
    page.wait("return document.querySelector('#results').textContent === 'Nothing found'")
    page.keys(ESCAPE)
    assert not page.find("#results").is_displayed()


def column(page: Any, index: int) -> list[str]:
    return [row.find_elements("tag name", "td")[index].text for row in page.all("#facts-tape tbody tr")]


def test_the_tape_is_sorted_by_bytes_and_by_what_is_clicked(page: Any):
    page.find("#tab-tape").click()
    assert column(page, 0) == ["array", "64", "32", "8"]
    assert page.find("#facts-tape th[aria-sort]").get_attribute("aria-sort") == "descending"
    page.find("th[data-key=size] button").click()
    assert column(page, 0) == ["8", "32", "64", "array"]
    assert page.find("#facts-tape th[aria-sort]").get_attribute("aria-sort") == "ascending"
    page.find("th[data-key=name] button").click()
    assert column(page, 3) == ["exp(…) on line 16", "shadow of an array", "w", "where the values are saved"]
    page.find("th[data-key=name] button").click()
    assert column(page, 3)[0] == "where the values are saved"
    assert "per iteration of loops 15 › 16" in column(page, 1)
    assert any(text == "lib/other.py:3" for text in column(page, 2))
    page.picture("tape")


def test_a_row_of_the_tape_leads_to_its_line(page: Any):
    page.click_line(17)
    page.find("#tab-tape").click()
    [row] = [row for row in page.all("#facts-tape tbody tr") if "exp(…)" in row.text]
    row.click()
    page.wait("return document.querySelector('#source .row.cursor .c-line').textContent === '16'")
    assert page.find("#pane-0 .row.value .c-code").text.strip() == "%e = call double @llvm.exp.f64(double %v)"
    assert page.find("#pane-1 .row.value .c-code").text.strip() == "%16 = fmul double %23, %e"


def test_the_call_graph_has_a_node_for_each_callee_and_activity(page: Any):
    page.find("#tab-calls").click()
    nodes = page.all("#graph .node")
    assert [node.get_attribute("aria-label") for node in nodes] == [
        "energy, by x, scale; result active",
        "helper, by a",
        "helper, by a, b",
    ]
    pairs = [
        (edge.get_attribute("data-caller"), edge.get_attribute("data-callee")) for edge in page.all("#graph .edge")
    ]
    assert pairs == [("0", "1"), ("0", "2"), ("1", "1"), ("2", "1")]
    assert [text.text for text in page.all("#graph .edge text")] == ["2×"]
    nodes[2].click()
    assert "helper.reverse.1" in page.find("#card").text
    assert nodes[2].get_attribute("aria-pressed") == "true"
    page.picture("calls")


def test_arrow_keys_go_through_the_lines(page: Any):
    page.find("#source").click()
    page.click_line(10)
    page.keys(DOWN, DOWN)
    assert page.find("#source .row.cursor .c-line").text == "12"
    page.keys(UP)
    assert page.find("#source .row.cursor .c-line").text == "11"
    page.keys(END)
    assert page.find("#source .row.cursor .c-line").text == "17"
    assert page.shows(0) == ["%r = fmul double %scale, %total"]
    page.keys(HOME)
    assert page.find("#source .row.cursor .c-line").text == "10"
    active = page.find("#source").get_attribute("aria-activedescendant")
    assert page.find(f"#{active}").get_attribute("aria-selected") == "true"


def test_keys_in_a_pane(page: Any):
    page.click_line(16)
    page.run("document.querySelector('#pane-0').focus()")
    page.keys(HOME, PAGE_DOWN)
    assert int(page.find("#pane-0 .row.cursor").get_attribute("data-row")) > 5
    page.keys("n")
    assert page.find("#pane-0 .row.cursor .c-code").text.strip().startswith("%e")
    page.keys(END, UP, ENTER)
    page.wait("return document.querySelector('#facts-line h3').textContent.startsWith('Line 17')")


def test_every_control_is_in_the_tab_order_and_shows_its_focus(page: Any):
    page.run("document.activeElement.blur()")
    seen: list[str] = []
    for _ in range(40):
        page.find("body").send_keys(TAB) if not seen else page.keys(TAB)
        name = page.run(
            "const e = document.activeElement; return e.id || e.getAttribute('aria-label') || e.textContent"
        )
        if name in seen[:1]:
            break
        seen.append(name)
        focus = page.run(
            "const e = document.activeElement, s = getComputedStyle(e);"
            "return e === document.body || e.matches(':focus-visible') && s.outlineStyle !== 'none'"
        )
        assert focus, f"the focus on {name} cannot be seen"
    wanted = ["search", "theme", "help-button", "source", "split-left", "tab-line", "facts-line", "split-main",
              "stage-0", "pane-0", "stage-1", "pane-1", "stage-2", "pane-2"]  # fmt: skip
    assert [name for name in seen if name in wanted] == wanted


def test_every_control_has_a_name(page: Any):
    bare = page.run(
        "return [...document.querySelectorAll('button, select, input, [role=listbox], [role=separator], [role=tab]')]."
        "filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).map(e => e.id)"
    )
    assert bare == []


def test_tabs_and_borders_by_keyboard(page: Any):
    page.find("#tab-line").click()
    page.keys(RIGHT)
    assert page.find("#facts-tape").is_displayed()
    assert not page.find("#facts-line").is_displayed()
    assert page.run("return document.activeElement.id") == "tab-tape"
    before = page.find("#left").size["width"]
    page.run("document.querySelector('#split-main').focus()")
    page.keys(RIGHT, RIGHT)
    assert page.find("#left").size["width"] > before


def test_slash_goes_to_the_search_and_question_mark_to_the_keys(page: Any):
    page.click_line(16)
    page.keys("/")
    assert page.run("return document.activeElement.id") == "search"
    page.keys(ESCAPE)
    page.run("document.querySelector('#source').focus()")
    page.keys("?")
    assert page.find("#help").is_displayed()
    page.keys(ESCAPE)
    assert not page.find("#help").is_displayed()


LUMINANCE = """
const light = (text) => {
  const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map(Number).map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const back = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const colour = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$|transparent/.test(colour)) return colour;
  }
  return 'rgb(255, 255, 255)';
};
return [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() && !e.disabled
    && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())).map((e) => {
  const ink = light(getComputedStyle(e).color), paper = light(back(e));
  const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  return [contrast, `${e.tagName}.${e.className}: ${e.textContent}`];
}).filter(([contrast]) => contrast < 4.5);
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_both_themes(page: Any, scheme: str):
    page.theme(scheme)
    page.click_line(16)
    for tab in ("calls", "tape", "line"):
        page.find(f"#tab-{tab}").click()
        assert page.run(LUMINANCE) == []
    page.picture(scheme)


def test_the_theme_follows_the_system_until_one_is_chosen(page: Any):
    colours = []
    for scheme, choice in itertools.product(("light", "dark"), ("", "light", "dark")):
        page.theme(scheme)
        page.find(f"#theme option[value='{choice}']").click()
        colours.append(page.run("return getComputedStyle(document.body).backgroundColor"))
    light, dark = colours[0], colours[3]
    assert light != dark
    assert colours == [light, light, dark, dark, light, dark]


def test_shares_of_time(browser: Any, tmp_path: Path, profiled_report: Report):
    file = tmp_path / "profiled.html"
    file.write_text(render(profiled_report), encoding="utf-8")
    browser.open(file)
    shown = {row.find_element("class name", "c-line").text: row.find_element("class name", "c-time").text
             for row in browser.all("#source .row")}  # fmt: skip
    assert {line: share for line, share in shown.items() if share} == {"15": "20 %", "16": "75 %", "17": "5.0 %"}
    assert "75 %" in browser.find("#facts-line").text
    assert browser.complaints() == []


def test_a_report_of_early_stages_only(browser: Any, tmp_path: Path, report: Report):
    """Of a function that is refused there are no functions, values and tape."""
    stages = {Stage.LLVM: report.stages[Stage.LLVM]}
    lines = tuple(LineFacts(line.line, line.text, (), (), 0, 0, ()) for line in report.lines)
    early = dataclasses.replace(report, functions=(), lines=lines, stages=stages)
    file = tmp_path / "early.html"
    file.write_text(render(early), encoding="utf-8")
    browser.open(file, "#L16")
    assert browser.shows(0) == ["%e = call double @llvm.exp.f64(double %v)", "%p = fmul double %e, %v"]
    assert len(browser.all("#panes .panel")) == 1
    browser.find("#tab-tape").click()
    assert "Nothing is saved" in browser.find("#facts-tape").text
    assert browser.complaints() == []


REFUSAL = "no derivative rule for a call to 'exp'\n  at  model.py:16 in energy\n  why it has none\n  do  write one"


@pytest.fixture
def refused_report(report: Report) -> Report:
    stages = {Stage.LLVM: report.stages[Stage.LLVM]}
    lines = tuple(LineFacts(line.line, line.text, (), (), 0, 0, ()) for line in report.lines)
    refusals = (Refusal("no derivative rule for a call to 'exp'", REFUSAL, 16), Refusal("<i>", "elsewhere <i>", None))
    return dataclasses.replace(report, functions=(), lines=lines, stages=stages, refusals=refusals)


@pytest.mark.parametrize("width", [500, 900, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_refused_function(browser: Any, tmp_path: Path, refused_report: Report, scheme: str, width: int):
    file = tmp_path / "refused.html"
    file.write_text(render(refused_report), encoding="utf-8")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.theme(scheme)
        browser.open(file)
        assert browser.find(".refusals h2").text == "irad does not differentiate energy"
        assert [pre.text for pre in browser.all(".refusals .refusal")] == [REFUSAL, "elsewhere <i>"]
        [marked] = browser.all("#source .refused")
        assert marked.text == "no derivative rule for a call to 'exp'"
        assert browser.find("#facts-line h3").text.startswith("Line 16")
        assert browser.find(".line-number").rect["height"] < 25, "in one line"
        assert browser.find("#facts-line .refusal").text == REFUSAL
        assert "refused: no derivative rule" in browser.find("#status").text
        assert [tab.text for tab in browser.all("[role=tab]")] == ["This line"]
        assert browser.shows(0) == ["%e = call double @llvm.exp.f64(double %v)", "%p = fmul double %e, %v"]
        assert browser.run("return document.documentElement.scrollWidth") <= width
        assert browser.run(LUMINANCE) == []
        browser.picture(f"refused_{scheme}_{width}")
        browser.click_line(14)
        assert "Nothing is refused here" in browser.find("#facts-line").text
        assert browser.complaints() == []
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "width": 1440})


def test_without_a_python_form_the_first_pane_says_why(browser: Any, tmp_path: Path, report: Report):
    reasons = ("# There is no Python form: a call of <b>g</b>.", "# That is at model.py:16.")
    text = StageText(Stage.ADJOINT_PYTHON, "python", tuple(TextLine(each) for each in reasons))
    file = tmp_path / "no_python.html"
    stages = {**report.stages, Stage.ADJOINT_PYTHON: text}
    file.write_text(render(dataclasses.replace(report, stages=stages)), encoding="utf-8")
    browser.open(file)
    first, *others = browser.all("#panes .panel")
    words = "There is no Python form: a call of <b>g</b>. That is at model.py:16."
    assert first.find_element("class name", "why-no-python").text == words
    assert not any(pane.find_elements("class name", "why-no-python") for pane in others)
    browser.open(tmp_path / "no_python.html", "#L16")
    assert browser.complaints() == []


def test_with_a_python_form_no_pane_says_why(page: Any):
    assert page.all(".why-no-python") == []


@pytest.mark.parametrize("width", [500, 900])
def test_narrow_windows(page: Any, width: int):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        assert page.run("return document.documentElement.scrollWidth") <= width
        pane = page.find("#panes .panel").rect
        assert pane["y"] + 200 < 900  # beside the source, the first stage is on the first screen
        tops = [page.find(panel).rect["y"] for panel in ("#source-panel", "#panes .panel", "#facts-panel")]
        assert tops == sorted(tops)
        page.picture(f"narrow_{width}")
    finally:
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "width": 1440})


def test_in_a_notebook_the_page_is_shut_in(browser: Any, tmp_path: Path, report: Report):
    """A frame without an origin: it can neither read the notebook nor ask its server."""
    file = tmp_path / "notebook.html"
    file.write_text(f"<!DOCTYPE html><title>n</title><body>{notebook(report)}", encoding="utf-8")
    browser.driver.get(file.as_uri())
    browser.driver.switch_to.frame(0)
    try:
        browser.wait("return document.documentElement.dataset.ready !== undefined")
        assert browser.find("#facts-line h3").text.startswith("Line 16")
        assert browser.run("return origin") == "null"
    finally:
        browser.driver.switch_to.default_content()
    assert browser.complaints() == []
