"""Arguments and configuration that the functions of a rule get, and questions that these may ask at compile time.

    Const(value)                        no derivative
    Active(value)                       numbers: their cotangent is returned
    Duplicated(value, shadow)           memory, and memory of the same kind for its cotangent
    MixedDuplicated(value, shadow)      a tuple of both; the shadow has None where there is no memory

Where a rule takes all directions at once, shadows, tangents and cotangents are tuples with one item for each, which
`in_lanes` makes.

In compiled code an argument is a named tuple. `is_active` and the attributes of the configuration are constants of the
compilation: `partial_evaluation` removes the branches that they decide before Numba types the function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple

from numba.core import types
from numba.core.base import BaseContext
from numba.core.datamodel.models import OpaqueModel, TupleModel
from numba.core.types import Type
from numba.extending import overload, overload_attribute, register_model, typeof_impl

from irad.errors import RuleError
from irad.frontend.numba.messages import described
from irad.options import Options


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
    """Memory with its shadow whose content nothing reads after the call, so a rule need not compute it."""

    value: Any
    shadow: Any


class MixedDuplicatedArgument(NamedTuple):
    """A tuple of numbers and arrays; the shadow has None where there is a number, the cotangent where there is none."""

    value: Any
    shadow: Any


class TangentArgument(NamedTuple):
    """In forward mode: an argument with its tangent, in the structure of the value, with None for constant parts.

    The tangent of memory is memory: a rule that writes to the value writes to the tangent, too.
    """

    value: Any
    tangent: Any


class AugmentedReturn(NamedTuple):
    """The result of the augmented primal of a rule.

    Attributes:
        primal: the value that the function returns.
        shadow: for each array in it, an array of the same shape for its cotangent: zeros, or for an array of an
            argument the shadow of that argument; with the structure of the primal, and None for numbers; None if
            ``config.needs_shadow`` is false.
        tape: data for the reverse, of any type that Numba compiles; None for none.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.rules import AugmentedReturn
        >>> from numba import njit
        >>> @njit
        ... def exponentials(x):
        ...     return np.exp(x)
        >>> @irad.rules.augmented_primal(exponentials)
        ... def exponentials_augmented(config, x):
        ...     y = np.exp(x.value)
        ...     return AugmentedReturn(primal=y, shadow=np.zeros_like(y), tape=y.copy())
        >>> @irad.rules.reverse(exponentials)
        ... def exponentials_reverse(config, cotangent, tape, x):
        ...     x.shadow[:] += cotangent * tape
        ...     return (None,)
        >>> irad.grad(lambda x: exponentials(x).sum())(np.array([0.0, 0.0]))
        array([1., 1.])
    """

    primal: Any
    shadow: Any
    tape: Any


@dataclass(frozen=True)
class RuleConfig:
    """The configuration that a rule is compiled for; its attributes are constants in compiled rules.

    Attributes:
        needs_primal: whether the value of the call is used, other than by linear operations whose own value is not
            used; if not, the augmented primal may return None for it.
        needs_shadow: whether a shadow of the returned arrays is needed; in forward mode, the tangent of the value.
        has_cotangent: whether the value carries a derivative; if not, the reverse is given None for its cotangent.
            False in forward mode.
        width: number of tangents or cotangents that the rule is given at once: 1, unless it is registered with
            ``batched=True``.
        overwritten: for each argument, whether its memory may change between the call and its reverse; the last entry
            is for data that the function itself holds (global arrays, which Numba freezes: always False).
        written: for each argument, whether the function itself may write to its memory.
        returned: for each argument, whether its memory may be part of what the function returns.
        is_seen: whether irad could analyse the function; if not, all of ``written`` and ``returned`` is True.
        runtime_activity: whether activity is known only at run time; always False.
        strong_zero: whether a zero cotangent times anything must be zero; always True.
        options: options of the derivative, without those for its tape; for code that generates rules.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.rules import AugmentedReturn
        >>> from numba import njit
        >>> @njit
        ... def energy(x):
        ...     return (x * x).sum()
        >>> @irad.rules.augmented_primal(energy)
        ... def energy_augmented(config, x):
        ...     kept = x.value.copy() if config.overwritten[0] else x.value
        ...     return AugmentedReturn(energy(x.value) if config.needs_primal else None, None, kept)
        >>> @irad.rules.reverse(energy)
        ... def energy_reverse(config, cotangent, tape, x):
        ...     x.shadow[:] += 2.0 * cotangent * tape
        ...     return (None,)
        >>> irad.value_and_grad(energy)(np.array([1.0, 2.0]))
        (5.0, array([2., 4.]))
    """

    needs_primal: bool
    needs_shadow: bool
    has_cotangent: bool
    overwritten: tuple[bool, ...]
    written: tuple[bool, ...]
    returned: tuple[bool, ...]
    is_seen: bool
    width: int = 1
    runtime_activity: bool = False
    strong_zero: bool = True
    options: Options = field(default_factory=Options)


class ConfigType(types.Opaque):
    """Numba's type of a configuration; it holds the values, and nothing is left of it at run time."""

    def __init__(self, config: RuleConfig) -> None:
        self.config = config
        super().__init__(f"irad.RuleConfig({config})")


