"""`max` and `min` of numbers in kernels, for versions of Numba whose CUDA target cannot compile its own.

From Numba 0.66 on they are functions of any number of arguments, which its CUDA target compiles as if they had one;
that of numba-cuda does not. Numbers are compared as Numba does: the first stays where others are not larger (smaller).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.cpython import builtins
from numba.cuda.extending import intrinsic

from irad.backend import compat


def _extreme(name: str, compare: Callable[[Any, Any], Any]) -> Any:
    def typed(context: Any, numbers: tuple[Any, ...]) -> Any:
        known = bool(numbers) and all(isinstance(each, types.Number | types.Boolean) for each in numbers)
        result = context.unify_types(*numbers) if known else None
        if result is None:
            raise TypingError(f"{name} in a kernel is of numbers, or of a tuple of numbers, not of {numbers}")
        return result

    @intrinsic
    def extreme(typingctx: Any, *given: Any) -> tuple[Any, Callable[..., Any]]:
        one = given[0] if len(given) == 1 else None
        numbers = tuple(one) if isinstance(one, types.BaseTuple) else given

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            (packed,) = arguments
            if numbers is not given:
                packed = builder.extract_value(packed, 0)
            return builtins.do_minmax(context, builder, list(numbers), cgutils.unpack_tuple(builder, packed), compare)

        return typed(typingctx, numbers)(types.Tuple.from_types(given)), lower

    return extreme


REPLACEMENTS: Final = (
    ((max, _extreme("max", operator.gt)), (min, _extreme("min", operator.lt)))
    if compat.cuda_compiles_one_argument()
    else ()
)
"""`max` and `min`, each with what is called in its place, where that is needed."""
