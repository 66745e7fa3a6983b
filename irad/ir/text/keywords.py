"""The words of LLVM's text: opcodes, flags, attributes, linkages, calling conventions, as LLVM 20 to 22 print them."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Opcodes
CAST_OPCODES: Final = _words("""
    trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint ptrtoaddr inttoptr bitcast addrspacecast
    """)
INTEGER_OPCODES: Final = _words("add sub mul udiv sdiv urem srem shl lshr ashr and or xor")
FLOAT_OPCODES: Final = _words("fadd fsub fmul fdiv frem")
BINARY_OPCODES: Final = INTEGER_OPCODES | FLOAT_OPCODES
VECTOR_OPCODES: Final = _words("extractelement insertelement shufflevector")
POINTER_EXPRESSIONS: Final = _words("getelementptr bitcast addrspacecast inttoptr")
ATOMIC_OPCODES: Final = _words("""
    xchg add sub and nand or xor max min umax umin fadd fsub fmax fmin fmaximum fminimum fmaximumnum fminimumnum
    uinc_wrap udec_wrap usub_cond usub_sat
    """)

# Flags, predicates, orderings
FAST_MATH: Final = _words("fast reassoc nnan ninf nsz arcp contract afn")
POISONING: Final = _words("fast nnan ninf")
"""Fast-math words that make NaN, or an infinity, poison."""
ARITHMETIC_FLAGS: Final = FAST_MATH | _words("nuw nsw exact disjoint")
CAST_FLAGS: Final = FAST_MATH | _words("nuw nsw nneg")
POINTER_FLAGS: Final = _words("inbounds nuw nusw")
COMPARISON_FLAGS: Final = _words("samesign")
EXPRESSION_FLAGS: Final = ARITHMETIC_FLAGS | CAST_FLAGS | POINTER_FLAGS
ICMP_PREDICATES: Final = _words("eq ne ugt uge ult ule sgt sge slt sle")
FCMP_PREDICATES: Final = _words("false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true")
ORDERINGS: Final = _words("unordered monotonic acquire release acq_rel seq_cst")
ACCESS_WORDS: Final = _words("atomic volatile")
ALLOCA_WORDS: Final = _words("inalloca swifterror")
ASM_WORDS: Final = _words("sideeffect alignstack inteldialect unwind")
CONSTANT_WRAPPERS: Final = _words("dso_local_equivalent no_cfi ptrauth")

# Globals and functions
LINKAGE_WORDS: Final = _words("""
    private internal available_externally linkonce weak common appending extern_weak linkonce_odr weak_odr external
    dso_local dso_preemptable default hidden protected dllimport dllexport
    """)
ADDRESS_WORDS: Final = _words("unnamed_addr local_unnamed_addr")
VARIABLE_WORDS: Final = LINKAGE_WORDS | ADDRESS_WORDS | _words("thread_local externally_initialized")
SANITIZER_WORDS: Final = _words("no_sanitize_address no_sanitize_hwaddress sanitize_memtag sanitize_address_dyninit")
COMDAT_KINDS: Final = _words("any exactmatch largest nodeduplicate samesize")
FUNCTION_CONSTANTS: Final = _words("prefix prologue personality")

# Attributes; those of the second kind stand before `(`
PARAMETER_WORDS: Final = _words("""
    allocalign allocptr dead_on_return dead_on_unwind immarg inreg nest noalias nocapture noext nofree nonnull noundef
    readnone readonly returned signext swiftasync swifterror swiftself writable writeonly zeroext
    """)
PARAMETER_CALLS: Final = _words("""
    align byref byval captures dead_on_return dereferenceable dereferenceable_or_null elementtype inalloca initializes
    nofpclass preallocated range sret
    """)
FUNCTION_WORDS: Final = _words("""
    alwaysinline argmemonly builtin cold convergent coro_elide_safe coro_only_destroy_when_complete
    disable_sanitizer_instrumentation flatten fn_ret_thunk_extern hot hybrid_patchable inaccessiblemem_or_argmemonly
    inaccessiblememonly inlinehint jumptable minsize mustprogress naked nobuiltin nocallback nocf_check
    nocreateundeforpoison nodivergencesource noduplicate nofree noimplicitfloat noinline nomerge nonlazybind nooutline
    noprofile norecurse noredzone noreturn nosanitize_bounds nosanitize_coverage nosync nounwind null_pointer_is_valid
    optdebug optforfuzzing optnone optsize presplitcoroutine readnone readonly returns_twice safestack sanitize_address
    sanitize_alloc_token sanitize_hwaddress sanitize_memory sanitize_memtag sanitize_numerical_stability
    sanitize_realtime sanitize_realtime_blocking sanitize_thread sanitize_type shadowcallstack skipprofile speculatable
    speculative_load_hardening ssp sspreq sspstrong strictfp uwtable willreturn writeonly
    """)
FUNCTION_CALLS: Final = _words("""
    alignstack allockind allocsize denormal_fpenv memory nofpclass preallocated uwtable vscale_range
    """)
CONVENTIONS: Final = _words("""
    aarch64_sme_preservemost_from_x0cc aarch64_sme_preservemost_from_x1cc aarch64_sme_preservemost_from_x2cc
    aarch64_sve_vector_pcs aarch64_vector_pcs amdgpu_cs amdgpu_cs_chain amdgpu_cs_chain_preserve amdgpu_es amdgpu_gfx
    amdgpu_gfx_whole_wave amdgpu_gs amdgpu_hs amdgpu_kernel amdgpu_ls amdgpu_ps amdgpu_vs anyregcc arm_aapcs_vfpcc
    arm_aapcscc arm_apcscc avr_intrcc avr_signalcc ccc cfguard_checkcc cheriot_compartmentcallcc
    cheriot_compartmentcalleecc cheriot_librarycallcc coldcc cxx_fast_tlscc fastcc ghccc graalcc hhvm_ccc hhvmcc
    intel_ocl_bicc m68k_rtdcc msp430_intrcc preserve_allcc preserve_mostcc preserve_nonecc ptx_device ptx_kernel
    riscv_vector_cc spir_func spir_kernel swiftcc swifttailcc tailcc webkit_jscc win64cc x86_64_sysvcc x86_fastcallcc
    x86_intrcc x86_regcallcc x86_stdcallcc x86_thiscallcc x86_vectorcallcc
    """)
