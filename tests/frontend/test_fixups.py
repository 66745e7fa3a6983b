"""Record copies become memory copies that LLVM accepts and that mean the same."""

from __future__ import annotations

import llvmlite.binding as llvm

from irad.frontend.numba.fixups import repair

SWAP = """
define void @swap(ptr %a, ptr %"b.1") {
entry:
  %".5" = load [16 x i8], ptr %a, !dbg !3
  %x = load [16 x i8], ptr %"b.1"
  store [16 x i8] %x, ptr %a
  store [16 x i8] %".5", ptr %"b.1", align 1
  ret void
}
!llvm.module.flags = !{!0}
!llvm.dbg.cu = !{!1}
!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !2, emissionKind: FullDebug)
!2 = !DIFile(filename: "f", directory: "d")
!3 = !DILocation(line: 7, column: 1, scope: !4)
!4 = distinct !DISubprogram(name: "swap", file: !2, line: 1, type: !5, unit: !1, spFlags: DISPFlagDefinition)
!5 = !DISubroutineType(types: !6)
!6 = !{null}
"""


def test_record_copies_go_through_a_slot() -> None:
    text = repair(SWAP.replace('%"b.1") {', '%"b.1") !dbg !4 {'))
    llvm.parse_assembly(text).verify()
    assert "load [16 x i8]" not in text
    assert "store [16 x i8]" not in text
    body = text[text.index("entry:") : text.index("ret void")].splitlines()
    assert sum("alloca [16 x i8]" in line for line in body[1:3]) == 2
    copies = [line.split("(ptr ")[1].split(", i64")[0] for line in body if "memcpy" in line]
    # read both before either is written: the source of the second copy is overwritten in between
    assert copies == ['%".5.copy", ptr %a', '%"x.copy", ptr %"b.1"', '%a, ptr %"x.copy"', '%"b.1", ptr %".5.copy"']
    assert text.count("declare void @llvm.memcpy") == 1
    assert "i1 false), !dbg !3" in text


def test_other_text_stays_as_it_is() -> None:
    text = "define i64 @f(i64 %x) {\nentry:\n  ret i64 %x\n}\n"
    assert repair(text) is text


def test_values_that_are_not_only_stored_stay() -> None:
    text = """
define [4 x i8] @f(ptr %a, ptr %b) {
entry:
  %v = load [4 x i8], ptr %a
  store [4 x i8] %v, ptr %b
  ret [4 x i8] %v
}
"""
    assert repair(text) == text


def test_sums_of_addresses_move_pointers() -> None:
    text = """
define double @f(ptr %a, i64 %".2") {
entry:
  %".4" = ptrtoint double* %a to i64
  %".5" = add i64 %".4", %".2"
  %".6" = inttoptr i64 %".5" to double*
  %x = load double, double* %".6"
  %".8" = ptrtoint i8* %".6" to i64 , !dbg !7
  %".9" = add i64 %".8", -16, !dbg !7
  %".10" = inttoptr i64 %".9" to double* , !dbg !7
  %y = load double, ptr %".10"
  %z = fadd double %x, %y
  ret double %z
}
"""
    repaired = repair(text)
    assert "inttoptr" not in repaired
    assert '  %".6" = getelementptr i8, ptr %a, i64 %".2"\n' in repaired
    assert '  %".10" = getelementptr i8, ptr %".6", i64 -16, !dbg !7\n' in repaired
    module = llvm.parse_assembly(repaired.replace(", !dbg !7", "").replace("double*", "ptr").replace("i8*", "ptr"))
    module.verify()


def test_addresses_that_are_not_sums_of_this_form_stay() -> None:
    text = """
define ptr @f(ptr %a, ptr %b) {
entry:
  %i = ptrtoint ptr %a to i64
  %j = ptrtoint ptr %b to i64
  %sum = add i64 %i, %j
  %p = inttoptr i64 %sum to ptr
  ret ptr %p
}
"""
    assert repair(text) == text


def test_metadata_that_names_functions_goes() -> None:
    text = """
define void @f() {
entry:
  ret void
}
!numba_args_may_always_need_nrt = !{ !0 }
!other = !{ !1 }
!0 = !{ ptr @f }
!1 = !{ i32 7 }
"""
    module = str(llvm.parse_assembly(repair(text)))
    assert "ptr @f" not in module
    assert "!other" in module
