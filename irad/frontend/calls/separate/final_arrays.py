"""Cotangents of what a function leaves in its arrays, where it returns nothing: a pullback takes them by argument.

Input   the cotangent of a pullback: a tuple with an entry for each argument, None where there is none.
Output  the shadows of the arguments hold it when the reverse sweep begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from llvmlite.ir import IRBuilder, Value
from numba.core import types
from numba.core.base import BaseContext
from numba.core.cgutils import ValueStructProxy
from numba.core.types import Type

from irad.errors import SignatureError
from irad.frontend.calls import seeding
from irad.frontend.derivation import Derivation
from irad.frontend.numba.messages import described
from irad.frontend.packing.classes import have_parts_alike
from irad.frontend.values.abi import Argument

_WHY: Final = "the function returns nothing; its results are the arrays that it writes to"

TypedArray: TypeAlias = tuple[ValueStructProxy, Type]
"""An array as Numba handles it in code, and its type."""


def check_final(name: str, arguments: Sequence[Argument], given: Any) -> None:
    """Checks the type of a cotangent.

    Args:
        name: of the function.
        arguments: of the function.
        given: the Numba type of the cotangent.

    Raises:
        SignatureError: it has not an entry for each argument, or one does not fit its argument.
    """
    if not isinstance(given, types.BaseTuple) or len(given.types) != len(arguments):
        raise SignatureError(
            f"the cotangent of what {name} writes is {described(given)}",
            f"pass a tuple with {len(arguments)} entries, one for each argument: an array for an array that {name} "
            "writes to, None for the others",
            _WHY,
        )
    for argument, entry in zip(arguments, given.types, strict=True):
        _check_entry(name, argument, argument.type, entry)


def _check_entry(name: str, argument: Argument, mine: Any, given: Any) -> None:
    if given == types.none:
        return
    if isinstance(mine, types.BaseTuple) and isinstance(given, types.BaseTuple) and have_parts_alike(mine, given):
        for item, entry in zip(mine.types, given.types, strict=True):
            _check_entry(name, argument, item, entry)
        return
    if isinstance(mine, types.BaseTuple) and isinstance(given, types.BaseTuple):
        raise SignatureError(
            f"the cotangent of {argument} of {name} is {described(given)}, the argument is {described(mine)}",
            "pass a tuple for a tuple, and the same keys in the same order, or None",
            _WHY,
        )
    if not isinstance(mine, types.Array):
        raise SignatureError(
            f"a cotangent is given for {argument} of {name}, which is {described(mine)} and not an array",
            "pass None in its place",
            _WHY,
        )
    if not isinstance(given, types.Array) or (mine.dtype, mine.ndim) != (given.dtype, given.ndim):
        raise SignatureError(
            f"the cotangent of {argument} of {name} is {described(given)}, the argument is {described(mine)}",
            "pass an array of the same dtype and shape, or None",
            _WHY,
        )


def final_parts(
    context: BaseContext,
    builder: IRBuilder,
    derivation: Derivation,
    shadows: Sequence[TypedArray],
    seed: tuple[Value, Type],
) -> Iterator[tuple[TypedArray, TypedArray]]:
    """The shadow of each array that gets a cotangent, and that cotangent: each as Numba's array and its type.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        derivation: what the pullback belongs to.
        shadows: of all arrays among the arguments.
        seed: the whole cotangent and its type.
    """
    value, kind = seed
    for (argument, leaf), shadow in zip(derivation.active_memory(), shadows, strict=True):
        path: tuple[int, ...] = ()
        entry = kind
        for step in (argument.position, *leaf.path):
            if entry == types.none:
                break
            assert isinstance(entry, types.BaseTuple)
            path, entry = (*path, step), entry.types[step]
        if entry != types.none:
            yield shadow, (context.make_array(entry)(context, builder, seeding.part_of(builder, value, path)), entry)


def add_final(context: BaseContext, builder: IRBuilder, shadow: TypedArray, given: TypedArray) -> None:
    """Adds a cotangent to the shadow of its array."""
    (array, array_type), (cotangent, cotangent_type) = shadow, given
    seeding.add_elements(context, builder, array_type, array.data, array, cotangent_type, cotangent)
