"""Arrays of other libraries as constant arguments: taken through DLPack, over the same memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad


class Tensor:
    """What a tensor of PyTorch is to irad: a class of that package that speaks DLPack."""

    __module__ = "torch"

    def __init__(self, array: Any, requires_grad: bool = False) -> None:
        self.array, self.requires_grad = np.asarray(array), requires_grad

    def __dlpack__(self, **options: Any) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@njit
def weighted(x, data, scale=1.0):
    return scale * ((x * data) ** 2).sum()


@njit
def products(x, data):
    return x * data


X, DATA = np.array([1.0, 2.0]), np.array([3.0, 4.0])
MAKERS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda data: irad.grad(weighted)(X, data),
    "by name": lambda data: irad.value_and_grad(weighted)(X, data=data, scale=2.0),
    "value_and_grad_into": lambda data: irad.value_and_grad_into(weighted)(np.empty(2), X, data),
    "jvp": lambda data: irad.jvp(weighted, (X, data), (X, None)),
    "hvp": lambda data: irad.hvp(weighted)(X, X, data),
    "hessian": lambda data: irad.hessian(weighted)(X, data),
    "jacobian": lambda data: irad.jacobian(products)(X, data),
    "vjp": lambda data: irad.vjp(products, X, data, argnums=0)[1](X),
    "linearize": lambda data: irad.linearize(products, X, data, argnums=0)[1](X),
    "autodiff": lambda data: irad.autodiff(irad.Forward, weighted, irad.Duplicated(X, X), irad.Const(data)),
}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_as_the_array_itself(maker: Callable[[Any], Any]):
    expected, found = maker(DATA), maker(Tensor(DATA))
    found, expected = (each if isinstance(each, tuple) else (each,) for each in (found, expected))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_tensor_of_no_axes_is_a_number():
    np.testing.assert_array_equal(irad.grad(weighted)(X, DATA, Tensor(2.0)), irad.grad(weighted)(X, DATA, 2.0))


def test_memory_is_shared():
    tensor = Tensor(DATA.copy())
    gradient = irad.grad(weighted)
    before = gradient(X, tensor)
    tensor.array[:] *= 2.0
    np.testing.assert_array_equal(gradient(X, tensor), 4.0 * before)


@pytest.mark.parametrize(
    "call", [lambda: irad.grad(weighted)(Tensor(X), DATA), lambda: irad.vjp(weighted, X, Tensor(DATA))]
)
def test_differentiated_ones_are_refused(call: Callable[[], Any]):
    with pytest.raises(irad.BackendError, match="is a PyTorch Tensor"):
        call()


def test_a_tensor_that_requires_a_gradient_is_refused():
    with pytest.raises(irad.BackendError, match=r"is a PyTorch Tensor.*\n(.*\n)*.*detach"):
        irad.grad(weighted)(X, Tensor(DATA, requires_grad=True))
