"""What is differentiated where the function itself has a rule: a function that does nothing but call it."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher

from irad.frontend.custom import catalogue
from irad.frontend.generated import function_from

_MEMO = "_irad_caller"  # on the dispatcher: the caller refers to it


def caller_of(dispatcher: Dispatcher) -> Any:
    """A dispatcher to differentiate instead of one: itself, unless something is declared for it.

    For where no call of it is lowered, which is where rules are found: it is the entry, or a function value.
    """
    if not catalogue.is_declared(dispatcher):
        return dispatcher
    made = dispatcher.__dict__.get(_MEMO)
    if made is None:
        made = dispatcher.__dict__[_MEMO] = _caller(dispatcher)
    return made


def _caller(dispatcher: Dispatcher) -> object:
    function = dispatcher.py_func
    parameters = inspect.signature(function).parameters.values()
    names = [f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in parameters]
    listing = ", ".join(names)
    is_dispatcher = isinstance(dispatcher, CPUDispatcher)
    options = {"nopython": True}
    scope = {"irad_callee": dispatcher if is_dispatcher else CPUDispatcher(function, targetoptions=options)}
    source = f"def caller({listing}):\n    return irad_callee({listing})\n"
    caller = function_from("caller", source, "irad.rules caller", scope)
    caller.__defaults__ = function.__defaults__
    functools.update_wrapper(caller, function, updated=())
    if is_dispatcher:
        return CPUDispatcher(caller, targetoptions=options)
    return type(dispatcher)(caller, targetoptions=dispatcher.targetoptions)  # of a ufunc: nothing but its loop calls it
