"""What is made plain before the engine reads a program: unwinding, vectors, bits; and what memory is said to hold."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from irad.errors import UnsupportedError
from irad.ir.instructions import Call, Invoke
from irad.ir.module import Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.types import VectorType
from irad.ir.verifier import verify
from irad.raw.memory import InferredMemory
from irad.raw.normal_form.bit_moves import restore_types
from irad.raw.normal_form.by_value import pass_pointers
from irad.raw.normal_form.calls import lower_unwinding, mark_external_clobbers
from irad.raw.normal_form.masked import expand_masked
from irad.raw.normal_form.vectors import split_vectors
from irad.rules import ALL
from irad.ruleset.memory_type import MemoryType
from irad.ruleset.registry import Registry
from tests.raw.toolchain import PROGRAMS, bitcode_of, differentiated, needs_clang, run, text_of

DOUBLES = MemoryType(8, ((0, "double"),))


def printed(module: Module) -> str:
    """The text, which irad and LLVM accept."""
    verify(module)
    text = print_module(module)
    llvm.parse_assembly(text, context=llvm.create_context()).verify()
    return text


# ------------------------------------------------------------------------------------------------ unwinding

PAD = """\
declare void @g()
declare i32 @__gxx_personality_v0(...)
define double @f(double %x) personality ptr @__gxx_personality_v0 {{
entry:
  invoke void @g() to label %fine unwind label %pad
fine:
  ret double %x
pad:
  %caught = landingpad {{ ptr, i32 }} {clause}
  {end}
}}
"""


def test_a_landing_pad_that_cleans_up_is_dropped():
    module = parse_module(PAD.format(clause="cleanup", end="resume { ptr, i32 } %caught"))
    assert lower_unwinding(module)
    assert not [i for f in module.defined_functions() for i in f.instructions() if isinstance(i, Invoke)]
    assert "landingpad" not in printed(module)
    assert " personality " not in printed(module)
    assert not lower_unwinding(module)


def test_a_landing_pad_that_goes_on_is_refused():
    with pytest.raises(UnsupportedError, match="an exception is caught"):
        lower_unwinding(parse_module(PAD.format(clause="catch ptr null", end="br label %fine")))


# ------------------------------------------------------------------------------------------------ vectors

VECTORS = """\
declare <4 x double> @llvm.fmuladd.v4f64(<4 x double>, <4 x double>, <4 x double>)
declare double @llvm.vector.reduce.fadd.v4f64(double, <4 x double>)
declare i32 @llvm.vector.reduce.smax.v4i32(<4 x i32>)
define double @f(ptr %p, i32 %n, i64 %place) {
entry:
  %v = load <4 x double>, ptr %p, align 8
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi <4 x double> [ zeroinitializer, %entry ], [ %more, %loop ]
  %turned = shufflevector <4 x double> %v, <4 x double> splat (double 2.0), <4 x i32> <i32 3, i32 5, i32 poison, i32 0>
  %set = insertelement <4 x double> %turned, double 1.5, i64 2
  %moved = insertelement <4 x double> %set, double 0.5, i64 %place
  %more = call <4 x double> @llvm.fmuladd.v4f64(<4 x double> %moved, <4 x double> %v, <4 x double> %sum)
  %next = add i32 %i, 1
  %end = icmp eq i32 %next, %n
  br i1 %end, label %done, label %loop
done:
  %positive = fcmp ogt <4 x double> %more, zeroinitializer
  %chosen = select <4 x i1> %positive, <4 x double> %more, <4 x double> %v
  %whole = fptosi <4 x double> %chosen to <4 x i32>
  %top = call i32 @llvm.vector.reduce.smax.v4i32(<4 x i32> %whole)
  %total = call double @llvm.vector.reduce.fadd.v4f64(double 0.25, <4 x double> %chosen)
  %taken = extractelement <4 x double> %chosen, i64 %place
  %bits = bitcast <4 x double> %chosen to <8 x float>
  %low = extractelement <8 x float> %bits, i64 1
  %wide = fpext float %low to double
  %number = sitofp i32 %top to double
  %a = fadd double %total, %taken
  %b = fadd double %a, %number
  %c = fadd double %b, %wide
  ret double %c
}
"""


def result_of(text: str, place: int) -> float:
    """What the function of a module gives."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    numbers = (ctypes.c_double * 4)(1.25, -2.0, 3.5, 0.75)
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64)
    value: float = function(engine.get_function_address("f"))(ctypes.addressof(numbers), 3, place)
    return value


