"""``import_rule``: a rule that is Python code, of ChainRules' form or of another library for derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irad.errors import RuleError, SignatureError
from irad.frontend.calls.raising import public
from irad.frontend.custom import catalogue
from irad.frontend.foreign import autograd_rules, jax_rules, torch_rules
from irad.frontend.foreign.closures import Foreign
from irad.frontend.foreign.rule import make_callable, make_forward, make_rule, parameters_of

_LIBRARIES = (jax_rules, torch_rules, autograd_rules)


@public
def import_rule(
    f: Any, rule: Callable[..., Any] | None = None, *, forward: Callable[..., Any] | None = None, returns: Any = None
) -> Any:
    """Gives a function a rule that is Python code; it runs in the interpreter, slower than a rule that Numba compiles.

    Args:
        f: a function that compiled code can call, whose derivative alone is Python's. Or one that Numba cannot compile:
            then its value needs ``returns``. Or what another library differentiates, which brings its rule: a
            ``jax.custom_vjp`` function (any other function of JAX too, if it is given with ``jax.jit``), a subclass of
            ``torch.autograd.Function``, a primitive of autograd. It must not write to its arguments, which are numbers
            and arrays.
        rule: takes the arguments of ``f`` and returns ``(value, pullback)``; ``pullback`` takes the cotangent of the
            value and returns a tuple with the cotangent of each argument, None where there is none. It may be called
            more than once. Arrays that are passed belong to the rule.
        forward: the same for forward mode: takes two tuples, the arguments and their tangents, None for that of a
            constant, and returns ``(value, tangent)``, None for a tangent of zeros. Of JAX (except a ``custom_vjp``), a
            class of PyTorch with ``jvp`` and a primitive of autograd with ``defjvp`` it comes with the function.
        returns: the type of the value: one of Numba's types, its name, or a function from the types of the arguments.

    Returns:
        The function to call in compiled code: ``f`` where that is possible, else one that calls it.

    Raises:
        SignatureError: ``returns`` is missing or wrong, or ``f`` takes no fixed number of arguments.
        RuleError: there is no rule.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> def smooth(a):
        ...     return np.convolve(a, [0.25, 0.5, 0.25], mode="same")
        >>> def smooth_rule(a):
        ...     return smooth(a), lambda cotangent: (smooth(cotangent),)
        >>> smoothed = irad.rules.import_rule(smooth, smooth_rule, returns="float64[:]")
        >>> @njit
        ... def roughness(a):
        ...     return ((a - smoothed(a)) ** 2).sum()
        >>> irad.grad(roughness)(np.array([0.0, 1.0, 0.0]))
        array([-0.5 ,  0.75, -0.5 ])
    """
    library = next((each for each in _LIBRARIES if each.has_rule(f)), None)
    function, parameters = f, None
    if library is not None:
        function, parameters = library.function_of(f), library.parameters_of(f)
        if rule is None and forward is None:
            rule, forward = library.rule_of(f), library.forward_of(f)
    given = [each for each in (rule, forward) if each is not None]
    if not given or not all(map(callable, given)):
        raise RuleError(
            f"no rule is given for {catalogue.name_of(f)}",
            "give a function of its arguments that returns (value, pullback), or forward=, a function of arguments and "
            "tangents that returns (value, tangent)",
            "irad finds rules by itself only for functions of jax, torch and autograd",
            catalogue.location_of(f),
        )
    target = function
    if returns is not None:
        target = make_callable(function, returns, parameters or parameters_of(function))
    elif library is not None:
        raise SignatureError(
            f"compiled code cannot know what {catalogue.name_of(f)} returns",
            'declare it: import_rule(f, returns="float64[:]")',
            "Numba infers types only from code that it compiles, which this is not",
            catalogue.location_of(f),
        )
    with catalogue.edited(target) as entry:
        if rule is not None:
            entry.parts["augmented_primal"], entry.parts["reverse"] = make_rule(target, Foreign(target, rule))
        if forward is not None:
            entry.parts["forward"] = make_forward(target, Foreign(target, forward))
        entry.is_imported = True
    return target
