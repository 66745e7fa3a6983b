"""PyTorch: a function that Numba compiles as a differentiable function of tensors.

A call runs the function on the tensors' own memory. Its derivatives are functions that Numba compiles as well, called
in the same way; so they have derivatives themselves, of any order.

In eager mode a call is a `torch.autograd.Function`, which has forward mode and `vmap`. Under `torch.compile`, which
accepts neither in such a function, it is the operator `irad::call`, whose second argument says which function it calls.
"""

from __future__ import annotations

import functools
import inspect
import secrets
import sys
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, Final, overload

import numpy as np

import irad
from irad.errors import SignatureError
from irad.frontend.calls.raising import public
from irad.frontend.packing.packed import packed, type_key
from irad.interop.flat import (
    HELD,
    LEAF,
    ArrayOrNumber,
    Flat,
    Kind,
    filled,
    flattened,
    held_apart,
    identity,
    mapped,
    owners_of,
    positional,
    positions_of,
    split,
    type_of,
)
from irad.versions import needed

with needed("torch"):
    import torch

__all__ = ["wrap"]

_NUMPY: Final = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.complex64: np.complex64,
    torch.complex128: np.complex128,
    torch.bool: np.bool_,
    torch.uint8: np.uint8,
    torch.uint16: np.uint16,
    torch.uint32: np.uint32,
    torch.uint64: np.uint64,
    torch.int8: np.int8,
    torch.int16: np.int16,
    torch.int32: np.int32,
    torch.int64: np.int64,
}
_TORCH: Final = {np.dtype(each): dtype for dtype, each in _NUMPY.items()}
_TENSORS: Final = (torch.Tensor,)
_WIDTH: Final = 8  # rows of `vmap` that one call of a derivative takes


@overload
def wrap(
    f: Callable[..., ArrayOrNumber],
    argnums: int | Sequence[int] | None = None,
    *,
    fake: Callable[..., torch.Tensor] | None = None,
) -> Callable[..., torch.Tensor]: ...


@overload
def wrap(
    f: Callable[..., tuple[Any, ...] | dict[str, Any]],
    argnums: int | Sequence[int] | None = None,
    *,
    fake: Callable[..., Any] | None = None,
) -> Callable[..., Any]: ...


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


# ------------------------------------------------------------------------------------------------ tensors and arrays


def _array(tensor: torch.Tensor) -> Any:
    """The memory of a tensor as an array; a tensor of no axes is a number, which is how Numba's functions take it."""
    if not tensor.is_cpu or tensor.layout is not torch.strided:
        raise _foreign(tensor)
    try:
        array = tensor.numpy(force=True)  # detached; of conjugate and negative views a copy
    except RuntimeError as error:
        raise SignatureError(
            "a tensor has no memory of its own",
            "use torch.func.jacrev, jacfwd or vmap in place of is_grads_batched=True and vectorize=True",
            "it represents a batch in PyTorch's older vectorisation, which cannot call user functions",
        ) from error
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
    return SignatureError(
        f"a tensor has the layout {tensor.layout}", "pass tensor.to_dense()", "functions of Numba take dense arrays"
    )


def _kind(dtype: torch.dtype, axes: int) -> Kind:
    """The kind of the array of a tensor."""
    if dtype in _NUMPY:
        return Kind.of(_NUMPY[dtype], axes)
    raise SignatureError(
        f"a tensor has the dtype {dtype}",
        "convert it, as tensor.float() does",
        "Numba supports single and double precision, complex numbers of both, and integers",
    )


def _tensor(value: Any, dtype: np.dtype[Any], inputs: Sequence[Any] = ()) -> torch.Tensor:
    """A result as a tensor, which shares the memory of an array unless an input has it."""
    if not isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value, dtype))  # `torch.tensor` takes five times as long
    flags = value.flags
    is_foreign = not flags.writeable or (not flags.c_contiguous and any(each < 0 for each in value.strides))
    if is_foreign or any(isinstance(each, np.ndarray) and np.may_share_memory(value, each) for each in inputs):
        value = value.copy()
    return torch.from_numpy(value)


# ------------------------------------------------------------------------------------------------ functions


