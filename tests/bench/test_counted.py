"""Figures that do not depend on the machine stay as they are recorded, or get better."""

from __future__ import annotations

import json

import pytest

from bench.counted import CASES, FILE, UPDATE, changes, counted, versions
from irad.versions import NUMBA, PYTHON

RECORDED = json.loads(FILE.read_text("utf-8"))


def test_nothing_got_worse():
    if RECORDED["versions"] != versions():
        pytest.skip(f"the figures were counted with {RECORDED['versions']}")
    assert changes(RECORDED["figures"], counted()) == [], UPDATE


def test_the_figures_are_those_of_the_newest_numba():
    assert RECORDED["versions"]["numba"] == ".".join(map(str, max(NUMBA))), UPDATE
    assert RECORDED["versions"]["python"] in {".".join(map(str, each)) for each in PYTHON}
    wanted = {"modules", *(f"{kind} {case}" for kind in ("instructions", "tape_bytes") for case in CASES)}
    assert RECORDED["figures"].keys() == wanted


@pytest.mark.parametrize(
    ("name", "now", "is_told"),
    [
        ("instructions ode", 102, False),
        ("instructions ode", 105, True),
        ("instructions ode", 95, True),
        ("tape_bytes ode", 101, True),
        ("tape_bytes ode", 50, False),
        ("modules", 103, False),
        ("modules", 104, True),
        ("modules", 50, False),
    ],
)
def test_what_is_told(name: str, now: int, is_told: bool):
    assert bool(changes({name: 100}, {name: now})) is is_told


def test_a_new_figure_is_told():
    assert changes({}, {"tape_bytes ode": 1}) == ["tape_bytes ode: 1 in place of 0"]
