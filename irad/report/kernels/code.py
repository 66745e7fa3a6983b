"""The stages after irad, of a kernel: what LLVM made of the derivative, its PTX, and what that needs of a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.limits import LIMITS, bounds_of_launch
from irad.backend.cuda.lowering import entry_name
from irad.backend.cuda.ptx import LaunchBounds, compile_ptx, optimised_text
from irad.backend.cuda.toolkit import Assembly, assemble
from irad.decompile.naming.symbols import Namer
from irad.report.llvm_text import lines_of_text
from irad.report.model import KernelCode, Stage, StageText, TextLine
from irad.report.source import UserSource

ARCHITECTURES: Final = ("sm_80", "sm_90", "sm_100")
"""Whose machine code is looked at; texts are for the first."""


def code_of(primal: KernelModule, derivative: KernelModule) -> tuple[KernelCode, ...]:
    """What kernel and derivative need, on each GPU.

    Raises:
        BackendError: ptxas is not on this machine.
    """
    found = []
    for arch in ARCHITECTURES:
        own, made = (assemble(compile_ptx(module, arch), arch) for module in (primal, derivative))
        limits = LIMITS[arch]
        largest = limits.threads_with(made.registers)
        bound = bounds_of_launch(derivative, limits.threads) if largest < limits.threads else None
        beyond = made if bound is None else assemble(compile_ptx(derivative, arch, bounds=LaunchBounds(bound)), arch)
        found.append(_needs(own, made, largest, beyond))
    return tuple(found)


def _needs(primal: Assembly, derivative: Assembly, largest: int, beyond: Assembly) -> KernelCode:
    return KernelCode(
        arch=derivative.arch,
        registers=derivative.registers,
        primal_registers=primal.registers,
        stack=derivative.stack,
        spilled=derivative.spill_stores + derivative.spill_loads,
        largest_block=largest,
        spilled_beyond=beyond.spill_stores + beyond.spill_loads,
        shared=derivative.shared,
        primal_shared=primal.shared,
    )


def optimized_stage(derivative: KernelModule, source: UserSource) -> StageText:
    """The derivative, inlined into one kernel, after all of LLVM's pipeline."""
    text = optimised_text(derivative, ARCHITECTURES[0])
    return StageText(Stage.OPTIMIZED, "llvm", lines_of_text(text, source, Namer.of_text(text)))


def ptx_stage(derivative: KernelModule, source: UserSource, name: str) -> StageText:
    """The PTX of the derivative, with the user's lines; the kernel goes by its Python name."""
    ptx = compile_ptx(derivative, ARCHITECTURES[0])
    return StageText(Stage.PTX, "ptx", tuple(_lines(ptx, entry_name(derivative.name), name, source)))


def _lines(ptx: str, entry: str, name: str, source: UserSource) -> Iterator[TextLine]:
    """A line belongs to the directive `.loc file line column` before it; the files are listed at the end."""
    texts = ptx.splitlines()
    namer = Namer.of_text(ptx.replace(entry, name))
    files = dict(_file(text) for text in texts if text.strip().startswith(".file"))
    line: int | None = None
    for raw in texts:
        words = raw.split()
        if words[:1] == [".loc"]:
            number = int(words[2])
            here = files.get(words[1]) == source.file and number in source.numbers
            line = number if here else None
        directive = bool(words) and words[0].startswith((".loc", ".file", ".section", "//", ".reg", ".version"))
        shown = namer.shorten(raw.expandtabs(8).replace(entry, name))
        yield TextLine(shown, line, None, directive or not words, raw if raw != shown else None)


def _file(text: str) -> tuple[str, str]:
    """Number and name of `.file 1 "/src/model.py"`."""
    _, number, name = text.split(maxsplit=2)
    return number, name.strip().strip('"')
