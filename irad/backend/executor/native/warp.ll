; Operations of warps: shuffles, votes, matches, warp barriers.
;
; A thread that reaches one waits, with its mask, operand and value in its record. The operation is carried out as soon as
; all live threads that the mask names wait at one of the same kind with the same mask; threads that have returned, and
; lanes beyond the end of the block, do not take part. `activemask` has no mask: it stands for the threads that wait at the
; same place once nothing else in the warp can go on.
;
; States of threads say which operation they wait for (dialect.py); those from WARP_SYNC on are of warps. All memory is
; the launch's.

declare void @irad.cuda.log_warp(ptr, ptr, i32)

; Carries out what can be carried out; how many operations that were.
define i64 @irad.cuda.exchange(ptr %launch) nounwind {
entry:
  %threads.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.threads}
  %threads = load ptr, ptr %threads.slot
  %count.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.count}
  %count = load i64, ptr %count.slot
  br label %each
each:
  %first = phi i64 [ 0, %entry ], [ %next, %each ]
  %sum = phi i64 [ 0, %entry ], [ %sum.next, %each ]
  %warp = getelementptr %irad.cuda.thread, ptr %threads, i64 %first
  %left = sub i64 %count, %first
  %part = icmp ult i64 %left, ${WARP}
  %lanes = select i1 %part, i64 %left, i64 ${WARP}
  %lanes.32 = trunc i64 %lanes to i32
  %carried = call i64 @exchange_warp(ptr %launch, ptr %warp, i32 %lanes.32)
  %sum.next = add i64 %sum, %carried
  %next = add i64 %first, ${WARP}
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %done
done:
  %total.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.exchanges}
  %total = load i64, ptr %total.slot
  %total.more = add i64 %total, %sum.next
  store i64 %total.more, ptr %total.slot
  ret i64 %sum.next
}

; The same for one warp: first what has a mask, and only if there was nothing, `activemask`.
define internal i64 @exchange_warp(ptr %launch, ptr %warp, i32 %lanes) nounwind {
entry:
  %masked = call i64 @sweep_warp(ptr %launch, ptr %warp, i32 %lanes, i1 false)
  %nothing = icmp eq i64 %masked, 0
  br i1 %nothing, label %rest, label %done
rest:
  %others = call i64 @sweep_warp(ptr %launch, ptr %warp, i32 %lanes, i1 true)
  ret i64 %others
done:
  ret i64 %masked
}

; Carries out the operations of one warp, those without a mask if %by.site; how many operations that were.
define internal i64 @sweep_warp(ptr %launch, ptr %warp, i32 %lanes, i1 %by.site) nounwind {
entry:
  br label %each
each:
  %lane = phi i32 [ 0, %entry ], [ %next, %step ]
  %sum = phi i64 [ 0, %entry ], [ %sum.next, %step ]
  %thread = call ptr @lane_of(ptr %warp, i32 %lane)
  %state.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.state}
  %state = load i32, ptr %state.slot
  %is.warp = icmp uge i32 %state, ${State.WARP_SYNC}
  %is.active = icmp eq i32 %state, ${State.ACTIVEMASK}
  %right = icmp eq i1 %is.active, %by.site
  %wanted = and i1 %is.warp, %right
  br i1 %wanted, label %collect, label %step
collect:
  %group = call i32 @group_of(ptr %warp, i32 %lanes, ptr %thread, i1 %by.site)
  %complete = icmp ne i32 %group, 0
  br i1 %complete, label %carry, label %step
carry:
  call void @carry_out(ptr %launch, ptr %warp, i32 %lanes, i32 %group, i32 %state)
  br label %step
step:
  %one = phi i64 [ 0, %each ], [ 0, %collect ], [ 1, %carry ]
  %sum.next = add i64 %sum, %one
  %next = add i32 %lane, 1
  %more = icmp ult i32 %next, %lanes
  br i1 %more, label %each, label %done
done:
  ret i64 %sum.next
}

; The record of a lane's thread.
define internal ptr @lane_of(ptr %warp, i32 %lane) nounwind alwaysinline {
  %lane.64 = zext i32 %lane to i64
  %thread = getelementptr %irad.cuda.thread, ptr %warp, i64 %lane.64
  ret ptr %thread
}

