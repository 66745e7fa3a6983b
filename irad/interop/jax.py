"""JAX: a function that Numba compiles as a function that `jax.jit`, `grad`, `jvp`, `vmap` and `scan` take.

A call is the primitive `irad_call`. XLA calls machine code for it, without Python: a handler of its foreign function
interface, which Numba compiles. The derivatives are such calls, too: the tangents are those of `irad.pushforward`, of
which JAX knows that they are linear, with a transpose that `irad.vjp` makes.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import jax
import numba
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from llvmlite import ir
from numba.extending import intrinsic

import irad
from irad.errors import SignatureError
from irad.frontend.calls.raising import public
from irad.frontend.generated import function_from

__all__ = ["wrap"]

_NUMBERS: Final = frozenset("?bBhHiIlLqQfdFD")  # what NumPy calls the dtypes that both JAX and Numba have
_LEAF: Final = ...  # where a structure has an array


@public
def wrap(
    f: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    *,
    shapes: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """A function of JAX arrays, with the derivatives and transformations of JAX, on the CPU.

    Arrays of JAX and NumPy are passed as contiguous arrays, those without axes as numbers; they may lie in tuples,
    named tuples and lists (passed as tuples). All else, such as Python's numbers, is a constant of the compiled call.
    ``vmap`` runs the function row by row. The result holds arrays, numbers, and tuples of these.

    Where JAX computes with 32 bits, as it does unless ``jax_enable_x64`` is set, results of 64 bits are rounded to 32.

    Args:
        f: a plain function, or one of ``numba.njit`` or `irad.jit`. It must not write to its arguments.
        argnums: a position, or several, of the arguments that have a derivative; by default all that hold arrays of
            floats.
        shapes: ``shapes(*args)``, of arguments with `jax.ShapeDtypeStruct` for each array, returns the shape of the
            result, or a tuple of shapes in the structure of the result. By default ``f`` is run for each new shape of
            its arguments, on arrays of ones.

    Returns:
        The function of JAX arrays, with the parameters of ``f``.

    Raises:
        SignatureError: an array has a dtype that Numba does not have, the function writes to an argument or returns
            anything but arrays, numbers and tuples.

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
        >>> jax.jit(jax.grad(energy))(x, 2.0)
        Array([-2., -2.,  4.], dtype=float32)
    """
    if not callable(f):
        raise SignatureError(
            f"irad.interop.jax.wrap is given {type(f).__name__}", "pass a function", "it wraps functions of arrays"
        )
    positions = None if argnums is None else frozenset((argnums,) if isinstance(argnums, int) else argnums)
    compiled = f if hasattr(f, "py_func") else irad.jit(f)
    wrapped = _Wrapped(compiled, positions, shapes)

    @functools.wraps(getattr(f, "py_func", f))
    def call(*args: Any, **keywords: Any) -> Any:
        return wrapped(args, keywords)

    return call


# ------------------------------------------------------------------------------------------------ structures


def _split(value: Any, leaves: list[Any]) -> Any:
    """Appends the arrays of an argument, and returns its structure without them."""
    if isinstance(value, jax.Array | np.ndarray | jax.ShapeDtypeStruct):
        leaves.append(value)
        return _LEAF
    if isinstance(value, tuple | list):
        items = [_split(each, leaves) for each in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, dict):
        raise SignatureError(
            "an argument holds a dictionary",
            "pass a named tuple: collections.namedtuple, typing.NamedTuple",
            "compiled code has no dictionaries of values of different types",
        )
    return value


def _filled(structure: Any, values: Iterator[Any]) -> Any:
    if structure is _LEAF:
        return next(values)
    if isinstance(structure, tuple):
        items = [_filled(each, values) for each in structure]
        return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)
    return structure


@dataclass(frozen=True, slots=True)
class _Kind:
    """Dtype and number of axes of an array, which compiled code depends on."""

    dtype: np.dtype[Any]
    axes: int

    @property
    def numba_type(self) -> Any:
        """The type: arrays of no axes are numbers."""
        number = numba.from_dtype(self.dtype)
        return numba.types.Array(number, self.axes, "C") if self.axes else number

    @property
    def is_float(self) -> bool:
        """True if it has a derivative."""
        return self.dtype.kind in "fc"

    @classmethod
    def of(cls, leaf: Any) -> _Kind:
        """The kind of an array.

        Raises:
            SignatureError: Numba does not have its dtype.
        """
        dtype = np.dtype(leaf.dtype)
        if dtype.char not in _NUMBERS:
            raise SignatureError(
                f"an array has the dtype {dtype}",
                "convert it, as x.astype(jnp.float32) does",
                "Numba has single and double precision, complex numbers of both, and integers",
            )
        return cls(dtype, len(leaf.shape))


# ------------------------------------------------------------------------------------------------ functions


class _Wrapped:
    """A function of the user."""

    def __init__(self, f: Any, differentiable: frozenset[int] | None, shapes: Callable[..., Any] | None) -> None:
        self._function, self._differentiable, self._shapes = f, differentiable, shapes
        self._flat: dict[Any, tuple[_Flat, Any]] = {}

    def __call__(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if keywords:
            args = self._positional(args, keywords)
        leaves: list[Any] = []
        structure: list[Any] = []
        for position, each in enumerate(args):
            before = len(leaves)
            structure.append(_split(each, leaves))
            if self._differentiable is not None and position not in self._differentiable:
                leaves[before:] = map(jax.lax.stop_gradient, leaves[before:])
        leaves = [jax.numpy.asarray(each) for each in leaves]
        kinds = tuple(map(_Kind.of, leaves))
        key = repr(structure), kinds, bool(jax.config.jax_enable_x64)
        if key not in self._flat:
            self._flat[key] = self._flattened(tuple(structure), kinds)
        flat, returned = self._flat[key]
        return _filled(returned, iter(_call.bind(*leaves, number=flat.number, linear=0)))

    def _positional(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        bound = inspect.signature(self._function.py_func).bind(*args, **keywords)
        bound.apply_defaults()
        if bound.kwargs:
            raise SignatureError(
                f"{self._function.__name__} takes {', '.join(bound.kwargs)} by keyword alone",
                "make these parameters positional",
                "the compiled derivatives pass arguments by position",
            )
        return bound.args

    def _flattened(self, structure: tuple[Any, ...], kinds: tuple[_Kind, ...]) -> tuple[_Flat, Any]:
        """The function of the arrays alone, and the structure of its result."""
        scope: dict[str, Any] = {"f": self._function, "np": np}
        names = iter(f"x{i}" for i in range(len(kinds)))
        given = ", ".join(_expression(each, names, scope) for each in structure)
        listed = ", ".join(f"x{i}" for i in range(len(kinds)))
        inner = numba.njit(function_from("inner", f"def inner({listed}): return f({given})", "irad.interop.jax", scope))
        types = tuple(each.numba_type for each in kinds)
        inner.compile(types)
        outputs: list[tuple[str, _Kind]] = []
        returned = _returned(inner.overloads[types].signature.return_type, "r", outputs)
        casts = [_cast(path, kind, self._function.__name__) for path, kind in outputs]
        source = f"def flat({listed}):\n    r = f({given})\n    return ({''.join(f'{text}, ' for text, _ in casts)})\n"
        name = self._function.__name__
        function = numba.njit(function_from("flat", source, "irad.interop.jax", scope))
        shapes = None if self._shapes is None else functools.partial(self._stated, structure)
        return _Flat(name, function, kinds, tuple(kind for _, kind in casts), shapes), returned

    def _stated(self, structure: tuple[Any, ...], inputs: Sequence[Any]) -> list[tuple[int, ...]]:
        """Shapes as the user's function says."""
        assert self._shapes is not None
        return list(_shapes_in(self._shapes(*_filled(structure, iter(inputs)))))


