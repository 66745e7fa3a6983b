"""A tensor of PyTorch. This one only looks like it: irad tells by the name of the package."""

import numpy as np
from numba import njit

import irad


class Tensor:
    __module__ = "torch"

    def __init__(self, numbers):
        self.numbers = numbers

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.numbers


@njit
def energy(x):
    return np.sum(x * x)


x = Tensor(np.array([1.0, 2.0]))


def wrong():
    return irad.grad(energy)(x)


def mended():
    assert irad.grad(energy)(x.detach().cpu().numpy()).tolist() == [2.0, 4.0]


CHECKED = (energy, (x,), 0)
