"""Memory in the words of the source: which array a pointer leads into, and at which index.

A pointer is the start of an *array* plus a number of bytes, a polynomial. Dividing that by the array's strides, the
largest first, gives the indices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from irad.decompile.arithmetic.polynomial import Polynomial, product
from irad.errors import UnsupportedError
from irad.frontend.numba.untyped import types
from irad.frontend.values import abi, layouts, tree
from irad.frontend.values.abi import Argument
from irad.frontend.values.layouts import COMPLEX, FLOATS
from irad.frontend.values.tree import Content
from irad.ir.types import I64
from irad.ir.values import Parameter, Value


@dataclass(eq=False, slots=True)
class Array:
    """Memory that Python code names.

    Attributes:
        name: of the variable.
        origin: the value of the forward sweep that is its start: a parameter, an allocation, a loaded pointer.
        itemsize: in bytes.
        strides: in bytes, one for each index, the last one itemsize where the array is contiguous.
        is_shadow: it holds cotangents.
        is_result: what the function returns is stored there.
        is_complex: items are two floats.
        is_local: nobody but this function has it.
        shape: lengths, where they are known.
        dtype: as numpy names it.
        layout: as Numba names it: C, F, or A for any strides.
        slots: of a result, the variables for the numbers in it, by byte offset.
        sources: of a variable that is one array or another, those that it may be.
        is_view: it may begin within one of these.
        is_flat: only the order of its items in memory is known.
    """

    name: str
    origin: Value
    itemsize: int = 8
    strides: tuple[Polynomial, ...] = ()
    is_shadow: bool = False
    is_result: bool = False
    is_complex: bool = False
    is_local: bool = False
    shape: tuple[Polynomial, ...] = ()
    dtype: str = "np.float64"
    layout: str = "C"
    slots: dict[int, str] = field(default_factory=dict)
    sources: frozenset[Array] = frozenset()
    is_view: bool = False
    is_flat: bool = False

    def may_overlap(self, other: Array) -> bool:
        """Whether both may be the same memory: what only this function has is in no other array."""
        mine, theirs = self.sources or {self}, other.sources or {other}
        return self.is_shadow == other.is_shadow and any(
            a is b or not (a.is_local or b.is_local) for a in mine for b in theirs
        )


@dataclass(eq=False, slots=True)
class Items(Value):
    """The number of items that so many bytes are: a whole number, which the exact form makes sure of."""

    count: Polynomial = field(default_factory=lambda: Polynomial({}))
    size: int = 1


@dataclass(frozen=True, slots=True)
class Element:
    """An element of an array: its indices; of a complex one, whether it is the imaginary part.

    ``is_flat``: the only index counts the elements in the order of memory.
    """

    array: Array
    indices: tuple[Polynomial, ...]
    part: str | None = None
    is_flat: bool = False


def array_of_leaf(leaf: Content, params: Sequence[Parameter], name: str) -> Array:
    """The array that an argument is."""
    if not isinstance(leaf.type, types.Array) or (leaf.type.dtype not in (*FLOATS, *COMPLEX) and not _is_plain(leaf)):
        raise UnsupportedError(
            f"{name} is a {leaf.type}: its memory cannot be written as Python",
            "pass numbers and arrays of numbers, or look at the adjoint as LLVM IR",
            "only the layout of numbers and arrays is known to it",
        )
    itemsize = leaf.type.dtype.bitwidth // 8 if hasattr(leaf.type.dtype, "bitwidth") else 1
    data = params[leaf.data_index]
    dimensions = leaf.type.ndim
    shape = [Polynomial.of(params[leaf.index + tree.SHAPE + i]) for i in range(dimensions)]
    steps = [Polynomial.of(params[leaf.index + tree.SHAPE + dimensions + i]) for i in range(dimensions)]
    if dimensions == 1:
        shape = [Polynomial.of(params[leaf.index + tree.ITEM_COUNT])]
    size = Polynomial.constant(itemsize)
    strides = {
        "C": [size * product(shape[i + 1 :]) for i in range(dimensions)],
        "F": [size * product(shape[:i]) for i in range(dimensions)],
    }.get(leaf.type.layout, steps)
    return Array(
        name,
        data,
        itemsize,
        tuple(strides),
        is_complex=leaf.type.dtype in COMPLEX,
        shape=tuple(shape),
        layout=leaf.type.layout,
        dtype=f"np.{'bool_' if leaf.type.dtype == types.boolean else leaf.type.dtype}",
    )


def _is_plain(leaf: Content) -> bool:
    return isinstance(leaf.type.dtype, types.Integer | types.Boolean)


def parameter_texts(arguments: Sequence[Argument], params: Sequence[Parameter]) -> dict[Value, str]:
    """What the parameters that are no pointers are in Python: `x`, `x.shape[0]`, `t[1]`."""
    found: dict[Value, str] = {}
    for argument in arguments:
        for leaf in argument.leaves:
            text = argument.name + "".join(f"[{i}]" for i in leaf.path)
            if not leaf.is_array:
                found.update(_number_texts(leaf, params, text))
                continue
            dimensions = leaf.type.ndim
            found[params[leaf.index + tree.ITEM_COUNT]] = f"{text}.size"
            found[params[leaf.index + tree.ITEM_SIZE]] = f"{text}.itemsize"
            for i in range(dimensions):
                of_shape = f"{text}.size" if dimensions == 1 else f"{text}.shape[{i}]"
                found[params[leaf.index + tree.SHAPE + i]] = of_shape
                found[params[leaf.index + tree.SHAPE + dimensions + i]] = f"{text}.strides[{i}]"
    return found


def _number_texts(leaf: Content, params: Sequence[Parameter], text: str) -> dict[Value, str]:
    width = layouts.width_of(leaf.type)
    if leaf.type in COMPLEX:
        return {params[leaf.index]: f"{text}.real", params[leaf.index + 1]: f"{text}.imag"}
    return {params[leaf.index]: text} if width == 1 else {}


def unsigned_parameters(arguments: Sequence[Argument], params: Sequence[Parameter]) -> dict[Value, int]:
    """Parameters of integer types without sign, and how many bits these have."""
    leaves = [leaf for argument in arguments for leaf in argument.leaves]
    return {
        params[leaf.index]: leaf.type.bitwidth
        for leaf in leaves
        if isinstance(leaf.type, types.Integer) and not leaf.type.signed
    }


def truth_parameters(arguments: Sequence[Argument], params: Sequence[Parameter]) -> set[Value]:
    """Parameters that are True or False."""
    leaves = [leaf for argument in arguments for leaf in argument.leaves]
    return {params[leaf.index] for leaf in leaves if isinstance(leaf.type, types.Boolean)}


def same_values(arguments: Sequence[Argument], params: Sequence[Parameter]) -> dict[Value, Value]:
    """Parameters that always equal others: the length of an array with one dimension is its number of items."""
    found: dict[Value, Value] = {}
    for argument in arguments:
        for leaf in argument.leaves:
            if leaf.is_array and leaf.type.ndim == 1:
                found[params[leaf.index + tree.SHAPE]] = params[leaf.index + tree.ITEM_COUNT]
    return found


def known_sizes(
    arguments: Sequence[Argument], params: Sequence[Parameter], arrays: Mapping[Value, Array]
) -> dict[Value, Polynomial]:
    """What the type of an array says about its item size and strides."""
    found: dict[Value, Polynomial] = {}
    for argument in arguments:
        for leaf in argument.leaves:
            if not leaf.is_array:
                continue
            array = arrays[params[leaf.data_index]]
            found[params[leaf.index + tree.ITEM_SIZE]] = Polynomial.constant(array.itemsize)
            if leaf.type.layout in ("C", "F"):
                for i, stride in enumerate(array.strides):
                    found[params[leaf.index + tree.SHAPE + leaf.type.ndim + i]] = stride
    return found


def element_at(array: Array, offset: Polynomial, size: int) -> Element:
    """The element at an offset in bytes.

    Raises:
        UnsupportedError: the offset is no whole number of elements.
    """
    part = None
    if array.is_complex:
        half = array.itemsize // 2
        rest = offset.terms.get((), 0) % array.itemsize
        part = "imag" if rest == half else "real"
        offset = offset - Polynomial.constant(rest)
    indices = indices_at(array, offset)
    if indices is None:
        return _computed_element(array, offset, part)
    if len(indices) > 1 and array.layout == "C" and not any(index.terms for index in indices[:-1]):
        return flat_element(array, offset, part)
    return Element(array, indices, part)


def items_in(count: Polynomial, size: int) -> Polynomial:
    """How many items so many bytes are."""
    parts = count.divided(Polynomial.constant(size))
    assert parts is not None
    whole, rest = parts
    return whole + Polynomial.of(Items(I64, None, rest, size)) if rest.terms else whole


def flat_element(array: Array, offset: Polynomial, part: str | None) -> Element:
    """The element at an offset in the order of memory, for which no indices are known."""
    parts = offset.divided(Polynomial.constant(array.itemsize))
    assert parts is not None
    if parts[1].terms and part is not None:
        parts = (offset - Polynomial.constant(offset.terms.get((), 0) % array.itemsize)).divided(
            Polynomial.constant(array.itemsize)
        ) or parts
    return Element(array, (parts[0],), part, is_flat=True)


def _computed_element(array: Array, offset: Polynomial, part: str | None) -> Element:
    """The element at an offset that is no sum of indices: the program computes it in bytes.

    Raises:
        UnsupportedError: the items of the array do not follow one another.
    """
    item = Polynomial.constant(array.itemsize)
    if array.layout == "A" and not (len(array.strides) == 1 and array.strides[0].equals(item)):
        raise UnsupportedError(
            f"an index of {array.name}, which has gaps between its items or rows, cannot be written as Python",
            f"pass a contiguous array (np.ascontiguousarray({array.name})), or look at the adjoint as LLVM IR",
            "the index is computed in bytes, and cannot be told from these",
        )
    return Element(array, (items_in(offset, array.itemsize),), part, is_flat=len(array.strides) > 1 or array.is_flat)


def indices_at(array: Array, offset: Polynomial) -> tuple[Polynomial, ...] | None:
    """The indices of an offset; None if there are none.

    In a contiguous array several are possible: row i, column j is row i + 1, column j - n. The largest stride takes
    what it divides, so columns may come out negative; then the caller falls back to the order of memory.
    """
    order = sorted(range(len(array.strides)), key=lambda i: -_weight(array.strides[i]))
    found: dict[int, Polynomial] = {}
    rest = offset
    for i in order:
        parts = rest.divided(array.strides[i])
        if parts is None:
            return None
        found[i], rest = parts
    if rest.terms:
        return None
    _borrow(array, found, order)
    return tuple(found[i] for i in range(len(array.strides)))


def _weight(stride: Polynomial) -> int:
    (monomial, factor), *_ = stride.terms.items()
    return len(monomial) * 1_000_000 + factor


def _borrow(array: Array, found: dict[int, Polynomial], order: Sequence[int]) -> None:
    """An index that cannot be but negative takes a whole length from the index before: x[i + 1, -1] is x[i, n - 1]."""
    for outer, inner in reversed(list(pairwise(order))):
        index = found[inner]
        if index.terms and all(factor < 0 for factor in index.terms.values()):
            found[inner] = index + array.shape[inner]
            found[outer] = found[outer] - Polynomial.constant(1)


@dataclass(frozen=True, slots=True)
class Result:
    """What a function returns.

    Attributes:
        variables: byte offset of each number in it, of an array those of its shape → the variable that holds it.
        data: byte offset of the pointer to the elements of an array.
        dimensions: of the array.
    """

    variables: dict[int, str]
    data: int | None = None
    dimensions: int = 0

    @property
    def names(self) -> list[str]:
        """The variables that are returned."""
        return ["result"] if self.data is not None else list(self.variables.values())

    @property
    def shape(self) -> list[str]:
        """The variables that hold the shape of an array."""
        return list(self.variables.values()) if self.data is not None else []


def result_of(return_type: Any) -> Result:
    """What a returned value is made of."""
    if isinstance(return_type, types.Array):
        offsets = [offset for offset, _ in abi.memory_of_return(return_type).fields]
        shape = offsets[tree.SHAPE : tree.SHAPE + return_type.ndim] if return_type.ndim > 1 else []
        variables = {offset: f"result_shape_{i}" for i, offset in enumerate(shape)}
        return Result(variables, offsets[tree.DATA], return_type.ndim)
    return Result(_result_parts(return_type))


def _result_parts(return_type: Any) -> dict[int, str]:
    if return_type == types.none:
        return {}
    numbers = [offset for offset, _ in abi.memory_of_return(return_type).fields]
    return {offset: "result" if len(numbers) == 1 else f"result_{i}" for i, offset in enumerate(numbers)}
