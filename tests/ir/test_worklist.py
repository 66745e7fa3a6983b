"""Searches look at each item once, in a fixed order, and go no further than they are asked."""

from irad.ir.worklist import Worklist, components, reachable

_EDGES = {"a": "bc", "b": "d", "c": "da", "d": "", "e": "a"}


def test_what_is_reached_comes_once_and_the_last_added_first() -> None:
    assert list(reachable(["a"], _EDGES.__getitem__)) == ["a", "c", "d", "b"]


def test_nothing_is_asked_of_items_behind_the_one_that_is_sought() -> None:
    asked: list[str] = []

    def following(item: str) -> str:
        asked.append(item)
        return _EDGES[item]

    assert "c" in reachable(["a"], following)
    assert asked == ["a"]


def test_a_search_goes_on_with_what_is_added_after_it_ended() -> None:
    search = Worklist("d")
    assert list(search) == ["d"]
    search.add("d", "b")
    assert list(search) == ["b"]
    assert list(search.seen) == ["d", "b"]


def test_components_are_what_reaches_itself():
    edges = {"a": ["b"], "b": ["c", "x"], "c": ["a", "d"], "d": ["e"], "e": ["d"], "f": ["f"], "g": []}
    found = components(list("abcdefg"), edges)
    assert sorted(found) == [("a", "b", "c"), ("d", "e"), ("f",), ("g",)]
    assert components(["a", "b"], edges) == [("b",), ("a",)]
