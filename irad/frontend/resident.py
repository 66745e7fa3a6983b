"""The run-time support in a process: what is inlined travels with its callers, the rest is loaded with the first.

Input   names of support functions, which generated code is going to call.
Output  machine code of them and of what they call, and text for those that LLVM is to inline.
Method  Each function is compiled once, when the first code that calls it is made. All of them together would cost more
        than everything else that a process's first gradient does, and most programs call a fifth of them: no lanes, no
        shadows of containers, no workspace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils

from irad.backend import runtime
from irad.frontend.library import build_library
from irad.frontend.numba_private import compiler_lock

_DEFINITION: Final = re.compile(
    r"^define linkonce_odr (?P<head>[^@\n]*@(?P<name>[\w.]+).*?)(?P<attributes>\) [^\n]*)\{\n.*?^\}\n", re.M | re.S
)
_NAME: Final = re.compile(r"@(irad\.[\w.]+)")

_LOADED: Final[dict[str, Any]] = {}
"""The Numba library with the code of each function that is loaded; they live as long as the process."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A support function.

    Attributes:
        definition: its text, for any number of modules of a process.
        declaration: what declares it.
        is_inlined: whether its callers take the definition.
        calls: the names in its text.
    """

    definition: str
    declaration: str
    is_inlined: bool
    calls: frozenset[str]

    @property
    def exported(self) -> str:
        """The definition for the one module that holds its code."""
        return self.definition.replace(" linkonce_odr", "", 1)


def load(names: Iterable[str]) -> None:
    """Loads support functions and what they call, as far as that is not done; other names are passed over."""
    with compiler_lock():
        runtime.install()
        reached = _reached(names, lambda part: True)
        new = [name for name, part in reached.items() if not part.is_inlined and name not in _LOADED]
        if not new:
            return
        texts = [part.exported if name in new else _as_seen_by_callers(part) for name, part in reached.items()]
        library = build_library(f"irad.runtime.{new[0]}", _with_types(texts), ())
        _LOADED.update(dict.fromkeys(new, library))


def is_loaded() -> bool:
    """Whether some support function has been loaded; until then its text may be replaced."""
    return bool(_LOADED)


def address_of(name: str) -> int:
    """The address of a support function that is not inlined, loaded if need be."""
    load([name])
    address: int = _LOADED[name].get_pointer_to_function(name)
    return address


def declared(module: Any, name: str, result: Any, parameters: Iterable[Any]) -> Any:
    """A support function, loaded if need be, in a module of llvmlite that is going to call it."""
    load([name])
    return cgutils.get_or_insert_function(module, ir.FunctionType(result, list(parameters)), name)


def named_in(text: str) -> frozenset[str]:
    """The names of support functions in LLVM text."""
    return frozenset(_NAME.findall(text)) & _parts().keys()


def inline_text(names: Iterable[str]) -> str:
    """The text of those of the support functions by these names that are inlined, and of what they need there."""
    return _with_types(map(_as_seen_by_callers, _reached(names, lambda part: part.is_inlined).values()))


def _as_seen_by_callers(part: _Part) -> str:
    return part.definition if part.is_inlined else part.declaration


def _reached(names: Iterable[str], through: Callable[[_Part], bool]) -> dict[str, _Part]:
    """The functions by these names and those that they call, those called by what ``through`` holds of."""
    parts = _parts()
    pending, reached = [name for name in names if name in parts], set[str]()
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += parts[name].calls & parts.keys() if through(parts[name]) else ()
    return {name: part for name, part in parts.items() if name in reached}  # in the order of the text, the same always


def _with_types(texts: Iterable[str]) -> str:
    """Text with the types, variables and functions of other libraries that the support refers to."""
    return "\n".join([_DEFINITION.sub("", runtime.runtime_text()), *texts])


@cache
def _parts() -> dict[str, _Part]:
    return {found["name"]: _part(found) for found in _DEFINITION.finditer(runtime.runtime_text())}


def _part(found: re.Match[str]) -> _Part:
    is_inlined = "alwaysinline" in found["attributes"]
    calls = frozenset(_NAME.findall(found[0])) - {found["name"]}
    return _Part(found[0], f"declare {found['head']}) nounwind\n", is_inlined, calls)