def _shapes_in(stated: Any) -> Iterator[tuple[int, ...]]:
    if all(isinstance(each, int | np.integer) for each in stated):
        yield tuple(stated)
    else:
        for each in stated:
            yield from _shapes_in(each)


def _expression(structure: Any, names: Iterator[str], scope: dict[str, Any]) -> str:
    """An argument as text; a constant becomes a global name of the function."""
    if structure is _LEAF:
        return next(names)
    if isinstance(structure, tuple):
        items = "".join(f"{_expression(each, names, scope)}, " for each in structure)
        if not hasattr(structure, "_fields"):
            return f"({items})"
        structure, call = type(structure), f"({items})"
    else:
        call = ""
    name = f"c{len(scope)}"
    scope[name] = structure
    return name + call


def _returned(type_: Any, path: str, outputs: list[tuple[str, _Kind]]) -> Any:
    """Appends the arrays and numbers of a result, as expressions, and returns its structure."""
    if isinstance(type_, numba.types.BaseTuple):
        items = [_returned(each, f"{path}[{i}]", outputs) for i, each in enumerate(type_)]
        return (
            type_.instance_class(*items)
            if isinstance(type_, numba.types.NamedTuple | numba.types.NamedUniTuple)
            else tuple(items)
        )
    if isinstance(type_, numba.types.NoneType):
        return None
    number = type_.dtype if isinstance(type_, numba.types.Array) else numba.types.unliteral(type_)
    if isinstance(number, numba.types.Number | numba.types.Boolean):
        outputs.append((path, _Kind(np.dtype(str(number)), getattr(type_, "ndim", 0))))
        return _LEAF
    raise SignatureError(
        f"the function returns {type_}", "return arrays, numbers, and tuples of these", "JAX knows nothing else"
    )


