"""Expressions of which equal ones are the same object, so that each is computed once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Final

from irad.ruleset.expr import Apply, Comparison, Expr, Negation, Numeral, Operation, Symbol, Where, closed

_NOTHING: Final[Mapping[str, Expr]] = MappingProxyType({})


class Terms:
    """The expressions that were asked for, and their parts."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Expr] = {}

    def of(self, expr: Expr, given: Mapping[str, Expr] = _NOTHING) -> Expr:
        """The expression, with what is given in place of symbols."""
        return self._shared(expr, given, {})

    def equate(self, function: Apply, name: Symbol) -> None:
        """Has a symbol stand for the value of a function; its arguments are terms."""
        self._known[_key(function)] = self.of(name)

    def _shared(self, expr: Expr, given: Mapping[str, Expr], done: dict[int, Expr]) -> Expr:
        if id(expr) not in done:
            made = self._rebuilt(expr, given, done)
            done[id(expr)] = self._known.setdefault(_key(made), made)
        return done[id(expr)]

    def _rebuilt(self, expr: Expr, given: Mapping[str, Expr], done: dict[int, Expr]) -> Expr:
        def part(each: Expr) -> Expr:
            return self._shared(each, given, done)

        match closed(expr):
            case Symbol(name=name):
                return given.get(name, expr)
            case Numeral():
                return expr
            case Operation(opcode=opcode, a=a, b=b):
                return Operation(opcode, part(a), part(b))
            case Negation(a=a):
                return Negation(part(a))
            case Where(condition=Comparison(predicate=predicate, a=left, b=right), a=a, b=b):
                return Where(Comparison(predicate, part(left), part(right)), part(a), part(b))
            case Apply(function=function, arguments=arguments):
                return Apply(function, tuple(map(part, arguments)))


def _key(expr: Expr) -> Hashable:
    """Key that distinguishes terms whose parts are terms; these are kept, so their addresses stay theirs."""
    match closed(expr):
        case Symbol(name=name):
            return name
        case Numeral(value=value):
            return value.hex()
        case Operation(opcode=opcode, a=a, b=b):
            return opcode, id(a), id(b)
        case Negation(a=a):
            return "-", id(a)
        case Where(condition=condition, a=a, b=b):
            return condition.predicate, id(condition.a), id(condition.b), id(a), id(b)
        case Apply(function=function, arguments=arguments):
            return function, *map(id, arguments)
