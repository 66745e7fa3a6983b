@g = global i32 0
@a = global ptr @g
@b = global ptr @g

define i32 @f(i32 %x, i1 %c) {
entry:
  %y = add i32 %x, %x
  br i1 %c, label %exit, label %other

other:
  %z = add i32 %x, 1
  br label %exit

exit:
  %r = phi i32 [ %y, %entry ], [ %z, %other ]
  ret i32 %r
  uselistorder i32 %x, { 2, 0, 1 }
  uselistorder label %exit, { 1, 0 }
}

uselistorder ptr @g, { 1, 0 }
uselistorder_bb @f, %exit, { 1, 0 }
