"""Pictures of result files: ``python -m bench.harness.plots RESULT.json... FOLDER``.

``python -m bench.harness.plots bench/figures.json docs/images/speed.svg`` draws the chart of the front page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final, get_args

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

from bench.case import Size
from bench.harness.machine import least_seconds
from bench.harness.outcome import geometric_mean
from bench.harness.processes import run_ceilings

STYLES: Final = {
    "irad": ("#d62728", "o"),
    "hand_opt": ("#444444", "|"),
    "jax": ("#1f77b4", "s"),
    "torch": ("#ff7f0e", "^"),
    "torch.compile": ("#8c564b", "v"),
    "autograd": ("#2ca02c", "D"),
    "enzyme": ("#9467bd", "P"),
    "enzyme.shapes": ("#8c6bb1", "X"),
    "enzyme.fast": ("#c5b0d5", "p"),
    "enzyme.libmvec": ("#5b3a86", "*"),
}
NAMES: Final = {
    "irad": "irad",
    "jax": "JAX",
    "enzyme": "Enzyme (C++)",
    "torch": "PyTorch",
    "torch.compile": "torch.compile",
    "autograd": "Autograd",
}
"""The tools of the chart on the front page."""
OWN: Final = {"primal": ("#aaaaaa", "o"), "hand": ("black", "x")} | {n: STYLES[n] for n in ("hand_opt", "irad")}


def draw(report: dict[str, Any], folder: Path) -> list[Path]:
    """Draws what the result file has figures for, and returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, picture in (("ratios", _ratios), ("scaling", _scaling), ("ceilings", _ceilings)):
        figure = picture(report)
        if figure is not None:
            drawn.append(folder / f"{name}.png")
            figure.savefig(drawn[-1], dpi=120, bbox_inches="tight")
            plt.close(figure)
    return drawn


