from __future__ import annotations

import llvmlite.binding as llvm

from irad.frontend.numba.convention import NUMBA
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.passes.prepare.reference_pairs import pair_references
from tests.passes.units import COUNTING

MADE = "%m = call ptr @NRT_MemInfo_alloc_aligned(i64 %n, i32 32)"


def left(body: str) -> list[str]:
    """What still counts references in a function, in order: `+a` takes one to %a, `-a` drops one."""
    module = parse_module(f"define void @f(ptr %a, ptr %b, i64 %n, i1 %c) {{\n{body}\n}}\n{COUNTING}")
    assert NUMBA.references is not None
    pair_references(module, NUMBA.references)
    text = print_module(module)
    llvm.parse_assembly(text).verify()
    calls = (line.split("@NRT_")[1] for line in text.splitlines() if "call void @NRT_" in line)
    return [("+" if call.startswith("incref") else "-") + call.split("%")[1].rstrip(")") for call in calls]


def take(name: str) -> str:
    return f"  call void @NRT_incref(ptr %{name})\n"


def drop(name: str) -> str:
    return f"  call void @NRT_decref(ptr %{name})\n"


def test_arguments_are_held_by_the_caller():
    assert left(f"entry:\n{take('a')}{take('a')}{drop('a')}{take('b')}{drop('b')}{drop('a')}  ret void") == []


def test_in_loops():
    loop = (
        f"entry:\n  br label %loop\nloop:\n{take('a')}{drop('a')}  br i1 %c, label %loop, label %end\nend:\n  ret void"
    )
    assert left(loop) == []
    grows = (
        f"entry:\n  br label %loop\nloop:\n{take('a')}  br i1 %c, label %loop, label %end\nend:\n{drop('a')}  ret void"
    )
    assert left(grows) == ["+a", "-a"], "held more often each time"


def test_ways_that_raise_keep_a_reference():
    body = f"entry:\n{take('a')}  br i1 %c, label %raises, label %goes_on\ngoes_on:\n{drop('a')}  br label %end\n"
    assert left(f"{body}raises:\n  br label %end\nend:\n  ret void") == []


def test_what_is_dropped_before_it_is_taken_stays():
    assert left(f"entry:\n{drop('a')}{take('a')}  ret void") == ["-a", "+a"]


def test_what_is_counted_differently_on_two_ways_stays():
    body = f"entry:\n  br i1 %c, label %yes, label %end\nyes:\n{take('a')}  br label %end\nend:\n{take('a')}{drop('a')}"
    assert left(f"{body}  ret void") == ["+a", "+a", "-a"]


def test_of_new_memory_the_last_drop_stays():
    assert left(f"entry:\n  {MADE}\n{take('m')}{drop('m')}{drop('m')}  ret void") == ["-m"]
    assert left(f"entry:\n  {MADE}\n{take('m')}{drop('m')}  ret void") == [], "it leaks, as before"
    assert left(f"entry:\n  {MADE}\n{take('m')}{drop('m')}{drop('m')}{drop('m')}  ret void") == ["+m", "-m", "-m", "-m"]


def test_new_memory_in_a_loop():
    body = f"""
entry:
  br label %loop
loop:
  {MADE}
{take("m")}  br i1 %c, label %one, label %other
one:
{drop("m")}  br label %both
other:
{drop("m")}  br label %both
both:
{drop("m")}  br i1 %c, label %loop, label %end
end:
  ret void"""
    assert left(body) == ["-m"]


def test_memory_with_another_name_stays():
    kept = take("a") + drop("a")
    assert left(f"entry:\n{take('a')}  store ptr %a, ptr %b\n{drop('a')}  ret void") == ["+a", "-a"]
    assert left(f"entry:\n{take('a')}  call void @other(ptr %a)\n{drop('a')}  ret void") == ["+a", "-a"]
    chosen = f"entry:\n  %s = select i1 %c, ptr %a, ptr %b\n{kept}{drop('s')}  ret void"
    assert left(chosen) == ["+a", "-a", "-s"]
    phi = f"entry:\n  br label %next\nnext:\n  %p = phi ptr [ %a, %entry ]\n{kept}  ret void"
    assert left(phi) == ["+a", "-a"]


def test_fields_and_checks_do_not_count_as_names():
    body = f"""
entry:
  {MADE}
  %failed = icmp eq ptr %m, null
  %field = getelementptr i8, ptr %m, i64 24
  %d = load ptr, ptr %field
{take("m")}  store ptr %d, ptr %b
{drop("m")}{drop("m")}  ret void"""
    assert left(body) == ["-m"]


def test_null_is_left_alone():
    module = parse_module(f"define void @f() {{\n  call void @NRT_incref(ptr null)\n  ret void\n}}\n{COUNTING}")
    assert NUMBA.references is not None
    pair_references(module, NUMBA.references)
    assert "incref(ptr null)" in print_module(module)


def test_what_was_loaded_stays():
    assert left(f"entry:\n  %l = load ptr, ptr %a\n{take('l')}{drop('l')}  ret void") == ["+l", "-l"]
