"""Every kernel that a test launches on the executor runs as PTX, too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cuda.ptx_interpreter.both import Comparison, recording

_COMPARISON = Comparison()


@pytest.fixture(autouse=True)
def as_ptx(request: pytest.FixtureRequest) -> Iterator[None]:
    """The launches of a test, unless it is marked with a reason why not."""
    if request.node.get_closest_marker("executor_only") is not None:
        yield
        return
    with recording(_COMPARISON):
        yield
