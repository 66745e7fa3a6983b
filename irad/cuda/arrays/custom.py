"""Rules of users for functions of arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from irad.cuda.arrays.recording import call_function
from irad.cuda.arrays.rules import register
from irad.cuda.arrays.ruleset import Rule
from irad.cuda.arrays.watching import library_of
from irad.cuda.recording.record import current_record
from irad.errors import SignatureError
from irad.frontend.calls.raising import public


@public
def rule(
    function: Callable[..., Any], reverse: Callable[..., Any], *, changes: int | None = None
) -> Callable[..., Any]:
    """Gives a function of arrays of the device a rule for tapes: `irad.cuda.Tape` records its calls as one operation.

    It is for functions of array libraries that have no rule, and for functions of one's own that do what a tape cannot
    differentiate. What the function does while it runs is not recorded.

    Args:
        function: it takes arrays of the device and anything else, and gives one array, or changes one of its arguments.
        reverse: ``reverse(call, cotangent, *args, **kwargs)`` is given the arguments of the call, with arrays as they
            were then, and the cotangent of the result. It returns a tuple with the cotangents of the positional
            arguments, an array of the shape of each, or None where there is no derivative; of a single argument its
            cotangent. ``call.result`` is what the function gave, ``call.xp`` the array library: NumPy on the executor,
            CuPy on a GPU. An argument that it has no parameter for is refused.
        changes: position of the argument that the function changes in place. The cotangent is then that of its new
            content.

    Returns:
        The function as a tape sees it. A function of NumPy, SciPy or CuPy has the rule under its own name, too.

    Raises:
        SignatureError: one of them is not a function.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import cuda
        >>> def root(x):
        ...     return np.array([np.roots([1.0, 0.0, -each]).max() for each in x])
        >>> safe_root = irad.cuda.rule(root, lambda call, cotangent, x: cotangent / (2.0 * call.result))
        >>> with irad.cuda.executor():
        ...     x = cuda.to_device(np.array([4.0, 25.0]))
        ...     with irad.cuda.Tape() as tape:
        ...         y = safe_root(x)
        ...     tape.backward((y, np.ones(2)))
        ...     tape.gradient(x).round(4).tolist()
        [0.25, 0.1]
    """
    given: tuple[Any, ...] = function, reverse
    if not all(map(callable, given)):
        raise SignatureError(
            f"irad.cuda.rule is given {function!r} and {reverse!r}",
            "irad.cuda.rule(function, reverse)",
            "a rule consists of a function and its reverse",
        )
    name = getattr(function, "__name__", str(function))
    register(function, Rule(name, reverse, arrays=None, changes=changes))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        record = current_record()
        if record is None:
            return function(*args, **kwargs)
        return _recorded(library_of(record), name, function, args, kwargs)

    return call


_recorded = public(call_function)
