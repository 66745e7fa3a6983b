"""The native scheduler: LLVM text beside this, compiled once for a process."""

from __future__ import annotations

import ctypes
from functools import cache
from math import gcd
from pathlib import Path
from typing import Any, Final, Literal

import llvmlite.binding as llvm
import numpy as np

from irad.backend.executor import dialect, layout
from irad.backend.executor.code import host_machine, loaded
from irad.backend.runtime.text import read
from irad.records import dataclass
from irad.runtime_layouts import NUMBERS

_FILES: Final = ("run", "warp", "trace")
_NATIVE: Final = Path(__file__).parent / "native"


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Functions of the scheduler.

    Attributes:
        run: runs blocks (``run.ll``).
        take_frame, log_access: addresses of functions that kernels call.
        engine: holds the code.
    """

    run: Any
    take_frame: int
    log_access: int
    engine: Any


def scheduler_text() -> str:
    """All of it as one module."""
    numbers = {**NUMBERS, **dialect.NUMBERS}
    return read(_NATIVE, *_FILES, structs=layout.STRUCTS, numbers=numbers).text()


@cache
def scheduler() -> Scheduler:
    """The code of the process.

    It is simple: LLVM's whole pipeline would hardly speed it up, and take half a second.
    """
    module = llvm.parse_assembly(scheduler_text())
    module.verify()
    machine = host_machine()
    pipeline = llvm.create_new_module_pass_manager()
    pipeline.add_always_inliner_pass()
    pipeline.add_global_dead_code_eliminate_pass()
    pipeline.add_sroa_pass()
    pipeline.add_simplify_cfg_pass()
    pipeline.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(1)))
    engine = loaded(module, machine)
    address = engine.get_function_address
    run = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address("irad.cuda.run"))
    return Scheduler(run, address("irad.cuda.take_frame"), address("irad.cuda.log_access"), engine)


# The orders in which the executor runs the threads of a block and the blocks of a grid.
#
# A GPU promises none: a kernel whose result depends on the order is wrong, and tests run it under all of `SCHEDULES`.

_RANDOM_ROUNDS: Final = 16


@dataclass(frozen=True, slots=True)
class Schedule:
    """An order of threads and blocks.

    Attributes:
        kind: ``strided`` runs neighbours far apart; ``shuffled`` runs threads in another random order in each round.
        seed: seed of the random orders.
    """

    kind: Literal["in order", "reversed", "strided", "shuffled"] = "in order"
    seed: int = 0

    def __str__(self) -> str:
        return f"shuffled({self.seed})" if self.kind == "shuffled" else self.kind

    def of_threads(self, count: int) -> Any:
        """The orders of the rounds, used in turn: an array of int32, a row for each."""
        rounds = _RANDOM_ROUNDS if self.kind == "shuffled" else 1
        return np.stack([self._order(count, turn) for turn in range(rounds)]).astype(np.int32)

    def of_blocks(self, count: int) -> Any:
        """The order of the blocks: an array of int64."""
        return self._order(count, _RANDOM_ROUNDS).astype(np.int64)

    def _order(self, count: int, turn: int) -> Any:
        numbers = np.arange(count)
        match self.kind:
            case "in order":
                return numbers
            case "reversed":
                return numbers[::-1].copy()
            case "strided":
                return numbers * _stride(count) % max(count, 1)
            case "shuffled":
                return np.random.default_rng((self.seed, turn)).permutation(count)


def _stride(count: int) -> int:
    """A step that reaches every number below ``count``."""
    return next(step for step in range(max(count // 3, 1) + 1, count + 3) if gcd(step, count) == 1)


IN_ORDER: Final = Schedule()
REVERSED: Final = Schedule("reversed")
STRIDED: Final = Schedule("strided")


def shuffled(seed: int) -> Schedule:
    """A random order in each round, and of the blocks."""
    return Schedule("shuffled", seed)


SCHEDULES: Final = (IN_ORDER, REVERSED, STRIDED, shuffled(1), shuffled(2))
"""Schedules under which tests run a kernel."""
