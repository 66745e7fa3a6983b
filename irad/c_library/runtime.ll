; What Numba's code calls in the process that Python runs in, for a library that runs without Python.
;
; Memory that is counted: blocks of the C library's allocator, headed by what Numba calls a MemInfo, whose fields
; compiled code knows. Exceptions: compiled code returns a status and points to a description of what it raised, of which
; `program.py` has made the code and the text; the text is kept for the thread. Random numbers: a state for each thread.

; Bytes of a MemInfo: 0 references, 8 destructor, 16 its argument, 24 data, 32 size, 40 allocator; 48 in all.

declare noalias ptr @malloc(i64)
declare noalias ptr @realloc(ptr, i64)
declare void @free(ptr)

define void @NRT_incref(ptr %info) nounwind {
entry:
  %none = icmp eq ptr %info, null
  br i1 %none, label %done, label %count
count:
  %before = atomicrmw add ptr %info, i64 1 monotonic
  br label %done
done:
  ret void
}

define void @NRT_decref(ptr %info) {
entry:
  %none = icmp eq ptr %info, null
  br i1 %none, label %done, label %count
count:
  %before = atomicrmw sub ptr %info, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %drop, label %done
drop:
  call void @NRT_MemInfo_call_dtor(ptr %info)
  br label %done
done:
  ret void
}

define void @NRT_MemInfo_call_dtor(ptr %info) noinline {
entry:
  %destructor.at = getelementptr i8, ptr %info, i64 8
  %destructor = load ptr, ptr %destructor.at
  %none = icmp eq ptr %destructor, null
  br i1 %none, label %done, label %run
run:
  %argument.at = getelementptr i8, ptr %info, i64 16
  %argument = load ptr, ptr %argument.at
  %data.at = getelementptr i8, ptr %info, i64 24
  %data = load ptr, ptr %data.at
  %size.at = getelementptr i8, ptr %info, i64 32
  %size = load i64, ptr %size.at
  call void %destructor(ptr %data, i64 %size, ptr %argument)
  br label %done
done:
  call void @free(ptr %info)
  ret void
}

define noalias ptr @NRT_Allocate(i64 %size) {
  %memory = call ptr @malloc(i64 %size)
  ret ptr %memory
}

define ptr @NRT_Reallocate(ptr %memory, i64 %size) {
  %moved = call ptr @realloc(ptr %memory, i64 %size)
  ret ptr %moved
}

define void @NRT_Free(ptr %memory) {
  call void @free(ptr %memory)
  ret void
}

define internal void @irad.c.fill(ptr %info, ptr %data, i64 %size, ptr %destructor, ptr %argument) {
  store i64 1, ptr %info
  %destructor.at = getelementptr i8, ptr %info, i64 8
  store ptr %destructor, ptr %destructor.at
  %argument.at = getelementptr i8, ptr %info, i64 16
  store ptr %argument, ptr %argument.at
  %data.at = getelementptr i8, ptr %info, i64 24
  store ptr %data, ptr %data.at
  %size.at = getelementptr i8, ptr %info, i64 32
  store i64 %size, ptr %size.at
  %allocator.at = getelementptr i8, ptr %info, i64 40
  store ptr null, ptr %allocator.at
  ret void
}

; Data with its head in front. Sizes that are negative, or too large for the head to fit, are refused as by `malloc`.
define internal noalias ptr @irad.c.counted(i64 %size, i64 %align, ptr %destructor, ptr %argument) {
entry:
  %room = add i64 48, %align
  %whole = call { i64, i1 } @llvm.uadd.with.overflow.i64(i64 %size, i64 %room)
  %overflows = extractvalue { i64, i1 } %whole, 1
  br i1 %overflows, label %fail, label %allocate
allocate:
  %bytes = extractvalue { i64, i1 } %whole, 0
  %info = call ptr @malloc(i64 %bytes)
  %none = icmp eq ptr %info, null
  br i1 %none, label %fail, label %fine
fine:
  %start = getelementptr i8, ptr %info, i64 48
  %address = ptrtoint ptr %start to i64
  %below = sub i64 0, %address
  %mask = sub i64 %align, 1
  %masked = and i64 %below, %mask
  %data = getelementptr i8, ptr %start, i64 %masked
  call void @irad.c.fill(ptr %info, ptr %data, i64 %size, ptr %destructor, ptr %argument)
  ret ptr %info
fail:
  ret ptr null
}

