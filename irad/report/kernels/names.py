"""Names in a kernel's program: its entry has none of its own, operations of the GPU have one in Python."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from irad.decompile.naming.symbols import Namer
from irad.kernel.program import ENTRY

_REGISTERS: Final = "llvm.nvvm.read.ptx.sreg."
_OF_REGISTER: Final = {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}
_SHUFFLES: Final = {"idx": "shfl_sync", "up": "shfl_up_sync", "down": "shfl_down_sync", "bfly": "shfl_xor_sync"}
_OPERATIONS: Final = {
    "llvm.nvvm.barrier.cta.sync.aligned.all": "cuda.syncthreads",
    "llvm.nvvm.bar.warp.sync": "cuda.syncwarp",
    "llvm.nvvm.membar.cta": "cuda.threadfence_block",
    "llvm.nvvm.membar.gl": "cuda.threadfence",
    "llvm.nvvm.membar.sys": "cuda.threadfence_system",
    "irad.cuda.barrier.popc": "cuda.syncthreads_count",
    "irad.cuda.barrier.and": "cuda.syncthreads_and",
    "irad.cuda.barrier.or": "cuda.syncthreads_or",
    "irad.cuda.vote.all": "cuda.all_sync",
    "irad.cuda.vote.any": "cuda.any_sync",
    "irad.cuda.vote.uni": "cuda.eq_sync",
    "irad.cuda.vote.ballot": "cuda.ballot_sync",
    "irad.cuda.activemask": "cuda.activemask",
    "irad.cuda.lanemask.lt": "cuda.lanemask_lt",
    "irad.cuda.dynamic_shared_size": "the bytes of dynamic shared memory",
}


def cuda_name(symbol: str) -> str | None:
    """What a symbol of the kernel dialect is in Python; None for other symbols."""
    if symbol.startswith(_REGISTERS):
        register, _, axis = symbol.removeprefix(_REGISTERS).partition(".")
        return f"cuda.{_OF_REGISTER.get(register, register)}" + (f".{axis}" if axis else "")
    match symbol.split("."):
        case ["irad", "cuda", "shfl", mode, _] if mode in _SHUFFLES:
            return f"cuda.{_SHUFFLES[mode]}"
        case ["irad", "cuda", "match", "any", _]:
            return "cuda.match_any_sync"
        case ["irad", "cuda", "atomic", ("add" | "sub") as kind, *_]:
            return f"cuda.atomic.{kind}"
        case _:
            return _OPERATIONS.get(symbol)


class KernelNamer(Namer):
    """Names of one kernel's program.

    Args:
        symbols: of the program.
        kernel: what the user calls it.
    """

    def __init__(self, symbols: Collection[str], kernel: str) -> None:
        super().__init__(symbols)
        self._kernel = kernel

    def name(self, symbol: str) -> str:
        """The short name of a symbol."""
        if symbol.startswith(ENTRY):
            return self._kernel + symbol.removeprefix(ENTRY)
        return cuda_name(symbol) or super().name(symbol)

    def shorten(self, text: str) -> str:
        """A text with its symbols replaced."""
        return super().shorten(text.replace(ENTRY, self._kernel))
