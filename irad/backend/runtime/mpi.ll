; Communication of programs that call numba_mpi: the functions that `irad/rules/mpi.py` has rules for, on top of MPI's own.
;
; All act on MPI.COMM_WORLD. What differs from one MPI library to the next, handles and named constants, stands in
; @irad.mpi_library, which `irad/frontend/numba/mpi.py` fills in and owns. A peer of -1 is MPI_PROC_NULL, -2 is
; MPI_ANY_SOURCE, a tag of -1 is MPI_ANY_TAG. Handles are passed as i64 also where the library has them as int: in a register
; or a word of the stack the callee finds the low half.
;
; A record stands for a message that is on its way, or will be:
;
;     open ──▶ start ──▶ finish [──▶ start ──▶ finish …]      companions: the records of its tangents or cotangents
;
;     mode 0, recv   the data are what comes
;          1, send   the data go; they stay
;          2, add    what comes is added to the data; it is received in the bytes after the record
;          3, give   the data go, and are zero afterwards
;
; The data may be null: what comes is dropped then, and the bytes after the record go, which are zeros.
;
; Ownership:
; * A record of the program lies in one of the slots of @irad.mpi_library, from open until the program releases it; its
;   number is what the program has for a request. A record of a derivative lies on its tape.
; * The data belong to the program, or to the tape. MPI reads or writes them from start until finish.
; * Nothing here is for several threads at a time, as MPI itself is not unless it was asked to be.

@irad.mpi_library = external global %irad.mpi_library

declare void @irad.add_f64(ptr, ptr, i64)
declare void @irad.add_f32(ptr, ptr, i64)
declare i32 @MPI_Send(ptr, i32, i64, i32, i32, i64)
declare i32 @MPI_Recv(ptr, i32, i64, i32, i32, i64, ptr)
declare i32 @MPI_Isend(ptr, i32, i64, i32, i32, i64, ptr)
declare i32 @MPI_Irecv(ptr, i32, i64, i32, i32, i64, ptr)
declare i32 @MPI_Wait(ptr, ptr)
declare i32 @MPI_Test(ptr, ptr, ptr)
declare i32 @MPI_Probe(i32, i32, i64, ptr)
declare i32 @MPI_Get_count(ptr, i64, ptr)
declare i32 @MPI_Bcast(ptr, i32, i64, i32, i64)
declare i32 @MPI_Reduce(ptr, ptr, i32, i64, i64, i32, i64)
declare i32 @MPI_Allreduce(ptr, ptr, i32, i64, i64, i64)
declare i32 @MPI_Gather(ptr, i32, i64, ptr, i32, i64, i32, i64)
declare i32 @MPI_Scatter(ptr, i32, i64, ptr, i32, i64, i32, i64)
declare i32 @MPI_Allgather(ptr, i32, i64, ptr, i32, i64, i64)
declare i32 @MPI_Reduce_scatter_block(ptr, ptr, i32, i64, i64, i64)
declare i32 @MPI_Barrier(i64)
declare i32 @MPI_Comm_rank(i64, ptr)
declare i32 @MPI_Comm_size(i64, ptr)

; --- what the library calls things ------------------------------------------------------------------------------------

define linkonce_odr i64 @irad.mpi_comm() nounwind noinline {
  %at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.comm}
  %comm = load i64, ptr %at
  ret i64 %comm
}

; MPI's type of elements, by number: the fields from `float64` on.
define linkonce_odr i64 @irad.mpi_type(i64 %kind) nounwind noinline {
  %first = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.float64}
  %at = getelementptr inbounds i64, ptr %first, i64 %kind
  %type = load i64, ptr %at
  ret i64 %type
}

; MPI's operation: the fields from `sum` on.
define linkonce_odr i64 @irad.mpi_operation(i64 %number) nounwind noinline {
  %first = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.sum}
  %at = getelementptr inbounds i64, ptr %first, i64 %number
  %operation = load i64, ptr %at
  ret i64 %operation
}

; The number of an operation: of one that the program names, or by the address that numba_mpi has for it.
define linkonce_odr i64 @irad.mpi.operation(i64 %given) nounwind noinline {
  %max.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.max_at}
  %min.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.min_at}
  %sum.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.sum_at}
  %max = load i64, ptr %max.at
  %min = load i64, ptr %min.at
  %sum = load i64, ptr %sum.at
  %is.max = icmp eq i64 %given, %max
  %is.min = icmp eq i64 %given, %min
  %is.sum = icmp eq i64 %given, %sum
  %a = select i1 %is.max, i64 1, i64 %given
  %b = select i1 %is.min, i64 2, i64 %a
  %number = select i1 %is.sum, i64 0, i64 %b
  ret i64 %number
}

