"""Shadow containers, compiled without optimisation and with all of it, against Python's lists and dictionaries."""

from __future__ import annotations

import ctypes
import random
from ctypes import CFUNCTYPE, addressof, c_int32, c_int64, c_void_p, cast, create_string_buffer
from functools import cache
from typing import Any

import llvmlite.binding as ll
import numpy as np
import pytest

from irad.backend.runtime.support import FOLDER
from irad.backend.runtime.text import read

POINTER, INTEGER, STATUS = c_void_p, c_int64, c_int32
DOUBLES = ctypes.POINTER(ctypes.c_double)
LOOKUP = CFUNCTYPE(INTEGER, POINTER, POINTER, INTEGER, POINTER)


class Library:
    """The functions compiled at one level of optimisation."""

    def __init__(self, level: int) -> None:
        ll.initialize_native_target()
        ll.initialize_native_asmprinter()
        module = ll.parse_assembly(read(FOLDER, "containers").text().replace("linkonce_odr ", ""))
        module.verify()
        machine = ll.Target.from_default_triple().create_target_machine(opt=level, jit=True)
        builder = ll.create_pass_builder(machine, ll.create_pipeline_tuning_options(speed_level=level))
        builder.getModulePassManager().run(module, builder)
        self._engine = ll.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()

    def call(self, name: str, *arguments: Any, result: Any = None) -> Any:
        """Calls `irad.<name>`; integers are i64 or addresses."""
        types = [type(a) if isinstance(a, STATUS) else INTEGER for a in arguments]
        return CFUNCTYPE(result, *types)(self._engine.get_function_address(f"irad.{name}"))(*arguments)


@cache
def library(level: int) -> Library:
    return Library(level)


@pytest.fixture(params=[0, 3], ids=["O0", "O3"])
def lib(request: pytest.FixtureRequest) -> Library:
    return library(request.param)


SLICES = [slice(a, b, s) for a in (None, 0, 2, 5, -1) for b in (None, 0, 3, 7, -2) for s in (1, 2, 3, -1, -2, -4)]


@pytest.mark.parametrize("length", [0, 1, 2, 7, 8])
def test_items_are_removed_and_their_cotangents_come_back(lib: Library, length: int):
    for taken in SLICES:
        check_slice(lib, length, taken)


def check_slice(lib: Library, length: int, taken: slice) -> None:
    items = np.arange(1.0, length + 3)  # two more than the list has: they stay as they are
    kept = list(items[:length])
    del kept[taken]
    given = (items.ctypes.data, 8, length, *taken.indices(length))
    lib.call("list_remove", *given)
    np.testing.assert_array_equal(items[: len(kept)], kept)
    np.testing.assert_array_equal(items[length:], [length + 1, length + 2])

    cotangents = np.zeros(length + 2)
    cotangents[: len(kept)] = kept
    cotangents[length:] = -1.0
    lib.call("list_restore", cotangents.ctypes.data, *given[1:])
    expected = np.arange(1.0, length + 1)
    expected[taken] = 0.0
    np.testing.assert_array_equal(cotangents, [*expected, -1.0, -1.0])


