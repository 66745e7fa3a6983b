"""Numba's containers and instances in generated code: reading those that are there, and making new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from llvmlite import ir
from llvmlite.ir import Value
from numba.core import cgutils, types
from numba.cpython.listobj import ListInstance
from numba.experimental.jitclass.base import imp_dtor
from numba.typed.dictobject import new_dict
from numba.typed.listobject import new_list

from irad.frontend.emit import INTP, VOID_POINTER, WORD, Emit
from irad.frontend.numba.internals import look_up_key
from irad.frontend.values import tree
from irad.frontend.values.layouts import HEADER_DATA, size_of_element
from irad.runtime_layouts import DICT_ITERATOR

_ITERATOR_NEXT: Final = DICT_ITERATOR.offset("next")
_STATUS: Final = ir.IntType(32)


class Reader:
    """Reads the memory of containers."""

    def __init__(self, emit: Emit) -> None:
        self._emit, self._context, self._builder = emit, emit.context, emit.builder

    @contextmanager
    def _entries(self, pointer: Value) -> Iterator[tuple[Any, Any, Any]]:
        """A loop over the entries of a dictionary: number, address of the key, address of the value."""
        build = self._builder
        iterator, key, value = self._iterator(pointer)
        head = build.append_basic_block("entry")
        body, end = build.append_basic_block("entry.body"), build.append_basic_block("entry.end")
        build.branch(head)
        build.position_at_end(head)
        status = self._emit.call("numba_dict_iter_next", _STATUS, [iterator, key, value])
        build.cbranch(build.icmp_signed("==", status, _STATUS(0)), body, end)
        build.position_at_end(body)
        # The iterator has moved on: it holds the number of the entry to be read next.
        number = build.sub(self._emit.load_word(iterator, _ITERATOR_NEXT), INTP(1))
        yield number, build.load(key), build.load(value)
        build.branch(head)
        build.position_at_end(end)

    def _entry_of(self, content: tree.DictionaryContent, dictionary: Any, key: Any) -> Value:
        """Number of the entry of a dictionary that has a key; negative if none has."""
        signature = types.intp(content.type, content.key.type)
        return self._context.compile_internal(self._builder, _position, signature, [dictionary, key])

    def _entry_at(self, pointer: Value, number: Value) -> Value:
        """The address of the value of an entry of a dictionary."""
        build = self._builder
        iterator, key, value = self._iterator(pointer)
        # Numba's C functions find entries by key or by iterating, not by number: so an iterator is put in front of it.
        build.store(number, build.bitcast(self._emit.at(iterator, _ITERATOR_NEXT), INTP.as_pointer()))
        self._emit.call("numba_dict_iter_next", _STATUS, [iterator, key, value])
        return build.load(value)

    def _iterator(self, pointer: Value) -> tuple[Any, Any, Any]:
        """Numba's iterator over a dictionary, and places for the addresses of a key and its value."""
        build = self._builder
        iterator = build.bitcast(
            cgutils.alloca_once(build, ir.ArrayType(INTP, DICT_ITERATOR.size // WORD)), VOID_POINTER
        )
        self._emit.call("numba_dict_iter", ir.VoidType(), [iterator, pointer])
        return iterator, cgutils.alloca_once(build, VOID_POINTER), cgutils.alloca_once(build, VOID_POINTER)

    def _items_of(self, found: tree.ListContent, pointer: Value) -> tuple[Any, Any]:
        """Number of items of a list, and the address of the first."""
        if found.is_typed:
            count = self._emit.call("numba_list_length", INTP, [pointer])
            return count, self._emit.call("numba_list_base_ptr", VOID_POINTER, [pointer])
        payload = self._emit.load(pointer, HEADER_DATA)
        return self._emit.load_word(payload, 0), self._emit.at(payload, found.prefix)


def _position(values: Any, key: Any) -> int:
    """Compiled by Numba: which entry has a key; negative if none has."""
    found, _ = look_up_key(values, key, hash(key))
    return found


class Maker:
    """Makes containers and instances. Items, values and fields are new references, which these take over.

    Args:
        fail: emits the end of the function when there is no memory.
    """

    def __init__(self, emit: Emit, fail: Callable[[], None]) -> None:
        self._emit, self._context, self._builder = emit, emit.context, emit.builder
        self._fail = fail

    def list_of(self, list_type: types.Type, count: Any, item: Callable[[Any], Any]) -> Any:
        """A list, with the items that ``item`` emits for the numbers from 0 to before ``count``."""
        context, build = self._context, self._builder
        if isinstance(list_type, types.ListType):
            return self._typed_list(list_type, count, item)
        good, made = ListInstance.allocate_ex(context, build, list_type, count)
        with cgutils.if_unlikely(build, build.not_(good)):
            self._fail()
        made.size = count
        with cgutils.for_range(build, count, intp=INTP) as loop:
            # The list takes over the reference, and its new memory holds no old item whose reference could be dropped.
            made.setitem(loop.index, item(loop.index), incref=False, decref_old_value=False)
        return made.value

    def instance(self, class_type: Any, fields: Sequence[Any]) -> Value:
        """An instance of a jitclass with these fields."""
        context, build = self._context, self._builder
        layout = class_type.get_data_type()
        clean = imp_dtor(context, build.module, class_type)
        # Unchecked: Numba's check would raise at once, and leak the references that the call holds.
        meminfo = context.nrt.meminfo_alloc_dtor_unchecked(build, INTP(size_of_element(layout)), clean)
        with cgutils.if_unlikely(build, cgutils.is_null(build, meminfo)):
            self._fail()
        made = context.make_helper(build, class_type)
        made.meminfo = meminfo
        data = context.nrt.meminfo_data(build, meminfo)
        made.data = build.bitcast(data, context.get_data_type(layout).as_pointer())
        members = cgutils.create_struct_proxy(layout, kind="data")(context, build, ref=made.data)
        for number, field in enumerate(fields):
            members[number] = field
        return made._getvalue()

    def _typed_list(self, list_type: Any, count: Any, item: Callable[[Any], Any]) -> Any:
        context, build, item_type = self._context, self._builder, list_type.dtype
        made = context.compile_internal(build, lambda: new_list(item_type), list_type(), [])
        append = types.none(list_type, item_type)
        with cgutils.for_range(build, count, intp=INTP) as loop:
            value = item(loop.index)
            context.compile_internal(build, _append, append, [made, value])
            context.nrt.decref(build, item_type, value)
        return made

    def dictionary(self, dict_type: Any) -> tuple[Any, Callable[[Any, Any], None]]:
        """An empty dictionary, and a function that emits the insertion of a value under a key."""
        context, build = self._context, self._builder
        key_type, value_type = dict_type.key_type, dict_type.value_type
        made = context.compile_internal(build, lambda: new_dict(key_type, value_type), dict_type(), [])
        signature = types.none(dict_type, key_type, value_type)

        def insert(key: Any, value: Any) -> None:
            context.compile_internal(build, _insert, signature, [made, key, value])
            context.nrt.decref(build, value_type, value)

        return made, insert


def _append(values: Any, value: Any) -> None:
    """Compiled by Numba."""
    values.append(value)


def _insert(values: Any, key: Any, value: Any) -> None:
    """Compiled by Numba."""
    values[key] = value