define linkonce_odr i32 @irad.mpi_peer(i64 %peer) nounwind noinline {
  %null.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.proc_null}
  %any.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.any_source}
  %null = load i64, ptr %null.at
  %any = load i64, ptr %any.at
  %is.null = icmp eq i64 %peer, -1
  %is.any = icmp eq i64 %peer, -2
  %either = select i1 %is.null, i64 %null, i64 %any
  %named = or i1 %is.null, %is.any
  %wide = select i1 %named, i64 %either, i64 %peer
  %found = trunc i64 %wide to i32
  ret i32 %found
}

define linkonce_odr i32 @irad.mpi_tag(i64 %tag) nounwind noinline {
  %any.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.any_tag}
  %any = load i64, ptr %any.at
  %is.any = icmp eq i64 %tag, -1
  %wide = select i1 %is.any, i64 %any, i64 %tag
  %found = trunc i64 %wide to i32
  ret i32 %found
}

; The number of a peer as this file has it, for one as the program has it.
define linkonce_odr i64 @irad.mpi.peer(i64 %given) nounwind noinline {
  %null.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.proc_null}
  %any.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.any_source}
  %null = load i64, ptr %null.at
  %any = load i64, ptr %any.at
  %is.null = icmp eq i64 %given, %null
  %is.any = icmp eq i64 %given, %any
  %other = select i1 %is.any, i64 -2, i64 %given
  %peer = select i1 %is.null, i64 -1, i64 %other
  ret i64 %peer
}

define linkonce_odr i64 @irad.mpi.tag(i64 %given) nounwind noinline {
  %any.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.any_tag}
  %any = load i64, ptr %any.at
  %is.any = icmp eq i64 %given, %any
  %tag = select i1 %is.any, i64 -1, i64 %given
  ret i64 %tag
}

define linkonce_odr i64 @irad.mpi.rank() nounwind noinline {
  %slot = alloca i32
  store i32 0, ptr %slot
  %comm = call i64 @irad.mpi_comm()
  %status = call i32 @MPI_Comm_rank(i64 %comm, ptr %slot)
  %rank = load i32, ptr %slot
  %wide = sext i32 %rank to i64
  ret i64 %wide
}

define linkonce_odr i64 @irad.mpi.size() nounwind noinline {
  %slot = alloca i32
  store i32 1, ptr %slot
  %comm = call i64 @irad.mpi_comm()
  %status = call i32 @MPI_Comm_size(i64 %comm, ptr %slot)
  %size = load i32, ptr %slot
  %wide = sext i32 %size to i64
  ret i64 %wide
}

; --- messages that the caller waits for -------------------------------------------------------------------------------

define linkonce_odr i64 @irad.mpi.send(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag) nounwind noinline {
  %type = call i64 @irad.mpi_type(i64 %kind)
  %comm = call i64 @irad.mpi_comm()
  %to = call i32 @irad.mpi_peer(i64 %peer)
  %count = trunc i64 %n to i32
  %short = trunc i64 %tag to i32
  %status = call i32 @MPI_Send(ptr %data, i32 %count, i64 %type, i32 %to, i32 %short, i64 %comm)
  %wide = sext i32 %status to i64
  ret i64 %wide
}

define linkonce_odr i64 @irad.mpi.recv(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag) nounwind noinline {
  %ignored = alloca [16 x i64]
  %type = call i64 @irad.mpi_type(i64 %kind)
  %comm = call i64 @irad.mpi_comm()
  %from = call i32 @irad.mpi_peer(i64 %peer)
  %count = trunc i64 %n to i32
  %short = trunc i64 %tag to i32
  %status = call i32 @MPI_Recv(ptr %data, i32 %count, i64 %type, i32 %from, i32 %short, i64 %comm, ptr %ignored)
  %wide = sext i32 %status to i64
  ret i64 %wide
}

