define i64 @integers(i64 %a, i64 %b, i1 %c) {
  %add = add i64 %a, %b
  %add2 = add nuw nsw i64 %add, 1
  %sub = sub nsw i64 %add2, -5
  %mul = mul nuw i64 %sub, 9223372036854775807
  %udiv = udiv exact i64 %mul, 3
  %sdiv = sdiv exact i64 %udiv, %b
  %urem = urem i64 %sdiv, 7
  %srem = srem i64 %urem, %a
  %shl = shl nuw nsw i64 %srem, 2
  %lshr = lshr exact i64 %shl, 1
  %ashr = ashr exact i64 %lshr, 1
  %and = and i64 %ashr, -1
  %or = or disjoint i64 %and, 4
  %xor = xor i64 %or, %a
  %flip = xor i1 %c, true
  %keep = and i1 %flip, false
  %frozen = freeze i64 %xor
  %chosen = select i1 %keep, i64 %frozen, i64 %a
  ret i64 %chosen
}

define double @floats(double %a, double %b) {
  %1 = fadd double %a, %b
  %2 = fsub fast double %1, 1.000000e+00
  %3 = fmul nnan ninf nsz double %2, 0x400921FB54442D18
  %4 = fdiv arcp contract afn reassoc double %3, -2.500000e+00
  %5 = frem double %4, 0x7FF8000000000000
  %6 = fneg double %5
  %7 = fneg nnan double %6
  %8 = fcmp oeq double %7, 0.0
  %9 = fcmp fast une double %7, %a
  %10 = fcmp uno double %a, 0x7FF0000000000000
  %11 = fcmp true double %a, %b
  %12 = select nsz i1 %8, double %1, double %7
  %13 = select fast i1 %9, double %12, double -0.000000e+00
  ret double %13
}

define <4 x i1> @comparisons(i32 %a, i32 %b, ptr %p, <4 x i32> %v, <4 x float> %w) {
  %c0 = icmp eq i32 %a, %b
  %c1 = icmp ne ptr %p, null
  %c2 = icmp samesign ult i32 %a, %b
  %c3 = icmp sge <4 x i32> %v, splat (i32 7)
  %c4 = fcmp ogt <4 x float> %w, zeroinitializer
  %c5 = icmp ule <4 x i32> %v, <i32 0, i32 1, i32 poison, i32 undef>
  %c6 = select <4 x i1> %c3, <4 x i1> %c4, <4 x i1> %c5
  ret <4 x i1> %c6
}

define void @casts(i64 %a, i32 %i, double %d, float %f, ptr %p, <2 x i32> %v) {
  %1 = trunc i64 %a to i8
  %2 = trunc nuw nsw i64 %a to i1
  %3 = zext nneg i32 %i to i64
  %4 = zext i1 %2 to i32
  %5 = sext i32 %i to i128
  %6 = fptrunc double %d to float
  %7 = fpext float %f to double
  %8 = fptoui double %d to i64
  %9 = fptosi double %d to i17
  %10 = uitofp i64 %a to double
  %11 = uitofp nneg i64 %a to double
  %12 = sitofp i64 %a to half
  %13 = ptrtoint ptr %p to i64
  %14 = inttoptr i64 %13 to ptr
  %15 = bitcast double %d to i64
  %16 = bitcast <2 x i32> %v to i64
  %17 = addrspacecast ptr %p to ptr addrspace(3)
  %18 = fpext fast float %f to double
  %19 = fptrunc nnan double %d to float
  %20 = sitofp <2 x i32> %v to <2 x double>
  %21 = ptrtoaddr ptr %p to i64
  ret void
}
