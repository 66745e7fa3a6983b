; Functions that look at numbers and count bytes: checks (debug mode), the meter of the tape, NaN in results.
;
; Ownership: tables and meters belong to the front end and outlive the calls that use them; nothing is allocated here but
; what the tape asks for.
;
; The checks serve `irad.passes.instrument.watch`. A table, %irad.places, describes the places of one program that are
; checked; it lives outside the module, made by the front end:
;
;     table ┬ number of its first place among those of the process
;           ├ callback: (arena, table, place, result, three operands), gets what was found
;           └ for each place two words: the watched call that wants no more reports of its infinities and ties, and the
;             same of its NaNs
;
; A NaN that an operation makes of numbers gets a mark as its payload: what the callback returns, or, where that is asked
; no more, the number of the place with the highest bit set. Arithmetic hands payloads on, so the NaN that comes out at
; the end says where it began. The upper 22 bits of the payload hold the mark, which single precision keeps.
;
; The meter serves `irad.passes.instrument.meter`. It belongs to one call: limit, bytes so far, and for each place of the
; tape how many of its units were asked for. What exceeds the limit is counted, too, and then refused like missing memory.
;
; A derivative without guards of zero times infinity has its results searched for NaN.

declare i64 @llvm.umin.i64(i64, i64)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare ptr @irad.arena_alloc(ptr, i64)

; Tells the callback, unless this call is to tell it no more of this place. The result is the mark of a NaN.
define linkonce_odr i64 @irad.note(ptr %arena, ptr %table, i64 %site, double %r, double %a, double %b, double %c) nounwind noinline {
entry:
  %call.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.watched_call}
  %call = load i64, ptr %call.slot
  %callback.slot = getelementptr inbounds %irad.places, ptr %table, i32 0, i32 ${places.callback}
  %seen.first = getelementptr inbounds %irad.places, ptr %table, i32 1
  %nan = fcmp uno double %r, 0.0
  %which = zext i1 %nan to i64
  %pair = shl i64 %site, 1
  %index = or i64 %pair, %which
  %seen.slot = getelementptr i64, ptr %seen.first, i64 %index
  ; other threads may write it meanwhile: what they tell twice does no harm
  %seen = load atomic i64, ptr %seen.slot monotonic, align 8
  %told = icmp eq i64 %seen, %call
  br i1 %told, label %done, label %tell
tell:
  %callback = load ptr, ptr %callback.slot
  %mark = call i64 %callback(ptr %arena, ptr %table, i64 %site, double %r, double %a, double %b, double %c)
  ret i64 %mark
done:
  %base.slot = getelementptr inbounds %irad.places, ptr %table, i32 0, i32 ${places.first_number}
  %base = load i64, ptr %base.slot
  %number = add i64 %base, %site
  %short = and i64 %number, ${PLACE_MASK}
  %of.place = or i64 %short, ${PLACE_MARK}
  ret i64 %of.place
}

; The result of an operation, marked if it is a NaN that the operation made; what began here is noted.
define linkonce_odr double @irad.check_f64(ptr %arena, ptr %table, i64 %site, double %r, double %a, double %b, double %c) nounwind noinline {
entry:
  ; 0 for numbers, NaN for NaN and infinities: one comparison on the usual path
  %difference = fsub double %r, %r
  %finite = fcmp ord double %difference, 0.0
  br i1 %finite, label %same, label %odd
same:
  ret double %r
odd:
  %nan = fcmp uno double %r, 0.0
  br i1 %nan, label %ask.nan, label %ask.infinite
ask.nan:
  %ab = fcmp uno double %a, %b
  %cc = fcmp uno double %c, 0.0
  %passed.on = or i1 %ab, %cc
  br i1 %passed.on, label %same, label %begun
ask.infinite:
  %da = fsub double %a, %a
  %db = fsub double %b, %b
  %dc = fsub double %c, %c
  %dab = fcmp uno double %da, %db
  %dcc = fcmp uno double %dc, 0.0
  %was.infinite = or i1 %dab, %dcc
  br i1 %was.infinite, label %same, label %begun
begun:
  %mark = call i64 @irad.note(ptr %arena, ptr %table, i64 %site, double %r, double %a, double %b, double %c)
  %payload = shl i64 %mark, ${MARK_SHIFT}
  %bits = or i64 %payload, ${QUIET_NAN}
  %marked = bitcast i64 %bits to double
  %result = select i1 %nan, double %marked, double %r
  ret double %result
}

