"""`jacobian` and `value_and_jacobian`.

A Jacobian is a Numba dispatcher, as gradients are. Its code is Python code written for the types of a call, which calls
a pushforward (`columns`) or a pullback (`rows`); these are compiled lazily, where Python calls it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
from numba import njit
from numba.core import types

from irad.api.bound import BoundDerivative, bound_method
from irad.api.forward import batched_pushforward
from irad.api.functions import check_options, check_positions, chosen, options_or_default, primal_of, remembered
from irad.api.inside.pullback_value import PullbackType, TapeType, pullback_maker
from irad.api.jacobians.columns import Columns
from irad.api.jacobians.rows import Rows
from irad.api.jacobians.specialised import Written, shadow_like, specialised
from irad.api.jacobians.structure import Part, Structure
from irad.api.jacobians.writing import indented
from irad.api.separate.vjp import forward_of
from irad.errors import SignatureError, UnsupportedError
from irad.frontend.calls.dispatcher import DerivativeDispatcher, make_wrapper, parameter_names
from irad.frontend.calls.pullback import returned_type
from irad.frontend.calls.raising import public
from irad.frontend.derivation import Derivation, derivation_of
from irad.frontend.generated import function_from
from irad.frontend.numba.boxing import with_numpy_numbers
from irad.frontend.numba.cpu import location_of
from irad.frontend.numba.target import typing_context
from irad.frontend.values.abi import arguments_of
from irad.options import Options

Mode: TypeAlias = Literal["forward", "reverse"]

_WIDTH: Final = 8


@public
def jacobian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    mode: Mode | None = None,
    chunk: int | None = None,
    outputs: int | Sequence[int] | None = None,
    holomorphic: bool | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """All partial derivatives of what a function returns.

    The result takes the arguments of ``f``. For an array that ``f`` returns, and an array ``argnums``, it is an array
    of the shape ``(*value.shape, *argument.shape)``; numbers have the shape ``()``. Tuples have a Jacobian for each
    entry, first those of the value, then those of the arguments; None stands for what has no derivative. dtypes are
    those of NumPy's arithmetic for value and argument.

    Columns are computed by forward mode, with a run of the function for each ``chunk`` of the numbers that are
    differentiated; rows by reverse mode, with one run, and a reverse sweep for each number that is returned.

    Complex numbers: the derivative of a complex number with respect to a real one is complex; that of a real number
    with respect to a complex one is d/dRe + i·d/dIm, as that of `irad.grad`. For complex functions of complex numbers a
    convention has to be chosen: ``holomorphic=True`` gives df/dz; it is up to you that ``f`` is complex differentiable.
    ``holomorphic=False`` gives a pair: the derivatives with respect to z and to its conjugate.

    Args:
        f: the function, as in `irad.grad`; it may return numbers, arrays and tuples of these.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        mode: "forward" or "reverse"; None: forward, unless there are fewer numbers in the value than in the arguments,
            or the function has side effects: it draws random numbers, changes lists or objects.
        chunk: how many columns forward mode computes in each run of the function, 8 unless given.
        outputs: the position, or positions, of arrays that ``f`` writes its results to: it is their final content that
            is differentiated, and not what ``f`` returns.
        holomorphic: as above.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        A callable; for a tuple of ``argnums`` it returns a tuple of Jacobians in place of each.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or has no argument at that position.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def polar(p):
        ...     return np.array([p[0] * np.cos(p[1]), p[0] * np.sin(p[1])])
        >>> irad.jacobian(polar)(np.array([2.0, 0.0]))
        array([[1., 0.],
               [0., 2.]])
        >>> @njit
        ... def differences(out, x):
        ...     for i in range(out.size):
        ...         out[i] = x[i + 1] - x[i]
        >>> irad.jacobian(differences, argnums=1, outputs=0)(np.empty(2), np.ones(3))
        array([[-1.,  1.,  0.],
               [ 0., -1.,  1.]])
    """
    return _derivative("jacobian", f, chosen(f, argnums, argnames), mode, chunk, outputs, holomorphic, options)


@public
def value_and_jacobian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    mode: Mode | None = None,
    chunk: int | None = None,
    outputs: int | Sequence[int] | None = None,
    holomorphic: bool | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The value of a function and its Jacobian; see `jacobian`.

    Returns:
        A callable that returns ``(value, jacobian)``.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def squares(x):
        ...     return x * x
        >>> irad.value_and_jacobian(squares)(np.array([1.0, 3.0]))
        (array([1., 9.]), array([[2., 0.],
               [0., 6.]]))
    """
    where = chosen(f, argnums, argnames)
    return _derivative("value_and_jacobian", f, where, mode, chunk, outputs, holomorphic, options)