; Waits for a message; `found` then tells its source, its tag and the number of its elements.
define linkonce_odr i64 @irad.mpi.probe(i64 %peer, i64 %tag, i64 %kind) nounwind noinline {
  %message = alloca [16 x i64]
  %source.at.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.source_at}
  %tag.at.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.tag_at}
  %source.at = load i64, ptr %source.at.at
  %tag.at = load i64, ptr %tag.at.at
  %comm = call i64 @irad.mpi_comm()
  %from = call i32 @irad.mpi_peer(i64 %peer)
  %wanted = call i32 @irad.mpi_tag(i64 %tag)
  %status = call i32 @MPI_Probe(i32 %from, i32 %wanted, i64 %comm, ptr %message)
  %source.slot = getelementptr inbounds i8, ptr %message, i64 %source.at
  %tag.slot = getelementptr inbounds i8, ptr %message, i64 %tag.at
  %source.32 = load i32, ptr %source.slot
  %tag.32 = load i32, ptr %tag.slot
  %source = sext i32 %source.32 to i64
  %found = sext i32 %tag.32 to i64
  %count = call i64 @irad.mpi_count(ptr %message, i64 %kind)
  %source.to = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.found_source}
  %tag.to = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.found_tag}
  %count.to = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.found_count}
  store i64 %source, ptr %source.to
  store i64 %found, ptr %tag.to
  store i64 %count, ptr %count.to
  %wide = sext i32 %status to i64
  ret i64 %wide
}

; 0: the source, 1: the tag, 2: the number of elements of what was probed last.
define linkonce_odr i64 @irad.mpi.found(i64 %number) nounwind noinline {
  %first = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.found_source}
  %at = getelementptr inbounds i64, ptr %first, i64 %number
  %value = load i64, ptr %at
  ret i64 %value
}

define linkonce_odr i64 @irad.mpi_count(ptr %message, i64 %kind) nounwind noinline {
  %slot = alloca i32
  store i32 0, ptr %slot
  %type = call i64 @irad.mpi_type(i64 %kind)
  %status = call i32 @MPI_Get_count(ptr %message, i64 %type, ptr %slot)
  %count = load i32, ptr %slot
  %wide = sext i32 %count to i64
  ret i64 %wide
}

; --- messages on their way --------------------------------------------------------------------------------------------

define linkonce_odr i64 @irad.mpi_open(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag, i64 %record, i64 %mode) nounwind noinline {
  %at = inttoptr i64 %record to ptr
  call void @llvm.memset.p0.i64(ptr %at, i8 0, i64 ${sizeof mpi_record}, i1 false)
  %data.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.data}
  store ptr %data, ptr %data.at
  %n.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.n}
  store i64 %n, ptr %n.at
  %kind.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.kind}
  store i64 %kind, ptr %kind.at
  %peer.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.peer}
  store i64 %peer, ptr %peer.at
  %tag.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.tag}
  store i64 %tag, ptr %tag.at
  %mode.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.mode}
  store i64 %mode, ptr %mode.at
  ret i64 0
}

define linkonce_odr i64 @irad.mpi.open_recv(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag, i64 %record, i64 %depth) nounwind noinline {
  %done = call i64 @irad.mpi_open(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag, i64 %record, i64 0)
  ret i64 %done
}

define linkonce_odr i64 @irad.mpi.open_send(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag, i64 %record, i64 %depth) nounwind noinline {
  %done = call i64 @irad.mpi_open(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag, i64 %record, i64 1)
  ret i64 %done
}

define linkonce_odr i64 @irad.mpi.open_add(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag, i64 %record, i64 %depth) nounwind noinline {
  %done = call i64 @irad.mpi_open(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag, i64 %record, i64 2)
  ret i64 %done
}

define linkonce_odr i64 @irad.mpi.open_give(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag, i64 %record, i64 %depth) nounwind noinline {
  %done = call i64 @irad.mpi_open(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag, i64 %record, i64 3)
  ret i64 %done
}

define linkonce_odr i64 @irad.mpi.start(i64 %record, i64 %depth) nounwind noinline {
entry:
  %none = icmp eq i64 %record, 0
  br i1 %none, label %nothing, label %begin
nothing:
  ret i64 0
begin:
  %at = inttoptr i64 %record to ptr
  %request.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.request}
  %data.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.data}
  %data = load ptr, ptr %data.at
  %n.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.n}
  %n = load i64, ptr %n.at
  %kind.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.kind}
  %kind = load i64, ptr %kind.at
  %peer.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.peer}
  %peer = load i64, ptr %peer.at
  %tag.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.tag}
  %tag = load i64, ptr %tag.at
  %mode.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.mode}
  %mode = load i64, ptr %mode.at
  %spare = getelementptr inbounds i8, ptr %at, i64 ${sizeof mpi_record}
  %no.data = icmp eq ptr %data, null
  %adds = icmp eq i64 %mode, 2
  %uses.spare = or i1 %no.data, %adds
  %buffer = select i1 %uses.spare, ptr %spare, ptr %data
  %type = call i64 @irad.mpi_type(i64 %kind)
  %comm = call i64 @irad.mpi_comm()
  %other = call i32 @irad.mpi_peer(i64 %peer)
  %count = trunc i64 %n to i32
  %short = trunc i64 %tag to i32
  store i64 0, ptr %request.at
  %waits.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.waits}
  store i64 1, ptr %waits.at
  %odd = and i64 %mode, 1
  %is.send = icmp ne i64 %odd, 0
  br i1 %is.send, label %out, label %in
