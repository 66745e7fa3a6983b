; Partial shadows of parallel loops.
;
; A reverse sweep that runs in lanes describes each array that lanes add to by an entry of a table, %irad.partial.
; partials_open gives every lane a window of the array, %irad.window, and a partial shadow for the rest; partials_close
; adds the partial shadows up, lane by lane. Arrays that overlap count as one, the smallest range that holds them, so that
; windows of one lane never reach into those of another.
;
; Kinds: 0 read, 1 read by library calls, 2 only written, 3 read and written. An array that is only written has no window;
; if it overlaps one that is read, or if library calls read what is written, lanes are not independent, and open returns
; false: then the lanes have to run one by one, each with a window that holds everything, and so without partial shadows.
; It also does when memory runs out.

declare ptr @calloc(i64, i64)
declare void @free(ptr)
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare void @irad.add_partial_f32(i64, i64, i64)
declare void @irad.add_partial_f64(i64, i64, i64)

; Whether an address lies in the array of a window.
define linkonce_odr i1 @irad.is_shared(ptr %window, i64 %address) nounwind alwaysinline {
  %low.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 5
  %extent.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 6
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

define linkonce_odr ptr @irad.partial_window(ptr %table, i64 %entry, ptr %records, i64 %size, i64 %lane) nounwind alwaysinline {
  %slot = call i64 @irad.partial_get(ptr %table, i64 %entry, i64 7)
  %start = mul i64 %lane, %size
  %offset = add i64 %start, %slot
  %window = getelementptr i8, ptr %records, i64 %offset
  ret ptr %window
}

; Whether two different entries share bytes.
define linkonce_odr i1 @irad.partials_meet(ptr %table, i64 %i, i64 %j) nounwind alwaysinline {
  %low.i = call i64 @irad.partial_get(ptr %table, i64 %i, i64 0)
  %high.i = call i64 @irad.partial_get(ptr %table, i64 %i, i64 1)
  %low.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 0)
  %high.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 1)
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
  %kind.i = call i64 @irad.partial_get(ptr %table, i64 %i, i64 2)
  %kind.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 2)
  %read.i = icmp ne i64 %kind.i, 2
  %read.j = icmp ne i64 %kind.j, 2
  %read = and i1 %read.i, %read.j
  %join = and i1 %meet, %read
  br i1 %join, label %widen, label %after
widen:
  %low.i = call i64 @irad.partial_get(ptr %table, i64 %i, i64 0)
  %high.i = call i64 @irad.partial_get(ptr %table, i64 %i, i64 1)
  %low.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 0)
  %high.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 1)
  %low = call i64 @llvm.umin.i64(i64 %low.i, i64 %low.j)
  %high = call i64 @llvm.umax.i64(i64 %high.i, i64 %high.j)
  call void @irad.partial_set(ptr %table, i64 %i, i64 0, i64 %low)
  call void @irad.partial_set(ptr %table, i64 %i, i64 1, i64 %high)
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
  %kind.i = call i64 @irad.partial_get(ptr %table, i64 %i, i64 2)
  %kind.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 2)
  %single.i = call i64 @irad.partial_get(ptr %table, i64 %i, i64 6)
  %single.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 6)
  %written.i = icmp eq i64 %kind.i, 2
  %written.j = icmp eq i64 %kind.j, 2
  %one.written = xor i1 %written.i, %written.j
  %kinds = xor i64 %kind.i, %kind.j
  %called = icmp eq i64 %kinds, 2                      ; 1 and 3; 0 and 2 clash anyway
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

; Zeroed bytes, null when there are none to be had. Fresh pages cost nothing until they are touched: they are mapped
; PROT_READ | PROT_WRITE (3), MAP_PRIVATE | MAP_ANONYMOUS (34).
define linkonce_odr ptr @irad.partial_allocate(i64 %bytes) nounwind noinline {
entry:
  %small = icmp ult i64 %bytes, 65536
  br i1 %small, label %heap, label %pages
heap:
  %cleared = call ptr @calloc(i64 %bytes, i64 1)
  ret ptr %cleared
pages:
  %mapped = call ptr @mmap(ptr null, i64 %bytes, i32 3, i32 34, i32 -1, i64 0)
  %address = ptrtoint ptr %mapped to i64
  %failed = icmp eq i64 %address, -1
  %result = select i1 %failed, ptr null, ptr %mapped
  ret ptr %result
}

define linkonce_odr void @irad.partial_free(ptr %base, i64 %bytes) nounwind noinline {
entry:
  %small = icmp ult i64 %bytes, 65536
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
  %low = call i64 @irad.partial_get(ptr %table, i64 %i, i64 0)
  %high = call i64 @irad.partial_get(ptr %table, i64 %i, i64 1)
  call void @irad.partial_set(ptr %table, i64 %i, i64 8, i64 0)
  br label %search
search:
  %j = phi i64 [ 0, %entry ], [ %next, %look ], [ %next, %compare ]
  %own = icmp eq i64 %j, %i
  br i1 %own, label %make, label %look
look:
  %next = add i64 %j, 1
  %kind = call i64 @irad.partial_get(ptr %table, i64 %j, i64 2)
  %written = icmp eq i64 %kind, 2
  br i1 %written, label %search, label %compare
compare:
  %low.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 0)
  %high.j = call i64 @irad.partial_get(ptr %table, i64 %j, i64 1)
  %same.low = icmp eq i64 %low, %low.j
  %same.high = icmp eq i64 %high, %high.j
  %same = and i1 %same.low, %same.high
  br i1 %same, label %share, label %search
