"""Arguments invented from Numba types, for calling a function of which only the signature is known."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba.core import types
from numba.np.numpy_support import as_dtype
from numba.typed import List as TypedList

from irad.data.floats import read_floats, with_floats
from irad.errors import HERE, SignatureError

_LOW: Final = 0.5  # floats are drawn from here to _HIGH: in the domain of most functions, and nothing special
_HIGH: Final = 2.0
_LENGTH: Final = 4  # of each axis and list: matrices are square, so that they can be multiplied
_INTEGER: Final = 3


def sample(kind: Any, generator: np.random.Generator) -> Any:
    """A value of a Numba type.

    Raises:
        SignatureError: none can be made up.
    """
    match kind:
        case types.Omitted():
            return kind.value
        case types.Optional():
            return sample(kind.type, generator)
        case types.Literal():
            return kind.literal_value
        case types.Boolean():
            return True
        case types.Integer():
            return as_dtype(kind).type(_INTEGER)
        case types.Float():
            return _number(as_dtype(kind).type, generator.uniform(_LOW, _HIGH))
        case types.Complex():
            return _number(as_dtype(kind).type, complex(*generator.uniform(_LOW, _HIGH, 2)))
        case types.Array():
            return _array(kind, generator)
        case types.Record():
            return _filled(np.zeros(1, as_dtype(kind)), generator)[0]
        case types.BaseTuple():
            entries = [sample(each, generator) for each in kind.types]
            made = getattr(kind, "instance_class", None)
            return made(*entries) if made is not None else tuple(entries)
        case types.ListType():
            return TypedList([sample(kind.item_type, generator) for _ in range(_LENGTH)])
        case types.List():
            return [sample(kind.dtype, generator) for _ in range(_LENGTH)]
        case _:
            raise SignatureError(
                f"irad cannot generate a value for an argument of type {kind}",
                "give the arguments of one call",
                "irad generates numbers, arrays, records, tuples and lists; the meaning of other types is known only "
                "to the function",
                HERE,
            )


def samples(kinds: tuple[Any, ...], seed: int) -> tuple[Any, ...]:
    """The arguments of a call; anything but a Numba type is taken as it is."""
    generator = np.random.default_rng(seed)
    return tuple(sample(kind, generator) if isinstance(kind, types.Type) else kind for kind in kinds)


def _number(of: Any, value: complex) -> Any:
    """Doubles as Python's numbers: so they are written in messages."""
    return value if of in (np.float64, np.complex128) else of(value)


def _array(kind: Any, generator: np.random.Generator) -> Any:
    shape = (_LENGTH,) * kind.ndim
    dtype = as_dtype(kind.dtype)
    if kind.layout == "A" and shape:
        made = np.zeros((*shape[:-1], 2 * _LENGTH), dtype)[..., ::2]
    else:
        made = np.zeros(shape, dtype, order="F" if kind.layout == "F" else "C")
    made = _filled(made, generator)
    made.flags.writeable = kind.mutable
    return made


def _filled(array: Any, generator: np.random.Generator) -> Any:
    """The array with floats in place of zeros; integers count up, from 0: so they are indices, too."""
    if array.dtype.kind in "iu":
        array[...] = np.arange(array.size).reshape(array.shape) % _LENGTH
        return array
    count = read_floats(array).size
    if count:
        array[...] = with_floats(array, generator.uniform(_LOW, _HIGH, count)).astype(array.dtype)
    return array
