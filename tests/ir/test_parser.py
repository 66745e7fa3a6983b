import pytest

from irad.errors import ParseError
from irad.ir import types
from irad.ir.instructions import Binary, Call, CondBr, GetElementPtr, Load, Phi, Store, Switch
from irad.ir.text.parser import parse_module
from irad.ir.values import (
    ConstantAggregate,
    ConstantFloat,
    ConstantInt,
    ConstantString,
    GlobalWrapper,
    MetadataOperand,
    TrackedValue,
    Value,
)


def body(text: str, signature: str = "i64 %a, double %x, ptr %p, i1 %c", before: str = ""):
    """The function that has this text as its body."""
    module = parse_module(f"{before}\ndefine void @f({signature}) {{\n{text}\n}}\n")
    return module.functions["f"]


def constant(spelled: str) -> Value:
    """The initialiser of a global, given with its type."""
    value = parse_module(f"@h = global i32 0\n@g = global {spelled}\n").globals["g"].initializer
    assert value is not None
    return value


def test_operands_are_the_objects_that_define_them():
    function = body("%y = fadd fast double %x, %x\n store double %y, ptr %p, align 8\n ret void")
    add, store, _ = function.entry.instructions
    assert isinstance(add, Binary)
    assert isinstance(store, Store)
    assert add.operands == [function.params[1]] * 2
    assert (add.opcode, add.flags, add.type, add.name) == ("fadd", ("fast",), types.DOUBLE, "y")
    assert store.operands == [add, function.params[2]]
    assert (store.align, store.volatile, store.ordering) == (8, False, None)
    assert function.params[1].users == {add: 2}
    assert add.users == {store: 1}
    assert store.block is function.entry
    assert function.entry.function is function


def test_forward_references_become_the_definition():
    function = body(
        "entry:\n br label %loop\nloop:\n %i = phi i64 [ 0, %entry ], [ %n, %loop ]\n"
        " %n = add i64 %i, 1\n br i1 %c, label %loop, label %out\nout:\n ret void"
    )
    entry, loop, out = function.blocks
    phi, add, branch = loop.instructions
    assert isinstance(phi, Phi)
    assert phi.incoming()[1] == (add, loop)
    assert phi.blocks == [entry, loop]
    assert add.users == {phi: 1}
    assert isinstance(branch, CondBr)
    assert branch.targets == [loop, out]
    assert branch.operands == [function.params[3]]


def test_a_later_block_may_define_what_an_earlier_one_uses_in_a_call():
    function = body(
        "entry:\n br label %b\nm:\n call void @f(i64 %v, double %x, ptr %p, i1 %c)\n"
        ' call void @llvm.foo(metadata i64 %v) [ "tag"(i64 %v) ]\n ret void\nb:\n %v = add i64 %a, 1\n br label %m',
        before="declare void @llvm.foo(metadata)",
    )
    first, second, _ = function.blocks[1].instructions
    value = function.blocks[2].instructions[0]
    assert isinstance(first, Call)
    assert isinstance(second, Call)
    assert first.arguments[0] is value
    assert first.callee is function
    wrapped = second.arguments[0]
    assert isinstance(wrapped, MetadataOperand)
    assert wrapped.value is value
    assert second.bundles == (("tag", 1),)
    assert second.operands[1] is value
    assert isinstance(value, TrackedValue)
    assert value.users == {first: 1, second: 1}


def test_unnamed_values_have_no_name_and_count_together():
    module = parse_module("define i64 @f(i64 %0, i64) {\n br label %3\n\n3:\n %4 = add i64 %0, %1\n ret i64 %4\n}\n")
    function = module.functions["f"]
    assert [p.name for p in function.params] == [None, None]
    assert [b.name for b in function.blocks] == [None, None]
    add = function.blocks[1].instructions[0]
    assert add.name is None
    assert add.operands == function.params


