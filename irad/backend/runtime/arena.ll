; Arenas: where derivatives keep what they save.
;
; An arena is a bump allocator for what one derivative call saves. It is a header, %irad.arena, in front of its first
; chunk; further chunks hang on the first as a list, in the order in which they were first needed:
;
;     arena ┬ top, end        free bytes of the current chunk: all that the fast path reads and writes
;           ├ failed          why the sweep cannot go on: memory ran out, a pointer pointed to code without a pair, …
;           ├ mark ──▶ mark of the innermost open ──▶ … ──▶ root mark (in the header)
;           └ first chunk ──▶ chunk ──▶ current chunk ──▶ spare chunk ──▶ …
;
; Ownership:
; * One arena belongs to each thread; it is found through pthread_getspecific (LLVM's thread_local aborts under MCJIT)
;   and freed by the key's destructor. arena_new makes one that is owned by whoever holds it and that outlives the call.
;   An arena serves one thread at a time.
; * arena_open pushes a mark (in the arena itself), arena_close goes back to it. Chunks that this frees stay in the list
;   as spares, in order, so that a second equal call takes the same chunks and calls malloc for none.
; * Lanes of parallel loops have arenas of their own (lanes.ll), which hang on the innermost mark. When that is closed
;   they become spares of the arena, unless they grew large.
; * A deferred decref is a node in the arena, in the list of the innermost mark; closing runs that list.
; * What is lent to the innermost mark (slots.ll) is given back when that is closed, the newest first.
; * The outermost close gives memory back: spares that the last calls did not take, and all beyond what is kept. A tape
;   of a gigabyte is freed when its call ends.
;
; Out of memory is reported by a null result and the flag, so that code may check once after many allocations. A
; deferred decref that cannot be recorded is lost: to run it early would free what the adjoint still reads.
;
; Whoever links this defines or resolves NRT_decref.

@irad.tls_key = external global i32
declare void @NRT_decref(ptr)
declare void @free(ptr)
declare ptr @malloc(i64)
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare void @irad.give_back(ptr)
declare void @irad.lanes_close(ptr, ptr)
declare void @irad.measure_stack(ptr)

; --- their life

; An arena whose header and first chunk are one block of %size bytes; null when out of memory.
define linkonce_odr ptr @irad.arena_create(i64 %size) nounwind noinline optnone {
entry:
  %arena = call ptr @malloc(i64 %size)
  %none = icmp eq ptr %arena, null
  br i1 %none, label %done, label %fill
fill:
  %raised = add i64 ${sizeof arena}, ${ROUND_UP}
  %header = and i64 %raised, -${ALIGNMENT}
  call void @llvm.memset.p0.i64(ptr align ${SMALL_ALIGNMENT} %arena, i8 0, i64 %header, i1 false)
  %base = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.base}
  call void @irad.chunk_init(ptr %base, ptr %arena, i64 %size)
  %base.end = getelementptr inbounds %irad.chunk, ptr %base, i32 0, i32 ${chunk.end}
  %end = load ptr, ptr %base.end
  %top = getelementptr i8, ptr %arena, i64 %header
  %end.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.end}
  %chunk.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.chunk}
  %mark.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.mark}
  %used.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.used}
  %held.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.held}
  %root = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.root}
  %top.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.top}
  store ptr %top, ptr %top.slot
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
  ; so that a block that fits before its start is aligned fits afterwards
  %end.address = and i64 %limit, -${ALIGNMENT}
  %length = sub i64 %end.address, %address
  %end = getelementptr i8, ptr %block, i64 %length
  %end.slot = getelementptr inbounds %irad.chunk, ptr %head, i32 0, i32 ${chunk.end}
  %size.slot = getelementptr inbounds %irad.chunk, ptr %head, i32 0, i32 ${chunk.size}
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
  %made = call ptr @irad.arena_create(i64 ${THREAD_CHUNK})
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
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.failed}
  %chunk.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.chunk}
  %mark.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.mark}
  %used.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.used}
  %top.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.top}
  %top = load ptr, ptr %top.slot
  %failed = load i32, ptr %failed.slot
  %chunk = load ptr, ptr %chunk.slot
  %used = load i64, ptr %used.slot
  %previous = load ptr, ptr %mark.slot
  %mark = call ptr @irad.arena_alloc(ptr %arena, i64 ${sizeof mark})
  %full = icmp eq ptr %mark, null
  br i1 %full, label %undo, label %fill
