"""The bridge to Dask: sums over partitions, to the bit, on local schedulers and on workers in other processes."""

from __future__ import annotations

import importlib
import os
import signal
import time
import traceback
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit
from numba.core import event
from scipy.optimize import minimize

import irad
from irad import data

dask = pytest.importorskip("dask", reason="Dask is an extra: nox -s bridges")
distributed = pytest.importorskip("distributed", reason="distributed is an extra: nox -s bridges")

import dask.array as da  # noqa: E402 - there may be no Dask
import dask.bag as db  # noqa: E402
from dask import delayed  # noqa: E402
from dask.callbacks import Callback  # noqa: E402
from dask.delayed import Delayed  # noqa: E402
from distributed.comm.tcp import TCP  # noqa: E402

import irad.interop.dask as bridge  # noqa: E402

LOCAL = ("synchronous", "threads")


@njit(nogil=True)
def robust(weights, features, targets):
    """A smooth loss whose sum depends on the order of its terms in the last bits."""
    total = 0.0
    for i in range(targets.size):
        residual = -targets[i]
        for j in range(weights.size):
            residual += features[i, j] * weights[j]
        total += np.log(1.0 + residual * residual)
    return total


def gradient_of_robust(weights, features, targets):
    residual = features @ weights - targets
    return features.T @ (2.0 * residual / (1.0 + residual**2))


def hessian_of_robust(weights, features, targets):
    square = (features @ weights - targets) ** 2
    return features.T @ ((2.0 * (1.0 - square) / (1.0 + square) ** 2)[:, None] * features)


ROWS, COLUMNS, BLOCK = 1000, 5, 77
_generator = np.random.default_rng(3)
FEATURES, TARGETS = _generator.standard_normal((ROWS, COLUMNS)), _generator.standard_normal(ROWS)
WEIGHTS, DIRECTION = _generator.standard_normal(COLUMNS), _generator.standard_normal(COLUMNS)


def arrays() -> tuple[Any, Any]:
    return da.from_array(FEATURES, chunks=(BLOCK, COLUMNS)), da.from_array(TARGETS, chunks=BLOCK)


def bits(result: Any) -> tuple[str, bytes]:
    value, gradient = result
    return float(value).hex(), gradient.tobytes()


def by_the_tree() -> Any:
    """Value and gradient by irad alone, added in the order that is promised."""
    found = irad.value_and_grad(robust, options=irad.Options(speculative=False))
    row = [found(WEIGHTS, FEATURES[i : i + BLOCK], TARGETS[i : i + BLOCK]) for i in range(0, ROWS, BLOCK)]
    while len(row) > 1:
        pairs = [row[i : i + 2] for i in range(0, len(row), 2)]
        row = [(each[0][0] + each[1][0], each[0][1] + each[1][1]) if len(each) == 2 else each[0] for each in pairs]
    return row[0]


# ------------------------------------------------------------------------------------------------ results


@pytest.mark.parametrize("scheduler", LOCAL)
def test_value_and_gradient(scheduler):
    with dask.config.set(scheduler=scheduler):
        found = bridge.value_and_grad(robust)(WEIGHTS, *arrays())
    assert bits(found) == bits(by_the_tree())
    assert found[0] == pytest.approx(robust(WEIGHTS, FEATURES, TARGETS), rel=1e-13)
    np.testing.assert_allclose(found[1], gradient_of_robust(WEIGHTS, FEATURES, TARGETS), rtol=1e-11)


def test_hessian_products():
    found = bridge.hvp(robust)(WEIGHTS, DIRECTION, *arrays())
    np.testing.assert_allclose(found, hessian_of_robust(WEIGHTS, FEATURES, TARGETS) @ DIRECTION, rtol=1e-11)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_any_number_of_partitions(count):
    @njit
    def loss(x, block):
        return x * block.sum()

    blocks = [delayed(np.full(2, 10.0**i)) for i in range(count)]
    total = 2.0 * sum(10.0**i for i in range(count))
    assert bridge.value_and_grad(loss)(2.0, blocks) == (2.0 * total, total)


class Model(NamedTuple):
    slope: float
    offsets: np.ndarray


