import llvmlite.binding
import pytest

from irad.errors import InternalError
from irad.ir import types
from irad.ir.instructions import (
    AnyInstruction,
    Binary,
    Br,
    Call,
    GetElementPtr,
    ICmp,
    Instruction,
    Load,
    Phi,
    Ret,
    Store,
    Switch,
    Unreachable,
)
from irad.ir.module import Function, Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import format_instruction, format_value, print_function, print_lines, print_module
from irad.ir.values import Parameter, Value, const_float, const_int, zero


def square(*names: str | None) -> Function:
    """`f(x) = (x · x) · (x · x)` with these names for the parameter and the two results."""
    function = Module().define("f", types.function_type(types.DOUBLE, (types.DOUBLE,)))
    x = function.params[0]
    block = function.add_block()
    first = Binary(types.DOUBLE, names[1], operands=[x, x], opcode="fmul")
    second = Binary(types.DOUBLE, names[2], operands=[first, first], opcode="fmul", flags=("fast",))
    x.name = names[0]
    for inst in (first, second, Ret(types.VOID, operands=[second])):
        block.append(inst)
    return function


def lines(function: Function) -> list[str]:
    return [line.strip() for line in print_function(function).splitlines()]


def test_a_module_built_by_hand():
    module = Module(source_name='a"b', triple="x86_64-unknown-linux-gnu")
    sin = module.declare("sin", types.function_type(types.DOUBLE, (types.DOUBLE,)), ("#0",))
    module.attribute_groups["#0"] = ("nounwind", "memory(none)")
    function = module.define("odd name", sin.function_type, ["x"])
    block = function.add_block("entry")
    call = Call(
        types.DOUBLE, "y", operands=[function.params[0], sin], function_type=sin.function_type,
        argument_attributes=(("noundef",),), attributes=("#0",), tail="tail",
    )  # fmt: skip
    call.metadata["dbg"] = "!3"
    block.append(call)
    block.append(Ret(types.VOID, operands=[call]))
    assert print_module(module) == (
        'source_filename = "a\\22b"\n'
        'target triple = "x86_64-unknown-linux-gnu"\n\n'
        "declare double @sin(double) #0\n\n"
        'define double @"odd name"(double %x) {\n'
        "entry:\n"
        "  %y = tail call double @sin(double noundef %x) #0, !dbg !3\n"
        "  ret double %y\n"
        "}\n\n"
        "attributes #0 = { nounwind memory(none) }\n"
    )


def test_unnamed_values_count_as_in_llvm():
    assert lines(square(None, None, None))[0:4] == [
        "define double @f(double %0) {",
        "%2 = fmul double %0, %0",
        "%3 = fmul fast double %2, %2",
        "ret double %3",
    ]


def test_void_instructions_take_no_number():
    text = (
        "define void @f(ptr %0) {\n  store i8 0, ptr %0, align 1\n  %2 = load i8, ptr %0, align 1\n"
        "  br label %3\n\n3:\n  unreachable\n}\n"
    )
    assert print_module(parse_module(text)) == text


def test_equal_names_get_suffixes():
    assert lines(square("x", "x", "x"))[0:3] == [
        "define double @f(double %x) {",
        "%x.1 = fmul double %x, %x",
        "%x.2 = fmul fast double %x.1, %x.1",
    ]


def test_names_are_cut_to_what_llvm_reads():
    long = "é" * 1500
    function = square("x", long + "a", long + "b")
    names = [line.partition(" =")[0] for line in lines(function) if "fmul" in line]
    assert len(set(names)) == 2
    parsed = llvmlite.binding.parse_assembly(print_function(function))
    assert len({i.name for b in parsed.get_function("f").blocks for i in b.instructions if i.opcode == "fmul"}) == 2


def test_a_suffix_does_not_take_a_name_that_is_in_use():
    assert lines(square("x", "x", "x.1"))[0:3] == [
        "define double @f(double %x) {",
        "%x.2 = fmul double %x, %x",
        "%x.1 = fmul fast double %x.2, %x.2",
    ]


def test_blocks_and_values_share_their_names():
    function = square("x", "a", "b")
    function.entry.name = "a"
    assert lines(function)[1:4] == ["a:", "%a.1 = fmul double %x, %x", "%b = fmul fast double %a.1, %a.1"]


def test_printing_changes_nothing():
    function = square("x", "x", None)
    print_function(function)
    assert [i.name for i in function.instructions()] == ["x", None, None]


@pytest.mark.parametrize("name", ["a b", "5", 'q"\\', "ä", "$x", "-", "a.b-c_d9", "\udcff"])
def test_names_survive(name):
    module = parse_module(print_function(square(name, "y", "z")))
    assert module.functions["f"].params[0].name == name


def test_names_that_need_quotes():
    assert lines(square("5", "a b", 'q"'))[0:3] == [
        'define double @f(double %"5") {',
        '%"a b" = fmul double %"5", %"5"',
        '%"q\\22" = fmul fast double %"a b", %"a b"',
    ]


def test_unnamed_globals_are_numbered():
    text = "@0 = global i8 0\n@named = global ptr @1\n@1 = alias i8, ptr @0\n\ndefine void @2() {\n  ret void\n}\n"
    module = parse_module(text)
    assert [g.name for g in module.globals.values()] == [None, "named"]
    assert "".join(print_module(module).split()) == "".join(text.split())


