"""How errors reach the user: uncaught, from compiled code, in notebooks, from other processes, with LLVM text."""

from __future__ import annotations

import linecache
import os
import pickle
import subprocess
import sys
import traceback
from types import FunctionType

import numba
import numpy as np
import pytest
from numba import njit, types

import irad
from irad.errors import InternalError, SourceLocation, UnsupportedProgram
from irad.frontend.calls.raising import leaving, public
from tests.errors.catalogue import HERE, Program, normalised, outcome

_density = types.ExternalFunction("density_that_nobody_knows", types.float64(types.float64))


@njit
def area(width, height):
    return width * height


@njit
def energy(x):
    return np.sum(x * x)


@njit
def drag(speed):
    return _density(speed) * speed


def raised(call, *args) -> irad.IradError:
    with pytest.raises(irad.IradError) as caught:
        call(*args)
    return caught.value


def frames(error: BaseException) -> list[str]:
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


def test_an_uncaught_error_in_a_terminal():
    program = Program("calls", "integer_argument")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import integer_argument; integer_argument.wrong()"
    done = subprocess.run(
        [sys.executable, "-c", code, str(program.path.parent)], capture_output=True, text=True, cwd=HERE.parents[1]
    )
    assert done.returncode == 1
    trace, _, message = done.stderr.partition("\nirad.SignatureError: ")
    assert normalised(message).rstrip("\n") == program.golden.read_text(encoding="utf-8").rstrip("\n")
    assert "return irad.grad(area)(3, 4.0)" in trace
    assert "numba" not in trace
    assert "During handling" not in trace
    assert "direct cause" not in trace
    assert len(trace.splitlines()) <= 9
    assert "raise " not in trace, "no line of irad's own source"


def test_a_traceback_has_one_frame_of_irad():
    for call, args in (
        (irad.grad(area), (3, 4.0)),
        (irad.grad, (area, 5)),
        (irad.vjp, (area, 1, 2)),
        (irad.grad(drag), (1.0,)),
    ):
        error = raised(call, *args)
        own = [file for file in frames(error) if file != __file__]
        assert len(own) <= 2, own  # `vjp` calls a derivative
        assert all("irad" in file for file in own)
        assert error.__cause__ is None
        assert error.__suppress_context__ or error.__context__ is None


def test_what_raised_it_is_kept_unless_it_is_numba():
    @public
    def fails(cause: Exception) -> None:
        raise irad.RuleError("a", "b") from cause

    mine = KeyError("x")
    assert raised(fails, mine).__cause__ is mine
    assert raised(fails, numba.errors.TypingError("long")).__cause__ is None


@pytest.mark.parametrize("kind", [AttributeError, KeyError, NotImplementedError, RuntimeError])
def test_whatever_numba_lets_through_is_explained(monkeypatch: pytest.MonkeyPatch, kind: type[Exception]):
    def fails(*_: object) -> None:
        raise kind("in the middle of it")

    fails = FunctionType(fails.__code__, {"__name__": "numba.fails", "kind": kind}, closure=fails.__closure__)
    monkeypatch.setattr("irad.frontend.numba.private.compile_raw", fails)
    error = raised(irad.grad(njit(lambda x: x)), 1.0)
    assert isinstance(error, irad.BackendError)
    assert f"{kind.__name__}: " in error.problem
    assert "in the middle of it" in error.problem
    assert len(frames(error)) <= 3
    assert error.__cause__ is None


def test_what_irad_itself_raises_unforeseen_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch):
    def fails(*_: object) -> None:
        raise KeyError("a fault")

    fails = FunctionType(fails.__code__, {"__name__": "irad.fails"}, closure=fails.__closure__)
    monkeypatch.setattr("irad.frontend.numba.private.compile_raw", fails)
    with pytest.raises(KeyError) as caught:
        irad.grad(njit(lambda x: x))(1.0)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fails"


def test_nothing_is_cut_from_a_fault_of_irad():
    def inner() -> None:
        raise InternalError("broken")

    error = raised(public(inner))
    assert [f.name for f in traceback.extract_tb(error.__traceback__)][-1] == "inner"


def test_llvm_text_and_the_whole_traceback_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch):
    assert raised(irad.grad(drag), 1.0).llvm is None

    @njit
    def again(speed):
        return _density(speed) * speed

    monkeypatch.setenv("IRAD_ERRORS", "llvm")
    error = raised(irad.grad(again), 1.0)
    assert "\n  llvm %" in str(error)
    assert "call double @density_that_nobody_knows(double %arg.speed)" in str(error)
    assert len(frames(error)) > 10
    refused = raised(irad.grad(njit(lambda x: x.nothing)), 1.0)
    assert isinstance(refused.__cause__, numba.errors.NumbaError)
    monkeypatch.setenv("IRAD_ERRORS", "")
    assert len(frames(raised(irad.grad(njit(lambda x: x.nothing)), 1.0))) <= 3


