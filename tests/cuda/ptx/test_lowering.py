"""What the NVPTX back end would do wrong, or not at all, is put right before it sees the kernel."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.lowering import contracted, entry_name, lower_kernel
from irad.backend.cuda.ptx import LaunchBounds, compile_ptx
from irad.errors import BackendError
from irad.ir.text.printer import print_module
from irad.kernel.derive import derive_kernel
from irad.options import Options
from irad.passes.request import ParameterKind
from irad.ruleset.memory_type import MemoryType
from tests.cuda.ptx.operations import Operation, kernel_of
from tests.cuda.ptx.tools import needs_libdevice

TRIPLE = 'target triple = "nvptx64-nvidia-cuda"\n'


def scalar(text: str, type_: str, *declares: str, fastmath: bool = False) -> KernelModule:
    return kernel_of([Operation("one", text, type_, (), declares)], fastmath=fastmath)


def lowered(kernel: KernelModule) -> str:
    text = print_module(lower_kernel(kernel))
    llvm.parse_assembly(text).verify()
    return text


# Intrinsics that the machine has no instruction for: LLVM would end the process.
OF_ONE = "sin cos tan asin acos atan sinh cosh tanh exp exp2 exp10 log log2 log10".split()
OF_TWO = "atan2 pow".split()


@pytest.mark.parametrize("name", [*OF_ONE, *OF_TWO])
@pytest.mark.parametrize(("type_", "short", "letter"), [("double", "f64", ""), ("float", "f32", "f")])
def test_mathematics_goes_to_libdevice(name: str, type_: str, short: str, letter: str):
    value = "%d" if type_ == "double" else "%f"
    arguments = ", ".join([f"{type_} {value}"] * (2 if name in OF_TWO else 1))
    types = ", ".join([type_] * (2 if name in OF_TWO else 1))
    symbol = f"llvm.{name}.{short}"
    text = lowered(scalar(f"call {type_} @{symbol}({arguments})", type_, f"declare {type_} @{symbol}({types})"))
    assert f"= call {type_} @__nv_{name}{letter}({arguments})" in text
    assert f"@{symbol}(" not in text.partition("define")[2]


@needs_libdevice
@pytest.mark.parametrize(
    ("symbol", "arguments"),
    [
        ("llvm.powi.f64.i32", ["double %d", "i32 %i"]),
        ("llvm.ldexp.f32.i32", ["float %f", "i32 %i"]),
        *((f"llvm.{name}.f64", ["double %d"]) for name in ("fabs", "sqrt", "floor", "ceil", "trunc", "rint", "round")),
        *((f"llvm.{name}.f32", ["float %f"]) for name in ("fabs", "sqrt", "floor", "ceil", "trunc", "rint", "round")),
        *((f"llvm.{name}.f64", ["double %d"] * 2) for name in ("copysign", "minnum", "maxnum", "minimum", "maximum")),
        *((f"llvm.{name}.f32", ["float %f"] * 2) for name in ("copysign", "minnum", "maxnum", "minimum", "maximum")),
        ("llvm.fma.f64", ["double %d"] * 3),
        ("llvm.fmuladd.f32", ["float %f"] * 3),
    ],
)
def test_other_mathematics_compiles(symbol: str, arguments: list[str]):
    type_ = arguments[0].split()[0]
    declared = f"declare {type_} @{symbol}({', '.join(a.split()[0] for a in arguments)})"
    ptx = compile_ptx(scalar(f"call {type_} @{symbol}({', '.join(arguments)})", type_, declared))
    assert ".extern" not in ptx
    assert "st.volatile" in ptx


@needs_libdevice
@pytest.mark.parametrize(("type_", "value", "symbol"), [("double", "%d", "__nv_fmod"), ("float", "%f", "__nv_fmodf")])
def test_a_remainder_is_exact(type_: str, value: str, symbol: str):
    """LLVM's own expansion divides, rounds the quotient and loses what it rounded."""
    kernel = scalar(f"frem {type_} {value}, 3.0", type_)
    assert f"call {type_} @{symbol}(" in lowered(kernel)
    ptx = compile_ptx(kernel)
    assert "div.rn" not in ptx
    assert "call" not in ptx


def product_and_sum() -> KernelModule:
    kernel = scalar("fadd double %p, 1.0", "double")
    return KernelModule(kernel.text.replace("  %r0", "  %p = fmul double %d, %d\n  %r0"), "k")


