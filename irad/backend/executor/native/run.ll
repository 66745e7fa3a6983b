; Runs the blocks of a launch, one after another, and the threads of a block in rounds.
;
; A thread is a coroutine: it runs until it waits or returns, and its state says which. The first word of a frame is the
; function that resumes it, as `llvm.coro.resume` has it. In a round every thread that is ready runs, in the order of the
; round. Between rounds a barrier is released if all live threads of the block wait at it; else operations of warps are
; carried out (warp.ll); if none can be, the block is stuck.
;
; Ownership: the launch and its arrays are Python's and outlive the run. Frames of coroutines are one piece of memory, made
; when the first thread asks for its frame and freed by Python with the launch; they serve one block after another.

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @llvm.frameaddress.p0(i32)
declare ptr @aligned_alloc(i64, i64)
declare i64 @irad.cuda.exchange(ptr)
declare void @irad.cuda.log_block(ptr, i64)

; Blocks number %first to %last - 1 of the order. The result is why it stopped. Frame pointers are kept so that %frame is
; above all that threads have on the stack.
define i32 @irad.cuda.run(ptr %launch, i64 %first, i64 %last) nounwind noinline "frame-pointer"="all" {
entry:
  %frame = call ptr @llvm.frameaddress.p0(i32 0)
  %stack = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.stack}
  store ptr %frame, ptr %stack
  br label %head
head:
  %position = phi i64 [ %first, %entry ], [ %next, %body ]
  %status.before = phi i32 [ ${Stop.DONE}, %entry ], [ %status, %body ]
  %more = icmp slt i64 %position, %last
  %good = icmp eq i32 %status.before, ${Stop.DONE}
  %go = and i1 %more, %good
  br i1 %go, label %body, label %done
body:
  call void @place_block(ptr %launch, i64 %position)
  call void @reset_block(ptr %launch)
  %status = call i32 @run_block(ptr %launch)
  %next = add i64 %position, 1
  br label %head
done:
  ret i32 %status.before
}

; Writes down which block it is.
define internal void @place_block(ptr %launch, i64 %position) nounwind {
  %blocks.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.blocks}
  %blocks = load ptr, ptr %blocks.slot
  %number.slot = getelementptr i64, ptr %blocks, i64 %position
  %number = load i64, ptr %number.slot
  %x.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.nctaid_x}
  %x.size.32 = load i32, ptr %x.slot
  %x.size = zext i32 %x.size.32 to i64
  %y.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.nctaid_y}
  %y.size.32 = load i32, ptr %y.slot
  %y.size = zext i32 %y.size.32 to i64
  %x = urem i64 %number, %x.size
  %row = udiv i64 %number, %x.size
  %y = urem i64 %row, %y.size
  %z = udiv i64 %row, %y.size
  %x.32 = trunc i64 %x to i32
  %y.32 = trunc i64 %y to i32
  %z.32 = trunc i64 %z to i32
  %to.x = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.ctaid_x}
  store i32 %x.32, ptr %to.x
  %to.y = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.ctaid_y}
  store i32 %y.32, ptr %to.y
  %to.z = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.ctaid_z}
  store i32 %z.32, ptr %to.z
  call void @irad.cuda.log_block(ptr %launch, i64 %number)
  ret void
}

; Shared memory without contents: all ones, a NaN of each precision. No thread has started.
define internal void @reset_block(ptr %launch) nounwind {
entry:
  %shared.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.shared}
  %shared = load ptr, ptr %shared.slot
  %bytes.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.shared_bytes}
  %bytes = load i64, ptr %bytes.slot
  call void @llvm.memset.p0.i64(ptr %shared, i8 -1, i64 %bytes, i1 false)
  %finished.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.finished}
  store i64 0, ptr %finished.slot
  call void @next_epoch(ptr %launch)
  call void @no_barrier(ptr %launch)
  %threads.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.threads}
  %threads = load ptr, ptr %threads.slot
  %count.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.count}
  %count = load i64, ptr %count.slot
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %thread = getelementptr %irad.cuda.thread, ptr %threads, i64 %i
  %state = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.state}
  store i32 ${State.READY}, ptr %state
  %handle = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.handle}
  store ptr null, ptr %handle
  %clock = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.clock}
  store i32 0, ptr %clock
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %done
done:
  ret void
}

