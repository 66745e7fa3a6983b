; Partial shadows of parallel loops, and access to shadows that lanes share.
;
; A reverse sweep that runs in lanes describes each array that lanes add to by an entry of a table, %irad.partial.
; partials_open gives every lane a window of the array, %irad.window, and a partial shadow for the rest; partials_close
; adds the partial shadows up, lane by lane. Arrays that overlap count as one, the smallest range that holds them, so that
; windows of one lane never reach into those of another.
;
; The program's lanes read an array (their reverses add to its shadow), have library calls read it, only write it, or do
; both: its kind. An array that is only written has no window; if it overlaps one that is read, or if library calls read
; what is written, lanes are not independent, and open returns false: then the lanes have to run one by one, each with a
; window that holds everything, and so without partial shadows. It also does when memory runs out.
;
; Ownership: the table and the records of lanes belong to the caller. Partial shadows belong to the table, from open to
; close, which releases them: the entry with bytes in `owned` does so for all entries that have the same range.

declare ptr @calloc(i64, i64)
declare void @free(ptr)
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @irad.copy_adjoint_${suffix}(ptr, ptr, i64)

; Whether an address lies in the array of a window.
define linkonce_odr i1 @irad.is_shared(ptr %window, i64 %address) nounwind alwaysinline {
  %low.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 ${window.low}
  %extent.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 ${window.extent}
  %low = load i64, ptr %low.slot
  %extent = load i64, ptr %extent.slot
  %offset = sub i64 %address, %low
  %inside = icmp ult i64 %offset, %extent
  ret i1 %inside
}

; Whether all of %bytes at an address lie in the lane's window.
define linkonce_odr i1 @irad.in_window(i64 %start, i64 %size, i64 %address, i64 %bytes) nounwind alwaysinline {
  %offset = sub i64 %address, %start
  %room = sub i64 %size, %offset
  %begins = icmp ule i64 %offset, %size
  %ends = icmp ule i64 %bytes, %room
  %result = and i1 %begins, %ends
  ret i1 %result
}

; Where a field of an entry is, by its index: all of them are words.
define linkonce_odr ptr @irad.partial_field(ptr %table, i64 %entry, i64 %field) nounwind alwaysinline {
  %start = getelementptr inbounds %irad.partial, ptr %table, i64 %entry
  %place = getelementptr inbounds i64, ptr %start, i64 %field
  ret ptr %place
}

define linkonce_odr i64 @irad.partial_get(ptr %table, i64 %entry, i64 %field) nounwind alwaysinline {
  %place = call ptr @irad.partial_field(ptr %table, i64 %entry, i64 %field)
  %value = load i64, ptr %place
  ret i64 %value
}

define linkonce_odr void @irad.partial_set(ptr %table, i64 %entry, i64 %field, i64 %value) nounwind alwaysinline {
  %place = call ptr @irad.partial_field(ptr %table, i64 %entry, i64 %field)
  store i64 %value, ptr %place
  ret void
}

; Where a lane's record has the window of an entry's array.
define linkonce_odr ptr @irad.partial_window(ptr %table, i64 %entry, ptr %records, i64 %size, i64 %lane) nounwind alwaysinline {
  %slot = call i64 @irad.partial_get(ptr %table, i64 %entry, i64 ${partial.slot})
  %start = mul i64 %lane, %size
  %offset = add i64 %start, %slot
  %window = getelementptr i8, ptr %records, i64 %offset
  ret ptr %window
}

; Whether two different entries share bytes.
define linkonce_odr i1 @irad.partials_meet(ptr %table, i64 %i, i64 %j) nounwind alwaysinline {
  %low.i = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.low})
  %high.i = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.high})
  %low.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 ${partial.low})
  %high.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 ${partial.high})
  %low = call i64 @llvm.umax.i64(i64 %low.i, i64 %low.j)
  %high = call i64 @llvm.umin.i64(i64 %high.i, i64 %high.j)
  %some = icmp ult i64 %low, %high
  %others = icmp ne i64 %i, %j
  %result = and i1 %some, %others
  ret i1 %result
}

