"""Active Python variables, by line.

Numba keeps each variable in memory of its own before LLVM optimises; so the program tells, before that, which value is
stored to which variable, and which is passed for which parameter. Values keep their names through LLVM's pipelines,
and the activity analysis covers those that are left. A variable without any value left, an array for instance, is as
active as what is made on its line, a parameter as what is made where it is used.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from irad.decompile.names import python_name
from irad.frontend.numba.reports import TypedFunction
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import CallSite, Instruction, Load, Store
from irad.ir.module import Function, Module
from irad.ir.types import PointerType, holds_floats
from irad.ir.values import ConstantFloat, Parameter, Value
from irad.ir.worklist import reachable
from irad.passes.generated import GeneratedPair
from irad.report.source import is_parallel_body

Node: TypeAlias = tuple[str, str]  # symbol of the function; version of a variable, or a value with its %

CONSTANT: Final = ("", "")
"""Stands for all constants."""

_COPY: Final = re.compile(r"(?:\.i\d*|\.lcssa\d*)+$")
_VERSION: Final = re.compile(r"[A-Za-z_]\w*(?:\.\d+)?")
_TARGET: Final = re.compile(r" +(\S+) = ")
_ARGUMENT: Final = re.compile(r"  \w+ = arg\(")


@dataclass(frozen=True, slots=True)
class Copies:
    """Values that are the same number under several names.

    Attributes:
        origins: values copied to a value or variable by loads, stores and calls.
        variables: the versions of variables that a value is stored to.
    """

    origins: Mapping[Node, frozenset[Node]]
    variables: Mapping[Node, frozenset[str]]

    @staticmethod
    def of_raw(module: Module) -> Copies:
        """Reads a program that is not optimised."""
        origins: dict[Node, set[Node]] = {}
        variables: dict[Node, set[str]] = {}
        for function in module.defined_functions():
            symbol = str(function.name)
            for inst in function.instructions():
                match inst:
                    case Store(operands=[value, Instruction(name=str(place)) | Parameter(name=str(place))]):
                        if isinstance(value, ConstantFloat) and (value.value or value.text.startswith("-")):
                            origins.setdefault((symbol, place), set()).add(CONSTANT)  # what begins with zero is not
                        elif isinstance(value, Instruction | Parameter):
                            origins.setdefault((symbol, place), set()).add(_node(symbol, value))
                            if _VERSION.fullmatch(place):
                                variables.setdefault(_node(symbol, value), set()).add(place)
                    case Load(operands=[Instruction(name=str(place)) | Parameter(name=str(place))]):
                        origins.setdefault(_node(symbol, inst), set()).add((symbol, place))
                    case CallSite(callee=Function() as callee, arguments=arguments) if not callee.is_declaration:
                        for parameter, argument in zip(callee.params, arguments, strict=False):
                            if isinstance(argument, Instruction | Parameter):
                                key = _node(str(callee.name), parameter)
                                origins.setdefault(key, set()).add(_node(symbol, argument))
                    case _:
                        pass
        return Copies(
            {key: frozenset(found) for key, found in origins.items()},
            {key: frozenset(found) for key, found in variables.items()},
        )

    def sources(self, node: Node) -> frozenset[Node]:
        """A variable and everything that is copied to it, in one step or several."""
        return frozenset(reachable([node], lambda each: self.origins.get(each, ())))


def _node(symbol: str, value: Value) -> Node:
    return symbol, f"%{value.name or id(value)}"


@dataclass(frozen=True, slots=True)
class ActiveVariables:
    """The active variables.

    Attributes:
        copies: names of variables.
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
    """Lines that show whether a version is active: where it is made, for a parameter where it is used."""
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
            if not (holds_floats(value.type) or isinstance(value.type, PointerType)):
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
