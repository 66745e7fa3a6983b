; The log of what threads do to memory that other threads see, read by trace.py; dialect.py has the kinds of its entries.
;
; Ownership: the log is the launch's. It is made by Python, which sets the room, grows here, and is freed by Python.

declare ptr @realloc(ptr, i64)
declare ptr @llvm.frameaddress.p0(i32)

; An access is about to happen. The result is the address to use: the given one, or scratch memory if it is outside of
; its array, which is known if %bytes is not negative, or else outside of all arrays, if these are known. %low is then
; null or the address of the array that it is to, which is one of them. Accesses without a kind are checked, but not logged.
define ptr @irad.cuda.log_access(ptr %thread, ptr %address, i64 %size, i32 %kind, i32 %site, ptr %low, i64 %bytes) nounwind noinline "frame-pointer"="all" {
entry:
  %launch.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.launch}
  %launch = load ptr, ptr %launch.slot
  %at = ptrtoint ptr %address to i64
  %base = ptrtoint ptr %low to i64
  %index.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.index}
  %index = load i32, ptr %index.slot
  %clock.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.clock}
  %clock = load i32, ptr %clock.slot
  %size.32 = trunc i64 %size to i32
  %is.known = icmp sge i64 %bytes, 0
  br i1 %is.known, label %ranged, label %open
ranged:
  %in.range = call i1 @fits(i64 %at, i64 %size, i64 %base, i64 %bytes)
  %unlogged = icmp eq i32 %kind, ${Kind.UNLOGGED}
  %skipped = and i1 %in.range, %unlogged
  br i1 %skipped, label %own, label %record
open:
  %private = call i1 @is_private(ptr %launch, i64 %at)
  br i1 %private, label %own, label %look
look:
  %in.any = call i1 @is_inside(ptr %launch, i64 %at, i64 %size, i64 %base)
  br label %record
record:
  %inside = phi i1 [ %in.range, %ranged ], [ %in.any, %look ]
  call void @append(ptr %launch, i64 %at, i32 %size.32, i32 %kind, i32 %site, i32 %index, i32 %clock)
  br i1 %inside, label %own, label %fault
own:
  ret ptr %address
fault:
  %fault.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.fault}
  %before = load i64, ptr %fault.slot
  %first = icmp slt i64 %before, 0
  br i1 %first, label %keep, label %divert
keep:
  %traced.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.traced}
  %traced = load i64, ptr %traced.slot
  %last = sub i64 %traced, 1
  store i64 %last, ptr %fault.slot
  %low.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.fault_low}
  store i64 %base, ptr %low.slot
  %bytes.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.fault_bytes}
  store i64 %bytes, ptr %bytes.slot
  br label %divert
divert:
  %scratch.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.scratch}
  %scratch = load ptr, ptr %scratch.slot
  %room.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.scratch_bytes}
  %room = load i64, ptr %room.slot
  %fits = icmp ule i64 %size, %room
  %used = select i1 %fits, ptr %scratch, ptr %address
  ret ptr %used
}

; Whether memory is of the thread alone: on the stack, or in a frame of a coroutine.
define internal i1 @is_private(ptr %launch, i64 %at) nounwind alwaysinline {
  %pool.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.pool}
  %pool = load i64, ptr %pool.slot
  %stride.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.stride}
  %stride = load i64, ptr %stride.slot
  %count.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.count}
  %count = load i64, ptr %count.slot
  %bytes = mul i64 %stride, %count
  %offset = sub i64 %at, %pool
  %in.pool = icmp ult i64 %offset, %bytes
  %frame = call ptr @llvm.frameaddress.p0(i32 0)
  %low = ptrtoint ptr %frame to i64
  %stack.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.stack}
  %high = load i64, ptr %stack.slot
  %height = sub i64 %high, %low
  %depth = sub i64 %at, %low
  %on.stack = icmp ult i64 %depth, %height
  %private = or i1 %in.pool, %on.stack
  ret i1 %private
}

; Whether an access is in shared memory or in one of the arrays; true if arrays are not known. An address in the arrays
; that it was computed from says that it has to be in one of those.
define internal i1 @is_inside(ptr %launch, i64 %at, i64 %size, i64 %base) nounwind {
entry:
  %extents.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.extents}
  %extents = load ptr, ptr %extents.slot
  %unknown = icmp eq ptr %extents, null
  br i1 %unknown, label %yes, label %shared
shared:
  %shared.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.shared}
  %shared.low = load i64, ptr %shared.slot
  %shared.size.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.shared_bytes}
  %shared.size = load i64, ptr %shared.size.slot
  %in.shared = call i1 @fits(i64 %at, i64 %size, i64 %shared.low, i64 %shared.size)
  %count.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.extent_count}
  %count = load i64, ptr %count.slot
  br label %head
