"""Functions that rules are registered for, as the catalogue knows them: Python functions, dispatchers, C symbols.

A C function comes as an object of ctypes or cffi, as a `types.ExternalFunction`, or by name; LLVM code calls it by its
symbol.
"""

from __future__ import annotations

import ctypes
import inspect
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, TypeVar

from numba.core import types
from numba.core.registry import CPUDispatcher
from numba.core.typing import Signature, cffi_utils

from irad.errors import RuleError
from irad.frontend import external
from irad.frontend.custom.catalogue import ANY, BY_IRAD, Pattern, edited, is_known, name_of, pattern_of
from irad.frontend.numba import internals
from irad.frontend.numba.target import typing_context

_Function = TypeVar("_Function", bound=Callable[..., Any])
_CFunction: Any = ctypes.CFUNCTYPE(None).__base__  # of all function types


def target_of(f: Any) -> Any:
    """A function as the catalogue knows it.

    Raises:
        RuleError: it is nothing that compiled code can call.
    """
    if isinstance(f, str):
        return f
    if isinstance(f, types.ExternalFunction):
        return f.symbol
    if isinstance(f, _CFunction):
        if f.argtypes is None:
            raise RuleError(
                f"the C function {f!r} has no argtypes",
                "set argtypes and restype before giving it a rule",
                "without them the number and types of its arguments are unknown",
            )
        address = ctypes.cast(f, ctypes.c_void_p).value
        assert address is not None
        return external.symbol_of(address, f, len(f.argtypes))
    if cffi_utils.SUPPORTED and cffi_utils.is_cffi_func(f):
        signature = cffi_utils.make_function_type(f).sig
        return external.symbol_of(cffi_utils.get_pointer(f), f, len(signature.args))
    if not callable(f):
        raise RuleError(
            f"{f!r} is not a function, so it cannot have a rule",
            "name the function: @irad.rules.reverse(f)",
            "a rule belongs to the function whose derivative it is",
        )
    return f


def inactive_in_irad(f: _Function) -> _Function:
    """Declares that no derivative flows through a function of irad's own; a decorator."""
    with edited(f) as rule:
        rule.inactive = BY_IRAD
    return f


def arity_of(f: Any) -> int | None:
    """The number of arguments of a C function; None for anything else."""
    if isinstance(f, types.ExternalFunction):
        return len(f.sig.args)
    if isinstance(f, _CFunction):
        return None if f.argtypes is None else len(f.argtypes)
    if cffi_utils.SUPPORTED and cffi_utils.is_cffi_func(f):
        return len(cffi_utils.make_function_type(f).sig.args)
    return None


def jitable(f: FunctionType) -> CPUDispatcher | None:
    """A dispatcher of a function that is registered with ``numba.extending.register_jitable``; None for any other."""
    if not is_known(f):
        return None
    for template in getattr(typing_context().resolve_value_type(f), "templates", ()):
        typed = internals.overload_function(template)
        if typed is not None and typed.__qualname__.startswith("register_jitable."):
            return _dispatchers.setdefault(f, CPUDispatcher(f, targetoptions={"nopython": True}))
    return None


_dispatchers: Final[weakref.WeakKeyDictionary[FunctionType, CPUDispatcher]] = weakref.WeakKeyDictionary()


def limited_to(f: object, signature: Signature) -> Pattern:
    """The types of arguments that a declaration for a function is limited to; None for all.

    Raises:
        RuleError: it is not a signature, has another number of arguments, or the function is not one of Python.
    """
    pattern = pattern_of(signature)
    if pattern == ANY:
        return pattern
    target = target_of(f)
    if isinstance(target, str):
        raise RuleError(
            f"a declaration for {target}, a C function, is limited to a signature",
            "leave signature out",
            "a C function has one signature only",
        )
    count = _fixed_arity(f)
    if count is not None and count != len(pattern.entries or ()):
        raise RuleError(
            f"{name_of(f)} takes {count} arguments; the signature {pattern} has {len(pattern.entries or ())}",
            "give a type, a class of types, or None for each argument",
            "the signature would never fit a call",
        )
    return pattern


def _fixed_arity(f: object) -> int | None:
    """The number of arguments that Numba passes to a function; None if that varies, as with library functions."""
    function = getattr(f, "py_func", None)
    if function is None:
        return None
    return len(inspect.signature(function).parameters)