def test_products_and_sums_are_fused_where_that_is_allowed():
    assert "fma.rn.f64" in compile_ptx(contracted(product_and_sum()))
    exact = compile_ptx(product_and_sum())
    assert "fma" not in exact
    assert "mul.rn.f64" in exact, "ptxas would fuse mul and add"
    assert "add.rn.f64" in exact


def test_contraction_is_written_once_and_only_on_products_and_sums():
    text = product_and_sum().text.replace("  %r0", "  %q = fmul fast double %p, %d\n  %z = fdiv double %q, %d\n  %r0")
    once = contracted(KernelModule(text, "k"))
    assert contracted(once) is once
    for line in ("fmul contract double", "fadd contract double", "fmul fast double", "fdiv double"):
        assert line in once.text


def test_the_derivative_of_a_contracted_kernel_is_contracted():
    """Its own products and sums as well; those of the primal have had the word since before the derivation."""
    body = "  %x = load double, ptr %out\n  %q = fmul double %x, %x\n  %s = fadd double %q, %x\n"
    body += "  store double %s, ptr %out\n  ret void\n"
    kernel = KernelModule(f"{TRIPLE}define ptx_kernel void @k(ptr %out) {{\n{body}}}\n", "k")
    memory = [MemoryType(8, ((0, "double"),))]
    for primal, fused in ((kernel, False), (contracted(kernel), True)):
        derivative = derive_kernel(primal, [ParameterKind.SHADOW], memory, Options()).module
        assert derivative.contract is fused
        assert ("fma.rn.f64" in compile_ptx(derivative)) is fused


@needs_libdevice
def test_square_roots_and_quotients_are_exact_but_under_fastmath():
    declared = "declare float @__nv_sqrtf(float)"
    root = scalar("call float @__nv_sqrtf(float %f)", "float", declared)
    assert "sqrt.rn.f32" in compile_ptx(root)
    fast = scalar("call fast float @__nv_sqrtf(float %f)", "float", declared, fastmath=True)
    assert "sqrt.approx.ftz.f32" in compile_ptx(fast)
    assert "sqrt.rn.f32" in compile_ptx(root), "the setting of one kernel is not that of the next"
    assert "div.rn.f32" in compile_ptx(scalar("fdiv float 3.5, %f", "float"))
    assert "div.approx.ftz.f32" in compile_ptx(scalar("fdiv fast float 3.5, %f", "float", fastmath=True))


def test_fastmath_flushes_denormals():
    assert "add.rn.ftz.f32" in compile_ptx(scalar("fadd float %f, 3.5", "float", fastmath=True))
    assert "add.rn.f32" in compile_ptx(scalar("fadd float %f, 3.5", "float"))


@needs_libdevice
def test_fastmath_reaches_into_libdevice():
    declared = "declare float @__nv_expf(float)"
    call = "call float @__nv_expf(float %f)"
    assert "ex2.approx.ftz.f32" in compile_ptx(scalar(call, "float", declared))
    precise = compile_ptx(scalar(call, "float", declared))
    fast = compile_ptx(scalar(call, "float", declared, fastmath=True))
    assert fast.count(".ftz.") > precise.count(".ftz.")


def test_launch_bounds_are_directives():
    ptx = compile_ptx(scalar("fadd double %d, 1.0", "double"), bounds=LaunchBounds(256, 2, 40))
    for directive in (".maxntid 256", ".minnctapersm 2", ".maxnreg 40"):
        assert directive in ptx


DEBUG = (
    TRIPLE
    + """
define ptx_kernel void @k(ptr %p) !dbg !4 {
  store double 1.0, ptr %p, !dbg !6
  ret void, !dbg !6
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !1, isOptimized: true, emissionKind: FullDebug)
!1 = !DIFile(filename: "model.py", directory: "/src")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!4 = distinct !DISubprogram(name: "k", file: !1, line: 11, type: !5, unit: !0, spFlags: DISPFlagDefinition)
!5 = !DISubroutineType(types: !{null})
!6 = !DILocation(line: 12, column: 1, scope: !4)
"""
)


def test_lines_are_kept_and_ptxas_may_optimise():
    ptx = compile_ptx(KernelModule(DEBUG, "k"))
    assert "model.py" in ptx
    assert ".loc\t1 12" in ptx
    assert ", debug" not in ptx


