"""The analyses take time in proportion to the number of objects, also where one table points to all of them."""

from __future__ import annotations

import cProfile
import pstats
import sys
from types import FrameType
from typing import Any

import pytest

from irad.ir.instructions import Load
from irad.passes import pipeline
from irad.passes.instrument import watch
from irad.passes.instrument.marks import MarkKind
from tests.passes.units import derivative, unit_of


def table_of(count: int) -> str:
    """A function that makes a number of arrays, keeps pointers to them in one table, and changes each through it."""
    body = [
        f"""
        %m{k} = call ptr @NRT_MemInfo_alloc_aligned(i64 16, i32 32)
        %at{k} = getelementptr i8, ptr %m{k}, i64 24
        %data{k} = load ptr, ptr %at{k}
        store double %x, ptr %data{k}
        %i{k} = add i64 %i, {k}
        %place{k} = getelementptr [{count} x ptr], ptr %table, i64 0, i64 %i{k}
        store ptr %data{k}, ptr %place{k}"""
        for k in range(count)
    ]
    body += [
        f"""
        %item{k} = load ptr, ptr %place{k}
        %v{k} = load double, ptr %item{k}
        %w{k} = fmul double %v{k}, %v{k}
        store double %w{k}, ptr %item{k}"""
        for k in range(count)
    ]
    return f"""
    declare ptr @NRT_MemInfo_alloc_aligned(i64, i32)
    define i32 @f(ptr noalias %out, double %x, i64 %i) {{
        %table = alloca [{count} x ptr]{"".join(body)}
        store double %w{count - 1}, ptr %out
        ret i32 0
    }}
    """


def calls_of_analyses(count: int) -> int:
    """Function calls, which say more than the time on a machine that others use."""
    profile = cProfile.Profile()
    profile.runcall(unit_of, table_of(count), "sac")
    statistics = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    return sum(calls for _, calls, *_ in statistics.values())


def test_twice_the_objects_take_about_twice_the_steps():
    unit = unit_of(table_of(20), "sac")
    items = [v for v in unit.function.instructions() if v.name == "item7"]
    assert len(unit.points_to.of(items[0])) == 20
    assert calls_of_analyses(240) < 2.6 * calls_of_analyses(120)


def chain_of_calls(count: int) -> str:
    """A function that calls a number of others in one long block, in which many values are watched."""
    callees = [
        f"""
        define internal i32 @callee{k}(ptr noalias %out, double %x) noinline {{
            %a = load double, ptr %out
            %y = fmul double %a, %x
            store double %y, ptr %out
            ret i32 0
        }}"""
        for k in range(count)
    ]
    body = [f"%status{k} = call i32 @callee{k}(ptr %out, double %x)" for k in range(count)]
    body += [f"%z{k} = fmul double %x, {k}.0" for k in range(count)]
    sums = [f"%s{k} = fadd double %s{k - 1}, %z{k}" for k in range(1, count)]
    lines = "\n".join([*body, "%s0 = fadd double %x, %z0", *sums])
    return f"""
    define i32 @f(ptr noalias %out, double %x) {{
        {lines}
        %before = load double, ptr %out
        %after = fadd double %before, %s{count - 1}
        store double %after, ptr %out
        ret i32 0
    }}
    {"".join(callees)}
    """


def steps_of_watching(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytecode instructions of the pass itself: searches in lists and generators are not function calls."""
    steps = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal steps
        if frame.f_code.co_filename != watch.__file__:
            return None
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return trace

    def traced(*args: Any) -> None:
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            watch.watch_pair(*args)
        finally:
            sys.settrace(before)

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "watch_pair", traced)
        made = derivative(chain_of_calls(count), "ss", watches=True)
    assert sum(mark.kind is MarkKind.CALL for mark in made.program.marks) == 2 * count
    assert sum(mark.kind is MarkKind.VALUE for mark in made.program.marks) >= 3 * count
    return steps


def test_twice_the_calls_and_values_take_about_twice_the_steps_to_watch(monkeypatch: pytest.MonkeyPatch):
    assert steps_of_watching(80, monkeypatch) < 2.2 * steps_of_watching(40, monkeypatch)


def neighbours(count: int) -> str:
    """A loop over one array that changes a number of elements by the next ones."""
    body = [
        f"""
        %j{k} = add i64 %i, {2 * k}
        %p{k} = getelementptr double, ptr %a, i64 %j{k}
        %q{k} = getelementptr i8, ptr %p{k}, i64 8
        %x{k} = load double, ptr %q{k}
        %y{k} = fmul double %x{k}, %x{k}
        store double %y{k}, ptr %p{k}"""
        for k in range(count)
    ]
    return f"""
    define i32 @f(ptr noalias %out, ptr %a, i64 %n) {{
    entry:
        br label %loop
    loop:
        %i = phi i64 [ 0, %entry ], [ %next, %loop ]{"".join(body)}
        %next = add i64 %i, 1
        %more = icmp slt i64 %next, %n
        br i1 %more, label %loop, label %end
    end:
        ret i32 0
    }}
    """


def test_elements_are_told_apart_in_time():
    def calls(count: int) -> int:
        profile = cProfile.Profile()
        unit = unit_of(neighbours(count), "scc")
        loads = [inst for inst in unit.function.instructions() if isinstance(inst, Load)]
        profile.runcall(lambda: [unit.effects.is_overwritten(load.operands[0], load) for load in loads])
        return sum(number for _, number, *_ in pstats.Stats(profile).stats.values())  # type: ignore[attr-defined]

    assert calls(160) < 2.6 * calls(80)
