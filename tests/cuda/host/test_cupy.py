"""CuPy on a tape: on a stand-in whose memory is the host's, and the names of CuPy itself where it is installed."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numba import cuda

import irad
import irad.cuda
from irad import Const, UnsupportedError
from irad.cuda.arrays import cupy_library, partials
from irad.cuda.arrays.rules import ALL, elementwise
from irad.cuda.devices import current
from irad.cuda.devices.current import RECORDING
from irad.cuda.recording.record import Record
from irad.ruleset.expr import applied
from tests.cuda.host import fake_gpu, standin_cupy

V, W = np.array([0.4, -1.2, 2.0, 0.7]), np.array([1.5, 0.3, -0.8, 1.1])
ABSENT_IN_CUPY = {  # functions that NumPy alone has, or that belong to SciPy's namespace
    *("signal.convolve", "signal.fftconvolve", "scatter_add", "trace", "vecdot", "linalg.vecdot", "linalg.tensordot"),
    *("linalg.outer", "logsumexp", "softmax", "log_softmax"),
    *("insert", "block", "diagflat", "concat", "unstack", "matrix_transpose", "permute_dims", "astype", "pow"),
    *("lib.stride_tricks.sliding_window_view", "fix", "ndarray.putmask", "flatten", "maximum.reduce", "minimum.reduce"),
}


@cuda.jit
def square(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * x[i]


@pytest.fixture
def xp(monkeypatch):
    fake_gpu.install(monkeypatch)
    for name, module in standin_cupy.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("cupyx", "cupyx.scipy.fft"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return sys.modules["cupy"]


def program(xp, x, w):
    y = xp.empty_like(x)
    square[1, 32](xp.sin(x), y)
    y += w[::-1] * x
    y[1] = 2.0 * y[0]
    y[2:] *= 3.0
    z = xp.concatenate([y, x[:2]]).reshape(2, 3) @ xp.ones((3, 2)) / 2.0 - 1.0
    z = abs(-z) ** 2 + xp.fft.fft(z, axis=0).real
    xp.add(z, 1.0, out=z)
    xp.add.at(z, ([0, 0], [1, 1]), x[2:])
    return z.sum(axis=1).dot(xp.sort(x)[:2]) + xp.linalg.norm(w) * x.take([3]).sum()


def reference(x, w):
    y = np.sin(x) ** 2 + w[::-1] * x
    y[1] = 2.0 * y[0]
    y[2:] *= 3.0
    z = np.concatenate([y, x[:2]]).reshape(2, 3) @ np.ones((3, 2)) / 2.0 - 1.0
    z = z**2 + np.stack([z[0] + z[1], z[0] - z[1]]) + 1.0
    z[0, 1] += x[2] + x[3]
    return (
        z.sum(axis=1) @ np.sort(x.real)[:2]
        + np.sum(z.sum(axis=1) * (x[[1, 0]] - x[[1, 0]].real))
        + np.sqrt(np.sum(w * w)) * x[3]
    )


def difference(position):
    given = [V.astype(complex), W.astype(complex)]
    found = np.zeros(4)
    for i in range(4):
        moved = [each.copy() for each in given]
        moved[position][i] += 1e-30j
        found[i] = reference(*moved).imag / 1e-30
    return found


def values(array):
    return np.asarray(fake_view(array))


def fake_view(array):
    return type("Interface", (), {"__array_interface__": {**array.__cuda_array_interface__}})()


def test_functions_methods_and_operators(xp):
    x, w = xp.array(V), xp.array(W)
    with irad.cuda.Tape() as tape:
        loss = program(xp, x, w)
    assert float(values(loss)) == pytest.approx(reference(V.astype(complex), W).real)
    left = values(x).copy()
    for _ in range(2):
        tape.backward(loss)
        np.testing.assert_allclose(values(tape.gradient(x)), difference(0), rtol=1e-10)
        np.testing.assert_allclose(values(tape.gradient(w)), difference(1), rtol=1e-10)
    np.testing.assert_array_equal(values(x), left)


def test_everything_is_as_before_after_the_block(xp):
    functions, methods = dict(vars(xp)), dict(vars(xp.ndarray))
    with irad.cuda.Tape():
        assert xp.sum is not functions["sum"]
        assert "__add__" in vars(xp.ndarray)
    assert dict(vars(xp)) == functions
    assert dict(vars(xp.ndarray)) == methods
    assert standin_cupy.HOOKS == []


def test_what_has_no_rule_is_refused(xp):
    x = xp.array(V)
    with irad.cuda.Tape():
        with pytest.raises(UnsupportedError, match="median of CuPy has no rule for a tape"):
            xp.median(x)
        xp.median(Const(x))
        with pytest.raises(UnsupportedError, match="partition of CuPy has no rule"):
            x.partition(1)
        assert bool(xp.all(x < 3.0))


def test_memory_of_something_unseen(xp):
    x, y, imported = xp.array(V), xp.zeros(4), xp.sin  # as `from cupy import sin` binds it
    with irad.cuda.Tape() as tape:
        unseen = imported(x)
        with pytest.raises(UnsupportedError, match="x was created while the tape records, by an operation"):
            square[1, 32](unseen, y)
        with pytest.raises(UnsupportedError, match="an array that add is given was created while the tape records"):
            x + unseen
        square[1, 32](Const(unseen), y)
        square[1, 32](xp.sin(x), y)  # memory of functions that are seen
        square[1, 32](xp.ones(4), y)
    assert len(tape) == 4


def test_copies_to_and_from_the_host(xp):
    x, back = xp.array(V), xp.zeros(4)
    with irad.cuda.Tape() as tape:
        host = xp.asnumpy(x * 2.0)
        with pytest.raises(UnsupportedError, match="sin of NumPy is given a host copy"):
            np.sin(host)
        back.set(host)
        out = np.zeros(4)
        (back * xp.asarray(host)).get(out=out)
        data = xp.asarray(W)
        y = back * data
    tape.backward((y, np.ones(4)), (out, np.ones(4)))
    np.testing.assert_allclose(values(tape.gradient(x)), 2.0 * W + 8.0 * V)


def test_streams_are_those_of_cupy(xp):
    x = xp.array(V)
    with irad.cuda.Tape() as tape, xp.cuda.ExternalStream(77):
        y = x * x
    assert tape._record.streams == [77]
    tape.backward((y, np.ones(4)))
    np.testing.assert_allclose(values(tape.gradient(x)), 2.0 * V)


def test_cupy_that_is_imported_in_the_block(monkeypatch):
    fake_gpu.install(monkeypatch)
    loaded = standin_cupy.modules()
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(standin_cupy.ndarray, "__module__", "cupy")
    x, y = loaded["cupy"].array(V), loaded["cupy"].zeros(4)
    with irad.cuda.Tape(), pytest.raises(UnsupportedError, match=r"import CuPy before the tape's block"):
        square[1, 32](x, y)


def test_rules_of_users(xp):
    def reverse(call, cotangent, x):
        assert call.xp is xp
        return cotangent * 3.0 * x * x

    cube = irad.cuda.rule(lambda x: x * x * x, reverse)
    x = xp.array(V)
    with irad.cuda.Tape() as tape:
        y = cube(x)
    assert len(tape) == 1
    tape.backward((y, np.ones(4)))
    np.testing.assert_allclose(values(tape.gradient(x)), 3.0 * V**2)


# --- CuPy itself, without a GPU ---------------------------------------------------------------------------------------


def test_cupy_has_what_rules_are_for():
    cupy = pytest.importorskip("cupy")

    def has(name):
        owner = cupy.ndarray if name.startswith("ndarray.") else cupy
        for part in name.removeprefix("ndarray.").split("."):
            owner = getattr(owner, part, None)
        return owner is not None

    elementwise_names = dict(elementwise._elementwise_rules())  # each library has some of these
    assert {rule.name for rule in ALL if rule.name not in elementwise_names and not has(rule.name)} <= ABSENT_IN_CUPY
    assert all(has(name) for name in (*cupy_library._BINARY.values(), *cupy_library._UNARY.values()))
    assert hasattr(cupy.cuda.MemoryHook, "malloc_postprocess")


def test_cupy_has_what_partial_derivatives_call():
    """Functions that only SciPy has occur in the derivatives of functions that only SciPy has."""
    cupy, special = pytest.importorskip("cupy"), pytest.importorskip("cupyx.scipy.special")
    assert [name for name in partials.NUMPY.values() if not hasattr(cupy, name)] == []
    absent = {name for name, called in partials.SPECIAL.items() if not hasattr(special, called)}
    for name, rule in elementwise._elementwise_rules():
        if hasattr(cupy, name) or hasattr(special, name):
            assert not absent & {each.function for each in applied(rule.partials)}, name


def test_calls_of_cupy_are_seen(monkeypatch):
    cupy = pytest.importorskip("cupy")
    memory = cupy.cuda.UnownedMemory(V.ctypes.data, V.nbytes, V, 0)
    x = cupy.ndarray(4, np.float64, cupy.cuda.MemoryPointer(memory, 0))
    seen = []

    def note(library, name, function, args, kwargs):
        seen.append((name, *kwargs))
        return args[0]

    monkeypatch.setattr(cupy_library, "_recorded", note)
    monkeypatch.setattr("irad.cuda.arrays.replaced._recorded", note)
    methods, functions = (
        dict(vars(cupy.ndarray)),
        {name: getattr(cupy, name) for name in cupy.__all__}
        if hasattr(cupy, "__all__")
        else {name: getattr(cupy, name) for name in ("add", "sum", "where")},
    )
    token = RECORDING.set(Record(current.EmulatedDevice()))
    cupy_library.METHODS_OF_ARRAYS.start()
    cupy_library.FUNCTIONS.start()
    try:
        _ = x + x, 2.0 * x, x @ x, -x, abs(x), x**2, x[1:], x.sum(), x + Const(x), Const(x) * x
        _ = cupy.sum(x), cupy.add(x, x), cupy.add.at(x, 0, 1.0), cupy.where(x, x, x), cupy.fft.fft(x)
        _ = cupy.linalg.norm(x)
        x += 1.0
        x[0] = 1.0
    finally:
        cupy_library.FUNCTIONS.stop()
        cupy_library.METHODS_OF_ARRAYS.stop()
        RECORDING.reset(token)
    names = ["add", "multiply", "matmul", "negative", "absolute", "power", "ndarray.__getitem__", "ndarray.sum", "add"]
    names += ["multiply", "sum", "add", "add.at", "where", "fft.fft", "linalg.norm"]
    assert seen == [*((name,) for name in names), ("add", "out"), ("ndarray.__setitem__",)]
    assert dict(vars(cupy.ndarray)) == methods
    assert {name: getattr(cupy, name) for name in functions} == functions