; Makes the ranges of arrays that overlap one. Each of %count rounds over all pairs carries a range one array further.
define linkonce_odr void @irad.partials_group(ptr %table, i64 %count) nounwind noinline {
entry:
  %pairs = mul i64 %count, %count
  %steps = mul i64 %pairs, %count
  br label %loop
loop:
  %step = phi i64 [ 0, %entry ], [ %next, %after ]
  %pair = urem i64 %step, %pairs
  %i = udiv i64 %pair, %count
  %j = urem i64 %pair, %count
  %next = add i64 %step, 1
  %meet = call i1 @irad.partials_meet(ptr %table, i64 %i, i64 %j)
  %kind.i = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.kind})
  %kind.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 ${partial.kind})
  %read.i = icmp ne i64 %kind.i, ${KIND_WRITTEN}
  %read.j = icmp ne i64 %kind.j, ${KIND_WRITTEN}
  %read = and i1 %read.i, %read.j
  %join = and i1 %meet, %read
  br i1 %join, label %widen, label %after
widen:
  %low.i = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.low})
  %high.i = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.high})
  %low.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 ${partial.low})
  %high.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 ${partial.high})
  %low = call i64 @llvm.umin.i64(i64 %low.i, i64 %low.j)
  %high = call i64 @llvm.umax.i64(i64 %high.i, i64 %high.j)
  call void @irad.partial_set(ptr %table, i64 %i, i64 ${partial.low}, i64 %low)
  call void @irad.partial_set(ptr %table, i64 %i, i64 ${partial.high}, i64 %high)
  br label %after
after:
  %more = icmp ult i64 %next, %steps
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Whether arrays overlap that exclude each other: one that is only written and one that is read, one that library calls
; read and one that is read and written, or numbers of two sizes.
define linkonce_odr i1 @irad.partials_clash(ptr %table, i64 %count) nounwind noinline {
entry:
  %pairs = mul i64 %count, %count
  br label %loop
loop:
  %pair = phi i64 [ 0, %entry ], [ %next, %loop ]
  %found = phi i1 [ false, %entry ], [ %any, %loop ]
  %i = udiv i64 %pair, %count
  %j = urem i64 %pair, %count
  %next = add i64 %pair, 1
  %meet = call i1 @irad.partials_meet(ptr %table, i64 %i, i64 %j)
  %kind.i = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.kind})
  %kind.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 ${partial.kind})
  %single.i = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.single})
  %single.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 ${partial.single})
  %written.i = icmp eq i64 %kind.i, ${KIND_WRITTEN}
  %written.j = icmp eq i64 %kind.j, ${KIND_WRITTEN}
  %one.written = xor i1 %written.i, %written.j
  %kinds = xor i64 %kind.i, %kind.j
  ; another two kinds have this difference, of which one is only written: they clash anyway
  %called = icmp eq i64 %kinds, ${KIND_DIFFERENCE}
  %sizes = icmp ne i64 %single.i, %single.j
  %a = or i1 %one.written, %called
  %b = or i1 %a, %sizes
  %clash = and i1 %b, %meet
  %any = or i1 %found, %clash
  %more = icmp ult i64 %next, %pairs
  br i1 %more, label %loop, label %done
done:
  ret i1 %any
}

; Zeroed bytes, null when none are available. Fresh pages cost nothing until they are touched, and most of a partial
; shadow is not; below a few pages a system call costs more than clearing.
define linkonce_odr ptr @irad.partial_allocate(i64 %bytes) nounwind noinline {
entry:
  %small = icmp ult i64 %bytes, ${MAPPED_FROM}
  br i1 %small, label %heap, label %pages
heap:
  %cleared = call ptr @calloc(i64 %bytes, i64 1)
  ret ptr %cleared
pages:
  %mapped = call ptr @mmap(ptr null, i64 %bytes, i32 ${PAGES_ACCESS}, i32 ${PAGES_FLAGS}, i32 -1, i64 0)
  %address = ptrtoint ptr %mapped to i64
  %failed = icmp eq i64 %address, -1                   ; MAP_FAILED
  %result = select i1 %failed, ptr null, ptr %mapped
  ret ptr %result
}

; Frees what partial_allocate gave for as many bytes.
define linkonce_odr void @irad.partial_free(ptr %base, i64 %bytes) nounwind noinline {
entry:
  %small = icmp ult i64 %bytes, ${MAPPED_FROM}
  br i1 %small, label %heap, label %pages
heap:
  call void @free(ptr %base)
  ret void
pages:
  %status = call i32 @munmap(ptr %base, i64 %bytes)
  ret void
}

; Partial shadows for entry %i: those of an earlier entry with the same range, or new ones. False when out of memory.
define linkonce_odr i1 @irad.partial_provide(ptr %table, i64 %i, i64 %lanes) nounwind noinline {
entry:
  %low = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.low})
  %high = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.high})
  call void @irad.partial_set(ptr %table, i64 %i, i64 ${partial.owned}, i64 0)
  br label %search
