"""Options that functions take from their callers: which of them a function may have been compiled under.

Numba compiles a function under the options of whoever calls it first in a process, and irad does the same. In another
process that may be another caller. So what was compiled has to have the options that the program by itself gives it.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cached_property
from typing import Any, Final, TypeAlias

from numba.core.compiler import DEFAULT_FLAGS
from numba.core.cpu_options import FastMathOptions
from numba.core.targetconfig import ConfigStack

from irad.frontend.frozen.numba_flags import DEFAULT

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
    """Which function passes its options to which.

    Args:
        ambient: what functions take that none of the others calls.
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
