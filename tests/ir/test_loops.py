from hypothesis import given

from irad.ir.cfg import control_flow
from irad.ir.dominance import dominators
from irad.ir.loops import innermost_first, loop_nest
from tests.ir.graphs import block, graph, graphs, names, reaches


def nest_of(edges):
    function = graph(edges)
    cfg = control_flow(function)
    return function, loop_nest(cfg, dominators(cfg))


def test_one_loop():
    function, nest = nest_of("a:h h:bx b:h x:")
    (loop,) = nest.loops
    assert loop.header.name == "h"
    assert names(loop.order) == "hb"
    assert loop.blocks == frozenset(loop.order)
    assert (loop.parent, loop.children, loop.depth) == (None, [], 1)
    assert names(loop.latches) == "b"
    assert loop.latch is block(function, "b")
    assert loop.preheader is block(function, "a")
    assert [names(edge) for edge in loop.exits] == ["hx"]
    assert nest.irreducible == ()
    assert nest.loop_of(block(function, "x")) is None
    assert nest.loop_of(block(function, "b")) is loop


def test_nested_loops_come_outer_first():
    function, nest = nest_of("a:o o:ix i:jk j:i k:lo l:lm m:o x:")
    outer, first, second = nest.loops
    assert [names(loop.order) for loop in nest.loops] == ["oijklm", "ij", "l"]
    assert outer.children == [first, second]
    assert first.parent is outer
    assert [loop.depth for loop in nest.loops] == [1, 2, 2]
    assert names(outer.latches) == "km"
    assert outer.latch is None
    assert innermost_first(nest.loops) == (first, second, outer)
    assert nest.roots() == (outer,)
    assert nest.depth_of(block(function, "j")) == 2
    assert nest.depth_of(block(function, "x")) == 0
    assert outer.contains(first)
    assert outer.contains(outer)
    assert not first.contains(outer)
    assert outer.contains(block(function, "l"))
    assert not first.contains(block(function, "l"))


def test_a_loop_with_an_inner_loop_of_another_header_but_the_same_latch():
    _, nest = nest_of("a:o o:i i:bx b:ioc c:o x:")
    assert [(loop.header.name, names(loop.order), names(loop.latches)) for loop in nest.loops] == [
        ("o", "oibc", "bc"),
        ("i", "ib", "b"),
    ]
    inner = nest.loops[1]
    assert [names(edge) for edge in inner.exits] == ["ix", "bo", "bc"]


def test_no_preheader_when_the_entering_block_branches_or_several_enter():
    assert nest_of("a:hx h:hx x:")[1].loops[0].preheader is None
    assert nest_of("a:bc b:h c:h h:hx x:")[1].loops[0].preheader is None


def test_an_irreducible_cycle_is_no_loop():
    _, nest = nest_of("a:bc b:c c:bd d:")
    assert nest.loops == ()
    assert set(names(nest.irreducible)) == set("bc")


def test_irreducible_cycle_inside_of_a_loop():
    _, nest = nest_of("a:h h:bcx b:c c:bd d:h x:")
    assert [names(loop.order) for loop in nest.loops] == ["hcbd"]
    assert set(names(nest.irreducible)) == set("bc")


def test_nested_irreducible_cycles_are_all_listed():
    # b and c enter the outer cycle; d and e, entered from both b and c, the inner one.
    _, nest = nest_of("a:bc b:d c:e d:e e:df f:bc")
    assert set(names(nest.irreducible)) == set("bcde")


def reducible(cfg):
    """Hecht and Ullman's T1 and T2: drop self edges, merge a node into its only predecessor; one node is left."""
    before = {b: set(cfg.predecessors[b]) - {b} for b in cfg.order}
    changed = True
    while changed and len(before) > 1:
        changed = False
        for node in list(before):
            if len(before[node]) == 1:
                (into,) = before.pop(node)
                for predecessors in before.values():
                    if node in predecessors:
                        predecessors.remove(node)
                        predecessors.add(into)
                for other in before:
                    before[other].discard(other)
                changed = True
                break
    return len(before) == 1


@given(graphs())
def test_irreducible_entries_exactly_in_irreducible_graphs(edges):
    cfg = control_flow(graph(edges))
    nest = loop_nest(cfg, dominators(cfg))
    assert (nest.irreducible == ()) == reducible(cfg)


@given(graphs())
def test_loops_are_natural_nested_and_complete(edges):
    cfg = control_flow(graph(edges))
    tree = dominators(cfg)
    nest = loop_nest(cfg, tree)
    headers = [b for b in cfg.order if any(tree.dominates(b, p) for p in cfg.predecessors[b])]
    assert [loop.header for loop in nest.loops] == headers
    for loop in nest.loops:
        expected = reaches(loop.latches, cfg.predecessors, without=loop.header) | {loop.header}
        assert set(loop.order) == expected
        assert list(loop.latches) == [p for p in cfg.predecessors[loop.header] if tree.dominates(loop.header, p)]
        around = [other for other in nest.loops if other is not loop and loop.blocks <= other.blocks]
        assert loop.depth == len(around) + 1
        assert loop.parent is (min(around, key=lambda other: len(other.blocks)) if around else None)
        for other in nest.loops:
            assert loop.blocks <= other.blocks or other.blocks <= loop.blocks or not loop.blocks & other.blocks
    for b in cfg.order:
        around = [loop for loop in nest.loops if b in loop.blocks]
        assert nest.loop_of(b) is (min(around, key=lambda loop: len(loop.blocks)) if around else None)
