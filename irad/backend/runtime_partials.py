"""Partial shadows of parallel loops, in LLVM text.

A reverse sweep that runs in lanes describes each array that lanes add to by an entry of a table (``runtime_table``).
``partials_open`` gives every lane a window of the array and a partial shadow for the rest, ``partials_close`` adds the
partial shadows up, lane by lane. Arrays that overlap count as one, the smallest range that holds them, so that windows
of one lane never reach into those of another. An entry, all i64::

    %irad.partial   low, high     the bytes that the array's shadow takes; of all that overlap, after open
                    kind          see below
                    step, origin  where index i of the first axis lies: origin + i * step; step 0 where there is none
                    base          its partial shadows, one behind the other
                    single        1 for float, 0 for double
                    slot          where a lane's record has its window
                    owned         bytes at ``base``, of the entry that released them; else 0

    %irad.window    start, size   of the lane's window: there it adds to the shadow itself
                    delta         from the shadow to the lane's partial shadow
                    first, last   the bytes of the shadow for which the partial one was used
                    low, extent   the whole array: what lies outside is memory of the lane's own

Kinds: 0 read, 1 read by library calls, 2 only written, 3 read and written. An array that is only written has no window;
if it overlaps one that is read, or if library calls read what is written, lanes are not independent, and open returns
false: then the lanes have to run one by one, each with a window that holds everything, and so without partial shadows.
It also does when memory runs out.
"""

from __future__ import annotations

from string import Template
from typing import Final

from irad.backend.runtime_table import table_text

PARTIAL_TYPES: Final = """\
%irad.partial = type { i64, i64, i64, i64, i64, i64, i64, i64, i64 }
%irad.window = type { i64, i64, i64, i64, i64, i64, i64 }
"""

