"""The text of `docs/rules.md`, written from the registry."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from irad.rules import ALL, elementwise, fourier, random_draws, scalar_calls, shortcuts
from irad.rules.blas import level1, level2, level3, products
from irad.rules.lapack import (
    general_spectra,
    least_squares,
    reflectors,
    singular as lapack_singular,
    spectra,
    symbols as lapack_symbols,
    systems,
)
from irad.rules.scipy import outputs, special as scipy_special
from irad.ruleset.interface import CallRule, Elementwise, Inactive, Rule
from tests.special_points.page import page

PATH: Final = Path(__file__).parents[2] / "docs" / "rules.md"

_HEAD: Final = """# Built-in rules

Every function that has a derivative by hand, or is known to have none. Written by `scripts/make_rules_table.py` from
the registry, `irad.rules.ALL`, whose every entry is tested (`tests/rules/test_every_rule.py`); do not edit.

Where no source is given, the formula is textbook calculus or the rule moves numbers without computing.
[Contracts](contracts.md) states the conventions that hold for all, [limits](limits.md) what has no rule.
"""

_SECTIONS: Final[tuple[tuple[str, tuple[Rule, ...]], ...]] = (
    ("Scalar functions", elementwise.RULES),
    ("Scalar functions of Numba that take shortcuts", shortcuts.RULES),
    ("Functions of scipy.special", (*scipy_special.RULES, *outputs.RULES)),
    ("Scalars through memory", scalar_calls.RULES),
    ("Random draws", random_draws.RULES),
    ("BLAS", (*products.RULES, *level1.RULES, *level2.RULES, *level3.RULES)),
    ("Fourier transforms", fourier.RULES),
    (
        "LAPACK",
        (
            *systems.RULES,
            *reflectors.RULES,
            *spectra.RULES,
            *general_spectra.RULES,
            *lapack_singular.RULES,
            *least_squares.RULES,
            *lapack_symbols.RULES,
        ),
    ),
)


def table() -> str:
    """The text of the page."""
    listed = {id(rule) for _, rules in _SECTIONS for rule in rules}
    rest = [rule for rule in ALL if id(rule) not in listed]
    moving = [rule for rule in rest if not isinstance(rule, Inactive)]
    constant = [rule for rule in ALL if isinstance(rule, Inactive)]
    return "\n".join(
        (
            _HEAD,
            *(_with_derivative(title, rules) for title, rules in _SECTIONS),
            _with_derivative("Memory and containers", moving),
            page(),
            _without(constant),
        )
    )


def _with_derivative(title: str, rules: Iterable[Rule]) -> str:
    rows = [_row(rule) for rule in rules if not isinstance(rule, Inactive)]
    return "\n".join((f"## {title}", "", "| rule | at singular points | source |", "| --- | --- | --- |", *rows, ""))


def _row(rule: Rule) -> str:
    match rule:
        case Elementwise():
            refused = [f"refused with respect to argument {index}" for index in sorted(rule.refused)]
            policy = "; ".join(text for text in (rule.policy, *refused) if text)
            return f"| `{rule.name}` | {_cell(policy)} | {_cell(rule.source)} |"
        case CallRule():
            return f"| {_names(rule.symbols)} | {_cell(rule.policy)} | {_cell(rule.source)} |"
        case _:
            raise AssertionError(f"no row for {rule}")


def _without(rules: Iterable[Inactive]) -> str:
    rows = [f"| {_names(rule.symbols)} | {_cell(rule.why)} |" for rule in rules]
    return "\n".join(("## Without derivative", "", "| functions | why |", "| --- | --- |", *rows, ""))


def _names(symbols: tuple[str, ...]) -> str:
    return ", ".join(f"`{symbol}`" for symbol in symbols)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
