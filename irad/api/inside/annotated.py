"""Annotations and modes as compiled code holds them: an annotation is a named tuple, a mode is a type of its own."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, Final

from numba.core import types
from numba.core.datamodel import models

from irad.api.annotate import (
    BATCHES,
    Active,
    Annotation,
    Cache,
    Const,
    Duplicated,
    DuplicatedNoNeed,
    MixedDuplicated,
)
from irad.api.modes import AutodiffMode
from irad.frontend.numba.messages import described
from irad.frontend.offered import offer, offer_type

_ALONE: Final = (Const, Cache, Active)
_WITH_SHADOW: Final = (Duplicated, DuplicatedNoNeed, MixedDuplicated, *BATCHES)
_HELD: Final[dict[type, Any]] = {
    **{kind: namedtuple(kind.__name__, ["value"]) for kind in _ALONE},
    **{kind: namedtuple(kind.__name__, ["value", "shadow"]) for kind in _WITH_SHADOW},
}
_KINDS: Final = {held: kind for kind, held in _HELD.items()}


class ModeType(types.Type):
    """The type of a mode, one for each: which it is must be known when the caller is compiled."""

    def __init__(self, mode: AutodiffMode) -> None:
        self.mode = mode
        super().__init__(name=repr(mode))


offer_type(ModeType, models.OpaqueModel, values=(AutodiffMode, ModeType))


def annotation_of(numba_type: Any) -> Annotation | None:
    """An annotation with types in place of what it annotates, for the type of one; None for any other type."""
    kind = _KINDS.get(getattr(numba_type, "instance_class", None))
    return None if kind is None else kind(*numba_type.types)


def annotation_class_of(numba_type: Any) -> Any:
    """The class that an annotation is of, for its type or that of the class itself; else a `Described`."""
    if isinstance(numba_type, types.Function) and numba_type.typing_key in _HELD:
        return numba_type.typing_key
    found = annotation_of(numba_type)
    return Described(numba_type) if found is None else type(found)


class Described:
    """Stands for an argument without annotation in the error about it."""

    def __init__(self, numba_type: Any) -> None:
        self.numba_type = numba_type

    def __repr__(self) -> str:
        return described(self.numba_type)


def _register(kind: type) -> None:
    held = _HELD[kind]
    if kind in _ALONE:
        offer(kind, lambda value: lambda value: held(value), literals=False)
    else:
        offer(kind, lambda value, shadow: lambda value, shadow: held(value, shadow), literals=False)


for _kind in _HELD:
    _register(_kind)
