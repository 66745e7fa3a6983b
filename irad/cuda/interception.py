"""Numba's launches, and its functions for arrays and streams, where an executor or a tape is active.

A kernel that calls derivatives is launched by irad everywhere, since Numba cannot compile it.

Numba's own stay in place otherwise. They are wrapped once, when `irad.cuda` is loaded (`patches.LAUNCHES`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from numba import cuda
from numba.core import sigutils
from numba.cuda import dispatcher

from irad.api.functions import ConfiguredKernel, Launched
from irad.cuda.arrays import numpy_library
from irad.cuda.devices import standins
from irad.cuda.devices.current import current_device, emulated
from irad.cuda.kernels import launch_of, run_kernel
from irad.cuda.recording.record import current_record, record_launch, recorded_copy, refuse_assignment
from irad.errors import UnsupportedError
from irad.frontend.cuda.device_derivatives import calls_derivatives
from irad.frontend.cuda.signatures import note_signatures
from irad.frontend.numba.patches import STANDINS, replace_for_good

_IS_AVAILABLE: Final = cuda.is_available
_THREADS: Final = 128  # of a block, where Numba would ask the driver


class _Configured(ConfiguredKernel):
    """A kernel with a configuration, as long as it runs on the executor."""

    def __init__(self, kernel: Any, configuration: tuple[Any, ...]) -> None:
        self.kernel, self.configuration = kernel, configuration
        self.launch = launch_of(configuration)

    @property
    def launched(self) -> Launched:
        """The kernel that is launched, and its configuration."""
        return Launched(self.kernel, self.configuration)

    def __call__(self, *arguments: Any) -> None:
        device, record, launch = emulated(), current_record(), self.launch
        if record is not None:
            record_launch(record, self.kernel, launch, arguments)
        elif device is not None or calls_derivatives(self.kernel):
            run_kernel(current_device(), self.kernel, launch, arguments)
        else:  # configured inside of the block, launched outside
            self.kernel[self.configuration](*arguments)


def install() -> None:
    """Wraps Numba's functions; once for a process."""
    if hasattr(dispatcher.CUDADispatcher.__getitem__, "__wrapped__"):
        return
    replace_for_good("CUDADispatcher.__getitem__", _either(_Configured, _on_executor_or_tape))
    for launches, other in (("_LaunchConfiguration", _launch_configured), ("ForAll", _launch_for_all)):
        either = _either(other, _on_executor_or_tape, lambda given: calls_derivatives(given.dispatcher))
        replace_for_good(f"{launches}.__call__", either)
    replace_for_good("DeviceNDArray.copy_to_device", _recorded_to_device)
    replace_for_good("DeviceNDArray.copy_to_host", _recorded_to_host)
    replace_for_good("DeviceNDArray.__setitem__", _refused_assignment)
    own = standins.DeviceArray
    own.copy_to_device = _recorded_to_device(own.copy_to_device)  # type: ignore[method-assign]
    own.copy_to_host = _recorded_to_host(own.copy_to_host)  # type: ignore[method-assign]
    replace_for_good("jit", _deferring)
    _refuse_ufuncs()
    numpy_library.install()
    for name in STANDINS:
        if hasattr(cuda, name):
            replace_for_good(name, _either(getattr(standins, name), _on_executor))


def _deferring(numbas: Callable[..., Any]) -> Callable[..., Any]:
    """Numba compiles functions with a signature at once, which needs a driver; without one, when they run."""

    @functools.wraps(numbas)
    def jit(func_or_sig: Any = None, *args: Any, **kwargs: Any) -> Any:
        is_signature = isinstance(func_or_sig, list) or sigutils.is_signature(func_or_sig)
        if not is_signature or not _has_no_driver():
            return numbas(func_or_sig, *args, **kwargs)

        def decorate(function: Any) -> Any:
            made = numbas(*args, **kwargs)(function)
            note_signatures(made, func_or_sig if isinstance(func_or_sig, list) else [func_or_sig])
            return made

        return decorate

    return jit


