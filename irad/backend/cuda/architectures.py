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
    "sm_120": 87,
    "sm_120a": 87,
}
"""The first version of the PTX language with each architecture, times ten."""


def target_of(arch: str) -> tuple[str, int]:
    """What LLVM is asked for: an architecture, and the version of the PTX language, times ten, as old as can be.

    A GPU newer than all that irad knows runs the code of the newest one before it.

    Args:
        arch: as ``sm_90``.

    Raises:
        BackendError: it is none, or too old.
    """
    digits = arch.removeprefix("sm_")
    if arch not in _FIRST_ISA and digits.isdecimal():
        older = [each for each in _FIRST_ISA if _number(each).isdecimal() and int(_number(each)) < int(digits)]
        arch = max(older, key=lambda each: int(_number(each)), default=arch)
    if arch not in _FIRST_ISA:
        raise BackendError(
            f"irad does not compile for {arch!r}",
            f"name one of {', '.join(_FIRST_ISA)}, or a newer one",
            "an architecture is named as ptxas names it, and older ones lack atomic additions of float64",
        )
    return arch, max(OLDEST_ISA, _FIRST_ISA[arch])


def _number(arch: str) -> str:
    return arch.removeprefix("sm_")