def _cast(path: str, kind: _Kind, name: str) -> tuple[str, _Kind]:
    """A result with a dtype that JAX has."""
    dtype = jax.dtypes.canonicalize_dtype(kind.dtype)
    if dtype != kind.dtype and kind.is_float:
        warnings.warn(
            f"{name} returns {kind.dtype}, which is rounded to {dtype}: JAX computes with 32 bits unless "
            'jax.config.update("jax_enable_x64", True) says otherwise',
            stacklevel=6,
        )
    number = f"np.{np.dtype(dtype).name}" if np.dtype(dtype).name != "bool" else "np.bool_"
    return f"{path}.astype({number})" if kind.axes else f"{number}({path})", _Kind(np.dtype(dtype), kind.axes)


class _Flat:
    """A compiled function of arrays and numbers that returns a tuple of these.

    Attributes:
        number: its index in `all`; calls in JAX's programs hold it.
        inputs: kinds of the arguments.
        outputs: kinds of the results.
    """

    all: ClassVar[list[_Flat]] = []

    def __init__(
        self,
        name: str,
        function: Any,
        inputs: tuple[_Kind, ...],
        outputs: tuple[_Kind, ...],
        shapes: Callable[[Sequence[Any]], Sequence[tuple[int, ...]]] | None = None,
        transposed: Callable[[], _Flat] | None = None,
    ) -> None:
        self.name, self.function, self.inputs, self.outputs = name, function, inputs, outputs
        self._shapes, self._transposed = shapes, transposed
        self._known: dict[Any, list[jax.ShapeDtypeStruct]] = {}
        self._derivatives: dict[Any, _Flat] = {}
        self.number = len(self.all)
        self.all.append(self)

    def results(self, inputs: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
        """Shapes and dtypes of the results, from those of the arguments."""
        key = tuple(each.shape for each in inputs)
        if key not in self._known:
            plain = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in inputs]
            shapes = self._run_on_ones(plain) if self._shapes is None else self._shapes(plain)
            kinds = zip(shapes, self.outputs, strict=True)
            self._known[key] = [jax.ShapeDtypeStruct(shape, kind.dtype) for shape, kind in kinds]
        return self._known[key]

    def _run_on_ones(self, inputs: Sequence[Any]) -> list[tuple[int, ...]]:
        ones = [np.ones(each.shape, each.dtype) for each in inputs]
        found = self.function(*(each if each.ndim else each[()] for each in ones))
        for index, each in enumerate(ones):
            if not (each == 1).all():
                raise SignatureError(
                    f"{self.name} writes to an argument (array {index} of the call)",
                    "let it write to a copy that it makes",
                    "arrays of JAX never change",
                )
        return [np.shape(each) for each in found]

    def pullback(self, positions: tuple[int, ...]) -> _Flat:
        """The function of the arguments and the cotangents of the floats of the result."""
        floats = [i for i, each in enumerate(self.outputs) if each.is_float]
        # JAX transposes, without conjugation; the cotangents of `irad.vjp` are those of the real and imaginary parts
        cotangents = [_conjugate(f"c{i}", kind) if kind.is_float else "None" for i, kind in enumerate(self.outputs)]
        body = (
            f"    _, back = vjp(f, {self._names()}, argnums={positions!r})\n"
            f"    r = back(({''.join(f'{each}, ' for each in cotangents)}))\n"
        )
        kinds = [self.inputs[i] for i in positions]
        given = [f"c{i}" for i in floats], [self.outputs[i] for i in floats]
        shapes = lambda inputs: [inputs[i].shape for i in positions]  # noqa: E731
        return self._derivative(("pullback", positions), given, body, kinds, range(len(positions)), shapes)

    def pushforward(self, positions: tuple[int, ...]) -> _Flat:
        """The function of the arguments and the tangents of some that gives those of the floats of the result."""
        names = [f"x{i}" for i in range(len(self.inputs))]
        last = positions[-1] + 1
        tangents = f"({''.join(f't{i}, ' for i in positions)})"
        body = f"    r = push(f, {positions!r})({', '.join([*names[:last], tangents, *names[last:]])})[1]\n"
        floats = [i for i, each in enumerate(self.outputs) if each.is_float]
        given = [f"t{i}" for i in positions], [self.inputs[i] for i in positions]
        count = len(self.inputs)

        def shapes(inputs: Sequence[Any]) -> list[tuple[int, ...]]:
            results = self.results(inputs[:count])
            return [results[i].shape for i in floats]

        kinds = [self.outputs[i] for i in floats]
        key = "pushforward", positions
        return self._derivative(key, given, body, kinds, floats, shapes, lambda: self.pullback(positions))

    def transposed(self) -> _Flat:
        """The pullback that is the transpose of this pushforward."""
        assert self._transposed is not None
        return self._transposed()

    def _names(self) -> str:
        return ", ".join(f"x{i}" for i in range(len(self.inputs)))

    def _derivative(
        self,
        key: tuple[str, tuple[int, ...]],
        given: tuple[list[str], list[_Kind]],
        body: str,
        kinds: Sequence[_Kind],
        found: Sequence[int],
        shapes: Callable[[Sequence[Any]], Sequence[tuple[int, ...]]],
        transposed: Callable[[], _Flat] | None = None,
    ) -> _Flat:
        if key not in self._derivatives:
            results = [
                f"r[{i}]" if kind.axes else f"np.{kind.dtype.name}(r[{i}])"
                for i, kind in zip(found, kinds, strict=True)
            ]
            if transposed is None:
                results = [_conjugate(each, kind) for each, kind in zip(results, kinds, strict=True)]
            names, extra = given
            source = (
                f"def {key[0]}({', '.join(filter(None, [self._names(), *names]))}):\n{body}"
                f"    return ({''.join(f'{each}, ' for each in results)})\n"
            )
            scope = {"f": self.function, "vjp": irad.vjp, "push": irad.pushforward, "np": np}
            function = numba.njit(function_from(key[0], source, "irad.interop.jax", scope))
            name = f"the {key[0]} of {self.name}"
            self._derivatives[key] = _Flat(name, function, (*self.inputs, *extra), tuple(kinds), shapes, transposed)
        return self._derivatives[key]

    @functools.cached_property
    def target(self) -> str:
        """The name under which XLA knows the handler."""
        name = f"irad_call_{self.number}"
        self._handler = _handler(self)
        pointer = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self._handler.address)
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(pointer), platform="cpu", api_version=1)
        return name


