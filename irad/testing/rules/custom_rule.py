"""``check_custom_rule``: what `test_reverse` and `test_forward` check of a rule, in both precisions.

For all ways in which arguments take part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from numba import typeof

import irad
from irad.compiling import collection_paused
from irad.data.floats import Vector, has_floats, in_precision
from irad.errors import ActivityError, IradError, RuleError, SignatureError
from irad.frontend.custom import catalogue, rule_plugins
from irad.frontend.custom.catalogue import CustomRule, Key
from irad.frontend.custom.compiled_rules import remembering
from irad.frontend.packing.packed import packed
from irad.testing.optimisation import optimisation_limited
from irad.testing.rules.activities import activities
from irad.testing.rules.fault import Property, RuleFault
from irad.testing.rules.forward_rule import ForwardChecker, check_some_constant
from irad.testing.rules.lanes import check_lanes_forward, check_lanes_reverse
from irad.testing.rules.programs import call_once
from irad.testing.rules.reverse_rule import Checker, callable_in_compiled_code
from irad.testing.rules.trial import Trial

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

    First all arguments that hold floats take part; then so many combinations of active and constant ones are tried that
    each two of them are seen in all four ways (of three arguments: each alone). Of these combinations the derivative is
    checked, accumulation and the allocation balance; the other properties where all arguments take part.

    Functions of the rule are compiled once for each combination that comes up. Value, arguments, derivative and
    accumulation where all arguments take part are checked of fully optimised code, in both precisions; everything else
    of code that is optimised little, since that is compiled sooner.

    Args:
        f: a function with a rule.
        arguments: where to check it; ``irad.Const(x)`` for what has no derivative, passed as it is in all checks: a
            function, settings, a guess.
        single: check value, derivative and shadows in single precision as well.
        aliasing: whether one array may stand for two arguments of the same type.
        width: compare so many directions at once with each alone, where all arguments take part; 1: leave that out.
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
            f"{catalogue.name_of(f)} is not given any float that has a derivative",
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
    """The functions with rules, those of packages included, that have passed no check in this process.

    A rule that was changed after its check has passed none.

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
    """Whether there is a form for forward mode: what builds rules says so in the rule for the types of a trial."""
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
    """The same in forward mode."""
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
