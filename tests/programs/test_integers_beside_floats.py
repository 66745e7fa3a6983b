"""Integers beside floats in memory that pointers reach in several ways: stacks, queues, swapped buffers, nodes."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from numba import deferred_type, float64, int64, njit, optional, types
from numba.experimental import jitclass, structref
from numba.typed import List

import irad
from tests.tools.catalogue import Case, Catalogue

PROGRAMS = Catalogue()
MORE = Catalogue()  # run with the slow tests

X = np.array([0.7, -0.3, 1.2, 0.45, -0.8, 0.33])
SINGLE = X.astype(np.float32)


# ------------------------------------------------------------------------------------------------ tuples in lists


@PROGRAMS.at(X)
@PROGRAMS.at(SINGLE)
@njit
def explicit_stack(x):
    stack = [(x[0], 0)]
    s = 0.0 * x[0]
    while len(stack) > 0:
        a, depth = stack.pop()
        s += a * a
        if depth < 3:
            stack.append((a * x[depth], depth + 1))
            if depth % 2 == 0:
                stack.append((a + x[depth], depth + 2))
    return s


@PROGRAMS.at(X)
@PROGRAMS.at(SINGLE)
@njit
def stack_with_flags(x):
    stack = [(0, x[0], True)]
    s = 0.0 * x[0]
    while len(stack) > 0:
        depth, a, flag = stack.pop()
        s += a * a if flag else a
        if depth < 3:
            stack.append((depth + 1, a * x[depth], not flag))
    return s


@PROGRAMS.at(X)
@PROGRAMS.at(SINGLE)
@njit
def stack_with_small_and_unsigned_integers(x):
    stack = [(np.int32(0), x[0], np.uint64(3), np.int8(2))]
    s = 0.0 * x[0]
    while len(stack) > 0:
        depth, a, large, small = stack.pop()
        s += a * a * small * (large % np.uint64(5))
        if depth < 3:
            stack.append((np.int32(depth + 1), a * x[depth], np.uint64(large * np.uint64(7)), np.int8(small + 1)))
    return s


@PROGRAMS.at(X)
@njit
def nested_tuples(x):
    stack = [((x[0], 0), (1, x[1], 2))]
    s = 0.0
    while len(stack) > 0:
        (a, depth), (k, b, m) = stack.pop()
        s += a * b * k + m
        if depth < 3:
            stack.append(((a * x[depth], depth + 1), (k + 1, b + x[depth], m + depth)))
            stack.append(((a * x[depth + 1], depth + 2), (k + 2, b * x[depth], m)))
    return s


@PROGRAMS.at(X)
@njit
def lists_of_lists(x):
    levels = [[(x[0], 0)]]
    for depth in range(3):
        new = [(0.0, 0)]
        for a, k in levels[-1]:
            new.append((a * x[depth], k + 1))
            new.append((a + x[depth], k + 2))
        levels.append(new)
    s = 0.0
    for level in levels:
        while len(level) > 0:
            a, k = level.pop()
            s += a * k
    return s


@PROGRAMS.at(X)
@njit
def typed_stack(x):
    stack = List()
    stack.append((x[0], 0))
    s = 0.0
    while len(stack) > 0:
        a, depth = stack.pop()
        s += a * a
        if depth < 3:
            stack.append((a * x[depth], depth + 1))
            stack.append((a + x[depth], depth + 2))
    return s


@PROGRAMS.at(X, 4)
@njit
def lists_swapped(x, n):
    a = [(x[0], 0)]
    b = [(x[1], 1)]
    for _ in range(n):
        a, b = b, a
        v, k = a[-1]
        b.append((v * x[k % x.size], k + 1))
    s = 0.0
    for v, k in a:
        s += v * k
    return s


# ------------------------------------------------------------------------------------------------ sorting and heaps


@PROGRAMS.at(X)
@PROGRAMS.at(SINGLE)
@njit
def sorted_then_popped(x):
    items = [(x[i], i) for i in range(x.size)]
    items.sort()
    s = 0.0 * x[0]
    while len(items) > 2:
        a, i = items.pop()
        s += a * a * i
    return s


@PROGRAMS.at(X)
@njit
def sorted_by_a_key(x):
    items = sorted([(i, x[i]) for i in range(x.size)], key=lambda item: item[1])
    s = 0.0
    for k in range(len(items)):
        s += items[k][1] * items[k][0] * k
    return s


@PROGRAMS.at(X)
@njit
def sorted_backwards_and_changed(x):
    items = [(x[i], i) for i in range(x.size)]
    items.sort(reverse=True)
    a, i = items.pop(0)
    b, j = items.pop(1)
    items.insert(1, (a * b, i + j))
    items.reverse()
    s = 0.0
    for k, (v, m) in enumerate(items):
        s += v * m * k
    return s


@njit
def shortest_paths(lengths, edges):
    n = lengths.shape[0]
    far = np.full(n, np.inf)
    far[0] = 0.0
    queue = [(0.0, 0)]
    while len(queue) > 0:
        d, u = heapq.heappop(queue)
        if d > far[u]:
            continue
        for v in range(n):
            if edges[u, v] and d + lengths[u, v] < far[v]:
                far[v] = d + lengths[u, v]
                heapq.heappush(queue, (far[v], v))
    return (far**2).sum()


LENGTHS = np.array([[0, 1.0, 3.0, 0], [0, 0, 1.2, 0.5], [0, 0.3, 0, 0.8], [0.1, 0, 0, 0]])
PROGRAMS.at(LENGTHS, LENGTHS > 0)(shortest_paths)
PROGRAMS.at(LENGTHS.astype(np.float32), LENGTHS > 0, single=True)(shortest_paths)


@MORE.at(X)
@njit
def heap_filled_and_replaced(x):
    heap = [(x[i], i) for i in range(x.size)]
    heapq.heapify(heap)
    s = 0.0
    for k in range(4):
        a, i = heapq.heapreplace(heap, (x[k] * x[k] + k, 3 * k))
        b, j = heapq.heappushpop(heap, (x[k] * 0.3, k))
        s += a * a * (i + 1) + b * j
    least = heapq.nsmallest(2, heap)
    return s + least[0][0] * least[1][0]


# ------------------------------------------------------------------------------------------------ instances


@jitclass([("x", float64), ("k", int64)])
class Particle:
    def __init__(self, x, k):
        self.x = x
        self.k = k


@PROGRAMS.at(1.3, 5)
@PROGRAMS.at(1.3, 0)
@njit
def instance_replaced(x, n):
    p = Particle(x, 0)
    for i in range(n):
        if x > i:
            p = Particle(p.x * 2.0, p.k + 1)
    return p.x * p.k


@PROGRAMS.at(1.3, 5)
@PROGRAMS.at(1.3, 0)
@njit
def instances_swapped(x, n):
    p, q = Particle(x, 0), Particle(2 * x, 0)
    for _ in range(n):
        p, q = q, p
        p.x += x
        p.k += 1
    return p.x * p.k


@PROGRAMS.at(X)
@njit
def instances_in_a_list(x):
    items = [Particle(x[0], 0)]
    for i in range(x.size):
        items.append(Particle(x[i], i))
    s = 0.0
    while len(items) > 0:
        p = items.pop()
        p.k += 1
        p.x *= p.k
        s += p.x * p.x
    return s


@PROGRAMS.at(X)
@njit
def instances_sorted(x):
    items = [Particle(x[i], i) for i in range(x.size)]
    for _ in range(len(items)):
        for j in range(len(items) - 1):
            if items[j].x > items[j + 1].x:
                items[j], items[j + 1] = items[j + 1], items[j]
                items[j].k += 1
    s = 0.0
    for j in range(len(items)):
        s += items[j].x * items[j].k * j
    return s


@PROGRAMS.at(X)
@njit
def instances_in_a_typed_list(x):
    items = List()
    for i in range(x.size):
        items.append(Particle(x[i], i))
    for _ in range(3):
        p = items.pop()
        q = items[0]
        q.k += p.k
        q.x *= p.x
        items[1] = Particle(q.x * p.k, q.k)
    s = 0.0
    for p in items:
        s += p.x * p.k
    return s


@jitclass(
    [
        ("x", float64),
        ("k", int64),
        ("a", float64[::1]),
        ("n", types.int32),
        ("flag", types.boolean),
        ("y", types.float32),
    ]
)
class Walker:
    def __init__(self, x, k, a):
        self.x = x
        self.k = k
        self.a = a
        self.n = 1
        self.flag = True
        self.y = x

    def step(self):
        self.n += 1
        self.k = self.k * 2 + 1
        self.flag = not self.flag
        self.x = self.x * self.a[self.k % 3] + self.y


@PROGRAMS.at(X, single=True)
@njit
def instances_with_arrays_and_small_fields(x):
    p, q = Walker(x[0], 0, x[1:]), Walker(x[1], 1, x[::1] * 2)
    best = p
    for i in range(5):
        p, q = q, p
        p.step()
        if p.x * p.n > best.x:
            best = p
        if i == 3:
            q = Walker(p.x, p.k, q.a)
    return best.x * best.n + q.x * q.k


@structref.register
class PairType(types.StructRef):
    pass


class Pair(structref.StructRefProxy):
    def __new__(cls, x, k):
        return structref.StructRefProxy.__new__(cls, x, k)


structref.define_proxy(Pair, PairType, ["x", "k"])


@PROGRAMS.at(1.3, 5)
@njit
def structures_swapped(x, n):
    p, q = Pair(x, 0), Pair(2 * x, 0)
    for i in range(n):
        p, q = q, p
        p.x += x
        p.k += 1
        if i == 2:
            q = Pair(p.x * q.x, p.k + q.k)
    return p.x * p.k + q.x * q.k


NODE = deferred_type()


@jitclass([("value", float64), ("k", int64), ("next", optional(NODE))])
class Node:
    def __init__(self, value, k):
        self.value = value
        self.k = k
        self.next = None


NODE.define(Node.class_type.instance_type)


@PROGRAMS.at(X)
@njit
def two_linked_nodes(x):
    a, b = Node(x[0], 1), Node(x[1], 2)
    a.next = b
    following = a.next
    return a.value * following.value * following.k


@PROGRAMS.at(X)
@njit
def nodes_in_a_row(x):
    first = Node(x[0], 1)
    last = first
    for i in range(1, x.size):
        node = Node(x[i] * x[i - 1], i)
        node.k += i
        last.next = node
        last = node
    second = first.next
    third = second.next
    return first.value * second.value * second.k + third.value * third.k + last.value * last.k


@PROGRAMS.at(X)
@njit
def nodes_visited(x):
    first = Node(x[0], 0)
    for i in range(1, x.size):
        node = Node(x[i] * first.value, first.k + 1)
        node.next = first
        first = node
    s = first.value * first.k
    node = first.next
    while node is not None:
        s += node.value * node.value * node.k
        node = node.next
    return s


@njit
def _total(node, depth):
    here = node.value * node.k * depth
    if node.next is None:
        return here
    return here + _total(node.next, depth + 1)


@PROGRAMS.at(X)
@njit
def nodes_visited_by_recursion(x):
    first = Node(x[0], 0)
    for i in range(1, x.size):
        node = Node(x[i], first.k + 1)
        node.next = first
        first = node
    return _total(first, 1)


@njit
def _advanced(p, n):
    if n == 0:
        return p.x
    p.k += 1
    p.x *= p.k
    return _advanced(p, n - 1)


@PROGRAMS.at(1.3, 4)
@njit
def instances_changed_by_recursion(x, n):
    p, q = Particle(x, 0), Particle(x * x, 1)
    for _ in range(3):
        p, q = q, p
        p.k += 1
        _advanced(p, n)
    return p.x * q.x * p.k * q.k


# ------------------------------------------------------------------------------------------------ records

ALIGNED = np.dtype([("x", np.float64), ("k", np.int64)], align=True)
MIXED = np.dtype([("k", np.int32), ("x", np.float32), ("flag", np.bool_), ("y", np.float64)], align=True)
PACKED = np.dtype([("k", np.int8), ("x", np.float64), ("u", np.uint64), ("y", np.float32)])


@PROGRAMS.at(X, 4)
@PROGRAMS.at(X, 0)
@njit
def records_in_two_buffers(x, n):
    a, b = np.zeros(x.size, ALIGNED), np.zeros(x.size, ALIGNED)
    for i in range(x.size):
        a[i].x, a[i].k = x[i], i
    for _ in range(n):
        for i in range(x.size):
            b[i].x = a[i].x * a[(i + 1) % x.size].x + 0.1
            b[i].k = a[i].k + 1
        a, b = b, a
    s = 0.0
    for i in range(x.size):
        s += a[i].x * a[i].k
    return s


@PROGRAMS.at(X, 4)
@njit
def records_copied_between_buffers(x, n):
    a, b = np.zeros(x.size, ALIGNED), np.zeros(x.size, ALIGNED)
    for i in range(x.size):
        a[i].x, a[i].k = x[i], i
    for t in range(n):
        for i in range(x.size):
            b[i] = a[(i + 1) % x.size]
            b[i].k += 1
            b[i].x *= x[t]
        a, b = b, a
    s = 0.0
    for i in range(x.size):
        s += a[i].x * a[i].k
    return s


@PROGRAMS.at(X, 4, single=True)
@njit
def records_of_two_precisions_in_two_buffers(x, n):
    a, b = np.zeros(x.size, MIXED), np.zeros(x.size, MIXED)
    for i in range(x.size):
        a[i].x, a[i].k, a[i].y, a[i].flag = x[i], i, 2 * x[i], i % 2
    for _ in range(n):
        for i in range(x.size):
            b[i].x = a[i].x * a[(i + 1) % x.size].x + 0.1
            b[i].k = a[i].k + 1
            b[i].flag = not a[i].flag
            b[i].y = a[i].y * a[i].x if a[i].flag else a[i].y
        a, b = b, a
    s = 0.0
    for i in range(x.size):
        s += a[i].x * a[i].k + a[i].y
    return s


@PROGRAMS.at(X, 4, single=True)
@njit
def records_without_alignment_in_two_buffers(x, n):
    a, b = np.zeros(x.size, PACKED), np.zeros(x.size, PACKED)
    for i in range(x.size):
        a[i].x, a[i].k, a[i].y, a[i].u = x[i], i, 2 * x[i], i % 2
    for _ in range(n):
        for i in range(x.size):
            b[i].x = a[i].x * a[(i + 1) % x.size].x + 0.1
            b[i].k = a[i].k + 1
            b[i].u = a[i].u * a[i].u + a[i].u
            b[i].y = a[i].y * a[i].x if a[i].u else a[i].y
        a, b = b, a
    s = 0.0
    for i in range(x.size):
        s += a[i].x * a[i].k + a[i].y
    return s


# ------------------------------------------------------------------------------------------------ exceptions


@njit
def list_popped_behind_try(x, scale, n):
    other = x.copy()
    items = [0.5 * math.sin(other[n % 5]), 0.5 * math.sin(x[n % 5] - x[int(abs(scale) * 3.7) % 5] * scale * scale)]
    backwards = x[::-1]
    try:
        x[n % 5] = math.tanh(math.atan(scale) / 1.5)
    except Exception:
        s = 0.5
    s = 0.5

    def inner(z):
        return math.tanh(z * s)

    try:
        x[n % 5] = math.tanh(np.sum(backwards[1:4]))
    except Exception:
        s = 0.5
    t = items.pop() if len(items) > 2 else 0.25
    try:
        backwards[(n * 3) % 5] = 0.3 * max(inner(backwards[3]), t)
    except Exception:
        s = 0.5
    return x.sum()


PROGRAMS.at(np.array([0.1, 0.2, 0.3, 0.4, 0.5]), 0.3, 4)(list_popped_behind_try)


@PROGRAMS.at(np.array([0.1, 0.2, 0.3, 0.4, 0.5]))
@njit
def lists_popped_in_try(x):
    items = [np.sin(v) for v in x]
    s = 0.0
    try:
        s += items.pop() ** 2
    except Exception:
        s = 1.0
    v = items.pop() if len(items) > 2 else 0.25
    try:
        s *= items.pop(0)
    except Exception:
        s = 2.0
    return s * v


@pytest.mark.parametrize("case", [*PROGRAMS, *MORE.slow()], ids=str)
def test_gradient(case: Case) -> None:
    case.check()


def test_shortest_paths_are_sums_of_lengths():
    """By hand: the nodes are 0, 1.0, 2.2 and 1.5 away."""
    found = irad.grad(shortest_paths)(LENGTHS, LENGTHS > 0)
    expected = np.zeros((4, 4))
    expected[0, 1] = 2 * (1.0 + 2.2 + 1.5)
    expected[1, 2], expected[1, 3] = 2 * 2.2, 2 * 1.5
    np.testing.assert_allclose(found, expected, rtol=1e-14)
