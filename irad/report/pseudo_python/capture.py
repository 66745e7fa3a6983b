"""What irad generates for a function, stopped before the plan is carried out.

Input   a dispatcher, argument types, a task.
Output  `Capture`: for the entry and each callee with a derivative a `CapturedPair`: both sweeps as objects of
        `irad.ir`, and the plan. The reverse sweep still has placeholders for what it needs of the forward sweep.
Method  the steps of `irad.driver.derive`, with the same request, rules and passes; the text is not printed, and
        nothing is compiled. So what is rendered is what the compiled gradient is made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irad.frontend.abi import Argument
from irad.frontend.annotations import Task
from irad.frontend.derivation import generated
from irad.frontend.numba_cpu import Program
from irad.ir.module import Module
from irad.passes.derivative import GeneratedPair
from irad.passes.forward import Forward, build_forward
from irad.passes.plan import Plan, make_plan
from irad.passes.program import Pair
from irad.passes.program import Program as DerivedProgram
from irad.passes.recipes import Recipes
from irad.passes.reverse.control import ForwardLoops
from irad.passes.reverse.generate import generate_reverse
from irad.passes.reverse.sweep import Sweep
from irad.passes.unit import Unit


@dataclass(frozen=True, slots=True)
class CapturedPair:
    """Both sweeps of a function and the plan that was made for them."""

    pair: Pair
    forward: Forward
    sweep: Sweep
    loops: ForwardLoops
    recipes: Recipes
    plan: Plan


@dataclass(frozen=True, slots=True)
class Capture:
    """A whole derivative; the pair of the entry comes first."""

    program: Program
    arguments: tuple[Argument, ...]
    return_type: Any
    module: Module
    pairs: tuple[CapturedPair, ...]


def capture(dispatcher: Any, argument_types: tuple[Any, ...], task: Task) -> Capture:
    """Runs irad up to the plan.

    Raises:
        IradError: the function cannot be compiled or differentiated.
    """
    made: list[CapturedPair] = []

    def keep(derived: DerivedProgram, unit: Unit, pair: Pair) -> GeneratedPair:
        found = _sweeps(derived, unit, pair)
        made.append(found)
        return GeneratedPair(pair, unit, found.plan, found.forward, ())

    wanted, module = generated(dispatcher, argument_types, task, keep)
    return Capture(wanted.program, wanted.arguments, wanted.return_type, module, tuple(made))


def _sweeps(derived: DerivedProgram, unit: Unit, pair: Pair) -> CapturedPair:
    """As `irad.passes.derivative.generate_pair`, without storage."""
    forward = build_forward(derived, unit, pair)
    sweep, loops = generate_reverse(forward)
    recipes = Recipes.of(sweep, loops)
    plan = make_plan(forward, recipes, (need.value for need in sweep.needs if need.placeholder.users))
    return CapturedPair(pair, forward, sweep, loops, recipes, plan)
