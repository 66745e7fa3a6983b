"""Rules with workspace that lives from one call of a derivative to the next. See docs/custom_rules.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar

from numba.core.registry import CPUDispatcher

from irad.api.custom.rules import registering
from irad.api.functions import primal_of
from irad.frontend.calls.dispatcher import DerivativeDispatcher
from irad.frontend.calls.raising import public
from irad.frontend.custom.symbols import target_of
from irad.frontend.custom.workspace.pools import Pool, Workspace, pools_for
from irad.frontend.derivation import pools_in

_Function = TypeVar("_Function", bound=Callable[..., Any])


@public
def build_rule(f: Any, *, signature: Any = None, restores: bool = False) -> Callable[[_Function], _Function]:
    """Registers a function that builds the rule of a function, with workspace, for each signature.

    The decorated function takes Numba's signature of ``f`` (``args``, ``return_type``) and returns a `StatefulRule`, or
    anything with such attributes. It runs in Python, once for each pair of augmented primal and reverse that is
    compiled: for each derivative, and in it for each signature and each combination of arguments that take part.

    Args:
        f: the function, as for `irad.rules.reverse`.
        signature: of the function, as for `irad.rules.reverse`.
        restores: as for `irad.rules.reverse`.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.rules import AugmentedReturn, StatefulRule
        >>> from numba import njit
        >>> @njit
        ... def square_all(a):
        ...     a[:] = a * a
        >>> @irad.rules.build_rule(square_all)
        ... def build(signature):
        ...     def state():
        ...         return np.empty(0)
        ...
        ...     def augmented_primal(config, slot, a):
        ...         if slot.state.size < a.value.size:
        ...             slot.state = np.empty(a.value.size)
        ...         slot.state[: a.value.size] = a.value
        ...         a.value[:] = a.value * a.value
        ...         return AugmentedReturn(None, None, None)
        ...
        ...     def reverse(config, slot, cotangent, tape, a):
        ...         a.shadow[:] *= 2.0 * slot.state[: a.value.size]
        ...
        ...     return StatefulRule(augmented_primal, reverse, state)
        >>> @njit
        ... def loss(x):
        ...     a = x.copy()
        ...     square_all(a)
        ...     return a.sum()
        >>> irad.grad(loss)(np.array([1.0, 3.0]))
        array([2., 6.])
    """
    return registering(f, "build_rule", signature, restores=restores, reason="it is called to build the rule")


@public
def close(f: Any) -> None:
    """Releases the workspace of rules.

    What is in use, by a pullback or in another thread, is released when that derivative has ended. All can be used
    again afterwards, and then make new workspace.

    Args:
        f: a derivative, or the function that is differentiated: the workspace of all derivatives of that function; or a
            function with a `build_rule`: that of its rule in all derivatives.

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
        ...     return StatefulRule(
        ...         lambda config, slot, x: AugmentedReturn(0.5 * x.value, None, None),
        ...         lambda config, slot, cotangent, tape, x: (0.5 * cotangent,),
        ...         lambda: np.zeros(8),
        ...     )
        >>> gradient = irad.grad(lambda x: halve(x) * halve(x))
        >>> gradient(3.0)
        1.5
        >>> irad.rules.close(gradient)
        >>> irad.rules.workspace(gradient)
        Workspace(in_use=0, spare=0)
    """
    for pool in _pools(f):
        pool.close()


def workspace(f: Any) -> Workspace:
    """How many slots of workspace there are, in use and spare; ``f`` is as for `close`.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def halve(x):
        ...     return 0.5 * x
        >>> irad.rules.workspace(halve)  # it has no rule with workspace; for one that has, see `close`
        Workspace(in_use=0, spare=0)
    """
    found = [pool.workspace for pool in _pools(f)]
    return Workspace(sum(each.in_use for each in found), sum(each.spare for each in found))


def _pools(f: Any) -> Iterator[Pool]:
    if isinstance(f, DerivativeDispatcher):
        f = f.primal
    ruled = set(pools_for(f if isinstance(f, CPUDispatcher) else target_of(f)))
    yield from ruled
    if isinstance(f, CPUDispatcher | FunctionType):
        yield from pools_in(primal_of(f)) - ruled