def _derivative(
    kind: str,
    f: Callable[..., Any],
    argnums: int | Sequence[int],
    mode: Mode | None,
    chunk: int | None,
    outputs: int | Sequence[int] | None,
    holomorphic: bool | None,
    options: Options | None,
) -> Any:
    method = bound_method(f)
    if method is not None:
        shifted = None if outputs is None else method.positions(outputs)
        found = _derivative(
            kind, method.function, method.positions(argnums), mode, chunk, shifted, holomorphic, options
        )
        return BoundDerivative(found, method.instance)
    primal = primal_of(f)
    check_options(options)
    _check_mode(primal, mode, chunk)
    positions, single = check_positions(primal, argnums), not isinstance(argnums, Sequence)
    task = JacobianTask(kind, positions, single, chunk, holomorphic, options_or_default(options))
    target = primal if outputs is None else _returning(primal, outputs)
    rebuild = (_derivative, (kind, f, argnums, mode, outputs, holomorphic, task.options))
    return remembered(target, (task, mode), lambda: _build(target, task, mode, rebuild))


def _check_mode(primal: Any, mode: Any, chunk: Any) -> None:
    if mode is not None and mode not in get_args(Mode):
        raise SignatureError(
            f"mode={mode!r} is not a mode of irad.jacobian",
            '(a) mode="forward" or (b) mode="reverse" or (c) leave it out',
            "forward mode computes columns of the Jacobian, reverse mode rows",
            location_of(primal.py_func),
        )
    if chunk is not None and (type(chunk) is not int or chunk < 1):
        raise SignatureError(
            f"chunk={chunk!r} is not a number of columns",
            "pass a positive int, or leave it out",
            "forward mode computes as many columns in each run of the function",
            location_of(primal.py_func),
        )


def _returning(primal: Any, outputs: int | Sequence[int]) -> Any:
    """A function that does the same, and returns some of its arguments."""
    positions, single = check_positions(primal, outputs), not isinstance(outputs, Sequence)
    function = primal.py_func
    names = parameter_names(function)

    def build() -> Any:
        listing = ", ".join(str(parameter).split(":")[0].split("=")[0] for parameter in _parameters(function))
        call = ", ".join(f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in _parameters(function))
        given = names[positions[0]] if single else f"({''.join(names[p] + ', ' for p in positions)})"
        source = f"def {function.__name__}({listing}):\n    irad_f({call})\n    return {given}\n"
        made: Any = function_from(
            function.__name__, source, f"irad.jacobian of {function.__qualname__}", {"irad_f": primal}
        )
        made.__qualname__, made.__defaults__, made.__wrapped__ = function.__qualname__, function.__defaults__, function
        return njit(nogil=bool(primal.targetoptions.get("nogil")))(made)

    return remembered(primal, ("returning", positions, single), build)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


@dataclass(frozen=True, slots=True)
class JacobianTask:
    """What a Jacobian is taken of, and how it is returned, free of types and modes."""

    kind: str
    argnums: tuple[int, ...]
    single: bool
    chunk: int | None
    holomorphic: bool | None
    options: Options

    @property
    def returns_value(self) -> bool:
        """Whether the value is returned as well."""
        return self.kind != "jacobian"

    def python_type(self, result: Any) -> Any:
        """As what Python is given a result: derivatives in single precision stay NumPy scalars."""
        if not self.returns_value:
            return with_numpy_numbers(result)
        return types.Tuple((result.types[0], with_numpy_numbers(result.types[1])))


