"""PyTorch: a function that Numba compiles as a differentiable function of tensors.

A call runs the function on the tensors' own memory. Its derivatives are functions that Numba compiles as well, made of
`irad.vjp` and `irad.pushforward` and called in the same way; so they have derivatives themselves, of any order.

In eager mode a call is a `torch.autograd.Function`, which has forward mode and `vmap`. Under `torch.compile`, which
accepts neither in such a function, it is the operator `irad::call`, whose second argument says which function it calls.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, Final

import numba
import numpy as np
import torch

import irad
from irad.errors import SignatureError
from irad.frontend.calls.raising import public
from irad.frontend.generated import function_from
from irad.interop.flat import LEAF, example, filled, identity, mapped, positional, positions_of, split

__all__ = ["wrap"]

_NUMPY: Final = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.complex64: np.complex64,
    torch.complex128: np.complex128,
    torch.bool: np.bool_,
    torch.uint8: np.uint8,
    torch.int8: np.int8,
    torch.int16: np.int16,
    torch.int32: np.int32,
    torch.int64: np.int64,
}
_TORCH: Final = {np.dtype(each): dtype for dtype, each in _NUMPY.items()}
_OF_PYTHON: Final = {float: torch.float64, complex: torch.complex128, int: torch.int64, bool: torch.bool}
_TENSORS: Final = (torch.Tensor,)
_WIDTH: Final = 8  # rows of `vmap` that one call of a derivative takes


@public
def wrap(
    f: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    *,
    fake: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """A function of tensors, with the derivatives that PyTorch asks for.

    The tensors of the arguments, on the CPU, are passed as arrays that share their memory, those without axes as
    numbers. They may lie in tuples, named tuples, lists (passed as tuples) and dictionaries; all else is passed as it
    is. Arrays and numbers of the result become tensors. Reverse and forward mode, derivatives of any order and the
    transformations of `torch.func` are there. ``vmap`` runs the function row by row; where it maps a derivative over
    cotangents or tangents alone, as `torch.func.jacrev` and ``jacfwd`` do, eight rows share one forward sweep. Under
    `torch.compile` the call is one node of the graph, which has a gradient and no forward mode.

    Args:
        f: a plain function, or one of ``numba.njit`` or `irad.jit`. It must not write to its arguments.
        argnums: a position, or several, of the arguments that have a derivative; by default all do that hold tensors of
            floats. The tensors of others are constants, even if they require a gradient.
        fake: for `torch.compile`: ``fake(*args)`` returns tensors of the shapes and dtypes that ``f`` returns, as a
            function for ``register_fake`` does. By default ``f`` itself is run for each new shape, on tensors of ones,
            or zeros where they are of integers.

    Returns:
        The function of tensors, with the parameters of ``f``.

    Raises:
        SignatureError: a tensor is not on the CPU or has a dtype that Numba does not have, the function writes to an
            argument, or it returns what has no form as tensors.

    Examples:
        >>> import irad.interop.torch
        >>> import torch
        >>> from numba import njit
        >>> @njit
        ... def energy(x, stiffness):
        ...     total = 0.0
        ...     for i in range(x.size - 1):
        ...         total += 0.5 * stiffness * (x[i + 1] - x[i]) ** 2
        ...     return total
        >>> energy = irad.interop.torch.wrap(energy)
        >>> x = torch.tensor([0.0, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
        >>> energy(x, 2.0).backward()
        >>> x.grad
        tensor([-2., -2.,  4.], dtype=torch.float64)
        >>> torch.func.hessian(energy)(x.detach(), 2.0)
        tensor([[ 2., -2.,  0.],
                [-2.,  4., -2.],
                [ 0., -2.,  2.]], dtype=torch.float64)
    """
    if not callable(f):
        raise SignatureError(
            f"irad.interop.torch.wrap is given {type(f).__name__}", "pass a function", "it wraps functions of arrays"
        )
    compiled = f if hasattr(f, "py_func") else irad.jit(f)
    positions = positions_of(compiled, argnums)
    return functools.update_wrapper(_Function(compiled, positions, fake), compiled.py_func)


# ------------------------------------------------------------------------------------------------ structures


def _split_result(value: Any, values: list[Any]) -> Any:
    """Appends the arrays and numbers of a result, and returns its structure."""

    def taken(part: Any) -> Any:
        if isinstance(part, np.generic | float | complex | int) or (isinstance(part, np.ndarray) and part.ndim):
            values.append(part)
            return LEAF
        if part is None:
            return None
        raise SignatureError(
            f"the function returns {'an array of no axes' if isinstance(part, np.ndarray) else type(part).__name__}",
            "return arrays with axes, numbers, and tuples of these",
            "PyTorch follows derivatives through tensors, and tensors of no axes are numbers in the function",
        )

    return mapped(value, taken)


def _aligned(structure: Any, value: Any) -> Iterator[Any]:
    """Parts of a value at the places of a structure's tensors; None where it has nothing."""
    if structure is LEAF:
        yield value
    elif isinstance(structure, dict | tuple):
        for key in structure if isinstance(structure, dict) else range(len(structure)):
            yield from _aligned(structure[key], None if value is None else value[key])


def _has_dictionary(structure: Any) -> bool:
    return isinstance(structure, dict) or (isinstance(structure, tuple) and any(map(_has_dictionary, structure)))


# ------------------------------------------------------------------------------------------------ tensors and arrays


def _array(tensor: torch.Tensor) -> Any:
    """The memory of a tensor as an array; a tensor of no axes is a number, which is how Numba's functions take it."""
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided or tensor.dtype not in _NUMPY:
        raise _foreign(tensor)
    plain = tensor.detach()
    if plain.is_conj():
        plain = plain.resolve_conj()
    if plain.is_neg():
        plain = plain.resolve_neg()
    array = plain.numpy()
    if not array.ndim:
        return array[()]
    # elements that share memory would share their derivative as well
    return array if array.flags.forc or not _repeats(array) else array.copy()


def _repeats(array: np.ndarray[Any, Any]) -> bool:
    """True unless it is certain that each element has memory of its own."""
    end = array.itemsize
    for stride, length in sorted(
        (abs(stride), length) for stride, length in zip(array.strides, array.shape, strict=True)
    ):
        if length > 1:
            if stride < end:
                return True
            end += stride * (length - 1)
    return False


def _foreign(tensor: torch.Tensor) -> SignatureError:
    if tensor.device.type != "cpu":
        return SignatureError(
            f"a tensor is on the device {tensor.device}",
            "pass tensor.cpu(), or differentiate a CUDA kernel with irad.cuda",
            "the function is compiled for the CPU",
        )
    if tensor.layout is not torch.strided:
        return SignatureError(
            f"a tensor has the layout {tensor.layout}", "pass tensor.to_dense()", "functions of Numba take dense arrays"
        )
    return SignatureError(
        f"a tensor has the dtype {tensor.dtype}",
        "convert it, as tensor.float() does",
        "Numba has single and double precision, complex numbers of both, and integers",
    )


def _tensor(value: Any, dtype: torch.dtype, inputs: Sequence[Any] = ()) -> torch.Tensor:
    """A result as a tensor, which shares the memory of an array unless an input has it."""
    if not isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value, _NUMPY[dtype]))  # `torch.tensor` takes five times as long
    is_foreign = any(each < 0 for each in value.strides) or not value.flags.writeable
    if is_foreign or any(isinstance(each, np.ndarray) and np.may_share_memory(value, each) for each in inputs):
        value = value.copy()
    return torch.from_numpy(value)


