import pytest

from irad.errors import InternalError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Binary, Br, Call, Cast, Instruction, Load, Phi, Ret, Store
from irad.ir.module import Function, Module
from irad.ir.text.parser import parse_module
from irad.ir.types import DOUBLE, I1, I32, I64, PTR
from irad.ir.values import const_float, const_int
from irad.ir.verifier import describe, verify

LOOP = """
declare void @g(i64)
define double @f(i64 %n, ptr %p) {
entry:
  %start = add i64 %n, 1
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ 0.0, %entry ], [ %sum, %loop ]
  %at = getelementptr double, ptr %p, i64 %i
  %value = load double, ptr %at, align 8
  %sum = fadd double %s, %value
  %next = add i64 %i, 1
  call void @g(i64 %i)
  %more = icmp slt i64 %next, %start
  br i1 %more, label %loop, label %done

done:
  store double %sum, ptr %p, align 8
  ret double %sum
}
"""


@pytest.fixture
def module():
    return parse_module(LOOP)


def function_of(module: Module) -> Function:
    return module.functions["f"]


def named(module: Module, name: str) -> Instruction:
    return next(i for i in function_of(module).instructions() if i.name == name)


def refuses(unit: Module | Function, *parts: str) -> None:
    with pytest.raises(InternalError) as caught:
        verify(unit)
    for part in parts:
        assert part in str(caught.value)


def test_sound_ir_passes(module):
    verify(module)
    verify(function_of(module))


def test_a_fault_is_named_by_function_block_and_instruction(module):
    named(module, "sum").set_operand(1, const_float(types.FLOAT, 1.0))
    refuses(module, "@f", "block %loop", "its operands are (double, float), they must be (double, double)")
    assert describe(named(module, "sum")) == "%sum = Binary(fadd)"


# ------------------------------------------------------------------------------------------------ blocks


def test_a_block_without_terminator(module):
    entry = function_of(module).entry
    entry.instructions.pop()
    refuses(module, "block %entry", "no terminator")


def test_an_empty_block(module):
    function_of(module).add_block("new")
    refuses(module, "block %new", "is empty")


def test_a_terminator_in_the_middle(module):
    entry = function_of(module).entry
    entry.insert(0, Br(types.VOID, targets=[function_of(module).blocks[1]]))
    refuses(module, "block %entry", "terminator stands in the middle")


def test_a_phi_behind_other_instructions(module):
    loop = function_of(module).blocks[1]
    loop.instructions.insert(3, loop.instructions.pop(0))
    refuses(module, "%i = Phi", "after other instructions")


def test_a_branch_to_the_entry(module):
    function = function_of(module)
    function.blocks[1].terminator.targets[0] = function.entry
    refuses(module, "the entry has predecessors")


def test_a_target_in_another_function(module):
    other = Function(PTR, "other").add_block("elsewhere")
    function_of(module).entry.terminator.targets[0] = other
    refuses(module, "target %elsewhere is not in the function")


def test_targets_of_what_is_no_terminator(module):
    named(module, "sum").targets.append(function_of(module).blocks[1])
    refuses(module, "has targets but is not a terminator")


def test_wrong_parents(module):
    function = function_of(module)
    named(module, "sum").block = function.entry
    refuses(module, "belongs to another block")
    named(module, "sum").block = function.blocks[1]
    function.blocks[1].function = None
    refuses(module, "block %loop", "belongs to another function")


def test_an_instruction_listed_twice(module):
    entry = function_of(module).entry
    entry.instructions.insert(0, entry.instructions[0])
    refuses(module, "listed twice")


def test_a_block_listed_twice(module):
    function = function_of(module)
    function.blocks.append(function.blocks[1])
    refuses(module, "a block is listed twice")


def test_wrong_parameters_and_names(module):
    function = function_of(module)
    removed = function.params.pop()
    refuses(module, "its parameters do not fit")
    function.params.append(removed)
    function.name = "h"
    refuses(module, "@h is listed as @f")


