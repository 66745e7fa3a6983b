"""The passes, in the order of work: a table of contents. `derivative` does the work, `README.md` explains."""

from __future__ import annotations

from typing import Final

PIPELINE: Final[tuple[tuple[str, str], ...]] = (
    ("devirtualise", "Replaces calls through pointers by direct calls of what the pointers may lead to."),
    ("prepare", "Drops promises (attributes, metadata) that hold for the primal but not for its derivative."),
    ("split_aggregates", "Splits phis and selects of array descriptors, so that each pointer in them is told apart."),
    ("invariant_choices", "Frees loops from carrying what every iteration chooses alike, as broadcasting does."),
    ("summary", "Reads off the bodies of functions with a rule, and of parallel loops, what they do to memory."),
    ("parallel.flatten", "Turns parallel loops into calls of their bodies, with plain parameters."),
    ("signatures", "Matches what callers know of the types of functions with what LLVM left of their parameters."),
    ("points_to", "Finds the memory objects and which of them each pointer may point to."),
    ("memory_types", "Finds what the bytes of each object hold."),
    ("retype", "Gives floats and pointers that are moved as integers their type back."),
    ("invariant_loads", "Moves loads that a loop repeats with the same outcome to before the loop."),
    ("keep", "Finds allocations that may stay alive until the reverse sweep has ended; later defers their frees."),
    ("effects", "Finds which memory may have changed when the reverse sweep comes back to a load."),
    ("activity", "Finds which values carry a derivative and which objects have a shadow."),
    ("liveness", "Finds the blocks that the reverse sweep visits: those from which the function returns well."),
    ("bits", "Finds derivatives that would get lost in integer arithmetic."),
    ("refusals", "Raises all that cannot be differentiated, before any code is generated."),
    ("parallel.sharing", "Finds how the lanes of a parallel loop share shadows."),
    ("forward", "Builds the augmented primal: a copy with shadow pointers next to the pointers."),
    ("reverse.generate", "Builds the reverse sweep, with a placeholder for each primal value it needs."),
    ("agreement.pinned", "Finds what must not be computed again, since both sweeps have to decide alike."),
    ("plan", "Chooses by a minimum cut which needed values are saved and which are recomputed."),
    ("materialise", "Carries the plan out: saves in the forward sweep, loads and recomputed code in the reverse."),
    ("alias_scopes", "Tells LLVM which accesses never touch the same bytes."),
    ("instrument.meter", "On request, counts the bytes of the tape while they are allocated, place by place."),
    ("instrument.watch", "In debug mode, looks for NaNs, infinities and ties behind each operation of both sweeps."),
    ("held", "On request, finds the references that are held where the forward sweep may be left."),
    ("exhaustion", "Checks every tape allocation and leaves the forward sweep when one failed."),
    ("agreement.check", "On request, checks that the reverse sweep decides nothing by numbers that it rounds itself."),
    ("promises", "Raises where a callee stores active values in what was passed as constant."),
    ("parallel.launch", "Writes the functions that run parallel loops in lanes."),
    ("parallel.bulk", "Clears and copies arrays outside parallel loops with all threads."),
)
"""(module of `irad.passes`, purpose) in the order in which `derivative.generate` uses them."""
