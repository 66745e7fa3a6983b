"""The native scheduler: LLVM text beside this, compiled once for a process."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import llvmlite.binding as llvm

from irad.backend.executor import layout
from irad.backend.executor.code import host_machine, loaded

_FILES: Final = ("run", "warp", "trace")
_NATIVE: Final = Path(__file__).parent / "native"


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Its functions.

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
    lines = [line for name in _FILES for line in (_NATIVE / f"{name}.ll").read_text(encoding="utf-8").splitlines()]
    defined = {_symbol(line) for line in lines if line.startswith("define ")}
    declared = dict.fromkeys(line for line in lines if line.startswith("declare "))
    body = [line for line in lines if not line.startswith("declare ")]
    return "\n".join([layout.text(), *(line for line in declared if _symbol(line) not in defined), *body, ""])


def _symbol(head: str) -> str:
    return head.partition("(")[0].split()[-1]


@cache
def scheduler() -> Scheduler:
    """The code of the process.

    It is simple: LLVM's whole pipeline would make it little faster, and take half a second.
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