out:
  %sent = call i32 @MPI_Isend(ptr %buffer, i32 %count, i64 %type, i32 %other, i32 %short, i64 %comm, ptr %request.at)
  br label %end
in:
  %received = call i32 @MPI_Irecv(ptr %buffer, i32 %count, i64 %type, i32 %other, i32 %short, i64 %comm, ptr %request.at)
  br label %end
end:
  %status = phi i32 [ %sent, %out ], [ %received, %in ]
  %wide = sext i32 %status to i64
  ret i64 %wide
}

define linkonce_odr i64 @irad.mpi.finish(i64 %record, i64 %depth) nounwind noinline {
entry:
  %message = alloca [16 x i64]
  %none = icmp eq i64 %record, 0
  br i1 %none, label %nothing, label %begin
nothing:
  ret i64 0
begin:
  %at = inttoptr i64 %record to ptr
  %request.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.request}
  %status = call i32 @MPI_Wait(ptr %request.at, ptr %message)
  call void @irad.mpi_note(ptr %at, ptr %message)
  %wide = sext i32 %status to i64
  ret i64 %wide
}

; Whether a message is through. MPI_Wait returns at once afterwards: the request is the null request.
define linkonce_odr i64 @irad.mpi.has_finished(i64 %record) nounwind noinline {
entry:
  %message = alloca [16 x i64]
  %flag = alloca i32
  store i32 0, ptr %flag
  %at = inttoptr i64 %record to ptr
  %request.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.request}
  %status = call i32 @MPI_Test(ptr %request.at, ptr %flag, ptr %message)
  %done = load i32, ptr %flag
  %is.done = icmp ne i32 %done, 0
  br i1 %is.done, label %note, label %end
note:
  call void @irad.mpi_note(ptr %at, ptr %message)
  br label %end
end:
  %wide = zext i1 %is.done to i64
  ret i64 %wide
}

; What is left to do when a message is through. One that was received may be shorter than the memory for it, and so are those
; of its companions, which are all open by then, and of theirs.
define linkonce_odr void @irad.mpi_note(ptr %at, ptr %message) nounwind noinline {
entry:
  %waits.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.waits}
  %waits = load i64, ptr %waits.at
  store i64 0, ptr %waits.at
  %mode.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.mode}
  %mode = load i64, ptr %mode.at
  %kind.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.kind}
  %kind = load i64, ptr %kind.at
  %data.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.data}
  %data = load ptr, ptr %data.at
  %is.new = icmp ne i64 %waits, 0
  br i1 %is.new, label %new, label %end
new:
  %odd = and i64 %mode, 1
  %sends = icmp ne i64 %odd, 0
  br i1 %sends, label %sent, label %received
sent:
  %gives = icmp eq i64 %mode, 3
  br i1 %gives, label %clear, label %end
clear:
  %n.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.n}
  %n = load i64, ptr %n.at
  %size = call i64 @irad.mpi_size_of(i64 %kind)
  %bytes = mul i64 %n, %size
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %bytes, i1 false)
  br label %end
received:
  %count = call i64 @irad.mpi_count(ptr %message, i64 %kind)
  call void @irad.mpi_shorten(ptr %at, i64 %count)
  %adds = icmp eq i64 %mode, 2
  %has.data = icmp ne ptr %data, null
  %both = and i1 %adds, %has.data
  br i1 %both, label %add, label %end
add:
  %spare = getelementptr inbounds i8, ptr %at, i64 ${sizeof mpi_record}
  %is.real = icmp eq i64 %kind, 0
  %twice = shl i64 %count, 1
  %numbers = select i1 %is.real, i64 %count, i64 %twice
  %is.double = icmp ult i64 %kind, 2
  br i1 %is.double, label %add.double, label %add.single
add.double:
  call void @irad.add_f64(ptr %data, ptr %spare, i64 %numbers)
  br label %end
add.single:
  call void @irad.add_f32(ptr %data, ptr %spare, i64 %numbers)
  br label %end
end:
  ret void
}