def test_an_operand_from_elsewhere_is_an_error():
    function = square("x", "y", "z")
    function.entry.instructions[0].set_operand(0, Parameter(types.DOUBLE, "stranger"))
    with pytest.raises(InternalError, match="not part of the printed function"):
        print_function(function)


# ------------------------------------------------------------------------------------------------ messages


def test_format_instruction_is_one_line():
    function = parse_module(
        "define void @f(i64 %x) {\na:\n  switch i64 %x, label %a [\n    i64 1, label %b\n  ]\n\nb:\n  ret void\n}\n"
    ).functions["f"]
    assert format_instruction(function.entry.terminator) == "switch i64 %x, label %a [ i64 1, label %b ]"


def test_format_instruction_keeps_strings():
    function = parse_module(
        'define void @f(ptr %x) {\n  call void asm "a  b", ""()\n  %"c  d" = load i8, ptr %x, align 1\n  ret void\n}\n'
    ).functions["f"]
    texts = [format_instruction(inst) for inst in function.instructions()]
    assert texts[:2] == ['call void asm "a  b", ""()', '%"c  d" = load i8, ptr %x, align 1']


def test_format_instruction_numbers_as_the_printer():
    function = square(None, None, None)
    assert format_instruction(function.entry.instructions[1]) == "%3 = fmul fast double %2, %2"


def test_format_instruction_of_detached_ones():
    x = Parameter(types.DOUBLE, "x")
    unnamed = Binary(types.DOUBLE, operands=[x, const_float(types.DOUBLE, 1.0)], opcode="fadd")
    user = Binary(types.DOUBLE, "y", operands=[unnamed, x], opcode="fmul")
    assert format_instruction(unnamed) == "%? = fadd double %x, 0x3FF0000000000000"
    assert format_instruction(user) == "%y = fmul double %?, %x"


def test_format_instruction_across_modules():
    """A clone may still use values of another function while a pass builds it."""
    source = square("x", None, None)
    clone = Store(types.VOID, operands=[source.entry.instructions[0], Parameter(types.PTR, "p")], align=8)
    target = square("x", "y", "z")
    target.entry.insert(0, clone)
    assert format_instruction(clone) == "store double %?, ptr %p, align 8"


def test_format_value():
    function = square(None, None, "z")
    first, second, _ = function.entry.instructions
    assert format_value(function.params[0]) == "double %0"
    assert format_value(first) == "double %2"
    assert format_value(second) == "double %z"
    assert format_value(function) == "ptr @f"
    assert format_value(function.entry) == "label %1"
    assert format_value(const_int(types.I1, 1)) == "i1 true"
    assert format_value(zero(types.array_type(2, types.I8))) == "[2 x i8] zeroinitializer"
    assert format_value(Parameter(types.PTR)) == "ptr %?"


def test_messages_are_possible_for_every_shape():
    """Even of instructions whose operands are of no sensible kind."""
    p: Value = Parameter(types.PTR, "p")
    block = Function(types.PTR, "f").add_block("b")
    made: list[tuple[AnyInstruction, str]] = [
        (Load(types.I8, "v", operands=[p]), "%v = load i8, ptr %p"),
        (GetElementPtr(types.PTR, "q", operands=[p, const_int(types.I64, 1)]), "%q = getelementptr i8, ptr %p, i64 1"),
        (ICmp(types.I1, "c", operands=[p, p], predicate="ne"), "%c = icmp ne ptr %p, %p"),
        (Phi(types.PTR, "m", operands=[p], blocks=[block]), "%m = phi ptr [ %p, %b ]"),
        (Br(types.VOID, targets=[block]), "br label %b"),
        (Switch(types.VOID, operands=[const_int(types.I8, 2)], targets=[block]), "switch i8 2, label %b [ ]"),
        (Unreachable(types.VOID), "unreachable"),
    ]
    for inst, text in made:
        assert isinstance(inst, Instruction)
        assert format_instruction(inst) == text


@pytest.mark.parametrize("names", [("x", "a", "b"), (None, None, None), ("x", "same", "same")])
def test_lines_are_those_of_the_function(names):
    function = square(*names)
    lines, spelled = print_lines(function)
    assert "\n".join(line.text for line in lines) == print_function(function).rstrip()
    assert [line.instruction for line in lines if line.instruction is not None] == list(function.instructions())
    for line in lines:
        if line.instruction is not None and line.instruction.type is not types.VOID:
            assert line.text.startswith(f"  {spelled[line.instruction]} = ")


def test_lines_of_a_switch_belong_to_it_and_a_declaration_has_one():
    module = parse_module(
        "declare void @g(i64)\n\ndefine void @f(i64 %i) {\n  switch i64 %i, label %a [\n    i64 1, label %b\n  ]\n\n"
        "a:\n  ret void\n\nb:\n  ret void\n}\n"
    )
    lines, _ = print_lines(module.functions["f"])
    assert "\n".join(line.text for line in lines) == print_function(module.functions["f"]).rstrip()
    assert len({line.instruction for line in lines if "i64 1" in line.text or "switch" in line.text}) == 1
    [only], _ = print_lines(module.functions["g"])
    assert only.text == print_function(module.functions["g"]).rstrip()
