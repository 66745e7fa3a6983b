%pair = type { double, [3 x i32] }

define void @allocations(i32 %n) {
  %a = alloca i64, align 8
  %b = alloca double, i32 %n, align 16
  %c = alloca inalloca { i32, i32 }, align 4
  %d = alloca swifterror ptr, align 8
  %e = alloca i32, align 4, addrspace(5)
  %f = alloca [4 x %pair], i64 3, align 8, addrspace(5)
  %g = alloca <vscale x 4 x i32>, align 16
  ret void
}

define i64 @accesses(ptr %p, ptr addrspace(1) %q, double %x) {
  %1 = load i64, ptr %p, align 8
  %2 = load volatile i64, ptr %p, align 4
  %3 = load atomic i64, ptr %p seq_cst, align 8
  %4 = load atomic volatile i64, ptr %p syncscope("agent") acquire, align 8
  %5 = load atomic i32, ptr addrspace(1) %q unordered, align 4
  %6 = load ptr, ptr %p, align 8, !nonnull !0, !align !1
  store double %x, ptr %p, align 8
  store volatile double %x, ptr %p, align 1
  store atomic i64 %1, ptr %p release, align 8
  store atomic volatile i64 %1, ptr %p syncscope("singlethread") monotonic, align 8
  store ptr @accesses, ptr %6, align 8, !nontemporal !2
  store { i64, double } { i64 1, double 2.000000e+00 }, ptr %p, align 8
  ret i64 %1
}

define void @addresses(ptr %p, <2 x ptr> %pv, <2 x i64> %iv, i64 %i) {
  %1 = getelementptr i8, ptr %p, i64 %i
  %2 = getelementptr inbounds double, ptr %p, i64 -1
  %3 = getelementptr inbounds nuw %pair, ptr %p, i64 0, i32 1, i64 2
  %4 = getelementptr nusw i8, ptr %p, i64 8
  %5 = getelementptr nusw nuw i8, ptr %p, i64 8
  %6 = getelementptr nuw i8, ptr %p, i64 8
  %7 = getelementptr i32, <2 x ptr> %pv, i64 1
  %8 = getelementptr i32, ptr %p, <2 x i64> %iv
  %9 = getelementptr [4 x { i64, ptr }], <2 x ptr> %pv, <2 x i64> %iv, i64 2, i32 1
  %10 = getelementptr i8, ptr %p
  %11 = getelementptr <4 x float>, ptr %p, i64 0, i64 3, !note !2
  ret void
}

define void @atomics(ptr %p, i32 %v, double %d, ptr %q, <2 x half> %h) {
  %1 = atomicrmw add ptr %p, i32 %v seq_cst, align 4
  %2 = atomicrmw volatile xchg ptr %p, ptr %q acq_rel, align 8
  %3 = atomicrmw fadd ptr %p, double %d syncscope("agent") monotonic, align 8
  %4 = atomicrmw nand ptr %p, i32 %v release, align 4
  %5 = atomicrmw umin ptr %p, i32 %v acquire, align 4
  %6 = atomicrmw uinc_wrap ptr %p, i32 %v monotonic, align 4
  %7 = atomicrmw fmax ptr %p, double %d monotonic, align 8
  %8 = atomicrmw usub_sat ptr %p, i32 %v monotonic, align 4
  %9 = atomicrmw fadd ptr %p, <2 x half> %h monotonic, align 4
  %10 = cmpxchg ptr %p, i32 %v, i32 0 seq_cst seq_cst, align 4
  %11 = cmpxchg weak volatile ptr %p, i32 %v, i32 0 syncscope("agent") acq_rel monotonic, align 4
  %12 = cmpxchg ptr %p, ptr %q, ptr null acquire acquire, align 8
  %13 = extractvalue { i32, i1 } %11, 1
  fence seq_cst
  fence syncscope("singlethread") acquire
  ret void
}

define i32 @varargs(ptr %list, ...) {
  call void @llvm.va_start.p0(ptr %list)
  %1 = va_arg ptr %list, i32
  %2 = va_arg ptr %list, double
  call void @llvm.va_end.p0(ptr %list)
  ret i32 %1
}

declare void @llvm.va_start.p0(ptr)

declare void @llvm.va_end.p0(ptr)

!0 = !{}
!1 = !{i64 8}
!2 = !{i32 1}
