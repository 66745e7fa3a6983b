"""The one recursion: each vector of a structure is replaced by what a function makes of it.

Outputs may be given to be overwritten. What cannot be (a number in a tuple) is made anew, and whatever holds it either
stores it or is made anew as well. Out of place and in place are the two ends of this: nothing is given, or nothing has
to be made.
"""

from __future__ import annotations

import copy
import inspect
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from irad.data.recursive.blocks import columns_of, may_be_split, rows_of
from irad.data.recursive.kinds import Container, Vector
from irad.data.recursive.operations import is_elementwise, zero
from irad.data.recursive.survey import Memo, Place, Values
from irad.errors import HERE, SignatureError
from irad.message import with_article


class Recursion:
    """Gives each place its results.

    Args:
        function: of the vectors at a place of the inputs; returns that of the result, or a tuple for several results.
        count: of results.
        copies_inactive: whether what is inactive is copied rather than shared.
        keeps_immutable: whether what cannot be overwritten in outputs stays, in place of being made anew.
        seen: is given the results of each object that is not inactive; those that it has are used.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        count: int,
        *,
        copies_inactive: bool = False,
        keeps_immutable: bool = False,
        seen: Memo | None = None,
    ) -> None:
        self._function, self._count = function, count
        self._takes_out = takes_out(function)
        self._copies_inactive, self._keeps_immutable = copies_inactive, keeps_immutable
        self._seen: Memo = {} if seen is None else seen
        self._copied: dict[int, Any] = {}

    def run(self, place: Place) -> Values:
        """The results at a place; those of what it holds are stored in them."""
        if place.results is not None:
            return place.results
        if not (place.is_active or (self._copies_inactive and isinstance(place.kind, Container))):
            self._set(place, self._inactive(place))
        elif isinstance(place.kind, Container):
            self._fill(place, place.kind) if place.kind.copied is not None else self._build(place, place.kind)
        elif isinstance(place.kind, Vector):
            self._set(place, self._vector(place, place.kind))
        assert place.results is not None
        return place.results

    def _set(self, place: Place, results: Values) -> None:
        place.results = results
        if place.is_active:
            self._seen.update(dict.fromkeys(place.keys, results))

    def _inactive(self, place: Place) -> Values:
        if place.outputs is not None:
            return place.outputs
        value = place.inputs[0]
        if not self._copies_inactive:
            return (value,) * self._count
        return tuple(self._copy(value, number) for number in range(self._count))

    def _copy(self, value: Any, number: int) -> Any:
        memo = self._copied.setdefault(number, {})
        try:
            return copy.deepcopy(value, memo)
        except TypeError:  # a lock, an open file: Python says that there are no copies of such
            return value

    def _vector(self, place: Place, kind: Vector) -> Values:
        outputs = place.outputs
        if outputs is None or (place.is_rebuilt and not (self._keeps_immutable and kind.assign is not None)):
            return self._values(place, place.inputs)
        if not place.is_rebuilt:
            self._write(place, kind, place.inputs, outputs)
        return outputs

    def _write(self, place: Place, kind: Vector, inputs: Values, outputs: Values) -> None:
        if self._takes_out:
            self._function(*inputs, out=outputs[0] if self._count == 1 else outputs)
            return
        assert kind.assign is not None
        for target, source in zip(outputs, self._values(place, inputs), strict=True):
            kind.assign(target, source)

    def _values(self, place: Place, inputs: Values) -> Values:
        found = self._function(*inputs)
        if self._count == 1:
            return (_as_vector(found, inputs[0]),)
        if isinstance(found, tuple) and len(found) == self._count:
            return tuple(_as_vector(each, inputs[0]) for each in found)
        raise SignatureError(
            f"the function returns {with_article(type(found).__name__)} for the vectors at {place.name}",
            f"return a tuple of {self._count}, one for each result",
            "outputs= says how many results there are",
            HERE,
        )

    def _fill(self, place: Place, kind: Container) -> None:
        assert kind.copied is not None
        if self._keeps(place):
            assert place.outputs is not None
            results = place.outputs
        else:
            like = place.outputs or (place.inputs[0],) * self._count
            results = tuple(map(kind.copied, like))
        self._set(place, results)
        if kind.is_memory:
            self._overwrite(place, results)
            return
        assert kind.store is not None
        for part in place.parts:
            if not part.place.is_active and not self._copies_inactive:
                continue
            held = part.outputs if results is place.outputs else None
            for number, (result, found) in enumerate(zip(results, self.run(part.place), strict=True)):
                if held is None or (found is not held[number] and kind.is_mutable(result)):
                    kind.store(result, part.key, found)

    def _keeps(self, place: Place) -> bool:
        return place.outputs is not None and (self._keeps_immutable or not place.is_rebuilt)

    def _overwrite(self, place: Place, results: Values) -> None:
        """Writes to the fields of records, to all of some records before any of the next."""
        is_new = results is not place.outputs
        in_blocks = is_elementwise(self._function) and (is_new or may_be_split(place.inputs, results))
        active, inactive = columns_of(place, split=in_blocks)
        if is_new and self._function is zero:  # what is new is zero
            active = []
        count = len(place.inputs)
        for arrays in rows_of((*place.inputs, *results), whole=not in_blocks):
            for leaf, column in active:
                views = tuple(map(column, arrays))
                assert isinstance(leaf.kind, Vector)
                self._write(leaf, leaf.kind, views[:count], views[count:])
            for column in inactive if is_new else ():
                for result in arrays[count:]:
                    column(result)[...] = column(arrays[0])

    def _build(self, place: Place, kind: Container) -> None:
        assert kind.built is not None
        found = [self.run(part.place) for part in place.parts]
        if place.results is not None:  # made while its parts were, since one of them holds it
            return
        if self._keeps(place):
            assert place.outputs is not None
            self._set(place, place.outputs)
            return
        like = place.outputs or (place.inputs[0],) * self._count
        made = tuple(kind.built(value, [results[number] for results in found]) for number, value in enumerate(like))
        self._set(place, made)


def _as_vector(found: Any, like: Any) -> Any:
    """NumPy's functions return its own numbers where they are given those of Python, or arrays without axes."""
    if isinstance(like, np.ndarray):
        return np.asanyarray(found)
    is_numpys = isinstance(found, np.generic) and not isinstance(like, np.generic)
    return found.item() if is_numpys and isinstance(like, float | complex) else found


def takes_out(function: Callable[..., Any]) -> bool:
    """Whether a function can be told where to write its result, by ``out=`` as those of NumPy."""
    if isinstance(function, partial):
        function = function.func
    if isinstance(function, np.ufunc):
        return True
    if isinstance(function, types.FunctionType) and not hasattr(function, "__wrapped__"):
        code = function.__code__  # much quicker than a signature
        return "out" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    try:
        return "out" in inspect.signature(function).parameters
    except ValueError:  # written in C, and without a signature
        return False
