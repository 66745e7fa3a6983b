"""Support for rules of functions that are passed a function: derivatives of that function in sums of cotangents.

A solver takes a function and a tuple of arguments for it. Which parts of the tuple carry a derivative is known when the
rule is compiled; the code for them is written then.

    sums = zero_cotangents(args)               one number or array for each active part
    sums = pull(config, f, (x,), (None,), args, values, ct, sums)
                                               the cotangents of f(x, *values) for one of its value
    return None, give_cotangents(args, sums)   into the shadows, and what the reverse returns
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba.core import types
from numba.core.types import Type
from numba.extending import overload
from numba.np.numpy_support import as_dtype

from irad.api.checkpointing.values import Leaf, flattened, leaves_of, pulled_call, structured
from irad.api.forward import pushforward, with_direction
from irad.errors import RuleError, SourceLocation, UnsupportedError
from irad.frontend.custom import catalogue
from irad.frontend.custom.rule_arguments import AnnotatedType
from irad.frontend.custom.rules_from_partials import kept_value
from irad.frontend.custom.targets import target_of
from irad.frontend.generated import function_from
from irad.frontend.packing.packed import packed, structure_of

_FILE = "irad.rules"
_Function = TypeVar("_Function", bound=Callable[..., Any])


def attach(
    f: _Function,
    *,
    augmented_primal: Callable[..., Any] | None = None,
    reverse: Callable[..., Any] | None = None,
    forward: Callable[..., Any] | None = None,
    body_otherwise: bool = False,
) -> _Function:
    """Gives a rule to a function that was just created, even while Numba compiles its caller.

    The other ways to register a rule recompile all code that was compiled without it, which is impossible there.

    Args:
        f: a function decorated with ``njit`` that nothing has called.
        augmented_primal: as for `irad.rules.augmented_primal`.
        reverse: as for `irad.rules.reverse`.
        forward: as for `irad.rules.forward`.
        body_otherwise: the rule, for reverse mode, is the derivative of the function's body in less memory or time.
            Forward mode and derivatives of derivatives take the body.

    Returns:
        The function.

    Raises:
        RuleError: of an augmented primal and a reverse there is only one, or the function has a rule already.

    Examples:
        >>> import irad
        >>> from irad.rules import attach
        >>> from numba import njit
        >>> def constant_slope(f, slope):
        ...     @njit
        ...     def changed(x):
        ...         return f(x)
        ...     return attach(changed, forward=lambda config, x: (f(x.value), slope * x.tangent))
        >>> irad.jvp(constant_slope(njit(lambda x: x * x), 3.0), (2.0,), (1.0,))
        (4.0, 3.0)
    """
    parts = {"augmented_primal": augmented_primal, "reverse": reverse, "forward": forward}
    target = target_of(f)
    if (augmented_primal is None) != (reverse is None) or any(catalogue.entries_of(target)):
        raise RuleError(
            f"{catalogue.name_of(target)} is given only half of a rule for reverse mode, or a second rule",
            "pass both augmented_primal and reverse, once",
            "they are two halves of one derivative, and code that is already compiled would not use them",
            catalogue.location_of(target),
        )
    given = {kind: part for kind, part in parts.items() if part is not None}
    catalogue.declare_new(target, given, is_checkpoint=body_otherwise)
    return f


def zero_cotangents(argument: Any) -> Any:
    """Zero cotangents for the active parts of a rule's argument; for compiled rules.

    Args:
        argument: an argument of the rule, as the rule is given it: a number, an array, or a tuple of these.

    Returns:
        A tuple with a zero for each active number and a new array of zeros for each active array, in their order.

    Raises:
        RuleError: it is not an argument of a rule.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.rules import AugmentedReturn, give_cotangents, pull, zero_cotangents
        >>> from numba import njit
        >>> def twice(f):  # what f returns for 1 and for 2, added
        ...     @njit
        ...     def added(args):
        ...         return f(1.0, *args) + f(2.0, *args)
        ...     @irad.rules.augmented_primal(added)
        ...     def added_augmented(config, args):
        ...         return AugmentedReturn(added(args.value), None, None)
        ...     @irad.rules.reverse(added)
        ...     def added_reverse(config, cotangent, tape, args):
        ...         sums = zero_cotangents(args)
        ...         for x in (1.0, 2.0):
        ...             sums = pull(config, f, (x,), (None,), args, args.value, cotangent, sums)
        ...         return (give_cotangents(args, sums),)
        ...     return added
        >>> added = twice(njit(lambda x, weights, power: weights[0] * x**power))
        >>> irad.grad(lambda weights: added((weights, 3.0)))(np.array([5.0]))
        array([9.])
    """
    raise NotImplementedError


def pull(config: Any, f: Any, leading: Any, shadows: Any, argument: Any, values: Any, cotangent: Any, sums: Any) -> Any:
    """Adds the cotangents of ``f(*leading, *argument)`` to sums; for compiled rules.

    Args:
        config: the configuration of the rule.
        f: the compiled function.
        leading: a tuple of its first arguments: numbers, arrays, and tuples of these.
        shadows: for each of these a shadow to add to, if it is an array, or None.
        argument: the argument of the rule, a tuple, that says which of its other arguments are active; None if all
            are to be constant.
        values: values of these arguments: ``argument.value``, or a copy from the tape if they may have changed.
        cotangent: the cotangent of the function's value; None if it returns nothing.
        sums: the sums of `irad.rules.zero_cotangents`, to which others may have been added.

    Returns:
        The sums; arrays in them are those that were passed.

    Raises:
        RuleError: ``argument`` is not a tuple that the rule was given.

    Examples:
        >>> import irad
        >>> from irad.rules import AugmentedReturn, attach, give_cotangents, pull, zero_cotangents
        >>> from numba import njit
        >>> def at_two(f):
        ...     @njit
        ...     def found(args):
        ...         return f(2.0, *args)
        ...     def augmented(config, args):
        ...         return AugmentedReturn(found(args.value), None, None)
        ...     def back(config, cotangent, tape, args):
        ...         sums = zero_cotangents(args)
        ...         sums = pull(config, f, (2.0,), (None,), args, args.value, cotangent, sums)
        ...         return (give_cotangents(args, sums),)
        ...     return attach(found, augmented_primal=augmented, reverse=back)
        >>> cube = at_two(njit(lambda x, y: x * y**3))
        >>> irad.grad(lambda y: cube((y,)))(1.0)
        6.0
    """
    raise NotImplementedError


def kept_arguments(config: Any, position: int, argument: Any) -> Any:
    """The value of an argument for the tape, with copies of arrays that may change; for compiled rules.

    Args:
        config: the configuration of the rule.
        position: position of the argument, a literal.
        argument: the argument of the rule, a tuple that is passed on to a function.

    Returns:
        A tuple like ``argument.value``.

    Raises:
        UnsupportedError: the function with the rule writes to the argument, so a function that it was passed does, and
            calls of that cannot be repeated.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.rules import AugmentedReturn, kept_arguments
        >>> from numba import njit
        >>> @njit
        ... def squares(args):
        ...     return (args[0] ** 2).sum()
        >>> @irad.rules.augmented_primal(squares)
        ... def squares_augmented(config, args):
        ...     return AugmentedReturn(squares(args.value), None, kept_arguments(config, 0, args))
        >>> @irad.rules.reverse(squares)
        ... def squares_reverse(config, cotangent, tape, args):
        ...     args.shadow[0][:] += 2.0 * cotangent * tape[0]
        ...     return (None,)
        >>> irad.grad(lambda x: squares((x,)))(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    raise NotImplementedError


def give_cotangents(argument: Any, sums: Any) -> Any:
    """Adds sums of cotangents to the shadows of an argument; for compiled rules.

    Args:
        argument: the argument of the rule, as in `irad.rules.zero_cotangents`.
        sums: the sums of `irad.rules.zero_cotangents`.

    Returns:
        The value that the reverse of the rule returns for the argument.

    Raises:
        RuleError: it is not an argument of a rule.

    Examples:
        >>> import irad
        >>> from irad.rules import AugmentedReturn, attach, give_cotangents, pull, zero_cotangents
        >>> from numba import njit
        >>> def at_two(f):
        ...     @njit
        ...     def found(args):
        ...         return f(2.0, *args)
        ...     def augmented(config, args):
        ...         return AugmentedReturn(found(args.value), None, None)
        ...     def back(config, cotangent, tape, args):
        ...         sums = zero_cotangents(args)
        ...         sums = pull(config, f, (2.0,), (None,), args, args.value, cotangent, sums)
        ...         return (give_cotangents(args, sums),)
        ...     return attach(found, augmented_primal=augmented, reverse=back)
        >>> cube = at_two(njit(lambda x, y: x * y**3))
        >>> irad.grad(lambda y: cube((y,)))(1.0)
        6.0
    """
    raise NotImplementedError


def push(config: Any, f: Any, leading: Any, tangents: Any, argument: Any) -> Any:
    """The value of ``f(*leading, *argument)`` and its tangent; for compiled rules of forward mode.

    Args:
        config: the configuration of the rule.
        f: the compiled function.
        leading: a tuple of its first arguments.
        tangents: a tuple with the tangent of each of these, or None; tuples among them must have None.
        argument: the argument of the rule, a tuple, with the remaining arguments.

    Returns:
        ``(value, tangent)``.

    Raises:
        RuleError: ``argument`` is not a tuple that the rule was given.

    Examples:
        >>> import irad
        >>> from irad.rules import push
        >>> from numba import njit
        >>> def halved(f):
        ...     @njit
        ...     def half(args):
        ...         return 0.5 * f(*args)
        ...     @irad.rules.forward(half)
        ...     def half_forward(config, args):
        ...         value, tangent = push(config, f, (), (), args)
        ...         return 0.5 * value, 0.5 * tangent
        ...     return half
        >>> half = halved(njit(lambda x, y: x * y))
        >>> irad.jvp(lambda x: half((x, 4.0)), (3.0,), (1.0,))
        (6.0, 2.0)
    """
    raise NotImplementedError


def _active(argument: Any, name: str) -> list[Leaf]:
    """The active leaves of an annotated argument, as parts of its value."""
    if not isinstance(argument, AnnotatedType):
        raise RuleError(
            f"{name} is called with something that is not an argument of a rule",
            "pass the argument itself: args, not args.value",
            "only the annotated argument says which of its parts carry a derivative",
        )
    leaves = leaves_of(argument.types[0], "argument.value")
    return [leaf for leaf in leaves if leaf.path in argument.active]


def _zero_cotangents_typed(argument: Any) -> Any:
    scope: dict[str, Any] = {"zeros_like": np.zeros_like}
    items = []
    for leaf in _active(argument, "zero_cotangents"):
        if leaf.is_number:
            scope[f"zero_{leaf.type}"] = as_dtype(leaf.type).type(0)
        items.append(f"zero_{leaf.type}, " if leaf.is_number else f"zeros_like({leaf.text}), ")
    return _function("zero_cotangents(argument)", [f"return ({''.join(items)})"], scope)


def _pull_typed(
    config: Any, f: Any, leading: Any, shadows: Any, argument: Any, values: Any, cotangent: Any, sums: Any
) -> Any:
    paths = set() if argument == types.none else {leaf.path for leaf in _active(argument, "pull")}
    active = [leaf for leaf in leaves_of(values, "values") if leaf.path in paths]
    at = {leaf: f"sums[{i}]" for i, leaf in enumerate(active)}
    firsts = [(each, leaves_of(each, f"leading[{i}]")) for i, each in enumerate(leading)]
    written = {leaf: f"shadows[{i}]" for i, (_, parts) in enumerate(firsts) for leaf in parts if _has(shadows[i])}
    if not at and not written:
        return lambda config, f, leading, shadows, argument, values, cotangent, sums: sums
    rest = _parts(values, "values")
    scope: dict[str, Any] = {}
    numbers = [leaf for leaf in active if leaf.is_number]
    call, found = pulled_call(
        f.dispatcher,
        [*firsts, *rest],
        written | {leaf: at[leaf] for leaf in active if leaf.is_array},
        numbers,
        None if cotangent == types.none else "cotangent",
        scope,
        config.config.options,
        has_value=cotangent != types.none,
    )
    more = {leaf: f"{at[leaf]} + found[{i}]" for i, leaf in enumerate(found)}
    items = "".join(f"{more.get(leaf, at[leaf])}, " for leaf in active)
    head = "pull(config, f, leading, shadows, argument, values, cotangent, sums)"
    return _function(head, [f"found = {call}", f"return ({items})"], scope)


def _kept_arguments_typed(config: Any, position: Any, argument: Any) -> Any:
    known, at = config.config, position.literal_value
    if known.is_seen and known.written[at]:
        raise UnsupportedError(
            "a function that is passed to another one writes to the extra arguments passed with it",
            "make it work on copies of its arguments",
            "the derivative calls it at other points, and it must behave the same way each time",
            SourceLocation.here(),
        )
    if known.overwritten[at]:
        return lambda config, position, argument: kept_value(argument.value)
    return lambda config, position, argument: argument.value


def _give_cotangents_typed(argument: Any, sums: Any) -> Any:
    active = _active(argument, "give_cotangents")
    scope: dict[str, Any] = {}
    numbers = {leaf.path: f"sums[{i}]" for i, leaf in enumerate(active) if leaf.is_number}
    lines = []
    for i, leaf in enumerate(active):
        if leaf.is_array:
            lines += [f"shadow{i} = {leaf.of('argument.shadow')}", f"shadow{i} += sums[{i}]"]
    values = argument.types[0]
    items = iter([numbers.get(leaf.path, "None") for leaf in leaves_of(values)])
    return _function("give_cotangents(argument, sums)", [*lines, f"return {structured(values, items, scope)}"], scope)


def _push_typed(config: Any, f: Any, leading: Any, tangents: Any, argument: Any) -> Any:
    active = {leaf.path for leaf in _active(argument, "push")}
    firsts = [(each, leaves_of(each, f"leading[{i}]")) for i, each in enumerate(leading)]
    rest = _parts(argument.types[0], "argument.value")
    given = [f"tangents[{i}]" if _has(tangents[i]) else "" for i, (_, parts) in enumerate(firsts) for _ in parts]
    leaves = [leaf for _, parts in [*firsts, *rest] for leaf in parts]
    for leaf in leaves[len(given) :]:
        given.append(leaf.of("argument.tangent") if leaf.path in active else "")
    flat = flattened(f.dispatcher, tuple(each for each, _ in [*firsts, *rest]))
    wanted = tuple(i for i, each in enumerate(given) if each)
    scope = {"derivative": pushforward(flat, wanted, options=config.config.options)} if wanted else {"flat": flat}
    values = tuple(leaf.text for leaf in leaves)
    chosen = "".join(f"{each}, " for each in given if each)
    call = f"flat({', '.join(values)}), None"
    if wanted:
        call = f"derivative({', '.join(with_direction(values, wanted, f'({chosen})'))})"
    return _function("push(config, f, leading, tangents, argument)", [f"return {call}"], scope)


def _has(kind: Type) -> bool:
    return bool(kind != types.none)


def _parts(values: Any, root: str) -> list[tuple[Any, list[Leaf]]]:
    """The items of a tuple of arguments, with their leaves as leaves of the whole."""
    leaves = leaves_of(values, root)
    return [(each, [leaf for leaf in leaves if leaf.path[0] == i]) for i, each in enumerate(values)]


def _function(head: str, lines: list[str], scope: dict[str, Any]) -> Any:
    body = "".join(f"    {line}\n" for line in lines)
    return function_from(head.partition("(")[0], f"def {head}:\n{body}", _FILE, scope)


overload(zero_cotangents, strict=False)(_zero_cotangents_typed)
overload(pull, strict=False)(_pull_typed)
overload(give_cotangents, strict=False)(_give_cotangents_typed)
overload(kept_arguments, strict=False, prefer_literal=True)(_kept_arguments_typed)
overload(push, strict=False)(_push_typed)


# The ``args=`` tuple of solvers, as in ``quad(f, a, b, args)``.
#
# A single argument needs no tuple around it. A structure that Python passes in is a named tuple in
# compiled code, and one argument there, too.


def passed_along(args: Any) -> Any:
    """The tuple of ``args``, as compiled code takes it."""
    return packed(args if isinstance(args, tuple) else (args,))


@overload(passed_along, strict=False)
def _passed_along_typed(args: Any) -> Any:
    if isinstance(args, types.BaseTuple) and structure_of(args) is None:
        return lambda args: args
    return lambda args: (args,)