head:
  %i = phi i64 [ 0, %shared ], [ %next, %each ]
  %in.any = phi i1 [ %in.shared, %shared ], [ %in.any.next, %each ]
  %in.own = phi i1 [ false, %shared ], [ %in.own.next, %each ]
  %has.own = phi i1 [ false, %shared ], [ %has.own.next, %each ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %each, label %done
each:
  %extent = getelementptr %irad.cuda.extent, ptr %extents, i64 %i
  %low.slot = getelementptr inbounds %irad.cuda.extent, ptr %extent, i32 0, i32 ${extent.address}
  %low = load i64, ptr %low.slot
  %bytes.slot = getelementptr inbounds %irad.cuda.extent, ptr %extent, i32 0, i32 ${extent.bytes}
  %bytes = load i64, ptr %bytes.slot
  %next = add i64 %i, 1
  %in.this = call i1 @fits(i64 %at, i64 %size, i64 %low, i64 %bytes)
  %is.low = icmp eq i64 %base, %low
  %distance = sub i64 %base, %low
  %within = icmp ult i64 %distance, %bytes
  %is.own = or i1 %is.low, %within
  %in.both = and i1 %in.this, %is.own
  %in.any.next = or i1 %in.any, %in.this
  %in.own.next = or i1 %in.own, %in.both
  %has.own.next = or i1 %has.own, %is.own
  br label %head
done:
  %inside = select i1 %has.own, i1 %in.own, i1 %in.any
  ret i1 %inside
yes:
  ret i1 true
}

; Whether %size bytes at an address lie in %bytes bytes at %low.
define internal i1 @fits(i64 %at, i64 %size, i64 %low, i64 %bytes) nounwind alwaysinline {
  %offset = sub i64 %at, %low
  %starts = icmp ult i64 %offset, %bytes
  %left = sub i64 %bytes, %offset
  %ends = icmp ule i64 %size, %left
  %both = and i1 %starts, %ends
  ret i1 %both
}

; Threads of a warp, by lane, have waited for each other.
define void @irad.cuda.log_warp(ptr %launch, ptr %warp, i32 %group) nounwind {
entry:
  %trace.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.room}
  %room = load i64, ptr %trace.slot
  %kept = icmp ne i64 %room, 0
  br i1 %kept, label %log, label %done
log:
  %index.slot = getelementptr inbounds %irad.cuda.thread, ptr %warp, i32 0, i32 ${thread.index}
  %index = load i32, ptr %index.slot
  %lanes = zext i32 %group to i64
  call void @append(ptr %launch, i64 %lanes, i32 0, i32 ${Kind.WARP_SYNC}, i32 0, i32 %index, i32 0)
  br label %done
done:
  ret void
}

; A block begins, with this number.
define void @irad.cuda.log_block(ptr %launch, i64 %number) nounwind {
entry:
  %room.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.room}
  %room = load i64, ptr %room.slot
  %kept = icmp ne i64 %room, 0
  br i1 %kept, label %log, label %done
log:
  call void @append(ptr %launch, i64 %number, i32 0, i32 ${Kind.BLOCK}, i32 0, i32 0, i32 0)
  br label %done
done:
  ret void
}

; Adds an entry to the log, which grows by doubling.
define internal void @append(ptr %launch, i64 %address, i32 %size, i32 %kind, i32 %site, i32 %index, i32 %clock) nounwind {
entry:
  %traced.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.traced}
  %traced = load i64, ptr %traced.slot
  %room.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.room}
  %room = load i64, ptr %room.slot
  %trace.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.trace}
  %full = icmp uge i64 %traced, %room
  br i1 %full, label %grow, label %write
grow:
  %room.new = mul i64 %room, 2
  %bytes = mul i64 %room.new, ${sizeof entry}
  %old = load ptr, ptr %trace.slot
  %new = call ptr @realloc(ptr %old, i64 %bytes)
  %none = icmp eq ptr %new, null
  br i1 %none, label %failed, label %grown
failed:
  %failed.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.failed}
  store i32 1, ptr %failed.slot
  ret void
grown:
  store ptr %new, ptr %trace.slot
  store i64 %room.new, ptr %room.slot
  br label %write
write:
  %trace = load ptr, ptr %trace.slot
  %entry.slot = getelementptr %irad.cuda.entry, ptr %trace, i64 %traced
  %to.address = getelementptr inbounds %irad.cuda.entry, ptr %entry.slot, i32 0, i32 ${entry.address}
  store i64 %address, ptr %to.address
  %to.size = getelementptr inbounds %irad.cuda.entry, ptr %entry.slot, i32 0, i32 ${entry.size}
  store i32 %size, ptr %to.size
  %to.kind = getelementptr inbounds %irad.cuda.entry, ptr %entry.slot, i32 0, i32 ${entry.kind}
  store i32 %kind, ptr %to.kind
  %to.site = getelementptr inbounds %irad.cuda.entry, ptr %entry.slot, i32 0, i32 ${entry.site}
  store i32 %site, ptr %to.site
  %to.thread = getelementptr inbounds %irad.cuda.entry, ptr %entry.slot, i32 0, i32 ${entry.thread}
  store i32 %index, ptr %to.thread
  %epoch.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.epoch}
  %epoch = load i32, ptr %epoch.slot
  %to.epoch = getelementptr inbounds %irad.cuda.entry, ptr %entry.slot, i32 0, i32 ${entry.epoch}
  store i32 %epoch, ptr %to.epoch
  %to.clock = getelementptr inbounds %irad.cuda.entry, ptr %entry.slot, i32 0, i32 ${entry.clock}
  store i32 %clock, ptr %to.clock
  %traced.new = add i64 %traced, 1
  store i64 %traced.new, ptr %traced.slot
  ret void
}
