"""Functions over any structure: mapped functions, zeros, copies and sums, inner products, flat arrays."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from irad.data.recursive.kinds import Vector, kind_of
from irad.data.recursive.mapping import Recursion, add, copied, zero
from irad.data.recursive.survey import Memo, Place, Values, survey, vectors_of
from irad.errors import HERE, SignatureError

# Functions mapped over the vectors of structures: out of place, with storage to reuse, and in place.

Predicate = Callable[[Any], bool]


def recursive_map(
    f: Callable[..., Any],
    *inputs: Any,
    outputs: int = 1,
    seen: Memo | None = None,
    copy_if_inactive: bool = False,
    inactive: Predicate | None = None,
) -> Any:
    """A structure with the results of a function for the vectors at each place of other structures.

    Vectors are floats and complex numbers, arrays of these, and values of registered types. They are found in tuples,
    lists, dictionaries (as values), dataclasses, classes of attrs, closures, arrays of records and of objects, jitclass
    instances and typed containers. Everything else is inactive: integers, text, functions without closures, files.

    If the first structure holds an object twice, its result is one object, too. A structure may hold itself.

    Args:
        f: a function of one vector of each structure; returns a vector like them, or a tuple for several results.
        inputs: structures that are alike and share the objects that the first one shares.
        outputs: number of results.
        seen: replacements of objects by their ``id`` (a tuple for several results), to which new ones are added. Pass
            it to calls for other structures that share objects with this one, and keep those structures alive.
        copy_if_inactive: whether inactive parts are copied; by default the result shares them. Parts that cannot be
            copied, such as an open file, are shared.
        inactive: a predicate: true for an object that is inactive although it may hold vectors.

    Returns:
        The result, or a tuple of several. An input that holds no vectors is returned itself.

    Raises:
        SignatureError: the structures are not alike.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> data.recursive_map(np.add, {"w": np.ones(2), "b": (1.0, "text")}, {"w": np.ones(2), "b": (2.0, "text")})
        {'w': array([2., 2.]), 'b': (3.0, 'text')}
    """
    return _unpacked(run(f, inputs, None, outputs, seen, copy_if_inactive, inactive), outputs)


def recursive_map_into(
    f: Callable[..., Any],
    output: Any,
    *inputs: Any,
    outputs: int = 1,
    seen: Memo | None = None,
    inactive: Predicate | None = None,
) -> Any:
    """The map of `irad.data.recursive_map`, written to an existing structure as far as that can be overwritten.

    Arrays are overwritten; lists, dictionaries and instances keep their identity. Numbers cannot be overwritten: tuples
    and frozen instances that hold some are created again, so use the result in place of ``output``. Inactive parts of
    ``output`` stay. ``output`` may be one of the inputs.

    Args:
        f: a function, as in `irad.data.recursive_map`; if it has a parameter ``out``, as ufuncs do, it writes there.
        output: a structure like the inputs, or a tuple of several. It may share no more than the first input does.
        inputs: structures, as in `irad.data.recursive_map`.
        outputs: number of outputs.
        seen: objects and their replacements, as in `irad.data.recursive_map`.
        inactive: a predicate, as in `irad.data.recursive_map`.

    Returns:
        The result, or a tuple of several.

    Raises:
        SignatureError: the structures are not alike, or ``output`` shares what the first input does not. Nothing has
            been written then.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> array = np.ones(2)
        >>> pair = (array, 1.0)
        >>> made = data.recursive_map_into(np.add, pair, pair, pair)
        >>> made, made[0] is array
        ((array([2., 2.]), 2.0), True)
    """
    return _unpacked(run(f, inputs, _given(output, outputs), outputs, seen, False, inactive), outputs)


def recursive_map_(
    f: Callable[..., Any],
    output: Any,
    *inputs: Any,
    outputs: int = 1,
    seen: Memo | None = None,
    inactive: Predicate | None = None,
) -> None:
    """The map of `irad.data.recursive_map`, written to a structure in which everything can be overwritten.

    Args:
        f: a function, as in `irad.data.recursive_map_into`.
        output: a structure like the inputs, or a tuple of several; each number in it is held by a list, dictionary or
            instance that can be changed.
        inputs: structures, as in `irad.data.recursive_map`.
        outputs: number of outputs.
        seen: objects and their replacements, as in `irad.data.recursive_map`.
        inactive: a predicate, as in `irad.data.recursive_map`.

    Raises:
        SignatureError: as in `irad.data.recursive_map_into`, or a part cannot be overwritten. Nothing has been written
            then.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> total = {"a": np.ones(2), "b": 1.0}
        >>> data.recursive_map_(np.add, total, total, total)
        >>> total
        {'a': array([2., 2.]), 'b': 2.0}
    """
    run(f, inputs, _given(output, outputs), outputs, seen, False, inactive, in_place=True)


def _given(output: Any, count: int) -> Values:
    given = (output,) if count == 1 else output
    if isinstance(given, tuple) and len(given) == count:
        return given
    raise SignatureError(
        f"the output is not a tuple of {count}",
        "pass a tuple with a structure for each result",
        "outputs= gives the number of results of the function",
        HERE,
    )


def _unpacked(results: Values, count: int) -> Any:
    return results[0] if count == 1 else results


def run(
    f: Callable[..., Any],
    inputs: Values,
    outputs: Values | None,
    count: int,
    seen: Memo | None,
    copies_inactive: bool,
    inactive: Predicate | None,
    *,
    in_place: bool = False,
    merges: bool = False,
) -> Values:
    """The results of a recursion; see `Recursion` and `survey`."""
    if not inputs:
        raise SignatureError(
            "no structure was passed",
            "pass at least one after the function",
            "the result has the structure of the first argument",
            HERE,
        )
    known = _Known(seen, count)
    root = survey(inputs, outputs, known.results, inactive, merges=merges)
    if in_place and root.is_rebuilt and root.is_active:
        raise _immutable(root)
    results = Recursion(f, count, copies_inactive=copies_inactive, seen=known.results).run(root)
    known.hand_back()
    return results


class _Known:
    """Memo that users pass as ``seen``, as tuples of results."""

    def __init__(self, seen: Memo | None, count: int) -> None:
        self._seen, self._count = seen, count
        self.results: Memo = {} if seen is None else {key: self._packed(value) for key, value in seen.items()}

    def _packed(self, value: Any) -> Values:
        return (value,) if self._count == 1 else tuple(value)

    def hand_back(self) -> None:
        if self._seen is not None:
            self._seen.update({key: _unpacked(value, self._count) for key, value in self.results.items()})


def _immutable(root: Place) -> SignatureError:
    place = root
    while True:
        below = [part.place for part in place.parts if part.place.is_rebuilt and part.place.is_active]
        if not below:
            break
        place = below[0]
    return SignatureError(
        f"the {type(place.inputs[0]).__name__} at {place.name} cannot be overwritten",
        "(a) put it in an array, a list or a dictionary or (b) use what the function without the underscore returns",
        "numbers, tuples and read-only arrays are immutable, and no mutable object holds this one",
        HERE,
    )


# Zeros, copies and sums of structures.

_adding: Final = threading.RLock()  # a function of the user may accumulate, too


def make_zero(
    x: Any, *, seen: Memo | None = None, copy_if_inactive: bool = False, inactive: Predicate | None = None
) -> Any:
    """A structure like ``x`` with zeros for its vectors: the initial shadow of ``x``.

    Args:
        x: any structure, as in `irad.data.recursive_map`.
        seen: objects and their replacements, as in `irad.data.recursive_map`.
        copy_if_inactive: whether inactive parts are copied, as in `irad.data.recursive_map`.
        inactive: a predicate, as in `irad.data.recursive_map`.

    Returns:
        The structure: its vectors are new, its other parts are those of ``x``.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> data.make_zero([np.array([1.0, 2.0]), (3.0, 4)])
        [array([0., 0.]), (0.0, 4)]
    """
    return recursive_map(zero, x, seen=seen, copy_if_inactive=copy_if_inactive, inactive=inactive)


def make_zero_(x: Any, *, inactive: Predicate | None = None) -> None:
    """Overwrites all vectors of a structure with zeros.

    Args:
        x: a structure in which everything can be overwritten, as in `irad.data.recursive_map_`.
        inactive: a predicate, as in `irad.data.recursive_map`.

    Raises:
        SignatureError: a part cannot be overwritten. Nothing has been written then.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> x = [np.ones(2), 1.0, "text"]
        >>> data.make_zero_(x)
        >>> x
        [array([0., 0.]), 0.0, 'text']
    """
    recursive_map_(zero, x, x, inactive=inactive)


def remake_zero_(x: Any, *, inactive: Predicate | None = None) -> None:
    """Overwrites with zeros what can be overwritten in a structure; numbers in tuples and read-only arrays stay.

    Args:
        x: any structure, as in `irad.data.recursive_map`.
        inactive: a predicate, as in `irad.data.recursive_map`.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> x = (np.ones(2), 1.0)
        >>> data.remake_zero_(x)
        >>> x
        (array([0., 0.]), 1.0)
    """
    root = survey((x,), (x,), inactive=inactive)
    Recursion(zero, 1, keeps_immutable=True).run(root)


def copy(x: Any, *, seen: Memo | None = None, copy_if_inactive: bool = False, inactive: Predicate | None = None) -> Any:
    """A structure like ``x`` with copies of its vectors.

    Args:
        x: any structure, as in `irad.data.recursive_map`.
        seen: objects and their replacements, as in `irad.data.recursive_map`.
        copy_if_inactive: whether inactive parts are copied, too, as in `irad.data.recursive_map`.
        inactive: a predicate, as in `irad.data.recursive_map`.

    Returns:
        The structure; objects that ``x`` holds twice are one object in it, too.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> weights = np.ones(2)
        >>> x = data.copy([weights, weights])
        >>> x[0] is x[1], x[0] is weights
        (True, False)
    """
    return recursive_map(copied, x, seen=seen, copy_if_inactive=copy_if_inactive, inactive=inactive)


def accumulate(
    x: Any,
    y: Any,
    f: Callable[[Any], Any] | None = None,
    *,
    atomic: bool = False,
    inactive: Predicate | None = None,
) -> None:
    """Adds ``f(y)`` to ``x`` in place; a vector that is shared is added to once.

    Args:
        x: a structure in which everything can be overwritten, as in `irad.data.recursive_map_`; integers and other
            inactive parts stay.
        y: a structure like it. If it holds several arrays in place of one of ``x``, as a gradient with an array for
            each path does, their sum is added.
        f: a function of a vector of ``y``, such as `numpy.conj` or a multiple; by default the identity.
        atomic: whether other threads may add to the same vectors at the same time, with ``atomic=True``, too.
        inactive: a predicate, as in `irad.data.recursive_map`.

    Raises:
        SignatureError: the structures are not alike, or a part of ``x`` cannot be overwritten. Nothing has been written
            then.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> shared = np.ones(2)
        >>> total = {"a": shared, "b": shared, "c": 1.0}
        >>> data.accumulate(total, data.copy(total), lambda v: 10 * v)
        >>> total
        {'a': array([11., 11.]), 'b': array([11., 11.]), 'c': 11.0}
    """
    if f is not None:
        y = recursive_map(f, y, inactive=inactive)  # all of it, so that nothing is written if f fails
    with _adding if atomic else nullcontext():  # from the first look on: numbers are read there
        run(add, (x, y), (x,), 1, None, False, inactive, in_place=True, merges=True)


# Linear algebra: inner products, norms, and the way to flat arrays and back.


def _vectors(root: Place) -> Iterator[tuple[Vector, Values]]:
    """The vectors of structures in reading order, each once, with their kinds."""
    for place in vectors_of(root):
        assert isinstance(place.kind, Vector)
        yield place.kind, place.inputs


def _lengths(root: Place) -> list[int]:
    """Number of doubles of each vector."""
    return [kind.length(value) for kind, (value,) in _vectors(root)]


def _refilled(root: Place, doubles: NDArray[np.float64], lengths: list[int]) -> Any:
    """The structure around vectors with other elements."""
    rest = iter(np.split(doubles, np.cumsum(lengths)))

    def refilled(value: Any) -> Any:
        kind = kind_of(value)
        assert isinstance(kind, Vector)
        return kind.refilled(value, next(rest))

    [made] = Recursion(refilled, 1).run(root)
    return made


def leaves(x: Any, *, inactive: Predicate | None = None) -> list[Any]:
    """The vectors of a structure in reading order, each once: what an optimiser loops over.

    Args:
        x: any structure, as in `irad.data.recursive_map`.
        inactive: a predicate, as in `irad.data.recursive_map`.

    Returns:
        A list of the vectors themselves; for fields of arrays of records, of views of them.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> for part in data.leaves({"w": np.ones(2), "b": [np.zeros(1)]}):
        ...     part -= 0.5
        ...     print(part)
        [0.5 0.5]
        [-0.5]
    """
    return [vector for _, (vector,) in _vectors(survey((x,), inactive=inactive))]


def dot(x: Any, y: Any, *, inactive: Predicate | None = None) -> Any:
    """The inner product of two structures: the sum of ``conj(x) * y`` over all elements, shared ones counted once.

    Args:
        x: any structure, as in `irad.data.recursive_map`.
        y: a structure like it.
        inactive: a predicate, as in `irad.data.recursive_map`.

    Returns:
        A float; a complex number if ``x`` holds complex numbers.

    Raises:
        SignatureError: the structures are not alike.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> data.dot([np.ones(2), 3.0], [np.ones(2), 2.0])
        8.0
    """
    products = (kind.dot(*vectors) for kind, vectors in _vectors(survey((x, y), inactive=inactive)))
    return sum((product.item() if hasattr(product, "item") else product for product in products), 0.0)


def norm(x: Any, *, inactive: Predicate | None = None) -> float:
    """The Euclidean norm of a structure: the root of the sum of the squares of all elements, shared ones counted once.

    Args:
        x: any structure, as in `irad.data.recursive_map`.
        inactive: a predicate, as in `irad.data.recursive_map`.

    Returns:
        A float.

    Examples:
        >>> from irad import data
        >>> data.norm({"a": 3.0, "b": (4.0, "text")})
        5.0
    """
    parts = _vectors(survey((x,), inactive=inactive))
    return math.hypot(*(math.sqrt(abs(kind.dot(part, part))) for kind, (part,) in parts))


def to_vec(x: Any, *, inactive: Predicate | None = None) -> NDArray[np.float64]:
    """All elements of a structure as a flat array.

    Args:
        x: any structure, as in `irad.data.recursive_map`.
        inactive: a predicate, as in `irad.data.recursive_map`.

    Returns:
        A new array of float64; shared elements appear once, a complex number takes two.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> data.to_vec({"w": np.array([[1.0, 2.0]]), "b": (3.0, 4)})
        array([1., 2., 3.])
    """
    parts = (kind.read(part) for kind, (part,) in _vectors(survey((x,), inactive=inactive)))
    return np.concatenate([np.zeros(0), *parts])


def from_vec(vector: NDArray[np.float64], like: Any, *, inactive: Predicate | None = None) -> Any:
    """A structure with the elements of a flat array: the inverse of `irad.data.to_vec`.

    Args:
        vector: as many float64 numbers as ``to_vec(like)`` returns.
        like: any structure, as in `irad.data.recursive_map`.
        inactive: a predicate, as in `irad.data.recursive_map`.

    Returns:
        A structure like ``like``, whose vectors are new.

    Raises:
        SignatureError: there are more or fewer elements than in ``like``.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> data.from_vec(np.arange(3.0), {"w": np.ones(2), "b": 1.0})
        {'w': array([0., 1.]), 'b': 2.0}
    """
    if np.iscomplexobj(vector):
        raise SignatureError(
            "the vector holds complex numbers",
            "pass doubles, two for each complex number: vector.view(np.float64), if all of it is complex",
            "a flat vector consists of doubles, like the one that irad.data.to_vec returns",
            HERE,
        )
    doubles = np.ascontiguousarray(vector, np.float64).ravel()
    root = survey((like,), inactive=inactive)
    lengths = _lengths(root)
    if doubles.size != sum(lengths):
        raise SignatureError(
            f"the vector has {doubles.size} elements, and the structure {sum(lengths)}",
            "pass a vector as long as irad.data.to_vec(structure)",
            "a complex number counts as two elements; shared elements count once",
            HERE,
        )
    return _refilled(root, doubles, lengths)


def one_hot(x: Any, index: int, *, inactive: Predicate | None = None) -> Any:
    """A structure that is zero except for one element: a vector of the standard basis.

    Args:
        x: any structure, as in `irad.data.recursive_map`.
        index: position in ``to_vec(x)`` of the element that is 1.
        inactive: a predicate, as in `irad.data.recursive_map`.

    Returns:
        A structure like ``x``, whose vectors are new.

    Raises:
        SignatureError: there is no such element.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> data.one_hot([np.ones(2), 1.0], 1)
        [array([0., 1.]), 0.0]
    """
    root = survey((x,), inactive=inactive)
    lengths = _lengths(root)
    vector = np.zeros(sum(lengths))
    if not 0 <= index < vector.size:
        raise SignatureError(
            f"there is no element {index}: the structure has {vector.size}",
            "pass the index of an element of irad.data.to_vec(x), counted from 0",
            "a shared element counts once, a complex number twice",
            HERE,
        )
    vector[index] = 1.0
    return _refilled(root, vector, lengths)