def of_dictionary(params, block):
    return params["slope"] * np.sum(block**2) + np.sum(params["offsets"]) * block.size


@njit
def of_named_tuple(params, block):
    return params.slope * np.sum(block**2) + np.sum(params.offsets) * block.size


@pytest.mark.parametrize("kind", [dict, Model])
def test_structures(kind):
    params = kind(slope=2.0, offsets=np.array([1.0, 3.0]))
    x = np.arange(6.0)
    loss = of_dictionary if kind is dict else of_named_tuple
    value, gradient = bridge.value_and_grad(loss)(params, da.from_array(x, chunks=4))
    expected = kind(slope=np.sum(x**2), offsets=np.full(2, 6.0))
    assert value == 2.0 * np.sum(x**2) + 4.0 * 6
    assert type(gradient) is kind
    assert data.to_vec(gradient).tolist() == data.to_vec(expected).tolist()


def test_several_arguments_and_positions_and_keywords():
    @njit
    def loss(block, x, factor, power, pair=(1.0, 1.0)):
        return np.sum(block * x**power) * factor * pair[0]

    blocks = da.arange(1.0, 5.0, chunks=3)
    value, (dx, dfactor) = bridge.value_and_grad(loss, argnums=(1, -3))(blocks, 2.0, 3.0, power=2)
    assert (value, dx, dfactor) == (120.0, 120.0, 40.0)
    product = bridge.hvp(loss, (1, 2))(blocks, 2.0, 3.0, (1.0, 1.0), 2, pair=(2.0, 0.0))
    assert product == (2.0 * (60.0 + 40.0), 2.0 * 40.0)


def test_data_in_structures_and_shared_values():
    @njit
    def loss(x, samples, scale, shift):
        return np.sum(samples[0] * x + samples[1][0] * samples[1][1]) * scale + shift

    a, b = da.arange(4.0, chunks=2), da.ones(4, chunks=2)
    args = 3.0, (a, (b, 2.0)), delayed(10.0), b.sum()
    assert bridge.value_and_grad(loss)(*args) == ((18.0 + 8.0) * 10.0 + 2 * 4.0, 60.0)
    assert bridge.value_and_grad(loss)(delayed(3.0), *args[1:]) == ((18.0 + 8.0) * 10.0 + 2 * 4.0, 60.0)


def test_bags():
    @njit
    def of_numbers(x, block):
        return np.sum(block * x)

    @njit
    def of_arrays(x, items):
        total = 0.0
        for each in items:
            total += np.sum(each) * x
        return total

    numbers = db.from_sequence([1, 2, 3, 4, 5], npartitions=3)
    assert bridge.value_and_grad(of_numbers)(2.0, numbers) == (30.0, 15.0)
    assert bridge.value_and_grad(of_numbers)(2.0, numbers.map(float)) == (30.0, 15.0)
    assert bridge.value_and_grad(of_numbers)(2.0, numbers.filter(lambda each: each > 3)) == (18.0, 9.0)
    assert bridge.value_and_grad(of_numbers)(2.0, numbers.map_partitions(lambda part: np.array(list(part)))) == (
        30.0,
        15.0,
    )
    ragged = db.from_sequence([np.ones(i) for i in range(1, 6)], npartitions=2)
    assert bridge.value_and_grad(of_arrays)(2.0, ragged) == (30.0, 15.0)
    with pytest.raises(irad.SignatureError, match="all partitions of a bag are empty"):
        bridge.value_and_grad(of_numbers)(2.0, numbers.filter(lambda each: each > 9))


def test_arrays_of_unknown_length_and_empty_blocks():
    @njit
    def loss(x, a, b):
        return np.sum(a * b) * x

    a, b = da.arange(6.0, chunks=2), da.ones(6, chunks=2)
    kept = a > 3.0
    assert bridge.value_and_grad(loss)(2.0, a[kept], b[kept]) == (18.0, 9.0)


def test_single_precision():
    @njit
    def loss(x, block):
        return np.sum(block * x[0])

    value, gradient = bridge.value_and_grad(loss)(np.ones(1, np.float32), da.ones(4, chunks=2, dtype=np.float32))
    assert gradient.dtype == np.float32
    assert (value, gradient[0]) == (4.0, 4.0)


