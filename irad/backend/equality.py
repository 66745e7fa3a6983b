"""Keeps LLVM from replacing a number by one that it was compared with.

After ``if x == 2.0`` LLVM replaces ``x`` by 2.0, and so it does after ``if 2.0 <= x <= 2.0``, of which it makes a test
for equality. The value is the same, but the derivative with respect to ``x`` is lost: in that branch, whatever depends
on ``x`` becomes a constant. So while the scalar pipeline runs, it is copies of the numbers that are compared. Of them
LLVM knows nothing but the sign, and where it replaces, it replaces the copies. In the text that irad reads, the numbers
themselves are compared again.

    %c = fcmp oeq double %x, 2.0        %irad.same.0 = call double @llvm.arithmetic.fence.f64(double %x)
                                        %c = fcmp oeq double %irad.same.0, 2.0

A comparison for an order copies one of its two numbers: the lesser, in ``a < b`` and its negation alike. Of ``a < b``
and ``b < a``, which together can tell that the numbers are equal, LLVM then sees different operands. Literal numbers
have no derivative, so the other one is copied; which numbers are literals changes when functions are inlined, but
then a number is compared with literals by its copy alone. Loops with such comparisons become vectors as before: values
and gradients of `relu`, `np.clip`, `np.where` and tests for an interval take the same time with copies and without.
"""

from __future__ import annotations

import re
from itertools import count
from typing import Final

_COPY: Final = "%irad.same."
_FENCES: Final = "@llvm.arithmetic.fence."
_OWN_FENCES: Final = "@irad.own.fence."
"""Temporary name of the program's own fences: they stay, and copies go, whatever name LLVM gives these."""
_KINDS: Final = {"double": "f64", "float": "f32", "half": "f16"}
_TYPE: Final = "|".join(_KINDS)
_LITERAL: Final = re.compile(r"[^%@]")
_COMPARISON: Final = re.compile(
    rf"^(?P<name>[^\n=]*= fcmp )(?P<flags>(?:[a-z]+ )*?)(?P<predicate>[ou](?:eq|ne|lt|le|gt|ge)) (?P<type>{_TYPE}) "
    r"(?P<a>[^\s,]+),\s+(?P<b>[^\s,]+)",
    re.MULTILINE,
)
_LESSER_FIRST: Final = frozenset({"lt", "ge"})
_FUNCTION: Final = re.compile(r"^define .*?^}", re.MULTILINE | re.DOTALL)
_NAME: Final = r"%(?:[\w.$-]+|\"[^\"]*\")"
# Of any name: where LLVM moves a comparison, it makes copies of its own (`%x.pre`).
_FENCE: Final = re.compile(
    rf"^\s*(?P<copy>{_NAME}) = (?:tail )?call [^@\n]*@llvm\.arithmetic\.fence\.\w+"
    rf"\((?:{_TYPE}) (?:noundef )?(?P<number>[^\s)]+)\)[^\n]*\n",
    re.MULTILINE,
)
_USE: Final = re.compile(_NAME)
_DECLARATION: Final = re.compile(
    r"^(?:; Function Attrs:[^\n]*\n)?declare [^\n]*@(?P<symbol>llvm\.arithmetic\.fence\.\w+)\([^\n]*\n", re.MULTILINE
)


def hide(text: str) -> str:
    """A module's text in which comparisons of numbers compare copies."""
    numbers = count()
    types = set[str]()

    def compare_copies(found: re.Match[str]) -> str:
        type_, predicate, flags = found["type"], found["predicate"], found["flags"]
        operands = [found["a"], found["b"]]
        lines = ""
        for which in _to_copy(predicate[1:], *operands):
            copy = f"{_COPY}{next(numbers)}"
            lines += f"  {copy} = call {type_} @{_fence(type_)}({type_} {operands[which]})\n"
            operands[which] = copy
        types.add(type_)
        if predicate[1:] in ("eq", "ne"):
            flags = ""
        return f"{lines}{found['name']}{flags}{predicate} {type_} {operands[0]}, {operands[1]}"

    hidden = _COMPARISON.sub(compare_copies, text.replace(_FENCES, _OWN_FENCES))
    return hidden + "".join(f"\ndeclare {type_} @{_fence(type_)}({type_})\n" for type_ in sorted(types))


def _fence(type_: str) -> str:
    return f"llvm.arithmetic.fence.{_KINDS[type_]}"


def _to_copy(relation: str, a: str, b: str) -> list[int]:
    """Positions of the numbers that are compared by a copy, of the two that a comparison has."""
    literal = [_LITERAL.match(each) is not None for each in (a, b)]
    if any(literal) or relation in ("eq", "ne"):
        return [which for which in (0, 1) if not literal[which]]
    return [0] if relation in _LESSER_FIRST else [1]


def has_hidden(symbols: list[str]) -> bool:
    """True if there may be copies, by the module's symbols."""
    return any(f"@{symbol}".startswith((_FENCES, _OWN_FENCES)) for symbol in symbols)


def reveal_decided(text: str) -> str | None:
    """The text with comparisons of two literal numbers made plain again, for LLVM to fold; None if there is none."""
    revealed = _FUNCTION.sub(lambda found: _decide(found.group()), text)
    return None if revealed == text else revealed


def _decide(function: str) -> str:
    literals: dict[str, str] = {name: number for name, number in _FENCE.findall(function) if _LITERAL.match(number)}
    if not literals:
        return function

    def compare(found: re.Match[str]) -> str:
        a, b = (literals.get(name, name) for name in (str(found["a"]), str(found["b"])))
        if not (_LITERAL.match(a) and _LITERAL.match(b)):
            return found.group()
        return f"{found['name']}{found['flags']}{found['predicate']} {found['type']} {a}, {b}"

    return _COMPARISON.sub(compare, function)


def reveal(text: str) -> str:
    """The text with all numbers compared themselves again."""
    revealed = _FUNCTION.sub(lambda found: _without_copies(found.group()), text)
    return _DECLARATION.sub("", revealed).replace(_OWN_FENCES, _FENCES)


def _without_copies(function: str) -> str:
    numbers = dict(_FENCE.findall(function))
    if not numbers:
        return function

    def number(found: re.Match[str]) -> str:
        name = found.group()
        while name in numbers:
            name = numbers[name]
        return name

    return _USE.sub(number, _FENCE.sub("", function))
