"""``check_custom_rule``: what `test_reverse` checks, for all ways in which arguments take part and both precisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, count
from math import comb
from typing import Any, Final

from numba import typeof

from irad.compiling import collection_paused
from irad.data.floats import Vector, has_floats
from irad.data.precision import in_precision
from irad.errors import ActivityError, IradError, RuleError, SignatureError
from irad.frontend.custom import catalogue, packs
from irad.frontend.custom.catalogue import Key
from irad.frontend.custom.pair import remembering
from irad.testing.optimisation import optimisation_limited
from irad.testing.rules.fault import Property, RuleFault
from irad.testing.rules.programs import call_once
from irad.testing.rules.reverse_rule import Checker, callable_in_compiled_code
from irad.testing.rules.trial import Trial

_passed: Final[dict[Key, int]] = {}


def check_custom_rule(
    f: Callable[..., Any],
    *arguments: Any,
    single: bool = True,
    aliasing: bool = True,
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
        arguments: where to check it.
        single: check value, derivative and shadows in single precision as well.
        aliasing: whether one array may stand for two arguments of the same type.
        rtol: relative tolerance; by default as the narrowest argument allows.
        atol: absolute tolerance.

    Raises:
        RuleFault: a property does not hold.
        RuleError: there is no rule, or it cannot be compiled.
    """
    packs.load()
    rule = catalogue.find(f, tuple(map(typeof, arguments)))
    if rule is None or not rule.is_for_reverse:
        raise RuleError(
            f"{catalogue.name_of(f)} has no rule for reverse mode",
            "register one: irad.rules.augmented_primal and irad.rules.reverse",
            "there is nothing to check",
            catalogue.place_of(f),
        )
    if not any(map(has_floats, arguments)):
        raise SignatureError(
            f"{catalogue.name_of(f)} is not given any float",
            "check it where an argument holds floats",
            "a rule gives derivatives with respect to floats",
        )
    function = callable_in_compiled_code(f)
    program = call_once(function, len(arguments))
    values = tuple(in_precision(value, single=False) for value in arguments)
    narrow = tuple(in_precision(value, single=True) for value in values)
    slopes: dict[object, Vector] = {}
    with remembering(), collection_paused():
        for active in _combinations(values):
            trial = Trial(program, values, active, False, rtol, atol, slopes=slopes)
            if active == tuple(map(has_floats, values)):
                Checker(f, trial).basics()
                if single:
                    everything = Trial(program, narrow, active, False, rtol, atol)
                    Checker(f, everything, Property.PRECISION).basics()
                with optimisation_limited():
                    _check_all_active(f, function, trial, aliasing)
            else:
                with optimisation_limited():
                    _check_some_constant(f, trial)
            if has_floats(trial.plain[0]) and any(m and a for m, a in zip(trial.modified, active, strict=True)):
                with optimisation_limited():
                    _check_some_constant(f, Trial(program, values, active, True, rtol, atol, slopes=slopes))
    for each in catalogue.entries_of(f):
        if each.pattern == rule.pattern and each.is_for_reverse:
            _passed[each.key] = each.version


def unchecked_rules() -> tuple[str, ...]:
    """The functions with rules for reverse mode, those of packages included, that have passed no check in this process.

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
    packs.load()
    return tuple(
        rule.name for rule in catalogue.rules() if rule.is_for_reverse and _passed.get(rule.key) != rule.version
    )


def _combinations(values: tuple[Any, ...]) -> Iterator[tuple[bool, ...]]:
    """What may take part: all at first, then the fewest subsets with each two arguments in all four ways.

    After the first row, each argument takes part in equally many rows, fewer than half of them, and no two in the same
    ones: so there is a row with either of two alone, and one with neither. Two arguments have no row with neither.

    Source:
        Kleitman and Spencer 1973, "Families of k-independent sets".
    """
    positions = [i for i, value in enumerate(values) if has_floats(value)]
    rows = next(n for n in count(4) if comb(n - 1, n // 2 - 1) >= len(positions))
    chosen = dict(zip(positions, combinations(range(1, rows), rows // 2 - 1), strict=False))
    table = [tuple(i in chosen and row in (0, *chosen[i]) for i in range(len(values))) for row in range(rows)]
    yield from dict.fromkeys(row for row in table if any(row))


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
