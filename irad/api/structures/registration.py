"""Types of users in structures: as vectors, as containers, or inactive. All functions of `irad.data` obey."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irad.data.recursive.kinds import INACTIVE, Vector, forget_kind, set_kind, with_fields


def register_vector(
    cls: type,
    *,
    zero: Callable[[Any], Any],
    dot: Callable[[Any, Any], Any],
    read: Callable[[Any], NDArray[np.float64]],
    refilled: Callable[[Any, NDArray[np.float64]], Any],
    assign: Callable[[Any, Any], None] | None = None,
) -> None:
    """Registers a class whose values are vectors: functions that are mapped over structures are called with them.

    The class has ``+``, ``-`` and products and quotients with numbers.

    Args:
        cls: the class; its subclasses are vectors, too, unless they are registered otherwise.
        zero: ``zero(value)`` returns the zero vector of the same space.
        dot: ``dot(x, y)`` returns the inner product.
        read: ``read(value)`` returns the elements as a flat array of float64.
        refilled: ``refilled(value, elements)`` returns a value like the first with these elements.
        assign: ``assign(target, source)`` overwrites the elements of ``target``; None for immutable values.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> from fractions import Fraction
        >>> data.register_vector(
        ...     Fraction,
        ...     zero=lambda value: Fraction(0),
        ...     dot=lambda x, y: float(x * y),
        ...     read=lambda value: np.array([float(value)]),
        ...     refilled=lambda value, doubles: Fraction(doubles[0]),
        ... )
        >>> data.make_zero([Fraction(1, 3)])
        [Fraction(0, 1)]
        >>> data.unregister(Fraction)
    """
    set_kind(cls, Vector(zero, dot, read, refilled, lambda value: read(value).size, assign))


def register_container(cls: type, fields: Sequence[str], *, mutable: bool = True) -> None:
    """Registers a class whose instances hold vectors, or objects that hold some, in attributes.

    Instances are copied by `copy.copy`.

    Args:
        cls: the class; also for its subclasses, unless they are registered otherwise.
        fields: names of the attributes.
        mutable: whether the attributes of an instance may be assigned to.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> class Model:
        ...     def __init__(self):
        ...         self.weights = np.ones(2)
        >>> data.register_container(Model, ["weights"])
        >>> data.make_zero(Model()).weights
        array([0., 0.])
        >>> data.unregister(Model)
    """
    names = tuple(fields)
    set_kind(cls, with_fields(lambda value: names, copy.copy, mutable=mutable))


def register_inactive(cls: type) -> None:
    """Registers a class whose instances carry no derivative, whatever they hold.

    Args:
        cls: the class; also for its subclasses, unless they are registered otherwise.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> class Settings(dict):
        ...     pass
        >>> data.register_inactive(Settings)
        >>> data.make_zero([Settings(tolerance=1e-6), 1.0])
        [{'tolerance': 1e-06}, 0.0]
        >>> data.unregister(Settings)
    """
    set_kind(cls, INACTIVE)


def unregister(cls: type) -> None:
    """Removes the registration of a class.

    Args:
        cls: the class that was registered.

    Raises:
        SignatureError: it is not registered.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> class Settings(dict):
        ...     pass
        >>> data.register_inactive(Settings)
        >>> data.unregister(Settings)
        >>> data.make_zero([Settings(tolerance=1e-6)])
        [{'tolerance': 0.0}]
    """
    forget_kind(cls)
