"""CUDA kernels among what users pass; told without importing `numba.cuda`, which is not usable on every machine."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from irad.api.not_functions import not_a_function
from irad.errors import IradError, SignatureError, SourceLocation
from irad.options import Options


@dataclass(frozen=True, slots=True)
class Launched:
    """A kernel with the configuration of a launch, or its derivative with one.

    Attributes:
        kernel: what `numba.cuda.jit` made.
        configuration: blocks, threads, stream, bytes of dynamic shared memory.
        options: of the derivative, None of a kernel.
    """

    kernel: Any
    configuration: tuple[Any, ...]
    options: Options | None = None


class DerivedKernel:
    """Base of what `irad.cuda` makes of a kernel.

    Attributes:
        kernel: what `numba.cuda.jit` made.
    """

    kernel: Any


class ConfiguredKernel:
    """Base of what `irad.cuda` makes of a kernel, or of its derivative, and the configuration of a launch."""

    @property
    def launched(self) -> Launched:
        """What is launched, and how."""
        raise NotImplementedError


def kernel_of(f: Any) -> Any:
    """The kernel that something is, or that it is the derivative of; None for everything else."""
    if isinstance(f, DerivedKernel):
        return f.kernel
    return f if is_kernel(f) else None


def is_kernel(f: Any) -> bool:
    """Whether something is a kernel or a device function of `numba.cuda.jit`."""
    return _is(f, "numba.cuda.dispatcher", "CUDADispatcher")


def is_device_function(f: Any) -> bool:
    """Whether something is a device function of `numba.cuda.jit`."""
    return is_kernel(f) and bool(f.targetoptions.get("device"))


def launched_of(f: Any) -> Launched | None:
    """What ``kernel[blocks, threads]`` or ``irad.cuda.grad(kernel)[blocks, threads]`` is; None for everything else."""
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
    """Whether a value is of a class whose module may not be there yet: then nothing is."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)
