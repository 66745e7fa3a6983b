; Functions that stay calls in a program that is differentiated, since they have rules, and are inlined in the end. They
; own nothing.

; The guard of a product of a derivative, where the code around it was differentiated itself: see irad.ruleset.guards.

define linkonce_odr ${real} @irad.strong_zero_${suffix}(${real} %derivative, ${real} %product) nounwind alwaysinline {
  %nothing = fcmp oeq ${real} %derivative, 0.0
  %guarded = select i1 %nothing, ${real} 0.0, ${real} %product
  ret ${real} %guarded
}

; What `irad.stop_gradient` calls in a program that is differentiated.
define linkonce_odr ${real} @irad.stop.${suffix}(${real} %x) nounwind alwaysinline {
  ret ${real} %x
}

; The address of memory that the derivative of a derivative takes for constant.
define linkonce_odr ptr @irad.stop.memory(ptr %memory, i64 %size) nounwind alwaysinline {
  ret ptr %memory
}