def test_vectors_become_scalars_of_the_same_values():
    module = parse_module(VECTORS)
    assert split_vectors(module)
    text = printed(module)
    instructions = [i for f in module.defined_functions() for i in f.instructions()]
    assert not [i for i in instructions if isinstance(i.type, VectorType)]
    assert not split_vectors(module)
    for place in range(4):
        assert result_of(text, place) == result_of(VECTORS, place)


def test_vectors_that_go_to_functions_are_put_together():
    text = """\
declare <2 x float> @g(<2 x float>)
define <2 x float> @f(<2 x float> %x) {
  %y = fadd <2 x float> %x, %x
  %z = call <2 x float> @g(<2 x float> %y)
  %w = fmul <2 x float> %z, %x
  ret <2 x float> %w
}
"""
    module = parse_module(text)
    assert split_vectors(module)
    changed = printed(module)
    assert "fadd <2 x float>" not in changed
    assert changed.count("fadd float") == 2
    assert "call <2 x float> @g(<2 x float>" in changed


MASKED = """\
declare <4 x double> @llvm.masked.load.v4f64.p0(ptr, <4 x i1>, <4 x double>)
declare <4 x double> @llvm.masked.gather.v4f64.v4p0(<4 x ptr>, <4 x i1>, <4 x double>)
declare void @llvm.masked.store.v4f64.p0(<4 x double>, ptr, <4 x i1>)
declare void @llvm.masked.scatter.v4f64.v4p0(<4 x double>, <4 x ptr>, <4 x i1>)
declare double @llvm.vector.reduce.fadd.v4f64(double, <4 x double>)
define double @f(ptr %p, i32 %n, i64 %place) {
entry:
  %first = insertelement <4 x i64> poison, i64 %place, i64 0
  %all = shufflevector <4 x i64> %first, <4 x i64> poison, <4 x i32> zeroinitializer
  %low = icmp ule <4 x i64> <i64 0, i64 1, i64 2, i64 3>, %all
  %high = xor <4 x i1> %low, splat (i1 true)
  %v = call <4 x double> @llvm.masked.load.v4f64.p0(ptr align 8 %p, <4 x i1> %low, <4 x double> splat (double 5.0))
  %turned = getelementptr double, ptr %p, <4 x i64> <i64 3, i64 2, i64 1, i64 0>
  %far = getelementptr double, <4 x ptr> %turned, <4 x i64> <i64 0, i64 0, i64 0, i64 0>
  %nowhere = select <4 x i1> %low, <4 x ptr> %far, <4 x ptr> zeroinitializer
  %g = call <4 x double> @llvm.masked.gather.v4f64.v4p0(<4 x ptr> align 8 %nowhere, <4 x i1> %low, <4 x double> %v)
  %sum = fadd <4 x double> %v, %g
  call void @llvm.masked.store.v4f64.p0(<4 x double> %sum, ptr align 8 %p, <4 x i1> %high)
  call void @llvm.masked.scatter.v4f64.v4p0(<4 x double> %sum, <4 x ptr> align 8 %nowhere, <4 x i1> %low)
  %after = load <4 x double>, ptr %p, align 8
  %weighted = fmul <4 x double> %after, <double 1.0, double 3.0, double 7.0, double 11.0>
  %total = call double @llvm.vector.reduce.fadd.v4f64(double 0.25, <4 x double> %weighted)
  ret double %total
}
"""


def older(text: str) -> str:
    """With the alignment among the operands, as LLVM 20 and 21 have it and as later releases read it, too."""
    text = re.sub(r"(@llvm\.masked\.\w+\.v4f64\.\w+\()((?:<4 x double>, )?(?:<4 x ptr>|ptr))(?=, )", r"\1\2, i32", text)
    return re.sub(r"(?:(ptr|<4 x ptr>)) align 8 (%\w+), (?=<4 x i1>)", r"\1 \2, i32 8, ", text)


@pytest.mark.parametrize("form", [str, older])
def test_masked_accesses_become_branches_that_do_the_same(form: Callable[[str], str]):
    module = parse_module(form(MASKED))
    assert expand_masked(module)
    assert split_vectors(module)
    text = printed(module)
    assert "call <4 x double> @llvm.masked" not in text
    assert "align 8" in text
    assert not expand_masked(module)
    truth = older(MASKED)
    assert len({result_of(truth, place) for place in range(4)}) == 4
    for place in range(4):
        assert result_of(text, place) == result_of(truth, place)


