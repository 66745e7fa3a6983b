"""One sample and one group by products of matrices: im2col.

The matrix of columns has a row for each channel and element of the filter, and a column for each output.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from irad.nn.convolution.direct import TO_FILTER, TO_INPUT, TO_OUTPUT
from irad.nn.convolution.geometry import shift_of, valid
from irad.nn.shapes import add_to


@njit
def room_of_columns(w, out, settings):
    """How many numbers `add_by_columns` works in: columns, and a product of either kind."""
    outputs, rows, places = w.shape[0] // settings[3], _rows(w), out[0] * out[1] * out[2]
    return rows * places + outputs * max(rows, places)


@njit
def _rows(w):
    return w.shape[1] * w.shape[2] * w.shape[3] * w.shape[4]


@njit(error_model="numpy")
def add_by_columns(what, x, w, y, settings, room):
    """``y`` += x ∗ w, or the adjoint by x, or that by w; images (samples, channels, ·, ·, ·)."""
    stride, pad, dilation, groups, flipped = settings
    inputs, outputs, taps, out = w.shape[1], w.shape[0] // groups, w.shape[2:], y.shape[2:]
    rows, places = _rows(w), out[0] * out[1] * out[2]
    filters = w.reshape(groups, outputs, rows)
    columns = room[: rows * places].reshape(rows, places)
    length = rows if what == TO_FILTER else places
    product = room[rows * places : rows * places + outputs * length].reshape(outputs, length)
    for n in range(x.shape[0]):
        for g in range(groups):
            part = x[n, g * inputs : (g + 1) * inputs]
            result = y[n, g * outputs : (g + 1) * outputs].reshape(outputs, places)
            if what == TO_INPUT:
                np.dot(filters[g].T, result, columns)
                scatter_columns(part, columns, taps, out, stride, pad, dilation, flipped)
                continue
            gather_columns(columns, part, taps, out, stride, pad, dilation, flipped)
            if what == TO_OUTPUT:
                np.dot(filters[g], columns, product)
                add_to(result, product)
            else:
                np.dot(result, columns.T, product)
                add_to(filters[g], product)


@njit(error_model="numpy")
def gather_columns(columns, x, taps, out, stride, pad, dilation, flipped):
    """Fills the matrix of columns from an input (channels, ·, ·, ·); zero where there is padding."""
    row = 0
    for c in range(x.shape[0]):
        for t0 in range(taps[0]):
            s0 = shift_of(t0, taps[0], dilation[0], pad[0], flipped)
            for t1 in range(taps[1]):
                s1 = shift_of(t1, taps[1], dilation[1], pad[2], flipped)
                for t2 in range(taps[2]):
                    s2 = shift_of(t2, taps[2], dilation[2], pad[4], flipped)
                    _gather_row(columns[row], x[c], s0, s1, s2, out, stride)
                    row += 1


@njit(error_model="numpy")
def _gather_row(row, x, s0, s1, s2, out, stride):
    lo, hi = valid(s2, stride[2], x.shape[2], out[2])
    place = 0
    for o0 in range(out[0]):
        i0 = o0 * stride[0] + s0
        for o1 in range(out[1]):
            i1 = o1 * stride[1] + s1
            if i0 < 0 or i0 >= x.shape[0] or i1 < 0 or i1 >= x.shape[1]:
                row[place : place + out[2]] = 0.0
            else:
                row[place : place + lo] = 0.0
                if stride[2] == 1:
                    for o2 in range(lo, hi):
                        row[place + o2] = x[i0, i1, o2 + s2]
                else:
                    for o2 in range(lo, hi):
                        row[place + o2] = x[i0, i1, o2 * stride[2] + s2]
                row[place + hi : place + out[2]] = 0.0
            place += out[2]


@njit(error_model="numpy")
def scatter_columns(x, columns, taps, out, stride, pad, dilation, flipped):
    """Adds a matrix of columns to the elements of the input that they were made of."""
    row = 0
    for c in range(x.shape[0]):
        for t0 in range(taps[0]):
            s0 = shift_of(t0, taps[0], dilation[0], pad[0], flipped)
            for t1 in range(taps[1]):
                s1 = shift_of(t1, taps[1], dilation[1], pad[2], flipped)
                for t2 in range(taps[2]):
                    s2 = shift_of(t2, taps[2], dilation[2], pad[4], flipped)
                    _scatter_row(x[c], columns[row], s0, s1, s2, out, stride)
                    row += 1


@njit(error_model="numpy")
def _scatter_row(x, row, s0, s1, s2, out, stride):
    lo, hi = valid(s2, stride[2], x.shape[2], out[2])
    lo0, hi0 = valid(s0, stride[0], x.shape[0], out[0])
    lo1, hi1 = valid(s1, stride[1], x.shape[1], out[1])
    for o0 in range(lo0, hi0):
        for o1 in range(lo1, hi1):
            target, place = x[o0 * stride[0] + s0, o1 * stride[1] + s1], (o0 * out[1] + o1) * out[2]
            if stride[2] == 1:
                for o2 in range(lo, hi):
                    target[o2 + s2] += row[place + o2]
            else:
                for o2 in range(lo, hi):
                    target[o2 * stride[2] + s2] += row[place + o2]
