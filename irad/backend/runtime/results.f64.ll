; What is looked for in the results of a derivative.

; Whether one of some numbers is NaN: all are looked at, so that this becomes vectors.
define linkonce_odr i1 @irad.has_nan_f64(ptr %numbers, i64 %count) nounwind {
entry:
  %is_empty = icmp sle i64 %count, 0
  br i1 %is_empty, label %end, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %before = phi i1 [ false, %entry ], [ %found, %loop ]
  %place = getelementptr double, ptr %numbers, i64 %i
  %number = load double, ptr %place, align 1
  %is_nan = fcmp uno double %number, 0.0
  %found = or i1 %before, %is_nan
  %next = add nuw nsw i64 %i, 1
  %goes_on = icmp ne i64 %next, %count
  br i1 %goes_on, label %loop, label %end
end:
  %result = phi i1 [ false, %entry ], [ %found, %loop ]
  ret i1 %result
}
