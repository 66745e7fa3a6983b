from __future__ import annotations

from irad.frontend.numba.convention import NUMBA
from irad.ir.instructions import Call
from irad.passes.augmented.deferred_frees import keepable
from irad.passes.memory.mod_ref import ModRef
from irad.passes.mode import AUGMENTED
from tests.passes.units import DOUBLES, generated, parsed, points_to_of, registry

DECLARE = """
declare ptr @NRT_MemInfo_alloc_aligned(i64, i32)
declare ptr @NRT_MemInfo_new_varsize(i64)
declare ptr @NRT_MemInfo_varsize_realloc(ptr, i64)
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @NRT_decref(ptr)
declare double @exp(double)
"""


def kept(body: str, *, results_change: bool = False, result: str = "i32 0") -> set[str]:
    type_ = result.split()[0]
    text = (
        f"{DECLARE}\ndefine {type_} @f(ptr noalias %r, i64 %n) {{\n{body}\n  ret {result}\n}}\n"
        + """
    define void @g(ptr %p) {
      ret void
    }"""
    )
    function, points_to = points_to_of(text)
    mask = keepable(function, ModRef(points_to, registry()), NUMBA, results_change=results_change)
    return {str(item) for item in points_to.members(mask)}


ALLOCATE = "%m = call ptr @NRT_MemInfo_alloc_aligned(i64 8, i32 32)\n"
BOTH = {"header m", "allocation m"}


def test_a_temporary_that_drops_its_last_reference():
    assert kept(ALLOCATE + "call void @NRT_decref(ptr %m)") == BOTH


def test_a_temporary_that_is_never_freed():
    assert kept(ALLOCATE) == BOTH


def test_other_ways_to_free():
    assert kept("%m = call ptr @malloc(i64 8)\n call void @free(ptr %m)") == set()
    assert kept("%m = call ptr @malloc(i64 8)") == {"allocation m"}


def test_a_list_that_grows_moves():
    text = """
    %m = call ptr @NRT_MemInfo_new_varsize(i64 64)
    %d = call ptr @NRT_MemInfo_varsize_realloc(ptr %m, i64 128)
    """
    assert kept(text) == set()


def test_what_a_callee_gets_is_not_kept():
    assert kept(ALLOCATE + "call void @g(ptr %m)") == set()
    assert kept(ALLOCATE + "%d = alloca ptr\n store ptr %m, ptr %d\n call void @g(ptr %d)") == set()


def test_a_result_is_kept_unless_the_caller_may_change_it():
    assert kept(ALLOCATE + "store ptr %m, ptr %r") == BOTH
    assert kept(ALLOCATE + "store ptr %m, ptr %r", results_change=True) == set()
    assert kept(ALLOCATE, result="ptr %m") == BOTH
    assert kept(ALLOCATE, result="ptr %m", results_change=True) == set()
    assert kept(ALLOCATE, results_change=True) == BOTH


TEMPORARY = (
    DECLARE
    + """
define i32 @f(ptr noalias %r, ptr %a, i64 %n) {
entry:
  %m = call ptr @NRT_MemInfo_alloc_aligned(i64 800, i32 32)
  %at = getelementptr i8, ptr %m, i64 24
  %d = load ptr, ptr %at
  %e.m = call ptr @NRT_MemInfo_alloc_aligned(i64 800, i32 32)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr double, ptr %a, i64 %i
  %q = getelementptr double, ptr %d, i64 %i
  %x = load double, ptr %p
  %e = call double @exp(double %x)
  store double %e, ptr %q
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %between
between:
  br label %second
second:
  %j = phi i64 [ 0, %between ], [ %j.next, %second ]
  %s = phi double [ 0.0, %between ], [ %t, %second ]
  %u = getelementptr double, ptr %d, i64 %j
  %y = load double, ptr %u
  %yy = fmul double %y, %y
  %t = fadd double %s, %yy
  %j.next = add i64 %j, 1
  %j.more = icmp slt i64 %j.next, %n
  br i1 %j.more, label %second, label %end
end:
  %out = phi double [ %t, %second ]
  store double %out, ptr %r
  call void @NRT_decref(ptr %e.m)
  call void @NRT_decref(ptr %m)
  ret i32 0
}
"""
)


def calls_of(pair) -> list[tuple[str, str | None]]:
    found = []
    for inst in pair[AUGMENTED].instructions():
        if isinstance(inst, Call) and inst.callee.name in ("NRT_decref", "irad.arena_defer"):
            found.append((inst.callee.name, inst.operands[-2].name))
    return found


def test_only_what_is_read_again_is_deferred():
    (made,) = generated(TEMPORARY, "ssc")
    names = [name for name, _ in calls_of(made.pair)]
    assert sorted(names) == ["NRT_decref", "irad.arena_defer"]


def test_the_oracle_defers_nothing():
    (made,) = generated(TEMPORARY, "ssc", plan="save_all")
    assert [name for name, _ in calls_of(made.pair)] == ["NRT_decref", "NRT_decref"]


def test_the_primal_is_not_touched():
    _, function = parsed(TEMPORARY)
    before = [type(i).__name__ for i in function.instructions()]
    points_to_of(TEMPORARY, [DOUBLES, DOUBLES, None])
    assert before == [type(i).__name__ for i in function.instructions()]
