"""The further arguments of a function that is passed to another one, as in ``quad(f, a, b, args)``: always a tuple.

A single argument needs no tuple around it. A structure that Python passes in is a named tuple in compiled code, and one
argument there, too.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import overload

from irad.frontend.packing.classes import structure_of
from irad.frontend.packing.packed import packed


def passed_along(args: Any) -> Any:
    """The tuple of ``args``, as compiled code takes it."""
    return packed(args if isinstance(args, tuple) else (args,))


@overload(passed_along, strict=False)  # type: ignore[untyped-decorator]
def _passed_along_typed(args: Any) -> Any:
    if isinstance(args, types.BaseTuple) and structure_of(args) is None:
        return lambda args: args
    return lambda args: (args,)
