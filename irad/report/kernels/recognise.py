"""Is it a kernel? Answered without importing `numba.cuda`, which is not usable on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from irad.api.kernels import kernel_of
from irad.errors import SignatureError
from irad.options import Options
from irad.report.collect import Collector
from irad.report.subject import subject_of

if TYPE_CHECKING:
    from irad.report.kernels.collect import KernelCollector

AnyCollector: TypeAlias = Union[Collector, "KernelCollector"]


def collector_of(
    f: Any, args: tuple[Any, ...], argnums: int | Sequence[int] | None = None, options: Options | None = None
) -> AnyCollector:
    """What makes reports on the derivative of a function or of a kernel; the arguments are those of `irad.inspect`."""
    kernel = kernel_of(f)
    if kernel is None:
        return Collector(subject_of(f, args, argnums, options), args)
    from irad.report.kernels.collect import KernelCollector  # imports numba.cuda
    from irad.report.kernels.subject import kernel_subject

    positions = (argnums,) if isinstance(argnums, int) else argnums
    if kernel is not f:
        if options is not None:
            raise SignatureError(
                f"{f!r} is made already: options cannot be chosen any more",
                "inspect the kernel",
                "a derivative has the options that it was asked for with",
            )
        options = f.options
    return KernelCollector(kernel_subject(kernel, args, positions, options), args)
