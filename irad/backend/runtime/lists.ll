; Shadows of typed lists.
;
; The primal's list stays what Numba's C code makes of it; beside it, in the arena, lives a shadow, %irad.list. It holds as
; many items as the list, in the same places: an item's address is base plus index times size in both. It is grown, and
; its items are moved, by the same steps; the adjoints of those steps move the cotangents back.

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; Bytes to allocate before a list of %length items gets one more; 0 where there is room.
define linkonce_odr i64 @irad.list_room(ptr %list, i64 %length) nounwind {
  %room.slot = getelementptr inbounds %irad.list, ptr %list, i32 0, i32 1
  %size.slot = getelementptr inbounds %irad.list, ptr %list, i32 0, i32 2
  %room = load i64, ptr %room.slot
  %size = load i64, ptr %size.slot
  %fits = icmp ult i64 %length, %room
  %twice = shl i64 %length, 1
  %count = add i64 %twice, 8
  %bytes = mul i64 %count, %size
  %result = select i1 %fits, i64 0, i64 %bytes
  ret i64 %result
}

; Moves %length items to new memory of %bytes bytes, if any; returns the bytes moved.
define linkonce_odr i64 @irad.list_grow(ptr %list, ptr %memory, i64 %length, i64 %bytes) nounwind {
entry:
  %fits = icmp eq i64 %bytes, 0
  br i1 %fits, label %done, label %grow
grow:
  %room.slot = getelementptr inbounds %irad.list, ptr %list, i32 0, i32 1
  %size.slot = getelementptr inbounds %irad.list, ptr %list, i32 0, i32 2
  %old = load ptr, ptr %list
  %size = load i64, ptr %size.slot
  %used = mul i64 %length, %size
  %rest = sub i64 %bytes, %used
  %free = getelementptr i8, ptr %memory, i64 %used
  %room = udiv i64 %bytes, %size
  call void @llvm.memcpy.p0.p0.i64(ptr %memory, ptr %old, i64 %used, i1 false)
  call void @llvm.memset.p0.i64(ptr %free, i8 0, i64 %rest, i1 false)
  store ptr %memory, ptr %list
  store i64 %room, ptr %room.slot
  br label %done
done:
  %moved = phi i64 [ 0, %entry ], [ %used, %grow ]
  ret i64 %moved
}

; Adjoint of the move: the cotangents go back to the old memory; the new memory is zero again.
define linkonce_odr void @irad.list_shrink(ptr %old, ptr %new, i64 %moved) nounwind {
entry:
  %none = icmp eq i64 %moved, 0
  br i1 %none, label %done, label %move
move:
  call void @llvm.memcpy.p0.p0.i64(ptr %old, ptr %new, i64 %moved, i1 false)
  call void @llvm.memset.p0.i64(ptr %new, i8 0, i64 %moved, i1 false)
  br label %done
done:
  ret void
}

; The first of the items start:stop:step, their distance, and their number.
define linkonce_odr { i64, i64, i64 } @irad.list_slice(i64 %start, i64 %stop, i64 %step) nounwind {
  %down = icmp slt i64 %step, 0
  %negated = sub i64 0, %step
  %distance = select i1 %down, i64 %negated, i64 %step
  %low = select i1 %down, i64 %stop, i64 %start
  %high = select i1 %down, i64 %start, i64 %stop
  %some = icmp slt i64 %low, %high
  %span = sub i64 %high, %low
  %last = sub i64 %span, 1
  %steps = sdiv i64 %last, %distance
  %full = add i64 %steps, 1
  %count = select i1 %some, i64 %full, i64 0
  %reach = mul i64 %steps, %step
  %end = add i64 %start, %reach
  %first = select i1 %down, i64 %end, i64 %start
  %a = insertvalue { i64, i64, i64 } poison, i64 %first, 0
  %b = insertvalue { i64, i64, i64 } %a, i64 %distance, 1
  %c = insertvalue { i64, i64, i64 } %b, i64 %count, 2
  ret { i64, i64, i64 } %c
}

; Removes the items start:stop:step of a list of %length items: what is between two of them moves down.
define linkonce_odr void @irad.list_remove(ptr %items, i64 %size, i64 %length, i64 %start, i64 %stop, i64 %step) nounwind {
entry:
  %slice = call { i64, i64, i64 } @irad.list_slice(i64 %start, i64 %stop, i64 %step)
  %first = extractvalue { i64, i64, i64 } %slice, 0
  %distance = extractvalue { i64, i64, i64 } %slice, 1
  %count = extractvalue { i64, i64, i64 } %slice, 2
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %loop, label %done
loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
  %here = phi i64 [ %first, %entry ], [ %there, %loop ]
  %k.next = add i64 %k, 1
  %there = add i64 %here, %distance
  %more = icmp slt i64 %k.next, %count
  %end = select i1 %more, i64 %there, i64 %length
  %from = add i64 %here, 1
  %to = sub i64 %here, %k
  %moved = sub i64 %end, %from
  %bytes = mul i64 %moved, %size
  %from.offset = mul i64 %from, %size
  %to.offset = mul i64 %to, %size
  %source = getelementptr i8, ptr %items, i64 %from.offset
  %target = getelementptr i8, ptr %items, i64 %to.offset
  call void @llvm.memmove.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Adjoint of the removal: what moved down moves up, last first; the removed items get zero.
define linkonce_odr void @irad.list_restore(ptr %items, i64 %size, i64 %length, i64 %start, i64 %stop, i64 %step) nounwind {
entry:
  %slice = call { i64, i64, i64 } @irad.list_slice(i64 %start, i64 %stop, i64 %step)
  %first = extractvalue { i64, i64, i64 } %slice, 0
  %distance = extractvalue { i64, i64, i64 } %slice, 1
  %count = extractvalue { i64, i64, i64 } %slice, 2
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %loop, label %done
loop:
  %left = phi i64 [ %count, %entry ], [ %k, %loop ]
  %end = phi i64 [ %length, %entry ], [ %here, %loop ]
  %k = sub i64 %left, 1
  %reach = mul i64 %k, %distance
  %here = add i64 %first, %reach
  %from = sub i64 %here, %k
  %to = add i64 %here, 1
  %moved = sub i64 %end, %to
  %bytes = mul i64 %moved, %size
  %from.offset = mul i64 %from, %size
  %to.offset = mul i64 %to, %size
  %here.offset = mul i64 %here, %size
  %source = getelementptr i8, ptr %items, i64 %from.offset
  %target = getelementptr i8, ptr %items, i64 %to.offset
  %removed = getelementptr i8, ptr %items, i64 %here.offset
  call void @llvm.memmove.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  call void @llvm.memset.p0.i64(ptr %removed, i8 0, i64 %size, i1 false)
  %more = icmp sgt i64 %k, 0
  br i1 %more, label %loop, label %done
done:
  ret void
}
