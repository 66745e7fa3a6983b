"""Address spaces, bounds, alignment, atomic operations, races."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cuda.ptx_interpreter.faults import MemoryFault, PtxFault, RaceFault
from tests.cuda.ptx_interpreter.machine import BACKWARD, IN_STEP
from tests.cuda.ptx_interpreter.programs import evaluate, kernel, run

EACH = "mov.u32 %r0, %tid.x; mad.wide.u32 %rd0, %r0, 8, %p0;"
SHARED = ".shared .align 8 .b8 first[64];\n.shared .align 8 .b8 second[64];"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ld.global.b64 %rd1, [%rd0+8];", "leads to no variable and no array"),
        ("ld.global.b64 %rd1, [%p0+-8];", "leads to no variable and no array"),
        ("ld.global.v2.b64 {%rd1, %rd2}, [%rd0];", "not aligned|leads to no"),
        ("ld.global.b64 %rd1, [%p0+4];", "not aligned"),
        ("ld.global.b64 %rd1, [0];", "leads to no variable and no array"),
        ("ld.shared.b64 %rd1, [%p0];", "leads to no variable and no array"),
        ("ld.local.b64 %rd1, [%p0];", "leads to no variable and no array"),
        ("ld.const.b64 %rd1, [%p0];", "leads to no variable and no array"),
        ("mov.b64 %rd1, first; ld.b64 %rd2, [%rd1];", "leads to no variable and no array"),
        ("mov.b64 %rd1, first; ld.global.b64 %rd2, [%rd1];", "leads to no variable and no array"),
        ("mov.b64 %rd1, first; cvta.shared.u64 %rd2, %rd1; ld.global.b64 %rd3, [%rd2];", "leads to no variable"),
        ("mov.b64 %rd1, first; cvta.shared.u64 %rd2, %rd1; ld.shared.b64 %rd3, [%rd2];", "leads to no variable"),
        ("mov.b64 %rd1, first; ld.shared.b64 %rd2, [%rd1+64];", "leads to no variable and no array"),
        ("mov.b64 %rd1, table; st.b64 [%rd1], 0;", "store to constant memory"),
        ("ld.param.b64 %rd1, [p0+8];", "8 bytes at 8 of p0"),
        (".local .align 8 .b8 mine[8]; mov.b64 %rd1, mine; ld.local.b64 %rd2, [%rd1+8];", "leads to no variable"),
        (
            ".local .align 8 .b8 mine[8]; mov.b64 %rd1, mine; cvta.local.u64 %rd2, %rd1; atom.add.u64 %rd3, [%rd2], 1;",
            "of local memory is not defined",
        ),
    ],
)
def test_accesses_that_lead_nowhere(line: str, message: str):
    module = kernel(EACH + line, 1, f"{SHARED}\n.const .align 8 .b8 table[8] = {{1}};")
    with pytest.raises(MemoryFault, match=message):
        run(module, [np.zeros(32)])


def test_spaces_and_generic_addresses():
    body = """
      .local .align 8 .b8 mine[16];
      mov.b64 %rd1, mine; cvta.local.u64 %rd2, %rd1; st.b64 [%rd2+8], 5; ld.local.b64 %rd3, [%rd1+8];
      mov.b64 %rd4, first; cvta.shared.u64 %rd5, %rd4; mad.wide.u32 %rd6, %r0, 8, %rd5; st.b64 [%rd6], %rd3;
      mad.wide.u32 %rd7, %r0, 8, %rd4; ld.shared.b64 %rd8, [%rd7];
      cvta.to.shared.u64 %rd9, %rd5; setp.eq.b64 %q0, %rd9, %rd4;
      ld.const.b64 %rd10, [table+8]; add.s64 %rd8, %rd8, %rd10; mov.b64 %rd11, table; ld.b64 %rd12, [%rd11+8];
      add.s64 %rd8, %rd8, %rd12; @%q0 add.s64 %rd8, %rd8, 100;
      isspacep.shared %q1, %rd5; @%q1 add.s64 %rd8, %rd8, 1000;
      isspacep.local %q2, %rd5; @!%q2 add.s64 %rd8, %rd8, 10000;
      isspacep.global %q3, %p0; @%q3 add.s64 %rd8, %rd8, 100000;
      ld.global.b64 %rd13, [pointer]; ld.b64 %rd14, [%rd13]; add.s64 %rd8, %rd8, %rd14;
      st.global.b64 [%rd0], %rd8;
    """
    outside = ".shared .align 8 .b8 first[64];\n.const .align 8 .b64 table[2] = {7, 20};\n"
    outside += ".global .align 8 .b64 held[2] = {0, 1000000};\n.global .align 8 .b64 pointer = generic(held)+8;"
    found = run(kernel(EACH + body, 1, outside), [np.zeros(8, np.int64)], 8)
    assert found[0].tolist() == [5 + 2 * 20 + 111100 + 1000000] * 8


def test_a_generic_address_may_be_constant_for_some_threads_only():
    body = """
      mov.b64 %rd1, table; and.b32 %r1, %r0, 1; setp.eq.s32 %q0, %r1, 0; selp.b64 %rd2, %rd1, %p1, %q0;
      ld.b64 %rd3, [%rd2+8]; st.global.b64 [%rd0], %rd3;
    """
    outside = ".const .align 8 .b64 table[2] = {7, 20};"
    found = run(kernel(EACH + body, 2, outside), [np.zeros(4, np.int64), np.array([1, 30])], 4)[0]
    assert found.tolist() == [20, 30, 20, 30]
    with pytest.raises(MemoryFault, match="leads to no variable"):
        run(kernel(EACH + body.replace("%rd2+8", "%rd2+16"), 2, outside), [np.zeros(4, np.int64), np.zeros(2)], 4)


def test_what_was_never_written_differs_between_orders():
    outside = ".shared .align 8 .b8 first[64];"
    module = kernel(EACH + "mov.b64 %rd1, first; ld.shared.b64 %rd2, [%rd1]; st.global.b64 [%rd0], %rd2;", 1, outside)
    left, right = (run(module, [np.zeros(1)], 1, order=order)[0].tobytes() for order in (IN_STEP, BACKWARD))
    assert left != right


def test_dynamic_shared_memory():
    outside = ".extern .shared .align 16 .b8 dynamic[];"
    body = EACH + "mov.b64 %rd1, dynamic; mad.wide.u32 %rd2, %r0, 8, %rd1; st.shared.b64 [%rd2], %rd2;"
    body += "mov.u32 %r1, %dynamic_smem_size; st.global.b32 [%rd0], %r1;"
    assert run(kernel(body, 1, outside), [np.zeros(4, np.int64)], 4, shared=32)[0].tolist() == [32] * 4
    with pytest.raises(MemoryFault, match="leads to no variable"):
        run(kernel(body, 1, outside), [np.zeros(4, np.int64)], 4, shared=24)


def test_short_numbers_are_extended_and_cut():
    body = """
      ld.global.s8 %r1, [%p0]; ld.global.u8 %r2, [%p0]; ld.global.b8 %h1, [%p0]; ld.global.s16 %rd1, [%p0];
      st.global.b32 [%p1], %r1; st.global.b32 [%p1+4], %r2; cvt.u32.u16 %r3, %h1; st.global.b32 [%p1+8], %r3;
      st.global.b64 [%p1+16], %rd1; st.global.b8 [%p1+12], %r1; st.global.b16 [%p1+14], %rd1;
    """
    found = run(kernel(body, 2), [np.array([0xFF, 0x80], np.uint8), np.zeros(6, np.uint32)], 1)[1]
    assert found.tolist() == [0xFFFFFFFF, 0xFF, 0xFF, 0x80FF00FF, 0xFFFF80FF, 0xFFFFFFFF]


def test_registers_are_as_wide_as_what_they_hold():
    for line in (
        "add.s64 %rd1, %r1, 1;",
        "add.s32 %rd1, %r1, 1;",
        "st.global.b64 [%p0], %r1;",
        "add.s32 %q0, %r1, 1;",
        "shl.b32 %r1, %r1, %rd1;",
    ):
        with pytest.raises(PtxFault, match=r"is read as|gets a"):
            run(kernel(line), [np.zeros(1)])


def test_packing_and_unpacking():
    found = evaluate("mov.b64 %result, {%a, %b}", "u64", a=("u32", [1]), b=("u32", [2]))
    assert found.tolist() == [1 + (2 << 32)]
    assert evaluate("mov.b64 {_, %result}, %a", "u32", a=("u64", [1 + (2 << 32)])).tolist() == [2]
    assert evaluate("mov.b32 {%result, _}, %a", "u16", a=("u32", [0x12345678])).tolist() == [0x5678]


ATOMICS = [
    ("add.u32", "u4", 5, 3, 8),
    ("add.s32", "i4", 2**31 - 1, 1, -(2**31)),
    ("add.u64", "u8", 2**64 - 1, 2, 1),
    ("add.f32", "f4", 0.5, 0.25, 0.75),
    ("add.f64", "f8", 0.5, 0.25, 0.75),
    ("add.noftz.f16", "f2", 0.5, 0.25, 0.75),
    ("and.b32", "u4", 12, 10, 8),
    ("or.b32", "u4", 12, 10, 14),
    ("xor.b64", "u8", 12, 10, 6),
    ("exch.b32", "u4", 12, 10, 10),
    ("min.s32", "i4", 3, -1, -1),
    ("max.u32", "u4", 3, 2**32 - 1, 2**32 - 1),
    ("max.s64", "i8", 3, -1, 3),
    ("inc.u32", "u4", 3, 5, 4),
    ("inc.u32", "u4", 5, 5, 0),
    ("dec.u32", "u4", 3, 5, 2),
    ("dec.u32", "u4", 0, 5, 5),
    ("dec.u32", "u4", 9, 5, 5),
]


@pytest.mark.parametrize(("opcode", "dtype", "before", "value", "after"), ATOMICS)
def test_atomic_operations(opcode: str, dtype: str, before, value, after):
    bits = 8 * int(dtype[1])
    register = {16: "%h", 32: "%r", 64: "%rd"}[bits]
    body = f"ld.global.b{bits} {register}1, [%p1]; atom.relaxed.gpu.global.{opcode} {register}2, [%p0], {register}1;"
    body += f"st.global.b{bits} [%p2], {register}2; red.global.{opcode} [%p3], {register}1;"
    given = [np.array([each], dtype) for each in (before, value, 0, before)]
    found = run(kernel(body, 4), given, 1)
    assert [each[0] for each in found] == [after, value, before, after]


def test_compare_and_swap():
    body = "atom.global.cas.b32 %r1, [%p0], 3, 7; st.global.b32 [%p0+4], %r1;"
    assert run(kernel(body), [np.array([3, 0], np.int32)], 1)[0].tolist() == [7, 3]
    assert run(kernel(body), [np.array([4, 0], np.int32)], 1)[0].tolist() == [4, 4]


def test_atomic_additions_of_all_threads_count():
    body = EACH + "ld.global.b64 %rd1, [%rd0]; atom.global.add.f64 %rd2, [%p1], %rd1;"
    for order in (IN_STEP, BACKWARD):
        found = run(kernel(body, 2), [np.ones(64), np.zeros(1)], 64, order=order)
        assert found[1] == 64.0


# --- races ------------------------------------------------------------------------------------------------------------

ADDED = "ld.global.b64 %rd1, [%p0]; add.s64 %rd1, %rd1, 1; st.global.b64 [%p0], %rd1;"
OWN = "mov.b64 %rd1, first; mad.wide.u32 %rd2, %r0, 8, %rd1; st.shared.b64 [%rd2], %rd1;"
NEXT = "xor.b32 %r1, %r0, 1; mad.wide.u32 %rd3, %r1, 8, %rd1; ld.shared.b64 %rd4, [%rd3];"
RACES = {
    "additions": (ADDED, 1),
    "blocks": (
        "mov.u32 %r1, %ctaid.x; setp.eq.s32 %q0, %r1, 0; @%q0 st.global.b64 [%p0], 1; @!%q0 ld.global.b64 %rd1, [%p0];",
        2,
    ),
    "one store": ("st.global.b64 [%p0], 1;", 1),
    "blocks behind a barrier": (
        "bar.sync 0; mov.u32 %r1, %ctaid.x;"
        "setp.eq.s32 %q0, %r1, 0; @%q0 st.global.b64 [%p0], 1; @!%q0 ld.global.b64 %rd1, [%p0];",
        2,
    ),
    "a missing barrier": (EACH + OWN + NEXT, 1),
    "a read beside atomics": (
        EACH + "setp.eq.s32 %q0, %r0, 0; @!%q0 atom.global.add.u64 %rd1, [%p0], 1; @%q0 ld.global.b64 %rd2, [%p0];",
        1,
    ),
    "a constant that is written": ("ld.global.nc.b64 %rd1, [%p0]; st.global.b64 [%p0], %rd1;", 1),
    "a warp's barrier for a block": (
        EACH
        + OWN
        + "bar.warp.sync -1; xor.b32 %r1, %r0, 32; mad.wide.u32 %rd3, %r1, 8, %rd1; ld.shared.b64 %rd4, [%rd3];",
        1,
    ),
}
OUTSIDE = ".shared .align 8 .b8 first[1024];"


@pytest.mark.parametrize("order", [IN_STEP, BACKWARD], ids=["in step", "backward"])
@pytest.mark.parametrize("name", RACES)
def test_races(name: str, order):
    body, blocks = RACES[name]
    threads = 1 if blocks == 2 or "constant" in name else 64
    with pytest.raises(RaceFault):
        run(kernel(body, 1, OUTSIDE), [np.zeros(64)], threads, blocks, order=order)


RIGHT = {
    "a barrier": (EACH + OWN + "bar.sync 0;" + NEXT + "bar.sync 0; st.shared.b64 [%rd2], 3;", 1),
    "a warp's barrier": (EACH + OWN + "bar.warp.sync -1;" + NEXT + "bar.warp.sync -1; st.shared.b64 [%rd2], 3;", 1),
    "own memory": (EACH + "ld.global.b64 %rd1, [%rd0]; st.global.b64 [%rd0], 1; ld.global.b64 %rd1, [%rd0];", 1),
    "atomics of blocks": ("atom.global.add.u64 %rd1, [%p0], 1;", 2),
    "reads of blocks": ("ld.global.b64 %rd1, [%p0]; ld.global.nc.b64 %rd1, [%p0];", 2),
    "shared memory of blocks": (
        "mov.b64 %rd1, first; mov.u32 %r0, %tid.x; mad.wide.u32 %rd2, %r0, 8, %rd1; st.shared.b64 [%rd2], 1;",
        2,
    ),
    "volatile accesses": ("st.volatile.global.b64 [%p0], 1; ld.volatile.global.b64 %rd1, [%p0];", 2),
}


@pytest.mark.parametrize("order", [IN_STEP, BACKWARD], ids=["in step", "backward"])
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_ordered_is_no_race(name: str, order):
    body, blocks = RIGHT[name]
    run(kernel(body, 1, OUTSIDE), [np.zeros(64)], 64, blocks, order=order)
