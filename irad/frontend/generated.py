"""Python functions written as text: for code whose shape depends on types or on a number of arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from llvmlite.ir import Value
from numba.core.typing import Signature

if TYPE_CHECKING:
    from irad.frontend.emit import Emit


HOME: Final = "<irad>"
"""The first part of their qualified names, which no function of a user can have."""


def function_from(name: str, source: str, file: str, scope: Mapping[str, object]) -> Callable[..., Any]:
    """A function that a text defines.

    Args:
        name: name of the function.
        source: the text.
        file: name of the file in tracebacks, without angle brackets; it begins with ``irad``.
        scope: the global names of the function, which itself is not one of them.
    """
    names: dict[str, Any] = dict(scope)
    exec(compile(source, f"<{file}>", "exec"), names)
    made: Callable[..., Any] = names.pop(name)
    made.__qualname__ = f"{HOME}.{name}"
    return made


def is_generated(function: Any) -> bool:
    """True if irad wrote a function as text, whatever it is called by now."""
    return getattr(getattr(function, "__code__", None), "co_filename", "").startswith("<irad")


def emit_generated(emit: Emit, function: Callable[..., Any], signature: Signature, values: Sequence[Value]) -> Value:
    """Emits a call of a function that a text defines, compiled for this call.

    Numba's ``compile_internal`` remembers functions by their code. Functions that a text defines have equal code where
    they differ in their global names alone, and one would be called in place of another.

    Args:
        function: by `function_from`.
        signature: Numba's, of the call.
        values: the arguments.
    """
    context: Any = emit.context
    compiled = context.compile_subroutine(emit.builder, function, signature, caching=False)
    return context.call_internal(emit.builder, compiled.fndesc, signature, values)