# ------------------------------------------------------------------------------------------------ phis


def phi_of(module: Module) -> Phi:
    phi = named(module, "i")
    assert isinstance(phi, Phi)
    return phi


def test_a_missing_incoming_value(module):
    phi = phi_of(module)
    phi.blocks.pop()
    phi.set_operands(phi.operands[:1])
    refuses(module, "%i = Phi", "it receives from %entry; the predecessors are %entry, %loop")


def test_more_blocks_than_values(module):
    phi_of(module).blocks.append(function_of(module).entry)
    refuses(module, "2 values from 3 blocks")


def test_an_incoming_value_of_another_type(module):
    phi_of(module).set_operand(0, const_int(I32, 0))
    refuses(module, "receives a i32 from %entry")


def test_an_incoming_value_that_is_not_available(module):
    phi_of(module).set_operand(0, named(module, "next"))
    refuses(module, "%next = Binary(add) is not available at the end of %entry")


def test_one_value_for_each_edge_and_equal_ones():
    text = """
define i64 @f(i64 %n, i64 %m) {
entry:
  switch i64 %n, label %a [
    i64 1, label %a
  ]
a:
  %x = phi i64 [ %n, %entry ], [ %n, %entry ]
  ret i64 %x
}
"""
    module = parse_module(text)
    verify(module)
    named(module, "x").set_operand(0, function_of(module).params[1])
    refuses(module, "different values from %entry")


# ------------------------------------------------------------------------------------------------ operands


def test_a_use_before_the_definition(module):
    loop = function_of(module).blocks[1]
    loop.instructions.remove(named_sum := named(module, "sum"))
    loop.instructions.insert(2, named_sum)
    refuses(module, "%sum = Binary(fadd)", "%value = Load is not available here")


def test_a_use_that_is_not_dominated(module):
    named(module, "start").set_operand(0, named(module, "next"))
    refuses(module, "block %entry", "%next = Binary(add) is not available here")


def test_a_use_in_an_unreachable_block_needs_no_dominance(module):
    function = function_of(module)
    builder = Builder(function.add_block("dead"))
    late = named(module, "next")
    builder.add(late, late)
    builder.ret(const_float(DOUBLE, 0.0))
    verify(module)


def test_an_operand_of_another_function(module):
    other = parse_module(LOOP)
    named(module, "next").set_operand(0, named(other, "next"))
    refuses(module, "its operand %next = Binary(add) is not in the function")
    named(module, "next").set_operand(0, function_of(other).params[0])
    refuses(module, "its operand %n is a parameter of another function")


def test_a_callee_of_another_module(module):
    call = next(i for i in function_of(module).instructions() if isinstance(i, Call))
    call.set_operand(1, parse_module(LOOP).functions["g"])
    refuses(module, "@g is of another module")


def test_the_result_of_an_invoke_belongs_to_its_normal_edge():
    text = """
declare i64 @g()
define i64 @f() personality ptr null {
entry:
  %r = invoke i64 @g() to label %join unwind label %pad
pad:
  %l = landingpad { ptr, i32 } cleanup
  br label %join
join:
  %v = phi i64 [ %r, %entry ], [ 0, %pad ]
  ret i64 %v
}
"""
    module = parse_module(text)
    verify(module)
    named(module, "v").set_operand(1, named(module, "r"))
    refuses(module, "%r = Invoke is not available at the end of %pad")


# ------------------------------------------------------------------------------------------------ users


def test_a_user_that_was_forgotten(module):
    named(module, "sum").users.popitem()
    refuses(module, "%sum is used 1 times by", "0 are recorded")


def test_a_user_that_is_gone(module):
    call = next(i for i in function_of(module).instructions() if isinstance(i, Call))
    assert call.block is not None
    call.block.instructions.remove(call)
    refuses(module, "%i = Phi", "is used by Call, which is not in the function")


