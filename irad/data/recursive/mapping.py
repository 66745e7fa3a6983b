"""The fold over values of Python: each vector of a structure is replaced by what a function makes of it.

Outputs may be given to be overwritten. What cannot be (a number in a tuple) is replaced, and what holds it stores the
new one or is replaced as well. Out of place and in place are the two ends of this: nothing is given, or nothing has
to be made.
"""

from __future__ import annotations

import copy
import inspect
import math
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from irad.data.recursive.fold import Form, Treatment, steps
from irad.data.recursive.kinds import Container, Vector, kind_of
from irad.data.recursive.survey import Memo, Part, Place, Values, vectors_of
from irad.errors import HERE, SignatureError
from irad.message import with_article

# Operations on one vector of each structure, which write to ``out`` where that is given.


def zero(value: Any, out: Any = None) -> Any:
    """The zero of the space that a vector is in."""
    kind = _kind(value)
    if out is None:
        return kind.zero(value)
    if kind.takes_ufuncs:
        out[...] = 0
        return out
    return _assigned(kind, out, kind.zero(value))


def copied(value: Any, out: Any = None) -> Any:
    """A copy."""
    kind = _kind(value)
    if out is None and kind.assign is not None:
        out = kind.zero(value)
    return value if out is None else _assigned(kind, out, value)


def add(a: Any, b: Any, out: Any = None) -> Any:
    """The sum of two vectors."""
    kind = _kind(a)
    return np.add(a, b, out=out) if kind.takes_ufuncs else _assigned(kind, out, a + b)


def subtract(a: Any, b: Any, out: Any = None) -> Any:
    """The difference of two vectors."""
    kind = _kind(a)
    return np.subtract(a, b, out=out) if kind.takes_ufuncs else _assigned(kind, out, a - b)


def scaled(value: Any, factor: Any, out: Any = None) -> Any:
    """The product of a vector and a number."""
    kind = _kind(value)
    return np.multiply(value, factor, out=out) if kind.takes_ufuncs else _assigned(kind, out, value * factor)


def axpy(target: Any, value: Any, *, factor: Any, room: Callable[[Any], Any], out: Any = None) -> Any:
    """``target + factor * value``.

    Args:
        target: a vector.
        value: another one.
        factor: a number.
        room: of a vector memory for a product with it, or None.
        out: where to write.
    """
    return add(target, scaled(value, factor, out=room(value)), out=out)


def divided(value: Any, divisor: Any, out: Any = None) -> Any:
    """The quotient of a vector and a number."""
    kind = _kind(value)
    return np.divide(value, divisor, out=out) if kind.takes_ufuncs else _assigned(kind, out, value / divisor)


_OPERATIONS: Final = frozenset({zero, copied, add, subtract, scaled, axpy, divided})


def is_elementwise(function: Callable[..., Any]) -> bool:
    """True if a function is known to work element by element: it may be called with parts of arrays in their place."""
    of = function.func if isinstance(function, partial) else function
    return isinstance(of, np.ufunc) or of in _OPERATIONS


def is_scaling(function: Callable[..., Any]) -> bool:
    """True if a function multiplies by a number, which makes complex numbers of floats if it is complex."""
    return isinstance(function, partial) and function.func in (scaled, axpy, divided)


def _kind(value: Any) -> Vector:
    kind = kind_of(value)
    assert isinstance(kind, Vector)
    return kind


def _assigned(kind: Vector, out: Any, value: Any) -> Any:
    if out is None:
        return value
    assert kind.assign is not None
    kind.assign(out, value)
    return out


# Arrays of records, some of them at a time: their fields share cache lines, which are fetched once for all fields.

BYTES: Final = 2**18
"""Bytes of an array that are handled at a time: the caches of a core hold them."""
ELEMENTS: Final = 8
"""Fields that are arrays of at most this length are taken element by element: loops of NumPy are then over records."""

Column: TypeAlias = Callable[[NDArray[Any]], Any]


def may_be_split(inputs: Values, outputs: Values) -> bool:
    """True if nothing that is written may be part of another record, or field, of an input."""
    return not any(output is not value and np.may_share_memory(output, value) for output in outputs for value in inputs)