; The lanes that take part in the operation at which a thread waits; 0 if one of them is not there yet, or if the mask of
; the thread leaves itself out.
define internal i32 @group_of(ptr %warp, i32 %lanes, ptr %thread, i1 %by.site) nounwind {
entry:
  %state.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.state}
  %state = load i32, ptr %state.slot
  %site.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.site}
  %site = load i32, ptr %site.slot
  %mask.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.mask}
  %mask = load i32, ptr %mask.slot
  %index.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.index}
  %index = load i32, ptr %index.slot
  %own.lane = and i32 %index, ${LAST_LANE}
  %own = shl i32 1, %own.lane
  %inside = and i32 %mask, %own
  %outside = icmp eq i32 %inside, 0
  %masked = xor i1 %by.site, true
  %wrong = and i1 %outside, %masked
  br i1 %wrong, label %incomplete, label %each
each:
  %lane = phi i32 [ 0, %entry ], [ %next, %step ]
  %group = phi i32 [ 0, %entry ], [ %group.next, %step ]
  %bit = shl i32 1, %lane
  %other = call ptr @lane_of(ptr %warp, i32 %lane)
  %other.state.slot = getelementptr inbounds %irad.cuda.thread, ptr %other, i32 0, i32 ${thread.state}
  %other.state = load i32, ptr %other.state.slot
  %same.state = icmp eq i32 %other.state, %state
  %with = or i32 %group, %bit
  br i1 %by.site, label %compare.site, label %compare.mask
compare.site:
  %other.site.slot = getelementptr inbounds %irad.cuda.thread, ptr %other, i32 0, i32 ${thread.site}
  %other.site = load i32, ptr %other.site.slot
  %same.site = icmp eq i32 %other.site, %site
  %together = and i1 %same.state, %same.site
  %group.site = select i1 %together, i32 %with, i32 %group
  br label %step
compare.mask:
  %named.bit = and i32 %mask, %bit
  %named = icmp ne i32 %named.bit, 0
  %live = icmp ne i32 %other.state, ${State.FINISHED}
  %needed = and i1 %named, %live
  br i1 %needed, label %check, label %step
check:
  %other.mask.slot = getelementptr inbounds %irad.cuda.thread, ptr %other, i32 0, i32 ${thread.mask}
  %other.mask = load i32, ptr %other.mask.slot
  %same.mask = icmp eq i32 %other.mask, %mask
  %there = and i1 %same.state, %same.mask
  br i1 %there, label %step, label %incomplete
step:
  %group.next = phi i32 [ %group.site, %compare.site ], [ %group, %compare.mask ], [ %with, %check ]
  %next = add i32 %lane, 1
  %more = icmp ult i32 %next, %lanes
  br i1 %more, label %each, label %done
done:
  ret i32 %group.next
incomplete:
  ret i32 0
}

; Gives each thread of the group its result and makes it ready.
define internal void @carry_out(ptr %launch, ptr %warp, i32 %lanes, i32 %group, i32 %state) nounwind {
entry:
  %values = alloca [${WARP} x i64], align ${SMALL_ALIGNMENT}
  %holding = call i32 @collect(ptr %warp, i32 %lanes, i32 %group, ptr %values)
  %synchronises = icmp eq i32 %state, ${State.WARP_SYNC}
  br i1 %synchronises, label %log, label %loop
log:
  call void @irad.cuda.log_warp(ptr %launch, ptr %warp, i32 %group)
  br label %loop
loop:
  br label %each
each:
  %lane = phi i32 [ 0, %loop ], [ %next, %step ]
  %bit = shl i32 1, %lane
  %member.bit = and i32 %group, %bit
  %member = icmp ne i32 %member.bit, 0
  br i1 %member, label %answer, label %step
answer:
  %thread = call ptr @lane_of(ptr %warp, i32 %lane)
  %result = call i64 @result_of(ptr %thread, i32 %lane, i32 %state, i32 %group, i32 %holding, ptr %values)
  %value.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.value}
  store i64 %result, ptr %value.slot
  %state.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.state}
  store i32 ${State.READY}, ptr %state.slot
  %clock.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.clock}
  %clock = load i32, ptr %clock.slot
  %tick = zext i1 %synchronises to i32
  %clock.next = add i32 %clock, %tick
  store i32 %clock.next, ptr %clock.slot
  br label %step
step:
  %next = add i32 %lane, 1
  %more = icmp ult i32 %next, %lanes
  br i1 %more, label %each, label %done
done:
  ret void
}

