"""Memory in the words of the source: the array that a pointer points into, and the index.

A pointer is the start of an *array* plus a number of bytes, a polynomial. Dividing that by the array's strides, the
largest first, gives the indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from numba.core import types

from irad.decompile.polynomial import Polynomial, product
from irad.decompile.refusal import refused
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
        name: name of the variable.
        origin: the value of the forward sweep that is its start: a parameter, an allocation, a loaded pointer.
        itemsize: in bytes.
        strides: in bytes, one for each index, the last one itemsize where the array is contiguous.
        is_shadow: it holds cotangents.
        is_result: the return value is stored there.
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
        """True if both may be the same memory: what only this function has is in no other array."""
        mine, theirs = self.sources or {self}, other.sources or {other}
        return self.is_shadow == other.is_shadow and any(
            a is b or not (a.is_local or b.is_local) for a in mine for b in theirs
        )


@dataclass(eq=False, slots=True)
class Items(Value):
    """The number of items in a number of bytes: a whole number, which the exact form checks."""

    count: Polynomial = field(default_factory=lambda: Polynomial({}))
    size: int = 1


@dataclass(frozen=True, slots=True)
class ArrayElement:
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
        raise refused(
            f"{name} is a {leaf.type}: its memory",
            instead="pass numbers and arrays of numbers",
            why="only the layout of numbers and arrays is known to it",
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


@dataclass(eq=False, slots=True)
class ParameterFacts:
    """Meaning of the compiled function's parameters in Python.

    Attributes:
        texts: those that are numbers: `x`, `x.shape[0]`, `t[1]`.
        same: those that equal others: the length of an array with one dimension is its number of items.
        known: facts from the type of an array about its item size and strides.
        sizes: lengths and sizes of items, which are not negative.
        strides: of arrays; they may be negative.
        unsigned: those of integer types without sign, and how many bits these have.
        truths: those that are True or False.
    """

    texts: dict[Value, str] = field(default_factory=dict)
    same: dict[Value, Value] = field(default_factory=dict)
    known: dict[Value, Polynomial] = field(default_factory=dict)
    sizes: set[Value] = field(default_factory=set)
    strides: set[Value] = field(default_factory=set)
    unsigned: dict[Value, int] = field(default_factory=dict)
    truths: set[Value] = field(default_factory=set)

    @staticmethod
    def of(
        arguments: Sequence[Argument], params: Sequence[Parameter], array_at: Callable[[Parameter], Array]
    ) -> ParameterFacts:
        """Facts about the parameters of all arguments; ``array_at`` gives the array that begins at a parameter."""
        found = ParameterFacts()
        for argument in arguments:
            for leaf in argument.leaves:
                text = argument.name + "".join(f"[{i}]" for i in leaf.path)
                if leaf.is_array:
                    found._add_array(leaf, params, text, array_at(params[leaf.data_index]))
                else:
                    found._add_number(leaf, params, text)
        return found

    def _add_number(self, leaf: Content, params: Sequence[Parameter], text: str) -> None:
        first = params[leaf.index]
        if leaf.type in COMPLEX:
            self.texts |= {first: f"{text}.real", params[leaf.index + 1]: f"{text}.imag"}
        elif layouts.width_of(leaf.type) == 1:
            self.texts[first] = text
        if isinstance(leaf.type, types.Integer) and not leaf.type.signed:
            self.unsigned[first] = leaf.type.bitwidth
        elif isinstance(leaf.type, types.Boolean):
            self.truths.add(first)

    def _add_array(self, leaf: Content, params: Sequence[Parameter], text: str, array: Array) -> None:
        dimensions = leaf.type.ndim
        count, item = params[leaf.index + tree.ITEM_COUNT], params[leaf.index + tree.ITEM_SIZE]
        lengths, steps = (
            [params[leaf.index + tree.SHAPE + number * dimensions + i] for i in range(dimensions)] for number in (0, 1)
        )
        self.texts |= {count: f"{text}.size", item: f"{text}.itemsize"}
        self.known[item] = Polynomial.constant(array.itemsize)
        for i, (length, step) in enumerate(zip(lengths, steps, strict=True)):
            self.texts |= {length: f"{text}.shape[{i}]", step: f"{text}.strides[{i}]"}
            if leaf.type.layout in ("C", "F"):
                self.known[step] = array.strides[i]
        if dimensions == 1:
            self.texts[lengths[0]] = f"{text}.size"
            self.same[lengths[0]] = count
        self.sizes |= {count, item, *lengths}
        self.strides |= set(steps)


def element_at(array: Array, offset: Polynomial, size: int) -> ArrayElement:
    """The element at an offset in bytes.

    Raises:
        UnsupportedError: the offset is not a whole number of elements.
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
    return ArrayElement(array, indices, part)