def test_names_are_stored_without_sigil_quotes_and_escapes():
    module = parse_module('@"a b\\22" = global i8 0\ndefine void @"f g"(i8 %"5", i8 %"x") {\n  ret void\n}\n')
    assert list(module.globals) == ['a b"']
    assert list(module.functions) == ["f g"]
    assert [p.name for p in module.functions["f g"].params] == ["5", "x"]


def test_calls():
    before = "declare i32 @printf(ptr, ...)\n"
    function = body(
        "%1 = tail call fast noundef nofpclass(nan) double %p(double noundef %x, ptr align 8 @printf) #0 nounwind\n"
        "%2 = call fastcc i32 (ptr, ...) @printf(ptr %p, i64 %a)\n ret void",
        before=before,
    )
    one, two, _ = function.entry.instructions
    assert isinstance(one, Call)
    assert isinstance(two, Call)
    assert one.tail == "tail"
    assert one.flags == ("fast",)
    assert one.result_attributes == ("noundef", "nofpclass(nan)")
    assert one.argument_attributes == (("noundef",), ("align 8",))
    assert one.attributes == ("#0", "nounwind")
    assert one.function_type is types.function_type(types.DOUBLE, (types.DOUBLE, types.PTR))
    assert one.callee is function.params[2]
    assert two.convention == "fastcc"
    assert two.function_type is types.function_type(types.I32, (types.PTR,), variadic=True)
    assert two.arguments == [function.params[2], function.params[0]]


def test_memory_and_types():
    before = "%T = type { double, [2 x %U] }\n%U = type { i64 }\n"
    function = body(
        "%q = getelementptr inbounds nuw %T, ptr %p, i64 %a, i32 1\n"
        '%v = load atomic volatile i64, ptr %q syncscope("agent") acquire, align 8, !range !0\n ret void',
        before=before,
    )
    gep, load, _ = function.entry.instructions
    assert isinstance(gep, GetElementPtr)
    assert isinstance(load, Load)
    assert isinstance(gep.source_type, types.NamedStructType)
    assert types.struct_body(gep.source_type).elements[0] is types.DOUBLE
    assert gep.flags == ("inbounds", "nuw")
    assert (load.ordering, load.syncscope, load.volatile, load.align) == ("acquire", "agent", True, 8)
    assert load.metadata == {"range": "!0"}


def test_switch():
    function = body("switch i64 %a, label %d [\n i64 0, label %e\n i64 -1, label %d\n ]\nd:\n ret void\ne:\n ret void")
    switch = function.entry.terminator
    assert isinstance(switch, Switch)
    assert [b.name for b in switch.targets] == ["d", "e", "d"]
    assert [v.value for v in switch.operands[1:] if isinstance(v, ConstantInt)] == [0, -1]


@pytest.mark.parametrize(
    ("spelled", "value"),
    [("i8 255", -1), ("i8 -128", -128), ("i1 true", 1), ("i1 false", 0), ("i64 9223372036854775808", -(2**63))],
)
def test_integers_are_signed(spelled, value):
    found = constant(spelled)
    assert isinstance(found, ConstantInt)
    assert found.value == value


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("double 1.500000e+00", 1.5),
        ("double 0x400921FB54442D18", 3.141592653589793),
        ("float 0x3FB99999A0000000", 0.10000000149011612),
        ("half 0xH3C00", 1.0),
        ("bfloat 0xR4000", 2.0),
        ("double 0xFFF0000000000000", float("-inf")),
    ],
)
def test_floats(spelled, value):
    found = constant(spelled)
    assert isinstance(found, ConstantFloat)
    assert found.value == value
    assert found.text == spelled.split()[1]


def test_wide_floats_are_known_by_their_text():
    found = constant("x86_fp80 0xK3FFF8000000000000000")
    assert isinstance(found, ConstantFloat)
    assert found.value != found.value
    assert found.text == "0xK3FFF8000000000000000"


