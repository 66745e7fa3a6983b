"""Activation functions: of numbers and of arrays, in the precision of their argument.

irad differentiates them as they stand. Each piece of a function is smooth where it ends, so the derivative at a kink is
that of the piece to which the point belongs, and no exponential overflows. NaN stays NaN. Those that are analytic also
take complex numbers (`_OF_COMPLEX`).
"""

from __future__ import annotations

import cmath
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types

from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_njit, inner_overload
from irad.frontend.operands import floats, real
from irad.nn.shapes import Array, around, with_size

# From a function of one number to one of numbers and arrays, in the precision of its argument.


def of_elements(f, x, *parameters):
    """``f`` of a number, or of each element of an array."""
    raise NotImplementedError("for compiled code")


@inner_overload(of_elements)
def _of_elements(f, x, *parameters):
    name = f.dispatcher.py_func.__name__  # a literal in what follows, for messages
    if name in _OF_COMPLEX and isinstance(getattr(x, "dtype", x), types.Complex):
        return _of_complex(_OF_COMPLEX[name], isinstance(x, types.Array))

    def one(f, x, *parameters):
        number = real(name, x)
        return type(number)(f(number, *parameters))

    def each(f, x, *parameters):
        given = floats(name, x)
        y = np.empty(given.shape, given.dtype)
        before, after = given.ravel(), y.ravel()
        for i in range(before.size):
            after[i] = f(before[i], *parameters)
        return y

    return each if isinstance(x, types.Array) else one


def _of_complex(scalar, is_array):
    """``scalar`` of a complex number, or of each element of a complex array."""

    def one(f, x, *parameters):
        return type(x)(scalar(x))

    def each(f, x, *parameters):
        given = np.ascontiguousarray(x)
        y = np.empty(given.shape, given.dtype)
        before, after = given.ravel(), y.ravel()
        for i in range(before.size):
            after[i] = scalar(before[i])
        return y

    return each if is_array else one


def elementwise(f: Callable[..., Any]) -> Any:
    """Makes a function of a number, and perhaps of parameters ``a`` and ``b``, one of numbers and of arrays."""
    scalar = njit(error_model="numpy")(f)

    def of_x(x):
        return of_elements(scalar, x)

    def of_x_and_a(x, a):
        return of_elements(scalar, x, a)

    def of_all(x, a, b):
        return of_elements(scalar, x, a, b)

    made = (of_x, of_x_and_a, of_all)[f.__code__.co_argcount - 1]
    made.__defaults__ = f.__defaults__
    return njit(functools.wraps(f)(made))


_LOG2 = math.log(2.0)
_GELU = math.sqrt(2.0 / math.pi)
_SELU, _SELU_SLOPE = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


@inner_njit(error_model="numpy")
def _sigmoid(x):
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    power = math.exp(x)
    return power / (1.0 + power)


# Activations of complex numbers: those that are analytic.


@inner_njit(error_model="numpy")
def _complex_sigmoid(z):
    if z.real >= 0.0:
        return 1.0 / (1.0 + cmath.exp(-z))
    power = cmath.exp(z)
    return power / (1.0 + power)


@inner_njit(error_model="numpy")
def _complex_softplus(z):
    """The branch that is continuous where the imaginary part is between −π and π."""
    power = cmath.exp(-z) if z.real > 0.0 else cmath.exp(z)
    squares = power.real * (2.0 + power.real) + power.imag * power.imag  # |1 + power|² − 1
    logarithm = complex(0.5 * math.log1p(squares), math.atan2(power.imag, 1.0 + power.real))
    return z + logarithm if z.real > 0.0 else logarithm


_OF_COMPLEX = {
    "lisht": inner_njit(lambda z: z * cmath.tanh(z)),
    "logcosh": inner_njit(lambda z: z + _complex_softplus(-2.0 * z) - _LOG2),
    "logsigmoid": inner_njit(lambda z: -_complex_softplus(-z)),
    "mish": inner_njit(lambda z: z * cmath.tanh(_complex_softplus(z))),
    "sigmoid": _complex_sigmoid,
    "softplus": _complex_softplus,
    "swish": inner_njit(lambda z: z * _complex_sigmoid(z)),
    "tanh": inner_njit(lambda z: cmath.tanh(z)),
    "tanhshrink": inner_njit(lambda z: z - cmath.tanh(z)),
}


@elementwise
def sigmoid(x):
    """The logistic function, ``1 / (1 + exp(-x))``; it does not overflow.

    Args:
        x: a number or an array of any shape; floats and complex numbers keep their precision, integers
            become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.sigmoid(0.0)
        0.5
        >>> irad.nn.sigmoid(np.array([-1000.0, 1000.0]))
        array([0., 1.])
    """
    return _sigmoid(x)


