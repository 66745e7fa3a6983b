; The tape of a kernel's thread: a bump allocator over its slice of one buffer, which the launch provides.
;
;     tape ┬ top, end     free bytes of the slice
;          ├ failed       whether something did not fit
;          └ wanted       bytes that were asked for, what did not fit included

%irad.thread_tape = type { ptr, ptr, i32, i64 }

; %size bytes at a multiple of 64 (16 when %size < 64); null and the flag where the slice has no room.
define linkonce_odr noalias ptr @irad.arena_alloc(ptr %tape, i64 %size) nounwind alwaysinline {
entry:
  %end.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 1
  %failed.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 2
  %wanted.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 3
  %top = load ptr, ptr %tape
  %end = load ptr, ptr %end.slot
  %top.address = ptrtoint ptr %top to i64
  %end.address = ptrtoint ptr %end to i64
  %wide = icmp ugt i64 %size, 63
  %low = select i1 %wide, i64 63, i64 15
  %high = select i1 %wide, i64 -64, i64 -16
  %raised = add i64 %top.address, %low
  %start.address = and i64 %raised, %high
  %padding = sub i64 %start.address, %top.address
  %wanted = load i64, ptr %wanted.slot
  %padded = add i64 %wanted, %padding
  %total = add i64 %padded, %size
  store i64 %total, ptr %wanted.slot
  %room = sub i64 %end.address, %start.address
  %nonnegative = icmp sge i64 %room, 0
  %small = icmp ule i64 %size, %room
  %fits = and i1 %nonnegative, %small
  br i1 %fits, label %bump, label %full
bump:
  %start = getelementptr i8, ptr %top, i64 %padding
  %next = getelementptr i8, ptr %start, i64 %size
  store ptr %next, ptr %tape
  ret ptr %start
full:
  store i32 1, ptr %failed.slot
  ret ptr null
}

define linkonce_odr noalias ptr @irad.arena_alloc_product(ptr %tape, i64 %count, i64 %size) nounwind alwaysinline {
entry:
  %checked = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue { i64, i1 } %checked, 0
  %overflow = extractvalue { i64, i1 } %checked, 1
  %asked = select i1 %overflow, i64 -1, i64 %bytes
  %result = call ptr @irad.arena_alloc(ptr %tape, i64 %asked)
  ret ptr %result
}

declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)

define linkonce_odr ptr @irad.arena_top(ptr %tape) nounwind alwaysinline {
  %top = load ptr, ptr %tape
  ret ptr %top
}

define linkonce_odr void @irad.arena_rewind(ptr %tape, ptr %top) nounwind alwaysinline {
  store ptr %top, ptr %tape
  ret void
}

define linkonce_odr i1 @irad.arena_failed(ptr %tape) nounwind alwaysinline {
  %failed.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 2
  %failed = load i32, ptr %failed.slot
  %result = icmp ne i32 %failed, 0
  ret i1 %result
}

define linkonce_odr i32 @irad.arena_reason(ptr %tape, i32 %exhausted, i32 %no_derivative) nounwind alwaysinline {
  ret i32 %exhausted
}
