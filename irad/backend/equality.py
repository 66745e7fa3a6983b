"""Keeps LLVM from replacing a number by one that it was compared equal to.

After ``if x == 2.0`` LLVM replaces ``x`` by 2.0. The value is the same, but the derivative with respect to ``x`` is
lost: in that branch, whatever depends on ``x`` becomes a constant. So comparisons for equality are calls of an unknown
function while the scalar pipeline runs, and comparisons again in the text that irad reads.

    %c = fcmp oeq double %x, 2.0        %c = call i1 @irad.fcmp.oeq.double(double %x, double 2.0)

A comparison with a literal zero stays as it is: zero has two signs, so LLVM does not replace unless a flag allows it,
and flags are dropped.
"""

from __future__ import annotations

import re

_PREFIX = "irad.fcmp."
_COMPARISON = re.compile(
    r"= fcmp (?P<flags>(?:[a-z]+ )*?)(?P<predicate>oeq|ueq|one|une) (?P<type>float|double) "
    r"(?P<a>[^\s,]+),\s+(?P<b>[^\s,]+)"
)
_ZEROS = frozenset({"0x0", "0.0", "0x0000000000000000", "0x8000000000000000"})
_LITERAL = r"[^%@\s,)][^\s,)]*"
_CALL = re.compile(
    rf"= (?:tail )?call i1 @{re.escape(_PREFIX)}(?P<predicate>\w+)\.(?P<type>float|double)"
    r"\(\w+ (?P<a>[^\s,]+), \w+ (?P<b>[^\s,]+)\)(?: #\d+)?"
)
_DECIDED = re.compile(
    rf"= (?:tail )?call i1 @{re.escape(_PREFIX)}(?P<predicate>\w+)\.(?P<type>float|double)"
    rf"\(\w+ (?P<a>{_LITERAL}), \w+ (?P<b>{_LITERAL})\)(?: #\d+)?"
)

_DECLARATION = re.compile(rf"^(?:; Function Attrs:[^\n]*\n)?declare [^\n]*@{re.escape(_PREFIX)}[^\n]*\n", re.MULTILINE)


def hide(text: str) -> str:
    """A module's text with its comparisons for equality as calls."""
    names: set[tuple[str, str]] = set()

    def call(found: re.Match[str]) -> str:
        predicate, type_, a, b = found["predicate"], found["type"], found["a"], found["b"]
        if a in _ZEROS or b in _ZEROS:
            return f"= fcmp {predicate} {type_} {a}, {b}"
        names.add((predicate, type_))
        return f"= call i1 @{_PREFIX}{predicate}.{type_}({type_} {a}, {type_} {b})"

    hidden = _COMPARISON.sub(call, text)
    declarations = [
        f"declare i1 @{_PREFIX}{predicate}.{type_}({type_}, {type_}) nounwind willreturn speculatable memory(none)\n"
        for predicate, type_ in sorted(names)
    ]
    return "\n".join([hidden, *declarations]) if declarations else hidden


def has_hidden(symbols: list[str]) -> bool:
    """Whether any of a module's symbols stands for a comparison."""
    return any(symbol.startswith(_PREFIX) for symbol in symbols)


def reveal_decided(text: str) -> str | None:
    """The text with comparisons of two literal numbers made plain again, for LLVM to fold; None if there is none."""
    revealed, count = _DECIDED.subn(r"= fcmp \g<predicate> \g<type> \g<a>, \g<b>", text)
    return revealed if count else None


def reveal(text: str) -> str:
    """The text with all calls as comparisons again."""
    return _DECLARATION.sub("", _CALL.sub(r"= fcmp \g<predicate> \g<type> \g<a>, \g<b>", text))
