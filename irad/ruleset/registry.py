"""The rule of a symbol.

A `Registry` is immutable. Layers stand on one another (`user.overlaid_on(built_in)`): within a layer no two rules may
claim a symbol, between layers the upper one wins.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, fields, is_dataclass
from functools import cached_property
from types import CodeType
from typing import TypeAlias

from irad.errors import RuleError
from irad.ir.types import FloatType
from irad.records import dataclass
from irad.ruleset.interface import CallRule, ConstantParameters, Effects, Elementwise, Inactive, PairRule, Rule
from irad.ruleset.symbols import TABLE, symbols_of_function


@dataclass(frozen=True, slots=True)
class _Entry:
    """A rule under one of its symbols; ``precision`` only for elementwise functions."""

    rule: Rule
    precision: FloatType | None = None


@dataclass(frozen=True)
class Library:
    """Rules for the functions of a library, loaded when a symbol is looked up that may be one of them.

    Attributes:
        symbols: matches all symbols of the library at their beginning; it may match others.
        load: gives the rules.
    """

    symbols: re.Pattern[str]
    load: Callable[[], tuple[Rule, ...]]

    @cached_property
    def registry(self) -> Registry:
        """The rules by symbol."""
        return Registry.of(*self.load())


@dataclass(frozen=True, slots=True)
class Registry:
    """Rules by symbol. Made by `of` and `over`.

    Attributes:
        rules: of this layer, in the order given.
        base: the layer below, or None.
        libraries: of this layer, asked after the rules.
    """

    rules: tuple[Rule, ...] = ()
    base: Registry | None = None
    libraries: tuple[Library, ...] = ()
    _exact: dict[str, _Entry] = field(default_factory=dict, repr=False, compare=False)
    _prefixes: tuple[tuple[str, _Entry], ...] = field(default=(), repr=False, compare=False)

    @classmethod
    def of(cls, *rules: Rule, libraries: Sequence[Library] = ()) -> Registry:
        """A registry of one layer. No two of the libraries may claim one symbol; that is not checked here.

        Raises:
            RuleError: two rules claim one symbol, or a rule claims none.
        """
        exact: dict[str, _Entry] = {}
        wild: dict[str, _Entry] = {}
        for rule in rules:
            claimed = list(_claims(rule))
            if not claimed:
                raise RuleError(
                    f"{describe(rule)} names no symbol",
                    "name the LLVM symbols that it is the rule of",
                    "rules are found by the symbol that is called",
                )
            for symbol, precision in claimed:
                table, key = (wild, symbol[:-1]) if symbol.endswith("*") else (exact, symbol)
                if key in table:
                    raise RuleError(
                        f"two rules claim '{symbol}': {describe(table[key].rule)} and {describe(rule)}",
                        "(a) remove one, or (b) put the winner into a registry of its own: winner.overlaid_on(base)",
                        "a call has one derivative, so a symbol has one rule",
                    )
                table[key] = _Entry(rule, precision)
        # The longest prefix decides, whatever the order of the rules.
        prefixes = tuple(sorted(wild.items(), key=lambda item: (-len(item[0]), item[0])))
        return cls(tuple(rules), None, tuple(libraries), exact, prefixes)

    def overlaid_on(self, base: Registry) -> Registry:
        """This registry, falling back to ``base`` where none of its rules applies."""
        below = base if self.base is None else self.base.overlaid_on(base)
        return Registry(self.rules, below, self.libraries, self._exact, self._prefixes)

    def lookup(self, symbol: str) -> Rule | None:
        """The rule of an LLVM symbol, or None."""
        entry = self._find(symbol)
        return None if entry is None else entry.rule

    def function(self, name: str) -> Elementwise | None:
        """The rule of a scalar function by its canonical name, or None."""
        rule = self.lookup(symbols_of_function(name)[0][0]) if name in TABLE else None
        return rule if isinstance(rule, Elementwise) else None

    def precision(self, symbol: str) -> FloatType | None:
        """The type an elementwise symbol computes in (`sinf`: float); None if its rule is of another kind."""
        entry = self._find(symbol)
        return None if entry is None else entry.precision

    def all_rules(self) -> Iterator[Rule]:
        """Every rule, upper layers first; shadowed ones included. All libraries are loaded."""
        yield from self.rules
        for library in self.libraries:
            yield from library.registry.rules
        if self.base is not None:
            yield from self.base.all_rules()

    def fingerprint(self) -> str:
        """A digest of what the rules say, for cache keys: it changes with a formula or the code of a rule."""
        digest = hashlib.sha256()
        for rule in self.all_rules():
            digest.update(_text_of(rule).encode())
            digest.update(b"\0")
        return digest.hexdigest()

    def _find(self, symbol: str) -> _Entry | None:
        found = self._exact.get(symbol)
        if found is not None:
            return found
        for prefix, entry in self._prefixes:
            if symbol.startswith(prefix):
                return entry
        for library in self.libraries:
            loaded = library.registry._find(symbol) if library.symbols.match(symbol) else None
            if loaded is not None:
                return loaded
        return None if self.base is None else self.base._find(symbol)


def describe(rule: Rule) -> str:
    """A rule in a few words, for messages."""
    match rule:
        case Elementwise(name=name):
            return f"the elementwise rule for '{name}'"
        case Inactive(symbols=symbols):
            return f"the declaration of {_listed(symbols)} as inactive"
        case CallRule(symbols=symbols):
            return f"the call rule for {_listed(symbols)}"
        case PairRule(name=name) | ConstantParameters(name=name):
            return f"the rule for '{name}'"


def _listed(symbols: tuple[str, ...]) -> str:
    shown = ", ".join(f"'{symbol}'" for symbol in symbols[:3])
    return shown + (", …" if len(symbols) > 3 else "") if symbols else "no symbol"


def _claims(rule: Rule) -> Iterator[tuple[str, FloatType | None]]:
    match rule:
        case Elementwise(name=name):
            if name not in TABLE:
                raise RuleError(
                    f"no symbols are known for the elementwise function '{name}'",
                    "(a) add it to irad.ruleset.symbols.TABLE or (b) write a CallRule, which names its symbols itself",
                    "rules are found by the symbol that is called",
                )
            yield from symbols_of_function(name)
        case Inactive() | CallRule() | PairRule() | ConstantParameters():
            yield from ((symbol, None) for symbol in rule.symbols)


# ------------------------------------------------------------------------------------------------ fingerprint

_Code: TypeAlias = Callable[..., object] | None


def _text_of(rule: Rule) -> str:
    match rule:
        case Elementwise():
            return repr((rule.name, _spell(rule.partials, {}), sorted(rule.refused)))
        case Inactive():
            return repr(("inactive", rule.symbols, rule.effects and _sorted(rule.effects)))
        case CallRule():
            parts = (rule.augmented, rule.reverse, rule.tangent, rule.series)
            return repr(("call", rule.symbols, _sorted(rule.effects), rule.moves, *map(_code_of, parts)))
        case PairRule():
            return repr((rule.symbols, rule.name, rule.version, sorted(rule.parameters), rule.returns_new))
        case ConstantParameters():
            return repr((rule.symbols, sorted(rule.parameters), rule.returns_new))


def _spell(value: object, known: dict[int, int]) -> str:
    """The text of expressions; parts are shared, and ``repr`` of the tree would take exponential time."""
    if isinstance(value, tuple):
        return f"({', '.join(_spell(part, known) for part in value)})"
    if not is_dataclass(value):
        return repr(value)
    number = known.get(id(value))
    if number is not None:
        return f"#{number}"
    known[id(value)] = len(known)
    parts = (_spell(getattr(value, part.name), known) for part in fields(value))
    return f"{type(value).__name__}({', '.join(parts)})"


def _sorted(effects: Effects) -> str:
    """The text of `Effects` with the members of its sets in order."""
    parts = ((entry.name, getattr(effects, entry.name)) for entry in fields(effects))
    return repr([(name, sorted(part) if isinstance(part, frozenset) else part) for name, part in parts])


def _code_of(function: _Code) -> str:
    """The compiled text of a function and of what it closes over."""
    code = getattr(function, "__code__", None)
    if function is None or not isinstance(code, CodeType):
        return repr(function)
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    closed = [_code_of(cell) if callable(cell) else repr(cell) for cell in cells]
    return repr(
        (function.__module__, function.__qualname__, _digest(code), closed, getattr(function, "__defaults__", None))
    )


def _digest(code: CodeType) -> str:
    constants = [_digest(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    text = repr((code.co_code, constants, code.co_names))
    return hashlib.sha256(text.encode()).hexdigest()