# Adds to a shadow that lanes share; takes from one.
_ACCESS: Final = Template("""\
define linkonce_odr void @irad.add_shared_$name($window, $type %amount) nounwind alwaysinline {
entry:
  %address = ptrtoint ptr %place to i64
  %offset = sub i64 %address, %start
  %own = icmp ult i64 %offset, %size
  br i1 %own, label %direct, label %outside, !prof !{!"branch_weights", i32 2000, i32 1}
outside:
  %shared = call i1 @irad.is_shared(ptr %window, i64 %address)
  br i1 %shared, label %partial, label %direct
direct:
  %old = load $type, ptr %place, align 1
  %new = fadd $type %old, %amount
  store $type %new, ptr %place, align 1
  br label %done
partial:
  %twin = getelementptr i8, ptr %place, i64 %delta
  %before = load $type, ptr %twin, align 1
  %after = fadd $type %before, %amount
  store $type %after, ptr %twin, align 1
  %first.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 3
  %last.slot = getelementptr inbounds %irad.window, ptr %window, i32 0, i32 4
  %first = load i64, ptr %first.slot
  %last = load i64, ptr %last.slot
  %past = add i64 %address, $bytes
  %low = call i64 @llvm.umin.i64(i64 %first, i64 %address)
  %high = call i64 @llvm.umax.i64(i64 %last, i64 %past)
  store i64 %low, ptr %first.slot
  store i64 %high, ptr %last.slot
  br label %done
done:
  ret void
}

define linkonce_odr $type @irad.take_shared_$name($window) nounwind alwaysinline {
entry:
  %address = ptrtoint ptr %place to i64
  %offset = sub i64 %address, %start
  %own = icmp ult i64 %offset, %size
  %old = load $type, ptr %place, align 1
  store $type zeroinitializer, ptr %place, align 1
  br i1 %own, label %done, label %outside, !prof !{!"branch_weights", i32 2000, i32 1}
outside:
  %shared = call i1 @irad.is_shared(ptr %window, i64 %address)
  br i1 %shared, label %partial, label %done
partial:
  %twin = getelementptr i8, ptr %place, i64 %delta
  %more = load $type, ptr %twin, align 1
  %both = fadd $type %old, %more
  %used = fcmp une $type %more, 0.0
  br i1 %used, label %clear, label %done
clear:
  store $type zeroinitializer, ptr %twin, align 1
  br label %done
done:
  %taken = phi $type [ %old, %entry ], [ %old, %outside ], [ %both, %partial ], [ %both, %clear ]
  ret $type %taken
}

; The adjoint of a memmove of %bytes between shadows that lanes may share: takes from %to, adds to %from. What one
; number adds must not be taken by the next, so where the two overlap the order matters.
define linkonce_odr void @irad.move_shared_$name($at_to, ptr %to, $at_from, ptr %from, i64 %bytes) nounwind noinline {
entry:
  %count = udiv i64 %bytes, $bytes
  %last = sub i64 %count, 1
  %to.address = ptrtoint ptr %to to i64
  %from.address = ptrtoint ptr %from to i64
  %rising = icmp uge i64 %to.address, %from.address
  %to.own = call i1 @irad.in_window(i64 %to.start, i64 %to.size, i64 %to.address, i64 %bytes)
  %from.own = call i1 @irad.in_window(i64 %from.start, i64 %from.size, i64 %from.address, i64 %bytes)
  %own = and i1 %to.own, %from.own
  br i1 %own, label %direct, label %shared
direct:
  call void @irad.copy_adjoint_$name(ptr %to, ptr %from, i64 %bytes)
  ret void
shared:
  %some = icmp ne i64 %count, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %shared ], [ %next, %loop ]
  %mirrored = sub i64 %last, %i
  %k = select i1 %rising, i64 %i, i64 %mirrored
  %offset = mul i64 %k, $bytes
  %into = getelementptr i8, ptr %to, i64 %offset
  %source = getelementptr i8, ptr %from, i64 %offset
  %taken = call $type @irad.take_shared_$name($at_to, ptr %into)
  call void @irad.add_shared_$name($at_from, ptr %source, $type %taken)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}

; The adjoint of a fill: clears %bytes of a shadow.
define linkonce_odr void @irad.drop_shared_$name($at_to, ptr %to, i64 %bytes) nounwind noinline {
entry:
  %to.address = ptrtoint ptr %to to i64
  %own = call i1 @irad.in_window(i64 %to.start, i64 %to.size, i64 %to.address, i64 %bytes)
  br i1 %own, label %direct, label %shared
direct:
  call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 %bytes, i1 false)
  ret void
shared:
  %some = icmp uge i64 %bytes, $bytes
  br i1 %some, label %loop, label %done
loop:
  %offset = phi i64 [ 0, %shared ], [ %next, %loop ]
  %into = getelementptr i8, ptr %to, i64 %offset
  %taken = call $type @irad.take_shared_$name($at_to, ptr %into)
  %next = add i64 %offset, $bytes
  %more = icmp ult i64 %next, %bytes
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Adds a lane's partial shadow to the shadow, from byte %first to byte %last of that, and clears it.
define linkonce_odr void @irad.add_partial_$name(i64 %first, i64 %last, i64 %delta) nounwind noinline {
entry:
  %some = icmp ult i64 %first, %last
  br i1 %some, label %loop, label %done
loop:
  %address = phi i64 [ %first, %entry ], [ %next, %loop ]
  %place = inttoptr i64 %address to ptr
  %twin = getelementptr i8, ptr %place, i64 %delta
  %part = load $type, ptr %twin, align 1
  %old = load $type, ptr %place, align 1
  %new = fadd $type %old, %part
  store $type %new, ptr %place, align 1
  store $type zeroinitializer, ptr %twin, align 1
  %next = add i64 %address, $bytes
  %more = icmp ult i64 %next, %last
  br i1 %more, label %loop, label %done
done:
  ret void
}
""")


def partials_text() -> str:
    """The text for both precisions."""
    window = "ptr %window, i64 %start, i64 %size, i64 %delta, ptr %place"
    precisions = ({"name": "f64", "type": "double", "bytes": 8}, {"name": "f32", "type": "float", "bytes": 4})
    places = {
        f"at_{side}": f"ptr %{side}.window, i64 %{side}.start, i64 %{side}.size, i64 %{side}.delta"
        for side in ("to", "from")
    }
    return "\n".join((*(_ACCESS.substitute(places | p, window=window) for p in precisions), table_text()))
