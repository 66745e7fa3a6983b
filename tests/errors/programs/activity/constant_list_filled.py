"""Results are appended to a list that was passed as constant."""

import numpy as np
from numba import njit
from numba.typed import List

import irad


@njit
def loss(x, history):
    total = 0.0
    for value in x:
        total += value * value
        history.append(total)
    return history[-1]


def an_empty_list():
    history = List()
    history.append(0.0)
    return history


def wrong():
    return irad.autodiff(irad.Reverse, loss, irad.Duplicated(np.ones(3), np.zeros(3)), irad.Const(an_empty_list()))


def mended():
    assert irad.grad(loss)(np.ones(3), an_empty_list()).tolist() == [2.0, 2.0, 2.0]  # (a)
    dx = np.zeros(3)
    irad.autodiff(irad.Reverse, loss, irad.Duplicated(np.ones(3), dx), irad.Active(an_empty_list()))  # (b)
    assert dx.tolist() == [2.0, 2.0, 2.0]

    @njit
    def own_list(x):
        history = List()
        total = 0.0
        for value in x:
            total += value * value
            history.append(total)
        return history[-1]

    assert irad.grad(own_list)(np.ones(3)).tolist() == [2.0, 2.0, 2.0]  # (c)
