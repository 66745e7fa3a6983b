; What operations of the kernel dialect are on NVIDIA's GPUs. Linked into a kernel that uses them, and inlined there.

define i32 @irad.cuda.barrier.popc(i32 %predicate) #0 {
  %found = call i32 @llvm.nvvm.barrier0.popc(i32 %predicate)
  ret i32 %found
}

define i32 @irad.cuda.barrier.and(i32 %predicate) #0 {
  %found = call i32 @llvm.nvvm.barrier0.and(i32 %predicate)
  ret i32 %found
}

define i32 @irad.cuda.barrier.or(i32 %predicate) #0 {
  %found = call i32 @llvm.nvvm.barrier0.or(i32 %predicate)
  ret i32 %found
}

; Not aligned: the threads of a warp may be in different places.
define i32 @irad.cuda.barrier.anywhere(i32 %predicate) #0 {
  %bit = icmp ne i32 %predicate, 0
  %all = call i1 @llvm.nvvm.barrier.cta.red.and.all(i32 0, i1 %bit)
  %found = zext i1 %all to i32
  ret i32 %found
}

define i32 @irad.cuda.vote.all(i32 %mask, i32 %predicate) #0 {
  %bit = icmp ne i32 %predicate, 0
  %vote = call i1 @llvm.nvvm.vote.all.sync(i32 %mask, i1 %bit)
  %found = zext i1 %vote to i32
  ret i32 %found
}

define i32 @irad.cuda.vote.any(i32 %mask, i32 %predicate) #0 {
  %bit = icmp ne i32 %predicate, 0
  %vote = call i1 @llvm.nvvm.vote.any.sync(i32 %mask, i1 %bit)
  %found = zext i1 %vote to i32
  ret i32 %found
}

define i32 @irad.cuda.vote.uni(i32 %mask, i32 %predicate) #0 {
  %bit = icmp ne i32 %predicate, 0
  %vote = call i1 @llvm.nvvm.vote.uni.sync(i32 %mask, i1 %bit)
  %found = zext i1 %vote to i32
  ret i32 %found
}

define i32 @irad.cuda.vote.ballot(i32 %mask, i32 %predicate) #0 {
  %bit = icmp ne i32 %predicate, 0
  %found = call i32 @llvm.nvvm.vote.ballot.sync(i32 %mask, i1 %bit)
  ret i32 %found
}

define i32 @irad.cuda.match.any.i32(i32 %mask, i32 %value) #0 {
  %found = call i32 @llvm.nvvm.match.any.sync.i32(i32 %mask, i32 %value)
  ret i32 %found
}

define i32 @irad.cuda.match.any.i64(i32 %mask, i64 %value) #0 {
  %found = call i32 @llvm.nvvm.match.any.sync.i64(i32 %mask, i64 %value)
  ret i32 %found
}

define i32 @irad.cuda.activemask() #0 {
  %found = call i32 asm sideeffect "activemask.b32 $0;", "=r"() #0
  ret i32 %found
}

define i32 @irad.cuda.lanemask.lt() #1 {
  %found = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.lt()
  ret i32 %found
}

define i32 @irad.cuda.dynamic_shared_size() #1 {
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

attributes #0 = { alwaysinline convergent nounwind }
attributes #1 = { alwaysinline nounwind }
