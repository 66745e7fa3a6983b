; Functions of CUDA's device library that the C library has not, for integers, bits and tests; see libdevice.f64.ll and
; libdevice.py for others.

declare i32 @llvm.abs.i32(i32, i1)
declare i64 @llvm.abs.i64(i64, i1)
declare i32 @llvm.bitreverse.i32(i32)
declare i64 @llvm.bitreverse.i64(i64)
declare i32 @llvm.ctpop.i32(i32)
declare i64 @llvm.ctpop.i64(i64)
declare i32 @llvm.ctlz.i32(i32, i1)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i32 @llvm.cttz.i32(i32, i1)
declare i64 @llvm.cttz.i64(i64, i1)
declare i32 @llvm.smax.i32(i32, i32)
declare i64 @llvm.smax.i64(i64, i64)
declare i32 @llvm.smin.i32(i32, i32)
declare i64 @llvm.smin.i64(i64, i64)
declare i32 @llvm.umax.i32(i32, i32)
declare i64 @llvm.umax.i64(i64, i64)
declare i32 @llvm.umin.i32(i32, i32)
declare i64 @llvm.umin.i64(i64, i64)
declare double @llvm.fabs.f64(double)
declare float @llvm.fabs.f32(float)
declare float @llvm.maxnum.f32(float, float)
declare float @llvm.minnum.f32(float, float)