def _is_float(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def _is_single(value: Any) -> bool:
    return hasattr(value, "dtype") and value.dtype in (np.float32, np.complex64)


def _dtypes(type_: Any) -> Iterator[torch.dtype | None]:
    """For each array and number of a result of Numba's, the dtype of a number, which Python's numbers have lost."""
    if isinstance(type_, numba.types.BaseTuple):
        for each in type_:
            yield from _dtypes(each)
    elif not isinstance(type_, numba.types.NoneType):
        yield _TORCH[np.dtype(str(type_))] if isinstance(type_, numba.types.Float | numba.types.Complex) else None


# ------------------------------------------------------------------------------------------------ functions


class _Function:
    """A function that Numba compiles, called with tensors.

    Args:
        f: the function.
        differentiable: positions of the arguments that may have a derivative; None for all.
        fake: as in `wrap`.

    Attributes:
        number: its key in `all`, a text: in a graph an integer that changes from call to call is a variable.
    """

    all: ClassVar[dict[str, _Function]] = {}

    def __init__(
        self, f: Callable[..., Any], differentiable: frozenset[int] | None, fake: Callable[..., Any] | None
    ) -> None:
        self.compiled: Any = f
        self._differentiable, self.fake = differentiable, fake
        self.__name__: str = getattr(f, "__name__", type(f).__name__)
        self._derivatives: dict[tuple[Any, ...], _Derivative] = {}
        self.seen: set[Any] = set()  # types of arguments with which it is known to write to none
        self.number = str(len(self.all))
        self.all[self.number] = self

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if keywords:
            args = positional(self.compiled, args, keywords)
        if torch.compiler.is_compiling():
            return _call_in_graph(self, args)
        tensors: list[torch.Tensor] = []
        call = _Call.of(self, args, tensors)
        outputs = _Node.apply(call, *tensors)
        return filled(call.result, iter(outputs))

    @functools.cached_property
    def taking_dictionaries(self) -> Any:
        """The function, where arguments have dictionaries."""
        return irad.jit(self.compiled.py_func)

    def may_have_derivative(self, position: int) -> bool:
        """False for an argument that is a constant."""
        return self._differentiable is None or position in self._differentiable

    def pullback(self, positions: tuple[int, ...], count: int, rows: int | None = None) -> _Derivative:
        """The function of the arguments and a cotangent that gives the cotangents of some arguments.

        With rows, it takes a tuple of cotangents and gives a tuple of results.
        """
        names = ", ".join(f"x{i}" for i in range(count))
        back = "back(given)" if rows is None else _tuple(f"back(given[{i}])" for i in range(rows))
        source = (
            f"def pullback({names}, given):\n    _, back = vjp(f, {names}, argnums={positions!r})\n    return {back}\n"
        )
        return self._derivative((_Function.pullback, positions, count), rows, source)

    def pushforward(self, positions: tuple[int, ...], count: int, rows: int | None = None) -> _Derivative:
        """The function of the arguments and a tuple of tangents of some of them that gives the tangent of the value."""
        names = [f"x{i}" for i in range(count)]
        if rows is None:
            last = positions[-1] + 1
            push = f"push(f, {positions!r})({', '.join([*names[:last], 'given', *names[last:]])})[1]"
        else:
            tangents = {
                position: _tuple(f"given[{row}][{i}]" for row in range(rows)) for i, position in enumerate(positions)
            }
            annotated = [f"Batch({x}, {tangents[i]})" if i in tangents else f"Const({x})" for i, x in enumerate(names)]
            push = f"autodiff(Forward, f, {', '.join(annotated)})"
        source = f"def pushforward({', '.join(names)}, given):\n    return {push}\n"
        return self._derivative((_Function.pushforward, positions, count), rows, source)

    def _derivative(self, maker: tuple[Any, ...], rows: int | None, source: str) -> _Derivative:
        key = (*maker, rows)
        if key not in self._derivatives:
            known = {"f": self.compiled, "vjp": irad.vjp, "push": irad.pushforward, "autodiff": irad.autodiff}
            annotations = {"Forward": irad.Forward, "Batch": irad.BatchDuplicated, "Const": irad.Const}
            name = source[4 : source.index("(")]
            compiled = irad.jit(function_from(name, source, "irad.interop.torch", {**known, **annotations}))
            of_rows = None if rows else functools.partial(maker[0], self, *maker[1:])
            returned = maker[1] if maker[0] is _Function.pullback and not rows else None
            self._derivatives[key] = _Derivative(compiled, of_rows, returned)
        return self._derivatives[key]


def _tuple(items: Iterable[str]) -> str:
    return f"({', '.join(items)},)"


class _Derivative(_Function):
    """A derivative of a function, whose last argument is a cotangent or a tuple of tangents.

    Attributes:
        of_rows: makes the derivative that takes a number of these; None if this is one.
        returned: positions of the arguments that it returns cotangents of, None if it returns anything else.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        of_rows: Callable[[int], _Derivative] | None,
        returned: tuple[int, ...] | None,
    ) -> None:
        super().__init__(f, None, None)
        self.of_rows, self.returned = of_rows, returned


# ------------------------------------------------------------------------------------------------ calls


class _Call:
    """A call of a function.

    Attributes:
        function: that is called.
        structure: of the arguments, with `LEAF` for each tensor.
        owners: for each tensor, the position of its argument.
        result: the structure of the value, once the function has run.
    """

    __slots__ = ("_back", "_positions", "_records", "function", "owners", "result", "structure")

    def __init__(self, function: _Function, structure: tuple[Any, ...], owners: list[int], *, records: bool) -> None:
        self.function, self.structure, self.owners, self._records = function, structure, owners, records
        self._back: Any = None
        self._positions: tuple[int, ...] = ()
        self.result: Any = None

    @classmethod
    def of(cls, function: _Function, args: Sequence[Any], tensors: list[torch.Tensor]) -> _Call:
        """Appends the tensors of the arguments."""
        structure: list[Any] = []
        owners: list[int] = []
        for position, each in enumerate(args):
            before = len(tensors)
            structure.append(split(each, tensors, _TENSORS))
            owners.extend([position] * (len(tensors) - before))
        return cls(function, tuple(structure), owners, records=torch.is_grad_enabled())

    def again(self) -> _Call:
        """A call of the function with the same structure, not yet run."""
        return _Call(self.function, self.structure, self.owners, records=self._records)

    def arguments(self, tensors: Iterable[Any]) -> Any:
        """The arguments of the function, with these tensors or arrays."""
        return filled(self.structure, iter(tensors))

    # ---- the value

    def run(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Runs the function; what its reverse sweep needs is saved if a tensor requires a gradient."""
        if self._records:
            self._positions = self.chosen(each.requires_grad for each in tensors)
        arrays = [_array(each) for each in tensors]
        outputs = []
        for value, dtype in self.values(arrays):
            outputs.append(_tensor(value, dtype, arrays))
            arrays.append(value)
        return tuple(outputs)

    def values(self, arrays: Sequence[Any]) -> list[tuple[Any, torch.dtype]]:
        """Arrays and numbers of the result, with their types as tensors."""
        args = self.arguments(arrays)
        has_dictionary = _has_dictionary(self.structure)
        compiled = self.function.taking_dictionaries if has_dictionary else self.function.compiled
        first = self._first(arrays)
        if self._positions:
            value, self._back = irad.vjp(compiled, *args, argnums=self._positions)
        else:
            value = compiled(*args)
        if first is not None:
            self._check_unchanged(arrays, *first)
        values: list[Any] = []
        returned = getattr(self.function, "returned", None)
        if returned is None:
            self.result = _split_result(value, values)
        else:
            self.result = self.cotangents_of(returned, (each.dtype.kind in "fc" for each in arrays))
            values.extend(each for each in _aligned(self.result, value))
        numbers: Iterator[Any] = itertools.repeat(None)
        has_numbers = any(type(each) in (float, complex) for each in values)
        if has_numbers and not has_dictionary and any(map(_is_single, arrays)):
            types = tuple(map(numba.typeof, args))
            compiled.compile(types)
            numbers = _dtypes(compiled.overloads[types].signature.return_type)
        return [
            (each, _TORCH[each.dtype] if hasattr(each, "dtype") else number or _OF_PYTHON[type(each)])
            for each, number in zip(values, numbers)  # noqa: B905 - there may be more of them
        ]

    def _first(self, arrays: Sequence[Any]) -> Any:
        """Copies of the arguments, the first time that the function is called with such arguments."""
        key = tuple((each.dtype.char, each.ndim) for each in arrays)
        if isinstance(self.function, _Derivative) or key in self.function.seen:
            return None
        return key, [each.copy() for each in arrays]

    def _check_unchanged(self, arrays: Sequence[Any], key: Any, before: Sequence[Any]) -> None:
        for array, copy, owner in zip(arrays, before, self.owners, strict=True):
            if array.tobytes() != copy.tobytes():
                array[...] = copy
                raise SignatureError(
                    f"{self.function.__name__} writes to its argument {owner}",
                    "let it write to a copy that it makes",
                    "PyTorch cannot see that a tensor was changed, and would use what it has saved of it",
                )
        self.function.seen.add(key)

    def cotangents_of(self, positions: Iterable[int], are_floats: Iterable[bool]) -> tuple[Any, ...]:
        """The structure of the cotangents of some arguments, in which integers have no place."""
        places = self.arguments(LEAF if each else None for each in are_floats)
        return tuple(mapped(places[position], lambda part: part if part is LEAF else None) for position in positions)

    # ---- derivatives

    def chosen(self, wanted: Iterable[bool]) -> tuple[int, ...]:
        """Positions of the arguments that may have a derivative and of which a tensor is wanted."""
        owners = {owner for owner, is_wanted in zip(self.owners, wanted, strict=True) if is_wanted}
        return tuple(sorted(filter(self.function.may_have_derivative, owners)))

    def cotangents(self, ctx: Any, given: Sequence[torch.Tensor | None]) -> Sequence[torch.Tensor | None]:
        """Cotangents of the tensors, from those of the outputs.

        The function's own pullback gives them, or, where they are to be differentiated, a call that repeats it.
        """
        needed = ctx.needs_input_grad[1:]
        if self._back is not None and not torch.is_grad_enabled():
            arrays = [None if each is None else _array(each.contiguous()) for each in given]
            found = self._back(filled(self.result, iter(arrays)))
            return self.gradients(self._positions, found, needed, ctx.kinds)
        positions = self.chosen(needed)
        if not positions:
            return [None] * len(self.owners)
        args = self.arguments(ctx.saved_tensors)
        found = self.function.pullback(positions, len(args))(*args, self.cotangent(given, ctx.outputs))
        return self.gradients(positions, found, needed, ctx.kinds)

    def cotangent(self, given: Sequence[torch.Tensor | None], outputs: Sequence[tuple[Any, torch.dtype]]) -> Any:
        """Cotangent of the value: zeros where PyTorch gives nothing, and nothing for integers."""
        full = [
            (torch.zeros(shape, dtype=dtype) if each is None else each) if _is_float(dtype) else None
            for each, (shape, dtype) in zip(given, outputs, strict=True)
        ]
        return filled(self.result, iter(full))

    def gradients(
        self, positions: Sequence[int], found: Sequence[Any], needed: Sequence[bool], kinds: Sequence[torch.dtype]
    ) -> list[torch.Tensor | None]:
        """Gradients of the tensors, from the cotangents of some arguments."""
        of_position = dict(zip(positions, found, strict=True))
        aligned = itertools.chain.from_iterable(
            _aligned(each, of_position.get(position)) for position, each in enumerate(self.structure)
        )
        return [
            None if each is None or not wanted else each if isinstance(each, torch.Tensor) else _tensor(each, kind)
            for each, wanted, kind in zip(aligned, needed, kinds, strict=True)
        ]

    def tangents(
        self, tensors: Sequence[torch.Tensor], given: Sequence[torch.Tensor | None]
    ) -> tuple[torch.Tensor | None, ...]:
        """Tangents of the outputs, from those of the tensors."""
        positions = self.chosen(each is not None for each in given)
        full = [
            (torch.zeros_like(tensor) if each is None else each) if _is_float(tensor.dtype) else None
            for each, tensor in zip(given, tensors, strict=True)
        ]
        directions, args = self.arguments(full), self.arguments(tensors)
        push = self.function.pushforward(positions, len(args))
        return tuple(_aligned(self.result, push(*args, tuple(directions[i] for i in positions))))

    # ---- rows

    def rows(self, tensors: Sequence[torch.Tensor], axes: Sequence[int | None], count: int) -> list[tuple[Any, ...]]:
        """The outputs for each row of a batch."""
        last = len(self.structure) - 1
        shared = [axis is None for axis in axes]
        of_rows = getattr(self.function, "of_rows", None)
        batch = [
            [each if axis is None else each.select(axis, row) for each, axis in zip(tensors, axes, strict=True)]
            for row in range(count)
        ]
        if of_rows is None or not all(each or owner == last for each, owner in zip(shared, self.owners, strict=True)):
            return [self._row(each) for each in batch]
        found: list[tuple[Any, ...]] = []
        for begin in range(0, count, _WIDTH):
            given = [self.arguments(each) for each in batch[begin : begin + _WIDTH]]
            results = of_rows(len(given))(*given[0][:last], tuple(each[last] for each in given))
            for each in results:
                outputs: list[torch.Tensor] = []
                self.result = split(each, outputs, _TENSORS)
                found.append(tuple(outputs))
        return found

    def _row(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        call = self.again()
        outputs = _Node.apply(call, *tensors)
        self.result = call.result
        return outputs


class _Node(torch.autograd.Function):
    """Node that PyTorch calls in eager mode: it has reverse and forward mode, and `vmap`."""

    @staticmethod
    def forward(call: _Call, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return call.run(tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        ctx.call, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(each for each in output if not _is_float(each.dtype)))
        ctx.outputs = [(each.shape, each.dtype) for each in output]
        ctx.kinds = [each.dtype for each in tensors]

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> tuple[Any, ...]:
        return None, *ctx.call.cotangents(ctx, cotangents)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: torch.Tensor | None) -> tuple[Any, ...]:
        return ctx.call.tangents(ctx.saved_tensors, tangents)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], call: _Call, *tensors: torch.Tensor) -> tuple[Any, Any]:
        rows = call.rows(tensors, in_dims[1:], info.batch_size)
        return tuple(map(torch.stack, zip(*rows, strict=True))), (0,) * len(rows[0])