def test_lazy_results():
    lazy = bridge.value_and_grad(robust, compute=False)(WEIGHTS, *arrays())
    value, gradient = lazy
    assert isinstance(gradient, Delayed)
    assert bits(dask.compute(value, gradient)) == bits(lazy.compute()) == bits(by_the_tree())
    step = delayed(np.subtract)(WEIGHTS, 1e-3 * gradient)
    assert bridge.value_and_grad(robust)(step, *arrays())[0] < value.compute()


def test_bits_do_not_depend_on_what_was_nan_before():
    @njit
    def loss(x, block):
        return np.sum(np.sqrt(block * x))

    derivative = bridge.value_and_grad(loss)
    blocks = da.random.default_rng(0).random(100, chunks=20)
    first = derivative(2.0, blocks)
    with np.errstate(all="ignore"):
        assert np.isnan(derivative(2.0, -blocks)[1])
    assert derivative(2.0, blocks) == first


# ------------------------------------------------------------------------------------------------ refusals


@njit
def writes(x, block):
    block[0] = x
    return block.sum()


@njit
def raises(x, block):
    if block[0] > 3.0:
        raise ValueError("too large", block[0])
    return x * block[0]


X = da.ones((4, 3), chunks=(2, 3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f: f(WEIGHTS, FEATURES, TARGETS), "no argument is split into partitions"),
        (lambda f: f(WEIGHTS, X.rechunk({1: 2}), X[:, 0]), "has \\(2, 2\\) blocks"),
        (lambda f: f(WEIGHTS, X, da.ones(4, chunks=1)), "blocks of 2, 2 and of 1, 1, 1, 1 rows"),
        (lambda f: f(WEIGHTS, X, [delayed(1.0)] * 3), "2 and 3 partitions"),
        (lambda f: f(WEIGHTS, X, [delayed(1.0), 2.0]), "a list mixes delayed values and others"),
        (lambda f: f(X, X, X[:, 0]), "argument 0 .* is split into partitions"),
        (lambda f: f(WEIGHTS, X, db.from_sequence([1]).sum()), "an argument is an Item of Dask"),
    ],
)
def test_wrong_arguments(call, words):
    with pytest.raises(irad.SignatureError, match=words) as found:
        call(bridge.value_and_grad(robust))
    assert found.value.location.file == __file__


def test_wrong_positions_and_vectors():
    with pytest.raises(irad.SignatureError, match="argument 3"):
        bridge.value_and_grad(robust, argnums=3)
    with pytest.raises(irad.SignatureError, match="there is no vector"):
        bridge.hvp(robust)(WEIGHTS)
    with pytest.raises(irad.SignatureError, match=r"the vector .* is split"):
        bridge.hvp(robust)(WEIGHTS, X, X, X[:, 0])
    with pytest.raises(irad.SignatureError):
        bridge.value_and_grad("robust")


def test_blocks_cannot_be_written_to():
    with pytest.raises(irad.BackendError, match="writes to block, a read-only array") as found:
        bridge.value_and_grad(writes)(1.0, da.ones(4, chunks=2))
    assert found.value.location.file == __file__
    ones = np.ones(4)
    bridge.value_and_grad(robust)(WEIGHTS, *arrays())
    assert ones.flags.writeable
    assert WEIGHTS.flags.writeable
    assert FEATURES.flags.writeable


def line_of(function: Any, text: str) -> int:
    code = function.py_func.__code__
    lines = Path(code.co_filename).read_text("utf-8").splitlines()
    return next(i for i in range(code.co_firstlineno, len(lines)) if text in lines[i - 1])


def check_exception(error: ValueError) -> None:
    assert error.args == ("too large", 5.0)
    frames = traceback.extract_tb(error.__traceback__)
    assert (frames[-1].filename, frames[-1].lineno) == (__file__, line_of(raises, "raise ValueError"))


@pytest.mark.parametrize("scheduler", LOCAL)
def test_exceptions_of_the_loss(scheduler):
    blocks = [delayed(np.array([number])) for number in (1.0, 5.0, 2.0)]
    with dask.config.set(scheduler=scheduler), pytest.raises(ValueError, match="too large") as found:
        bridge.value_and_grad(raises)(1.0, blocks)
    check_exception(found.value)


