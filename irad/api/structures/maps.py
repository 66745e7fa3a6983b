"""Functions mapped over the vectors of structures: out of place, with storage to reuse, and in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irad.data.recursive.mapping import Recursion
from irad.data.recursive.survey import Memo, Place, Values, survey
from irad.errors import HERE, SignatureError

Predicate = Callable[[Any], bool]


def recursive_map(
    f: Callable[..., Any],
    *inputs: Any,
    outputs: int = 1,
    seen: Memo | None = None,
    copy_if_inactive: bool = False,
    inactive: Predicate | None = None,
) -> Any:
    """A structure like the first one, with what ``f`` makes of the vectors at each place.

    Vectors are floats and complex numbers, arrays of these, and values of registered types. They are found in tuples,
    lists, dictionaries (as values), dataclasses, classes of attrs, closures, arrays of records and of objects, jitclass
    instances and typed containers. All else is inactive: integers, text, functions without closures, files.

    What the first structure holds twice is one object in the result, too; a structure may hold itself.

    Args:
        f: takes one vector of each structure and returns one like them, or a tuple for several results.
        inputs: structures that are alike and share what the first one shares.
        outputs: how many results there are.
        seen: by the ``id`` of objects what takes their place (a tuple for several results). It is given what is made;
            pass it on to calls for other structures that share objects with this one, and keep those alive.
        copy_if_inactive: whether the result has copies of what is inactive; by default it shares it. What cannot be
            copied (an open file) is shared.
        inactive: says of an object whether it is inactive although it may hold vectors.

    Returns:
        The result, or a tuple of several; an input that holds no vectors is returned itself.

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
    """As `recursive_map`, with the storage of ``output`` reused as far as it can be overwritten.

    Arrays are overwritten, lists, dictionaries and instances keep their identity. Numbers cannot be overwritten: tuples
    and frozen instances that hold some are made anew, so that the result has to be used in place of ``output``. What is
    inactive in ``output`` stays. ``output`` may be one of the inputs.

    Args:
        f: as in `recursive_map`; where it has a parameter ``out``, as ufuncs do, it is asked to write there.
        output: a structure like the inputs, or a tuple of several. It may share no more than the first input does.
        inputs: as in `recursive_map`.
        outputs: how many outputs there are.
        seen: as in `recursive_map`.
        inactive: as in `recursive_map`.

    Returns:
        The result, or a tuple of several.

    Raises:
        SignatureError: the structures are not alike, or ``output`` shares what the first input does not. Nothing has
            been written.

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
    """As `recursive_map_into`, where everything can be overwritten.

    Args:
        f: as in `recursive_map_into`.
        output: as in `recursive_map_into`; each number in it is held by something that can be changed.
        inputs: as in `recursive_map`.
        outputs: as in `recursive_map_into`.
        seen: as in `recursive_map`.
        inactive: as in `recursive_map`.

    Raises:
        SignatureError: as in `recursive_map_into`, or a part cannot be overwritten. Nothing has been written.

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
        "outputs= says how many results the function has",
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
            "the first structure says what the result looks like",
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
    """What users pass as ``seen``, as tuples of results."""

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
        "numbers, tuples and read-only arrays cannot be changed, and nothing that holds it can be given another",
        HERE,
    )
