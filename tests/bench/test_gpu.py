"""The reverse kernels of the benchmarks, written by hand, and irad's give the same; on the executor."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import irad.cuda
from bench.gpu import checklist
from bench.gpu.__main__ import main
from bench.gpu.cases import CASES
from bench.gpu.clock import take_times
from bench.gpu.derivative import arrays_of, primal, reverse
from irad.backend.cuda.ptx import compile_ptx
from irad.backend.executor.kernel import load


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_derivative_by_hand_is_that_of_irad(case):
    launch = case.launch(case.small)
    by_hand, by_irad, plain = (arrays_of(case, case.small, np.copy) for _ in range(3))
    with irad.cuda.executor():
        case.hand(launch, by_hand)
        reverse(case, launch, by_irad)
        primal(case, launch, plain)
    for name in case.active:
        scale = np.abs(by_hand[f"d{name}"]).max()
        assert scale > 0.0
        np.testing.assert_allclose(by_irad[f"d{name}"], by_hand[f"d{name}"], rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(by_irad[case.output], plain[case.output], rtol=1e-12)
    assert np.abs(plain[case.output]).max() > 0.0


def test_the_table_on_the_executor(tmp_path):
    file = tmp_path / "gpu.json"
    done = CliRunner().invoke(main, ["stencil", "--small", "--executor", "--rounds", "1", "--output", str(file)])
    assert done.exit_code == 0, done.output
    found = json.loads(file.read_text())
    [row] = found["rows"]
    assert found["device"] == "irad.cuda.executor"
    assert set(row["times"]) == {"primal", "hand", "irad"}
    assert row["ratio"] == row["times"]["irad"]["median"] / row["times"]["hand"]["median"]
    assert row["error"] < 1e-12


def test_times_are_medians_without_the_first_round():
    class Counter:
        def __init__(self):
            self.count = 0

        def milliseconds(self, run):
            run()
            self.count += 1
            return float(self.count)

    calls = []
    found = take_times(Counter(), {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 3)
    assert calls == ["a", "b"] * 4
    assert found["a"].median == 5.0  # of 3, 5, 7
    assert found["b"].median == 6.0


def test_a_step_that_fails_does_not_stop_the_others():
    python = sys.executable
    todo = [
        checklist.Step("bad", (python, "-c", "print('so far'); raise SystemExit(3)")),
        checklist.Step("missing program", ("/does/not/exist",)),
        checklist.Step("slow", (python, "-c", "import time; time.sleep(60)"), limit=0.5),
        checklist.Step("not installed", ()),
        checklist.Step("nothing to do", (python, "-c", f"raise SystemExit({checklist.NO_GPU})")),
        checklist.Step("good", (python, "-c", "print('well')")),
    ]
    said = []
    outcomes = list(checklist.run_steps(todo, said.append))
    assert [outcome.result.partition(" ")[0] for outcome in outcomes] == [
        *("failed", "failed", "failed", "skipped", "skipped", "done"),
    ]
    assert "so far" in outcomes[0].output
    assert "well" in "\n".join(said)


def test_no_step_begins_when_the_time_is_up():
    """One step that prints, and is cut off in the middle; what it has printed is kept."""
    slow = (sys.executable, "-c", "import time; print('so far', flush=True); time.sleep(60)")
    found = list(checklist.run_steps([checklist.Step(name, slow) for name in "ab"], lambda text: None, seconds=3.0))
    assert [outcome.result for outcome in found] == ["failed (out of time)", "skipped"]
    assert [outcome.output for outcome in found] == ["so far", "the time was up"]


def test_the_steps_are_in_order():
    names = [step.name for step in checklist.steps()]
    assert names[0] == "versions"
    assert names[-1] == "timings"
    assert names.index("limits of the hardware") < names.index("arrays and streams of Numba")
    assert names.index("tests") < names.index("compute-sanitizer memcheck") < names.index("compute-sanitizer racecheck")


def test_the_text_that_is_launched_first():
    ptx = compile_ptx(checklist.doubling_kernel())
    assert ".entry double_all(" in ptx
    x = np.arange(64.0)
    kernel = load(checklist.doubling_kernel())
    kernel.run((2, 1, 1), (32, 1, 1), [x.ctypes.data])
    np.testing.assert_array_equal(x, 2.0 * np.arange(64.0))


def test_comparing_arrays_of_another_place():
    """What the steps for Numba and CuPy do, with the executor in the place of the GPU."""
    with irad.cuda.executor():
        checklist.compare(np.copy, np.asarray, (0,))
        with pytest.raises(AssertionError):
            checklist.compare(np.copy, lambda array: np.asarray(array) + 1.0, (0,))
