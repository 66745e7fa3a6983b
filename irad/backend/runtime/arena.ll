; Arenas: where derivatives keep what they save. This is their life; allocation is in allocate.ll.
;
; An arena is a bump allocator for what one derivative call saves. It is a header, %irad.arena, in front of its first
; chunk; further chunks hang on the first as a list, in the order in which they were first needed:
;
;     arena ┬ top, end        free bytes of the current chunk: all that the fast path reads and writes
;           ├ failed          why the sweep cannot go on: memory ran out, a pointer led to code without a pair, …
;           ├ mark ──▶ mark of the innermost open ──▶ … ──▶ root mark (in the header)
;           └ first chunk ──▶ chunk ──▶ current chunk ──▶ spare chunk ──▶ …
;
; * arena_open pushes a mark (in the arena itself), arena_close goes back to it. Chunks that this frees stay in the list
;   as spares, in order, so that a second equal call takes the same chunks and calls malloc for none.
; * Lanes of parallel loops have arenas of their own (lanes.ll), which hang on the innermost mark. When that is closed
;   they become spares of the arena, unless they grew large.
; * A deferred decref is a node in the arena, in the list of the innermost mark; closing runs that list.
; * What is lent to the innermost mark (slots.ll) is given back when that is closed, the newest first.
; * The outermost close gives memory back: spares that the last 64 calls did not take, and all beyond 64 MiB. A tape of
;   a gigabyte is freed when its call ends.
; * One arena belongs to each thread; it is found through pthread_getspecific (LLVM's thread_local aborts under MCJIT)
;   and freed by the key's destructor. arena_new makes one that is owned by whoever holds it and that outlives the call.
;   An arena serves one thread at a time.
; * Out of memory is reported by a null result and the flag, so that code may check once after many allocations. A
;   deferred decref that cannot be recorded is lost: to run it early would free what the adjoint still reads.
;
; Whoever links this defines or resolves NRT_decref.

@irad.tls_key = external global i32
declare void @free(ptr)
declare ptr @malloc(i64)
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @irad.arena_alloc(ptr, i64)
declare void @irad.arena_release(ptr)
declare void @irad.give_back(ptr)
declare void @irad.lanes_close(ptr, ptr)
declare void @irad.measure_stack(ptr)
declare void @irad.run_deferred(ptr)

; An arena whose header and first chunk are one block of %size bytes; null when out of memory.
define linkonce_odr ptr @irad.arena_create(i64 %size) nounwind noinline {
entry:
  %arena = call ptr @malloc(i64 %size)
  %none = icmp eq ptr %arena, null
  br i1 %none, label %done, label %fill
fill:
  %raised = add i64 ptrtoint (ptr getelementptr (%irad.arena, ptr null, i32 1) to i64), 63
  %header = and i64 %raised, -64
  call void @llvm.memset.p0.i64(ptr align 16 %arena, i8 0, i64 %header, i1 false)
  %base = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 9
  call void @irad.chunk_init(ptr %base, ptr %arena, i64 %size)
  %base.end = getelementptr inbounds %irad.chunk, ptr %base, i32 0, i32 1
  %end = load ptr, ptr %base.end
  %top = getelementptr i8, ptr %arena, i64 %header
  %end.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 1
  %chunk.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 3
  %mark.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 4
  %used.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 5
  %held.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 7
  %root = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 8
  store ptr %top, ptr %arena
  store ptr %end, ptr %end.slot
  store ptr %base, ptr %chunk.slot
  store ptr %root, ptr %mark.slot
  store i64 %size, ptr %used.slot
  store i64 %size, ptr %held.slot
  br label %done
done:
  ret ptr %arena
}

; Size and end of a chunk whose head is at %head, in the block of %size bytes at %block.
define linkonce_odr void @irad.chunk_init(ptr %head, ptr %block, i64 %size) nounwind alwaysinline {
  %address = ptrtoint ptr %block to i64
  %limit = add i64 %address, %size
  %end.address = and i64 %limit, -64
  %length = sub i64 %end.address, %address
  %end = getelementptr i8, ptr %block, i64 %length
  %end.slot = getelementptr inbounds %irad.chunk, ptr %head, i32 0, i32 1
  %size.slot = getelementptr inbounds %irad.chunk, ptr %head, i32 0, i32 2
  store ptr %end, ptr %end.slot
  store i64 %size, ptr %size.slot
  ret void
}

; The thread's arena; null when out of memory.
define linkonce_odr ptr @irad.thread_arena() nounwind noinline {
entry:
  %key = load i32, ptr @irad.tls_key
  %found = call ptr @pthread_getspecific(i32 %key)
  %none = icmp eq ptr %found, null
  br i1 %none, label %make, label %done
make:
  %made = call ptr @irad.arena_create(i64 65536)
  %empty = icmp eq ptr %made, null
  br i1 %empty, label %done, label %keep
keep:
  %status = call i32 @pthread_setspecific(i32 %key, ptr %made)
  %kept = icmp eq i32 %status, 0
  br i1 %kept, label %measure, label %drop
measure:
  call void @irad.measure_stack(ptr %made)
  br label %done
drop:
  call void @irad.arena_release(ptr %made)
  br label %done
done:
  %arena = phi ptr [ %found, %entry ], [ null, %make ], [ %made, %measure ], [ null, %drop ]
  ret ptr %arena
}

; The thread's arena with a new mark; null when out of memory.
define linkonce_odr ptr @irad.arena_open() nounwind noinline {
entry:
  %arena = call ptr @irad.thread_arena()
  %none = icmp eq ptr %arena, null
  br i1 %none, label %fail, label %push
fail:
  ret ptr null
push:
  %pushed = call i1 @irad.arena_push(ptr %arena)
  %result = select i1 %pushed, ptr %arena, ptr null
  ret ptr %result
}

; Pushes a mark; false when out of memory.
define linkonce_odr i1 @irad.arena_push(ptr %arena) nounwind noinline {
entry:
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 2
  %chunk.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 3
  %mark.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 4
  %used.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 5
  %top = load ptr, ptr %arena
  %failed = load i32, ptr %failed.slot
  %chunk = load ptr, ptr %chunk.slot
  %used = load i64, ptr %used.slot
  %previous = load ptr, ptr %mark.slot
  %mark = call ptr @irad.arena_alloc(ptr %arena, i64 ptrtoint (ptr getelementptr (%irad.mark, ptr null, i32 1) to i64))
  %full = icmp eq ptr %mark, null
  br i1 %full, label %undo, label %fill
undo:
  store i32 %failed, ptr %failed.slot
  ret i1 false
fill:
  %m.top = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 1
  %m.chunk = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 2
  %m.used = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 3
  %m.first = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 4
  %m.last = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 5
  %m.failed = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 6
  store ptr %previous, ptr %mark
  store ptr %top, ptr %m.top
  store ptr %chunk, ptr %m.chunk
  store i64 %used, ptr %m.used
  store ptr null, ptr %m.first
  store ptr null, ptr %m.last
  store i32 %failed, ptr %m.failed
  %m.lanes = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 7
  store ptr null, ptr %m.lanes
  %m.lent = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 8
  store ptr null, ptr %m.lent
  store ptr %mark, ptr %mark.slot
  store i32 0, ptr %failed.slot
  ret i1 true
}

; Runs the decrefs deferred since the innermost mark and goes back to it. A decref may run Python code that opens the
; arena again: the mark stays in place until the last one returned.
define linkonce_odr void @irad.arena_close(ptr %arena) nounwind noinline {
entry:
  %none = icmp eq ptr %arena, null
  br i1 %none, label %done, label %run
run:
  %mark.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 4
  %mark = load ptr, ptr %mark.slot
  call void @irad.run_deferred(ptr %mark)
  call void @irad.give_back(ptr %mark)
  call void @irad.lanes_close(ptr %arena, ptr %mark)
  %m.top = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 1
  %m.chunk = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 2
  %m.used = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 3
  %m.failed = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 6
  %previous = load ptr, ptr %mark
  %top = load ptr, ptr %m.top
  %chunk = load ptr, ptr %m.chunk
  %used = load i64, ptr %m.used
  %failed = load i32, ptr %m.failed
  %chunk.end = getelementptr inbounds %irad.chunk, ptr %chunk, i32 0, i32 1
  %end = load ptr, ptr %chunk.end
  %end.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 1
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 2
  %chunk.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 3
  %used.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 5
  store ptr %top, ptr %arena
  store ptr %end, ptr %end.slot
  store i32 %failed, ptr %failed.slot
  store ptr %chunk, ptr %chunk.slot
  store ptr %previous, ptr %mark.slot
  store i64 %used, ptr %used.slot
  %root = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 8
  %base.next = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 9, i32 0
  %second = load ptr, ptr %base.next
  %outermost = icmp eq ptr %previous, %root
  %grown = icmp ne ptr %second, null
  %trim = and i1 %outermost, %grown
  br i1 %trim, label %give, label %done
give:
  call void @irad.arena_trim(ptr %arena)
  br label %done
done:
  ret void
}

; At an outermost close: frees the spare chunks that 64 calls did not take, looked for every 64th call, and what is
; beyond 64 MiB, at once.
define linkonce_odr void @irad.arena_trim(ptr %arena) nounwind noinline {
entry:
  %used.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 5
  %calls.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 6
  %held.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 7
  %base = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 9
  %used = load i64, ptr %used.slot
  %calls.before = load i64, ptr %calls.slot
  %held = load i64, ptr %held.slot
  %calls = add i64 %calls.before, 1
  store i64 %calls, ptr %calls.slot
  %beat = and i64 %calls, 63
  %due = icmp eq i64 %beat, 0
  %excess = icmp ugt i64 %held, 67108864
  %work = or i1 %due, %excess
  br i1 %work, label %loop, label %done
loop:
  %link = phi ptr [ %base, %entry ], [ %chunk, %stay ], [ %link, %free ]
  %total = phi i64 [ %used, %entry ], [ %sum, %stay ], [ %total, %free ]
  %left = phi i64 [ %held, %entry ], [ %left, %stay ], [ %rest, %free ]
  %chunk = load ptr, ptr %link
  %last = icmp eq ptr %chunk, null
  br i1 %last, label %finish, label %body
body:
  %size.slot = getelementptr inbounds %irad.chunk, ptr %chunk, i32 0, i32 2
  %taken.slot = getelementptr inbounds %irad.chunk, ptr %chunk, i32 0, i32 3
  %size = load i64, ptr %size.slot
  %taken = load i64, ptr %taken.slot
  %sum = add i64 %total, %size
  %beyond = icmp ugt i64 %sum, 67108864
  %age = sub i64 %calls, %taken
  %idle = icmp ugt i64 %age, 64
  %useless = or i1 %beyond, %idle
  br i1 %useless, label %free, label %stay
stay:
  br label %loop
free:
  %next = load ptr, ptr %chunk
  store ptr %next, ptr %link
  %rest = sub i64 %left, %size
  call void @free(ptr %chunk)
  br label %loop
finish:
  store i64 %left, ptr %held.slot
  br label %done
done:
  ret void
}

; An arena owned by the caller; null when out of memory.
define linkonce_odr ptr @irad.arena_new() nounwind {
  %arena = call ptr @irad.arena_create(i64 4096)
  ret ptr %arena
}

; Runs the deferred decrefs of an arena from arena_new and frees it.
define linkonce_odr void @irad.arena_delete(ptr %arena) nounwind {
entry:
  %none = icmp eq ptr %arena, null
  br i1 %none, label %done, label %run
run:
  %root = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 8
  call void @irad.run_deferred(ptr %root)
  call void @irad.give_back(ptr %root)
  call void @irad.lanes_close(ptr %arena, ptr %root)
  call void @irad.arena_release(ptr %arena)
  br label %done
done:
  ret void
}
