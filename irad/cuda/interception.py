"""Numba's launches, and its functions for arrays and streams, where an executor or a tape is active.

Numba's own stay in place otherwise. They are wrapped once, when `irad.cuda` is loaded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from numba import cuda
from numba.cuda import dispatcher

from irad.cuda.devices import standins
from irad.cuda.devices.current import emulated
from irad.cuda.kernels import launch_of, run_kernel

_STANDINS: Final = (
    *("to_device", "device_array", "device_array_like", "pinned_array", "pinned_array_like"),
    *("mapped_array", "mapped_array_like", "managed_array", "as_cuda_array", "is_cuda_array", "is_available"),
    *("stream", "default_stream", "event", "synchronize"),
)
_THREADS: Final = 128  # of a block, where Numba would ask the driver


class _Configured:
    """A kernel with a configuration, as long as it runs on the executor."""

    def __init__(self, kernel: Any, configuration: tuple[Any, ...]) -> None:
        self.kernel, self.launch = kernel, launch_of(configuration)

    def __call__(self, *arguments: Any) -> None:
        device = emulated()
        if device is None:  # configured inside of the executor's block, launched outside
            launch = self.launch
            return self.kernel[launch.grid, launch.block, launch.stream, launch.shared](*arguments)
        run_kernel(device, self.kernel, self.launch, arguments)
        return None


def install() -> None:
    """Wraps what is Numba's; once for a process."""
    if hasattr(dispatcher.CUDADispatcher.__getitem__, "__wrapped__"):
        return
    _replace(dispatcher.CUDADispatcher, "__getitem__", _Configured)
    _replace(dispatcher._LaunchConfiguration, "__call__", _launch_configured)
    _replace(dispatcher.ForAll, "__call__", _launch_for_all)
    for name in _STANDINS:
        if hasattr(cuda, name):
            _replace(cuda, name, getattr(standins, name))


def _replace(owner: Any, name: str, on_executor: Callable[..., Any]) -> None:
    numbas = getattr(owner, name)

    @functools.wraps(numbas)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (numbas if emulated() is None else on_executor)(*args, **kwargs)

    setattr(owner, name, call)


def _launch_configured(configured: Any, *arguments: Any) -> None:
    """A kernel that was configured before the executor's block."""
    launch = configured.griddim, configured.blockdim, configured.stream, configured.sharedmem
    _Configured(configured.dispatcher, launch)(*arguments)


def _launch_for_all(given: Any, *arguments: Any) -> None:
    if given.ntasks:
        block = given.thread_per_block or _THREADS
        launch = -(-given.ntasks // block), block, given.stream, given.sharedmem
        _Configured(given.dispatcher, launch)(*arguments)