define linkonce_odr void @irad.mpi_shorten(ptr %at, i64 %n) nounwind noinline {
entry:
  %n.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.n}
  store i64 %n, ptr %n.at
  %count.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.count}
  %companions = load i64, ptr %count.at
  %first.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.companion0}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %tell ]
  %more = icmp ult i64 %i, %companions
  br i1 %more, label %tell, label %end
tell:
  %place = getelementptr inbounds i64, ptr %first.at, i64 %i
  %companion = load i64, ptr %place
  %other = inttoptr i64 %companion to ptr
  call void @irad.mpi_shorten(ptr %other, i64 %n)
  %i.next = add i64 %i, 1
  br label %loop
end:
  ret void
}

; The companions of a record are numbered from the last one back, from 1: those of later derivatives come before those of
; earlier ones, whose code they are part of.
define linkonce_odr i64 @irad.mpi.link(i64 %record, i64 %companion) nounwind noinline {
entry:
  %at = inttoptr i64 %record to ptr
  %count.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.count}
  %count = load i64, ptr %count.at
  %fits = icmp ult i64 %count, ${MOST_COMPANIONS}
  br i1 %fits, label %take, label %end
take:
  %first.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.companion0}
  %place = getelementptr inbounds i64, ptr %first.at, i64 %count
  store i64 %companion, ptr %place
  %more = add i64 %count, 1
  store i64 %more, ptr %count.at
  br label %end
end:
  ret i64 0
}

; 0 where there is none: of messages that hold no numbers with derivatives.
define linkonce_odr i64 @irad.mpi.companion(i64 %record, i64 %back) nounwind noinline {
entry:
  %at = inttoptr i64 %record to ptr
  %count.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.count}
  %none = icmp eq i64 %record, 0
  br i1 %none, label %end, label %look
look:
  %count = load i64, ptr %count.at
  %number = sub i64 %count, %back
  %exists = icmp sge i64 %number, 0
  br i1 %exists, label %take, label %end
take:
  %first.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.companion0}
  %place = getelementptr inbounds i64, ptr %first.at, i64 %number
  %companion = load i64, ptr %place
  ret i64 %companion
end:
  ret i64 0
}

; --- records of the program -------------------------------------------------------------------------------------------

; The number of a free slot, from FIRST_REQUEST on; 0 if there is none.
define linkonce_odr i64 @irad.mpi.take() nounwind noinline {
entry:
  %high.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.high}
  %records.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.records}
  %records = load ptr, ptr %records.at
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %look ]
  %exists = icmp ult i64 %i, ${MOST_REQUESTS}
  br i1 %exists, label %look, label %none
look:
  %at = getelementptr inbounds %irad.mpi_record, ptr %records, i64 %i
  %order.of = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.order}
  %used = load i64, ptr %order.of
  %free = icmp eq i64 %used, 0
  %i.next = add i64 %i, 1
  br i1 %free, label %take, label %loop
take:
  %high = load i64, ptr %high.at
  %is.higher = icmp ugt i64 %i.next, %high
  %highest = select i1 %is.higher, i64 %i.next, i64 %high
  store i64 %highest, ptr %high.at
  %request = add i64 %i, ${FIRST_REQUEST}
  ret i64 %request
none:
  ret i64 0
}

; The record of a request of the program as an address; 0 of the null request, and -1 of one that is not known here.
define linkonce_odr i64 @irad.mpi.record(i64 %request) nounwind noinline {
entry:
  %number = sub i64 %request, ${FIRST_REQUEST}
  %known = icmp ult i64 %number, ${MOST_REQUESTS}
  br i1 %known, label %ours, label %other
ours:
  %records.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.records}
  %records = load ptr, ptr %records.at
  %at = getelementptr inbounds %irad.mpi_record, ptr %records, i64 %number
  %address = ptrtoint ptr %at to i64
  ret i64 %address
other:
  %null = call i64 @irad.mpi.null()
  %is.null = icmp eq i64 %request, %null
  %answer = select i1 %is.null, i64 0, i64 -1
  ret i64 %answer
}

define linkonce_odr i64 @irad.mpi.undefined() nounwind noinline {
  %at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.undefined}
  %undefined = load i64, ptr %at
  ret i64 %undefined
}

define linkonce_odr i64 @irad.mpi.null() nounwind noinline {
  %null.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.null_request}
  %null = load i64, ptr %null.at
  ret i64 %null
}