undo:
  store i32 %failed, ptr %failed.slot
  ret i1 false
fill:
  %mark.top = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.top}
  %mark.chunk = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.chunk}
  %mark.used = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.used}
  %mark.first = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.first_deferred}
  %mark.last = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.last_deferred}
  %mark.failed = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.failed}
  %previous.slot = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.previous}
  store ptr %previous, ptr %previous.slot
  store ptr %top, ptr %mark.top
  store ptr %chunk, ptr %mark.chunk
  store i64 %used, ptr %mark.used
  store ptr null, ptr %mark.first
  store ptr null, ptr %mark.last
  store i32 %failed, ptr %mark.failed
  %mark.lanes = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.lanes}
  store ptr null, ptr %mark.lanes
  %mark.lent = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.lent}
  store ptr null, ptr %mark.lent
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
  %mark.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.mark}
  %mark = load ptr, ptr %mark.slot
  call void @irad.run_deferred(ptr %mark)
  call void @irad.give_back(ptr %mark)
  call void @irad.lanes_close(ptr %arena, ptr %mark)
  %mark.top = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.top}
  %mark.chunk = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.chunk}
  %mark.used = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.used}
  %mark.failed = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.failed}
  %previous.slot = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.previous}
  %previous = load ptr, ptr %previous.slot
  %top = load ptr, ptr %mark.top
  %chunk = load ptr, ptr %mark.chunk
  %used = load i64, ptr %mark.used
  %failed = load i32, ptr %mark.failed
  %chunk.end = getelementptr inbounds %irad.chunk, ptr %chunk, i32 0, i32 ${chunk.end}
  %end = load ptr, ptr %chunk.end
  %end.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.end}
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.failed}
  %chunk.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.chunk}
  %used.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.used}
  %top.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.top}
  store ptr %top, ptr %top.slot
  store ptr %end, ptr %end.slot
  store i32 %failed, ptr %failed.slot
  store ptr %chunk, ptr %chunk.slot
  store ptr %previous, ptr %mark.slot
  store i64 %used, ptr %used.slot
  %root = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.root}
  %base.next = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.base}, i32 ${chunk.next}
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

; At an outermost close: frees the spare chunks that the last calls did not take, looked for now and then, and what is
; beyond the bytes to keep, at once.
define linkonce_odr void @irad.arena_trim(ptr %arena) nounwind noinline optnone {
entry:
  %used.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.used}
  %calls.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.closes}
  %held.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.held}
  %base = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.base}
  %used = load i64, ptr %used.slot
  %calls.before = load i64, ptr %calls.slot
  %held = load i64, ptr %held.slot
  %calls = add i64 %calls.before, 1
  store i64 %calls, ptr %calls.slot
  ; to walk through the chunks at every close would cost small derivatives more than their spares do
  %beat = urem i64 %calls, ${IDLE_CLOSES}
  %due = icmp eq i64 %beat, 0
  %excess = icmp ugt i64 %held, ${KEPT_BYTES}
  %work = or i1 %due, %excess
  br i1 %work, label %loop, label %done
loop:
  %link = phi ptr [ %base, %entry ], [ %chunk, %stay ], [ %link, %free ]
  %total = phi i64 [ %used, %entry ], [ %sum, %stay ], [ %total, %free ]
  %left = phi i64 [ %held, %entry ], [ %left, %stay ], [ %rest, %free ]
  %link.next = getelementptr inbounds %irad.chunk, ptr %link, i32 0, i32 ${chunk.next}
  %chunk = load ptr, ptr %link.next
  %last = icmp eq ptr %chunk, null
  br i1 %last, label %finish, label %body
body:
  %size.slot = getelementptr inbounds %irad.chunk, ptr %chunk, i32 0, i32 ${chunk.size}
  %taken.slot = getelementptr inbounds %irad.chunk, ptr %chunk, i32 0, i32 ${chunk.taken}
  %size = load i64, ptr %size.slot
  %taken = load i64, ptr %taken.slot
  %sum = add i64 %total, %size
  %beyond = icmp ugt i64 %sum, ${KEPT_BYTES}
  %age = sub i64 %calls, %taken
  %idle = icmp ugt i64 %age, ${IDLE_CLOSES}
  %useless = or i1 %beyond, %idle
  br i1 %useless, label %free, label %stay
stay:
  br label %loop
