"""The builder, and that what it folds is what LLVM computes."""

import struct
from ctypes import CFUNCTYPE, c_double, c_float, c_int64
from functools import cache

import llvmlite.binding as llvm
import pytest
from hypothesis import given, strategies as st

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.folding import fold_binary, fold_cast, fold_icmp, same_value, signed, unsigned
from irad.ir.instructions import Binary, Call, Instruction, Phi
from irad.ir.module import Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.types import DOUBLE, FLOAT, I1, I8, I32, I64, PTR
from irad.ir.values import ConstantFloat, ConstantInt, ConstantNull, Undef, const_float, const_int
from irad.ir.verifier import verify

INTEGER_OPCODES = ("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "udiv", "sdiv", "urem", "srem")
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def function_of(*params, result=types.VOID):
    return Module().define("f", types.function_type(result, params), [f"p{i}" for i in range(len(params))])


def builder_of(*params, result=types.VOID):
    function = function_of(*params, result=result)
    return Builder(function.add_block("entry")), function.params


# ------------------------------------------------------------------------------------------------ positions


def test_inserts_before_after_and_at_the_start_in_order():
    b, (x,) = builder_of(I64, result=I64)
    middle = b.add(x, x, name="middle")
    b.ret(middle)
    before, after = Builder.before(middle), Builder.after(middle)
    for index in range(2):
        before.mul(x, x, name=f"before{index}")
        after.sub(x, middle, name=f"after{index}")
    Builder.at_start(b.block).xor(x, x, name="first")
    assert [i.name for i in b.block.instructions] == ["first", "before0", "before1", "middle", "after0", "after1", None]
    verify(b.function)


def test_a_position_survives_other_edits_of_the_block():
    b, (x,) = builder_of(I64)
    last = b.ret()
    early, late = Builder.at_start(b.block), Builder.before(last)
    late.add(x, x, name="one")
    early.add(x, x, name="zero")
    doomed = late.add(x, x, name="two")
    assert isinstance(doomed, Instruction)
    doomed.erase()
    late.add(x, x, name="three")
    assert [i.name for i in b.block.instructions[:-1]] == ["one", "zero", "three"]


def test_phis_go_behind_phis_wherever_the_builder_stands():
    b, (x,) = builder_of(I64)
    first = b.phi(I64, name="a")
    b.add(x, x, name="s")
    second = b.phi(I64, name="b")
    third = Builder.after(first).phi(I64, name="c")
    Builder.after(first).add(x, x, name="t")
    assert [i.name for i in b.block.instructions] == ["a", "b", "c", "t", "s"]
    assert all(isinstance(phi, Phi) for phi in (second, third))


def test_origin_and_metadata_are_stamped():
    b, (x,) = builder_of(I64)
    source = b.load(I64, ConstantNull(PTR))
    b.origin, b.metadata = source, {"dbg": "!3"}
    made = b.add(x, x)
    assert isinstance(made, Instruction)
    assert made.origin is source
    assert made.metadata == {"dbg": "!3"}
    assert made.metadata is not b.metadata
    assert source.origin is None


# ------------------------------------------------------------------------------------------------ every method


def test_all_instructions_are_valid_llvm():
    """One function that uses every method; LLVM and the verifier accept what is printed."""
    function = function_of(I64, DOUBLE, PTR, I1, result=DOUBLE)
    i, x, p, c = function.params
    entry, left, right, join = (function.add_block(name) for name in ("entry", "left", "right", "join"))
    b = Builder(entry)
    integers = [getattr(b, name)(i, i) for name in "add sub mul sdiv udiv urem shl lshr and_ or_ xor".split()]
    b.binary("srem", i, i), b.binary("ashr", i, i), b.binary("frem", x, x, ("reassoc",))
    b.add(i, i, flags=("nuw", "nsw"))
    numbers = [getattr(b, name)(x, x, flags=("reassoc",)) for name in "fadd fsub fmul fdiv".split()]
    b.fneg(x)
    truth = b.icmp("slt", i, integers[0])
    b.fcmp("olt", x, numbers[0])
    chosen = b.select(truth, x, numbers[1])
    short, single = b.trunc(i, I32), b.fptrunc(x, FLOAT)
    b.zext(short, I64), b.sext(short, I64), b.fpext(single, DOUBLE), b.sitofp(i, DOUBLE), b.cast("uitofp", i, DOUBLE)
    (
        b.cast("fptosi", x, I64),
        b.cast("fptoui", x, I64),
        b.bitcast(x, I64),
        b.inttoptr(b.ptrtoint(p, I64), PTR),
        b.freeze(x),
    )
    slot = b.alloca(DOUBLE, align=8, name="slot")
    b.alloca(I8, count=i)
    b.store(b.load(DOUBLE, p, align=8), slot, align=8)
    b.gep(types.array_type(4, DOUBLE), p, [i, const_int(I64, 2)], flags=("inbounds",))
    b.byte_offset(p, 16), b.byte_offset(p, i)
    pair = b.insert_value(Undef(types.struct_type([I64, DOUBLE])), i, 0)
    b.extract_value(pair, 1)
    helper = b.module.declare("helper", types.function_type(types.VOID, [I64]))
    b.call(helper, [i], attributes=("nounwind",))
    b.call(p, [x], function_type=types.function_type(DOUBLE, [DOUBLE]))
    absolute = b.intrinsic("llvm.fabs.f64", DOUBLE, [chosen])
    b.cond_br(c, left, right)
    Builder(left).br(join)
    Builder(right).switch(i, join, [(3, left), (const_int(I64, -1), join)])
    left_phi = Builder.at_start(left).phi(DOUBLE, [(x, entry), (x, right)])
    result = Builder(join).phi(DOUBLE, [(left_phi, left), (x, right), (x, right)])
    Builder(join).ret(result)
    verify(function.module)
    llvm.parse_assembly(print_module(function.module)).verify()
    assert absolute.callee is function.module.functions["llvm.fabs.f64"]
    assert b.intrinsic("llvm.fabs.f64", DOUBLE, [x]).callee is absolute.callee


def test_vector_results():
    lanes, pointers = types.vector_type(4, I64), types.vector_type(4, PTR)
    b, (v, p) = builder_of(lanes, PTR)
    assert b.icmp("eq", v, v).type is types.vector_type(4, I1)
    assert b.gep(I8, p, [v]).type is pointers
    b.ret()
    verify(b.function)


def test_a_call_takes_type_and_convention_of_its_callee():
    b, (x,) = builder_of(I64)
    callee = b.module.declare("g", types.function_type(I64, [I64]))
    callee.convention = "fastcc"
    call = b.call(callee, [x])
    assert (call.type, call.convention, call.callee) == (I64, "fastcc", callee)
    assert call.arguments == [x]


def test_mistakes_are_caught_at_once():
    b, (i, x) = builder_of(I64, DOUBLE)
    with pytest.raises(AssertionError, match="add of i64 and double"):
        b.add(i, x)
    with pytest.raises(AssertionError, match="is given"):
        b.call(b.module.declare("g", types.function_type(I64, [I64])), [x])
    with pytest.raises(AssertionError, match="needs the type"):
        b.call(i, [])
    with pytest.raises(AssertionError, match="receives double"):
        b.phi(I64, [(x, b.block)])
    with pytest.raises(AssertionError, match="no double at"):
        b.insert_value(Undef(types.struct_type([I64])), x, 0)


# ------------------------------------------------------------------------------------------------ folding of integers


def folded(value):
    assert isinstance(value, ConstantInt)
    return value.value


@given(st.integers(-128, 127), st.integers(-128, 127))
def test_integer_folding_is_what_llvm_computes(a, b):
    """The sums, products and comparisons of two i8, folded here, against the same computed by compiled code."""
    run = i8_operations()
    for index, (kind, word) in enumerate(OPERATIONS):
        x, y = const_int(I8, a), const_int(I8, b)
        result = fold_binary(word, x, y) if kind == "binary" else fold_icmp(word, x, y)
        if result is None:
            assert (word in ("shl", "lshr", "ashr") and not 0 <= b < 8) or (word[1:] in ("div", "rem") and b in (0, -1))
        else:
            assert folded(result) == run(index, a, b), (word, a, b)


OPERATIONS = [("binary", word) for word in INTEGER_OPCODES] + [("icmp", word) for word in PREDICATES]


@cache
def i8_operations():
    """A function that applies the numbered operation to two i8."""
    cases, bodies = [], []
    for index, (kind, word) in enumerate(OPERATIONS):
        cases.append(f"i64 {index}, label %b{index}")
        operation = f"{word} i8 %a, %b" if kind == "binary" else f"icmp {word} i8 %a, %b"
        narrow, widen = ("i8", "sext") if kind == "binary" else ("i1", "zext")
        result = f"  %w{index} = {widen} {narrow} %v{index} to i64\n  ret i64 %w{index}"
        bodies.append(f"b{index}:\n  %v{index} = {operation}\n{result}")
    text = f"""
define i64 @f(i64 %k, i64 %x, i64 %y) {{
  %a = trunc i64 %x to i8
  %b = trunc i64 %y to i8
  switch i64 %k, label %none [ {" ".join(cases)} ]
{chr(10).join(bodies)}
none:
  ret i64 0
}}"""
    return compiled(text, CFUNCTYPE(c_int64, c_int64, c_int64, c_int64))


def compiled(text, prototype):
    """`@f` of an LLVM module as a Python function."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    function = prototype(engine.get_function_address("f"))
    return lambda *args, _owner=engine: function(*args)


@pytest.mark.parametrize("opcode", INTEGER_OPCODES)
@pytest.mark.parametrize("bits", [1, 3])
def test_identities_hold_for_all_values_of_narrow_types(opcode, bits):
    """What `x op c` or `c op x` folds to, for a variable x, is right for every x."""
    type_ = types.int_type(bits)
    (x,) = function_of(type_).params
    for number in range(1 << bits):
        constant = const_int(type_, number)
        for left, right in ((x, constant), (constant, x)):
            result = fold_binary(opcode, left, right)
            for value in range(1 << bits) if result is not None else ():
                known = const_int(type_, value)
                exact = fold_binary(opcode, *(known if side is x else side for side in (left, right)))
                assert exact is None or same_value(exact, known if result is x else result), (opcode, number, value)


def test_identities_of_integers():
    b, (x,) = builder_of(I64)
    zero, one, ones = const_int(I64, 0), const_int(I64, 1), const_int(I64, -1)
    assert b.add(x, zero) is b.add(zero, x) is b.sub(x, zero) is b.mul(x, one) is b.mul(one, x) is x
    assert (
        b.and_(x, ones) is b.or_(zero, x) is b.xor(x, zero) is b.shl(x, zero) is b.sdiv(x, one) is b.udiv(x, one) is x
    )
    assert folded(b.mul(x, zero)) == folded(b.and_(zero, x)) == 0
    assert folded(b.or_(x, ones)) == -1
    assert b.block.instructions == []
    assert isinstance(b.sub(zero, x), Binary)
    assert isinstance(b.udiv(x, zero), Binary)


def test_constants_read_signed_and_unsigned():
    assert (unsigned(const_int(I8, -1)), signed(const_int(I8, 255))) == (255, -1)
    assert (unsigned(const_int(I1, 1)), signed(const_int(I1, 1))) == (1, -1)


def test_selects_and_comparisons_of_constants():
    b, (x, y, c) = builder_of(I64, I64, I1)
    assert b.select(const_int(I1, 1), x, y) is x
    assert b.select(const_int(I1, 0), x, y) is y
    assert b.select(c, x, x) is x
    assert folded(b.select(c, const_int(I64, 4), const_int(I64, 4))) == 4
    assert folded(b.icmp("eq", ConstantNull(PTR), ConstantNull(PTR))) == 1
    assert folded(b.icmp("ult", ConstantNull(PTR), ConstantNull(PTR))) == 0
    assert b.block.instructions == []
    zeros = const_float(DOUBLE, 0.0), const_float(DOUBLE, -0.0)
    assert isinstance(b.select(c, *zeros), Instruction)


def test_addresses_without_offset_are_the_base():
    b, (p, i) = builder_of(PTR, I64)
    assert b.byte_offset(p, 0) is b.gep(DOUBLE, p, [const_int(I64, 0), const_int(I32, 0)]) is b.gep(DOUBLE, p, []) is p
    assert b.byte_offset(p, i) is not p
    assert b.gep(DOUBLE, p, [const_int(I64, 0), i]) is not p


def test_extracting_what_was_inserted():
    inner = types.struct_type([I64, I64])
    b, (x, y, whole) = builder_of(I64, I64, inner)
    outer = Undef(types.struct_type([inner, I64]))
    made = b.insert_value(b.insert_value(b.insert_value(outer, x, (0, 1)), y, 1), x, (0, 0))
    assert b.extract_value(made, 1) is y
    assert b.extract_value(made, (0, 0)) is x
    assert isinstance(b.extract_value(made, 0), Instruction)
    replaced = b.insert_value(made, whole, 0)
    assert b.extract_value(replaced, 0) is whole
    assert isinstance(b.extract_value(replaced, (0, 1)), Instruction)


# ------------------------------------------------------------------------------------------------ floats, casts


def bits_of(value):
    return struct.pack("<d", value)


def test_identities_of_floats_keep_every_bit():
    b, (x,) = builder_of(DOUBLE)
    zero, negative, one = const_float(DOUBLE, 0.0), const_float(DOUBLE, -0.0), const_float(DOUBLE, 1.0)
    assert b.fmul(x, one) is b.fmul(one, x) is b.fdiv(x, one) is b.fsub(x, zero) is b.fadd(x, negative) is x
    assert b.fadd(negative, x) is x
    for kept in (
        b.fadd(x, zero),
        b.fsub(x, negative),
        b.fmul(x, zero),
        b.fdiv(one, x),
        b.fsub(negative, x),
        b.fsub(zero, x),
    ):
        assert isinstance(kept, Binary)


@pytest.mark.parametrize("type_", [FLOAT, DOUBLE])
@given(a=st.floats(), b=st.floats())
def test_float_folding_is_what_llvm_computes(type_, a, b):
    run, is_single = float_operations(type_), type_ is FLOAT
    if is_single:
        a, b = c_float(a).value, c_float(b).value
    for index, opcode in enumerate(("fadd", "fsub", "fmul", "fdiv")):
        result = fold_binary(opcode, const_float(type_, a), const_float(type_, b))
        if isinstance(result, ConstantFloat):
            assert bits_of(result.value) == bits_of(run(index, a, b)), (opcode, a, b)


@cache
def float_operations(type_):
    """A function that applies the numbered operation to two numbers of a type."""
    words = ("fadd", "fsub", "fmul", "fdiv")
    lines = [f"  %v{i} = {word} {type_} %a, %b" for i, word in enumerate(words)]
    lines += [f"  %c{i} = icmp eq i64 %k, {i}" for i in range(3)]
    chain = "%v3"
    for i in reversed(range(3)):
        lines.append(f"  %s{i} = select i1 %c{i}, {type_} %v{i}, {type_} {chain}")
        chain = f"%s{i}"
    body = "\n".join([*lines, f"  ret {type_} {chain}"])
    kind = c_float if type_ is FLOAT else c_double
    text = f"define {type_} @f(i64 %k, {type_} %a, {type_} %b) {{\n{body}\n}}"
    return compiled(text, CFUNCTYPE(kind, c_int64, kind, kind))


@pytest.mark.parametrize(
    ("a", "opcode", "b"),
    [
        (1.0, "fdiv", 0.0),
        (float("nan"), "fmul", 1.5),
        (float("inf"), "fsub", float("inf")),
        (1e308, "fmul", 1e10),
        (1e-300, "fmul", 1e-300),
        (5e-324, "fadd", 2.0),
        (3.0, "frem", 2.0),
    ],
)
def test_floats_out_of_the_ordinary_do_not_fold(a, opcode, b):
    assert fold_binary(opcode, const_float(DOUBLE, a), const_float(DOUBLE, b)) is None


def test_negation_flips_the_sign_of_zero():
    b, (x,) = builder_of(DOUBLE)
    negated = b.fneg(const_float(DOUBLE, 0.0))
    assert isinstance(negated, ConstantFloat)
    assert bits_of(negated.value) == bits_of(-0.0)
    assert isinstance(b.fneg(x), Instruction)


@pytest.mark.parametrize(
    ("opcode", "value", "type_", "expected"),
    [
        ("trunc", const_int(I64, 0x1FF), I8, -1),
        ("zext", const_int(I8, -1), I64, 255),
        ("sext", const_int(I8, -1), I64, -1),
        ("zext", const_int(I1, 1), I64, 1),
        ("sext", const_int(I1, 1), I64, -1),
        ("sitofp", const_int(I64, -3), DOUBLE, -3.0),
        ("uitofp", const_int(I8, -1), DOUBLE, 255.0),
        ("sitofp", const_int(I64, (1 << 24) + 1), FLOAT, 16777216.0),
        ("sitofp", const_int(I64, (1 << 53) + 1), DOUBLE, None),
        ("fptosi", const_float(DOUBLE, -2.9), I64, -2),
        ("fptosi", const_float(DOUBLE, 128.0), I8, None),
        ("fptosi", const_float(DOUBLE, -128.9), I8, -128),
        ("fptoui", const_float(DOUBLE, 255.5), I8, -1),
        ("fptoui", const_float(DOUBLE, -1.0), I8, None),
        ("fptosi", const_float(DOUBLE, float("nan")), I64, None),
        ("fpext", const_float(FLOAT, 0.1), DOUBLE, 0.10000000149011612),
        ("fptrunc", const_float(DOUBLE, 0.1), FLOAT, 0.10000000149011612),
        ("fptrunc", const_float(DOUBLE, 1e300), FLOAT, None),
        ("ptrtoint", ConstantNull(PTR), I64, 0),
        ("bitcast", const_float(DOUBLE, 1.0), I64, None),
    ],
)
def test_casts_of_constants(opcode, value, type_, expected):
    result = fold_cast(opcode, value, type_)
    assert (result.value if result is not None else None) == expected
    assert result is None or result.type is type_


def test_a_cast_to_its_own_type_is_nothing():
    b, (x,) = builder_of(I64)
    assert b.zext(x, I64) is x


# ------------------------------------------------------------------------------------------------ misuse of state


def test_users_are_recorded():
    b, (x,) = builder_of(I64)
    twice = b.add(x, x)
    callee = b.module.declare("g", types.function_type(I64, [I64]))
    call = b.call(callee, [x])
    assert x.users == {twice: 2, call: 1}
    assert callee.users == {call: 1}
    assert isinstance(call, Call)


def test_blocks_without_function_are_refused():
    from_text = parse_module("define void @f() {\n  ret void\n}\n").defined_functions()[0]
    assert Builder(from_text.entry).function is from_text
    from_text.entry.function = None
    with pytest.raises(AssertionError, match="in no function"):
        _ = Builder(from_text.entry).module
