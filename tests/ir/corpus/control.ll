@targets = constant [2 x ptr] [ptr blockaddress(@indirect, %left), ptr blockaddress(@indirect, %"right side")]
@numbered_target = constant ptr blockaddress(@numbered, %3)

define i32 @loop(i32 %n) {
entry:
  %empty = icmp sle i32 %n, 0
  br i1 %empty, label %exit, label %body

body:
  %i = phi i32 [ 0, %entry ], [ %next, %latch ]
  %sum = phi i32 [ 0, %entry ], [ %total, %latch ]
  %odd = trunc i32 %i to i1
  br i1 %odd, label %then, label %latch, !prof !0

then:
  %more = add i32 %sum, %i
  br label %latch

latch:
  %total = phi i32 [ %more, %then ], [ %sum, %body ]
  %next = add nuw nsw i32 %i, 1
  %done = icmp eq i32 %next, %n
  br i1 %done, label %exit, label %body, !llvm.loop !1

exit:
  %result = phi i32 [ 0, %entry ], [ %total, %latch ]
  ret i32 %result
}

define i64 @numbered(i64 %0, i1 %1) {
  br i1 %1, label %3, label %5

3:
  %4 = mul i64 %0, %0
  br label %8

5:
  %6 = phi fast double [ 1.000000e+00, %2 ], [ %7, %5 ]
  %7 = fadd double %6, 1.000000e+00
  br i1 %1, label %5, label %8

8:
  %9 = phi i64 [ %4, %3 ], [ undef, %5 ]
  ret i64 %9
}

define void @anonymous_parameters(i32, ptr noalias, double) {
  %4 = fadd double %2, 1.000000e+00
  store double %4, ptr %1, align 8
  ret void
}

define void @switches(i8 %x, i1 %b) {
  switch i8 %x, label %default [
    i8 0, label %zero
    i8 -1, label %zero
    i8 3, label %three
  ]

zero:
  switch i8 %x, label %default [
  ]

three:
  switch i1 %b, label %default [
    i1 true, label %zero
  ], !prof !0

default:
  ret void
}

define void @indirect(ptr %where) {
  indirectbr ptr %where, [label %left, label %"right side"]

left:
  indirectbr ptr %where, []

"right side":
  unreachable
}

define double @forward(i1 %c, ptr %p) {
entry:
  br label %second

first:
  %user = fadd double %later, %x
  %address = getelementptr { double, i64 }, ptr %q, i64 0, i32 0
  store double %user, ptr %address, align 8
  ret double %user

second:
  %later = fmul double 2.000000e+00, 3.000000e+00
  %x = load double, ptr %p, align 8
  %q = getelementptr i8, ptr %p, i64 16
  br i1 %c, label %first, label %third

third:
  unreachable
}

!0 = !{!"branch_weights", i32 1, i32 99}
!1 = distinct !{!1, !2}
!2 = !{!"llvm.loop.unroll.disable"}
