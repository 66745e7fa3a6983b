"""``check_elementwise``: compare the partial derivatives of an elementwise rule with finite differences."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from irad.errors import RuleError
from irad.ruleset import reference
from irad.ruleset.expr import evaluate
from irad.ruleset.interface import Elementwise
from irad.ruleset.symbols import TABLE
from irad.testing.gradients.finite_difference import slope_at
from irad.testing.gradients.slope import Shape

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
        f"the rule of '{rule.name}' gives {given!r} as the partial derivative with respect to argument {argument} at "
        f"{tuple(point)}; "
        f"finite differences give {found.value!r} ± {found.error:.1g}",
        "(a) correct the formula or (b) if it has a kink there, state a policy and list the point under `also`",
        "a rule agrees with finite differences wherever the function is smooth",
    )


def _value(function: Callable[..., float], point: Sequence[float]) -> float:
    """The function's value; NaN or infinite where Python raises."""
    return reference.call("f", point, {"f": function})
