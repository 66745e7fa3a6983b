"""Searches: what can be reached from some values, blocks or functions, and what reaches itself, in linear time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

_Item = TypeVar("_Item")


class Worklist(Generic[_Item]):
    """Items to look at, each once; the one added last comes first. More may be added while it is iterated.

    Attributes:
        seen: the items handed out so far, in that order.
    """

    def __init__(self, items: Iterable[_Item] = ()) -> None:
        self.seen: dict[_Item, None] = {}
        self._pending = list(items)

    def add(self, *items: _Item) -> None:
        """More items to look at."""
        self._pending.extend(items)

    def __iter__(self) -> Iterator[_Item]:
        while self._pending:
            item = self._pending.pop()
            if item not in self.seen:
                self.seen[item] = None
                yield item


def reachable(starts: Iterable[_Item], following: Callable[[_Item], Iterable[_Item]]) -> Iterator[_Item]:
    """The items that can be reached from some, these included; the search goes no further than is asked for."""
    found = Worklist(starts)
    for item in found:
        yield item
        found.add(*following(item))


def components(items: Sequence[_Item], edges: Mapping[_Item, Sequence[_Item]]) -> list[tuple[_Item, ...]]:
    """The strongly connected components (Tarjan 1972) of some items, each in the order of ``items``.

    Args:
        items: the items.
        edges: of each item those that follow it; others than ``items`` are left out.
    """
    rank: dict[_Item, int] = {}
    low: dict[_Item, int] = {}
    path: dict[_Item, None] = {}
    position = {item: index for index, item in enumerate(items)}
    found: list[tuple[_Item, ...]] = []
    for start in items:
        if start in rank:
            continue
        stack = [(start, iter(edges[start]))]
        rank[start] = low[start] = len(rank)
        path[start] = None
        while stack:
            item, pending = stack[-1]
            for target in pending:
                if target not in position:
                    continue
                if target not in rank:
                    rank[target] = low[target] = len(rank)
                    path[target] = None
                    stack.append((target, iter(edges[target])))
                    break
                if target in path:
                    low[item] = min(low[item], rank[target])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[item])
                if low[item] == rank[item]:
                    found.append(tuple(sorted(_pop_component(path, item), key=position.__getitem__)))
    return found


def _pop_component(path: dict[_Item, None], root: _Item) -> list[_Item]:
    part: list[_Item] = []
    while not part or part[-1] is not root:
        part.append(path.popitem()[0])
    return part