; In double precision, since the callback takes doubles; the mark survives rounding.
define linkonce_odr float @irad.check_f32(ptr %arena, ptr %table, i64 %site, float %r, double %a, double %b, double %c) nounwind noinline {
  %wide = fpext float %r to double
  %checked = call double @irad.check_f64(ptr %arena, ptr %table, i64 %site, double %wide, double %a, double %b, double %c)
  %result = fptrunc double %checked to float
  ret float %result
}

; Notes that two numbers which decide something are equal.
define linkonce_odr void @irad.tie_f64(ptr %arena, ptr %table, i64 %site, double %a, double %b) nounwind noinline {
entry:
  %equal = fcmp oeq double %a, %b
  br i1 %equal, label %tell, label %done
tell:
  %mark = call i64 @irad.note(ptr %arena, ptr %table, i64 %site, double %a, double %a, double %b, double 0.0)
  br label %done
done:
  ret void
}

; Lanes belong to the call that runs them.
define linkonce_odr void @irad.lanes_watch(ptr %arena, ptr %table, i64 %count) nounwind noinline {
entry:
  %call.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.watched_call}
  %activation.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.activation}
  %meter.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.meter}
  %call = load i64, ptr %call.slot
  %activation = load ptr, ptr %activation.slot
  %meter = load ptr, ptr %meter.slot
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %set ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %done, label %set
set:
  %slot = getelementptr ptr, ptr %table, i64 %i
  %lane = load ptr, ptr %slot
  %lane.call = getelementptr inbounds %irad.arena, ptr %lane, i32 0, i32 ${arena.watched_call}
  %lane.activation = getelementptr inbounds %irad.arena, ptr %lane, i32 0, i32 ${arena.activation}
  %lane.meter = getelementptr inbounds %irad.arena, ptr %lane, i32 0, i32 ${arena.meter}
  store i64 %call, ptr %lane.call
  store ptr %activation, ptr %lane.activation
  store ptr %meter, ptr %lane.meter
  %next = add i64 %i, 1
  br label %loop
done:
  ret void
}

; As arena_alloc, for a place of the tape of which %units are asked for; null and the flag if the limit is exceeded.
define linkonce_odr noalias ptr @irad.tape_alloc(ptr %arena, i64 %size, i64 %site, i64 %units) nounwind noinline {
entry:
  %meter.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.meter}
  %meter = load ptr, ptr %meter.slot
  %total.slot = getelementptr inbounds %irad.meter, ptr %meter, i32 0, i32 ${meter.bytes}
  %units.first = getelementptr inbounds %irad.meter, ptr %meter, i32 1
  %units.slot = getelementptr i64, ptr %units.first, i64 %site
  %before.units = atomicrmw add ptr %units.slot, i64 %units monotonic
  %counted = call i64 @llvm.umin.i64(i64 %size, i64 ${MOST_COUNTED})
  %before = atomicrmw add ptr %total.slot, i64 %counted monotonic
  %after = add i64 %before, %counted
  %limit.slot = getelementptr inbounds %irad.meter, ptr %meter, i32 0, i32 ${meter.limit}
  %limit = load i64, ptr %limit.slot
  %over = icmp ugt i64 %after, %limit
  br i1 %over, label %refuse, label %take
take:
  %result = call ptr @irad.arena_alloc(ptr %arena, i64 %size)
  ret ptr %result
refuse:
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.failed}
  store i32 ${TAPE_FULL}, ptr %failed.slot
  ret ptr null
}

define linkonce_odr noalias ptr @irad.tape_alloc_product(ptr %arena, i64 %count, i64 %size, i64 %site) nounwind noinline {
  %product = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue { i64, i1 } %product, 0
  %overflow = extractvalue { i64, i1 } %product, 1
  %request = select i1 %overflow, i64 -1, i64 %bytes
  %result = call ptr @irad.tape_alloc(ptr %arena, i64 %request, i64 %site, i64 %count)
  ret ptr %result
}

; Whether one of some numbers is NaN: all are looked at, so that this becomes vectors.
define linkonce_odr i1 @irad.has_nan_${suffix}(ptr %numbers, i64 %count) nounwind {
entry:
  %is_empty = icmp sle i64 %count, 0
  br i1 %is_empty, label %end, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %before = phi i1 [ false, %entry ], [ %found, %loop ]
  %place = getelementptr ${real}, ptr %numbers, i64 %i
  %number = load ${real}, ptr %place, align 1
  %is_nan = fcmp uno ${real} %number, 0.0
  %found = or i1 %before, %is_nan
  %next = add nuw nsw i64 %i, 1
  %goes_on = icmp ne i64 %next, %count
  br i1 %goes_on, label %loop, label %end
end:
  %result = phi i1 [ false, %entry ], [ %found, %loop ]
  ret i1 %result
}
