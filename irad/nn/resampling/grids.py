"""grid_sample and imrotate: images read at given points, and turned."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

import irad
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_njit
from irad.frontend.operands import floats
from irad.nn.convolution.public import shape_like, with_three
from irad.nn.shapes import Array
from irad.rules import AugmentedReturn, is_active

# The kernel that reads images between their elements, and its rule.
#
# x (samples, channels, ·, ·, ·), points (samples or 1, points, 3) in elements of x, y (samples, channels, points). What
# lies outside is zero. `is_flat`: the first axis has one element and is not one of the image, so nothing follows
# it.
#
# The value is linear in x; between elements it is a product of linear functions of the three coordinates. At an element
# its slope is that towards larger coordinates.

_TO_OUTPUT, _TO_INPUT, _TO_POINTS, _ALONG_POINTS = map(np.int64, range(4))


@inner_njit(error_model="numpy")
def _cell(place, size):
    """The element at or before a place, and the distance from there; outside of the image, and for NaN, none."""
    if place > -1.0 and place < size:
        low = math.floor(place)
        return np.int64(low), place - type(place)(low)
    return size, type(place)(0.0)


@inner_njit(error_model="numpy")
def _weigh(side, rest):
    """The weight of one of the two elements around a place, and the slope of that."""
    one = type(rest)(1.0)
    return (rest, one) if side == 1 else (one - rest, -one)


@inner_njit(error_model="numpy")
def _visit(what, y, x, points, change, is_flat):
    """For all points, all elements around them: adds to y, to x, or to the cotangent or from the tangent of points."""
    for n in range(y.shape[0]):
        m = n if points.shape[0] > 1 else 0
        for p in range(y.shape[2]):
            low0, rest0 = _cell(points[m, p, 0], x.shape[2])
            low1, rest1 = _cell(points[m, p, 1], x.shape[3])
            low2, rest2 = _cell(points[m, p, 2], x.shape[4])
            for corner in range(4 if is_flat else 8):
                i, j, k = low0 + corner // 4, low1 + corner // 2 % 2, low2 + corner % 2
                if i < 0 or i >= x.shape[2] or j < 0 or j >= x.shape[3] or k < 0 or k >= x.shape[4]:
                    continue
                w0, slope0 = _weigh(corner // 4, rest0)
                w1, slope1 = _weigh(corner // 2 % 2, rest1)
                w2, slope2 = _weigh(corner % 2, rest2)
                if what == _TO_OUTPUT:
                    w = w0 * w1 * w2
                    if w != 0.0:  # what has no weight may be infinite
                        for c in range(y.shape[1]):
                            y[n, c, p] += w * x[n, c, i, j, k]
                elif what == _TO_INPUT:
                    for c in range(y.shape[1]):
                        x[n, c, i, j, k] += w0 * w1 * w2 * y[n, c, p]
                elif what == _TO_POINTS:
                    product = x.dtype.type(0.0)
                    for c in range(y.shape[1]):
                        product += x[n, c, i, j, k] * y[n, c, p]
                    change[m, p, 0] += slope0 * w1 * w2 * product
                    change[m, p, 1] += w0 * slope1 * w2 * product
                    change[m, p, 2] += w0 * w1 * slope2 * product
                else:
                    rate = slope0 * w1 * w2 * change[m, p, 0]
                    rate += w0 * slope1 * w2 * change[m, p, 1] + w0 * w1 * slope2 * change[m, p, 2]
                    for c in range(y.shape[1]):
                        y[n, c, p] += rate * x[n, c, i, j, k]


@inner_njit
def add_samples(y, x, points, is_flat):
    """``y`` += x at the points."""
    _visit(_TO_OUTPUT, y, x, points, points, is_flat)


@irad.rules.augmented_primal(add_samples)
def _augmented(config, y, x, points, is_flat):
    add_samples(y.value, x.value, points.value, is_flat.value)
    kept_x = x.value.copy() if config.overwritten[1] and is_active(points) else x.value
    return AugmentedReturn(None, None, (kept_x, points.value.copy() if config.overwritten[2] else points.value))


@irad.rules.reverse(add_samples)
def _reverse(config, cotangent, tape, y, x, points, is_flat):
    if is_active(y):
        if is_active(x):
            _visit(_TO_INPUT, y.shadow, x.shadow, tape[1], tape[1], is_flat.value)
        if is_active(points):
            _visit(_TO_POINTS, y.shadow, tape[0], tape[1], points.shadow, is_flat.value)
    return None, None, None, None


@irad.rules.forward(add_samples)
def _forward(config, y, x, points, is_flat):
    if is_active(y):
        if is_active(x):
            _visit(_TO_OUTPUT, y.tangent, x.tangent, points.value, points.value, is_flat.value)
        if is_active(points):
            _visit(_ALONG_POINTS, y.tangent, x.value, points.value, points.tangent, is_flat.value)
    add_samples(y.value, x.value, points.value, is_flat.value)


_ZEROS, _BORDER, _REFLECTION = map(np.int64, range(3))
_SLACK = 1e-9  # a quarter turn leaves the first row in the image, in spite of rounding


@njit
def grid_sample(
    x: Array, grid: Array, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = True
) -> Array:
    """Images, interpolated at given points.

    Args:
        x: images of shape (batch, channels, height, width) or (batch, channels, depth, height, width).
        grid: points of shape (batch, …, 2) or (batch, …, 3), with as many axes as ``x``: (x, y) or (x, y, z), with x
            along the width; -1 and 1 are the ends of the image. NaN lies outside.
        mode: ``"bilinear"``, or ``"nearest"`` for the nearest element, whose derivative with respect to the grid is
            zero.
        padding_mode: what lies beyond the ends: ``"zeros"``; ``"border"`` for the elements at the ends, whose
            derivative with respect to the grid is zero; or ``"reflection"`` for the image mirrored at both ends.
        align_corners: whether the ends are the centres of the first and last elements; otherwise they are their outer
            edges (PyTorch's default).

    Returns:
        A new array of shape (batch, channels, …), with the shape of the grid in space.

    Raises:
        ValueError: the shapes do not fit each other, or a mode is unknown.

    Source:
        Jaderberg et al.: Spatial transformer networks, NIPS 2015.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> x = np.array([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> irad.nn.grid_sample(x, np.array([[[[0.0, -1.0], [0.0, 0.0], [1.0, 1.0]]]]))
        array([[[[1.5, 2.5, 4. ]]]])
    """
    x, grid = floats("grid_sample", x, grid)
    space = x.ndim - 2
    if space < 2 or grid.shape[-1] != space:
        _refuse_points(x.ndim, grid.shape[-1])
    if grid.shape[0] != x.shape[0]:
        _refuse_batch(x.shape[0], grid.shape[0])
    is_nearest, beyond = _choice("mode", mode, "bilinear", "nearest"), _beyond(padding_mode)
    each, count = with_three(x), 1
    for d in range(1, grid.ndim - 1):
        count *= grid.shape[d]
    given = grid.reshape(x.shape[0], count, space)
    points = _places(given, each.shape[2:], is_nearest, beyond, align_corners)
    y = np.zeros((x.shape[0], x.shape[1], count), x.dtype)
    add_samples(y, each, points, space == 2)
    sizes = (grid.shape[1] if space == 3 else 1, grid.shape[-3], grid.shape[-2])
    return y.reshape(shape_like(x.shape, x.shape[0], x.shape[1], sizes))


@njit
def imrotate(
    x: Array, theta: float, method: str = "bilinear", rotation_center: tuple[float, float] | None = None
) -> Array:
    """Images, turned clockwise by an angle.

    Args:
        x: images of shape (batch, channels, height, width).
        theta: the angle in radians; it may be differentiated with respect to.
        method: ``"bilinear"`` or ``"nearest"``.
        rotation_center: row and column of the point that stays in place; by default the middle, or the element after
            it.

    Returns:
        New images of the same shape. As in NNlib, elements that come from outside the image are zero, and so are those
        from between two elements of which one is outside.

    Raises:
        ValueError: the images have another number of axes, or the method is unknown.

    Examples:
        >>> import irad
        >>> import math
        >>> import numpy as np
        >>> x = np.zeros((1, 1, 3, 3))
        >>> x[0, 0, 0, 1] = 1.0
        >>> irad.nn.imrotate(x, math.radians(45)).round(3)[0, 0]
        array([[0.   , 0.207, 0.   ],
               [0.   , 0.   , 0.207],
               [0.   , 0.   , 0.   ]])
    """
    x = floats("imrotate", x)
    if x.ndim != 4:
        _refuse_images(x.ndim)
    center = (float(x.shape[2] // 2), float(x.shape[3] // 2)) if rotation_center is None else rotation_center
    points = np.zeros((1, x.shape[2] * x.shape[3], 3), x.dtype)
    _turn(points, x.shape[2:], theta, center, _choice("method", method, "bilinear", "nearest"))
    y = np.zeros((x.shape[0], x.shape[1], x.shape[2] * x.shape[3]), x.dtype)
    add_samples(y, with_three(x), points, True)
    return y.reshape(x.shape)


@inactive_in_irad
@inner_njit
def _choice(name, given, first, second):
    """True if the second of two words is given."""
    if given != first and given != second:
        raise FormattedValueError("{}: {} is neither {} nor {}", name, given, first, second)
    return given == second


@inactive_in_irad
@inner_njit
def _beyond(padding_mode):
    """Number of the padding mode."""
    if padding_mode == "zeros":
        return _ZEROS
    if padding_mode == "border":
        return _BORDER
    if padding_mode == "reflection":
        return _REFLECTION
    raise FormattedValueError("padding_mode: {} is neither zeros nor border nor reflection", padding_mode)


@inner_njit(error_model="numpy")
def _reflected(place, size, align_corners):
    """A place between the mirrors: the first and last elements, or their outer edges."""
    half = type(place)(0.5)
    low, span = (0 * half, size - 1) if align_corners else (-half, size)
    if span == 0:
        return low
    far = abs(place - low)
    turns = np.floor(far / span)
    rest = far - turns * span
    return low + (rest if turns == 2 * np.floor(half * turns) else span - rest)


@inner_njit
def _places(grid, sizes, is_nearest, beyond, align_corners):
    """Points of a grid in elements, in the order of the axes; the first is zero where there are two."""
    points = np.zeros((grid.shape[0], grid.shape[1], 3), grid.dtype)
    for n in range(grid.shape[0]):
        for p in range(grid.shape[1]):
            for d in range(grid.shape[2]):
                size = grid.dtype.type(sizes[2 - d])
                place = grid[n, p, d] + grid.dtype.type(1.0)
                place = place * (size - 1) / 2 if align_corners else (place * size - 1) / 2
                if beyond == _REFLECTION:
                    place = _reflected(place, size, align_corners)
                if beyond != _ZEROS and place < 0:
                    place = grid.dtype.type(0.0)
                elif beyond != _ZEROS and place > size - 1:
                    place = size - 1
                points[n, p, 2 - d] = np.rint(place) if is_nearest else place
    return points


@inner_njit
def _turn(points, sizes, theta, center, is_nearest):
    """Positions in the old image of the elements of the turned one."""
    sine, cosine = math.sin(theta), math.cos(theta)
    for p in range(points.shape[1]):
        row, column = p // sizes[1] - center[0], p % sizes[1] - center[1]
        points[0, p, 1] = _inside(cosine * row - sine * column + center[0], sizes[0], is_nearest)
        points[0, p, 2] = _inside(sine * row + cosine * column + center[1], sizes[1], is_nearest)


@inner_njit
def _inside(place, size, is_nearest):
    """A place, rounded if so wished; −1, where nothing is read, unless it lies between the first and last elements."""
    if is_nearest:
        return math.floor(place + 0.5) if place >= 0.0 else math.ceil(place - 0.5)
    return place if -_SLACK < place < size - 1 + _SLACK else -1.0


@inner_njit
def _refuse_points(axes, coordinates):
    raise FormattedValueError(
        "grid_sample: points with {} coordinates for an array with {} axes; after batch and channels there must be two "
        "or three axes of space, and as many coordinates",
        coordinates,
        axes,
    )


@inner_njit
def _refuse_batch(samples, grids):
    raise FormattedValueError("grid_sample: {} images and {} grids", samples, grids)


@inner_njit
def _refuse_images(axes):
    raise FormattedValueError("imrotate: an array with {} axes; it must be (batch, channels, height, width)", axes)
