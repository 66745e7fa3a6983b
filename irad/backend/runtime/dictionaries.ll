; Shadows of typed dictionaries.
;
; The primal's dictionary stays what Numba's C code makes of it; beside it, in the arena, lives a shadow, %irad.dict. It
; has a cell for each entry, shadow of its key and value: made when the key is inserted, kept when its value is replaced,
; dropped with the entry. Cells never move, so the adjoint of an access is one of its cell. They are found by the entry's
; number, which lookups return: entries are numbered in order of insertion, and closed up when the table is made anew
; (numba/cext/dictobject.c).

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; Bytes to allocate for the cell before a value is inserted; 0 where the key has an entry.
define linkonce_odr i64 @irad.dict_room(ptr %dict, i64 %index) nounwind {
  %cell = call i64 @irad.dict_cell_size(ptr %dict)
  %known = icmp sge i64 %index, 0
  %bytes = select i1 %known, i64 0, i64 %cell
  ret i64 %bytes
}

; Bytes to allocate for a larger table; 0 where there is room.
define linkonce_odr i64 @irad.dict_table_room(ptr %dict, i64 %index) nounwind {
  %room.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 1
  %count.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 2
  %room = load i64, ptr %room.slot
  %count = load i64, ptr %count.slot
  %fits = icmp ult i64 %count, %room
  %twice = shl i64 %count, 1
  %more = add i64 %twice, 8
  %table = shl i64 %more, 3
  %known = icmp sge i64 %index, 0
  %none = or i1 %known, %fits
  %bytes = select i1 %none, i64 0, i64 %table
  ret i64 %bytes
}

define linkonce_odr i64 @irad.dict_cell_size(ptr %dict) nounwind alwaysinline {
  %at.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 4
  %size.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 5
  %at = load i64, ptr %at.slot
  %size = load i64, ptr %size.slot
  %sum = add i64 %at, %size
  %raised = add i64 %sum, 7
  %result = and i64 %raised, -8
  ret i64 %result
}

; The cell of an entry; null where there is none.
define linkonce_odr ptr @irad.dict_cell(ptr %dict, i64 %index) nounwind {
entry:
  %count.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 2
  %count = load i64, ptr %count.slot
  %known = icmp ult i64 %index, %count
  br i1 %known, label %find, label %done
find:
  %cells = load ptr, ptr %dict
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
  %at.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 4
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
  %room.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 1
  %count.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 2
  %at.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 4
  %room = load i64, ptr %room.slot
  %count = load i64, ptr %count.slot
  %at = load i64, ptr %at.slot
  %size = call i64 @irad.dict_cell_size(ptr %dict)
  %value = getelementptr i8, ptr %memory, i64 %at
  %index.now = call i64 %lookup(ptr %primal, ptr %key, i64 %hash, ptr %value)
  call void @llvm.memset.p0.i64(ptr %memory, i8 0, i64 %size, i1 false)
  %full = icmp uge i64 %count, %room
  br i1 %full, label %grow, label %grown
grow:
  %old.cells = load ptr, ptr %dict
  %old.bytes = shl i64 %count, 3
  %twice = shl i64 %count, 1
  %new.room = add i64 %twice, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %table, ptr %old.cells, i64 %old.bytes, i1 false)
  store ptr %table, ptr %dict
  store i64 %new.room, ptr %room.slot
  br label %grown
grown:
  %same = icmp eq i64 %index.now, %count
  br i1 %same, label %put, label %close
close:
  call void @irad.dict_close_up(ptr %dict)
  br label %put
put:
  %cells = load ptr, ptr %dict
  %slot = getelementptr ptr, ptr %cells, i64 %index.now
  %count.now = add i64 %index.now, 1
  store ptr %memory, ptr %slot
  store i64 %count.now, ptr %count.slot
  ret ptr %memory
}

; Entries without cell are dropped, as when the table is made anew.
define linkonce_odr void @irad.dict_close_up(ptr %dict) nounwind {
entry:
  %count.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 2
  %count = load i64, ptr %count.slot
  %cells = load ptr, ptr %dict
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

; After an entry was deleted.
define linkonce_odr void @irad.dict_delete(ptr %dict, i64 %index, i32 %status) nounwind {
entry:
  %count.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 2
  %count = load i64, ptr %count.slot
  %known = icmp ult i64 %index, %count
  %succeeded = icmp eq i32 %status, 0
  %drop = and i1 %known, %succeeded
  br i1 %drop, label %clear, label %done
clear:
  %cells = load ptr, ptr %dict
  %slot = getelementptr ptr, ptr %cells, i64 %index
  store ptr null, ptr %slot
  br label %done
done:
  ret void
}

; After the last entry was taken: its cell; null if there was none.
define linkonce_odr ptr @irad.dict_pop(ptr %dict, i32 %status) nounwind {
entry:
  %count.slot = getelementptr inbounds %irad.dict, ptr %dict, i32 0, i32 2
  %count = load i64, ptr %count.slot
  %cells = load ptr, ptr %dict
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

; The shadow of Numba's iterator leads to the shadow of the dictionary.
define linkonce_odr void @irad.dict_begin(ptr %iterator, ptr %dict) nounwind {
  store ptr %dict, ptr %iterator
  ret void
}

; The cell of the entry that an iterator has come to, which is in front of its next one; null at the end, and always where
; the dictionary has no shadow.
define linkonce_odr ptr @irad.dict_next(ptr %shadow, ptr %iterator, i32 %status) nounwind {
entry:
  %dict = load ptr, ptr %shadow
  %succeeded = icmp eq i32 %status, 0
  %known = icmp ne ptr %dict, null
  %go = and i1 %succeeded, %known
  br i1 %go, label %find, label %done
find:
  %next.slot = getelementptr inbounds %irad.dict_iterator, ptr %iterator, i32 0, i32 3
  %next = load i64, ptr %next.slot
  %index = sub i64 %next, 1
  %found = call ptr @irad.dict_cell(ptr %dict, i64 %index)
  br label %done
done:
  %cell = phi ptr [ null, %entry ], [ %found, %find ]
  ret ptr %cell
}
