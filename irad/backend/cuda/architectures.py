"""The GPUs that code is made for: what LLVM has to be told about each."""

from __future__ import annotations

from typing import Final

from irad.errors import BackendError

OLDEST_ISA: Final = 80
"""PTX 8.0, which every driver since CUDA 12.0 reads; older ones run no Numba that irad knows."""

_FIRST_ISA: Final = {
    "sm_75": 63,
    "sm_80": 70,
    "sm_86": 71,
    "sm_87": 74,
    "sm_89": 78,
    "sm_90": 78,
    "sm_90a": 80,
    "sm_100": 86,
    "sm_100a": 86,
    "sm_101": 86,
    "sm_120": 87,
    "sm_120a": 87,
}
"""The first version of the PTX language with each architecture, times ten."""


def instruction_set(arch: str) -> int:
    """The version of the PTX language that code for an architecture is written in, times ten: as old as can be.

    Args:
        arch: as ``sm_90``.

    Raises:
        BackendError: irad does not know it.
    """
    if arch not in _FIRST_ISA:
        raise BackendError(
            f"irad does not compile for {arch!r}",
            f"name one of {', '.join(_FIRST_ISA)}; a newer GPU runs the PTX of an older one",
        )
    return max(OLDEST_ISA, _FIRST_ISA[arch])
