"""What irad generates for a function, stopped before the plan is carried out.

Input   a dispatcher, argument types, a task.
Output  `Capture`: for the entry and each callee with a derivative a `GeneratedPair`: both sweeps as objects of
        `irad.ir`, and the plan. The reverse sweep still has placeholders for what it needs of the forward sweep.
Method  the steps of `irad.driver.derive`, with the same request, rules and passes; the text is not printed, and
        nothing is compiled. So what is rendered is what the compiled gradient is made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irad.frontend.calls.task import Task
from irad.frontend.derivation import generated
from irad.frontend.numba.cpu import NumbaProgram
from irad.frontend.values.abi import Argument
from irad.ir.module import Module
from irad.passes.generated import GeneratedPair


@dataclass(frozen=True, slots=True)
class Capture:
    """A whole derivative; the pair of the entry comes first."""

    program: NumbaProgram
    arguments: tuple[Argument, ...]
    return_type: Any
    module: Module
    pairs: tuple[GeneratedPair, ...]


def capture(dispatcher: Any, argument_types: tuple[Any, ...], task: Task) -> Capture:
    """Runs irad up to the plan.

    Raises:
        IradError: the function cannot be compiled or differentiated.
    """
    wanted, module, made = generated(dispatcher, argument_types, task, "plan.plan")
    return Capture(wanted.program, wanted.arguments, wanted.return_type, module, tuple(made.pairs))
