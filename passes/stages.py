"""Passes, and the stages in which they run.

By stage a pass works on

PREPARE    the `Module` of the program
PROGRAM    the `Program`: all of it, before anything is differentiated
FUNCTION   a `Unit`: one variant of a function, analysed
PAIR       a `GeneratedPair`: the two functions that are made of it
DERIVATIVE the `Generated` derivative with all its pairs
FINISH     the same, after the places of its instructions have been read off
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from irad.passes.generated import Generated, GeneratedPair
from irad.passes.program import Program
from irad.passes.unit import Unit
from irad.records import dataclass


class PassStage(enum.Enum):
    """Stage of a pass, by the unit on which it works."""

    PREPARE = "prepare"
    PROGRAM = "program"
    FUNCTION = "function"
    PAIR = "pair"
    DERIVATIVE = "derivative"
    FINISH = "finish"


def _always(record: Any) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass.

    Attributes:
        name: its module in `irad.passes`.
        run: does the work.
        applies: whether there is any for a record.
        changes: the code, so that it is worth verifying afterwards.
    """

    name: str
    stage: PassStage
    run: Callable[[Any], None]
    applies: Callable[[Any], bool] = _always
    changes: bool = False

    @property
    def purpose(self) -> str:
        """Purpose of the pass, in a sentence."""
        return self.run.__doc__ or ""


# When a pass of the pipeline applies.


def has_parallel_loops(record: Program | Generated) -> bool:
    """True if the host runs loops in parallel."""
    program = record if isinstance(record, Program) else record.program
    return program.request.host.parallel is not None


def has_references(program: Program) -> bool:
    """True if the host counts references to memory."""
    return program.request.host.references is not None


def is_default(unit: Unit) -> bool:
    """True if a function is optimised."""
    return not unit.program.saves_all


def is_reverse(record: Unit | GeneratedPair | Generated) -> bool:
    """True if reverse mode is asked for."""
    return not record.program.request.mode.is_forward


def is_forward(made: GeneratedPair) -> bool:
    """True if forward mode is asked for."""
    return made.program.request.mode.is_forward


def is_transposed(unit: Unit) -> bool:
    """True if the program has to be linear."""
    return unit.program.request.is_linear


def may_raise_late(unit: Unit) -> bool:
    """True if checks may move after their loops: in an entry, where no one watches each operation."""
    request = unit.program.request
    return is_default(unit) and unit.variant.is_entry and not request.watches and not request.host.is_shared


def may_sink(unit: Unit) -> bool:
    """True if operations may be copied to a side of a branch: not where each is looked at."""
    return is_default(unit) and not (unit.program.request.watches or unit.program.is_read)


def keeps_memory(unit: Unit) -> bool:
    """True if memory may be kept for the reverse sweep."""
    return is_default(unit) and is_reverse(unit)


def may_move_cotangents(unit: Unit) -> bool:
    """True if a number may be taken from another place than where the program has it: not where each is looked at."""
    request, is_read = unit.program.request, unit.program.is_read
    return keeps_memory(unit) and not (request.watches or request.host.is_shared or unit.variant.is_lane or is_read)


def is_oracle(unit: Unit) -> bool:
    """True if everything is saved."""
    return unit.program.saves_all


def is_reversed_lane(unit: Unit) -> bool:
    """True if a function is a lane whose reverse is asked for."""
    return unit.variant.is_lane and is_reverse(unit)


def is_reversed_kernel(unit: Unit) -> bool:
    """True if a function is a kernel whose reverse is asked for: its arguments are the same in all threads."""
    host = unit.program.request.host
    # Inside a kernel, threads call a device function with different arguments: the owner of an element is not known.
    return host.is_shared and not host.is_inside and is_reverse(unit) and not unit.everything


def may_gather(made: GeneratedPair) -> bool:
    """True if additions to shadows may be reordered."""
    request = made.program.request
    is_plain = not (request.strict or request.watches or request.is_primal or request.host.is_shared)
    return is_reverse(made) and is_plain and not made.unit.everything


def is_tuned(made: GeneratedPair) -> bool:
    """True if optimisations apply that keep results the same to the bit."""
    request = made.program.request
    return is_reverse(made) and not (request.watches or request.is_primal or made.unit.everything)


def is_watched(made: GeneratedPair) -> bool:
    """True if debug mode looks at each operation."""
    return made.program.request.watches


def is_entry(generated: Generated) -> bool:
    """True if the derivative is of an entry, not of a callee alone."""
    return generated.program.request.callee is None


def is_verified(generated: Generated) -> bool:
    """True if what the sweeps decide is checked."""
    return generated.program.verifies and is_reverse(generated)
