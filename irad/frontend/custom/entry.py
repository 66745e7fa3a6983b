"""What is differentiated where the function itself has a rule: a function that does nothing but call it."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from numba.core.registry import CPUDispatcher

from irad.frontend.custom import catalogue

_MEMO = "_irad_caller"  # on the dispatcher: the caller refers to it


def caller_of(dispatcher: Any) -> Any:
    """A dispatcher to differentiate in the place of one: itself, unless it has a rule."""
    if catalogue.find(dispatcher) is None:
        return dispatcher
    made = dispatcher.__dict__.get(_MEMO)
    if made is None:
        made = dispatcher.__dict__[_MEMO] = _caller(dispatcher)
    return made


def _caller(dispatcher: Any) -> Any:
    function = dispatcher.py_func
    parameters = inspect.signature(function).parameters.values()
    names = [f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in parameters]
    listing = ", ".join(names)
    scope = {"irad_callee": dispatcher}
    exec(compile(f"def caller({listing}):\n    return irad_callee({listing})\n", "<irad.rules caller>", "exec"), scope)
    caller: Any = scope.pop("caller")
    caller.__defaults__ = function.__defaults__
    functools.update_wrapper(caller, function, updated=())
    return CPUDispatcher(caller, targetoptions={"nopython": True})