; Numbers the messages of the program as they start; marks the slot as used.
define linkonce_odr i64 @irad.mpi.number(i64 %record) nounwind noinline {
  %order.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.order}
  %order = load i64, ptr %order.at
  %next = add i64 %order, 1
  store i64 %next, ptr %order.at
  %at = inttoptr i64 %record to ptr
  %order.of = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.order}
  store i64 %next, ptr %order.of
  ret i64 %next
}

; The number that a message got when it was started; 0 of a free slot.
define linkonce_odr i64 @irad.mpi.number_of(i64 %record) nounwind noinline {
  %at = inttoptr i64 %record to ptr
  %order.of = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.order}
  %order = load i64, ptr %order.of
  ret i64 %order
}

define linkonce_odr i64 @irad.mpi.release(i64 %record) nounwind noinline {
  %at = inttoptr i64 %record to ptr
  %order.of = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.order}
  store i64 0, ptr %order.of
  ret i64 0
}

; Whether no message of the program in the same direction, of the same peer and tag, is on its way that started before one
; with this number.
define linkonce_odr i64 @irad.mpi.is_free(i64 %peer, i64 %tag, i64 %mode, i64 %number) nounwind noinline {
entry:
  %records.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.records}
  %records = load ptr, ptr %records.at
  %high.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.high}
  %high = load i64, ptr %high.at
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %look ]
  %before = phi i1 [ false, %entry ], [ %before.next, %look ]
  %more = icmp ult i64 %i, %high
  br i1 %more, label %look, label %end
look:
  %at = getelementptr inbounds %irad.mpi_record, ptr %records, i64 %i
  %order.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.order}
  %order = load i64, ptr %order.at
  %peer.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.peer}
  %its.peer = load i64, ptr %peer.at
  %tag.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.tag}
  %its.tag = load i64, ptr %tag.at
  %mode.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.mode}
  %its.mode = load i64, ptr %mode.at
  %used = icmp ne i64 %order, 0
  %earlier = icmp ult i64 %order, %number
  %same.peer = icmp eq i64 %peer, %its.peer
  %same.tag = icmp eq i64 %tag, %its.tag
  %same.way = icmp eq i64 %mode, %its.mode
  %a = and i1 %used, %earlier
  %b = and i1 %same.peer, %same.tag
  %c = and i1 %a, %b
  %d = and i1 %c, %same.way
  %before.next = or i1 %before, %d
  %i.next = add i64 %i, 1
  br label %loop
end:
  %free = xor i1 %before, true
  %wide = zext i1 %free to i64
  ret i64 %wide
}

; The same for a message of the program that is on its way.
define linkonce_odr i64 @irad.mpi.is_first(i64 %record) nounwind noinline {
  %at = inttoptr i64 %record to ptr
  %order.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.order}
  %order = load i64, ptr %order.at
  %peer.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.peer}
  %peer = load i64, ptr %peer.at
  %tag.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.tag}
  %tag = load i64, ptr %tag.at
  %mode.at = getelementptr inbounds %irad.mpi_record, ptr %at, i32 0, i32 ${mpi_record.mode}
  %mode = load i64, ptr %mode.at
  %free = call i64 @irad.mpi.is_free(i64 %peer, i64 %tag, i64 %mode, i64 %order)
  ret i64 %free
}

; --- what all ranks do together ---------------------------------------------------------------------------------------

; In place: what the root has.
define linkonce_odr i64 @irad.mpi.bcast(ptr %data, i64 %n, i64 %kind, i64 %root) nounwind noinline {
  %type = call i64 @irad.mpi_type(i64 %kind)
  %comm = call i64 @irad.mpi_comm()
  %count = trunc i64 %n to i32
  %short = trunc i64 %root to i32
  %status = call i32 @MPI_Bcast(ptr %data, i32 %count, i64 %type, i32 %short, i64 %comm)
  %wide = sext i32 %status to i64
  ret i64 %wide
}

; In place: the sum over the ranks at the root, zeros elsewhere.
define linkonce_odr i64 @irad.mpi.fold(ptr %data, i64 %n, i64 %kind, i64 %root) nounwind noinline {
entry:
  %sum = call i64 @irad.mpi_operation(i64 0)
  %rank = call i64 @irad.mpi.rank()
  %is.root = icmp eq i64 %rank, %root
  %status = call i64 @irad.mpi.reduce(ptr %data, i64 %n, i64 %kind, i64 %root, i64 0)
  br i1 %is.root, label %end, label %clear
clear:
  %size = call i64 @irad.mpi_size_of(i64 %kind)
  %bytes = mul i64 %n, %size
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %bytes, i1 false)
  br label %end