; Accesses before and after are ordered.
define internal void @next_epoch(ptr %launch) nounwind {
  %epoch.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.epoch}
  %epoch = load i32, ptr %epoch.slot
  %epoch.more = add i32 %epoch, 1
  store i32 %epoch.more, ptr %epoch.slot
  ret void
}

; Nobody waits at a barrier.
define internal void @no_barrier(ptr %launch) nounwind {
  %waiting = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.waiting}
  store i64 0, ptr %waiting
  %kinds = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.kinds}
  store i32 0, ptr %kinds
  ret void
}

; Runs the threads of a block until all have returned, or says why that cannot be.
define internal i32 @run_block(ptr %launch) nounwind {
entry:
  %count.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.count}
  %count = load i64, ptr %count.slot
  %rounds.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.rounds}
  %rounds = load i64, ptr %rounds.slot
  %orders.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.orders}
  %orders = load ptr, ptr %orders.slot
  %finished.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.finished}
  %waiting.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.waiting}
  %failed.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.failed}
  %fault.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.fault}
  %room.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.room}
  %mixed.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.mixed_thread}
  br label %round
round:
  %turn = phi i64 [ 0, %entry ], [ %turn.next, %again ]
  %which = urem i64 %turn, %rounds
  %skip = mul i64 %which, %count
  %order = getelementptr i32, ptr %orders, i64 %skip
  call void @run_ready(ptr %launch, ptr %order)
  %failed = load i32, ptr %failed.slot
  %fine = icmp eq i32 %failed, 0
  br i1 %fine, label %inside, label %out.of.memory
inside:
  %fault = load i64, ptr %fault.slot
  %no.fault = icmp slt i64 %fault, 0
  br i1 %no.fault, label %ask, label %outside
ask:
  %finished = load i64, ptr %finished.slot
  %over = icmp eq i64 %finished, %count
  br i1 %over, label %done, label %live
live:
  %waiting = load i64, ptr %waiting.slot
  %both = add i64 %finished, %waiting
  %all = icmp eq i64 %both, %count
  br i1 %all, label %barrier, label %warps
barrier:
  %room = load i64, ptr %room.slot
  %logs = icmp ne i64 %room, 0
  %mixed.thread = load i32, ptr %mixed.slot
  %in.two.places = icmp sge i32 %mixed.thread, 0
  %reported = and i1 %logs, %in.two.places
  br i1 %reported, label %places, label %agreed
agreed:
  %released = call i1 @release(ptr %launch)
  br i1 %released, label %again, label %mixed
warps:
  %carried = call i64 @irad.cuda.exchange(ptr %launch)
  %stuck = icmp eq i64 %carried, 0
  br i1 %stuck, label %deadlock, label %again
again:
  %turn.next = add i64 %turn, 1
  br label %round
done:
  ret i32 ${Stop.DONE}
deadlock:
  ret i32 ${Stop.STUCK}
mixed:
  ret i32 ${Stop.KINDS}
out.of.memory:
  ret i32 ${Stop.NO_MEMORY}
outside:
  ret i32 ${Stop.OUTSIDE}
places:
  ret i32 ${Stop.PLACES}
}

; A round.
define internal void @run_ready(ptr %launch, ptr %order) nounwind {
entry:
  %threads.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.threads}
  %threads = load ptr, ptr %threads.slot
  %count.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.count}
  %count = load i64, ptr %count.slot
  %start.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.start}
  %start = load ptr, ptr %start.slot
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %ran ]
  %index.slot = getelementptr i32, ptr %order, i64 %i
  %index = load i32, ptr %index.slot
  %index.64 = zext i32 %index to i64
  %thread = getelementptr %irad.cuda.thread, ptr %threads, i64 %index.64
  %state.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.state}
  %state = load i32, ptr %state.slot
  %ready = icmp eq i32 %state, ${State.READY}
  br i1 %ready, label %go, label %ran
