"""What objects hold, by their types: contents, types of gradients, memory; and what is read of Numba's structs."""

from __future__ import annotations

import ctypes
from typing import Any

import numba
import numpy as np
import pytest
from llvmlite import ir
from numba import float32, float64, int64, njit, types
from numba.core import cgutils
from numba.core.extending import as_numba_type
from numba.experimental import jitclass
from numba.extending import intrinsic
from numba.typed import Dict, List

from irad.frontend.memory.containers import _ITERATOR_NEXT
from irad.frontend.memory.walks import _DICT_KEYS, _ENTRY_COUNT
from irad.frontend.values.abi import memory_behind
from irad.frontend.values.gradients import gradient_of_content
from irad.frontend.values.tree import (
    InstanceContent,
    LeafKind,
    ListContent,
    NumberContent,
    content_of,
    has_derivative,
    kind_of,
    passed,
    unknown_part,
)
from irad.runtime_layouts import DICT_ITERATOR

VECTOR = float64[::1]


@jitclass([("w", VECTOR), ("k", float32), ("_n", int64), ("t", types.Tuple((float64, types.unicode_type)))])
class Model:
    def __init__(self):
        self.k = 1.0


MODEL = as_numba_type(Model)


def test_contents_of_an_instance():
    content = content_of(MODEL)
    assert isinstance(content, InstanceContent)
    assert content.names == ("w", "k", "_n", "t")
    assert [part.offset for part in content.parts] == [0, 56, 64, 72]
    assert content.parts[1] == NumberContent(float32, offset=56)
    assert [has_derivative(part) for part in content.parts] == [True, True, False, True]


def test_parts_of_an_argument():
    """A number, an array and what may be None in nested tuples: where their parameters begin, and the way to them."""
    inner = types.Tuple((VECTOR, types.Optional(types.complex128)))
    first, second = passed(types.Tuple((float64, inner)), 5).parts
    assert (first.index, first.path, first.offset) == (5, (0,), 0)
    array, optional = second.parts
    assert (array.index, array.data_index, array.path, array.offset) == (6, 10, (1, 0), 0)
    assert (optional.index, optional.path, optional.offset, optional.float_count) == (13, (1, 1), 56, 2)
    assert (optional.inside.index, optional.inside.path) == (13, (1, 1, 0))
    assert [part.kind for part in (first, array, optional)] == [LeafKind.NUMBER, LeafKind.ARRAY, LeafKind.OPTIONAL]


def test_types_of_gradients():
    gradient: Any = gradient_of_content(content_of(MODEL))
    assert gradient.fields == ("w", "k", "n", "t")
    assert gradient.types == (VECTOR, float32, types.none, types.Tuple((float64, types.none)))
    assert gradient.instance_class is gradient_of_content(content_of(MODEL)).instance_class
    assert gradient_of_content(content_of(types.ListType(VECTOR))) == types.ListType(VECTOR)
    assert gradient_of_content(content_of(types.List(VECTOR, reflected=True))) == types.List(VECTOR, reflected=True)
    table = types.DictType(types.unicode_type, types.ListType(MODEL))
    assert gradient_of_content(content_of(table)) == types.DictType(types.unicode_type, types.ListType(gradient))
    frozen = types.Array(float64, 1, "C", readonly=True)
    assert gradient_of_content(content_of(types.ListType(frozen))) == types.ListType(VECTOR)


def test_what_is_an_object():
    assert kind_of(MODEL) is LeafKind.OBJECT
    assert kind_of(types.ListType(types.ListType(float64))) is LeafKind.OBJECT
    assert kind_of(types.DictType(int64, float64)) is LeafKind.OBJECT
    for other in (
        float64,
        VECTOR,
        types.ListType(int64),
        types.DictType(float64, int64),
        types.ListType(types.unicode_type),
        types.ListType(types.Tuple((types.Optional(float64), float64))),
        types.ListType(types.Set(float64)),
        types.List(types.Tuple((types.Optional(VECTOR), float64)), reflected=True),
        types.Set(float64),
    ):
        assert kind_of(other) in (LeafKind.INERT, LeafKind.NUMBER, LeafKind.ARRAY), other


