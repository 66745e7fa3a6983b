"""The base of the parser: a position in the token list, errors, types, and words kept as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NoReturn, TypeVar

from irad.errors import ParseError
from irad.ir import types
from irad.ir.text.lexer import END, position_of, tokenize
from irad.ir.text.names import name_key, spell_name, unescape
from irad.ir.types import FunctionType, NamedStructType, StructType, Type

_BUILTIN: Final[dict[str, Type]] = {
    str(t): t
    for t in (
        types.VOID, types.LABEL, types.METADATA, types.TOKEN, types.X86_AMX, types.HALF, types.BFLOAT, types.FLOAT,
        types.DOUBLE, types.X86_FP80, types.FP128, types.PPC_FP128, types.I1, types.I8, types.I16, types.I32,
        types.I64, types.PTR,
    )
}  # fmt: skip
_MAXIMUM_INT_BITS: Final = 1 << 23
_T = TypeVar("_T")


class TypeReader:
    """Reads tokens from left to right. ``types`` maps the spellings met so far, named structs included, to types."""

    __slots__ = ("i", "outer", "source", "tokens", "types")

    def __init__(self, source: str, tokens: list[str], outer: TypeReader | None = None) -> None:
        self.source, self.tokens, self.i, self.outer = source, tokens, 0, outer
        self.types: dict[str, Type] = dict(_BUILTIN) if outer is None else outer.types

    # -------------------------------------------------------------------------------------------- tokens

    def fail(self, problem: str, index: int | None = None) -> NoReturn:
        """Raises `ParseError` at a token, by default the current one."""
        if self.outer is not None:
            self.outer.fail(problem)
        line, column = position_of(self.source, self.i if index is None else index)
        raise ParseError(problem, line, column)

    def unexpected(self, wanted: str) -> NoReturn:
        """Raises `ParseError`: the current token is not what is wanted."""
        token = self.tokens[self.i]
        found = "the end of the text" if token == END else repr(token.strip())
        self.fail(f"expected {wanted}, found {found}")

    def take(self) -> str:
        """The current token, and goes on to the next."""
        token = self.tokens[self.i]
        self.i += 1
        return token

    def expect(self, token: str) -> None:
        """Takes a token that must be there."""
        if self.tokens[self.i] != token:
            self.unexpected(repr(token))
        self.i += 1

    def accept(self, token: str) -> bool:
        """Takes a token if it is there."""
        if self.tokens[self.i] == token:
            self.i += 1
            return True
        return False

    def integer(self) -> int:
        """A decimal number, not negative."""
        token = self.tokens[self.i]
        if not (token.isascii() and token.isdigit()):
            self.unexpected("a number")
        self.i += 1
        return int(token)

    def listed(self, closing: str, read: Callable[[], _T]) -> list[_T]:
        """Parses items between commas up to and including a closing bracket."""
        found: list[_T] = []
        while not self.accept(closing):
            if found:
                self.expect(",")
            found.append(read())
        return found

    def string(self) -> str:
        """A quoted string, escapes resolved."""
        token = self.tokens[self.i]
        if token[0] != '"' or token[-1] != '"' or len(token) < 2:
            self.unexpected("a quoted string")
        self.i += 1
        return unescape(token[1:-1])

    def quoted(self) -> str:
        """A quoted string as printed."""
        start = self.i
        self.string()
        return self.tokens[start]

    def words(self, allowed: frozenset[str]) -> tuple[str, ...]:
        """As many of the allowed words as follow each other."""
        tokens, start = self.tokens, self.i
        end = start
        while tokens[end] in allowed:
            end += 1
        self.i = end
        return tuple(tokens[start:end]) if end > start else ()

    def sigil(self, sign: str, wanted: str) -> str:
        """The key of a name with that sigil."""
        token = self.tokens[self.i]
        if token[0] != sign or len(token) == 1:
            self.unexpected(wanted)
        self.i += 1
        return name_key(token)

    # -------------------------------------------------------------------------------------------- types

    def type(self) -> Type:
        """A type that is not a function type."""
        found = self.types.get(self.tokens[self.i])
        if found is None:
            return self._other_type()
        self.i += 1
        return found

    def type_or_function_type(self) -> Type:
        """A type, or a function type, whose result is read first."""
        found = self.type()
        while self.tokens[self.i] == "(":
            found = self.function_type(found)
        return found

    def _other_type(self) -> Type:
        start = self.i
        token = self.take()
        if token[0] == "%":
            self.i = start
            return self.named_struct()
        match token:
            case "{":
                return types.struct_type(self.listed("}", self.type))
            case "[":
                count = self._count()
                element = self.type()
                self.expect("]")
                return types.array_type(count, element)
            case "<" if self.tokens[self.i][0] == "{":
                plain = self.type()
                self.expect(">")
                return types.struct_type(types.element_types(plain), packed=True)
            case "<":
                return self._vector()
            case _:
                found = self._one_token_type(token)
        if found is None:
            self.i = start
            self.unexpected("a type")
        self.types[token] = found
        return found

    def _one_token_type(self, token: str) -> Type | None:
        if token[0] == "i" and token[1:].isascii() and token[1:].isdigit():
            bits = int(token[1:])
            return types.int_type(bits) if 0 < bits <= _MAXIMUM_INT_BITS else None
        if token.startswith("ptr addrspace("):
            return types.pointer_type(int(token[14:-1]))
        if token.startswith("target("):
            return types.target_ext_type(token)
        if token[0] in "{[<" and len(token) > 1:
            return TypeReader(token, [token[0], *tokenize(token[1:])], self)._composite()
        return None

    def _composite(self) -> Type:
        found = self._other_type()
        self.expect(END)
        return found

    def _count(self) -> int:
        count = self.integer()
        self.expect("x")
        return count

    def _vector(self) -> Type:
        scalable = self.accept("vscale")
        if scalable:
            self.expect("x")
        count = self._count()
        element = self.type()
        self.expect(">")
        return types.vector_type(count, element, scalable=scalable)

    def function_type(self, result: Type) -> FunctionType:
        """`(P, …)` after a result that has been read."""
        self.expect("(")
        params: list[Type] = []
        variadic = False
        while not self.accept(")"):
            if params or variadic:
                self.expect(",")
            if variadic:
                self.unexpected("')'")
            variadic = self.accept("...")
            if not variadic:
                params.append(self.type())
        return types.function_type(result, params, variadic=variadic)

    def named_struct(self) -> NamedStructType:
        """`%name`: the struct of that name, new (and opaque) where not met before."""
        token = self.tokens[self.i]
        key = self.sigil("%", "a type")
        found = self.types.get(key)
        if found is None:
            plain = key[1:]
            name = unescape(plain[1:-1]) if plain[0] == '"' else plain
            spelled = plain if plain.isdecimal() else spell_name(name)
            found = types.named_struct_type(name, f"%{spelled}")
            self.types[key] = found
        if not isinstance(found, NamedStructType):
            self.fail(f"{token} is not a struct type", self.i - 1)
        self.types[token] = found
        return found

    def fields(self, aggregate: Type) -> tuple[Type, ...]:
        """The types of the elements of a struct or array."""
        if isinstance(aggregate, NamedStructType) and aggregate.body is None:
            self.fail(f"{aggregate} is opaque here", self.i - 1)
        return types.element_types(aggregate)

    def struct_body(self) -> StructType | None:
        """Parses the text after `%name = type`: a literal struct, or `opaque`."""
        if self.accept("opaque"):
            return None
        body = self.type()
        if not isinstance(body, StructType):
            self.fail("the body of a named type must be a struct", self.i - 1)
        return body


def read_type(text: str, structs: Iterable[NamedStructType]) -> Type:
    """The type that a text spells, as the attribute `byval(%S)` does.

    Raises:
        ParseError: it spells none.
    """
    reader = TypeReader(text, tokenize(text))
    reader.types.update((str(struct), struct) for struct in structs)
    return reader.type()
