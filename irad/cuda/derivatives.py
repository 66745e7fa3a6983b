"""`grad` and `autodiff` of kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from irad.api.annotations import AutodiffMode, Reverse
from irad.api.functions import ConfiguredKernel, DerivedKernel, Launched, check_options, options_or_default
from irad.backend.cuda.kernel import KernelModule
from irad.cuda.calls.annotated import AnnotatedCall, annotated
from irad.cuda.calls.compiled import Wanted, derivative_of
from irad.cuda.calls.flatten import names_of, ordered, primal_of
from irad.cuda.calls.memory import check_overlap
from irad.cuda.calls.running import Run
from irad.cuda.calls.slices import TapeUse
from irad.cuda.devices.current import RECORDING, current_device
from irad.cuda.devices.device import Device, Launch
from irad.cuda.devices.emulated import EmulatedDevice
from irad.cuda.kernels import dispatcher_of, launch_of
from irad.errors import SignatureError, SourceLocation, UnsupportedError
from irad.frontend.calls.raising import public
from irad.kernel.derive import KernelDerivative
from irad.options import Options
from irad.passes.mode import forward_mode, reverse_mode


class DerivativeKernel(DerivedKernel):
    """The derivative of a kernel, launched as the kernel is; made by `irad.cuda.grad` and `irad.cuda.autodiff`.

    Attributes:
        kernel: the kernel that it is the derivative of.
        mode: `irad.Reverse` or `irad.Forward`.
        options: how the derivative is created; see `irad.Options`.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad import Duplicated
        >>> from numba import cuda
        >>> @cuda.jit
        ... def scale(x, y):
        ...     i = cuda.grid(1)
        ...     if i < x.size:
        ...         y[i] = 2.0 * x[i]
        >>> derivative = irad.cuda.grad(scale)
        >>> derivative
        irad.cuda.grad(scale)
        >>> x, dx, y, dy = np.ones(3), np.zeros(3), np.zeros(3), np.ones(3)
        >>> with irad.cuda.executor():
        ...     derivative[1, 32](Duplicated(x, dx), Duplicated(y, dy))
        (None, None)
        >>> dx, derivative.tape_bytes
        (array([2., 2., 2.]), 0)
    """

    def __init__(self, kernel: Any, mode: AutodiffMode, options: Options) -> None:
        self.kernel, self.mode, self.options = kernel, mode, options
        self._tapes: dict[KernelModule, TapeUse] = {}

    def __repr__(self) -> str:
        name = self.kernel.py_func.__qualname__
        return f"irad.cuda.autodiff({self.mode!r}, {name})" if self.mode.is_forward else f"irad.cuda.grad({name})"

    def __getitem__(self, configuration: Any) -> ConfiguredDerivative:
        """The derivative with the configuration of a launch: ``[blocks, threads]``, or with ``stream, shared``."""
        return ConfiguredDerivative(self, launch_of(configuration))

    def __call__(self, *_: Any, **__: Any) -> None:
        """Kernels are launched with a configuration."""
        name = self.kernel.py_func.__qualname__
        raise SignatureError(
            f"the derivative of the kernel {name} is called without a configuration of the launch",
            f"dk = irad.cuda.grad({name}), then dk[blocks, threads](…)",
            "a kernel runs in a grid of blocks of threads",
        )

    @property
    def tape_bytes(self) -> int:
        """Bytes of the largest tape that a launch used: the number of threads times the most that one thread needed."""
        return max((use.threads * use.wanted for use in self._tapes.values()), default=0)

    def tape_use(self, derivative: KernelDerivative) -> TapeUse:
        """Known facts about the tape of one of its derivatives."""
        return self._tapes.get(derivative.module) or TapeUse()

    def annotated(self, device: Device, arguments: tuple[Any, ...], named: dict[str, Any]) -> AnnotatedCall:
        """The arguments of a call, checked."""
        return annotated(
            ordered(self.kernel, arguments, named),
            lambda values: primal_of(self.kernel, device, values),
            device,
            names_of(self.kernel),
            forward=self.mode.is_forward,
        )

    def compiled(self, call: AnnotatedCall, launch: Launch, *, apart: bool) -> KernelDerivative:
        """The derivative for a call."""
        mode = (forward_mode if self.mode.is_forward else reverse_mode)(call.width)
        return derivative_of(
            self.kernel, call.primal, Wanted(tuple(call.kinds), mode, apart, launch.axes, self.options)
        )

    def run(self, device: Device, launch: Launch, call: AnnotatedCall, *, apart: bool) -> tuple[Any, ...]:
        """Launches the derivative."""
        if self.options.debug and not isinstance(device, EmulatedDevice):
            raise UnsupportedError(
                f"the derivative of {self.kernel.py_func.__qualname__} is launched on a GPU in debug mode",
                "(a) launch it in irad.cuda.executor(), with NumPy arrays, or (b) leave debug=True out",
                "in debug mode threads report to Python, which GPU threads cannot do",
                SourceLocation.of(self.kernel.py_func),
            )
        derivative = self.compiled(call, launch, apart=apart)
        tape = self._tapes.setdefault(derivative.module, TapeUse())
        limit = self.options.max_tape_bytes

        def metered() -> KernelDerivative:
            counting = replace(self.options, measure_tape=True)
            return derivative_kernel(self.mode, self.kernel, counting).compiled(call, launch, apart=apart)

        run = Run(self.kernel, call, derivative, device, launch, tape, metered, limit)
        return run.run(forward=self.mode.is_forward)


class ConfiguredDerivative(ConfiguredKernel):
    """The derivative of a kernel with the configuration of a launch."""

    def __init__(self, derivative: DerivativeKernel, launch: Launch) -> None:
        self.derivative, self.launch = derivative, launch

    @property
    def launched(self) -> Launched:
        """The kernel that is launched, and its configuration."""
        launch = self.launch
        configuration = launch.grid, launch.block, launch.stream, launch.shared
        return Launched(self.derivative.kernel, configuration, self.derivative.options)

    def __call__(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
        """Runs the kernel and its derivative; see `irad.cuda.grad`."""
        return _launched(self.derivative, self.launch, arguments, named)


@public
def _launched(
    derivative: DerivativeKernel, launch: Launch, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, ...]:
    if RECORDING.get() is not None:
        raise SignatureError(
            "the derivative of a kernel is launched while a tape records",
            "(a) launch the kernel, which the tape differentiates, or (b) launch the derivative outside of its block",
            "a tape does not differentiate derivatives",
        )
    device = current_device()
    call = derivative.annotated(device, arguments, named)
    apart = check_overlap(call.arrays, call.numbers)
    return derivative.run(device, launch, call, apart=apart)


@public
def grad(kernel: Callable[..., Any], *, options: Options | None = None) -> DerivativeKernel:
    """The derivative of a kernel in reverse mode, launched in the same way as the kernel.

    ``irad.cuda.grad(kernel)[blocks, threads, stream, shared](…)`` takes the arguments of the kernel, each annotated:
    ``Duplicated(x, dx)`` for an array with its shadow, ``Const(x)`` for an argument without a derivative,
    ``Active(2.0)`` for a number whose derivative is returned, ``Duplicated(2.0, d)`` for a number whose derivative is
    added to an array of one element, `irad.Cache` for workspace, `irad.BatchDuplicated` for several directions at once.
    Integers and their arrays need no annotation. The kernel runs as well: its outputs are computed. On entry a shadow
    holds the cotangent of the final contents of the array, on return that of the initial contents; see
    docs/contracts.md.

    Args:
        kernel: a kernel of ``numba.cuda.jit`` or `irad.cuda.jit`, or a plain function.
        options: how the derivative is created; see `irad.Options`. ``max_tape_bytes`` is for all threads together.

    Returns:
        An `irad.cuda.DerivativeKernel`. A launch gives a tuple with one entry for each argument: the derivative for
        ``Active``, otherwise None. It waits for the result only if there is such a number, or if the threads need a
        tape.

    Raises:
        SignatureError: ``kernel`` is not a kernel; in a launch: an annotation or a shadow does not fit.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad import Active, Duplicated
        >>> from numba import cuda
        >>> @cuda.jit
        ... def power(x, scale, y):
        ...     i = cuda.grid(1)
        ...     if i < x.size:
        ...         y[i] = scale * x[i] ** 2
        >>> x, y = np.array([1.0, 2.0, 3.0]), np.zeros(3)
        >>> dx, dy = np.zeros(3), np.ones(3)
        >>> with irad.cuda.executor():
        ...     irad.cuda.grad(power)[1, 32](Duplicated(x, dx), Active(5.0), Duplicated(y, dy))
        (None, 14.0, None)
        >>> dx, y
        (array([10., 20., 30.]), array([ 5., 20., 45.]))
    """
    return derivative_kernel(Reverse, kernel, options)


@public
def autodiff(mode: AutodiffMode, kernel: Callable[..., Any], *, options: Options | None = None) -> DerivativeKernel:
    """The derivative of a kernel in reverse or forward mode, launched in the same way as the kernel.

    In forward mode the shadow of an array holds its tangent: on entry that of its initial contents, on return that of
    its final contents. A number comes with its tangent: ``Duplicated(2.0, 1.0)``. For reverse mode see
    `irad.cuda.grad`.

    Args:
        mode: `irad.Reverse` or `irad.Forward`.
        kernel: the kernel, as in `irad.cuda.grad`.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        An `irad.cuda.DerivativeKernel`. A launch gives a tuple with an entry for each argument, as in `irad.cuda.grad`;
        in forward mode all are None.

    Raises:
        SignatureError: ``kernel`` is not a kernel, or the mode is another one.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad import Duplicated
        >>> from numba import cuda
        >>> @cuda.jit
        ... def power(x, scale, y):
        ...     i = cuda.grid(1)
        ...     if i < x.size:
        ...         y[i] = scale * x[i] ** 2
        >>> x, y = np.array([1.0, 2.0, 3.0]), np.zeros(3)
        >>> dx, dy = np.array([1.0, 0.0, 0.0]), np.zeros(3)
        >>> tangent = irad.cuda.autodiff(irad.Forward, power)
        >>> with irad.cuda.executor():
        ...     tangent[1, 32](Duplicated(x, dx), Duplicated(5.0, 0.0), Duplicated(y, dy))
        (None, None, None)
        >>> dy
        array([10.,  0.,  0.])
    """
    given: Any = mode
    if not isinstance(given, AutodiffMode) or given.is_split or given.has_primal:
        raise SignatureError(
            f"irad.cuda.autodiff is given {mode!r}",
            "(a) irad.Reverse or (b) irad.Forward",
            "a kernel returns nothing, and both sweeps run in one launch",
        )
    return derivative_kernel(mode, kernel, options)


def derivative_kernel(mode: AutodiffMode, kernel: Any, options: Options | None = None) -> DerivativeKernel:
    """The derivative of a kernel, one for each mode and options."""
    check_options(options)
    found = dispatcher_of(kernel)
    used = options_or_default(options)
    made: dict[Any, DerivativeKernel] = found.__dict__.setdefault(_MADE, {})
    return made.setdefault((mode, used), DerivativeKernel(found, mode, used))


_MADE: Final = "_irad_derivative_kernels"
