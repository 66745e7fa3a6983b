"""The code of a Jacobian for the types of one call, on the CPU and in device code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numba.core import types
from numba.core.registry import CPUDispatcher
from numba.core.types import Type

from irad.api.closures import PullbackType, TapeType, pullback_maker
from irad.api.forward import batched_pushforward
from irad.api.jacobians.source import Columns, Rows, indented
from irad.api.jacobians.structure import Part, Place, Structure, places_in
from irad.api.jacobians.task import JacobianTask, Mode, call_of
from irad.api.specialised import Written, share_memory
from irad.api.vjp import augmented_of
from irad.errors import NoRuleError, SignatureError, UnsupportedError, UnsupportedProgram
from irad.frontend.calls.definition import Returned
from irad.frontend.calls.dispatcher import DerivativeDispatcher, parameter_names
from irad.frontend.calls.separate_dispatcher import returned_type
from irad.frontend.calls.signature import without_aux
from irad.frontend.calls.task import Returns
from irad.frontend.derivation import Derivation, derivation_of
from irad.frontend.generated import function_from
from irad.frontend.memory.arrays import shadow_like
from irad.frontend.numba import private
from irad.frontend.numba.messages import described, location_of
from irad.frontend.numba.private import shadow
from irad.frontend.numba.target import typing_context
from irad.frontend.values.abi import Argument, arguments_of
from irad.frontend.values.tree import Content

# Jacobians in device code: all columns beside one run of the function, of numbers and tuples of numbers.
#
# value, columns = pushforward_of_f(((1.0, 0.0), (0.0, 1.0)), x, y)
# return ((columns[0][0], columns[1][0]), (columns[0][1], columns[1][1]))


def device_code(primal: CPUDispatcher, task: Any, given: tuple[Type, ...], returned: Returned) -> Callable[..., Any]:
    """The function that computes a Jacobian in device code, for the types of its arguments.

    Args:
        primal: the dispatcher of the function.
        task: a `JacobianTask`.
        given: the types of the arguments.
        returned: the type of what a function returns there.

    Raises:
        UnsupportedError: there are arrays among the arguments or results.
    """
    function = primal.py_func
    if task.returns is Returns.VALUE or task.outputs:
        raise _of_arrays(function, "is to be written to arrays")
    kind, arguments = returned(primal, given), arguments_of(function, given)
    if task.has_aux:
        if len(getattr(kind, "types", ())) != 2:
            raise without_aux(primal, kind)
        kind = kind.types[0]
    types_by_position = {argument.position: argument.type for argument in arguments}
    structure = Structure(function, kind, types_by_position, task.argnums, task.single, task.holomorphic)
    if any(part.is_array for part in (*structure.inputs, *structure.outputs)):
        raise _of_arrays(function, "takes or returns arrays")
    if any(part.is_complex for part in (*structure.inputs, *structure.outputs)):
        raise UnsupportedError(
            f"the Jacobian of {function.__qualname__} in device code is one of complex numbers",
            "pass and return their real and imaginary parts",
            "in device code each column of a Jacobian belongs to a real number",
            location_of(function),
        )
    return _written(primal, task, structure)


def _written(primal: CPUDispatcher, task: Any, structure: Structure) -> Callable[..., Any]:
    parameters = inspect.signature(primal.py_func).parameters.values()
    names = ", ".join(f"*{each.name}" if each.kind is each.VAR_POSITIONAL else each.name for each in parameters)
    width = len(structure.inputs)

    def direction(lane: int) -> str:
        def tangent(part: Part) -> str:
            return "1.0" if part.number == lane else "0.0"

        return structure.of_arguments(tangent, always_tuple=True)

    lanes = "".join(f"{direction(lane)}, " for lane in range(width))
    result = structure.result(lambda block: block.output.of(f"irad_columns[{block.input.number}]"))
    aux = ", irad_aux" * task.has_aux
    value = "irad_value, " if task.returns is Returns.VALUE_AND_GRADIENT else ""
    source = (
        f"def {task.key}({names}):\n"
        f"    irad_value, irad_columns{aux} = irad_push(({lanes}), {names})\n"
        f"    return {value}{result}{aux}\n"
    )
    push = batched_pushforward(primal, task.argnums, width, task.has_aux, options=task.options)
    return function_from(task.key, source, f"irad.{task.key}", {"irad_push": push, **structure.scope})


def _of_arrays(function: Callable[..., Any], what: str) -> UnsupportedError:
    name = function.__qualname__
    return UnsupportedError(
        f"the Jacobian of {name} in device code {what}",
        f"(a) pass and return the numbers as a tuple or (b) irad.jvp({name}, …), for each column, or (c) "
        f"irad.autodiff(irad.Reverse, {name}, irad.Duplicated(…), …), for each row",
        "device code cannot create arrays, and their sizes are not known when it is compiled",
        location_of(function),
    )


# What a Jacobian is computed from: a function, what is asked for, and the types of the arguments.

_WIDTH: Final = 8


def _at_once(wanted: int, parts: Sequence[Part], directions: Callable[[Part], int]) -> int:
    """Number of directions taken at once: not more than there are, if that is known."""
    return wanted if any(part.is_array for part in parts) else max(1, min(wanted, sum(map(directions, parts))))


class Call:
    """A Jacobian for arguments of some types.

    Attributes:
        repetition: why the function is run more than once, in words.

    Args:
        primal: the dispatcher of the function.
        task: description of the request.
        given_types: those of what the task takes first, and one for each parameter.
    """

    repetition = "forward mode runs it for each column"

    def __init__(self, primal: CPUDispatcher, task: JacobianTask, given_types: tuple[Type, ...]) -> None:
        count = len(task.leading)
        self.primal, self.task, self.argument_types = primal, task, given_types[count:]
        self._leading_types = given_types[:count]
        self.function = primal.py_func
        self.parameters = parameter_names(self.function)
        self.arguments = arguments_of(self.function, self.argument_types)
        self.names = {argument.position: argument.name for argument in self.arguments}
        self.call = call_of(self.function)
        self._is_differentiated = private.shadow().refuses_pullbacks
        for position in task.outputs:
            self._check_output(position)

    def _check_output(self, position: int) -> None:
        kind = self.argument_types[position]
        if isinstance(kind, types.Array):
            return
        raise SignatureError(
            f"outputs={position} names argument {position} ({self.parameters[position]}) of "
            f"{self.function.__qualname__}, which is {described(kind)}",
            "name the arrays that the function writes its results to",
            "outputs= selects arrays whose final contents are differentiated",
            location_of(self.function),
        )

    @cached_property
    def structure(self) -> Structure:
        """The blocks of the Jacobian, by parts of the result and of the arguments."""
        return_type = returned_type(self.primal, self.argument_types, self.task.options)
        if self.task.has_aux:
            if not isinstance(return_type, types.BaseTuple) or len(return_type.types) != 2:
                raise without_aux(self.primal, return_type)
            return_type = return_type.types[0]
        kinds = {argument.position: argument.type for argument in self.arguments}
        task = self.task
        return Structure(self.function, return_type, kinds, task.argnums, task.single, task.holomorphic)

    @cached_property
    def places(self) -> Mapping[str, Place]:
        """Arrays of the caller that the Jacobian is written to."""
        return {name: place for kind in self._leading_types for name, place in places_in(self.structure, kind).items()}

    @property
    def arrays(self) -> list[str]:
        """Expressions for all arrays among the arguments."""
        return [self._at(a, leaf) for a in self.arguments for leaf in a.leaves if leaf.is_array]

    @staticmethod
    def _at(argument: Argument, leaf: Content) -> str:
        return Part(0, argument.position, leaf.path, leaf.type).of(argument.name)

    @cached_property
    def width(self) -> int:
        """Number of columns that forward mode computes in each run."""
        width = _at_once(self.task.chunk or _WIDTH, self.structure.inputs, self.structure.input_directions)
        return width if width == 1 or self.task.chunk is not None or self._takes(width) else 1

    def _takes(self, width: int) -> bool:
        """True if all rules can be called for ``width`` directions: some overwrite scratch memory once for each run."""
        try:
            self._derivation_of(self._push_of(width))
        except NoRuleError:
            return False
        except UnsupportedProgram as several:
            return not any(isinstance(each, NoRuleError) for each in several.errors)
        return True

    @property
    def row_width(self) -> int:
        """Number of rows that reverse mode computes in each sweep."""
        return _at_once(self.task.chunk or 1, self.structure.outputs, self.structure.output_directions)

    @cached_property
    def push(self) -> DerivativeDispatcher:
        """The pushforward."""
        return self._push_of(self.width)

    def _push_of(self, width: int) -> DerivativeDispatcher:
        options, argnums = self.task.options, self.task.argnums
        aux = self.task.has_aux
        found: DerivativeDispatcher = batched_pushforward(
            self.primal, argnums, width, aux, options=options, shows_zeros=self.task.shows_zeros
        )
        return found

    @cached_property
    def derivation(self) -> Derivation:
        """Derivation of the pushforward as it is called by itself, even if the Jacobian is to be differentiated."""
        return self._derivation_of(self.push)

    def _derivation_of(self, push: DerivativeDispatcher) -> Derivation:
        assert push.task is not None
        with shadow().suspended() if shadow().is_here() else nullcontext():
            return derivation_of(self.primal, self.argument_types, push.task)

    def may_have_zeros_that_are_not_strong(self, mode: Mode | None) -> bool:
        """As that of the derivation that is used in a mode."""
        used = self.reverse()[1] if (mode or self.known_mode) == "reverse" else self.derivation
        return used.may_have_zeros_that_are_not_strong

    @property
    def repeats(self) -> bool:
        """As that of the derivation."""
        return self.derivation.repeats

    def restored(self) -> list[str]:
        """Expressions for the arrays that are restored before each run.

        Raises:
            UnsupportedError: the function cannot be run again and again.
        """
        return [at for at, _ in self.written(self.derivation)]

    def written(self, derivation: Derivation) -> list[tuple[str, Any]]:
        """Expressions for the arrays that the function writes to, and their types.

        Raises:
            UnsupportedError: the function cannot be run again and again.
        """
        self.check_repeats(derivation)
        return [
            (self._at(argument, leaf), leaf.type)
            for argument in derivation.arguments
            for leaf in argument.leaves
            if leaf.is_array and leaf.data_index in derivation.compiled.written
        ]

    def check_repeats(self, derivation: Derivation) -> None:
        """Checks that the function can be run again and again.

        Raises:
            UnsupportedError: it cannot.
        """
        if not derivation.repeats and self._is_differentiated:
            raise UnsupportedError(
                f"a Jacobian of {self.function.__qualname__} is differentiated, but the function has side effects",
                "draw random numbers outside, and pass them as an argument",
                "such a Jacobian is computed by columns, with one run of the function for each; this function draws "
                "random numbers, "
                "or changes a list, an object, a record or memory that is not an argument",
                location_of(self.function),
            )
        if not derivation.repeats:
            raise UnsupportedError(
                f"{self.function.__qualname__} has side effects, and {self.repetition}",
                'irad.jacobian(f), with no mode or mode="reverse", which runs the function once',
                "it draws random numbers, or changes a list, an object, a record or memory that is not an argument",
                location_of(self.function),
            )

    def columns(self, *, decides: bool = False, is_flagged: bool = False) -> Written:
        """Code for forward mode."""
        structure = self.structure
        code = Columns(
            structure,
            self.names,
            self.restored(),
            decides=decides,
            is_flagged=is_flagged,
            returns=self.task.returns,
            has_aux=self.task.has_aux,
            places=self.places,
            arrays=self.arrays,
            width=self.width,
        )
        return self.code(code.lines(self.call), {"irad_push": self.push, "irad_shadow_like": shadow_like})

    def rows(self, *, is_flagged: bool = False) -> Written:
        """Code for reverse mode; where it is differentiated, for forward mode, which has no tape."""
        if self._is_differentiated:
            return self.columns(is_flagged=is_flagged)
        code = Rows(
            self.structure,
            self.names,
            is_flagged=is_flagged,
            returns=self.task.returns,
            has_aux=self.task.has_aux,
            places=self.places,
            arrays=self.arrays,
            width=self.row_width,
        )
        scope, _ = self.reverse()
        return self.code(code.lines(self.call, ", ".join(self.parameters)), scope)

    def reverse(self) -> tuple[dict[str, object], Derivation]:
        """The forward sweep and the maker of its pullback, by their names in code; and the derivation of both."""
        options, shows = self.task.options, self.task.shows_zeros
        if shows:  # zero times infinity times zero is the right zero for a gradient
            options = replace(options, zero_times_infinity="zero")
        forward = augmented_of(self.primal, options, self.task.argnums, self.row_width, shows_zeros=shows)
        given = tuple(argument.type for argument in self.arguments)  # those collected by a star one by one
        signature = typing_context().resolve_function_type(types.Dispatcher(forward), given, {})
        assert isinstance(signature.return_type, types.BaseTuple)
        arguments, value = types.BaseTuple.from_types(tuple(self.argument_types)), signature.return_type.types[1]
        alive = types.BaseTuple.from_types((arguments, value))
        number = forward.number_of(signature.args)
        make = pullback_maker(PullbackType(TapeType(forward, number, alive)))
        return {"irad_augmented": forward, "irad_make": make}, forward.specialisations[number].derive()

    def first(self) -> Written:
        """Code that returns a Jacobian and whether it is complete: it is not if reverse mode is better."""
        if self.known_mode == "reverse":
            return self.rows(is_flagged=True)
        return self.columns(decides=self.known_mode is None, is_flagged=True)

    def either(self, first: DerivativeDispatcher, rows: DerivativeDispatcher) -> Written:
        """Code for both."""
        if self._is_differentiated:
            return self.columns()
        call = ", ".join([*self.task.leading, self.call])
        lines = [f"irad_found, irad_is_complete = irad_first({call})"]
        if self.known_mode is None:
            lines += ["if not irad_is_complete:", f"    irad_found = irad_rows({call})"]
        return self.code([*lines, "return irad_found"], {"irad_first": first, "irad_rows": rows})

    @cached_property
    def known_mode(self) -> Mode | None:
        """The mode; None if it depends on the shapes of arrays."""
        if self._is_differentiated:
            return "forward"
        structure = self.structure
        inputs = [part.is_array for part in structure.inputs]
        outputs = [part.is_array for part in structure.outputs]
        if not any(outputs) and (any(inputs) or len(inputs) > len(outputs)):
            return "reverse"
        if not self.repeats:
            return "reverse"
        return None if any(inputs) else "forward"

    def code(self, lines: Iterable[str], scope: Mapping[str, object]) -> Written:
        """The code of a function body, with the global names that it needs in any case."""
        body = "".join(f"{line}\n" for line in indented(lines))
        fixed = {"irad_np": np, "irad_misfit": SignatureError, "irad_share_memory": share_memory}
        return body, {**fixed, **self.structure.scope, **scope}
