"""The stages after irad: what LLVM made from the derivative where it is linked, and its assembly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from numba.core.errors import NumbaError

from irad.backend.assembly import assembly_with_lines
from irad.decompile.naming.symbols import Namer
from irad.errors import BackendError
from irad.frontend.numba.library import CPU
from irad.ir.debug_info import DebugInfo
from irad.passes.instrument.sweep_marks import REVERSE
from irad.report.llvm_text import SUPPORT, lines_of_text, metadata_of
from irad.report.model import Stage, StageText, TextLine
from irad.report.source import UserSource

_FUNCTION: Final = re.compile(r'^"?([^\s"]+)"?:')


def compile_code(compiled: list[tuple[str, Any, tuple[Any, ...]]]) -> list[tuple[str, str]]:
    """The final LLVM text of each dispatcher of a derivative, from which Numba's machine code was made.

    Returns:
        (name of the dispatcher, text).

    Raises:
        BackendError: Numba cannot compile what calls the derivative.
    """
    texts = []
    for name, dispatcher, kinds in compiled:
        try:
            dispatcher.compile(kinds)
        except NumbaError as error:
            raise BackendError(
                f"Numba cannot compile {dispatcher!r}: {error}",
                "report it with the function",
                "its code for the arguments that are asked for is what is shown",
            ) from error
        texts.append((name, dispatcher.inspect_llvm(kinds)))
    return texts


def optimized_stage(texts: list[tuple[str, str]], source: UserSource) -> StageText:
    """What is really compiled: the derivative, inlined into what calls it, after all of LLVM's pipeline."""
    lines: list[TextLine] = []
    for name, text in texts:
        lines += _heading(name, texts, ";")
        lines += lines_of_text(text, source, Namer.of_text(text))
    return StageText(Stage.OPTIMIZED, "llvm", tuple(lines))


def assembly_stage(texts: list[tuple[str, str]], source: UserSource) -> StageText:
    """The machine code that is linked."""
    lines: list[TextLine] = []
    for name, text in texts:
        lines += _heading(name, texts, "#")
        lines += _assembly(text, source)
    return StageText(Stage.ASM, "gas", tuple(lines))


def line_finder(text: str, source: UserSource) -> Callable[[str], int | None]:
    """The user's line of a debug location (`!7`) of a module, None where it has none."""
    info = DebugInfo(metadata_of(text))

    @cache
    def line_of(node: str) -> int | None:
        return source.line_of([frame.place for frame in info.frames_of(node)])

    return line_of


def is_of_reverse_sweep(text: str) -> Callable[[str], bool]:
    """Whether a debug location (`!7`) of a module is of the reverse sweep."""
    nodes = metadata_of(text).metadata.items()
    reverse = {f"!{number}" for number, node in nodes if f"column: {REVERSE}," in node.text}
    return reverse.__contains__


def _heading(name: str, texts: list[tuple[str, str]], comment: str) -> list[TextLine]:
    return [TextLine(f"{comment} {name}")] if len(texts) > 1 else []


def _assembly(text: str, source: UserSource) -> Iterator[TextLine]:
    namer = Namer.of_text(text)
    in_support = True
    for raw, line in assembly_with_lines(text, line_finder(text, source), CPU):
        head = _FUNCTION.match(raw)
        if head is not None and not raw.startswith(".L"):
            in_support = SUPPORT.match(head[1]) is not None or head[1].startswith(".const")
        is_directive = raw.startswith(("\t.", "\t#", "#"))
        shown = namer.shorten(raw.expandtabs(8))
        hidden = in_support or is_directive or not raw.strip()
        yield TextLine(shown, line, None, hidden, raw if raw != shown else None)
