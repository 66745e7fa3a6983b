"""Exceptions of kernels that are compiled with ``debug=True``."""

from __future__ import annotations

import ctypes
import inspect
import re
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda
from numba.cuda import dispatcher

import irad
import irad.cuda
from irad import Active, BatchDuplicated, Const, Duplicated
from irad.backend import compat
from irad.frontend.cuda.exceptions import exception_of, number_of
from tests.cuda.host import fake_gpu
from tests.cuda.host.fake_gpu import Foreign
from tests.cuda.ptx.tools import needs_libdevice

_SIZE = 6


@cuda.jit(device=True, debug=True, opt=False)
def root(x):
    if x < 0.0:
        raise ArithmeticError("no root")
    return x * x


@cuda.jit(debug=True, opt=False)
def checked(x, what, scale, y):
    i = cuda.grid(1)
    if i < x.size:
        if what[i] == 7:
            raise ValueError("seven", 7)
        if what[i] == 8:
            raise RuntimeError
        factor = (1.0, 2.0, 3.0)[what[i]]
        y[i] = scale * factor * root(x[i]) + 1 // (2 - what[i])


def unchecked(x, what, scale, y):
    i = cuda.grid(1)
    if i < x.size:
        if what[i] == 7:
            raise ValueError("seven", 7)
        y[i] = scale * x[i] * x[i]


def arguments(**changes):
    """Of a launch; in which threads there is something else."""
    x, what = np.linspace(1.0, 2.0, _SIZE), np.zeros(_SIZE, np.int64)
    for position, value in changes.get("x", {}).items():
        x[position] = value
    for position, value in changes.get("what", {}).items():
        what[position] = value
    return x, what, 0.5, np.zeros(_SIZE)


def line(text: str, function=checked) -> int:
    """Where a text is in the source of a function."""
    lines, first = inspect.getsourcelines(function.py_func)
    return first + next(number for number, each in enumerate(lines) if text in each)


FAULTS = {
    "raised": ({"what": {4: 7}}, ValueError, "seven", (7,), 4),
    "without arguments": ({"what": {3: 8}}, RuntimeError, "", (), 3),
    "the first of several": ({"what": {5: 8, 3: 7, 4: 7}}, ValueError, "seven", (7,), 3),
    "index of a tuple": ({"what": {1: 3}}, IndexError, "tuple index out of range", (), 1),
    "division by zero": ({"what": {5: 2}}, ZeroDivisionError, "integer division by zero", (), 5),
    "in a device function": ({"x": {2: -1.0}}, ArithmeticError, "no root", (), 2),
}


@pytest.fixture(params=FAULTS.values(), ids=FAULTS)
def fault(request):
    return request.param


def assert_is(error: Exception, fault) -> None:
    """Two threads are a block."""
    _, kind, message, more, thread = fault
    assert type(error) is kind
    assert error.args[1:] == more
    where = f"tid=[0, 0, {thread % 2}] ctaid=[0, 0, {thread // 2}]" + (f": {message}" if message else "")
    assert error.args[0].endswith(where)


def test_a_launch_raises(fault):
    x, what, scale, y = arguments(**fault[0])
    with irad.cuda.executor(races=True), pytest.raises(fault[1]) as raised:
        checked[3, 2](x, what, scale, y)
    assert_is(raised.value, fault)
    fine = (what == 0) & (x > 0)
    np.testing.assert_array_equal(y[fine], scale * x[fine] ** 2)
    np.testing.assert_array_equal(y[~fine], 0.0)


def test_the_line_is_named():
    with irad.cuda.executor(), pytest.raises(ValueError, match="seven") as raised:
        checked[3, 2](*arguments(what={4: 7}))
    place = f"In function 'checked', file {__file__}, line {line('seven')}, "
    assert str(raised.value.args[0]).startswith(place)
    with irad.cuda.executor(), pytest.raises(ArithmeticError, match="no root") as raised:
        checked[3, 2](*arguments(x={4: -1.0}))
    assert f"In function 'root', file {__file__}, line {line('no root', root)}, " in str(raised.value)


def test_nothing_is_raised_where_nothing_happens():
    x, what, scale, y = arguments()
    with irad.cuda.executor(races=True):
        checked[3, 2](x, what, scale, y)
        with pytest.raises(ValueError, match="seven"):
            checked[3, 2](*arguments(what={0: 7}))
        checked[3, 2](x, what, scale, y)
    np.testing.assert_array_equal(y, scale * x**2)