; --- integers
define linkonce_odr i32 @__nv_abs(i32 %x) nounwind {
  %r = call i32 @llvm.abs.i32(i32 %x, i1 false)
  ret i32 %r
}
define linkonce_odr i64 @__nv_llabs(i64 %x) nounwind {
  %r = call i64 @llvm.abs.i64(i64 %x, i1 false)
  ret i64 %r
}
define linkonce_odr i32 @__nv_brev(i32 %x) nounwind {
  %r = call i32 @llvm.bitreverse.i32(i32 %x)
  ret i32 %r
}
define linkonce_odr i64 @__nv_brevll(i64 %x) nounwind {
  %r = call i64 @llvm.bitreverse.i64(i64 %x)
  ret i64 %r
}
define linkonce_odr i32 @__nv_clz(i32 %x) nounwind {
  %n = call i32 @llvm.ctlz.i32(i32 %x, i1 false)
  ret i32 %n
}
define linkonce_odr i32 @__nv_clzll(i64 %x) nounwind {
  %n = call i64 @llvm.ctlz.i64(i64 %x, i1 false)
  %r = trunc i64 %n to i32
  ret i32 %r
}
define linkonce_odr i32 @__nv_ffs(i32 %x) nounwind {
  %n = call i32 @llvm.cttz.i32(i32 %x, i1 false)
  %place = add i32 %n, 1
  %none = icmp eq i32 %x, 0
  %r = select i1 %none, i32 0, i32 %place
  ret i32 %r
}
define linkonce_odr i32 @__nv_ffsll(i64 %x) nounwind {
  %n = call i64 @llvm.cttz.i64(i64 %x, i1 false)
  %n.32 = trunc i64 %n to i32
  %place = add i32 %n.32, 1
  %none = icmp eq i64 %x, 0
  %r = select i1 %none, i32 0, i32 %place
  ret i32 %r
}
define linkonce_odr i32 @__nv_popc(i32 %x) nounwind {
  %n = call i32 @llvm.ctpop.i32(i32 %x)
  ret i32 %n
}
define linkonce_odr i32 @__nv_popcll(i64 %x) nounwind {
  %n = call i64 @llvm.ctpop.i64(i64 %x)
  %r = trunc i64 %n to i32
  ret i32 %r
}
define linkonce_odr i32 @__nv_max(i32 %x, i32 %y) nounwind {
  %r = call i32 @llvm.smax.i32(i32 %x, i32 %y)
  ret i32 %r
}
define linkonce_odr i32 @__nv_min(i32 %x, i32 %y) nounwind {
  %r = call i32 @llvm.smin.i32(i32 %x, i32 %y)
  ret i32 %r
}
define linkonce_odr i32 @__nv_umax(i32 %x, i32 %y) nounwind {
  %r = call i32 @llvm.umax.i32(i32 %x, i32 %y)
  ret i32 %r
}
define linkonce_odr i32 @__nv_umin(i32 %x, i32 %y) nounwind {
  %r = call i32 @llvm.umin.i32(i32 %x, i32 %y)
  ret i32 %r
}
define linkonce_odr i64 @__nv_llmax(i64 %x, i64 %y) nounwind {
  %r = call i64 @llvm.smax.i64(i64 %x, i64 %y)
  ret i64 %r
}
define linkonce_odr i64 @__nv_llmin(i64 %x, i64 %y) nounwind {
  %r = call i64 @llvm.smin.i64(i64 %x, i64 %y)
  ret i64 %r
}
define linkonce_odr i64 @__nv_ullmax(i64 %x, i64 %y) nounwind {
  %r = call i64 @llvm.umax.i64(i64 %x, i64 %y)
  ret i64 %r
}
define linkonce_odr i64 @__nv_ullmin(i64 %x, i64 %y) nounwind {
  %r = call i64 @llvm.umin.i64(i64 %x, i64 %y)
  ret i64 %r
}
define linkonce_odr i32 @__nv_mulhi(i32 %x, i32 %y) nounwind {
  %a = sext i32 %x to i64
  %b = sext i32 %y to i64
  %p = mul i64 %a, %b
  %h = lshr i64 %p, 32
  %r = trunc i64 %h to i32
  ret i32 %r
}
define linkonce_odr i32 @__nv_umulhi(i32 %x, i32 %y) nounwind {
  %a = zext i32 %x to i64
  %b = zext i32 %y to i64
  %p = mul i64 %a, %b
  %h = lshr i64 %p, 32
  %r = trunc i64 %h to i32
  ret i32 %r
}
define linkonce_odr i64 @__nv_mul64hi(i64 %x, i64 %y) nounwind {
  %a = sext i64 %x to i128
  %b = sext i64 %y to i128
  %p = mul i128 %a, %b
  %h = lshr i128 %p, 64
  %r = trunc i128 %h to i64
  ret i64 %r
}
define linkonce_odr i64 @__nv_umul64hi(i64 %x, i64 %y) nounwind {
  %a = zext i64 %x to i128
  %b = zext i64 %y to i128
  %p = mul i128 %a, %b
  %h = lshr i128 %p, 64
  %r = trunc i128 %h to i64
  ret i64 %r
}
; Products of the low 24 bits.
define linkonce_odr i32 @__nv_mul24(i32 %x, i32 %y) nounwind {
  %a.up = shl i32 %x, 8
  %a = ashr i32 %a.up, 8
  %b.up = shl i32 %y, 8
  %b = ashr i32 %b.up, 8
  %r = mul i32 %a, %b
  ret i32 %r
}
define linkonce_odr i32 @__nv_umul24(i32 %x, i32 %y) nounwind {
  %a = and i32 %x, 16777215
  %b = and i32 %y, 16777215
  %r = mul i32 %a, %b
  ret i32 %r
}
; |x - y| + z, of numbers with and without sign.
define linkonce_odr i32 @__nv_sad(i32 %x, i32 %y, i32 %z) nounwind {
  %more = icmp sgt i32 %x, %y
  %up = sub i32 %x, %y
  %down = sub i32 %y, %x
  %d = select i1 %more, i32 %up, i32 %down
  %r = add i32 %d, %z
  ret i32 %r
}
define linkonce_odr i32 @__nv_usad(i32 %x, i32 %y, i32 %z) nounwind {
  %more = icmp ugt i32 %x, %y
  %up = sub i32 %x, %y
  %down = sub i32 %y, %x
  %d = select i1 %more, i32 %up, i32 %down
  %r = add i32 %d, %z
  ret i32 %r
}
; Means of two integers, rounded down or up.
define linkonce_odr i32 @__nv_hadd(i32 %x, i32 %y) nounwind {
  %a = sext i32 %x to i64
  %b = sext i32 %y to i64
  %sum = add i64 %a, %b
  %even = add i64 %sum, 0
  %half = ashr i64 %even, 1
  %r = trunc i64 %half to i32
  ret i32 %r
}
define linkonce_odr i32 @__nv_rhadd(i32 %x, i32 %y) nounwind {
  %a = sext i32 %x to i64
  %b = sext i32 %y to i64
  %sum = add i64 %a, %b
  %even = add i64 %sum, 1
  %half = ashr i64 %even, 1
  %r = trunc i64 %half to i32
  ret i32 %r
}
define linkonce_odr i32 @__nv_uhadd(i32 %x, i32 %y) nounwind {
  %a = zext i32 %x to i64
  %b = zext i32 %y to i64
  %sum = add i64 %a, %b
  %even = add i64 %sum, 0
  %half = lshr i64 %even, 1
  %r = trunc i64 %half to i32
  ret i32 %r
}
define linkonce_odr i32 @__nv_urhadd(i32 %x, i32 %y) nounwind {
  %a = zext i32 %x to i64
  %b = zext i32 %y to i64
  %sum = add i64 %a, %b
  %even = add i64 %sum, 1
  %half = lshr i64 %even, 1
  %r = trunc i64 %half to i32
  ret i32 %r
}
; Four of the eight bytes of y and x, chosen by three bits for each.
define linkonce_odr i32 @__nv_byte_perm(i32 %x, i32 %y, i32 %s) nounwind {
  %low = zext i32 %x to i64
  %high = zext i32 %y to i64
  %up = shl i64 %high, 32
  %bytes = or i64 %up, %low
  %s0 = lshr i32 %s, 0
  %n0 = and i32 %s0, 7
  %w0 = mul i32 %n0, 8
  %w0.64 = zext i32 %w0 to i64
  %m0 = lshr i64 %bytes, %w0.64
  %c0 = and i64 %m0, 255
  %d0 = shl i64 %c0, 0
  %s1 = lshr i32 %s, 4
  %n1 = and i32 %s1, 7
  %w1 = mul i32 %n1, 8
  %w1.64 = zext i32 %w1 to i64
  %m1 = lshr i64 %bytes, %w1.64
  %c1 = and i64 %m1, 255
  %d1 = shl i64 %c1, 8
  %s2 = lshr i32 %s, 8
  %n2 = and i32 %s2, 7
  %w2 = mul i32 %n2, 8
  %w2.64 = zext i32 %w2 to i64
  %m2 = lshr i64 %bytes, %w2.64
  %c2 = and i64 %m2, 255
  %d2 = shl i64 %c2, 16
  %s3 = lshr i32 %s, 12
  %n3 = and i32 %s3, 7
  %w3 = mul i32 %n3, 8
  %w3.64 = zext i32 %w3 to i64
  %m3 = lshr i64 %bytes, %w3.64
  %c3 = and i64 %m3, 255
  %d3 = shl i64 %c3, 24
  %r01 = or i64 %d0, %d1
  %r23 = or i64 %d2, %d3
  %r0123 = or i64 %r01, %r23
  %r = trunc i64 %r0123 to i32
  ret i32 %r
}