@pytest.mark.parametrize(
    "numba_type",
    [
        types.Optional(float64),
        types.Optional(VECTOR),
        types.Set(float64),
        types.float16,
        numba.typeof(np.zeros(1, [("a", "f8")])[0]),
        types.FunctionType(float64(float64)),
        types.voidptr,
    ],
    ids=str,
)
def test_parts_that_are_not_known(numba_type):
    holder = types.ListType(types.Tuple((float64, numba_type)))
    assert unknown_part(content_of(holder)) == f"a {numba_type}"
    assert kind_of(holder) is LeafKind.INERT


def test_memory_of_a_list_of_arrays():
    content = content_of(types.ListType(VECTOR))
    assert isinstance(content, ListContent)
    struct = memory_behind(content)
    assert [offset for offset, _ in struct.declared] == [0, 8], "items and size, as rules name them"
    items = struct.declared[0][1]
    assert (items.stride, items.single) == (56, False)
    assert [(offset, behind.lone_float()) for offset, behind in items.declared] == [(32, "double")]


# --- Numba's structs --------------------------------------------------------------------------------------------------


@intrinsic
def _address(typing_context, container):
    def lower(context, builder, signature, arguments):
        return builder.ptrtoint(builder.extract_value(arguments[0], 1), cgutils.intp_t)

    return types.intp(container), lower


@njit
def address(container):
    return _address(container)


def word(at: int) -> int:
    return ctypes.c_ssize_t.from_address(at).value


def test_where_a_dictionary_counts_its_entries():
    table = Dict.empty(int64, float64)
    for count in range(20):
        assert word(word(address(table) + _DICT_KEYS) + _ENTRY_COUNT) == count
        table[count] = 1.0
    del table[19]
    assert word(word(address(table) + _DICT_KEYS) + _ENTRY_COUNT) == 20, "holes count"


@intrinsic
def _next_number(typing_context, table):
    """The number of the entry that an iterator finds second, and the distance from its key to its value."""

    def lower(context, builder, signature, arguments):
        pointer = builder.extract_value(arguments[0], 1)
        state = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(8), DICT_ITERATOR.size))
        state = builder.bitcast(state, cgutils.voidptr_t)
        slots = [cgutils.alloca_once(builder, cgutils.voidptr_t) for _ in range(2)]

        def call(name, result, values):
            function_type = ir.FunctionType(result, [v.type for v in values])
            return builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), values)

        call("numba_dict_iter", ir.VoidType(), [state, pointer])
        for _ in range(2):
            call("numba_dict_iter_next", ir.IntType(32), [state, *slots])
        place = builder.bitcast(builder.gep(state, [cgutils.intp_t(_ITERATOR_NEXT)]), cgutils.intp_t.as_pointer())
        key, value = (builder.ptrtoint(builder.load(slot), cgutils.intp_t) for slot in slots)
        return context.make_tuple(builder, signature.return_type, [builder.load(place), builder.sub(value, key)])

    return types.UniTuple(types.intp, 2)(table), lower


@njit
def next_number(table):
    return _next_number(table)


@pytest.mark.parametrize("key", [1, 2.5, "a", (1, True), (1, "b")], ids=str)
def test_where_an_iterator_of_a_dictionary_is(key):
    table = Dict()
    keys = [(key[0] + i, key[1]) if isinstance(key, tuple) else key * (i + 1) for i in range(3)]
    for each in keys:
        table[each] = 1.0
    del table[keys[1]]
    content: Any = content_of(numba.typeof(table))
    assert next_number(table) == (3, content.value_at), "one behind the entry; in whole words from the key"


def test_iterator_size():
    from numba import _helperlib

    size = ctypes.CFUNCTYPE(ctypes.c_size_t)(_helperlib.c_helpers["dict_iter_sizeof"])()
    assert size <= DICT_ITERATOR.size


def test_lists_lead_to_their_items():
    values = List([np.ones(2)])
    assert word(address(values)) == 1, "the size comes first"
