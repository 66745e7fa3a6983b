"""Functions that write rules: `elementwise` and `inactive`. Call rules are built with `CallRule` itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, TypeAlias

from irad.errors import RuleError
from irad.records import dataclass
from irad.ruleset.expr import Expr, Symbol, Where, expression, parts_of, symbols_of
from irad.ruleset.interface import Domain, Effects, Elementwise, Inactive


@dataclass(frozen=True, slots=True)
class Refused:
    """Stands for a derivative that exists but has no formula."""


REFUSED: Final = Refused()
Partial: TypeAlias = "Expr | float | Refused | None"
Formula: TypeAlias = Callable[..., "Partial | Sequence[Partial]"]


def elementwise(
    name: str,
    formula: Formula,
    *,
    on: Domain | Sequence[Domain],
    also: Sequence[float] = (),
    policy: str = "",
    kinks: str = "",
    source: str = "",
) -> Elementwise:
    """A rule for a scalar function.

    Args:
        name: canonical name, see `irad.ruleset.symbols`.
        formula: its parameters are the arguments, the last one the primal result. It gives the partial derivative, or a
            tuple of one for each argument; None stands for an argument that carries no derivative, `REFUSED` for one
            with respect to which the derivative is not known.
        on: where to sample, one domain or one for each argument.
        also: further points to test, added to each domain.
        policy: the convention at singular points, in words.
        kinks: the points where the function is not smooth and a partial is set to a constant, with the convention, in
            words. Only with it may a partial be `where(equal(x, c), constant, …)`: such a branch has derivative zero.
        source: where the formula is from.

    Raises:
        RuleError: the formula does not give one partial for each argument, or has a constant at a point that is not
            declared under ``kinks``.
    """
    arity = len(inspect.signature(formula).parameters) - 1
    symbols = [Symbol(f"x{index}") for index in range(arity)]
    given = formula(*symbols, Symbol("y"))
    several = isinstance(given, Sequence)
    partials = tuple(given) if isinstance(given, Sequence) else (given,)
    domains = (on,) * arity if isinstance(on, Domain) else tuple(on)
    if len(partials) != arity or len(domains) != arity:
        found = f"{len(partials)} partial derivatives" if several else "one partial derivative"
        raise RuleError(
            f"the rule for {name!r} takes {arity} arguments but gives {found} and {len(domains)} domains",
            "let the formula return a tuple, an expression or None for each argument; its last parameter is the result",
            "a rule has a partial derivative and a domain for each argument",
        )
    expressions = tuple(None if p is None or isinstance(p, Refused) else expression(p) for p in partials)
    active = {"y", *(symbol.name for symbol, each in zip(symbols, expressions, strict=True) if each is not None)}
    if not kinks and any(each is not None and _has_constant_point(each, active) for each in expressions):
        raise RuleError(
            f"the rule for {name!r} sets a partial derivative to a constant at a point: where(equal(…), constant, …)",
            "(a) write a branch there whose derivatives are right, too: where(x * x < 0.01, power series, …);"
            " or (b) say under kinks= that the function is not smooth there, and what the derivative counts as",
            "the second derivative is that of the branch, and that of a constant is zero",
        )
    return Elementwise(
        name=name,
        arity=arity,
        partials=expressions,
        domains=tuple(Domain(d.low, d.high, (*d.also, *also)) for d in domains),
        refused=frozenset(i for i, p in enumerate(partials) if isinstance(p, Refused)),
        policy="; ".join(text for text in (policy, kinks) if text),
        source=source,
    )


def _has_constant_point(expr: Expr, active: Collection[str]) -> bool:
    """True if a branch is taken at a single value of numbers that are differentiated, and does not depend on them."""
    for part in parts_of(expr):
        if isinstance(part, Where) and part.condition.predicate == "oeq":
            compared = (symbols_of(part.condition.a) | symbols_of(part.condition.b)) & set(active)
            if compared and not compared & symbols_of(part.a):
                return True
    return False


def inactive(symbols: str | Iterable[str], why: str, effects: Effects | None = None) -> Inactive:
    """A rule for callees that carry no derivative.

    Args:
        symbols: LLVM symbols, as words of one string or several; a trailing `*` stands for any suffix.
        why: the reason, as reports print it.
        effects: on memory; by default effects outside the memory of the arguments, so that a call is never repeated.
    """
    words = symbols.split() if isinstance(symbols, str) else tuple(symbols)
    return Inactive(tuple(words), why, Effects() if effects is None else effects)
