"""What is missing on this machine."""

from __future__ import annotations

import pytest

from irad.backend.cuda.toolkit import find_libdevice, find_tool
from irad.errors import BackendError

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
each_architecture = pytest.mark.parametrize(
    "arch", [arch if arch == "sm_90" else pytest.param(arch, marks=pytest.mark.slow) for arch in ARCHITECTURES]
)
"""One in every run of the tests: ptxas takes long."""


def _problem(look) -> str:
    try:
        look()
    except BackendError as error:
        return error.problem
    return ""


_PTXAS = _problem(lambda: find_tool("ptxas"))
_LIBDEVICE = _problem(find_libdevice)

needs_ptxas = pytest.mark.skipif(bool(_PTXAS), reason=_PTXAS)
needs_libdevice = pytest.mark.skipif(bool(_LIBDEVICE), reason=_LIBDEVICE)