share:
  %base = call i64 @irad.partial_get(ptr %table, i64 %j, i64 5)
  %step = call i64 @irad.partial_get(ptr %table, i64 %j, i64 3)
  %origin = call i64 @irad.partial_get(ptr %table, i64 %j, i64 4)
  call void @irad.partial_set(ptr %table, i64 %i, i64 5, i64 %base)
  call void @irad.partial_set(ptr %table, i64 %i, i64 3, i64 %step)
  call void @irad.partial_set(ptr %table, i64 %i, i64 4, i64 %origin)
  ret i1 true
make:
  %extent = sub i64 %high, %low
  %product = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %extent, i64 %lanes)
  %bytes = extractvalue { i64, i1 } %product, 0
  %overflow = extractvalue { i64, i1 } %product, 1
  br i1 %overflow, label %fail, label %allocate
allocate:
  %padded = add i64 %bytes, 8                          ; an empty array has partial shadows, too
  %new = call ptr @irad.partial_allocate(i64 %padded)
  %none = icmp eq ptr %new, null
  br i1 %none, label %fail, label %keep
keep:
  %address = ptrtoint ptr %new to i64
  call void @irad.partial_set(ptr %table, i64 %i, i64 5, i64 %address)
  call void @irad.partial_set(ptr %table, i64 %i, i64 8, i64 %padded)
  ret i1 true
fail:
  ret i1 false
}

; The windows of entry %i. Lane l gets what lies from the first index that it works on to that of the next lane; where
; the first axis has no positive step, an equal share. Windows never overlap, whatever the indices are.
define linkonce_odr void @irad.partial_windows(ptr %table, i64 %i, ptr %records, i64 %size, i64 %lanes) nounwind noinline {
entry:
  %low = call i64 @irad.partial_get(ptr %table, i64 %i, i64 0)
  %high = call i64 @irad.partial_get(ptr %table, i64 %i, i64 1)
  %kind = call i64 @irad.partial_get(ptr %table, i64 %i, i64 2)
  %step = call i64 @irad.partial_get(ptr %table, i64 %i, i64 3)
  %origin = call i64 @irad.partial_get(ptr %table, i64 %i, i64 4)
  %base = call i64 @irad.partial_get(ptr %table, i64 %i, i64 5)
  %extent = sub i64 %high, %low
  %aligned = udiv i64 %extent, 8
  %private = icmp eq i64 %kind, 1
  %rising = icmp sgt i64 %step, 0
  br label %loop
loop:
  %lane = phi i64 [ 0, %entry ], [ %next, %loop ]
  %start = phi i64 [ %low, %entry ], [ %end, %loop ]
  %next = add i64 %lane, 1
  %is.last = icmp eq i64 %next, %lanes
  %ahead = select i1 %is.last, i64 %lane, i64 %next
  %ahead.offset = mul i64 %ahead, %size
  %ahead.place = add i64 %ahead.offset, 8
  %ahead.record = getelementptr i8, ptr %records, i64 %ahead.place
  %index = load i64, ptr %ahead.record
  %distance = mul i64 %index, %step
  %guess = add i64 %origin, %distance
  %eighths = mul i64 %aligned, %next
  %share = udiv i64 %eighths, %lanes
  %bytes = mul i64 %share, 8
  %equal = add i64 %low, %bytes
  %cut = select i1 %rising, i64 %guess, i64 %equal
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

define linkonce_odr void @irad.window_set(ptr %window, i64 %start, i64 %size, i64 %delta, i64 %first, i64 %last) nounwind alwaysinline {
  %size.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 1
  %delta.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 2
  %first.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 3
  %last.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 4
  store i64 %start, ptr %window
  store i64 %size, ptr %size.slot
  store i64 %delta, ptr %delta.slot
  store i64 %first, ptr %first.slot
  store i64 %last, ptr %last.slot
  ret void
}

define linkonce_odr void @irad.window_bound(ptr %window, i64 %low, i64 %extent) nounwind alwaysinline {
  %low.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 5
  %extent.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 6
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
  %kind = call i64 @irad.partial_get(ptr %table, i64 %i, i64 2)
  %written = icmp eq i64 %kind, 2
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
  call void @irad.partial_set(ptr %table, i64 %i, i64 8, i64 0)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Windows that hold everything.
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
  %kind = call i64 @irad.partial_get(ptr %table, i64 %i, i64 2)
  %written = icmp eq i64 %kind, 2
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
  %kind = call i64 @irad.partial_get(ptr %table, i64 %i, i64 2)
  %written = icmp eq i64 %kind, 2
  br i1 %written, label %after, label %add
add:
  %window = call ptr @irad.partial_window(ptr %table, i64 %i, ptr %records, i64 %size, i64 %lane)
  %delta.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 2
  %first.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 3
  %last.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 4
  %delta = load i64, ptr %delta.slot
  %first = load i64, ptr %first.slot
  %last = load i64, ptr %last.slot
  %single = call i64 @irad.partial_get(ptr %table, i64 %i, i64 6)
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

define linkonce_odr void @irad.partials_release(ptr %table, i64 %count) nounwind noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %after ]
  %next = add i64 %i, 1
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %done
look:
  %owned = call i64 @irad.partial_get(ptr %table, i64 %i, i64 8)
  %none = icmp eq i64 %owned, 0
  br i1 %none, label %after, label %drop
drop:
  %address = call i64 @irad.partial_get(ptr %table, i64 %i, i64 5)
  %base = inttoptr i64 %address to ptr
  call void @irad.partial_free(ptr %base, i64 %owned)
  br label %after
after:
  br label %loop
done:
  ret void
}
