"""``check_rule``: is a rule right? For elementwise rules, given by their partials, and for rules of functions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final, overload

from numba import typeof

import irad
from irad.compiling import collection_paused
from irad.data.floats import Vector, has_floats, in_precision
from irad.errors import ActivityError, IradError, RuleError, SignatureError
from irad.frontend.custom import catalogue, rule_plugins
from irad.frontend.custom.catalogue import CustomRule, Key
from irad.frontend.custom.compiled_rules import remembering
from irad.frontend.packing.packed import packed
from irad.ruleset import reference
from irad.ruleset.expr import evaluate
from irad.ruleset.interface import Elementwise
from irad.ruleset.symbols import TABLE
from irad.testing.gradients.slope import Shape, slope_at
from irad.testing.gradients.trial import Trial, optimisation_limited
from irad.testing.rules.fault import Property, RuleFault
from irad.testing.rules.forward_rule import ForwardChecker, check_some_constant
from irad.testing.rules.lanes import check_lanes_forward, check_lanes_reverse
from irad.testing.rules.programs import activities, call_once
from irad.testing.rules.reverse_rule import Checker, callable_in_compiled_code

# ``check_elementwise``: compare the partial derivatives of an elementwise rule with finite differences.

_SAMPLES: Final = 40
_RTOL: Final = 1e-6  # finite differences of a function in double precision reach 1e-8 or better
_WITHOUT_INTEGERS: Final[frozenset[int]] = frozenset()


def check_elementwise(
    rule: Elementwise,
    function: Callable[..., float] | None = None,
    *,
    functions: Mapping[str, Callable[..., float]] = reference.FUNCTIONS,
    samples: int = _SAMPLES,
    seed: int = 0,
) -> None:
    """Checks a rule on random points of its domains and at its extra points.

    Where the function is differentiable the partials must be its derivatives. At the extra points it may not be: then a
    partial must lie between the one-sided derivatives, or the rule must state a ``policy``, and must not be NaN unless
    the result is.

    Args:
        function: the primal, taking and giving floats; the function of the rule's name by default.
        functions: what the names that the partials call mean.
        samples: number of random points.
        seed: of the random points.

    Raises:
        RuleError: a partial is wrong; the message names argument, point and both values.
    """
    primal = functions[rule.name] if function is None else function
    integers = TABLE[rule.name].integers if rule.name in TABLE else _WITHOUT_INTEGERS
    for point, regular in _points(rule, integers, samples, random.Random(seed)):
        y = _value(primal, point)
        values = {"y": y} | {f"x{i}": x for i, x in enumerate(point)}
        for argument, partial in enumerate(rule.partials):
            if argument not in integers:
                given = 0.0 if partial is None else evaluate(partial, values, functions)
                _check_partial(rule, primal, point, argument, given, regular=regular and math.isfinite(y))


def _points(
    rule: Elementwise, integers: frozenset[int], samples: int, generator: random.Random
) -> Iterator[tuple[tuple[float, ...], bool]]:
    """Points, and whether the function is meant to be differentiable there."""

    def drawn() -> Iterator[float]:
        for index, domain in enumerate(rule.domains):
            x = generator.uniform(domain.low, domain.high)
            yield float(round(x)) if index in integers else x

    for _ in range(samples):
        yield tuple(drawn()), True
    extra = [(*domain.also, x) for domain, x in zip(rule.domains, drawn(), strict=True)]
    yield from ((point, False) for point in product(*extra))


def _check_partial(
    rule: Elementwise,
    primal: Callable[..., float],
    point: Sequence[float],
    argument: int,
    given: float,
    *,
    regular: bool,
) -> None:
    def along(x: float) -> float:
        return _value(primal, (*point[:argument], x, *point[argument + 1 :]))

    found = slope_at(along, point[argument])
    allowed = _RTOL * max(1.0, abs(found.value))
    if found.shape is Shape.SMOOTH and abs(given - found.value) <= allowed + 10.0 * found.error:
        return
    if not regular and (found.has_between(given, allowed) or (rule.policy and not math.isnan(given))):
        return
    raise RuleError(
        f"the rule for '{rule.name}' gives {given!r} as the partial derivative with respect to argument {argument} at "
        f"{tuple(point)}; "
        f"finite differences give {found.value!r} ± {found.error:.1g}",
        "(a) correct the formula or (b) if it has a kink there, state a policy and list the point under `also`",
        "a rule agrees with finite differences wherever the function is smooth",
    )


def _value(function: Callable[..., float], point: Sequence[float]) -> float:
    """The function's value; NaN or infinite where Python raises."""
    return reference.call("f", point, {"f": function})


