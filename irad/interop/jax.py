"""JAX: a function that Numba compiles as a function that `jax.jit`, `grad`, `jvp`, `vmap` and `scan` take.

A call is the primitive `irad_call`. XLA calls machine code for it, without Python: a handler of its foreign function
interface, which Numba compiles. What compiled code cannot hold as a constant is passed to it by Python instead. The
derivatives are such calls, too: the tangents are those of `irad.pushforward`, of which JAX knows that they are linear,
with a transpose that `irad.vjp` makes.
"""

from __future__ import annotations

import ctypes
import functools
import re
import secrets
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, overload

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

import irad
from irad.errors import BackendError, SignatureError
from irad.frontend.calls.raising import public
from irad.frontend.generated import function_from
from irad.interop.flat import (
    ArrayOrNumber,
    Flat,
    Kind,
    filled,
    flattened,
    held_apart,
    identity,
    is_constant,
    owners_of,
    positional,
    positions_of,
    shapes_in,
    split,
    type_of,
)
from irad.versions import needed

with needed("jax"):
    import jax
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

__all__ = ["wrap"]


@overload
def wrap(
    f: Callable[..., ArrayOrNumber],
    argnums: int | Sequence[int] | None = None,
    *,
    shapes: Callable[..., tuple[int, ...]] | None = None,
) -> Callable[..., jax.Array]: ...


@overload
def wrap(
    f: Callable[..., tuple[Any, ...] | dict[str, Any]],
    argnums: int | Sequence[int] | None = None,
    *,
    shapes: Callable[..., Any] | None = None,
) -> Callable[..., Any]: ...