free:
  %chunk.next = getelementptr inbounds %irad.chunk, ptr %chunk, i32 0, i32 ${chunk.next}
  %next = load ptr, ptr %chunk.next
  store ptr %next, ptr %link.next
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
  %arena = call ptr @irad.arena_create(i64 ${SMALL_CHUNK})
  ret ptr %arena
}

; Runs the deferred decrefs of an arena from arena_new and frees it.
define linkonce_odr void @irad.arena_delete(ptr %arena) nounwind noinline optnone {
entry:
  %none = icmp eq ptr %arena, null
  br i1 %none, label %done, label %run
run:
  %root = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.root}
  call void @irad.run_deferred(ptr %root)
  call void @irad.give_back(ptr %root)
  call void @irad.lanes_close(ptr %arena, ptr %root)
  call void @irad.arena_release(ptr %arena)
  br label %done
done:
  ret void
}

; Frees an arena with all its chunks and spare lanes. Also compiled on its own, as the destructor of the threads' arenas.
define linkonce_odr void @irad.arena_release(ptr %arena) nounwind noinline optnone {
entry:
  %base.next = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.base}, i32 ${chunk.next}
  %lanes.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.spare_lanes}
  %first = load ptr, ptr %base.next
  %first.lane = load ptr, ptr %lanes.slot
  br label %lanes
lanes:
  %lane = phi ptr [ %first.lane, %entry ], [ %next.lane, %drop ]
  %no.lane = icmp eq ptr %lane, null
  br i1 %no.lane, label %loop, label %drop
drop:
  %next.slot = getelementptr inbounds %irad.arena, ptr %lane, i32 0, i32 ${arena.next_spare}
  %next.lane = load ptr, ptr %next.slot
  call void @irad.arena_release(ptr %lane)
  br label %lanes
loop:
  %chunk = phi ptr [ %first, %lanes ], [ %next, %body ]
  %end = icmp eq ptr %chunk, null
  br i1 %end, label %done, label %body
body:
  %chunk.next = getelementptr inbounds %irad.chunk, ptr %chunk, i32 0, i32 ${chunk.next}
  %next = load ptr, ptr %chunk.next
  call void @free(ptr %chunk)
  br label %loop
done:
  call void @free(ptr %arena)
  ret void
}

; --- allocation

; %size bytes, not cleared and aligned; null and the flag when out of memory.
; The end of a chunk is aligned, so aligning %top cannot pass it, and a negative %size is huge here.
define linkonce_odr noalias ptr @irad.arena_alloc(ptr %arena, i64 %size) nounwind alwaysinline {
entry:
  %end.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.end}
  %top.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.top}
  %top = load ptr, ptr %top.slot
  %end = load ptr, ptr %end.slot
  %top.address = ptrtoint ptr %top to i64
  %end.address = ptrtoint ptr %end to i64
  %wide = icmp ugt i64 %size, ${ROUND_UP}
  %low = select i1 %wide, i64 ${ROUND_UP}, i64 ${SMALL_ROUND_UP}
  %high = select i1 %wide, i64 -${ALIGNMENT}, i64 -${SMALL_ALIGNMENT}
  %raised = add i64 %top.address, %low
  %start.address = and i64 %raised, %high
  %room = sub i64 %end.address, %start.address
  %fits = icmp ule i64 %size, %room
  br i1 %fits, label %bump, label %grow, !prof !{!"branch_weights", i32 4000, i32 1}
bump:
  %padding = sub i64 %start.address, %top.address
  %start = getelementptr i8, ptr %top, i64 %padding
  %next = getelementptr i8, ptr %start, i64 %size
  store ptr %next, ptr %top.slot
  br label %done
grow:
  %far = call ptr @irad.arena_grow(ptr %arena, i64 %size)
  br label %done
done:
  %result = phi ptr [ %start, %bump ], [ %far, %grow ]
  ret ptr %result
}

; %size bytes of the next spare chunk that is large enough, or of a new one of the size of all before it, within bounds
; that only a request for more exceeds. That chunk becomes the current one.
define linkonce_odr noalias ptr @irad.arena_grow(ptr %arena, i64 %size) nounwind noinline cold {
entry:
  %chunk.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.chunk}
  %used.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.used}
  %calls.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.closes}
  %held.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.held}
  %current = load ptr, ptr %chunk.slot
  %used = load i64, ptr %used.slot
  %need = add i64 %size, ${CHUNK_OVERHEAD}
  ; below this the sum above cannot overflow, and a negative size is not below it
  %sane = icmp ult i64 %size, ${ADDRESS_SPACE}
  br i1 %sane, label %search, label %fail
