from __future__ import annotations

import numpy as np
from numba import njit, types

from irad.driver import MemoryType
from irad.frontend.abi import BOOKKEEPING
from irad.frontend.numba_cpu import load_program

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
    assert payload.behind == ((None, BOOKKEEPING), (None, DOUBLES))
    [result] = of("retptr")
    assert result.behind == ((0, header), (8, BOOKKEEPING))