; The values of the group, all ones for other lanes, and the lanes whose predicate holds.
define internal i32 @collect(ptr %warp, i32 %lanes, i32 %group, ptr %values) nounwind {
entry:
  br label %each
each:
  %lane = phi i32 [ 0, %entry ], [ %next, %step ]
  %holding = phi i32 [ 0, %entry ], [ %holding.next, %step ]
  %lane.64 = zext i32 %lane to i64
  %to = getelementptr i64, ptr %values, i64 %lane.64
  store i64 -1, ptr %to
  %bit = shl i32 1, %lane
  %member.bit = and i32 %group, %bit
  %member = icmp ne i32 %member.bit, 0
  br i1 %member, label %take, label %step
take:
  %thread = call ptr @lane_of(ptr %warp, i32 %lane)
  %value.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.value}
  %value = load i64, ptr %value.slot
  store i64 %value, ptr %to
  %operand.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.operand}
  %operand = load i32, ptr %operand.slot
  %holds = icmp ne i32 %operand, 0
  %with = or i32 %holding, %bit
  %more.holding = select i1 %holds, i32 %with, i32 %holding
  br label %step
step:
  %holding.next = phi i32 [ %holding, %each ], [ %more.holding, %take ]
  %next = add i32 %lane, 1
  %more = icmp ult i32 %next, ${WARP}
  br i1 %more, label %each, label %done
done:
  ret i32 %holding.next
}

; As PTX defines it: lane and delta are taken modulo 32, and a shuffle from beyond the warp gives the own value.
define internal i64 @result_of(ptr %thread, i32 %lane, i32 %state, i32 %group, i32 %holding, ptr %values) nounwind {
entry:
  %operand.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.operand}
  %operand = load i32, ptr %operand.slot
  %b = and i32 %operand, ${LAST_LANE}
  switch i32 %state, label %nothing [
    i32 ${State.SHUFFLE_IDX}, label %idx
    i32 ${State.SHUFFLE_UP}, label %up
    i32 ${State.SHUFFLE_DOWN}, label %down
    i32 ${State.SHUFFLE_BFLY}, label %bfly
    i32 ${State.VOTE_ALL}, label %all
    i32 ${State.VOTE_ANY}, label %any
    i32 ${State.VOTE_UNI}, label %uni
    i32 ${State.VOTE_BALLOT}, label %ballot
    i32 ${State.MATCH_ANY}, label %match
    i32 ${State.ACTIVEMASK}, label %active
  ]
nothing:
  ret i64 0
idx:
  br label %shuffle
up:
  %up.lane = sub i32 %lane, %b
  br label %shuffle
down:
  %down.lane = add i32 %lane, %b
  br label %shuffle
bfly:
  %bfly.lane = xor i32 %lane, %b
  br label %shuffle
shuffle:
  %wanted = phi i32 [ %b, %idx ], [ %up.lane, %up ], [ %down.lane, %down ], [ %bfly.lane, %bfly ]
  %beyond = icmp ugt i32 %wanted, ${LAST_LANE}
  %source = select i1 %beyond, i32 %lane, i32 %wanted
  %source.64 = zext i32 %source to i64
  %from = getelementptr i64, ptr %values, i64 %source.64
  %value = load i64, ptr %from
  ret i64 %value
all:
  %is.all = icmp eq i32 %holding, %group
  %all.64 = zext i1 %is.all to i64
  ret i64 %all.64
any:
  %is.any = icmp ne i32 %holding, 0
  %any.64 = zext i1 %is.any to i64
  ret i64 %any.64
uni:
  %uni.all = icmp eq i32 %holding, %group
  %uni.none = icmp eq i32 %holding, 0
  %is.uni = or i1 %uni.all, %uni.none
  %uni.64 = zext i1 %is.uni to i64
  ret i64 %uni.64
ballot:
  %ballot.64 = zext i32 %holding to i64
  ret i64 %ballot.64
active:
  %active.64 = zext i32 %group to i64
  ret i64 %active.64
match:
  %lane.64 = zext i32 %lane to i64
  %own.slot = getelementptr i64, ptr %values, i64 %lane.64
  %own = load i64, ptr %own.slot
  %equal = call i32 @equal_lanes(i32 %group, ptr %values, i64 %own)
  %match.64 = zext i32 %equal to i64
  ret i64 %match.64
}

; The lanes of a group that have a value.
define internal i32 @equal_lanes(i32 %group, ptr %values, i64 %wanted) nounwind {
entry:
  br label %each
each:
  %lane = phi i32 [ 0, %entry ], [ %next, %each ]
  %equal = phi i32 [ 0, %entry ], [ %equal.next, %each ]
  %lane.64 = zext i32 %lane to i64
  %from = getelementptr i64, ptr %values, i64 %lane.64
  %value = load i64, ptr %from
  %same = icmp eq i64 %value, %wanted
  %bit = shl i32 1, %lane
  %with = or i32 %equal, %bit
  %equal.next = select i1 %same, i32 %with, i32 %equal
  %next = add i32 %lane, 1
  %more = icmp ult i32 %next, ${WARP}
  br i1 %more, label %each, label %done
done:
  %members = and i32 %equal.next, %group
  ret i32 %members
}
