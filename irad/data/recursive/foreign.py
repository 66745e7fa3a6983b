"""Arrays of other libraries as vectors: CuPy's, and those that follow the array API standard. None is imported here."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irad.data.recursive.kinds import INACTIVE, Chooser, Kind, Vector, add_family


def _namespace(array: Any) -> Any:
    """The functions of an array's library."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    return sys.modules[type(array).__module__.partition(".")[0]]


def _is_complex(array: Any) -> bool:
    return _holds(array, "complex floating", "c")


def _holds(array: Any, category: str, letter: str) -> bool:
    """True if the elements are of a category of the standard, or have the kind of NumPy that belongs to it."""
    kind = getattr(array.dtype, "kind", None)
    if kind is not None:
        return bool(kind == letter)
    return bool(_namespace(array).isdtype(array.dtype, category))


def _zeros(like: Any) -> Any:
    return _namespace(like).zeros_like(like)


def _inner(x: Any, y: Any) -> Any:
    library = _namespace(x)
    product = library.sum((library.conj(x) if _is_complex(x) else x) * y)
    return complex(product) if _is_complex(x) or _is_complex(y) else float(product)


def _on_host(array: Any) -> NDArray[Any]:
    """A copy in the memory of the processor."""
    return np.asarray(array.get() if hasattr(array, "get") else array)


def _read(array: Any) -> NDArray[np.float64]:
    elements = _on_host(array).ravel()
    return elements.astype(np.complex128).view(np.float64) if _is_complex(array) else elements.astype(np.float64)


def _refilled(like: Any, doubles: NDArray[np.float64]) -> Any:
    elements = doubles.view(np.complex128) if _is_complex(like) else doubles
    return _namespace(like).asarray(elements.reshape(like.shape), dtype=like.dtype)


def _length(array: Any) -> int:
    return int(np.prod(array.shape, dtype=int)) * (2 if _is_complex(array) else 1)


def _assign(target: Any, source: Any) -> None:
    target[...] = source


def _kind_of_class(cls: type) -> Chooser | None:
    if issubclass(cls, np.ndarray | np.generic):
        return None
    if not hasattr(cls, "__array_namespace__") and (cls.__module__.partition(".")[0], cls.__name__) != (
        "cupy",
        "ndarray",
    ):
        return None
    vector = Vector(
        zero=_zeros,
        dot=_inner,
        read=_read,
        refilled=_refilled,
        length=_length,
        assign=_assign if hasattr(cls, "__iadd__") else None,  # those of JAX never change
        takes_ufuncs=hasattr(cls, "__array_ufunc__"),
    )

    def choose(array: Any) -> Kind:
        return vector if _holds(array, "real floating", "f") or _is_complex(array) else INACTIVE

    return choose


add_family(_kind_of_class)
