"""The page of `irad.inspect`, in notebooks and as a string."""

from __future__ import annotations

import html
import json
import re
import sys
from typing import Any

import numpy as np
import pytest
from numba import float64, njit

import irad
from irad.errors import NoRuleError, SignatureError
from tests.report.subjects import line_of, refused

pytest.importorskip("jinja2", reason="no Jinja2: pip install jinja2")


@njit(error_model="numpy")
def energy(x):
    total = 0.0
    for i in range(x.size):
        total += np.exp(x[i]) * x[i]
    return total


def head_of(page: str) -> dict[str, Any]:
    head = re.search(r'<script type="application/json" id="head">(.*?)</script>', page, re.S)
    assert head is not None
    return json.loads(head[1])


def lines_of(page: str) -> list[list[object]]:
    return head_of(page)["lines"]


def test_a_notebook_shows_the_page_in_a_frame():
    inspection = irad.inspect(energy, np.ones(3))
    shown = inspection._repr_html_()
    assert shown.startswith("<iframe ")
    assert 'sandbox="allow-scripts"' in shown
    page = re.search(r'srcdoc="(.*)"></iframe>', shown, re.S)
    assert page is not None
    assert html.unescape(page[1]) == inspection.html()
    exp = [line for line in lines_of(inspection.html()) if "np.exp" in str(line[1])]
    assert [(line[5] > 0, line[6], line[7]) for line in exp] == [(True, ["exp"], None)]


def test_the_page_of_a_refused_function_shows_it_and_why():
    inspection = irad.inspect(refused, 2.0)
    with pytest.raises(NoRuleError) as error:
        print(inspection.report)
    head = head_of(inspection.html())
    line = line_of(refused, "_significand(x)")
    assert head["refusals"] == [[line, error.value.problem, str(error.value)]]
    assert line in [number for number, *_ in head["lines"]]
    assert [name for name, *_ in head["stages"]] == ["python", "numba-ir", "llvm", "prepared"]
    assert html.escape(str(error.value)).replace("&#x27;", "&#39;") in inspection.html()
    assert html.unescape(inspection._repr_html_()).count(str(error.value)) == 1
    assert inspection.html(profile=True) == inspection.html()


@irad.jit
def calls_both(x):
    return refused(x) + refused(x) * x


def test_a_refusal_in_a_callee_of_another_file_is_shown_at_the_call():
    """And each refusal once, with all its text, also where a message would be cut."""
    head = head_of(irad.inspect(calls_both, 2.0).html())
    assert {line for line, _, _ in head["refusals"]} == {line_of(calls_both, "refused(x) +")}
    assert len({text for _, _, text in head["refusals"]}) == len(head["refusals"])


def test_a_notebook_says_why_there_is_no_page(monkeypatch: pytest.MonkeyPatch):
    inspection = irad.inspect(refused, 2.0)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert inspection._repr_html_().startswith("<pre>the HTML report needs Jinja2\n")


def test_a_profile_needs_arguments():
    page = irad.inspect(energy, np.linspace(0.0, 1.0, 10_000)).html(profile=True)
    shares = {str(line[1]).strip(): line[7] for line in lines_of(page)}
    assert shares["total += np.exp(x[i]) * x[i]"] > 0.5
    with pytest.raises(SignatureError, match="not types"):
        irad.inspect(energy, float64[::1]).html(profile=True)
