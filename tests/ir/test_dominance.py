from hypothesis import given

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import control_flow
from irad.ir.dominance import dominators
from irad.ir.instructions import Invoke
from irad.ir.module import Module
from irad.ir.values import const_int
from tests.ir.graphs import block, graph, graphs, names, reaches


def immediate(tree):
    return "".join(f"{b.name}{p.name if p else '-'} " for b, p in tree.immediate.items()).split()


def test_diamond_with_loop():
    cfg = control_flow(graph("a:b b:cd c:e d:e e:bf f:"))
    assert immediate(dominators(cfg)) == ["a-", "ba", "cb", "db", "eb", "fe"]


def test_children_and_the_order_of_the_tree():
    function = graph("a:bc b:d c:d d:e e:")
    tree = dominators(control_flow(function))
    assert names(tree.children[block(function, "a")]) == "bcd"
    assert tree.immediate[block(function, "d")] is block(function, "a")
    assert tree.dominates(block(function, "d"), block(function, "e"))
    assert not tree.dominates(block(function, "e"), block(function, "d"))


def test_unreachable_blocks_are_dominated_by_all_and_dominate_none():
    function = graph("a:b b: x:b")
    tree = dominators(control_flow(function))
    assert tree.dominates(block(function, "b"), block(function, "x"))
    assert not tree.dominates(block(function, "x"), block(function, "b"))


@given(graphs())
def test_dominance_is_that_of_its_definition(edges):
    """a dominates b when b cannot be reached without a."""
    cfg = control_flow(graph(edges))
    tree = dominators(cfg)
    for a in cfg.order:
        rest = reaches(cfg.order[:1], cfg.successors, without=a)
        assert [b for b in cfg.order if tree.dominates(a, b)] == [b for b in cfg.order if b not in rest]


@given(graphs())
def test_immediate_dominator_is_the_nearest(edges):
    cfg = control_flow(graph(edges))
    tree = dominators(cfg)
    for b in cfg.order[1:]:
        above = [a for a in cfg.order if a is not b and tree.dominates(a, b)]
        assert all(tree.dominates(a, tree.immediate[b]) for a in above)
        assert tree.immediate[b] in above


def test_values_in_one_block_dominate_what_follows():
    function = graph("a:b b:")
    builder = Builder.at_start(block(function, "a"))
    first = builder.add(function.params[0], const_int(types.I64, 1))
    second = builder.add(first, first)
    tree = dominators(control_flow(function))
    assert tree.value_dominates(first, second)
    assert not tree.value_dominates(second, first)
    assert not tree.value_dominates(first, first)
    assert tree.value_dominates(second, block(function, "b").terminator)
    assert tree.value_dominates(function.params[0], first)
    assert tree.value_dominates(const_int(types.I64, 1), first)


def test_an_invoke_is_available_on_its_normal_edge_only():
    module = Module()
    callee = module.declare("g", types.function_type(types.I64, []))
    function = module.define("f", types.function_type(types.VOID, []))
    entry, normal, unwind = (function.add_block(name) for name in "anu")
    type_ = callee.function_type
    invoke = Invoke(types.I64, "r", operands=[callee], targets=[normal, unwind], function_type=type_)
    entry.append(invoke)
    in_normal, in_unwind = Builder(normal).ret(), Builder(unwind).ret()
    tree = dominators(control_flow(function))
    assert tree.value_dominates(invoke, in_normal)
    assert not tree.value_dominates(invoke, in_unwind)