search:
  %j = phi i64 [ 0, %entry ], [ %next, %look ], [ %next, %compare ]
  %own = icmp eq i64 %j, %i
  br i1 %own, label %make, label %look
look:
  %next = add i64 %j, 1
  %kind = call i64 @irad.partial_get(ptr %table, i64 %j, i64 ${partial.kind})
  %written = icmp eq i64 %kind, ${KIND_WRITTEN}
  br i1 %written, label %search, label %compare
compare:
  %low.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 ${partial.low})
  %high.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 ${partial.high})
  %same.low = icmp eq i64 %low, %low.j
  %same.high = icmp eq i64 %high, %high.j
  %same = and i1 %same.low, %same.high
  br i1 %same, label %share, label %search
share:
  %base = call i64 @irad.partial_get(ptr %table, i64 %j, i64 ${partial.base})
  %step = call i64 @irad.partial_get(ptr %table, i64 %j, i64 ${partial.step})
  %origin = call i64 @irad.partial_get(ptr %table, i64 %j, i64 ${partial.origin})
  call void @irad.partial_set(ptr %table, i64 %i, i64 ${partial.base}, i64 %base)
  call void @irad.partial_set(ptr %table, i64 %i, i64 ${partial.step}, i64 %step)
  call void @irad.partial_set(ptr %table, i64 %i, i64 ${partial.origin}, i64 %origin)
  ret i1 true
make:
  %extent = sub i64 %high, %low
  %product = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %extent, i64 %lanes)
  %bytes = extractvalue { i64, i1 } %product, 0
  %overflow = extractvalue { i64, i1 } %product, 1
  br i1 %overflow, label %fail, label %allocate
allocate:
  %padded = add i64 %bytes, ${WORD}                    ; an empty array has partial shadows, too
  %new = call ptr @irad.partial_allocate(i64 %padded)
  %none = icmp eq ptr %new, null
  br i1 %none, label %fail, label %keep
keep:
  %address = ptrtoint ptr %new to i64
  call void @irad.partial_set(ptr %table, i64 %i, i64 ${partial.base}, i64 %address)
  call void @irad.partial_set(ptr %table, i64 %i, i64 ${partial.owned}, i64 %padded)
  ret i1 true
fail:
  ret i1 false
}

; The windows of entry %i. Lane l gets what lies from the first index that it works on to that of the next lane; where
; the first axis has no positive step, an equal share. Windows never overlap, whatever the indices are.
define linkonce_odr void @irad.partial_windows(ptr %table, i64 %i, ptr %records, i64 %size, i64 %lanes) nounwind noinline {
entry:
  %low = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.low})
  %high = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.high})
  %kind = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.kind})
  %step = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.step})
  %origin = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.origin})
  %base = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.base})
  %extent = sub i64 %high, %low
  %words = udiv i64 %extent, ${WORD}
  %private = icmp eq i64 %kind, ${KIND_CALLED}
  %rising = icmp sgt i64 %step, 0
  br label %loop
loop:
  %lane = phi i64 [ 0, %entry ], [ %next, %loop ]
  %start = phi i64 [ %low, %entry ], [ %end, %loop ]
  %next = add i64 %lane, 1
  %is.last = icmp eq i64 %next, %lanes
  %ahead = select i1 %is.last, i64 %lane, i64 %next
  %ahead.offset = mul i64 %ahead, %size
  %ahead.record = getelementptr i8, ptr %records, i64 %ahead.offset
  %index.slot = getelementptr inbounds %irad.record, ptr %ahead.record, i32 0, i32 ${record.first}
  %index = load i64, ptr %index.slot
  %distance = mul i64 %index, %step
  %guess = add i64 %origin, %distance
  ; whole words, so that no number is cut in two
  %words.before = mul i64 %words, %next
  %share = udiv i64 %words.before, %lanes
  %bytes = mul i64 %share, ${WORD}
  %equal = add i64 %low, %bytes
  %cut = select i1 %rising, i64 %guess, i64 %equal
  ; only a guess: windows must not overlap, and not leave the array, whatever the index is
  %not.below = call i64 @llvm.smax.i64(i64 %cut, i64 %start)
  %inside = call i64 @llvm.smin.i64(i64 %not.below, i64 %high)
  %end = select i1 %is.last, i64 %high, i64 %inside
  %width = sub i64 %end, %start
  %own = select i1 %private, i64 0, i64 %width
  %skip = mul i64 %lane, %extent
  %part = add i64 %base, %skip
  %delta = sub i64 %part, %low
  %first = select i1 %private, i64 %low, i64 -1
  %last = select i1 %private, i64 %high, i64 0
  %window = call ptr @irad.partial_window(ptr %table, i64 %i, ptr %records, i64 %size, i64 %lane)
  call void @irad.window_set(ptr %window, i64 %start, i64 %own, i64 %delta, i64 %first, i64 %last)
  call void @irad.window_bound(ptr %window, i64 %low, i64 %extent)
  br i1 %is.last, label %done, label %loop
