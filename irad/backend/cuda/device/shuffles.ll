; Shuffles of one mode: MODE is its name, CLAMP the last lane that the source may be counted to (for `up` the first).
; A number of 64 bits goes in two halves.

define i32 @irad.cuda.shfl.MODE.i32(i32 %mask, i32 %value, i32 %lane) #0 {
  %found = call i32 @llvm.nvvm.shfl.sync.MODE.i32(i32 %mask, i32 %value, i32 %lane, i32 CLAMP)
  ret i32 %found
}

define float @irad.cuda.shfl.MODE.f32(i32 %mask, float %value, i32 %lane) #0 {
  %found = call float @llvm.nvvm.shfl.sync.MODE.f32(i32 %mask, float %value, i32 %lane, i32 CLAMP)
  ret float %found
}

define i64 @irad.cuda.shfl.MODE.i64(i32 %mask, i64 %value, i32 %lane) #0 {
  %low = trunc i64 %value to i32
  %rest = lshr i64 %value, 32
  %high = trunc i64 %rest to i32
  %low.found = call i32 @llvm.nvvm.shfl.sync.MODE.i32(i32 %mask, i32 %low, i32 %lane, i32 CLAMP)
  %high.found = call i32 @llvm.nvvm.shfl.sync.MODE.i32(i32 %mask, i32 %high, i32 %lane, i32 CLAMP)
  %low.wide = zext i32 %low.found to i64
  %high.wide = zext i32 %high.found to i64
  %shifted = shl i64 %high.wide, 32
  %found = or i64 %shifted, %low.wide
  ret i64 %found
}

define double @irad.cuda.shfl.MODE.f64(i32 %mask, double %value, i32 %lane) #0 {
  %bits = bitcast double %value to i64
  %bits.found = call i64 @irad.cuda.shfl.MODE.i64(i32 %mask, i64 %bits, i32 %lane)
  %found = bitcast i64 %bits.found to double
  ret double %found
}

declare i32 @llvm.nvvm.shfl.sync.MODE.i32(i32, i32, i32, i32)
declare float @llvm.nvvm.shfl.sync.MODE.f32(i32, float, i32, i32)

attributes #0 = { alwaysinline convergent nounwind }
