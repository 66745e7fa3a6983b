source_filename = "debug"

define double @f(double %x, ptr %p) !dbg !4 {
entry:
    #dbg_value(double %x, !10, !DIExpression(), !12)
    #dbg_value(!DIArgList(double %x, ptr %p), !10, !DIExpression(DW_OP_LLVM_arg, 0, DW_OP_LLVM_arg, 1, DW_OP_plus), !12)
  %y = fmul double %x, %x, !dbg !13
    #dbg_declare(ptr %p, !11, !DIExpression(DW_OP_plus_uconst, 8), !12)
    #dbg_label(!20, !12)
    #dbg_assign(double %y, !10, !DIExpression(), !21, ptr %p, !DIExpression(), !12)
  store double %y, ptr %p, align 8, !dbg !14, !DIAssignID !21
  br label %exit, !dbg !15

exit:
    #dbg_value(ptr getelementptr (i8, ptr @g, i64 4), !11, !DIExpression(), !12)
    #dbg_value(i64 0, !11, !DIExpression(DW_OP_LLVM_fragment, 0, 32), !12)
    #dbg_value(!{}, !11, !DIExpression(), !12)
    #dbg_value(double poison, !10, !DIExpression(), !12)
  ret double %y, !dbg !18
}

@g = global [8 x i8] zeroinitializer

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}

!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !1, producer: "hand", isOptimized: false, runtimeVersion: 0, emissionKind: FullDebug)
!1 = !DIFile(filename: "model (1), \22final\22.py", directory: "/home/user", checksumkind: CSK_MD5, checksum: "00000000000000000000000000000000")
!2 = !{i32 2, !"Dwarf Version", i32 4}
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = distinct !DISubprogram(name: "f", linkageName: "_Z1f", scope: !1, file: !1, line: 10, type: !5, scopeLine: 10, spFlags: DISPFlagDefinition, unit: !0, retainedNodes: !9)
!5 = !DISubroutineType(types: !6)
!6 = !{!7, !7}
!7 = !DIBasicType(name: "double", size: 64, encoding: DW_ATE_float)
!8 = distinct !DISubprogram(name: "inner", scope: !1, file: !17, line: 30, type: !5, spFlags: DISPFlagDefinition, unit: !0)
!9 = !{!10, !11, !20}
!10 = !DILocalVariable(name: "x", arg: 1, scope: !4, file: !1, line: 10, type: !7)
!11 = !DILocalVariable(name: "p", arg: 2, scope: !4, file: !1, line: 10, type: !7)
!12 = !DILocation(line: 11, column: 1, scope: !4)
!13 = !DILocation(line: 31, column: 5, scope: !8, inlinedAt: !14)
!14 = distinct !DILocation(line: 12, column: 3, scope: !16)
!15 = !DILocation(line: 0, scope: !19)
!16 = distinct !DILexicalBlock(scope: !4, file: !1, line: 12, column: 1)
!17 = !DIFile(filename: "/abs/lib.py", directory: "/home/user")
!18 = !DILocation(line: 33, column: 5, scope: !8, inlinedAt: !22)
!19 = !DILexicalBlockFile(scope: !16, file: !1, discriminator: 0)
!20 = !DILabel(scope: !4, name: "here", file: !1, line: 11)
!21 = distinct !DIAssignID()
!22 = distinct !DILocation(line: 40, column: 2, scope: !23, inlinedAt: !14)
!23 = distinct !DISubprogram(name: "middle", scope: !1, file: !1, line: 39, type: !5, spFlags: DISPFlagDefinition, unit: !0)