search:
  %link = phi ptr [ %current, %entry ], [ %chunk, %next ]
  %link.next = getelementptr inbounds %irad.chunk, ptr %link, i32 0, i32 ${chunk.next}
  %chunk = load ptr, ptr %link.next
  %none = icmp eq ptr %chunk, null
  br i1 %none, label %make, label %look
look:
  %chunk.size.slot = getelementptr inbounds %irad.chunk, ptr %chunk, i32 0, i32 ${chunk.size}
  %chunk.size = load i64, ptr %chunk.size.slot
  %enough = icmp uge i64 %chunk.size, %need
  br i1 %enough, label %unlink, label %next
next:
  br label %search
unlink:
  %chunk.next = getelementptr inbounds %irad.chunk, ptr %chunk, i32 0, i32 ${chunk.next}
  %after = load ptr, ptr %chunk.next
  store ptr %after, ptr %link.next
  br label %insert
make:
  %doubled = call i64 @llvm.umax.i64(i64 %used, i64 ${SMALLEST_CHUNK})
  %capped = call i64 @llvm.umin.i64(i64 %doubled, i64 ${LARGEST_CHUNK})
  %new.size = call i64 @llvm.umax.i64(i64 %capped, i64 %need)
  %new = call ptr @malloc(i64 %new.size)
  %out = icmp eq ptr %new, null
  br i1 %out, label %fail, label %fill
fill:
  call void @irad.chunk_init(ptr %new, ptr %new, i64 %new.size)
  %held = load i64, ptr %held.slot
  %more = add i64 %held, %new.size
  store i64 %more, ptr %held.slot
  br label %insert
insert:
  %taken = phi ptr [ %chunk, %unlink ], [ %new, %fill ]
  ; right after the current chunk: the next equal call then finds the chunks in the order in which it asks for them
  %current.next = getelementptr inbounds %irad.chunk, ptr %current, i32 0, i32 ${chunk.next}
  %taken.next = getelementptr inbounds %irad.chunk, ptr %taken, i32 0, i32 ${chunk.next}
  %behind = load ptr, ptr %current.next
  store ptr %behind, ptr %taken.next
  store ptr %taken, ptr %current.next
  store ptr %taken, ptr %chunk.slot
  %size.slot = getelementptr inbounds %irad.chunk, ptr %taken, i32 0, i32 ${chunk.size}
  %taken.size = load i64, ptr %size.slot
  %now = add i64 %used, %taken.size
  %calls = load i64, ptr %calls.slot
  %taken.slot = getelementptr inbounds %irad.chunk, ptr %taken, i32 0, i32 ${chunk.taken}
  store i64 %now, ptr %used.slot
  store i64 %calls, ptr %taken.slot
  %start = call ptr @irad.chunk_start(ptr %taken)
  %top = getelementptr i8, ptr %start, i64 %size
  %taken.end = getelementptr inbounds %irad.chunk, ptr %taken, i32 0, i32 ${chunk.end}
  %end = load ptr, ptr %taken.end
  %end.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.end}
  %top.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.top}
  store ptr %top, ptr %top.slot
  store ptr %end, ptr %end.slot
  ret ptr %start
fail:
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.failed}
  store i32 ${OUT_OF_MEMORY}, ptr %failed.slot
  ret ptr null
}

; The first aligned address after the head of a chunk.
define linkonce_odr ptr @irad.chunk_start(ptr %chunk) nounwind alwaysinline {
  %address = ptrtoint ptr %chunk to i64
  %past = add i64 %address, ${FIRST_BYTE}
  %start.address = and i64 %past, -${ALIGNMENT}
  %offset = sub i64 %start.address, %address
  %start = getelementptr i8, ptr %chunk, i64 %offset
  ret ptr %start
}

; %count * %size bytes; a product beyond 64 bits is out of memory.
define linkonce_odr noalias ptr @irad.arena_alloc_product(ptr %arena, i64 %count, i64 %size) nounwind alwaysinline {
  %product = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue { i64, i1 } %product, 0
  %overflow = extractvalue { i64, i1 } %product, 1
  %request = select i1 %overflow, i64 -1, i64 %bytes
  %result = call ptr @irad.arena_alloc(ptr %arena, i64 %request)
  ret ptr %result
}

; The same as arena_alloc, for code that support functions are not inlined into.
define linkonce_odr noalias ptr @irad.arena_memory(ptr %arena, i64 %size) nounwind noinline {
  %result = call ptr @irad.arena_alloc(ptr %arena, i64 %size)
  ret ptr %result
}

