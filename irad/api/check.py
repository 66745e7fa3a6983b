"""`check`: whether a function can be differentiated, and everything that prevents it, without running it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from numba import typeof
from numba.core import types
from numba.core.errors import ForceLiteralArg

from irad.api.functions import options_or_default, primal_of
from irad.api.kernels import kernel_of, launched_of
from irad.api.positions import check_positions, chosen
from irad.errors import IradError, SignatureError, SourceLocation
from irad.frontend.calls.problems import default_positions, problems_of
from irad.frontend.calls.raising import public
from irad.frontend.calls.signature import check_representable
from irad.frontend.calls.untypable import untypable
from irad.frontend.numba.cpu import location_of
from irad.frontend.numba.messages import readable
from irad.frontend.packing.packed import packed
from irad.options import Options
from irad.report.shown import notebook

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What `irad.check` found.

    Attributes:
        function: the qualified name of the function.
        location: where it is defined.
        arguments: name and Numba type of each parameter.
        positions: the arguments with respect to which it is differentiated.
        problems: every construct that irad cannot differentiate, each with its place and a remedy.
        plan: of a CUDA kernel, how its derivative works: how it adds to shadows and why so, where threads wait for each
            other, what is on the tape.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def power(x, n):
        ...     return x**n
        >>> report = irad.check(power, 2.0, 3)
        >>> report.supported, report.arguments, report.positions
        (True, (('x', 'float64'), ('n', 'int64')), (0,))
    """

    function: str
    location: SourceLocation
    arguments: tuple[tuple[str, str], ...]
    positions: tuple[int, ...]
    problems: tuple[IradError, ...] = field(default=())
    plan: tuple[str, ...] = field(default=())

    @property
    def supported(self) -> bool:
        """Whether irad differentiates the function at arguments of these types."""
        return not self.problems

    def __str__(self) -> str:
        parameters = ", ".join(f"{name}: {readable(str(kind))}" for name, kind in self.arguments)
        head = f"{self.function}({parameters})\n  at  {self.location.file}:{self.location.line}"
        if self.supported:
            verdict = f"irad differentiates it with respect to {self._differentiated()}"
            return f"{head}\n{verdict}." if not self.plan else "\n  - ".join((f"{head}\n{verdict}:", *self.plan))
        count = len(self.problems)
        verdict = f"irad does not differentiate it: {count} problem{'s' * (count > 1)}."
        return "\n\n".join((f"{head}\n{verdict}", *map(str, self.problems)))

    def _repr_html_(self) -> str:
        """What notebooks show."""
        parameters = ", ".join(f"{name}: {readable(str(kind))}" for name, kind in self.arguments)
        place = f"{self.function}({parameters}), {self.location.file}:{self.location.line}"
        if self.supported:
            verdict = f"irad differentiates {self.function} with respect to {self._differentiated()}"
            return notebook.result(verdict, "good", place, remarks=self.plan)
        count = len(self.problems)
        verdict = f"irad does not differentiate {self.function}: {count} problem{'s' * (count > 1)}"
        return notebook.result(verdict, "bad", place, remarks=map(str, self.problems))

    def _differentiated(self) -> str:
        names = [name for name, _ in self.arguments]
        last = len(names) - 1  # star arguments have positions of their own after the last name
        *most, final = dict.fromkeys(names[min(position, last)] for position in self.positions)
        return f"{', '.join(most)} and {final}" if most else final