done:
  ret void
}

; Fills all of a window but the bounds of the array.
define linkonce_odr void @irad.window_set(ptr %window, i64 %start, i64 %size, i64 %delta, i64 %first, i64 %last) nounwind alwaysinline {
  %size.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 ${window.size}
  %delta.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 ${window.delta}
  %first.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 ${window.first}
  %last.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 ${window.last}
  %start.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 ${window.start}
  store i64 %start, ptr %start.slot
  store i64 %size, ptr %size.slot
  store i64 %delta, ptr %delta.slot
  store i64 %first, ptr %first.slot
  store i64 %last, ptr %last.slot
  ret void
}

; The array of a window: outside of it is memory of the lane's own.
define linkonce_odr void @irad.window_bound(ptr %window, i64 %low, i64 %extent) nounwind alwaysinline {
  %low.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 ${window.low}
  %extent.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 ${window.extent}
  store i64 %low, ptr %low.slot
  store i64 %extent, ptr %extent.slot
  ret void
}

; Windows and partial shadows for all lanes; false if the lanes must run one by one, with windows that hold everything.
define linkonce_odr i1 @irad.partials_open(ptr %table, i64 %count, ptr %records, i64 %size, i64 %lanes) nounwind noinline {
entry:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %good, label %judge
judge:
  call void @irad.partials_clear(ptr %table, i64 %count)
  %single = icmp ult i64 %lanes, 2
  br i1 %single, label %alone, label %group
group:
  call void @irad.partials_group(ptr %table, i64 %count)
  %clash = call i1 @irad.partials_clash(ptr %table, i64 %count)
  br i1 %clash, label %alone, label %loop
loop:
  %i = phi i64 [ 0, %group ], [ %next, %after ]
  %kind = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.kind})
  %written = icmp eq i64 %kind, ${KIND_WRITTEN}
  %next = add i64 %i, 1
  br i1 %written, label %after, label %provide
provide:
  %fine = call i1 @irad.partial_provide(ptr %table, i64 %i, i64 %lanes)
  br i1 %fine, label %spread, label %exhausted
spread:
  call void @irad.partial_windows(ptr %table, i64 %i, ptr %records, i64 %size, i64 %lanes)
  br label %after
after:
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %good
good:
  ret i1 true
exhausted:
  call void @irad.partials_release(ptr %table, i64 %count)
  br label %alone
alone:
  call void @irad.partials_alone(ptr %table, i64 %count, ptr %records, i64 %size, i64 %lanes)
  ret i1 false
}

; Nothing is owned yet.
define linkonce_odr void @irad.partials_clear(ptr %table, i64 %count) nounwind noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @irad.partial_set(ptr %table, i64 %i, i64 ${partial.owned}, i64 0)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Windows that hold everything, for lanes that run one by one: no address is outside, so the bounds are not read.
define linkonce_odr void @irad.partials_alone(ptr %table, i64 %count, ptr %records, i64 %size, i64 %lanes) nounwind noinline {
entry:
  %all = mul i64 %count, %lanes
  br label %loop
loop:
  %step = phi i64 [ 0, %entry ], [ %next, %after ]
  %next = add i64 %step, 1
  %more = icmp ult i64 %step, %all
  br i1 %more, label %look, label %done
look:
  %i = udiv i64 %step, %lanes
  %lane = urem i64 %step, %lanes
  %kind = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.kind})
  %written = icmp eq i64 %kind, ${KIND_WRITTEN}
  br i1 %written, label %after, label %set
set:
  %window = call ptr @irad.partial_window(ptr %table, i64 %i, ptr %records, i64 %size, i64 %lane)
  call void @irad.window_set(ptr %window, i64 0, i64 -1, i64 0, i64 -1, i64 0)
  br label %after
after:
  br label %loop
done:
  ret void
}

