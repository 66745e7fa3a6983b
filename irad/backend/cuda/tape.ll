; The tape of a kernel's thread: a bump allocator over its slice of one buffer, which the launch provides.
;
;     tape ┬ top, end     free bytes of the slice
;          ├ failed       whether something did not fit
;          ├ wanted       bytes that were asked for, until something did not fit
;          ├ start        of the tapes of the warp
;          └ lane         of the thread in it, in bytes: 8 for each
;
; The slices of a warp are one piece of memory, in which words of eight bytes alternate: the word at byte 8·k of a slice
; lies at 256·k + 8·lane. So threads that save a value together write to one piece of memory. Addresses count from the
; start of that piece as if the slice lay there alone; thread_place says where one leads.

%irad.thread_tape = type { ptr, ptr, i32, i64, ptr, i64 }

declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)

define linkonce_odr ptr @irad.thread_place(ptr %tape, ptr %address) nounwind alwaysinline {
  %start.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 4
  %lane.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 5
  %start = load ptr, ptr %start.slot
  %lane = load i64, ptr %lane.slot
  %from = ptrtoint ptr %start to i64
  %to = ptrtoint ptr %address to i64
  %offset = sub i64 %to, %from
  %inside = and i64 %offset, 7
  %words = and i64 %offset, -8
  %spread = shl i64 %words, 5
  %row = add i64 %spread, %lane
  %byte = or disjoint i64 %row, %inside
  %place = getelementptr i8, ptr %start, i64 %byte
  ret ptr %place
}

; %size bytes, aligned to eight; null and the flag where the slice has no room.
define linkonce_odr noalias ptr @irad.thread_alloc(ptr %tape, i64 %size) nounwind alwaysinline {
entry:
  %end.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 1
  %failed.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 2
  %wanted.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 3
  %top = load ptr, ptr %tape
  %end = load ptr, ptr %end.slot
  %top.address = ptrtoint ptr %top to i64
  %end.address = ptrtoint ptr %end to i64
  %sane = icmp ult i64 %size, 140737488355328      ; 2^47: more than any address space has
  %asked = select i1 %sane, i64 %size, i64 140737488355328
  %raised = add i64 %asked, 7
  %whole = and i64 %raised, -8
  %wanted = load i64, ptr %wanted.slot
  %total = add i64 %wanted, %whole
  store i64 %total, ptr %wanted.slot
  %room = sub i64 %end.address, %top.address
  %fits = icmp ule i64 %whole, %room
  br i1 %fits, label %bump, label %full
bump:
  %next = getelementptr i8, ptr %top, i64 %whole
  store ptr %next, ptr %tape
  ret ptr %top
full:
  store i32 1, ptr %failed.slot
  ret ptr null
}

define linkonce_odr noalias ptr @irad.thread_alloc_product(ptr %tape, i64 %count, i64 %size) nounwind alwaysinline {
  %checked = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue { i64, i1 } %checked, 0
  %overflow = extractvalue { i64, i1 } %checked, 1
  %asked = select i1 %overflow, i64 -1, i64 %bytes
  %result = call ptr @irad.thread_alloc(ptr %tape, i64 %asked)
  ret ptr %result
}

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
