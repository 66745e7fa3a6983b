"""Remedies of refusals in the names of forward mode. Analyses, which both modes share, word them for reverse mode."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from irad.errors import IradError

_WORDS: Final = (
    ("irad.grad or irad.vjp, which create", "irad.jvp or irad.pushforward, which create"),
    ("pass it as irad.Active", "pass it as irad.Duplicated, with its tangent"),
    ("irad.rules.easy_rule, or irad.rules.augmented_primal and reverse", "irad.rules.easy_rule or irad.rules.forward"),
    (
        "whose reverse sets the shadow of what it overwrites to zero (irad.rules.augmented_primal and reverse)",
        "which sets the tangent of what it overwrites (irad.rules.forward)",
    ),
)


def word_for_forward_mode(errors: Iterable[IradError]) -> None:
    """Has remedies name what forward mode has."""
    for error in errors:
        for reverse, forward in _WORDS:
            error.remedy = error.remedy.replace(reverse, forward)
