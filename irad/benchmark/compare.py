"""Compares two results of the same measurement.

Seconds of two machines, or of one at two times, are not comparable; ratios of runs that took turns are, within their
spread, and so are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

LIMITS: Final[Mapping[str, float]] = {
    "ratio": 0.10,
    "compile_ratio": 0.25,  # from one sample
    "tape_bytes": 0.01,
    "peak_bytes": 0.25,  # pages, and what the allocator does with them
}
"""By the first word of a figure's name: by what part it may grow. The spread of both results is added for ratios."""


@dataclass(frozen=True)
class Change:
    """A figure in two results.

    Attributes:
        figure: its name.
        old: before.
        new: now.
        allowed: from which value on it is a regression.
    """

    figure: str
    old: float
    new: float
    allowed: float

    @property
    def is_regression(self) -> bool:
        """True if it got worse by more than its uncertainty."""
        return self.new > self.allowed

    def __str__(self) -> str:
        return f"{self.figure}: {self.new:.4g} in place of {self.old:.4g}, allowed {self.allowed:.4g}"


def figures_of(result: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a result of `irad bench --json` that can be compared, by name, as "ratio to hand"."""
    found = {f"ratio to {name}": value for name, value in _by_name(result.get("ratio")).items()}
    times = _by_name(result.get("compile_seconds"))
    if times.get("primal") and "gradient" in times:
        found["compile_ratio"] = times["gradient"] / times["primal"]
    found["tape_bytes"] = result.get("tape_bytes")
    found["peak_bytes"] = _by_name(result.get("peak_bytes")).get("gradient")
    return {name: float(value) for name, value in found.items() if value is not None}


def changes(old: Mapping[str, float], new: Mapping[str, float], spread: float) -> list[Change]:
    """The figures that both results have.

    Args:
        old: figures by name, whose first word is one of `LIMITS`.
        new: the same, now.
        spread: of the timings of both results, summed.
    """
    found = []
    for name in old.keys() & new.keys():
        kind = name.partition(" ")[0]
        limit = LIMITS[kind] + (spread if kind == "ratio" else 0.0)
        found.append(Change(name, old[name], new[name], old[name] * (1.0 + limit)))
    return sorted(found, key=lambda change: change.figure)


def spread_of(result: Mapping[str, Any]) -> float:
    """The largest spread of the timings of a result."""
    return max(map(float, _by_name(result.get("spread")).values()), default=0.0)


def _by_name(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
