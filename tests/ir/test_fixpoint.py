import pytest

from irad.ir.fixpoint import Worklist, solve


def test_a_worklist_is_a_queue_without_repeats():
    work = Worklist("abca")
    assert len(work) == 3
    assert work.pop() == "a"
    work.extend("cad")
    assert "a" in work
    assert [work.pop() for _ in range(len(work))] == list("bcad")
    assert not work
    with pytest.raises(IndexError):
        work.pop()


def test_taking_from_a_long_list_is_not_quadratic():
    work = Worklist(range(200_000))
    assert sum(work.pop() for _ in range(200_000)) == 199_999 * 100_000


def test_solve_reaches_the_least_fixpoint_in_a_fixed_order():
    """Which nodes are reached from a: the order of the steps is that of the arguments."""
    edges = {"a": "bc", "b": "d", "c": "a", "d": "b", "e": "a"}
    known, order = {"a"}, []

    def transfer(node):
        order.append(node)
        before = len(known)
        if node in known:
            known.update(edges[node])
        return len(known) > before

    assert solve("edcba", transfer, lambda node: edges[node]) == len(order)
    assert known == set("abcd")
    assert "".join(order) == "edcbabcda"[: len(order)]


def test_solve_stops_when_nothing_changes():
    assert solve("abc", lambda node: False, lambda node: "abc") == 3