@functools.cache
def _has_no_driver() -> bool:
    return not _IS_AVAILABLE()


def _refuse_ufuncs() -> None:
    """Refuses ufuncs, which Numba launches in ways that irad does not see."""
    for owner, what in (("CUDAVectorize", "vectorize"), ("CUDAGUFuncVectorize", "guvectorize")):
        refused = _refused(
            _on_executor_or_tape,
            f'{what}(target="cuda") runs neither on irad\'s executor nor on a tape',
            "Numba creates and launches its kernels, and irad does not see them",
        )
        replace_for_good(f"{owner}.__init__", refused)
    refused = _refused(
        lambda: current_record() is not None,
        "cuda.reduce has no derivative in irad",
        "its kernel has cuda.syncwarp() for all lanes of a warp, most of which have exited; in the derivative they "
        "wait",
    )
    replace_for_good("Reduce.__call__", refused)


def _refused(when: Callable[[], bool], problem: str, reason: str) -> Callable[[Any], Any]:
    """From Numba's own to the same that is refused under a condition."""

    def make(numbas: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(numbas)
        def call(*args: Any, **kwargs: Any) -> Any:
            if when():
                raise UnsupportedError(problem, "write it as a kernel of cuda.jit", reason)
            return numbas(*args, **kwargs)

        return call

    return make


def _on_executor() -> bool:
    return emulated() is not None


def _on_executor_or_tape() -> bool:
    return current_record() is not None or emulated() is not None


def _either(
    other: Callable[..., Any], when: Callable[[], bool], is_for: Callable[[Any], bool] | None = None
) -> Callable[[Any], Any]:
    """Makes a replacement for a function of Numba that calls something else under one of two conditions."""

    def make(numbas: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(numbas)
        def call(*args: Any, **kwargs: Any) -> Any:
            is_ours = when() or (is_for is not None and is_for(args[0]))
            return (other if is_ours else numbas)(*args, **kwargs)

        return call

    return make


def _recorded_to_device(to_device: Callable[..., Any]) -> Callable[..., Any]:
    """Copies to a device that are known to a tape that records."""

    @functools.wraps(to_device)
    def copy_to_device(self: Any, ary: Any, stream: Any = 0) -> Any:
        with recorded_copy(self, ary, stream):
            return to_device(self, ary, stream)

    return copy_to_device


def _recorded_to_host(to_host: Callable[..., Any]) -> Callable[..., Any]:
    """Copies to the host that are known to a tape that records."""

    @functools.wraps(to_host)
    def copy_to_host(self: Any, ary: Any = None, stream: Any = 0) -> Any:
        if ary is not None:
            with recorded_copy(ary, self, stream):
                return to_host(self, ary, stream)
        made = to_host(self, stream=stream)
        if current_record() is None:
            return made
        made = made.view(standins.HostArray)
        with recorded_copy(made, self, stream):
            return made

    return copy_to_host


def _refused_assignment(assign: Callable[..., None]) -> Callable[..., None]:
    """Numba's assignments to elements of its arrays: kernels that the tape does not see."""

    @functools.wraps(assign)
    def setitem(self: Any, key: Any, value: Any) -> None:
        refuse_assignment()
        assign(self, key, value)

    return setitem


def _launch_configured(configured: Any, *arguments: Any) -> None:
    """A kernel that was configured before the executor's block."""
    launch = configured.griddim, configured.blockdim, configured.stream, configured.sharedmem
    _Configured(configured.dispatcher, launch)(*arguments)


def _launch_for_all(given: Any, *arguments: Any) -> None:
    if given.ntasks:
        block = given.thread_per_block or _THREADS
        launch = -(-given.ntasks // block), block, given.stream, given.sharedmem
        _Configured(given.dispatcher, launch)(*arguments)