register_model(ConfigType)(OpaqueModel)


@typeof_impl.register(RuleConfig)
def _typeof_config(value: RuleConfig, context: BaseContext) -> ConfigType:
    return ConfigType(value)


def _attribute(name: str) -> Any:
    def typed(config):  # type: ignore[no-untyped-def]  # Numba compares its signature with that of what it returns
        value = getattr(config.config, name)
        return lambda config: value

    return typed


for _field in fields(RuleConfig)[:-1]:
    overload_attribute(ConfigType, _field.name)(_attribute(_field.name))  # pyright: ignore[reportArgumentType]  # a Type


class AnnotatedType(types.NamedTuple):
    """Numba's type of an annotated argument: a named tuple that also says which of its parts are active.

    Attributes:
        active: their paths in the value; of the value itself where it has no parts: ``()``.
    """

    def __init__(self, items: tuple[Any, ...], kind: type, active: tuple[tuple[int, ...], ...]) -> None:
        self.active = active
        super().__init__(items, kind)
        spelled = " ".join(".".join(map(str, path)) or "all" for path in active) or "none"
        self.name: str = f"{self.name[:-1]}; active {spelled})"

    @property
    def key(self) -> Any:
        """Key by which Numba compares types."""
        return self.instance_class, self.types, self.active


register_model(AnnotatedType)(TupleModel)


def annotation_of(argument_type: Type) -> type | None:
    """The annotation that a Numba type stands for, or None."""
    return argument_type.instance_class if isinstance(argument_type, AnnotatedType) else None


def is_active(argument: object, *part: int | str) -> bool:
    """True if an argument of a rule carries a derivative; a constant when the rule is compiled.

    A branch on it is compiled only if it is taken, so one function serves constant and active arguments.

    Args:
        argument: an argument of the rule; or the cotangent that the reverse is given, which is None (or None in place
            of a part) if the value of the function carries no derivative.
        part: for a part of a tuple only: its number or its name; several for tuples in tuples.

    Returns:
        A bool.

    Examples:
        >>> import irad
        >>> from irad.rules import AugmentedReturn, is_active
        >>> from numba import njit
        >>> @njit
        ... def product(x, y):
        ...     return x * y
        >>> @irad.rules.augmented_primal(product)
        ... def product_augmented(config, x, y):
        ...     return AugmentedReturn(x.value * y.value, None, None)
        >>> @irad.rules.reverse(product)
        ... def product_reverse(config, cotangent, tape, x, y):
        ...     dx = cotangent * y.value if is_active(x) else None
        ...     dy = cotangent * x.value if is_active(y) else None
        ...     return dx, dy
        >>> irad.grad(product)(2.0, 3.0), irad.grad(product, argnums=(0, 1))(2.0, 3.0)
        (3.0, (3.0, 2.0))
    """
    return argument is not None and not isinstance(argument, ConstArgument)


def is_needed(argument: object) -> bool:
    """True if the contents of an argument are read after the call; a constant when the rule is compiled.

    It is false for arguments annotated with `irad.DuplicatedNoNeed`: a rule need not compute their contents.

    Args:
        argument: an argument of the rule.

    Returns:
        A bool.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.rules import AugmentedReturn, is_active, is_needed
        >>> from numba import njit
        >>> @njit
        ... def double_into(out, x):
        ...     out[:] = 2.0 * x
        >>> @irad.rules.augmented_primal(double_into)
        ... def double_augmented(config, out, x):
        ...     if is_needed(out):
        ...         double_into(out.value, x.value)
        ...     return AugmentedReturn(None, None, None)
        >>> @irad.rules.reverse(double_into)
        ... def double_reverse(config, cotangent, tape, out, x):
        ...     if is_active(x):
        ...         x.shadow[:] += 2.0 * out.shadow
        ...     out.shadow[:] = 0.0
        ...     return None, None
        >>> out, x, x_shadow = np.zeros(2), np.array([1.0, 2.0]), np.zeros(2)
        >>> written, read = irad.DuplicatedNoNeed(out, np.ones(2)), irad.Duplicated(x, x_shadow)
        >>> irad.autodiff(irad.Reverse, double_into, written, read, seed=None)
        (None, None)
        >>> out, x_shadow
        (array([0., 0.]), array([2., 2.]))
    """
    return not isinstance(argument, DuplicatedNoNeedArgument)


