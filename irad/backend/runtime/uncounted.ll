; What a program of `irad opt` has in place of reference counts.
;
; A program without Numba has no reference counts: nothing waits in an arena to be released. It takes the place of the
; function of this name in `arena.ll`: what is not linkonce wins.
define hidden void @irad.run_deferred(ptr %mark) nounwind {
  ret void
}
