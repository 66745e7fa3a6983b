"""NumPy on the executor: device arrays are a subclass of NumPy's, which intercepts operations on them.

Functions and operators come through NumPy's protocols (NEP 13 and 18), methods are wrapped. Functions of SciPy, which
has no such protocol, are replaced while a tape records.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from irad.api.annotations import Const
from irad.cuda.arrays.recording import call_function, suspended
from irad.cuda.arrays.ruleset import gathered
from irad.cuda.devices.device import ArrayView
from irad.cuda.devices.standins import DeviceArray, HostArray
from irad.cuda.recording.record import current_record
from irad.errors import UnsupportedError
from irad.frontend.calls.raising import public

METHODS: Final = (
    *("__getitem__", "__setitem__", "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "byteswap"),
    *("choose", "clip", "compress", "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal", "dot", "fill"),
    *("flatten", "max", "mean", "min", "nonzero", "partition", "prod", "put", "ravel", "repeat", "reshape", "resize"),
    *("round", "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take", "trace", "transpose", "var"),
)


class NumpyLibrary:
    """NumPy's functions, on arrays of the executor."""

    name = "NumPy"

    @property
    def xp(self) -> Any:
        """NumPy."""
        return np

    def is_array(self, value: Any) -> bool:
        """Arrays of the executor, and NumPy's own where they hold floats, since kernels take these, too."""
        return isinstance(value, DeviceArray) or (
            isinstance(value, np.ndarray) and bool(value.ndim) and value.dtype.kind in "fc"
        )

    def plain(self, value: Any) -> Any:
        """NumPy's own array in the same memory."""
        return value.view(np.ndarray) if isinstance(value, np.ndarray) else value

    def array(self, view: ArrayView) -> Any:
        """NumPy's own array."""
        return np.asarray(_Memory(view))

    def wrapped(self, value: Any) -> Any:
        """An array of the executor, also where NumPy gives a number, as CuPy does."""
        if isinstance(value, np.ndarray) or value.dtype.kind in "fc":
            return np.asarray(value).view(DeviceArray)
        return value

    def stream(self) -> int:
        """There is one."""
        return 0

    @contextmanager
    def running(self, stream: int) -> Iterator[None]:
        """Suppresses warnings about infinite partial derivatives."""
        with suspended(), np.errstate(all="ignore"):
            yield


NUMPY: Final = NumpyLibrary()


class _Memory:
    def __init__(self, view: ArrayView) -> None:
        self.view = view
        self.__array_interface__ = view.__cuda_array_interface__


def install() -> None:
    """Makes arrays of the executor, and copies on the host, report operations on them; once for a process."""
    owners: tuple[Any, ...] = DeviceArray, HostArray, Const
    for owner in owners:
        owner.__array_ufunc__ = _ufunc
        owner.__array_function__ = _function
    for name in METHODS:
        setattr(DeviceArray, name, _method(name))


@public
def _ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    is_call = method == "__call__"
    if ufunc is np.matmul and _is_in_place(inputs, kwargs):
        del kwargs["axes"]  # NumPy says there what it would take anyway, but for vectors on the right, which it refuses
    name = ufunc.__name__ if is_call else f"{ufunc.__name__}.{method}"
    return _called(name, ufunc if is_call else getattr(ufunc, method), inputs, kwargs)


def _is_in_place(inputs: Any, kwargs: dict[str, Any]) -> bool:
    """True if a call of matmul is ``x @= y`` of arrays for which the axes are the usual ones."""
    usual = [(-1,), (-2, -1), (-1,)] if np.ndim(inputs[0]) == 1 else [(-2, -1)] * 3
    return kwargs.get("axes") == usual and np.ndim(inputs[1]) > 1


@public
def _function(self: Any, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    module = getattr(function, "__module__", "") or ""
    return _called(".".join([*module.split(".")[1:], function.__name__]), function, args, kwargs)


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np.ndarray, name)

    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current_record() is None:
            return function(self, *args, **kwargs)
        return _recorded_method(name, function, (self, *args), kwargs)

    return call


@public
def _recorded_method(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if name == "__getitem__" and _names_one_element(args):
        args = args[0], (*(args[1] if isinstance(args[1], tuple) else (args[1],)), ...)  # a view, not a number
    return _called(f"ndarray.{name}", function, args, kwargs)


def _names_one_element(args: tuple[Any, ...]) -> bool:
    key = args[1] if isinstance(args[1], tuple) else (args[1],)
    return len(key) == args[0].ndim and all(isinstance(each, int | np.integer) for each in key)


def _called(name: str, function: Any, args: Any, kwargs: Any) -> Any:
    found = gathered((args, kwargs), lambda each: isinstance(each, DeviceArray | HostArray | Const))
    if current_record() is not None and any(not isinstance(each, HostArray) for each in found):
        return call_function(NUMPY, name, function, args, kwargs)
    is_recording = current_record() is not None
    with suspended():
        result = call_function(NUMPY, name, function, args, kwargs)
    if is_recording and gathered(result, lambda each: hasattr(each, "dtype") and each.dtype.kind in "fc"):
        raise UnsupportedError(
            f"{name} of NumPy is given a host copy of a device array while a tape records",
            "(a) compute it on the device, or (b) after the tape's block, or (c) numpy.asarray(copy), if the result "
            "does not come back to the device",
            "the tape would treat results computed on the host as constant",
        )
    given = kwargs.get("out")
    if given is not None:
        return given[0] if isinstance(given, tuple) and len(given) == 1 else given
    return result if is_recording else _as_device(result)


def _as_device(result: Any) -> Any:
    if isinstance(result, np.ndarray):
        return result.view(DeviceArray)
    if isinstance(result, list | tuple):
        items = [_as_device(each) for each in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    return result
