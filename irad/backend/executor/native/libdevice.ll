; Functions of CUDA's device library that the C library has not; libdevice.py maps the others, and makes those that differ
; in names and types only. They use no memory but what callers hand over.
;
; Mathematics is in double precision; in single precision it is these functions, rounded.

declare ${int} @llvm.abs.${int}(${int}, i1)
declare ${int} @llvm.bitreverse.${int}(${int})
declare ${int} @llvm.ctpop.${int}(${int})
declare ${int} @llvm.ctlz.${int}(${int}, i1)
declare ${int} @llvm.cttz.${int}(${int}, i1)
declare ${int} @llvm.smax.${int}(${int}, ${int})
declare ${int} @llvm.smin.${int}(${int}, ${int})
declare ${int} @llvm.umax.${int}(${int}, ${int})
declare ${int} @llvm.umin.${int}(${int}, ${int})
declare double @llvm.fabs.f64(double)
declare float @llvm.fabs.f32(float)
declare float @llvm.maxnum.f32(float, float)
declare float @llvm.minnum.f32(float, float)
declare double @llvm.sqrt.f64(double)
declare double @llvm.rint.f64(double)
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.copysign.f64(double, double)
declare double @llvm.exp.f64(double)
declare double @llvm.log.f64(double)
declare double @sin(double)
declare double @cos(double)
declare double @cbrt(double)
declare double @erf(double)
declare double @erfc(double)

