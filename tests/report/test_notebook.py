"""Results as notebooks show them."""

from __future__ import annotations

import html.parser

import numpy as np
import pytest
from numba import njit

import irad
from irad.report.shown.notebook import NumberCell, result
from irad.testing import gradcheck
from tests.report.subjects import refused


@njit
def energy(x):
    total = 0.0
    for i in range(x.size):
        total += np.exp(x[i]) * x[i]
    return total


class Text(html.parser.HTMLParser):
    """The text of a page by tag; unclosed tags are an error."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, str]] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.found.append((self.open[-1], data))

    def of(self, tag: str) -> list[str]:
        return [text for name, text in self.found if name == tag]


def test_texts_are_escaped():
    page = result("<b>", "bad", "a<b", ("<",), [("`x<y`", NumberCell("<3", 0.5))], ["&amp;"])
    found = Text(page)
    assert found.of("p") == ["<b>", "a<b"]
    assert found.of("code") == ["x<y"]
    assert found.of("pre") == ["&amp;"]
    assert "http" not in page


def test_a_check_that_finds_nothing_and_one_that_does():
    fine = Text(irad.check(energy, np.ones(3))._repr_html_())
    assert fine.of("p")[0] == "irad differentiates energy with respect to x"
    report = irad.check(refused, 2.0)
    page = Text(report._repr_html_())
    assert page.of("p")[0].endswith("1 problem")
    assert page.of("pre") == [str(report.problems[0])]


def test_the_report_of_the_tape():
    report = irad.tape_report(energy, np.ones(1000), argnums=0)
    page = Text(report._repr_html_())
    assert page.of("p")[0].startswith(f"The tape of energy in irad.grad takes {report.total} bytes")
    assert "total += np.exp(x[i]) * x[i]" in page.of("code")
    assert "7.8 KiB" in page.of("td")


@pytest.mark.parametrize(("point", "mood"), [(np.array([0.5, 1.0]), "good")])
def test_a_check_of_a_gradient(point, mood):
    report = gradcheck(energy, point)
    page = report._repr_html_()
    assert f'class="verdict {mood}"' in page
    assert Text(page).of("p")[0] == "The gradient of energy is right (1 point)"
    assert any("x: float64[" in cell for cell in Text(page).of("td"))