def test_a_user_counted_wrongly(module):
    named(module, "start").users[named(module, "more")] = 2
    refuses(module, "%start is used 1 times by %more = ICmp(slt), 2 are recorded")


def test_users_of_globals(module):
    callee = module.functions["g"]
    stray = Call(types.VOID, operands=[const_int(I64, 1), callee], function_type=callee.function_type)
    refuses(module, "@g is used by Call, which is in no function")
    stray.set_operands(())
    verify(module)
    (call,) = callee.users
    callee.users[call] = 3
    refuses(module, "%g is used 1 times by Call, 3 are recorded")
    callee.users.clear()
    refuses(module, "%g is used 1 times by Call, 0 are recorded")
    callee.users = {call: 1, function_of(module).entry.terminator: 1}
    refuses(module, "@g is not used 1 times by Br")


# ------------------------------------------------------------------------------------------------ shapes

SHAPES = """
declare i64 @g(i64, double)
declare fastcc void @quick()
define i64 @f(i64 %n, i32 %m, double %x, float %y, ptr %p, i1 %c, <2 x i64> %v,
              <2 x double> %w, { i64, [2 x double] } %a) {
entry:
"""
FAULTS = [
    ("%r = add i64 %n, %n", 1, "m", "(i64, i32)"),
    ("%r = fadd double %x, %x", 0, "n", "(i64, double)"),
    ("%r = fneg double %x", 0, "y", "(float)"),
    ("%r = icmp eq i64 %n, %n", 1, "m", "(i64, i32), they must be (i64, i64)"),
    ("%r = fcmp olt double %x, %x", 0, "y", "(float, double), they must be (float, float)"),
    ("%r = select i1 %c, i64 %n, i64 %n", 0, "m", "(i32, i64, i64)"),
    ("%r = select i1 %c, i64 %n, i64 %n", 2, "x", "(i1, i64, double)"),
    ("%r = trunc i64 %n to i32", 0, "m", "trunc from i32 to i32"),
    ("%r = sext i32 %m to i64", 0, "n", "sext from i64 to i64"),
    ("%r = sitofp i64 %n to double", 0, "x", "expected a type of class IntType, got double"),
    ("%r = fpext float %y to double", 0, "m", "expected a type of class FloatType, got i32"),
    ("%r = ptrtoint ptr %p to i64", 0, "n", "expected a type of class PointerType, got i64"),
    ("%r = sitofp <2 x i64> %v to <2 x double>", 0, "n", "not as many lanes"),
    ("%r = load i64, ptr %p", 0, "n", "i64 is not a pointer"),
    ("store i64 %n, ptr %p", 1, "n", "i64 is not a pointer"),
    ("%r = getelementptr i64, ptr %p, i64 %n", 1, "x", "expected a type of class IntType, got double"),
    ("%r = getelementptr i64, ptr %p, i64 %n", 1, "v", "its result is ptr"),
    ("%r = getelementptr i64, ptr %p, i64 %n", 0, "n", "expected a type of class PointerType, got i64"),
    ("%r = alloca i64, i64 %n", 0, "x", "expected a type of class IntType, got double"),
    ("%r = atomicrmw add ptr %p, i64 %n seq_cst", 1, "m", "(ptr, i32), they must be (ptr, i64)"),
    ("%r = cmpxchg ptr %p, i64 %n, i64 %n seq_cst seq_cst", 2, "m", "(ptr, i64, i32), they must be (ptr, i64, i64)"),
    ("%r = extractvalue { i64, [2 x double] } %a, 1, 0", 0, "n", "no element (1, 0)"),
    ("%r = insertvalue { i64, [2 x double] } %a, double %x, 1, 1", 1, "n", "[2 x double] }, i64)"),
    ("%r = extractelement <2 x i64> %v, i64 %n", 0, "n", "not a vector"),
    ("%r = extractelement <2 x i64> %v, i64 %n", 0, "w", "its result is i64, it must be double"),
    ("%r = insertelement <2 x i64> %v, i64 %n, i32 %m", 1, "x", "(<2 x i64>, double, i32)"),
    (
        "%r = shufflevector <2 x i64> %v, <2 x i64> %v, <2 x i32> zeroinitializer",
        1,
        "w",
        "(<2 x i64>, <2 x double>, <2 x i32>), they must be (<2 x i64>, <2 x i64>,",
    ),
    ("%r = call i64 @g(i64 %n, double %x)", 1, "n", "(i64, i64), they must be (i64, double)"),
    ("%r = call i64 @g(i64 %n, double %x)", 2, "n", "i64 is not a pointer"),
]