@elementwise
def hardsigmoid(x):
    """The straight line ``(x + 3) / 6``, clipped to the interval from 0 to 1.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Howard et al.: Searching for MobileNetV3, ICCV 2019.

    Examples:
        >>> import irad
        >>> irad.nn.hardsigmoid(1.5)
        0.75
        >>> irad.nn.hardsigmoid(4.0)
        1.0
    """
    return 0.0 if x <= -3.0 else (1.0 if x >= 3.0 else (x + 3.0) / 6.0)


@elementwise
def softplus(x):
    """A smooth `irad.nn.relu`, ``log(1 + exp(x))``; it does not overflow.

    Args:
        x: a number or an array of any shape; floats and complex numbers keep their precision, integers
            become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Dugas et al.: Incorporating second-order functional knowledge, NIPS 2000.

    Examples:
        >>> import irad
        >>> round(irad.nn.softplus(0.0), 6)
        0.693147
        >>> irad.nn.softplus(1000.0)
        1000.0
    """
    return x + math.log1p(math.exp(-x)) if x > 0.0 else math.log1p(math.exp(x))


@elementwise
def logsigmoid(x):
    """The logarithm of `irad.nn.sigmoid`, exact also where the sigmoid rounds to zero.

    Args:
        x: a number or an array of any shape; floats and complex numbers keep their precision, integers
            become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Examples:
        >>> import irad
        >>> irad.nn.logsigmoid(-1000.0)
        -1000.0
    """
    return -math.log1p(math.exp(-x)) if x > 0.0 else x - math.log1p(math.exp(x))


@elementwise
def tanh(x):
    """The hyperbolic tangent.

    Args:
        x: a number or an array of any shape; floats and complex numbers keep their precision, integers
            become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.tanh(0.0)
        0.0
        >>> irad.nn.tanh(np.array([-100.0, 100.0]))
        array([-1.,  1.])
    """
    return math.tanh(x)


@elementwise
def hardtanh(x):
    """``x``, clipped to the interval from -1 to 1.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.hardtanh(np.array([-3.0, 0.5, 2.0]))
        array([-1. ,  0.5,  1. ])
    """
    return -1.0 if x <= -1.0 else (1.0 if x >= 1.0 else x)


@elementwise
def relu(x):
    """``x`` if it is positive, otherwise 0. The derivative at 0 is 0.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Nair, Hinton: Rectified linear units, ICML 2010.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.relu(np.array([-2.0, 3.0]))
        array([0., 3.])
    """
    return 0.0 if x <= 0.0 else x


@elementwise
def relu6(x):
    """`irad.nn.relu`, clipped to at most 6.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Examples:
        >>> import irad
        >>> irad.nn.relu6(7.0)
        6.0
    """
    return 0.0 if x <= 0.0 else (6.0 if x >= 6.0 else x)


@elementwise
def leakyrelu(x, a=0.01):
    """``x`` if it is positive, otherwise ``a * x``.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.
        a: the slope for negative numbers.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Maas et al.: Rectifier nonlinearities improve acoustic models, ICML 2013.

    Examples:
        >>> import irad
        >>> irad.nn.leakyrelu(-2.0)
        -0.02
        >>> irad.nn.leakyrelu(-2.0, 0.5)
        -1.0
    """
    return x if x > 0.0 else a * x


@elementwise
def rrelu(x, a=0.125, b=1.0 / 3.0):
    """``x`` if it is positive, otherwise ``x`` times a random slope, drawn uniformly for each element.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.
        a: the smallest slope.
        b: the largest slope.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Xu et al.: Empirical evaluation of rectified activations, 2015.

    Examples:
        >>> import irad
        >>> irad.nn.rrelu(2.0)
        2.0
        >>> -1.0 / 3.0 <= irad.nn.rrelu(-1.0) <= -0.125
        True
    """
    return x if x > 0.0 else np.random.uniform(a, b) * x


@elementwise
def trelu(x, a=1.0):
    """``x`` if it is greater than ``a``, otherwise 0.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.
        a: the threshold.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Konda et al.: Zero-bias autoencoders, ICLR 2015.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.trelu(np.array([0.5, 2.0]))
        array([0., 2.])
    """
    return 0.0 if x <= a else x


