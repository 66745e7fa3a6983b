"""A CUDA kernel as LLVM text, the interface between the front end, the engine and the executor."""

from __future__ import annotations

from typing import Final

from irad.records import dataclass

TRIPLE: Final = "nvptx64-nvidia-cuda"
DYNAMIC_SHARED: Final = "irad.dynamic_shared"
"""Symbol of the dynamic shared memory."""


@dataclass(frozen=True, slots=True)
class KernelModule:
    """A kernel in the kernel dialect (README.md), which the executor runs and the NVPTX back end compiles.

    Attributes:
        text: a whole module for the triple nvptx64-nvidia-cuda that LLVM parses and verifies.
        name: symbol of its only ``ptx_kernel`` function.
        fastmath: whether it was compiled so.
        contract: whether products and sums may become fused multiply-adds: `irad.backend.cuda.lowering`.
    """

    text: str
    name: str
    fastmath: bool = False
    contract: bool = False