INLINED = """
!10 = distinct !DISubprogram(name: "f", scope: !1, file: !1, line: 3, type: !5, unit: !0, spFlags: DISPFlagDefinition)
!11 = !DILocation(line: 4, column: 1, scope: !10, inlinedAt: !12)
!12 = distinct !DILocation(line: 12, column: 1, scope: !4)
"""


def test_generated_functions_have_lines_as_well():
    """Without a subprogram of its own LLVM would write none."""
    text = DEBUG.replace("(ptr %p) !dbg !4 {", "(ptr %p) {").replace("ptr %p, !dbg !6", "ptr %p, !dbg !11") + INLINED
    ptx = compile_ptx(KernelModule(text, "k"))
    store = next(n for n, line in enumerate(ptx.splitlines()) if "st.global" in line)
    assert ".loc\t1 4" in ptx.splitlines()[store - 1]


def test_names_are_made_for_ptx():
    name = "_ZN6module4kern.1B2v1E$x"
    text = f'{TRIPLE}define ptx_kernel void @"{name}"() {{\n  ret void\n}}\n'
    assert entry_name(name) == "_ZN6module4kern_1B2v1E$x"
    assert f".entry {entry_name(name)}(" in compile_ptx(KernelModule(text, name))


def test_what_nobody_defines_is_refused_with_its_line():
    text = (
        DEBUG.replace("  store double", "  call void @mystery(), !dbg !6\n  store double") + "declare void @mystery()\n"
    )
    with pytest.raises(BackendError, match="'mystery', which does not exist on the GPU") as caught:
        compile_ptx(KernelModule(text, "k"))
    assert str(caught.value.location) == "/src/model.py:12 in k"


@pytest.mark.parametrize("symbol", ["llvm.nvvm.shfl.sync.i32", "llvm.nvvm.no.such.thing"])
def test_an_unknown_intrinsic_is_refused(symbol: str):
    with pytest.raises(BackendError, match=symbol.replace(".", r"\.")):
        compile_ptx(scalar(f"call i32 @{symbol}(i32 %i)", "i32", f"declare i32 @{symbol}(i32)"))


def test_a_misspelled_operation_is_refused():
    with pytest.raises(BackendError, match=r"irad\.cuda\.shfl\.sideways"):
        compile_ptx(
            scalar("call i32 @irad.cuda.shfl.sideways(i32 %i)", "i32", "declare i32 @irad.cuda.shfl.sideways(i32)")
        )


@needs_libdevice
def test_a_function_that_libdevice_lacks_is_refused():
    with pytest.raises(BackendError, match="__nv_zeta"):
        compile_ptx(scalar("call double @__nv_zeta(double %d)", "double", "declare double @__nv_zeta(double)"))


def test_an_unknown_architecture_is_refused():
    with pytest.raises(BackendError, match=r"(?s)'sm_42'.*sm_80"):
        compile_ptx(scalar("fadd double %d, 1.0", "double"), "sm_42")


HELPER = """
define double @twice(ptr %p) {
  %x = load double, ptr %p
  %y = fadd double %x, %x
  ret double %y
}
define ptx_kernel void @k(ptr %p, ptr %q) {
  %slot = alloca double
  %a = load double, ptr %p
  store double %a, ptr %slot
  %b = call double @twice(ptr %slot)
  %r = freeze ptr %q
  %s = select i1 true, ptr %r, ptr %p
  store double %b, ptr %s
  ret void
}
"""


def test_parameters_lead_to_global_memory_and_what_is_called_once_is_inlined():
    ptx = compile_ptx(KernelModule(TRIPLE + HELPER, "k"))
    assert "ld.global.b64" in ptx
    assert "st.global.b64" in ptx, "through the freeze"
    for word in (".local", "call", ".func"):
        assert word not in ptx


def test_device_functions_that_shall_not_be_inlined_are_not():
    text = TRIPLE + HELPER.replace("@twice(ptr %p) {", "@twice(ptr %p) noinline {")
    assert "call.uni" in compile_ptx(KernelModule(text, "k"))


NEWER = {"sm_80": "sm_80", "sm_88": "sm_87", "sm_90a": "sm_90a", "sm_103": "sm_100", "sm_999": "sm_120"}


@pytest.mark.parametrize(("arch", "target"), NEWER.items())
def test_newer_gpus_run_code_of_older_ones(arch: str, target: str):
    assert f".target {target}\n" in compile_ptx(scalar("fadd double %d, 1.0", "double"), arch)
