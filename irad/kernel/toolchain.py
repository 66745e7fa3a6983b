"""LLVM's machine for NVIDIA's GPUs, for which the scalar pipeline weighs what it does to kernels."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm

from irad.backend.cuda.kernel import TRIPLE
from irad.backend.toolchain import Toolchain
from irad.errors import InternalError


@cache
def machine() -> Any:
    """A target machine of llvmlite."""
    llvm.initialize_all_targets()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu="sm_80", opt=2)


def _build(name: str, text: str, environments: tuple[Any, ...]) -> Any:
    raise InternalError(f"{name} is code of a kernel, which this process cannot run")


NVPTX: Final = Toolchain(machine, frozenset(), lambda symbol: False, _build)
