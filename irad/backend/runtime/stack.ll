; How much of the machine's stack is left: derivatives of deep recursions ask, to end with an error.
;
; The bounds of a thread's stack are looked up once and kept in the thread's arena, which owns nothing else of it. What is
; to stay free, a quarter of the stack within a bound, is for what recursions call that does not ask. A stack without
; known bounds is never full.

declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_attr_getstack(ptr, ptr, ptr)
declare i32 @pthread_getattr_np(i64, ptr)
declare i64 @pthread_self()
declare ptr @llvm.frameaddress.p0(i32)
declare i64 @llvm.umin.i64(i64, i64)
declare ptr @irad.thread_arena()

; Writes the bounds of the thread's stack to the thread's arena; they stay zero where they are not known.
define linkonce_odr void @irad.measure_stack(ptr %arena) nounwind noinline optnone {
entry:
  ; more than pthread_attr_t has: 56 bytes on x86-64, 64 on AArch64
  %attributes = alloca [128 x i8], align ${SMALL_ALIGNMENT}
  %size.slot = alloca i64
  %low.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.stack_low}
  %spare.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.stack_spare}
  %thread = call i64 @pthread_self()
  %status = call i32 @pthread_getattr_np(i64 %thread, ptr %attributes)
  %known = icmp eq i32 %status, 0
  br i1 %known, label %read, label %done
read:
  %unread = call i32 @pthread_attr_getstack(ptr %attributes, ptr %low.slot, ptr %size.slot)
  %destroyed = call i32 @pthread_attr_destroy(ptr %attributes)
  %good = icmp eq i32 %unread, 0
  br i1 %good, label %keep, label %done
keep:
  %size = load i64, ptr %size.slot
  %quarter = lshr i64 %size, 2
  %spare = call i64 @llvm.umin.i64(i64 %quarter, i64 ${STACK_SPARE})
  store i64 %spare, ptr %spare.slot
  br label %done
done:
  ret void
}

; Whether the stack is nearly full; then the flag of %arena, which need not be the thread's, is set.
define linkonce_odr i1 @irad.stack_full(ptr %arena) nounwind noinline {
entry:
  %own = call ptr @irad.thread_arena()
  %none = icmp eq ptr %own, null
  br i1 %none, label %full, label %look
look:
  %low.slot = getelementptr inbounds %irad.arena, ptr %own, i32 0, i32 ${arena.stack_low}
  %spare.slot = getelementptr inbounds %irad.arena, ptr %own, i32 0, i32 ${arena.stack_spare}
  %low = load i64, ptr %low.slot
  %spare = load i64, ptr %spare.slot
  %here = call ptr @llvm.frameaddress.p0(i32 0)
  %address = ptrtoint ptr %here to i64
  %left = sub i64 %address, %low
  %little = icmp ult i64 %left, %spare
  br i1 %little, label %full, label %fine
full:
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.failed}
  store i32 ${OUT_OF_MEMORY}, ptr %failed.slot
  ret i1 true
fine:
  ret i1 false
}
