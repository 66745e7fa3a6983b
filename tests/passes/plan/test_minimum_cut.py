from __future__ import annotations

import random
from itertools import combinations, product
from math import inf

import pytest

from irad.errors import InternalError, PlanError
from irad.passes.plan.minimum_cut import Flow, minimum_cut


def graph(capacities: dict[str, float], edges: str) -> Flow[str]:
    flow: Flow[str] = Flow()
    for key, capacity in capacities.items():
        flow.add_node(key, capacity)
    for a, b in edges.split():
        flow.add_edge(a, b)
    return flow


def separates(count: int, edges: set[tuple[int, int]], sources: list[int], sinks: list[int], cut: set[int]) -> bool:
    reached = {s for s in sources if s not in cut}
    pending = list(reached)
    while pending:
        node = pending.pop()
        for a, b in edges:
            if a == node and b not in cut and b not in reached:
                reached.add(b)
                pending.append(b)
    return not reached & set(sinks)


def cheapest_cuts(
    capacities: list[float], edges: set[tuple[int, int]], sources: list[int], sinks: list[int]
) -> tuple[float, list[set[int]]]:
    """Least capacity and all cuts of it, by trying all sets of nodes."""
    nodes = range(len(capacities))
    best, cuts = inf, []
    for size in range(len(capacities) + 1):
        for cut in combinations(nodes, size):
            cost = sum(capacities[n] for n in cut)
            if cost <= best and cost < inf and separates(len(capacities), edges, sources, sinks, set(cut)):
                cuts = [*cuts, set(cut)] if cost == best else [set(cut)]
                best = cost
    return best, cuts


def source_side(count: int, edges: set[tuple[int, int]], sources: list[int], cut: set[int]) -> set[int]:
    return {n for n in range(count) if not separates(count, edges, sources, [n], cut)}


@pytest.mark.parametrize("seed", range(150))
def test_against_all_subsets(seed: int):
    rng = random.Random(seed)
    count = rng.randint(1, 8)
    capacities = [rng.choice([1.0, 1.0, 2.0, 3.0, 0.5, 7.0, inf]) for _ in range(count)]
    edges = {(rng.randrange(count), rng.randrange(count)) for _ in range(rng.randint(0, 3 * count))}
    sources = rng.sample(range(count), rng.randint(0, min(3, count)))
    sinks = rng.sample(range(count), rng.randint(0, min(3, count)))
    flow: Flow[int] = Flow()
    for node, capacity in enumerate(capacities):
        flow.add_node(node, capacity)
    for a, b in sorted(edges):
        flow.add_edge(a, b)
    best, cuts = cheapest_cuts(capacities, edges, sources, sinks)
    if best == inf:
        with pytest.raises(PlanError):
            minimum_cut(flow, sources, sinks)
        return
    near_sinks = set(minimum_cut(flow, sources, sinks))
    near_sources = set(minimum_cut(flow, sources, sinks, nearest="sources"))
    assert near_sinks in cuts
    assert near_sources in cuts
    sides = [source_side(count, edges, sources, cut) for cut in cuts]
    assert all(side <= source_side(count, edges, sources, near_sinks) for side in sides)
    assert all(source_side(count, edges, sources, near_sources) <= side for side in sides)


def least_with_supplies(capacities, supplies, edges, sources, sinks) -> float:
    """Least cost by trying every side, True that of the sources, for every entry and exit."""
    best = inf
    for sides in product(product((True, False), repeat=2), repeat=len(capacities)):
        if any(sides[a][1] and not sides[b][0] for a, b in edges):
            continue
        if not all(sides[n][0] for n in sources) or any(sides[n][1] for n in sinks):
            continue
        cut = sum(c for c, (entry, leaves) in zip(capacities, sides, strict=True) if entry and not leaves)
        best = min(best, cut + sum(s for s, (entry, _) in zip(supplies, sides, strict=True) if not entry))
    return best


@pytest.mark.parametrize("seed", range(100))
def test_supplies_against_all_assignments(seed: int):
    rng = random.Random(seed)
    count = rng.randint(1, 5)
    capacities = [rng.choice([1.0, 2.0, 3.0, 8.0]) for _ in range(count)]
    supplies = [rng.choice([0.0, 0.25, 0.5, 2.0]) for _ in range(count)]
    edges = {(rng.randrange(count), rng.randrange(count)) for _ in range(rng.randint(0, 2 * count))}
    sources, sinks = rng.sample(range(count), 1), rng.sample(range(count), 1)
    flow: Flow[int] = Flow()
    for node in range(count):
        flow.add_node(node, capacities[node], supplies[node])
    for a, b in sorted(edges):
        flow.add_edge(a, b)
    cut = minimum_cut(flow, sources, sinks)
    behind = reached_backwards(edges, sinks, set(cut))
    cost = sum(capacities[n] for n in cut) + sum(supplies[n] for n in behind - set(cut))
    assert cost == least_with_supplies(capacities, supplies, edges, sources, sinks)


def reached_backwards(edges: set[tuple[int, int]], sinks: list[int], cut: set[int]) -> set[int]:
    """What the sinks are computed from, up to the cut."""
    found, pending = set(sinks), [n for n in sinks if n not in cut]
    while pending:
        node = pending.pop()
        new = {a for a, b in edges if b == node} - found
        found |= new
        pending.extend(new - cut)
    return found


def test_a_long_way_behind_a_narrow_place_is_cut_at_its_end():
    flow = graph({"a": 1, "z": 2}, "")
    for name in "bcdef":
        flow.add_node(name, 3, 0.25)
    for a, b in ("ab", "bc", "cd", "de", "ef", "fz"):
        flow.add_edge(a, b)
    assert minimum_cut(flow, "a", "z") == ("z",)


