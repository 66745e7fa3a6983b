"""Kernels and device functions for which the user has given signatures: `@cuda.jit("void(float64[:], float64)")`.

Numba compiles them at once, which needs a driver, and converts what they are given. Here they are compiled like others,
for the types of the signature that fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from numba.core import sigutils, types
from numba.core.dispatcher import Dispatcher

from irad.errors import SignatureError, SourceLocation
from irad.frontend.numba import internals

_GIVEN: Final = "_irad_signatures"
Signature = tuple[tuple[Any, ...], Any]
"""The types of the arguments, and of the result if it was given."""


def note_signatures(dispatcher: Dispatcher, given: Sequence[Any]) -> None:
    """Remembers signatures that Numba has not compiled."""
    setattr(dispatcher, _GIVEN, [sigutils.normalize_signature(each) for each in given])


def signatures_of(dispatcher: Dispatcher) -> list[Signature]:
    """The signatures of a dispatcher that takes nothing else; empty for all others."""
    noted: list[Signature] = getattr(dispatcher, _GIVEN, [])
    if noted or internals.takes_new_types(dispatcher):
        return noted
    return [
        (tuple(key), getattr(getattr(compiled, "signature", None), "return_type", None))
        for key, compiled in dispatcher.overloads.items()
    ]


def types_for(kernel: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The types for which a kernel is compiled where it is given arguments of some types.

    Raises:
        SignatureError: no signature fits.
    """
    signatures = [arguments for arguments, _ in signatures_of(kernel)]
    if not signatures or given in signatures:
        return given
    for each in signatures:
        if len(each) == len(given) and all(map(_converts, given, each)):
            return each
    raise SignatureError(
        f"{kernel.py_func.__qualname__} has no signature for ({', '.join(map(str, given))})",
        "pass the declared types: " + " or ".join(f"({', '.join(map(str, each))})" for each in signatures),
        "a kernel with signatures is not compiled for other types",
        location=SourceLocation.of(kernel.py_func),
    )


def _converts(given: Any, wanted: Any) -> bool:
    """True if a launch can pass a value of one type as another one."""
    given = types.unliteral(given)
    match given, wanted:
        case types.Array(), types.Array():
            same = (given.dtype, given.ndim) == (wanted.dtype, wanted.ndim)
            return same and wanted.layout in ("A", given.layout) and given.mutable >= wanted.mutable
        case types.BaseTuple(), types.BaseTuple():
            return len(given) == len(wanted) and all(map(_converts, given, wanted))
        case ((types.Number() | types.Boolean()), (types.Number() | types.Boolean())):
            return _rank(given) <= _rank(wanted)
        case _:
            return bool(given == wanted)


def _rank(number: Any) -> int:
    """Integers become floats, and these complex numbers, but not the other way round."""
    return 2 if isinstance(number, types.Complex) else int(isinstance(number, types.Float))