go:
  %handle.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.handle}
  %handle = load ptr, ptr %handle.slot
  %new = icmp eq ptr %handle, null
  br i1 %new, label %begin, label %go.on
begin:
  %made = call ptr %start(ptr %thread)
  store ptr %made, ptr %handle.slot
  br label %count.it
go.on:
  %resume = load ptr, ptr %handle
  call fastcc void %resume(ptr %handle)
  br label %count.it
count.it:
  call void @count_thread(ptr %launch, ptr %thread)
  br label %ran
ran:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %done
done:
  ret void
}

; Counts a thread that has just run: it has returned, or waits at a barrier, or else for its warp. A place below 0 goes
; with every other.
define internal void @count_thread(ptr %launch, ptr %thread) nounwind alwaysinline {
entry:
  %state.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.state}
  %state = load i32, ptr %state.slot
  switch i32 %state, label %done [
    i32 ${State.FINISHED}, label %returned
    i32 ${State.BARRIER}, label %waits
    i32 ${State.BARRIER_POPC}, label %waits
    i32 ${State.BARRIER_AND}, label %waits
    i32 ${State.BARRIER_OR}, label %waits
  ]
returned:
  %finished.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.finished}
  %finished = load i64, ptr %finished.slot
  %finished.more = add i64 %finished, 1
  store i64 %finished.more, ptr %finished.slot
  ret void
waits:
  %waiting.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.waiting}
  %waiting = load i64, ptr %waiting.slot
  %waiting.more = add i64 %waiting, 1
  store i64 %waiting.more, ptr %waiting.slot
  %bit = shl i32 1, %state
  %kinds.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.kinds}
  %kinds = load i32, ptr %kinds.slot
  %kinds.more = or i32 %kinds, %bit
  store i32 %kinds.more, ptr %kinds.slot
  %site.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.site}
  %site = load i32, ptr %site.slot
  %first.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.first_site}
  %is.first = icmp eq i64 %waiting, 0
  br i1 %is.first, label %keep, label %compare
keep:
  store i32 %site, ptr %first.slot
  ret void
compare:
  %first = load i32, ptr %first.slot
  %same = icmp eq i32 %site, %first
  %anywhere = icmp slt i32 %site, 0
  %fine = or i1 %same, %anywhere
  br i1 %fine, label %done, label %ask.first
ask.first:
  %first.anywhere = icmp slt i32 %first, 0
  br i1 %first.anywhere, label %keep, label %differs
differs:
  call void @note_mixed(ptr %launch, ptr %thread, i32 %site, i32 %first)
  ret void
done:
  ret void
}

; Threads of a block wait at different barriers of the program: the first such case is kept.
define internal void @note_mixed(ptr %launch, ptr %thread, i32 %site, i32 %first) nounwind noinline {
entry:
  %mixed.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.mixed_thread}
  %mixed = load i32, ptr %mixed.slot
  %none = icmp slt i32 %mixed, 0
  br i1 %none, label %keep, label %done
keep:
  %index.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.index}
  %index = load i32, ptr %index.slot
  store i32 %index, ptr %mixed.slot
  %site.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.mixed_site}
  store i32 %site, ptr %site.slot
  %other.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.mixed_other}
  store i32 %first, ptr %other.slot
  br label %done
done:
  ret void
}

; All live threads wait at barriers: lets them go on, false if they are of different kinds. A barrier with a predicate
; gives how many predicates hold, whether all do, or whether one does.
define internal i1 @release(ptr %launch) nounwind {
entry:
  %barriers.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.barriers}
  %barriers = load i64, ptr %barriers.slot
  %barriers.more = add i64 %barriers, 1
  store i64 %barriers.more, ptr %barriers.slot
  call void @next_epoch(ptr %launch)
  %kinds.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.kinds}
  %kinds = load i32, ptr %kinds.slot
  call void @no_barrier(ptr %launch)
  switch i32 %kinds, label %mixed [
    i32 ${bit State.BARRIER}, label %plain
    i32 ${bit State.BARRIER_POPC}, label %counted
    i32 ${bit State.BARRIER_AND}, label %all
    i32 ${bit State.BARRIER_OR}, label %any
  ]
plain:
  call void @let_go(ptr %launch, i64 0)
  ret i1 true
