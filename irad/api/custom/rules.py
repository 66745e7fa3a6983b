"""Rules that users write, for functions that irad should not or cannot differentiate; see docs/custom_rules.md."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar

import numpy as np
from numba.core.registry import CPUDispatcher

from irad.api.functions import primal_of
from irad.api.jit import jit
from irad.errors import RuleError
from irad.frontend.calls.dispatcher import DerivativeDispatcher
from irad.frontend.calls.raising import public
from irad.frontend.custom import catalogue, rule_plugins
from irad.frontend.custom.catalogue import ANY, check_concrete
from irad.frontend.custom.rules_from_partials import Partial, easy_functions
from irad.frontend.custom.targets import arity_of, limited_to, target_of
from irad.frontend.custom.workspace_pools import Pool, Workspace, pools_for
from irad.frontend.derivation import pools_in

_Function = TypeVar("_Function", bound=Callable[..., Any])


@public
def augmented_primal(f: Any, *, signature: Any = None, batched: bool = False) -> Callable[[_Function], _Function]:
    """Registers the augmented primal of a function: the code that replaces its calls in the forward sweep.

    The decorated function takes ``(config, *arguments)``, with an `irad.rules.RuleConfig`. Each argument has a
    ``value``; an argument with memory that takes part in the derivative also has a ``shadow``. It returns
    ``AugmentedReturn(primal, shadow, tape)``; see `irad.rules.AugmentedReturn`.

    Args:
        f: a Python function (the rule is then for everything that is compiled from it); a function decorated with
            ``njit``; a library function that Numba knows, such as ``np.linalg.solve``; a C function (of ctypes, cffi or
            ``types.ExternalFunction``); or the LLVM symbol of a function or an intrinsic. Rules of C functions are
            given numbers, and pointers as ``void*``.
        signature: types of arguments that the rule is for; None for all. For each argument a Numba type, a class of
            types (``types.Float``) or None for any; or a signature of Numba's, ``"float64(float64, float64[:])"``. If
            several rules fit a call, the most specific one is used.
        batched: if there are several cotangents (`irad.BatchDuplicated`), the rule is called once for all of them, not
            once for each. ``shadow`` is then a tuple of ``config.width`` shadows, also if there is only one, and so is
            the shadow that it returns. The reverse must be of the same kind.

    Returns:
        A decorator, which returns the decorated function itself.

    Raises:
        RuleError: the signature is invalid; it fits calls that another rule fits, and neither is more specific; or the
            function is declared to have no derivative.

    Examples:
        >>> import irad
        >>> from irad.rules import AugmentedReturn
        >>> from numba import njit
        >>> @njit
        ... def cube(x):
        ...     return x * x * x
        >>> @irad.rules.augmented_primal(cube)
        ... def cube_augmented(config, x):
        ...     return AugmentedReturn(x.value**3, None, x.value)
        >>> @irad.rules.reverse(cube)
        ... def cube_reverse(config, cotangent, tape, x):
        ...     return (cotangent * 3.0 * tape * tape,)
        >>> irad.grad(cube)(2.0)
        12.0
    """
    return registering(f, "augmented_primal", signature, batched=batched)


@public
def reverse(
    f: Any, *, signature: Any = None, restores: bool = False, batched: bool = False
) -> Callable[[_Function], _Function]:
    """Registers the reverse of a function: the code that runs for each of its calls in the reverse sweep.

    The decorated function takes ``(config, cotangent, tape, *arguments)``: the cotangent of the value (for arrays in
    it, the shadow that the augmented primal returned), the tape, and the arguments as the augmented primal had them. It
    returns a tuple with the cotangent of each argument that is a number and takes part; None for the others, to whose
    shadows it adds.

    Args:
        f: the function, as in `irad.rules.augmented_primal`.
        signature: types of arguments, as in `irad.rules.augmented_primal`.
        restores: whether the reverse may restore memory that ``f`` overwrote. irad then does not reread memory that
            ``f`` has written in the reverse sweep, which may run several times.
        batched: whether the rule takes all directions at once, as in `irad.rules.augmented_primal`. The cotangent is
            then a tuple of ``config.width`` cotangents, and so is what is returned for each number that takes part.

    Returns:
        A decorator, which returns the decorated function itself.

    Raises:
        RuleError: as in `irad.rules.augmented_primal`.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.rules import AugmentedReturn, is_active
        >>> from numba import njit
        >>> @njit
        ... def dot(a, b):
        ...     return (a * b).sum()
        >>> @irad.rules.augmented_primal(dot)
        ... def dot_augmented(config, a, b):
        ...     return AugmentedReturn(dot(a.value, b.value), None, None)
        >>> @irad.rules.reverse(dot)
        ... def dot_reverse(config, cotangent, tape, a, b):
        ...     if is_active(a):
        ...         a.shadow[:] += cotangent * b.value
        ...     if is_active(b):
        ...         b.shadow[:] += cotangent * a.value
        ...     return None, None
        >>> irad.grad(dot)(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        array([3., 4.])
    """
    return registering(f, "reverse", signature, restores=restores, batched=batched)


@public
def forward(f: Any, *, signature: Any = None, batched: bool = False) -> Callable[[_Function], _Function]:
    """Registers the rule of a function for forward mode; reverse mode does not change.

    The decorated function takes ``(config, *arguments)``. Each argument has a ``value``; one that takes part in the
    derivative also has a ``tangent`` with the structure of the value: a number for a number, an array for an array. It
    returns ``(value, tangent)``, the tangent with the structure of the value. If the function writes to arrays, the
    rule writes to them, too, and their tangents to the arrays' tangents: on entry these hold the tangents of the
    contents before the call, on return those of the contents after it.

    Args:
        f: the function, as in `irad.rules.augmented_primal`.
        signature: types of arguments, as in `irad.rules.augmented_primal`.
        batched: if there are tangents in several directions (`irad.BatchDuplicated`), the rule is called once for all
            of them, not once for each. ``tangent`` is then a tuple of ``config.width`` tangents, also if there is only
            one, and the rule returns ``(value, tangents)``; `irad.rules.in_lanes` makes such tuples.

    Returns:
        A decorator, which returns the decorated function itself.

    Raises:
        RuleError: the rule takes another number of arguments; or as in `irad.rules.augmented_primal`.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def square(x):
        ...     return x * x
        >>> @irad.rules.forward(square)
        ... def square_forward(config, x):
        ...     return x.value**2, 2.0 * x.value * x.tangent
        >>> @njit
        ... def loss(x):
        ...     return 3.0 * square(x)
        >>> irad.jvp(loss, (5.0,), (1.0,))
        (75.0, 30.0)
    """
    register = registering(f, "forward", signature, batched=batched)

    @public
    def register_forward(function: _Function) -> _Function:
        count = _known_arity(f)
        if count is None:
            return register(function)
        try:
            inspect.signature(function).bind(None, *([None] * count))
        except TypeError as error:
            raise RuleError(
                f"the forward of the rule for {catalogue.name_of(target_of(f))} cannot be called with "
                f"{1 + count} arguments: {error}",
                "let it take (config, annotated arguments…)",
                "it is called with the configuration and all arguments of the function",
                catalogue.location_of(function),
            ) from None
        return register(function)

    return register_forward


@public
def easy_rule(f: _Function, *partials: Partial, signature: Any = None) -> _Function:
    """Gives a function a rule by its partial derivatives.

    Args:
        f: as for `augmented_primal`; its arguments are numbers and arrays, its value too, or a tuple of these.
        partials: one for each argument: a function of the arguments, or of these and the value; a number; None where
            there is no derivative. It gives a number where value and argument are numbers; an array of the other's
            shape where one is an array; the Jacobian (the axes of the value, then those of the argument) or, in the
            shape that both have, its diagonal where both are. A tuple of these if the value is a tuple.
        signature: as for `augmented_primal`.

    Returns:
        The function.

    Raises:
        RuleError: the number of partials, or of their arguments, is wrong; or as for `augmented_primal`.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def root(x):
        ...     return x**0.5
        >>> _ = irad.rules.easy_rule(root, lambda x, value: 0.5 / value)
        >>> @njit
        ... def loss(x):
        ...     return 3.0 * root(x)
        >>> irad.grad(loss)(4.0)
        0.75
    """
    arity = _arity(f)
    if len(partials) != arity:
        given = f"{len(partials)} partial derivative{'s' * (len(partials) != 1)}"
        raise RuleError(
            f"{catalogue.name_of(f)} takes {arity} argument{'s' * (arity != 1)} and is given {given}",
            "pass one for each argument, None where there is no derivative",
            "an argument without a partial derivative would silently be treated as constant",
            catalogue.location_of(f),
        )
    parts = easy_functions(f, partials, _compiled, arity)
    with catalogue.edited(target_of(f), limited_to(f, signature)) as rule:
        rule.parts.update(parts)
        rule.partials, rule.batched["forward"] = partials, parts["forward"]
    return f


@public
def has_rule(f: Any, signature: Any = None) -> bool:
    """True if a function has a rule for reverse mode, from you or an installed package; built-in rules do not count.

    Args:
        f: the function, as in `irad.rules.augmented_primal`.
        signature: types of the arguments of a call, ``"(float64, float64[::1])"``; None for any call.

    Returns:
        A bool.

    Raises:
        RuleError: the signature is not that of a call.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def twice(x):
        ...     return x + x
        >>> irad.rules.has_rule(twice)
        False
        >>> _ = irad.rules.easy_rule(twice, 2.0)
        >>> irad.rules.has_rule(twice)
        True
    """
    rule_plugins.load()
    target, pattern = target_of(f), limited_to(f, signature)
    if pattern.entries is not None:
        check_concrete(pattern)
        rule = catalogue.find(target, pattern.entries)
        return rule is not None and rule.is_for_reverse
    return any(rule.is_for_reverse for rule in catalogue.entries_of(target))


@public
def remove(f: Any, signature: Any = None) -> None:
    """Removes the rules and declarations of a function, and releases the workspace of its rule.

    Args:
        f: the function, as in `irad.rules.augmented_primal`.
        signature: the signature that they were registered with; None removes all.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def twice(x):
        ...     return x + x
        >>> _ = irad.rules.easy_rule(twice, 20.0)
        >>> irad.grad(twice)(1.0)
        20.0
        >>> irad.rules.remove(twice)
        >>> irad.grad(twice)(1.0)
        2.0
    """
    target, pattern = target_of(f), limited_to(f, signature)
    catalogue.remove(target, None if pattern == ANY else pattern)
    for pool in pools_for(target):
        pool.close()


def _known_arity(f: Any) -> int | None:
    """The number of arguments that a function takes; None if it is not known, or varies."""
    arity = f.nin if isinstance(f, np.ufunc) else arity_of(f)
    parameters = _parameters(f)
    if arity is not None or parameters is None:
        return arity
    return None if any(each.kind is each.VAR_POSITIONAL for each in parameters) else len(parameters)


def _parameters(f: Any) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(getattr(f, "py_func", f)).parameters.values())
    except (TypeError, ValueError):
        return None


def _arity(f: Any) -> int:
    arity = _known_arity(f)
    if arity is not None:
        return arity
    for parameter in _parameters(f) or ():
        if parameter.kind is parameter.VAR_POSITIONAL:
            name = parameter.name
            text = f"{catalogue.name_of(f)} takes any number of arguments (*{name}): no easy rule fits all of its calls"
            raise _no_easy_rule(text, f", which are given {name} as one tuple", catalogue.location_of(f))
    raise _no_easy_rule(f"the number of arguments of {f!r} is not known", "", None)


def _no_easy_rule(text: str, given: str, place: Any) -> RuleError:
    remedy = f"write its rule with irad.rules.augmented_primal and irad.rules.reverse{given}"
    return RuleError(text, remedy, "an easy rule has a partial derivative for each argument", place)


def _compiled(f: Any) -> Any:
    """The form of a function that compiled code can call; library functions stay as they are."""
    return jit(f) if isinstance(f, FunctionType) else f


def registering(
    f: Any,
    kind: str,
    signature: Any,
    *,
    restores: bool | None = None,
    batched: bool = False,
    reason: str = "a rule is code that runs as part of the derivative",
) -> Callable[[_Function], _Function]:
    """The decorator of a function that is to be a part of a rule; ``reason`` is why it has to be a function."""
    target, pattern = target_of(f), limited_to(f, signature)

    @public
    def register(function: _Function) -> _Function:
        if not callable(function):
            raise RuleError(
                f"{function!r} is not a function",
                f"decorate a function with irad.rules.{kind}(…)",
                reason,
            )
        with catalogue.edited(target, pattern) as rule:
            if rule.is_easy and kind in ("augmented_primal", "reverse"):  # its parts belong together
                rule.parts, rule.partials = {}, None
            rule.parts[kind] = function
            if restores is not None:
                rule.restores = restores
            rule.batched.pop(kind, None)
            if batched:
                rule.batched[kind] = function
        return function

    return register


# Rules with workspace that lives from one call of a derivative to the next.


@public
def build_rule(f: Any, *, signature: Any = None, restores: bool = False) -> Callable[[_Function], _Function]:
    """Registers a function that builds the rule of a function, with workspace, for each signature.

    The decorated function takes Numba's signature of ``f`` (``args``, ``return_type``) and returns an
    `irad.rules.StatefulRule`, or any object with its attributes. It runs in Python, once for each pair of augmented
    primal and reverse that is compiled: for each derivative, and in it for each signature and each combination of
    arguments that take part.

    Args:
        f: the function, as in `irad.rules.augmented_primal`.
        signature: types of arguments, as in `irad.rules.augmented_primal`.
        restores: whether the reverse may restore memory that ``f`` overwrote, as in `irad.rules.reverse`.

    Returns:
        A decorator, which returns the decorated function itself.

    Raises:
        RuleError: as in `irad.rules.augmented_primal`.

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

    Workspace in use, by a pullback or in another thread, is released when that derivative has ended. Everything can be
    used again afterwards, and then creates new workspace.

    Args:
        f: a derivative; or a function that is differentiated, for the workspace of all its derivatives; or a function
            with an `irad.rules.build_rule`, for the workspace of its rule in all derivatives.

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
    """Number of slots of workspace that rules of `irad.rules.build_rule` hold.

    Args:
        f: a derivative, or a function, as in `irad.rules.close`.

    Returns:
        An `irad.rules.Workspace` with the numbers in use and spare.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def halve(x):
        ...     return 0.5 * x
        >>> irad.rules.workspace(halve)  # its rule has no workspace; for one that has, see `irad.rules.close`
        Workspace(in_use=0, spare=0)
    """
    found = [pool.workspace for pool in _pools(f)]
    return Workspace(sum(each.in_use for each in found), sum(each.spare for each in found))


def _pools(f: Any) -> Iterator[Pool]:
    if isinstance(f, DerivativeDispatcher):
        yield from f.pools() - set(pools_for(f.primal))
        yield from pools_for(f.primal)
        return
    ruled = set(pools_for(f if isinstance(f, CPUDispatcher) else target_of(f)))
    yield from ruled
    if isinstance(f, CPUDispatcher | FunctionType):
        yield from pools_in(primal_of(f)) - ruled
