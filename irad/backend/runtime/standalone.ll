; What takes the place of Python in a program that runs without it: a module of its own beside the run-time support.
;
; The key of the threads' arenas is made when the program starts, before its own constructors run. Its destructor frees
; the arena of a thread that ends; nothing else is owned. A derivative that cannot go on ends the process with a message:
; C has no exception that its caller could catch.

@irad.tls_key = hidden global i32 0
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 ${FIRST_CONSTRUCTOR}, ptr @irad.start, ptr null }]
@irad.message.no_memory = private unnamed_addr constant [37 x i8] c"irad: out of memory for a derivative\0A"
@irad.message.no_derivative = private unnamed_addr constant [76 x i8] c"irad: a pointer points to a function that has no derivative in this program\0A"
@irad.message.unwinding = private unnamed_addr constant [64 x i8] c"irad: an exception left a function that is being differentiated\0A"
@irad.message.unknown = private unnamed_addr constant [48 x i8] c"irad: a derivative ended with an unknown status\0A"

declare void @abort() noreturn
declare i32 @pthread_key_create(ptr, ptr)
declare i64 @write(i32, ptr, i64)
declare void @irad.arena_release(ptr)

define internal void @irad.start() nounwind {
entry:
  %status = call i32 @pthread_key_create(ptr @irad.tls_key, ptr @irad.arena_release)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %done, label %fail
fail:
  call void @irad.end_process(i32 ${EXHAUSTED})
  unreachable
done:
  ret void
}

; The resolver of tables of pairs. Pairs of functions that are known are called directly; the tables are empty.
define hidden ptr @irad.no_pair(ptr %table, ptr %address, ptr %why) nounwind {
  ret ptr null
}

; Writes why a derivative cannot go on and aborts.
define hidden void @irad.end_process(i32 %status) nounwind noreturn cold noinline {
entry:
  switch i32 %status, label %unknown [
    i32 ${EXHAUSTED}, label %no_memory
    i32 ${NO_DERIVATIVE}, label %no_derivative
    i32 ${UNWINDING}, label %unwinding
  ]
no_memory:
  br label %end
no_derivative:
  br label %end
unwinding:
  br label %end
unknown:
  br label %end
end:
  %message = phi ptr [ @irad.message.no_memory, %no_memory ], [ @irad.message.no_derivative, %no_derivative ], [ @irad.message.unwinding, %unwinding ], [ @irad.message.unknown, %unknown ]
  %length = phi i64 [ 37, %no_memory ], [ 75, %no_derivative ], [ 64, %unwinding ], [ 48, %unknown ]
  %written = call i64 @write(i32 2, ptr %message, i64 %length)
  call void @abort()
  unreachable
}