def test_a_list_grows_and_shrinks_again(lib: Library):
    struct = np.array([0, 0, 24], np.int64)  # items of 24 bytes
    buffers, steps = [], []
    for length in range(100):
        size = lib.call("list_room", struct.ctypes.data, length, result=INTEGER)
        assert size % 24 == 0
        assert (size == 0) == (length < struct[1])
        buffers.append(np.full(max(size // 8, 1), 7.0))
        old = int(struct[0])
        moved = lib.call("list_grow", struct.ctypes.data, buffers[-1].ctypes.data, length, size, result=INTEGER)
        assert moved == (24 * length if size else 0)
        steps.append((old, buffers[-1].ctypes.data, moved))
        item = np.ctypeslib.as_array(cast(int(struct[0]) + 24 * length, DOUBLES), (3,))
        assert not item.any()  # new room is zero
        item[:] = length
    items = np.ctypeslib.as_array(cast(int(struct[0]), DOUBLES), (300,))
    np.testing.assert_array_equal(items, np.repeat(np.arange(100.0), 3))
    for length, (old, new, moved) in reversed(list(enumerate(steps))):
        latest = moved and np.ctypeslib.as_array(cast(new, DOUBLES), (3 * length,))
        lib.call("list_shrink", old, new, moved)
        if moved:
            assert not latest.any()
            np.testing.assert_array_equal(
                np.ctypeslib.as_array(cast(old, DOUBLES), (3 * length,)), np.repeat(np.arange(length), 3)
            )


class Table:
    """Entries as numba/cext/dictobject.c numbers them, with the shadow dictionary beside."""

    def __init__(self, lib: Library) -> None:
        self.lib = lib
        self.entries: list[int | None] = []
        self.room = 5
        self.cells: dict[int, int] = {}
        self.kept: list[Any] = []
        self.struct = np.array([0, 0, 0, 5, 8, 12], np.int64)  # keys of 5 bytes, values of 12 after 8
        self.found = -1
        self.lookup = LOOKUP(lambda *_: self.found)

    def insert(self, key: int) -> None:
        before = self.entries.index(key) if key in self.entries else -1
        sizes = [
            self.lib.call(name, self.struct.ctypes.data, before, result=INTEGER)
            for name in ("dict_room", "dict_table_room")
        ]
        assert (sizes[0] == 0) == (before >= 0)
        assert (sizes[1] == 0) == (before >= 0 or self.struct[2] < self.struct[1])
        made = [create_string_buffer(b"\1" * max(size, 1), max(size, 1)) for size in sizes]
        self.kept += made
        if before < 0:
            if len(self.entries) == self.room:
                self.entries = [e for e in self.entries if e is not None]
                self.room = max(5, 2 * len(self.entries))
            self.entries.append(key)
        self.found = self.entries.index(key)
        function = cast(self.lookup, c_void_p).value
        cell = self.lib.call(
            "dict_insert",
            *(self.struct.ctypes.data, *map(addressof, made), before, STATUS(before >= 0), function, 0, 0, 0),
            result=POINTER,
        )
        if before < 0:
            self.cells[key] = cell
            assert made[0].raw[:24] == bytes(24)
        assert cell == self.cells[key]

    def delete(self, key: int) -> None:
        entry = self.entries.index(key)
        self.entries[entry] = None
        del self.cells[key]
        self.lib.call("dict_delete", self.struct.ctypes.data, entry, STATUS(0))

    def pop(self) -> None:
        while self.entries and self.entries[-1] is None:
            self.entries.pop()
        cell = self.lib.call("dict_pop", self.struct.ctypes.data, STATUS(0 if self.entries else -4), result=POINTER)
        last = self.entries.pop() if self.entries else None
        assert cell == (None if last is None else self.cells.pop(last))

    def check(self) -> None:
        for entry, key in enumerate(self.entries):
            cell = self.lib.call("dict_cell", self.struct.ctypes.data, entry, result=POINTER)
            assert cell == (None if key is None else self.cells[key])
        assert self.lib.call("dict_cell", self.struct.ctypes.data, -1, result=POINTER) is None
        iterator, shadow = np.zeros((2, 4), np.int64)
        self.lib.call("dict_begin", shadow.ctypes.data, self.struct.ctypes.data)
        for entry, key in enumerate(self.entries):
            if key is not None:
                iterator[3] = entry + 1
                assert self.next(shadow, iterator, 0) == self.cells[key]
        assert self.next(shadow, iterator, -3) is None

    def next(self, shadow: np.ndarray, iterator: np.ndarray, status: int) -> int | None:
        pointers = shadow.ctypes.data, iterator.ctypes.data
        return self.lib.call("dict_next", *pointers, STATUS(status), result=POINTER)


@pytest.mark.parametrize("seed", range(6))
def test_cells_stay_with_their_keys(lib: Library, seed: int):
    draw, table = random.Random(seed), Table(lib)
    for _ in range(300):
        step = draw.random()
        if step < 0.6 or not table.cells:
            table.insert(draw.randrange(40))
        elif step < 0.85:
            table.delete(draw.choice(sorted(table.cells)))
        else:
            table.pop()
        table.check()


def test_an_iterator_over_a_dictionary_without_shadow_finds_no_cell(lib: Library):
    iterator, shadow = np.full((2, 4), 7, np.int64)
    lib.call("dict_begin", shadow.ctypes.data, 0)
    assert lib.call("dict_next", shadow.ctypes.data, iterator.ctypes.data, STATUS(0), result=POINTER) is None
    assert lib.call("dict_value", 0, 0, result=POINTER) is None


def test_what_fails_leaves_the_dictionary(lib: Library):
    table = Table(lib)
    table.insert(3)
    function = cast(table.lookup, c_void_p).value
    failed = lib.call("dict_insert", table.struct.ctypes.data, 0, 0, -1, STATUS(-5), function, 0, 0, 0, result=POINTER)
    assert failed is None
    lib.call("dict_delete", table.struct.ctypes.data, 0, STATUS(-1))
    assert lib.call("dict_pop", table.struct.ctypes.data, STATUS(-4), result=POINTER) is None
    table.check()
