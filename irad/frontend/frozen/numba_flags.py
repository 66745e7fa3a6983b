"""Options that a function takes from its caller: fastmath, and what a division by zero does.

Numba compiles a function that does not set these under the options of the function that calls it first, and keeps that
code for all other callers. So the function alone does not tell which program Numba made of it.

Input   a compile result of Numba, whose descriptor holds the flags it was made under, also when it comes from the disk.
Output  `inherited`: these options; `under`: compiling again under the same.

    @njit                 called first: isnan is what it says
    def g(x): …           called first from a function with fastmath: LLVM assumes there is no NaN
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from numba.core.compiler import DEFAULT_FLAGS, CompileResult, Flags
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

    Numba loads code from the disk for a function whatever the options are that it was compiled with: that of another
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
    """What is compiled meanwhile has these options, where it does not state its own.

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
