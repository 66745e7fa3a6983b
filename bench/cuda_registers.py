"""``python -m bench.cuda_registers``: what kernels and their derivatives need of a GPU, as ptxas counts it.

Registers of a thread decide how many threads a multiprocessor holds: with 65,536 registers and 2,048 threads (sm_80,
sm_90, sm_100), 32 are for free. No GPU is needed. Numba's own PTX, made by NVIDIA's compiler, stands beside that of
irad where numba-cuda and libnvvm are installed.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import click
from rich.console import Console
from rich.table import Table

from bench import environment
from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.ptx import compile_ptx
from irad.backend.cuda.toolkit import Assembly, assemble
from irad.errors import IradError
from irad.passes.mode import FORWARD_MODE
from tests.cuda.case import Case
from tests.cuda.derivatives import derivative_of, program_of
from tests.cuda.kernels import CASES, KERNELS

FREE_REGISTERS = 32
"""As many registers of a thread do not limit the number of threads."""
RATIO = 2.0
"""More registers than this times those of the primal are worth a look."""


@dataclass(frozen=True)
class Needs:
    """Resources of one kernel, per thread but for shared memory."""

    registers: int
    stack: int
    spilled: int
    shared: int

    @staticmethod
    def of(done: Assembly) -> Needs:
        """Of machine code."""
        return Needs(done.registers, done.stack, done.spill_stores + done.spill_loads, done.shared)


@dataclass(frozen=True)
class Row:
    """One kernel on one GPU: None where there is no code."""

    name: str
    arch: str
    numba: Needs | None
    primal: Needs
    reverse: Needs
    tangent: Needs

    @property
    def ratio(self) -> float:
        """Registers of the derivative over those of the kernel."""
        return self.reverse.registers / self.primal.registers

    @property
    def is_fine(self) -> bool:
        """Nothing is spilled, and registers are few enough, or no more than twice those of the primal."""
        few = self.reverse.registers <= max(FREE_REGISTERS, RATIO * self.primal.registers)
        return few and not self.reverse.spilled and not self.tangent.spilled


def measure(case: Case, arch: str) -> Row:
    """Compiles and assembles the kernel, its derivatives, and Numba's version of it."""

    def needs(module: KernelModule) -> Needs:
        return Needs.of(assemble(compile_ptx(module, arch), arch))

    return Row(
        name=case.name,
        arch=arch,
        numba=numbas(case, arch),
        primal=needs(program_of(case).module),
        reverse=needs(derivative_of(case).module),
        tangent=needs(derivative_of(case, FORWARD_MODE).module),
    )


def numbas(case: Case, arch: str) -> Needs | None:
    """Resources of Numba's own PTX; None if Numba cannot make it without a driver, or NVIDIA's compiler is missing."""
    compiler = _numba_compiler()
    if compiler is None:
        return None
    digits = arch.removeprefix("sm_")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ptx, _ = compiler(case.kernel, case.types(), cc=(int(digits[:-1]), int(digits[-1])))
    return Needs.of(assemble(ptx, arch))


def _numba_compiler() -> Callable[..., Any] | None:
    try:
        from numba.cuda import compile_ptx as compiler, dispatcher
        from numba.cuda.cudadrv import nvvm

        nvvm.NVVM()
    except Exception:  # whatever numba.cuda raises where CUDA is not installed
        return None

    def compiled(*args: Any, **options: Any) -> Any:
        # Device functions are compiled for the GPU that is there, and there is none.
        with patch.object(dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=(9, 0))):
            return compiler(*args, **options)

    return compiled


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[KERNEL]...")
@click.option("--arch", "architectures", multiple=True, default=["sm_90"], show_default=True, help="The GPUs.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Result file.")
def main(names: tuple[str, ...], architectures: tuple[str, ...], output: Path | None) -> None:
    """Count registers, local and shared memory of the test kernels and of their derivatives."""
    unknown = [name for name in names if name not in KERNELS]
    if unknown:
        raise click.BadParameter(f"no kernel {unknown[0]!r}; there are {', '.join(KERNELS)}", param_hint="KERNEL")
    console = Console()
    rows = []
    for case in [KERNELS[name] for name in names] or CASES:
        for arch in architectures:
            try:
                rows.append(measure(case, arch))
            except IradError as error:
                console.print(f"{case.name}, {arch}: {error.problem}")
    console.print(table_of(rows))
    path = output or Path(__file__).parent / "results" / f"registers-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report_of(rows), indent=2) + "\n")
    console.print(f"written to {path}", highlight=False, soft_wrap=True)


def report_of(rows: list[Row]) -> dict[str, Any]:
    """For the result file."""
    return {
        "environment": environment.describe(),
        "rows": [asdict(row) | {"ratio": row.ratio, "is_fine": row.is_fine} for row in rows],
    }


def table_of(rows: list[Row]) -> Table:
    """Registers of all kernels; beside them bytes of local memory, and of shared memory of a block."""
    table = Table(box=None, padding=(0, 2, 0, 0), title="Registers of a thread + bytes of its stack; bytes of shared")
    table.add_column("kernel", no_wrap=True)
    for heading in ("arch", "Numba", "primal", "reverse", "/primal", "tangent", "shared", "shared′", "spilled"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.name,
            row.arch,
            _figure(row.numba),
            _figure(row.primal),
            _figure(row.reverse),
            f"{row.ratio:.1f}{'' if row.is_fine else ' !'}",
            _figure(row.tangent),
            str(row.primal.shared),
            str(row.reverse.shared),
            str(row.reverse.spilled + row.tangent.spilled),
        )
    return table


def _figure(needs: Needs | None) -> str:
    if needs is None:
        return "–"
    return f"{needs.registers}" + (f" + {needs.stack}" if needs.stack else "")


if __name__ == "__main__":
    main()
