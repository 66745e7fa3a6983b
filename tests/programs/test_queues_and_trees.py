"""Algorithms whose state holds floats next to integers: search, sorting, shortest trees, events, nearest neighbours."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from numba import njit, prange
from numba.typed import Dict, List

from tests.tools.catalogue import Case, Catalogue

PROGRAMS = Catalogue()
MORE = Catalogue()  # run with the slow tests

X = np.array([0.7, -0.3, 1.2, 0.45, -0.8, 0.33])
EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [0, 4], [1, 4], [2, 5]])
LENGTHS = np.array([0.7, 0.3, 1.2, 0.45, 0.8, 0.33, 0.51])


CELL = np.dtype([("parent", np.int64), ("rank", np.int32), ("weight", np.float64), ("seen", np.bool_)], align=True)


@PROGRAMS.at(LENGTHS, EDGES)
@njit
def weighted_union_find(w, edges):
    f = np.zeros(6, CELL)
    for i in range(6):
        f[i].parent = i
        f[i].weight = 1.0
    s = 0.0
    for e in range(w.size):
        u, v = edges[e]
        du = 0.0
        while f[u].parent != u:
            du += f[u].weight
            u = f[u].parent
        dv = 0.0
        while f[v].parent != v:
            dv += f[v].weight
            v = f[v].parent
        if u != v:
            if f[u].rank < f[v].rank:
                u, v = v, u
            f[v].parent = u
            f[v].weight = w[e] * (1 + du - dv)
            f[v].seen = True
            if f[u].rank == f[v].rank:
                f[u].rank += 1
        else:
            s += (du - dv - w[e]) ** 2
    return s


@PROGRAMS.at(X)
@njit
def prim(x):
    n = x.size
    key = [(1e9, -1, False) for _ in range(n)]
    key[0] = (0.0, 0, False)
    s = 0.0
    for _ in range(n):
        best = 1e18
        u = -1
        for i in range(n):
            k, p, done = key[i]
            if not done and k < best:
                best = k
                u = i
        k, p, done = key[u]
        key[u] = (k, p, True)
        s += k
        for v in range(n):
            k, p, done = key[v]
            d = (x[u] - x[v]) ** 2
            if not done and d < k:
                key[v] = (d, u, done)
    return s


@njit
def visited(q, x, u, a, d):
    for c in (2 * u + 1, 2 * u + 2):
        if c < x.size:
            q.append((c, a * x[c] + x[u], d + 1))
    return a * a * d


@PROGRAMS.at(X)
@njit
def bfs_queue(x):
    q = [(0, x[0], 0)]
    s = 0.0
    head = 0
    while head < len(q):
        u, a, d = q[head]
        head += 1
        s += visited(q, x, u, a, d)
    return s


@PROGRAMS.at(X)
@njit
def pop_front_queue(x):
    q = [(0, x[0], 0)]
    s = 0.0
    while len(q) > 0:
        u, a, d = q.pop(0)
        s += visited(q, x, u, a, d)
    return s


@PROGRAMS.at(X)
@njit
def sparse_dict(x):
    d = Dict()
    for i in range(x.size):
        key = (i % 3, i % 2)
        if key in d:
            v, n = d[key]
            d[key] = (v * x[i], n + 1)
        else:
            d[key] = (x[i], 1)
    s = 0.0
    for k, (v, n) in d.items():
        s += v * n * (k[0] + 1)
    return s


@PROGRAMS.at(X)
@njit
def dict_of_lists(x):
    d = {}
    for i in range(x.size):
        if i % 3 not in d:
            d[i % 3] = List([(x[i], i)])
        else:
            d[i % 3].append((x[i] * x[0], i))
    s = 0.0
    for k in d:
        for v, i in d[k]:
            s += v * v * i
    return s


ENTRY = np.dtype([("key", np.float64), ("id", np.int64), ("y", np.float64)], align=True)


@PROGRAMS.at(X)
@njit
def insertion_sort_records(x):
    a = np.zeros(x.size, ENTRY)
    for i in range(x.size):
        a[i].key = x[i] * x[i]
        a[i].id = i
        a[i].y = x[i]
    t = np.zeros(1, ENTRY)
    for i in range(1, x.size):
        t[0] = a[i]
        j = i - 1
        while j >= 0 and a[j].key > t[0].key:
            a[j + 1] = a[j]
            a[j + 1].id += 10
            j -= 1
        a[j + 1] = t[0]
    s = 0.0
    for i in range(x.size):
        s += a[i].y * a[i].id * i + a[i].key
    return s


@PROGRAMS.at(X)
@njit
def argsort_records(x):
    a = np.zeros(x.size, ENTRY)
    for i in range(x.size):
        a[i].key = x[i]
        a[i].id = i
    order = np.argsort(a["key"])
    b = a[order]
    s = 0.0
    for i in range(b.size):
        s += b[i].key * b[i].id * i
    return s


@PROGRAMS.at(X)
@njit
def event_simulation(x):
    q = [(abs(x[i]) + 0.01 * i, i, 0) for i in range(x.size)]
    heapq.heapify(q)
    state = np.zeros(x.size)
    s = 0.0
    n = 0
    while len(q) > 0 and n < 15:
        t, who, kind = heapq.heappop(q)
        n += 1
        if kind == 0:
            state[who] += t * x[who]
            heapq.heappush(q, (t + 0.3 + state[who] * 0.01, (who + 1) % x.size, 1))
        else:
            s += state[who] * t
            if t < 2.0:
                heapq.heappush(q, (t * 1.1 + 0.2, who, 0))
    return s


@PROGRAMS.at(X)
@njit
def priority_queue_by_hand(x):
    heap = [(0.0, np.int32(0), np.uint8(0))]
    heap.pop()
    for i in range(x.size):
        heap.append((x[i], np.int32(i), np.uint8(i % 2)))
        k = len(heap) - 1
        while k > 0 and heap[k][0] < heap[(k - 1) // 2][0]:
            heap[k], heap[(k - 1) // 2] = heap[(k - 1) // 2], heap[k]
            k = (k - 1) // 2
    s = 0.0
    for _ in range(3):
        v, j, f = heap[0]
        last = heap.pop()
        heap[0] = last
        k = 0
        while 2 * k + 1 < len(heap):
            c = 2 * k + 1
            if c + 1 < len(heap) and heap[c + 1][0] < heap[c][0]:
                c += 1
            if heap[c][0] < heap[k][0]:
                heap[c], heap[k] = heap[k], heap[c]
                k = c
            else:
                break
        s += v * v * (j + 1) if f else v * j
    return s


@PROGRAMS.at(X)
@njit
def tuples_with_arrays(x):
    st = [(x[0], 0, x * 2.0)]
    s = 0.0
    while len(st) > 0:
        a, k, arr = st.pop()
        s += a * arr[k]
        if k < 3:
            st.append((a + arr[k], k + 1, arr * x[k]))
            st.append((a * arr[k], k + 2, arr))
    return s


@PROGRAMS.at(X)
@njit
def tuples_with_strings(x):
    st = [(x[0], 0, "a")]
    s = 0.0
    while len(st) > 0:
        a, k, name = st.pop()
        s += a * a * len(name)
        if k < 3:
            st.append((a + x[k], k + 1, name + "b"))
    return s


@PROGRAMS.at(X)
@njit
def two_stacks_swapped_in_loop(x):
    cur = [(x[0], 0)]
    nxt = [(x[1], 1)]
    s = 0.0
    for _ in range(4):
        nxt.clear()
        for a, k in cur:
            nxt.append((a * x[k % 6], k + 1))
            if k % 2 == 0:
                nxt.append((a + x[k % 6], k + 3))
        cur, nxt = nxt, cur
        for a, k in cur:
            s += a * k
    return s


@PROGRAMS.at(X)
@njit(parallel=True)
def in_parallel(x):
    out = np.zeros(x.size)
    for i in prange(x.size):
        st = [(x[i], 0)]
        s = 0.0
        while len(st) > 0:
            a, d = st.pop()
            s += a * a * d
            if d < 3:
                st.append((a * x[(i + d) % x.size], d + 1))
                st.append((a + 0.1, d + 2))
        out[i] = s
    return out.sum()


@njit
def quicksort(L, lo, hi):
    if hi - lo < 2:
        return 0
    pv, pk = L[hi - 1]
    m = lo
    for i in range(lo, hi - 1):
        a, k = L[i]
        if a < pv:
            L[i] = L[m]
            L[m] = (a, k + 1)
            m += 1
    L[hi - 1] = L[m]
    L[m] = (pv, pk)
    return quicksort(L, lo, m) + quicksort(L, m + 1, hi) + 1


@njit
def sorted_sum(L):
    n = quicksort(L, 0, len(L))
    s = 0.0
    for j in range(len(L)):
        a, k = L[j]
        s += a * a * k * j
    return s * n


@PROGRAMS.at(X)
@njit
def recursive_quicksort(x):
    return sorted_sum([(x[i], i) for i in range(x.size)])


@njit
def dfs(st, x, d):
    a, k = st.pop()
    s = a * a * k
    if d < 3:
        st.append((a * x[d], k + 1))
        s += dfs(st, x, d + 1)
        st.append((a + x[d], k + 2))
        s += dfs(st, x, d + 1)
    return s


@PROGRAMS.at(X)
@njit
def recursive_stack(x):
    st = [(x[0], 1)]
    return dfs(st, x, 0)


@PROGRAMS.at(X)
@njit
def recursive_quicksort_typed(x):
    L = List()
    for i in range(x.size):
        L.append((x[i], i))
    return sorted_sum(L)


@njit
def sift(a, k, n):
    c = 2 * k + 1
    if c >= n:
        return 0
    if c + 1 < n and a[c + 1].key < a[c].key:
        c += 1
    if a[c].key < a[k].key:
        a[c].id += 1
        t = a[k].key
        a[k].key = a[c].key
        a[c].key = t
        i = a[k].id
        a[k].id = a[c].id
        a[c].id = i
        return 1 + sift(a, c, n)
    return 0


@PROGRAMS.at(X)
@njit
def recursive_record_heap(x):
    a = np.zeros(x.size, ENTRY)
    for i in range(x.size):
        a[i].key = x[i]
        a[i].id = i
    for k in range(x.size // 2 - 1, -1, -1):
        sift(a, k, x.size)
    s = 0.0
    for i in range(x.size):
        s += a[i].key * a[i].key * a[i].id * i
    return s


@MORE.at(X)
@njit
def beam_search(x):
    beam = [(0.0, 0, 0)]
    for t in range(x.size):
        cand = [(0.0, 0, 0)]
        cand.pop()
        for sc, last, n in beam:
            for c in range(3):
                cand.append((sc + math.sin(x[t] * (c + 1)) - 0.1 * abs(c - last), c, n + (c != last)))
        cand.sort(reverse=True)
        beam = cand[:3]
    s = 0.0
    for sc, _, n in beam:
        s += sc * sc * (n + 1)
    return s


@PROGRAMS.at(X, np.datetime64("2020-01-01", "D"), np.timedelta64(2, "D"))
@njit
def dated_values(x, day, step):
    items = [(day, x[0])]
    for i in range(1, x.size):
        t, v = items[-1]
        items.append((t + step, v * x[i]))
    s = 0.0
    while len(items) > 1:
        t, v = items.pop()
        s += v * v * ((t - day) / step)
        before, other = items[-1]
        items[-1] = (before + step, other + v)
    return s


@pytest.mark.parametrize("case", [*PROGRAMS, *MORE.slow()], ids=str)
def test_gradient(case: Case) -> None:
    case.check()
