"""Inner functions: no machine code of their own, errors as of others, rules, calls from Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from numba.core.codegen import JITCodeLibrary

import irad
from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_jitable, inner_njit
from irad.frontend.numba.library import InnerLibrary

PACKAGE = Path(irad.__file__).parent
LIBRARIES = ("data", "frontend", "implicit", "integrate", "interpolate", "nn", "ode", "sparse_linalg")


@inner_jitable
def _refuse(count, wanted):
    raise FormattedValueError("{} numbers, not {}", count, wanted)


@inner_njit
def _cubes(x, wanted=2):
    if x.size != wanted:
        _refuse(x.size, wanted)
    return (x**3).sum()


@njit
def _outer(x):
    return 2.0 * _cubes(x)


def test_code_of_an_inner_function_is_that_of_its_callers() -> None:
    assert _outer(np.array([1.0, 2.0])) == 18.0
    (compiled,) = _cubes.overloads.values()
    assert isinstance(compiled.library, InnerLibrary)
    assert not compiled.library.get_pointer_to_function(compiled.fndesc.mangled_name)


def test_python_calls_an_inner_function_too() -> None:
    assert _cubes(np.array([1.0, 3.0])) == 28.0
    assert _cubes(np.array([2.0]), 1) == 8.0


def test_error_is_of_the_usual_class_and_has_its_message() -> None:
    for call in (_outer, _cubes, irad.grad(_outer)):
        with pytest.raises(ValueError, match=r"^3 numbers, not 2$") as caught:
            call(np.ones(3))
        assert type(caught.value) is ValueError


def _compiled_functions(node: ast.AST) -> Iterator[ast.AST]:
    """Functions with a decorator of Numba's kind, and those that an overload returns."""
    for function in (each for each in ast.walk(node) if isinstance(each, ast.FunctionDef)):
        decorators = ast.dump(ast.Tuple(function.decorator_list))
        if "jit" in decorators:
            yield function
        elif "overload" in decorators:
            yield from (each for each in ast.walk(function) if isinstance(each, ast.FunctionDef) and each != function)


def test_no_function_of_the_libraries_compiles_the_formatting_of_its_messages() -> None:
    found = []
    for path in (p for folder in LIBRARIES for p in (PACKAGE / folder).rglob("*.py")):
        for function in _compiled_functions(ast.parse(path.read_text("utf-8"))):
            raised = (each for each in ast.walk(function) if isinstance(each, ast.Raise))
            texts = (each for node in raised for each in ast.walk(node) if isinstance(each, ast.JoinedStr))
            found += [f"{path.relative_to(PACKAGE)}:{text.lineno}" for text in texts]
    assert found == [], "raise FormattedValueError: code that formats takes seconds to compile"


def test_derivative_of_an_inner_function() -> None:
    assert irad.grad(_outer)(np.array([1.0, 2.0])).tolist() == [6.0, 24.0]


@njit
def _squares(x):
    return (x * x).sum()


def test_second_derivative_is_optimised_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    finish = JITCodeLibrary._finalize_final_module

    def noting(library: JITCodeLibrary) -> None:
        made.append(library.name)
        finish(library)

    monkeypatch.setattr(JITCodeLibrary, "_finalize_final_module", noting)
    np.testing.assert_allclose(irad.hessian(_squares)(np.array([1.0, 2.0])), 2.0 * np.eye(2))
    assert [name for name in made if "squares" in name or "hessian" in name] == ["hessian_grad__squares"]


def test_derivative_is_called_from_python_and_by_inner_code() -> None:
    x, direction = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    push = irad.pushforward(irad.grad(_squares))
    for _ in range(2):  # neither finds the specialisation of the other
        np.testing.assert_allclose(push(x, direction)[1], 2.0 * direction)
        np.testing.assert_allclose(irad.jacobian(irad.grad(_squares))(x), 2.0 * np.eye(2))
