"""`in_lanes`: tuples with an item for each direction, in rules that take several at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import overload

from irad.errors import RuleError


def in_lanes(config: Any, function: Callable[..., Any], *arguments: object) -> tuple[Any, ...]:
    """What a function returns for each of the directions that a rule is given at once; for compiled rules.

    It is ``(function(0, *arguments), function(1, *arguments), …)``, with ``config.width`` calls, written out when the
    rule is compiled.

    Args:
        config: the configuration of the rule.
        function: what njit code may call; it is given the number of a direction and the arguments.
        arguments: those of the rule, and others.

    Raises:
        RuleError: ``config`` is not what the rule is given, or the arguments are unpacked (``*arguments``).

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
        "its calls are written out when the rule is compiled",
    )
