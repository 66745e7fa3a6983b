from __future__ import annotations

from irad.ir import types
from irad.ir.instructions import Call
from irad.ir.text.parser import parse_module
from irad.passes.callees import Pointer, Unknown, callees_first, effects_of, is_remote, mark_remote, resolve
from irad.rules.mpi import RULES
from irad.ruleset.interface import CallRule, Elementwise, Inactive
from irad.ruleset.registry import Registry
from tests.passes.units import canonical, parsed, registry

TEXT = """
declare double @exp(double)
declare double @mystery(double)
declare void @NRT_incref(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @f(double %x, ptr %p, ptr %q) {
  %a = call double @exp(double %x)
  %b = call double @mystery(double %x)
  call void @NRT_incref(ptr %p)
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 8, i1 false)
  %c = call double @g(double %x)
  %d = call double @sin(double %x)
  %e = call double %p(double %x)
  ret void
}
define double @g(double %x) {
  ret double %x
}
define double @sin(double %x) {
  ret double %x
}
"""


def test_what_calls_call():
    module, f = parsed(TEXT)
    calls = [i for i in f.instructions() if isinstance(i, Call)]
    exp, mystery, incref, memcpy, g, sin, indirect = (resolve(c, registry()) for c in calls)
    assert isinstance(exp, Elementwise)
    assert exp.name == "exp"
    assert mystery == Unknown("mystery")
    assert isinstance(incref, Inactive)
    assert isinstance(memcpy, CallRule)
    assert g is module.functions["g"]
    assert isinstance(sin, Elementwise)  # a rule wins over a body
    assert indirect == Pointer(types.function_type(types.DOUBLE, [types.DOUBLE]))


def test_effects_are_known_of_rules_only():
    _, f = parsed(TEXT)
    calls = [i for i in f.instructions() if isinstance(i, Call)]
    exp, mystery, _, memcpy, g, *_ = (effects_of(resolve(c, registry())) for c in calls)
    assert exp is not None
    assert not exp.other
    assert exp.writes == frozenset()
    assert mystery is None
    assert g is None
    assert memcpy is not None
    assert memcpy.copies == ((0, 1),)


CALLERS = """
declare void @irad.mpi.barrier()
define void @f() {
  call void @g()
  call void @plain()
  ret void
}
define void @g() {
  call void @again(i64 2)
  ret void
}
define void @again(i64 %n) {
entry:
  %more = icmp sgt i64 %n, 0
  br i1 %more, label %deeper, label %end
deeper:
  call void @back(i64 %n)
  br label %end
end:
  call void @irad.mpi.barrier()
  ret void
}
define void @back(i64 %n) {
  %m = sub i64 %n, 1
  call void @again(i64 %m)
  ret void
}
define void @plain() {
  ret void
}
"""


def test_a_function_is_remote_if_what_it_calls_is_recursive_or_not():
    module = parse_module(canonical(CALLERS))
    mark_remote(list(module.functions.values()), Registry.of(*RULES))
    assert [each.name for each in module.defined_functions() if is_remote(each)] == ["f", "g", "again", "back"]


def test_callees_come_first():
    functions = parse_module(canonical(CALLERS)).defined_functions()
    assert [each.name for each in callees_first(functions)] == ["back", "again", "g", "plain", "f"]
    assert [each.name for each in callees_first(functions[:2])] == ["g", "f"]