@public
def check(
    f: Callable[..., Any],
    *args: Any,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> CheckReport:
    """Reports everything that prevents a function from being differentiated, without running it.

    Args:
        f: the function, as in `irad.grad`; it may return anything that `irad.vjp` takes, or write to its arrays. Or a
            kernel of ``numba.cuda.jit``, also with the configuration of a launch: ``kernel[blocks, threads]``.
        args: arguments of one call, or Numba types in their place (``numba.float64[:]``).
        argnums: positions to differentiate with respect to; by default all arguments that hold floats.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative would be created.

    Returns:
        A report: `supported`, `problems`, and a text to read.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or does not take such arguments.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def square(x):
        ...     return x * x
        >>> irad.check(square, 3.0).supported
        True
    """
    launched = launched_of(f)
    kernel = kernel_of(f) if launched is None else launched.kernel
    if kernel is not None and not kernel.targetoptions.get("device"):
        from irad.cuda.kernels import launch_of  # imports numba.cuda
        from irad.cuda.reports.check import check_kernel

        made = launched.options if launched is not None else getattr(f, "options", None)
        launch = None if launched is None else launch_of(launched.configuration)
        positions = chosen(kernel.py_func, argnums, argnames, None)
        return check_kernel(kernel, args, positions, options or made or options_or_default(None), launch)
    primal, options = primal_of(f), options_or_default(options)
    argnums = chosen(f, argnums, argnames, None)
    given = None if argnums is None else check_positions(primal, argnums)
    values = _bound(primal, args)
    try:
        kinds = _kinds_of(primal, values)
    except IradError as error:
        return _report(primal, {name: type(value).__name__ for name, value in values.items()}, (), (error,))

    def look(kinds: dict[str, Any]) -> CheckReport:
        argument_types = tuple(kinds.values())
        positions = default_positions(primal, argument_types) if given is None else given
        problems = problems_of(primal, argument_types, positions, options)
        return _report(primal, kinds, positions, problems)

    return _literal_where_asked(primal, values, kinds, look)


def with_types(primal: Any, args: tuple[Any, ...], use: Callable[[tuple[Any, ...]], _T]) -> _T:
    """What ``use`` makes of the types of a call's arguments; again with literal types where Numba asks for them.

    Args:
        primal: the dispatcher.
        args: arguments of one call, or Numba types in their place.
        use: takes one type per parameter, star arguments as one tuple.

    Raises:
        SignatureError: the function does not take such arguments.
        BackendError: Numba cannot type one.
    """
    values = _bound(primal, args)
    kinds = _kinds_of(primal, values)
    return _literal_where_asked(primal, values, kinds, lambda found: use(tuple(found.values())))


def _literal_where_asked(
    primal: Any, values: dict[str, Any], kinds: dict[str, Any], use: Callable[[dict[str, Any]], _T]
) -> _T:
    while True:
        try:
            return use(kinds)
        except ForceLiteralArg as wanted:
            kinds = _with_literals(primal, kinds, values, wanted)


def types_of(primal: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The Numba types of a call, one for each parameter: star arguments as one tuple, defaults as Numba passes them.

    Raises:
        SignatureError: the function does not take so many arguments.
        BackendError: Numba has no type for one.
    """
    return tuple(_kinds_of(primal, _bound(primal, args)).values())


def _report(
    primal: Any, kinds: dict[str, Any], positions: tuple[int, ...], problems: tuple[IradError, ...]
) -> CheckReport:
    function = primal.py_func
    listed = tuple((name, str(kind)) for name, kind in kinds.items())
    return CheckReport(function.__qualname__, location_of(function), listed, positions, problems)


def _bound(primal: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    """The value of each parameter as Numba is passed it, defaults included."""
    signature = inspect.signature(primal.py_func)
    try:
        bound = signature.bind(*args)
    except TypeError as error:
        raise SignatureError(
            f"{primal.py_func.__qualname__} cannot be called with these arguments: {error}",
            f"pass the arguments of one call: {primal.py_func.__name__}{signature}",
            "what is examined is the code that Numba compiles for the types of one call",
            location_of(primal.py_func),
        ) from None
    values = {}
    for name, parameter in signature.parameters.items():
        missing = () if parameter.kind is parameter.VAR_POSITIONAL else types.Omitted(parameter.default)
        values[name] = packed(bound.arguments.get(name, missing))
    return values


def _kinds_of(primal: Any, values: dict[str, Any]) -> dict[str, Any]:
    wrong = untypable(primal.py_func, values)
    if wrong is not None:
        raise wrong
    kinds = {name: _type_of(value) for name, value in values.items()}
    check_representable(primal.py_func, tuple(kinds.values()))
    return kinds


def _type_of(value: Any) -> Any:
    if isinstance(value, types.Type):
        return value
    if isinstance(value, tuple) and any(isinstance(entry, types.Type) for entry in value):
        return types.BaseTuple.from_types(tuple(map(_type_of, value)))
    return typeof(value)


def _with_literals(primal: Any, kinds: dict[str, Any], values: dict[str, Any], wanted: Any) -> dict[str, Any]:
    """The types with those that Numba asks for made literal."""
    names = list(kinds)
    changed = {names[i]: types.literal(values[names[i]]) for i in wanted.requested_args if _is_value(values[names[i]])}
    if all(kinds[name] == kind for name, kind in changed.items()):
        raise SignatureError(
            f"{primal.py_func.__qualname__} needs the values of {', '.join(names[i] for i in wanted.requested_args)}",
            "pass values, not types",
            "Numba compiles the function for these values, not for their types",
            location_of(primal.py_func),
        )
    return {**kinds, **changed}


def _is_value(value: Any) -> bool:
    return isinstance(value, int | str | bool)
