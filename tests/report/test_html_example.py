"""The pages that the documentation shows, made by the command: how large they are, how fast they open, what they show.

`IRAD_SCREENSHOTS=docs/images python -m pytest tests/report/test_html_example.py` makes the documentation's pictures.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from irad.cli import main

pytest.importorskip("jinja2", reason="no Jinja2: pip install jinja2")
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "programs" / "soil_column.py"
LARGEST = 3_000_000
ENDING = "\ue00c"


def made(folder: Path, target: str, arguments: str, *options: str) -> Path:
    file = folder / "report.html"
    done = CliRunner().invoke(main, ["inspect", target, "--args", arguments, "--html", str(file), *options])
    assert done.exit_code == 0, done.output
    assert f"{file}: " in done.output
    return file


@pytest.fixture(scope="module")
def soil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A function of 200 lines, profiled."""
    folder = tmp_path_factory.mktemp("soil")
    return made(folder, f"{EXAMPLE}:misfit", "example()", "--wrt", "parameters", "--profile")


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A browser whose pictures go where they are wanted."""
    wanted = os.environ.get("IRAD_SCREENSHOTS")
    before = browser.screenshots
    browser.screenshots = Path(wanted) if wanted else before
    browser.theme("light")
    yield browser
    browser.screenshots = before
    assert browser.complaints() == []


def picture(page: Any, name: str) -> None:
    """A picture of few colours, small enough for a repository, where Pillow is there."""
    page.picture(name)
    try:
        from PIL import Image  # pyright: ignore[reportMissingImports]
    except ImportError:
        return
    file = page.screenshots / f"{name}.png"
    with Image.open(file) as image:
        image.convert("RGB").quantize(192, dither=Image.Dither.NONE).save(file, optimize=True)


def line_number(text: str) -> int:
    [number] = [i for i, line in enumerate(EXAMPLE.read_text().split("\n"), 1) if text in line]
    return number


def test_a_function_of_200_lines(page: Any, soil: Path, record_property: Any):
    weight = soil.stat().st_size
    assert weight < LARGEST
    page.open(soil)
    ready, elements = page.run(
        "return [performance.getEntriesByName('ready')[0].startTime, document.querySelectorAll('*').length]"
    )
    record_property("milliseconds until all panes are drawn", round(ready))
    record_property("bytes", weight)
    print(f"\n{weight / 1000:.0f} kB, {elements} elements, all panes drawn after {ready:.0f} ms")
    assert elements < 5000


def test_the_lines_of_the_solver(page: Any, soil: Path):
    line = line_number("diagonal[i] -= factor * upper[i - 1]")
    page.open(soil, f"#L{line}")
    assert page.find("#source .row.cursor .c-line").text == str(line)
    for pane in range(3):
        origins = {row.text for row in page.all(f"#pane-{pane} .row.hit .c-origin")}
        assert origins == {str(line)}, f"pane {pane} lights up other lines, or none"
    assert any("fmul" in text or "fmadd" in text or "fdiv" in text or "fsub" in text for text in page.shows(0))
    assert "saved" in page.find("#facts-line").text
    picture(page, "report_light")
    page.theme("dark")
    picture(page, "report_dark")


def test_shares_of_time_are_shares(page: Any, soil: Path):
    page.open(soil)
    shares = page.run("return HEAD.lines.map((line) => line[7])")
    assert all(share is not None for share in shares)
    assert 0.5 < sum(shares) <= 1.0001
    names = page.run("return HEAD.lines.map((line) => line[1])")
    assert not any(share for share, text in zip(shares, names, strict=True) if text.strip().startswith(('"""', "@")))


def test_the_tape_and_the_graph(page: Any, soil: Path):
    page.open(soil)
    page.find("#tab-tape").click()
    rows = page.run("return tape.rows.map((row) => [row.total, row.name])")
    assert len(rows) > 20
    assert page.all("#facts-tape tbody tr td")[0].get_attribute("title").startswith(f"{max(t for t, _ in rows):,} ")
    picture(page, "report_tape")
    page.find("#tab-calls").click()
    assert page.all("#graph .node")[0].get_attribute("aria-label").startswith("misfit, with respect to parameters")
    assert any("stored_heat" in node.get_attribute("aria-label") for node in page.all("#graph .node"))
    page.find("#search").send_keys("latent_capacity")
    page.wait("return document.querySelectorAll('#results [role=option]').length > 3")
    picture(page, "report_search")


def test_the_adjoint_as_python_is_the_first_pane(page: Any, tmp_path: Path):
    example = ROOT / "docs" / "examples" / "energy.py"
    file = made(tmp_path, f"{example}:energy", "np.linspace(0.0, 1.0, 100_000)", "--profile")
    line = next(i for i, text in enumerate(example.read_text().split("\n"), 1) if "np.exp" in text)
    page.open(file, f"#L{line}")
    assert page.find("#stage-0").get_attribute("value") == "adjoint-python"
    assert any(text.startswith("x_bar[i] +=") for text in page.shows(0))
    assert page.find("#stage-1").get_attribute("value") == "adjoint"
    assert len(page.all("#panes .panel")) == 2
    heading = {item.find_element("tag name", "dt").text for item in page.all(".summary div")}
    assert heading == {"gradient", "forward / reverse", "times the function", "tape of this call"}
    assert "forward" in page.find("#facts-line").text
    picture(page, "report_python")


def test_the_demo(page: Any, tmp_path: Path):
    arguments = "np.linspace(-1.0, 1.0, 18), np.random.default_rng(0).normal(size=(500, 2)), 3"
    file = made(tmp_path, "irad.demo.model:negative_log_likelihood", arguments)
    assert file.stat().st_size < LARGEST
    page.open(file)
    page.find("#search").send_keys("math.exp(-log_diagonals")
    page.wait("return document.querySelectorAll('#results [role=option]').length > 0")
    page.keys("\ue007")
    page.wait("return document.querySelector('#facts-line h3').textContent.includes('whitened[row] = rest')")
    assert "exp" in page.find("#facts-line .chip.rule").text
    assert any("llvm.exp" in row.text for row in page.all("#pane-0 .row.hit"))
    page.run("document.querySelector('#search').blur()")
    picture(page, "report_demo")


def test_refusals_of_the_command(tmp_path: Path):
    def output(*arguments: str) -> str:
        done = CliRunner().invoke(main, ["inspect", f"{EXAMPLE}:misfit", *arguments])
        assert done.exit_code == 2
        return done.output

    file = str(tmp_path / "r.html")
    assert "--profile goes with --html" in output("--args", "example()", "--profile")
    assert "it runs the derivative" in output("--sig", "float64", "--html", file, "--profile")
    assert "--html takes neither" in output("--args", "example()", "--html", file, "--stage", "plan")
    assert not (tmp_path / "r.html").exists()