def draw_overview(report: dict[str, Any], file: Path) -> None:
    """Draws the geometric mean of each tool over the cases that all tools have, and a dot for each case."""
    tools = {name: label for name, label in NAMES.items() if any(name in case["ratios"] for case in report["cases"])}
    cases = [case["ratios"] for case in report["cases"] if tools.keys() <= case["ratios"].keys()]
    means = {name: geometric_mean(ratios[name] for ratios in cases) or 1.0 for name in tools}
    order = sorted(tools, key=lambda name: -means[name])
    with plt.rc_context({"svg.hashsalt": "irad", "svg.fonttype": "none"}):
        figure, axes = plt.subplots(figsize=(7.5, 0.9 + 0.36 * len(order)), layout="constrained")
        for row, name in enumerate(order):
            colour = STYLES[name][0] if name == "irad" else "#5b6770"
            dots = [ratios[name] for ratios in cases]
            axes.scatter(dots, [row] * len(dots), s=14, color=colour, alpha=0.35, linewidths=0)
            axes.scatter([means[name]], [row], s=90, color=colour, zorder=3)
            place = (means[name], row)
            axes.annotate(f"{means[name]:.2g}", place, (0, 7), textcoords="offset points", ha="center", fontsize=8)
        axes.axvline(1.0, color="black", linewidth=1.0)
        axes.annotate("by hand", (1.0, 1.0), (3, -2), xycoords=("data", "axes fraction"), textcoords="offset points",
                      va="top", fontsize=8)  # fmt: skip
        axes.set_xscale("log")
        axes.margins(y=0.2)
        axes.grid(axis="x", color="#e5e5e5", zorder=0)
        axes.set_axisbelow(True)
        axes.set_xticks(ticks := [0.25, 0.5, 1, 2, 5, 10, 20, 50], [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_yticks(range(len(order)), [tools[name] for name in order])
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel("time of value and gradient over that of a hand-written adjoint; left is faster", fontsize=9)
        figure.savefig(file, metadata={"Date": None})
        plt.close(figure)


def merged(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """One report of several; a later one has the last word about a case, but keeps the ratios of other tools."""
    cases: dict[str, dict[str, Any]] = {}
    for report in reports:
        for case in report["cases"]:
            before = cases.get(case["name"], {"ratios": {}, "ratios_by_size": {}})
            sizes = before["ratios_by_size"] | case.get("ratios_by_size", {})
            by_size = {size: before["ratios_by_size"].get(size, {}) | found for size, found in sizes.items()}
            cases[case["name"]] = case | {"ratios": before["ratios"] | case["ratios"], "ratios_by_size": by_size}
    return reports[-1] | {"cases": list(cases.values())}


def _ratios(report: dict[str, Any]) -> Any:
    cases = report["cases"]
    figure, axes = plt.subplots(figsize=(8.0, 1.2 + 0.32 * len(cases)))
    for tool, (colour, marker) in STYLES.items():
        points = [(case["ratios"][tool], row) for row, case in enumerate(cases) if tool in case["ratios"]]
        if points:
            axes.scatter(*zip(*points, strict=True), s=_area(marker), c=colour, marker=marker, label=tool, zorder=3)
    axes.axvline(1.0, color="black", linewidth=1.0)
    axes.set_xscale("log")
    axes.set_yticks(range(len(cases)), [case["name"] for case in cases])
    axes.invert_yaxis()
    axes.grid(color="#dddddd", zorder=0)
    axes.set_xlabel("time over that of the hand-written adjoint (CPU time, one thread); left is faster")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return figure


def _scaling(report: dict[str, Any]) -> Any:
    """A panel for each case that was measured with several sizes."""
    cases = [case for case in report["cases"] if len(case["ratios_by_size"]) > 1]
    order = [size for size in get_args(Size) if any(size in case["ratios_by_size"] for case in cases)]
    if not cases:
        return None
    columns = min(4, len(cases))
    rows = -(-len(cases) // columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(3.0 * columns, 2.3 * rows), sharex=True, sharey=True, squeeze=False
    )
    for panel in panels.flat[len(cases) :]:
        panel.set_visible(False)
    for panel, case in zip(panels.flat, cases, strict=False):
        found = case["ratios_by_size"]
        for tool, (colour, marker) in STYLES.items():
            points = [(order.index(s), found[s][tool]) for s in order if tool in found.get(s, {})]
            if points:
                panel.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=4, label=tool)
        panel.axhline(1.0, color="black", linewidth=0.8)
        panel.set_yscale("log")
        panel.set_xticks(range(len(order)), order)
        panel.set_title(case["name"], fontsize=9)
        panel.grid(color="#dddddd")
    pairs = [pair for panel in panels.flat for pair in zip(*panel.get_legend_handles_labels(), strict=True)]
    labels = {label: line for line, label in pairs}
    figure.legend(labels.values(), labels.keys(), loc="upper center", ncols=7, frameon=False, bbox_to_anchor=(0.5, 1.0))
    figure.supylabel("time over that of the hand-written adjoint", fontsize=9)
    figure.tight_layout(rect=(0.0, 0.0, 1.0, 0.96 if rows > 1 else 0.85))
    return figure


def _ceilings(report: dict[str, Any]) -> Any:
    """Times over the least that the machine's bandwidth and arithmetic allow."""
    machine = report.get("machine")
    cases = [case for case in report["cases"] if machine and least_seconds(case, machine)]
    if not machine or not cases:
        return None
    figure, axes = plt.subplots(figsize=(8.0, 1.2 + 0.32 * len(cases)))
    for name, (colour, marker) in OWN.items():
        points = [
            (_best(case, name) / least, row)
            for row, case in enumerate(cases)
            if name in case["seconds"] and (least := least_seconds(case, machine))
        ]
        if points:
            axes.scatter(*zip(*points, strict=True), s=_area(marker), c=colour, marker=marker, label=name, zorder=3)
    axes.axvline(1.0, color="black", linewidth=1.0)
    axes.set_xscale("log")
    axes.set_yticks(range(len(cases)), [case["name"] for case in cases])
    axes.invert_yaxis()
    axes.grid(color="#dddddd", zorder=0)
    speed = f"{machine['bytes_per_second'] / 1e9:.1f} GB/s, {machine['flops_per_second'] / 1e9:.1f} GFLOP/s"
    axes.set_xlabel(f"time over the least that the machine allows ({speed})")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return figure


def _area(marker: str) -> int:
    return 110 if marker == "|" else 36


def _best(case: dict[str, Any], name: str) -> float:
    return float(min(case["seconds"][variant] for variant in (name, f"{name} reassoc") if variant in case["seconds"]))


if __name__ == "__main__":
    *results, target = map(Path, sys.argv[1:])
    everything = merged([json.loads(result.read_text()) for result in results])
    if target.suffix == ".svg":
        draw_overview(everything, target)
    else:
        everything.setdefault("machine", run_ceilings())
        print(*draw(everything, target), sep="\n")
