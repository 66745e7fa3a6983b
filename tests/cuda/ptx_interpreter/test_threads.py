"""Branches, calls, barriers and what warps do together."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cuda.ptx_interpreter.faults import BarrierFault, PtxFault, PtxSyntaxError, UnknownInstructionError
from tests.cuda.ptx_interpreter.machine import BACKWARD, IN_STEP, Order
from tests.cuda.ptx_interpreter.programs import HEAD, kernel, run

EACH = "mov.u32 %r0, %tid.x; mad.wide.u32 %rd0, %r0, 4, %p0;"
STORE = "st.global.b32 [%rd0], %r1;"
ORDERS = (IN_STEP, BACKWARD, Order(1), Order(5, backward=True))
each_order = pytest.mark.parametrize("order", ORDERS, ids=["in step", "backward", "one by one", "fives"])


def result(body: str, threads: int = 32, order: Order = IN_STEP, outside: str = "") -> list[int]:
    """What each thread leaves in `%r1`."""
    return run(kernel(EACH + body + STORE, 1, outside), [np.zeros(threads, np.int32)], threads, order=order)[0].tolist()


@each_order
def test_loops_and_branches(order: Order):
    body = """
      mov.b32 %r1, 0; mov.b32 %r2, 0;
    $again:
      setp.ge.s32 %q0, %r2, %r0; @%q0 bra $done;
      and.b32 %r3, %r2, 1; setp.eq.s32 %q1, %r3, 0; @%q1 bra $even;
      add.s32 %r1, %r1, 100; bra.uni $next;
    $even:
      add.s32 %r1, %r1, 1;
    $next:
      add.s32 %r2, %r2, 1; bra $again;
    $done:
    """
    assert result(body, order=order) == [(n + 1) // 2 + n // 2 * 100 for n in range(32)]


@each_order
def test_branches_by_an_index(order: Order):
    body = """
      rem.u32 %r2, %r0, 3;
    $table: .branchtargets $a, $b, $c;
      brx.idx %r2, $table;
    $a: mov.b32 %r1, 10; bra $end;
    $b: mov.b32 %r1, 20; bra $end;
    $c: mov.b32 %r1, 30;
    $end:
    """
    assert result(body, 9, order) == [10, 20, 30] * 3
    with pytest.raises(PtxFault, match="3 of 3 targets"):
        result(body.replace("rem.u32 %r2, %r0, 3", "rem.u32 %r2, %r0, 4"), 9, order)


FACTORIAL = """
.func (.param .b32 out) factorial(.param .b32 n)
{
  .local .align 4 .b8 kept[4];
  .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<2>;
  ld.param.b32 %r1, [n];
  mov.b64 %rd1, kept; st.local.b32 [%rd1], %r1;
  setp.le.s32 %p1, %r1, 1; mov.b32 %r2, 1; @%p1 bra $L;
  add.s32 %r3, %r1, -1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r3; call.uni (b), factorial, (a); ld.param.b32 %r4, [b]; }
  ld.local.b32 %r5, [%rd1]; mul.lo.s32 %r2, %r4, %r5;