def rows_of(records: Values, *, whole: bool) -> Iterator[tuple[NDArray[Any], ...]]:
    """Arrays of records, or single ones, in blocks.

    Args:
        records: records of one shape.
        whole: whether there is to be one block.
    """
    arrays = tuple(map(np.asarray, records))
    shape = arrays[0].shape
    if whole or not shape:
        yield arrays
        return
    step = max(1, BYTES // max(1, arrays[0].itemsize * math.prod(shape[1:])))
    for start in range(0, shape[0], step):
        yield tuple([array[start : start + step] for array in arrays])


def columns_of(place: Place, *, split: bool) -> tuple[list[tuple[Place, Column]], list[Column]]:
    """The fields of records, down to vectors: the active ones with their places, and the others.

    Args:
        place: place of the records.
        split: whether small arrays in fields are taken element by element.
    """
    active: list[tuple[Place, Column]] = []
    inactive: list[Column] = []
    axes = np.ndim(place.inputs[0])
    for leaf, path in _leaves(place, ()):
        if not leaf.is_active:
            inactive.append(_column(path, ...))
            continue
        shape = np.shape(leaf.inputs[0])[axes:]
        is_split = split and math.prod(shape) <= ELEMENTS
        active += [(leaf, _column(path, (..., *index))) for index in (np.ndindex(shape) if is_split else [()])]
    return active, inactive


def _leaves(place: Place, path: tuple[str, ...]) -> Iterator[tuple[Place, tuple[str, ...]]]:
    for part in place.parts:
        way = (*path, part.key)
        if part.place.is_active and isinstance(part.place.kind, Container):
            yield from _leaves(part.place, way)
        else:
            yield part.place, way


def _column(path: tuple[str, ...], index: Any) -> Column:
    def column(array: NDArray[Any]) -> Any:
        for name in path:
            array = array[name]
        return array[index]

    return column


class Recursion(Form[Place, Part, Values]):
    """Gives each place its results.

    Args:
        function: of the vectors at a place of the inputs; returns that of the result, or a tuple for several results.
        count: of results.
        copies_inactive: whether what is inactive is copied rather than shared.
        keeps_immutable: whether what cannot be overwritten in outputs stays, in place of being replaced.
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
        self._takes_out, self._is_scaling = takes_out(function), is_scaling(function)
        self._copies_inactive, self._keeps_immutable = copies_inactive, keeps_immutable
        self._seen: Memo = {} if seen is None else seen
        self._copied: dict[int, Any] = {}
        self._prepared: dict[int, Values] = {}

    def run(self, root: Place) -> Values:
        """The results at the root; those of what it holds are stored in them.

        Raises:
            SignatureError: the result of the function cannot be stored. Nothing has been written.
        """
        self._prepare(root)
        stack = [] if root.results is not None else [steps(self, root)]  # Python's own is too small for long chains
        while stack:
            member = next(stack[-1], None)
            if member is None:
                stack.pop()
            elif member.place.results is None:
                stack.append(steps(self, member.place))
        return _results(root)

    def _prepare(self, root: Place) -> None:
        """Calls the function where it does not write by itself, so that what it returns is checked first."""
        for place in vectors_of(root) if root.outputs is not None and not self._keeps_immutable else ():
            if place.results is None and (place.is_rebuilt or not self._takes_out):
                self._prepared[id(place)] = self._values(place, place.inputs, place.outputs)

    # --- the fold -----------------------------------------------------------------------------------------------------

    def treatment(self, place: Place) -> Treatment:
        """Inactive containers are taken apart only to be copied."""
        if place.is_active or (self._copies_inactive and isinstance(place.kind, Container)):
            return place.kind.treatment
        return Treatment.KEPT

    def kept(self, place: Place) -> Values:
        """The inactive value itself, or copies of it."""
        if place.outputs is not None:
            return place.outputs
        value = place.inputs[0]
        if not self._copies_inactive:
            return (value,) * self._count
        return tuple(self._copy(value, number) for number in range(self._count))

    def vector(self, place: Place) -> Values:
        """Results of the function for a vector, and for further ones that other inputs hold there."""
        kind = place.kind
        assert isinstance(kind, Vector)
        results = self._combined(place, kind, place.inputs)
        for others in place.merged:
            results = self._combined(place, kind, (results[0], *others))
        return results

    def viewed(self, place: Place) -> Values:
        """Records: their fields are overwritten."""
        results = self.begun(place)
        self._overwrite(place, place.inputs, results)
        for others in place.merged:
            self._overwrite(place, (results[0], *others), results)
        return results

    def begun(self, place: Place) -> Values:
        """Outputs that can be overwritten, or copies."""
        if self._keeps(place):
            assert place.outputs is not None
            return place.outputs
        assert isinstance(place.kind, Container)
        assert place.kind.copied is not None
        return tuple(map(place.kind.copied, place.outputs or (place.inputs[0],) * self._count))

    def members(self, place: Place, begun: Values | None) -> Iterable[Part]:
        """All of what is built; of what is filled those that are replaced."""
        if begun is None or self._copies_inactive:
            return place.parts
        return [part for part in place.parts if part.place.is_active]

    def store(self, place: Place, member: Part, begun: Values) -> None:
        """Replaces a member, unless outputs hold its results already."""
        kind = place.kind
        assert isinstance(kind, Container)
        assert kind.store is not None
        held = member.outputs if begun is place.outputs else None
        for number, (result, one) in enumerate(zip(begun, _results(member.place), strict=True)):
            if held is None or (one is not held[number] and kind.is_mutable(result)):
                kind.store(result, member.key, one)

    def built(self, place: Place, members: Sequence[Part]) -> Values:
        """Outputs that hold the results of their members, or new values."""
        if place.results is not None:  # made while its members were, since one of them holds it
            return place.results
        if self._keeps(place):
            assert place.outputs is not None
            return place.outputs
        assert isinstance(place.kind, Container)
        assert place.kind.built is not None
        found = [_results(member.place) for member in members]
        like = place.outputs or (place.inputs[0],) * self._count
        built = place.kind.built
        return tuple(built(value, [results[number] for results in found]) for number, value in enumerate(like))

    def finish(self, place: Place, results: Values) -> None:
        """Notes results, for whatever else holds what is there."""
        place.results = results
        for key in place.keys if place.is_active else ():
            self._seen[key] = results

    def _keeps(self, place: Place) -> bool:
        return place.outputs is not None and (self._keeps_immutable or not place.is_rebuilt)

    def _copy(self, value: Any, number: int) -> Any:
        memo = self._copied.setdefault(number, {})
        try:
            return copy.deepcopy(value, memo)
        except TypeError:  # a lock, an open file: Python says that there are no copies of such
            return value

    def _combined(self, place: Place, kind: Vector, inputs: Values) -> Values:
        outputs = place.outputs
        if outputs is None or (place.is_rebuilt and not (self._keeps_immutable and kind.assign is not None)):
            return self._values(place, inputs, outputs)
        if not place.is_rebuilt:
            self._write(place, kind, inputs, outputs)
        return outputs

    def _write(self, place: Place, kind: Vector, inputs: Values, outputs: Values) -> None:
        if self._takes_out:
            self._function(*inputs, out=outputs[0] if self._count == 1 else outputs)
            return
        assert kind.assign is not None
        for target, source in zip(outputs, self._values(place, inputs, outputs), strict=True):
            kind.assign(target, source)

    def _values(self, place: Place, inputs: Values, outputs: Values | None) -> Values:
        if (prepared := self._prepared.pop(id(place), None)) is not None:
            return prepared
        found = self._function(*inputs)
        each = (found,) if self._count == 1 else found
        if isinstance(each, tuple) and len(each) == self._count:
            targets = (None,) * self._count if outputs is None or self._is_scaling else outputs
            return tuple([_as_vector(place, one, inputs[0], target) for one, target in zip(each, targets, strict=True)])
        raise SignatureError(
            f"the function returns {with_article(type(found).__name__)} for the vectors at {place.name}",
            f"return a tuple of {self._count}, one for each result",
            "outputs= gives the number of results",
            HERE,
        )

    def _overwrite(self, place: Place, inputs: Values, results: Values) -> None:
        """Writes to the fields of records, to all of some records before any of the next."""
        is_new = results is not place.outputs
        in_blocks = is_elementwise(self._function) and (is_new or may_be_split(inputs, results))
        active, inactive = columns_of(place, split=in_blocks)
        if is_new and self._function is zero:  # what is new is zero
            active = []
        count = len(inputs)
        for arrays in rows_of((*inputs, *results), whole=not in_blocks):
            for leaf, column in active:
                views = tuple(map(column, arrays))
                assert isinstance(leaf.kind, Vector)
                self._write(leaf, leaf.kind, views[:count], views[count:])
            for column in inactive if is_new else ():
                for result in arrays[count:]:
                    column(result)[...] = column(arrays[0])


def _results(place: Place) -> Values:
    assert place.results is not None
    return place.results


def _as_vector(place: Place, found: Any, like: Any, target: Any) -> Any:
    """Result of a function for a vector, as a vector; NumPy's functions may return its own numbers for those of Python.

    Args:
        place: where the vector is.
        found: the returned value.
        like: the vector.
        target: the object that is to hold the result, or its predecessor there; None if everything is new.
    """
    if found is None:
        raise _unfit(place, "None", like)
    if not isinstance(like, np.ndarray | float | complex | np.number):
        return found
    numbers = np.asanyarray(found)
    if numbers.dtype.kind not in "biufc" or numbers.shape != np.shape(like):
        raise _unfit(place, f"{with_article(type(found).__name__)} of shape {numbers.shape}", like)
    if target is not None and not np.can_cast(numbers.dtype, np.asarray(target).dtype, "same_kind"):
        raise _unfit(place, f"numbers of {numbers.dtype}", target)
    if isinstance(like, np.ndarray):
        return numbers
    number = found[()] if isinstance(found, np.ndarray) else found
    if target is not None and not isinstance(number, type(target)):
        return type(target)(number)  # an integer would be inactive from then on
    is_numpys = isinstance(number, np.generic) and not isinstance(like, np.generic)
    return number.item() if is_numpys else number


def _unfit(place: Place, found: str, like: Any) -> SignatureError:
    is_array = isinstance(like, np.ndarray)
    wanted = f"an array of {like.dtype} with shape {like.shape}" if is_array else with_article(type(like).__name__)
    return SignatureError(
        f"the function returns {found} for the vector at {place.name}, {wanted}",
        "return a vector like the one that is passed",
        "the result takes its place; nothing has been written",
        HERE,
    )


def takes_out(function: Callable[..., Any]) -> bool:
    """True if a function takes ``out=``, the place for its result, as those of NumPy do."""
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
