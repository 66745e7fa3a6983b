"""Functions that can be differentiated, and the derivatives already made of them."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any, TypeVar, get_args

from numba.core.registry import CPUDispatcher

from irad.api.invalid_callables import not_a_function
from irad.api.jit import jit
from irad.errors import IradError, SignatureError, SourceLocation
from irad.frontend.numba.messages import location_of
from irad.frontend.offered import stand_for_device_function
from irad.options import Options, PlanName

# CUDA kernels among what users pass; told without importing `numba.cuda`, which is not usable on every machine.


@dataclass(frozen=True, slots=True)
class Launched:
    """A kernel with the configuration of a launch, or its derivative with one.

    Attributes:
        kernel: a kernel of `numba.cuda.jit`.
        configuration: blocks, threads, stream, bytes of dynamic shared memory.
        options: of the derivative, None of a kernel.
    """

    kernel: Any
    configuration: tuple[Any, ...]
    options: Options | None = None


class DerivedKernel:
    """Base of the derivatives that `irad.cuda` makes of a kernel.

    Attributes:
        kernel: a kernel of `numba.cuda.jit`.
    """

    kernel: Any


class ConfiguredKernel:
    """Base of kernels, and derivatives of kernels, with the configuration of a launch."""

    @property
    def launched(self) -> Launched:
        """The kernel that is launched, and its configuration."""
        raise NotImplementedError


def kernel_of(f: Any) -> Any:
    """The kernel that something is, or that it is the derivative of; None for everything else."""
    if isinstance(f, DerivedKernel):
        return f.kernel
    return f if is_kernel(f) else None


def is_kernel(f: Any) -> bool:
    """True if something is a kernel or a device function of `numba.cuda.jit`."""
    return _is(f, "numba.cuda.dispatcher", "CUDADispatcher")


def is_device_function(f: Any) -> bool:
    """True if something is a device function of `numba.cuda.jit`."""
    return is_kernel(f) and bool(f.targetoptions.get("device"))


def launched_of(f: Any) -> Launched | None:
    """The launch of ``kernel[blocks, threads]`` or ``irad.cuda.grad(kernel)[blocks, threads]``; None for others."""
    if isinstance(f, ConfiguredKernel):
        return f.launched
    if _is(f, "numba.cuda.dispatcher", "_LaunchConfiguration"):
        return Launched(f.dispatcher, (f.griddim, f.blockdim, f.stream, f.sharedmem))
    return None


def no_configuration(kernel: Any, function: str) -> IradError:
    """The error where a function that runs kernels is given one without the configuration of a launch."""
    if kernel_of(kernel).targetoptions.get("device"):
        return not_a_function(kernel)
    name = kernel_of(kernel).py_func.__qualname__
    return SignatureError(
        f"{name} is a CUDA kernel, and {function} is given no configuration of a launch",
        f"{function}({name}[blocks, threads], …), or the same with irad.cuda.grad({name})[blocks, threads]",
        "a kernel runs in a grid of blocks of threads",
        SourceLocation.of(kernel_of(kernel).py_func),
    )


def _is(value: Any, module: str, name: str) -> bool:
    """True if a value is of a class whose module may not be there yet: then nothing is."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


# The dispatcher of a function, and the derivatives that were made of it.

_T = TypeVar("_T")

_lock = RLock()
# Kept on the functions themselves: the values refer to them, so a separate table would keep both alive forever.
_COMPILED = "_irad_compiled"
_CHECKED = "checked"  # not the dispatcher itself: it would keep itself alive
_MEMO = "_irad_derivatives"