class _Positional(inspect.Signature):
    """The signature of `_Node.forward`, which PyTorch binds in every call: that took a third of the time of a call."""

    def bind(self, *args: Any, **keywords: Any) -> Any:
        return SimpleNamespace(args=args, kwargs=keywords, apply_defaults=bool)


_Node.forward.__signature__ = _Positional()  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------ under torch.compile


class _Traced:
    """The calls that graphs hold, by numbers: a function, and the structure of its arguments.

    PyTorch keeps graphs on disk for other processes, and finds them by what they contain. The numbers are drawn, so
    that no graph of another process, with its functions, is found.
    """

    calls: ClassVar[dict[int, _Call]] = {}
    _keys: ClassVar[dict[Any, int]] = {}

    @classmethod
    def key(cls, function: _Function, structure: tuple[Any, ...], owners: Sequence[int]) -> int:
        """The number of a call, the same for the same function and structure."""
        name = function.number, identity(structure), tuple(owners)
        if name not in cls._keys:
            cls._keys[name] = key = secrets.randbits(62)
            cls.calls[key] = _Call(function, structure, list(owners), records=False)
        return cls._keys[name]


def _call_in_graph(function: _Function, args: Sequence[Any]) -> Any:
    tensors: list[torch.Tensor] = []
    call = _Call.of(function, args, tensors)
    key = _key(function.number, mapped(call.structure, _constant), tuple(call.owners))
    outputs = _operator(tensors, key)
    return filled(_result(key), iter(outputs))


