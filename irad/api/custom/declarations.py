"""Users' declarations about functions and types, apart from rules. See docs/custom_rules.md."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from irad.errors import RuleError
from irad.frontend.calls.raising import public
from irad.frontend.custom import catalogue
from irad.frontend.custom.targets import limited_to, target_of
from irad.frontend.values import layouts

_Function = TypeVar("_Function", bound=Callable[..., Any])


@public
def inactive(f: _Function, why: str = "declared inactive", *, signature: Any = None) -> _Function:
    """Declares that no derivative flows through a function: its results, and memory that it writes, are constant.

    The function is called in the forward sweep, once. Usable as a decorator.

    Args:
        f: the function, as in `irad.rules.augmented_primal`.
        why: the reason, which the inspector shows.
        signature: types of arguments, as in `irad.rules.augmented_primal`: the declaration is for such calls only.

    Returns:
        The function itself.

    Raises:
        RuleError: the function has a rule, or the signature is invalid.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @irad.rules.inactive
        ... @njit
        ... def scale(x):
        ...     return 2.0 * x
        >>> @njit
        ... def loss(x):
        ...     return x * scale(x)
        >>> irad.grad(loss)(3.0)
        6.0
    """
    with catalogue.edited(target_of(f), limited_to(f, signature)) as rule:
        rule.inactive = why
    return f


@public
def opt_out(f: _Function, signature: Any) -> _Function:
    """Lets irad differentiate calls with arguments of some types as if the function had no rule.

    Args:
        f: the function, as in `irad.rules.augmented_primal`.
        signature: the types, as in `irad.rules.augmented_primal`.

    Returns:
        The function itself.

    Raises:
        RuleError: there is a rule, or a declaration, for exactly this signature, or the signature is invalid.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def square(x):
        ...     return x * x
        >>> _ = irad.rules.easy_rule(square, lambda x: 20.0 * x)
        >>> _ = irad.rules.opt_out(square, "(float32,)")
        >>> irad.grad(square)(3.0), float(irad.grad(square)(np.float32(3.0)))
        (60.0, 6.0)
    """
    with catalogue.edited(target_of(f), limited_to(f, signature)) as rule:
        rule.opted_out = True
    return f


@public
def inactive_arg(f: _Function, *arguments: int | str) -> _Function:
    """Declares that no derivative flows through some arguments of a function.

    Otherwise the function is differentiated as usual; if it has a rule, the rule gets these arguments as constants.
    Usable with `functools.partial` as a decorator.

    Args:
        f: a function decorated with ``njit``, or a Python function.
        arguments: positions or names of the arguments.

    Returns:
        The function itself.

    Raises:
        RuleError: the function has no such argument, or is a C function.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def scaled(x, scale):
        ...     return x * scale
        >>> _ = irad.rules.inactive_arg(scaled, "scale")
        >>> @njit
        ... def loss(x):
        ...     return scaled(x, x)
        >>> irad.grad(loss)(3.0)
        3.0
    """
    if isinstance(target_of(f), str):
        raise RuleError(
            f"{catalogue.name_of(target_of(f))} is a C function, which irad cannot see into",
            "(a) irad.rules.easy_rule with None for these arguments or (b) irad.rules.augmented_primal and reverse",
            "without a rule, its other arguments have no derivative either",
        )
    names = list(inspect.signature(getattr(f, "py_func", f)).parameters)
    for argument in arguments:
        if argument not in names and not (isinstance(argument, int) and 0 <= argument < len(names)):
            raise RuleError(
                f"{catalogue.name_of(f)} has no argument {argument!r}",
                f"name one of {', '.join(names)}, or its position",
                "an argument is given by its name, or by its position, counted from 0",
                catalogue.location_of(f),
            )
    found = frozenset(names.index(a) if isinstance(a, str) else a for a in arguments)
    with catalogue.edited(target_of(f)) as rule:
        rule.inactive_arguments |= found
    return f


@public
def inactive_type(T: Any) -> Any:
    """Declares that arguments of a type carry no derivative.

    Args:
        T: a Numba type, a jitclass, or a structured dtype; a dtype stands for its records, and arrays and lists of
            these.

    Returns:
        The type itself.

    Raises:
        RuleError: it is not a type that Numba knows.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> settings = np.dtype([("scale", np.float64), ("offset", np.float64)])
        >>> _ = irad.rules.inactive_type(settings)
        >>> @njit
        ... def model(x, s):
        ...     return s.scale * x + s.offset
        >>> irad.check(model, 1.0, np.zeros(1, settings)[0]).positions
        (0,)
    """
    if isinstance(T, types.Type):
        found = T
    elif hasattr(T, "class_type"):
        found = T.class_type.instance_type
    else:
        try:
            found = from_dtype(np.dtype(T))
        except (TypeError, NotImplementedError) as error:
            raise RuleError(
                f"{T!r} is not a type that Numba knows",
                "(a) give a Numba type or (b) a jitclass or (c) a structured dtype",
                "the arguments of compiled code have Numba types",
            ) from error
    layouts.INACTIVE_TYPES.add(found)
    catalogue.changed("")
    return T


@public
def noinline(f: _Function) -> _Function:
    """Keeps calls of a function as calls in differentiated programs, with a derivative of its own; a decorator.

    It saves compile time for large functions that are called from many places.

    Args:
        f: a function decorated with ``njit``, or a Python function.

    Returns:
        The function itself.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @irad.rules.noinline
        ... @njit
        ... def step(x):
        ...     return x * x
        >>> @njit
        ... def two_steps(x):
        ...     return step(step(x))
        >>> irad.grad(two_steps)(2.0)
        32.0
    """
    with catalogue.edited(target_of(f)) as rule:
        rule.noinline = True
    return f


@public
def noalias(f: _Function) -> _Function:
    """Declares that the arrays that a function returns are new memory, shared with nothing else; a decorator.

    irad detects this where it can. If it cannot (a function that returns an argument on one path and a copy on
    another), it assumes the worst, and differentiated code saves more.

    Args:
        f: a function decorated with ``njit``, or a Python function.

    Returns:
        The function itself.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @irad.rules.noalias
        ... @njit
        ... def padded(x, width):
        ...     if width == 0:
        ...         return x.copy()
        ...     return np.concatenate((np.zeros(width), x))
        >>> @njit
        ... def energy(x):
        ...     return (padded(x, 2) ** 2).sum()
        >>> irad.grad(energy)(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    with catalogue.edited(target_of(f)) as rule:
        rule.noalias = True
    return f


@public
def forward_from_body(f: _Function) -> _Function:
    """Lets forward mode differentiate the body of a function whose rule is for reverse mode only; a decorator.

    Without it, forward mode refuses such a function: if the rule gives another derivative than the body, the two modes
    would differ.

    Args:
        f: a function decorated with ``njit``.

    Returns:
        The function itself.

    Raises:
        RuleError: the function is a C function, whose body irad does not see.

    Examples:
        >>> import irad
        >>> from irad.rules import AugmentedReturn
        >>> from numba import njit
        >>> @irad.rules.forward_from_body
        ... @njit
        ... def square(x):
        ...     return x * x
        >>> @irad.rules.augmented_primal(square)
        ... def square_augmented(config, x):
        ...     return AugmentedReturn(x.value**2, None, None)
        >>> @irad.rules.reverse(square)
        ... def square_reverse(config, cotangent, tape, x):
        ...     return (2.0 * cotangent * x.value,)
        >>> irad.jvp(square, (5.0,), (1.0,))
        (25.0, 10.0)
    """
    target = target_of(f)
    if isinstance(target, str):
        raise RuleError(
            f"the body of {target}, a C function, is to be differentiated",
            f"write a rule for forward mode: irad.rules.forward({target!r})",
            "irad sees only the calls of a C function",
        )
    with catalogue.edited(target) as rule:
        rule.forward_from_body = True
    return f
