"""Where marks stand in LLVM text: the mark that holds at an instruction is its line, on every way to it."""

from __future__ import annotations

import ctypes
import re

import llvmlite.binding as llvm
import pytest

from irad.backend.sampler import NO_LINE, OUTSIDE, with_marks

STORE = re.compile(r"store volatile i32 (-?\d+),")


def marked(body: str, functions: str = "") -> list[str]:
    """The body of `@f` with marks, each as its number; `!12` is a location in line 12."""
    text = f"declare void @out()\n{functions}\ndefine i32 @f(i32 %x, i1 %c) {{\n{body}\n}}\n"
    found = with_marks(text, lambda node: int(node[1:]) or None, 4096)
    inside = found[found.index("@f(") :].split("\n")[1:]
    return [match[1] if (match := STORE.search(line)) else line.strip() for line in inside[: inside.index("}")]]


def test_a_mark_where_the_line_changes():
    first = "  %a = add i32 %x, 1, !dbg !1\n  %b = add i32 %a, 1, !dbg !1\n"
    assert marked(f"{first}  %c1 = add i32 %b, 1, !dbg !2\n  ret i32 %c1, !dbg !3") == [
        "1",
        "%a = add i32 %x, 1, !dbg !1",
        "%b = add i32 %a, 1, !dbg !1",
        "2",
        "%c1 = add i32 %b, 1, !dbg !2",
        "ret i32 %c1, !dbg !3",
    ]


def test_what_has_no_line_belongs_to_the_one_before():
    body = "  %a = add i32 %x, 1, !dbg !1\n  %b = add i32 %a, 1\n  %d = add i32 %b, 1, !dbg !0\n  ret i32 %d"
    assert marked(body)[1:] == [
        "%a = add i32 %x, 1, !dbg !1", "%b = add i32 %a, 1", "%d = add i32 %b, 1, !dbg !0", "ret i32 %d"]  # fmt: skip


def test_where_ways_meet_the_line_is_marked_again_unless_all_have_left_it():
    diamond = """entry:
  %a = add i32 %x, 1, !dbg !1
  br i1 %c, label %left, label %"the right"

left:
  %l = add i32 %x, 2, !dbg !{left}
  br label %join

"the right":
  %r = add i32 %x, 3, !dbg !1
  br label %join

join:
  %p = phi i32 [ %l, %left ], [ %r, %"the right" ], !dbg !1
  %q = add i32 %p, 1, !dbg !1
  ret i32 %q"""
    assert [line for line in marked(diamond.format(left=1)) if line.lstrip("-").isdecimal()] == ["1"]
    different = marked(diamond.format(left=2))
    assert [line for line in different if line.isdecimal()] == ["1", "2", "1"]
    assert different[different.index("%q = add i32 %p, 1, !dbg !1") - 1] == "1"


def test_a_loop_of_one_line_has_a_mark_before_it_only_if_nothing_else_runs():
    loop = """entry:
  %a = add i32 %x, 1, !dbg !{before}
  br label %loop

loop:
  %i = phi i32 [ %a, %entry ], [ %n, %loop ]
  %n = add i32 %i, 1, !dbg !2
  %t = icmp eq i32 %n, 9, !dbg !2
  br i1 %t, label %end, label %loop

end:
  ret i32 %n"""
    assert [line for line in marked(loop.format(before=2)) if line.isdecimal()] == ["2"]
    assert [line for line in marked(loop.format(before=1)) if line.isdecimal()] == ["1", "2"]


def test_behind_a_call_the_mark_of_the_caller_comes_back():
    other = "define void @other() {\n  call void @out(), !dbg !7\n  ret void\n}\ndefine void @plain() {\n  ret void\n}"
    body = "  call void @{}(), !dbg !1\n  %a = add i32 %x, 1\n  ret i32 %a"
    for callee in ("other", "out"):
        assert marked(body.format(callee), other)[:3] == ["1", f"call void @{callee}(), !dbg !1", "1"]
    assert marked(body.format("plain"), other)[:3] == ["1", "call void @plain(), !dbg !1", "%a = add i32 %x, 1"]


def test_nothing_stands_between_a_musttail_call_and_its_return():
    body = "  %a = musttail call i32 @f(i32 %x, i1 %c), !dbg !1\n  ret i32 %a"
    assert marked(body) == ["1", "%a = musttail call i32 @f(i32 %x, i1 %c), !dbg !1", "ret i32 %a"]


@pytest.mark.parametrize(("name", "mark"), [("outer", NO_LINE), ("cpython.outer", OUTSIDE), ("cfunc.outer", OUTSIDE)])
def test_functions_without_lines_that_call_functions_with_lines(name: str, mark: int):
    text = f"""define void @f() {{
  call void @g(), !dbg !1
  ret void
}}
define void @g() {{
  ret void
}}
define void @{name}() {{
  %a = alloca i32, align 4
  store i32 0, ptr %a, align 4
  call void @f()
  call void @g()
  ret void
}}
"""
    found = with_marks(text, lambda node: int(node[1:]), 4096)
    lines = [match[1] if (match := STORE.search(line)) else line.strip() for line in found.split("\n")]
    own = lines[lines.index(f"define void @{name}() {{") + 1 :]
    assert own[:7] == ["%a = alloca i32, align 4", str(mark), "store i32 0, ptr %a, align 4", "call void @f()",
                       str(mark), "call void @g()", "ret void"]  # fmt: skip
    assert lines[lines.index("define void @g() {") + 1] == "ret void"


def test_marked_code_runs_and_leaves_the_mark_of_the_line_it_ended_in():
    word = ctypes.c_int32(OUTSIDE)
    text = """define i32 @f(i32 %x) {
entry:
  %a = icmp sgt i32 %x, 3, !dbg !1
  switch i32 %x, label %other [
    i32 1, label %one
    i32 2, label %one
  ]

one:
  %b = mul i32 %x, 10, !dbg !20
  br label %end

other:
  %c = mul i32 %x, 100, !dbg !30
  br label %end

end:
  %p = phi i32 [ %b, %one ], [ %c, %other ]
  ret i32 %p
}
!1 = !DILocation(line: 1, scope: !2)
!2 = distinct !DISubprogram(name: "f")
!20 = !DILocation(line: 20, scope: !2)
!30 = !DILocation(line: 30, scope: !2)
"""
    found = with_marks(text, lambda node: int(node[1:]), ctypes.addressof(word))
    module = llvm.parse_assembly(re.sub(r", !dbg !\d+", "", found))
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(engine.get_function_address("f"))
    assert (function(2), word.value) == (20, 20)
    assert (function(5), word.value) == (500, 30)