; Where free memory begins: what arena_rewind goes back to.
define linkonce_odr ptr @irad.arena_top(ptr %arena) nounwind alwaysinline {
  %top.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.top}
  %top = load ptr, ptr %top.slot
  ret ptr %top
}

; Frees what was allocated since %top was the top of the arena. If that is not in the current chunk, the whole chunk was
; taken since; it stays, empty, so that a loop does not ask for one after another.
define linkonce_odr void @irad.arena_rewind(ptr %arena, ptr %top) nounwind alwaysinline {
  %chunk.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.chunk}
  %end.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.end}
  %chunk = load ptr, ptr %chunk.slot
  %end = load ptr, ptr %end.slot
  %behind = icmp ugt ptr %top, %chunk
  %before = icmp ule ptr %top, %end
  %inside = and i1 %behind, %before
  %start = call ptr @irad.chunk_start(ptr %chunk)
  %new = select i1 %inside, ptr %top, ptr %start
  %top.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.top}
  store ptr %new, ptr %top.slot
  ret void
}

; Whether an allocation failed since the innermost mark.
define linkonce_odr i1 @irad.arena_failed(ptr %arena) nounwind alwaysinline {
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.failed}
  %failed = load i32, ptr %failed.slot
  %result = icmp ne i32 %failed, 0
  ret i1 %result
}

; Records a decref for when the innermost mark is closed. Null is ignored.
define linkonce_odr void @irad.arena_defer(ptr %arena, ptr %meminfo) nounwind {
entry:
  %nothing = icmp eq ptr %meminfo, null
  br i1 %nothing, label %done, label %record
record:
  %node = call ptr @irad.arena_alloc(ptr %arena, i64 ${sizeof deferred})
  %full = icmp eq ptr %node, null
  br i1 %full, label %done, label %append
append:
  %node.meminfo = getelementptr inbounds %irad.deferred, ptr %node, i32 0, i32 ${deferred.meminfo}
  %next.slot = getelementptr inbounds %irad.deferred, ptr %node, i32 0, i32 ${deferred.next}
  store ptr null, ptr %next.slot
  store ptr %meminfo, ptr %node.meminfo
  %mark.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.mark}
  %mark = load ptr, ptr %mark.slot
  %first.slot = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.first_deferred}
  %last.slot = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.last_deferred}
  %last = load ptr, ptr %last.slot
  %empty = icmp eq ptr %last, null
  ; appended, so that objects are released in the order in which the program released them
  %last.next = getelementptr %irad.deferred, ptr %last, i32 0, i32 ${deferred.next}
  %link = select i1 %empty, ptr %first.slot, ptr %last.next
  store ptr %node, ptr %link
  store ptr %node, ptr %last.slot
  br label %done
done:
  ret void
}

; Runs the decrefs deferred since a mark was set.
define linkonce_odr void @irad.run_deferred(ptr %mark) nounwind {
entry:
  %first.slot = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.first_deferred}
  %first = load ptr, ptr %first.slot
  br label %loop
loop:
  %node = phi ptr [ %first, %entry ], [ %next, %body ]
  %end = icmp eq ptr %node, null
  br i1 %end, label %done, label %body
body:
  %meminfo.slot = getelementptr inbounds %irad.deferred, ptr %node, i32 0, i32 ${deferred.meminfo}
  %next.slot = getelementptr inbounds %irad.deferred, ptr %node, i32 0, i32 ${deferred.next}
  %next = load ptr, ptr %next.slot
  %meminfo = load ptr, ptr %meminfo.slot
  call void @NRT_decref(ptr %meminfo)
  br label %loop
done:
  ret void
}

; The shadow, zeroed, of what a program that is differentiated has allocated in %inner, an arena of its own. Null, and the
; flag of the derivative's %arena, when out of memory.
define linkonce_odr noalias ptr @irad.arena_shadow(ptr %arena, ptr %inner, i64 %size) nounwind noinline {
entry:
  %shadow = call ptr @irad.arena_alloc(ptr %inner, i64 %size)
  %none = icmp eq ptr %shadow, null
  br i1 %none, label %fail, label %clear
fail:
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.failed}
  store i32 ${OUT_OF_MEMORY}, ptr %failed.slot
  ret ptr null
clear:
  call void @llvm.memset.p0.i64(ptr %shadow, i8 0, i64 %size, i1 false)
  ret ptr %shadow
}