; Adds all partial shadows to the shadows, lane by lane, and releases them.
define linkonce_odr void @irad.partials_close(ptr %table, i64 %count, ptr %records, i64 %size, i64 %lanes) nounwind noinline {
entry:
  %all = mul i64 %count, %lanes
  br label %loop
loop:
  %step = phi i64 [ 0, %entry ], [ %next, %after ]
  %next = add i64 %step, 1
  %more = icmp ult i64 %step, %all
  br i1 %more, label %look, label %release
look:
  %i = udiv i64 %step, %lanes
  %lane = urem i64 %step, %lanes
  %kind = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.kind})
  %written = icmp eq i64 %kind, ${KIND_WRITTEN}
  br i1 %written, label %after, label %add
add:
  %window = call ptr @irad.partial_window(ptr %table, i64 %i, ptr %records, i64 %size, i64 %lane)
  %delta.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 ${window.delta}
  %first.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 ${window.first}
  %last.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 ${window.last}
  %delta = load i64, ptr %delta.slot
  %first = load i64, ptr %first.slot
  %last = load i64, ptr %last.slot
  %single = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.single})
  %is.single = icmp ne i64 %single, 0
  br i1 %is.single, label %floats, label %doubles
floats:
  call void @irad.add_partial_f32(i64 %first, i64 %last, i64 %delta)
  br label %after
doubles:
  call void @irad.add_partial_f64(i64 %first, i64 %last, i64 %delta)
  br label %after
after:
  br label %loop
release:
  call void @irad.partials_release(ptr %table, i64 %count)
  ret void
}

; Frees the partial shadows of all entries.
define linkonce_odr void @irad.partials_release(ptr %table, i64 %count) nounwind noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %after ]
  %next = add i64 %i, 1
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %done
look:
  %owned = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.owned})
  %none = icmp eq i64 %owned, 0
  br i1 %none, label %after, label %drop
drop:
  %address = call i64 @irad.partial_get(ptr %table, i64 %i, i64 ${partial.base})
  %base = inttoptr i64 %address to ptr
  call void @irad.partial_free(ptr %base, i64 %owned)
  br label %after
after:
  br label %loop
done:
  ret void
}

; --- access, in each precision
;
; What a lane's window says is loaded once and passed on as numbers: start, size and delta. Records may be packed, hence
; align 1.

; Adds to a shadow that lanes share.
define linkonce_odr void @irad.add_shared_${suffix}(ptr %window, i64 %start, i64 %size, i64 %delta, ptr %place, ${real} %amount) nounwind alwaysinline {
entry:
  %address = ptrtoint ptr %place to i64
  %offset = sub i64 %address, %start
  %own = icmp ult i64 %offset, %size
  br i1 %own, label %direct, label %outside, !prof !{!"branch_weights", i32 2000, i32 1}
outside:
  %shared = call i1 @irad.is_shared(ptr %window, i64 %address)
  br i1 %shared, label %partial, label %direct
direct:
  %old = load ${real}, ptr %place, align 1
  %new = fadd ${real} %old, %amount
  store ${real} %new, ptr %place, align 1
  br label %done
partial:
  %twin = getelementptr i8, ptr %place, i64 %delta
  %before = load ${real}, ptr %twin, align 1
  %after = fadd ${real} %before, %amount
  store ${real} %after, ptr %twin, align 1
  %first.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 ${window.first}
  %last.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 ${window.last}
  %first = load i64, ptr %first.slot
  %last = load i64, ptr %last.slot
  ; close adds up no more than the bytes that were used
  %end = getelementptr ${real}, ptr %place, i64 1
  %past = ptrtoint ptr %end to i64
  %low = call i64 @llvm.umin.i64(i64 %first, i64 %address)
  %high = call i64 @llvm.umax.i64(i64 %last, i64 %past)
  store i64 %low, ptr %first.slot
  store i64 %high, ptr %last.slot
  br label %done
done:
  ret void
}