def test_composite_constants():
    text = constant(r'[4 x i8] c"a\0A\\\22"')
    assert isinstance(text, ConstantString)
    assert text.data == b'a\n\\"'
    splat = constant("<4 x i32> splat (i32 3)")
    assert isinstance(splat, ConstantAggregate)
    assert splat.splat
    assert len(splat.elements) == 1
    address = parse_module(
        "@g = global ptr blockaddress(@f, %b)\ndefine void @f() {\na:\n ret void\nb:\n ret void\n}\n"
    )
    wrapper = address.globals["g"].initializer
    assert isinstance(wrapper, GlobalWrapper)
    assert wrapper.operands == (address.functions["f"],)
    assert wrapper.block == "b"


def test_the_top_level():
    module = parse_module(
        'source_filename = "s"\ntarget triple = "t"\nmodule asm "nop"\n%o = type opaque\n$c = comdat any\n'
        "@g = internal unnamed_addr constant [1 x i8] zeroinitializer, comdat($c), align 4, !dbg !0 #1\n"
        "@a = weak alias i8, ptr @g\n"
        "define internal fastcc noundef i32 @f(ptr noalias %p) unnamed_addr #0 align 16 personality ptr @g !dbg !1 {\n"
        "  ret i32 0\n}\n"
        'attributes #0 = { nounwind memory(none) "a"="b" "c" allocsize(0,1) alignstack=4 }\n'
        "!llvm.ident = !{!0, !1}\n!0 = !{}\n!1 = distinct !DIThing(a: !0)\n"
    )
    assert (module.source_name, module.triple, module.layout, module.asm) == ("s", "t", None, ["nop"])
    assert module.structs["o"].body is None
    assert module.comdats == {"c": "any"}
    variable = module.globals["g"]
    assert variable.constant
    assert variable.prefix == ("internal", "unnamed_addr")
    assert variable.suffix == ("comdat($c)", "align 4", "#1")
    assert variable.metadata == (("dbg", "!0"),)
    assert module.aliases["a"].target is variable
    function = module.functions["f"]
    assert function.prefix == ("internal",)
    assert function.convention == "fastcc"
    assert function.result_attributes == ("noundef",)
    assert function.attributes == ("unnamed_addr", "#0")
    assert function.suffix == ("align 16",)
    assert function.operands == (("personality", variable),)
    assert function.metadata == (("dbg", "!1"),)
    assert function.params[0].attributes == ("noalias",)
    assert module.attribute_groups["#0"] == (
        "nounwind", "memory(none)", '"a"="b"', '"c"', "allocsize(0,1)", "alignstack=4",
    )  # fmt: skip
    assert module.named_metadata == {"llvm.ident": ("!0", "!1")}
    assert module.metadata[1].text == "!DIThing(a: !0)"
    assert module.metadata[1].distinct


def test_debug_records_stay_with_the_next_instruction():
    function = body("  #dbg_value(double %x, !1, !DIExpression(), !2)\n  ret void\n  #dbg_label(!3, !2)")
    assert function.entry.instructions[0].debug_records == ("#dbg_value(double %x, !1, !DIExpression(), !2)",)
    assert function.entry.trailing_records == ("#dbg_label(!3, !2)",)