def test_narrow_place_is_cut():
    flow = graph({"a": 2, "b": 2, "m": 1, "x": 2, "y": 2}, "am bm mx my")
    assert minimum_cut(flow, "ab", "xy") == ("m",)


def test_tie_goes_to_the_side_asked_for():
    flow = graph({"a": 1, "b": 1, "c": 1}, "ab bc")
    assert minimum_cut(flow, "a", "c") == ("c",)
    assert minimum_cut(flow, "a", "c", nearest="sources") == ("a",)


def test_result_is_in_the_order_of_adding():
    capacities = {"z": 1.0, "q": 1.0, "a": 1.0, "s": inf, "t": inf}
    assert minimum_cut(graph(capacities, "sa sq sz at qt zt"), "s", "t") == ("z", "q", "a")


def test_node_that_is_source_and_sink_is_cut():
    assert minimum_cut(graph({"a": 3, "b": 1}, "ab"), "a", "ab") == ("a",)


def test_nothing_to_cut():
    assert minimum_cut(graph({"a": 1, "b": 1}, ""), "a", "b") == ()
    assert minimum_cut(graph({"a": 1, "b": 1}, "ab"), "", "b") == ()
    assert minimum_cut(graph({"a": 1, "b": 1}, "ba"), "a", "b") == ()


def test_cycles_are_allowed():
    assert minimum_cut(graph({"s": inf, "a": 2, "b": 1, "t": inf}, "sa ab ba bt aa"), "s", "t") == ("b",)


def test_capacity_changes_when_a_node_is_added_again():
    flow = graph({"a": 1, "b": 2}, "ab ab")
    assert minimum_cut(flow, "a", "b") == ("a",)
    flow.add_node("a", 3)
    assert minimum_cut(flow, "a", "b") == ("b",)


def test_no_finite_cut():
    flow = graph({"a": inf, "b": inf, "c": 1, "d": inf}, "ab bd ac cd")
    with pytest.raises(PlanError, match="neither saved nor recomputed"):
        minimum_cut(flow, "a", "d")


def test_infinite_nodes_off_the_path_do_not_matter():
    assert minimum_cut(graph({"a": inf, "b": 1, "c": inf, "d": inf}, "ab bc dc"), "a", "c") == ("b",)


def test_capacities_of_very_different_size():
    flow = graph({"a": 1e9, "b": 0.25, "c": 1e9, "d": 0.125, "e": 1e9}, "ab bc ad dc ce")
    assert minimum_cut(flow, "a", "e") == ("b", "d")


@pytest.mark.parametrize("capacity", [-1.0, float("nan")])
def test_capacity_that_is_none(capacity: float):
    with pytest.raises(InternalError):
        Flow[str]().add_node("a", capacity)
    with pytest.raises(InternalError):
        Flow[str]().add_node("a", 1.0, capacity)


def test_unknown_node():
    flow = graph({"a": 1}, "")
    with pytest.raises(InternalError, match="'b'"):
        flow.add_edge("a", "b")
    with pytest.raises(InternalError, match="'b'"):
        minimum_cut(flow, "a", "b")


def program_like(count: int, seed: int) -> tuple[Flow[int], list[int], list[int]]:
    """Nodes use one to three earlier ones, mostly near; a fifth cannot be saved; every 25th cannot be recomputed."""
    rng = random.Random(seed)
    flow: Flow[int] = Flow()
    inputs = [node for node in range(count) if node < 20 or node % 25 == 0]
    for node in range(count):
        flow.add_node(node, rng.choice([8.0, 8.0, 8.0, 4.0, inf]) if node % 25 and node >= 20 else 8.0)
        if node >= 20:
            for _ in range(rng.randint(1, 3)):
                flow.add_edge(max(0, node - rng.randint(1, 30)) if rng.random() < 0.95 else rng.randrange(node), node)
    sinks = [n for n in range(20, count) if rng.random() < 0.3]
    return flow, inputs, sinks


def test_twenty_thousand_nodes():
    flow, sources, sinks = program_like(20_000, 1)
    cut = minimum_cut(flow, sources, sinks)
    assert cut == minimum_cut(flow, sources, sinks)
    costs = {n: flow._capacities[n] for n in range(20_000)}
    other = minimum_cut(flow, sources, sinks, nearest="sources")
    assert sum(costs[n] for n in cut) == sum(costs[n] for n in other) < sum(costs[n] for n in sources)


def test_long_chain_does_not_recurse():
    flow: Flow[int] = Flow()
    for node in range(30_000):
        flow.add_node(node, 2.0 if node != 12_345 else 1.0)
        if node:
            flow.add_edge(node - 1, node)
    assert minimum_cut(flow, [0], [29_999]) == (12_345,)


def test_wide_graph_saturates_every_column():
    flow: Flow[tuple[int, int]] = Flow()
    rows, columns = 40, 250
    for row in range(rows):
        for column in range(columns):
            flow.add_node((row, column), 1.0 + (row * 7 + column * 3) % 5)
            if row:
                for shift in (-1, 0, 1):
                    flow.add_edge((row - 1, (column + shift) % columns), (row, column))
    cut = minimum_cut(flow, [(0, c) for c in range(columns)], [(rows - 1, c) for c in range(columns)])
    assert sum(1.0 + (r * 7 + c * 3) % 5 for r, c in cut) <= columns * 3
    assert len(cut) >= columns // 3
