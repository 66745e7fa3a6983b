; Functions that stay calls in a program that is differentiated, since they have rules, and are inlined in the end.

; The guard of a product of a derivative, where the code around it was differentiated itself: see irad.ruleset.guards.

define linkonce_odr double @irad.strong_zero_f64(double %derivative, double %product) nounwind alwaysinline {
  %nothing = fcmp oeq double %derivative, 0.0
  %guarded = select i1 %nothing, double 0.0, double %product
  ret double %guarded
}

; What `irad.stop_gradient` calls in a program that is differentiated.
define linkonce_odr double @irad.stop.f64(double %x) nounwind alwaysinline {
  ret double %x
}

; The address of memory that the derivative of a derivative takes for constant.
define linkonce_odr ptr @irad.stop.memory(ptr %memory, i64 %size) nounwind alwaysinline {
  ret ptr %memory
}