@public
def wrap(
    f: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    *,
    shapes: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """A function of JAX arrays, with the derivatives and transformations of JAX, on the CPU.

    Arrays of JAX and NumPy are passed as contiguous arrays, those without axes as numbers; they may lie in tuples,
    named tuples, lists (passed as tuples) and dictionaries. Numbers of Python, strings and functions are constants of
    the compiled call. Other objects that Numba knows, such as those of a ``jitclass``, are passed as they are, through
    Python. ``vmap`` runs the function row by row. The result holds arrays, numbers, tuples and dictionaries of these.

    Where JAX computes with 32 bits, as it does unless ``jax_enable_x64`` is set, results of 64 bits are rounded to 32.

    Args:
        f: a plain function, or one of ``numba.njit`` or `irad.jit`. It must not write to its arguments.
        argnums: a position, or several, of the arguments that have a derivative; by default all that hold arrays of
            floats.
        shapes: ``shapes(*args)``, of arguments with `jax.ShapeDtypeStruct` for each array, returns the shape of the
            result, or a tuple of shapes in the structure of the result. By default ``f`` is run for each new shape of
            its arguments, on arrays of ones, or zeros where they are of integers.

    Returns:
        The function of JAX arrays, with the parameters of ``f``.

    Raises:
        SignatureError: an array has a dtype that Numba does not have, the function writes to an argument or returns
            anything but arrays, numbers, tuples and dictionaries.

    Examples:
        >>> import irad.interop.jax
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def energy(x, stiffness):
        ...     total = np.float32(0.0)
        ...     for i in range(x.size - 1):
        ...         total += 0.5 * stiffness * (x[i + 1] - x[i]) ** 2
        ...     return total
        >>> energy = irad.interop.jax.wrap(energy)
        >>> x = jnp.array([0.0, 1.0, 3.0])
        >>> jax.jit(jax.grad(energy))(x, 2.0).tolist()
        [-2.0, -2.0, 4.0]
    """
    if not callable(f):
        raise SignatureError(
            f"irad.interop.jax.wrap is given {type(f).__name__}", "pass a function", "it wraps functions of arrays"
        )
    compiled = f if hasattr(f, "py_func") else irad.jit(f)
    positions = positions_of(compiled, argnums)
    wrapped = _Wrapped(compiled, positions, shapes)

    @functools.wraps(getattr(f, "py_func", f))
    def call(*args: Any, **keywords: Any) -> Any:
        return wrapped(args, keywords)

    return call


# ------------------------------------------------------------------------------------------------ functions


_ARRAYS: Final = (jax.Array, np.ndarray)


class _Wrapped:
    """A function of the user."""

    def __init__(self, f: Any, differentiable: frozenset[int] | None, shapes: Callable[..., Any] | None) -> None:
        self._function, self._differentiable, self._shapes = f, differentiable, shapes
        self._flat: dict[Any, tuple[_Flat, Any]] = {}

    def __call__(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        args = positional(self._function, args, keywords)
        leaves: list[Any] = []
        structure: list[Any] = []
        for position, each in enumerate(args):
            before = len(leaves)
            structure.append(split(each, leaves, _ARRAYS))
            if self._differentiable is not None and position not in self._differentiable:
                leaves[before:] = map(jax.lax.stop_gradient, leaves[before:])
        leaves = [jax.numpy.asarray(each) for each in leaves]
        kinds = tuple(Kind.of(each.dtype, each.ndim) for each in leaves)
        key = identity(tuple(structure)), kinds, bool(jax.config.jax_enable_x64)
        if key not in self._flat:
            self._flat[key] = self._flattened(tuple(structure), kinds)
        flat, returned = self._flat[key]
        return filled(returned, iter(_call.bind(*leaves, number=flat.number, linear=0)))

    def _flattened(self, structure: tuple[Any, ...], kinds: tuple[Kind, ...]) -> tuple[_Flat, Any]:
        """The function of the arrays alone, and the structure of its result."""
        name = self._function.__name__
        places, held = held_apart(structure, lambda part: not is_constant(part))
        types = list(map(type_of, held))
        found = flattened(self._function, places, kinds, types, lambda kind: _of_jax(kind, name))
        flat = _Flat(name, found.function, kinds, found.outputs, len(held), owners_of(structure))
        flat.values = tuple(held)
        if self._shapes is not None:
            flat.stated = lambda inputs: list(shapes_in(self._shapes(*filled(structure, iter(inputs)))))  # type: ignore[misc]
        return flat, found.returned


def _of_jax(kind: Kind, name: str) -> Kind:
    """The kind that JAX has in place of that of a result."""
    dtype = np.dtype(jax.dtypes.canonicalize_dtype(kind.dtype))
    if dtype != kind.dtype and kind.is_float:
        warnings.warn(
            f"{name} returns {kind.dtype}, which is rounded to {dtype}: JAX computes with 32 bits unless "
            'jax.config.update("jax_enable_x64", True) says otherwise',
            stacklevel=8,
        )
    return Kind(dtype, kind.axes)


_PROCESS: Final = secrets.token_hex(8)
"""Part of the names of handlers: JAX may keep programs on disk, and those of another process call its functions."""


class _Flat(Flat):
    """A compiled function that XLA calls.

    Attributes:
        stated: the shapes of its results from the arguments, as the user states them; None where it is to be run.
        values: what it takes before the arrays, which compiled code cannot hold. XLA calls it through Python then.
    """

    conjugates = True  # JAX transposes without conjugation
    values: tuple[Any, ...] = ()
    stated: Callable[[Sequence[Any]], list[tuple[int, ...]]] | None = None

    @functools.cached_property
    def held_values(self) -> tuple[Any, ...]:
        """The values, which a derivative takes as its function does."""
        return self.values if self.base is None else self.base.held_values

    @functools.cached_property
    def _known(self) -> dict[Any, list[jax.ShapeDtypeStruct]]:
        return {}

    def results(self, inputs: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
        """Shapes and dtypes of the results, from those of the arguments."""
        key = tuple(each.shape for each in inputs)
        if key not in self._known:
            kinds = zip(self.shapes(inputs, self.held_values), self.outputs, strict=True)
            self._known[key] = [jax.ShapeDtypeStruct(shape, kind.dtype) for shape, kind in kinds]
        return self._known[key]

    def shapes(self, inputs: Sequence[Any], held: Sequence[Any] = ()) -> list[tuple[int, ...]]:
        """Shapes of the results, from those of the arguments."""
        if self.stated is not None:
            return self.stated([jax.ShapeDtypeStruct(each.shape, each.dtype) for each in inputs])
        return super().shapes(inputs, held)

    def from_python(self, *arrays: Any) -> tuple[Any, ...]:
        """The results, called by XLA through Python."""
        given = [np.array(each, kind.dtype, order="C") for each, kind in zip(arrays, self.inputs, strict=True)]
        found = self.function(*self.held_values, *(each if each.ndim else each[()] for each in given))
        return tuple(np.asarray(each, kind.dtype) for each, kind in zip(found, self.outputs, strict=True))

    @functools.cached_property
    def target(self) -> str:
        """The name under which XLA knows the handler."""
        name = f"irad_call_{_PROCESS}_{self.number}"
        self._handler = _handler(self)
        pointer = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self._handler.address)
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(pointer), platform="cpu", api_version=1)
        return name


# ------------------------------------------------------------------------------------------------ the primitive

_call: Final = Primitive("irad_call")
_call.multiple_results = True


@_call.def_abstract_eval
def _abstract(*inputs: Any, number: int, linear: int) -> list[Any]:
    results = _Flat.all[number].results(inputs)
    return [jax.core.ShapedArray(each.shape, each.dtype) for each in results]


@_call.def_impl
def _run(*inputs: Any, number: int, linear: int) -> Any:
    return _jitted(number, linear)(*inputs)


@functools.cache
def _jitted(number: int, linear: int) -> Callable[..., Any]:
    return jax.jit(functools.partial(_call.bind, number=number, linear=linear))


def _lower(*inputs: Any, number: int, linear: int) -> Any:
    flat = _Flat.all[number]
    results = flat.results(inputs)
    if flat.held:
        return jax.pure_callback(flat.from_python, tuple(results), *inputs)
    return jax.ffi.ffi_call(flat.target, results)(*inputs)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, number: int, linear: int) -> tuple[Any, Any]:
    flat = _Flat.all[number]
    outputs = _call.bind(*primals, number=number, linear=linear)
    positions = tuple(i for i, each in enumerate(tangents) if not isinstance(each, ad.Zero) and flat.inputs[i].is_float)
    zeros = [ad.Zero(jax.typeof(each).to_tangent_aval()) for each in outputs]
    if not positions:
        return outputs, zeros
    push = flat.pushforward(positions)
    given = [tangents[i] for i in positions]
    found = iter(_call.bind(*primals, *given, number=push.number, linear=len(given)))
    return outputs, [next(found) if kind.is_float else zero for kind, zero in zip(flat.outputs, zeros, strict=True)]