; --- bits of numbers
define linkonce_odr i64 @__nv_double_as_longlong(double %x) nounwind {
  %r = bitcast double %x to i64
  ret i64 %r
}
define linkonce_odr double @__nv_longlong_as_double(i64 %x) nounwind {
  %r = bitcast i64 %x to double
  ret double %r
}
define linkonce_odr i32 @__nv_float_as_int(float %x) nounwind {
  %r = bitcast float %x to i32
  ret i32 %r
}
define linkonce_odr float @__nv_int_as_float(i32 %x) nounwind {
  %r = bitcast i32 %x to float
  ret float %r
}
define linkonce_odr i32 @__nv_float_as_uint(float %x) nounwind {
  %r = bitcast float %x to i32
  ret i32 %r
}
define linkonce_odr float @__nv_uint_as_float(i32 %x) nounwind {
  %r = bitcast i32 %x to float
  ret float %r
}
define linkonce_odr i32 @__nv_double2loint(double %x) nounwind {
  %b = bitcast double %x to i64
  %r = trunc i64 %b to i32
  ret i32 %r
}
define linkonce_odr i32 @__nv_double2hiint(double %x) nounwind {
  %b = bitcast double %x to i64
  %h = lshr i64 %b, 32
  %r = trunc i64 %h to i32
  ret i32 %r
}
define linkonce_odr double @__nv_hiloint2double(i32 %x, i32 %y) nounwind {
  %high = zext i32 %x to i64
  %low = zext i32 %y to i64
  %up = shl i64 %high, 32
  %b = or i64 %up, %low
  %r = bitcast i64 %b to double
  ret double %r
}
define linkonce_odr i16 @__nv_float2half_rn(float %x) nounwind {
  %h = fptrunc float %x to half
  %r = bitcast half %h to i16
  ret i16 %r
}
define linkonce_odr float @__nv_half2float(i16 %x) nounwind {
  %h = bitcast i16 %x to half
  %r = fpext half %h to float
  ret float %r
}