def test_without_debug_threads_end():
    x, what, scale, y = arguments(what={4: 7})
    dx, dy = np.zeros(_SIZE), np.ones(_SIZE)
    with irad.cuda.executor():
        cuda.jit(unchecked)[3, 2](x, what, scale, y)
        irad.cuda.grad(cuda.jit(unchecked))[3, 2](Duplicated(x, dx), what, Const(scale), Duplicated(y, dy))
    np.testing.assert_array_equal(y == 0.0, what == 7)
    np.testing.assert_array_equal(dx, np.where(what == 7, 0.0, 2 * scale * x))


# ----------------------------------------------------------------------------------------------------- as Numba has it


@pytest.mark.parametrize("place", [("function", "file.py", 12), None])
@pytest.mark.parametrize("given", [("no", 3), ("no",), (), None])
def test_the_text_is_that_of_numba(monkeypatch, place, given):
    """Numba's own launch, with a stand-in for the driver: the same record, the same exception."""
    helper = compat.numba_module("numba.cuda.core.callconv")._MinimalCallHelper()
    code = helper._add_exception(KeyError, given, place)
    memory = {"errcode": code, "tidx": 1, "tidy": 2, "tidz": 3, "ctaidx": 4, "ctaidy": 5, "ctaidz": 6}
    symbols = SimpleNamespace(get_global_symbol=lambda name: (_Word(memory[name.removeprefix("k").strip("_")]), 4))
    function = SimpleNamespace(name="k", module=symbols, handle=None, kernel=None)
    library = SimpleNamespace(get_cufunc=lambda: function)
    for name in ("launch", "LaunchConfig"):
        if hasattr(dispatcher, name):
            monkeypatch.setattr(dispatcher, name, lambda *_, **__: None)
    monkeypatch.setattr(dispatcher.driver, "launch_kernel", lambda *_, **__: None, raising=False)
    monkeypatch.setattr(dispatcher.driver, "USE_NV_BINDING", False, raising=False)
    monkeypatch.setattr(dispatcher.driver, "device_to_host", lambda to, word, size: word.copy(to))
    kernel = SimpleNamespace(_codelibrary=library, debug=True, argument_types=(), cooperative=False, call_helper=helper)
    with pytest.raises(KeyError) as raised:
        dispatcher._Kernel.launch(kernel, (), (1, 1, 1), (1, 1, 1))
    number = number_of(KeyError, given, place)
    found = exception_of(np.array([number, 3, 2, 1, 6, 5, 4], np.int32).tobytes())
    assert type(found) is KeyError
    assert found.args == raised.value.args
    assert exception_of(bytes(28)) is None


class _Word:
    """A variable of the device."""

    def __init__(self, value):
        self.value = value

    def memset(self, value, stream):
        """The launch sets it."""

    def copy(self, to):
        """To an address of the host."""
        ctypes.c_int.from_address(to).value = self.value


# --------------------------------------------------------------------------------------------------------- derivatives


def test_a_derivative_raises_and_adds_nothing(fault):
    x, what, scale, y = arguments(**fault[0])
    dx, dy, dscale = np.full(_SIZE, 3.0), np.arange(1.0, 1.0 + _SIZE), np.array([5.0])
    with irad.cuda.executor(races=True), pytest.raises(fault[1]) as raised:
        irad.cuda.grad(checked)[3, 2](Duplicated(x, dx), what, Duplicated(scale, dscale), Duplicated(y, dy))
    assert_is(raised.value, fault)
    np.testing.assert_array_equal(dx, 3.0)
    np.testing.assert_array_equal(dy, np.arange(1.0, 1.0 + _SIZE))
    assert dscale[0] == 5.0


def test_a_tangent_raises_and_leaves_tangents():
    x, what, scale, y = arguments(what={3: 7})
    dx, dy = np.ones(_SIZE), np.full(_SIZE, 4.0)
    with irad.cuda.executor(), pytest.raises(ValueError, match="seven"):
        irad.cuda.autodiff(irad.Forward, checked)[3, 2](
            Duplicated(x, dx), what, Duplicated(scale, 1.0), Duplicated(y, dy)
        )
    np.testing.assert_array_equal(dy, 4.0)


