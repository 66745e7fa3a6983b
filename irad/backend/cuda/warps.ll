; What the lanes of a warp do together, in each precision: adjoints of shuffles, and additions to one place. Nothing is
; allocated; a sum in the order of the lanes keeps results the same from run to run.
;
; The adjoint of a shuffle is the sum of the cotangents of the lanes that read this lane's number. Where all lanes of a
; warp read at the same distance, one shuffle brings the cotangent back.

declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare i32 @irad.cuda.activemask() convergent nounwind
declare i32 @irad.cuda.vote.all(i32, i32) convergent nounwind
declare i32 @irad.cuda.shfl.idx.i32(i32, i32, i32) convergent nounwind
declare ${real} @irad.cuda.shfl.idx.${suffix}(i32, ${real}, i32) convergent nounwind
declare ${real} @irad.cuda.shfl.up.${suffix}(i32, ${real}, i32) convergent nounwind
declare ${real} @irad.cuda.shfl.down.${suffix}(i32, ${real}, i32) convergent nounwind
declare ${real} @irad.cuda.shfl.bfly.${suffix}(i32, ${real}, i32) convergent nounwind
declare i32 @llvm.cttz.i32(i32, i1)

; The sum for this lane, in the order of the lanes; %source is the lane that this one read.
define linkonce_odr ${real} @irad.cuda.shfl.sources.${suffix}(i32 %mask, ${real} %cotangent, i32 %source) convergent nounwind {
entry:
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  br label %each
each:
  %left = phi i32 [ %mask, %entry ], [ %rest, %each ]
  %sum = phi ${real} [ 0.0, %entry ], [ %more, %each ]
  %i = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %theirs = call ${real} @irad.cuda.shfl.idx.${suffix}(i32 %mask, ${real} %cotangent, i32 %i)
  %read = call i32 @irad.cuda.shfl.idx.i32(i32 %mask, i32 %source, i32 %i)
  %mine = icmp eq i32 %read, %lane
  %added = fadd ${real} %sum, %theirs
  %more = select i1 %mine, ${real} %added, ${real} %sum
  %below = add i32 %left, -1
  %rest = and i32 %left, %below
  %done = icmp eq i32 %rest, 0
  br i1 %done, label %exit, label %each
exit:
  ret ${real} %more
}

; Whether all 32 lanes take part, with the same number.
define linkonce_odr i1 @irad.cuda.shfl.uniform(i32 %mask, i32 %where) convergent nounwind alwaysinline {
entry:
  %full = icmp eq i32 %mask, ${ALL_LANES}
  br i1 %full, label %compare, label %partial
compare:
  %theirs = call i32 @irad.cuda.shfl.idx.i32(i32 ${ALL_LANES}, i32 %where, i32 0)
  %same = icmp eq i32 %theirs, %where
  %word = zext i1 %same to i32
  %all = call i32 @irad.cuda.vote.all(i32 ${ALL_LANES}, i32 %word)
  %result = icmp ne i32 %all, 0
  ret i1 %result
partial:
  ret i1 false
}

; %shuffled where it comes from a lane of the warp; and %cotangent where the lane kept its own number, since a shuffle
; from beyond the warp gives that.
define linkonce_odr ${real} @irad.cuda.shfl.landed.${suffix}(${real} %shuffled, i32 %from, ${real} %cotangent, i32 %source) nounwind alwaysinline {
  %inside = icmp ult i32 %from, ${WARP}
  %came = select i1 %inside, ${real} %shuffled, ${real} 0.0
  %outside = icmp ugt i32 %source, ${LAST_LANE}
  %kept = select i1 %outside, ${real} %cotangent, ${real} 0.0
  %result = fadd ${real} %came, %kept
  ret ${real} %result
}

; The adjoints of the four shuffles; %where is what the shuffle got: a lane or a distance.
define linkonce_odr ${real} @irad.cuda.shfl.adjoint.idx.${suffix}(i32 %mask, ${real} %cotangent, i32 %where) convergent nounwind {
  %source = and i32 %where, ${LAST_LANE}
  %result = call ${real} @irad.cuda.shfl.sources.${suffix}(i32 %mask, ${real} %cotangent, i32 %source)
  ret ${real} %result
}

define linkonce_odr ${real} @irad.cuda.shfl.adjoint.bfly.${suffix}(i32 %mask, ${real} %cotangent, i32 %where) convergent nounwind alwaysinline {
entry:
  %distance = and i32 %where, ${LAST_LANE}
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %source = xor i32 %lane, %distance
  %uniform = call i1 @irad.cuda.shfl.uniform(i32 %mask, i32 %distance)
  br i1 %uniform, label %fast, label %slow
fast:
  %shuffled = call ${real} @irad.cuda.shfl.bfly.${suffix}(i32 %mask, ${real} %cotangent, i32 %distance)
  %landed = call ${real} @irad.cuda.shfl.landed.${suffix}(${real} %shuffled, i32 %source, ${real} %cotangent, i32 %source)
  ret ${real} %landed
slow:
  %sum = call ${real} @irad.cuda.shfl.sources.${suffix}(i32 %mask, ${real} %cotangent, i32 %source)
  ret ${real} %sum
}