@elementwise
def elu(x, a=1.0):
    """``x`` if it is positive, otherwise ``a * (exp(x) - 1)``.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.
        a: minus the limit for large negative numbers.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Clevert et al.: Exponential linear units, ICLR 2016.

    Examples:
        >>> import irad
        >>> irad.nn.elu(2.0)
        2.0
        >>> round(irad.nn.elu(-1.0), 6)
        -0.632121
    """
    return x if x > 0.0 else a * math.expm1(x)


@elementwise
def celu(x, a=1.0):
    """``x`` if it is positive, otherwise ``a * (exp(x / a) - 1)``: its derivative has no jump at 0.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.
        a: minus the limit for large negative numbers.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Barron: Continuously differentiable exponential linear units, 2017.

    Examples:
        >>> import irad
        >>> irad.nn.celu(2.0)
        2.0
        >>> round(irad.nn.celu(-1.0, 2.0), 6)
        -0.786939
    """
    return x if x > 0.0 else a * math.expm1(x / a)


@elementwise
def selu(x):
    """`irad.nn.elu` with constants for which layers keep mean 0 and variance 1.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Klambauer et al.: Self-normalizing neural networks, NIPS 2017.

    Examples:
        >>> import irad
        >>> irad.nn.selu(0.0)
        0.0
        >>> round(irad.nn.selu(1.0), 6)
        1.050701
    """
    return _SELU * (x if x > 0.0 else _SELU_SLOPE * math.expm1(x))


@elementwise
def swish(x):
    """``x * sigmoid(x)``, also called SiLU.

    Args:
        x: a number or an array of any shape; floats and complex numbers keep their precision, integers
            become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Ramachandran et al.: Searching for activation functions, 2017.

    Examples:
        >>> import irad
        >>> irad.nn.swish(0.0)
        0.0
        >>> round(irad.nn.swish(1.0), 6)
        0.731059
    """
    return x * _sigmoid(x)


@elementwise
def hardswish(x):
    """``x * hardsigmoid(x)``, an approximation of `irad.nn.swish`.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Howard et al.: Searching for MobileNetV3, ICCV 2019.

    Examples:
        >>> import irad
        >>> irad.nn.hardswish(3.0)
        3.0
        >>> irad.nn.hardswish(-3.0)
        0.0
    """
    return 0.0 if x <= -3.0 else (x if x >= 3.0 else x * (x + 3.0) / 6.0)


@elementwise
def gelu_tanh(x):
    """``x`` times the normal distribution function at ``x``, which is approximated with a hyperbolic tangent.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Hendrycks, Gimpel: Gaussian error linear units, 2016.

    Examples:
        >>> import irad
        >>> round(irad.nn.gelu_tanh(1.0), 6)
        0.841192
    """
    return x * _sigmoid(2.0 * _GELU * (x + 0.044715 * x * x * x))


@elementwise
def gelu_erf(x):
    """``x`` times the normal distribution function at ``x``.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Hendrycks, Gimpel: Gaussian error linear units, 2016.

    Examples:
        >>> import irad
        >>> round(irad.nn.gelu_erf(1.0), 6)
        0.841345
    """
    return 0.5 * x * (1.0 + math.erf(x * math.sqrt(0.5)))


@elementwise
def gelu_sigmoid(x):
    """``x * sigmoid(1.702 * x)``, a coarse approximation of `irad.nn.gelu_erf`.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Hendrycks, Gimpel: Gaussian error linear units, 2016.

    Examples:
        >>> import irad
        >>> round(irad.nn.gelu_sigmoid(1.0), 6)
        0.845796
    """
    return x * _sigmoid(1.702 * x)


@elementwise
def mish(x):
    """``x * tanh(softplus(x))``; it does not overflow.

    Args:
        x: a number or an array of any shape; floats and complex numbers keep their precision, integers
            become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Misra: Mish, a self regularized non-monotonic activation function, BMVC 2020.

    Examples:
        >>> import irad
        >>> irad.nn.mish(0.0)
        0.0
        >>> round(irad.nn.mish(1.0), 6)
        0.865098
    """
    if x > 0.0:
        power = math.exp(-x)
        return x * (1.0 + 2.0 * power) / (1.0 + 2.0 * power + 2.0 * power * power)
    power = math.exp(x)
    square = power * (power + 2.0)
    return x * square / (square + 2.0)


@elementwise
def lisht(x):
    """``x * tanh(x)``.

    Args:
        x: a number or an array of any shape; floats and complex numbers keep their precision, integers
            become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Source:
        Roy et al.: LiSHT, 2019.

    Examples:
        >>> import irad
        >>> irad.nn.lisht(0.0)
        0.0
        >>> round(irad.nn.lisht(-1.0), 6)
        0.761594
    """
    return x * math.tanh(x)