$L:
  st.param.b32 [out], %r2; ret;
}
"""


@each_order
def test_a_function_that_calls_itself_keeps_what_it_holds(order: Order):
    body = "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; call (b), factorial, (a); ld.param.b32 %r1, [b]; }"
    assert result(body, 10, order, FACTORIAL)[:8] == [1, 1, 2, 6, 24, 120, 720, 5040]


def test_a_frame_is_gone_when_its_function_has_returned():
    function = """.func (.param .b64 out) leak() { .local .align 4 .b8 kept[4]; .reg .b64 %rd<2>;
      mov.b64 %rd1, kept; st.param.b64 [out], %rd1; ret; }"""
    body = "{ .param .b64 b; call (b), leak, (); ld.param.b64 %rd1, [b]; } st.local.b32 [%rd1], 1;"
    with pytest.raises(PtxFault, match="leads to no variable"):
        result(body, 1, outside=function)


def test_what_does_not_end_or_is_not_known(monkeypatch):
    monkeypatch.setattr("tests.cuda.ptx_interpreter.machine._STEPS", 1000)
    with pytest.raises(PtxFault, match="a loop does not end"):
        result("$L: bra $L;", 1)
    with pytest.raises(PtxFault, match="runs into the trap"):
        result("trap;", 1)
    for line in ("tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [p0, {%r1}];", "wmma.load;"):
        with pytest.raises((UnknownInstructionError, PtxSyntaxError)):
            result(line, 1)
    for line in (
        "add.rna.f64 %d1, %d1, %d1;",
        "dp4a.u32.u32 %r1, %r1, %r1, %r1;",
        "mov.u32 %r1, %clock;",
        "add.s32 %r1, %r1;",
    ):
        with pytest.raises(UnknownInstructionError):
            result(line, 1)
    with pytest.raises(PtxSyntaxError):
        run(HEAD + ".visible .entry k() { add.s32 }", [])


# --- barriers ---------------------------------------------------------------------------------------------------------


@each_order
def test_barriers_of_blocks(order: Order):
    outside = ".shared .align 4 .b8 kept[256];"
    body = """
      mov.b64 %rd1, kept; mad.wide.u32 %rd2, %r0, 4, %rd1; st.shared.b32 [%rd2], %r0;
      bar.sync 0;
      sub.s32 %r2, 63, %r0; mad.wide.u32 %rd2, %r2, 4, %rd1; ld.shared.b32 %r1, [%rd2];
      setp.gt.s32 %q0, %r0, 9; bar.red.popc.u32 %r3, 0, %q0; mad.lo.s32 %r1, %r3, 100, %r1;
      bar.red.and.pred %q1, 0, %q0; @%q1 add.s32 %r1, %r1, 100000;
      bar.red.or.pred %q1, 0, %q0; @%q1 add.s32 %r1, %r1, 10000;
    """
    assert result(body, 64, order, outside) == [63 - n + 5400 + 10000 for n in range(64)]


@each_order
def test_threads_that_have_returned_are_not_waited_for(order: Order):
    body = "setp.gt.s32 %q0, %r0, 20; @%q0 ret; bar.sync 0; mov.b32 %r1, 1;"
    assert result(body, 40, order) == [1] * 21 + [0] * 19


@each_order
@pytest.mark.parametrize(
    "body",
    [
        "setp.gt.s32 %q0, %r0, 20; @%q0 bar.sync 0; @!%q0 bar.sync 0;",
        "setp.gt.s32 %q0, %r0, 20; @%q0 bar.sync 0; @!%q0 bar.warp.sync -1;",
        "setp.eq.s32 %q0, %r0, 0; @%q0 bar.warp.sync -1; @!%q0 bar.sync 0;",
        "setp.eq.s32 %q0, %r0, 0; @%q0 bar.warp.sync 3; @!%q0 bar.warp.sync -1;",
        "setp.eq.s32 %q0, %r0, 0; @%q0 shfl.sync.idx.b32 %r1, %r0, 0, 31, -1; @!%q0 vote.sync.ballot.b32 %r1, %q0, -1;",
        "shfl.sync.idx.b32 %r1, %r0, 0, 31, 1;",
    ],
)
def test_barriers_that_diverge(body: str, order: Order):
    with pytest.raises(BarrierFault):
        result(body, 32, order)


@each_order
def test_a_barrier_that_may_diverge(order: Order):
    body = """
      setp.gt.s32 %q0, %r0, 20; @%q0 bra $other;
      setp.lt.s32 %q1, %r0, 100; barrier.cta.red.and.pred %q2, 0, %q1; bra $end;
    $other:
      setp.lt.s32 %q1, %r0, 30; barrier.cta.red.and.pred %q2, 0, %q1;
    $end: selp.b32 %r1, 1, 2, %q2;
    """
    assert result(body, 32, order) == [2] * 32
    assert result(body, 30, order) == [1] * 30


# --- warps ------------------------------------------------------------------------------------------------------------


def reference(mode: str, lane: int, by: int, width: int = 32) -> int:
    """CUDA's `__shfl_sync` and its like: the lane that is read."""
    start = lane // width * width
    match mode:
        case "idx":
            return start + by % width
        case "up":
            return lane - by if lane - by >= start else lane
        case "down":
            return lane + by if lane + by < start + width else lane
    return lane ^ by if (lane ^ by) < start + width else lane


