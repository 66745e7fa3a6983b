"""Machines that irad does not run on."""

from __future__ import annotations

import pytest

from irad.backend.machine import check_machine
from irad.errors import UnsupportedError


@pytest.mark.parametrize("system", ["linux", "darwin", "freebsd14"])
def test_supported(system: str):
    check_machine(system, "little", 8)


@pytest.mark.parametrize(
    ("system", "order", "pointer", "words"),
    [
        ("win32", "little", 8, "win32"),
        ("emscripten", "little", 4, "emscripten"),
        ("linux", "big", 8, "64 bits, big-endian"),
        ("linux", "little", 4, "32 bits, little-endian"),
    ],
)
def test_unsupported(system: str, order: str, pointer: int, words: str):
    with pytest.raises(UnsupportedError) as caught:
        check_machine(system, order, pointer)
    assert words in caught.value.problem
    assert caught.value.reason


def test_the_first_use_checks(monkeypatch: pytest.MonkeyPatch):
    import irad
    from irad.backend import machine

    monkeypatch.delitem(irad.__dict__, "grad", raising=False)
    monkeypatch.setattr(machine, "check_machine", lambda: check_machine("win32"))
    with pytest.raises(UnsupportedError, match="win32"):
        _ = irad.grad