def test_inside_compiled_code_the_text_is_the_same():
    slope = irad.grad(area)

    @njit
    def typed(x):
        return slope(3, x)

    @njit
    def written_inside(x):
        return irad.grad(area)(3, x)

    expected = str(raised(slope, 3, 1.0))
    assert str(raised(typed, 1.0)) == expected
    assert str(raised(written_inside, 1.0)) == expected
    by_speed = irad.grad(drag)
    assert str(raised(njit(lambda x: by_speed(x)), 1.0)) == str(raised(by_speed, 1.0))


def test_what_compiled_code_raises_when_it_runs_has_a_place():
    into = irad.value_and_grad_into(energy)

    @njit
    def overwritten(x):
        return into(x, x)

    x = np.ones(3)
    error = raised(overwritten, x)
    assert error.reason
    assert error.location is not None
    assert error.location.file == __file__
    assert error.location.function == "raised"


def test_in_a_notebook_the_line_of_the_cell_is_shown():
    cell = "@njit\ndef in_a_cell(x):\n    y = 2.0 * x\n    return density(y)\n"
    name = "/tmp/ipykernel_1/1234567890.py"
    linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
    try:
        scope = {"njit": njit, "density": _density}
        exec(compile(cell, name, "exec"), scope)
        error = raised(irad.grad(scope["in_a_cell"]), 1.0)
        assert f"\n  at  {name}:4 in in_a_cell\n          return density(y)\n" in str(error)
    finally:
        del linecache.cache[name]


@pytest.mark.parametrize(
    "program", [Program("calls", "integer_argument"), Program("unsupported", "several_problems")], ids=str
)
def test_an_error_of_another_process_is_the_same(program: Program):
    error = outcome(program)[1]
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert found.location == error.location
    assert found.instruction is None


def test_classes_are_called_as_users_call_them():
    for name in irad.__all__:
        value = getattr(irad, name)
        if isinstance(value, type) and issubclass(value, irad.IradError):
            assert value.__module__ == "irad"


def test_one_problem_that_is_met_several_times_is_raised_as_it_is():
    error = outcome(Program("unsupported", "object_mode"))[1]
    assert type(error) is irad.NoRuleError
    assert error.location is not None


def test_many_problems_are_counted():
    errors = [irad.UnsupportedError(f"problem {i}", "mend it", "because") for i in range(30)]
    text = str(UnsupportedProgram(errors))
    assert len(text.splitlines()) <= 25
    assert "(30)" in text
    shown = text.count("problem ")
    assert f"… and {30 - shown} more: print(irad.check(f, *args)) lists them all" in text


def test_the_place_is_that_of_the_users_code():
    here = SourceLocation.here()
    assert here is not None
    assert here.file == __file__
    error = leaving(irad.SignatureError("a", "b"))
    assert error.location is not None
    assert error.location.function == "test_the_place_is_that_of_the_users_code"


def test_no_place_in_the_command_line():
    run = "print(CliRunner().invoke(main, ['doctor']).output)"
    code = f"from click.testing import CliRunner; from irad.cli import main; {run}"
    environment = {**os.environ, "IRAD_PLAN": "fast"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert "IRAD_PLAN=fast is not a plan" in done.stdout
    assert "click" not in done.stdout


@njit
def far(x):
    return x > 1.0


@njit
def asks_for_it(x):
    return irad.grad(far)(x)


@njit
def by_number(x, number):
    return irad.grad(energy, argnums=number)(x)


@pytest.mark.parametrize(("compiled", "args"), [(asks_for_it, (1.0,)), (by_number, (np.ones(2), 0))])
def test_a_derivative_that_is_refused_inside_compiled_code(compiled, args):
    error = raised(compiled, *args)
    assert [file for file in frames(error) if file != __file__] == ["<irad>"]
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


def test_pullbacks_and_options_show_one_frame_of_irad():
    _, pullback = irad.vjp(energy, np.ones(2))
    for call, args in ((pullback, ("one",)), (lambda: irad.Options(plan="fast"), ())):
        assert [file for file in frames(raised(call, *args)) if file != __file__] == ["<irad>"]


@njit
def imports(x):
    from math import exp

    return exp(x)


def test_byte_code_that_numba_does_not_know_is_no_cause():
    error = raised(irad.grad(imports), 1.0)
    assert len(traceback.format_exception(error)) <= 5
    assert error.__cause__ is None


def test_code_without_a_file_has_its_line():
    scope = {"njit": njit}
    exec("@njit\ndef f(x):\n    import math\n    return x\n", scope)
    error = raised(irad.grad(scope["f"]), 1.0)
    assert error.location == SourceLocation("<string>", 3, "f")
