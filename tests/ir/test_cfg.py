from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import control_flow, edges_from, remove_unreachable_blocks
from irad.ir.instructions import replace_operand
from irad.ir.text.parser import parse_module
from irad.ir.values import const_int
from irad.ir.verifier import verify
from irad.passes.augmented.allocation_failure import split_before
from tests.ir.graphs import block, graph, names

SWITCH = """
define i64 @f(i64 %n) {
entry:
  switch i64 %n, label %end [ i64 1, label %end i64 2, label %other i64 3, label %end ]
other:
  br label %end
end:
  %r = phi i64 [ 1, %entry ], [ 1, %entry ], [ 2, %other ], [ 1, %entry ]
  ret i64 %r
}
"""


def test_order_is_reverse_postorder_and_follows_the_first_target():
    assert names(control_flow(graph("a:bc b:d c:d d:")).order) == "abcd"
    assert names(control_flow(graph("a:h h:bx b:h x:")).order) == "ahbx"


def test_a_block_precedes_its_successors_but_along_back_edges():
    cfg = control_flow(graph("a:b b:cd c:ef d:e e:bg f:g g:"))
    backward = [(p, s) for p in cfg.order for s in cfg.successors[p] if cfg.position[s] <= cfg.position[p]]
    assert [names(edge) for edge in backward] == ["eb"]


def test_predecessors_and_successors_list_each_block_once():
    function = graph("a:bbcb b:c c:")
    cfg = control_flow(function)
    a, b, c = function.blocks
    assert cfg.successors == {a: (b, c), b: (c,), c: ()}
    assert cfg.predecessors == {a: (), b: (a,), c: (a, b)}


def test_unreachable_blocks_are_absent():
    cfg = control_flow(graph("a:b b: x:by y:x"))
    assert names(cfg.order) == "ab"
    assert {b.name for b in cfg.predecessors} == {"a", "b"}
    assert names(cfg.predecessors[cfg.order[1]]) == "a"


def test_a_very_deep_graph_needs_no_recursion():
    cfg = control_flow(
        graph(" ".join(f"{chr(i)}:{chr(i + 1)}" for i in range(0x4E00, 0x4E00 + 5000)) + f" {chr(0x4E00 + 5000)}:")
    )
    assert len(cfg.order) == 5001


def _phi(function, place, **incoming):
    values = [(const_int(types.I64, value), block(function, name)) for name, value in incoming.items()]
    return Builder(block(function, place)).phi(types.I64, values)


def test_removing_unreachable_blocks_fixes_phis_and_use_lists():
    function = graph("a:c x:yc y:xc c:")
    phi = _phi(function, "c", a=1, x=2, y=3)
    used = Builder.at_start(block(function, "x")).add(function.params[0], function.params[0])
    Builder.at_start(block(function, "y")).add(used, used)
    remove_unreachable_blocks(function)
    assert names(function.blocks) == "ac"
    assert [(v.value, b.name) for v, b in phi.incoming()] == [(1, "a")]
    assert not function.params[0].users
    verify(function)


def test_unreachable_cycle_of_phis_is_removed():
    function = graph("a: x:y y:x")
    first = _phi(function, "x", y=0)
    second = Builder(block(function, "y")).phi(types.I64, [(first, block(function, "x"))])
    first.set_operand(0, second)
    remove_unreachable_blocks(function)
    assert names(function.blocks) == "a"


def test_a_block_can_be_split_where_a_switch_has_several_edges_to_a_phi():
    """LLVM wants one value in a phi for each edge, so moving the terminator must not merge them."""
    function = parse_module(SWITCH).functions["f"]
    end = function.blocks[-1]
    rest = split_before(function.entry.terminator)
    Builder(function.entry).br(rest)
    verify(function)
    (phi,) = end.phis()
    assert len(phi.operands) == 4


def test_the_edges_from_predecessors_are_those_that_a_phi_lists():
    function = parse_module(SWITCH).functions["f"]
    end = function.blocks[-1]
    (phi,) = end.phis()
    assert sorted(b.name for b in edges_from(control_flow(function).predecessors[end], end)) == sorted(
        b.name for b in phi.blocks
    )


def test_an_operand_of_a_phi_is_replaced_on_all_edges_from_a_block():
    function = parse_module(SWITCH).functions["f"]
    (phi,) = function.blocks[-1].phis()
    replace_operand(phi, 1, const_int(types.I64, 7))
    verify(function)
    assert [str(value.value) for value in phi.operands] == ["7", "7", "2", "7"]
