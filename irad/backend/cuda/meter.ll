; The meter of the tape of a kernel: as the allocators of tape.ll, for a place of the tape of which %units are asked for.
;
; What threads ask for at a place is added up in global memory, whose address is in the tape's head, where arenas have
; that of their meter. What does not fit is counted, too.

declare ptr @irad.thread_alloc(ptr, i64)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)

define linkonce_odr noalias ptr @irad.tape_alloc(ptr %tape, i64 %size, i64 %site, i64 %units) nounwind alwaysinline {
  %meter.slot = getelementptr inbounds %irad.arena, ptr %tape, i32 0, i32 18
  %meter = load ptr, ptr %meter.slot
  %units.slot = getelementptr i64, ptr %meter, i64 %site
  %before = atomicrmw add ptr %units.slot, i64 %units monotonic
  %result = call ptr @irad.thread_alloc(ptr %tape, i64 %size)
  ret ptr %result
}

define linkonce_odr noalias ptr @irad.tape_alloc_product(ptr %tape, i64 %count, i64 %size, i64 %site) nounwind alwaysinline {
  %checked = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue { i64, i1 } %checked, 0
  %overflow = extractvalue { i64, i1 } %checked, 1
  %asked = select i1 %overflow, i64 -1, i64 %bytes
  %result = call ptr @irad.tape_alloc(ptr %tape, i64 %asked, i64 %site, i64 %count)
  ret ptr %result
}
