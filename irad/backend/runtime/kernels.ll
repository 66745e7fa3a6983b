; Loops over shadow memory that derivatives call, in each precision. They own and allocate nothing.
;
; copy_adjoint is the adjoint of memmove(dst, src, n): ct = dst[i]; dst[i] = 0; src[i] += ct, as if all of dst were read
; first. Where the ranges overlap, an element is a destination in one step and a source in another, and the first has to
; come first: ascending for dst > src, descending for dst < src. Equal ranges copy nothing. Records may be packed, hence
; align 1.

define linkonce_odr void @irad.copy_adjoint_${suffix}(ptr %dst, ptr %src, i64 %bytes) nounwind noinline {
entry:
  %count = sdiv i64 %bytes, ${sizeof real}
  %to = ptrtoint ptr %dst to i64
  %from = ptrtoint ptr %src to i64
  %distance = sub i64 %to, %from
  %same = icmp eq i64 %distance, 0
  %empty = icmp slt i64 %count, 1
  %nothing = or i1 %same, %empty
  br i1 %nothing, label %done, label %choose
choose:
  %backward = sub i64 0, %bytes
  %overlaps.below = icmp ugt i64 %distance, %backward
  br i1 %overlaps.below, label %down, label %up
up:
  %i = phi i64 [ 0, %choose ], [ %i.next, %up ]
  %up.dst = getelementptr inbounds ${real}, ptr %dst, i64 %i
  %up.src = getelementptr inbounds ${real}, ptr %src, i64 %i
  %up.ct = load ${real}, ptr %up.dst, align 1
  store ${real} zeroinitializer, ptr %up.dst, align 1
  %up.old = load ${real}, ptr %up.src, align 1
  %up.sum = fadd ${real} %up.old, %up.ct
  store ${real} %up.sum, ptr %up.src, align 1
  %i.next = add nuw nsw i64 %i, 1
  %up.more = icmp slt i64 %i.next, %count
  br i1 %up.more, label %up, label %done
down:
  %j = phi i64 [ %count, %choose ], [ %j.next, %down ]
  %j.next = add nsw i64 %j, -1
  %down.dst = getelementptr inbounds ${real}, ptr %dst, i64 %j.next
  %down.src = getelementptr inbounds ${real}, ptr %src, i64 %j.next
  %down.ct = load ${real}, ptr %down.dst, align 1
  store ${real} zeroinitializer, ptr %down.dst, align 1
  %down.old = load ${real}, ptr %down.src, align 1
  %down.sum = fadd ${real} %down.old, %down.ct
  store ${real} %down.sum, ptr %down.src, align 1
  %down.more = icmp sgt i64 %j.next, 0
  br i1 %down.more, label %down, label %done
done:
  ret void
}

; dst[i] += src[i], %count elements.
define linkonce_odr void @irad.add_${suffix}(ptr %dst, ptr %src, i64 %count) nounwind noinline {
entry:
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %dst.i = getelementptr inbounds ${real}, ptr %dst, i64 %i
  %src.i = getelementptr inbounds ${real}, ptr %src, i64 %i
  %old = load ${real}, ptr %dst.i, align 1
  %term = load ${real}, ptr %src.i, align 1
  %sum = fadd ${real} %old, %term
  store ${real} %sum, ptr %dst.i, align 1
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}