declare { i64, i1 } @llvm.uadd.with.overflow.i64(i64, i64)

define noalias ptr @NRT_MemInfo_alloc(i64 %size) {
  %info = call ptr @irad.c.counted(i64 %size, i64 1, ptr null, ptr null)
  ret ptr %info
}

define noalias ptr @NRT_MemInfo_alloc_safe(i64 %size) {
  %info = call ptr @irad.c.counted(i64 %size, i64 1, ptr null, ptr null)
  ret ptr %info
}

define noalias ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %wide = zext i32 %align to i64
  %info = call ptr @irad.c.counted(i64 %size, i64 %wide, ptr null, ptr null)
  ret ptr %info
}

define noalias ptr @NRT_MemInfo_alloc_safe_aligned(i64 %size, i32 %align) {
  %wide = zext i32 %align to i64
  %info = call ptr @irad.c.counted(i64 %size, i64 %wide, ptr null, ptr null)
  ret ptr %info
}

; Numba passes null as the argument of such a destructor, and keeps the destructor itself where the argument lies.
define internal void @irad.c.run_destructor(ptr %data, i64 %size, ptr %destructor) {
entry:
  %none = icmp eq ptr %destructor, null
  br i1 %none, label %done, label %run
run:
  call void %destructor(ptr %data, i64 %size, ptr null)
  br label %done
done:
  ret void
}

define noalias ptr @NRT_MemInfo_alloc_dtor(i64 %size, ptr %destructor) {
  %info = call ptr @irad.c.counted(i64 %size, i64 1, ptr @irad.c.run_destructor, ptr %destructor)
  ret ptr %info
}

define noalias ptr @NRT_MemInfo_alloc_dtor_safe(i64 %size, ptr %destructor) {
  %info = call ptr @irad.c.counted(i64 %size, i64 1, ptr @irad.c.run_destructor, ptr %destructor)
  ret ptr %info
}

define noalias ptr @NRT_MemInfo_new(ptr %data, i64 %size, ptr %destructor, ptr %argument) {
entry:
  %info = call ptr @malloc(i64 48)
  %none = icmp eq ptr %info, null
  br i1 %none, label %done, label %fine
fine:
  call void @irad.c.fill(ptr %info, ptr %data, i64 %size, ptr %destructor, ptr %argument)
  br label %done
done:
  ret ptr %info
}

; Memory that grows, as that of lists: its data is a block of its own.
define internal void @irad.c.drop_varsize(ptr %data, i64 %size, ptr %destructor) {
entry:
  %none = icmp eq ptr %destructor, null
  br i1 %none, label %done, label %run
run:
  call void %destructor(ptr %data)
  br label %done
done:
  call void @free(ptr %data)
  ret void
}

define noalias ptr @NRT_MemInfo_new_varsize_dtor(i64 %size, ptr %destructor) {
entry:
  %data = call ptr @malloc(i64 %size)
  %none = icmp eq ptr %data, null
  br i1 %none, label %fail, label %head
head:
  %info = call ptr @NRT_MemInfo_new(ptr %data, i64 %size, ptr @irad.c.drop_varsize, ptr %destructor)
  %lacks = icmp eq ptr %info, null
  br i1 %lacks, label %drop, label %fine
fine:
  ret ptr %info
drop:
  call void @free(ptr %data)
  br label %fail
fail:
  ret ptr null
}

define noalias ptr @NRT_MemInfo_new_varsize(i64 %size) {
  %info = call ptr @NRT_MemInfo_new_varsize_dtor(i64 %size, ptr null)
  ret ptr %info
}

define ptr @NRT_MemInfo_varsize_alloc(ptr %info, i64 %size) {
entry:
  %data = call ptr @malloc(i64 %size)
  call void @irad.c.set_data(ptr %info, ptr %data, i64 %size)
  ret ptr %data
}

define ptr @NRT_MemInfo_varsize_realloc(ptr %info, i64 %size) {
entry:
  %data.at = getelementptr i8, ptr %info, i64 24
  %before = load ptr, ptr %data.at
  %data = call ptr @realloc(ptr %before, i64 %size)
  %none = icmp eq ptr %data, null
  br i1 %none, label %done, label %fine
fine:
  call void @irad.c.set_data(ptr %info, ptr %data, i64 %size)
  br label %done
done:
  ret ptr %data
}