# ``check_custom_rule``: what `test_reverse` and `test_forward` check of a rule, in both precisions.
#
# For all ways in which arguments take part.

_passed: Final[dict[Key, int]] = {}


def check_custom_rule(
    f: Callable[..., Any],
    *arguments: Any,
    single: bool = True,
    aliasing: bool = True,
    width: int = 3,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Checks the rule of a function for combinations of active and constant arguments and value.

    First all arguments that hold floats take part; then enough combinations of active and constant ones that each two
    of them are seen in all four ways (of three arguments: each alone). For these combinations the derivative,
    accumulation and the allocation balance are checked; the other properties where all arguments take part.

    Functions of the rule are compiled once for each combination that comes up. Value, arguments, derivative and
    accumulation where all arguments take part are checked of fully optimised code, in both precisions; everything else
    of code that is optimised little, since that is compiled sooner.

    Args:
        f: a function with a rule.
        arguments: where to check it; ``irad.Const(x)`` for what has no derivative, passed as it is in all checks: a
            function, settings, a guess.
        single: check value, derivative and shadows in single precision as well.
        aliasing: whether one array may stand for two arguments of the same type.
        width: number of directions to compare, all at once and each alone, where all arguments take part; 1: skip that.
        rtol: relative tolerance; by default as the narrowest argument allows.
        atol: absolute tolerance.

    Raises:
        RuleFault: a property does not hold.
        RuleError: there is no rule, or it cannot be compiled.
    """
    rule_plugins.load()
    held = tuple(isinstance(each, irad.Const) for each in arguments)
    given = tuple(packed(each.value if fixed else each) for each, fixed in zip(arguments, held, strict=True))
    rule = catalogue.find(f, tuple(map(typeof, given)))
    if rule is None or not (rule.is_for_reverse or rule.is_for_forward):
        raise RuleError(
            f"{catalogue.name_of(f)} has no rule",
            "register one: irad.rules.augmented_primal and irad.rules.reverse, or irad.rules.forward",
            "there is nothing to check",
            catalogue.location_of(f),
        )
    everything = tuple(has_floats(value) and not fixed for value, fixed in zip(given, held, strict=True))
    if not any(everything):
        raise SignatureError(
            f"{catalogue.name_of(f)} is called without any float that has a derivative",
            "check it where an argument holds floats",
            "a rule gives derivatives with respect to floats",
        )
    function = callable_in_compiled_code(f)
    program = call_once(function, len(given))
    values = _in_precision(given, held, single=False)
    slopes: dict[object, Vector] = {}
    with remembering(), collection_paused():
        for active in activities(everything):
            trial = Trial(program, values, active, False, rtol, atol, slopes=slopes, held=held)
            narrow = replace(trial, values=_in_precision(given, held, single=True), slopes={})
            in_single = narrow if single and active == everything else None
            if rule.is_for_reverse:
                _check_in_reverse(f, function, trial, in_single, aliasing)
            if _has_forward(rule, trial):
                _check_in_forward(f, trial, in_single, reverse=rule.is_for_reverse, aliasing=aliasing)
            if active == everything and width > 1:
                _check_in_lanes(f, rule, trial, width)
    for each in catalogue.entries_of(f):
        if each.pattern == rule.pattern and _is_checked(each):
            _passed[each.key] = each.version


def _in_precision(values: tuple[Any, ...], held: tuple[bool, ...], *, single: bool) -> tuple[Any, ...]:
    """The arguments in one precision; those that are held as they are."""
    pairs = zip(values, held, strict=True)
    return tuple(value if fixed else in_precision(value, single=single) for value, fixed in pairs)


def unchecked_rules() -> tuple[str, ...]:
    """Names of the functions with rules that have passed no check in this process, rules of packages included.

    A rule that was changed after its check counts as unchecked.

    Returns:
        A tuple of names.

    Examples:
        >>> from irad.rules import easy_rule
        >>> from irad.testing import check_rule, unchecked_rules
        >>> from numba import njit
        >>> @njit
        ... def tripled(x):
        ...     return 3.0 * x
        >>> _ = easy_rule(tripled, 3.0)
        >>> "tripled" in unchecked_rules()
        True
        >>> check_rule(tripled, 1.0)
        >>> "tripled" in unchecked_rules()
        False
    """
    rule_plugins.load()
    return tuple(rule.name for rule in catalogue.rules() if _is_checked(rule) and _passed.get(rule.key) != rule.version)


def _is_checked(rule: CustomRule) -> bool:
    return rule.is_for_reverse or rule.is_for_forward


def _has_forward(rule: CustomRule, trial: Trial) -> bool:
    """True if there is a form for forward mode: what builds rules says so in the rule for the types of a trial."""
    build = rule.parts.get("build_rule")
    if build is None or "forward" in rule.parts:
        return rule.is_for_forward
    _ = trial.plain  # compiles the program
    return callable(getattr(build(trial.program.nopython_signatures[0]), "forward", None))  # type: ignore[attr-defined]


def _check_in_reverse(f: Any, function: Any, trial: Trial, in_single: Trial | None, aliasing: bool) -> None:
    """Checks one combination in reverse mode; where all arguments take part, all that must hold, in both precisions."""
    if trial.all_take_part:
        Checker(f, trial).basics()
        if in_single is not None:
            Checker(f, in_single, Property.PRECISION).basics()
        with optimisation_limited():
            _check_all_active(f, function, trial, aliasing)
    else:
        with optimisation_limited():
            _check_some_constant(f, trial)
    if has_floats(trial.plain[0]) and any(m and a for m, a in zip(trial.modified, trial.active, strict=True)):
        with optimisation_limited():
            _check_some_constant(f, replace(trial, constant_return=True))


def _check_in_forward(f: Any, trial: Trial, in_single: Trial | None, *, reverse: bool, aliasing: bool) -> None:
    """Checks the forward-mode rule for the combination of arguments in a trial."""
    with optimisation_limited():
        if in_single is not None:
            ForwardChecker(f, in_single, Property.PRECISION).basics()
        if trial.all_take_part:
            ForwardChecker(f, trial).everything(reverse=reverse, aliasing=aliasing)
        else:
            check_some_constant(f, trial, reverse=reverse)


def _check_in_lanes(f: Any, rule: CustomRule, trial: Trial, width: int) -> None:
    """Compares several directions with each alone, in the modes that the rule is for."""
    with optimisation_limited():
        if rule.is_for_reverse:
            check_lanes_reverse(f, trial, width)
        if _has_forward(rule, trial):
            check_lanes_forward(f, trial, width)


def _check_all_active(f: Any, function: Any, trial: Trial, aliasing: bool) -> None:
    checker = Checker(f, trial)
    checker.life()
    checker.live_calls(function)
    checker.constant_result(function)
    if aliasing:
        checker.aliases()
    checker.allocation()


def _check_some_constant(f: Any, trial: Trial) -> None:
    checker = Checker(f, trial, Property.ACTIVITY)
    try:
        checker.basics()
        checker.allocation()
    except ActivityError:  # active values would be stored in a constant array: irad refuses such calls
        return
    except RuleFault:
        raise
    except IradError as error:
        what = "a derivative with these arguments"
        raise RuleFault(Property.ACTIVITY, f, what, "one", error.problem, trial.description) from error


@overload
def check_rule(rule: Elementwise, *arguments: Any, **options: Any) -> None: ...


@overload
def check_rule(rule: Callable[..., Any], *arguments: Any, **options: Any) -> None: ...


def check_rule(rule: Any, *arguments: Any, **options: Any) -> None:
    """Checks a rule against finite differences, and all other properties that a rule must have.

    Args:
        rule: a function that has a rule, or an `Elementwise` rule itself.
        arguments: for a function, the point at which to check it, with ``irad.Const(x)`` for what has no derivative and
            is passed as it is in all checks: a function, settings, a guess. For an elementwise rule at most its primal.
        options: for a function ``single``, ``aliasing``, ``width``, ``rtol``, ``atol``; for an elementwise rule
            ``functions``, ``samples``, ``seed``.

    Raises:
        RuleError: the rule is wrong; the message says in what, and what was expected.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.rules import easy_rule
        >>> from irad.testing import check_rule
        >>> from numba import njit
        >>> @njit
        ... def norm(a):
        ...     return np.sqrt((a * a).sum())
        >>> _ = easy_rule(norm, lambda a, value: a / value)
        >>> check_rule(norm, np.array([3.0, 4.0]))
        >>> @njit
        ... def power(a, n):
        ...     return a**n
        >>> _ = easy_rule(power, lambda a, n: n * a ** (n - 1.0), None)
        >>> check_rule(power, 2.0, irad.Const(3.0))
    """
    if isinstance(rule, Elementwise):
        check_elementwise(rule, *arguments, **options)
    else:
        check_custom_rule(rule, *arguments, **options)
