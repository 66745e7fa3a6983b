from __future__ import annotations

import pytest

from irad.errors import UnsupportedError
from irad.passes.request import MemoryType
from tests.passes.units import DOUBLES, INTEGERS, unit_of

REFUSAL = "an active number is manipulated as an integer"


def accepted(body: str, kinds: str = "ss", memory=(DOUBLES, DOUBLES), before: str = "", **options) -> bool:
    declared = before + "define i32 @f(ptr noalias %r, ptr %a) {"
    tail = "ret i32 0\n}"
    try:
        unit_of("\n".join((declared, body, tail)), kinds, list(memory), **options)
    except UnsupportedError as error:
        if REFUSAL not in str(error):
            raise
        return False
    return True


CAST = """
  %x = load double, ptr %a
  %n = bitcast double %x to i64
  %m = xor i64 %n, -9223372036854775808
  %y = bitcast i64 %m to double
  store double %y, ptr %r
"""
LOADED = """
  %n = load i64, ptr %a
  %m = xor i64 %n, -9223372036854775808
  %y = bitcast i64 %m to double
  store double %y, ptr %r
"""
STORED = """
  %n = load i64, ptr %a
  %m = add i64 %n, 1
  store i64 %m, ptr %r
"""


@pytest.mark.parametrize("body", [CAST, LOADED, STORED])
def test_bits_that_become_a_number_again_are_refused(body):
    assert not accepted(body)


@pytest.mark.parametrize("body", [CAST, LOADED, STORED])
def test_constants_may_do_what_they_like(body):
    assert accepted(body, kinds="cc")


def test_the_oracle_refuses_the_same():
    assert not accepted(STORED, plan="save_all")


# From a number to bits and back, each in its own way: what is done with them, and whether that is refused.
ROUTES = {
    "through a phi and a select": (
        """
        %x = load double, ptr %a
        %n = bitcast double %x to i64
        %c = icmp slt i64 %n, 0
        %m = sub i64 0, %n
        %s = select i1 %c, i64 %m, i64 %n
        br label %next
        next:
        %p = phi i64 [ %s, %0 ]
        %y = bitcast i64 %p to double
        store double %y, ptr %r
        """,
        False,
    ),
    "only a test of bits": (
        """
        %x = load double, ptr %a
        %n = bitcast double %x to i64
        %c = icmp slt i64 %n, 0
        %y = select i1 %c, double 0.0, double %x
        store double %y, ptr %r
        """,
        True,
    ),
    "kept as an integer, a hash": (
        """
        %h = alloca i64
        %x = load double, ptr %a
        %n = bitcast double %x to i64
        %m = mul i64 %n, 31
        store i64 %m, ptr %h
        store double %x, ptr %r
        """,
        True,
    ),
    "through local memory": (
        """
        %l = alloca double
        %x = load double, ptr %a
        %square = fmul double %x, %x
        store double %square, ptr %l
        %n = load i64, ptr %l
        %m = xor i64 %n, -9223372036854775808
        %y = bitcast i64 %m to double
        store double %y, ptr %r
        """,
        False,
    ),
    "back through local memory": (
        """
        %l = alloca double
        %x = load double, ptr %a
        %square = fmul double %x, %x
        %n = bitcast double %square to i64
        %m = xor i64 %n, -9223372036854775808
        store i64 %m, ptr %l
        %y = load double, ptr %l
        store double %y, ptr %r
        """,
        False,
    ),
    "through memory without numbers": (
        """
        %l = alloca i64
        %n = load i64, ptr %a
        %m = xor i64 %n, -9223372036854775808
        store i64 %m, ptr %l
        %k = load i64, ptr %l
        store i64 %k, ptr %r
        """,
        False,
    ),
}


@pytest.mark.parametrize("route", ROUTES)
def test_bits_of_numbers(route):
    body, expected = ROUTES[route]
    assert accepted(body) == expected


# From a number to %y by way of an operation that only moves its bits; %l is local memory.
MOVES = {
    "the elements of a vector": """
        %v = bitcast double %x to <2 x i32>
        %low = extractelement <2 x i32> %v, i32 0
        %w = insertelement <2 x i32> %v, i32 %low, i32 1
        %y = bitcast <2 x i32> %w to double""",
    "another order of elements": """
        %v = bitcast double %x to <2 x i32>
        %w = shufflevector <2 x i32> %v, <2 x i32> poison, <2 x i32> <i32 1, i32 0>
        %y = bitcast <2 x i32> %w to double""",
    "another order of bytes": """
        %n = bitcast double %x to i64
        %m = call i64 @llvm.bswap.i64(i64 %n)
        %y = bitcast i64 %m to double""",
    "the smaller of two": """
        %n = bitcast double %x to i64
        %m = call i64 @llvm.umin.i64(i64 %n, i64 9000000000000000000)
        %y = bitcast i64 %m to double""",
    "a vector that is loaded": """
        %v = load <2 x i32>, ptr %a
        %y = bitcast <2 x i32> %v to double""",
    "a vector that is stored": """
        %n = bitcast double %x to i64
        %v = insertelement <2 x i64> zeroinitializer, i64 %n, i32 1
        store <2 x i64> %v, ptr %l
        %at = getelementptr i8, ptr %l, i64 8
        %y = load double, ptr %at""",
    "the second number of a wide integer": """
        %n = load i128, ptr %a
        store i128 %n, ptr %l
        %at = getelementptr i8, ptr %l, i64 8
        %y = load double, ptr %at""",
    "an exchange of integers": """
        %n = bitcast double %x to i64
        store i64 %n, ptr %l
        %m = atomicrmw xchg ptr %l, i64 0 seq_cst
        %y = bitcast i64 %m to double""",
}


