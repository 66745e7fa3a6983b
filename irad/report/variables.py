"""Which Python variables are active on which line.

Numba keeps each variable in memory of its own before LLVM optimises; so the raw text tells which value is stored to
which variable, and which is passed for which parameter. Values keep their names through LLVM's pipelines, and the
activity analysis covers those that are left. A variable without any value left, an array for instance, is as active as
what is made on its line, a parameter as what is made where it is used.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from irad.frontend.numba.reports.inspection import TypedFunction
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import Instruction
from irad.ir.types import PointerType
from irad.ir.values import Parameter, Value
from irad.passes.analysis.activity import is_differentiable
from irad.passes.generated import GeneratedPair
from irad.report.names import python_name
from irad.report.source import is_parallel_body

Node: TypeAlias = tuple[str, str]  # symbol of the function; version of a variable, or a value with its %

CONSTANT: Final = ("", "")
"""Stands for all constants."""

_NAME: Final = r'%"?([^\s",)]+)"?'
_DEFINE: Final = re.compile(r'^define [^@\n]*@(?:"([^"]+)"|([^\s(]+))\((.*)\)')
_STORE: Final = re.compile(rf"^  store .* {_NAME}, ptr {_NAME}(?:,|$)")
_CONSTANT: Final = re.compile(rf"^  store (?:double|float) (?!0\.0+e\+00,)[-\d][^,%]*, ptr {_NAME}(?:,|$)")
_LOAD: Final = re.compile(rf"^  {_NAME} = load .*, ptr {_NAME}(?:,|$)")
_CALL: Final = re.compile(r'^  (?:\S+ = )?(?:tail )?call [^@]*@(?:"([^"]+)"|([^\s(]+))\((.*)\)')
_LAST: Final = re.compile(rf"{_NAME}$")
_COPY: Final = re.compile(r"(?:\.i\d*|\.lcssa\d*)+$")
_VERSION: Final = re.compile(r"[A-Za-z_]\w*(?:\.\d+)?")
_TARGET: Final = re.compile(r" +(\S+) = ")
_ARGUMENT: Final = re.compile(r"  \w+ = arg\(")


@dataclass(frozen=True, slots=True)
class Copies:
    """What is the same number under several names.

    Attributes:
        origins: what is copied to a value or variable: by loads, stores, and calls.
        variables: the versions of variables that a value is stored to.
    """

    origins: Mapping[Node, frozenset[Node]]
    variables: Mapping[Node, frozenset[str]]

    @staticmethod
    def of_raw_text(text: str) -> Copies:
        """Reads a program that is not optimised."""
        origins: dict[Node, set[Node]] = {}
        variables: dict[Node, set[str]] = {}
        lines = text.splitlines()
        parameters = {m[1] or m[2]: _names(m[3]) for line in lines if (m := _DEFINE.match(line)) is not None}
        symbol = ""
        for line in lines:
            if (head := _DEFINE.match(line)) is not None:
                symbol = head[1] or head[2]
            elif (constant := _CONSTANT.match(line)) is not None:
                origins.setdefault((symbol, constant[1]), set()).add(CONSTANT)
            elif (store := _STORE.match(line)) is not None:
                value, variable = (symbol, f"%{store[1]}"), store[2]
                origins.setdefault((symbol, variable), set()).add(value)
                if _VERSION.fullmatch(variable):
                    variables.setdefault(value, set()).add(variable)
            elif (load := _LOAD.match(line)) is not None:
                origins.setdefault((symbol, f"%{load[1]}"), set()).add((symbol, load[2]))
            elif (call := _CALL.match(line)) is not None:
                callee = call[1] or call[2]
                for parameter, argument in zip(parameters.get(callee, ()), _names(call[3]), strict=False):
                    if parameter is not None and argument is not None:
                        origins.setdefault((callee, f"%{parameter}"), set()).add((symbol, f"%{argument}"))
        return Copies(
            {key: frozenset(found) for key, found in origins.items()},
            {key: frozenset(found) for key, found in variables.items()},
        )

    def sources(self, node: Node) -> frozenset[Node]:
        """A variable and everything that is copied to it, in one step or several."""
        pending, seen = [node], {node}
        while pending:
            for origin in self.origins.get(pending.pop(), ()):
                if origin not in seen:
                    seen.add(origin)
                    pending.append(origin)
        return frozenset(seen)


def _names(arguments: str) -> list[str | None]:
    """The name that each of some arguments or parameters ends with, None where that is not a name."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(arguments):
        depth += letter in "([{<"
        depth -= letter in ")]}>"
        if letter == "," and depth == 0:
            parts.append(arguments[start:position])
            start = position + 1
    parts.append(arguments[start:])
    found = [_LAST.search(part.strip()) for part in parts]
    return [match[1] if match is not None else None for match in found]


