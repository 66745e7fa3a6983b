"""The harness on its smallest inputs: every figure is there, failures are reported, installed competitors agree."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bench.__main__ import main
from bench.cases import BY_NAME, CASES
from bench.competitors import TOOLS, Tool
from bench.harness import outcome, worker
from bench.harness.machine import least_seconds
from bench.harness.outcome import Outcome, Wanted, geometric_mean
from bench.harness.processes import WorkerFailed, run_worker
from bench.harness.table import reasons, tools_table_of
from bench.harness.worker import TOOL_TOLERANCE, Request
from bench.variants import largest_error

ROOT = Path(__file__).parents[2]


def test_a_small_run(tmp_path: Path):
    file, old = tmp_path / "result.json", tmp_path / "old.json"
    old.write_text(json.dumps({"cases": [{"name": "garch", "ratio": 1e-3, "compile_ratio": None, "spread": {}}]}))
    arguments = ["garch", "--size", "small", "--rounds", "3", "--no-compile", "--output", str(file)]
    done = CliRunner().invoke(main, [*arguments, "--compare", str(old)])
    assert done.exit_code == 1
    assert "worse than before\ngarch: ratio" in done.output
    found = json.loads(file.read_text())
    [case] = found["cases"]
    assert set(case["seconds"]) == {"primal", "hand", "hand reassoc", "hand_opt", "irad"}
    assert case["ratio"] == case["ratios"]["irad"] == found["geometric_means"]["irad"]
    assert case["overhead_seconds"] == case["seconds"]  # the smallest inputs are those that were asked for
    assert case["tape_bytes"] >= 0
    assert case["calls_of_one_sided_differences"] == 5
    assert case["least_bytes"] == 8 * (4 + 9 + 4)
    assert set(case["peak_bytes"]) == set(case["seconds"])


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.name != "torch.compile"], ids=lambda tool: tool.name)
def test_competitors_agree(tool: Tool):
    if not tool.is_installed:
        pytest.skip(f"{tool.package} is not installed")
    covered = 0
    for case in CASES:
        args = case.make("small")
        prepared = tool.prepare(case, args)
        if prepared is not None:
            covered += 1
            assert largest_error(prepared.read(prepared.run()), case.hand(*args)) < TOOL_TOLERANCE, case.name
    assert covered >= 15


def test_a_competitor_that_is_wrong_is_not_timed(monkeypatch: pytest.MonkeyPatch):
    class Wrong(Tool):
        def warm_up(self):
            pass

        def prepare(self, case, args):
            value, gradients = case.hand(*args)
            return worker.Prepared(lambda: (value, tuple(1.001 * g for g in gradients)), lambda result: result)

    monkeypatch.setitem(worker.TOOLS, "wrong", Wrong("wrong", "numpy", "none"))
    figures = worker.measure(Request("garch", "wrong", ("small",), 3))
    assert figures["sizes"] == {}
    assert figures["error"]["wrong"] == pytest.approx(1e-3)
    own = {"sizes": {}, "error": {}, "peak_bytes": {}}
    wrong = Outcome(BY_NAME["garch"], "small", own, {"wrong": figures})
    assert wrong.ratios == {}
    assert wrong.wrong == ["garch: wrong is off by 1.0e-03"]


def test_nan_is_wrong():
    own = {"sizes": {}, "error": {"irad": math.nan}, "peak_bytes": {}}
    assert Outcome(BY_NAME["garch"], "small", own).wrong == ["garch: irad is off by nan"]


def test_what_ends_without_figures_is_told(monkeypatch: pytest.MonkeyPatch):
    def run(request, limit):
        if request.tool == "hand":
            return {"sizes": {}, "error": {}, "peak_bytes": {}}
        raise WorkerFailed("ended by SIGSEGV")

    monkeypatch.setattr(outcome, "run_worker", run)
    monkeypatch.setitem(outcome.TOOLS, "crashes", Tool("crashes", "numpy", "none"))
    monkeypatch.setitem(outcome.TOOLS, "absent", Tool("absent", "no_such_package", "none"))
    wanted = Wanted(tools=("crashes", "absent"), with_irad=False, with_compile_times=False)
    found = outcome.measure(BY_NAME["garch"], wanted)
    assert reasons([found]) == ["crashes: ended by SIGSEGV (garch)", "absent: no_such_package is not installed (garch)"]
    assert tools_table_of([found], wanted.tools).row_count == 2


def test_a_process_that_fails_or_hangs():
    with pytest.raises(WorkerFailed, match="KeyError: 'no such case'"):
        run_worker(Request("no such case", "irad", ("small",), 3), 60.0)
    with pytest.raises(WorkerFailed, match="took more than 0 s"):
        run_worker(Request("garch", "irad", ("small",), 3), 0.01)


def test_the_least_time():
    machine = {"bytes_per_second": 10.0, "flops_per_second": 100.0}
    assert least_seconds({"flops": 1000.0, "least_bytes": 20.0}, machine) == 10.0
    assert least_seconds({"flops": 1000.0, "least_bytes": 200.0}, machine) == 20.0
    assert least_seconds({"flops": None, "least_bytes": 200.0}, machine) is None


def test_operations_are_counted_of_cases():
    for case in CASES:
        if case.flops is not None:
            counts = [case.flops(*case.make(size)) for size in ("small", "full")]
            assert 0 < counts[0] < counts[1]


def test_pictures(tmp_path: Path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from bench.harness import plots

    ratios = {"irad": 1.5, "jax": 3.0}
    case = {
        "name": "heat",
        "ratios": ratios,
        "ratios_by_size": {"small": ratios, "full": {"irad": 1.2}},
        "seconds": {"primal": 1.0, "hand": 2.0, "hand reassoc": 1.9, "irad": 3.0},
        "flops": 1e9,
        "least_bytes": 1e6,
    }
    other = case | {"ratios": {"irad": 1.4}, "ratios_by_size": {"small": {"irad": 1.4}}}
    report = plots.merged([{"cases": [case]}, {"cases": [other]}])
    [both] = report["cases"]
    assert both["ratios"] == {"irad": 1.4, "jax": 3.0}
    report["machine"] = {"bytes_per_second": 1e10, "flops_per_second": 1e10}
    drawn = plots.draw(report, tmp_path)
    assert [file.name for file in drawn] == ["ratios.png", "scaling.png", "ceilings.png"]
    assert all(file.stat().st_size > 1000 for file in drawn)
    assert np.isfinite(least_seconds(both, report["machine"]))
    plots.draw_overview(report, tmp_path / "overview.svg")
    text = (tmp_path / "overview.svg").read_text("utf-8")
    assert "JAX" in text
    assert "PyTorch" not in text, "a tool without figures has no row"


def test_the_chart_shows_what_the_table_says():
    """The table of bench/README, the figures that the chart is drawn from, and its description on both front pages."""
    names = {"best": "hand_opt", "irad": "irad", "JAX": "jax", "PyTorch": "torch", "torch.compile": "torch.compile"}
    names |= {"Autograd": "autograd", "Enzyme": "enzyme", "fast-math": "enzyme.fast", "libmvec": "enzyme.libmvec"}
    table = (ROOT / "bench" / "README.md").read_text("utf-8").partition("| case | by hand | best |")
    head, _, *rows = (table[1] + table[2].partition("\n\n")[0]).splitlines()
    columns = [names.get(each.strip()) for each in head.strip("|").split("|")]
    shown = {}
    for row in rows[:-1]:
        case, *cells = (each.strip() for each in row.strip("|").split("|"))
        pairs = zip(columns[1:], cells, strict=True)
        shown[case.strip("`")] = {name: float(c.replace(",", "")) for name, c in pairs if name and c not in "—!"}
    cases = json.loads((ROOT / "bench" / "figures.json").read_text("utf-8"))["cases"]
    assert {case["name"]: case["ratios"] for case in cases} == shown

    charted = {"irad": "irad", "JAX": "jax", "Enzyme": "enzyme", "torch.compile": "torch.compile"}
    charted |= {"PyTorch": "torch", "Autograd": "autograd"}
    common = [each for each in shown.values() if set(charted.values()) <= each.keys()]
    means = {label: geometric_mean(each[tool] for each in common) for label, tool in charted.items()}
    described = ", ".join(f"{label} {mean:.2g}" for label, mean in means.items() if mean)
    for page in ("README.md", "docs/README.md"):
        assert f"Geometric means over ten programs: {described} times" in (ROOT / page).read_text("utf-8"), page
    assert len(common) == 10
