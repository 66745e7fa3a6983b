"""Linked nodes that a differentiated function makes, with integers that change as it goes from node to node."""

from __future__ import annotations

import numpy as np
import pytest
from numba import deferred_type, float64, int8, int32, int64, njit, optional
from numba.experimental import jitclass

from tests.tools.catalogue import Case, Catalogue

PROGRAMS = Catalogue()

X = np.array([0.7, -0.3, 1.2, 0.45, -0.8, 0.33, 0.05, 0.91, -0.62])


@njit
def the(other, p):
    """What is not None, as the type of the other: Numba sets no field of what may be None."""
    q = other
    if p is not None:
        q = p
    return q


SET = deferred_type()


@jitclass([("rank", int64), ("weight", float64), ("parent", optional(SET)), ("size", int64)])
class Set:
    def __init__(self, weight):
        self.rank = 0
        self.weight = weight
        self.parent = None
        self.size = 1


SET.define(Set.class_type.instance_type)


@njit
def find(p):
    while p.parent is not None:
        if p.parent.parent is not None:
            p.parent = p.parent.parent
        p = p.parent
    return p


@PROGRAMS.at(X)
@njit
def union_find(x):
    items = [Set(x[i]) for i in range(x.size)]
    s = 0.0
    for i in range(x.size):
        a = find(items[i])
        b = find(items[(i * 5 + 3) % x.size])
        if a.size * 1000 + a.weight == b.size * 1000 + b.weight:
            s += a.weight * a.size
            continue
        if a.rank < b.rank:
            a, b = b, a
        b.parent = a
        a.size += b.size
        a.weight += b.weight * x[i]
        if a.rank == b.rank:
            a.rank += 1
    for i in range(x.size):
        r = find(items[i])
        s += r.weight * r.rank * r.size
    return s


TRIE = deferred_type()


@jitclass(
    [("count", int64), ("sum", float64), ("zero", optional(TRIE)), ("one", optional(TRIE)), ("two", optional(TRIE))]
)
class Trie:
    def __init__(self):
        self.count = 0
        self.sum = 0.0
        self.zero = None
        self.one = None
        self.two = None


TRIE.define(Trie.class_type.instance_type)


@PROGRAMS.at(X)
@njit
def trie_with_counts(x):
    root = Trie()
    for i in range(x.size):
        p = root
        w = i * 11 % 27
        for _ in range(3):
            p.count += 1
            p.sum += x[i] * p.count
            d = w % 3
            w //= 3
            if d == 0:
                if p.zero is None:
                    p.zero = Trie()
                p = p.zero
            elif d == 1:
                if p.one is None:
                    p.one = Trie()
                p = p.one
            else:
                if p.two is None:
                    p.two = Trie()
                p = p.two
        p.count += 1
        p.sum += x[i] * x[i]
    s = 0.0
    stack = [root]
    while stack:
        p = stack.pop()
        s += p.sum * p.sum * p.count
        if p.zero is not None:
            stack.append(p.zero)
        if p.one is not None:
            stack.append(p.one)
        if p.two is not None:
            stack.append(p.two)
    return s


SKIP = deferred_type()


@jitclass([("key", float64), ("width", int64), ("next", optional(SKIP)), ("width2", int64), ("far", optional(SKIP))])
class Skip:
    def __init__(self, key):
        self.key = key
        self.width = 1
        self.next = None
        self.width2 = 0
        self.far = None


SKIP.define(Skip.class_type.instance_type)


@PROGRAMS.at(X)
@njit
def skip_list(x):
    head = Skip(-1e9)
    s = 0.0
    for i in range(x.size):
        new = Skip(x[i])
        p = head
        express = head
        while p.far is not None and p.far.key < new.key:
            p.width2 += 1
            p = p.far
            express = p
        while p.next is not None and p.next.key < new.key:
            p.width += 1
            p = p.next
        new.next = p.next
        p.next = new
        if i % 2 == 0:
            new.far = express.far
            express.far = new
            new.width2 = express.width2 + 1
    p = head.next
    while p is not None:
        s += p.key * p.key * p.width + p.key * p.width2
        p = p.next
    return s


VERTEX = deferred_type()
EDGE = deferred_type()


@jitclass([("length", float64), ("to", int64), ("next", optional(EDGE))])
class Edge:
    def __init__(self, length, to):
        self.length = length
        self.to = to
        self.next = None


EDGE.define(Edge.class_type.instance_type)


@jitclass([("degree", int64), ("value", float64), ("first", optional(Edge.class_type.instance_type)), ("mark", int8)])
class Vertex:
    def __init__(self, value):
        self.degree = 0
        self.value = value
        self.first = None
        self.mark = 0


@njit
def connect(a, to, length):
    e = Edge(length, to)
    e.next = a.first
    a.first = e
    a.degree += 1


