; Adds what all threads of a warp that are here together add to one place: one atomic operation for all of them.

declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare i32 @irad.cuda.activemask() convergent nounwind
declare double @irad.cuda.shfl.idx.f64(i32, double, i32) convergent nounwind
declare double @irad.cuda.shfl.bfly.f64(i32, double, i32) convergent nounwind
declare i32 @llvm.cttz.i32(i32, i1)

define linkonce_odr void @irad.cuda.add_together.f64(ptr %place, double %amount) convergent nounwind {
entry:
  %mask = call i32 @irad.cuda.activemask()
  %full = icmp eq i32 %mask, -1
  br i1 %full, label %all, label %each
all:
  %s16 = call double @irad.cuda.shfl.bfly.f64(i32 -1, double %amount, i32 16)
  %a16 = fadd double %amount, %s16
  %s8 = call double @irad.cuda.shfl.bfly.f64(i32 -1, double %a16, i32 8)
  %a8 = fadd double %a16, %s8
  %s4 = call double @irad.cuda.shfl.bfly.f64(i32 -1, double %a8, i32 4)
  %a4 = fadd double %a8, %s4
  %s2 = call double @irad.cuda.shfl.bfly.f64(i32 -1, double %a4, i32 2)
  %a2 = fadd double %a4, %s2
  %s1 = call double @irad.cuda.shfl.bfly.f64(i32 -1, double %a2, i32 1)
  %a1 = fadd double %a2, %s1
  br label %elect
each:
  %left = phi i32 [ %mask, %entry ], [ %rest, %each ]
  %sum = phi double [ 0.0, %entry ], [ %more, %each ]
  %i = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %theirs = call double @irad.cuda.shfl.idx.f64(i32 %mask, double %amount, i32 %i)
  %more = fadd double %sum, %theirs
  %below = add i32 %left, -1
  %rest = and i32 %left, %below
  %done = icmp eq i32 %rest, 0
  br i1 %done, label %elect, label %each
elect:
  %total = phi double [ %a1, %all ], [ %more, %each ]
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %first = call i32 @llvm.cttz.i32(i32 %mask, i1 false)
  %elected = icmp eq i32 %lane, %first
  br i1 %elected, label %add, label %exit
add:
  %old = atomicrmw fadd ptr %place, double %total monotonic
  br label %exit
exit:
  ret void
}
