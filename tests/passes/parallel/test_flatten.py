from __future__ import annotations

import pytest

from irad.errors import NoRuleError, UnsupportedError
from irad.frontend.numba.convention import NUMBA
from irad.ir.instructions import CallSite, Load
from irad.ir.module import Function
from irad.ir.text.printer import print_module
from irad.passes.callees import effects_of
from irad.passes.parallel.flatten import CHUNKS, LANE, SCHEDULE, THREADS, flatten_parallel_loops
from irad.passes.request import LoopArray, MemoryType
from tests.passes.parallel.loops import ARRAYS, FOREIGN_KERNEL, INDIRECT, STENCIL
from tests.passes.units import DOUBLES, POINTERS, canonical, generated, parsed, registry

assert NUMBA.parallel is not None
LAUNCH = NUMBA.parallel.launch


def flattened(text: str, arrays: tuple[LoopArray, ...] = ARRAYS):
    module, function = parsed(text)
    assert NUMBA.parallel is not None
    loops = flatten_parallel_loops(module, registry(), NUMBA.parallel, {"kernel": arrays})
    return module, function, list(loops.values())


def calls(function: Function) -> list[str]:
    return [str(i.callee.name) for i in function.instructions() if isinstance(i, CallSite)]


def test_a_launch_becomes_a_call_of_the_loop_function():
    _, host, [loop] = flattened(STENCIL)
    assert LAUNCH not in calls(host)
    assert "kernel.loop" in calls(host)
    names = [p.name for p in loop.function.params]
    assert names[:5] == ["lane", "threads", "chunks", "schedule", "step"]
    assert {"array.1", "array.2", "extent.1", "stride.3"} < set(names[5:])


def test_the_vectors_are_read_before_the_call():
    _, host, _ = flattened(STENCIL)
    [call] = [i for i in host.instructions() if isinstance(i, CallSite) and i.callee.name == "kernel.loop"]
    given = call.arguments
    assert given[LANE].value == 0
    assert given[THREADS].name == "threads"
    assert isinstance(given[CHUNKS], Load)
    assert given[SCHEDULE].operands[0].name == "args"


def test_a_loop_function_reads_no_vector_and_asks_for_no_thread():
    _, _, [loop] = flattened(STENCIL)
    assert "get_thread_id" not in calls(loop.function)
    assert loop.function.params[LANE].users
    assert loop.function.params[CHUNKS].users


def test_what_is_made_is_valid():
    module, _, _ = flattened(STENCIL)
    assert "kernel.loop" in canonical(print_module(module))


def test_the_summary_names_what_is_read_and_written():
    _, _, [loop] = flattened(STENCIL)
    effects = effects_of(loop.function)
    assert effects is not None
    number = {p.name: i for i, p in enumerate(loop.function.params)}
    assert effects.reads == {number["schedule"], number["array.1"]}
    assert effects.writes == {number["array.2"]}


def test_a_loop_that_reads_pointers_from_its_arrays_has_no_summary_and_is_refused():
    objects = (ARRAYS[0], LoopArray(MemoryType(8, ((0, "ptr"),)), 8, ((1, 3),)), ARRAYS[2])
    _, _, [loop] = flattened(INDIRECT, objects)
    assert effects_of(loop.function) is None
    with pytest.raises(UnsupportedError, match="points to other memory"):
        generated(INDIRECT, "scss", [DOUBLES, POINTERS, POINTERS, DOUBLES], kernels=(("kernel", objects),))


def test_what_the_front_end_knows_of_a_parameter():
    _, _, [loop] = flattened(STENCIL)
    number = {p.name: i for i, p in enumerate(loop.function.params)}
    array = loop.array_of(number["array.1"])
    assert array is not None
    assert array.memory == MemoryType(8, ((0, "double"),))
    assert loop.array_of(number["extent.1"]) is None
    extent, stride = loop.extent_and_stride(array.axes[0])
    assert (loop.function.params[extent].name, loop.function.params[stride].name) == ("extent.1", "stride.3")


def test_a_kernel_of_another_form_is_refused():
    _, host, loops = flattened(FOREIGN_KERNEL)
    assert loops == []
    assert LAUNCH in calls(host)
    with pytest.raises(NoRuleError, match=LAUNCH):
        generated(FOREIGN_KERNEL, "scss", kernels=(("kernel", ARRAYS),))
