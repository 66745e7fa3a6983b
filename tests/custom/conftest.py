"""What tests of rules share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from irad import rules


@pytest.fixture
def with_rule() -> Iterator[Callable[..., None]]:
    """Registers both parts of a rule until the end of the test."""
    registered: list[Any] = []

    def register(f: Any, augmented: Any, reverse: Any) -> None:
        rules.augmented_primal(f)(augmented)
        rules.reverse(f)(reverse)
        registered.append(f)

    yield register
    for f in registered:
        rules.remove(f)
