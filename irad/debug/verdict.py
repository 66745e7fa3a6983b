"""The outcome of a watched call: an error if its result is NaN or infinite, warnings for ties.

An operation may make a NaN that never reaches the result, as in ``np.where(x > 0, np.log(x), 0.0)``. So only what comes
out counts. A NaN that comes out carries the number of the place where it began. An infinity does not: it is attributed
to the first that was made, in the derivative where the value is finite.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile

from irad.debug.events import MOST_EVENTS, Event, Found, Record, Watched, event_of_mark, nonfinite
from irad.driver import MarkKind
from irad.errors import NonFiniteError, NonFiniteWarning, TieWarning

_SWEEPS = {MarkKind.VALUE: "value", MarkKind.DERIVATIVE: "derivative", MarkKind.TANGENT: "derivative"}
_IN_VALUE = "keep the operand in the domain of the operation: use an `if`, np.maximum or np.where before it"
_IN_DERIVATIVE = (
    "the derivative has no finite value there: avoid that point, for instance with sqrt(x + eps) or `if x > 0`"
)
_CHAIN_RULE = "the chain rule multiplies by the derivative at this point, which is not finite"
_ZERO_WINS = (
    f'(a) {_IN_DERIVATIVE} or (b) irad.Options(zero_times_infinity="zero"), with which a zero slope times an infinity '
    "is zero"
)
_IN_RULE = "test the rule with irad.testing.test_reverse, for forward mode with test_forward, at these arguments"
_REMEDIES = {MarkKind.VALUE: _IN_VALUE, MarkKind.DERIVATIVE: _IN_DERIVATIVE, MarkKind.TANGENT: _IN_DERIVATIVE}
_REASONS = {
    MarkKind.VALUE: "NaN and infinities propagate to everything computed from them",
    MarkKind.DERIVATIVE: _CHAIN_RULE,
    MarkKind.TANGENT: _CHAIN_RULE,
}
_WHY_IN_RULE = "irad uses the results of a rule unchanged"
_WHY_INPUT = "NaN and infinities propagate to everything computed from them"
_NO_CALL = "a constant of the function, a global array, or uninitialised memory (np.empty)"
_INPUT = "pass finite numbers, or test for them in the function"


def check_result(
    function: str,
    record: Record,
    outputs: Sequence[tuple[str, object]],
    earlier: Record | None = None,
    *,
    infinities_first: bool = False,
) -> None:
    """Raises if a result is NaN or infinite.

    Args:
        function: name of the primal.
        record: reports of the call.
        outputs: results with their names.
        earlier: for a pullback, the reports of the forward sweep.
        infinities_first: as `nonfinite` takes it.

    Raises:
        NonFiniteError: one is.
    """
    bad = ((name, nonfinite(value, infinities_first=infinities_first)) for name, value in outputs)
    numbers = [(name, found) for name, found in bad if found is not None]
    if infinities_first:
        numbers.sort(key=lambda each: math.isnan(each[1].number) and not each[1].mark)
    for name, found in numbers:
        raise _Cause(function, "".join(found.within(name)), found, record, earlier).error()


class _Cause:
    """Finds where a NaN or an infinity in a result began."""

    def __init__(self, function: str, output: str, found: Found, record: Record, earlier: Record | None) -> None:
        self.function, self.found = function, found
        self.result = f"{output} is {found}"
        self.records = [record] if earlier is None else [earlier, record]
        self.is_value = output.startswith("the value")

    def error(self) -> NonFiniteError:
        return self.of_nan() if math.isnan(self.found.number) else self.of_infinity()

    def of_nan(self) -> NonFiniteError:
        """A NaN that an operation made carries a mark; one that was passed in carries none of this call."""
        event = self.marked()
        if event is None:
            inputs = self.inputs(math.isnan) or self.inputs()
            return self.of_input(inputs) if inputs else self.unknown()
        if not event.is_of_infinities:
            return self.of_event(event)
        infinite, began = self.inputs(math.isinf), self.first_infinite(event)
        if began is None and infinite:
            return self.of_input(infinite)
        return self.of_event(began, event) if began is not None else self.of_event(event)

    def of_infinity(self) -> NonFiniteError:
        """An infinity carries nothing: it is put down to the first that was made."""
        event, infinite = self.first_infinite(), self.inputs(math.isinf)
        if event is not None:
            return self.of_event(event)
        return self.of_input(infinite) if infinite else self.unknown()

    def inputs(self, test: Callable[[float], bool] | None = None) -> dict[str, Found]:
        """Arguments that were NaN or infinite before the call."""
        found = {name: found for record in self.records for name, found in record.inputs.items()}
        return {name: each for name, each in found.items() if test is None or test(each.number)}

    def marked(self) -> Event | None:
        found = (event_of_mark(self.found.mark, record) for record in self.records if self.found.mark)
        return next((event for event in found if event is not None), None)

    def first_infinite(self, before: Event | None = None) -> Event | None:
        """The first infinity; of those before an event, if one is given."""
        events = [e for r in self.records for e in r.of_kind(MarkKind.VALUE, MarkKind.DERIVATIVE, MarkKind.TANGENT)]
        infinite = [e for e in takewhile(lambda e: e is not before, events) if math.isinf(e.result)]
        wanted = [e for e in infinite if e.place.kind.is_derivative]
        prefers_derivative = math.isinf(self.found.number) and not self.is_value
        return next(iter(wanted if prefers_derivative and wanted else infinite), None)

    def of_event(self, event: Event, became: Event | None = None) -> NonFiniteError:
        """An operation began it.

        Args:
            event: the event.
            became: the operation that made a NaN of an infinity.
        """
        place, operation = event.place, operation_of(event)
        where = "in the reverse sweep with" if place.kind is MarkKind.DERIVATIVE else "with"
        problem = f"{self.result}: it began {where} {operation}"
        if became is not None:
            problem += f", and became nan with {operation_of(became)} at {became.place.location}"
        infinite = self.inputs(math.isinf)
        if infinite and math.isinf(event.result):
            problem += f", unless it is that of an argument: {_listed(infinite)} from the start"
        return NonFiniteError(
            problem,
            _IN_RULE if place.ruled is not None else _remedy(event, became),
            _WHY_IN_RULE if place.ruled is not None else _REASONS[place.kind],
            sweep=_SWEEPS[place.kind],
            result=self.result,
            operation=operation,
            loops=[(turn.location, turn.number) for turn in event.loops],
            location=place.location,
            detail=detail_of(event),
        )

    def of_input(self, inputs: Mapping[str, Found]) -> NonFiniteError:
        return NonFiniteError(
            f"{self.result}: {_listed(inputs)} from the start", _INPUT, _WHY_INPUT, sweep="argument", result=self.result
        )

    def unknown(self) -> NonFiniteError:
        """No operation that is looked into made it: it was made by a call, or is a constant."""
        watched = self.records[-1].watched
        opaque = [] if watched is None else [p for p in watched.places if p.kind is MarkKind.OPAQUE]
        names = {p.ruled for p in opaque if p.ruled is not None}
        if watched is not None and len(names) == 1 and all(p.ruled for p in opaque):
            rule = watched.rules[next(iter(names))]
            return NonFiniteError(
                f"{self.result}: it began in the rule for {rule.name}",
                _IN_RULE,
                _WHY_IN_RULE,
                sweep="value" if self.is_value else "derivative",
                result=self.result,
                operation=f"the rule for {rule.name}",
                location=rule.augmented if self.is_value else rule.reverse,
                detail=f"called at {opaque[0].location}",
            )
        calls = [f"{_called(p.words, p.ruled, watched)} at {p.location}" for p in opaque]
        listed = "; ".join(dict.fromkeys([*calls, _NO_CALL]))
        return NonFiniteError(
            f"{self.result}: no operation that debug mode watches produced it, so it came from one of: {listed}",
            "look at the operands of these calls, and at these numbers" if calls else "look at these numbers",
            "debug mode watches arithmetic, not library calls, nor values that existed before the call",
            sweep="value" if self.is_value else "derivative",
            result=self.result,
            location=opaque[0].location if opaque else None,
        )


def _listed(inputs: Mapping[str, Found]) -> str:
    parts = ((*found.within(name), found) for name, found in inputs.items())
    return " and ".join(f"{named} was {found}{at}" for named, at, found in parts)


def _called(words: str, ruled: str | None, watched: Watched | None) -> str:
    return f"the rule for {watched.rules[ruled].name}" if ruled is not None and watched is not None else words


def _remedy(event: Event, became: Event | None) -> str:
    """Remedy for an operation; for an infinite derivative that met a zero slope, one thing more."""
    if became is None or became.operands is None or not event.place.kind.is_derivative:
        return _REMEDIES[event.place.kind]
    if became.place.kind.is_derivative and became.is_of_infinities and 0.0 in became.operands[:2]:
        return _ZERO_WINS
    return _REMEDIES[event.place.kind]


def operation_of(event: Event) -> str:
    """The operation with its numbers."""
    place = event.place
    if place.ruled is not None:
        rule = event.watched.rules[place.ruled]
        where = rule.reverse if place.kind is MarkKind.DERIVATIVE else rule.augmented
        return f"the rule for {rule.name} ({where}) = {_shown(event.result)}"
    text = place.words.format(*(map(_shown, event.operands) if event.operands is not None else "…" * 3))
    if place.kind is not MarkKind.TIE:
        text += f" = {_shown(event.result)}"
    return f"{text}, in the derivative of {place.primal}" if place.primal else text


def detail_of(event: Event) -> str | None:
    """Iterations and callers, a line for each."""
    if event.operands is None:
        return f"after many others: debug mode keeps the details of only the first {MOST_EVENTS}"
    parts = [event.where] if event.where else []
    parts += [str(turn) for turn in event.loops]
    for caller in event.callers:
        words = ([] if caller.is_launch else [f"a call at {caller.location}"]) + [str(turn) for turn in caller.loops]
        if words:
            parts.append(", ".join(words))
    return "\n".join(parts) or None


def _shown(number: float) -> str:
    return repr(number)


def warn_of_ties(events: Iterable[Event]) -> None:
    """Warns of ties, once for each place."""
    for event in events:
        if event.number in event.watched.warned:
            continue
        event.watched.warned.add(event.number)
        location = event.place.location
        lines = [
            f"equal numbers decided a branch: {operation_of(event)}; the derivative is that of the side that was taken",
            f"  at  {location}",
            *(f"  in  {line}" for line in (detail_of(event) or "").splitlines()),
        ]
        file, line = (location.file, location.line) if location is not None else ("<unknown>", 0)
        warnings.warn_explicit("\n".join(lines), TieWarning, file, line, registry={})


def words_of_zero(found: NonFiniteError) -> str:
    """The finding in words."""
    return f"zero times infinity was taken as zero: {found.operation or 'in a call of the library'}"


def warn_of_zero(function: str, found: NonFiniteError) -> None:
    """Warns that a zero won over an infinity in a derivative of a function, which was found where no zero wins."""
    location = found.location
    lines = [
        f"in a derivative of {function}, {words_of_zero(found)}",
        *([f"  at  {location}"] if location is not None else []),
        *(f"  in  {line}" for line in (found.detail or "").splitlines()),
        "  why the zero is the slope of what is computed from it; the product may have a limit, as 1 in (s**(1/3))**3",
        "  do  avoid that point (sqrt(s + eps)), write it without the root, or ask for NaN in such places with",
        '      irad.Options(zero_times_infinity="nan")',
    ]
    file, line = (location.file, location.line) if location is not None else ("<unknown>", 0)
    warnings.warn_explicit("\n".join(lines), NonFiniteWarning, file, line, registry={})
