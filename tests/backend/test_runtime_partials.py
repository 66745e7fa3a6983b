"""Windows and partial shadows of lanes, compiled by MCJIT and driven from here."""

from __future__ import annotations

import ctypes
from functools import cache
from itertools import pairwise
from typing import Any

import llvmlite.binding as ll
import numpy as np
import pytest

from irad.backend.runtime import support

READ, CALLED, WRITTEN, CHANGED = range(4)
RECORD = 192  # bytes of a lane's record: the first index at 8, windows from 16 on
FIRST, WINDOWS, WINDOW = 8, 16, 56


@cache
def library() -> Any:
    support.install()
    module = ll.parse_assembly(support.runtime_text())
    module.link_in(ll.parse_assembly("define void @NRT_decref(ptr %p) { ret void }"))
    # what is inlined into derivatives is kept for the tests under names of their own
    engine = ll.create_mcjit_compiler(module, ll.Target.from_default_triple().create_target_machine(jit=True))
    engine.finalize_object()
    return engine


def function(name: str, result: Any, *arguments: Any) -> Any:
    address = library().get_function_address(f"irad.{name}")
    assert address
    return ctypes.CFUNCTYPE(result, *arguments)(address)


class Lanes:
    """Arrays, and lanes that add to their shadows."""

    def __init__(self, arrays: list[tuple[np.ndarray, int]], firsts: list[int]) -> None:
        self.records = np.zeros((len(firsts), RECORD), np.uint8)
        for lane, first in enumerate(firsts):
            self.records[lane, FIRST : FIRST + 8] = np.frombuffer(np.int64(first).tobytes(), np.uint8)
        self.table = np.zeros((len(arrays), 9), np.int64)
        for number, (array, kind) in enumerate(arrays):
            low, high = np.lib.array_utils.byte_bounds(array)
            origin, single = array.ctypes.data, array.dtype == np.float32
            step = array.strides[0]
            self.table[number] = (low, high, kind, step, origin, 0, single, WINDOWS + WINDOW * number, 0)
        self.arguments = self.table.ctypes.data, len(arrays), self.records.ctypes.data, RECORD, len(firsts)

    def open(self) -> bool:
        types = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        return bool(function("partials_open", ctypes.c_bool, *types)(*self.arguments))

    def close(self) -> None:
        types = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        function("partials_close", None, *types)(*self.arguments)

    def window(self, lane: int, array: int) -> tuple[int, int, int, int]:
        """Address, start, size, delta."""
        start = WINDOWS + WINDOW * array
        words = self.records[lane, start : start + 24].view(np.int64)
        first, size, delta = map(int, words)
        return self.records[lane, start:].ctypes.data, first, size, delta

    def add(self, lane: int, array: int, address: int, amount: float, suffix: str = "f64") -> None:
        number = ctypes.c_double if suffix == "f64" else ctypes.c_float
        types = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, number)
        function(f"add_shared_{suffix}", None, *types)(*self.window(lane, array), address, amount)

    def take(self, lane: int, array: int, address: int) -> float:
        types = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
        taken: float = function("take_shared_f64", ctypes.c_double, *types)(*self.window(lane, array), address)
        return taken

    def move(self, lane: int, into: tuple[int, int], source: tuple[int, int], size: int, suffix: str = "f64") -> None:
        """The adjoint of a copy; places are numbers of arrays, -1 for a lane's own memory, and addresses."""
        side = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
        given = [word for array, address in (into, source) for word in (*self.window_or_all(lane, array), address)]
        function(f"move_shared_{suffix}", None, *side, *side, ctypes.c_int64)(*given, size)

    def drop(self, lane: int, array: int, address: int, size: int) -> None:
        """The adjoint of a fill."""
        types = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
        function("drop_shared_f64", None, *types)(*self.window_or_all(lane, array), address, size)

    def window_or_all(self, lane: int, array: int) -> tuple[int, int, int, int]:
        return self.window(lane, array) if array >= 0 else (0, 0, -1, 0)