def _constant(part: Any) -> Any:
    """A number that changed from call to call as a constant of the graph again: a key has to be one."""
    return next(iter({part: None})) if isinstance(part, int | float) else part


@torch.compiler.assume_constant_result
def _key(number: str, structure: tuple[Any, ...], owners: tuple[int, ...]) -> int:
    return _Traced.key(_Function.all[number], structure, owners)


@torch.compiler.assume_constant_result
def _result(key: int) -> Any:
    return _Traced.calls[key].result


@torch.library.custom_op("irad::call", mutates_args=(), schema="(Tensor[] tensors, int key) -> Tensor[]")
def _operator(tensors: list[torch.Tensor], key: int) -> list[torch.Tensor]:
    call = _Traced.calls[key]
    run = call.again()
    outputs = list(run.run(tensors))
    call.result = run.result
    return outputs


@_operator.register_fake
def _fake(tensors: list[torch.Tensor], key: int) -> list[torch.Tensor]:
    """Tensors without memory, of the shapes and dtypes that the function returns."""
    call = _Traced.calls[key]
    found: list[torch.Tensor] = []
    returned = getattr(call.function, "returned", None)
    if returned is not None:
        call.result = call.cotangents_of(returned, (_is_float(each.dtype) for each in tensors))
        arguments = call.arguments(tensors)
        found.extend(
            torch.empty_like(each)
            for position, structure in zip(returned, call.result, strict=True)
            for each in _aligned(structure, arguments[position])
        )
    elif call.function.fake is not None:
        call.result = split(call.function.fake(*call.arguments(tensors)), found, _TENSORS)
    else:
        examples: list[Any] = [example(tuple(map(int, each.shape)), _NUMPY[each.dtype]) for each in tensors]
        for value, dtype in call.values([each if each.ndim else each[()] for each in examples]):
            found.append(torch.empty(np.shape(value), dtype=dtype, device=tensors[0].device if tensors else None))
    return found


def _save(ctx: Any, inputs: tuple[Any, ...], output: list[torch.Tensor]) -> None:
    tensors, ctx.key = inputs
    ctx.save_for_backward(*tensors)
    ctx.kinds = [each.dtype for each in tensors]
    ctx.outputs = [(each.shape, each.dtype) for each in output]


def _reverse(ctx: Any, cotangents: list[torch.Tensor | None]) -> tuple[Sequence[torch.Tensor | None], None]:
    call, needed = _Traced.calls[ctx.key], ctx.needs_input_grad[0]
    positions = call.chosen(needed)
    if not positions:
        return [None] * len(needed), None
    pullback = call.function.pullback(positions, len(call.structure))
    tensors: list[torch.Tensor] = []
    args = *call.arguments(ctx.saved_tensors), call.cotangent(cotangents, ctx.outputs)
    back = _Call.of(pullback, args, tensors)
    key = _Traced.key(pullback, back.structure, back.owners)
    outputs = _operator(tensors, key)
    found = filled(_Traced.calls[key].result, iter(outputs))
    return call.gradients(positions, found, needed, ctx.kinds), None


_operator.register_autograd(_reverse, setup_context=_save)
