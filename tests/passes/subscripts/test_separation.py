"""Which stores never touch what a load has read, and which may."""

from __future__ import annotations

import pytest

from irad.ir.cfg import control_flow
from irad.ir.dominance import dominators
from irad.ir.instructions import Load, Store
from irad.ir.loops import loop_nest
from irad.ir.text.parser import parse_module
from irad.passes.subscripts.dimensions import DIMENSION, take_dimensions
from irad.passes.subscripts.forms import Forms
from irad.passes.subscripts.separation import Separation
from tests.passes.units import canonical, value

ELIMINATION = """
declare i64 @irad.dimension(i64, ptr)
define void @f(ptr %a, ptr %o, i64 %n, i64 %m, i64 %z, i1 %c) {{
entry:
  %d = call i64 @irad.dimension(i64 %m, ptr %a)
  %e = call i64 @irad.dimension(i64 %n, ptr %a)
  %view = getelementptr double, ptr %a, i64 2
  %d.view = call i64 @irad.dimension(i64 %m, ptr %view)
  br label %outer
outer:
  %k = phi i64 [ {start}, %entry ], [ %k.next, %outer.latch ]
  %k.next = add i64 %k, {step}
  %k.row = mul i64 %k, %d
  br label %inner
inner:
  %j = phi i64 [ {first}, %outer ], [ %j.next, %inner ]
  %j.row = mul i64 %j, %d
  {read}
  %p = getelementptr double, ptr %a, i64 %at
  %x = load double, ptr %p
  {write}
  %q = getelementptr {type}, ptr {base}, i64 %to
  store {type} 1.0, ptr %q
  %j.next = add i64 %j, {inner}
  %inner.ends = icmp eq i64 %j.next, {bound}
  br i1 %inner.ends, label %outer.latch, label %inner
outer.latch:
  %ends = icmp eq i64 %k.next, %n
  br i1 %ends, label %end, label %outer
end:
  ret void
}}
"""


def separation_of(text: str):
    module = parse_module(canonical(text))
    dimensions = take_dimensions(module)
    function = module.defined_functions()[0]
    cfg = control_flow(function)
    dom = dominators(cfg)
    loops = loop_nest(cfg, dom)
    return function, loops, Separation(Forms(cfg, dom, loops, dimensions))


def is_apart(read: str, write: str, **places: str) -> bool:
    """Whether the store of `a[…]` is apart from the load, by terms that are added up."""
    given = {"start": "0", "step": "1", "first": "%k.next", "bound": "%n", "inner": "1", "type": "double", "base": "%a"}
    read, write = _sum(read, "at"), _sum(write, "to")
    function, _, separation = separation_of(ELIMINATION.format(read=read, write=write, **given | places))
    load, store = value(function, "x"), next(i for i in function.instructions() if isinstance(i, Store))
    assert isinstance(load, Load)
    return separation.is_apart_later(load, store)


def _sum(terms: str, name: str) -> str:
    total, lines = "0", list[str]()
    for number, term in enumerate(terms.split()):
        lines.append(f"%{name}{number} = add i64 {total}, {term}")
        total = f"%{name}{number}"
    return "\n  ".join([*lines, f"%{name} = add i64 {total}, 0"])


@pytest.mark.parametrize(
    ("read", "write", "places"),
    [
        ("%k", "%j", {}),  # x[k], x[j > k]
        ("%k.row %k", "%j.row %j", {}),
        ("%j.row %k", "%k.row %j", {}),  # column k, later columns j > k
        ("%k.row %j", "%j.row %k", {}),  # row k, later rows j > k
        ("%k.row %j", "%j.row %j", {}),
        ("%k", "%j -1", {"step": "-1", "first": "%k", "inner": "-1", "start": "%z"}),  # x[k], x[j < k]
        ("%k", "%j", {"step": "2"}),
        ("%k", "%j", {"base": "%view"}),  # two elements further
        ("%k", "%j %j", {"type": "float"}),  # the first half of a later element
    ],
)
def test_apart(read, write, places):
    assert is_apart(read, write, **places)


