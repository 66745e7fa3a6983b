define double @"odd names"(double %"a b", double %"5", double %".x", double %"quote\22", double %-y, double %$z) {
"entry point":
  %"\C3\A4" = fadd double %"a b", %"5"
  %"_\01nul" = fmul double %"\C3\A4", %".x"
  %"back\5Cslash" = fadd double %"_\01nul", %"quote\22"
  %plain.1 = fadd double %"back\5Cslash", %-y
  %"1starts" = fadd double %plain.1, %$z
  %0 = fadd double %"1starts", 1.000000e+00
  br label %"for.body 1"

"for.body 1":
  %1 = phi double [ %0, %"entry point" ], [ %2, %"7" ]
  br label %"7"

"7":
  %2 = fadd double %1, %0
  br label %"for.body 1"
}

define void @metadata_words(ptr %dbg, i32 %label, i1 %phi, i64 %i64) {
  %align = load i32, ptr %dbg, align 4
  %c = icmp eq i32 %align, %label
  br i1 %c, label %ret, label %to

ret:
  br label %to

to:
  ret void
}

define i32 @"unnamed and named"(i32 %0, i32 %x, i32 %1) {
  %3 = add i32 %0, %x
  %y = add i32 %3, %1
  br label %4

4:
  %5 = phi i32 [ %y, %2 ]
  br label %named

named:
  %6 = add i32 %5, %y
  ret i32 %6
}
