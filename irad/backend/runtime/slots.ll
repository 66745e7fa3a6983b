; Workspace that rules keep from one call of a derivative to the next.
;
; A pool belongs to the pair of one rule. It holds the slots that no call uses, as a stack:
;
;     pool ──▶ spare slot ──▶ spare slot ──▶ …
;     mark ──▶ slot lent last ──▶ slot lent before ──▶ …
;
; Ownership:
; * slot_take lends a slot to the innermost mark of an arena, so a slot belongs to one live call. When the mark is closed,
;   however the derivative ends, its slots go back to their pools, the newest first: the next derivative that makes the
;   same calls finds for each the slot that it had before.
; * A slot begins with the header %irad.slot; what the rule keeps follows. Whoever makes a slot allocates it.
; * Pools may be used by several threads at a time: a lock guards the few instructions that change the stack. They are
;   never freed, for code and live slots refer to them.
; * pool_close releases the spare slots, and has those in use released when they are given back. The pool can be used
;   afterwards.

declare i32 @sched_yield()

; Waits until the pool is free. The lock guards a few instructions, so a system call that gives the processor away will do.
define linkonce_odr void @irad.pool_lock(ptr %pool) nounwind noinline optnone {
entry:
  %locked.slot = getelementptr inbounds %irad.pool, ptr %pool, i32 0, i32 ${pool.locked}
  br label %try
try:
  %held = atomicrmw xchg ptr %locked.slot, i32 1 acquire
  %free = icmp eq i32 %held, 0
  br i1 %free, label %done, label %wait
wait:
  %status = call i32 @sched_yield()
  br label %try
done:
  ret void
}

define linkonce_odr void @irad.pool_unlock(ptr %pool) nounwind noinline optnone {
  %locked.slot = getelementptr inbounds %irad.pool, ptr %pool, i32 0, i32 ${pool.locked}
  store atomic i32 0, ptr %locked.slot release, align 4
  ret void
}

; A spare slot, lent to the innermost mark of %arena; null if there is none.
define linkonce_odr ptr @irad.slot_take(ptr %pool, ptr %arena) nounwind noinline {
entry:
  %first.slot = getelementptr inbounds %irad.pool, ptr %pool, i32 0, i32 ${pool.first}
  %spare.slot = getelementptr inbounds %irad.pool, ptr %pool, i32 0, i32 ${pool.spare}
  call void @irad.pool_lock(ptr %pool)
  %slot = load ptr, ptr %first.slot
  %none = icmp eq ptr %slot, null
  br i1 %none, label %fail, label %take
take:
  %next.slot = getelementptr inbounds %irad.slot, ptr %slot, i32 0, i32 ${slot.next}
  %next = load ptr, ptr %next.slot
  %spare = load i64, ptr %spare.slot
  %fewer = sub i64 %spare, 1
  store ptr %next, ptr %first.slot
  store i64 %fewer, ptr %spare.slot
  call void @irad.pool_unlock(ptr %pool)
  call void @irad.slot_lend(ptr %slot, ptr %arena)
  ret ptr %slot
fail:
  call void @irad.pool_unlock(ptr %pool)
  ret ptr null
}

; Makes a new slot one of a pool and lends it to the innermost mark of %arena.
define linkonce_odr void @irad.slot_add(ptr %pool, ptr %arena, ptr %slot, ptr %release) nounwind noinline {
  %closed.slot = getelementptr inbounds %irad.pool, ptr %pool, i32 0, i32 ${pool.closed}
  %all.slot = getelementptr inbounds %irad.pool, ptr %pool, i32 0, i32 ${pool.all}
  %slot.pool = getelementptr inbounds %irad.slot, ptr %slot, i32 0, i32 ${slot.pool}
  %slot.closed = getelementptr inbounds %irad.slot, ptr %slot, i32 0, i32 ${slot.closed}
  %slot.release = getelementptr inbounds %irad.slot, ptr %slot, i32 0, i32 ${slot.release}
  call void @irad.pool_lock(ptr %pool)
  %closed = load i64, ptr %closed.slot
  %all = load i64, ptr %all.slot
  %more = add i64 %all, 1
  store i64 %more, ptr %all.slot
  call void @irad.pool_unlock(ptr %pool)
  store ptr %pool, ptr %slot.pool
  store i64 %closed, ptr %slot.closed
  store ptr %release, ptr %slot.release
  call void @irad.slot_lend(ptr %slot, ptr %arena)
  ret void
}

; Makes a slot the last one that was lent to the innermost mark of %arena.
define linkonce_odr void @irad.slot_lend(ptr %slot, ptr %arena) nounwind noinline {
  %mark.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.mark}
  %mark = load ptr, ptr %mark.slot
  %lent.slot = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.lent}
  %before = load ptr, ptr %lent.slot
  %next.slot = getelementptr inbounds %irad.slot, ptr %slot, i32 0, i32 ${slot.next}
  store ptr %before, ptr %next.slot
  store ptr %slot, ptr %lent.slot
  ret void
}

