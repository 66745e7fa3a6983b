from __future__ import annotations

import pytest

from irad.ir.instructions import Call, Select
from irad.ir.values import ConstantInt
from irad.passes.mode import AUGMENTED, REVERSE, reverse_mode
from irad.passes.parallel.launch import Table
from irad.passes.parallel.modes import Sharing, SharingMode
from irad.passes.request import LoopArray, MemoryType
from tests.passes.parallel.loops import (
    ARRAYS,
    CALL,
    CALL_OR_OWN,
    COPY,
    EITHER,
    HANDED,
    HANDED_OWN,
    IN_PLACE,
    REFILL,
    STENCIL,
)
from tests.passes.units import derivative, generated


def sharing_of(text: str, arrays: tuple[LoopArray, ...] = ARRAYS) -> Sharing:
    """How the lanes of a program's loop share shadows."""
    pairs = generated(text, "scss", kernels=(("kernel", arrays),))
    [sharing] = [pair.unit.sharing for pair in pairs if pair.unit.sharing is not None]
    return sharing


def modes(sharing: Sharing) -> dict[str | None, SharingMode]:
    return {param.name: mode for param, mode in sharing.modes.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (STENCIL, {"array.1": SharingMode.WINDOW, "array.2": SharingMode.DIRECT}),
        (IN_PLACE, {"array.1": SharingMode.WINDOW, "array.2": SharingMode.WRITTEN_WINDOW}),
        (COPY, {"array.1": SharingMode.WINDOW, "array.2": SharingMode.DIRECT}),
        (REFILL, {"array.2": SharingMode.WRITTEN_WINDOW}),
        (CALL, {"array.1": SharingMode.PRIVATE, "array.2": SharingMode.DIRECT}),
    ],
    ids=["read and written apart", "in place", "copied", "copied to and fro", "read by a library call"],
)
def test_modes(text: str, expected: dict[str, SharingMode]):
    sharing = sharing_of(text)
    assert sharing.obstacle is None
    assert modes(sharing) == expected
    assert [p.name for p in sharing.shared()] == [
        name for name, mode in expected.items() if mode is not SharingMode.DIRECT
    ]


def test_a_pointer_to_two_arrays_makes_lanes_run_one_by_one():
    sharing = sharing_of(EITHER)
    assert sharing.obstacle == "a pointer may point to several arrays"
    assert sharing.shared() == []
    assert all("one by one" in sharing.explain(param) for param in sharing.modes)


def test_an_array_handed_to_a_function_makes_lanes_run_one_by_one():
    """The adjoint of the function adds to the array's shadow, not to that of the lane."""
    assert sharing_of(HANDED).obstacle == "an active array is handed to square"
    assert sharing_of(HANDED_OWN).obstacle is None


def test_a_library_call_adds_to_memory_of_the_lane_itself_or_to_a_partial_shadow():
    """Which of them an address is in shows when the lane runs."""
    pairs = generated(CALL_OR_OWN, "scss", kernels=(("kernel", ARRAYS),))
    [lane] = [pair for pair in pairs if pair.unit.sharing is not None]
    calls = [inst for inst in lane.pair[REVERSE].instructions() if isinstance(inst, Call)]
    [adding] = [call for call in calls if str(getattr(call.callee, "name", "")).startswith("irad_add_scaled")]
    shadow, distance = adding.arguments[3].operands
    assert shadow.name == "which.shadow"
    assert isinstance(distance, Select)
    directly = distance.operands[2]
    assert isinstance(directly, ConstantInt)
    assert directly.value == 0


def test_arrays_of_unknown_elements_make_lanes_run_one_by_one():
    unknown = (ARRAYS[0], LoopArray(None, 8, ((1, 3),)), ARRAYS[2])
    assert sharing_of(STENCIL, unknown).obstacle == "an array's elements are not plain floating-point numbers"


def test_arrays_of_numbers_of_two_sizes_make_lanes_run_one_by_one():
    """Also if they are only copied: partial shadows are added up as numbers of one size."""
    mixed = LoopArray(MemoryType(16, ((0, "float"), (8, "double"))), 16, ((1, 3),))
    assert sharing_of(COPY, (ARRAYS[0], mixed, mixed)).obstacle is not None
    assert sharing_of(COPY).obstacle is None


def test_explain():
    sharing = sharing_of(STENCIL)
    first, second = sharing.modes
    assert sharing.explain(first) == "its shadow is used window"
    assert sharing.explain(second) == "its shadow is used direct"


def test_each_direction_has_shadows_and_windows_of_its_own():
    made = derivative(STENCIL, "scss", kernels=(("kernel", ARRAYS),), mode=reverse_mode(3))
    [lane] = [each for each in made.pairs if each.unit.sharing is not None]
    loop = made.program.loops[lane.unit.function]
    entries = Table.of(loop, lane.unit, lane.pair, 0).entries
    params = [param.name for param in lane.pair[AUGMENTED].params[2:]]  # after frame and arena
    assert [f"{params[entry.parameter]}.shadow" for entry in entries] == [params[entry.shadow] for entry in entries]
    assert [entry.shadow for entry in entries] == [
        number for number, name in enumerate(params) if "shadow" in str(name)
    ]
    assert len({entry.window for entry in entries if entry.mode is SharingMode.WINDOW}) == 3
