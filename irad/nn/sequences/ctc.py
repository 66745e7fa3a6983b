"""ctc_loss: how improbable a sequence of labels is, whatever its alignment in time.

An alignment passes through states: labels with blanks before, between and after them. It stays in a state, goes to
the next, or leaves out a blank between different labels. Sums over all alignments are recursions in time, from the
front and from the back; both together say how probable each state is at each time, which is the derivative.

Source: Graves, Fernández, Gomez, Schmidhuber 2006, "Connectionist Temporal Classification", section 4.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

import irad
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.formatted import FormattedIndexError, FormattedValueError
from irad.frontend.inner import inner_njit
from irad.frontend.operands import floats, require
from irad.nn.shapes import Array
from irad.nn.softmaxes import logsoftmax
from irad.rules import AugmentedReturn, is_active


@njit
def ctc_loss(
    x: Array, labels: Array, lengths: Array | None = None, label_lengths: Array | None = None, blank: int = -1
) -> Array:
    """Connectionist temporal classification: minus the logarithm of the probability of each sequence of labels.

    Args:
        x: scores before the softmax, of shape (batch, time, classes); logarithms of probabilities stay as they are.
        labels: labels of shape (batch, longest): integers from 0 to classes - 1, none of them the blank.
        lengths: number of times of each sample; by default all.
        label_lengths: number of labels of each sample, perhaps zero; by default all.
        blank: the class that stands for no label; by default the last, as in NNlib.

    Returns:
        A new array with a loss for each sample: infinity, with derivative zero, where there is too little time for the
        labels.

    Raises:
        IndexError: a label is out of range or blank.
        ValueError: the shapes do not fit each other.

    Source:
        Graves et al.: Connectionist temporal classification, ICML 2006.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.ctc_loss(np.zeros((1, 2, 3)), np.array([[0]])).round(6)  # 3 of 9 paths: a a, a blank, blank a
        array([1.098612])
    """
    x = floats("ctc_loss", x)
    require("ctc_loss", "iu", labels, lengths, label_lengths)
    samples, time, classes = x.shape
    ends = np.full(samples, time) if lengths is None else lengths.astype(np.int64)
    counts = np.full(samples, labels.shape[1]) if label_lengths is None else label_lengths.astype(np.int64)
    nothing = blank + classes if blank < 0 else blank
    targets = np.ascontiguousarray(labels).astype(np.int64)
    _check(targets, ends, counts, nothing, samples, time, classes)
    return _losses(logsoftmax(x, 2), targets, ends, counts, nothing)


@inactive_in_irad
@inner_njit
def _check(labels, ends, counts, blank, samples, time, classes):
    if labels.shape[0] != samples or ends.size != samples or counts.size != samples:
        raise FormattedValueError(
            "ctc_loss: {} samples, {} rows of labels, {} lengths, {} lengths of labels",
            samples,
            labels.shape[0],
            ends.size,
            counts.size,
        )
    if blank < 0 or blank >= classes:
        raise FormattedIndexError("ctc_loss: class {} for the blank, of {} classes", blank, classes)
    for n in range(samples):
        if ends[n] < 0 or ends[n] > time or counts[n] < 0 or counts[n] > labels.shape[1]:
            raise FormattedValueError(
                "ctc_loss: sample {} has length {} of {} and {} of {} labels",
                n,
                ends[n],
                time,
                counts[n],
                labels.shape[1],
            )
        for k in range(counts[n]):
            if labels[n, k] < 0 or labels[n, k] >= classes or labels[n, k] == blank:
                raise FormattedIndexError(
                    "ctc_loss: label {} at position {} of sample {}; it must be one of {} classes and not the blank, "
                    "{}",
                    labels[n, k],
                    k,
                    n,
                    classes,
                    blank,
                )


@inner_njit(error_model="numpy")
def _log_add(a, b):
    """The logarithm of the sum of exponentials."""
    if a == -np.inf:
        return b
    if b == -np.inf:
        return a
    top, other = (a, b) if a > b else (b, a)
    return top + math.log1p(math.exp(other - top))


@inner_njit
def _class_of(state, labels, blank):
    return labels[state // 2] if state % 2 else blank


@inner_njit
def _may_skip_to(state, labels):
    """True if the blank before a state may be left out."""
    return state % 2 == 1 and state > 2 and labels[state // 2] != labels[state // 2 - 1]


@inner_njit(error_model="numpy")
def _sums_before(x, labels, blank):
    """For each time and state, the log-probability of all paths to it, itself included."""
    states = 2 * labels.size + 1
    sums = np.full((x.shape[0], states), x.dtype.type(-np.inf))
    for u in range(min(states, 2)):
        sums[0, u] = x[0, _class_of(u, labels, blank)]
    for t in range(1, x.shape[0]):
        for u in range(states):
            total = sums[t - 1, u]
            if u > 0:
                total = _log_add(total, sums[t - 1, u - 1])
            if _may_skip_to(u, labels):
                total = _log_add(total, sums[t - 1, u - 2])
            sums[t, u] = total + x[t, _class_of(u, labels, blank)]
    return sums


@inner_njit(error_model="numpy")
def _sums_after(x, labels, blank):
    """For each time and state, the log-probability of all that follows it, itself excluded."""
    states = 2 * labels.size + 1
    sums = np.full((x.shape[0], states), x.dtype.type(-np.inf))
    for u in range(max(states - 2, 0), states):
        sums[-1, u] = 0.0
    for t in range(x.shape[0] - 2, -1, -1):
        for u in range(states):
            total = sums[t + 1, u] + x[t + 1, _class_of(u, labels, blank)]
            if u + 1 < states:
                total = _log_add(total, sums[t + 1, u + 1] + x[t + 1, _class_of(u + 1, labels, blank)])
            if u + 2 < states and _may_skip_to(u + 2, labels):
                total = _log_add(total, sums[t + 1, u + 2] + x[t + 1, _class_of(u + 2, labels, blank)])
            sums[t, u] = total
    return sums


@inner_njit(error_model="numpy")
def _log_probability(sums):
    """Log-probability of all alignments, which end in the last label or in the blank after it."""
    states = sums.shape[1]
    return sums[-1, 0] if states == 1 else _log_add(sums[-1, states - 1], sums[-1, states - 2])


@inner_njit(error_model="numpy")
def _losses(x, labels, ends, counts, blank):
    y = np.zeros(x.shape[0], x.dtype)
    for n in range(x.shape[0]):
        if ends[n] > 0:
            y[n] = -_log_probability(_sums_before(x[n, : ends[n]], labels[n, : counts[n]], blank))
        elif counts[n] > 0:
            y[n] = np.inf
    return y


@inner_njit(error_model="numpy")
def _follow(x, change, change_y, labels, ends, counts, blank, is_forward):
    """Adds the change of losses to that of x, by how probable each class is at each time; or forwards from x."""
    for n in range(x.shape[0]):
        if ends[n] == 0:
            continue
        part, row = x[n, : ends[n]], labels[n, : counts[n]]
        before = _sums_before(part, row, blank)
        whole = _log_probability(before)
        if whole == -np.inf:  # there is no alignment
            continue
        after = _sums_after(part, row, blank)
        for t in range(ends[n]):
            for u in range(before.shape[1]):
                probability = math.exp(before[t, u] + after[t, u] - whole)
                place = _class_of(u, row, blank)
                if is_forward:
                    change_y[n] -= probability * change[n, t, place]
                else:
                    change[n, t, place] -= probability * change_y[n]


@irad.rules.augmented_primal(_losses)
def _losses_augmented(config, x, labels, ends, counts, blank):
    y = _losses(x.value, labels.value, ends.value, counts.value, blank.value)
    kept_x = x.value.copy() if config.overwritten[0] else x.value
    kept_labels = labels.value.copy() if config.overwritten[1] else labels.value
    kept_ends = ends.value.copy() if config.overwritten[2] else ends.value
    kept_counts = counts.value.copy() if config.overwritten[3] else counts.value
    return AugmentedReturn(y, np.zeros_like(y), (kept_x, kept_labels, kept_ends, kept_counts))


@irad.rules.reverse(_losses)
def _losses_reverse(config, cotangent, tape, x, labels, ends, counts, blank):
    if is_active(cotangent) and is_active(x):
        _follow(tape[0], x.shadow, cotangent, tape[1], tape[2], tape[3], blank.value, False)
    return None, None, None, None, None


@irad.rules.forward(_losses)
def _losses_forward(config, x, labels, ends, counts, blank):
    y = _losses(x.value, labels.value, ends.value, counts.value, blank.value)
    tangent = np.zeros_like(y)
    _follow(x.value, x.tangent, tangent, labels.value, ends.value, counts.value, blank.value, True)
    return y, tangent
