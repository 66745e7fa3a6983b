"""The table of figures."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from bench.harness.outcome import Outcome, geometric_mean


def table_of(outcomes: Sequence[Outcome]) -> Table:
    """Times of irad and the hand-written adjoints."""
    headings = ("primal", "hand", "irad", "/hand", "/primal", "spread", "compile", "/primal")
    table = _table("One call, one thread: median CPU time in ms; compile time in s", headings)
    for o in outcomes:
        seconds = o.seconds
        primal, irad = seconds.get("primal"), seconds.get("irad")
        spread = o.own["sizes"].get(o.size, {}).get("spread", {})
        table.add_row(
            o.case.name,
            figure(primal, 1e3),
            figure(o.hand, 1e3),
            figure(irad, 1e3),
            figure(o.ratio),
            figure(irad / primal if irad and primal else None),
            f"{max(spread.values(), default=0.0):.0%}",
            figure(o.own.get("compile_seconds", {}).get("irad")),
            figure(o.compile_ratio),
        )
    table.caption = f"geometric mean of irad/hand: {figure(geometric_mean(o.ratio for o in outcomes))}"
    return table


def memory_table_of(outcomes: Sequence[Outcome]) -> Table:
    """Memory that irad's gradients keep and take, and the cost of a call that has little to do."""
    headings = ("least call, µs", "primal", "tape, MB", "peak, MB", "hand", "primal")
    table = _table("Calls with the smallest inputs; memory", headings)
    for o in outcomes:
        least, peaks = o.own["sizes"].get("small", {}).get("seconds", {}), o.own["peak_bytes"]
        table.add_row(
            o.case.name,
            figure(least.get("irad"), 1e6),
            figure(least.get("primal"), 1e6),
            figure(o.own.get("tape_bytes"), 1e-6),
            *(figure(peaks.get(name), 1e-6) for name in ("irad", "hand", "primal")),
        )
    return table


def tools_table_of(outcomes: Sequence[Outcome], tools: Sequence[str]) -> Table:
    """Time of all tools over that of the hand-written adjoint."""
    names = [*(name for name in ("hand_opt", "irad") if any(name in o.ratios for o in outcomes)), *tools]
    table = _table("Time over that of the hand-written adjoint", names)
    for o in outcomes:
        cells = ("!" if name in o.missing else figure(o.ratios.get(name), none="—") for name in names)
        table.add_row(o.case.name, *cells)
    means = (geometric_mean(o.ratios.get(name) for o in outcomes) for name in names)
    table.add_row("geometric mean", *(figure(mean, none="—") for mean in means), style="bold")
    table.caption = "— no natural formulation   ! no figures, see below"
    return table


def reasons(outcomes: Sequence[Outcome]) -> list[str]:
    """Reasons why tools have no figures, a line for each."""
    cases: dict[str, list[str]] = {}
    for o in outcomes:
        for tool, reason in o.missing.items():
            cases.setdefault(f"{tool}: {reason}", []).append(o.case.name)
    return [f"{reason} ({', '.join(names)})" for reason, names in cases.items()]


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), title=title)
    table.add_column("case", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def figure(value: float | None, unit: float = 1.0, *, none: str = "–") -> str:
    """Three digits and no more than two decimals."""
    if value is None:
        return none
    return f"{value * unit:.2f}" if abs(value * unit) < 100.0 else f"{value * unit:.0f}"
