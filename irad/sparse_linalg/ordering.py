"""An order of the columns of a sparse matrix in which its factors stay sparse: approximate minimum degree.

Columns are the vertices of a graph, whose edges are given by cliques: columns with entries in the same row. However
pivots are chosen, the factors of A with its columns in this order have no more entries than the Cholesky factor of
AᵀA. If no pivot leaves the diagonal, the cliques are the pairs of A + Aᵀ instead, whose factor has fewer.

To eliminate a column is to join the cliques that it is in; a clique that lies in another is dropped. The degree of a
column is bounded by the sizes of its cliques, each without the part that it shares with the new one.

Source:
    Amestoy, Davis, Duff: An approximate minimum degree ordering algorithm, SIAM J. Matrix Anal. Appl. 17 (1996)
    886-905; Davis, Gilbert, Larimore, Ng: A column approximate minimum degree ordering algorithm, ACM Trans. Math.
    Softw. 30 (2004) 353-376.
"""

from __future__ import annotations

import numpy as np

from irad.frontend.inner import inner_jitable


@inner_jitable
def grown(array, needed):  # type: ignore[no-untyped-def]
    """The array, or a larger one that begins with it: for as many elements as needed."""
    if needed <= array.size:
        return array
    more = np.zeros(max(needed, 2 * array.size), array.dtype)
    for i in range(array.size):  # an assignment to a slice compiles the message of one that does not fit
        more[i] = array[i]
    return more


@inner_jitable
def column_order(data, indices, indptr):  # type: ignore[no-untyped-def]
    """The columns of a square matrix in CSC, in the order in which to eliminate them."""
    n = indptr.size - 1
    if _keeps_its_diagonal(data, indices, indptr):
        starts, members = _pairs(indices, indptr)
    else:
        # A row that is nearly full would hide all others.
        starts, members = _rows(indices, indptr, max(16, int(10.0 * np.sqrt(n))))
    return _minimum_degree(n, starts, members)


@inner_jitable
def _keeps_its_diagonal(data, indices, indptr):  # type: ignore[no-untyped-def]
    """True if each diagonal entry is as large as the others in its column together: it will be the pivot."""
    for j in range(indptr.size - 1):
        on, off = 0.0, 0.0
        for k in range(indptr[j], indptr[j + 1]):
            if indices[k] == j:
                on += abs(data[k])
            else:
                off += abs(data[k])
        if not (on > 0.0 and off <= on * (1.0 + 1e-10)):
            return False
    return True


@inner_jitable
def _rows(indices, indptr, most):  # type: ignore[no-untyped-def]
    """The columns of the entries of each row, once each; rows with too many are left empty."""
    n = indptr.size - 1
    starts, last = np.zeros(n + 1, np.int64), np.full(n, -1)
    for j in range(n):
        for k in range(indptr[j], indptr[j + 1]):
            if last[indices[k]] != j:
                last[indices[k]] = j
                starts[indices[k] + 1] += 1
    for i in range(n):
        starts[i + 1] = starts[i] + (starts[i + 1] if starts[i + 1] <= most else 0)
    members, at = np.zeros(starts[n], np.int64), starts.copy()
    for j in range(n):
        for k in range(indptr[j], indptr[j + 1]):
            i = indices[k]
            if at[i] < starts[i + 1] and not (at[i] > starts[i] and members[at[i] - 1] == j):
                members[at[i]] = j
                at[i] += 1
    return starts, members


@inner_jitable
def _pairs(indices, indptr):  # type: ignore[no-untyped-def]
    """A clique for each pair of a row and a column with an entry on either side of the diagonal."""
    n = indptr.size - 1
    starts, rows = _rows(indices, indptr, n)
    most = indptr[n] - indptr[0]
    begins, members, count, last = np.zeros(most + 1, np.int64), np.zeros(2 * most, np.int64), 0, np.full(n, -1)
    for j in range(n):
        own = indptr[j + 1] - indptr[j]
        for k in range(own + starts[j + 1] - starts[j]):
            i = indices[indptr[j] + k] if k < own else rows[starts[j] + k - own]
            if i > j and last[i] != j:
                last[i], members[2 * count], members[2 * count + 1] = j, j, i
                count += 1
                begins[count] = 2 * count
    return begins[: count + 1], members