# ------------------------------------------------------------------------------------------------ tasks


class Seen(Callback):
    """The names of the tasks that Dask's own progress bar counts."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def _posttask(self, key, result, dsk, state, worker_id):
        self.names.append(dask.utils.key_split(key))


def test_progress_bars_see_tasks_with_names():
    with Seen() as seen, dask.config.set(scheduler="synchronous"):
        bridge.value_and_grad(robust)(WEIGHTS, *arrays())
    count = -(-ROWS // BLOCK)
    assert seen.names.count("value_and_grad_robust_partition") == count
    assert seen.names.count("value_and_grad_robust_sum") == count - 1
    assert seen.names.count("value_and_grad_robust") == 1


# ------------------------------------------------------------------------------------------------ workers


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory):
    """A client of two workers, each a process with one thread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


def listen(dask_worker):
    dask_worker.irad_compiled = event.RecordingListener()
    event.register("numba:compile", dask_worker.irad_compiled)


def compiled(dask_worker):
    return [each.data["dispatcher"].py_func.__name__ for _, each in dask_worker.irad_compiled.buffer if each.is_start]


def test_workers(client):
    client.run(listen)
    features, targets = dask.persist(*arrays())
    derivative = bridge.value_and_grad(robust)
    expected = bits(by_the_tree())
    with distributed.get_task_stream(client) as stream:
        assert bits(derivative(WEIGHTS, features, targets)) == expected
    tasks = [each for each in stream.data if dask.utils.key_split(each["key"]) == "value_and_grad_robust_partition"]
    assert len(tasks) == -(-ROWS // BLOCK)
    assert len({each["worker"] for each in tasks}) == 2
    names = [name for each in client.run(compiled).values() for name in each]
    assert names.count("value_and_grad_robust") == 1  # by one of them; the other one has loaded it
    with dask.annotate(workers=[next(iter(client.run(os.getpid)))], allow_other_workers=False):
        assert bits(derivative(WEIGHTS, *arrays())) == expected
    for scheduler in LOCAL:
        with dask.config.set(scheduler=scheduler):
            assert bits(derivative(WEIGHTS, *arrays())) == expected
    found = bridge.hvp(robust)(WEIGHTS, DIRECTION, features, targets)
    np.testing.assert_allclose(found, hessian_of_robust(WEIGHTS, FEATURES, TARGETS) @ DIRECTION, rtol=1e-11)


def test_futures_and_large_arguments(client, monkeypatch):
    ends = range(BLOCK, ROWS + BLOCK, BLOCK)
    features = client.scatter([FEATURES[i - BLOCK : i] for i in ends])
    targets = client.scatter([TARGETS[i - BLOCK : i] for i in ends])
    derivative = bridge.value_and_grad(robust)
    expected = bits(by_the_tree())
    assert bits(derivative(WEIGHTS, features, targets)) == expected
    assert bits(derivative(client.scatter(WEIGHTS), features, targets)) == expected
    monkeypatch.setattr(bridge, "_LARGE", 0)
    assert bits(derivative(WEIGHTS, features, targets)) == expected


def test_exceptions_reach_the_client(client):
    blocks = [delayed(np.array([number])) for number in (1.0, 5.0, 2.0)]
    with pytest.raises(ValueError, match="too large") as found:
        bridge.value_and_grad(raises)(1.0, blocks)
    check_exception(found.value)
    with pytest.raises(irad.BackendError, match="writes to block") as refused:
        bridge.value_and_grad(writes)(1.0, blocks)
    assert refused.value.location.file == __file__


def test_progress_of_workers(client, capsys):
    lazy = bridge.value_and_grad(robust, compute=False)(WEIGHTS, *arrays())
    future = client.compute(lazy)
    distributed.progress(future, notebook=False)
    assert bits(future.result()) == bits(by_the_tree())
    assert "100%" in capsys.readouterr().out


def loaded(block: int, folder: str, victims: list[int]) -> tuple[Any, Any]:
    """A block of the data. The first time that the fifth block is loaded, workers are killed, this one among them."""
    mark = Path(folder, "mark")
    if block == 5 and not mark.exists():
        mark.touch()
        for each in (*(victim for victim in victims if victim != os.getpid()), os.getpid()):
            os.kill(each, signal.SIGKILL)
    rows = slice(block * BLOCK, (block + 1) * BLOCK)
    return FEATURES[rows], TARGETS[rows]


@njit
def of_pair(weights, pair):
    return robust(weights, pair[0], pair[1])


def check_deaths(client: Any, folder: Path, victims: list[int]) -> None:
    before = set(client.run(os.getpid).values())
    blocks = [delayed(loaded)(i, str(folder), victims) for i in range(-(-ROWS // BLOCK))]
    assert bits(bridge.value_and_grad(of_pair)(WEIGHTS, blocks)) == bits(by_the_tree())
    assert (folder / "mark").exists()
    client.wait_for_workers(1, timeout=60)
    assert set(client.run(os.getpid).values()) != before


def test_a_worker_that_is_killed_changes_nothing(client, tmp_path):
    check_deaths(client, tmp_path, [])


@pytest.mark.slow
def test_arguments_are_sent_again_if_all_workers_are_killed(client, tmp_path, monkeypatch):
    monkeypatch.setattr(bridge, "_LARGE", 0)
    sent: list[Any] = []
    scatter = client.scatter

    def noted(*args: Any, **keywords: Any) -> Any:
        sent.append(args)
        return scatter(*args, **keywords)

    monkeypatch.setattr(client, "scatter", noted)
    check_deaths(client, tmp_path, list(client.run(os.getpid).values()))
    assert len(sent) == 2


SENT = [0]


def count_bytes() -> None:
    """Counts what this process sends from now on."""
    write = TCP.write

    async def counted(self: Any, *args: Any, **keywords: Any) -> Any:
        count = await write(self, *args, **keywords)
        module.SENT[0] += count or 0
        return count

    module: Any = importlib.import_module(__name__)
    TCP.write = counted


def bytes_sent() -> int:
    return importlib.import_module(__name__).SENT[0]


@pytest.mark.slow
def test_a_fit_of_a_million_rows(monkeypatch):
    """L-BFGS on two workers, on one, and in this process: the same fit; next to nothing goes over the wire."""
    monkeypatch.setattr(TCP, "write", TCP.write)  # undone at the end
    generator, chunks = da.random.default_rng(0), 50_000
    rows, truth = 10**6, np.arange(10.0)
    features = generator.standard_normal((rows, 10), chunks=(chunks, 10))
    targets = features @ truth + generator.standard_t(3, size=rows, chunks=chunks)
    derivative, fits, figures = bridge.value_and_grad(robust), [], {}
    for count in (2, 1):
        with (
            distributed.LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as cluster,
            distributed.Client(cluster) as client,
        ):
            x, y = dask.persist(features, targets)
            distributed.wait([x, y])
            derivative(np.zeros(10), x, y)
            if count == 2:
                count_bytes()
                client.run(count_bytes)
            before, started = bytes_sent(), time.perf_counter()
            fits.append(minimize(derivative, np.zeros(10), (x, y), jac=True, method="L-BFGS-B"))
            seconds = (time.perf_counter() - started) / fits[-1].nfev
            figures[f"{count} workers"] = f"{seconds:.3f} s an evaluation"
            if count == 2:
                sent = bytes_sent() - before + sum(client.run(bytes_sent).values())
                figures["sent"] = f"{sent / fits[-1].nfev / 1000:.0f} kB an evaluation"
                assert sent / fits[-1].nfev < 0.01 * (x.nbytes + y.nbytes)
                args = dask.compute(x, y)
    serial, started = irad.value_and_grad(robust), time.perf_counter()
    fits.append(minimize(serial, np.zeros(10), args, jac=True, method="L-BFGS-B"))
    figures["serial"] = f"{(time.perf_counter() - started) / fits[-1].nfev:.3f} s an evaluation"
    print(figures)
    assert fits[0].x.tobytes() == fits[1].x.tobytes()
    np.testing.assert_allclose(fits[0].x, fits[2].x, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(fits[0].x, truth, atol=0.01)
