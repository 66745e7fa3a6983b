"""The table of makers: each public function that makes a derivative is a row, which tells signatures and names."""

from __future__ import annotations

import inspect
from functools import partial

import pytest
from numba import njit

import irad
from irad.api.makers import MAKERS
from irad.frontend.offered import typing_of

PUBLIC = [name for name, row in MAKERS.items() if name == row.name and name not in ("autodiff", "vjp", "dependence")]


@njit
def area(width, height):
    return width * height


@njit
def clashing(out, tangents, vector, series):
    return out * tangents * vector * series


def made(name: str, f):
    make = partial(irad.taylor, order=2) if name == "taylor" else getattr(irad, name)
    return make(f)


def test_every_public_maker_has_a_row():
    functions = {name: value for name in irad.__all__ if inspect.isfunction(value := getattr(irad, name))}
    parameters = {name: list(inspect.signature(function).parameters) for name, function in functions.items()}
    makers = {name for name, listed in parameters.items() if "argnums" in listed and listed[1] in ("argnums", "order")}
    assert makers - {"sparse_jacobian", "sparse_hessian"} == set(PUBLIC)  # these two are objects of Python


@pytest.mark.parametrize("name", PUBLIC)
def test_the_signature_follows_from_the_row(name: str):
    row = MAKERS[name]
    expected = [*["out"] * row.writes, "width", *([row.direction] if row.direction else []), "height"]
    assert list(inspect.signature(made(name, area)).parameters) == expected


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_of_the_row_have_other_names_where_the_function_has_these(name: str):
    parameters = list(inspect.signature(made(name, clashing)).parameters)
    own = list(inspect.signature(clashing).parameters)
    assert [each for each in parameters if each in own] == own
    assert len(parameters) == len(own) + MAKERS[name].writes + (MAKERS[name].direction is not None)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_callable_bears_the_name_of_its_row(name: str):
    assert repr(made(name, area)) == f"<irad.{name} of area>"


@pytest.mark.parametrize("name", PUBLIC)
def test_compiled_code_calls_a_maker_with_the_same_parameters(name: str):
    maker = getattr(irad, name)
    typing = inspect.signature(typing_of(maker).typed).parameters.values()
    expected = [each for each in inspect.signature(maker).parameters.values() if each.name != "options"]
    assert [(each.name, each.default) for each in typing] == [(each.name, each.default) for each in expected]