; Takes from a shadow that lanes share: the number that was there, and zero is there now.
define linkonce_odr ${real} @irad.take_shared_${suffix}(ptr %window, i64 %start, i64 %size, i64 %delta, ptr %place) nounwind alwaysinline {
entry:
  %address = ptrtoint ptr %place to i64
  %offset = sub i64 %address, %start
  %own = icmp ult i64 %offset, %size
  %old = load ${real}, ptr %place, align 1
  store ${real} zeroinitializer, ptr %place, align 1
  br i1 %own, label %done, label %outside, !prof !{!"branch_weights", i32 2000, i32 1}
outside:
  %shared = call i1 @irad.is_shared(ptr %window, i64 %address)
  br i1 %shared, label %partial, label %done
partial:
  %twin = getelementptr i8, ptr %place, i64 %delta
  %more = load ${real}, ptr %twin, align 1
  %both = fadd ${real} %old, %more
  ; not written unless it has to be: memory that nobody has touched stays untouched
  %used = fcmp une ${real} %more, 0.0
  br i1 %used, label %clear, label %done
clear:
  store ${real} zeroinitializer, ptr %twin, align 1
  br label %done
done:
  %taken = phi ${real} [ %old, %entry ], [ %old, %outside ], [ %both, %partial ], [ %both, %clear ]
  ret ${real} %taken
}

; The adjoint of a memmove of %bytes between shadows that lanes may share: takes from %to, adds to %from. What one
; number adds must not be taken by the next, so where the two overlap the order matters.
define linkonce_odr void @irad.move_shared_${suffix}(ptr %to.window, i64 %to.start, i64 %to.size, i64 %to.delta, ptr %to, ptr %from.window, i64 %from.start, i64 %from.size, i64 %from.delta, ptr %from, i64 %bytes) nounwind noinline {
entry:
  %count = udiv i64 %bytes, ${sizeof real}
  %last = sub i64 %count, 1
  %to.address = ptrtoint ptr %to to i64
  %from.address = ptrtoint ptr %from to i64
  %rising = icmp uge i64 %to.address, %from.address
  %to.own = call i1 @irad.in_window(i64 %to.start, i64 %to.size, i64 %to.address, i64 %bytes)
  %from.own = call i1 @irad.in_window(i64 %from.start, i64 %from.size, i64 %from.address, i64 %bytes)
  %own = and i1 %to.own, %from.own
  br i1 %own, label %direct, label %shared
direct:
  call void @irad.copy_adjoint_${suffix}(ptr %to, ptr %from, i64 %bytes)
  ret void
shared:
  %some = icmp ne i64 %count, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %shared ], [ %next, %loop ]
  %mirrored = sub i64 %last, %i
  %k = select i1 %rising, i64 %i, i64 %mirrored
  %into = getelementptr ${real}, ptr %to, i64 %k
  %source = getelementptr ${real}, ptr %from, i64 %k
  %taken = call ${real} @irad.take_shared_${suffix}(ptr %to.window, i64 %to.start, i64 %to.size, i64 %to.delta, ptr %into)
  call void @irad.add_shared_${suffix}(ptr %from.window, i64 %from.start, i64 %from.size, i64 %from.delta, ptr %source, ${real} %taken)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}

; The adjoint of a fill: clears %bytes of a shadow.
define linkonce_odr void @irad.drop_shared_${suffix}(ptr %to.window, i64 %to.start, i64 %to.size, i64 %to.delta, ptr %to, i64 %bytes) nounwind noinline {
entry:
  %to.address = ptrtoint ptr %to to i64
  %own = call i1 @irad.in_window(i64 %to.start, i64 %to.size, i64 %to.address, i64 %bytes)
  br i1 %own, label %direct, label %shared
direct:
  call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 %bytes, i1 false)
  ret void
shared:
  %count = udiv i64 %bytes, ${sizeof real}
  %some = icmp ne i64 %count, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %shared ], [ %next, %loop ]
  %into = getelementptr ${real}, ptr %to, i64 %i
  %taken = call ${real} @irad.take_shared_${suffix}(ptr %to.window, i64 %to.start, i64 %to.size, i64 %to.delta, ptr %into)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Adds a lane's partial shadow to the shadow, from byte %first to byte %last of that, and clears it.
define linkonce_odr void @irad.add_partial_${suffix}(i64 %first, i64 %last, i64 %delta) nounwind noinline {
entry:
  %some = icmp ult i64 %first, %last
  br i1 %some, label %loop, label %done
loop:
  %address = phi i64 [ %first, %entry ], [ %next, %loop ]
  %place = inttoptr i64 %address to ptr
  %twin = getelementptr i8, ptr %place, i64 %delta
  %part = load ${real}, ptr %twin, align 1
  %old = load ${real}, ptr %place, align 1
  %new = fadd ${real} %old, %part
  store ${real} %new, ptr %place, align 1
  store ${real} zeroinitializer, ptr %twin, align 1
  %next = add i64 %address, ${sizeof real}
  %more = icmp ult i64 %next, %last
  br i1 %more, label %loop, label %done
done:
  ret void
}