@each_order
@pytest.mark.parametrize("width", [32, 8])
@pytest.mark.parametrize("mode", ["idx", "up", "down", "bfly"])
def test_shuffles(mode: str, width: int, order: Order):
    clamp = (32 - width) << 8 | (0 if mode == "up" else 31)
    for by in (1, 3, 16, 31):
        body = f"mul.lo.s32 %r2, %r0, 10; shfl.sync.{mode}.b32 %r1|%q0, %r2, {by}, {clamp}, -1;"
        wanted = [10 * (reference(mode, n % 32, by, width) + n // 32 * 32) for n in range(64)]
        assert result(body, 64, order) == wanted


@each_order
def test_some_lanes_of_a_warp(order: Order):
    body = """
      mov.b32 %r1, -7; and.b32 %r2, %r0, 1; setp.eq.s32 %q0, %r2, 1; @!%q0 bra $end;
      shfl.sync.bfly.b32 %r1, %r0, 2, 31, 0xAAAAAAAA;
      bar.warp.sync 0xAAAAAAAA;
    $end:
    """
    assert result(body, 32, order) == [-7 if n % 2 == 0 else n ^ 2 for n in range(32)]


def test_what_lanes_hold_that_take_no_part_is_not_known():
    body = "setp.lt.s32 %q0, %r0, 16; @!%q0 ret; shfl.sync.down.b32 %r1, %r0, 8, 31, 0xFFFF;"
    left, right = result(body, 32, IN_STEP), result(body, 32, BACKWARD)
    assert left[:8] == right[:8] == list(range(8, 16))
    assert all(a != b for a, b in zip(left[8:16], right[8:16], strict=True))


@each_order
def test_votes_matches_and_reductions(order: Order):
    ballot = "setp.gt.s32 %q0, %r0, 9; vote.sync.ballot.b32 %r1, %q0, -1;"
    assert result(ballot, 32, order) == [np.int32(np.uint32(0xFFFFFC00))] * 32
    for kind, wanted in (("all", 0), ("any", 1), ("uni", 0)):
        body = f"setp.gt.s32 %q0, %r0, 9; vote.sync.{kind}.pred %q1, %q0, -1; selp.b32 %r1, 1, 0, %q1;"
        assert result(body, 32, order) == [wanted] * 32
    body = "setp.gt.s32 %q0, %r0, 99; vote.sync.uni.pred %q1, %q0, -1; selp.b32 %r1, 1, 0, %q1;"
    assert result(body, 32, order) == [1] * 32
    body = "rem.u32 %r2, %r0, 3; match.any.sync.b32 %r1, %r2, -1;"
    assert result(body, 6, order) == [0b001001, 0b010010, 0b100100] * 2
    for kind, wanted in (("add.s32", 28), ("max.u32", 7), ("or.b32", 7), ("xor.b32", 0)):
        assert result(f"redux.sync.{kind} %r1, %r0, 0xFF;", 8, order) == [wanted] * 8


@each_order
def test_active_masks_have_the_thread_itself(order: Order):
    body = "activemask.b32 %r1; shr.u32 %r2, %r1, %r0; and.b32 %r2, %r2, 1; setp.eq.s32 %q0, %r2, 1; @!%q0 trap;"
    found = result(body, 32, order)
    if order is IN_STEP:
        assert found == [-1] * 32
    if order.together == 1:
        assert found == [np.int32(np.uint32(1 << n)) for n in range(32)]


def test_special_registers():
    names = ("%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x", "%laneid", "%lanemask_lt", "%warpid")
    moves = "".join(
        f"mov.u32 %r{number + 1}, {name}; st.global.b32 [%rd1+{4 * number}], %r{number + 1};"
        for number, name in enumerate(names)
    )
    body = (
        "mov.u32 %r9, %ctaid.x; mov.u32 %r10, %tid.x; mad.lo.s32 %r9, %r9, 40, %r10; mad.wide.u32 %rd1, %r9, 28, %p0;"
        + moves
    )
    found = run(kernel(body), [np.zeros((80, 7), np.uint32)], 40, 2)[0]
    assert found[75].tolist() == [35, 40, 1, 2, 3, 7, 1]