; --- what kind of number it is
define linkonce_odr i32 @__nv_signbitd(double %x) nounwind {
  %b = bitcast double %x to i64
  %is = icmp slt i64 %b, 0
  %r = zext i1 %is to i32
  ret i32 %r
}
define linkonce_odr i32 @__nv_isinfd(double %x) nounwind {
  %a = call double @llvm.fabs.f64(double %x)
  %is = fcmp oeq double %a, 0x7FF0000000000000
  %r = zext i1 %is to i32
  ret i32 %r
}
define linkonce_odr i32 @__nv_isnand(double %x) nounwind {
  %is = fcmp uno double %x, %x
  %r = zext i1 %is to i32
  ret i32 %r
}
define linkonce_odr i32 @__nv_isfinited(double %x) nounwind {
  %a = call double @llvm.fabs.f64(double %x)
  %is = fcmp olt double %a, 0x7FF0000000000000
  %r = zext i1 %is to i32
  ret i32 %r
}
define linkonce_odr double @__nv_nan(ptr %tag) nounwind {
  ret double 0x7FF8000000000000
}
define linkonce_odr i32 @__nv_signbitf(float %x) nounwind {
  %b = bitcast float %x to i32
  %is = icmp slt i32 %b, 0
  %r = zext i1 %is to i32
  ret i32 %r
}
define linkonce_odr i32 @__nv_isinff(float %x) nounwind {
  %a = call float @llvm.fabs.f32(float %x)
  %is = fcmp oeq float %a, 0x7FF0000000000000
  %r = zext i1 %is to i32
  ret i32 %r
}
define linkonce_odr i32 @__nv_isnanf(float %x) nounwind {
  %is = fcmp uno float %x, %x
  %r = zext i1 %is to i32
  ret i32 %r
}
define linkonce_odr i32 @__nv_finitef(float %x) nounwind {
  %a = call float @llvm.fabs.f32(float %x)
  %is = fcmp olt float %a, 0x7FF0000000000000
  %r = zext i1 %is to i32
  ret i32 %r
}
define linkonce_odr float @__nv_nanf(ptr %tag) nounwind {
  ret float 0x7FF8000000000000
}
define linkonce_odr float @__nv_saturatef(float %x) nounwind {
  %low = call float @llvm.maxnum.f32(float %x, float 0.0)
  %r = call float @llvm.minnum.f32(float %low, float 1.0)
  ret float %r
}
