"""Convolutions as products of matrices, in tiles, of which the matrix of windows is never made.

Images lie padded in a buffer, in which the inputs that one element of the filter meets are at one distance from the
*places* of the outputs: row by row, with gaps as long as a window is wide. Since a tile finds its factors by distances,
the buffer stands for the matrix of windows. With a stride, inputs are sorted by *phase*, the remainder of their
position: an element of the filter meets one phase, in which outputs are neighbours. The adjoint with respect to images
is such a product with the filters transposed, for each phase of the images, over outputs with zeros in the gaps.

Where samples are small, several share the buffer.
"""

from __future__ import annotations

from irad.frontend.inner import inner_jitable
from irad.nn.convolution.geometry import shift_of
from irad.nn.tiles import ROWS, as_places, lanes, multiply_tile

_PLACES = 256  # of a block, whose results stay in the cache of a core
_DEPTH = 192  # of a block: the inputs that a tile meets stay in the fastest cache


@inner_jitable
def _up(count, unit):
    """``count``, rounded up to a multiple."""
    return (count + unit - 1) // unit * unit


@inner_jitable
def _grid_of(taps, out, stride, dilation):
    """The sizes of one phase of a padded image."""
    return (
        out[0] + (taps[0] - 1) * dilation[0] // stride[0],
        out[1] + (taps[1] - 1) * dilation[1] // stride[1],
        out[2] + (taps[2] - 1) * dilation[2] // stride[2],
    )


