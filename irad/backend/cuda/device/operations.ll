; What operations of the kernel dialect are on NVIDIA's GPUs. Linked into a kernel that uses them, and inlined there; they
; use no memory.

define i32 @irad.cuda.barrier.popc(i32 %predicate) alwaysinline convergent nounwind {
  %found = call i32 @llvm.nvvm.barrier0.popc(i32 %predicate)
  ret i32 %found
}

define i32 @irad.cuda.barrier.and(i32 %predicate) alwaysinline convergent nounwind {
  %found = call i32 @llvm.nvvm.barrier0.and(i32 %predicate)
  ret i32 %found
}

define i32 @irad.cuda.barrier.or(i32 %predicate) alwaysinline convergent nounwind {
  %found = call i32 @llvm.nvvm.barrier0.or(i32 %predicate)
  ret i32 %found
}

; Not aligned: the threads of a warp may be in different places.
define i32 @irad.cuda.barrier.anywhere(i32 %predicate) alwaysinline convergent nounwind {
  %bit = icmp ne i32 %predicate, 0
  %all = call i1 @llvm.nvvm.barrier.cta.red.and.all(i32 0, i1 %bit)
  %found = zext i1 %all to i32
  ret i32 %found
}

define i32 @irad.cuda.vote.all(i32 %mask, i32 %predicate) alwaysinline convergent nounwind {
  %bit = icmp ne i32 %predicate, 0
  %vote = call i1 @llvm.nvvm.vote.all.sync(i32 %mask, i1 %bit)
  %found = zext i1 %vote to i32
  ret i32 %found
}

define i32 @irad.cuda.vote.any(i32 %mask, i32 %predicate) alwaysinline convergent nounwind {
  %bit = icmp ne i32 %predicate, 0
  %vote = call i1 @llvm.nvvm.vote.any.sync(i32 %mask, i1 %bit)
  %found = zext i1 %vote to i32
  ret i32 %found
}

define i32 @irad.cuda.vote.uni(i32 %mask, i32 %predicate) alwaysinline convergent nounwind {
  %bit = icmp ne i32 %predicate, 0
  %vote = call i1 @llvm.nvvm.vote.uni.sync(i32 %mask, i1 %bit)
  %found = zext i1 %vote to i32
  ret i32 %found
}

define i32 @irad.cuda.vote.ballot(i32 %mask, i32 %predicate) alwaysinline convergent nounwind {
  %bit = icmp ne i32 %predicate, 0
  %found = call i32 @llvm.nvvm.vote.ballot.sync(i32 %mask, i1 %bit)
  ret i32 %found
}

define i32 @irad.cuda.match.any.i32(i32 %mask, i32 %value) alwaysinline convergent nounwind {
  %found = call i32 @llvm.nvvm.match.any.sync.i32(i32 %mask, i32 %value)
  ret i32 %found
}

define i32 @irad.cuda.match.any.i64(i32 %mask, i64 %value) alwaysinline convergent nounwind {
  %found = call i32 @llvm.nvvm.match.any.sync.i64(i32 %mask, i64 %value)
  ret i32 %found
}

define i32 @irad.cuda.activemask() alwaysinline convergent nounwind {
  %found = call i32 asm sideeffect "activemask.b32 $0;", "=r"() alwaysinline convergent nounwind
  ret i32 %found
}

define i32 @irad.cuda.lanemask.lt() alwaysinline nounwind {
  %found = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.lt()
  ret i32 %found
}

define i32 @irad.cuda.dynamic_shared_size() alwaysinline nounwind {
  %found = call i32 asm "mov.u32 $0, %dynamic_smem_size;", "=r"()
  ret i32 %found
}

declare i32 @llvm.nvvm.barrier0.popc(i32)
declare i32 @llvm.nvvm.barrier0.and(i32)
declare i32 @llvm.nvvm.barrier0.or(i32)
declare i1 @llvm.nvvm.barrier.cta.red.and.all(i32, i1)
declare i1 @llvm.nvvm.vote.all.sync(i32, i1)
declare i1 @llvm.nvvm.vote.any.sync(i32, i1)
declare i1 @llvm.nvvm.vote.uni.sync(i32, i1)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
declare i32 @llvm.nvvm.match.any.sync.i32(i32, i32)
declare i32 @llvm.nvvm.match.any.sync.i64(i32, i64)
declare i32 @llvm.nvvm.read.ptx.sreg.lanemask.lt()

; Shuffles, for each mode: ${clamp} is the last lane that the source may be counted to, for `up` the first. A number of 64
; bits goes in two halves.

define i32 @irad.cuda.shfl.${mode}.i32(i32 %mask, i32 %value, i32 %lane) alwaysinline convergent nounwind {
  %found = call i32 @llvm.nvvm.shfl.sync.${mode}.i32(i32 %mask, i32 %value, i32 %lane, i32 ${clamp})
  ret i32 %found
}

define float @irad.cuda.shfl.${mode}.f32(i32 %mask, float %value, i32 %lane) alwaysinline convergent nounwind {
  %found = call float @llvm.nvvm.shfl.sync.${mode}.f32(i32 %mask, float %value, i32 %lane, i32 ${clamp})
  ret float %found
}

define i64 @irad.cuda.shfl.${mode}.i64(i32 %mask, i64 %value, i32 %lane) alwaysinline convergent nounwind {
  %low = trunc i64 %value to i32
  %rest = lshr i64 %value, 32
  %high = trunc i64 %rest to i32
  %low.found = call i32 @llvm.nvvm.shfl.sync.${mode}.i32(i32 %mask, i32 %low, i32 %lane, i32 ${clamp})
  %high.found = call i32 @llvm.nvvm.shfl.sync.${mode}.i32(i32 %mask, i32 %high, i32 %lane, i32 ${clamp})
  %low.wide = zext i32 %low.found to i64
  %high.wide = zext i32 %high.found to i64
  %shifted = shl i64 %high.wide, 32
  %found = or i64 %shifted, %low.wide
  ret i64 %found
}

define double @irad.cuda.shfl.${mode}.f64(i32 %mask, double %value, i32 %lane) alwaysinline convergent nounwind {
  %bits = bitcast double %value to i64
  %bits.found = call i64 @irad.cuda.shfl.${mode}.i64(i32 %mask, i64 %bits, i32 %lane)
  %found = bitcast i64 %bits.found to double
  ret double %found
}

declare i32 @llvm.nvvm.shfl.sync.${mode}.i32(i32, i32, i32, i32)
declare float @llvm.nvvm.shfl.sync.${mode}.f32(i32, float, i32, i32)