counted:
  %holding = call i64 @count_predicates(ptr %launch, i1 true)
  call void @let_go(ptr %launch, i64 %holding)
  ret i1 true
all:
  %failing = call i64 @count_predicates(ptr %launch, i1 false)
  %none.fails = icmp eq i64 %failing, 0
  %all.hold = zext i1 %none.fails to i64
  call void @let_go(ptr %launch, i64 %all.hold)
  ret i1 true
any:
  %some = call i64 @count_predicates(ptr %launch, i1 true)
  %is.some = icmp ne i64 %some, 0
  %one.holds = zext i1 %is.some to i64
  call void @let_go(ptr %launch, i64 %one.holds)
  ret i1 true
mixed:
  ret i1 false
}

; How many of the waiting threads have a predicate that holds, or does not.
define internal i64 @count_predicates(ptr %launch, i1 %wanted) nounwind {
entry:
  %threads.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.threads}
  %threads = load ptr, ptr %threads.slot
  %count.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.count}
  %count = load i64, ptr %count.slot
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %sum = phi i64 [ 0, %entry ], [ %sum.next, %each ]
  %thread = getelementptr %irad.cuda.thread, ptr %threads, i64 %i
  %state.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.state}
  %state = load i32, ptr %state.slot
  %waits = icmp ugt i32 %state, ${State.FINISHED}
  %operand.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.operand}
  %operand = load i32, ptr %operand.slot
  %holds = icmp ne i32 %operand, 0
  %as.wanted = icmp eq i1 %holds, %wanted
  %counts = and i1 %waits, %as.wanted
  %one = zext i1 %counts to i64
  %sum.next = add i64 %sum, %one
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %done
done:
  ret i64 %sum.next
}

; Every waiting thread is ready and has a result.
define internal void @let_go(ptr %launch, i64 %result) nounwind {
entry:
  %threads.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.threads}
  %threads = load ptr, ptr %threads.slot
  %count.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.count}
  %count = load i64, ptr %count.slot
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  %thread = getelementptr %irad.cuda.thread, ptr %threads, i64 %i
  %state.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.state}
  %state = load i32, ptr %state.slot
  %waits = icmp ugt i32 %state, ${State.FINISHED}
  br i1 %waits, label %free, label %step
free:
  store i32 ${State.READY}, ptr %state.slot
  %value.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.value}
  store i64 %result, ptr %value.slot
  br label %step
step:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %done
done:
  ret void
}

; Memory for the coroutine of a thread: the same for the thread of each block, since blocks run one after another. Null
; if there is none.
define ptr @irad.cuda.take_frame(ptr %thread, i64 %size) nounwind {
entry:
  %launch.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.launch}
  %launch = load ptr, ptr %launch.slot
  %raised = add i64 %size, ${ROUND_UP}
  %stride = and i64 %raised, -${ALIGNMENT}
  %pool.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.pool}
  %pool = load ptr, ptr %pool.slot
  %missing = icmp eq ptr %pool, null
  br i1 %missing, label %make, label %give
make:
  %count.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.count}
  %count = load i64, ptr %count.slot
  %bytes = mul i64 %count, %stride
  %made = call ptr @aligned_alloc(i64 ${ALIGNMENT}, i64 %bytes)
  store ptr %made, ptr %pool.slot
  %stride.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.stride}
  store i64 %stride, ptr %stride.slot
  %none = icmp eq ptr %made, null
  br i1 %none, label %failed, label %give
failed:
  %failed.slot = getelementptr inbounds %irad.cuda.launch, ptr %launch, i32 0, i32 ${launch.failed}
  store i32 1, ptr %failed.slot
  ret ptr null
give:
  %frames = phi ptr [ %pool, %entry ], [ %made, %make ]
  %index.slot = getelementptr inbounds %irad.cuda.thread, ptr %thread, i32 0, i32 ${thread.index}
  %index = load i32, ptr %index.slot
  %index.64 = zext i32 %index to i64
  %offset = mul i64 %index.64, %stride
  %frame = getelementptr i8, ptr %frames, i64 %offset
  ret ptr %frame
}