@dataclass(frozen=True, slots=True)
class ActiveVariables:
    """Which variables are active.

    Attributes:
        copies: what variables are called.
        active: values, and parameters by their Python names.
        known: those that the analysis covers.
        lines: where anything active is made, by function; "" for bodies of parallel loops.
    """

    copies: Copies
    active: frozenset[Node]
    known: frozenset[Node]
    lines: frozenset[tuple[str, int]]

    def split(
        self, typed: TypedFunction, definition: Callable[[int], int]
    ) -> Mapping[int, tuple[frozenset[str], frozenset[str]]]:
        """Active and constant variables of each line of a function, without their versions."""
        active: dict[int, set[str]] = {}
        every: dict[int, set[str]] = {}
        places = _places(typed)
        own = _variables(typed.function)
        for line in typed.ir.lines:
            shown = definition(line.line)
            for version in line.variables:
                name = version.partition(".")[0]
                if name not in own:
                    continue
                every.setdefault(shown, set()).add(name)
                if version in typed.ir.floats and self._is_active(typed.symbol, version, places[version]):
                    active.setdefault(shown, set()).add(name)
        return {
            line: (frozenset(active.get(line, ())), frozenset(names - active.get(line, set())))
            for line, names in every.items()
        }

    def _is_active(self, symbol: str, version: str, lines: Iterable[int]) -> bool:
        sources = self.copies.sources((symbol, version))
        if sources & self.known:
            return bool(sources & self.active)
        return any((function, line) in self.lines for line in lines for function in (symbol, ""))


def _variables(function: Callable[..., Any]) -> frozenset[str]:
    """The variables of a function as its source has them: Numba adds those of functions that it inlines."""
    code = inspect.unwrap(function).__code__
    return frozenset((*code.co_varnames, *code.co_cellvars, *code.co_freevars))


def _places(typed: TypedFunction) -> Mapping[str, list[int]]:
    """Where it shows whether a version is active: where it is made, a parameter where it is used."""
    made: dict[str, list[int]] = {}
    uses: dict[str, list[int]] = {}
    for line in typed.ir.lines:
        target = _TARGET.match(line.text)
        for version in line.variables:
            uses.setdefault(version, []).append(line.line)
            if target is not None and target[1] == version and not _ARGUMENT.match(line.text):
                made.setdefault(version, []).append(line.line)
    return {version: made.get(version, lines[1:]) for version, lines in uses.items()}


def find_active(pairs: Iterable[GeneratedPair], copies: Copies, info: DebugInfo) -> ActiveVariables:
    """Collects what is active in all pairs."""
    active: set[Node] = set()
    known: set[Node] = {CONSTANT}
    lines: set[tuple[str, int]] = set()
    for made in pairs:
        unit = made.unit
        for value in (*unit.function.params, *unit.function.instructions()):
            if not (is_differentiable(value.type) or isinstance(value.type, PointerType)):
                continue
            nodes = tuple(_nodes(value, str(unit.function.name), info))
            known.update(nodes)
            if unit.activity.is_active(value):
                active.update(nodes)
                if isinstance(value, Instruction):
                    for frame in info.frames(value):
                        symbol = "" if is_parallel_body(frame.place) else frame.symbol
                        lines.add((symbol, frame.place.line))
    return ActiveVariables(copies, frozenset(active), frozenset(known), frozenset(lines))


def variables_of(value: Value, function: str, copies: Copies, info: DebugInfo) -> tuple[str, ...]:
    """The Python variables that a value is stored to, without the numbers of their versions."""
    nodes = tuple(_nodes(value, function, info))
    stored = [version for node in nodes for version in sorted(copies.variables.get(node, ()))]
    given = [name for _, name in nodes if not name.startswith("%")]
    return tuple(dict.fromkeys(version.partition(".")[0] for version in (*given, *stored)))


def _nodes(value: Value, function: str, info: DebugInfo) -> Iterator[Node]:
    """The names of a value before LLVM optimised; a parameter that is a part of an argument is that argument, too."""
    if value.name is None:
        return
    if isinstance(value, Parameter):
        yield function, f"%{value.name}"
        if value.name.startswith("arg."):
            yield function, python_name(value.name)
        return
    assert isinstance(value, Instruction)
    frames = info.frames(value)
    yield frames[0].symbol if frames else function, f"%{_COPY.sub('', value.name)}"