@pytest.mark.parametrize(
    ("read", "write", "places"),
    [
        ("%k", "%j", {"first": "%k"}),  # range(k, …) rather than range(k + 1, …)
        ("%k.row %k", "%j.row %k", {"first": "%k"}),
        ("%j.row %k", "%j.row %j -1", {}),  # one column off
        ("%j.row %k", "%j.row %k", {}),
        ("%k.row %j", "%j.row %j", {"first": "0"}),
        ("%j", "%j", {"start": "1", "first": "0", "bound": "%k"}),  # x[j < k] is written again for the next k
        ("%k", "%j", {"step": "-1", "bound": "%z"}),  # downwards
        ("%k", "%j", {"inner": "-1", "bound": "%z"}),
        ("%k", "%j", {"first": "%z"}),  # from anywhere
        ("%k %z", "%j", {}),
        ("%k", "%j", {"base": "%o"}),  # another array, which may overlap
        ("%k 3", "%j", {"base": "%view"}),
        ("%k.row %k", "%j %k", {}),  # a vector in the place of the matrix
        ("%k", "%j.row %j", {}),
        ("%k", "%j", {"type": "float"}),  # half as far
        ("%k", "%j %j -1", {"type": "float"}),  # the second half of the same element
    ],
)
def test_perhaps_not_apart(read, write, places):
    assert not is_apart(read, write, **places)


MARKS = """
declare i64 @irad.dimension(i64, ptr)
define void @f(ptr %a, i64 %n, i64 %m, i64 %i, i64 %r) {{
entry:
  %d = call i64 @irad.dimension(i64 %m, ptr %a)
  %b = getelementptr double, ptr %a, i64 %i
  %other = call i64 @irad.dimension(i64 {size}, ptr {start})
  %row = mul i64 %i, %d
  %at = add i64 %row, 3
  %p = getelementptr double, ptr %a, i64 %at
  %x = load double, ptr %p
  %again = mul i64 %r, {factor}
  %to = add i64 %again, {column}
  %q = getelementptr double, ptr %a, i64 %to
  store double 1.0, ptr %q
  ret void
}}
"""


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ({}, True),  # another column of a row that may be the same
        ({"column": "3"}, False),
        ({"factor": "%m"}, False),  # i·m + j that the program computes itself: j may be anything
        ({"factor": "16"}, False),
        ({"factor": "%other", "size": "%n"}, False),  # rows of another length
        ({"factor": "%other", "start": "%b"}, False),  # an array that starts elsewhere
        ({"factor": "%other"}, True),
    ],
)
def test_subscripts_of_marked_dimensions(places, expected):
    given = {"factor": "%d", "column": "4", "size": "%m", "start": "%a"}
    function, _, separation = separation_of(MARKS.format(**given | places))
    load, store = value(function, "x"), next(i for i in function.instructions() if isinstance(i, Store))
    assert isinstance(load, Load)
    assert separation.is_apart_later(load, store) is expected


UNGUARDED = """
define void @f(ptr %a, i64 %n, i1 %c) {{
entry:
  %w = getelementptr double, ptr %a, i64 %n
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %p = getelementptr double, ptr %a, i64 %i
  %x = load double, ptr %p
  br i1 {leaves}, label %end, label %latch
latch:
  %next = add i64 %i, 1
  %more = icmp {predicate} i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  store double 1.0, ptr %w
  ret void
}}
"""


@pytest.mark.parametrize(
    ("predicate", "leaves", "expected"),
    [
        ("ne", "false", True),  # i < n, or the loop never ends
        ("slt", "false", False),  # runs once even if n is 0
        ("ne", "%c", False),  # n may be negative
    ],
)
def test_the_bound_of_a_loop_counts_where_it_is_reached(predicate, leaves, expected):
    text = UNGUARDED.format(predicate=predicate, leaves=leaves)
    if leaves == "false":
        text = text.replace("br i1 false, label %end, label %latch", "br label %latch")
    function, _, separation = separation_of(text)
    load, store = value(function, "x"), next(i for i in function.instructions() if isinstance(i, Store))
    assert isinstance(load, Load)
    assert separation.is_apart_later(load, store) is expected


