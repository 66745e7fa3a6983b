from hypothesis import given, strategies as st

from irad.ir.builder import Builder
from irad.ir.cfg import control_flow
from irad.ir.run_order import RunOrder
from tests.ir.graphs import graph, graphs, reaches


@given(graphs(), st.integers(0, 2), st.data())
def test_against_a_search_over_instructions(edges, more, data):
    function = graph(edges)
    for block in function.blocks:
        end = block.instructions.pop()
        for _ in range(more):
            Builder(block).add(function.params[0], function.params[0])
        block.insert(more, end)
    cfg = control_flow(function)
    following = {
        inst: block.instructions[i + 1 : i + 2] or [target.instructions[0] for target in cfg.successors[block]]
        for block in cfg.order
        for i, inst in enumerate(block.instructions)
    }
    first, between, last = (data.draw(st.sampled_from(list(following))) for _ in range(3))
    order = RunOrder.of(cfg)
    assert set(order.after(first)) == reaches(following[first], following)
    if last is not between:
        assert order.may_avoid(between, first, last) == (last in reaches(following[first], following, between))