@PROGRAMS.at(X)
@njit
def adjacency_lists(x):
    g = [Vertex(x[i]) for i in range(x.size)]
    for i in range(x.size):
        j = (i * 4 + 1) % x.size
        connect(g[i], j, x[i] * x[j])
        connect(g[j], i, x[i] + x[j])
    s = 0.0
    for _ in range(2):
        for v in g:
            v.mark += 1
            e = v.first
            while e is not None:
                g[e.to].value += 0.1 * e.length * v.value / v.degree
                e.to = (e.to + 1) % x.size
                e = e.next
    for v in g:
        s += v.value * v.degree * v.mark
    return s


LRU = deferred_type()


@jitclass([("key", int64), ("value", float64), ("uses", int64), ("before", optional(LRU)), ("after", optional(LRU))])
class Lru:
    def __init__(self, key, value):
        self.key = key
        self.value = value
        self.uses = 1
        self.before = None
        self.after = None


LRU.define(Lru.class_type.instance_type)


@PROGRAMS.at(X)
@njit
def lru_list(x):
    head = Lru(-1, 0.0)
    tail = Lru(-2, 0.0)
    head.after = tail
    tail.before = head
    count = 0
    s = 0.0
    for i in range(3 * x.size):
        k = i * i % 7
        p = the(head, head.after)
        while p.key != k and p.key != -2:
            p = p.after
        if p.key == -2:
            p = Lru(k, x[k] * x[i % x.size])
            count += 1
            if count > 4:
                last = the(tail, tail.before)
                s += last.value * last.uses
                the(last, last.before).after = tail
                tail.before = last.before
                count -= 1
        else:
            p.uses += 1
            p.value *= x[i % x.size]
            the(p, p.before).after = p.after
            the(p, p.after).before = p.before
        p.after = head.after
        p.before = head
        the(head, head.after).before = p
        head.after = p
    p = head.after
    while p.key >= 0:
        s += p.value * p.uses
        p = p.after
    return s


CELL = deferred_type()


@jitclass([("key", int64), ("hits", int32), ("value", float64), ("next", optional(CELL))])
class Cell:
    def __init__(self, key, value):
        self.key = key
        self.hits = 0
        self.value = value
        self.next = None


CELL.define(Cell.class_type.instance_type)


@PROGRAMS.at(X)
@njit
def hash_buckets(x):
    heads = [Cell(-1, 0.0) for _ in range(4)]
    for i in range(4 * x.size):
        key = i * 13 % 11
        p = heads[key % 4]
        while p.key != key and p.next is not None:
            p = p.next
        if p.key == key:
            p.hits += 1
            p.value += x[i % x.size] * p.hits
        else:
            p.next = Cell(key, x[i % x.size] ** 2)
    s = 0.0
    for h in heads:
        p = h.next
        while p is not None:
            s += p.value * p.value * (p.hits + p.key)
            p = p.next
    return s


EVENT = deferred_type()


@jitclass([("time", float64), ("who", int64), ("repeats", int64), ("next", optional(EVENT))])
class Event:
    def __init__(self, time, who):
        self.time = time
        self.who = who
        self.repeats = 0
        self.next = None


EVENT.define(Event.class_type.instance_type)


@njit
def schedule(head, new):
    p = head
    while p.next is not None and p.next.time < new.time:
        p.repeats += 1
        p = p.next
    new.next = p.next
    p.next = new


@PROGRAMS.at(X)
@njit
def event_queue(x):
    head = Event(-1.0, -1)
    for i in range(x.size):
        schedule(head, Event(abs(x[i]), i))
    s = 0.0
    for _ in range(20):
        e = the(head, head.next)
        head.next = e.next
        e.repeats += 1
        s += e.time * x[e.who] * e.repeats
        e.time += 0.3 + 0.1 * x[e.who] ** 2
        e.who = (e.who + 1) % x.size
        schedule(head, e)
    return s


HEAP = deferred_type()


@jitclass([("key", float64), ("child", optional(HEAP)), ("sibling", optional(HEAP)), ("degree", int64)])
class Heap:
    def __init__(self, key):
        self.key = key
        self.child = None
        self.sibling = None
        self.degree = 0


HEAP.define(Heap.class_type.instance_type)


@njit
def meld(a, b):
    if b.key < a.key:
        a, b = b, a
    b.sibling = a.child
    a.child = b
    a.degree += 1
    return a


@PROGRAMS.at(X)
@njit
def pairing_heap(x):
    root = Heap(x[0])
    for i in range(1, x.size):
        root = meld(root, Heap(x[i]))
    s = 0.0
    for k in range(x.size - 1):
        s += root.key * root.key * root.degree * (k + 1)
        new = the(root, root.child)
        rest = new.sibling
        new.sibling = None
        while rest is not None:
            p = the(root, rest)
            rest = p.sibling
            p.sibling = None
            new = meld(new, p)
        root = new
    return s


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case) -> None:
    case.check()
