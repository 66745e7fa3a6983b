"""The table of makers: each public function that makes a derivative is a row, which tells signatures and names."""

from __future__ import annotations

import inspect
from functools import partial

import pytest
from numba import njit

import irad
from irad.api.makers import MAKERS, Maker, Parameter, Takes, made, maker
from irad.frontend.calls.task import Returns, Role
from irad.frontend.offered import typing_of

ROWS = {name: row for name, row in MAKERS.items() if name == row.name and name in irad.__all__}
PUBLIC = [name for name, row in ROWS.items() if row.takes is Takes.FUNCTION]
OF_PYTHON = {"sparse_jacobian", "sparse_hessian"}
"""Makers without a row: what they make are objects of Python."""
FIRST_PARAMETERS = {
    Takes.FUNCTION: (["f", "argnums"], ["f", "order"]),
    Takes.TUPLES: (["f", "args", "tangents"], ["f", "args", "series"]),
    Takes.ARGUMENTS: (["f", "args"],),
    Takes.ANNOTATED: (["mode", "f"],),
}


@njit
def area(width, height):
    return width * height


@njit
def clashing(out, tangents, vector, series):
    return out * tangents * vector * series


def derivative(name: str, f):
    make = partial(irad.taylor, order=2) if name == "taylor" else getattr(irad, name)
    return make(f)


def test_every_public_maker_has_a_row():
    functions = filter(inspect.isfunction, (getattr(irad, name) for name in irad.__all__))
    mine = {each.__name__: each for each in functions if each.__module__.startswith("irad.api.")}
    parameters = {name: inspect.signature(function).parameters for name, function in mine.items()}
    makers = {name for name, listed in parameters.items() if {"argnums", "argnames", "options"} <= listed.keys()}
    makers |= {name for name, listed in parameters.items() if list(listed)[:2] == ["mode", "f"]}
    assert makers - OF_PYTHON == ROWS.keys()


@pytest.mark.parametrize("name", ROWS)
def test_a_maker_takes_what_its_row_says(name: str):
    parameters = list(inspect.signature(getattr(irad, name)).parameters)
    row = ROWS[name]
    assert any(parameters[: len(first)] == first for first in FIRST_PARAMETERS[row.takes])
    assert row.of == "" or row.of in ROWS


@pytest.mark.parametrize("name", ROWS)
def test_what_cannot_be_called_is_refused_with_what_the_row_says(name: str):
    row, offered = ROWS[name], typing_of(getattr(irad, name))
    assert (offered is None) == bool(row.in_code)
    assert row.in_code or offered.is_refused == bool(row.on_device)
    if row.on_device:
        with pytest.raises(irad.UnsupportedError) as caught:
            offered.typed(None)
        assert caught.value.remedy == row.on_device


def test_what_calls_the_callable_of_another_row_at_once():
    rows = {name: row for name, row in ROWS.items() if row.takes is Takes.TUPLES}
    given = {"jvp": (2.0,), "jet": ((2.0, 3.0),)}
    assert rows.keys() == given.keys()
    for name, row in rows.items():
        make = partial(irad.taylor, order=2) if row.of == "taylor" else getattr(irad, row.of)
        assert getattr(irad, name)(area, (3.0, 4.0), (*given[name], None)) == make(area)(3.0, *given[name], 4.0)


@pytest.mark.parametrize("name", PUBLIC)
def test_the_signature_follows_from_the_row(name: str):
    row = MAKERS[name]
    expected = ["width", "height"]
    if row.direction is not None:
        expected.insert(1, row.direction.name)
    if row.writes is not None:
        expected.insert(0, row.writes.name)
    assert list(inspect.signature(derivative(name, area)).parameters) == expected


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_of_the_row_have_other_names_where_the_function_has_these(name: str):
    parameters = list(inspect.signature(derivative(name, clashing)).parameters)
    own = list(inspect.signature(clashing).parameters)
    row = MAKERS[name]
    assert [each for each in parameters if each in own] == own
    added = {each.otherwise for each in (row.writes, row.direction) if each is not None}
    assert set(parameters) - set(own) == added


@pytest.mark.parametrize("name", PUBLIC)
def test_a_callable_bears_the_name_of_its_row(name: str):
    assert repr(derivative(name, area)) == f"<irad.{name} of area>"


@pytest.mark.parametrize("name", PUBLIC)
def test_compiled_code_calls_a_maker_with_the_same_parameters(name: str):
    maker = getattr(irad, name)
    typing = inspect.signature(typing_of(maker).typed).parameters.values()
    expected = [each for each in inspect.signature(maker).parameters.values() if each.name != "options"]
    assert [(each.name, each.default) for each in typing] == [(each.name, each.default) for each in expected]


def test_a_new_maker_is_a_row_and_a_function(monkeypatch: pytest.MonkeyPatch):
    row = Maker("slope", Role.TANGENT, Returns.GRADIENT, direction=Parameter("along", "irad_along"))
    monkeypatch.setitem(MAKERS, "slope", row)

    @maker
    def slope(f, argnums=0, has_aux=False, *, argnames=None, options=None):
        return made("slope", f, argnums, argnames, has_aux, options)

    @njit
    def inside(x, y):
        return slope(area, argnames="height")(x, y, 2.0)

    assert str(inspect.signature(slope(area))) == "(width, along, height)"
    assert slope(area)(3.0, 2.0, 5.0) == 10.0
    assert inside(3.0, 5.0) == 6.0
    assert slope(area) is slope(area, 0)
    with pytest.raises(irad.SignatureError, match="argnums names argument 2"):
        slope(area, 2)
