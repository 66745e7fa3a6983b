"""Functions whose Python code depends on the types of their arguments: written for each combination, and inlined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llvmlite.ir import IRBuilder, Value
from numba.core import types
from numba.core.base import BaseContext
from numba.core.types import Type
from numba.core.typing import Signature
from numba.extending import intrinsic

from irad.frontend.calls.definition import Definition
from irad.frontend.calls.dispatcher import DerivativeDispatcher
from irad.frontend.emit import Emit
from irad.frontend.generated import function_from
from irad.frontend.memory.shadows import extent_of_array, overlap
from irad.frontend.numba import private
from irad.frontend.numba.target import typing_context

Written = tuple[str, Mapping[str, object]]
"""The body of a function as text, and its global names."""


def specialised(
    name: str,
    parameters: Sequence[str],
    write: Callable[[tuple[Any, ...]], Written],
    on_device: Any = None,
) -> Definition:
    """Definition that a wrapper calls: Python code for the types of the arguments, compiled by Numba.

    Args:
        name: of the functions.
        parameters: their parameters.
        write: from the types of the arguments to the code, which may be another where it is differentiated.
        on_device: the same for device code (`irad.frontend.calls.definition.Written`).
    """

    def define(argument_types: tuple[Type, ...]) -> tuple[Any, Callable[..., Any]]:
        # the engine: a derivative from the disk does without
        from irad.frontend.inner import inner_njit
        from irad.frontend.numba.library import will_link_derivatives

        compiled: dict[bool, Any] = {}  # by whether it is differentiated; the types of dispatchers refer to them weakly

        def resolved() -> tuple[Any, Any]:
            kind = private.shadow().refuses_pullbacks
            if kind not in compiled:
                body, scope = write(argument_types)
                source = f"def {name}({', '.join(parameters)}):\n{body}"
                called = {each: _for_compiled_code(value) for each, value in scope.items()}
                code = function_from(name, source, f"irad.{name}", called)
                compiled[kind] = inner_njit(error_model="numpy", boundscheck=False)(code)
            function = types.Dispatcher(compiled[kind])
            return function, typing_context().resolve_function_type(function, argument_types, {})

        def lower(emit: Emit, _: Any, values: Sequence[Any]) -> Any:
            context, builder = emit.context, emit.builder
            implementation = context.get_function(*resolved())
            for library in getattr(implementation, "libs", ()):
                context.active_code_library.add_linking_library(library)
            will_link_derivatives(context.active_code_library)
            return implementation(builder, values)

        return resolved()[1].return_type(*argument_types), lower

    return Definition(parameters, define, on_device)


def _for_compiled_code(value: object) -> object:
    """A derivative in the form that is optimised with its caller; anything else as it is."""
    return value.inner if isinstance(value, DerivativeDispatcher) else value


@intrinsic
def share_memory(typing: Any, left: Any, right: Any) -> Any:
    """True if the extents of two arrays overlap."""

    def lower(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
        arrays = [context.make_array(kind)(context, builder, v) for kind, v in zip(signature.args, values, strict=True)]
        extents = [extent_of_array(Emit(context, builder), *each) for each in zip(arrays, signature.args, strict=True)]
        return overlap(builder, *extents)

    return types.boolean(left, right), lower
