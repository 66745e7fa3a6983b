"""The identity transform: a Numba function goes to LLVM text, to objects and back, and returns as a callable.

It does nothing, and everything between Python and irad's passes takes part in it: whatever it breaks, a derivative
would break. Its tests are the acceptance test of the front end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irad.frontend.numba import internals
from irad.frontend.numba.cpu import load_program
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.kernel.operations import give_bodies
from irad.passes.subscripts.dimensions import take_dimensions
from tests.tools.text_dispatcher import Generated, TextDispatcher


def round_trip(text: str) -> str:
    """LLVM text to objects and back, without the marks that irad's own passes take away.

    Where a derivative calls a rule, a function calls what the rule stands for: of `irad.stop_gradient` that is its
    argument. The front end has such calls in place of some functions of NumPy, as of `np.var`.
    """
    module = parse_module(text)
    take_dimensions(module)
    give_bodies(module)
    return print_module(module)


def identity(dispatcher: Any, transform: Callable[[str], str] = round_trip) -> TextDispatcher:
    """A dispatcher that behaves as the given one and is made from its LLVM text.

    Args:
        dispatcher: any ``CPUDispatcher``; it is not changed.
        transform: applied to the text of each specialisation.
    """

    def generate(arguments: tuple[Any, ...]) -> Generated:
        program = load_program(dispatcher, arguments)
        return Generated(
            transform(program.text), program.entry, program.signature, program.environments, alive=(program,)
        )

    copy = TextDispatcher(dispatcher.py_func, generate, dict(dispatcher.targetoptions))
    if not internals.takes_new_types(dispatcher):
        for arguments in dispatcher.overloads:
            copy.compile(arguments)
        copy.disable_compile()
    return copy