def items_in(count: Polynomial, size: int) -> Polynomial:
    """The number of items in ``count`` bytes."""
    parts = count.divided(Polynomial.constant(size))
    assert parts is not None
    whole, rest = parts
    return whole + Polynomial.of(Items(I64, None, rest, size)) if rest.terms else whole


def flat_element(array: Array, offset: Polynomial, part: str | None) -> ArrayElement:
    """The element at an offset in the order of memory, for which no indices are known."""
    parts = offset.divided(Polynomial.constant(array.itemsize))
    assert parts is not None
    if parts[1].terms and part is not None:
        parts = (offset - Polynomial.constant(offset.terms.get((), 0) % array.itemsize)).divided(
            Polynomial.constant(array.itemsize)
        ) or parts
    return ArrayElement(array, (parts[0],), part, is_flat=True)


def _computed_element(array: Array, offset: Polynomial, part: str | None) -> ArrayElement:
    """The element at an offset that is not a sum of indices: the program computes it in bytes.

    Raises:
        UnsupportedError: the items of the array do not follow one another.
    """
    item = Polynomial.constant(array.itemsize)
    if array.layout == "A" and not (len(array.strides) == 1 and array.strides[0].equals(item)):
        raise refused(
            f"an index of {array.name}, which has gaps between its items or rows,",
            instead=f"pass a contiguous array (np.ascontiguousarray({array.name}))",
            why="the index is computed in bytes, and cannot be told from these",
        )
    return ArrayElement(
        array, (items_in(offset, array.itemsize),), part, is_flat=len(array.strides) > 1 or array.is_flat
    )


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
    # The strides of outer axes are products of more lengths, whatever the factors are.
    return len(monomial) * 1_000_000 + factor


def _borrow(array: Array, found: dict[int, Polynomial], order: Sequence[int]) -> None:
    """An index that cannot be but negative takes a whole length from the index before: x[i + 1, -1] is x[i, n - 1]."""
    for outer, inner in reversed(list(pairwise(order))):
        index = found[inner]
        if index.terms and all(factor < 0 for factor in index.terms.values()):
            found[inner] = index + array.shape[inner]
            found[outer] = found[outer] - Polynomial.constant(1)


@dataclass(frozen=True, slots=True)
class ReturnedValue:
    """Return value of a function.

    Attributes:
        variables: byte offset of each number in it, of an array those of its shape → the variable that holds it.
        data: byte offset of the pointer to the elements of an array.
        dimensions: dimensions of the array.
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


def result_of(return_type: Any) -> ReturnedValue:
    """Parts of a returned value."""
    if isinstance(return_type, types.Array):
        offsets = [offset for offset, _ in abi.memory_of_return(return_type).fields]
        shape = offsets[tree.SHAPE : tree.SHAPE + return_type.ndim] if return_type.ndim > 1 else []
        variables = {offset: f"result_shape_{i}" for i, offset in enumerate(shape)}
        return ReturnedValue(variables, offsets[tree.DATA], return_type.ndim)
    return ReturnedValue(_result_parts(return_type))


def _result_parts(return_type: Any) -> dict[int, str]:
    if return_type == types.none:
        return {}
    numbers = [offset for offset, _ in abi.memory_of_return(return_type).fields]
    return {offset: "result" if len(numbers) == 1 else f"result_{i}" for i, offset in enumerate(numbers)}
