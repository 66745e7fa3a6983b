"""Arrays of other libraries in structures: on a device as CuPy's, and those that never change as JAX's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import irad
from irad import data
from irad.data import VectorSpace


class Immutable:
    """An array that follows the array API standard, by NumPy; it is not converted unless its owner is asked."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        self.dtype, self.shape = self.array.dtype, self.array.shape

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def __array_namespace__(self) -> Any:
        cls = type(self)
        return SimpleNamespace(
            zeros_like=lambda x: cls(np.zeros_like(x.array)),
            conj=lambda x: cls(x.array.conj()),
            sum=lambda x: cls(x.array.sum()),
            asarray=lambda x, dtype: cls(x.astype(dtype)),
        )

    def get(self) -> Any:
        return self.array.copy()

    def __add__(self, other: Any) -> Any:
        return type(self)(self.array + other.array)

    def __sub__(self, other: Any) -> Any:
        return type(self)(self.array - other.array)

    def __mul__(self, other: Any) -> Any:
        return type(self)(self.array * getattr(other, "array", other))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Any:
        return type(self)(self.array / divisor)

    def __float__(self) -> float:
        return float(self.array)

    def __complex__(self) -> complex:
        return complex(self.array)


class OnDevice(Immutable):
    """One that can be written to, by functions of NumPy as well."""

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array[key] = getattr(value, "array", value)

    def __iadd__(self, other: Any) -> Any:
        self.array += other.array
        return self

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, out: Any = None) -> Any:
        assert method == "__call__"
        arrays = [getattr(each, "array", each) for each in inputs]
        if out is None:
            return type(self)(function(*arrays))
        function(*arrays, out=tuple(each.array for each in out))
        return out[0]


@pytest.mark.parametrize("cls", [Immutable, OnDevice])
def test_arrays_of_other_libraries_are_vectors(cls: Any) -> None:
    x = {
        "w": cls(np.array([1.0, 2.0])),
        "in": [cls(np.array([[3.0 + 4j]]))],
        "f": cls(np.float32([2.0])),
        "n": cls([1]),
    }
    assert data.to_vec(x).tolist() == [1.0, 2.0, 3.0, 4.0, 2.0]
    assert data.norm(x) == pytest.approx(np.sqrt(34.0))
    assert data.dot(x["in"], [cls(np.array([[1j]]))]) == (3.0 - 4j) * 1j
    zero = data.make_zero(x)
    assert (type(zero["w"]), zero["n"]) == (cls, x["n"])
    assert (zero["f"].dtype, zero["in"][0].dtype) == (np.float32, np.complex128)
    assert data.norm(zero) == 0.0
    vector = VectorSpace(data.copy(x))
    vector.axpy(2.0, VectorSpace(x))
    vector /= 3.0
    vector -= VectorSpace(zero)
    assert data.to_vec(vector.value) == pytest.approx(data.to_vec(x), rel=1e-7)
    back = data.from_vec(np.arange(5.0), x)
    assert back["f"].dtype == np.float32
    data.accumulate(vector.value, back)  # dictionaries and lists take the new arrays of those that never change
    assert data.to_vec(vector.value) == pytest.approx(data.to_vec(x) + np.arange(5.0), rel=1e-6)
    assert data.one_hot(x, 3)["in"][0].get().tolist() == [[1j]]
    with pytest.raises(irad.SignatureError, match="have the shapes"):
        data.accumulate({"w": x["w"]}, {"w": cls(np.ones(3))})


def test_sharing_is_that_of_what_can_be_written_to() -> None:
    """Those that never change are like numbers: each place has a value of its own."""
    device, fixed = OnDevice(np.ones(2)), Immutable(np.ones(2))
    assert data.to_vec([device, device]).size == 2
    assert data.to_vec([fixed, fixed]).size == 4
    total = [device, (device,)]
    data.accumulate(total, data.copy(total))
    assert device.get().tolist() == [2.0, 2.0]


def test_what_can_be_written_to_is_overwritten() -> None:
    fixed, device = (Immutable(np.ones(2)),), (OnDevice(np.ones(2)),)
    memory = device[0].array
    data.accumulate(device, data.copy(device))
    assert memory.tolist() == [2.0, 2.0]
    data.make_zero_(device)
    assert memory.tolist() == [0.0, 0.0]
    with pytest.raises(irad.SignatureError, match=r"the Immutable at \[0\] cannot be overwritten"):
        data.make_zero_(fixed)
    made = data.recursive_map_into(lambda v: v * 3.0, (*fixed, *device), (*fixed, OnDevice(np.ones(2))))
    assert made[0].get().tolist() == [3.0, 3.0]
    assert made[1] is device[0]
    assert memory.tolist() == [3.0, 3.0]
