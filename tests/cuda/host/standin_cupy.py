"""A stand-in for CuPy, which computes with NumPy in the memory of the host: what irad uses of it, by the same names.

Like CuPy's, its arrays are a class of Python whose methods are inherited, its functions take no part in NumPy's
protocols, and new memory is shown to hooks.
"""

from __future__ import annotations

import types
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np

HOOKS: list[Any] = []
STREAMS: list[int] = []


class Base(np.ndarray[Any, Any]):
    """What CuPy's class of arrays inherits from."""

    __array_ufunc__ = None  # type: ignore[assignment]  # operators of arrays of NumPy defer to it

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**np.asarray(self).__array_interface__, "version": 3}

    def get(self, out: Any = None) -> Any:
        if out is None:
            return np.array(plain(self))
        out[...] = plain(self)
        return out

    def set(self, array: Any) -> None:
        plain(self)[...] = array


class ndarray(Base):
    def __new__(cls, shape: Any, dtype: Any, memptr: Any, strides: Any) -> Any:
        address, owner = memptr
        interface = {"shape": shape, "typestr": np.dtype(dtype).str, "strides": strides, "data": (address, False)}
        found = np.asarray(SimpleNamespace(__array_interface__={**interface, "version": 3})).view(cls)
        found.owner = owner  # type: ignore[attr-defined]
        return found


def plain(value: Any) -> Any:
    if isinstance(value, Base):
        return value.view(np.ndarray)
    if isinstance(value, list | tuple):
        return type(value)(plain(each) for each in value)
    return value


def device(value: Any) -> Any:
    """A result; new memory is shown."""
    if isinstance(value, list | tuple):
        return type(value)(device(each) for each in value)
    if not isinstance(value, np.ndarray | np.generic):
        return value
    array = np.asarray(value)
    if array.base is None:
        address = array.__array_interface__["data"][0]
        for hook in HOOKS:
            hook.malloc_postprocess(device_id=0, size=array.nbytes, mem_size=max(array.nbytes, 512), mem_ptr=address)
    return array.view(ndarray)


def function(of_numpy: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        result = of_numpy(*plain(args), **{key: plain(value) for key, value in kwargs.items()})
        return kwargs["out"] if kwargs.get("out") is not None else device(result)

    call.__name__ = getattr(of_numpy, "__name__", "unnamed")
    if isinstance(of_numpy, np.ufunc):
        call.at = lambda a, places, b: of_numpy.at(plain(a), plain(places), plain(b))  # type: ignore[attr-defined]
        call.reduce = function(of_numpy.reduce)  # type: ignore[attr-defined]
    return call


def method(name: str) -> Any:
    of_numpy = getattr(np.ndarray, name)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return device(of_numpy(plain(self), *plain(args), **kwargs))

    return call


class MemoryHook:
    def __enter__(self) -> Any:
        HOOKS.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        HOOKS.remove(self)


class ExternalStream:
    def __init__(self, pointer: int) -> None:
        self.ptr = pointer

    def __enter__(self) -> None:
        STREAMS.append(self.ptr)

    def __exit__(self, *_: Any) -> None:
        STREAMS.pop()


def modules() -> dict[str, types.ModuleType]:
    """The modules, as they stand in `sys.modules`."""
    found = {name: types.ModuleType(name) for name in ("cupy", "cupy.linalg", "cupy.fft", "cupy.random")}
    for name, module in found.items():
        source = np if name == "cupy" else getattr(np, name.rpartition(".")[2])
        for each in dir(source):
            of_numpy = getattr(source, each)
            if callable(of_numpy) and not isinstance(of_numpy, type) and not each.startswith("_"):
                setattr(module, each, function(of_numpy))
    for name in dir(np.ndarray):
        is_own = name in {"get", "set", "base", "view"} or name.startswith("__array")
        if callable(getattr(np.ndarray, name)) and not is_own and (name[0] != "_" or name in _OPERATORS):
            setattr(Base, name, method(name))
    cupy: Any = found["cupy"]
    cupy.ndarray, cupy.int64 = ndarray, np.int64
    cupy.linalg, cupy.fft, cupy.random = (found[f"cupy.{each}"] for each in ("linalg", "fft", "random"))
    for name in ("asarray", "ascontiguousarray"):  # from the host they copy
        setattr(cupy, name, lambda array: array if isinstance(array, Base) else device(np.array(array)))
    cupy.asarray.__name__ = "asarray"
    cupy.asnumpy = lambda array, out=None: array.get(out)
    cupy.shape, cupy.ndim = np.shape, np.ndim
    cupy.cuda = SimpleNamespace(
        MemoryHook=MemoryHook,
        ExternalStream=ExternalStream,
        UnownedMemory=lambda address, size, owner, device_id: (address, owner),
        MemoryPointer=lambda memory, offset: (memory[0] + offset, memory[1]),
        get_current_stream=lambda: SimpleNamespace(ptr=STREAMS[-1] if STREAMS else 0),
        runtime=SimpleNamespace(getDevice=lambda: 0),
        Device=nullcontext,
    )
    return found


_OPERATORS = {
    *(f"__{prefix}{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
      for prefix in ("", "r", "i")),
    *("__neg__", "__pos__", "__abs__", "__getitem__", "__setitem__", "__lt__", "__le__", "__gt__", "__ge__"),
    *("__eq__", "__ne__", "__or__", "__and__", "__invert__"),
}  # fmt: skip