class _Flat(Flat):
    """A compiled function of arrays, called with tensors.

    Attributes:
        is_checked: whether it is known to leave its arguments as they are.
        returned: the structure of its results, as the user's function returns them.
    """

    is_checked = False
    returned: Any = None

    @functools.cached_property
    def active(self) -> tuple[int, ...]:
        """Positions of the arguments that may have a derivative."""
        return tuple(i for i, each in enumerate(self.inputs) if each.is_float)

    @functools.cached_property
    def integers(self) -> tuple[int, ...]:
        """Positions of the results that have no derivative."""
        return tuple(i for i, each in enumerate(self.outputs) if not each.is_float)

    def chosen(self, wanted: Iterable[bool]) -> tuple[int, ...]:
        """Positions of the arrays of floats in the arguments of which some are wanted.

        A derivative with respect to whole arguments serves for all their parts: there are fewer to compile.
        """
        owners = {owner for owner, is_wanted in zip(self.owners, wanted, strict=True) if is_wanted}
        return tuple([i for i in self.active if self.owners[i] in owners])

    def cotangents(self, given: Sequence[torch.Tensor | None], shapes: Sequence[Any]) -> list[torch.Tensor]:
        """Cotangents of `floats`: zeros where PyTorch gives nothing."""
        full: list[torch.Tensor] = []
        for i in self.floats:
            each = given[i]
            full.append(torch.zeros(shapes[i], dtype=_TORCH[self.outputs[i].dtype]) if each is None else each)
        return full

    def placed(self, positions: Sequence[int], found: Sequence[Any]) -> list[Any]:
        """A list with an entry for each argument: those found for some of them, None for the others."""
        of_position = dict(zip(positions, found, strict=True))
        return [of_position.get(i) for i in range(len(self.inputs))]


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
        self._compiled: Any = f
        self._differentiable, self._fake = differentiable, fake
        self._flat: dict[Any, _Flat] = {}
        self.number = str(len(self.all))
        self.all[self.number] = self

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if keywords:
            args = positional(self._compiled, args, keywords)
        if torch.compiler.is_compiling():
            return self._call_in_graph(args)
        tensors: list[torch.Tensor] = []
        held: list[Any] = []
        structure = self._split(args, tensors, held)
        flat = self._flattened(structure, [(each.dtype, each.ndim) for each in tensors], held)
        outputs = _Node.apply(_Call(flat, held), *tensors)
        return outputs[0] if flat.returned is LEAF else filled(flat.returned, iter(outputs))

    def _split(self, args: Sequence[Any], tensors: list[torch.Tensor], held: list[Any] | None = None) -> Any:
        """The structure of the arguments, without their tensors, which are appended."""
        structure: list[Any] = []
        for position, each in enumerate(args):
            before = len(tensors)
            structure.append(split(each, tensors, _TENSORS, held))
            if self._differentiable is not None and position not in self._differentiable:
                tensors[before:] = [each.detach() for each in tensors[before:]]
        return tuple(structure)

    def _flattened(
        self, structure: tuple[Any, ...], kinds: Sequence[tuple[torch.dtype, int]], held: list[Any]
    ) -> _Flat:
        """The function of the tensors alone."""
        types = []
        for i, each in enumerate(held):
            if (type_ := type_key(each)) is None:
                held[i] = packed(each)
                type_ = type_of(held[i])
            types.append(type_)
        shape = tuple([each if each is LEAF or each is HELD else identity(each) for each in structure])
        key = shape, tuple(kinds), tuple(types)
        if key not in self._flat:
            name = self._compiled.__name__
            inputs = tuple(_kind(*each) for each in kinds)
            found = flattened(self._compiled, structure, inputs, list(map(type_of, held)))
            self._flat[key] = _Flat(name, found.function, inputs, found.outputs, len(held), owners_of(structure))
            self._flat[key].returned = found.returned
        return self._flat[key]

    # ---- under torch.compile

    def _call_in_graph(self, args: Sequence[Any]) -> Any:
        tensors: list[torch.Tensor] = []
        structure = mapped(self._split(args, tensors), _constant)
        key = _key(self.number, structure, tuple([(each.dtype, each.ndim) for each in tensors]))
        outputs = _operator(tensors, key)
        return filled(_result(key), iter(outputs))

    def key(self, structure: tuple[Any, ...], kinds: Sequence[tuple[torch.dtype, int]]) -> int:
        """The number of a call, from the structure of its arguments with the constants."""
        places, held = held_apart(structure, lambda _: True)
        flat = self._flattened(places, kinds, held)
        return _Traced.key(flat, held, self._fake and functools.partial(self._stated, structure))

    def _stated(self, structure: tuple[Any, ...], tensors: Sequence[torch.Tensor]) -> list[tuple[int, ...]]:
        """The shapes of the results, as the user states them."""
        found: list[torch.Tensor] = []
        assert self._fake is not None
        split(self._fake(*filled(structure, iter(tensors))), found, _TENSORS)
        return [tuple(each.shape) for each in found]


# ------------------------------------------------------------------------------------------------ calls


