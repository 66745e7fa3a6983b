"""Which array is read-only where a function writes to one: an argument, by name, or a global."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from numba.core import types
from numba.core.types import Type

from irad.frontend.numba.messages import Explanation
from irad.message import source_line

_MESSAGE: Final = "Cannot modify readonly array"
_TARGET: Final = re.compile(r"([A-Za-z_]\w*)\s*(?:\[|[-+*/%@&|^]=|\.\w+\()")


def about_argument(
    found: Explanation, error: Exception, function: Callable[..., object], argument_types: tuple[Type, ...]
) -> Explanation:
    """The explanation of Numba's refusal; where it is an argument that cannot be written to, one that names it.

    Args:
        found: the explanation by Numba's message, which does not say which array.
        error: Numba's.
        function: what was compiled.
        argument_types: for these types.
    """
    if _MESSAGE not in str(error):
        return found
    names = [n for n, t in zip(inspect.signature(function).parameters, argument_types, strict=True) if _is_readonly(t)]
    target = _TARGET.match(source_line(*found.places[0])) if found.places else None
    if target is not None and target[1] in inspect.getclosurevars(inspect.unwrap(function)).globals:
        return found
    written = [name for name in names if target is not None and name == target[1]] or names
    if not written:
        return found
    name = written[0]
    return replace(
        found,
        problem=f"it writes to {name}, a read-only array"
        if len(written) == 1
        else f"it writes to a read-only array; read-only are {', '.join(written)}",
        reason=f"the array passed as {name} may not be modified: {name}.flags.writeable is False",
        remedy=f"(a) pass a copy: {name}.copy() or (b) make the array writeable before the call: "
        f"{name}.flags.writeable = True",
        focus=name,
    )


def _is_readonly(numba_type: Type) -> bool:
    return isinstance(numba_type, types.Array) and not numba_type.mutable
