"""How rules are written down: `elementwise` and `inactive`. Call rules are built with `CallRule` itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from irad.errors import RuleError
from irad.ruleset.expr import Expr, Symbol, expression
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
        policy: the convention at kinks and singular points, in words.
        source: where the formula is from.

    Raises:
        RuleError: the formula does not give one partial for each argument.
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
            f"the rule of {name!r} takes {arity} arguments but gives {found} and {len(domains)} domains",
            "let the formula return a tuple, an expression or None for each argument; its last parameter is the result",
            "a rule has a partial derivative and a domain for each argument",
        )
    return Elementwise(
        name=name,
        arity=arity,
        partials=tuple(None if p is None or isinstance(p, Refused) else expression(p) for p in partials),
        domains=tuple(Domain(d.low, d.high, (*d.also, *also)) for d in domains),
        refused=frozenset(i for i, p in enumerate(partials) if isinstance(p, Refused)),
        policy=policy,
        source=source,
    )


def inactive(symbols: str | Iterable[str], why: str, effects: Effects | None = None) -> Inactive:
    """A rule for callees that carry no derivative.

    Args:
        symbols: LLVM symbols, as words of one string or several; a trailing `*` stands for any suffix.
        why: the reason, as reports print it.
        effects: on memory; by default effects outside the memory of the arguments, so that a call is never repeated.
    """
    words = symbols.split() if isinstance(symbols, str) else tuple(symbols)
    return Inactive(tuple(words), why, Effects() if effects is None else effects)
