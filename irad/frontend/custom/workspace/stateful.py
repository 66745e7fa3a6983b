"""Rules that own workspace: built for each pair that a derivative calls, with slots that outlive its calls.

Input   a function ``build(signature)`` that a user registered; the signature of the primal.
Output  `Built`: a rule of the common form, whose functions are also given a slot; where the slots come from.

A rule is built when the pair is compiled: once for each derivative, signature and combination of what takes part. Calls
in a derivative that agree in all of this share the rule and its pool; at any time each of them has its own slot.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from numba.core import types
from numba.core.types import Type
from numba.core.typing import Signature

from irad.errors import IradError, RuleError
from irad.frontend.custom.catalogue import CustomRule, place_of
from irad.frontend.custom.specialise import rule_dispatcher
from irad.frontend.custom.workspace.pools import Pool
from irad.frontend.custom.workspace.slots import Define, SlotType, lending
from irad.frontend.numba.messages import REFUSALS, explanation

_PARTS = ("augmented_primal", "reverse", "state")
_FORWARD_PARTS = ("forward", "state")


@dataclass(frozen=True)
class StatefulRule:
    """A rule with workspace, as a function registered by `irad.rules.build_rule` returns it.

    Any object with these attributes will do.

    Attributes:
        augmented_primal: ``(config, slot, *arguments)`` → `AugmentedReturn`.
        reverse: ``(config, slot, cotangent, tape, *arguments)`` → cotangents.
        state: ``()`` → what a new slot holds: a value of any Numba type.
        forward: for forward mode, ``(config, slot, *arguments)`` → ``(value, tangent)``.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.rules import AugmentedReturn, StatefulRule
        >>> from numba import njit
        >>> @njit
        ... def halve(x):
        ...     return 0.5 * x
        >>> @irad.rules.build_rule(halve)
        ... def build(signature):
        ...     def state():
        ...         return np.zeros(8)
        ...
        ...     def augmented_primal(config, slot, x):
        ...         return AugmentedReturn(0.5 * x.value, None, None)
        ...
        ...     def reverse(config, slot, cotangent, tape, x):
        ...         return (0.5 * cotangent,)
        ...
        ...     return StatefulRule(augmented_primal, reverse, state)
        >>> irad.grad(halve)(3.0)
        0.5
    """

    augmented_primal: Callable[..., object]
    reverse: Callable[..., Any]
    state: Callable[[], Any]
    forward: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Slots:
    """Where the calls of a pair get their slots.

    Attributes:
        pool: it.
        type: of a slot.
        first: a dispatcher: what a new slot holds.
    """

    pool: Pool
    type: SlotType
    first: Any

    def scope(self, define: Define) -> dict[str, Any]:
        """What the glue around the augmented primal calls; ``define`` makes intrinsics."""
        return {"first": self.first, **lending(self.type, self.pool.address, define)}


def built(rule: CustomRule, signature: Signature, *, is_forward: bool) -> tuple[CustomRule, Slots | None]:
    """The rule for a signature in one of the modes, and its slots if it is a stateful one.

    Raises:
        RuleError: what was registered does not build a rule, or builds one that does not compile.
    """
    build = rule.parts.get("build_rule")
    if build is None or (is_forward and "forward" in rule.parts):
        return rule, None
    made = replace(rule, parts=_functions(rule, build, signature, _FORWARD_PARTS if is_forward else _PARTS))
    first = rule_dispatcher(made.parts.pop("state"))
    return made, Slots(Pool(rule.target), SlotType(_state_type(rule, first)), first)


def _functions(
    rule: CustomRule, build: Callable[..., Any], signature: Signature, parts: tuple[str, ...]
) -> dict[str, Any]:
    try:
        found = build(signature)
    except IradError:
        raise
    except Exception as error:
        raise RuleError(
            f"the build_rule of {rule.name} raised {type(error).__name__} for {signature}: {error}",
            "let it return a rule for every signature that the function is called with",
            "irad calls it when it compiles a derivative that uses the function with these types",
            place_of(build),
        ) from error
    functions = {kind: getattr(found, kind, None) for kind in parts}
    for kind, function in functions.items():
        if not callable(function):
            raise RuleError(
                f"the build_rule of {rule.name} returned a {type(found).__name__} that has no function {kind}",
                f"return irad.rules.StatefulRule(augmented_primal, reverse, state{', forward' * (kind == 'forward')})",
                "a rule with workspace has functions for the sweeps, or for forward mode, and one that makes the "
                "workspace",
                place_of(build),
            )
        if inspect.ismethod(function):
            raise RuleError(
                f"{kind} of the rule that the build_rule of {rule.name} returned is a method of an object",
                "make it a function: @staticmethod",
                "compiled code cannot access the object",
                place_of(function.__func__),
            )
    return functions


def _state_type(rule: CustomRule, first: Any) -> Type:
    try:
        first.compile(())
    except REFUSALS as error:
        refused = explanation(error)
        raise RuleError(
            f"Numba cannot compile the state of the rule of {rule.name}: {refused.problem}",
            "write it so that numba.njit compiles it; it has no arguments",
            refused.reason,
            place_of(first),
        ) from error
    found: Any = types.unliteral(first.overloads[()].signature.return_type)
    return found
