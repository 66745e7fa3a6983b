"""The page of `irad.inspect`, in notebooks and as a string."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest
from numba import float64, njit

import irad
from irad.errors import SignatureError
from tests.report.subjects import refused

pytest.importorskip("jinja2", reason="no Jinja2: pip install 'irad[report]'")


@njit(error_model="numpy")
def energy(x):
    total = 0.0
    for i in range(x.size):
        total += np.exp(x[i]) * x[i]
    return total


def lines_of(page: str) -> list[list[object]]:
    head = re.search(r'<script type="application/json" id="head">(.*?)</script>', page, re.S)
    assert head is not None
    return json.loads(head[1])["lines"]


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


def test_a_notebook_shows_why_there_is_no_page():
    shown = irad.inspect(refused, 2.0)._repr_html_()
    assert shown.startswith("<pre>no derivative rule for")
    assert "\n  do  " in shown


def test_a_profile_needs_arguments():
    page = irad.inspect(energy, np.linspace(0.0, 1.0, 10_000)).html(profile=True)
    shares = {str(line[1]).strip(): line[7] for line in lines_of(page)}
    assert shares["total += np.exp(x[i]) * x[i]"] > 0.5
    with pytest.raises(SignatureError, match="not types"):
        irad.inspect(energy, float64[::1]).html(profile=True)
