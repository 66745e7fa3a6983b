"""The functions of irad that compiled code may call by name, such as ``irad.grad(f)(x)`` in a function of the user's.

Numba types such a call for the CPU by `numba.extending.overload`. For its CUDA target
`irad.frontend.cuda.device_derivatives` looks up here how a function is typed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Final

from numba.core import types
from numba.core.datamodel import models
from numba.core.imputils import lower_constant
from numba.core.target_extension import current_target
from numba.extending import lower_builtin, overload, register_model, typeof_impl

from irad.errors import SignatureError, SourceLocation, UnsupportedError
from irad.records import dataclass


@dataclass(frozen=True, slots=True)
class Offered:
    """Typing of a function: the arguments of `offer`, and whether device code must not call it."""

    typed: Callable[..., Any]
    literals: bool
    on_device: Callable[..., Any] | None = None
    is_refused: bool = False


_TYPED: Final[dict[Callable[..., Any], Offered]] = {}


def offer(
    function: Callable[..., Any],
    typed: Callable[..., Any],
    *,
    literals: bool = True,
    on_device: Callable[..., Any] | None = None,
) -> None:
    """Lets compiled code call a function.

    Args:
        function: as it is called from Python.
        typed: from the types of the arguments to the function of Python that Numba compiles in its place.
        literals: whether ``typed`` is given the types of literals as such.
        on_device: in place of ``typed`` for device code; takes what makes a device function of one of Python first.
    """
    _TYPED[function] = Offered(typed, literals, on_device)
    overload(function, prefer_literal=literals, strict=False)(typed)


def refuse_on_device(function: Callable[..., Any], remedy: str) -> None:
    """Has device code that calls a function refused by its name; Numba would say what it cannot compile in there."""

    def refused(*_: Any, **__: Any) -> None:
        raise UnsupportedError(
            f"device code calls irad.{function.__name__}",
            remedy,
            "device code has registers and local memory of fixed size, and no memory that outlives a call",
            location=SourceLocation.here(),
        )

    _TYPED[function] = Offered(refused, literals=True, is_refused=True)


def refuse_in_compiled_code(function: Callable[..., Any], remedy: str) -> None:
    """Refuses by name what cannot be called in compiled code; Numba would call it an unknown attribute."""

    def typed(*arguments: Any, **keywords: Any) -> Callable[..., Any]:
        raise SignatureError(
            f"compiled code calls irad.{function.__name__}",
            remedy,
            f"irad.{function.__name__} is a Python function, and compiled code can only call compiled functions",
            SourceLocation.here(),
        )

    overload(function, strict=False)(typed)


OUTSIDE: Final = "call it from Python, with the function and its arguments"
"""The remedy for a function that takes a function and its arguments."""


class PlainFunctionType(types.Opaque):
    """The type of a function of Python without decorator in device code, where only irad takes it."""

    def __init__(self, function: Any) -> None:
        self.function = function
        super().__init__(name=f"the function {function.__qualname__}, which has no decorator")

    @property
    def key(self) -> Any:
        """Key that distinguishes it from other types."""
        return self.function


@dataclass(frozen=True, slots=True)
class OfferedType:
    """A type of values that compiled code holds; the attributes are the arguments of `offer_type`."""

    kind: type
    model: Any
    values: tuple[type, Callable[[Any], Any]] | None = None
    call: tuple[Any, Callable[..., Any]] | None = None


OFFERED_TYPES: Final[list[OfferedType]] = []


def offer_type(
    kind: type,
    model: Any,
    *,
    values: tuple[type, Callable[[Any], Any]] | None = None,
    call: tuple[Any, Callable[..., Any]] | None = None,
) -> None:
    """Makes a type known to Numba.

    Args:
        kind: of Numba's types.
        model: data model of its values.
        values: constants of that type: their class, and what gives the type of one; nothing is left of them.
        call: of a type of callables what Numba finds their lowering by, and that.
    """
    OFFERED_TYPES.append(OfferedType(kind, model, values, call))
    register_model(kind)(model)
    if values is not None:
        of, type_of = values
        lower_constant(kind)(nothing)
        typeof_impl.register(of)(lambda value, _: type_of(value))
    if call is not None:
        key, lower = call
        lower_builtin(key, kind, types.VarArg(types.Any))(lower)


def nothing(context: Any, _: Any, __: Any, ___: Any) -> Any:
    """Numba's hook that lowers a constant of which nothing is left."""
    return context.get_dummy_value()


def type_of_constant(value: object) -> Any:
    """The type of a value of a class that was offered; None for others."""
    found = (each.values for each in OFFERED_TYPES if each.values is not None)
    return next((type_of(value) for of, type_of in found if isinstance(value, of)), None)


OFFERED_TYPES.append(OfferedType(PlainFunctionType, models.OpaqueModel, (FunctionType, PlainFunctionType)))


def typing_of(function: object) -> Offered | None:
    """Typing of a function; None for one that is not offered."""
    try:
        return _TYPED.get(function)  # type: ignore[call-overload]
    except TypeError:  # not hashable
        return None


def represent(twin: Any, original: Any) -> None:
    """Notes that a dispatcher of the CUDA target stands for another one, whose function it compiles."""
    twin.irad_original = weakref.ref(original)


def original_of(dispatcher: Any) -> Any:
    """The dispatcher that one stands for; itself, where it is the user's."""
    original = getattr(dispatcher, "irad_original", None)
    return dispatcher if original is None else original()


def stand_for_device_function(dispatcher: Any, device_function: Any) -> None:
    """Notes that a dispatcher of the CPU was made of a device function."""
    dispatcher.irad_device_function = weakref.ref(device_function)


def device_function_of(dispatcher: Any) -> Any:
    """The device function that a dispatcher was made of; itself, where there is none."""
    made_of = getattr(dispatcher, "irad_device_function", None)
    return dispatcher if made_of is None else made_of()


@contextmanager
def compiled_by_irad() -> Iterator[None]:
    """Notes, for the time of a block, that what is compiled for GPUs is compiled for irad; under Numba's lock."""
    _COMPILED.append(True)
    try:
        yield
    finally:
        _COMPILED.pop()


_COMPILED: Final[list[bool]] = []


def check_launched_by_irad(name: str) -> None:
    """Refuses derivatives in code that Numba compiles for a GPU by itself, of which it can make nothing.

    Raises:
        UnsupportedError: it is such code.
    """
    if current_target() == "cuda" and not _COMPILED:
        raise UnsupportedError(
            f"a kernel that Numba compiles for the GPU asks for the derivative of {name}",
            "(a) decorate the kernel with irad.cuda.jit in place of numba.cuda.jit or (b) use irad.cuda in another way "
            "before the kernel is launched, such as irad.cuda.grad(kernel)",
            "irad must launch kernels that call derivatives, and it takes over launches once irad.cuda is used",
            location=SourceLocation.here(),
        )


def give_model(kind: type) -> None:
    """Lets compiled code of the CPU hold the address of a function of another target, of which it asks a derivative."""
    if kind is not types.Dispatcher:
        register_model(kind)(models.OpaqueModel)


def mark_for_derivatives(context: Any) -> None:
    """Notes that code that a target context compiles may be differentiated, though it may also be run as it is."""
    context.irad_for_derivatives = True


def for_derivatives(context: Any) -> bool:
    """True if a context is marked as one for derivatives."""
    return bool(getattr(context, "irad_for_derivatives", False))
