"""The stages of a report as lines of text, each with its line of the source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final

from numba.core.errors import NumbaError

from irad.backend.assembly import assembly_with_lines
from irad.decompile.names import Namer
from irad.errors import BackendError
from irad.frontend.numba.library import CPU
from irad.ir.debug_info import DebugInfo
from irad.ir.module import Function, MetadataNode, Module
from irad.ir.text.printer import print_lines
from irad.passes.instrument.sweep_marks import REVERSE
from irad.report.model import FunctionReport, Stage, StageText, TapeEntry, TextLine, ValueFacts
from irad.report.shown.amounts import count
from irad.report.shown.text import often, reason
from irad.report.source import UserSource

# LLVM text as the lines of a stage: source line of each, names demangled, what few readers want to see marked.

_NODE: Final = re.compile(r"^!(\d+) = (distinct )?(.*)$", re.M)
_DEBUG: Final = re.compile(r"!dbg (![0-9]+)")
_ATTACHMENT: Final = re.compile(r",? ![A-Za-z_.][\w.]* ![0-9]+")
_GROUP: Final = re.compile(r" #[0-9]+(?=$|,| \{$)")
_COMMENT: Final = re.compile(r"\s+; preds = .*$")
_DEFINED: Final = re.compile(r'^  (%(?:"[^"]*"|[-\w.$]+)) = ')
_SYMBOL: Final = re.compile(r'^define [^@]*@(?:"([^"]+)"|([^\s(]+))\(')

_OUTSIDE: Final = (
    "!",
    "attributes #",
    "source_filename",
    "target ",
    "; ModuleID",
    "declare",
    "; Function Attrs",
    "@",
    "$",
)
_CALLS: Final = re.compile(
    r"@(?:NRT_incref|NRT_decref|llvm\.dbg\.|llvm\.lifetime\.|llvm\.assume|llvm\.experimental\.noalias\.scope\.decl)"
)
SUPPORT: Final = re.compile(r"(?:_ZN7cpython|cpython\.|cfunc\.|NRT_|irad\.(?!.*\.irad\d)|numba_|nrt_)")
"""Symbols of wrappers and run-time support, which are not part of the derivative."""


def metadata_of(text: str) -> Module:
    """A module with nothing but the metadata of one that LLVM printed."""
    module = Module()
    module.metadata = {int(m[1]): MetadataNode(m[3], bool(m[2])) for m in _NODE.finditer(text)}
    return module


def lines_of_text(text: str, source: UserSource, namer: Namer) -> tuple[TextLine, ...]:
    """The lines of a module that LLVM printed."""
    return tuple(_lines(text.splitlines(), DebugInfo(metadata_of(text)), source, namer))


def _lines(texts: Iterable[str], info: DebugInfo, source: UserSource, namer: Namer) -> Iterator[TextLine]:
    in_support = False
    for raw in texts:
        symbol = _SYMBOL.match(raw)
        if symbol is not None:
            in_support = SUPPORT.match(symbol[1] or symbol[2]) is not None
        node = _DEBUG.search(raw)
        places = [frame.place for frame in info.frames_of(node[1])] if node is not None else []
        yield _line(raw, source.line_of(places), namer, hidden=in_support)
        if raw == "}":
            in_support = False


def lines_of_functions(
    functions: Iterable[Function], info: DebugInfo, source: UserSource, namer: Namer
) -> tuple[TextLine, ...]:
    """The lines of functions of irad's own."""
    found: list[TextLine] = []
    for function in functions:
        for printed in print_lines(function)[0]:
            inst = printed.instruction
            line = source.line_of(info.inline_chain(inst)) if inst is not None else None
            found.append(_line(printed.text, line, namer, hidden=False))
        found.append(TextLine(""))
    return tuple(found)


def _line(raw: str, line: int | None, namer: Namer, *, hidden: bool) -> TextLine:
    text = tidy(raw, namer)
    defined = _DEFINED.match(raw)
    return TextLine(
        text,
        line,
        defined[1] if defined is not None else None,
        hidden or is_noise(raw),
        raw if raw != text else None,
    )


def tidy(raw: str, namer: Namer) -> str:
    """A line of LLVM text without metadata and with short names."""
    return namer.shorten(_COMMENT.sub("", _GROUP.sub("", _ATTACHMENT.sub("", raw)))).rstrip()


def is_noise(raw: str) -> bool:
    """True if a line of LLVM text says nothing about what is computed."""
    stripped = raw.strip()
    if raw.startswith(_OUTSIDE) or stripped.startswith("#dbg_"):
        return True
    return _CALLS.search(raw) is not None


# The stages after irad: what LLVM made from the derivative where it is linked, and its assembly.

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
                "the report shows its code for these arguments",
            ) from error
        texts.append((name, dispatcher.inspect_llvm(kinds)))
    return texts


