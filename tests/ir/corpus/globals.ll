source_filename = "odd \22name\22\09.py"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

module asm ".globl \22hidden\22"
module asm "\09nop"
module asm ""

%0 = type { i32, %1 }
%1 = type <{ i8, ptr }>
%opaque = type opaque
%recursive = type { ptr, [2 x %inner] }
%inner = type { i64 }
%"quoted type" = type { double }
%empty = type {}
%target = type { target("spirv.Image", void, 1, 0) }

$any = comdat any
$exact = comdat exactmatch
$largest = comdat largest
$none = comdat nodeduplicate
$same = comdat samesize
$"odd name" = comdat any

@private = private global i32 0
@internal = internal constant i32 1
@available = available_externally global i32 0
@linkonce = linkonce global i32 0
@weak = weak global i32 0
@common = common global i32 0
@appending = appending global [1 x i32] [i32 3]
@extern_weak = extern_weak global i32
@linkonce_odr = linkonce_odr global i32 0
@weak_odr = weak_odr constant i32 0
@external = external global %opaque
@external_constant = external dso_local local_unnamed_addr constant [0 x i8]
@hidden = hidden global i32 0
@protected = protected global i32 0
@dso_local = dso_local global i32 0
@preemptable = dso_preemptable global i32 0
@imported = external dllimport global i32
@exported = dllexport global i32 0
@tls = thread_local global i32 0
@tls_model = thread_local(initialexec) global i32 0
@tls_local = internal thread_local(localexec) unnamed_addr global i32 0
@unnamed = unnamed_addr constant i32 0
@local_unnamed = local_unnamed_addr global i32 0
@space = addrspace(3) global i32 0, align 4
@initialized = externally_initialized global i32 0
@everything = weak_odr dso_local hidden thread_local(localdynamic) local_unnamed_addr addrspace(1) externally_initialized global i32 0, section "a,b \22c\22", comdat($any), align 64, !note !0, !dbg !1
@sectioned = global i32 0, section ".data", align 4
@any = linkonce_odr global i32 0, comdat
@in_comdat = linkonce_odr global i32 0, comdat($exact)
@"in odd comdat" = global i32 0, comdat($"odd name")
@partitioned = global i32 0, partition "part"
@large_code = global i32 0, code_model "large"
@sanitized = global i32 0, no_sanitize_address, no_sanitize_hwaddress, sanitize_memtag
@attributed = global i32 0 #2
@aligned_attributed = global i32 0, align 8 #2
@0 = private constant %0 { i32 1, %1 <{ i8 2, ptr @1 }> }
@1 = global %recursive zeroinitializer
@"quoted name" = global %"quoted type" { double 1.000000e+00 }
@"\01escaped\7F\FF\5C" = global i32 0
@"5" = global i32 0
@dollar$name = global i32 0
@-dash.dot_ = global %empty zeroinitializer
@"h\c3\a4" = external global i32

@alias = alias i32, ptr @hidden
@alias_all = weak_odr dso_local hidden thread_local(initialexec) unnamed_addr alias i32, ptr @tls_model, partition "part"
@alias_gep = internal alias i64, getelementptr inbounds (i8, ptr @everything_plain, i64 8)
@alias_function = alias void (i32, ...), ptr @variadic
@2 = alias i32, ptr @hidden
@ifunc = ifunc i32 (i32), ptr @resolver
@ifunc_all = internal ifunc void (), ptr @resolver, partition "part"
@everything_plain = global [4 x i32] zeroinitializer

define void @variadic(i32 %x, ...) {
  ret void
}

define internal ptr @resolver() {
  ret ptr null
}

define weak_odr dso_local hidden fastcc noalias nonnull align 8 ptr @full(ptr noundef %p) unnamed_addr #0 section ".text.hot" partition "part" comdat($largest) align 32 gc "statepoint-example" prefix i32 123 prologue i8 1 personality ptr @resolver !dbg !3 !note !0 {
  ret ptr %p
}

define linkonce_odr void @same() local_unnamed_addr comdat {
  ret void
}

define void @none() alwaysinline nounwind "a"="b" "c" memory(argmem: readwrite, inaccessiblemem: read) comdat($none) align 16 {
  ret void
}

define dllexport x86_stdcallcc void @exported_function() {
  ret void
}

define void @3() {
  ret void
}

define void @"quoted function"() {
  call void @3()
  ret void
}

declare !note !0 extern_weak void @declared(i32 inreg, ptr noalias readonly captures(none), ...) #1

declare dllimport void @imported_function()

declare void @in_space() addrspace(4)

declare target("aarch64.svcount") @svcount(target("aarch64.svcount"))

attributes #0 = { mustprogress nofree norecurse nosync nounwind willreturn memory(none) uwtable "frame-pointer"="all" "no-builtins" }
attributes #1 = { cold noreturn alignstack=16 vscale_range(1,16) memory(argmem: read) allockind("alloc,zeroed") "alloc-family"="malloc" }
attributes #2 = { "bss-section"="x" }

!note.list = !{!0, !0}
!empty.list = !{}
!odd\20name = !{!0}
!llvm.dbg.cu = !{!4}
!llvm.module.flags = !{!5}

!0 = !{i32 1, ptr @hidden, !"text \22quoted\22", null, i64 ptrtoint (ptr @weak to i64)}
!1 = !DIGlobalVariableExpression(var: !2, expr: !DIExpression())
!2 = distinct !DIGlobalVariable(name: "g", scope: !4, file: !6, line: 1, type: !7, isLocal: false, isDefinition: true)
!3 = distinct !DISubprogram(name: "full", scope: !6, file: !6, line: 3, type: !8, spFlags: DISPFlagDefinition, unit: !4)
!4 = distinct !DICompileUnit(language: DW_LANG_C, file: !6, producer: "by (hand) \22x\22", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug, globals: !9)
!5 = !{i32 2, !"Debug Info Version", i32 3}
!6 = !DIFile(filename: "a.py", directory: "/tmp")
!7 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!8 = !DISubroutineType(types: !10)
!9 = !{!1}
!10 = !{null, !7}
