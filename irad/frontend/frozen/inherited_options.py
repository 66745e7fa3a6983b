"""Options that a function takes from its caller: fastmath, and what a division by zero does.

Numba compiles a function that does not set these under the options of the function that calls it first, and keeps that
code for all other callers. So the function alone does not tell which program Numba made of it.

Input   a compile result of Numba, whose descriptor holds the flags it was made under, also when it comes from disk.
Output  `inherited`: these options; `under`: compiling again under the same.

    @njit                 called first: isnan is what it says
    def g(x): …           called first from a function with fastmath: LLVM assumes there is no NaN
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final, TypeAlias

from numba.core.compiler import DEFAULT_FLAGS, CompileResult, Flags
from numba.core.cpu_options import FastMathOptions
from numba.core.targetconfig import ConfigStack

_ERROR_MODEL: Final = re.compile(r"\berror_model=(\w+)")
_PARALLEL: Final = re.compile(r"\bauto_parallel=ParallelOptions\(([^)]*)\)")
_WORD: Final = re.compile(r"(\w+)=(\w+)")
_SWITCHES: Final = {
    "boundscheck": "boundscheck",
    "debug": "debuginfo",
    "nogil": "release_gil",
    "forceinline": "forceinline",
}
_FASTMATH: Final = re.compile(r"\bfastmath=FastMathOptions\((\{[^}]*\})\)")


def inherited(compiled: CompileResult) -> dict[str, object]:
    """The options under which a specialisation was compiled: its own, or those of the first caller.

    Args:
        compiled: a compile result, by Numba or in the shadow.
    """
    (tag,) = compiled.fndesc.abi_tags
    text = Flags.demangle(tag)
    model, words = _ERROR_MODEL.search(text), _FASTMATH.search(text)
    return {
        "error_model": "python" if model is None else model[1],
        "fastmath": set() if words is None else ast.literal_eval(words[1]),
    }


def stated(compiled: CompileResult) -> dict[str, object]:
    """The options of `numba.njit` that a specialisation was compiled with, as far as they change its code.

    Numba loads code from disk for a function whatever the options are that it was compiled with: that of another
    dispatcher of the same function.
    """
    (tag,) = compiled.fndesc.abi_tags
    text = Flags.demangle(tag)
    parallel = _PARALLEL.search(text)
    kinds = {} if parallel is None else {name: word == "True" for name, word in _WORD.findall(parallel[1])}
    return {
        **inherited(compiled),
        **{option: f"{flag}=True" in text for option, flag in _SWITCHES.items()},
        "parallel": kinds if kinds.pop("enabled", False) else False,
    }


@contextmanager
def under(options: Mapping[str, object]) -> Iterator[None]:
    """Gives these options to what is compiled meanwhile and does not state its own.

    Args:
        options: as `inherited` gives them; none: those of the caller that is being compiled.
    """
    flags = (ConfigStack.top_or_none() or DEFAULT_FLAGS).copy()
    for name, value in options.items():
        setattr(flags, name, value)
    with ConfigStack().enter(flags):
        yield


DEFAULT: Final[Mapping[str, Any]] = {"error_model": "python", "fastmath": set()}
"""The options of what no compiled function calls."""


# Which functions pass their options on, and to which: what a function may have been compiled under.
#
# Numba compiles a function under the options of whoever calls it first in a process, and irad does the
# same. In another process that may be another caller. So what was compiled has to have the options that
# the program by itself gives it.

Options: TypeAlias = tuple[tuple[str, str], ...]


def inherited_options() -> Mapping[str, object]:
    """The options that a function takes that is compiled now: of its caller, if that is being compiled."""
    flags: Any = ConfigStack.top_or_none() or DEFAULT_FLAGS
    return {
        "error_model": flags.error_model if flags.is_set("error_model") else DEFAULT["error_model"],
        "fastmath": flags.fastmath.flags if flags.is_set("fastmath") else DEFAULT["fastmath"],
    }


def comparable(options: Mapping[str, object]) -> Options:
    """Options that can be compared, and put into a digest."""
    return tuple((name, str(sorted(found) if isinstance(found := options[name], set) else found)) for name in DEFAULT)


class Inheritance:
    """Functions that pass their options to others.

    Args:
        ambient: options of functions that none of the others calls.
    """

    def __init__(self, ambient: Mapping[str, object]) -> None:
        self._ambient: Final = comparable(ambient)
        self._callers: dict[Any, set[Any]] = {}
        self._own: dict[Any, Mapping[str, Any]] = {}

    def note_call(self, caller: Any, callee: Any) -> None:
        """Notes that a function, or nothing that is known, calls another one."""
        self._callers.setdefault(callee, set()).add(caller)

    def note_options(self, function: Any, options: Mapping[str, Any]) -> None:
        """Notes the options in the declaration of a function."""
        own: dict[str, object] = {}
        if "error_model" in options:
            own["error_model"] = options["error_model"]
        if "fastmath" in options:
            own["fastmath"] = FastMathOptions(options["fastmath"]).flags
        self._own[function] = own

    @cached_property
    def expected(self) -> Mapping[Any, Set[Options]]:
        """The options under which each function may be compiled; ask for them when all is noted."""
        found: dict[Any, set[Options]] = {}
        for callee in (waiting := list(self._callers)):  # grows
            taken = [{self._ambient} if each is None else found.get(each, set()) for each in self._callers[callee]]
            now = {self._under(callee, options) for options in set[Options]().union(*taken)}
            if now != found.get(callee):
                found[callee] = now
                waiting += [each for each, callers in self._callers.items() if callee in callers]
        return found

    def _under(self, function: Any, options: Options) -> Options:
        own = self._own.get(function, {})
        return comparable({**dict(options), **own}) if own else options
