; Arenas for the lanes of parallel loops: each lane saves what it saves in an arena of its own, since an arena serves one
; thread at a time.
;
; Ownership: the arenas of a loop hang, as %irad.lanes, on the innermost mark of the arena of the thread that launches it.
; They live from the forward sweep to the close of that mark, so the reverse sweep finds them again. Closing makes them
; spares of that arena, which frees them with itself.

declare i64 @llvm.umax.i64(i64, i64)
declare ptr @irad.arena_alloc(ptr, i64)
declare ptr @irad.arena_alloc_product(ptr, i64, i64)
declare void @irad.arena_close(ptr)
declare i1 @irad.arena_failed(ptr)
declare ptr @irad.arena_new()
declare i1 @irad.arena_push(ptr)
declare void @irad.arena_release(ptr)

; The arenas of %count lanes, as an array; they live as long as what the innermost mark of %arena was opened for.
; Null and the flag when out of memory.
define linkonce_odr ptr @irad.lanes_open(ptr %arena, i64 %count) nounwind noinline {
entry:
  %table = call ptr @irad.arena_alloc_product(ptr %arena, i64 %count, i64 ${WORD})
  %node = call ptr @irad.arena_alloc(ptr %arena, i64 ${sizeof lanes})
  %no.table = icmp eq ptr %table, null
  %no.node = icmp eq ptr %node, null
  %none = or i1 %no.table, %no.node
  br i1 %none, label %fail, label %hang
hang:
  %mark.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.mark}
  %mark = load ptr, ptr %mark.slot
  %lanes.slot = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.lanes}
  %before = load ptr, ptr %lanes.slot
  %node.table = getelementptr inbounds %irad.lanes, ptr %node, i32 0, i32 ${lanes.arenas}
  %node.count = getelementptr inbounds %irad.lanes, ptr %node, i32 0, i32 ${lanes.count}
  %before.slot = getelementptr inbounds %irad.lanes, ptr %node, i32 0, i32 ${lanes.before}
  store ptr %before, ptr %before.slot
  store ptr %table, ptr %node.table
  store i64 0, ptr %node.count
  store ptr %node, ptr %lanes.slot
  br label %loop
loop:
  %i = phi i64 [ 0, %hang ], [ %next, %keep ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %done, label %make
make:
  %lane = call ptr @irad.lane_open(ptr %arena)
  %empty = icmp eq ptr %lane, null
  br i1 %empty, label %fail, label %keep
keep:
  %slot = getelementptr ptr, ptr %table, i64 %i
  %next = add i64 %i, 1
  store ptr %lane, ptr %slot
  store i64 %next, ptr %node.count
  br label %loop
done:
  ret ptr %table
fail:
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.failed}
  store i32 ${OUT_OF_MEMORY}, ptr %failed.slot
  ret ptr null
}

; An arena with a new mark: a spare one of %arena, or a new one.
define linkonce_odr ptr @irad.lane_open(ptr %arena) nounwind noinline {
entry:
  %spare.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.spare_lanes}
  %spare = load ptr, ptr %spare.slot
  %none = icmp eq ptr %spare, null
  br i1 %none, label %make, label %take
take:
  %next.slot = getelementptr inbounds %irad.arena, ptr %spare, i32 0, i32 ${arena.next_spare}
  %next = load ptr, ptr %next.slot
  store ptr %next, ptr %spare.slot
  br label %push
make:
  %new = call ptr @irad.arena_new()
  %out = icmp eq ptr %new, null
  br i1 %out, label %fail, label %push
push:
  %lane = phi ptr [ %spare, %take ], [ %new, %make ]
  %pushed = call i1 @irad.arena_push(ptr %lane)
  br i1 %pushed, label %done, label %drop
drop:
  call void @irad.arena_release(ptr %lane)
  br label %fail
fail:
  ret ptr null
done:
  ret ptr %lane
}

; Closes a lane's arena; it becomes a spare one of %arena if it holds no more than %most bytes.
define linkonce_odr void @irad.lane_close(ptr %arena, ptr %lane, i64 %most) nounwind noinline optnone {
entry:
  call void @irad.arena_close(ptr %lane)
  %held.slot = getelementptr inbounds %irad.arena, ptr %lane, i32 0, i32 ${arena.held}
  %held = load i64, ptr %held.slot
  %large = icmp ugt i64 %held, %most
  br i1 %large, label %drop, label %keep
drop:
  call void @irad.arena_release(ptr %lane)
  ret void
keep:
  %spare.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.spare_lanes}
  %next.slot = getelementptr inbounds %irad.arena, ptr %lane, i32 0, i32 ${arena.next_spare}
  %before = load ptr, ptr %spare.slot
  store ptr %before, ptr %next.slot
  store ptr %lane, ptr %spare.slot
  ret void
}

; Sets the flag of %arena if that of one of its lanes is set, and takes the lane's back; with why there is no pair.
define linkonce_odr void @irad.lanes_failed(ptr %arena, ptr %table, i64 %count) nounwind noinline {
entry:
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.failed}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %look ], [ %next, %set ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %done, label %look
look:
  %slot = getelementptr ptr, ptr %table, i64 %i
  %lane = load ptr, ptr %slot
  %failed = call i1 @irad.arena_failed(ptr %lane)
  %next = add i64 %i, 1
  br i1 %failed, label %set, label %loop
set:
  %reason.slot = getelementptr inbounds %irad.arena, ptr %lane, i32 0, i32 ${arena.failed}
  %reason = load i32, ptr %reason.slot
  store i32 %reason, ptr %failed.slot
  store i32 0, ptr %reason.slot
  ; what is pending belongs to this reason alone
  %no.pair = icmp eq i32 %reason, ${PAIR_MISSING}
  %lane.why.slot = getelementptr inbounds %irad.arena, ptr %lane, i32 0, i32 ${arena.pending}
  %why.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.pending}
  %lane.why = load ptr, ptr %lane.why.slot
  %why = select i1 %no.pair, ptr %lane.why, ptr null
  store ptr %why, ptr %why.slot
  br label %loop
done:
  ret void
}

; Closes the arenas of all lanes that hang on a mark of %arena; the spares of a loop keep no more than one arena does.
define linkonce_odr void @irad.lanes_close(ptr %arena, ptr %mark) nounwind noinline optnone {
entry:
  %lanes.slot = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.lanes}
  %first = load ptr, ptr %lanes.slot
  br label %nodes
nodes:
  %node = phi ptr [ %first, %entry ], [ %after, %lanes ]
  %last = icmp eq ptr %node, null
  br i1 %last, label %done, label %enter
enter:
  %before.slot = getelementptr inbounds %irad.lanes, ptr %node, i32 0, i32 ${lanes.before}
  %after = load ptr, ptr %before.slot
  %table.slot = getelementptr inbounds %irad.lanes, ptr %node, i32 0, i32 ${lanes.arenas}
  %count.slot = getelementptr inbounds %irad.lanes, ptr %node, i32 0, i32 ${lanes.count}
  %table = load ptr, ptr %table.slot
  %count = load i64, ptr %count.slot
  %divisor = call i64 @llvm.umax.i64(i64 %count, i64 1)
  %most = udiv i64 ${KEPT_BYTES}, %divisor
  br label %lanes
lanes:
  %i = phi i64 [ 0, %enter ], [ %next, %drop ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %nodes, label %drop
drop:
  %slot = getelementptr ptr, ptr %table, i64 %i
  %lane = load ptr, ptr %slot
  call void @irad.lane_close(ptr %arena, ptr %lane, i64 %most)
  %next = add i64 %i, 1
  br label %lanes
done:
  ret void
}
