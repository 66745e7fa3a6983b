%node = type { ptr, i32 }
@i1 = global i1 true
@i8 = global i8 -128
@big = global i128 -170141183460469231731687303715884105728
@wide = global i300 1018517988167243043134222844204689080525734196832968125318070224677190649881668353091698688
@f16 = global half 0xH3C00
@bf16 = global bfloat 0xR3F80
@f32 = global float 0x3FF3333340000000
@f32b = global float 1.500000e+00
@f64 = global double 0x7FF0000000000000
@f64b = global double 1.000000e-300
@nan = global double 0xFFF8000000000001
@f80 = global x86_fp80 0xK4000C8F5C28F5C28F800
@f128 = global fp128 0xL00000000000000004000000000000000
@ppc = global ppc_fp128 0xM40000000000000000000000000000000
@f16d = global half 2.0
@null = global ptr null
@null3 = global ptr addrspace(3) null
@undef = global { i32, [2 x double] } undef
@poison = global <2 x i8> poison
@zero = global { i32, [2 x double] } zeroinitializer
@empty = global {} zeroinitializer
@empty_array = global [0 x i32] zeroinitializer
@struct = global { i32, { ptr, i8 }, <{ i16, float }> } { i32 1, { ptr, i8 } { ptr @i8, i8 2 }, <{ i16, float }> <{ i16 3, float 4.0 }> }
@array = global [2 x [2 x i32]] [[2 x i32] [i32 1, i32 2], [2 x i32] zeroinitializer]
@vector = global <4 x i16> <i16 1, i16 -2, i16 undef, i16 4>
@vector1 = global <1 x ptr> <ptr @i8>
@splat = global <4 x float> splat (float 2.0)
@splat_pointer = global <2 x ptr> splat (ptr @i8)
@bools = global <4 x i1> <i1 true, i1 false, i1 true, i1 poison>
@string = global [11 x i8] c"a\22b\\c\00\FF;%@!"
@list = global %node { ptr @list2, i32 1 }
@list2 = global %node { ptr @list, i32 2 }
@gep = global ptr getelementptr (i8, ptr @struct, i64 8)
@gep_flags = global ptr getelementptr inbounds nuw (%node, ptr @list, i64 0, i32 1)
@gep_range = global ptr getelementptr inbounds inrange(-8, 16) ({ [3 x ptr] }, ptr @struct, i32 0, i32 0, i32 1)
@int_of_pointer = global i64 ptrtoint (ptr @i8 to i64)
@address_of_pointer = global i64 ptrtoaddr (ptr @i8 to i64)
@pointer_of_int = global ptr inttoptr (i64 4660 to ptr)
@difference = global i64 sub (i64 ptrtoint (ptr @i8 to i64), i64 ptrtoint (ptr @i1 to i64))
@relative = global i32 trunc (i64 sub nuw nsw (i64 ptrtoint (ptr @function to i64), i64 ptrtoint (ptr @relative to i64)) to i32)
@sum = global i64 add (i64 ptrtoint (ptr @i8 to i64), i64 3)
@xor = global i64 xor (i64 ptrtoint (ptr @i8 to i64), i64 -1)
@cast_space = global ptr addrspace(4) addrspacecast (ptr @i8 to ptr addrspace(4))
@vector_gep = global <2 x ptr> getelementptr (i8, ptr @struct, <2 x i64> <i64 1, i64 2>)
@equivalent = global ptr dso_local_equivalent @function
@no_cfi = global ptr no_cfi @function
@signed = global ptr ptrauth (ptr @function, i32 2)
@signed_more = global ptr ptrauth (ptr @function, i32 2, i64 1234)
@signed_all = global ptr ptrauth (ptr @function, i32 2, i64 65535, ptr @signed_all)
@target = global target("spirv.DeviceEvent") zeroinitializer
@elsewhere = global ptr addrspace(7) @far
@far = addrspace(7) global i32 0

define void @function(ptr %p) {
  store i64 ptrtoint (ptr @function to i64), ptr %p, align 8
  store ptr getelementptr inbounds (i8, ptr @struct, i64 16), ptr %p, align 8
  store <2 x i64> <i64 ptrtoint (ptr @i8 to i64), i64 1>, ptr %p, align 16
  store { i64, float } { i64 3, float poison }, ptr %p, align 8
  store [2 x ptr] [ptr @i8, ptr null], ptr %p, align 8
  store [3 x i8] c"xyz", ptr %p, align 1
  store half 0xH7E00, ptr %p, align 2
  store bfloat 0xRFF80, ptr %p, align 2
  store <2 x bfloat> splat (bfloat 0xR3F80), ptr %p, align 4
  store i1 false, ptr %p, align 1
  ret void
}
