from __future__ import annotations

from irad.ir.instructions import Call
from tests.passes.units import parsed

TEXT = """
declare double @exp(double)
define nonnull ptr @f(ptr noalias nocapture readonly %a, ptr nonnull align 8 %b) #0 {
entry:
  %x = load double, ptr %a, align 8, !tbaa !1, !alias.scope !4, !noundef !5
  %e = tail call noundef double @exp(double noundef %x) #1
  br label %end
dead:
  br label %end
end:
  %p = phi ptr [ %a, %entry ], [ %b, %dead ]
  ret ptr %p
}
attributes #0 = { noinline nounwind memory(argmem: read) }
attributes #1 = { nounwind memory(none) }
!1 = !{!2, !2, i64 0}
!2 = !{!"double", !3}
!3 = !{!"root"}
!4 = !{!6}
!5 = !{}
!6 = distinct !{!6, !7}
!7 = distinct !{!7}
"""


def test_promises_that_hold_for_the_primal_only_are_removed():
    _, f = parsed(TEXT)
    assert f.attributes == ("noinline",)
    assert f.result_attributes == ()
    assert [p.attributes for p in f.params] == [("noalias",), ()]
    load, call = f.blocks[0].instructions[:2]
    assert load.metadata == {}
    assert isinstance(call, Call)
    assert (call.tail, call.attributes, call.result_attributes, call.argument_attributes) == (None, (), (), ())


def test_what_is_cold_stays_so():
    _, f = parsed(TEXT.replace("{ noinline nounwind", "{ cold noinline nounwind optsize"))
    assert f.attributes == ("noinline", "cold", "optsize")


def test_unreachable_blocks_go_and_phis_follow():
    _, f = parsed(TEXT)
    assert [b.name for b in f.blocks] == ["entry", "end"]
    assert len(f.blocks[1].phis()[0].operands) == 1


def test_line_numbers_stay():
    text = """
    define double @f(double %x) !dbg !3 {
      %y = fadd double %x, 1.0, !dbg !4, !fpmath !5
      ret double %y
    }
    !llvm.module.flags = !{!0}
    !llvm.dbg.cu = !{!1}
    !0 = !{i32 2, !"Debug Info Version", i32 3}
    !1 = distinct !DICompileUnit(language: DW_LANG_C, file: !2)
    !2 = !DIFile(filename: "model.py", directory: "")
    !3 = distinct !DISubprogram(name: "f", file: !2, line: 1, type: !6, unit: !1, spFlags: DISPFlagDefinition)
    !4 = !DILocation(line: 2, scope: !3)
    !5 = !{float 2.5}
    !6 = !DISubroutineType(types: !{null})
    """
    _, f = parsed(text)
    assert list(f.blocks[0].instructions[0].metadata) == ["dbg"]


def test_the_absolute_value_of_a_root_becomes_a_sum():
    _, f = parsed("""
    declare double @llvm.sqrt.f64(double)
    declare double @llvm.fabs.f64(double)
    define double @f(double %x) {
      %r = call double @llvm.sqrt.f64(double %x)
      %a = call double @llvm.fabs.f64(double %r)
      %b = call double @llvm.fabs.f64(double %x)
      %s = fadd double %a, %b
      ret double %s
    }
    """)
    assert [getattr(i, "opcode", i.name) for i in f.instructions()][1:3] == ["fadd", "b"]


def test_what_decides_how_arguments_are_passed_stays_where_the_callee_does_not_say_it():
    text = """
    %passed.by.value = type { double, i32 }
    declare void @g(ptr byval(%passed.by.value) align 8, i8 signext)
    define void @f(ptr %p, ptr %s, i8 %c) {
      call void @g(ptr byval(%passed.by.value) align 8 %s, i8 noundef signext %c) "irad.elsewhere" nounwind
      %n = call zeroext i8 %p(ptr noundef byval(%passed.by.value) align 8 %s, i8 noundef signext %c) nounwind
      ret void
    }
    """
    _, f = parsed(text)
    direct, through = f.blocks[0].instructions[:2]
    assert isinstance(direct, Call)
    assert isinstance(through, Call)
    assert (direct.argument_attributes, direct.attributes) == ((), ('"irad.elsewhere"',))
    assert through.argument_attributes == (("byval(%passed.by.value)", "align 8"), ("signext",))
    assert (through.result_attributes, through.attributes) == (("zeroext",), ())
