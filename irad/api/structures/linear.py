"""Linear algebra of structures: inner products, norms, and the way to flat arrays and back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irad.api.structures.maps import Predicate, recursive_map
from irad.data.recursive.kinds import Vector, kind_of
from irad.data.recursive.survey import Place, survey, vectors_of
from irad.errors import HERE, SignatureError


def _vectors(*inputs: Any, inactive: Predicate | None = None) -> Iterator[tuple[Vector, Place]]:
    for place in vectors_of(survey(inputs, inactive=inactive)):
        assert isinstance(place.kind, Vector)
        yield place.kind, place


def leaves(x: Any, *, inactive: Predicate | None = None) -> list[Any]:
    """The vectors of a structure in reading order, each once: what an optimiser loops over.

    Args:
        x: any structure, as in `irad.data.recursive_map`; fields of arrays of records are given as views.
        inactive: as in `irad.data.recursive_map`.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> for part in data.leaves({"w": np.ones(2), "b": [np.zeros(1)]}):
        ...     part -= 0.5
        ...     print(part)
        [0.5 0.5]
        [-0.5]
    """
    return [place.inputs[0] for _, place in _vectors(x, inactive=inactive)]


def dot(x: Any, y: Any, *, inactive: Predicate | None = None) -> Any:
    """The inner product: the sum of ``conj(x) * y`` over all elements, those that are shared once.

    Args:
        x: any structure, as in `irad.data.recursive_map`.
        y: a structure like it.
        inactive: as in `irad.data.recursive_map`.

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
    products = (kind.dot(*place.inputs) for kind, place in _vectors(x, y, inactive=inactive))
    return sum((product.item() if hasattr(product, "item") else product for product in products), 0.0)


def norm(x: Any, *, inactive: Predicate | None = None) -> float:
    """The Euclidean norm of all elements, those that are shared once.

    Args:
        x: any structure, as in `irad.data.recursive_map`.
        inactive: as in `irad.data.recursive_map`.

    Examples:
        >>> from irad import data
        >>> data.norm({"a": 3.0, "b": (4.0, "text")})
        5.0
    """
    parts = ((kind, place.inputs[0]) for kind, place in _vectors(x, inactive=inactive))
    return math.hypot(*(math.sqrt(abs(kind.dot(part, part))) for kind, part in parts))


def to_vec(x: Any, *, inactive: Predicate | None = None) -> NDArray[np.float64]:
    """All elements of ``x`` as a flat array of doubles; what is shared is there once, a complex number is two doubles.

    Args:
        x: any structure, as in `irad.data.recursive_map`.
        inactive: as in `irad.data.recursive_map`.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> data.to_vec({"w": np.array([[1.0, 2.0]]), "b": (3.0, 4)})
        array([1., 2., 3.])
    """
    parts = (kind.read(place.inputs[0]) for kind, place in _vectors(x, inactive=inactive))
    return np.concatenate([np.zeros(0), *parts])


def from_vec(vector: NDArray[np.float64], like: Any, *, inactive: Predicate | None = None) -> Any:
    """A structure like ``like`` with elements from a flat array, the inverse of `to_vec`.

    Args:
        vector: as many doubles as ``to_vec(like)`` returns.
        like: any structure, as in `irad.data.recursive_map`.
        inactive: as in `irad.data.recursive_map`.

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
            "a flat vector is one of doubles, as irad.data.to_vec returns it",
            HERE,
        )
    doubles = np.ascontiguousarray(vector, np.float64).ravel()
    lengths = [kind.length(place.inputs[0]) for kind, place in _vectors(like, inactive=inactive)]
    if doubles.size != sum(lengths):
        raise SignatureError(
            f"the vector has {doubles.size} elements, and the structure {sum(lengths)}",
            "pass a vector with as many elements as irad.data.to_vec returns of the structure",
            "a complex number is two elements; what is shared counts once",
            HERE,
        )
    rest = iter(np.split(doubles, np.cumsum(lengths)))

    def refilled(value: Any) -> Any:
        kind = kind_of(value)
        assert isinstance(kind, Vector)
        return kind.refilled(value, next(rest))

    return recursive_map(refilled, like, inactive=inactive)


def one_hot(x: Any, index: int, *, inactive: Predicate | None = None) -> Any:
    """A structure like ``x`` that is zero but for one element: a vector of the standard basis.

    Args:
        x: any structure, as in `irad.data.recursive_map`.
        index: of the element in ``to_vec(x)``, which is 1.
        inactive: as in `irad.data.recursive_map`.

    Raises:
        SignatureError: there is no such element.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> data.one_hot([np.ones(2), 1.0], 1)
        [array([0., 1.]), 0.0]
    """
    vector = np.zeros(sum(kind.length(place.inputs[0]) for kind, place in _vectors(x, inactive=inactive)))
    if not 0 <= index < vector.size:
        raise SignatureError(
            f"there is no element {index}: the structure has {vector.size}",
            "pass an index from 0 on, of an element of irad.data.to_vec(x)",
            "what is shared counts once, a complex number twice",
            HERE,
        )
    vector[index] = 1.0
    return from_vec(vector, x, inactive=inactive)