def _transpose(cotangents: Sequence[Any], *inputs: Any, number: int, linear: int) -> list[Any]:
    count = len(inputs) - linear
    primals, flat = inputs[:count], _Flat.all[number]
    if any(map(ad.is_undefined_primal, primals)) or not all(map(ad.is_undefined_primal, inputs[count:])):
        raise SignatureError(
            f"{flat.name} is transposed with respect to an argument in which it is not linear",
            "transpose with respect to all tangents of a call",
            "a call is linear in all of its tangents together",
        )
    given = [ad.instantiate_zeros(each) for each in cotangents]
    found = _call.bind(*primals, *given, number=flat.base.pullback(flat.positions).number, linear=0)
    return [None] * count + list(found)


def _batch(inputs: Sequence[Any], axes: Sequence[Any], *, number: int, linear: int) -> tuple[Any, Any]:
    batched = [i for i, axis in enumerate(axes) if axis is not None]
    moved = [jax.numpy.moveaxis(inputs[i], axes[i], 0) for i in batched]

    def row(each: Sequence[Any]) -> Any:
        given = list(inputs)
        for i, value in zip(batched, each, strict=True):
            given[i] = value
        return _call.bind(*given, number=number, linear=linear)

    outputs = jax.lax.map(row, moved)
    return outputs, [0] * len(outputs)


ad.primitive_jvps[_call] = _jvp
ad.primitive_transposes[_call] = _transpose
batching.primitive_batchers[_call] = _batch
mlir.register_lowering(_call, mlir.lower_fun(_lower, multiple_results=True), platform="cpu")


# ------------------------------------------------------------------------------------------------ the handler

# Of XLA's header, `xla/ffi/api/c_api.h`, in words of eight bytes: where fields lie in `XLA_FFI_CallFrame`,
# `XLA_FFI_Buffer` and `XLA_FFI_Metadata`. tests/interop/test_jax.py compiles the header and compares.
_FRAME: Final = {"extension_start": 1, "api": 2, "stage": 4, "args": 9, "rets": 14}
_BUFFER: Final = {"data": 3, "dims": 5}
_EXTENSION: Final = {"type": 1, "metadata": 3}
_METADATA: Final = {"version": 3}
_ERROR_CREATE: Final = 6  # in `XLA_FFI_Api`
_EXECUTE: Final = 3
_METADATA_QUERY: Final = 1
_INVALID_ARGUMENT, _OUT_OF_RANGE = 3, 11
_ERROR_SIZE: Final = 28


