; Pairs of functions that are known only when they are called.
;
; A table holds the pairs of one variant: functions of one type, with parameters that take part in one way. It is a list,
; by the address of the primal. Entries are added in front, never changed, never removed: no lock to read it.
;
;     table ┬ first ──▶ next, address of the primal, augmented, reverse, bytes of frame ──▶ …
;           └ resolver: entry (table, address, place), or null; asked for an address that is not in the list
;
; Ownership: tables and entries belong to the front end and are never freed, since code and other threads refer to them.
;
; The resolver compiles the pair and adds it, or finds that there is none: that is the front end's business. What it
; writes to the place says why; it waits in the arena, and lanes pass it on, for it is another thread that raises it.

; The entry of an address; null and the flag where there is none.
define linkonce_odr ptr @irad.pointer_pair(ptr %arena, ptr %table, ptr %address) nounwind noinline {
entry:
  %first.slot = getelementptr inbounds %irad.pairs, ptr %table, i32 0, i32 ${pairs.first}
  ; acquire: an entry that is seen here is seen complete
  %first = load atomic ptr, ptr %first.slot acquire, align 8
  br label %look
look:
  %item = phi ptr [ %first, %entry ], [ %next, %other ]
  %end = icmp eq ptr %item, null
  br i1 %end, label %miss, label %compare
compare:
  %key.slot = getelementptr inbounds %irad.pair, ptr %item, i32 0, i32 ${pair.address}
  %key = load ptr, ptr %key.slot
  %same = icmp eq ptr %key, %address
  br i1 %same, label %found, label %other
other:
  %next.slot = getelementptr inbounds %irad.pair, ptr %item, i32 0, i32 ${pair.next}
  %next = load ptr, ptr %next.slot
  br label %look
miss:
  %resolver.slot = getelementptr inbounds %irad.pairs, ptr %table, i32 0, i32 ${pairs.resolver}
  %resolver = load ptr, ptr %resolver.slot
  %why.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.pending}
  %made = call ptr %resolver(ptr %table, ptr %address, ptr %why.slot)
  %none = icmp eq ptr %made, null
  br i1 %none, label %fail, label %found
fail:
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.failed}
  store i32 ${PAIR_MISSING}, ptr %failed.slot
  br label %found
found:
  %result = phi ptr [ %item, %compare ], [ %made, %miss ], [ null, %fail ]
  ret ptr %result
}

; Why a forward sweep is left: the host's status for out of memory, or for a pointer without a pair.
define linkonce_odr i32 @irad.arena_reason(ptr %arena, i32 %exhausted, i32 %no.derivative) nounwind alwaysinline {
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.failed}
  %failed = load i32, ptr %failed.slot
  %no.pair = icmp eq i32 %failed, ${PAIR_MISSING}
  %status = select i1 %no.pair, i32 %no.derivative, i32 %exhausted
  ret i32 %status
}