def _conjugate(expression: str, kind: _Kind) -> str:
    return f"np.conj({expression})" if kind.dtype.kind == "c" else expression


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
    return jax.ffi.ffi_call(flat.target, flat.results(inputs))(*inputs)


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
            f"{flat.name} is transposed with respect to what it is not linear in",
            "transpose with respect to all tangents of a call",
            "a call is linear in its tangents together",
        )
    given = [ad.instantiate_zeros(each) for each in cotangents]
    found = _call.bind(*primals, *given, number=flat.transposed().number, linear=0)
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
    """The version of the interface in the header that comes with JAX, as its two fields lie in memory."""
    header = (Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h").read_text(encoding="utf-8")
    major, minor = (int(re.search(rf"#define XLA_FFI_API_{word} (\d+)", header)[1]) for word in ("MAJOR", "MINOR"))  # type: ignore[index]
    return major | minor << 32


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


def _reading(name: str, pointer: str, kind: _Kind, *, is_output: bool = False) -> Iterator[str]:
    yield f"    b_{name} = words({pointer}, 6)"
    shape = "1,"
    if kind.axes:
        yield f"    s_{name} = words(b_{name}[{_BUFFER['dims']}], {kind.axes})"
        shape = "".join(f"s_{name}[{i}], " for i in range(kind.axes))
    first = "" if kind.axes or is_output else "[0]"
    yield f"    {name} = carray(pointer(b_{name}[{_BUFFER['data']}]), ({shape}), d_{name}){first}"


def _writing(index: int, kind: _Kind) -> Iterator[str]:
    if not kind.axes:
        yield f"        y{index}[0] = found[{index}]"
        return
    yield f"        if found[{index}].shape == y{index}.shape:"
    yield f"            y{index}[...] = found[{index}]"
    yield "        else:"
    yield "            status = 2"
