"""Kernels and how they are launched: `jit`, dispatchers, configurations."""

from __future__ import annotations

from types import FunctionType
from typing import Any, Final

from numba import cuda
from numba.cuda.dispatcher import CUDADispatcher

from irad.api.invalid_callables import not_a_function, of_numba_cuda_mlir
from irad.backend.executor.launch import Extent
from irad.cuda.calls.flatten import array_of, flat_of, name_of, primal_of
from irad.cuda.calls.raising import raising
from irad.cuda.devices.device import Device, Launch, handle_of
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.raising import public
from irad.message import with_article

_KERNEL: Final = "_irad_kernel"
_AXES: Final = 3
_FORMS: Final = (2, 3, 4)


@public
def jit(function: Any = None, **options: Any) -> Any:
    """Compiles a kernel, or with ``device=True`` a device function, as ``numba.cuda.jit`` does.

    All options of ``numba.cuda.jit`` are passed on; kernels are compiled when they are launched. Inside
    `irad.cuda.executor` they run on the CPU. Derivatives do not need this decorator; they work on every kernel of
    ``numba.cuda.jit``.

    Args:
        function: the function; None if the decorator is called with options.
        options: passed on to ``numba.cuda.jit``.

    Returns:
        The kernel or device function; a decorator if no function is given.

    Raises:
        SignatureError: a signature is given, or the function is not a Python function.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import cuda
        >>> @irad.cuda.jit
        ... def increment(x):
        ...     i = cuda.grid(1)
        ...     if i < x.size:
        ...         x[i] += 1.0
        >>> x = np.zeros(3)
        >>> with irad.cuda.executor():
        ...     increment[1, 32](x)
        >>> x
        array([1., 1., 1.])
    """
    if function is None:
        return lambda later: jit(later, **options)
    if of_numba_cuda_mlir(function):
        raise not_a_function(function)
    if not isinstance(function, FunctionType):
        raise SignatureError(
            f"irad.cuda.jit is given {with_article(type(function).__name__)}",
            "@irad.cuda.jit or @irad.cuda.jit(device=True, fastmath=True, …), above a function",
            "kernels are compiled when they are launched, for the types of the arguments: there are no signatures",
        )
    return cuda.jit(**options)(function)


def dispatcher_of(kernel: Any) -> Any:
    """The dispatcher of a kernel.

    Raises:
        SignatureError: it is not a kernel.
    """
    if isinstance(kernel, FunctionType):
        found = kernel.__dict__.setdefault(_KERNEL, None) or cuda.jit(kernel)
        kernel.__dict__[_KERNEL] = found
        return found
    if of_numba_cuda_mlir(kernel):
        raise not_a_function(kernel)
    if not isinstance(kernel, CUDADispatcher):
        raise SignatureError(
            f"{getattr(kernel, '__name__', kernel)!s} is {with_article(type(kernel).__name__)}, not a CUDA kernel",
            "(a) decorate the kernel with numba.cuda.jit or irad.cuda.jit, or (b) use irad.grad, for a function",
            "irad.cuda differentiates kernels",
        )
    if kernel.targetoptions.get("device"):
        name = kernel.py_func.__qualname__
        raise SignatureError(
            f"{name} is a device function",
            f"differentiate a kernel that calls {name}",
            "only kernels are launched",
            SourceLocation.of(kernel.py_func),
        )
    return kernel


def launch_of(configuration: Any) -> Launch:
    """The configuration of a launch: ``[blocks, threads, stream, shared]``.

    Raises:
        SignatureError: it is none.
    """
    if not isinstance(configuration, tuple) or len(configuration) not in _FORMS:
        raise SignatureError(
            f"[{configuration}] is not the configuration of a launch",
            "kernel[blocks, threads](…) or kernel[blocks, threads, stream, shared](…)",
            "a kernel runs in a grid of blocks of threads",
        )
    stream = handle_of(configuration[2]) if len(configuration) > _FORMS[0] else 0
    shared = configuration[3] if len(configuration) > _FORMS[1] else 0
    return Launch(_extent("blocks", configuration[0]), _extent("threads", configuration[1]), stream, int(shared))


def _extent(what: str, given: Any) -> tuple[int, int, int]:
    sizes = given if isinstance(given, tuple | list) else (given,)
    try:
        found = [int(size.__index__()) for size in sizes]
    except AttributeError:
        found = []
    if not 1 <= len(found) <= _AXES or min(found) < 1:
        raise SignatureError(
            f"{given!r} is not a number of {what}",
            "pass a positive int, or a tuple of up to three",
            "grids and blocks have up to three axes",
        )
    x, y, z = (*found, 1, 1)[:_AXES]
    return x, y, z


def run_kernel(device: Device, kernel: Any, launch: Launch, arguments: tuple[Any, ...]) -> None:
    """Runs the kernel, compiled by irad; raises its exceptions if it was compiled with ``debug=True``."""
    primal = primal_of(kernel, device, arguments)
    memory = []
    for argument, value in zip(primal.arguments, arguments, strict=True):
        for leaf in argument.leaves:
            if leaf.has_memory:
                view = array_of(device, argument, leaf, value)
                low, high = view.extent
                memory.append(Extent(low, high - low, name_of(argument, leaf), view.dtype.itemsize))
    with raising(device, primal, launch.stream) as record:
        flat = [*flat_of(device, primal, arguments), *(each.address for each in record)]
        device.launch(primal.program.module, launch, flat, [*memory, *record])
