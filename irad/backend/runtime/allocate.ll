; Allocation in an arena, and deferred decrefs. The arena itself: arena.ll.

declare void @NRT_decref(ptr)
declare ptr @malloc(i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare void @irad.chunk_init(ptr, ptr, i64)

; %size bytes, not cleared, at a multiple of 64 (16 when %size < 64); null and the flag when out of memory.
; The end of a chunk is a multiple of 64, so aligning %top cannot pass it, and a negative %size is huge here.
define linkonce_odr noalias ptr @irad.arena_alloc(ptr %arena, i64 %size) nounwind alwaysinline {
entry:
  %end.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 1
  %top = load ptr, ptr %arena
  %end = load ptr, ptr %end.slot
  %top.address = ptrtoint ptr %top to i64
  %end.address = ptrtoint ptr %end to i64
  %wide = icmp ugt i64 %size, 63
  %low = select i1 %wide, i64 63, i64 15
  %high = select i1 %wide, i64 -64, i64 -16
  %raised = add i64 %top.address, %low
  %start.address = and i64 %raised, %high
  %room = sub i64 %end.address, %start.address
  %fits = icmp ule i64 %size, %room
  br i1 %fits, label %bump, label %grow, !prof !{!"branch_weights", i32 4000, i32 1}
bump:
  %padding = sub i64 %start.address, %top.address
  %start = getelementptr i8, ptr %top, i64 %padding
  %next = getelementptr i8, ptr %start, i64 %size
  store ptr %next, ptr %arena
  br label %done
grow:
  %far = call ptr @irad.arena_grow(ptr %arena, i64 %size)
  br label %done
done:
  %result = phi ptr [ %start, %bump ], [ %far, %grow ]
  ret ptr %result
}

; The same in the next spare chunk that is large enough, or in a new one of the size of all before it: 64 KiB to 32 MiB,
; more only for a request that asks for more.
define linkonce_odr noalias ptr @irad.arena_grow(ptr %arena, i64 %size) nounwind noinline cold {
entry:
  %chunk.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 3
  %used.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 5
  %calls.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 6
  %held.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 7
  %current = load ptr, ptr %chunk.slot
  %used = load i64, ptr %used.slot
  %spare = load ptr, ptr %current
  %need = add i64 %size, 160                       ; the head, and 64 for each alignment
  %sane = icmp ult i64 %size, 140737488355328      ; 2^47: more than any address space has
  br i1 %sane, label %search, label %fail
search:
  %link = phi ptr [ %current, %entry ], [ %chunk, %next ]
  %chunk = load ptr, ptr %link
  %none = icmp eq ptr %chunk, null
  br i1 %none, label %make, label %look
look:
  %chunk.size.slot = getelementptr inbounds %irad.chunk, ptr %chunk, i32 0, i32 2
  %chunk.size = load i64, ptr %chunk.size.slot
  %enough = icmp uge i64 %chunk.size, %need
  br i1 %enough, label %unlink, label %next
next:
  br label %search
unlink:
  %after = load ptr, ptr %chunk
  store ptr %after, ptr %link
  br label %insert
make:
  %doubled = call i64 @llvm.umax.i64(i64 %used, i64 65536)
  %capped = call i64 @llvm.umin.i64(i64 %doubled, i64 33554432)
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
  %behind = load ptr, ptr %current
  store ptr %behind, ptr %taken
  store ptr %taken, ptr %current
  store ptr %taken, ptr %chunk.slot
  %size.slot = getelementptr inbounds %irad.chunk, ptr %taken, i32 0, i32 2
  %taken.size = load i64, ptr %size.slot
  %now = add i64 %used, %taken.size
  %calls = load i64, ptr %calls.slot
  %taken.slot = getelementptr inbounds %irad.chunk, ptr %taken, i32 0, i32 3
  store i64 %now, ptr %used.slot
  store i64 %calls, ptr %taken.slot
  %address = ptrtoint ptr %taken to i64
  %past = add i64 %address, 95                     ; the head of 32 bytes and 63
  %start.address = and i64 %past, -64
  %offset = sub i64 %start.address, %address
  %start = getelementptr i8, ptr %taken, i64 %offset
  %top = getelementptr i8, ptr %start, i64 %size
  %taken.end = getelementptr inbounds %irad.chunk, ptr %taken, i32 0, i32 1
  %end = load ptr, ptr %taken.end
  %end.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 1
  store ptr %top, ptr %arena
  store ptr %end, ptr %end.slot
  ret ptr %start
fail:
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 2
  store i32 1, ptr %failed.slot
  ret ptr null
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
  %top = load ptr, ptr %arena
  ret ptr %top
}

; Frees what was allocated since %top was the top of the arena. If that is not in the current chunk, the whole chunk was
; taken since; it stays, empty, so that a loop does not ask for one after another.
define linkonce_odr void @irad.arena_rewind(ptr %arena, ptr %top) nounwind alwaysinline {
  %chunk.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 3
  %end.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 1
  %chunk = load ptr, ptr %chunk.slot
  %end = load ptr, ptr %end.slot
  %behind = icmp ugt ptr %top, %chunk
  %before = icmp ule ptr %top, %end
  %inside = and i1 %behind, %before
  %address = ptrtoint ptr %chunk to i64
  %past = add i64 %address, 95                     ; as in arena_grow
  %start.address = and i64 %past, -64
  %offset = sub i64 %start.address, %address
  %start = getelementptr i8, ptr %chunk, i64 %offset
  %new = select i1 %inside, ptr %top, ptr %start
  store ptr %new, ptr %arena
  ret void
}

; Whether an allocation failed since the innermost mark.
define linkonce_odr i1 @irad.arena_failed(ptr %arena) nounwind alwaysinline {
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 2
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
  %node = call ptr @irad.arena_alloc(ptr %arena, i64 ptrtoint (ptr getelementptr (%irad.deferred, ptr null, i32 1) to i64))
  %full = icmp eq ptr %node, null
  br i1 %full, label %done, label %append
append:
  %node.meminfo = getelementptr inbounds %irad.deferred, ptr %node, i32 0, i32 1
  store ptr null, ptr %node
  store ptr %meminfo, ptr %node.meminfo
  %mark.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 4
  %mark = load ptr, ptr %mark.slot
  %first.slot = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 4
  %last.slot = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 5
  %last = load ptr, ptr %last.slot
  %empty = icmp eq ptr %last, null
  %link = select i1 %empty, ptr %first.slot, ptr %last
  store ptr %node, ptr %link
  store ptr %node, ptr %last.slot
  br label %done
done:
  ret void
}

define linkonce_odr void @irad.run_deferred(ptr %mark) nounwind {
entry:
  %first.slot = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 4
  %first = load ptr, ptr %first.slot
  br label %loop
loop:
  %node = phi ptr [ %first, %entry ], [ %next, %body ]
  %end = icmp eq ptr %node, null
  br i1 %end, label %done, label %body
body:
  %meminfo.slot = getelementptr inbounds %irad.deferred, ptr %node, i32 0, i32 1
  %next = load ptr, ptr %node
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
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 2
  store i32 1, ptr %failed.slot
  ret ptr null
clear:
  call void @llvm.memset.p0.i64(ptr %shadow, i8 0, i64 %size, i1 false)
  ret ptr %shadow
}