@elementwise
def softsign(x):
    """``x / (1 + abs(x))``.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Examples:
        >>> import irad
        >>> irad.nn.softsign(1.0)
        0.5
    """
    return x / (1.0 + abs(x))


@elementwise
def logcosh(x):
    """``log(cosh(x))``; it does not overflow.

    Args:
        x: a number or an array of any shape; floats and complex numbers keep their precision, integers
            become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Examples:
        >>> import irad
        >>> irad.nn.logcosh(0.0)
        0.0
        >>> round(irad.nn.logcosh(1000.0), 6)
        999.306853
    """
    if x > 0.0:
        return x + math.log1p(math.exp(-2.0 * x)) - _LOG2
    return math.log1p(math.exp(2.0 * x)) - x - _LOG2


@elementwise
def tanhshrink(x):
    """``x - tanh(x)``.

    Args:
        x: a number or an array of any shape; floats and complex numbers keep their precision, integers
            become float64.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Examples:
        >>> import irad
        >>> irad.nn.tanhshrink(0.0)
        0.0
        >>> round(irad.nn.tanhshrink(1.0), 6)
        0.238406
    """
    return x - math.tanh(x)


@elementwise
def softshrink(x, a=0.5):
    """``x`` moved towards 0 by ``a``, and 0 if it is nearer to 0 than that.

    Args:
        x: a number or an array of any shape; float32 and float64 keep their precision, integers become float64.
        a: how far numbers are moved, at least 0.

    Returns:
        A number for a number; for an array, a new array of the same shape.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.softshrink(np.array([-2.0, 0.25, 2.0]))
        array([-1.5,  0. ,  1.5])
    """
    return 0.0 if -a <= x <= a else (x - a if x > 0.0 else x + a)


gelu = gelu_tanh
"""The activation `irad.nn.gelu_tanh` under the name that NNlib has for it.

Examples:
    >>> import irad
    >>> irad.nn.gelu is irad.nn.gelu_tanh
    True
"""
thresholdrelu = trelu
"""The activation `irad.nn.trelu` under another name of NNlib's.

Examples:
    >>> import irad
    >>> irad.nn.thresholdrelu is irad.nn.trelu
    True
"""


# Functions around an activation: with a bias for each channel, and gated linear units.


@njit
def bias_act(f: Callable[..., float], x: Array, b: Array) -> Array:
    """An activation of ``x + b``, with a bias for each channel, in one pass.

    Args:
        f: an activation, such as `irad.nn.relu`, or a compiled function of a number.
        x: an array of shape (batch, channels, …).
        b: the biases, of shape (channels,).

    Returns:
        A new array of the shape of ``x``.

    Raises:
        ValueError: the number of biases is not the number of channels.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.bias_act(irad.nn.relu, np.zeros((1, 2)), np.array([-1.0, 1.0]))
        array([[0., 1.]])
    """
    x, b = floats("bias_act", x, b)
    before, channels, after = around(x.shape, 1)
    if b.size != channels:
        _refuse_biases(b.size, channels)
    y, source = np.empty(x.shape, x.dtype), x.reshape(before, channels, after)
    each = y.reshape(before, channels, after)
    for i in range(before):
        for c in range(channels):
            for k in range(after):
                each[i, c, k] = f(source[i, c, k] + b[c])
    return y


@njit
def glu(x: Array, axis: int = -1) -> Array:
    """A gated linear unit: the first half of an array along an axis, times the `irad.nn.sigmoid` of the second half.

    Args:
        x: an array with any number of axes.
        axis: the axis that is halved; its size is even.

    Returns:
        A new array, half as long along ``axis``.

    Raises:
        ValueError: the size of the axis is odd.

    Source:
        Dauphin et al.: Language modeling with gated convolutional networks, ICML 2017.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.glu(np.array([4.0, 6.0, 0.0, 0.0]))
        array([2., 3.])
    """
    x = floats("glu", x)
    before, along, after = around(x.shape, axis)
    if along % 2:
        _refuse_halves(along)
    half = along // 2
    y, source = np.empty(with_size(x.shape, axis, half), x.dtype), x.reshape(before, along, after)
    each = y.reshape(before, half, after)
    for i in range(before):
        for j in range(half):
            for k in range(after):
                each[i, j, k] = source[i, j, k] * sigmoid(source[i, half + j, k])
    return y


@inner_njit
def _refuse_biases(biases, channels):
    raise FormattedValueError("bias_act: {} biases for {} channels", biases, channels)


@inner_njit
def _refuse_halves(along):
    raise FormattedValueError("glu: {} elements have no halves", along)