class JacobianDispatcher(DerivativeDispatcher):
    """A compiled Jacobian. Python calls rows only where they are the better choice; compiled code has both."""

    lazy: tuple[DerivativeDispatcher, DerivativeDispatcher] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The Jacobian at these arguments.

        Raises:
            SignatureError: the arguments do not fit the function's parameters.
        """
        if self.lazy is None:
            return super().__call__(*args, **kwargs)
        found, is_complete = self.lazy[0](*args, **kwargs)
        return found if is_complete else self.lazy[1](*args, **kwargs)


def _build(primal: Any, task: JacobianTask, mode: Mode | None, rebuild: tuple[Any, ...]) -> JacobianDispatcher:
    names = parameter_names(primal.py_func)

    def make(write: Callable[[_Call], Written], *, is_partial: bool = False) -> JacobianDispatcher:
        call = specialised(task.kind, names, lambda argument_types: write(_Call(primal, task, argument_types)))
        wrapper = make_wrapper(task.kind, primal.py_func, [], "irad_call({arguments})", call)
        python_type = task.python_type if not is_partial else lambda result: _first_of(result, task)
        return JacobianDispatcher(wrapper, call, primal, task.kind, rebuild, python_type)

    if mode == "forward":
        return make(lambda call: call.columns())
    if mode == "reverse":
        return make(lambda call: call.rows())
    first, rows = make(lambda call: call.first(), is_partial=True), make(lambda call: call.rows())
    whole = make(lambda call: call.either(first, rows))
    whole.lazy = first, rows
    return whole


def _first_of(result: Any, task: JacobianTask) -> Any:
    return types.Tuple((task.python_type(result.types[0]), result.types[1]))


class _Call:
    """A Jacobian for arguments of some types.

    Args:
        primal: the dispatcher of the function.
        task: what is asked for.
        argument_types: one for each parameter.
    """

    def __init__(self, primal: Any, task: JacobianTask, argument_types: tuple[Any, ...]) -> None:
        self.primal, self.task, self.argument_types = primal, task, argument_types
        self.function = primal.py_func
        self.parameters = parameter_names(self.function)
        self.arguments = arguments_of(self.function, argument_types)
        self.names = {argument.position: argument.name for argument in self.arguments}
        self.call = ", ".join(str(p).split(":")[0].split("=")[0] for p in _parameters(self.function))

    @cached_property
    def structure(self) -> Structure:
        """Of the Jacobian."""
        return_type = returned_type(self.primal, self.argument_types, self.task.options)
        kinds = {argument.position: argument.type for argument in self.arguments}
        task = self.task
        return Structure(self.function, return_type, kinds, task.argnums, task.single, task.holomorphic)

    @cached_property
    def width(self) -> int:
        """How many columns forward mode computes in each run."""
        wanted, parts = self.task.chunk or _WIDTH, self.structure.inputs
        if any(part.is_array for part in parts):
            return wanted
        return max(1, min(wanted, sum(map(self.structure.input_directions, parts))))

    @cached_property
    def push(self) -> DerivativeDispatcher:
        """The pushforward."""
        options, argnums = self.task.options, self.task.argnums
        found: DerivativeDispatcher = batched_pushforward(self.primal, argnums, self.width, options=options)
        return found

    @cached_property
    def derivation(self) -> Derivation:
        """Of the pushforward."""
        assert self.push.task is not None
        return derivation_of(self.primal, self.argument_types, self.push.task)

    @property
    def repeats(self) -> bool:
        """Whether each run with the same content of the arrays does the same."""
        compiled = self.derivation.compiled
        leaves = [leaf for argument in self.derivation.arguments for leaf in argument.leaves]
        draws = any(isinstance(leaf.type, types.NumPyRandomGeneratorType) for leaf in leaves)
        changes = any(leaf.data_index in compiled.written and not leaf.is_array for leaf in leaves)
        return not (draws or changes or compiled.writes_elsewhere)

    def columns(self, *, decides: bool = False, is_flagged: bool = False) -> Written:
        """Code for forward mode.

        Raises:
            UnsupportedError: the function cannot be run again and again.
        """
        structure = self.structure
        if not self.repeats:
            raise UnsupportedError(
                f"{self.function.__qualname__} has side effects, and forward mode runs it for each column",
                'leave out mode, or mode="reverse", which runs the function once',
                "it draws random numbers, or changes a list, an object, a record or memory that is not an argument",
                location_of(self.function),
            )
        written = [
            Part(0, argument.position, leaf.path, leaf.type).of(argument.name)
            for argument in self.derivation.arguments
            for leaf in argument.leaves
            if leaf.is_array and leaf.data_index in self.derivation.compiled.written
        ]
        code = Columns(
            structure,
            self.names,
            written,
            decides=decides,
            is_flagged=is_flagged,
            returns_value=self.task.returns_value,
            width=self.width,
        )
        return self._code(code.lines(self.call), {"irad_push": self.push, "irad_shadow_like": shadow_like})

    def rows(self, *, is_flagged: bool = False) -> Written:
        """Code for reverse mode."""
        structure = self.structure
        forward = forward_of(self.primal, self.task.options, self.task.argnums)
        given = tuple(argument.type for argument in self.arguments)  # those collected by a star one by one
        signature = typing_context().resolve_function_type(types.Dispatcher(forward), given, {})
        assert isinstance(signature.return_type, types.BaseTuple)
        arguments, value = types.BaseTuple.from_types(tuple(self.argument_types)), signature.return_type.types[1]
        alive = types.BaseTuple.from_types((arguments, value))
        make = pullback_maker(PullbackType(TapeType(forward, forward.numbers[tuple(signature.args)], alive)))
        code = Rows(structure, self.names, is_flagged=is_flagged, returns_value=self.task.returns_value)
        lines = code.lines(self.call, ", ".join(self.parameters))
        return self._code(lines, {"irad_augmented": forward, "irad_make": make})

    def first(self) -> Written:
        """Code that returns a Jacobian and whether it is complete: it is not where reverse mode is better."""
        if self.known_mode == "reverse":
            return self.rows(is_flagged=True)
        return self.columns(decides=self.known_mode is None, is_flagged=True)

    def either(self, first: DerivativeDispatcher, rows: DerivativeDispatcher) -> Written:
        """Code for both."""
        lines = [f"irad_found, irad_is_complete = irad_first({self.call})"]
        if self.known_mode is None:
            lines += ["if not irad_is_complete:", f"    irad_found = irad_rows({self.call})"]
        return self._code([*lines, "return irad_found"], {"irad_first": first, "irad_rows": rows})

    @cached_property
    def known_mode(self) -> Mode | None:
        """The mode, where it does not depend on the shapes of arrays."""
        structure = self.structure
        inputs = [part.is_array for part in structure.inputs]
        outputs = [part.is_array for part in structure.outputs]
        if not any(outputs) and (any(inputs) or len(inputs) > len(outputs)):
            return "reverse"
        if not self.repeats:
            return "reverse"
        return None if any(inputs) else "forward"

    def _code(self, lines: Any, scope: Mapping[str, object]) -> Written:
        body = "".join(f"{line}\n" for line in indented(lines))
        return body, {"irad_np": np, **self.structure.scope, **scope}
