"""PyTensor, and with it PyMC and nutpie: a function that Numba compiles as an operation of their graphs.

The operation and its derivatives are compiled functions of arrays. PyTensor's back end for Numba compiles them into the
program; its other back ends call them from Python.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, overload

import numba
import numpy as np

import irad
from irad.errors import SignatureError
from irad.frontend.calls.raising import public
from irad.frontend.generated import function_from
from irad.interop.flat import (
    ArrayOrNumber,
    Flat,
    Kind,
    filled,
    flattened,
    identity,
    owners_of,
    positional,
    shapes_in,
    split,
    tuple_of,
)
from irad.versions import needed

with needed("pytensor"):
    import pytensor.tensor as pt
    from pytensor.gradient import DisconnectedType
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.op import Op
    from pytensor.link.numba.dispatch import numba_funcify
    from pytensor.tensor.variable import TensorVariable

__all__ = ["as_op"]


@overload
def as_op(
    f: Callable[..., ArrayOrNumber], *, shapes: Callable[..., tuple[Any, ...]] | None = None
) -> Callable[..., TensorVariable[Any, Any]]: ...


@overload
def as_op(
    f: Callable[..., tuple[Any, ...] | dict[str, Any]], *, shapes: Callable[..., Any] | None = None
) -> Callable[..., Any]: ...


@public
def as_op(f: Callable[..., Any], *, shapes: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A function of PyTensor's variables, with gradient, Hessian products and code for Numba.

    Variables, and arrays of NumPy, are passed as arrays, those without axes as numbers; they may lie in tuples, named
    tuples, lists (passed as tuples) and dictionaries. All else, such as Python's numbers, is a constant of the compiled
    function. The result holds arrays, numbers, tuples and dictionaries of these, as variables.

    Args:
        f: a plain function, or one of ``numba.njit`` or `irad.jit`. An array that it may write to, or return a part of,
            is copied first.
        shapes: ``shapes(*args)``, of arguments with a tuple of lengths, as integers or variables, for each variable,
            returns the shape of the result, or a tuple of shapes if ``f`` returns several arrays. Without it, PyTensor
            runs ``f`` where a program asks for the shape alone.

    Returns:
        The function of variables, with the parameters of ``f``.

    Raises:
        SignatureError: a variable has a dtype that Numba does not have, or the function returns anything but
            arrays, numbers, tuples and dictionaries.

    Examples:
        >>> import irad.interop.pytensor
        >>> import numpy as np
        >>> import pytensor
        >>> import pytensor.tensor as pt
        >>> from numba import njit
        >>> @njit
        ... def energy(x, stiffness):
        ...     total = 0.0
        ...     for i in range(x.size - 1):
        ...         total += 0.5 * stiffness * (x[i + 1] - x[i]) ** 2
        ...     return total
        >>> energy = irad.interop.pytensor.as_op(energy)
        >>> x = pt.vector("x", dtype="float64")
        >>> gradient = pytensor.function([x], pytensor.grad(energy(x, 2.0), x))
        >>> gradient(np.array([0.0, 1.0, 3.0]))
        array([-2., -2.,  4.])
    """
    if not callable(f):
        raise SignatureError(
            f"irad.interop.pytensor.as_op is given {type(f).__name__}",
            "pass a function",
            "it wraps functions of arrays",
        )
    compiled = f if hasattr(f, "py_func") else irad.jit(f)
    known: dict[Any, tuple[CompiledOp, Any]] = {}

    @functools.wraps(getattr(f, "py_func", f))
    def call(*args: Any, **keywords: Any) -> Any:
        args = positional(compiled, args, keywords)
        leaves: list[Any] = []
        structure = tuple(split(each, leaves, (Variable, np.ndarray)) for each in args)
        variables = [pt.as_tensor_variable(each) for each in leaves]
        kinds = tuple(Kind.of(each.type.dtype, each.type.ndim) for each in variables)
        key = identity(structure), kinds
        if key not in known:
            found = flattened(compiled, structure, kinds)
            flat = _Flat(compiled.__name__, found.function, kinds, found.outputs, owners=owners_of(structure))
            known[key] = CompiledOp(flat, None if shapes is None else _stated(shapes, structure)), found.returned
        op, returned = known[key]
        return filled(returned, iter(op.make_node(*variables).outputs))

    return call


def _stated(shapes: Callable[..., Any], structure: tuple[Any, ...]) -> Callable[[Sequence[Any]], list[Any]]:
    """The shapes that a user's function says, as a function of the shapes of the variables."""
    return lambda given: list(shapes_in(shapes(*filled(structure, iter(map(tuple, given))))))