define internal void @irad.c.set_data(ptr %info, ptr %data, i64 %size) {
  %data.at = getelementptr i8, ptr %info, i64 24
  store ptr %data, ptr %data.at
  %size.at = getelementptr i8, ptr %info, i64 32
  store i64 %size, ptr %size.at
  ret void
}

define void @NRT_MemInfo_varsize_free(ptr %info, ptr %memory) {
entry:
  call void @free(ptr %memory)
  %data.at = getelementptr i8, ptr %info, i64 24
  %data = load ptr, ptr %data.at
  %own = icmp eq ptr %data, %memory
  br i1 %own, label %clear, label %done
clear:
  store ptr null, ptr %data.at
  br label %done
done:
  ret void
}

; ---------------------------------------------------------------------------------------------------- exceptions

; Bytes of a description: 0 pointer to code and text, 16 pointer to values known at run time, 32 how many of these.

@irad.c.no_text = private unnamed_addr constant [1 x i8] zeroinitializer
@irad.c.unknown_text = private unnamed_addr constant [45 x i8] c"the function ended with a status of its own\0A\00"
@irad.c.last_text = internal thread_local global ptr @irad.c.no_text
@irad.c.kept_text = internal thread_local global ptr null

; The status for C of what a function of Numba returned; 1: it raised what lies at %slot.
define i32 @irad.c.status(i32 %status, ptr %slot) noinline {
entry:
  switch i32 %status, label %other [
    i32 0, label %fine
    i32 -2, label %fine
    i32 1, label %exception
  ]
fine:
  ret i32 0
exception:
  %raised = load ptr, ptr %slot
  %none = icmp eq ptr %raised, null
  br i1 %none, label %other, label %read
read:
  %code.at = load ptr, ptr %raised
  %code = load i32, ptr %code.at, align 1
  %text = getelementptr i8, ptr %code.at, i64 4
  %own = icmp eq i32 %code, ${REFUSED}
  br i1 %own, label %refused, label %tell
refused: ; the text of an error of irad is known where it is noticed, before it is raised
  %kept = load ptr, ptr @irad.c.kept_text
  %lost = icmp eq ptr %kept, null
  %refusal = select i1 %lost, ptr %text, ptr %kept
  store ptr null, ptr @irad.c.kept_text
  br label %tell
tell:
  %told = phi ptr [ %text, %read ], [ %refusal, %refused ]
  store ptr %told, ptr @irad.c.last_text
  %count.at = getelementptr i8, ptr %raised, i64 32
  %count = load i32, ptr %count.at
  %allocated = icmp sgt i32 %count, 0
  br i1 %allocated, label %free, label %done
free:
  %values.at = getelementptr i8, ptr %raised, i64 16
  %values = load ptr, ptr %values.at
  call void @free(ptr %values)
  call void @free(ptr %raised)
  br label %done
done:
  ret i32 %code
other:
  store ptr @irad.c.unknown_text, ptr @irad.c.last_text
  ret i32 ${UNKNOWN}
}

; Notes why irad refuses the arguments of a derivative.
define void @irad.c.note(ptr %problem) {
  store ptr %problem, ptr @irad.c.kept_text
  ret void
}

@irad.c.fatal_text = private unnamed_addr constant [65 x i8] c"irad: LAPACK was given wrong arguments, or no memory is left\0A\00\00\00\00"
declare i64 @write(i32, ptr, i64)
declare void @abort() noreturn

define i32 @numba_fatal_error() noreturn noinline cold {
  %written = call i64 @write(i32 2, ptr @irad.c.fatal_text, i64 61)
  call void @abort()
  unreachable
}

; ---------------------------------------------------------------------------------------------------- random numbers

; Bytes of a state: 0 index, 4 words, 2500 whether there is a second normal number, 2504 it, 2512 whether it is seeded.

@irad.c.random.np = internal thread_local global [2520 x i8] zeroinitializer, align 8
@irad.c.random.py = internal thread_local global [2520 x i8] zeroinitializer, align 8
declare i32 @getentropy(ptr, i64)