@pytest.mark.parametrize(("line", "index", "parameter", "message"), FAULTS)
def test_operands_of_a_wrong_type(line, index, parameter, message):
    """Each instruction is sound first, and is refused with one operand replaced by a parameter of another type."""
    module = parse_module(f"{SHAPES}  {line}\n  ret i64 %n\n}}\n")
    verify(module)
    function = function_of(module)
    wrong = next(p for p in function.params if p.name == parameter)
    function.entry.instructions[0].set_operand(index, wrong)
    refuses(module, "block %entry", message)


@pytest.mark.parametrize(
    ("ending", "index", "parameter", "message"),
    [
        ("ret i64 %n", 0, "x", "(double), they must be (i64)"),
        ("br i1 %c, label %end, label %end", 0, "n", "(i64), they must be (i1)"),
        ("switch i64 %n, label %end [ i64 1, label %end ]", 0, "m", "(i32, i64)"),
        ("indirectbr ptr %p, [ label %end ]", 0, "n", "i64 is not a pointer"),
    ],
)
def test_terminators_of_a_wrong_type(ending, index, parameter, message):
    module = parse_module(f"{SHAPES}  {ending}\nend:\n  ret i64 0\n}}\n")
    verify(module)
    function = function_of(module)
    function.entry.terminator.set_operand(index, next(p for p in function.params if p.name == parameter))
    refuses(module, "block %entry", message)


def test_missing_operands_results_and_targets():
    def broken(*instructions: Instruction) -> Module:
        module = Module()
        block = module.define("f", types.function_type(types.VOID, [])).add_block("b")
        for inst in instructions:
            block.append(inst)
        return module

    ending = Ret(types.VOID)
    refuses(broken(Load(I64), ending), "it has 0 operands")
    refuses(broken(Store(types.VOID, operands=[const_int(I64, 1)]), ending), "it has 1 operands")
    refuses(broken(Binary(I64, operands=[const_int(I64, 1)]), ending), "it has 1 operands")
    refuses(broken(Cast(I64, opcode="frob", operands=[const_int(I64, 1)]), ending), "unknown opcode")
    refuses(broken(Call(types.VOID), ending), "it has no callee")
    refuses(broken(Br(types.VOID)), "it has 0 targets")
    refuses(broken(Ret(types.VOID, operands=[const_int(I1, 1)])), "they must be ()")


def test_calls_must_agree_with_the_convention_and_the_attributes():
    module = parse_module(
        f"{SHAPES}  call fastcc void @quick()\n  %r = call i64 @g(i64 %n, double %x)\n  ret i64 %r\n}}\n"
    )
    verify(module)
    quick, call, _ = function_of(module).entry.instructions
    assert isinstance(quick, Call)
    assert isinstance(call, Call)
    quick.convention = None
    refuses(module, "its convention is None, that of @quick is fastcc")
    quick.convention = "fastcc"
    call.argument_attributes = (("noundef",),)
    refuses(module, "attributes for 1 of 2 arguments")
    call.argument_attributes = ()
    call.type = I32
    refuses(module, "its result is i32, it must be i64")
