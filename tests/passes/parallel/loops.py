"""Programs with a parallel loop, as Numba lowers them, cut down to what matters."""

from __future__ import annotations

from irad.passes.request import LoopArray, MemoryType

DOUBLES = MemoryType(8, ((0, "double"),))
ARRAYS = (
    LoopArray(MemoryType(8, ((0, "i64"),)), 8, ()),
    LoopArray(DOUBLES, 8, ((1, 3),)),
    LoopArray(DOUBLES, 8, ((1, 4),)),
)

# i32 (result, exception, a, b): b[i] = a[i] · a[i + 1] in parallel; `{body}` is what one iteration does.
_PROGRAM = """
declare void @numba_parallel_for(ptr, ptr, ptr, ptr, ptr, i64, i64, i64)
declare i64 @get_num_threads()
declare i64 @get_thread_id()
declare double @unknown(ptr)

define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, ptr %b) {{
  %args = alloca [3 x ptr]
  %dims = alloca [2 x i64]
  %steps = alloca [5 x i64]
  %schedule = alloca [16 x i64]
  store ptr %schedule, ptr %args
  %args.1 = getelementptr i8, ptr %args, i64 8
  store ptr %a, ptr %args.1
  %args.2 = getelementptr i8, ptr %args, i64 16
  store ptr %b, ptr %args.2
  %threads = call i64 @get_num_threads()
  call void @numba_parallel_for(ptr @kernel, ptr %args, ptr %dims, ptr %steps, ptr null, i64 1, i64 3, i64 %threads)
  %first = load double, ptr %b
  store double %first, ptr %r
  ret i32 0
}}

define internal void @kernel(ptr %args, ptr %dims, ptr %steps, ptr %data) {{
entry:
  %count = load i64, ptr %dims
  %schedule = load ptr, ptr %args
  %step = load i64, ptr %steps
  %args.1 = getelementptr i8, ptr %args, i64 8
  %a = load ptr, ptr %args.1
  %args.2 = getelementptr i8, ptr %args, i64 16
  %b = load ptr, ptr %args.2
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %ahead, label %done
ahead:
  br label %chunk
chunk:
  %number = phi i64 [ 0, %ahead ], [ %number.next, %chunk ]
  %offset = mul i64 %number, %step
  %bounds = getelementptr i8, ptr %schedule, i64 %offset
  %i = load i64, ptr %bounds
  %thread = call i64 @get_thread_id()
  %at = add i64 %i, %thread
{body}
  %number.next = add i64 %number, 1
  %more = icmp slt i64 %number.next, %count
  br i1 %more, label %chunk, label %leave
leave:
  br label %done
done:
  ret void
}}
"""

_STENCIL_BODY = """
  %p = getelementptr double, ptr %a, i64 %at
  %q = getelementptr i8, ptr %p, i64 8
  %x = load double, ptr %p
  %y = load double, ptr %q
  %z = fmul double %x, %y
  %t = getelementptr double, ptr %b, i64 %at
  store double %z, ptr %t
"""
_IN_PLACE_BODY = """
  %p = getelementptr double, ptr %a, i64 %at
  %q = getelementptr double, ptr %b, i64 %at
  %x = load double, ptr %p
  %y = load double, ptr %q
  %z = fmul double %x, %y
  store double %z, ptr %q
"""
_EITHER_BODY = """
  %odd = trunc i64 %at to i1
  %which = select i1 %odd, ptr %a, ptr %b
  %p = getelementptr double, ptr %which, i64 %at
  %x = load double, ptr %p
  %z = fmul double %x, %x
  %t = getelementptr double, ptr %b, i64 %at
  store double %z, ptr %t
"""
_COPY_BODY = """
  %p = getelementptr double, ptr %a, i64 %at
  %t = getelementptr double, ptr %b, i64 %at
  call void @llvm.memcpy.p0.p0.i64(ptr %t, ptr %p, i64 8, i1 false)
"""
_REFILL_BODY = """
  %p = getelementptr double, ptr %b, i64 %at
  %room = alloca double
  call void @llvm.memcpy.p0.p0.i64(ptr %room, ptr %p, i64 8, i1 false)
  %x = load double, ptr %room
  %z = fmul double %x, %x
  store double %z, ptr %room
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %room, i64 8, i1 false)
"""
_CALL_BODY = """
  %p = getelementptr double, ptr %a, i64 %at
  %t = getelementptr double, ptr %b, i64 %at
  %norm = alloca double
  %status = call i32 @numba_xxnrm2(i8 100, i64 1, ptr %p, i64 1, ptr %norm)
  %x = load double, ptr %norm
  store double %x, ptr %t
"""
_HANDED_BODY = """
  %p = getelementptr double, ptr %a, i64 %at
  %room = alloca double
  %x = load double, ptr %p
  store double %x, ptr %room
  %z = call double @square(ptr %{handed})
  %t = getelementptr double, ptr %b, i64 %at
  store double %z, ptr %t
"""
_CHOICE_BODY = """
  %p = getelementptr double, ptr %a, i64 %at
  %room = alloca double
  %x = load double, ptr %p
  store double %x, ptr %room
  %odd = trunc i64 %at to i1
  %which = select i1 %odd, ptr %p, ptr %room
  %norm = alloca double
  %status = call i32 @numba_xxnrm2(i8 100, i64 1, ptr %which, i64 1, ptr %norm)
  %y = load double, ptr %norm
  %t = getelementptr double, ptr %b, i64 %at
  store double %y, ptr %t
"""
_FOREIGN_BODY = """
  %x = call double @unknown(ptr %args)
  %t = getelementptr double, ptr %b, i64 %at
  store double %x, ptr %t
"""
_INDIRECT_BODY = """
  %p = getelementptr ptr, ptr %a, i64 %at
  %item = load ptr, ptr %p
  %x = load double, ptr %item
  %t = getelementptr double, ptr %b, i64 %at
  store double %x, ptr %t
"""
_SQUARE = """
define double @square(ptr %p) {
  %x = load double, ptr %p
  %z = fmul double %x, %x
  ret double %z
}
"""
_MEMCPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"

STENCIL = _PROGRAM.format(body=_STENCIL_BODY)
IN_PLACE = _PROGRAM.format(body=_IN_PLACE_BODY)
EITHER = _PROGRAM.format(body=_EITHER_BODY)
COPY = _MEMCPY + _PROGRAM.format(body=_COPY_BODY)
REFILL = _MEMCPY + _PROGRAM.format(body=_REFILL_BODY)
_NORM = "declare i32 @numba_xxnrm2(i8, i64, ptr, i64, ptr)\n"
CALL = _NORM + _PROGRAM.format(body=_CALL_BODY)
CALL_OR_OWN = _NORM + _PROGRAM.format(body=_CHOICE_BODY)
HANDED = _PROGRAM.format(body=_HANDED_BODY.format(handed="p")) + _SQUARE
HANDED_OWN = _PROGRAM.format(body=_HANDED_BODY.format(handed="room")) + _SQUARE
INDIRECT = _PROGRAM.format(body=_INDIRECT_BODY)
FOREIGN_KERNEL = _PROGRAM.format(body=_FOREIGN_BODY)
