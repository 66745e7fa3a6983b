"""Which Python variables are active on which line.

Numba keeps each variable in memory of its own before LLVM optimises; so the raw text tells which value is stored to
which variable. Values keep their names through LLVM's pipelines, and the activity analysis speaks of those that are
left. A variable of which no value is left, an array for one, is as active as what its line makes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from irad.frontend.inspection import TypedFunction
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import Instruction
from irad.ir.types import PointerType
from irad.ir.values import Parameter, Value
from irad.passes.activity import is_differentiable
from irad.passes.derivative import GeneratedPair
from irad.report.names import python_name

_DEFINE: Final = re.compile(r'^define [^@\n]*@(?:"([^"]+)"|([^\s(]+))\(')
_STORE: Final = re.compile(r'^  store .* %"?([^\s",]+)"?, ptr %"?([A-Za-z_][\w.]*)"?,')
_COPY: Final = re.compile(r"(?:\.i\d*|\.lcssa\d*)+$")


@dataclass(frozen=True, slots=True)
class Versions:
    """What Numba's variables are called in LLVM: (symbol of the function, value) → versions of variables."""

    of_value: Mapping[tuple[str, str], frozenset[str]]

    @staticmethod
    def of_raw_text(text: str) -> Versions:
        """Reads the stores to variables in a program that is not optimised."""
        found: dict[tuple[str, str], set[str]] = {}
        symbol = ""
        for line in text.splitlines():
            if (head := _DEFINE.match(line)) is not None:
                symbol = head[1] or head[2]
            elif (store := _STORE.match(line)) is not None:
                found.setdefault((symbol, store[1]), set()).add(store[2])
        return Versions({key: frozenset(names) for key, names in found.items()})


@dataclass(frozen=True, slots=True)
class ActiveVariables:
    """Which variables are active, by version and function; and which lines make anything active."""

    versions: frozenset[tuple[str, str]]
    known: frozenset[tuple[str, str]]
    lines: frozenset[tuple[str, int]]

    def split(
        self, typed: TypedFunction, definition: Callable[[int], int]
    ) -> Mapping[int, tuple[frozenset[str], frozenset[str]]]:
        """Active and constant variables of each line of a function, without their versions."""
        active: dict[int, set[str]] = {}
        every: dict[int, set[str]] = {}
        first: dict[str, int] = {}
        for line in typed.ir.lines:
            for version in line.variables:
                made = first.setdefault(version, line.line)
                name = version.partition(".")[0]
                shown = definition(line.line)
                every.setdefault(shown, set()).add(name)
                if version in typed.ir.floats and self._is_active(typed.symbol, version, made):
                    active.setdefault(shown, set()).add(name)
        return {
            line: (frozenset(active.get(line, ())), frozenset(names - active.get(line, set())))
            for line, names in every.items()
        }

    def _is_active(self, symbol: str, version: str, made: int) -> bool:
        if (symbol, version) in self.known:
            return (symbol, version) in self.versions
        return (symbol, made) in self.lines


def find_active(pairs: Iterable[GeneratedPair], versions: Versions, info: DebugInfo) -> ActiveVariables:
    """Collects what is active in all pairs."""
    active: set[tuple[str, str]] = set()
    known: set[tuple[str, str]] = set()
    lines: set[tuple[str, int]] = set()
    for made in pairs:
        unit = made.unit
        for value in (*unit.function.params, *unit.function.instructions()):
            if not (is_differentiable(value.type) or isinstance(value.type, PointerType)):
                continue
            is_active = unit.activity.is_active(value)
            for key in versions_of(value, str(unit.function.name), versions, info):
                known.add(key)
                if is_active:
                    active.add(key)
            if is_active and isinstance(value, Instruction):
                lines.update((frame.symbol, frame.place.line) for frame in info.frames(value))
    return ActiveVariables(frozenset(active), frozenset(known), frozenset(lines))


def versions_of(value: Value, function: str, versions: Versions, info: DebugInfo) -> Iterator[tuple[str, str]]:
    """The variables that a value is, as (symbol, version)."""
    if value.name is None:
        return
    if isinstance(value, Parameter):
        if value.name.startswith("arg."):
            yield function, python_name(value.name)
        return
    assert isinstance(value, Instruction)
    frames = info.frames(value)
    symbol = frames[0].symbol if frames else function
    name = _COPY.sub("", value.name)
    for version in versions.of_value.get((symbol, name), ()):
        yield symbol, version