end:
  ret i64 %status
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define linkonce_odr i64 @irad.mpi_size_of(i64 %kind) nounwind noinline {
  %first = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.float64_size}
  %at = getelementptr inbounds i64, ptr %first, i64 %kind
  %size = load i64, ptr %at
  ret i64 %size
}

; In place at the root, by an operation; elsewhere the data stay.
define linkonce_odr i64 @irad.mpi.reduce(ptr %data, i64 %n, i64 %kind, i64 %root, i64 %number) nounwind noinline {
entry:
  %type = call i64 @irad.mpi_type(i64 %kind)
  %comm = call i64 @irad.mpi_comm()
  %operation = call i64 @irad.mpi_operation(i64 %number)
  %count = trunc i64 %n to i32
  %short = trunc i64 %root to i32
  %rank = call i64 @irad.mpi.rank()
  %is.root = icmp eq i64 %rank, %root
  br i1 %is.root, label %here, label %there
here:
  %in.place.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.in_place}
  %in.place = load ptr, ptr %in.place.at
  %a = call i32 @MPI_Reduce(ptr %in.place, ptr %data, i32 %count, i64 %type, i64 %operation, i32 %short, i64 %comm)
  br label %end
there:
  %b = call i32 @MPI_Reduce(ptr %data, ptr null, i32 %count, i64 %type, i64 %operation, i32 %short, i64 %comm)
  br label %end
end:
  %status = phi i32 [ %a, %here ], [ %b, %there ]
  %wide = sext i32 %status to i64
  ret i64 %wide
}

; In place at all ranks, by an operation.
define linkonce_odr i64 @irad.mpi.allreduce(ptr %data, i64 %n, i64 %kind, i64 %number) nounwind noinline {
  %type = call i64 @irad.mpi_type(i64 %kind)
  %comm = call i64 @irad.mpi_comm()
  %operation = call i64 @irad.mpi_operation(i64 %number)
  %count = trunc i64 %n to i32
  %in.place.at = getelementptr inbounds %irad.mpi_library, ptr @irad.mpi_library, i32 0, i32 ${mpi_library.in_place}
  %in.place = load ptr, ptr %in.place.at
  %status = call i32 @MPI_Allreduce(ptr %in.place, ptr %data, i32 %count, i64 %type, i64 %operation, i64 %comm)
  %wide = sext i32 %status to i64
  ret i64 %wide
}

; In place at all ranks: the sum over the ranks.
define linkonce_odr i64 @irad.mpi.sum(ptr %data, i64 %n, i64 %kind, i64 %root) nounwind noinline {
  %status = call i64 @irad.mpi.allreduce(ptr %data, i64 %n, i64 %kind, i64 0)
  ret i64 %status
}

; Each rank's block of the root's whole, in its part.
define linkonce_odr i64 @irad.mpi.scatter(ptr %whole, ptr %part, i64 %n, i64 %kind, i64 %root) nounwind noinline {
  %type = call i64 @irad.mpi_type(i64 %kind)
  %comm = call i64 @irad.mpi_comm()
  %count = trunc i64 %n to i32
  %short = trunc i64 %root to i32
  %status = call i32 @MPI_Scatter(ptr %whole, i32 %count, i64 %type, ptr %part, i32 %count, i64 %type, i32 %short, i64 %comm)
  %wide = sext i32 %status to i64
  ret i64 %wide
}

; The parts of all ranks, in the root's whole.
define linkonce_odr i64 @irad.mpi.gather(ptr %whole, ptr %part, i64 %n, i64 %kind, i64 %root) nounwind noinline {
  %type = call i64 @irad.mpi_type(i64 %kind)
  %comm = call i64 @irad.mpi_comm()
  %count = trunc i64 %n to i32
  %short = trunc i64 %root to i32
  %status = call i32 @MPI_Gather(ptr %part, i32 %count, i64 %type, ptr %whole, i32 %count, i64 %type, i32 %short, i64 %comm)
  %wide = sext i32 %status to i64
  ret i64 %wide
}

; The parts of all ranks, in the whole of each.
define linkonce_odr i64 @irad.mpi.allgather(ptr %whole, ptr %part, i64 %n, i64 %kind, i64 %root) nounwind noinline {
  %type = call i64 @irad.mpi_type(i64 %kind)
  %comm = call i64 @irad.mpi_comm()
  %count = trunc i64 %n to i32
  %status = call i32 @MPI_Allgather(ptr %part, i32 %count, i64 %type, ptr %whole, i32 %count, i64 %type, i64 %comm)
  %wide = sext i32 %status to i64
  ret i64 %wide
}

