"""LLVM text written by hand, with names for fields, numbers and types.

Names stand in braces, ``${…}``, which LLVM's own text has nowhere:

    ${arena.top}           the index of a field, in a getelementptr
    ${sizeof arena}        bytes of a struct
    ${OUT_OF_MEMORY}       a number that has this name in Python
    ${real}, ${suffix}     a parameter: what has one in its symbol is read once for each value, here each precision

Types of structs are made from the table that the fields come from, so no file declares them. Names are looked up where
a module is made of the text: that costs less than looking up those of all functions, of which a program needs a fifth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from irad.ir.worklist import reachable
from irad.records import dataclass
from irad.runtime_layouts import NUMBERS, STRUCTS, Struct

PRECISIONS: Final[Sequence[Mapping[str, str]]] = (
    {"real": "double", "suffix": "f64", "sizeof real": "8"},
    {"real": "float", "suffix": "f32", "sizeof real": "4"},
)
_NAME: Final = re.compile(r"\$\{([^}]+)\}")
_SYMBOL: Final = re.compile(r"@([\w.]+)")
_SUPPORT_SYMBOL: Final = re.compile(r"@(irad\.[\w.]+)")


@dataclass(frozen=True, slots=True)
class Definition:
    """A function that is defined.

    Attributes:
        text: its definition, for any number of modules of a process, with names in braces.
    """

    text: str

    @property
    def head(self) -> str:
        """The first line."""
        return self.text.partition("\n")[0]

    @property
    def is_inlined(self) -> bool:
        """True if callers take the definition."""
        return "alwaysinline" in self.head

    @property
    def exported(self) -> str:
        """The definition for the one module that holds its code."""
        return self.text.replace(" linkonce_odr", "", 1)

    @property
    def for_callers(self) -> str:
        """Text for modules that call it: a declaration, or the definition where that is inlined."""
        if self.is_inlined:
            return self.text
        return f"declare{self.head.removeprefix('define linkonce_odr').rpartition(')')[0]}) nounwind"


@dataclass(frozen=True, slots=True)
class LlvmText:
    """LLVM text by symbol.

    Attributes:
        names: replacement for each name in braces.
        types: declarations of structs.
        outside: declarations of functions that are defined elsewhere, and variables.
        functions: definitions.
    """

    names: Mapping[str, str]
    types: str
    outside: Mapping[str, str]
    functions: Mapping[str, Definition]

    def text(self) -> str:
        """A module of everything."""
        return self.module_of(function.text for function in self.functions.values())

    def module_of(self, texts: Iterable[str]) -> str:
        """A module of texts of some functions, with the types, variables and declarations that they refer to.

        Raises:
            KeyError: a name in braces that nothing stands for.
        """
        body = "\n".join(texts)
        # The others may be defined nowhere in this process: those of MPI are where a program communicates.
        used = set(_SYMBOL.findall(body))
        # Nobody names the table of constructors, which runs what a program without Python starts with.
        outside = (item for symbol, item in self.outside.items() if symbol in used or symbol.startswith("llvm."))
        written = "\n".join((self.types, *outside, body, ""))
        return _NAME.sub(lambda found: self.names[found[1]], written)

    def reached(
        self, names: Iterable[str], through: Callable[[Definition], bool] = lambda function: True
    ) -> dict[str, Definition]:
        """The functions by these names and those that they call, those called by what ``through`` holds of."""

        def callees(name: str) -> Iterable[str]:
            function = self.functions[name]
            return _called(function) & self.functions.keys() if through(function) else ()

        reached = set(reachable((name for name in names if name in self.functions), callees))
        return {name: self.functions[name] for name in self.functions if name in reached}  # the same order always

    def named_in(self, text: str) -> frozenset[str]:
        """The names of functions of irad in LLVM text that are defined here."""
        return frozenset(_SUPPORT_SYMBOL.findall(text)) & self.functions.keys()

    def with_text(self, text: str, parameters: Sequence[Mapping[str, str]] = PRECISIONS) -> LlvmText:
        """With more text, whose functions take the place of those of the same names.

        Args:
            text: with names in braces.
            parameters: the values of parameters: what has one in its symbol is read once for each mapping.
        """
        outside, functions = dict(self.outside), dict(self.functions)
        for written in _items(text):
            for symbol, item in _variants(written, parameters):
                if item.startswith("define "):
                    functions[symbol] = Definition(item)
                else:
                    outside.setdefault(symbol, item)
        return LlvmText(
            self.names,
            self.types,
            {symbol: text for symbol, text in outside.items() if symbol not in functions},
            functions,
        )


def read(
    folder: Path,
    *files: str,
    structs: Iterable[Struct] = STRUCTS,
    numbers: Mapping[str, int] = NUMBERS,
    parameters: Sequence[Mapping[str, str]] = PRECISIONS,
) -> LlvmText:
    """The text of some files of a folder.

    Args:
        folder: with the files.
        files: without ``.ll``.
        structs: those whose fields have names.
        numbers: further names.
        parameters: the values of parameters, see `LlvmText.with_text`.
    """
    structs = tuple(structs)
    empty = LlvmText(_names(structs, numbers), "\n".join(each.text for each in structs), {}, {})
    text = "\n".join(folder.joinpath(f"{name}.ll").read_text(encoding="utf-8") for name in files)
    return empty.with_text(text, parameters)


def _names(structs: Iterable[Struct], numbers: Mapping[str, int]) -> dict[str, str]:
    names = {name: str(value) for name, value in numbers.items()}
    for struct in structs:
        short = struct.name.rpartition(".")[2]
        names[f"sizeof {short}"] = str(struct.size)
        names.update((f"{short}.{field}", str(index)) for index, field in enumerate(struct.fields))
    return names


def _items(text: str) -> Iterator[str]:
    """The definitions, each up to a line that begins with ``}``, declarations and variables of a text.

    LLVM's parser takes nine times as long for the same text, irad's eighty times, and a program waits for this before
    its first gradient.
    """
    for piece in f"\n{text}".split("\ndefine "):
        body, end, between = piece.rpartition("\n}")
        if end:
            yield f"define {body}\n}}"
        yield from (line for line in between.split("\n") if line.startswith(("declare ", "@")))


def _variants(item: str, parameters: Sequence[Mapping[str, str]]) -> Iterable[tuple[str, str]]:
    """An item with its symbol, once for each value of the parameters that this contains, or as it is."""
    symbol = item.partition("@")[2].partition("(")[0].partition(" ")[0]  # no quotes surround symbols in these files
    if "${" not in symbol:
        return ((symbol, item),)
    return ((_with(values, symbol), _with(values, item)) for values in parameters)


def _with(values: Mapping[str, str], text: str) -> str:
    return _NAME.sub(lambda found: values.get(found[1], found[0]), text)


@cache
def _called(function: Definition) -> frozenset[str]:
    return frozenset(_SUPPORT_SYMBOL.findall(function.text))