CHOICE = """
define void @f(ptr %a, i64 %n, i1 %c) {{
entry:
  br label %outer
outer:
  %k = phi i64 [ 0, %entry ], [ %k.next, %chosen ]
  {carried}
  %p = getelementptr double, ptr %a, i64 %k
  %x = load double, ptr %p
  %k.next = add i64 %k, 1
  br label %search
search:
  %i = phi i64 [ %k.next, %outer ], [ %i.next, %search ]
  %best = phi i64 [ {start}, %outer ], [ %better, %search ]
  %better = select i1 %c, i64 {candidate}, i64 %best
  %i.next = add i64 %i, 1
  %found = icmp eq i64 %i.next, %n
  br i1 %found, label %chosen, label %search
chosen:
  %last = phi i64 [ %better, %search ]
  %negative = icmp slt i64 %last, 0
  %wrapped = add i64 %last, %n
  %index = select i1 %negative, i64 %wrapped, i64 %last
  %to = add i64 %index, {further}
  %q = getelementptr double, ptr %a, i64 %to
  store double 1.0, ptr %q
  %ends = icmp eq i64 %k.next, %n
  br i1 %ends, label %end, label %outer
end:
  ret void
}}
"""


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ({}, True),
        ({"further": "0"}, False),
        ({"start": "0"}, False),
        ({"candidate": "%n"}, False),
        ({"start": "%n"}, False),
        ({"carried": "%before = phi i64 [ 0, %entry ], [ %last, %chosen ]", "start": "%before"}, False),
        ({"carried": "%before = phi i64 [ 0, %entry ], [ %k, %chosen ]", "start": "%before"}, False),
    ],
)
def test_an_index_that_is_chosen_among_later_ones(places, expected):
    given = {"carried": "", "start": "%k", "candidate": "%i", "further": "1"}
    function, _, separation = separation_of(CHOICE.format(**given | places))
    load, store = value(function, "x"), next(i for i in function.instructions() if isinstance(i, Store))
    assert isinstance(load, Load)
    assert separation.is_apart_later(load, store) is expected


def test_the_marks_are_gone():
    module = parse_module(canonical(MARKS.format(factor="%d", column="4", size="%m", start="%a")))
    assert len(take_dimensions(module)) == 2
    assert DIMENSION not in module.functions


FACTOR = """
declare i64 @irad.dimension(i64, ptr)
define void @f(ptr %a, i64 %n, i64 %m) {{
entry:
  %d = call i64 @irad.dimension(i64 %m, ptr %a)
  br label %outer
outer:
  %j = phi i64 [ 0, %entry ], [ %j.next, %join ]
  %narrow = phi i8 [ 0, %entry ], [ %narrow.next, %join ]
  %narrow.next = add i8 %narrow, 1
  %row = mul i64 %j, %d
  %first = icmp {test}
  br i1 %first, label %{early}, label %before
alone:
  br label %join
before:
  br label %columns
columns:
  %k = phi i64 [ 0, %before ], [ %k.next, %columns ]
  %at = add i64 %row, %k
  %p = getelementptr double, ptr %a, i64 %at
  %x = load double, ptr %p
  %k.next = add i64 %k, 1
  %full = icmp eq i64 %k.next, %j
  br i1 %full, label %join, label %columns
join:
  %again = phi i64 [ {constant}, %{last} ], [ %row, %columns ]
  %to = add i64 %again, %j
  %q = getelementptr double, ptr %a, i64 %to
  store double 1.0, ptr %q
  %j.next = add i64 %j, 1
  %ends = icmp eq i64 %j.next, %n
  br i1 %ends, label %end, label %outer
end:
  ret void
}}
"""


@pytest.mark.parametrize(
    ("test", "constant", "expected"),
    [
        ("eq i64 %j, 0", "0", True),  # on this edge the row begins at 0, as in all rows
        ("eq i64 %j, 0", "1", False),
        ("eq i64 %j, 1", "0", False),
        ("ne i64 %j, 0", "0", False),
        ("slt i64 %j, 1", "0", False),
        ("eq i64 %m, 0", "0", False),
        ("eq i8 %narrow, 0", "0", False),  # in every 256th iteration
    ],
)
def test_a_constant_in_place_of_what_a_branch_has_found_out(test: str, constant: str, expected: bool):
    """Left of the diagonal elements are read, of which each is stored once."""
    for early, last in (("join", "outer"), ("alone", "alone")):
        text = FACTOR.format(test=test, constant=constant, early=early, last=last)
        function, _, separation = separation_of(
            text if early == "alone" else text.replace("alone:\n  br label %join\n", "")
        )
        load, store = value(function, "x"), next(i for i in function.instructions() if isinstance(i, Store))
        assert isinstance(load, Load)
        assert separation.is_apart_later(load, store) is expected