def _decide_active(argument: object, *part: int | str) -> bool:
    if not isinstance(argument, AnnotatedType):
        found, _ = _at(argument, part)
        return found != types.none
    _, path = _at(argument.types[0], part)
    return any(each[: len(path)] == path for each in argument.active)


def _at(value: Any, part: tuple[int | str, ...]) -> tuple[Any, tuple[int, ...]]:
    """The type of a part of a value, and its path in numbers."""
    path: list[int] = []
    for each in part:
        if value == types.none:
            break
        fields = getattr(value, "fields", ())
        index = fields.index(each) if each in fields else each
        if not isinstance(value, types.BaseTuple) or not isinstance(index, int) or not 0 <= index < len(value):
            raise RuleError(
                f"is_active is called for the part {each!r} of {described(value)}",
                "name a part of a tuple by its number, or of a named tuple by its name",
                "only tuples have parts that are active one by one",
            )
        path.append(index)
        value = value[index]
    return value, tuple(path)


def _decide_needed(argument: Any) -> bool:
    return annotation_of(argument) is not DuplicatedNoNeedArgument


PREDICATES: Final[dict[Any, Callable[..., bool]]] = {is_active: _decide_active, is_needed: _decide_needed}
"""By predicate the function that decides it, from the type of its argument and its other arguments."""


@overload(is_needed)
def _is_needed_typed(argument):  # type: ignore[no-untyped-def]
    answer = _decide_needed(argument)
    return lambda argument: answer


@overload(is_active, prefer_literal=True)
def _is_active_typed(argument, *part):  # type: ignore[no-untyped-def]
    if not all(isinstance(each, types.Literal) for each in part):
        raise RuleError(
            "is_active is called for a part that is known only at run time",
            "write the number or the name of the part as a literal",
            "is_active is evaluated when the rule is compiled",
        )
    answer = _decide_active(argument, *(each.literal_value for each in part))
    return lambda argument, *part: answer


# Tuples with an item for each direction, in rules that take several at once.


def in_lanes(config: Any, function: Callable[..., Any], *arguments: object) -> tuple[Any, ...]:
    """Results of a function for each direction that a rule is given at once; for compiled rules.

    It is ``(function(0, *arguments), function(1, *arguments), …)`` with ``config.width`` calls, unrolled when the rule
    is compiled.

    Args:
        config: the configuration of the rule.
        function: a function that njit code may call; it takes the number of a direction and the arguments.
        arguments: arguments of the rule, and others.

    Returns:
        A tuple with a result for each direction.

    Raises:
        RuleError: ``config`` is not the configuration of a rule, or the arguments are unpacked (``*arguments``).

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.rules import in_lanes
        >>> from numba import njit
        >>> @njit
        ... def exponentials(x):
        ...     return np.exp(x)
        >>> @irad.rules.forward(exponentials, batched=True)
        ... def exponentials_forward(config, x):
        ...     y = np.exp(x.value)
        ...     return y, in_lanes(config, lambda lane: y * x.tangent[lane])
        >>> x, directions = np.zeros(2), (np.array([1.0, 0.0]), np.array([0.0, 1.0]))
        >>> irad.autodiff(irad.Forward, exponentials, irad.BatchDuplicated(x, directions))
        (array([1., 0.]), array([0., 1.]))
    """
    return tuple(function(lane, *arguments) for lane in range(config.width))


@overload(in_lanes)
def _in_lanes_typed(config, function, *arguments):  # type: ignore[no-untyped-def]  # Numba compares its signature
    raise RuleError(
        "in_lanes is called where the number of directions is not known",
        "pass the config of the rule and single arguments: in_lanes(config, function, x, y)",
        "irad writes out its calls when it compiles the rule",
    )
