"""Fixpoints with a fixed order of work: the same input gives the same sequence of steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

N = TypeVar("N", bound=Hashable)


class Worklist(Generic[N]):
    """First in, first out; what waits already is not added again."""

    __slots__ = ("_queue", "_waiting")

    def __init__(self, items: Iterable[N] = ()) -> None:
        self._queue: deque[N] = deque()
        self._waiting: set[N] = set()  # the members of the queue
        self.extend(items)

    def __bool__(self) -> bool:
        return bool(self._queue)

    def __len__(self) -> int:
        return len(self._queue)

    def __contains__(self, item: N) -> bool:
        return item in self._waiting

    def add(self, item: N) -> None:
        """Puts an item at the end, unless it waits already."""
        if item not in self._waiting:
            self._waiting.add(item)
            self._queue.append(item)

    def extend(self, items: Iterable[N]) -> None:
        """Adds each item, in order."""
        for item in items:
            self.add(item)

    def pop(self) -> N:
        """Takes the item that waits longest.

        Raises:
            IndexError: nothing waits.
        """
        item = self._queue.popleft()
        self._waiting.remove(item)
        return item


def solve(nodes: Iterable[N], transfer: Callable[[N], bool], dependents: Callable[[N], Iterable[N]]) -> int:
    """Applies ``transfer`` to every node, and again to the dependents of whatever changed, until nothing changes.

    Args:
        nodes: visited first, in this order; a good order (reverse postorder for forward problems) saves steps.
        transfer: recomputes what is known of a node and says whether it changed. It must be monotone in a lattice of
            finite height, or this does not end.
        dependents: the nodes whose result reads that of a node.

    Returns:
        How often ``transfer`` was called.
    """
    work = Worklist(nodes)
    steps = 0
    while work:
        node = work.pop()
        steps += 1
        if transfer(node):
            work.extend(dependents(node))
    return steps
