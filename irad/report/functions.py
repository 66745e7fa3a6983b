"""The facts about one generated pair: why values are active, saved or recomputed, and by which rules."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from irad.decompile.names import PARALLEL_LOOP, Namer, python_name
from irad.errors import SourceLocation
from irad.frontend.custom.catalogue import CustomRule, location_of, symbols
from irad.frontend.custom.ruled_calls import Outlined
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import CallSite, Instruction, Load, Phi, Store
from irad.ir.module import Function
from irad.ir.text.printer import print_lines
from irad.ir.types import VOID, PointerType
from irad.ir.values import Parameter, Value
from irad.passes.generated import GeneratedPair
from irad.passes.instrument.loop_sources import LoopSources
from irad.passes.memory.objects import MemoryObject
from irad.passes.mode import AUGMENTED, REVERSE
from irad.passes.request import ParameterKind
from irad.report import words
from irad.report.model import FunctionReport, TapeEntry, ValueFacts
from irad.report.source import UserSource, is_library
from irad.report.variables import Copies, variables_of
from irad.report.words import ValueWords
from irad.rules.all_rules import ALL
from irad.ruleset.interface import CallRule, ConstantParameters, Elementwise, Inactive, PairRule, Rule
from irad.ruleset.registry import Registry

# Which rule a call uses, and where it is written.

INACTIVE = " (inactive)"
"""Suffix of the name of a built-in rule by which a function has no derivative."""


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """A rule by its name and place."""

    name: str
    place: SourceLocation | None


def rule_of(call: CallSite, registry: Registry, ruled: Iterable[Outlined]) -> RuleFacts | None:
    """The rule of what a call calls; None where that is differentiated like the rest of the program."""
    callee = call.callee
    if not isinstance(callee, Function) or callee.name is None:
        return None
    rule = registry.lookup(callee.name)
    if rule is None:
        return None
    users = _users(ruled).get(callee.name)
    if users is not None:
        return RuleFacts(users.name, _place_of_users(users))
    return RuleFacts(_name(rule, callee.name), _place(rule, callee.name))


def _users(ruled: Iterable[Outlined]) -> Mapping[str, CustomRule]:
    return {**symbols(), **{each.symbol: each.rule for each in ruled}}


def _place_of_users(rule: CustomRule) -> SourceLocation | None:
    written = [*rule.parts.values()]
    for part in rule.parts.values():  # `easy_rule` writes the parts itself, around the functions that it was given
        written += [given for name, given in part.__globals__.items() if re.fullmatch(r"partial\d+", name)]
    places = (location_of(function) for function in (*written, rule.target))
    return next((place for place in places if place is not None and not is_library(place.file)), None)


def _name(rule: Rule, symbol: str) -> str:
    match rule:
        case Elementwise(name=name) | PairRule(name=name) | ConstantParameters(name=name):
            return name
        case Inactive():
            return f"{symbol}{INACTIVE}"
        case CallRule():
            return symbol


def _place(rule: Rule, symbol: str) -> SourceLocation | None:
    """The line of a built-in rule in its module."""
    module = _modules().get(id(rule))
    if module is None:
        return None
    file = inspect.getsourcefile(module)
    if file is None:
        return None
    words = (rule.name,) if isinstance(rule, Elementwise) else (symbol, *rule.symbols[:1])
    line = _line_with(file, words)
    if line is None and isinstance(rule, CallRule):
        code = getattr(inspect.unwrap(rule.reverse), "__code__", None)
        return location_of(rule.reverse) if code is not None else SourceLocation(file, 1)
    return SourceLocation(file, line or 1)


@cache
def _line_with(file: str, words: tuple[str, ...]) -> int | None:
    """The first line that begins a rule for one of some words, or else has one in quotes."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    for spelled in ('("{}"', '"{}"'):
        for number, line in enumerate(lines, 1):
            if any(
                spelled.format(word) in line and "apply(" not in line.split(spelled.format(word))[0] for word in words
            ):
                return number
    return None


@cache
def _modules() -> dict[int, Any]:
    """The module of each built-in rule."""
    kept = {id(rule) for rule in ALL}
    found: dict[int, Any] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("irad.rules."):
            found |= {id(rule): module for rule in getattr(module, "RULES", ()) if id(rule) in kept}
    return found


_SPELLED: Final = re.compile(r'%(?:"[^"]*"|[-\w.$]+)')


