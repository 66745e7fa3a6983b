"""The arrays that functions of irad's libraries compute with, in one type of number, found as NumPy finds it.

For compiled code. What is differentiated is the conversion, so a derivative has the type of the array that was passed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numba import types
from numba.np.numpy_support import as_dtype

from irad.errors import HERE, SignatureError
from irad.frontend.inner import inner_overload


def floats(name: str, *arrays: Any) -> Any:
    """Contiguous arrays of the type of float that NumPy finds for all of them; integers and booleans give float64.

    Args:
        name: of the function that is called, a literal, for messages.
        arrays: None stays None.

    Returns:
        An array for one array, otherwise a tuple.
    """
    raise NotImplementedError("for compiled code")


def floats_or_complex(name: str, *arrays: Any) -> Any:
    """Like `floats`, but numbers may be complex; then all are."""
    raise NotImplementedError("for compiled code")


def inexact(name: str, *arrays: Any) -> Any:
    """Like `floats`, with the promotion of `np.linalg`: numbers may be complex, and integers count as float64 each."""
    raise NotImplementedError("for compiled code")


def numbers(name: str, *arrays: Any) -> Any:
    """Like `inexact`, but integers and booleans stay what they are if all arrays hold such."""
    raise NotImplementedError("for compiled code")


def real(name: str, x: Any) -> Any:
    """A number as a float: integers and booleans as float64, floats as they are."""
    raise NotImplementedError("for compiled code")


def require(name: str, kinds: str, *arrays: Any) -> Any:
    """Refuses arrays by name that are of none of some kinds of numbers, letters of NumPy such as ``"iu"``; literals."""
    raise NotImplementedError("for compiled code")


def require_axes(name: str, count: int, *arrays: Any) -> Any:
    """Refuses arrays by name unless they have ``count`` axes, a literal; other values are left for others to refuse."""
    raise NotImplementedError("for compiled code")


def require_vectors(name: str, *arrays: Any) -> Any:
    """Refuses arrays by name that are neither vectors nor matrices of them; other values are left for others."""
    raise NotImplementedError("for compiled code")


def whole(name: str, number: Any) -> Any:
    """A number that counts something as an int."""
    raise NotImplementedError("for compiled code")


def _is_none(given: types.Type) -> bool:
    return isinstance(given, types.NoneType | types.Omitted)


def dtype_of(name: str, given: types.Type, kinds: str) -> np.dtype[Any]:
    """The dtype of an array.

    Raises:
        SignatureError: it is not an array, or has other kinds of numbers.
    """
    if not isinstance(given, types.Array):
        raise SignatureError(
            f"{name}: {given} where an array is needed",
            "pass a NumPy array: np.asarray(…)",
            f"{name} reads the elements of an array",
            HERE,
        )
    dtype = as_dtype(given.dtype) if isinstance(given.dtype, types.Number | types.Boolean) else None
    if dtype is None or dtype.kind not in kinds or dtype == np.float16:
        raise SignatureError(
            f"{name}: an array of {given.dtype}, which it does not support",
            f"pass an array of {_words(kinds)}: x.astype(…)",
            f"{name} computes in NumPy's common type of its arguments, float32 or wider",
            HERE,
        )
    return dtype


def _words(kinds: str) -> str:
    if "f" not in kinds:
        return "integers"
    return "float32 or float64" + (", or complex numbers" if "c" in kinds else "")


_Promote: TypeAlias = Callable[[list[np.dtype[Any]]], np.dtype[Any]]
"""The type of numbers for those of arrays."""


def _as_array_library(dtypes: list[np.dtype[Any]]) -> np.dtype[Any]:
    return np.result_type(*dtypes)


def _as_floats(dtypes: list[np.dtype[Any]]) -> np.dtype[Any]:
    found = np.result_type(*dtypes)
    return np.dtype(np.float64) if found.kind in "biu" else found


def _as_linear_algebra(dtypes: list[np.dtype[Any]]) -> np.dtype[Any]:
    """The dtype in which `np.linalg` computes with arrays of these dtypes."""
    return np.result_type(*[np.float64 if each.kind in "biu" else each for each in dtypes])


def _converted(array: Any, to: Any) -> Any:
    """The array as contiguous memory of a type of number; itself where it is that already."""
    raise NotImplementedError("for compiled code")


@inner_overload(_converted)
def _compiled_converted(array, to):  # type: ignore[no-untyped-def]
    if _is_none(array):
        return lambda array, to: None
    if array.dtype == to.instance_type:
        return lambda array, to: np.ascontiguousarray(array)
    return lambda array, to: np.ascontiguousarray(array).astype(to)


_CONVERTERS: Final = (
    lambda to: lambda name, *arrays: _converted(arrays[0], to),
    lambda to: lambda name, *arrays: (_converted(arrays[0], to), _converted(arrays[1], to)),
    lambda to: lambda name, *arrays: (_converted(arrays[0], to), _converted(arrays[1], to), _converted(arrays[2], to)),
    lambda to: (
        lambda name, *arrays: (
            _converted(arrays[0], to),
            _converted(arrays[1], to),
            _converted(arrays[2], to),
            _converted(arrays[3], to),
        )
    ),
    lambda to: (
        lambda name, *arrays: (
            _converted(arrays[0], to),
            _converted(arrays[1], to),
            _converted(arrays[2], to),
            _converted(arrays[3], to),
            _converted(arrays[4], to),
        )
    ),
)
"""By the number of arrays, since compiled code makes no tuple of several types in a loop."""


def _promoting(function: Any, kinds: str, promote: _Promote) -> None:
    @inner_overload(function, prefer_literal=True)
    def compiled(name, *arrays):  # type: ignore[no-untyped-def]
        if not isinstance(name, types.StringLiteral):
            return None
        to = promote([dtype_of(name.literal_value, each, kinds) for each in arrays if not _is_none(each)]).type
        return _CONVERTERS[len(arrays) - 1](to)


_promoting(floats, "biuf", _as_floats)
_promoting(floats_or_complex, "biufc", _as_floats)
_promoting(inexact, "biufc", _as_linear_algebra)
_promoting(numbers, "biufc", _as_array_library)


@inner_overload(real, prefer_literal=True)
def _compiled_real(name, x):  # type: ignore[no-untyped-def]
    if isinstance(types.unliteral(x), types.Float) and x.bitwidth > 16:
        return lambda name, x: x
    if not isinstance(types.unliteral(x), types.Integer | types.Boolean):
        raise SignatureError(
            f"{name.literal_value}: {x} where a number or an array is needed",
            "pass a float, or an array of float32 or float64",
            f"{name.literal_value} computes with real numbers",
            HERE,
        )
    return lambda name, x: np.float64(x)


@inner_overload(require, prefer_literal=True)
def _compiled_require(name, kinds, *arrays):  # type: ignore[no-untyped-def]
    for each in arrays:
        if not _is_none(each):
            dtype_of(name.literal_value, each, kinds.literal_value)
    return lambda name, kinds, *arrays: None


def _other_axes(name: str, found: int, wanted: str) -> SignatureError:
    return SignatureError(
        f"{name}: an array with {found} axes where one with {wanted} is needed",
        "reshape it: x.reshape(…), x[:, np.newaxis]",
        f"{name} reads it along {wanted}",
        HERE,
    )


@inner_overload(require_axes, prefer_literal=True)
def _compiled_require_axes(name, count, *arrays):  # type: ignore[no-untyped-def]
    for each in arrays:
        if isinstance(each, types.Array) and each.ndim != count.literal_value:
            wanted = f"{count.literal_value} " + ("axis" if count.literal_value == 1 else "axes")
            raise _other_axes(name.literal_value, each.ndim, wanted)
    return lambda name, count, *arrays: None


@inner_overload(require_vectors, prefer_literal=True)
def _compiled_require_vectors(name, *arrays):  # type: ignore[no-untyped-def]
    for each in arrays:
        if isinstance(each, types.Array) and each.ndim not in (1, 2):
            raise _other_axes(name.literal_value, each.ndim, "1 axis or 2 axes")
    return lambda name, *arrays: None


@inner_overload(whole, prefer_literal=True)
def _compiled_whole(name, number):  # type: ignore[no-untyped-def]
    if not isinstance(types.unliteral(number), types.Integer):
        raise SignatureError(
            f"{name.literal_value}: {number} where an int is needed", "pass an int", "it counts something", HERE
        )
    return lambda name, number: np.int64(number)
