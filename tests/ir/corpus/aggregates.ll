%outer = type { i32, %inner, [2 x %inner] }
%inner = type <{ i8, double }>

define double @structs(%outer %s, { i64, { ptr, i64 } } %t, [3 x { i32, i32 }] %a) {
  %1 = extractvalue %outer %s, 1, 1
  %2 = extractvalue %outer %s, 2, 0
  %3 = extractvalue { i64, { ptr, i64 } } %t, 1
  %4 = extractvalue [3 x { i32, i32 }] %a, 2, 1
  %5 = insertvalue %outer %s, double %1, 2, 1, 1
  %6 = insertvalue { ptr, i64 } %3, ptr null, 0
  %7 = insertvalue [3 x { i32, i32 }] poison, i32 %4, 0, 0
  %8 = insertvalue { i64, { ptr, i64 } } undef, { ptr, i64 } %6, 1
  %9 = insertvalue %outer zeroinitializer, %inner %2, 1
  %10 = insertvalue { {}, [0 x i8] } poison, {} zeroinitializer, 0
  ret double %1
}

define <4 x double> @vectors(<4 x double> %v, <4 x double> %w, double %x, i32 %i) {
  %1 = extractelement <4 x double> %v, i64 0
  %2 = extractelement <4 x double> %v, i32 %i
  %3 = insertelement <4 x double> poison, double %x, i64 3
  %4 = insertelement <4 x double> %v, double 1.500000e+00, i32 %i
  %5 = shufflevector <4 x double> %v, <4 x double> %w, <4 x i32> <i32 0, i32 4, i32 1, i32 5>
  %6 = shufflevector <4 x double> %v, <4 x double> poison, <2 x i32> <i32 poison, i32 3>
  %7 = shufflevector <4 x double> %3, <4 x double> poison, <4 x i32> zeroinitializer
  %8 = shufflevector <2 x double> %6, <2 x double> undef, <8 x i32> poison
  %9 = fadd <4 x double> %7, splat (double 2.000000e+00)
  ret <4 x double> %9
}

define <vscale x 4 x i32> @scalable(<vscale x 4 x i32> %v, i32 %x, ptr %p) {
  %1 = insertelement <vscale x 4 x i32> poison, i32 %x, i64 0
  %2 = shufflevector <vscale x 4 x i32> %1, <vscale x 4 x i32> poison, <vscale x 4 x i32> zeroinitializer
  %3 = add <vscale x 4 x i32> %2, %v
  %4 = icmp slt <vscale x 4 x i32> %3, splat (i32 3)
  %5 = select <vscale x 4 x i1> %4, <vscale x 4 x i32> %3, <vscale x 4 x i32> zeroinitializer
  %6 = getelementptr i32, ptr %p, <vscale x 4 x i32> %5
  %7 = extractelement <vscale x 4 x i32> %5, i32 0
  ret <vscale x 4 x i32> %5
}
