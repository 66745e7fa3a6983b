"""Everything that keeps a function from being differentiated, collected instead of raised, without running it.

Input   a dispatcher, the Numba types of a call, the positions to differentiate with respect to.
Output  the errors, each with its place and remedy.
Method  arguments that cannot be differentiated are noted and left out, so that the program is still analysed.
"""

from __future__ import annotations

from collections.abc import Iterator

from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.types import Type

from irad.errors import InternalError, IradError, UnsupportedProgram
from irad.frontend.calls.signature import check_arguments, may_have_derivative, without_derivative
from irad.frontend.calls.task import Role, Seed, Task
from irad.frontend.custom import rule_plugins
from irad.frontend.derivation import derivation_of
from irad.frontend.numba.cpu import load_program
from irad.frontend.numba.private import compiler_lock
from irad.frontend.values import abi
from irad.frontend.values.abi import Argument
from irad.frontend.values.tree import LeafKind
from irad.options import Options


def default_positions(dispatcher: Dispatcher, argument_types: tuple[Type, ...]) -> tuple[int, ...]:
    """The arguments of a call that hold floats in any form."""
    arguments = abi.arguments_of(dispatcher.py_func, argument_types)
    return tuple(argument.position for argument in arguments if may_have_derivative(argument))


def problems_of(
    dispatcher: Dispatcher, argument_types: tuple[Type, ...], positions: tuple[int, ...], options: Options
) -> tuple[IradError, ...]:
    """Problems of a derivative; nothing is compiled to machine code or run.

    Args:
        dispatcher: the primal.
        argument_types: Numba types, one per parameter, star arguments as one tuple.
        positions: positions of arguments to differentiate with respect to; empty if no argument holds floats.
        options: options of the derivative.

    Raises:
        InternalError: irad itself is at fault.
        numba.core.errors.ForceLiteralArg: Numba asks for literal types of some arguments; call again with those.
    """
    found: dict[str, IradError] = {}
    for error in _problems(dispatcher, argument_types, positions, options):
        if isinstance(error, InternalError):
            raise error
        found.setdefault(str(error), error)
    return tuple(found.values())


def _problems(
    dispatcher: Dispatcher, argument_types: tuple[Type, ...], positions: tuple[int, ...], options: Options
) -> Iterator[IradError]:
    arguments = abi.arguments_of(dispatcher.py_func, argument_types)
    if not positions:
        yield without_derivative(dispatcher, arguments)
    good = []
    for position in positions:
        try:
            check_arguments(dispatcher, arguments, Task(((position, Role.GRADIENT),)))
            good.append(position)
        except IradError as error:
            yield error
    try:
        with compiler_lock():
            rule_plugins.load()
            returned = load_program(
                dispatcher, argument_types, checks=options.boundscheck, promotes=options.promotes
            ).signature.return_type
            if good:
                seed = _seed(arguments, good, returned)
                roles = tuple((position, Role.GRADIENT) for position in good)
                derivation_of(
                    dispatcher, argument_types, Task(roles, seed, options=options, lends_shadows=seed is Seed.GIVEN)
                )
    except UnsupportedProgram as several:
        yield from several.errors
    except IradError as error:
        yield error


def _seed(arguments: tuple[Argument, ...], positions: list[int], returned: Type) -> Seed:
    """For a function that returns nothing, differentiates the contents of its arrays, as `irad.autodiff` does."""
    has_arrays = any(leaf.kind is LeafKind.ARRAY for position in positions for leaf in arguments[position].leaves)
    return Seed.NONE if returned == types.none and has_arrays else Seed.GIVEN
