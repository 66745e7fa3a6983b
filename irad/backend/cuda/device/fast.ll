; Under fastmath: what libdevice decides by the compiler's flags, which are one setting for the whole process in LLVM.

define float @__nv_sqrtf(float %x) alwaysinline nounwind {
  %root = call float @llvm.nvvm.sqrt.approx.ftz.f(float %x)
  ret float %root
}

declare float @llvm.nvvm.sqrt.approx.ftz.f(float)