@needs_clang
def test_masked_accesses_of_vectorised_loops_have_derivatives(tmp_path: Path):
    [source] = [path for path in PROGRAMS if path.stem == "masked_loops"]
    bitcode = bitcode_of(source, 3, tmp_path)
    text = text_of(bitcode)
    assert all(f"@llvm.masked.{kind}.v" in text for kind in ("load", "store", "gather", "scatter"))
    done = run(differentiated(bitcode), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


# ------------------------------------------------------------------------------------------------ bits


def test_pointers_that_move_as_integers_become_pointers():
    text = """\
define void @f(ptr %p, ptr %q, i1 %c, i64 %other) {
entry:
  %bits = ptrtoint ptr %p to i64
  br i1 %c, label %a, label %b
a:
  br label %b
b:
  %m = phi i64 [ 0, %entry ], [ %bits, %a ]
  store i64 %m, ptr %q
  %odd = and i64 %m, 1
  store i64 %odd, ptr %p
  ret void
}
"""
    module = parse_module(text)
    assert restore_types(module)
    changed = printed(module)
    assert "phi ptr [ null, %entry ], [ %p, %a ]" in changed
    assert "store ptr %m, ptr %q" in changed
    assert "store i64 %odd, ptr %p" in changed


def test_numbers_that_share_bytes_with_integers_become_numbers():
    text = """\
define double @f(double %x, i64 %n, i1 %c) {
entry:
  %bits = bitcast double %x to i64
  %chosen = select i1 %c, i64 %bits, i64 %n
  %y = bitcast i64 %chosen to double
  ret double %y
}
"""
    module = parse_module(text)
    assert restore_types(module)
    assert "select i1 %c, double %x, double" in printed(module)


def test_integers_stay_integers():
    text = "define void @f(ptr %p, ptr %q) {\n  %v = load i64, ptr %p\n  store i64 %v, ptr %q\n  ret void\n}\n"
    assert not restore_types(parse_module(text))


TBAA = """\
define void @f(ptr %p, ptr %q) {{
  %v = load i64, ptr %p, !tbaa !0
  store i64 %v, ptr %q, !tbaa !0
  ret void
}}
!0 = !{{!1, !1, i64 0}}
!1 = !{{!"{name}", !2, i64 0}}
!2 = !{{!"omnipotent char", !3, i64 0}}
!3 = !{{!"Simple C/C++ TBAA"}}
"""


@pytest.mark.parametrize(
    ("name", "type_"),
    [("double", "double"), ("any pointer", "ptr"), ("p1 double", "ptr"), ("vtable pointer", "ptr"), ("long", "i64")],
)
def test_tags_tell_the_type_of_a_copy(name: str, type_: str):
    module = parse_module(TBAA.format(name=name))
    assert restore_types(module) == (type_ != "i64")
    assert f"load {type_}, ptr %p" in printed(module)


# ------------------------------------------------------------------------------------------------ calls


def test_structures_by_value_are_copied_by_the_callee():
    text = """\
%S = type { double, i32 }
@table = global [1 x ptr] [ptr @taken]
define double @direct(ptr byval(%S) align 8 %s) memory(none) {
  store double 1.0, ptr %s
  %v = load double, ptr %s
  ret double %v
}
define double @taken(ptr byval(%S) align 8 %s, i8 signext %c) {
  %v = load double, ptr %s
  ret double %v
}
define double @f(ptr %s, ptr %p) {
  %a = tail call double @direct(ptr byval(%S) align 8 %s)
  %b = call double @taken(ptr byval(%S) align 8 %s, i8 signext 3)
  %c = call double %p(ptr byval(%S) align 8 %s, i8 signext 3)
  ret double %a
}
"""
    module = parse_module(text)
    pass_pointers(module)
    changed = printed(module)
    assert "define double @direct(ptr %s) {" in changed  # it reads memory of others now
    assert "define double @taken(ptr byval(%S) align 8 %s, i8 signext %c)" in changed
    assert changed.count("@llvm.memcpy.p0.p0.i64(ptr %by.value, ptr %s, i64 16") == 2
    assert "%a = call double @direct(ptr %s)" in changed  # no tail call: that could not be given a local variable
    assert "%b = call double @irad.body.taken(ptr %s, i8 signext 3)" in changed
    assert "%c = call double %p(ptr byval(%S) align 8 %s, i8 signext 3)" in changed


def test_calls_that_may_write_to_memory_they_are_not_handed_are_marked():
    text = """\
@k = global double 1.0
@p = global ptr null
declare void @unknown()
declare void @pure() memory(none)
declare void @local(ptr) memory(argmem: readwrite)
declare double @sin(double)
declare ptr @malloc(i64)
define void @named() {
  store double 2.0, ptr @k
  ret void
}
define void @through(double %x) {
  %q = load ptr, ptr @p
  store double %x, ptr %q
  ret void
}
define void @handed(ptr %q) {
  %m = call ptr @malloc(i64 8)
  store double 2.0, ptr %m
  store double 2.0, ptr %q
  ret void
}
define void @calls() {
  call void @named()
  ret void
}
define void @f(ptr %q, double %x) {
  call void @unknown()
  call void @pure()
  call void @local(ptr %q)
  %s = call double @sin(double %x)
  call void @named()
  call void @through(double %x)
  call void @handed(ptr %q)
  call void @calls()
  call void %q()
  call void asm sideeffect "", "~{memory}"()
  call void asm sideeffect "nop", ""()
  ret void
}
"""
    module = parse_module(text)
    mark_external_clobbers(module, Registry.of(*ALL))
    calls = [inst for inst in module.functions["f"].instructions() if isinstance(inst, Call)]
    marked = [getattr(call.callee, "name", None) for call in calls if '"irad.elsewhere"' in call.attributes]
    assert marked == ["unknown", "named", "through", "calls", "q", None]


# ------------------------------------------------------------------------------------------------ memory


def memory_of(body: str, head: str = "") -> MemoryType | None:
    """What is deduced of the parameter of a function."""
    copy = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
    text = f"{head}\n{copy}\ndefine void @f(ptr %p, i64 %i) {{\n{body}\n}}\n"
    function = parse_module(text).functions["f"]
    assert function.module is not None
    return InferredMemory(function.module).of_argument(function.params[0], function.params[0])


def test_memory_that_is_accessed_as_one_type_of_number_is_an_array_of_it():
    assert memory_of("%a = getelementptr double, ptr %p, i64 %i\n%v = load double, ptr %a\nret void") == DOUBLES
    single = MemoryType(4, ((0, "float"),))
    assert memory_of("store float 1.0, ptr %p\nret void") == single


def test_memory_with_pointers_or_integers_is_not_described():
    assert memory_of("%v = load double, ptr %p\n%w = load ptr, ptr %p\nret void") is None
    assert memory_of("%v = load double, ptr %p\n%w = load i32, ptr %p\nret void") is None
    assert memory_of("ret void") is None


def test_a_plain_structure_is_described():
    body = "%a = getelementptr %S, ptr %p, i64 %i, i32 1\n%v = load double, ptr %a\nret void"
    assert memory_of(body, "%S = type { i32, double }") == MemoryType(16, ((0, "i32"), (8, "double")))
    assert memory_of(body, "%S = type { ptr, double }") is None
    one = "%a = getelementptr %S, ptr %p, i64 0, i32 1\n%v = load double, ptr %a\nret void"
    alone = MemoryType(16, ((0, "i32"), (8, "double")), single=True)  # nothing is known of what may lie after it
    assert memory_of(one, "%S = type { i32, double }") == alone
    assert memory_of(body, "%S = type { %union.U, double }\n%union.U = type { i64 }") is None


def test_the_other_end_of_a_copy_tells():
    body = "%l = alloca [4 x double]\ncall void @llvm.memcpy.p0.p0.i64(ptr %l, ptr %p, i64 32, i1 false)\nret void"
    assert memory_of(body) == DOUBLES


def test_pointers_are_followed_through_variables_and_calls():
    head = "define void @g(ptr %q) {\n  %v = load double, ptr %q\n  ret void\n}"
    body = "%s = alloca ptr\nstore ptr %p, ptr %s\n%l = load ptr, ptr %s\ncall void @g(ptr %l)\nret void"
    assert memory_of(body, head) == DOUBLES


# ------------------------------------------------------------------------------------------------ exceptions, threads

THROWING = """\
#include <stdexcept>
#include <vector>
extern "C" double __enzyme_autodiff(void *, ...);
__attribute__((noinline)) static double g(double x) { if (x < 0) throw std::runtime_error("negative"); return x * x; }
double f(double x) { std::vector<double> v(3, x); return g(v[1]) * 2; }
int main() {
    if (__enzyme_autodiff((void *)f, 3.0) != 12) return 1;
    try { __enzyme_autodiff((void *)f, -1.0); } catch (...) { return 2; }
    return 3;
}
"""


@needs_clang
@pytest.mark.parametrize("level", [0, 2])
def test_an_exception_that_leaves_a_derivative_ends_the_process(level: int, tmp_path: Path):
    source = tmp_path / "throwing.cpp"
    source.write_text(THROWING)
    done: subprocess.CompletedProcess[str] = run(differentiated(bitcode_of(source, level, tmp_path)), tmp_path)
    assert done.returncode == -6
    assert done.stderr == "irad: an exception left a function that is being differentiated\n"