define linkonce_odr ${real} @irad.cuda.shfl.adjoint.down.${suffix}(i32 %mask, ${real} %cotangent, i32 %where) convergent nounwind alwaysinline {
entry:
  %distance = and i32 %where, ${LAST_LANE}
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %source = add i32 %lane, %distance
  %uniform = call i1 @irad.cuda.shfl.uniform(i32 %mask, i32 %distance)
  br i1 %uniform, label %fast, label %slow
fast:
  %from = sub i32 %lane, %distance
  %shuffled = call ${real} @irad.cuda.shfl.up.${suffix}(i32 %mask, ${real} %cotangent, i32 %distance)
  %landed = call ${real} @irad.cuda.shfl.landed.${suffix}(${real} %shuffled, i32 %from, ${real} %cotangent, i32 %source)
  ret ${real} %landed
slow:
  %outside = icmp ugt i32 %source, ${LAST_LANE}
  %read = select i1 %outside, i32 %lane, i32 %source
  %sum = call ${real} @irad.cuda.shfl.sources.${suffix}(i32 %mask, ${real} %cotangent, i32 %read)
  ret ${real} %sum
}

define linkonce_odr ${real} @irad.cuda.shfl.adjoint.up.${suffix}(i32 %mask, ${real} %cotangent, i32 %where) convergent nounwind alwaysinline {
entry:
  %distance = and i32 %where, ${LAST_LANE}
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %source = sub i32 %lane, %distance
  %uniform = call i1 @irad.cuda.shfl.uniform(i32 %mask, i32 %distance)
  br i1 %uniform, label %fast, label %slow
fast:
  %from = add i32 %lane, %distance
  %shuffled = call ${real} @irad.cuda.shfl.down.${suffix}(i32 %mask, ${real} %cotangent, i32 %distance)
  %landed = call ${real} @irad.cuda.shfl.landed.${suffix}(${real} %shuffled, i32 %from, ${real} %cotangent, i32 %source)
  ret ${real} %landed
slow:
  %outside = icmp ugt i32 %source, ${LAST_LANE}
  %read = select i1 %outside, i32 %lane, i32 %source
  %sum = call ${real} @irad.cuda.shfl.sources.${suffix}(i32 %mask, ${real} %cotangent, i32 %read)
  ret ${real} %sum
}

; Adds what all threads of a warp that are here together add to one place: one atomic operation for all of them.
define linkonce_odr void @irad.cuda.add_together.${suffix}(ptr %place, ${real} %amount) convergent nounwind {
entry:
  %mask = call i32 @irad.cuda.activemask()
  %full = icmp eq i32 %mask, ${ALL_LANES}
  br i1 %full, label %all, label %each
all:
  %s16 = call ${real} @irad.cuda.shfl.bfly.${suffix}(i32 ${ALL_LANES}, ${real} %amount, i32 16)
  %a16 = fadd ${real} %amount, %s16
  %s8 = call ${real} @irad.cuda.shfl.bfly.${suffix}(i32 ${ALL_LANES}, ${real} %a16, i32 8)
  %a8 = fadd ${real} %a16, %s8
  %s4 = call ${real} @irad.cuda.shfl.bfly.${suffix}(i32 ${ALL_LANES}, ${real} %a8, i32 4)
  %a4 = fadd ${real} %a8, %s4
  %s2 = call ${real} @irad.cuda.shfl.bfly.${suffix}(i32 ${ALL_LANES}, ${real} %a4, i32 2)
  %a2 = fadd ${real} %a4, %s2
  %s1 = call ${real} @irad.cuda.shfl.bfly.${suffix}(i32 ${ALL_LANES}, ${real} %a2, i32 1)
  %a1 = fadd ${real} %a2, %s1
  br label %elect
each:
  %left = phi i32 [ %mask, %entry ], [ %rest, %each ]
  %sum = phi ${real} [ 0.0, %entry ], [ %more, %each ]
  %i = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %theirs = call ${real} @irad.cuda.shfl.idx.${suffix}(i32 %mask, ${real} %amount, i32 %i)
  %more = fadd ${real} %sum, %theirs
  %below = add i32 %left, -1
  %rest = and i32 %left, %below
  %done = icmp eq i32 %rest, 0
  br i1 %done, label %elect, label %each
elect:
  %total = phi ${real} [ %a1, %all ], [ %more, %each ]
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %first = call i32 @llvm.cttz.i32(i32 %mask, i1 false)
  %elected = icmp eq i32 %lane, %first
  br i1 %elected, label %add, label %exit
add:
  %old = atomicrmw fadd ptr %place, ${real} %total monotonic
  br label %exit
exit:
  ret void
}
