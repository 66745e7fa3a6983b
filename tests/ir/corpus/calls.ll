%blob = type { [4 x i64] }

declare i32 @printf(ptr noundef, ...)

declare fastcc double @fast(double, double)

declare cc 11 void @numbered_convention()

declare double @llvm.fma.f64(double, double, double)

declare double @llvm.experimental.constrained.fadd.f64(double, double, metadata, metadata)

declare i64 @llvm.read_register.i64(metadata)

declare void @llvm.assume(i1 noundef)

declare void @takes_metadata(metadata)

define double @calls(double %x, ptr %f, ptr %p, i64 %n) strictfp {
  %1 = call i32 (ptr, ...) @printf(ptr noundef nonnull @format, double %x, i32 signext 3)
  %2 = tail call fast fastcc double @fast(double %x, double 1.000000e+00)
  %3 = notail call double %f(double %2)
  %4 = call reassoc nsz noundef double @llvm.fma.f64(double %x, double %2, double %3) #1
  call cc 11 void @numbered_convention() nounwind "key"="value" "lone"
  %5 = call noalias noundef nonnull align 16 dereferenceable(32) ptr @malloc(i64 noundef %n) allocsize(0)
  call void @by_value(ptr noundef byval(%blob) align 8 %p, ptr sret({ i64, ptr addrspace(1) }) %5, ptr elementtype(i32) %p)
  %6 = call double @llvm.experimental.constrained.fadd.f64(double %x, double %4, metadata !"round.tonearest", metadata !"fpexcept.strict") strictfp
  %7 = call i64 @llvm.read_register.i64(metadata !0)
  call void @takes_metadata(metadata ptr %p)
  call void @takes_metadata(metadata i32 7)
  call void @takes_metadata(metadata ptr @format)
  call void @takes_metadata(metadata double %x)
  call void @takes_metadata(metadata !DIExpression(DW_OP_plus_uconst, 8))
  call void @llvm.assume(i1 true) [ "align"(ptr %p, i64 64), "nonnull"(ptr %5) ]
  call void @closure() [ "deopt"(), "gc-transition"(i32 1, double %x) ]
  %8 = call range(i64 0, 100) i64 @bounded(i64 range(i64 -5, 7) %n), !range !1
  %9 = call addrspace(1) i32 @elsewhere(i32 %1)
  ret double %6
}

define void @forwards(ptr inalloca(i32) %p, ...) {
  musttail call void (ptr, ...) @forwards(ptr inalloca(i32) %p, ...)
  ret void
}

define i32 @assembly(i32 %x) {
  call void asm sideeffect "nop", ""()
  %1 = call i32 asm "bswap $0", "=r,r"(i32 %x)
  %2 = call { i32, i32 } asm sideeffect alignstack inteldialect unwind "cpuid \22quoted\22", "={eax},={ebx},~{flags}"()
  %3 = call i32 asm "mov $1, $0", "=r,*m"(ptr elementtype(i32) @word) #0, !srcloc !2
  callbr void asm sideeffect "jmp ${1:l}", "r,!i"(i32 %x)
          to label %next [label %other]

next:
  %out = callbr i32 asm "", "=r,!i,!i"()
          to label %other [label %last, label %other]

other:
  ret i32 %1

last:
  ret i32 %3
}

@format = private unnamed_addr constant [4 x i8] c"%d\0A\00"
@word = global i32 0

declare noalias ptr @malloc(i64)

declare void @by_value(ptr, ptr, ptr)

declare void @closure()

declare i64 @bounded(i64)

declare i32 @elsewhere(i32) addrspace(1)

attributes #0 = { nounwind }
attributes #1 = { nounwind memory(none) }

!0 = !{!"rsp"}
!1 = !{i64 0, i64 100, i64 200, i64 300}
!2 = !{i32 42}
