; The tape of a kernel's thread: a bump allocator over its slice of one buffer.
;
; Ownership: the buffer and the report belong to the launch and outlive it; the head of the tape, %irad.thread_tape, is a
; local variable of the thread. Where the tape is metered or watched, the head is as large as that of an arena and has
; those fields where arenas have them. Functions named `irad.arena_…` are those of arenas, for this tape.
;
; The slices of a warp are one piece of memory, in which words of eight bytes alternate: the k-th word of a slice lies
; 256·k bytes after the first one, and that of the next lane eight bytes further. So threads that save a value together
; write to one piece of memory. What is allocated is aligned to eight bytes of the thread's own.

declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare void @llvm.assume(i1)

; %size bytes of the tape; null, the flag and the report where the slice has no room: then the sweep ends.
define linkonce_odr noalias ptr @irad.thread_alloc(ptr %tape, i64 %size) nounwind alwaysinline {
entry:
  %end.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 ${thread_tape.end}
  %top.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 ${thread_tape.top}
  %top = load ptr, ptr %top.slot
  %end = load ptr, ptr %end.slot
  %top.address = ptrtoint ptr %top to i64
  %end.address = ptrtoint ptr %end to i64
  ; so large that nothing below overflows, and that no slice has room for it
  %sane = icmp ult i64 %size, ${ADDRESS_SPACE}
  %asked = select i1 %sane, i64 %size, i64 ${ADDRESS_SPACE}
  %raised = add i64 %asked, ${WORD_ROUND_UP}
  %whole = and i64 %raised, -${WORD}
  %apart = mul i64 %whole, ${WARP}
  %room = sub i64 %end.address, %top.address
  %fits = icmp ule i64 %apart, %room
  br i1 %fits, label %bump, label %full, !prof !{!"branch_weights", i32 2000, i32 1}
bump:
  %next = getelementptr i8, ptr %top, i64 %apart
  store ptr %next, ptr %top.slot
  ; so that checks of the result go
  %given = icmp ne ptr %top, null
  call void @llvm.assume(i1 %given)
  ret ptr %top
full:
  %failed.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 ${thread_tape.failed}
  store i32 1, ptr %failed.slot
  call void @irad.thread_report(ptr %tape, i64 %whole, i64 1)
  ret ptr null
}

; Adds to the report the number of bytes that were wanted beyond those that are allocated.
define linkonce_odr void @irad.thread_report(ptr %tape, i64 %more, i64 %failed) nounwind alwaysinline {
entry:
  %start.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 ${thread_tape.start}
  %report.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 ${thread_tape.report}
  %top.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 ${thread_tape.top}
  %top = load ptr, ptr %top.slot
  %start = load ptr, ptr %start.slot
  %report = load ptr, ptr %report.slot
  %to = ptrtoint ptr %top to i64
  %from = ptrtoint ptr %start to i64
  %apart = sub i64 %to, %from
  %used = udiv i64 %apart, ${WARP}
  %wanted = add i64 %used, %more
  %some = icmp ne i64 %wanted, 0
  %asked = icmp ne ptr %report, null
  %tells = and i1 %some, %asked
  br i1 %tells, label %tell, label %done
tell:
  %most.slot = getelementptr inbounds %irad.tape_report, ptr %report, i32 0, i32 ${tape_report.most}
  %flag = getelementptr inbounds %irad.tape_report, ptr %report, i32 0, i32 ${tape_report.failed}
  %most = atomicrmw umax ptr %most.slot, i64 %wanted syncscope("device") monotonic
  %any = atomicrmw umax ptr %flag, i64 %failed syncscope("device") monotonic
  br label %done
done:
  ret void
}

; %count * %size bytes; a product beyond 64 bits has no room.
define linkonce_odr noalias ptr @irad.thread_alloc_product(ptr %tape, i64 %count, i64 %size) nounwind alwaysinline {
  %checked = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue { i64, i1 } %checked, 0
  %overflow = extractvalue { i64, i1 } %checked, 1
  %asked = select i1 %overflow, i64 -1, i64 %bytes
  %result = call ptr @irad.thread_alloc(ptr %tape, i64 %asked)
  ret ptr %result
}

; Where free memory begins: what arena_rewind goes back to.
define linkonce_odr ptr @irad.arena_top(ptr %tape) nounwind alwaysinline {
  %top.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 ${thread_tape.top}
  %top = load ptr, ptr %top.slot
  ret ptr %top
}

; Frees what was allocated since %top was the top.
define linkonce_odr void @irad.arena_rewind(ptr %tape, ptr %top) nounwind alwaysinline {
  %top.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 ${thread_tape.top}
  store ptr %top, ptr %top.slot
  ret void
}

; Whether an allocation failed.
define linkonce_odr i1 @irad.arena_failed(ptr %tape) nounwind alwaysinline {
  %failed.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 ${thread_tape.failed}
  %failed = load i32, ptr %failed.slot
  %result = icmp ne i32 %failed, 0
  ret i1 %result
}

; Why the sweep ends: nothing else can go wrong here, since kernels have no calls through pointers.
define linkonce_odr i32 @irad.arena_reason(ptr %tape, i32 %exhausted, i32 %no_derivative) nounwind alwaysinline {
  ret i32 %exhausted
}

; --- the meter: the same allocators, for a place of the tape of which %units are asked for
;
; What threads ask for at a place is added up in global memory, whose address is in the tape's head. What does not fit is
; counted, too.

define linkonce_odr noalias ptr @irad.tape_alloc(ptr %tape, i64 %size, i64 %site, i64 %units) nounwind alwaysinline {
  %meter.slot = getelementptr inbounds %irad.arena, ptr %tape, i32 0, i32 ${arena.meter}
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