def optimized_stage(texts: list[tuple[str, str]], source: UserSource) -> StageText:
    """Code that is really compiled: the derivative, inlined into what calls it, after all of LLVM's pipeline."""
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
    """Predicate that is true of those debug locations (`!7`) of a module that are of the reverse sweep."""
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


# The stages that are written from facts: what the analyses, the plan and the tape say.


def python_stage(source: UserSource) -> StageText:
    """The user's source."""
    lines: list[TextLine] = []
    before: int | None = None
    for number in source.numbers:
        if before is not None and number > before + 1:
            lines.append(TextLine(""))
        lines.append(TextLine(source.text(number), number))
        before = number
    return StageText(Stage.PYTHON, "python", tuple(lines))


def adjoint_python_stage(lines: Iterable[str], source: UserSource) -> StageText:
    """The adjoint as Python source. Its comments say which line of the user's source the following ones come from."""
    heads = {source.text(number).strip(): number for number in source.numbers if _LOOP.match(source.text(number))}
    shown, line, depth = list[TextLine](), None, 0
    for text in lines:
        indent = len(text) - len(text.lstrip())
        comment = _FROM_LINE.match(text)
        if comment is not None:
            line, depth = int(comment[1]), indent
        elif indent < depth or not text.strip():
            line = None
        loop = _REVERSED.sub(r"\1", text.strip())
        own = heads.get(loop, line if comment is None else int(comment[1]))
        shown.append(TextLine(text, own if own in source.numbers else None))
    return StageText(Stage.ADJOINT_PYTHON, "python", tuple(shown))


_FROM_LINE = re.compile(r"\s*# line (\d+): ")
_LOOP = re.compile(r"\s*(?:for|while)\b")
_REVERSED = re.compile(r"reversed\((.*)\)(?=:$)")


def facts_stage(stage: Stage, functions: Iterable[FunctionReport], source: UserSource) -> StageText:
    """One of types, activity, plan, tape: for every function of the program."""
    lines: list[TextLine] = []
    for function in functions:
        lines.append(TextLine(f"{function.name}: {function.variant}"))
        if stage is Stage.TAPE:
            lines += _tape(function, source)
        else:
            for value in function.values:
                lines += _value(stage, value, source)
        lines.append(TextLine(""))
    return StageText(stage, "text", tuple(lines))


def _value(stage: Stage, value: ValueFacts, source: UserSource) -> Iterator[TextLine]:
    line = source.line_of(value.places)
    name = f"{value.name} ({value.source})" if value.source else value.name or "(no value)"

    def told(text: str, *, is_noise: bool = False) -> TextLine:
        return TextLine(text, line, value.name or None, is_noise)

    match stage:
        case Stage.TYPES:
            yield told(f"  {name}: {value.type}, {value.operation}")
            yield from (told(f"      {text}") for text in value.memory)
        case Stage.ACTIVITY:
            yield told(f"  {name}: {value.activity}", is_noise="its type holds no floating-point" in value.activity)
            if value.rule is not None:
                origin = f", {value.rule_origin.file}:{value.rule_origin.line}" if value.rule_origin else ""
                yield told(f"      rule: {value.rule}{origin}")
        case _:
            if value.plan:
                yield told(f"  {name}: {value.plan}", is_noise=value.plan.startswith("not needed"))


def _tape(function: FunctionReport, source: UserSource) -> Iterator[TextLine]:
    groups: dict[str, list[TapeEntry]] = {}
    for entry in function.tape:
        groups.setdefault(often(entry), []).append(entry)
    for frequency, entries in groups.items():
        sizes = [entry.bytes for entry in entries if entry.bytes is not None]
        known = f"{sum(sizes)} bytes {frequency}, for {count(len(sizes), 'entry').replace('entrys', 'entries')}"
        kept = len(entries) - len(sizes)
        more = f"memory of a size that depends on the arguments {frequency}, {kept} of them" if kept else ""
        line = entries[0].loops[-1] if entries[0].loops and entries[0].loops[-1] else None
        yield from (TextLine(f"  {text}", line) for text in ([known] if sizes else []) + ([more] if more else []))
    for entry in function.tape:
        yield _entry(entry, source)


def _entry(entry: TapeEntry, source: UserSource) -> TextLine:
    here = entry.place.line if entry.place is not None and source.is_here(entry.place) else None
    place = f", line {entry.line}" if here is not None and entry.line is not None else ""
    size = f"{entry.bytes:5} bytes" if entry.bytes is not None else " as needed "
    value = f"  {entry.value}" if entry.value else ""
    return TextLine(
        f"    {size}  {entry.storage.value:6}  {entry.name}{place}: {reason(entry.why)}{value}",
        here,
        entry.value or None,
    )
