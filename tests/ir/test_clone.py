import gc
import time

import llvmlite.binding as llvm
import pytest

from irad.errors import InternalError
from irad.ir import types
from irad.ir.clone import clone_function_body, clone_instruction
from irad.ir.instructions import Instruction, Phi
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.values import ConstantInt, MetadataOperand, const_int
from irad.ir.verifier import verify

SHAPES = """
declare i32 @personality(...)
declare i64 @g(i64, ptr)

define i64 @f(i64 %n, ptr %p, double %x, <4 x double> %v) personality ptr @personality {
entry:
  %slot = alloca i64, i64 %n, align 16
  %pair = insertvalue { i64, double } undef, i64 %n, 0
  %part = extractvalue { i64, double } %pair, 0
  %lane = extractelement <4 x double> %v, i64 1
  %both = insertelement <4 x double> %v, double %lane, i64 %n
  %mixed = shufflevector <4 x double> %both, <4 x double> %v, <4 x i32> <i32 0, i32 5, i32 2, i32 7>
  %minus = fneg nnan double %x
  %wide = sitofp i64 %n to double
  %less = fcmp fast olt double %minus, %wide
  %frozen = freeze i1 %less
  %old = atomicrmw volatile add ptr %p, i64 %part acq_rel, align 8
  %swap = cmpxchg weak ptr %p, i64 %old, i64 %n seq_cst monotonic, align 8
  fence acquire
  switch i64 %n, label %loop [
    i64 1, label %calls
    i64 2, label %calls
  ]

loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %s = phi double [ 0.000000e+00, %entry ], [ %sum, %latch ]
  br label %latch

latch:
  %at = getelementptr inbounds double, ptr %p, i64 %i
  %value = load double, ptr %at, align 8, !tbaa !0
  %sum = fadd reassoc double %s, %value
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %calls, !prof !1

calls:
  %c = phi i64 [ 1, %entry ], [ 1, %entry ], [ %next, %latch ]
  %chosen = select i1 %frozen, i64 %c, i64 7
  store i64 %chosen, ptr %slot, align 8
  %t = tail call fastcc i64 @g(i64 noundef %chosen, ptr nonnull %slot) #0 [ "deopt"(i64 %n) ]
  %r = invoke i64 @g(i64 %t, ptr %p)
          to label %done unwind label %pad

pad:
  %l = landingpad { ptr, i32 }
          cleanup
          catch ptr null
  resume { ptr, i32 } %l

done:
  ret i64 %r
}

attributes #0 = { nounwind }

!0 = !{!2, !2, i64 0}
!1 = !{!"branch_weights", i32 1, i32 2}
!2 = !{!"double", !3}
!3 = !{!"root"}
"""


def copied(text, suffix="", name="f"):
    """The module with `@copy`, cloned from its function ``name``."""
    module = parse_module(text)
    source = module.functions[name]
    target = module.define("copy", source.function_type, [p.name for p in source.params])
    target.operands = source.operands
    mapped = clone_function_body(source, target, dict(zip(source.params, target.params, strict=True)), suffix)
    return module, source, target, mapped


def body(module, name):
    """The lines of a function's body."""
    text = print_module(module)
    start = text.index(f"@{name}(", text.index(f"define i64 @{name}(") if f"define i64 @{name}(" in text else 0)
    return text[text.index("{\n", start) : text.index("\n}\n", start)]


def fastcc_callee(text):
    return text.replace("declare i64 @g", "declare fastcc i64 @g").replace("invoke i64", "invoke fastcc i64")


def test_a_copy_of_every_shape_prints_the_same():
    module, source, target, _ = copied(fastcc_callee(SHAPES))
    verify(module)
    assert body(module, "copy") == body(module, "f")
    assert [type(i) for i in target.instructions()] == [type(i) for i in source.instructions()]
    llvm.parse_assembly(print_module(module)).verify()


def test_copies_know_their_origin_and_share_nothing_that_changes():
    _, source, target, mapped = copied(fastcc_callee(SHAPES))
    for inst, copy in zip(source.instructions(), target.instructions(), strict=True):
        assert mapped[inst] is copy
        assert copy.origin is inst
        for field in ("users", "operands", "metadata", "targets"):
            assert getattr(copy, field) is not getattr(inst, field)
        if isinstance(inst, Phi):
            assert isinstance(copy, Phi)
            assert copy.blocks is not inst.blocks
    for block, twin in zip(source.blocks, target.blocks, strict=True):
        assert mapped[block] is twin