; --- integers, those of 32 and 64 bits alike
define linkonce_odr ${int} @__nv_${ll}abs(${int} %x) nounwind {
  %r = call ${int} @llvm.abs.${int}(${int} %x, i1 false)
  ret ${int} %r
}
define linkonce_odr ${int} @__nv_brev${ll}(${int} %x) nounwind {
  %r = call ${int} @llvm.bitreverse.${int}(${int} %x)
  ret ${int} %r
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
define linkonce_odr ${int} @__nv_${ll}max(${int} %x, ${int} %y) nounwind {
  %r = call ${int} @llvm.smax.${int}(${int} %x, ${int} %y)
  ret ${int} %r
}
define linkonce_odr ${int} @__nv_${ll}min(${int} %x, ${int} %y) nounwind {
  %r = call ${int} @llvm.smin.${int}(${int} %x, ${int} %y)
  ret ${int} %r
}
define linkonce_odr ${int} @__nv_u${ll}max(${int} %x, ${int} %y) nounwind {
  %r = call ${int} @llvm.umax.${int}(${int} %x, ${int} %y)
  ret ${int} %r
}
define linkonce_odr ${int} @__nv_u${ll}min(${int} %x, ${int} %y) nounwind {
  %r = call ${int} @llvm.umin.${int}(${int} %x, ${int} %y)
  ret ${int} %r
}
define linkonce_odr ${int} @__nv_mul${64}hi(${int} %x, ${int} %y) nounwind {
  %a = sext ${int} %x to ${wide}
  %b = sext ${int} %y to ${wide}
  %p = mul ${wide} %a, %b
  %h = lshr ${wide} %p, ${bits}
  %r = trunc ${wide} %h to ${int}
  ret ${int} %r
}
define linkonce_odr ${int} @__nv_umul${64}hi(${int} %x, ${int} %y) nounwind {
  %a = zext ${int} %x to ${wide}
  %b = zext ${int} %y to ${wide}
  %p = mul ${wide} %a, %b
  %h = lshr ${wide} %p, ${bits}
  %r = trunc ${wide} %h to ${int}
  ret ${int} %r
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

; --- mathematics

define linkonce_odr double @__nv_rsqrt(double %x) nounwind {
  %root = call double @llvm.sqrt.f64(double %x)
  %r = fdiv double 1.0, %root
  ret double %r
}

define linkonce_odr double @__nv_rcbrt(double %x) nounwind {
  %root = call double @cbrt(double %x)
  %r = fdiv double 1.0, %root
  ret double %r
}

; The remainder of x by 2, between -1 and 1.
define internal double @turn(double %x) nounwind alwaysinline {
  %half = fmul double %x, 0.5
  %whole = call double @llvm.rint.f64(double %half)
  %double = fmul double %whole, 2.0
  %r = fsub double %x, %double
  ret double %r
}

; sin(pi x): sin(pi (1 - x)) beyond 1/2, so that it is zero at every integer.
define linkonce_odr double @__nv_sinpi(double %x) nounwind {
  %t = call double @turn(double %x)
  %size = call double @llvm.fabs.f64(double %t)
  %far = fcmp ogt double %size, 0.5
  %one = call double @llvm.copysign.f64(double 1.0, double %t)
  %mirrored = fsub double %one, %t
  %near = select i1 %far, double %mirrored, double %t
  %angle = fmul double %near, 0x400921FB54442D18
  %r = call double @sin(double %angle)
  ret double %r
}

; cos(pi x): sin(pi (1/2 - x)) beyond 1/4, so that it is zero half way between integers.
define linkonce_odr double @__nv_cospi(double %x) nounwind {
  %t = call double @turn(double %x)
  %size = call double @llvm.fabs.f64(double %t)
  %far = fcmp ogt double %size, 0.25
  br i1 %far, label %as.sine, label %as.cosine
as.sine:
  %rest = fsub double 0.5, %size
  %sine.angle = fmul double %rest, 0x400921FB54442D18
  %sine = call double @sin(double %sine.angle)
  ret double %sine
as.cosine:
  %angle = fmul double %size, 0x400921FB54442D18
  %cosine = call double @cos(double %angle)
  ret double %cosine
}

; x to a whole power, by squaring.
define linkonce_odr double @__nv_powi(double %x, i32 %n) nounwind {
entry:
  %negative = icmp slt i32 %n, 0
  %minus = sub i32 0, %n
  %times = select i1 %negative, i32 %minus, i32 %n
  br label %each
each:
  %left = phi i32 [ %times, %entry ], [ %left.next, %each ]
  %square = phi double [ %x, %entry ], [ %square.next, %each ]
  %product = phi double [ 1.0, %entry ], [ %product.next, %each ]
  %odd = trunc i32 %left to i1
  %more = fmul double %product, %square
  %product.next = select i1 %odd, double %more, double %product
  %square.next = fmul double %square, %square
  %left.next = lshr i32 %left, 1
  %done = icmp eq i32 %left.next, 0
  br i1 %done, label %end, label %each
end:
  %inverse = fdiv double 1.0, %product.next
  %r = select i1 %negative, double %inverse, double %product.next
  ret double %r
}

; A step of Halley's method from %z, where a function with the slope 2/sqrt(pi) exp(-z^2) is too large by %excess.
define internal double @halley(double %z, double %excess) nounwind alwaysinline {
  %square = fmul double %z, %z
  %minus = fneg double %square
  %bell = call double @llvm.exp.f64(double %minus)
  %slope = fmul double %bell, 0x3FF20DD750429B6D
  %u = fdiv double %excess, %slope
  %zu = fmul double %z, %u
  %bend = fadd double %zu, 1.0
  %step = fdiv double %u, %bend
  %r = fsub double %z, %step
  ret double %r
}

; erfinv for |x| <= 1/2: three terms of its series, then two steps.
define internal double @erfinv.middle(double %x) nounwind {
  %s = fmul double %x, %x
  %c4 = fmul double %s, 0x3FC26C5ADE6D5246
  %c2 = fadd double %c4, 0x3FD0C152382D7365
  %c2s = fmul double %c2, %s
  %c0 = fadd double %c2s, 1.0
  %lead = fmul double %x, 0x3FEC5BF891B4EF6A
  %z0 = fmul double %lead, %c0
  %f0 = call double @erf(double %z0)
  %e0 = fsub double %f0, %x
  %z1 = call double @halley(double %z0, double %e0)
  %f1 = call double @erf(double %z1)
  %e1 = fsub double %f1, %x
  %z2 = call double @halley(double %z1, double %e1)
  ret double %z2
}

; erfcinv for 0 <= y <= 1/2: Hastings' formula for the tail of the normal distribution (Abramowitz and Stegun, 26.2.23,
; wrong by at most 4.5e-4), then two steps.
define internal double @erfcinv.tail(double %y) nounwind {
entry:
  %p = fmul double %y, 0.5
  %log = call double @llvm.log.f64(double %p)
  %twice = fmul double %log, -2.0
  %t = call double @llvm.sqrt.f64(double %twice)
  %n2 = fmul double %t, 0.010328
  %n1 = fadd double %n2, 0.802853
  %n1t = fmul double %n1, %t
  %n = fadd double %n1t, 2.515517
  %d3 = fmul double %t, 0.001308
  %d2 = fadd double %d3, 0.189269
  %d2t = fmul double %d2, %t
  %d1 = fadd double %d2t, 1.432788
  %d1t = fmul double %d1, %t
  %d = fadd double %d1t, 1.0
  %q = fdiv double %n, %d
  %quantile = fsub double %t, %q
  %z0 = fmul double %quantile, 0x3FE6A09E667F3BCD
  %zero = fcmp oeq double %y, 0.0
  br i1 %zero, label %infinite, label %finite
infinite:
  ret double 0x7FF0000000000000
finite:
  %f0 = call double @erfc(double %z0)
  %e0 = fsub double %y, %f0
  %z1 = call double @halley(double %z0, double %e0)
  %f1 = call double @erfc(double %z1)
  %e1 = fsub double %y, %f1
  %z2 = call double @halley(double %z1, double %e1)
  ret double %z2
}

define linkonce_odr double @__nv_erfinv(double %x) nounwind {
  %size = call double @llvm.fabs.f64(double %x)
  %far = fcmp ogt double %size, 0.5
  br i1 %far, label %tail, label %middle
middle:
  %z = call double @erfinv.middle(double %x)
  ret double %z
tail:
  %rest = fsub double 1.0, %size
  %w = call double @erfcinv.tail(double %rest)
  %r = call double @llvm.copysign.f64(double %w, double %x)
  ret double %r
}

define linkonce_odr double @__nv_erfcinv(double %y) nounwind {
  %low = fcmp olt double %y, 0.5
  br i1 %low, label %tail, label %not.low
tail:
  %w = call double @erfcinv.tail(double %y)
  ret double %w
not.low:
  %high = fcmp ogt double %y, 1.5
  br i1 %high, label %other.tail, label %middle
other.tail:
  %rest = fsub double 2.0, %y
  %v = call double @erfcinv.tail(double %rest)
  %minus = fneg double %v
  ret double %minus
middle:
  %x = fsub double 1.0, %y
  %z = call double @erfinv.middle(double %x)
  ret double %z
}

; erfc(-x / sqrt(2)) / 2. What rounding takes from the argument would be 1e-13 far out, so it is put back.
define linkonce_odr double @__nv_normcdf(double %x) nounwind {
  %minus = fneg double %x
  %h = fmul double %minus, 0x3FE6A09E667F3BCD
  %size = call double @llvm.fabs.f64(double %x)
  %far = fcmp ogt double %size, 40.0
  %minus.h = fneg double %h
  %lost = call double @llvm.fma.f64(double %minus, double 0x3FE6A09E667F3BCD, double %minus.h)
  %e = call double @llvm.fma.f64(double %minus, double 0xBC8BDD3413B26456, double %lost)
  %tail = call double @erfc(double %h)
  %square = fmul double %h, %h
  %down = fneg double %square
  %bell = call double @llvm.exp.f64(double %down)
  %slope = fmul double %bell, 0xBFF20DD750429B6D
  %corrected = call double @llvm.fma.f64(double %slope, double %e, double %tail)
  %both = select i1 %far, double %tail, double %corrected
  %r = fmul double %both, 0.5
  ret double %r
}

define linkonce_odr double @__nv_normcdfinv(double %p) nounwind {
  %y = fmul double %p, 2.0
  %z = call double @__nv_erfcinv(double %y)
  %r = fmul double %z, 0xBFF6A09E667F3BCD
  ret double %r
}

; exp(x^2) erfc(x), with the square in two parts; from 12 on ten terms of its series in 1 / (2 x^2).
define linkonce_odr double @__nv_erfcx(double %x) nounwind {
entry:
  %far = fcmp ogt double %x, 12.0
  br i1 %far, label %series, label %product
product:
  %square = fmul double %x, %x
  %minus = fneg double %square
  %lost = call double @llvm.fma.f64(double %x, double %x, double %minus)
  %power = call double @llvm.exp.f64(double %square)
  %tail = call double @erfc(double %x)
  %main = fmul double %power, %tail
  %infinite = fcmp oeq double %main, 0x7FF0000000000000
  %more = call double @llvm.fma.f64(double %main, double %lost, double %main)
  %r = select i1 %infinite, double %main, double %more
  ret double %r
series:
  %inverse = fdiv double 1.0, %x
  %inverse.square = fmul double %inverse, %inverse
  %s = fmul double %inverse.square, -0.5
  br label %each
each:
  %odd = phi double [ 19.0, %series ], [ %odd.next, %each ]
  %sum = phi double [ 1.0, %series ], [ %sum.next, %each ]
  %factor = fmul double %s, %odd
  %sum.next = call double @llvm.fma.f64(double %factor, double %sum, double 1.0)
  %odd.next = fsub double %odd, 2.0
  %again = fcmp ogt double %odd.next, 0.0
  br i1 %again, label %each, label %end
end:
  %lead = fmul double %inverse, 0x3FE20DD750429B6D
  %result = fmul double %lead, %sum.next
  ret double %result
}

; Rounds to odd, so that rounding once more gives what rounding at once does: x86 has no conversion of double to half.
define linkonce_odr half @irad.cuda.half(double %x) nounwind {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %exact = fcmp ueq double %back, %x
  %bits = bitcast float %near to i32
  %size = call double @llvm.fabs.f64(double %x)
  %near.size = call double @llvm.fabs.f64(double %back)
  %up = fcmp ogt double %near.size, %size
  %down = sext i1 %up to i32
  %truncated = add i32 %bits, %down
  %odd = or i32 %truncated, 1
  %used = select i1 %exact, i32 %bits, i32 %odd
  %float = bitcast i32 %used to float
  %r = fptrunc float %float to half
  ret half %r
}
