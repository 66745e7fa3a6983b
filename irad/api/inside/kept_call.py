"""A callable value of compiled code that keeps something: a linear map, or a pullback that runs its function again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from numba.core import cgutils, types, typing
from numba.core.datamodel import models
from numba.extending import intrinsic

from irad.frontend.generated import emit_generated, function_from
from irad.frontend.numba.target import typing_context
from irad.frontend.offered import offer_type

_CALL: Final = "irad.kept_call"


class KeptCallType(types.Callable):
    """The type of such a value.

    Attributes:
        apply: the compiled ``(kept, *given) -> result``.
        kept: the type of what is kept, a tuple.

    Args:
        what: it is called, in messages.
        apply: as above.
        kept: as above.
    """

    def __init__(self, what: str, apply: Any, kept: Any) -> None:
        self.apply, self.kept = apply, kept
        super().__init__(name=f"{what} of {apply.py_func.__name__} ({id(apply)}, {kept})")

    def get_call_type(self, context: Any, args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """Numba's hook when the value is called."""
        found = context.resolve_function_type(types.Dispatcher(self.apply), (self.kept, *args), kws)
        return None if found is None else typing.signature(found.return_type, *args, recvr=self)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """Numba's hook for messages."""
        return [], True

    def get_impl_key(self, sig: Any) -> str:
        """Numba's hook when it lowers a call."""
        return _CALL


class KeptCallModel(models.StructModel):
    """What such a value holds."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, [("kept", kind.kept)])


def _call(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
    kind, *given = signature.args
    held = cgutils.create_struct_proxy(kind)(context, builder, values[0])
    names = "".join(f", a{i}" for i in range(len(given)))
    source = f"def call(kept{names}):\n    return apply(kept{names})\n"
    call = function_from("call", source, "irad", {"apply": kind.apply})
    inner = typing.signature(signature.return_type, kind.kept, *given)
    return emit_generated(context, builder, call, inner, (held.kept, *values[1:]))


offer_type(KeptCallType, KeptCallModel, call=(_CALL, _call))


def kept_call_maker(kind: KeptCallType) -> Any:
    """An intrinsic that makes such a value of what it keeps."""

    @intrinsic
    def make(context: Any, kept: Any) -> tuple[Any, Callable[..., Any]]:
        def lower(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
            made = cgutils.create_struct_proxy(kind)(context, builder)
            [made.kept] = values
            if context.enable_nrt:  # device code counts no references
                context.nrt.incref(builder, signature.args[0], made.kept)
            return made._getvalue()

        return kind(kept), lower

    return make


def type_of_call(function: Any, *given: Any) -> Any:
    """The type of what a function returns."""
    context = typing_context()
    kind = types.Dispatcher(function) if hasattr(function, "py_func") else context.resolve_value_type(function)
    return context.resolve_function_type(kind, given, {}).return_type