def test_editing_the_copy_leaves_the_source_alone():
    module, _, target, _ = copied(fastcc_callee(SHAPES))
    before = body(module, "f")
    for inst in target.instructions():
        inst.metadata.clear()
        inst.set_operands([const_int(types.I64, 0)] * len(inst.operands))
        inst.targets.clear()
        if isinstance(inst, Phi):
            inst.blocks.clear()
    target.blocks.clear()
    assert body(module, "f") == before


def test_a_suffix_names_blocks_and_values():
    _, source, target, _ = copied(fastcc_callee(SHAPES), ".again")
    assert [b.name for b in target.blocks] == [f"{b.name}.again" for b in source.blocks]
    expected = [i.name and f"{i.name}.again" for i in source.instructions()]
    assert [i.name for i in target.instructions()] == expected


def test_a_body_can_be_copied_into_its_own_function():
    module = parse_module("define i64 @f(i64 %n) {\nentry:\n  %d = add i64 %n, %n\n  ret i64 %d\n}\n")
    (function,) = module.defined_functions()
    mapped = clone_function_body(function, function, {function.params[0]: const_int(types.I64, 21)}, ".in")
    assert [b.name for b in function.blocks] == ["entry", "entry.in"]
    copy = mapped[function.blocks[0].instructions[0]]
    assert isinstance(copy, Instruction)
    assert [v.value for v in copy.operands if isinstance(v, ConstantInt)] == [21, 21]
    verify(function)


def test_globals_can_be_replaced():
    module = parse_module("declare void @a()\ndeclare void @b()\ndefine void @f() {\n  call void @a()\n  ret void\n}\n")
    source, a, b = (module.functions[name] for name in "fab")
    target = module.define("copy", source.function_type)
    clone_function_body(source, target, {a: b})
    assert target.entry.instructions[0].operands == [b]
    assert len(a.users) == len(b.users) == 1
    verify(module)


def test_a_value_wrapped_in_metadata_is_mapped():
    text = """
declare void @llvm.dbg.value(metadata, metadata, metadata)
define void @f(i64 %n) {
  %m = add i64 %n, 1
  call void @llvm.dbg.value(metadata i64 %m, metadata !0, metadata !DIExpression())
  ret void
}
!0 = !{}
"""
    _, _, target, _ = copied(text)
    first, call, _ = target.entry.instructions
    wrapped = call.operands[0]
    assert isinstance(wrapped, MetadataOperand)
    assert wrapped.value is first


def test_a_parameter_without_replacement_is_an_error():
    module = parse_module("define i64 @f(i64 %n) {\n  ret i64 %n\n}\n")
    (source,) = module.defined_functions()
    with pytest.raises(InternalError, match="parameter %n needs a replacement"):
        clone_function_body(source, module.define("copy", source.function_type), {})


def test_block_addresses_are_refused():
    text = "define ptr @f() {\n  br label %there\nthere:\n  ret ptr blockaddress(@f, %there)\n}\n"
    with pytest.raises(InternalError, match="address of block %there"):
        copied(text)


def test_one_instruction_is_copied_detached():
    module = parse_module("define i64 @f(i64 %n) {\n  %d = sub nsw i64 %n, 3, !x !0\n  ret i64 %d\n}\n!0 = !{}\n")
    (function,) = module.defined_functions()
    source = function.entry.instructions[0]
    copy = clone_instruction(source, {function.params[0]: const_int(types.I64, 8)})
    assert copy.block is None
    assert (copy.opcode, copy.flags, copy.metadata) == ("sub", ("nsw",), {"x": "!0"})
    assert [v.value for v in copy.operands] == [8, 3]
    same = clone_instruction(source, {})
    assert same.operands == source.operands
    assert function.params[0].users == {source: 1, same: 1}


def test_copying_costs_less_than_reading():
    """It must not grow faster than the function; compared with the parser, so that slow machines do not matter."""
    lines = "".join(f"  %v{i} = fadd double %v{i - 1}, %x, !dbg !0\n" for i in range(1, 10_000))
    text = f"define double @f(double %x) {{\n  %v0 = fneg double %x\n{lines}  ret double %v9999\n}}\n!0 = !{{}}\n"
    reading, copying = [], []
    gc.disable()
    try:
        for _ in range(3):
            begin = time.process_time()
            module = parse_module(text)
            read = time.process_time()
            (source,) = module.defined_functions()
            target = module.define("copy", source.function_type)
            clone_function_body(source, target, {source.params[0]: target.params[0]})
            reading.append(read - begin)
            copying.append(time.process_time() - read)
    finally:
        gc.enable()
    assert min(copying) < min(reading)
