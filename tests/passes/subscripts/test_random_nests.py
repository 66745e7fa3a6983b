"""Random loop nests: what is said to be apart is apart whenever they run."""

from __future__ import annotations

from collections import defaultdict

import pytest

from irad.ir.cfg import control_flow
from irad.ir.dominance import dominators
from irad.ir.instructions import Load, Store
from irad.ir.loops import Loop, loop_nest
from irad.passes.subscripts.dimensions import take_dimensions
from irad.passes.subscripts.forms import Forms
from irad.passes.subscripts.separation import Separation
from tests.passes.subscripts.nests import Event, accesses, random_nest, run, text_of
from tests.passes.units import parsed


def meets(load: str, store: str, events: list[Event]) -> bool:
    """Whether a store touches something after it was loaded."""
    read: set[int] = set()
    for event in events:
        if event.access.name == load:
            read.update(event.bytes)
        elif event.access.name == store and not read.isdisjoint(event.bytes):
            return True
    return False


def meets_in(loop: str, load: str, store: str, events: list[Event]) -> bool:
    """Whether a load and a store touch the same in one run of a loop."""
    touched: dict[tuple[str, int], set[int]] = defaultdict(set)
    for event in events:
        if event.access.name in (load, store):
            touched[event.access.name, event.runs[loop]].update(event.bytes)
    runs = {number for _, number in touched}
    return any(touched[load, number] & touched[store, number] for number in runs)


def check(seed: int) -> tuple[int, int, int]:
    """Checks a nest; how many pairs of accesses never met, how many of them are known not to, and the same in loops."""
    body = random_nest(seed)
    module, function = parsed(text_of(body, seed))
    dimensions = take_dimensions(module)
    cfg = control_flow(function)
    dom = dominators(cfg)
    nest = loop_nest(cfg, dom)
    separation = Separation(Forms(cfg, dom, nest, dimensions))
    named = {each.name: each for each in accesses(body)}
    stores = [inst for inst in function.instructions() if isinstance(inst, Store)]
    written = list(zip([name for name, each in named.items() if each.is_store], stores, strict=True))
    loads = [inst for inst in function.instructions() if isinstance(inst, Load)]
    traces = [run(body, n, seed + n) for n in (0, 1, 2, 3, 5)]
    apart = known = known_in = 0
    for load in loads:
        for name, store in written:
            assert load.name is not None
            truly = not any(meets(load.name, name, events) for events in traces)
            said = separation.is_apart_later(load, store)
            assert truly or not said, f"{load.name} and {name}"
            apart, known = apart + truly, known + said
            for loop in nest.loops:
                if {load.block, store.block} <= loop.blocks and separation.is_apart_in(loop, load, store):
                    assert not any(meets_in(_name(loop), load.name, name, events) for events in traces)
                    known_in += 1
    return apart, known, known_in


def _name(loop: Loop) -> str:
    return str(loop.header.name).removeprefix("head")


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_what_is_said_to_be_apart_never_meets(start):
    apart, known, inside = map(sum, zip(*map(check, range(start, start + 50)), strict=True))
    assert known > apart // 10
    assert inside > 0
