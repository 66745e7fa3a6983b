@typeinfo = external constant ptr
@other = external constant ptr

declare i32 @__gxx_personality_v0(...)

declare double @risky(double, ptr)

declare void @cleanup_now()

define double @caught(double %x, ptr %p) personality ptr @__gxx_personality_v0 {
entry:
  %r = invoke fastcc noundef double @risky(double nofpclass(nan) %x, ptr readonly %p) #0
          to label %ok unwind label %pad

ok:
  invoke void @cleanup_now()
          to label %done unwind label %pad2

done:
  ret double %r

pad:
  %caught = landingpad { ptr, i32 }
          cleanup
          catch ptr @typeinfo
          catch ptr null
          filter [2 x ptr] [ptr @typeinfo, ptr @other]
  %selector = extractvalue { ptr, i32 } %caught, 1
  resume { ptr, i32 } %caught

pad2:
  %1 = landingpad { ptr, i32 }
          cleanup
  resume { ptr, i32 } %1
}

define void @bare(ptr %f) personality ptr @__gxx_personality_v0 {
  %1 = invoke i32 (ptr, ...) %f(ptr %f, i32 3)
          to label %2 unwind label %3

2:
  ret void

3:
  %4 = landingpad { ptr, i32 }
          filter [0 x ptr] zeroinitializer
  unreachable
}

define void @windows() personality ptr @__CxxFrameHandler3 {
entry:
  invoke void @cleanup_now()
          to label %exit unwind label %dispatch

dispatch:
  %switch = catchswitch within none [label %handler, label %handler2] unwind label %cleanup

handler:
  %catch = catchpad within %switch [ptr null, i32 64, ptr null]
  call void @cleanup_now() [ "funclet"(token %catch) ]
  catchret from %catch to label %exit

handler2:
  %catch2 = catchpad within %switch [ptr @typeinfo, i32 8, ptr null]
  %inner = catchswitch within %catch2 [label %handler3] unwind to caller

handler3:
  %catch3 = catchpad within %inner []
  catchret from %catch3 to label %exit2

exit2:
  unreachable

cleanup:
  %pad = cleanuppad within none []
  cleanupret from %pad unwind label %last

last:
  %pad2 = cleanuppad within none [i32 1]
  cleanupret from %pad2 unwind to caller

exit:
  ret void
}

declare i32 @__CxxFrameHandler3(...)

attributes #0 = { nounwind }