def test_a_derivative_that_raises_nothing():
    x, what, scale, y = arguments(what={1: 1})
    factor = np.where(what == 1, 2.0, 1.0)
    dx, dy = np.zeros((2, _SIZE)), np.array([np.arange(1.0, 1.0 + _SIZE), np.ones(_SIZE)])
    cotangents, tangents = dy.copy(), np.zeros(_SIZE)
    with irad.cuda.executor(races=True):
        _, _, dscale, _ = irad.cuda.grad(checked)[3, 2](
            BatchDuplicated(x, tuple(dx)), what, Active(scale), BatchDuplicated(y, tuple(dy))
        )
        irad.cuda.autodiff(irad.Forward, checked)[3, 2](
            Duplicated(x, np.ones(_SIZE)), what, Duplicated(scale, 0.0), Duplicated(y, tangents)
        )
    np.testing.assert_allclose(dx, cotangents * 2 * scale * factor * x)
    np.testing.assert_allclose(dscale, cotangents @ (factor * x**2))
    np.testing.assert_allclose(tangents, 2 * scale * factor * x)
    np.testing.assert_array_equal(y, scale * factor * x**2 + 1 // (2 - what))


@cuda.jit(debug=True, opt=False)
def repeated(x, most, y):
    i = cuda.grid(1)
    if i < x.size:
        v, steps = x[i], 0
        while v < 100.0:
            v = v * (1.0 + 0.04 * x[i] * x[i])
            steps += 1
            if steps > most:
                raise OverflowError("too many steps")
        y[i] = v


def test_with_a_tape():
    """Whose first slices are too small: the launch is repeated, and raises at its end."""
    x, y = np.linspace(1.0, 2.0, _SIZE), np.zeros(_SIZE)
    dx, dy = np.zeros(_SIZE), np.ones(_SIZE)
    derivative = irad.cuda.grad(repeated)
    first = "tid=[0, 0, 0] ctaid=[0, 0, 0]: too many steps"
    with irad.cuda.executor() as device:
        with pytest.raises(OverflowError, match=re.escape(first)):
            derivative[3, 2](Duplicated(x, dx), 80, Duplicated(y, dy))
        assert device.launches > 1
        np.testing.assert_array_equal(dx, 0.0)
        np.testing.assert_array_equal(dy, 1.0)
        derivative[3, 2](Duplicated(x, dx), 200, Duplicated(y, dy))
        ends, step = np.zeros((2, _SIZE)), 1e-6
        for row, sign in zip(ends, (1, -1), strict=True):
            repeated[3, 2](x + sign * step, 200, row)
    np.testing.assert_allclose(dx, (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


def test_while_a_tape_records():
    """What a launch that raised has written has no derivative, whoever caught the exception."""
    x, what, scale, y = arguments()
    bad, z = arguments(what={0: 7})[1], np.zeros(_SIZE)
    with irad.cuda.executor():
        with irad.cuda.Tape() as tape:
            checked[3, 2](x, what, scale, y)
        tape.backward((y, np.ones(_SIZE)))
        np.testing.assert_allclose(tape.gradient(x), 2 * scale * x)
        with irad.cuda.Tape() as tape:
            checked[3, 2](x, what, scale, y)
            with pytest.raises(ValueError, match="seven"):
                checked[3, 2](y, bad, scale, z)
        assert z[0] == 0.0 < z[1]
        with pytest.raises(ValueError, match="seven"):
            tape.backward((z, np.ones(_SIZE)))


def test_reports_do_not_ask_for_more_axes():
    """Though coordinates along three are reported."""
    report = str(irad.check(checked, *arguments()))
    assert "for launches along 1 axis" in report
    assert "adds to the derivative of x plainly" in report


# -------------------------------------------------------------------------------------------------------------- a GPU


@needs_libdevice
def test_through_the_driver(monkeypatch):
    """The stand-in runs what was compiled to PTX on the executor."""
    fake_gpu.install(monkeypatch)
    x, what, scale, y = arguments(what={4: 7})
    dx, dy = np.zeros(_SIZE), np.ones(_SIZE)
    given = Duplicated(Foreign(x), Foreign(dx)), Foreign(what), Const(scale), Duplicated(Foreign(y), Foreign(dy))
    with pytest.raises(ValueError, match="seven") as raised:
        irad.cuda.grad(checked)[3, 2](*given)
    assert_is(raised.value, FAULTS["raised"])
    np.testing.assert_array_equal(dx, 0.0)
    np.testing.assert_array_equal(dy, 1.0)
    what[:] = 0
    irad.cuda.grad(checked)[3, 2](*given)
    np.testing.assert_allclose(dx, 2 * scale * x)


def test_captures_are_refused(monkeypatch):
    library = fake_gpu.install(monkeypatch)
    x, what, scale, y = arguments()
    given = (
        Duplicated(Foreign(x), Foreign(x.copy())),
        Foreign(what),
        Const(scale),
        Duplicated(Foreign(y), Foreign(y.copy())),
    )
    library.begin_capture(7)
    with pytest.raises(irad.UnsupportedError, match="checked is compiled with debug=True, and its launch is captured"):
        irad.cuda.grad(checked)[3, 2, 7](*given)
    assert "cuLaunchKernel" not in library.calls
