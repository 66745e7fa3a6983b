; Access to shadows that the lanes of a parallel loop share (partials.ll): text for double, read again for float.

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare void @irad.copy_adjoint_f64(ptr, ptr, i64)
declare i1 @irad.in_window(i64, i64, i64, i64)
declare i1 @irad.is_shared(ptr, i64)

; Adds to a shadow that lanes share.
define linkonce_odr void @irad.add_shared_f64(ptr %window, i64 %start, i64 %size, i64 %delta, ptr %place, double %amount) nounwind alwaysinline {
entry:
  %address = ptrtoint ptr %place to i64
  %offset = sub i64 %address, %start
  %own = icmp ult i64 %offset, %size
  br i1 %own, label %direct, label %outside, !prof !{!"branch_weights", i32 2000, i32 1}
outside:
  %shared = call i1 @irad.is_shared(ptr %window, i64 %address)
  br i1 %shared, label %partial, label %direct
direct:
  %old = load double, ptr %place, align 1
  %new = fadd double %old, %amount
  store double %new, ptr %place, align 1
  br label %done
partial:
  %twin = getelementptr i8, ptr %place, i64 %delta
  %before = load double, ptr %twin, align 1
  %after = fadd double %before, %amount
  store double %after, ptr %twin, align 1
  %first.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 3
  %last.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 4
  %first = load i64, ptr %first.slot
  %last = load i64, ptr %last.slot
  %end = getelementptr double, ptr %place, i64 1
  %past = ptrtoint ptr %end to i64
  %low = call i64 @llvm.umin.i64(i64 %first, i64 %address)
  %high = call i64 @llvm.umax.i64(i64 %last, i64 %past)
  store i64 %low, ptr %first.slot
  store i64 %high, ptr %last.slot
  br label %done
done:
  ret void
}

; Takes from a shadow that lanes share: the number that was there, and zero is there now.
define linkonce_odr double @irad.take_shared_f64(ptr %window, i64 %start, i64 %size, i64 %delta, ptr %place) nounwind alwaysinline {
entry:
  %address = ptrtoint ptr %place to i64
  %offset = sub i64 %address, %start
  %own = icmp ult i64 %offset, %size
  %old = load double, ptr %place, align 1
  store double zeroinitializer, ptr %place, align 1
  br i1 %own, label %done, label %outside, !prof !{!"branch_weights", i32 2000, i32 1}
outside:
  %shared = call i1 @irad.is_shared(ptr %window, i64 %address)
  br i1 %shared, label %partial, label %done
partial:
  %twin = getelementptr i8, ptr %place, i64 %delta
  %more = load double, ptr %twin, align 1
  %both = fadd double %old, %more
  %used = fcmp une double %more, 0.0
  br i1 %used, label %clear, label %done
clear:
  store double zeroinitializer, ptr %twin, align 1
  br label %done
done:
  %taken = phi double [ %old, %entry ], [ %old, %outside ], [ %both, %partial ], [ %both, %clear ]
  ret double %taken
}

; The adjoint of a memmove of %bytes between shadows that lanes may share: takes from %to, adds to %from. What one
; number adds must not be taken by the next, so where the two overlap the order matters.
define linkonce_odr void @irad.move_shared_f64(ptr %to.window, i64 %to.start, i64 %to.size, i64 %to.delta, ptr %to, ptr %from.window, i64 %from.start, i64 %from.size, i64 %from.delta, ptr %from, i64 %bytes) nounwind noinline {
entry:
  %count = udiv i64 %bytes, ptrtoint (ptr getelementptr (double, ptr null, i32 1) to i64)
  %last = sub i64 %count, 1
  %to.address = ptrtoint ptr %to to i64
  %from.address = ptrtoint ptr %from to i64
  %rising = icmp uge i64 %to.address, %from.address
  %to.own = call i1 @irad.in_window(i64 %to.start, i64 %to.size, i64 %to.address, i64 %bytes)
  %from.own = call i1 @irad.in_window(i64 %from.start, i64 %from.size, i64 %from.address, i64 %bytes)
  %own = and i1 %to.own, %from.own
  br i1 %own, label %direct, label %shared
direct:
  call void @irad.copy_adjoint_f64(ptr %to, ptr %from, i64 %bytes)
  ret void
shared:
  %some = icmp ne i64 %count, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %shared ], [ %next, %loop ]
  %mirrored = sub i64 %last, %i
  %k = select i1 %rising, i64 %i, i64 %mirrored
  %into = getelementptr double, ptr %to, i64 %k
  %source = getelementptr double, ptr %from, i64 %k
  %taken = call double @irad.take_shared_f64(ptr %to.window, i64 %to.start, i64 %to.size, i64 %to.delta, ptr %into)
  call void @irad.add_shared_f64(ptr %from.window, i64 %from.start, i64 %from.size, i64 %from.delta, ptr %source, double %taken)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}

; The adjoint of a fill: clears %bytes of a shadow.
define linkonce_odr void @irad.drop_shared_f64(ptr %to.window, i64 %to.start, i64 %to.size, i64 %to.delta, ptr %to, i64 %bytes) nounwind noinline {
entry:
  %to.address = ptrtoint ptr %to to i64
  %own = call i1 @irad.in_window(i64 %to.start, i64 %to.size, i64 %to.address, i64 %bytes)
  br i1 %own, label %direct, label %shared
direct:
  call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 %bytes, i1 false)
  ret void
shared:
  %count = udiv i64 %bytes, ptrtoint (ptr getelementptr (double, ptr null, i32 1) to i64)
  %some = icmp ne i64 %count, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %shared ], [ %next, %loop ]
  %into = getelementptr double, ptr %to, i64 %i
  %taken = call double @irad.take_shared_f64(ptr %to.window, i64 %to.start, i64 %to.size, i64 %to.delta, ptr %into)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Adds a lane's partial shadow to the shadow, from byte %first to byte %last of that, and clears it.
define linkonce_odr void @irad.add_partial_f64(i64 %first, i64 %last, i64 %delta) nounwind noinline {
entry:
  %some = icmp ult i64 %first, %last
  br i1 %some, label %loop, label %done
loop:
  %address = phi i64 [ %first, %entry ], [ %next, %loop ]
  %place = inttoptr i64 %address to ptr
  %twin = getelementptr i8, ptr %place, i64 %delta
  %part = load double, ptr %twin, align 1
  %old = load double, ptr %place, align 1
  %new = fadd double %old, %part
  store double %new, ptr %place, align 1
  store double zeroinitializer, ptr %twin, align 1
  %next = add i64 %address, ptrtoint (ptr getelementptr (double, ptr null, i32 1) to i64)
  %more = icmp ult i64 %next, %last
  br i1 %more, label %loop, label %done
done:
  ret void
}
