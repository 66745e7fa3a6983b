"""Jacobians in device code: all columns beside one run of the function, of numbers and tuples of numbers.

value, columns = pushforward_of_f(((1.0, 0.0), (0.0, 1.0)), x, y)
return ((columns[0][0], columns[1][0]), (columns[0][1], columns[1][1]))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from irad.api.forward import batched_pushforward
from irad.api.jacobians.structure import Part, Structure
from irad.errors import UnsupportedError
from irad.frontend.calls.definition import Returned
from irad.frontend.calls.signature import without_aux
from irad.frontend.calls.task import Returns
from irad.frontend.generated import function_from
from irad.frontend.numba.cpu import location_of
from irad.frontend.values.abi import arguments_of


def device_code(primal: Any, task: Any, given: tuple[Any, ...], returned: Returned) -> Callable[..., Any]:
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
            "its columns are those of real numbers there",
            location_of(function),
        )
    return _written(primal, task, structure)


def _written(primal: Any, task: Any, structure: Structure) -> Callable[..., Any]:
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
        f"def {task.kind}({names}):\n"
        f"    irad_value, irad_columns{aux} = irad_push(({lanes}), {names})\n"
        f"    return {value}{result}{aux}\n"
    )
    push = batched_pushforward(primal, task.argnums, width, task.has_aux, options=task.options)
    return function_from(task.kind, source, f"irad.{task.kind}", {"irad_push": push, **structure.scope})


def _of_arrays(function: Callable[..., Any], what: str) -> UnsupportedError:
    name = function.__qualname__
    return UnsupportedError(
        f"the Jacobian of {name} in device code {what}",
        f"(a) pass and return the numbers as a tuple or (b) irad.jvp({name}, …), for each column, or (c) "
        f"irad.autodiff(irad.Reverse, {name}, irad.Duplicated(…), …), for each row",
        "device code cannot make arrays, and how many elements one has is not known when it is compiled",
        location_of(function),
    )