def primal_of(f: Any) -> Any:
    """The Numba dispatcher of the function that a user wants to differentiate.

    Raises:
        SignatureError: it is not a function that Numba compiles.
    """
    if isinstance(f, CPUDispatcher | types.FunctionType):
        known = f.__dict__.get(_COMPILED)  # a dispatcher that was checked before, or that of a plain function
        if known is not None:
            return f if known is _CHECKED else known
        function = getattr(f, "py_func", f)
        _refuse_star_keywords(function)
        _refuse_other_kinds(function)
    if isinstance(f, CPUDispatcher):
        if f.targetoptions.get("forceobj"):
            raise SignatureError(
                f"{f.py_func.__qualname__} is compiled in object mode",
                "decorate it with numba.njit",
                "object mode runs the function in the Python interpreter, where irad sees none of its operations",
                location_of(f.py_func),
            )
        f.__dict__[_COMPILED] = _CHECKED
        return f
    if isinstance(f, types.FunctionType):
        with _lock:
            known = f.__dict__.get(_COMPILED)
            if known is None:
                known = f.__dict__[_COMPILED] = jit(f)
            return known
    if is_device_function(f):
        _refuse_star_keywords(f.py_func)
        with _lock:
            known = f.__dict__.get(_COMPILED)
            if known is None:
                known = f.__dict__[_COMPILED] = jit(_on_cpu(f.py_func))
                stand_for_device_function(known, f)
            return known
    raise not_a_function(f)


def _on_cpu(function: types.FunctionType) -> types.FunctionType:
    """The Python function of a device function, with functions of the CPU in place of other device functions."""
    code, held = function.__code__, function.__closure__ or ()
    own = {
        name: primal_of(each) for name in code.co_names if is_device_function(each := function.__globals__.get(name))
    }
    cells = tuple(types.CellType(primal_of(c.cell_contents)) if is_device_function(_content(c)) else c for c in held)
    if not own and cells == held:
        return function
    made = types.FunctionType(code, {**function.__globals__, **own}, function.__name__, function.__defaults__, cells)
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    return made


def _content(cell: types.CellType) -> Any:
    """Value of a nonlocal name; None if it has no meaning yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _refuse_star_keywords(function: Any) -> None:
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            raise SignatureError(
                f"{function.__qualname__} takes arbitrary keywords, **{parameter.name}, which Numba does not support",
                f"(a) write a parameter for each keyword instead of **{parameter.name} or (b) pass a named tuple",
                "compiled code has a fixed list of parameters",
                location_of(function),
                focus=f"**{parameter.name}",
            )


def _refuse_other_kinds(function: Any) -> None:
    """Refuses what Numba would compile as something else, and wrappers that it cannot compile."""
    name, flags = function.__qualname__, function.__code__.co_flags
    if flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise SignatureError(
            f"{name} is a coroutine function (async def)",
            "write it with def",
            "a call of it returns a coroutine, which has no derivative",
            location_of(function),
        )
    if flags & inspect.CO_VARKEYWORDS:  # its signature is that of the function which it wraps
        raise SignatureError(
            f"{name} is wrapped by a decorator whose function takes arbitrary keywords, which Numba does not support",
            f"pass the wrapped function: {name}.__wrapped__",
            "compiled code has a fixed list of parameters",
            location_of(function),
        )


def remembered(primal: CPUDispatcher, key: Any, build: Callable[[], _T]) -> _T:
    """The derivative for a key, built once per function; it lives as long as the function."""
    memo: dict[Any, _T] = primal.__dict__.setdefault(_MEMO, {})
    found = memo.get(key)
    if found is None:
        with _lock:
            found = memo.get(key)
            if found is None:
                found = memo[key] = build()
    return found


def _options_wanted(options: Any) -> str:
    if options in get_args(PlanName):
        return f"options=irad.Options(plan={options!r})"
    return 'pass them in one object: options=irad.Options(plan="default", strict=True)'


def check_options(options: Any) -> None:
    """Checks the options that a user passed.

    Raises:
        SignatureError: it is neither None nor an `Options`.
    """
    if options is not None and not isinstance(options, Options):
        raise SignatureError(
            f"options={options!r} is not an irad.Options",
            _options_wanted(options),
            "irad.Options holds all options, by name",
        )


def options_or_default(options: Options | None) -> Options:
    """The user's options, or those of the environment at the time a derivative is made.

    Raises:
        SignatureError: they are neither None nor an `Options`.
    """
    check_options(options)
    return Options.from_environment() if options is None else options
