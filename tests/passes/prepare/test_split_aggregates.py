"""Phis and selects of descriptors become phis and selects of their parts."""

from __future__ import annotations

import numpy as np
from numba import njit

from irad.ir.instructions import ExtractValue, Freeze, InsertValue, Load, Phi, Select, Store
from irad.ir.text.printer import print_module
from irad.ir.values import ConstantInt
from irad.ir.verifier import verify
from irad.passes.memory.addresses import offset_modulo
from irad.testing.check_gradient import check_gradient
from tests.passes.units import canonical, parsed

MERGE = """define double @f(i1 %c, ptr %a, ptr %b) {
entry:
  %x = insertvalue { ptr, i64 } poison, ptr %a, 0
  %x2 = insertvalue { ptr, i64 } %x, i64 3, 1
  br i1 %c, label %left, label %end
left:
  %y = insertvalue { ptr, i64 } poison, ptr %b, 0
  %y2 = insertvalue { ptr, i64 } %y, i64 4, 1
  br label %end
end:
  %d = phi { ptr, i64 } [ %x2, %entry ], [ %y2, %left ]
  %p = extractvalue { ptr, i64 } %d, 0
  %v = load double, ptr %p
  ret double %v
}"""


SWITCH = """define double @f(i64 %n, {ptr, i64} %d) {
entry:
  switch i64 %n, label %other [ i64 1, label %end i64 2, label %end ]
other:
  br label %end
end:
  %e = phi { ptr, i64 } [ %d, %entry ], [ %d, %entry ], [ zeroinitializer, %other ]
  %p = extractvalue { ptr, i64 } %e, 0
  %v = load double, ptr %p
  ret double %v
}"""


def test_the_edges_of_a_switch_agree_on_a_part():
    module, _ = parsed(SWITCH)
    verify(module)
    canonical(str(print_module(module)))  # LLVM refuses a phi with two values from one block


def test_a_phi_of_a_descriptor_becomes_phis_of_its_parts():
    module, function = parsed(MERGE)
    verify(module)
    phis = [i for i in function.instructions() if isinstance(i, Phi)]
    assert [str(p.type) for p in phis] == ["ptr", "i64"]
    assert [v.name for v in phis[0].operands] == ["a", "b"]
    assert not any(isinstance(i, ExtractValue | InsertValue) for i in function.instructions())


CONSTANT = """define double @f(i1 %c, ptr %a, ptr %b) {
entry:
  %x = insertvalue { ptr, { i64, ptr }, ptr } { ptr null, { i64, ptr } { i64 5, ptr null }, ptr undef }, ptr %a, 2
  br i1 %c, label %left, label %end
left:
  %y = insertvalue { ptr, { i64, ptr }, ptr } { ptr null, { i64, ptr } { i64 6, ptr null }, ptr undef }, ptr %b, 2
  br label %end
end:
  %d = phi { ptr, { i64, ptr }, ptr } [ %x, %entry ], [ %y, %left ]
  %p = extractvalue { ptr, { i64, ptr }, ptr } %d, 2
  %i = extractvalue { ptr, { i64, ptr }, ptr } %d, 1, 0
  %q = getelementptr double, ptr %p, i64 %i
  %v = load double, ptr %q
  ret double %v
}"""


def test_parts_of_a_constant_are_known():
    """LLVM makes one constant of the first fields of a descriptor, where these are known."""
    module, function = parsed(CONSTANT)
    verify(module)
    assert not any(isinstance(i, ExtractValue | InsertValue) for i in function.instructions())
    (size,) = (i for i in function.instructions() if isinstance(i, Phi) and str(i.type) == "i64")
    assert [v.value for v in size.operands if isinstance(v, ConstantInt)] == [5, 6]


def test_a_select_of_a_descriptor_becomes_selects_of_its_parts():
    text = MERGE.replace("br i1 %c, label %left, label %end", "br label %left")
    text = text.replace(
        "%d = phi { ptr, i64 } [ %x2, %entry ], [ %y2, %left ]", "%d = select i1 %c, { ptr, i64 } %x2, { ptr, i64 } %y2"
    )
    module, function = parsed(text)
    verify(module)
    selects = [i for i in function.instructions() if isinstance(i, Select)]
    assert [str(s.type) for s in selects] == ["ptr", "i64"]


def test_a_frozen_descriptor_has_frozen_parts():
    module, function = parsed(
        MERGE.replace(
            "%p = extractvalue { ptr, i64 } %d", "%e = freeze { ptr, i64 } %d\n  %p = extractvalue { ptr, i64 } %e"
        )
    )
    verify(module)
    (load,) = (i for i in function.instructions() if isinstance(i, Load))
    (pointer,) = load.operands
    assert isinstance(pointer, Freeze)
    assert isinstance(pointer.operands[0], Phi)
    assert str(pointer.type) == "ptr"


def test_loads_and_stores_of_aggregates_move_their_leaves():
    text = """define void @f(ptr %a, ptr %b) {
  %v = load { double, i8, ptr }, ptr %a, align 8
  store { double, i8, ptr } %v, ptr %b, align 8
  ret void
}"""
    module, function = parsed(text)
    verify(module)
    loads = [i for i in function.instructions() if isinstance(i, Load)]
    stores = [i for i in function.instructions() if isinstance(i, Store)]
    assert [(str(i.type), i.align) for i in loads] == [("double", 8), ("i8", 8), ("ptr", 8)]
    assert [s.operands[0] for s in stores] == loads


@njit
def bool_beside_array(x, y):
    return x * y, 3, True, np.array([x, y * y])


def test_a_result_with_padding_is_stored_whole():
    check_gradient(bool_beside_array, 1.5, 2.5)


@njit
def other_layout(m):
    x = np.ascontiguousarray(m[1:, ::-1])
    x[0, 0] = m[0, 0]
    return (x * x).sum()


def test_arrays_of_another_layout():
    check_gradient(other_layout, np.arange(24.0).reshape(4, 6))


def test_a_leaf_is_taken_out_step_by_step():
    """As LLVM takes an optional instance apart that it loaded whole."""
    text = """define double @f(ptr %a) {
  %whole = load { { { ptr, ptr } }, i8 }, ptr %a, align 8
  %value = extractvalue { { { ptr, ptr } }, i8 } %whole, 0
  %pair = extractvalue { { ptr, ptr } } %value, 0
  %data = extractvalue { ptr, ptr } %pair, 1
  %v = load double, ptr %data, align 8
  ret double %v
}"""
    module, function = parsed(text)
    verify(module)
    (read,) = (i for i in function.instructions() if isinstance(i, Load) and str(i.type) == "double")
    (data,) = read.operands
    assert isinstance(data, Load)
    assert offset_modulo(data.operands[0], None) == 8
