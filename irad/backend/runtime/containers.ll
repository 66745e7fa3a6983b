; Shadows of typed lists and dictionaries.
;
; The primal's container stays what Numba's C code makes of it; beside it lives a shadow, %irad.list or %irad.dict.
; Programs that are differentiated contain these functions as text, so that derivatives of derivatives follow.
;
; Ownership: a shadow and its memory lie in the arena. Where one grows, its caller allocates, and old memory stays there,
; since the adjoint moves cotangents back to it.

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; --- lists
;
; The shadow holds as many items as the list, in the same places: an item's address is base plus index times size in both.
; It is grown, and its items are moved, by the same steps; the adjoints of those steps move the cotangents back.

; Bytes to allocate before a list of %length items gets one more; 0 where there is room.
define linkonce_odr i64 @irad.list_room(ptr %list, i64 %length) nounwind {
  %room.slot = getelementptr inbounds %irad.list, ptr %list, i32 0, i32 ${list.room}
  %size.slot = getelementptr inbounds %irad.list, ptr %list, i32 0, i32 ${list.item_size}
  %room = load i64, ptr %room.slot
  %size = load i64, ptr %size.slot
  %fits = icmp ult i64 %length, %room
  %twice = shl i64 %length, 1
  %count = add i64 %twice, ${MORE_ROOM}
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
  %room.slot = getelementptr inbounds %irad.list, ptr %list, i32 0, i32 ${list.room}
  %size.slot = getelementptr inbounds %irad.list, ptr %list, i32 0, i32 ${list.item_size}
  %items.slot = getelementptr inbounds %irad.list, ptr %list, i32 0, i32 ${list.items}
  %old = load ptr, ptr %items.slot
  %size = load i64, ptr %size.slot
  %used = mul i64 %length, %size
  %rest = sub i64 %bytes, %used
  %free = getelementptr i8, ptr %memory, i64 %used
  %room = udiv i64 %bytes, %size
  call void @llvm.memcpy.p0.p0.i64(ptr %memory, ptr %old, i64 %used, i1 false)
  call void @llvm.memset.p0.i64(ptr %free, i8 0, i64 %rest, i1 false)
  store ptr %memory, ptr %items.slot
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

; --- dictionaries
;
; The shadow has a cell for each entry, shadow of its key and value: made when the key is inserted, kept when its value is
; replaced, dropped with the entry. Cells never move, so the adjoint of an access is one of its cell. They are found by the
; entry's number, which lookups return: entries are numbered in order of insertion, and closed up when the table is made
; again (numba/cext/dictobject.c).

; Bytes to allocate for the cell before a value is inserted; 0 where the key has an entry.
define linkonce_odr i64 @irad.dict_room(ptr %dict, i64 %index) nounwind {
  %cell = call i64 @irad.dict_cell_size(ptr %dict)
  %known = icmp sge i64 %index, 0
  %bytes = select i1 %known, i64 0, i64 %cell
  ret i64 %bytes
}

; Bytes to allocate for a larger table; 0 where there is room.
define linkonce_odr i64 @irad.dict_table_room(ptr %dict, i64 %index) nounwind {
  %room.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.room}
  %count.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.count}
  %room = load i64, ptr %room.slot
  %count = load i64, ptr %count.slot
  %fits = icmp ult i64 %count, %room
  %twice = shl i64 %count, 1
  %more = add i64 %twice, ${MORE_ROOM}
  %table = mul i64 %more, ${WORD}
  %known = icmp sge i64 %index, 0
  %none = or i1 %known, %fits
  %bytes = select i1 %none, i64 0, i64 %table
  ret i64 %bytes
}

; Bytes of a cell.
define linkonce_odr i64 @irad.dict_cell_size(ptr %dict) nounwind alwaysinline {
  %at.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.value_at}
  %size.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.value_size}
  %at = load i64, ptr %at.slot
  %size = load i64, ptr %size.slot
  %sum = add i64 %at, %size
  %raised = add i64 %sum, ${WORD_ROUND_UP}
  %result = and i64 %raised, -${WORD}
  ret i64 %result
}

; The cell of an entry; null where there is none.
define linkonce_odr ptr @irad.dict_cell(ptr %dict, i64 %index) nounwind {
entry:
  %count.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.count}
  %count = load i64, ptr %count.slot
  %known = icmp ult i64 %index, %count
  br i1 %known, label %find, label %done
find:
  %cells.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.cells}
  %cells = load ptr, ptr %cells.slot
  %slot = getelementptr ptr, ptr %cells, i64 %index
  %found = load ptr, ptr %slot
  br label %done
done:
  %cell = phi ptr [ null, %entry ], [ %found, %find ]
  ret ptr %cell
}

; Where the value is in a cell; null where that is null.
define linkonce_odr ptr @irad.dict_value(ptr %dict, ptr %cell) nounwind {
entry:
  %none = icmp eq ptr %cell, null
  br i1 %none, label %done, label %find
find:
  %at.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.value_at}
  %at = load i64, ptr %at.slot
  %found = getelementptr i8, ptr %cell, i64 %at
  br label %done
done:
  %value = phi ptr [ null, %entry ], [ %found, %find ]
  ret ptr %value
}

