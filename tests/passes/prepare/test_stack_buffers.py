from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from irad.frontend.numba.convention import NUMBA
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.passes.prepare.stack_buffers import add_stack_buffers
from tests.passes.units import COUNTING, canonical

MADE = """
  %m = call ptr @NRT_MemInfo_alloc_aligned(i64 %n, i32 32)
  %failed = icmp eq ptr %m, null
  br i1 %failed, label %no, label %yes
yes:
  %field = getelementptr i8, ptr %m, i64 24
  %d = load ptr, ptr %field
"""
LOOP = """
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  MADE
  USE
  br label %latch
latch:
  call void @NRT_decref(ptr %m)
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %times
  br i1 %more, label %loop, label %done
done:
  ret double %x
no:
  ret double -1.0
"""


def buffered(use: str, made: str = MADE, loop: str = LOOP) -> list[str] | None:
    """The instructions of a function that was rewritten; None if it was not."""
    body = loop.replace("MADE", made).replace("USE", use)
    text = f"define double @f(double %x, i64 %n, i64 %times, ptr %out) {{\n{body}\n}}\n{COUNTING}"
    module = parse_module(canonical(text))
    assert NUMBA.references is not None
    changed = add_stack_buffers(module, NUMBA.references)
    text = print_module(module)
    llvm.parse_assembly(text).verify()
    lines = [line.strip() for line in text.splitlines()]
    assert changed == any("= alloca" in line for line in lines)
    return lines if changed else None


def test_memory_is_asked_for_where_the_buffer_is_too_small():
    lines = buffered("%p = getelementptr double, ptr %d, i64 1\nstore double %x, ptr %p")
    assert lines is not None
    assert "%m = alloca [128 x i8], align 64" in lines
    at = lines.index("call void @llvm.memset.p0.i64(ptr %m, i8 0, i64 128, i1 false)")
    assert lines[at + 1].endswith("= icmp ule i64 %n, 128")
    assert lines[at + 2].endswith("label %loop.rest, label %allocate")
    (allocate,) = (line for line in lines if "call ptr @NRT_MemInfo_alloc_aligned" in line)
    header = allocate.split(" = ")[0]
    memory = next(line.split(" = ")[0] for line in lines if " = load ptr, ptr " in line)
    phis = [line.split(" = ")[1] for line in lines if " = phi " in line]
    assert f"phi ptr [ null, %loop ], [ null, %allocate ], [ {header}, %allocated ]" in phis
    assert f"phi ptr [ %m, %loop ], [ null, %allocate ], [ {memory}, %allocated ]" in phis
    assert "phi i1 [ false, %loop ], [ true, %allocate ], [ false, %allocated ]" in phis
    assert sum("@NRT_decref(ptr" in line for line in lines) == 2  # with its declaration


def test_its_bytes_are_those_that_were_asked_for():
    lines = buffered("%s = getelementptr i8, ptr %m, i64 32\n%bytes = load i64, ptr %s\nstore i64 %bytes, ptr %out")
    assert lines is not None
    assert any(line.startswith("store i64 %n, ptr %out") for line in lines)


def test_a_check_for_success():
    other = MADE.replace("icmp eq", "icmp ne").replace("label %no, label %yes", "label %yes, label %no")
    lines = buffered("store double %x, ptr %d", other)
    assert lines is not None
    assert any(line.endswith("phi i1 [ true, %loop ], [ false, %allocate ], [ true, %allocated ]") for line in lines)


STAYS = {
    "stored": "store ptr %d, ptr %out",
    "its header stored": "store ptr %m, ptr %out",
    "passed to a call": "call void @other(ptr %d)",
    "maybe another": "%c = icmp sgt i64 %n, 0\n%p = select i1 %c, ptr %d, ptr %out\nstore double %x, ptr %p",
    "of two kinds": "store double %x, ptr %d\n%v = load i64, ptr %d\nstore i64 %v, ptr %out",
    "copied": "call void @llvm.memcpy.p0.p0.i64(ptr %d, ptr %out, i64 %n, i1 false)",
}


@pytest.mark.parametrize("use", STAYS.values(), ids=STAYS.keys())
def test_arrays_that_are_known_elsewhere_or_hold_other_than_numbers_stay(use: str):
    assert buffered(use) is None


def test_arrays_that_are_made_once_or_of_a_known_size_stay():
    once = f"entry:\n{MADE}\nstore double %x, ptr %d\nret double %x\nno:\nret double -1.0"
    assert buffered("", loop=once) is None
    assert buffered("store double %x, ptr %d", MADE.replace("i64 %n,", "i64 24,")) is None


INNER = """
  br label %inner
inner:
  %k = phi i64 [ 0, %yes ], [ %k.next, %inner ]
  INDEX
  %p = getelementptr double, ptr %d, i64 %index
  %v = load double, ptr %p
  %k.next = add nuw nsw i64 %k, 1
  %k.more = icmp ult i64 %k.next, %n
  br i1 %k.more, label %inner, label %latch.before
latch.before:
"""


@pytest.mark.parametrize(
    ("index", "is_buffered"),
    [
        ("%index = add i64 %k, 0", True),
        ("%twice = shl i64 %k, 1\n%index = sub i64 %twice, %n", True),
        ("%index = mul i64 %k, %i", True),
        ("%index = add i64 %i, 0", True),  # in all iterations the same, so that it is read once
        ("%index = phi i64 [ 1, %yes ], [ %index.next, %inner ]\n%index.next = mul i64 %index, 3", False),
        ("%index = urem i64 %k, 3", False),
        ("%index = load i64, ptr %out", False),
    ],
)
def test_what_a_loop_reads_again_and_again_stays(index: str, is_buffered: bool):
    assert (buffered(INNER.replace("INDEX", index)) is not None) == is_buffered


def test_an_element_that_a_loop_reads_again_and_writes_to_stays():
    one = INNER.replace("INDEX", "%index = add i64 %i, 0")
    assert buffered(one) is not None
    elsewhere = "%v = load double, ptr %p\n  %q = getelementptr double, ptr %d, i64 %k\n  store double %x, ptr %q"
    assert buffered(one.replace("%v = load double, ptr %p", elsewhere)) is None
    cleared = "%v = load double, ptr %p\n  call void @llvm.memset.p0.i64(ptr %d, i8 0, i64 8, i1 false)"
    assert buffered(one.replace("%v = load double, ptr %p", cleared)) is None


def test_a_loop_around_the_one_that_reads():
    around = (
        """
  br label %outer
outer:
  %o = phi i64 [ 0, %yes ], [ %o.next, %outer.latch ]
"""
        + INNER.replace("%yes", "%outer")
        + """
  br label %outer.latch
outer.latch:
  %o.next = add nuw nsw i64 %o, 1
  %o.more = icmp ult i64 %o.next, %n
  br i1 %o.more, label %outer, label %outer.done
outer.done:
"""
    )
    assert buffered(around.replace("INDEX", "%index = add i64 %k, 0")) is None
    assert buffered(around.replace("INDEX", "%row = mul i64 %o, %n\n%index = add i64 %k, %row")) is not None