; Each rank's block of the sum of all wholes, in its part.
define linkonce_odr i64 @irad.mpi.reduce_scatter(ptr %whole, ptr %part, i64 %n, i64 %kind, i64 %root) nounwind noinline {
  %type = call i64 @irad.mpi_type(i64 %kind)
  %comm = call i64 @irad.mpi_comm()
  %sum = call i64 @irad.mpi_operation(i64 0)
  %count = trunc i64 %n to i32
  %status = call i32 @MPI_Reduce_scatter_block(ptr %whole, ptr %part, i32 %count, i64 %type, i64 %sum, i64 %comm)
  %wide = sext i32 %status to i64
  ret i64 %wide
}

define linkonce_odr i64 @irad.mpi.barrier() nounwind noinline {
  %comm = call i64 @irad.mpi_comm()
  %status = call i32 @MPI_Barrier(i64 %comm)
  %wide = sext i32 %status to i64
  ret i64 %wide
}

; By an operation, at all ranks, in place: of numbers that only decide something.
define linkonce_odr i64 @irad.mpi.extreme(ptr %data, i64 %n, i64 %kind, i64 %number) nounwind noinline {
  %status = call i64 @irad.mpi.allreduce(ptr %data, i64 %n, i64 %kind, i64 %number)
  ret i64 %status
}

; --- the same of integers ---------------------------------------------------------------------------------------------

define linkonce_odr i64 @irad.mpi.plain.send(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag) nounwind noinline {
  %status = call i64 @irad.mpi.send(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag)
  ret i64 %status
}

define linkonce_odr i64 @irad.mpi.plain.recv(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag) nounwind noinline {
  %status = call i64 @irad.mpi.recv(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag)
  ret i64 %status
}

define linkonce_odr i64 @irad.mpi.plain.open_send(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag, i64 %record, i64 %depth) nounwind noinline {
  %status = call i64 @irad.mpi.open_send(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag, i64 %record, i64 %depth)
  ret i64 %status
}

define linkonce_odr i64 @irad.mpi.plain.open_recv(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag, i64 %record, i64 %depth) nounwind noinline {
  %status = call i64 @irad.mpi.open_recv(ptr %data, i64 %n, i64 %kind, i64 %peer, i64 %tag, i64 %record, i64 %depth)
  ret i64 %status
}

define linkonce_odr i64 @irad.mpi.plain.bcast(ptr %data, i64 %n, i64 %kind, i64 %root) nounwind noinline {
  %status = call i64 @irad.mpi.bcast(ptr %data, i64 %n, i64 %kind, i64 %root)
  ret i64 %status
}

define linkonce_odr i64 @irad.mpi.plain.reduce(ptr %data, i64 %n, i64 %kind, i64 %root, i64 %number) nounwind noinline {
  %status = call i64 @irad.mpi.reduce(ptr %data, i64 %n, i64 %kind, i64 %root, i64 %number)
  ret i64 %status
}

define linkonce_odr i64 @irad.mpi.plain.allreduce(ptr %data, i64 %n, i64 %kind, i64 %number) nounwind noinline {
  %status = call i64 @irad.mpi.allreduce(ptr %data, i64 %n, i64 %kind, i64 %number)
  ret i64 %status
}

define linkonce_odr i64 @irad.mpi.plain.scatter(ptr %whole, ptr %part, i64 %n, i64 %kind, i64 %root) nounwind noinline {
  %status = call i64 @irad.mpi.scatter(ptr %whole, ptr %part, i64 %n, i64 %kind, i64 %root)
  ret i64 %status
}

define linkonce_odr i64 @irad.mpi.plain.gather(ptr %whole, ptr %part, i64 %n, i64 %kind, i64 %root) nounwind noinline {
  %status = call i64 @irad.mpi.gather(ptr %whole, ptr %part, i64 %n, i64 %kind, i64 %root)
  ret i64 %status
}

define linkonce_odr i64 @irad.mpi.plain.allgather(ptr %whole, ptr %part, i64 %n, i64 %kind, i64 %root) nounwind noinline {
  %status = call i64 @irad.mpi.allgather(ptr %whole, ptr %part, i64 %n, i64 %kind, i64 %root)
  ret i64 %status
}

; --- what is refused: derivatives that call it are never made ----------------------------------------------------------

define linkonce_odr i64 @irad.mpi.anybody(ptr %data) nounwind noinline {
  ret i64 -1
}

define linkonce_odr i64 @irad.mpi.anybody_later(ptr %data) nounwind noinline {
  ret i64 -1
}
