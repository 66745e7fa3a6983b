"""Attributes of parameters, results, calls and functions: recognised by name, kept as printed."""

from __future__ import annotations

from irad.ir.text.keywords import (
    ADDRESS_WORDS,
    CONVENTIONS,
    FUNCTION_CALLS,
    FUNCTION_WORDS,
    PARAMETER_CALLS,
    PARAMETER_WORDS,
)
from irad.ir.text.parser_constants import ValueReader


class AttributeReader(ValueReader):
    """Reads attributes and calling conventions."""

    __slots__ = ()

    def parameter_attributes(self) -> tuple[str, ...]:
        """Of a parameter, argument or result."""
        token = self.tokens[self.i]
        first = token[0]
        if first == "%" or first == "@" or first == "," or first == ")":
            return ()
        found: list[str] = []
        while True:
            token = self.tokens[self.i]
            if token in PARAMETER_WORDS or (token[-1] == ")" and token.partition("(")[0] in PARAMETER_CALLS):
                found.append(token)
                self.i += 1
            elif token == "align":
                self.i += 1
                found.append(f"align {self.integer()}")
            elif token[0] == '"':
                found.append(self._string_attribute())
            else:
                return tuple(found)

    def function_attributes(self) -> tuple[str, ...]:
        """Of a function or call: words, strings, groups (`#4`)."""
        if self.tokens[self.i] == ",":
            return ()
        found: list[str] = []
        while True:
            token = self.tokens[self.i]
            if token[0] == "#" and token[1:].isdecimal():
                found.append(token)
                self.i += 1
                continue
            if (
                token in FUNCTION_WORDS
                or token in ADDRESS_WORDS
                or (token[-1] == ")" and token.partition("(")[0] in FUNCTION_CALLS)
                or token.startswith("addrspace(")
            ):
                found.append(token)
                self.i += 1
            elif token[0] == '"':
                found.append(self._string_attribute())
            else:
                return tuple(found)

    def group_attributes(self) -> tuple[str, ...]:
        """Between the braces of `attributes #4 = { … }`; all kinds of attributes may stand there."""
        found: list[str] = []
        while not self.accept("}"):
            token = self.tokens[self.i]
            name = token.partition("(")[0]
            if token[0] == '"':
                found.append(self._string_attribute())
            elif token in FUNCTION_WORDS or token in PARAMETER_WORDS or token in ("align", "alignstack"):
                self.i += 1
                found.append(f"{token}={self.integer()}" if self.accept("=") else token)
            elif token[-1] == ")" and (name in FUNCTION_CALLS or name in PARAMETER_CALLS):
                self.i += 1
                found.append(token)
            else:
                self.unexpected("an attribute")
        return tuple(found)

    def _string_attribute(self) -> str:
        key = self.quoted()
        return f"{key}={self.quoted()}" if self.accept("=") else key

    def convention(self) -> str | None:
        """A calling convention; None for the default."""
        token = self.tokens[self.i]
        if token in CONVENTIONS or token.startswith("riscv_vls_cc("):
            self.i += 1
            return None if token == "ccc" else token
        if token[:2] == "cc" and token[2:].isascii() and token[2:].isdigit():
            self.i += 1
            return token if int(token[2:]) else None
        if token == "cc":
            self.i += 1
            number = self.integer()
            return f"cc{number}" if number else None
        return None
