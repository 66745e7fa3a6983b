from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
from hypothesis import given

from irad.ir.cfg import control_flow
from irad.ir.dominance import dominators
from irad.ir.loops import cycles, loop_nest
from irad.ir.reducible import make_reducible
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.verifier import verify
from tests.ir.graphs import graph, graphs, names


def is_reducible(function):
    cfg = control_flow(function)
    return loop_nest(cfg, dominators(cfg)).irreducible == ()


def test_cycles_and_their_heads():
    cfg = control_flow(graph("a:bc b:d c:e d:e e:df f:bc"))
    assert [(set(names(blocks)), set(names(heads))) for blocks, heads in cycles(cfg)] == [
        (set("bcdef"), set("bc")),
        (set("de"), set("de")),
    ]


@given(graphs())
def test_any_graph_becomes_reducible(edges):
    function = graph(edges)
    irreducible = not is_reducible(function)
    assert make_reducible(function) == irreducible
    assert is_reducible(function)
    assert not make_reducible(function)


# A walk through a cycle of three blocks that is entered at two of them and left at two; each adds a number of its own.
WALK = """
define i64 @f(i64 %n, i64 %start) {
entry:
  %c = icmp eq i64 %start, 0
  br i1 %c, label %one, label %two
one:
  %a = phi i64 [ 0, %entry ], [ %z, %three ]
  %i = phi i64 [ %n, %entry ], [ %k, %three ]
  %x = add i64 %a, 1
  %c1 = icmp eq i64 %i, 0
  br i1 %c1, label %end, label %two
two:
  %b = phi i64 [ 0, %entry ], [ %x, %one ]
  %j = phi i64 [ %n, %entry ], [ %i, %one ]
  %y = add i64 %b, 100
  %k = sub i64 %j, 1
  br label %three
three:
  %z = add i64 %y, 10000
  %c3 = icmp eq i64 %k, 0
  br i1 %c3, label %end, label %one
end:
  %r = phi i64 [ %x, %one ], [ %z, %three ]
  ret i64 %r
}
"""


def run(text, *arguments):
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))
    return function(engine.get_function_address("f"))(*arguments)


def test_the_function_stays_the_same():
    module = parse_module(WALK)
    assert make_reducible(module.functions["f"])
    verify(module)
    text = print_module(module)
    for n in (0, 1, 2, 5):
        for start in (0, 1):
            if n or start == 0:
                assert run(text, n, start) == run(WALK, n, start)


def test_a_function_without_such_cycles_is_not_touched():
    function = graph("a:h h:bx b:h x:")
    before = [block.name for block in function.blocks]
    assert not make_reducible(function)
    assert [block.name for block in function.blocks] == before
