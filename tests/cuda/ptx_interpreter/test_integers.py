"""Instructions of integers, against Python's: wraparound, shifts beyond the width, carries, division by zero."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.cuda.ptx_interpreter.programs import evaluate, kernel, run
from tests.cuda.ptx_interpreter.types import ptx_type

TYPES = ("u16", "s16", "u32", "s32", "u64", "s64")
each_type = pytest.mark.parametrize("name", TYPES)


def values(name: str) -> list[int]:
    """Numbers at which something may overflow."""
    limits = np.iinfo(ptx_type(name).dtype)
    low, high = int(limits.min), int(limits.max)
    return sorted(
        {low, low + 1, high, high - 1, high // 2, high // 3, 0, 1, 2, 7, 100} | ({-1, -2, -7} if low else set())
    )


def wrapped(value: int, name: str) -> int:
    """The number that is left of an integer."""
    type_ = ptx_type(name)
    value %= 1 << type_.bits
    return value - (1 << type_.bits) if type_.is_signed and value >> (type_.bits - 1) else value


def quotient(a: int, b: int) -> int:
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


TWO = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul.lo": lambda a, b, _: a * b,
    "mul.hi": lambda a, b, bits: a * b >> bits,
    "div": lambda a, b, _: quotient(a, b),
    "rem": lambda a, b, _: a - quotient(a, b) * b,
    "min": lambda a, b, _: min(a, b),
    "max": lambda a, b, _: max(a, b),
}


@each_type
@pytest.mark.parametrize("opcode", TWO)
def test_two_operands(name: str, opcode: str):
    pairs = np.array(list(itertools.product(values(name), repeat=2)), ptx_type(name).dtype)
    found = evaluate(f"{opcode}.{name} %result, %a, %b", name, a=(name, pairs[:, 0]), b=(name, pairs[:, 1]))
    bits = ptx_type(name).bits
    assert found.tolist() == [wrapped(TWO[opcode](a, b, bits), name) for a, b in pairs.tolist()]


THREE = {
    "mad.lo": lambda a, b, c, _: a * b + c,
    "mad.hi": lambda a, b, c, bits: (a * b >> bits) + c,
    "sad": lambda a, b, c, _: abs(a - b) + c,
}


@each_type
@pytest.mark.parametrize("opcode", THREE)
def test_three_operands(name: str, opcode: str):
    rows = np.array(list(itertools.product(values(name)[::3], repeat=3)), ptx_type(name).dtype)
    operands = {letter: (name, rows[:, column]) for column, letter in enumerate("abc")}
    found = evaluate(f"{opcode}.{name} %result, %a, %b, %c", name, **operands)
    bits = ptx_type(name).bits
    assert found.tolist() == [wrapped(THREE[opcode](*row, bits), name) for row in rows.tolist()]


@pytest.mark.parametrize("name", ["u16", "s16", "u32", "s32"])
def test_products_of_twice_the_width(name: str):
    wide = f"{name[0]}{2 * int(name[1:])}"
    pairs = np.array(list(itertools.product(values(name), repeat=2)), ptx_type(name).dtype)
    operands = {"a": (name, pairs[:, 0]), "b": (name, pairs[:, 1])}
    found = evaluate(f"mul.wide.{name} %result, %a, %b", wide, **operands)
    assert found.tolist() == [a * b for a, b in pairs.tolist()]
    found = evaluate(f"mad.wide.{name} %result, %a, %b, %c", wide, **operands, c=(wide, 3))
    assert found.tolist() == [wrapped(a * b + 3, wide) for a, b in pairs.tolist()]


@pytest.mark.parametrize("opcode", ["mul24.lo", "mad24.lo"])
@pytest.mark.parametrize("name", ["u32", "s32"])
def test_products_of_24_bits(name: str, opcode: str):
    pairs = np.array(list(itertools.product(values(name), repeat=2)), ptx_type(name).dtype)
    third = ", 5" if opcode == "mad24.lo" else ""
    found = evaluate(f"{opcode}.{name} %result, %a, %b{third}", name, a=(name, pairs[:, 0]), b=(name, pairs[:, 1]))

    def narrow(value: int) -> int:
        value %= 1 << 24
        return value - (1 << 24) if name == "s32" and value >> 23 else value

    assert found.tolist() == [wrapped(narrow(a) * narrow(b) + (5 if third else 0), name) for a, b in pairs.tolist()]


@pytest.mark.parametrize("opcode", ["neg", "abs"])
@pytest.mark.parametrize("name", ["s16", "s32", "s64"])
def test_signs(name: str, opcode: str):
    found = evaluate(f"{opcode}.{name} %result, %a", name, a=(name, values(name)))
    function = abs if opcode == "abs" else lambda value: -value
    assert found.tolist() == [wrapped(function(value), name) for value in values(name)]


def test_sums_that_saturate():
    pairs = np.array(list(itertools.product(values("s32"), repeat=2)))
    for opcode, sign in (("add", 1), ("sub", -1)):
        found = evaluate(f"{opcode}.sat.s32 %result, %a, %b", "s32", a=("s32", pairs[:, 0]), b=("s32", pairs[:, 1]))
        assert found.tolist() == [max(-(2**31), min(2**31 - 1, a + sign * b)) for a, b in pairs.tolist()]


@each_type
def test_shifts_beyond_the_width(name: str):
    bits, amounts = ptx_type(name).bits, (0, 1, 7, 15, 16, 31, 32, 33, 63, 64, 65, 2**32 - 1)
    pairs = np.array(list(itertools.product(values(name), amounts)), object)
    a, n = pairs[:, 0].astype(ptx_type(name).dtype), pairs[:, 1].astype(np.uint32)
    found = evaluate(f"shr.{name} %result, %a, %n", name, a=(name, a), n=("u32", n))
    assert found.tolist() == [value >> min(int(amount), bits) for value, amount in zip(a.tolist(), n, strict=True)]
    found = evaluate(f"shl.b{bits} %result, %a, %n", name, a=(name, a), n=("u32", n))
    assert found.tolist() == [
        wrapped(value << min(int(amount), bits), name) for value, amount in zip(a.tolist(), n, strict=True)
    ]


@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_funnel_shifts(mode: str):
    rows = np.array(list(itertools.product((0x12345678, 0xFFFFFFFF, 1), (0x9ABCDEF0, 0), (0, 1, 31, 32, 33, 64))))
    operands = {"a": ("u32", rows[:, 0]), "b": ("u32", rows[:, 1]), "n": ("u32", rows[:, 2])}
    for side in "lr":
        found = evaluate(f"shf.{side}.{mode}.b32 %result, %a, %b, %n", "u32", **operands)
        for (low, high, amount), each in zip(rows.tolist(), found.tolist(), strict=True):
            n, both = amount & 31 if mode == "wrap" else min(amount, 32), high << 32 | low
            assert each == ((both << n) >> 32 if side == "l" else both >> n) & 0xFFFFFFFF


@pytest.mark.parametrize("bits", [32, 64])
def test_counts(bits: int):
    name, mask = f"u{bits}", (1 << bits) - 1
    given = values(name)
    for opcode, function in (
        ("popc.b", lambda a: bin(a).count("1")),
        ("clz.b", lambda a: bits - len(bin(a)[2:].lstrip("0"))),
        ("bfind.u", lambda a: (len(bin(a)[2:].lstrip("0")) - 1) & 0xFFFFFFFF),
    ):
        found = evaluate(f"{opcode}{bits} %result, %a", "u32", a=(name, given))
        assert found.tolist() == [function(value) for value in given], opcode
    found = evaluate(f"brev.b{bits} %result, %a", name, a=(name, given))
    assert found.tolist() == [int(bin(value + (1 << bits))[:2:-1], 2) for value in given]
    found = evaluate(f"not.b{bits} %result, %a", name, a=(name, given))
    assert found.tolist() == [value ^ mask for value in given]
    found = evaluate(f"cnot.b{bits} %result, %a", name, a=(name, given))
    assert found.tolist() == [int(value == 0) for value in given]


@pytest.mark.parametrize("name", ["u32", "s32", "u64", "s64"])
def test_bit_fields(name: str):
    bits = ptx_type(name).bits
    rows = np.array(
        list(itertools.product(values(name)[::2], (0, 1, 8, bits - 1, bits, 200), (0, 1, 8, bits, 255))), object
    )
    a, start, length = (rows[:, column] for column in range(3))
    operands = {
        "a": (name, a.astype(ptx_type(name).dtype)),
        "s": ("u32", start.astype(int)),
        "l": ("u32", length.astype(int)),
    }
    found = evaluate(f"bfe.{name} %result, %a, %s, %l", name, **operands).tolist()
    for value, first, count, each in zip(a, start, length, found, strict=True):
        digits = [(value >> place) & 1 for place in range(bits)]
        field = digits[first : first + count]
        fill = digits[min(first + count - 1, bits - 1)] if name[0] == "s" and count else 0
        wanted = field + [fill] * (bits - len(field))
        assert each == wrapped(sum(digit << place for place, digit in enumerate(wanted)), name)
    unsigned = f"u{bits}"
    found = evaluate(f"bfi.b{bits} %result, %a, %b, %s, %l", unsigned, **operands, b=(unsigned, 0x55555555)).tolist()
    for value, first, count, each in zip(a, start, length, found, strict=True):
        digits = [0x55555555 >> place & 1 for place in range(bits)]
        for place in range(count):
            if first + place < bits:
                digits[first + place] = value >> place & 1 if place < bits else 0
        assert each == sum(digit << place for place, digit in enumerate(digits))


def test_any_function_of_three_bits():
    rows = np.array(list(itertools.product((0x0F0F1234, 0xFFFFFFFF, 0), repeat=3)))
    a, b, c = (rows[:, column] for column in range(3))
    operands = {letter: ("u32", column) for letter, column in zip("abc", (a, b, c), strict=True)}
    full = 0xFFFFFFFF
    for table, wanted in (
        (0x96, a ^ b ^ c),
        (0xE8, (a & b) | (b & c) | (a & c)),
        (0xCA, (a & b) | (full & ~a & c)),
        (1, full & ~(a | b | c)),
    ):
        found = evaluate(f"lop3.b32 %result, %a, %b, %c, {table}", "u32", **operands)
        np.testing.assert_array_equal(found, wanted)


def test_permuted_bytes():
    for selector, wanted in ((0x3210, 0x84838281), (0x7654, 0x04030201), (0x0123, 0x81828384), (0xB8C0, 0xFFFF0081)):
        assert (
            evaluate(f"prmt.b32 %result, %a, %b, {selector}", "u32", a=("u32", [0x84838281]), b=("u32", 0x04030201))
            == wanted
        )


def test_carries_go_from_one_sum_to_the_next():
    given = [0, 1, 2**63, 2**64 - 1, 2**64 - 2**32, 0x123456789ABCDEF0]
    pairs = np.array(list(itertools.product(given, repeat=2)), np.uint64)
    body = """
      mov.u32 %r0, %tid.x; mad.wide.u32 %rd0, %r0, 8, %p0; mad.wide.u32 %rd1, %r0, 8, %p1;
      ld.global.v2.u32 {%r1, %r2}, [%rd0]; ld.global.v2.u32 {%r3, %r4}, [%rd1];
      add.cc.u32 %r5, %r1, %r3; addc.cc.u32 %r6, %r2, %r4; addc.u32 %r7, 0, 0;
      sub.cc.u32 %r8, %r1, %r3; subc.cc.u32 %r9, %r2, %r4; subc.u32 %r10, 0, 0;
      mul.lo.u32 %r11, %r1, %r3; mul.hi.u32 %r12, %r1, %r3;
      mad.lo.cc.u32 %r12, %r1, %r4, %r12; madc.hi.u32 %r13, %r1, %r4, 0;
      mad.lo.cc.u32 %r12, %r2, %r3, %r12; madc.hi.cc.u32 %r13, %r2, %r3, %r13; addc.u32 %r14, 0, 0;
      mad.lo.cc.u32 %r13, %r2, %r4, %r13; madc.hi.u32 %r14, %r2, %r4, %r14;
      mad.wide.u32 %rd2, %r0, 48, %p2;
      st.global.v2.u32 [%rd2], {%r5, %r6}; st.global.u32 [%rd2+8], %r7;
      st.global.v2.u32 [%rd2+16], {%r8, %r9}; st.global.u32 [%rd2+12], %r10;
      st.global.v4.u32 [%rd2+32], {%r11, %r12, %r13, %r14};
    """
    count = len(pairs)
    found = run(kernel(body, 3), [pairs[:, 0], pairs[:, 1], np.zeros((count, 12), np.uint32)], count)[2]
    for (a, b), row in zip(pairs.tolist(), found.tolist(), strict=True):
        assert row[0] + (row[1] << 32) + (row[2] << 64) == a + b
        assert row[4] + (row[5] << 32) == (a - b) % 2**64
        assert row[3] == (0xFFFFFFFF if a < b else 0)
        assert sum(word << 32 * place for place, word in enumerate(row[8:])) == a * b


ORDER = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@each_type
def test_comparisons(name: str):
    pairs = np.array(list(itertools.product(values(name), repeat=2)), ptx_type(name).dtype)
    operands = {"a": (name, pairs[:, 0]), "b": (name, pairs[:, 1])}
    for opcode, sign in ORDER.items():
        found = evaluate(f"setp.{opcode}.{name} %result, %a, %b", "pred", **operands)
        assert found.tolist() == [eval(f"a {sign} b", {"a": a, "b": b}) for a, b in pairs.tolist()]
    for opcode, sign in (("lo", "<"), ("ls", "<="), ("hi", ">"), ("hs", ">=")):
        if name[0] == "u":
            found = evaluate(f"setp.{opcode}.{name} %result, %a, %b", "pred", **operands)
            assert found.tolist() == [eval(f"a {sign} b", {"a": a, "b": b}) for a, b in pairs.tolist()]


@pytest.mark.parametrize("word", ["and", "or", "xor"])
def test_comparisons_with_a_predicate(word: str):
    rows = np.array(list(itertools.product((1, 2), (1, 2), (False, True))))
    functions = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
    a, b, c = rows.T
    operands = {"a": ("s32", a), "b": ("s32", b), "c": ("pred", c)}
    found = evaluate(f"setp.lt.{word}.s32 %result, %a, %b, %c", "pred", **operands)
    assert found.tolist() == functions[word](a < b, c).tolist()
    found = evaluate(f"setp.lt.{word}.s32 %result, %a, %b, !%c", "pred", **operands)
    assert found.tolist() == functions[word](a < b, c == 0).tolist()
    found = evaluate(f"setp.lt.{word}.s32 %q0|%result, %a, %b, %c", "pred", **operands)
    assert found.tolist() == functions[word](a >= b, c).tolist()


def test_sets_and_selections():
    operands = {"a": ("s32", [-1, 0, 5]), "b": ("s32", [0, 0, 0])}
    assert evaluate("set.lt.u32.s32 %result, %a, %b", "u32", **operands).tolist() == [0xFFFFFFFF, 0, 0]
    assert evaluate("set.le.f32.s32 %result, %a, %b", "f32", **operands).tolist() == [1.0, 1.0, 0.0]
    assert evaluate("slct.u32.s32 %result, 7, 8, %a", "u32", **operands).tolist() == [8, 7, 7]
    assert evaluate("selp.b64 %result, 7, 8, %a", "u64", a=("pred", [True, False])).tolist() == [7, 8]