class _Flat(Flat):
    """A compiled function of arrays, which may not write to what PyTensor gives it, nor return it."""

    @functools.cached_property
    def copied(self) -> tuple[bool, ...]:
        """For each array, whether the function is given a copy: all that LLVM does not know to be read alone."""
        if self.base is not None:
            return *self.base.copied, *[False] * (len(self.inputs) - len(self.base.inputs))
        types = tuple(each.numba_type for each in self.inputs)
        self.function.compile(types)
        code = "\n".join(re.findall(r"^define .*", self.function.inspect_llvm(types), re.MULTILINE))
        return tuple(
            bool(kind.axes) and not _is_read_only(re.findall(_POINTER.format(i), code))
            for i, kind in enumerate(self.inputs)
        )

    @functools.cached_property
    def in_program(self) -> Any:
        """The function with arrays of no axes in place of numbers, one of which it returns itself, not in a tuple."""
        names = [f"x{i}" for i in range(len(self.inputs))]
        arguments = [
            f"{name}.copy()" if is_copied else name if kind.axes else f"{name}[()]"
            for name, kind, is_copied in zip(names, self.inputs, self.copied, strict=True)
        ]
        results = [f"r[{i}]" if each.axes else f"np.asarray(r[{i}])" for i, each in enumerate(self.outputs)]
        returned = results[0] if len(results) == 1 else tuple_of(results)
        source = f"def flat({', '.join(names)}):\n    r = f({', '.join(arguments)})\n    return {returned}\n"
        return numba.njit(function_from("flat", source, "irad.interop", {"f": self.function, "np": np}))


_POINTER: Final = r"ptr((?:[^%(),]|\((?:[^()]|\([^()]*\))*\))*)%\"?arg\.x{}\.4\b"
"""The attributes of the parameter of a function of Numba that points to the elements of an array."""


def _is_read_only(attributes: list[str]) -> bool:
    """True if all definitions say so, and there is one."""
    return bool(attributes) and all("readonly" in each.split() or "readnone" in each.split() for each in attributes)


class CompiledOp(Op):
    """An operation that is a compiled function.

    Args:
        flat: the function.
        stated: the shapes of its results from those of its arguments, as the user states them.
    """

    __props__ = ("number",)

    def __init__(self, flat: _Flat, stated: Callable[[Sequence[Any]], list[Any]] | None = None) -> None:
        self.flat, self._stated, self.number = flat, stated, flat.number
        # Where an operation has no such method, PyTensor runs it to know the shapes.
        if flat.origin == "pullback" or self._stated is not None or all(not each.axes for each in flat.outputs):
            self.infer_shape = self._infer_shape

    def __str__(self) -> str:
        return f"irad({self.flat.name})"

    def make_node(self, *inputs: Any) -> Apply:
        """Applies it to variables."""
        types = [pt.TensorType(each.dtype.name, shape=(None,) * each.axes) for each in self.flat.outputs]
        return Apply(self, [pt.as_tensor_variable(each) for each in inputs], [each() for each in types])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        """Calls the function from Python."""
        arrays = [
            np.array(each) if is_copied else np.asarray(each)
            for each, is_copied in zip(inputs, self.flat.copied, strict=True)
        ]
        found = self.flat.function(*(each if each.ndim else each[()] for each in arrays))
        for storage, value, kind in zip(output_storage, found, self.flat.outputs, strict=True):
            storage[0] = np.asarray(value, kind.dtype)

    def _infer_shape(self, fgraph: Any, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        if self.flat.origin == "pullback":
            return [shapes[i] for i in self.flat.positions]
        return self._stated(shapes) if self._stated is not None else [()] * len(self.flat.outputs)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Floats depend on floats."""
        return [[a.is_float and b.is_float for b in self.flat.outputs] for a in self.flat.inputs]

    def L_op(self, inputs: Sequence[Any], outputs: Sequence[Any], output_grads: Sequence[Any]) -> list[Any]:
        """The cotangents of the inputs."""
        positions = tuple(i for i, each in enumerate(self.flat.inputs) if each.is_float)
        cotangents = [
            outputs[i].zeros_like() if isinstance(output_grads[i].type, DisconnectedType) else output_grads[i]
            for i in self.flat.floats
        ]
        found = iter(CompiledOp(self.flat.pullback(positions)).make_node(*inputs, *cotangents).outputs)
        return [next(found) if i in positions else DisconnectedType()() for i in range(len(inputs))]

    def R_op(self, inputs: Sequence[Any], eval_points: Sequence[Any]) -> list[Any]:
        """The tangents of the outputs."""
        given = [(i, each) for i, each in enumerate(eval_points) if each is not None and self.flat.inputs[i].is_float]
        if not given:
            return [None] * len(self.flat.outputs)
        push = self.flat.pushforward(tuple(i for i, _ in given))
        tangents = [pt.as_tensor_variable(each) for _, each in given]
        found = iter(CompiledOp(push).make_node(*inputs, *tangents).outputs)
        return [next(found) if each.is_float else None for each in self.flat.outputs]


@numba_funcify.register(CompiledOp)
def _compiled(op: CompiledOp, node: Any = None, **_: Any) -> Any:
    """A function of the arrays of the program, for PyTensor's back end for Numba."""
    return op.flat.in_program