class _Call:
    """A call of a function.

    Attributes:
        flat: the function.
        held: what it takes before the tensors.
        positions: of the tensors that the pullback is with respect to.
        back: the pullback, with what the forward sweep has saved; None where nothing requires a gradient.
    """

    __slots__ = ("_records", "back", "flat", "held", "positions")

    def __init__(self, flat: _Flat, held: Sequence[Any], *, records: bool | None = None) -> None:
        self.flat, self.held = flat, held
        self._records = torch.is_grad_enabled() if records is None else records
        self.positions: tuple[int, ...] = ()
        self.back: Any = None

    def run(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Runs the function; what its reverse sweep needs is saved if a tensor requires a gradient."""
        flat = self.flat
        if _is_traced():
            return tuple(_operator(list(tensors), _Traced.key(flat, self.held)))
        arrays = [_array(each) for each in tensors]
        if self._records and flat.floats:
            self.positions = tuple([i for i in flat.active if tensors[i].requires_grad])
        if flat.is_checked or flat.base is not None:
            values = self._values(arrays)
        else:
            values = flat.checked(arrays, lambda: self._values(arrays))
            flat.is_checked = True
        outputs = []
        for value, kind in zip(values, flat.outputs, strict=True):
            outputs.append(_tensor(value, kind.dtype, arrays))
            arrays.append(value)
        return tuple(outputs)

    def _values(self, arrays: Sequence[Any]) -> Any:
        if not self.positions:
            return self.flat.function(*self.held, *arrays)
        at = tuple([len(self.held) + i for i in self.positions]) if self.held else self.positions
        values, self.back = irad.vjp(self.flat.function, *self.held, *arrays, argnums=at)
        return values

    def cotangents(self, ctx: Any, given: Sequence[torch.Tensor | None]) -> Sequence[torch.Tensor | None]:
        """Cotangents of the tensors, from those of the outputs.

        The function's own pullback gives them, or, where they are to be differentiated, a call that repeats it.
        """
        flat, needed = self.flat, ctx.needs_input_grad[1:]
        if self.back is not None and not torch.is_grad_enabled():
            found = self.back(tuple([None if each is None else _array(each.contiguous()) for each in given]))
            gradients: list[Any] = [None] * len(needed)
            for i, each in zip(self.positions, found, strict=True):
                if needed[i]:
                    gradients[i] = _tensor(each, flat.inputs[i].dtype)
            return gradients
        positions = flat.chosen(needed)
        if not positions:
            return [None] * len(needed)
        pull = _Call(flat.pullback(positions), self.held)
        return flat.placed(positions, _Node.apply(pull, *ctx.saved_tensors, *flat.cotangents(given, ctx.shapes)))

    def tangents(
        self, tensors: Sequence[torch.Tensor], given: Sequence[torch.Tensor | None]
    ) -> tuple[torch.Tensor | None, ...]:
        """Tangents of the outputs, from those of the tensors."""
        flat = self.flat
        positions = flat.chosen(each is not None for each in given)
        full = [torch.zeros_like(tensors[i]) if (each := given[i]) is None else each for i in positions]
        push = _Call(flat.pushforward(positions), self.held)
        found = iter(_Node.apply(push, *tensors, *full))
        return tuple(next(found) if each.is_float else None for each in flat.outputs)

    def rows(self, tensors: Sequence[torch.Tensor], axes: Sequence[int | None], count: int) -> list[tuple[Any, ...]]:
        """The outputs for each row of a batch."""
        flat = self.flat
        batch = [
            [each if axis is None else each.select(axis, row) for each, axis in zip(tensors, axes, strict=True)]
            for row in range(count)
        ]
        begin = len(flat.base.inputs) if flat.base is not None and flat.rows == 1 else len(tensors)
        if begin == len(tensors) or any(axis is not None for axis in axes[:begin]):
            return [_Node.apply(_Call(flat, self.held), *each) for each in batch]
        found: list[tuple[Any, ...]] = []
        for first in range(0, count, _WIDTH):
            given = [each[begin:] for each in batch[first : first + _WIDTH]]
            wide = flat.of_rows(len(given))
            outputs = _Node.apply(_Call(wide, self.held), *tensors[:begin], *[each for row in given for each in row])
            size = len(flat.outputs)
            found.extend(tuple(outputs[i : i + size]) for i in range(0, len(outputs), size))
        return found

    def no_rows(self, tensors: Sequence[torch.Tensor], axes: Sequence[int | None]) -> tuple[torch.Tensor, ...]:
        """The outputs for a batch without rows."""
        pairs = zip(tensors, axes, strict=True)
        of_row = [each if axis is None else each.new_empty(each.movedim(axis, 0).shape[1:]) for each, axis in pairs]
        shapes = zip(self.flat.shapes(of_row, self.held), self.flat.outputs, strict=True)
        return tuple(torch.empty((0, *shape), dtype=_TORCH[kind.dtype]) for shape, kind in shapes)


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
        if integers := ctx.call.flat.integers:
            ctx.mark_non_differentiable(*[output[i] for i in integers])
        ctx.shapes = [each.shape for each in output]

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> tuple[Any, ...]:
        return None, *ctx.call.cotangents(ctx, cotangents)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: torch.Tensor | None) -> tuple[Any, ...]:
        return ctx.call.tangents(ctx.saved_tensors, tangents)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], call: _Call, *tensors: torch.Tensor) -> tuple[Any, Any]:
        if not info.batch_size:
            return call.no_rows(tensors, in_dims[1:]), (0,) * len(call.flat.outputs)
        rows = call.rows(tensors, in_dims[1:], info.batch_size)
        return tuple(map(torch.stack, zip(*rows, strict=True))), (0,) * len(rows[0])


class _Positional(inspect.Signature):
    """The signature of `_Node.forward`, which PyTorch binds in every call: that took a third of the time of a call."""

    def bind(self, *args: Any, **keywords: Any) -> Any:
        return SimpleNamespace(args=args, kwargs=keywords, apply_defaults=bool)


_Node.forward.__signature__ = _Positional()  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------ under torch.compile


def _is_traced() -> bool:
    """True if PyTorch records operations, as `torch.func.linearize` has it do: it would take a result as a constant."""
    proxies = sys.modules.get("torch.fx.experimental.proxy_tensor")  # there are none before it is imported
    return proxies is not None and proxies.get_proxy_mode() is not None


class _Traced:
    """The calls that graphs hold, by numbers: function, values before the tensors, and shapes as the user states them.

    PyTorch keeps graphs on disk for other processes, and finds them by what they contain. The numbers are drawn, so
    that no graph of another process, with its functions, is found.
    """

    calls: ClassVar[dict[int, tuple[_Flat, Sequence[Any], Any]]] = {}
    _keys: ClassVar[dict[Any, int]] = {}

    @classmethod
    def key(cls, flat: _Flat, held: Sequence[Any], stated: Any = None) -> int:
        """The number of a call, the same for the same function and values."""
        name = flat.number, identity(tuple(held)), stated is None
        if name not in cls._keys:
            cls._keys[name] = key = secrets.randbits(62)
            cls.calls[key] = flat, held, stated
        return cls._keys[name]


def _constant(part: Any) -> Any:
    """A number that changed from call to call as a constant of the graph again: a key has to be one."""
    return next(iter({part: None})) if isinstance(part, int | float) else part


@torch.compiler.assume_constant_result
def _key(number: str, structure: tuple[Any, ...], kinds: tuple[tuple[torch.dtype, int], ...]) -> int:
    return _Function.all[number].key(structure, kinds)


@torch.compiler.assume_constant_result
def _result(key: int) -> Any:
    return _Traced.calls[key][0].returned


@torch.library.custom_op("irad::call", mutates_args=(), schema="(Tensor[] tensors, int key) -> Tensor[]")
def _operator(tensors: list[torch.Tensor], key: int) -> list[torch.Tensor]:
    flat, held, _ = _Traced.calls[key]
    return list(_Call(flat, held, records=False).run(tensors))


@_operator.register_fake
def _fake(tensors: list[torch.Tensor], key: int) -> list[torch.Tensor]:
    """Tensors without memory, of the shapes and dtypes that the function returns."""
    flat, held, stated = _Traced.calls[key]
    shapes = flat.shapes(tensors, held) if stated is None else stated(tensors)
    device = tensors[0].device if tensors else None
    return [
        torch.empty(shape, dtype=_TORCH[kind.dtype], device=device)
        for shape, kind in zip(shapes, flat.outputs, strict=True)
    ]


def _save(ctx: Any, inputs: tuple[Any, ...], output: list[torch.Tensor]) -> None:
    tensors, ctx.key = inputs
    ctx.save_for_backward(*tensors)
    ctx.shapes = [each.shape for each in output]


def _reverse(ctx: Any, given: list[torch.Tensor | None]) -> tuple[Sequence[torch.Tensor | None], None]:
    flat, held, _ = _Traced.calls[ctx.key]
    needed = ctx.needs_input_grad[0]
    positions = flat.chosen(needed)
    if not positions:
        return [None] * len(needed), None
    key = _Traced.key(flat.pullback(positions), held)
    return flat.placed(positions, _operator([*ctx.saved_tensors, *flat.cotangents(given, ctx.shapes)], key)), None


_operator.register_autograd(_reverse, setup_context=_save)
