"""The run-time support of derivatives as LLVM text: read from the files beside this, by symbol.

Everything is ``linkonce_odr``: modules that were linked with it link together. What is marked ``alwaysinline`` goes
into each derivative that calls it, the rest is compiled once for a process (`irad.frontend.resident`), before which
`process.install` must have run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from irad.ir.worklist import reachable
from irad.runtime_layouts import STRUCTS

FILES: Final = (
    *("arena", "release", "allocate", "stack", "slots", "pointers", "lanes", "partials"),
    *("windows.f64", "kernels.f64", "guards.f64", "results.f64", "lists", "dictionaries", "shadows", "watch", "states"),
)
TYPES: Final = "\n".join(each.text for each in STRUCTS)
_HERE: Final = Path(__file__).parent
_PRECISION: Final = ".f64"  # of files that are read for double, and once more for float


_NAME: Final = re.compile(r"@(irad\.[\w.]+)")


@dataclass(frozen=True, slots=True)
class SupportFunction:
    """A function of the support.

    Attributes:
        definition: its text, for any number of modules of a process.
    """

    definition: str

    @property
    def head(self) -> str:
        """The first line."""
        return self.definition.partition("\n")[0]

    @property
    def is_inlined(self) -> bool:
        """Whether its callers take the definition."""
        return "alwaysinline" in self.head

    @property
    def exported(self) -> str:
        """The definition for the one module that holds its code."""
        return self.definition.replace(" linkonce_odr", "", 1)

    @property
    def for_callers(self) -> str:
        """What is in modules that call it."""
        if self.is_inlined:
            return self.definition
        return f"declare{self.head.removeprefix('define linkonce_odr').rpartition(')')[0]}) nounwind"


@dataclass(frozen=True, slots=True)
class Support:
    """LLVM text by symbol.

    Attributes:
        outside: declarations of what other libraries define, and variables.
        functions: those of the support.
    """

    outside: Mapping[str, str]
    functions: Mapping[str, SupportFunction]

    def text(self) -> str:
        """All of it."""
        return self.module_of(function.definition for function in self.functions.values())

    def module_of(self, texts: Iterable[str]) -> str:
        """A module of texts of some functions, with the types, variables and other libraries that they refer to."""
        return "\n".join((TYPES, *self.outside.values(), *texts, ""))

    def reached(
        self, names: Iterable[str], through: Callable[[SupportFunction], bool] = lambda function: True
    ) -> dict[str, SupportFunction]:
        """The functions by these names and those that they call, those called by what ``through`` holds of."""

        def callees(name: str) -> Iterable[str]:
            function = self.functions[name]
            return _called(function) & self.functions.keys() if through(function) else ()

        reached = set(reachable((name for name in names if name in self.functions), callees))
        return {name: self.functions[name] for name in self.functions if name in reached}  # the same order always

    def named_in(self, text: str) -> frozenset[str]:
        """The names of support functions in LLVM text."""
        return frozenset(_NAME.findall(text)) & self.functions.keys()

    def with_functions(self, text: str) -> Support:
        """With other functions in place of those of the same names; with what they declare."""
        declared, defined = _parts(text)
        return _support({**declared, **self.outside}, {**self.functions, **defined})


def read(*names: str) -> Support:
    """The support of some files."""
    return _support(*_parts("\n".join(map(file_text, names))))


@cache
def _called(function: SupportFunction) -> frozenset[str]:
    return frozenset(_NAME.findall(function.definition))


def _support(declared: Mapping[str, str], functions: Mapping[str, SupportFunction]) -> Support:
    return Support({symbol: text for symbol, text in declared.items() if symbol not in functions}, functions)


def file_text(name: str) -> str:
    """The text of a file, in each precision that it serves."""
    text = _HERE.joinpath(f"{name}.ll").read_text(encoding="utf-8")
    if not name.endswith(_PRECISION):
        return text
    return text + text.replace("f64", "f32").replace("double", "float")


@cache
def support() -> Support:
    """The whole of it."""
    return read(*FILES)


def runtime_text() -> str:
    """LLVM text of the whole support, for a module of its own."""
    return support().text()


def _parts(text: str) -> tuple[dict[str, str], dict[str, SupportFunction]]:
    """Declarations and definitions by symbol; a definition begins with ``define`` and ends with a line ``}``."""
    declared, defined = dict[str, str](), dict[str, SupportFunction]()
    function: list[str] = []
    for line in text.split("\n"):
        if function or line.startswith("define "):
            function.append(line)
            if line == "}":
                defined[_symbol(function[0])] = SupportFunction("\n".join(function))
                function = []
        elif line.startswith(("declare ", "@")):
            declared.setdefault(_symbol(line), line)
    return declared, defined


def _symbol(line: str) -> str:
    """The first name in a line, which no quotes surround in these files."""
    return line.partition("@")[2].partition("(")[0].partition(" ")[0]