@inner_jitable
def _cliques_of(n, starts, members):  # type: ignore[no-untyped-def]
    """The cliques of each column: where they begin, how many there are, and their numbers."""
    begins, counts = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    for k in range(starts[-1]):
        begins[members[k] + 1] += 1
    for j in range(n):
        begins[j + 1] += begins[j]
    cliques = np.zeros(begins[n], np.int64)
    for e in range(starts.size - 1):
        for k in range(starts[e], starts[e + 1]):
            j = members[k]
            cliques[begins[j] + counts[j]] = e
            counts[j] += 1
    return begins, counts, cliques


@inner_jitable
def _link(heads, after, before, j, degree):  # type: ignore[no-untyped-def]
    """Puts a column first in the list of its degree."""
    first = heads[degree]
    after[j], before[j], heads[degree] = first, -1, j
    if first >= 0:
        before[first] = j


@inner_jitable
def _unlink(heads, after, before, j, degree):  # type: ignore[no-untyped-def]
    """Takes a column out of the list of its degree."""
    if before[j] >= 0:
        after[before[j]] = after[j]
    else:
        heads[degree] = after[j]
    if after[j] >= 0:
        before[after[j]] = before[j]


@inner_jitable
def _minimum_degree(n, starts, members):  # type: ignore[no-untyped-def]
    begins, counts, cliques = _cliques_of(n, starts, members)
    firsts, sizes, is_alive = starts[:-1].copy(), np.zeros(starts.size - 1, np.int64), np.ones(starts.size, np.bool_)
    for e in range(sizes.size):
        sizes[e] = starts[e + 1] - starts[e]
    used, order = starts[-1], np.zeros(n, np.int64)
    heads, after, before = np.full(n + 1, -1), np.full(n, -1), np.full(n, -1)
    degrees, seen, shared_at, rest = np.zeros(n, np.int64), np.full(n, -1), np.full(sizes.size, -1), sizes.copy()
    for j in range(n - 1, -1, -1):
        for k in range(begins[j], begins[j] + counts[j]):
            degrees[j] += sizes[cliques[k]] - 1
        # A column of no clique has nearly full rows only, or none: it comes last.
        degrees[j] = min(degrees[j], n - 1) if counts[j] > 0 else n
        _link(heads, after, before, j, degrees[j])
    lowest = 0
    for step in range(n):
        while heads[lowest] < 0:
            lowest += 1
        c = heads[lowest]
        _unlink(heads, after, before, c, lowest)
        order[step], seen[c] = c, step
        first, new = used, -1
        for k in range(begins[c], begins[c] + counts[c]):
            e = cliques[k]
            if is_alive[e]:
                members = grown(members, used + sizes[e])
                for m in range(firsts[e], firsts[e] + sizes[e]):
                    if seen[members[m]] != step:
                        seen[members[m]] = step
                        members[used] = members[m]
                        used += 1
                is_alive[e], new = False, e
        if new < 0:
            continue
        # The new clique takes the number of one that it replaces.
        firsts[new], sizes[new], is_alive[new] = first, used - first, True
        for m in range(first, used):
            j = members[m]
            for k in range(begins[j], begins[j] + counts[j]):
                e = cliques[k]
                if shared_at[e] != step:
                    shared_at[e], rest[e] = step, sizes[e]
                rest[e] -= 1
        for m in range(first, used):
            j = members[m]
            degree, count = used - first - 1, 0
            for k in range(begins[j], begins[j] + counts[j]):
                e = cliques[k]
                if is_alive[e] and e != new:
                    is_alive[e] = rest[e] > 0
                    if is_alive[e]:
                        degree += rest[e]
                        cliques[begins[j] + count] = e
                        count += 1
            cliques[begins[j] + count], counts[j] = new, count + 1
            _unlink(heads, after, before, j, degrees[j])
            degrees[j] = min(degree, n - 1)
            _link(heads, after, before, j, degrees[j])
            lowest = min(lowest, degrees[j])
    return order
