"""The end of a call that debug mode watches, in either mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irad.frontend.calls.kept import raise_kept
from irad.frontend.calls.sweeps import Extras, Sweeps
from irad.frontend.calls.watched import looked_at


def held_value(sweeps: Sweeps) -> Any:
    """The primal's value for debug mode to check, a new reference; None without debug mode."""
    if sweeps.watched is None:
        return None
    value = sweeps.value()
    sweeps.context.nrt.incref(sweeps.builder, sweeps.derivation.return_type, value)
    return value


def finish_watched(
    sweeps: Sweeps, extras: Extras, arguments: Sequence[Any], value: Any, result: tuple[Any, Any]
) -> None:
    """Ends a watched call: raises if a result is NaN or infinite."""
    if sweeps.watched is None:
        return
    context, builder, derivation = sweeps.context, sweeps.builder, sweeps.derivation
    outputs = looked_at(context, builder, derivation, value, arguments, extras.targets, result)
    raised = sweeps.watched.finish(outputs)
    context.nrt.decref(builder, derivation.return_type, value)
    with builder.if_then(raised, likely=False):
        for held, numba_type in (result, *extras.held):
            context.nrt.decref(builder, numba_type, held)
        raise_kept(context, builder)
