"""The input of `gradcheck`: the function and its arguments. Refuses settings that check nothing, and shared memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations
from math import inf
from typing import Any, Final, TypeAlias

import numpy as np

from irad.api.argument_types import types_of
from irad.api.functions import primal_of
from irad.api.selection import check_positions
from irad.data.floats import Vector, has_floats, read_floats
from irad.data.structure import flattened, members
from irad.errors import HERE, SignatureError, SourceLocation
from irad.frontend.calls.problems import default_positions
from irad.frontend.numba.messages import location_of
from irad.frontend.packing.packed import packed
from irad.options import Options
from irad.testing.gradients.reference import Bounds
from irad.testing.gradients.trial import MODES, Answer, Trial

_LEAST: Final = {"points": 1, "cotangents": 1, "directions": 1, "max_partials": 0, "seed": 0}

Range: TypeAlias = tuple[Any, Any]
"""A lower and an upper bound of the numbers in an argument."""


class CheckedFunction:
    """The function and its arguments, looked at.

    Attributes:
        modes: ways in which its derivative can be made.
        takes_complex: whether it may be compiled for complex numbers.
        is_kernel: whether it is a CUDA kernel.
    """

    modes: Mapping[str, Callable[[Trial], Answer]] = MODES
    takes_complex = True
    is_kernel = False

    def __init__(
        self,
        f: Any,
        args: tuple[Any, ...],
        argnums: int | Sequence[int] | None,
        domain: Mapping[int, Range],
    ) -> None:
        self.primal: Any = primal_of(f)
        self.values = args = tuple(map(packed, args))
        self.location = location_of(self.primal.py_func)
        types = types_of(self.primal, args)
        wanted = default_positions(self.primal, types) if argnums is None else check_positions(self.primal, argnums)
        self.names = tuple(self._name(i) for i in range(len(args)))
        self.active = tuple(i in wanted and can_be_varied(value) for i, value in enumerate(args))
        self.not_checked = tuple(
            f"{self.names[i]}, a {type(args[i]).__name__}: gradcheck cannot vary the numbers in it"
            for i in wanted
            if i < len(args) and not self.active[i]
        )
        self.bounds = {position: self._bounds(position, limits) for position, limits in domain.items()}

    def trial(self, values: tuple[Any, ...], options: Options | None) -> Trial:
        """A call at a point."""
        return Trial(self.primal, values, self.active, options=options, unit=True, nudges=False)

    @property
    def name(self) -> str:
        """Name of the function."""
        return str(self.primal.py_func.__qualname__)

    def _name(self, position: int) -> str:
        parameters = list(inspect.signature(self.primal.py_func).parameters.values())
        last = len(parameters) - 1
        if position >= last and parameters and parameters[last].kind is inspect.Parameter.VAR_POSITIONAL:
            return f"{parameters[last].name}[{position - last}]"
        return parameters[position].name

    def _bounds(self, position: int, limits: Range) -> Bounds:
        if not 0 <= position < len(self.values) or not self.active[position]:
            raise SignatureError(
                f"`domain` names argument {position}, which is not among the differentiated ones",
                "use positions of arguments with floats, counted from 0",
                "a domain bounds the numbers that are varied",
                self.location,
            )
        what = f"argument {position}, {self.names[position]},"
        return bounds_of(limits, read_floats(self.values[position]), what, self.location)

    def refuse_shared_memory(self, modified: Sequence[bool]) -> None:
        """Refuses arguments of which no float can be varied alone."""
        arrays = [(i, v) for i, v in enumerate(self.values) if isinstance(v, np.ndarray) and self.active[i]]
        refuse_shared_memory(self.name, self.location, arrays, any(modified))


def check_modes(modes: Sequence[str], known: Collection[str] = tuple(MODES)) -> None:
    """Refuses modes that there are not, or not of what is checked."""
    if not modes or any(mode not in known for mode in modes):
        raise SignatureError(
            f"modes={modes!r} does not name modes of irad",
            f"use some of {', '.join(map(repr, known))}",
            "modes say how irad computes the derivative that is checked",
            HERE,
        )


def check_settings(rtol: float | None, atol: float, counts: dict[str, int]) -> None:
    """Refuses tolerances and counts with which nothing, or everything, would pass."""
    for name, tolerance in (("rtol", 0.0 if rtol is None else rtol), ("atol", atol)):
        if not 0.0 <= tolerance < inf:
            raise SignatureError(
                f"{name}={tolerance!r} is not a tolerance",
                "give a number, 0 or more" + (", or None" if name == "rtol" else ""),
                "each difference is compared with it",
                HERE,
            )
    for name, count in counts.items():
        if count < _LEAST[name]:
            raise SignatureError(
                f"{name}={count!r} is less than {_LEAST[name]}",
                f"give {_LEAST[name]} or more",
                "a check without comparisons would always pass",
                HERE,
            )


def bounds_of(limits: Any, leaves: Vector, what: str, location: SourceLocation) -> Bounds:
    """The bounds of an argument's floats.

    Args:
        limits: as the user gives them: a pair of None, numbers or arrays.
        leaves: the floats.
        what: names the argument.
        location: of the function.

    Raises:
        SignatureError: they are not such a pair, or the argument lies outside.
    """
    try:
        low, high = (
            np.broadcast_to(np.ravel(np.asarray(infinite if limit is None else limit, np.float64)), leaves.shape)
            for limit, infinite in zip(limits, (-inf, inf), strict=True)
        )
    except (TypeError, ValueError):
        raise SignatureError(
            f"the domain of {what} is {limits!r}",
            "give a pair: a lower and an upper bound, each a number, an array of the argument's shape, or None",
            "the check does not call the function outside its domain",
            location,
        ) from None
    if not np.all(low <= high):
        raise SignatureError(
            f"the domain of {what} is empty",
            "pass the lower bound first, and no NaN",
            "no number lies between these bounds",
            location,
        )
    if np.any(leaves < low) or np.any(leaves > high):
        raise SignatureError(
            f"{what} lies outside its domain",
            "pass a point inside, or a wider domain",
            "the check does not call the function outside its domain",
            location,
        )
    return low, high


def refuse_shared_memory(
    name: str, location: SourceLocation, arrays: Sequence[tuple[int, np.ndarray[Any, Any]]], is_written: bool
) -> None:
    """Memory that is several floats of the arguments has one derivative, and varying one of them varies others.

    Args:
        name: of the function.
        location: of the function.
        arrays: the active ones, by position.
        is_written: whether the function writes to an argument.

    Raises:
        SignatureError: an array overlaps itself; two overlap, and one is written.
    """
    for position, array in arrays:
        if overlaps_itself(array):
            raise SignatureError(
                f"elements of argument {position} share memory",
                "check the gradient with a copy",
                "their derivatives are added up in one place, and no element can be varied alone",
                location,
            )
    for (i, a), (j, b) in combinations(arrays, 2):
        if is_written and np.may_share_memory(a, b):
            raise SignatureError(
                f"arguments {i} and {j} share memory, and {name} writes to an argument",
                "check the gradient with copies",
                "memory has one derivative, and neither argument can be varied alone",
                location,
            )


def overlaps_itself(array: np.ndarray[Any, Any]) -> bool:
    """True if two elements lie in the same place, as those of `np.broadcast_to` do."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return False
    offsets = np.zeros(1, np.int64)
    for extent, stride in zip(array.shape, array.strides, strict=True):
        offsets = (offsets[:, None] + np.arange(extent) * stride).ravel()
    return bool(np.unique(offsets).size < offsets.size)


def can_be_varied(value: Any) -> bool:
    """True if there are floats in a value, and none in instances of compiled classes."""
    return has_floats(value) and not any(any(members(each)) for each in flattened(value))