@pytest.mark.parametrize("move", MOVES)
def test_bits_that_are_only_moved(move):
    text = "%l = alloca [2 x i64]\n%x = load double, ptr %a\n" + MOVES[move] + "\nstore double %y, ptr %r\n"
    intrinsics = "declare i64 @llvm.bswap.i64(i64)\ndeclare i64 @llvm.umin.i64(i64, i64)\n"
    assert not accepted(text, before=intrinsics)
    assert accepted(text, kinds="sc", before=intrinsics)


@pytest.mark.parametrize("place", [0, 4])
def test_a_float_that_is_half_of_an_integer(place):
    """As LLVM moves records of eight bytes."""
    record = MemoryType(8, ((4 - place, "i32"), (place, "float")))
    body = f"""
      %l = alloca [2 x i32]
      %n = load i64, ptr %a
      %m = or i64 %n, 1
      store i64 %m, ptr %l
      %at = getelementptr i8, ptr %l, i64 {place}
      %x = load float, ptr %at
      %y = fpext float %x to double
      store double %y, ptr %r
    """
    assert not accepted(body, memory=(DOUBLES, record))
    assert accepted(body, kinds="sc", memory=(DOUBLES, record))


@pytest.mark.parametrize("route", ["through local memory", "through memory without numbers"])
def test_bits_that_no_result_depends_on(route):
    *kept, last = ROUTES[route][0].strip().splitlines()
    assert "ptr %r" in last
    assert accepted("\n".join(kept))


def test_integers_are_not_bits_of_numbers():
    assert accepted(STORED, memory=(INTEGERS, INTEGERS))


def test_a_list_header_is_not_a_number():
    """The size at the head of a list's memory is an integer, the elements after it are numbers."""
    body = """
      %m = call ptr @NRT_MemInfo_new_varsize_dtor(i64 1024, ptr @dtor)
      %at = getelementptr i8, ptr %m, i64 24
      %d = load ptr, ptr %at
      store i64 0, ptr %d
      %size = load i64, ptr %d
      %more = add i64 %size, 1
      store i64 %more, ptr %d
      %elements = getelementptr i8, ptr %d, i64 24
      %p = getelementptr double, ptr %elements, i64 %size
      %x = load double, ptr %a
      store double %x, ptr %p
      %y = load double, ptr %p
      store double %y, ptr %r
    """
    text = f"""
    declare ptr @NRT_MemInfo_new_varsize_dtor(i64, ptr)
    declare void @dtor(ptr)
    define i32 @f(ptr noalias %r, ptr %a) {{
    {body}
    ret i32 0
    }}"""
    unit = unit_of(text, "ss")
    assert len(unit.activity.active) == 2


BYTES = """
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %from = getelementptr i8, ptr %a, i64 %i
  %to = getelementptr i8, ptr %r, i64 %i
  %n = load i8, ptr %from
  store i8 %n, ptr %to
  %j = add i64 %i, 1
  %c = icmp eq i64 %j, 64
  br i1 %c, label %end, label %loop
end:
"""


def test_numbers_copied_byte_by_byte():
    assert not accepted(BYTES)
    assert not accepted(BYTES, memory=(DOUBLES, None))
    assert accepted(BYTES, kinds="sc")
    assert accepted(BYTES, memory=(INTEGERS, INTEGERS))


def test_a_flag_beside_numbers_is_not_a_number():
    body = """
      %flag = getelementptr i8, ptr %a, i64 8
      %copy = getelementptr i8, ptr %r, i64 8
      %n = load i8, ptr %flag
      store i8 %n, ptr %copy
      %x = load double, ptr %a
      store double %x, ptr %r
    """
    record = MemoryType(16, ((0, "double"), (8, "i8")))
    assert accepted(body, memory=(record, record))
    assert not accepted(body.replace("i64 8", "i64 7"), memory=(record, record))