@dataclass(eq=False)
class PairReader:
    """Reads one pair.

    Attributes:
        definitions: where the functions of the program are defined, by symbol.
        names: spelling of the primal's values.
        copies: the Python variables that values come from.
        loops: where loops are.
        allocations: the engine's names for memory that a call allocates, and the words for it.
        primals: value of the forward sweep → the primal's value, and whether it is that one's shadow.
        saved: the values on the tape.
        words: source expressions of values.
    """

    made: GeneratedPair
    info: DebugInfo
    source: UserSource
    namer: Namer
    ruled: tuple[Outlined, ...]
    definitions: Mapping[str, SourceLocation | None]
    copies: Copies
    loops: LoopSources
    names: Mapping[Value, str] = field(init=False)
    primals: dict[Value, tuple[Value, bool]] = field(init=False)
    allocations: dict[str, str] = field(init=False)
    saved: frozenset[Value] = field(init=False)
    words: ValueWords = field(init=False)

    def __post_init__(self) -> None:
        unit = self.made.unit
        self.names = print_lines(unit.function)[1]
        augmented = self.made.augmented
        self.primals = {copy: (primal, False) for primal, copy in augmented.values.items()}
        self.primals |= {shadow: (primal, True) for primal, shadow in augmented.shadows.items()}
        made = [item for item in self.made.unit.points_to.objects if isinstance(item.value, Instruction)]
        named = {str(item): self._memory_in_words(item) for item in made}
        self.allocations = _longest_first(named)
        self._augmented = print_lines(self.made.pair[AUGMENTED])[1]
        self.words = ValueWords(unit, self.info, self.namer, self.copies, self.place_of, self.loops)
        self._spelled = {name: value for value, name in self._augmented.items()}
        self.saved = frozenset(self.primals[v][0] for v in self.made.plan.saved if v in self.primals)

    def name_parameters(self, names: Mapping[Parameter, str], numbers: Collection[Parameter]) -> None:
        """Says what the parameters of a parallel loop's body are outside it; ``numbers`` are pointers to one number."""
        self.words.parameters, self.words.numbers = names, numbers
        told = {f"argument {python_name(param.name or '')}": word for param, word in names.items()}
        told |= {f"argument {param.name}": word for param, word in names.items()}
        self.allocations = _longest_first(self.allocations | told)

    def _memory_in_words(self, item: MemoryObject) -> str:
        place = self.place_of(item.value) if item.value is not None else None
        where = f" of line {place.line}" if place is not None else ""
        return {"allocation": f"memory{where}", "header": f"the record of memory{where}"}.get(
            item.kind.value, f"a local variable{where}"
        )

    def spell(self, value: Value) -> tuple[str, str, str]:
        """The name of a value of the forward sweep in the program, what it is in the source, why it is saved."""
        primal, is_shadow = self.primals.get(value, (None, False))
        name = self._augmented.get(value, "") if primal is None else self.names.get(primal, "")
        return f"{name}.shadow" if is_shadow else name, self.named(value), self.why(value)

    def named(self, value: Value) -> str:
        """Words for a value of the forward sweep in the source."""
        primal, is_shadow = self.primals.get(value, (None, False))
        if primal is None:
            return self.words.of_engine(value)
        return f"shadow of {self.words.of(primal)}" if is_shadow else self.words.of(primal)

    def report(self, pairs: Iterable[GeneratedPair], tape: Iterable[TapeEntry]) -> FunctionReport:
        """Everything about the function; ``pairs`` are all of the program, in the order of the report."""
        pair, function = self.made.pair, self.made.unit.function
        symbol = str(function.name)
        return FunctionReport(
            symbol=symbol,
            name=self.name(),
            variant=self.variant(),
            augmented=self.namer.name(str(pair[AUGMENTED].name)),
            reverse=self.namer.name(str(pair[REVERSE].name)),
            place=self.place(),
            calls=tuple(self.calls(pairs)),
            values=tuple(self.values()),
            tape=tuple(tape),
            is_lane=self.made.unit.variant.is_lane,
        )

    def name(self) -> str:
        """As Python names it; of the body of a parallel loop, by its line."""
        name = self.namer.name(str(self.made.unit.function.name))
        if not name.startswith(PARALLEL_LOOP):
            return name
        found = self._place_of_loop()
        return f"parallel loop of line {found.line}" if found is not None else "parallel loop"

    def _place_of_loop(self) -> SourceLocation | None:
        """Place of the loop of which this is the body."""
        return next((place for loop in self.made.unit.loops.roots() if (place := self.loops.of(loop))), None)

    def variant(self) -> str:
        """The way in which the function is differentiated, in words."""
        variant, function = self.made.unit.variant, self.made.unit.function
        active = dict.fromkeys(
            self.words.parameters.get(param) or python_name(param.name or "?")
            for param, kind in zip(function.params, variant.kinds, strict=True)
            if kind is not ParameterKind.CONST and not _is_result(param)
        )
        seeded = variant.result_active or any(
            _is_result(param) and kind is ParameterKind.SHADOW
            for param, kind in zip(function.params, variant.kinds, strict=True)
        )
        lane = "one thread; " if variant.is_lane else ""
        return f"{lane}with respect to {', '.join(active) or 'nothing'}; result {'active' if seeded else 'constant'}"

    def place(self) -> SourceLocation | None:
        """Place of the function's definition; where that is not known, as of a loop's body, its first known place."""
        known = self.definitions.get(str(self.made.unit.function.name))
        if known is None and self.made.unit.function in self.made.augmented.program.loops:
            known = self._place_of_loop()
        if known is not None:
            return known
        chains = map(self.info.inline_chain, self.made.unit.function.instructions())
        return next((place for chain in chains if (place := self.source.place_of(chain[-1:])) is not None), None)

    def calls(self, pairs: Iterable[GeneratedPair]) -> Iterator[int]:
        """The places of the callees' pairs."""
        numbers = {made.pair: number for number, made in enumerate(pairs)}
        by_function = {made.pair.variant: number for made, number in zip(pairs, numbers.values(), strict=True)}
        lanes = {made.unit.function: number for number, made in enumerate(pairs) if made.unit.variant.is_lane}
        for _, callee in self.made.augmented.callee_frames.values():
            number = numbers.get(callee, by_function.get(callee.variant, lanes.get(callee.variant.function)))
            if number is not None:
                yield number

    # -------------------------------------------------------------------------------------------- values

    def values(self) -> Iterator[ValueFacts]:
        """Parameters, then instructions that have a value or act on memory."""
        function = self.made.unit.function
        for param in function.params:
            yield self.facts(param)
        for inst in function.instructions():
            if inst.type is not VOID or isinstance(inst, CallSite | Store):
                yield self.facts(inst)

    def facts(self, value: Value) -> ValueFacts:
        """Facts about one value."""
        unit = self.made.unit
        about = value.operands[0] if isinstance(value, Store) else value
        rule = rule_of(value, unit.registry, self.ruled) if isinstance(value, CallSite) else None
        return ValueFacts(
            name=self.names.get(value, "") if value.type is not VOID else "",
            type=str(value.type),
            operation=self.plain(words.describe(value, unit, self.namer)),
            places=tuple(self.info.inline_chain(value)) if isinstance(value, Instruction) else (),
            is_active=unit.activity.is_active(about),
            activity=self.plain(unit.activity.explain(about)),
            memory=tuple(self.memory(value)),
            plan=self.plan(value),
            is_saved=value in self.saved,
            rule=rule.name if rule is not None else None,
            rule_origin=rule.place if rule is not None else None,
            operands=tuple(self.operands(value)),
            variables=variables_of(value, str(unit.function.name), self.copies, self.info),
            source=self.words.of(value) if value.type is not VOID else "",
        )

    def operands(self, value: Value) -> Iterator[str]:
        """The names of what a value is computed from."""
        if isinstance(value, Instruction):
            for operand in dict.fromkeys(value.operands):
                if isinstance(operand, Instruction | Parameter):
                    yield self.names[operand]

    def plain(self, text: str) -> str:
        """An explanation in a user's words."""
        for spelled, shown in self.allocations.items():
            text = text.replace(spelled, shown)
        return words.plain(_SPELLED.sub(self._in_source, text) if "%" in text else text)

    def _in_source(self, match: re.Match[str]) -> str:
        value = self._spelled.get(match[0])
        return match[0] if value is None else self.named(value)

    def memory(self, value: Value) -> Iterator[str]:
        """Objects a pointer may point to, and their content; for a load, whether that stays."""
        unit = self.made.unit
        if isinstance(value.type, PointerType):
            yield self.plain(unit.points_to.explain(value))
            yield f"holds {self.plain(unit.memory_types.explain(value))}"
        if isinstance(value, Load):
            yield f"its memory: {self.plain(unit.effects.explain(value.operands[0], value))}"

    def plan(self, value: Value) -> str:
        """The plan's choice for a value, and for its shadow if that is needed, too."""
        augmented, plan = self.made.augmented, self.made.plan
        if value.type is VOID:
            return ""
        told = self.plain(plan.explain(augmented.value(value)))
        shadow = augmented.shadows.get(value)
        if shadow is not None and shadow in plan.reasons:
            told += f"; its shadow: {self.plain(plan.explain(shadow))}"
        return told

    def place_of(self, value: Value) -> SourceLocation | None:
        """The user's line that computes a value; of a choice between values, for which LLVM has none, that of one."""
        if isinstance(value, Instruction):
            candidates = (value, *value.operands) if isinstance(value, Phi) else (value,)
            user = self.loops.user
            places = (user.locate(v) for v in candidates if isinstance(v, Instruction))
            return next((place for place in places if place is not None and place.line), None) or user.nearest(value)
        return self.place() if isinstance(value, Parameter) else None

    def why(self, value: Value) -> str:
        """The reason why a value is saved."""
        plan = self.made.plan
        if value in plan.reasons:
            return self.plain(plan.explain(value))
        return "saved: what the loop has saved is found by it"


def _longest_first(words: Mapping[str, str]) -> dict[str, str]:
    """To be replaced in this order: `.7.i` before `.7`."""
    return dict(sorted(words.items(), key=lambda pair: -len(pair[0])))


def _is_result(param: Parameter) -> bool:
    """True if a parameter is the place for the result; LLVM numbers it in callees."""
    return (param.name or "").partition(".")[0] == "retptr"
