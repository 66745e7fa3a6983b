"""A plain Python function with statements that Numba does not compile."""

import irad


def loss(x):
    with open("/dev/null") as log:
        print(x, file=log)
    return x * x


def wrong():
    return irad.grad(loss)(3.0)


def mended():
    def without_log(x):
        return x * x

    assert irad.grad(without_log)(3.0) == 6.0


CHECKED = (loss, (3.0,), 0)