def _version() -> int:
    """The version of the interface in the header that comes with JAX, as its two fields lie in memory.

    Raises:
        BackendError: its fields may lie elsewhere than the handlers look for them.
    """
    header = (Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h").read_text(encoding="utf-8")
    found = re.findall(r"#define XLA_FFI_API_(?:MAJOR|MINOR) (\d+)", header)
    if len(found) != 2 or found[0] != "0":
        raise BackendError(
            f"the foreign function interface of JAX {jax.__version__} has the version {'.'.join(found) or 'unknown'}",
            "install a JAX whose interface has a version 0.x, such as 0.10",
            "the compiled code reads its structures, whose layout may differ in other versions",
        )
    return int(found[1]) << 32


@intrinsic
def _pointer(typing_context: Any, address: Any) -> Any:
    """An address as a pointer."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(numba.types.voidptr))

    return numba.types.voidptr(numba.types.intp), lower


@intrinsic
def _called(typing_context: Any, function: Any, argument: Any) -> Any:
    """Calls a function of C at an address with an address; returns an address."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        target = builder.inttoptr(arguments[0], ir.FunctionType(word, [word]).as_pointer())
        return builder.call(target, [arguments[1]])

    return numba.types.intp(numba.types.intp, numba.types.intp), lower


@numba.njit
def _words(address: int, count: int) -> Any:
    """Memory as integers of eight bytes."""
    return numba.carray(_pointer(address), (count,), np.int64)


@numba.njit
def _refusal(api: int, message: Any, code: int) -> int:
    """An error of XLA."""
    given = np.empty(4, np.int64)
    given[0], given[1], given[2], given[3] = _ERROR_SIZE, 0, message.ctypes.data, code
    return _called(_words(api, _ERROR_CREATE + 1)[_ERROR_CREATE], given.ctypes.data)


def _handler(flat: _Flat) -> Any:
    """The function of C that XLA calls: it reads the frame of the call, and writes the results where XLA wants them."""
    lines = [
        "def handler(address):",
        "    frame = words(address, 15)",
        f"    if frame[{_FRAME['extension_start']}] != 0:",
        f"        extension = words(frame[{_FRAME['extension_start']}], 4)",
        f"        if extension[{_EXTENSION['type']}] & 0xFFFFFFFF == {_METADATA_QUERY}:",
        f"            words(extension[{_EXTENSION['metadata']}], 6)[{_METADATA['version']}] = {_version()}",
        "            return 0",
        f"    if frame[{_FRAME['stage']}] & 0xFFFFFFFF != {_EXECUTE}:",
        "        return 0",
        f"    given, wanted = words(frame[{_FRAME['args']}], {max(len(flat.inputs), 1)}), "
        f"words(frame[{_FRAME['rets']}], {max(len(flat.outputs), 1)})",
        *(line for i, kind in enumerate(flat.inputs) for line in _reading(f"x{i}", f"given[{i}]", kind)),
        *(
            line
            for i, kind in enumerate(flat.outputs)
            for line in _reading(f"y{i}", f"wanted[{i}]", kind, is_output=True)
        ),
        "    status = 0",
        "    try:",
        f"        found = f({', '.join(f'x{i}' for i in range(len(flat.inputs)))})",
        *(line for i, kind in enumerate(flat.outputs) for line in _writing(i, kind)),
        "    except Exception:",
        "        status = 1",
        "    if status == 1:",
        f"        return refusal(frame[{_FRAME['api']}], raised, {_INVALID_ARGUMENT})",
        "    if status == 2:",
        f"        return refusal(frame[{_FRAME['api']}], misfit, {_OUT_OF_RANGE})",
        "    return 0",
    ]

    scope = {
        **{f"d_x{i}": each.dtype.type for i, each in enumerate(flat.inputs)},
        **{f"d_y{i}": each.dtype.type for i, each in enumerate(flat.outputs)},
        "f": flat.function,
        "words": _words,
        "carray": numba.carray,
        "pointer": _pointer,
        "refusal": _refusal,
        "raised": _text(f"{flat.name} raised an exception: call the function itself with these arguments to see it"),
        "misfit": _text(f"{flat.name} returned an array of another shape than for arguments of ones: state shapes="),
    }
    handler = function_from("handler", "\n".join(lines) + "\n", "irad.interop.jax", scope)
    return numba.cfunc(numba.types.intp(numba.types.intp))(handler)


def _text(message: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(message.encode() + b"\0", np.uint8).copy()


def _reading(name: str, pointer: str, kind: Kind, *, is_output: bool = False) -> Iterator[str]:
    yield f"    b_{name} = words({pointer}, 6)"
    shape = "1,"
    if kind.axes:
        yield f"    s_{name} = words(b_{name}[{_BUFFER['dims']}], {kind.axes})"
        shape = "".join(f"s_{name}[{i}], " for i in range(kind.axes))
    first = "" if kind.axes or is_output else "[0]"
    yield f"    {name} = carray(pointer(b_{name}[{_BUFFER['data']}]), ({shape}), d_{name}){first}"


def _writing(index: int, kind: Kind) -> Iterator[str]:
    if not kind.axes:
        yield f"        y{index}[0] = found[{index}]"
        return
    yield f"        if found[{index}].shape == y{index}.shape:"
    yield f"            y{index}[...] = found[{index}]"
    yield "        else:"
    yield "            status = 2"