def place(array: np.ndarray, index: int) -> int:
    return int(array.ctypes.data + index * array.strides[0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_lanes_add_arrives(dtype: type):
    shadow = np.arange(100, dtype=dtype)
    lanes = Lanes([(shadow, READ)], [0, 30, 60])
    suffix = "f64" if dtype is np.float64 else "f32"
    assert lanes.open()
    for lane in range(3):
        for index in (0, 29, 30, 59, 99):
            lanes.add(lane, 0, place(shadow, index), 1.0 + lane, suffix)
    lanes.close()
    expected = np.arange(100, dtype=dtype)
    expected[[0, 29, 30, 59, 99]] += 6.0
    assert np.array_equal(shadow, expected)


def test_windows_divide_an_array_at_the_first_indices():
    shadow = np.zeros(100)
    lanes = Lanes([(shadow, READ)], [7, 30, 60])
    assert lanes.open()
    bounds = [
        (start - shadow.ctypes.data, start + size - shadow.ctypes.data) for _, start, size, _ in self_windows(lanes)
    ]
    lanes.close()
    assert bounds == [(0, 240), (240, 480), (480, 800)]


def self_windows(lanes: Lanes, array: int = 0) -> list[tuple[int, int, int, int]]:
    return [lanes.window(lane, array) for lane in range(len(lanes.records))]


@pytest.mark.parametrize("firsts", [[50, 20, 90], [-5, 1000, 3], [0, 0, 0]])
@pytest.mark.parametrize("stride", [1, -1, 3])
def test_windows_never_overlap(firsts: list[int], stride: int):
    shadow = np.zeros(300)[::stride]
    lanes = Lanes([(shadow, READ)], firsts)
    assert lanes.open()
    bounds = [(start, start + size) for _, start, size, _ in self_windows(lanes)]
    lanes.close()
    low, high = np.lib.array_utils.byte_bounds(shadow)
    assert bounds[0][0] == low
    assert bounds[-1][1] == high
    assert all(a <= b for a, b in bounds)
    assert all(before[1] == after[0] for before, after in pairwise(bounds))


def test_overlapping_arrays_share_windows_and_partial_shadows():
    whole = np.zeros(40)
    parts = [whole[:20], whole[10:30], whole[29:]]  # each overlaps the one before: all are one
    lanes = Lanes([(part, CHANGED) for part in parts], [0, 9])
    assert lanes.open()
    windows = [[window[1:] for window in self_windows(lanes, number)] for number in range(3)]
    assert windows[0] == windows[1] == windows[2]
    lanes.add(1, 0, place(whole, 1), 2.0)
    lanes.add(1, 1, place(whole, 12), 3.0)
    assert lanes.take(1, 0, place(whole, 12)) == 3.0  # added through another array
    lanes.close()
    assert whole[1] == 2.0
    assert np.count_nonzero(whole) == 1


def test_what_is_taken_is_gone():
    shadow = np.full(10, 5.0)
    lanes = Lanes([(shadow, CHANGED)], [0, 5])
    assert lanes.open()
    lanes.add(1, 0, place(shadow, 2), 1.5)  # outside its window: in the partial shadow
    assert lanes.take(1, 0, place(shadow, 2)) == 6.5
    assert lanes.take(1, 0, place(shadow, 2)) == 0.0
    assert lanes.take(0, 0, place(shadow, 3)) == 5.0
    lanes.close()
    assert list(shadow) == [5.0, 5.0, 0.0, 0.0, *[5.0] * 6]


def test_memory_of_the_lane_itself_is_used_directly():
    shadow, own = np.zeros(1000), np.array([1.0])
    lanes = Lanes([(shadow, CHANGED)], [0, 500])
    assert lanes.open()
    lanes.add(1, 0, own.ctypes.data, 2.0)
    assert own[0] == 3.0
    assert lanes.take(0, 0, own.ctypes.data) == 3.0
    assert own[0] == 0.0
    lanes.close()
    assert not shadow.any()


RANGES = [
    (0, 10),
    (12, 18),
    (8, 13),
    (15, 24),
    (5, 5),
]  # of an array of 24 of which lane 1 has the window from 10 to 20


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("start", "stop"), RANGES)
def test_copies_out_of_an_array_add_to_it(start: int, stop: int, dtype: type):
    shadow, own = np.arange(24, dtype=dtype), np.arange(100, 100 + stop - start).astype(dtype)
    expected = shadow.copy()
    expected[start:stop] += own
    lanes = Lanes([(shadow, READ)], [0, 10, 20])
    assert lanes.open()
    size, suffix = own.nbytes, "f64" if dtype is np.float64 else "f32"
    lanes.move(1, (-1, own.ctypes.data), (0, place(shadow, start)), size, suffix)
    lanes.close()
    assert np.array_equal(shadow, expected)
    assert not own.any()


@pytest.mark.parametrize(("start", "stop"), RANGES)
def test_copies_into_an_array_take_from_it(start: int, stop: int):
    shadow, own = np.arange(24.0), np.zeros(stop - start)
    expected, taken = shadow.copy(), shadow[start:stop] + 1.0
    expected[start:stop] = 0
    lanes = Lanes([(shadow, CHANGED)], [0, 10, 20])
    assert lanes.open()
    for index in range(start, stop):
        lanes.add(1, 0, place(shadow, index), 1.0)
    lanes.move(1, (0, place(shadow, start)), (-1, own.ctypes.data), own.nbytes)
    lanes.close()
    assert np.array_equal(own, taken)
    assert np.array_equal(shadow, expected)


@pytest.mark.parametrize("shift", [-3, -1, 1, 3])
@pytest.mark.parametrize("start", [3, 8, 12])
def test_copies_within_an_array_that_overlap(start: int, shift: int):
    shadow = np.arange(1.0, 25.0)
    expected, count = shadow.copy(), 5
    taken = expected[start + shift : start + shift + count].copy()
    expected[start + shift : start + shift + count] = 0
    expected[start : start + count] += taken
    lanes = Lanes([(shadow, CHANGED)], [0, 10, 20])
    assert lanes.open()
    lanes.move(1, (0, place(shadow, start + shift)), (0, place(shadow, start)), 8 * count)
    lanes.close()
    assert np.array_equal(shadow, expected)


@pytest.mark.parametrize(("start", "stop"), RANGES)
def test_fills_clear(start: int, stop: int):
    shadow = np.ones(24)
    lanes = Lanes([(shadow, CHANGED)], [0, 10, 20])
    assert lanes.open()
    for index in range(24):
        lanes.add(1, 0, place(shadow, index), 1.0)
    lanes.drop(1, 0, place(shadow, start), 8 * (stop - start))
    lanes.close()
    assert np.array_equal(shadow, [0.0 if start <= i < stop else 2.0 for i in range(24)])


def test_arrays_that_library_calls_add_to_have_no_window():
    shadow = np.zeros(20_000)  # large: whole pages
    lanes = Lanes([(shadow, CALLED)], [0, 9])
    assert lanes.open()
    for lane, (_, _, size, delta) in enumerate(self_windows(lanes)):
        assert size == 0
        np.ctypeslib.as_array((ctypes.c_double * 20_000).from_address(shadow.ctypes.data + delta))[:] = lane + 1.0
    lanes.close()
    assert np.all(shadow == 3.0)


@pytest.mark.parametrize("kinds", [(WRITTEN, READ), (CALLED, CHANGED), (WRITTEN, CHANGED)])
def test_arrays_that_exclude_each_other(kinds: tuple[int, int]):
    whole = np.zeros(40)
    lanes = Lanes([(whole[:20], kinds[0]), (whole[10:], kinds[1])], [0, 9])
    assert not lanes.open()
    lanes.add(1, 1, place(whole, 12), 4.0)
    assert whole[12] == 4.0  # lanes run one by one: directly
    lanes.close()
    assert not Lanes([(whole[:20], kinds[1]), (whole[10:], kinds[0])], [0, 9]).open()


@pytest.mark.parametrize("kinds", [(WRITTEN, WRITTEN), (READ, CALLED), (READ, CHANGED)])
def test_arrays_that_get_on(kinds: tuple[int, int]):
    whole = np.zeros(40)
    lanes = Lanes([(whole[:20], kinds[0]), (whole[10:], kinds[1])], [0, 9])
    assert lanes.open()
    lanes.close()


def test_numbers_of_two_sizes_in_one_array():
    whole = np.zeros(40)
    assert not Lanes([(whole, READ), (whole.view(np.float32), READ)], [0, 9]).open()


def test_empty_arrays():
    lanes = Lanes([(np.zeros(0), READ), (np.zeros(0), WRITTEN)], [0, 0])
    assert lanes.open()
    lanes.close()


def test_a_single_lane_has_everything():
    shadow = np.zeros(10)
    lanes = Lanes([(shadow, CALLED)], [4])
    assert not lanes.open()
    lanes.add(0, 0, place(shadow, 9), 1.0)
    assert shadow[9] == 1.0
    lanes.close()