@inner_jitable
def _layout(w, shape, settings):
    """Sizes of a grid of the buffer, samples in it, distance between channels. ``shape`` is that of the output."""
    stride, _, dilation, _, _ = settings
    grid = _grid_of(w.shape[2:], shape[2:], stride, dilation)
    places = grid[0] * grid[1] * grid[2]
    samples = max(1, min(shape[0], _PLACES // places))
    # One more than a multiple, so that the same place of all channels is not in the same set of the cache
    channel = _up(stride[0] * stride[1] * stride[2] * samples * places + _margin(grid, shape[2:]), 16) + 1
    return grid, samples, channel


@inner_jitable
def _margin(grid, out):
    """The largest distance from an output to an input that it meets."""
    return ((grid[0] - out[0]) * grid[1] + grid[1] - out[1]) * grid[2] + grid[2] - out[2]


@inner_jitable
def _parts(w, shape, settings):
    """Starts of buffer, packed filters and results in the working memory; its size in numbers. Tables come first."""
    grid, samples, channel = _layout(w, shape, settings)
    groups, each, width = settings[3], 8 // w.itemsize, lanes(w)
    inputs, outputs, taps = w.shape[1], w.shape[0] // groups, w.shape[2] * w.shape[3] * w.shape[4]
    most = max(inputs, outputs)
    image = (most * taps + ROWS + samples * max(2 * grid[0] * grid[1], shape[2] * shape[3] * shape[4])) * each
    packed = image + most * channel + width
    rows = taps * max(_up(outputs, ROWS) * inputs, _up(inputs, ROWS) * outputs)
    results = packed + max(rows, _up(inputs * taps, ROWS) * _up(outputs, width))
    longest = max(_PLACES, grid[2]) + width
    size = results + max(_up(most, ROWS) * longest, _up(outputs, width) * _PLACES)
    return image, packed, results, size


@inner_jitable
def room_of_tiles(w, shape, settings):
    """Size of the working memory of `add_images` and `add_filters` in numbers; ``shape`` is that of the output."""
    return _parts(w, shape, settings)[3]


@inner_jitable(error_model="numpy")
def _fill(room, image, channel, x, samples, channels, grid, stride, pad):
    """Copies images into the buffer; ``samples`` and ``channels`` are (first, count). What is around them stays."""
    places = grid[0] * grid[1] * grid[2] * samples[2]
    for c in range(channels[1]):
        for n in range(samples[1]):
            for i in range(min(x.shape[2], grid[0] * stride[0] - pad[0])):
                for j in range(min(x.shape[3], grid[1] * stride[1] - pad[2])):
                    row, u, v = x[samples[0] + n, channels[0] + c, i, j], i + pad[0], j + pad[2]
                    place = ((n * grid[0] + u // stride[0]) * grid[1] + v // stride[1]) * grid[2]
                    phase = (u % stride[0] * stride[1] + v % stride[1]) * stride[2]
                    _fill_row(
                        room, image + c * channel + phase * places + place, places, row, grid[2], stride[2], pad[4]
                    )


@inner_jitable(error_model="numpy")
def _fill_row(room, start, places, row, size, stride, pad):
    for phase in range(stride):
        first, at, count = _along(phase, row.size, size, stride, pad)
        target = room[start + phase * places + at : start + phase * places + at + count]
        if stride == 1:
            for k in range(count):
                target[k] = row[k]
        else:
            for k in range(count):
                target[k] = row[first + k * stride]


@inner_jitable(error_model="numpy")
def _along(phase, size, grid, stride, pad):
    """The first element of a phase along an axis, its place, and the number of elements."""
    first = (phase - pad) % stride
    at = (first + pad) // stride
    return first, at, max(0, min((size - first + stride - 1) // stride, grid - at))


@inner_jitable(error_model="numpy")
def _put_rows(table, rows, x, phase, grid, samples, stride, pad):
    """Writes place and index of each row of images; returns their number, and the length of a row."""
    first, at, length = _along(phase[2], x.shape[4], grid[2], stride[2], pad[4])
    first0, at0, count0 = _along(phase[0], x.shape[2], grid[0], stride[0], pad[0])
    first1, at1, count1 = _along(phase[1], x.shape[3], grid[1], stride[1], pad[2])
    sample, row = x.shape[1] * x.shape[2] * x.shape[3] * x.shape[4], 0
    for n in range(samples):
        for i in range(count0):
            for j in range(count1):
                table[rows + 2 * row] = ((n * grid[0] + at0 + i) * grid[1] + at1 + j) * grid[2] + at
                line = (first0 + i * stride[0]) * x.shape[3] + first1 + j * stride[1]
                table[rows + 2 * row + 1] = n * sample + line * x.shape[4] + first
                row += 1
    return (row if length else 0), length


@inner_jitable(error_model="numpy")
def _distance(tap, taps, dilation, flipped, stride, grid):
    """From an output to the input that an element of the filter meets: the three phases, the distance of places."""
    u = shift_of(tap // (taps[1] * taps[2]), taps[0], dilation[0], 0, flipped)
    v = shift_of(tap // taps[2] % taps[1], taps[1], dilation[1], 0, flipped)
    t = shift_of(tap % taps[2], taps[2], dilation[2], 0, flipped)
    place = (u // stride[0] * grid[1] + v // stride[1]) * grid[2] + t // stride[2]
    return u % stride[0], v % stride[1], t % stride[2], place


@inner_jitable(error_model="numpy")
def _pack(room, packed, table, w, group, transposed, phase, shape, settings):
    """Stores filters in panels of rows, and writes the distance of the element that each column meets.

    Returns the number of columns: all, or transposed those of one phase.
    """
    stride, _, dilation, groups, flipped = settings
    grid, samples, channel = _layout(w, shape, settings)
    inputs, outputs, taps = w.shape[1], w.shape[0] // groups, w.shape[2] * w.shape[3] * w.shape[4]
    rows, channels = (inputs, outputs) if transposed else (outputs, inputs)
    each, margin, depth = w.ravel(), _margin(grid, shape[2:]), 0
    places = samples * grid[0] * grid[1] * grid[2]
    for t in range(taps):
        f0, f1, f2, place = _distance(t, w.shape[2:], dilation, flipped, stride, grid)
        if not transposed or (f0 == phase[0] and f1 == phase[1] and f2 == phase[2]):
            start = margin - place if transposed else ((f0 * stride[1] + f1) * stride[2] + f2) * places + place
            for c in range(channels):
                table[depth] = start + c * channel
                depth += 1
    column = 0
    for t in range(taps):
        f0, f1, f2, place = _distance(t, w.shape[2:], dilation, flipped, stride, grid)
        if not transposed or (f0 == phase[0] and f1 == phase[1] and f2 == phase[2]):
            for c in range(channels):
                for r in range(_up(rows, ROWS)):
                    o, i = (c, r) if transposed else (r, c)
                    found = each[((group * outputs + o) * inputs + i) * taps + t] if r < rows else w.dtype.type(0.0)
                    room[packed + (r // ROWS * depth + column) * ROWS + r % ROWS] = found
                column += 1
    return depth


@inner_jitable(error_model="numpy")
def add_images(transposed, y, x, w, shape, settings, room):
    """``y`` += x ∗ w, or transposed, its adjoint with respect to images; ``shape`` is that of its result."""
    one, none = (1, 1, 1), (0, 0, 0, 0, 0, 0)
    stride, pad, _, groups, _ = settings
    grid, most, channel = _layout(w, shape, settings)
    image, packed, results, _ = _parts(w, shape, settings)
    table = as_places(room, image * room.itemsize // 8)
    inputs, outputs = w.shape[1], w.shape[0] // groups
    rows, channels = (inputs, outputs) if transposed else (outputs, inputs)
    room[image : image + channels * channel + lanes(room)] = 0.0
    start = image + _margin(grid, shape[2:]) if transposed else image
    coarse, edge = (one, none) if transposed else (stride, pad)  # of x
    fine, cut = (stride, pad) if transposed else (one, none)  # of y
    flat, size = y.ravel(), y.shape[2] * y.shape[3] * y.shape[4]
    for g in range(groups):
        for f in range(fine[0] * fine[1] * fine[2]):
            phase = f // (fine[1] * fine[2]), f // fine[2] % fine[1], f % fine[2]
            depth = _pack(room, packed, table, w, g, transposed, phase, shape, settings)
            for n in range(0, x.shape[0] if depth else 0, most):
                count = min(most, x.shape[0] - n)
                _fill(room, start, channel, x, (n, count, most), (g * channels, channels), grid, coarse, edge)
                lines, length = _put_rows(table, depth, y, phase, grid, count, fine, cut)
                target = flat[(n * y.shape[1] + g * rows) * size :]
                _add_lines(target, rows, size, room, (image, packed, results), table, depth, lines, length, fine[2])


@inner_jitable(error_model="numpy")
def _add_lines(target, rows, size, room, parts, table, depth, lines, length, step):
    """Adds the product of packed filters and buffer, in blocks of lines between which there are short gaps."""
    width, line = lanes(room), 0
    while line < lines:
        first, after = table[depth + 2 * line], line + 1
        while after < lines and _follows(table, depth, after, length, first, width):
            after += 1
        span = _up(table[depth + 2 * (after - 1)] + length - first, width)
        _multiply_block(room, parts, table, depth, rows, first, span)
        for c in range(rows):
            for i in range(line, after):
                at = c * size + table[depth + 2 * i + 1]
                start = parts[2] + c * span + table[depth + 2 * i] - first
                found = room[start : start + length]
                if step == 1:
                    for k in range(length):
                        target[at + k] += found[k]
                else:
                    for k in range(length):
                        target[at + k * step] += found[k]
        line = after


@inner_jitable
def _follows(table, depth, line, length, first, width):
    """True if a line belongs to the block of the one before it."""
    place = table[depth + 2 * line]
    return place - table[depth + 2 * (line - 1)] - length < width and place + length - first <= _PLACES


@inner_jitable(error_model="numpy")
def _multiply_block(room, parts, table, depth, rows, first, span):
    """Overwrites the results of some places."""
    image, packed, results = parts
    for start in range(0, depth, _DEPTH):
        count, steps = min(_DEPTH, depth - start), table[start:]
        for place in range(0, span, lanes(room)):
            for row in range(0, rows, ROWS):
                multiply_tile(
                    *(start > 0, count, room, packed + row * depth + start * ROWS, 1, ROWS),
                    *(room, image + first + place, steps, room, results + row * span + place, span),
                )


@inner_jitable(error_model="numpy")
def add_filters(w, x, y, settings, room):
    """``w`` += adjoint of the convolution with respect to w, from x and y."""
    stride, pad, dilation, groups, flipped = settings
    grid, most, channel = _layout(w, y.shape, settings)
    image, packed, results, _ = _parts(w, y.shape, settings)
    inputs, outputs, taps = w.shape[1], w.shape[0] // groups, w.shape[2] * w.shape[3] * w.shape[4]
    table, width, rows = (
        as_places(room, image * room.itemsize // 8),
        _up(outputs, lanes(room)),
        _up(inputs * taps, ROWS),
    )
    room[image : image + inputs * channel + lanes(room)] = 0.0
    room[results : results + width * _PLACES] = 0.0
    for r in range(rows):
        c, t = min(r, inputs * taps - 1) // taps, min(r, inputs * taps - 1) % taps
        f0, f1, f2, place = _distance(t, w.shape[2:], dilation, flipped, stride, grid)
        phase = (f0 * stride[1] + f1) * stride[2] + f2
        table[r] = c * channel + phase * most * grid[0] * grid[1] * grid[2] + place
    each = w.ravel()
    for g in range(groups):
        room[packed : packed + rows * width] = 0.0
        for n in range(0, x.shape[0], most):
            count = min(most, x.shape[0] - n)
            _fill(room, image, channel, x, (n, count, most), (g * inputs, inputs), grid, stride, pad)
            places = _put_places(table, rows, y.shape, grid, count)
            for start in range(0, places, _PLACES):
                block = min(_PLACES, places - start)
                _transpose(room, results, y, n, g * outputs, outputs, start, block)
                _add_block(room, (image, packed, results), table, rows, width, start, block)
        for o in range(outputs):
            for r in range(inputs * taps):
                each[(g * outputs + o) * inputs * taps + r] += room[packed + r * width + o]


@inner_jitable(error_model="numpy")
def _put_places(table, start, shape, grid, samples):
    """Writes the place of each output of some samples; returns their number."""
    count = start
    for n in range(samples):
        for i in range(shape[2]):
            for j in range(shape[3]):
                place = ((n * grid[0] + i) * grid[1] + j) * grid[2]
                for k in range(shape[4]):
                    table[count + k] = place + k
                count += shape[4]
    return count - start


@inner_jitable(error_model="numpy")
def _transpose(room, results, y, sample, channel, outputs, start, block):
    """Copies outputs to panels of as many channels as a tile has columns."""
    flat, size, width = y.ravel(), y.shape[2] * y.shape[3] * y.shape[4], lanes(room)
    done = 0
    while done < block:
        n, place = sample + (start + done) // size, (start + done) % size
        count = min(block - done, size - place)
        for o in range(outputs):  # one after the other: the same place of many is in the same set of the cache
            at = (n * y.shape[1] + channel + o) * size + place
            target = results + (o // width * _PLACES + done) * width + o % width
            for e in range(count):
                room[target + e * width] = flat[at + e]
        done += count


@inner_jitable(error_model="numpy")
def _add_block(room, parts, table, rows, width, start, block):
    """Adds the product of inputs and some transposed outputs to the packed filters."""
    image, packed, results = parts
    for o in range(0, width, lanes(room)):
        for r in range(0, rows, ROWS):
            multiply_tile(
                *(True, block, room, image, table[r:], table[rows + start :]),
                *(room, results + o * _PLACES, lanes(room), room, packed + r * width + o, width),
            )
