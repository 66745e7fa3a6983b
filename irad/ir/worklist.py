"""Searches: what can be reached from some values, blocks or functions, each looked at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
