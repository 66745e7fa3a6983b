from __future__ import annotations

import numpy as np
from numba import deferred_type, njit, optional, types
from numba.experimental import jitclass

from irad.driver import MemoryType
from irad.frontend.numba.cpu import load_program
from irad.frontend.values.abi import BOOKKEEPING
from irad.passes.memory.addresses import Position
from irad.passes.memory.points_to_graph import places_behind

DOUBLES = MemoryType(8, ((0, "double"),))


@njit
def recursive(numbers, pair, items, d):
    if d == 0:
        return [numbers, pair[1]]
    items.append(numbers)
    return recursive(numbers, pair, items, d - 1)


@njit
def program(a):
    return recursive(a, (1, a), [a], 2)[0].sum() + np.sum(a)


def test_the_pointers_of_arrays_tuples_and_lists():
    loaded = load_program(program, (types.float64[::1],))
    [signature] = [s for s in loaded.signatures if "recursive" in s.symbol]
    memory = dict(signature.memory)

    def of(start: str) -> list[MemoryType]:
        return [holds for name, holds in memory.items() if name.startswith(start)]

    assert of("arg.numbers") == [BOOKKEEPING, BOOKKEEPING, DOUBLES]
    assert of("arg.pair") == [BOOKKEEPING, BOOKKEEPING, DOUBLES]
    header, parent = of("arg.items")
    assert parent == BOOKKEEPING
    assert header.is_header
    ((offset, payload),) = header.behind
    assert offset == 24
    assert payload is not None
    assert payload.integer_prefix == 24
    assert payload.stride == 56
    assert payload.behind == ((0, BOOKKEEPING), (8, BOOKKEEPING), (32, DOUBLES))
    assert list(places_behind(payload)) == [
        (Position(24, 56), BOOKKEEPING),
        (Position(32, 56), BOOKKEEPING),
        (Position(0, 56), DOUBLES),
    ]
    [result] = of("retptr")
    assert result.behind == ((0, header), (8, BOOKKEEPING))


NODE = deferred_type()


@jitclass([("x", types.float64), ("k", types.int64), ("a", types.float64[::1])])
class Holder:
    def __init__(self, x, k, a):
        self.x = x
        self.k = k
        self.a = a


@jitclass([("value", types.float64), ("k", types.int64), ("next", optional(NODE))])
class Node:
    def __init__(self, value, k):
        self.value = value
        self.k = k
        self.next = None


NODE.define(Node.class_type.instance_type)


@njit
def counted(holder, node, d):
    if d == 0:
        return holder.x * node.value
    holder.k += node.k
    return counted(holder, node, d - 1)


@njit
def instances(a):
    return counted(Holder(a[0], 1, a), Node(a[1], 2), 3)


def test_the_fields_of_instances():
    loaded = load_program(instances, (types.float64[::1],))
    [signature] = [s for s in loaded.signatures if "counted" in s.symbol]
    memory = dict(signature.memory)
    [_, fields] = [holds for name, holds in memory.items() if name.startswith("arg.holder")]
    assert (0, "double") in fields.fields
    assert (8, "i64") in fields.fields
    assert dict(fields.behind) == {16: BOOKKEEPING, 24: BOOKKEEPING, 48: DOUBLES}
    [_, node] = [holds for name, holds in memory.items() if name.startswith("arg.node")]
    assert node.behind == ((16, None), (24, None))  # further nodes: anything