; After a key was inserted: the cell of its entry, made in %memory if the key was new; null if the insertion failed. The
; table of cells moves to %table if it is full. %before is the entry the key had, %lookup is numba_dict_lookup.
define linkonce_odr ptr @irad.dict_insert(ptr %dict, ptr %memory, ptr %table, i64 %before, i32 %status, ptr %lookup, ptr %primal, ptr %key, i64 %hash) nounwind {
entry:
  %failed = icmp slt i32 %status, 0
  br i1 %failed, label %none, label %check
none:
  ret ptr null
check:
  %known = icmp sge i64 %before, 0
  br i1 %known, label %old, label %new
old:
  %cell = call ptr @irad.dict_cell(ptr %dict, i64 %before)
  ret ptr %cell
new:
  %cells.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.cells}
  %room.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.room}
  %count.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.count}
  %at.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.value_at}
  %room = load i64, ptr %room.slot
  %count = load i64, ptr %count.slot
  %at = load i64, ptr %at.slot
  %size = call i64 @irad.dict_cell_size(ptr %dict)
  %value = getelementptr i8, ptr %memory, i64 %at
  ; deleted entries before it may be gone now: only a lookup knows its number
  %index.now = call i64 %lookup(ptr %primal, ptr %key, i64 %hash, ptr %value)
  call void @llvm.memset.p0.i64(ptr %memory, i8 0, i64 %size, i1 false)
  %full = icmp uge i64 %count, %room
  br i1 %full, label %grow, label %grown
grow:
  %old.cells = load ptr, ptr %cells.slot
  %old.bytes = mul i64 %count, ${WORD}
  %twice = shl i64 %count, 1
  %new.room = add i64 %twice, ${MORE_ROOM}  ; as in dict_table_room
  call void @llvm.memcpy.p0.p0.i64(ptr %table, ptr %old.cells, i64 %old.bytes, i1 false)
  store ptr %table, ptr %cells.slot
  store i64 %new.room, ptr %room.slot
  br label %grown
grown:
  %same = icmp eq i64 %index.now, %count
  br i1 %same, label %put, label %close
close:
  call void @irad.dict_close_up(ptr %dict)
  br label %put
put:
  %cells = load ptr, ptr %cells.slot
  %slot = getelementptr ptr, ptr %cells, i64 %index.now
  %count.now = add i64 %index.now, 1
  store ptr %memory, ptr %slot
  store i64 %count.now, ptr %count.slot
  ret ptr %memory
}

; Entries without cell are dropped, as when the table is rebuilt.
define linkonce_odr void @irad.dict_close_up(ptr %dict) nounwind {
entry:
  %count.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.count}
  %count = load i64, ptr %count.slot
  %cells.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.cells}
  %cells = load ptr, ptr %cells.slot
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %kept = phi i64 [ 0, %entry ], [ %kept.next, %loop ]
  %source = getelementptr ptr, ptr %cells, i64 %i
  %target = getelementptr ptr, ptr %cells, i64 %kept
  %cell = load ptr, ptr %source
  store ptr %cell, ptr %target
  %used = icmp ne ptr %cell, null
  %one = zext i1 %used to i64
  %kept.next = add i64 %kept, %one
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}

; After an entry was deleted: its cell is dropped, its number stays until the table is rebuilt.
define linkonce_odr void @irad.dict_delete(ptr %dict, i64 %index, i32 %status) nounwind {
entry:
  %count.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.count}
  %count = load i64, ptr %count.slot
  %known = icmp ult i64 %index, %count
  %succeeded = icmp eq i32 %status, 0
  %drop = and i1 %known, %succeeded
  br i1 %drop, label %clear, label %done
clear:
  %cells.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.cells}
  %cells = load ptr, ptr %cells.slot
  %slot = getelementptr ptr, ptr %cells, i64 %index
  store ptr null, ptr %slot
  br label %done
done:
  ret void
}

; After the last entry was taken: its cell; null if there was none.
define linkonce_odr ptr @irad.dict_pop(ptr %dict, i32 %status) nounwind {
entry:
  %count.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.count}
  %count = load i64, ptr %count.slot
  %cells.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 ${dict.cells}
  %cells = load ptr, ptr %cells.slot
  %succeeded = icmp eq i32 %status, 0
  br i1 %succeeded, label %loop, label %none
loop:
  %left = phi i64 [ %count, %entry ], [ %i, %look ]
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %look, label %none
look:
  %i = sub i64 %left, 1
  %slot = getelementptr ptr, ptr %cells, i64 %i
  %cell = load ptr, ptr %slot
  %used = icmp ne ptr %cell, null
  br i1 %used, label %take, label %loop
take:
  store i64 %i, ptr %count.slot
  ret ptr %cell
none:
  ret ptr null
}

; The shadow of Numba's iterator points to the shadow of the dictionary.
define linkonce_odr void @irad.dict_begin(ptr %iterator, ptr %dict) nounwind {
  %dict.slot = getelementptr inbounds %irad.dict_iterator, ptr %iterator, i32 0, i32 ${dict_iterator.dict}
  store ptr %dict, ptr %dict.slot
  ret void
}

; The cell of the entry that an iterator has come to, which is in front of its next one; null at the end, and always where
; the dictionary has no shadow.
define linkonce_odr ptr @irad.dict_next(ptr %shadow, ptr %iterator, i32 %status) nounwind {
entry:
  %dict.slot = getelementptr inbounds %irad.dict_iterator, ptr %shadow, i32 0, i32 ${dict_iterator.dict}
  %dict = load ptr, ptr %dict.slot
  %succeeded = icmp eq i32 %status, 0
  %known = icmp ne ptr %dict, null
  %go = and i1 %succeeded, %known
  br i1 %go, label %find, label %done
find:
  %next.slot = getelementptr inbounds %irad.dict_iterator, ptr %iterator, i32 0, i32 ${dict_iterator.next}
  %next = load i64, ptr %next.slot
  %index = sub i64 %next, 1
  %found = call ptr @irad.dict_cell(ptr %dict, i64 %index)
  br label %done
done:
  %cell = phi ptr [ null, %entry ], [ %found, %find ]
  ret ptr %cell
}
