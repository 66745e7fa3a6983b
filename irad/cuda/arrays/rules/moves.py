"""Functions that move elements, or leave them out.

The function is run on numbers of elements, which shows where each element of the result comes from. Its cotangent goes
there.
"""

from __future__ import annotations

from typing import Any, Final

from irad.cuda.arrays.library import add_at
from irad.cuda.arrays.ruleset import ArrayCall, Rule, mapped

_WITHOUT_MOVING: Final = {"dtype", "casting"}  # which would turn numbers of elements to floats
_LOWEST: Final = -(2**52)  # exact as a float, too, which numbers beside unsigned integers become
_PADDING: Final = {"constant", "edge", "reflect", "symmetric", "wrap", "empty"}


def sources(call: ArrayCall) -> tuple[Any, list[int]]:
    """The origins of the elements of a result.

    Elements of leaves are numbered from far below zero, since integers among the arguments may be values that are moved
    as well: ``y[0] = 1``, ``where(mask, x, 1)``.

    Returns:
        For each of them the number of an element of a leaf, 0 if it comes from none; and the first number of each leaf,
        and the one after the last.
    """
    m, starts = call.xp, [1]
    numbers = []
    for leaf in call.leaves:
        starts.append(starts[-1] + leaf.size)
        numbers.append(m.arange(_LOWEST + starts[-2], _LOWEST + starts[-1], dtype=m.int64).reshape(leaf.shape))

    def numbered(value: Any) -> Any:
        index = call.index(value)
        if index is not None:
            return numbers[index]
        return 0 if isinstance(value, float | complex) else m.zeros(value.shape, m.int64)

    args = mapped(call.args, numbered, _is_float)
    kwargs = {
        key: mapped(value, numbered, _is_float) for key, value in call.kwargs.items() if key not in _WITHOUT_MOVING
    }
    found = call.function(*args, **kwargs)
    found = (found if call.changes is None else args[call.changes]) - _LOWEST
    return m.where((found >= 1) & (found < starts[-1]), found, 0).astype(m.int64), starts


def _is_float(value: Any) -> bool:
    return isinstance(value, float | complex) or (hasattr(value, "dtype") and value.dtype.kind in "fc")


def _reverse(call: ArrayCall, cotangent: Any) -> list[Any]:
    places, starts = sources(call)
    summed = call.xp.zeros(starts[-1], cotangent.dtype)
    add_at(call.xp, summed, places.reshape(-1), cotangent.reshape(-1))
    return [
        summed[start:end].reshape(leaf.shape)
        for leaf, start, end in zip(call.leaves, starts[:-1], starts[1:], strict=True)
    ]


def _nothing(call: ArrayCall, cotangent: Any) -> list[Any]:
    return [None] * len(call.leaves)


def _fills_floats(a: Any, fill_value: Any, *_: Any, **__: Any) -> str | None:
    return None if _is_float(a) or not _is_float(fill_value) else "the array that is given is not of floats"


def _condition(condition: Any, *_: Any, **__: Any) -> str | None:
    return "the condition is an array of floats" if _is_float(condition) else None


def _second_condition(a: Any, mask: Any, *_: Any, **__: Any) -> str | None:
    return _condition(mask)


def _padding(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> str | None:
    if mode not in _PADDING or "reflect_type" in kwargs:
        return f"it has no rule for mode={mode!r}" if mode not in _PADDING else "it has no rule for reflect_type"
    return None


def _reverse_sort(call: ArrayCall, cotangent: Any, a: Any, axis: Any = -1, kind: Any = None) -> Any:
    m = call.xp
    flat, along = (a.reshape(-1), 0) if axis is None else (a, axis)
    places = m.argsort(m.argsort(flat, axis=along, kind="stable"), axis=along, kind="stable")
    return m.take_along_axis(cotangent, places, axis=along).reshape(a.shape)


def _reverse_add_at(call: ArrayCall, cotangent: Any, a: Any, indices: Any, b: Any) -> tuple[Any, ...]:
    return cotangent, None, call.like(cotangent[indices], b) if call.is_active(b) else None


def _reverse_trace(
    call: ArrayCall, cotangent: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None
) -> Any:
    m = call.xp
    found = m.zeros(a.shape, cotangent.dtype)
    diagonal = m.moveaxis(found, (axis1, axis2), (-2, -1))
    rows, columns = diagonal.shape[-2:]
    i = m.arange(max(0, -offset), max(min(rows, columns - offset), max(0, -offset)))
    diagonal[..., i, i + offset] = cotangent[..., None]
    return found


_MOVES: Final = (
    *("array", "copy", "asarray", "ascontiguousarray", "asfortranarray", "reshape", "ravel", "flatten", "transpose"),
    *("swapaxes", "moveaxis", "rollaxis", "squeeze", "expand_dims", "broadcast_to", "atleast_1d", "atleast_2d"),
    *("atleast_3d", "concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "append", "insert", "delete"),
    *("repeat", "tile", "roll", "flip", "flipud", "fliplr", "rot90", "take", "take_along_axis", "diag", "diagonal"),
    *(
        "tril",
        "triu",
        "choose",
        "ndarray.__getitem__",
        "fft.fftshift",
        "fft.ifftshift",
        "matrix_transpose",
        "permute_dims",
    ),
    *("diagflat", "concat", "block", "resize", "unstack", "lib.stride_tricks.sliding_window_view"),
)
_CHANGES: Final = (
    *("ndarray.__setitem__", "ndarray.fill", "copyto", "fill_diagonal", "put", "ndarray.put", "put_along_axis"),
    *("ndarray.set",),
)

RULES: Final = (
    *(Rule(name, _reverse, is_whole=True) for name in _MOVES),
    *(Rule(name, _reverse, is_whole=True, changes=0) for name in _CHANGES),
    *(Rule(name, _reverse, is_whole=True, check=_condition) for name in ("where", "compress", "extract")),
    Rule("ndarray.compress", _reverse, is_whole=True, check=_second_condition),
    *(
        Rule(name, _reverse, is_whole=True, changes=0, check=_second_condition)
        for name in ("place", "putmask", "ndarray.putmask")
    ),
    *(Rule(name, _nothing, is_whole=True) for name in ("zeros_like", "ones_like", "empty_like")),
    Rule("full_like", _reverse, is_whole=True, check=_fills_floats),
    Rule("pad", _reverse, is_whole=True, check=_padding),
    Rule("sort", _reverse_sort, is_real=True),
    Rule("ndarray.sort", _reverse_sort, is_real=True, changes=0),
    Rule("add.at", _reverse_add_at, arrays=3, changes=0),
    Rule("ndarray.scatter_add", _reverse_add_at, arrays=3, changes=0),
    Rule("scatter_add", _reverse_add_at, arrays=3, changes=0),
    Rule("trace", _reverse_trace),
)
