"""`value_and_grad` of a host function that launches kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irad.cuda.recording.tape import Tape
from irad.errors import SignatureError
from irad.frontend.calls.raising import public


@public
def value_and_grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., tuple[float, Any]]:
    """The value and the gradient of a host function that launches kernels: it runs on a `Tape`, which is reversed.

    Args:
        f: a Python function; it returns an array of one element, of the device or copied to the host.
        argnums: the position of the argument with respect to which it is differentiated, an array, or a tuple of such.

    Returns:
        A callable with the parameters of ``f``, which gives ``(value, gradient)``. The gradient is an array of the
        device, of the shape of the argument; a tuple of these for a tuple of ``argnums``. Memory that the call needed
        is used again by the next one, that of the gradient when it is dropped.

    Raises:
        SignatureError: ``f`` does not return an array of one element, or does not use the argument.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import cuda
        >>> @cuda.jit
        ... def squares(x, out):
        ...     i = cuda.grid(1)
        ...     if i < x.size:
        ...         cuda.atomic.add(out, 0, x[i] * x[i])
        >>> def loss(x):
        ...     out = cuda.to_device(np.zeros(1))
        ...     squares[1, 32](x, out)
        ...     return out
        >>> with irad.cuda.executor():
        ...     value, gradient = irad.cuda.value_and_grad(loss)(cuda.to_device(np.array([1.0, 2.0])))
        >>> value, gradient.copy_to_host()
        (5.0, array([2., 4.]))
    """
    if not callable(f):
        raise SignatureError(
            f"irad.cuda.value_and_grad is given {f!r}",
            "pass a Python function that launches kernels",
            "what it launches is recorded while it runs",
        )

    @functools.wraps(f)
    def value_and_gradient(*args: Any, **kwargs: Any) -> tuple[float, Any]:
        return _run(f, argnums, args, kwargs)

    return value_and_gradient


@public
def _run(f: Callable[..., Any], argnums: int | Sequence[int], args: Any, kwargs: Any) -> tuple[float, Any]:
    with Tape() as tape:
        loss = f(*args, **kwargs)
    try:
        tape.backward(loss)
        host = loss if type(loss) is np.ndarray or not hasattr(loss, "copy_to_host") else loss.copy_to_host()
        value = float(host.item() if hasattr(host, "item") else host)
        if isinstance(argnums, int):
            return value, tape.gradient(args[argnums])
        return value, tuple(tape.gradient(args[position]) for position in argnums)
    finally:
        tape.reset()  # tracebacks of what was compiled may hold the tape until the next garbage collection
