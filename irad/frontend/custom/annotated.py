"""What the functions of a rule are given: annotated arguments, a configuration; what they may ask at compile time.

    Const(value)                        no derivative
    Active(value)                       numbers: their cotangent is returned
    Duplicated(value, shadow)           memory, and memory of the same kind for its cotangent
    MixedDuplicated(value, shadow)      a tuple of both; the shadow has None where there is no memory

In compiled code an argument is a named tuple. `is_active` and the attributes of the configuration are constants of the
compilation: `specialise` removes the branches that they decide before Numba types the function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

from numba.core.datamodel.models import OpaqueModel
from numba.extending import overload, overload_attribute, register_model, typeof_impl

from irad.frontend.numba_untyped import types


class ConstArgument(NamedTuple):
    """An argument without derivative."""

    value: Any


class ActiveArgument(NamedTuple):
    """A number, or a tuple of numbers, whose cotangent the reverse of the rule returns."""

    value: Any


class DuplicatedArgument(NamedTuple):
    """Memory with its shadow: the reverse adds to the shadow, and takes from it what was overwritten."""

    value: Any
    shadow: Any


class DuplicatedNoNeedArgument(NamedTuple):
    """The same; nobody reads the primal's content after the call, so a rule need not compute it."""

    value: Any
    shadow: Any


class MixedDuplicatedArgument(NamedTuple):
    """A tuple of numbers and arrays; the shadow has None where there is a number, the cotangent where there is none."""

    value: Any
    shadow: Any


ANNOTATIONS: Final = (
    ConstArgument,
    ActiveArgument,
    DuplicatedArgument,
    DuplicatedNoNeedArgument,
    MixedDuplicatedArgument,
)


class AugmentedReturn(NamedTuple):
    """What the augmented primal of a rule returns.

    Attributes:
        primal: what the function returns.
        shadow: for each array in it one of the same shape for its cotangent, filled with zeros unless the array is one
            of an argument, whose shadow it then is; in the structure of the primal, with None for numbers; None if
            ``config.needs_shadow`` is false.
        tape: whatever the reverse wants back, of any type that Numba compiles; None for nothing.
    """

    primal: Any
    shadow: Any
    tape: Any


@dataclass(frozen=True)
class RuleConfig:
    """What a rule is compiled for; constants in its functions.

    Attributes:
        needs_primal: whether the value of the call is used.
        needs_shadow: whether a shadow of the returned arrays is wanted.
        width: how many cotangents are propagated at once: 1.
        overwritten: for each argument whether its memory may change between the call and its reverse; the last entry is
            for data that the function itself holds (global arrays, which Numba freezes: always False).
        runtime_activity: whether what is active is known only at run time: False.
        strong_zero: whether a zero cotangent times anything has to be zero: True.
    """

    needs_primal: bool
    needs_shadow: bool
    overwritten: tuple[bool, ...]
    width: int = 1
    runtime_activity: bool = False
    strong_zero: bool = True


class ConfigType(types.Opaque):
    """Numba's type of a configuration; it holds the values, and nothing is left of it at run time."""

    def __init__(self, config: RuleConfig) -> None:
        self.config = config
        super().__init__(f"irad.RuleConfig({config})")


register_model(ConfigType)(OpaqueModel)


@typeof_impl.register(RuleConfig)
def _typeof_config(value: RuleConfig, context: Any) -> ConfigType:
    return ConfigType(value)


def _attribute(name: str) -> Any:
    def typed(config):  # type: ignore[no-untyped-def]  # Numba compares its signature with that of what it returns
        value = getattr(config.config, name)
        return lambda config: value

    return typed


for _field in fields(RuleConfig):
    overload_attribute(ConfigType, _field.name)(_attribute(_field.name))


def annotation_of(argument_type: Any) -> type | None:
    """The annotation that a Numba type stands for, or None."""
    found = getattr(argument_type, "instance_class", None)
    return found if found in ANNOTATIONS else None


def is_active(argument: Any) -> bool:
    """Whether an argument of a rule carries a derivative; known when the rule is compiled.

    A branch that it decides is compiled only if it is taken, so one function serves constant and active arguments.
    """
    return not isinstance(argument, ConstArgument)


def is_needed(argument: Any) -> bool:
    """Whether anybody reads the memory of an argument after the call; known when the rule is compiled, as `is_active`.

    It is false for what was annotated with ``irad.DuplicatedNoNeed``: a rule need not compute the primal content.
    """
    return not isinstance(argument, DuplicatedNoNeedArgument)


PREDICATES: Final[dict[Any, Callable[[type | None], bool]]] = {
    is_active: lambda annotation: annotation is not ConstArgument,
    is_needed: lambda annotation: annotation is not DuplicatedNoNeedArgument,
}


@overload(is_needed)
def _is_needed_typed(argument):  # type: ignore[no-untyped-def]
    answer = PREDICATES[is_needed](annotation_of(argument))
    return lambda argument: answer


@overload(is_active)
def _is_active_typed(argument):  # type: ignore[no-untyped-def]
    answer = PREDICATES[is_active](annotation_of(argument))
    return lambda argument: answer