; Gives the slots that were lent to a mark back to their pools.
define linkonce_odr void @irad.give_back(ptr %mark) nounwind noinline optnone {
entry:
  %lent.slot = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.lent}
  %last = load ptr, ptr %lent.slot
  store ptr null, ptr %lent.slot
  br label %loop
loop:
  %slot = phi ptr [ %last, %entry ], [ %next, %body ]
  %end = icmp eq ptr %slot, null
  br i1 %end, label %done, label %body
body:
  %next.slot = getelementptr inbounds %irad.slot, ptr %slot, i32 0, i32 ${slot.next}
  %next = load ptr, ptr %next.slot
  call void @irad.slot_give(ptr %slot)
  br label %loop
done:
  ret void
}

; A slot becomes a spare one, unless its pool was closed meanwhile: then it is released.
define linkonce_odr void @irad.slot_give(ptr %slot) nounwind noinline optnone {
entry:
  %slot.pool = getelementptr inbounds %irad.slot, ptr %slot, i32 0, i32 ${slot.pool}
  %slot.closed = getelementptr inbounds %irad.slot, ptr %slot, i32 0, i32 ${slot.closed}
  %slot.release = getelementptr inbounds %irad.slot, ptr %slot, i32 0, i32 ${slot.release}
  %pool = load ptr, ptr %slot.pool
  %made = load i64, ptr %slot.closed
  %release = load ptr, ptr %slot.release
  %closed.slot = getelementptr inbounds %irad.pool, ptr %pool, i32 0, i32 ${pool.closed}
  %first.slot = getelementptr inbounds %irad.pool, ptr %pool, i32 0, i32 ${pool.first}
  %spare.slot = getelementptr inbounds %irad.pool, ptr %pool, i32 0, i32 ${pool.spare}
  %all.slot = getelementptr inbounds %irad.pool, ptr %pool, i32 0, i32 ${pool.all}
  call void @irad.pool_lock(ptr %pool)
  %closed = load i64, ptr %closed.slot
  %current = icmp eq i64 %made, %closed
  br i1 %current, label %keep, label %drop
keep:
  %first = load ptr, ptr %first.slot
  %spare = load i64, ptr %spare.slot
  %more = add i64 %spare, 1
  %next.slot = getelementptr inbounds %irad.slot, ptr %slot, i32 0, i32 ${slot.next}
  store ptr %first, ptr %next.slot
  store ptr %slot, ptr %first.slot
  store i64 %more, ptr %spare.slot
  call void @irad.pool_unlock(ptr %pool)
  ret void
drop:
  %all = load i64, ptr %all.slot
  %fewer = sub i64 %all, 1
  store i64 %fewer, ptr %all.slot
  ; without the lock: releasing may run code that uses the pool
  call void @irad.pool_unlock(ptr %pool)
  call void %release(ptr %slot)
  ret void
}

; Releases the spare slots of a pool; those in use are released when they are given back.
define linkonce_odr void @irad.pool_close(ptr %pool) nounwind noinline optnone {
entry:
  %closed.slot = getelementptr inbounds %irad.pool, ptr %pool, i32 0, i32 ${pool.closed}
  %first.slot = getelementptr inbounds %irad.pool, ptr %pool, i32 0, i32 ${pool.first}
  %spare.slot = getelementptr inbounds %irad.pool, ptr %pool, i32 0, i32 ${pool.spare}
  %all.slot = getelementptr inbounds %irad.pool, ptr %pool, i32 0, i32 ${pool.all}
  call void @irad.pool_lock(ptr %pool)
  %closed = load i64, ptr %closed.slot
  %again = add i64 %closed, 1
  %first = load ptr, ptr %first.slot
  %spare = load i64, ptr %spare.slot
  %all = load i64, ptr %all.slot
  %left = sub i64 %all, %spare
  store i64 %again, ptr %closed.slot
  store ptr null, ptr %first.slot
  store i64 0, ptr %spare.slot
  store i64 %left, ptr %all.slot
  call void @irad.pool_unlock(ptr %pool)
  br label %loop
loop:
  %slot = phi ptr [ %first, %entry ], [ %next, %body ]
  %end = icmp eq ptr %slot, null
  br i1 %end, label %done, label %body
body:
  %next.slot = getelementptr inbounds %irad.slot, ptr %slot, i32 0, i32 ${slot.next}
  %next = load ptr, ptr %next.slot
  %slot.release = getelementptr inbounds %irad.slot, ptr %slot, i32 0, i32 ${slot.release}
  %release = load ptr, ptr %slot.release
  call void %release(ptr %slot)
  br label %loop
done:
  ret void
}
