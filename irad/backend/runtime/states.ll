; States: what a forward sweep leaves for a reverse sweep that is called separately.
;
; Ownership: a state is an allocation of Numba's, %irad.state in front of a block with the frame. It owns an arena, which
; its destructor deletes, so a tape is freed when the last reference to its state is gone, in Python or in compiled code;
; or by the reverse sweep, when no other may follow. One reverse sweep at a time: each takes the state, atomically, and
; gives it back.

declare void @irad.arena_delete(ptr)

; The destructor, as Numba calls it.
define linkonce_odr void @irad.state_close(ptr %state, i64 %size, ptr %info) nounwind {
  %arena.slot = getelementptr inbounds %irad.state, ptr %state, i32 0, i32 ${state.arena}
  %arena = load ptr, ptr %arena.slot
  call void @irad.arena_delete(ptr %arena)
  ret void
}

; Takes an idle state; the result is the use that it had before, idle where it could be taken.
define linkonce_odr i32 @irad.state_take(ptr %state) nounwind {
  %use = getelementptr inbounds %irad.state, ptr %state, i32 0, i32 ${state.use}
  %found = cmpxchg ptr %use, i32 ${STATE_IDLE}, i32 ${STATE_RUNNING} acquire monotonic
  %before = extractvalue { i32, i1 } %found, 0
  ret i32 %before
}

; Gives a state back, for another reverse sweep.
define linkonce_odr void @irad.state_return(ptr %state) nounwind {
  %use = getelementptr inbounds %irad.state, ptr %state, i32 0, i32 ${state.use}
  store atomic i32 ${STATE_IDLE}, ptr %use release, align 4
  ret void
}

; Frees the tape of a state that was taken; there is no other reverse sweep.
define linkonce_odr void @irad.state_end(ptr %state) nounwind {
  %use = getelementptr inbounds %irad.state, ptr %state, i32 0, i32 ${state.use}
  %arena.slot = getelementptr inbounds %irad.state, ptr %state, i32 0, i32 ${state.arena}
  %arena = load ptr, ptr %arena.slot
  store ptr null, ptr %arena.slot
  call void @irad.arena_delete(ptr %arena)
  store atomic i32 ${STATE_USED}, ptr %use release, align 4
  ret void
}
