"""Arrays that results are written to: new ones, or those of the caller, given as ``out=``.

A caller's array has the shape and type of the result, is contiguous, and shares no memory with the arguments, which
kernels read while they write. So a kernel and its rule do not know whose array it is.
"""

from __future__ import annotations

import numpy as np
from numba import types

from irad.errors import HERE, SignatureError
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_njit, inner_overload


def empty(name, out, shape, x):
    """An array of a shape, in the type of ``x``, with any content: ``out`` unless that is None."""
    raise NotImplementedError("for compiled code")


def zeros(name, out, shape, x):
    """An array of zeros, in the type of ``x``: ``out`` unless that is None."""
    raise NotImplementedError("for compiled code")


def require_apart(out, x):
    """Refuses an array for results that shares memory with an argument."""
    raise NotImplementedError("for compiled code")


@inner_overload(empty, prefer_literal=True)
def _compiled_empty(name, out, shape, x):
    if not isinstance(name, types.StringLiteral):
        return None
    if isinstance(out, types.NoneType):
        return lambda name, out, shape, x: np.empty(shape, x.dtype)
    _require(name.literal_value, out, len(shape), x)

    def given(name, out, shape, x):
        if out.shape != shape:
            raise FormattedValueError("out has the shape {}, the result {}", out.shape, shape)
        return out

    return given


@inner_overload(zeros, prefer_literal=True)
def _compiled_zeros(name, out, shape, x):
    if not isinstance(name, types.StringLiteral):
        return None
    if isinstance(out, types.NoneType):
        return lambda name, out, shape, x: np.zeros(shape, x.dtype)
    literal = name.literal_value

    def cleared(name, out, shape, x):
        clear(empty(literal, out, shape, x))
        return out

    return cleared


def _require(name, out, ndim, x):
    """Refuses an array of another type than the result.

    Raises:
        SignatureError: it is not an array, or has another type of number, other axes, another layout, or is read-only.
    """
    fits = isinstance(out, types.Array) and (out.dtype, out.ndim, out.layout) == (x.dtype, ndim, "C")
    if not fits or not out.mutable:
        raise SignatureError(
            f"{name}: {out} as out=",
            f"pass a contiguous array of {x.dtype} with {ndim} axes, such as np.empty(shape, …)",
            "the result is written to it as it is computed, without a copy",
            HERE,
        )


@inner_overload(require_apart)
def _compiled_require_apart(out, x):
    if isinstance(out, types.NoneType):
        return lambda out, x: None
    return lambda out, x: _check_apart(out, x)


@inactive_in_irad
@inner_njit
def _check_apart(out, x):
    first, second = np.int64(out.ctypes.data), np.int64(x.ctypes.data)
    if first < second + x.size * x.itemsize and second < first + out.size * out.itemsize:
        raise ValueError("out shares memory with an argument, which is read while out is written to")


@inactive_in_irad
@inner_njit
def is_same_memory(out, x):
    """True if two arrays begin at the same address."""
    return out.ctypes.data == x.ctypes.data


@inner_njit
def clear(x):
    """Sets a contiguous array to zero."""
    flat = x.reshape(x.size)
    for i in range(flat.size):
        flat[i] = 0.0
