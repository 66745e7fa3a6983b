define noundef range(i32 0, 2) i32 @parameters(ptr noalias writeonly captures(none) initializes((0, 8), (16, 24)) %a, ptr captures(ret: address, provenance) %b, ptr byref({ i32, ptr }) align 8 %c, ptr nest %d, i32 zeroext %e, i32 signext inreg %f, ptr dereferenceable_or_null(8) noundef %g, double nofpclass(nan inf) %h, ptr returned %i, ptr swiftself %j, ptr nofree readnone %k, i32 immarg noext %l, ptr dead_on_unwind writable noalias sret([2 x <4 x float>]) align 16 %m, ptr "custom"="value" "flag" %n, ptr allocptr %o, i64 allocalign %p, <2 x i32> range(i32 -5, 5) %q, ptr captures(address_is_null) %r, ptr dead_on_return %s) {
  ret i32 0
}

define void @inline_words() alwaysinline cold convergent hot minsize naked nobuiltin nocallback noduplicate noimplicitfloat nomerge nonlazybind noprofile noredzone noreturn null_pointer_is_valid optforfuzzing optsize presplitcoroutine returns_twice safestack sanitize_address sanitize_memory sanitize_thread shadowcallstack skipprofile speculatable ssp strictfp uwtable(sync) {
  unreachable
}

define void @more_words() nocf_check nodivergencesource nosanitize_bounds nosanitize_coverage sanitize_realtime sanitize_type sanitize_numerical_stability sspreq speculative_load_hardening disable_sanitizer_instrumentation fn_ret_thunk_extern hybrid_patchable alignstack(16) vscale_range(2) memory(read, argmem: none, inaccessiblemem: write, errnomem: write) "probe-stack"="__probe" mustprogress willreturn {
  ret void
}

define void @optnone() unnamed_addr noinline optnone sspstrong {
  ret void
}

declare void @optdebug() optdebug

declare ptr @allocate(i64, i64 allocalign) allockind("alloc,uninitialized,aligned") allocsize(0) memory(inaccessiblemem: readwrite)

declare ptr @resize(ptr allocptr, i64) allockind("realloc") allocsize(1)

declare void @preallocated(ptr preallocated(i32))

declare swiftcc void @swift(ptr swiftself, ptr swifterror)

declare swifttailcc void @swift_async(ptr swiftasync)

declare amdgpu_kernel void @kernel(ptr addrspace(1) inreg byref(i32))

declare ptx_kernel void @ptx()

declare preserve_mostcc void @preserve()

declare coldcc void @cold()

declare tailcc void @tailcc()

declare ghccc void @ghc()

declare win64cc void @win64()

declare cc 1023 void @numbered()

declare spir_func void @spir()

declare aarch64_vector_pcs void @vector_pcs()
