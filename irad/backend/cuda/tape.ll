; The tape of a kernel's thread: a bump allocator over its slice of one buffer, which the launch provides.
;
;     tape ┬ top, end     where the thread's next word lies, and the first one that is not its own any more
;          ├ start        its first word
;          ├ report       two i64 of all threads, or null: the most bytes that a thread wanted, whether one got none
;          └ failed       whether something did not fit
;
; The slices of a warp are one piece of memory, in which words of eight bytes alternate: the k-th word of a slice lies
; 256·k bytes behind the first one, and that of the next lane eight bytes further. So threads that save a value together
; write to one piece of memory. What is allocated is aligned to eight bytes of the thread's own.

%irad.thread_tape = type { ptr, ptr, ptr, ptr, i32 }

declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare void @llvm.assume(i1)

; null, the flag and the report where the slice has no room: then the sweep ends
define linkonce_odr noalias ptr @irad.thread_alloc(ptr %tape, i64 %size) nounwind alwaysinline {
entry:
  %end.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 1
  %top = load ptr, ptr %tape
  %end = load ptr, ptr %end.slot
  %top.address = ptrtoint ptr %top to i64
  %end.address = ptrtoint ptr %end to i64
  %sane = icmp ult i64 %size, 140737488355328      ; 2^47: more than any address space has
  %asked = select i1 %sane, i64 %size, i64 140737488355328
  %raised = add i64 %asked, 7
  %whole = and i64 %raised, -8
  %apart = shl i64 %whole, 5
  %room = sub i64 %end.address, %top.address
  %fits = icmp ule i64 %apart, %room
  br i1 %fits, label %bump, label %full, !prof !0
bump:
  %next = getelementptr i8, ptr %top, i64 %apart
  store ptr %next, ptr %tape
  %given = icmp ne ptr %top, null
  call void @llvm.assume(i1 %given)
  ret ptr %top
full:
  %failed.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 4
  store i32 1, ptr %failed.slot
  call void @irad.thread_report(ptr %tape, i64 %whole, i64 1)
  ret ptr null
}

; Adds to the report that so many bytes were wanted beyond those that are allocated.
define linkonce_odr void @irad.thread_report(ptr %tape, i64 %more, i64 %failed) nounwind alwaysinline {
entry:
  %start.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 2
  %report.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 3
  %top = load ptr, ptr %tape
  %start = load ptr, ptr %start.slot
  %report = load ptr, ptr %report.slot
  %to = ptrtoint ptr %top to i64
  %from = ptrtoint ptr %start to i64
  %apart = sub i64 %to, %from
  %used = lshr i64 %apart, 5
  %wanted = add i64 %used, %more
  %some = icmp ne i64 %wanted, 0
  %asked = icmp ne ptr %report, null
  %tells = and i1 %some, %asked
  br i1 %tells, label %tell, label %done
tell:
  %flag = getelementptr inbounds i8, ptr %report, i64 8
  %most = atomicrmw umax ptr %report, i64 %wanted syncscope("device") monotonic
  %any = atomicrmw umax ptr %flag, i64 %failed syncscope("device") monotonic
  br label %done
done:
  ret void
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
  %failed.slot = getelementptr inbounds %irad.thread_tape, ptr %tape, i32 0, i32 4
  %failed = load i32, ptr %failed.slot
  %result = icmp ne i32 %failed, 0
  ret i1 %result
}

define linkonce_odr i32 @irad.arena_reason(ptr %tape, i32 %exhausted, i32 %no_derivative) nounwind alwaysinline {
  ret i32 %exhausted
}

!0 = !{!"branch_weights", i32 2000, i32 1}