CALLEES = """
define internal double @number(i64 %n) noinline {
  %x = bitcast i64 %n to double
  ret double %x
}
define internal i64 @bits(double %x) noinline {
  %n = bitcast double %x to i64
  ret i64 %n
}
define internal { i64, double } @pair(i64 %n, double %x) noinline {
  %p = insertvalue { i64, double } poison, i64 %n, 0
  %q = insertvalue { i64, double } %p, double %x, 1
  ret { i64, double } %q
}
define internal double @number_of_pair(double %x) noinline {
  %p = call { i64, double } @pair(i64 1, double %x)
  %n = extractvalue { i64, double } %p, 0
  %v = extractvalue { i64, double } %p, 1
  %q = call { i64, double } @pair(i64 %n, double %v)
  %y = extractvalue { i64, double } %q, 1
  ret double %y
}
define internal i32 @sign(i64 %n) noinline {
  %c = icmp slt i64 %n, 0
  %s = zext i1 %c to i32
  ret i32 %s
}
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%n = bitcast double %x to i64\n%y = call double @number(i64 %n)", False),
        ("%n = call i64 @bits(double %x)\n%y = bitcast i64 %n to double", False),
        ("%n = bitcast double %x to i64\n%s = call i32 @sign(i64 %n)\n%y = sitofp i32 %s to double", True),
        ("%n = call i64 @bits(double %x)\n%y = sitofp i64 %n to double", True),
        ("%y = call double @number(i64 3)", True),
        ("%y = call double @number_of_pair(double %x)", True),
    ],
)
def test_bits_that_a_callee_is_given_or_returns(body, expected):
    head, tail = (
        "define i32 @f(ptr noalias %r, ptr %a) {\n%x = load double, ptr %a",
        "store double %y, ptr %r\nret i32 0\n}",
    )
    text = "\n".join((head, body, tail))
    if expected:
        unit_of(f"{text}\n{CALLEES}", "ss", [DOUBLES, DOUBLES])
    else:
        with pytest.raises(UnsupportedError, match=REFUSAL):
            unit_of(f"{text}\n{CALLEES}", "ss", [DOUBLES, DOUBLES])


COPY = "call void @llvm.memcpy.p0.p0.i64(ptr %{0}, ptr %{1}, i64 8, i1 false)"
CHANGED_BITS = """
  %n = load i64, ptr %next
  %m = add i64 %n, 4503599627370496
  store i64 %m, ptr %next
"""


def copied(before: str, *copies: str) -> str:
    """A number is copied to `%next`, where its bits are changed, and back to `%b`."""
    there = "\n".join(copies)
    back = COPY.format("b", "next")
    return f"{before}\n{there}{CHANGED_BITS}{back}\n%y = load double, ptr %b\nstore double %y, ptr %r\n"


COPIED_WITHIN = copied(
    """
  %b = alloca [4 x double]
  %next = getelementptr i8, ptr %b, i64 8
  %x = load double, ptr %a
  store double %x, ptr %b
""",
    COPY.format("next", "b"),
)
COPIED_BETWEEN = copied(
    """
  %b = alloca [4 x double]
  %c = alloca [4 x double]
  %next = getelementptr i8, ptr %c, i64 8
  %x = load double, ptr %a
  store double %x, ptr %b
  store double %x, ptr %c
""",
    COPY.format("next", "b"),
)
COPIED_TWICE = copied(
    """
  %b = alloca [4 x double]
  %c = alloca [4 x double]
  %d = alloca [4 x double]
  %first = getelementptr i8, ptr %c, i64 8
  %next = getelementptr i8, ptr %d, i64 16
  %x = load double, ptr %a
  store double %x, ptr %b
  store double %x, ptr %c
  store double %x, ptr %d
""",
    COPY.format("first", "b"),
    COPY.format("next", "first"),
)
CHANGED_BYTE = """
  %byte = getelementptr i8, ptr %next, i64 7
  %n = load i8, ptr %byte
  %m = xor i8 %n, -128
  store i8 %m, ptr %byte
"""
COPIED_BY_BYTES = COPIED_BETWEEN.replace(CHANGED_BITS, CHANGED_BYTE)
assert COPIED_BY_BYTES != COPIED_BETWEEN
COPIED_IN_A_LOOP = f"""
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %j, %loop ]
  %b = alloca [8 x double]
  %c = alloca [8 x double]
  %from = getelementptr {{ double, i64 }}, ptr %b, i64 %i
  %record = getelementptr {{ double, i64 }}, ptr %c, i64 %i
  %to = getelementptr i8, ptr %record, i64 8
  %x = load double, ptr %a
  store double %x, ptr %from
  store double %x, ptr %record
  {COPY.format("to", "from")}
  %n = load i64, ptr %to
  %m = add i64 %n, 4503599627370496
  store i64 %m, ptr %to
  {COPY.format("from", "to")}
  %y = load double, ptr %from
  store double %y, ptr %r
  %j = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %j, 4
  br i1 %more, label %loop, label %end
end:
"""
DECLARED = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"


@pytest.mark.parametrize("body", [COPIED_WITHIN, COPIED_BETWEEN, COPIED_TWICE, COPIED_BY_BYTES, COPIED_IN_A_LOOP])
def test_a_copy_takes_the_bits_of_floats_to_where_integers_were(body):
    assert not accepted(body, before=DECLARED)
    assert accepted(body, kinds="cc", before=DECLARED)


def test_a_copy_of_whole_records_leaves_integers_between_floats():
    body = COPIED_IN_A_LOOP.replace("ptr %to, ptr %from, i64 8", "ptr %record, ptr %from, i64 16")
    body = body.replace("ptr %from, ptr %to, i64 8", "ptr %from, ptr %record, i64 16")
    assert body.count("i64 16") == 2
    assert accepted(body, before=DECLARED)
