"""Operators and their precedence, which Numba's text and C's have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from bench.generated.tree import Binary, Both, Compare, Expr, Library, Negative, Num, Select

_SELECT, _BOTH, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, ATOM = range(8)
_OPERATORS: Final = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}


class Printer(ABC):
    """Prints expressions with no more brackets than the order of operations needs: sums keep their order."""

    conjunction: str

    def text(self, value: Expr, least: int = 0) -> str:
        """Text of an expression, in brackets where operators around it bind more strongly."""
        match value:
            case Num():
                found, own = repr(value.value), ATOM if value.value >= 0 else _SIGN
            case Binary("%"):
                found, own = self.remainder(value)
            case Binary():
                own = _OPERATORS[value.operator]
                found = f"{self.text(value.left, own)} {value.operator} {self.text(value.right, own + 1)}"
            case Negative():
                found, own = f"-{self.text(value.operand, _SIGN + 1)}", _SIGN
            case Compare():
                found, own = self.comparison(value), _COMPARE
            case Both():
                sides = (self.text(side, _COMPARE) for side in (value.left, value.right))
                found, own = f" {self.conjunction} ".join(sides), _BOTH
            case Select():
                found, own = self.selection(value), _SELECT
            case Library():
                found, own = self.library(value)
            case _:
                found, own = self.atom(value), ATOM
        return f"({found})" if own < least else found

    def comparison(self, value: Compare) -> str:
        """Text of a comparison."""
        return f"{self.text(value.left, _SUM)} {value.operator} {self.text(value.right, _SUM)}"

    @abstractmethod
    def remainder(self, value: Binary) -> tuple[str, int]:
        """Text of a remainder, and how strongly it binds."""

    @abstractmethod
    def selection(self, value: Select) -> str:
        """Text of a choice."""

    @abstractmethod
    def library(self, value: Library) -> tuple[str, int]:
        """Text of a call of the library, and how strongly it binds."""

    @abstractmethod
    def atom(self, value: Expr) -> str:
        """Text of anything that has no operator."""

    @staticmethod
    def product(left: str, right: str) -> tuple[str, int]:
        """An operation as strong as a product."""
        return f"{left} % {right}", _PRODUCT

    @staticmethod
    def power(base: str) -> tuple[str, int]:
        """A square."""
        return f"{base} ** 2", _POWER
