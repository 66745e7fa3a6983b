"""States of any structure: what the methods integrate is a vector of doubles.

A state is a number, an array of any shape, or a structure of these. The functions of a problem get it as it is; the
vector has its numbers one after the other, complex ones as real and imaginary part. How unknowns of equations become
vectors (`irad.implicit.unknowns`) is how states do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit
from numba.core import types
from numba.extending import overload
from numba.np.numpy_support import as_dtype

from irad.api.checkpointing.values import Leaf, copied, leaves_of, structured
from irad.api.functions import remembered
from irad.errors import SignatureError, SourceLocation
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.numba.messages import described
from irad.implicit.unknowns import MADE, element_type, shaped, size_of_leaf, vector, with_floats, written
from irad.ode.dense import Dense


def solver_of_states(
    f: Any, events: Sequence[Any], effects: Sequence[Any], solver_of: Callable[..., Any], result: type
) -> Any:
    """A solver that takes states of any structure, by way of one that takes vectors.

    Args:
        f: the right-hand side.
        events: the functions of the events.
        effects: of the events; see `irad.ode.events.effects_of`.
        solver_of: makes the solver of a right-hand side, events and effects that take vectors.
        result: the class of what a solver returns, a named tuple.
    """
    of_vectors = tuple(None if effect is None else _of_vector(effect) for effect in effects)
    solver = solver_of(_of_vector(f), tuple(map(_event_of_vector, events)), of_vectors)

    @njit
    def solve_states(y0, t0, t1, args, wanted, rtol, atol, *others):  # type: ignore[no-untyped-def]
        _check_state(y0)
        state = with_floats(y0)
        like = _likeness(state)
        start, tolerances = _to_vector(state, like), (_spread(rtol, like), _spread(atol, like))
        found = solver(start, t0, t1, (like, *args), wanted, *tolerances, *others)
        y, y_events = rows_like(found.y, like), rows_like(found.y_events, like)
        counts = found.ended, found.steps, found.rejected, found.calls, found.which
        return result(found.t, y, found.t_events, y_events, *counts, _with_likeness(found.dense, like))

    return solve_states


def _with_likeness(dense: Any, like: Any) -> Any:
    """A solution of vectors as one of states with the structure of another."""
    raise NotImplementedError


@overload(_with_likeness, strict=False)
def _with_likeness_typed(dense: Any, like: Any) -> Any:
    if not isinstance(dense, types.BaseNamedTuple):
        return lambda dense, like: ()
    return lambda dense, like: Dense(dense.times, dense.lengths, dense.pieces, dense.slope, dense.end, like)


def _check_state(y0: Any) -> None:
    """Refuses what is neither a number nor an array of numbers, nor a structure of these, when it is typed."""
    raise NotImplementedError


@inner_overload(_check_state, strict=False)
def _check_state_typed(y0: Any) -> Any:
    leaves = [] if isinstance(y0, MADE) else leaves_of(y0, "y0")
    if not leaves or not all(isinstance(element_type(leaf), types.Number) for leaf in leaves):
        raise SignatureError(
            f"the state of a differential equation is {described(y0)}",
            "pass a number, an array of numbers, or a tuple of these",
            "the methods work on numbers, in a fixed order",
            SourceLocation.here(),
        )
    return lambda y0: None


def _of_vector(f: Any) -> Any:
    """A right-hand side or an effect as a function of vectors: ``(t, v, like, *args)``.

    ``like`` has the structure of the state.
    """

    def made() -> Any:
        @inner_njit
        def slope(t, v, like, *args):  # type: ignore[no-untyped-def]
            return _to_vector(f(t, from_vector(v, like), *args), like)

        return slope

    return remembered(f, (_of_vector,), made)


def _event_of_vector(event: Any) -> Any:
    """An event as a function of vectors: ``(t, v, like, *args)``."""

    def made() -> Any:
        @inner_njit
        def value(t, v, like, *args):  # type: ignore[no-untyped-def]
            return event(t, from_vector(v, like), *args)

        return value

    return remembered(event, (_event_of_vector,), made)


@inactive_in_irad
@njit
def _likeness(state):  # type: ignore[no-untyped-def]
    """A state that only says what its structure is: a constant."""
    return copied(state)


def _to_vector(value: Any, like: Any) -> Any:
    """A value with the structure of a state as a vector; any other value is refused."""
    raise NotImplementedError


@inner_overload(_to_vector, strict=False)
def _to_vector_typed(value: Any, like: Any) -> Any:
    leaves = leaves_of(like)
    found = [] if isinstance(value, MADE) else leaves_of(value)
    if [leaf.path for leaf in found] != [leaf.path for leaf in leaves] or not all(map(_fits, found, leaves)):
        raise SignatureError(
            f"the right-hand side or an effect of a differential equation returns {described(value)}",
            f"return the structure of the state, which is {described(like)}, with real numbers where it has these",
            "it is the derivative of the state, or the state after an event",
            SourceLocation.here(),
        )
    if isinstance(like, types.Float):
        return lambda value, like: np.full(1, np.float64(value))
    parts = [("".join(f"[{index}]" for index in leaf.path), leaf) for leaf in leaves]
    arrays = [part for part, leaf in parts if isinstance(leaf.type, types.Array)]
    checks = [f"check_shape(value{part}.shape == like{part}.shape)" for part in arrays]
    scope = {"check_shape": _check_shape, "vector": vector, "float64": np.float64}
    return written("to_vector(value, like)", [*checks, "return vector(value, like).astype(float64)"], scope)


def _fits(found: Leaf, wanted: Leaf) -> bool:
    numbers = types.Number if isinstance(element_type(wanted), types.Complex) else types.Float | types.Integer
    axes = [leaf.type.ndim if isinstance(leaf.type, types.Array) else -1 for leaf in (found, wanted)]
    return axes[0] == axes[1] and isinstance(element_type(found), numbers | types.Boolean)


@inner_jitable
def _check_shape(fits):  # type: ignore[no-untyped-def]
    if not fits:
        raise ValueError("the right-hand side or an effect of a differential equation and its state differ in shape")


def from_vector(found: Any, like: Any) -> Any:
    """A vector as a state with the structure of another, in new memory where it is not the vector itself."""
    raise NotImplementedError


@inner_overload(from_vector, strict=False)
def _from_vector_typed(found: Any, like: Any) -> Any:
    if isinstance(like, types.Float):
        dtype = as_dtype(like).type
        return lambda found, like: dtype(found[0])
    return lambda found, like: shaped(found, like)


def rows_like(rows: Any, like: Any) -> Any:
    """The rows of a matrix as states with the structure of one: each part gets a first axis."""
    raise NotImplementedError


@overload(rows_like, strict=False)
def _rows_like_typed(rows: Any, like: Any) -> Any:
    scope: dict[str, Any] = {"empty": np.empty, "pairs": _put_complex_rows, "reals": _put_rows}
    lines, items = ["at = 0"], []
    for number, leaf in enumerate(leaves_of(like, "like")):
        scope[f"dtype{number}"] = as_dtype(element_type(leaf)).type
        axes = f"(rows.shape[0],) + {leaf.text}.shape" if isinstance(leaf.type, types.Array) else "rows.shape[0]"
        put = "pairs" if isinstance(element_type(leaf), types.Complex) else "reals"
        lines += [f"made{number} = empty({axes}, dtype{number})", f"{put}(made{number}, rows, at)"]
        lines.append(f"at += {size_of_leaf(leaf)}")
        items.append(f"made{number}")
    made = structured(like, iter(items), scope)
    return written("rows_like(rows, like)", [*lines, f"return {made}"], scope)


@inner_jitable
def _put_rows(made, rows, at):  # type: ignore[no-untyped-def]
    if made.size > 0:
        numbers = made.reshape((rows.shape[0], made.size // rows.shape[0]))
        for i in range(numbers.shape[0]):
            for j in range(numbers.shape[1]):
                numbers[i, j] = rows[i, at + j]


@inner_jitable
def _put_complex_rows(made, rows, at):  # type: ignore[no-untyped-def]
    if made.size > 0:
        numbers = made.reshape((rows.shape[0], made.size // rows.shape[0]))
        for i in range(numbers.shape[0]):
            for j in range(numbers.shape[1]):
                numbers[i, j] = complex(rows[i, at + 2 * j], rows[i, at + 2 * j + 1])


def _spread(tolerance: Any, like: Any) -> Any:
    """A tolerance for each entry of a state's vector, of a number for all or of the state's structure."""
    raise NotImplementedError


@overload(_spread, strict=False)
def _spread_typed(tolerance: Any, like: Any) -> Any:
    leaves = leaves_of(like, "like")
    sizes = [size_of_leaf(leaf) for leaf in leaves]
    lines = [f"found, at = empty({' + '.join(sizes)}), 0"]
    for leaf, size in zip(leaves, sizes, strict=True):
        part, text = tolerance, "tolerance"
        for index in leaf.path:
            if isinstance(part, types.BaseTuple) and index < len(part):
                part, text = part[index], f"{text}[{index}]"
        if isinstance(part, types.Array) and isinstance(leaf.type, types.Array) and part.ndim == leaf.type.ndim:
            lines.append(f"put_tolerances(found[at : at + {size}], {text}, {leaf.text}.shape)")
        elif isinstance(part, types.Float | types.Integer):
            lines.append(f"found[at : at + {size}] = {text}")
        else:
            raise SignatureError(
                f"rtol or atol of a differential equation is {described(tolerance)}, and the state {described(like)}",
                "pass a number, or numbers and arrays of numbers in the structure of the state",
                "each part of the state has a tolerance",
                SourceLocation.here(),
            )
        lines.append(f"at += {size}")
    scope = {"empty": np.empty, "put_tolerances": _put_tolerances}
    return written("spread(tolerance, like)", [*lines, "return found"], scope)


@inner_jitable
def _put_tolerances(out, tolerances, shape):  # type: ignore[no-untyped-def]
    if tolerances.shape != shape:
        raise ValueError("rtol or atol of a differential equation is an array without the shape of the state")
    if tolerances.size > 0:
        each = out.size // tolerances.size  # a complex number is two entries
        for i, tolerance in enumerate(tolerances.flat):
            out[each * i : each * (i + 1)] = tolerance
