"""The analyses take time in proportion to the number of objects, also where one table leads to all of them."""

from __future__ import annotations

import cProfile
import pstats

from tests.passes.units import unit_of


def table_of(count: int) -> str:
    """A function that makes so many arrays, keeps pointers to them in one table, and changes each through it."""
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