@pytest.mark.parametrize(
    ("line", "column", "problem"),
    [
        ("%y = frobnicate double %x, %x", 6, "unknown instruction 'frobnicate'"),
        ("%y = fadd sideways double %x, %x", 11, "expected a type"),
        ("%y = fadd double %x, %missing", 22, "%missing is not defined"),
        ("%y = fadd double %x, %a", 22, "%a is of type i64, not double"),
        ("%y = fadd double %x %x", 21, "expected ','"),
        ("%x = fadd double %x, %x", 1, "%x is defined twice"),
        ("%y = add i8 300, 1", 13, "300 does not fit into i8"),
        ("%y = add i64 1.0, 1", 14, "expected a value of type i64"),
        ("fadd double %x, %x", 1, "without a result name"),
        ("%y = store i64 %a, ptr %p", 1, "with a result name"),
        ("%y = icmp above i64 %a, 1", 11, "expected a predicate"),
        ("%y = load i64, ptr %p, aligned 8", 24, "expected metadata at the end of the instruction"),
        ("%y = extractvalue { i64 } undef, 1", 34, "has no such element"),
        ("call void @unknown()", 11, "@unknown is not defined"),
        ("call void @f(i64 sticky %a)", 18, "expected a value of type i64"),
        ("br label %nowhere\nz:", 10, "%nowhere is not defined"),
        ("br i1 %c, label %x, label %x", 17, "%x is not a block"),
        ("%y = fneg i64 %a", 15, "expected a type of class FloatType, got i64"),
        ("%y = select i1 %c, i64 %a, double %x", 35, "select of i64 or double"),
        ("%y = insertelement <2 x i8> undef, i64 %a, i64 %a", 48, "they must be (<2 x i8>, i8, i64)"),
        ("br i64 %a, label %x, label %x", 8, "a condition must be i1"),
        ("store %T zeroinitializer, ptr %p", 7, "%T is not defined"),
        ("?", 1, "expected an instruction or label"),
    ],
)
def test_errors_name_their_place(line, column, problem):
    text = f"define void @f(i64 %a, double %x, ptr %p, i1 %c) {{\n; a comment\n{line}\n  ret void\n}}\n"
    with pytest.raises(ParseError) as caught:
        parse_module(text)
    assert problem in caught.value.problem
    assert (caught.value.line, caught.value.column) == (3, column)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("nonsense", 1, "expected a top-level entity"),
        ("@g = global i32 0\n@g = global i32 1\n", 2, "@g is defined twice"),
        ("define void @f() {\n  ret void\n", 3, "the end of the text"),
        ("define void @f() {\n}\n", 2, "a terminator"),
        ("define void @f() {\nb:\n  ret void\nb:\n  ret void\n}\n", 4, "%b is defined twice"),
        ("define void @f() {\n  ret void\n  ret void\n}\n", 3, "a label or the end"),
        ("!0 = frob !{}\n", 1, "a metadata node"),
        ("@g = global i32 0, sideways\n", 1, "a property of a global variable"),
        ("$c = comdat sometimes\n", 1, "unknown kind of comdat"),
        ("attributes #0 = { sideways }\n", 1, "expected an attribute"),
        ("@g = global i32 %x\n", 1, "outside of a function"),
        ('target frob = "x"\n', 1, "unknown target property"),
        ("declare void @f() sideways\n", 1, "expected a top-level entity"),
        ("@g = global [2 x i8] [i8 1]\n", 1, "these 1 elements make no [2 x i8]"),
        ("@g = global <{ i8 }> { i8 1 }\n", 1, "these 1 elements make no <{ i8 }>"),
        ("%o = type opaque\n@g = global %o { i8 1 }\n", 2, "%o is opaque here"),
        ("@g = global i8 [i8 1]\n", 1, "these 1 elements make no i8"),
        ("@g = global [99999999999999 x i8] [i8 1]\n", 1, "these 1 elements"),
        ("% = type opaque\n", 1, "expected a type"),
        ("declare void @f(i8 %)\n", 1, "the name of a parameter"),
        ('@g = global [2 x i8] c"abc"\n', 1, "a string of 3 bytes"),
        ("@g = global half 0xK0000\n", 1, "is not a value of type half"),
        ("@g = global i32 sideways (i32 1)\n", 1, "expected a value"),
        ("@g = global \n", 2, "the end of the text"),
    ],
)
def test_errors_outside_of_functions(text, line, problem):
    with pytest.raises(ParseError) as caught:
        parse_module(text)
    assert problem in caught.value.problem
    assert caught.value.line == line
