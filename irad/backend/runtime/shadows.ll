; Shadows that live as long as the memory they belong to: in forward mode, those of what Numba's runtime or C allocates.
;
; They cannot lie in the arena, where a loop that makes a temporary array in each iteration would pile them up: nothing
; is read again later, as it is on a tape. The primal's allocation holds its shadow instead, and frees it when it is freed
; itself, wherever that is, also after the derivative has ended.

declare ptr @calloc(i64, i64)
declare void @free(ptr)
declare ptr @realloc(ptr, i64)

; %size zeroed bytes; null and the flag when out of memory.
define linkonce_odr noalias ptr @irad.shadow_alloc(ptr %arena, i64 %size) nounwind noinline {
entry:
  ; calloc maps large blocks, whose pages are zero without being written
  %memory = call ptr @calloc(i64 1, i64 %size)
  %none = icmp eq ptr %memory, null
  br i1 %none, label %fail, label %done
fail:
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.failed}
  store i32 ${OUT_OF_MEMORY}, ptr %failed.slot
  br label %done
done:
  ret ptr %memory
}

; A destructor as Numba's runtime calls it: with the data, their size, and what was stored beside it.
define linkonce_odr void @irad.shadow_free(ptr %data, i64 %size, ptr %shadow) nounwind noinline {
  call void @free(ptr %shadow)
  ret void
}

; What realloc did to memory is done to its shadow: %made is what it returned. Memory without a shadow gets one, zeroed.
; Null and the flag when out of memory. Where nothing was made, which has no shadow, the result means nothing.
define linkonce_odr ptr @irad.shadow_realloc(ptr %arena, ptr %made, ptr %shadow, i64 %size) nounwind noinline {
entry:
  %nothing = icmp eq ptr %made, null
  br i1 %nothing, label %unmade, label %remade
unmade:
  %gone = icmp eq i64 %size, 0
  br i1 %gone, label %free, label %keep
free:
  call void @free(ptr %shadow)
  br label %keep
keep:
  ret ptr %arena
remade:
  ; realloc to zero bytes would free the shadow and return null, which means out of memory here
  %large = icmp ugt i64 %size, 1
  %wanted = select i1 %large, i64 %size, i64 1
  %first = icmp eq ptr %shadow, null
  br i1 %first, label %new, label %more
new:
  %zeroed = call ptr @irad.shadow_alloc(ptr %arena, i64 %wanted)
  ret ptr %zeroed
more:
  %moved = call ptr @realloc(ptr %shadow, i64 %wanted)
  %none = icmp eq ptr %moved, null
  br i1 %none, label %fail, label %done
fail:
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.failed}
  store i32 ${OUT_OF_MEMORY}, ptr %failed.slot
  br label %done
done:
  ret ptr %moved
}
