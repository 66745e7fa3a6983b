; Shadows that live as long as the memory they belong to: in forward mode, those of what Numba's runtime allocates.
;
; They cannot lie in the arena, where a loop that makes a temporary array in each iteration would pile them up: nothing
; is read again later, as it is on a tape. The primal's allocation holds its shadow instead, and frees it when it is freed
; itself, wherever that is, also after the derivative has ended.

declare ptr @calloc(i64, i64)
declare void @free(ptr)

; %size zeroed bytes; null and the flag when out of memory.
define linkonce_odr noalias ptr @irad.shadow_alloc(ptr %arena, i64 %size) nounwind noinline {
entry:
  %memory = call ptr @calloc(i64 1, i64 %size)
  %none = icmp eq ptr %memory, null
  br i1 %none, label %fail, label %done
fail:
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 2
  store i32 1, ptr %failed.slot
  br label %done
done:
  ret ptr %memory
}

; A destructor as Numba's runtime calls it: with the data, their size, and what was stored beside it.
define linkonce_odr void @irad.shadow_free(ptr %data, i64 %size, ptr %shadow) nounwind noinline {
  call void @free(ptr %shadow)
  ret void
}