define ptr @numba_get_np_random_state() {
  %state = call ptr @irad.c.seeded(ptr @irad.c.random.np)
  ret ptr %state
}

define ptr @numba_get_py_random_state() {
  %state = call ptr @irad.c.seeded(ptr @irad.c.random.py)
  ret ptr %state
}

; A state that has not been seeded is filled by the system, which gives at most 256 bytes a call.
define internal ptr @irad.c.seeded(ptr %state) {
entry:
  %seeded.at = getelementptr i8, ptr %state, i64 2512
  %seeded = load i32, ptr %seeded.at
  %is_seeded = icmp ne i32 %seeded, 0
  br i1 %is_seeded, label %end, label %fill
fill:
  %offset = phi i64 [ 0, %entry ], [ %next, %fill ]
  %words = getelementptr i8, ptr %state, i64 4
  %place = getelementptr i8, ptr %words, i64 %offset
  %given = call i32 @getentropy(ptr %place, i64 208)
  %next = add i64 %offset, 208
  %more = icmp ult i64 %next, 2496
  br i1 %more, label %fill, label %mark
mark:
  store i32 -2147483648, ptr %words ; one bit that is set keeps the state from being all zeros
  store i32 624, ptr %state
  store i32 1, ptr %seeded.at
  br label %end
end:
  ret ptr %state
}

; ---------------------------------------------------------------------------------------------------- mathematics

declare double @tgamma(double)
declare float @tgammaf(float)
declare double @lgamma(double)
declare float @lgammaf(float)
declare double @erf(double)
declare float @erff(float)
declare double @erfc(double)
declare float @erfcf(float)
declare double @nextafter(double, double)
declare float @nextafterf(float, float)
declare double @frexp(double, ptr)
declare float @frexpf(float, ptr)
declare double @ldexp(double, i32 signext)
declare float @ldexpf(float, i32 signext)

define double @numba_gamma(double %x) {
  %y = call double @tgamma(double %x)
  ret double %y
}
define float @numba_gammaf(float %x) {
  %y = call float @tgammaf(float %x)
  ret float %y
}
define double @numba_lgamma(double %x) {
  %y = call double @lgamma(double %x)
  ret double %y
}
define float @numba_lgammaf(float %x) {
  %y = call float @lgammaf(float %x)
  ret float %y
}
define double @numba_erf(double %x) {
  %y = call double @erf(double %x)
  ret double %y
}
define float @numba_erff(float %x) {
  %y = call float @erff(float %x)
  ret float %y
}
define double @numba_erfc(double %x) {
  %y = call double @erfc(double %x)
  ret double %y
}
define float @numba_erfcf(float %x) {
  %y = call float @erfcf(float %x)
  ret float %y
}
define double @numba_nextafter(double %x, double %to) {
  %y = call double @nextafter(double %x, double %to)
  ret double %y
}
define float @numba_nextafterf(float %x, float %to) {
  %y = call float @nextafterf(float %x, float %to)
  ret float %y
}
define double @numba_ldexp(double %x, i32 signext %exponent) {
  %y = call double @ldexp(double %x, i32 signext %exponent)
  ret double %y
}
define float @numba_ldexpf(float %x, i32 signext %exponent) {
  %y = call float @ldexpf(float %x, i32 signext %exponent)
  ret float %y
}

; Of infinity and NaN the C library leaves the exponent unspecified.
define double @numba_frexp(double %x, ptr %exponent) {
entry:
  store i32 0, ptr %exponent
  %size = call double @llvm.fabs.f64(double %x)
  %finite = fcmp olt double %size, 0x7FF0000000000000
  br i1 %finite, label %split, label %done
split:
  %part = call double @frexp(double %x, ptr %exponent)
  br label %done
done:
  %y = phi double [ %x, %entry ], [ %part, %split ]
  ret double %y
}
define float @numba_frexpf(float %x, ptr %exponent) {
entry:
  store i32 0, ptr %exponent
  %size = call float @llvm.fabs.f32(float %x)
  %finite = fcmp olt float %size, 0x7FF0000000000000
  br i1 %finite, label %split, label %done
split:
  %part = call float @frexpf(float %x, ptr %exponent)
  br label %done
done:
  %y = phi float [ %x, %entry ], [ %part, %split ]
  ret float %y
}
