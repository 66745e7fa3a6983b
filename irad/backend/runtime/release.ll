; Frees an arena with all its chunks and spare lanes. Also compiled on its own, as the destructor of the threads' arenas.

declare void @free(ptr)

define linkonce_odr void @irad.arena_release(ptr %arena) nounwind noinline {
entry:
  %base.next = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 9, i32 0
  %lanes.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 12
  %first = load ptr, ptr %base.next
  %first.lane = load ptr, ptr %lanes.slot
  br label %lanes
lanes:
  %lane = phi ptr [ %first.lane, %entry ], [ %next.lane, %drop ]
  %no.lane = icmp eq ptr %lane, null
  br i1 %no.lane, label %loop, label %drop
drop:
  %next.slot = getelementptr inbounds %irad.arena, ptr %lane, i32 0, i32 13
  %next.lane = load ptr, ptr %next.slot
  call void @irad.arena_release(ptr %lane)
  br label %lanes
loop:
  %chunk = phi ptr [ %first, %lanes ], [ %next, %body ]
  %end = icmp eq ptr %chunk, null
  br i1 %end, label %done, label %body
body:
  %next = load ptr, ptr %chunk
  call void @free(ptr %chunk)
  br label %loop
done:
  call void @free(ptr %arena)
  ret void
}
