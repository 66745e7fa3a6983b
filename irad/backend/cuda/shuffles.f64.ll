; Adjoints of shuffles: the sum of the cotangents of the lanes that read this lane's number.
; Where all lanes of a warp read at the same distance, one shuffle brings the cotangent back.

declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare i32 @irad.cuda.vote.all(i32, i32) convergent nounwind
declare i32 @irad.cuda.shfl.idx.i32(i32, i32, i32) convergent nounwind
declare double @irad.cuda.shfl.idx.f64(i32, double, i32) convergent nounwind
declare double @irad.cuda.shfl.up.f64(i32, double, i32) convergent nounwind
declare double @irad.cuda.shfl.down.f64(i32, double, i32) convergent nounwind
declare double @irad.cuda.shfl.bfly.f64(i32, double, i32) convergent nounwind
declare i32 @llvm.cttz.i32(i32, i1)

; %source: the lane that this one read.
define linkonce_odr double @irad.cuda.shfl.sources.f64(i32 %mask, double %cotangent, i32 %source) convergent nounwind {
entry:
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  br label %each
each:
  %left = phi i32 [ %mask, %entry ], [ %rest, %each ]
  %sum = phi double [ 0.0, %entry ], [ %more, %each ]
  %i = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %theirs = call double @irad.cuda.shfl.idx.f64(i32 %mask, double %cotangent, i32 %i)
  %read = call i32 @irad.cuda.shfl.idx.i32(i32 %mask, i32 %source, i32 %i)
  %mine = icmp eq i32 %read, %lane
  %added = fadd double %sum, %theirs
  %more = select i1 %mine, double %added, double %sum
  %below = add i32 %left, -1
  %rest = and i32 %left, %below
  %done = icmp eq i32 %rest, 0
  br i1 %done, label %exit, label %each
exit:
  ret double %more
}

; Whether all 32 lanes take part, with the same number.
define linkonce_odr i1 @irad.cuda.shfl.uniform.f64(i32 %mask, i32 %where) convergent nounwind alwaysinline {
entry:
  %full = icmp eq i32 %mask, -1
  br i1 %full, label %compare, label %partial
compare:
  %theirs = call i32 @irad.cuda.shfl.idx.i32(i32 -1, i32 %where, i32 0)
  %same = icmp eq i32 %theirs, %where
  %word = zext i1 %same to i32
  %all = call i32 @irad.cuda.vote.all(i32 -1, i32 %word)
  %result = icmp ne i32 %all, 0
  ret i1 %result
partial:
  ret i1 false
}

; %shuffled where it comes from a lane of the warp; and %cotangent where the lane kept its own number.
define linkonce_odr double @irad.cuda.shfl.landed.f64(double %shuffled, i32 %from, double %cotangent, i32 %source) nounwind alwaysinline {
  %inside = icmp ult i32 %from, 32
  %came = select i1 %inside, double %shuffled, double 0.0
  %outside = icmp ugt i32 %source, 31
  %kept = select i1 %outside, double %cotangent, double 0.0
  %result = fadd double %came, %kept
  ret double %result
}

define linkonce_odr double @irad.cuda.shfl.adjoint.idx.f64(i32 %mask, double %cotangent, i32 %where) convergent nounwind {
  %source = and i32 %where, 31
  %result = call double @irad.cuda.shfl.sources.f64(i32 %mask, double %cotangent, i32 %source)
  ret double %result
}

define linkonce_odr double @irad.cuda.shfl.adjoint.bfly.f64(i32 %mask, double %cotangent, i32 %where) convergent nounwind alwaysinline {
entry:
  %distance = and i32 %where, 31
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %source = xor i32 %lane, %distance
  %uniform = call i1 @irad.cuda.shfl.uniform.f64(i32 %mask, i32 %distance)
  br i1 %uniform, label %fast, label %slow
fast:
  %shuffled = call double @irad.cuda.shfl.bfly.f64(i32 %mask, double %cotangent, i32 %distance)
  %landed = call double @irad.cuda.shfl.landed.f64(double %shuffled, i32 %source, double %cotangent, i32 %source)
  ret double %landed
slow:
  %sum = call double @irad.cuda.shfl.sources.f64(i32 %mask, double %cotangent, i32 %source)
  ret double %sum
}

define linkonce_odr double @irad.cuda.shfl.adjoint.down.f64(i32 %mask, double %cotangent, i32 %where) convergent nounwind alwaysinline {
entry:
  %distance = and i32 %where, 31
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %source = add i32 %lane, %distance
  %uniform = call i1 @irad.cuda.shfl.uniform.f64(i32 %mask, i32 %distance)
  br i1 %uniform, label %fast, label %slow
fast:
  %from = sub i32 %lane, %distance
  %shuffled = call double @irad.cuda.shfl.up.f64(i32 %mask, double %cotangent, i32 %distance)
  %landed = call double @irad.cuda.shfl.landed.f64(double %shuffled, i32 %from, double %cotangent, i32 %source)
  ret double %landed
slow:
  %outside = icmp ugt i32 %source, 31
  %read = select i1 %outside, i32 %lane, i32 %source
  %sum = call double @irad.cuda.shfl.sources.f64(i32 %mask, double %cotangent, i32 %read)
  ret double %sum
}

define linkonce_odr double @irad.cuda.shfl.adjoint.up.f64(i32 %mask, double %cotangent, i32 %where) convergent nounwind alwaysinline {
entry:
  %distance = and i32 %where, 31
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %source = sub i32 %lane, %distance
  %uniform = call i1 @irad.cuda.shfl.uniform.f64(i32 %mask, i32 %distance)
  br i1 %uniform, label %fast, label %slow
fast:
  %from = add i32 %lane, %distance
  %shuffled = call double @irad.cuda.shfl.down.f64(i32 %mask, double %cotangent, i32 %distance)
  %landed = call double @irad.cuda.shfl.landed.f64(double %shuffled, i32 %from, double %cotangent, i32 %source)
  ret double %landed
slow:
  %outside = icmp ugt i32 %source, 31
  %read = select i1 %outside, i32 %lane, i32 %source
  %sum = call double @irad.cuda.shfl.sources.f64(i32 %mask, double %cotangent, i32 %read)
  ret double %sum
}
