"""Stencils: one to three fields on a grid of one to three dimensions, of order two to eight, in steps of time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bench.case import Size
from bench.generated.draw import Draw, Drawn, Inputs, Lengths, lengths, total_of
from bench.generated.tree import At, Copy, Expr, Function, Negative, Num, Select, Var, square, tanh
from bench.generated.writer import Writer

SECOND: Final = {  # weights of the second difference: of the point, of its neighbours, …
    2: (-2.0, 1.0),
    4: (-2.5, 1.3333333333333333, -0.08333333333333333),
    6: (-2.7222222222222223, 1.5, -0.15, 0.011111111111111112),
    8: (-2.8472222222222223, 1.6, -0.2, 0.025396825396825397, -0.0017857142857142857),
}
FIRST: Final = {  # of the central first difference
    2: (0.5,),
    4: (0.6666666666666666, -0.08333333333333333),
    6: (0.75, -0.15, 0.016666666666666666),
    8: (0.8, -0.2, 0.0380952380952381, -0.0035714285714285713),
}
STAGGERED: Final = {  # of the first difference between grid points
    2: (1.0,),
    4: (1.125, -0.041666666666666664),
    6: (1.171875, -0.065104166666666664, 0.0046875),
    8: (1.1962890625, -0.07975260416666667, 0.0095703125, -0.0006975446428571429),
}
LARGEST: Final = {2: 4.0, 4: 5.34, 6: 6.05, 8: 6.51}  # eigenvalue of minus the second difference


@dataclass(frozen=True)
class Grid:
    """Grid points, and how neighbours are written.

    Attributes:
        boundary: "fixed": points near it keep their values; "periodic"; "mirror": they follow those inside.
        style: of a periodic index: "inline", "named" variables, "select", or "negative" indices, which wrap.
    """

    dimensions: int
    order: int
    boundary: str
    style: str

    @property
    def reach(self) -> int:
        """Distance of the farthest neighbour."""
        return self.order // 2

    @property
    def axes(self) -> range:
        """Numbers of the axes."""
        return range(self.dimensions)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the indices."""
        return ("i", "j", "k")[: self.dimensions]

    @property
    def lengths(self) -> tuple[Var, ...]:
        """Lengths of the axes."""
        return tuple(Var(name, 0, "long") for name in ("n", "m", "l")[: self.dimensions])

    @property
    def here(self) -> tuple[Var, ...]:
        """Indices of the point."""
        return tuple(Var(name, 0, "long") for name in self.names)

    @contextmanager
    def points(self, f: Writer) -> Iterator[None]:
        """Loops over the points that a step computes."""
        inset = 0 if self.boundary == "periodic" else self.reach
        with ExitStack() as stack:
            for axis in self.axes:
                length = self.lengths[axis]
                stop = length - inset if inset else length
                index = stack.enter_context(f.loop(self.names[axis], inset, stop))
                if self.boundary == "periodic" and self.style in ("named", "select"):
                    self._name_neighbours(f, axis, index)
            yield

    @contextmanager
    def everything(self, f: Writer) -> Iterator[None]:
        """Loops over all points."""
        with f.nest(self.names, [0] * self.dimensions, self.lengths):
            yield

    def _name_neighbours(self, f: Writer, axis: int, index: Var) -> None:
        length = self.lengths[axis]
        for k in range(1, self.reach + 1):
            for offset in (-k, k):
                value: Expr = (index + offset if offset > 0 else index - k) % length
                if self.style == "select" and offset < 0:
                    value = Select(index >= k, index - k, index - k + length)
                elif self.style == "select":
                    value = Select(index < length - k, index + k, index + k - length)
                f.let(self._name(axis, offset), value)

    def _name(self, axis: int, offset: int) -> str:
        return f"{self.names[axis]}{'p' if offset > 0 else 'm'}{abs(offset)}"

    def near(self, array: Var, axis: int, offset: Expr | int) -> Expr:
        """The element at a distance along an axis."""
        indices: list[Expr] = list(self.here)
        index, length = indices[axis], self.lengths[axis]
        if isinstance(offset, int):
            indices[axis] = index if offset == 0 else index + offset if offset > 0 else index - -offset
        else:
            indices[axis] = index - offset.operand if isinstance(offset, Negative) else index + offset
        if self.boundary != "periodic" or (isinstance(offset, int) and offset == 0):
            return array[tuple(indices)]
        if self.style in ("named", "select") and isinstance(offset, int):
            indices[axis] = Var(self._name(axis, offset), 0, "long")
            return array[tuple(indices)]
        if self.style == "negative" and isinstance(offset, int) and offset < 0:
            return At(array, tuple(indices), wraps=True)
        indices[axis] = indices[axis] % length
        return array[tuple(indices)]

    def pair(self, array: Var, axis: int, k: int) -> Expr:
        """Sum of the neighbours on both sides."""
        return self.near(array, axis, -k) + self.near(array, axis, k)

    def second(self, array: Var) -> Expr:
        """Sum of the second differences along all axes, without the spacing."""
        weights = SECOND[self.order]
        shells = [total_of([self.pair(array, axis, k) for axis in self.axes]) for k in range(1, self.reach + 1)]
        centre = array[self.here]
        if self.order == 2:
            return shells[0] - 2.0 * self.dimensions * centre
        terms = [weight * shell for weight, shell in zip(weights[1:], shells, strict=True)]
        return total_of([self.dimensions * weights[0] * centre, *terms])

    def first(self, array: Var, axis: int) -> Expr:
        """The central first difference along an axis."""
        differences = [self.near(array, axis, k) - self.near(array, axis, -k) for k in range(1, self.reach + 1)]
        return total_of([weight * each for weight, each in zip(FIRST[self.order], differences, strict=True)])

    def between(self, array: Var, axis: int, side: int) -> Expr:
        """The first difference at half a spacing to a side, 1 or -1."""
        low = (1 if side > 0 else 0, 0 if side > 0 else -1)
        differences = [
            self.near(array, axis, low[0] + k) - self.near(array, axis, low[1] - k) for k in range(self.reach)
        ]
        return total_of([weight * each for weight, each in zip(STAGGERED[self.order], differences, strict=True)])

    def edges(self, f: Writer, array: Var) -> None:
        """Points near a mirroring boundary follow those inside, by a one-sided difference or a copy."""
        for axis in self.axes:
            others = [other for other in self.axes if other != axis]
            with f.nest([self.names[o] for o in others], [0] * len(others), [self.lengths[o] for o in others]):
                for layer in reversed(range(self.reach)):
                    for end in (False, True):
                        f.set(self._layer(array, axis, layer, end), self._inside(array, axis, layer, end))

    def _layer(self, array: Var, axis: int, layer: int, end: bool) -> Expr:
        indices: list[Expr] = list(self.here)
        indices[axis] = self.lengths[axis] - (layer + 1) if end else Num(layer)
        return array[tuple(indices)]

    def _inside(self, array: Var, axis: int, layer: int, end: bool) -> Expr:
        nearest = self._layer(array, axis, layer + 1, end)
        if self.style in ("inline", "named"):
            return nearest
        return (4.0 * nearest - self._layer(array, axis, layer + 2, end)) / 3.0


@dataclass
class Plan:
    """Choices that all schemes share, and the main function in the making.

    Attributes:
        fields: number of fields.
        state: parameters with the first values of the fields.
        scale: a factor, safe for the scheme, of each difference: a literal, a parameter or an array.
        inputs: makers of arguments, by name, given the shape of the grid and a generator.
    """

    d: Draw
    f: Writer
    grid: Grid
    fields: int
    inputs: dict[str, Callable[[tuple[int, ...], np.random.Generator], Any]]
    active: list[str]

    def start(self, low: float = 0.0, high: float = 1.0, count: int | None = None) -> list[Var]:
        """Parameters with the first values."""
        names = ("u", "v", "w")[: count or self.fields]
        found = []
        for name in names:
            found.append(self.f.parameter(f"{name}0", self.grid.dimensions))
            self.inputs[f"{name}0"] = lambda shape, rng: rng.uniform(low, high, shape)
            self.active.append(f"{name}0")
        return found

    def coefficient(self, largest: float, name: str = "c") -> Callable[[], Expr]:
        """A factor of at most ``largest``: a literal, a number to differentiate, or a field of them."""
        kind = self.d.one_of("literal", "number", "field", "field")
        if kind == "literal":
            value = float(f"{largest:.3g}")
            return lambda: Num(value)
        rank = self.grid.dimensions if kind == "field" else 0
        parameter = self.f.parameter(name, rank)
        self.active += [name] if self.d.chance(0.7) else []
        if kind == "number":
            self.inputs[name] = lambda shape, rng: float(largest * rng.uniform(0.6, 1.0))
            return lambda: parameter
        self.inputs[name] = lambda shape, rng: largest * rng.uniform(0.5, 1.0, shape)
        return lambda: parameter[self.grid.here]


def draw(d: Draw) -> Drawn:
    """A program of the family."""
    scheme = d.one_of(_swapped, _swapped, _leapfrog, _leapfrog, _rotated, _staggered, _in_place, _advection)
    dimensions = d.one_of(1, 2, 2, 3)
    order = d.one_of(2, 2, 4, 6, 8) if dimensions < 3 else d.one_of(2, 4)
    grid = Grid(
        dimensions, order, d.one_of("fixed", "periodic", "mirror"), d.one_of("inline", "named", "select", "negative")
    )
    plan = Plan(d, Writer("loss"), grid, 1, {}, [])
    title, work = scheme(plan)
    title = f"{title}, {dimensions}-D, order {order}, {grid.boundary}"
    points = d.lengths((order + 3) ** dimensions, 2000, 60000)
    steps = lengths(3, max(4, min(400, round(3e6 / (points["full"] * work)))))
    sides: Lengths = {size: round(count ** (1.0 / dimensions)) for size, count in points.items()}
    return Drawn(title, _functions(plan), _inputs(plan, sides, steps), _some_active(d, plan.active))


def _functions(plan: Plan) -> list[Function]:
    return [plan.f.function(Var("total"))]


def _some_active(d: Draw, names: list[str]) -> list[str]:
    return names if d.chance(0.7) else d.some_of(names)


def _inputs(plan: Plan, sides: Lengths, steps: Lengths) -> Callable[[Size, np.random.Generator], Inputs]:
    def make(size: Size, rng: np.random.Generator) -> Inputs:
        shape = tuple(max(plan.grid.order + 3, sides[size] + axis) for axis in plan.grid.axes)
        found = {name: maker(shape, rng) for name, maker in plan.inputs.items()}
        for name in ("wavelet", "trace"):
            if name in found:
                found[name] = rng.standard_normal(steps[size])
        return found | {"steps": steps[size]}

    return make


def _begin(plan: Plan, fields: Sequence[Var]) -> Var:
    """The last parameters, the lengths of the axes, and the sum of the loss; the number of steps."""
    plan.f.parameter("target", plan.grid.dimensions)
    plan.inputs["target"] = lambda shape, rng: rng.uniform(0.0, 1.0, shape)
    steps = plan.f.parameter("steps", 0, "long")
    plan.f.sizes(fields[0], *(length.name for length in plan.grid.lengths))
    plan.f.let("total", 0.0)
    return steps


def _misfit(plan: Plan, fields: Sequence[Var]) -> None:
    """Adds up what the last fields cost."""
    f, grid = plan.f, plan.grid
    target = Var("target", grid.dimensions)
    with grid.everything(f):
        f.add(Var("total"), square(fields[0][grid.here] - target[grid.here]))
        for field in fields[1:]:
            f.add(Var("total"), 0.5 * square(field[grid.here]))


def _source(plan: Plan) -> Callable[[Var, Var], None]:
    """A source and a receiver in each step, or none."""
    if plan.d.chance(0.5):
        return lambda field, step: None
    wavelet, trace = plan.f.parameter("wavelet", 1), plan.f.parameter("trace", 1)
    plan.inputs |= {"wavelet": lambda shape, rng: None, "trace": lambda shape, rng: None}
    plan.active += ["wavelet"] if plan.d.chance(0.5) else []
    size = plan.d.number(0.05, 0.3)
    shares = plan.d.one_of(2, 3), plan.d.one_of(2, 3)

    def write(field: Var, step: Var) -> None:
        here = tuple(Num(plan.grid.reach + 1) for _ in plan.grid.axes)
        plan.f.add(field[here], size * wavelet[step])
        there = tuple(length - (plan.grid.reach + shares[0]) for length in plan.grid.lengths)
        plan.f.add(Var("total"), square(field[there] - trace[step]))

    return write


def _loops_over_weights(plan: Plan, array: Var) -> Expr:
    """The second difference by a loop over an array of weights."""
    f, grid = plan.f, plan.grid
    weights = Var("weights", 1)
    value = f.let("bend", float(grid.dimensions) * weights[0] * array[grid.here])
    with f.loop("r", 1, grid.reach + 1) as r:
        pairs = [grid.near(array, axis, -r) + grid.near(array, axis, r) for axis in grid.axes]
        f.add(value, weights[r] * total_of(pairs))
    return value


def _second(plan: Plan) -> Callable[[Var], Expr]:
    """A way to write the second difference."""
    if not plan.d.chance(0.2):
        return plan.grid.second
    plan.f.parameter("weights", 1)
    plan.inputs["weights"] = lambda shape, rng: np.array(SECOND[plan.grid.order])
    plan.active += ["weights"] if plan.d.chance(0.3) else []
    return lambda array: _loops_over_weights(plan, array)


def _reaction(plan: Plan, fields: Sequence[Expr], which: int) -> Expr | None:
    """Effect of the fields on one of them at each point; bounded for fields between zero and one."""
    rate = plan.d.number(0.01, 0.04)
    own = fields[which]
    if len(fields) == 1:
        return plan.d.one_of(None, rate * (own - own * own * own), rate * own * (1.0 - own), rate * tanh(own))
    other = fields[(which + 1) % len(fields)]
    third = fields[(which + 2) % len(fields)]
    return plan.d.one_of(
        rate * (other * other * own - own),
        rate * own * (1.0 - own - 0.8 * other - 0.3 * third),
        rate * (other - own),
        rate * (own - own * own * own - other),
    )


def _swapped(plan: Plan) -> tuple[str, float]:
    """Diffusion with reactions: a second buffer for each field, and swaps."""
    d, f, grid = plan.d, plan.f, plan.grid
    plan.fields = d.integer(1, 3)
    starts = plan.start()
    largest = d.number(0.4, 0.9) / (LARGEST[grid.order] * grid.dimensions)
    rates = [plan.coefficient(largest, f"c{number}") for number in range(plan.fields)]
    second, source = _second(plan), _source(plan)
    steps = _begin(plan, starts)
    old = [f.let(f"{name}", Copy(start)) for name, start in zip("uvw", starts, strict=False)]
    new = [f.let(f"{name}_new", Copy(start)) for name, start in zip("uvw", starts, strict=False)]
    values = [each[grid.here] for each in old]
    reactions = [_reaction(plan, values, number) for number in range(plan.fields)]
    together = d.chance(0.6)
    with f.loop("step", 0, steps) as step:
        for group in [range(plan.fields)] if together else [[number] for number in range(plan.fields)]:
            with grid.points(f):
                for number in group:
                    change = rates[number]() * second(old[number])
                    reaction = reactions[number]
                    whole = change if reaction is None else change + reaction
                    f.set(new[number][grid.here], old[number][grid.here] + whole)
        _finish_step(plan, new, source, step)
        for a, b in zip(old, new, strict=True):
            f.rotate(a, b)
    _misfit(plan, old)
    return f"diffusion of {plan.fields} swapped", plan.fields * (2 + grid.dimensions * grid.reach)


def _finish_step(plan: Plan, fields: Sequence[Var], source: Callable[[Var, Var], None], step: Var) -> None:
    if plan.grid.boundary == "mirror":
        for field in fields:
            plan.grid.edges(plan.f, field)
    source(fields[0], step)


def _leapfrog(plan: Plan) -> tuple[str, float]:
    """A wave equation: the field before last is overwritten by the next."""
    d, f, grid = plan.d, plan.f, plan.grid
    plan.fields = d.integer(1, 2)
    starts = plan.start(-1.0, 1.0)
    speed = plan.coefficient(d.number(0.8, 2.0) / (LARGEST[grid.order] * grid.dimensions))
    second, source = _second(plan), _source(plan)
    steps = _begin(plan, starts)
    old = [f.let(f"{name}_old", Copy(start)) for name, start in zip("uv", starts, strict=False)]
    now = [f.let(f"{name}", Copy(start)) for name, start in zip("uv", starts, strict=False)]
    coupling, damping = d.number(0.01, 0.1), d.one_of(None, d.number(0.9, 0.999))
    with f.loop("step", 0, steps) as step:
        with grid.points(f):
            for number in range(plan.fields):
                own, before = now[number][grid.here], old[number][grid.here]
                value = 2.0 * own - before + speed() * second(now[number])
                if damping is not None:
                    value = own + damping * (own - before) + speed() * second(now[number])
                if plan.fields == 2:
                    value = value + coupling * (now[1 - number][grid.here] - own)
                f.set(old[number][grid.here], value)
        _finish_step(plan, old, source, step)
        for a, b in zip(old, now, strict=True):
            f.rotate(a, b)
    _misfit(plan, now)
    return f"wave of {plan.fields} in place, swapped", plan.fields * (3 + grid.dimensions * grid.reach)


def _rotated(plan: Plan) -> tuple[str, float]:
    """A wave equation with three buffers."""
    d, f, grid = plan.d, plan.f, plan.grid
    [start] = plan.start(-1.0, 1.0)
    speed = plan.coefficient(d.number(0.8, 2.0) / (LARGEST[grid.order] * grid.dimensions))
    second, source = _second(plan), _source(plan)
    stiffness = d.one_of(None, d.number(0.01, 0.1))
    steps = _begin(plan, [start])
    old, now, after = (f.let(name, Copy(start)) for name in ("old", "now", "after"))
    with f.loop("step", 0, steps) as step:
        with grid.points(f):
            own = now[grid.here]
            value = 2.0 * own - old[grid.here] + speed() * second(now)
            f.set(after[grid.here], value if stiffness is None else value - stiffness * own * own * own)
        _finish_step(plan, [after], source, step)
        f.rotate(old, now, after)
    _misfit(plan, [now])
    return "wave of three buffers", 3 + grid.dimensions * grid.reach


def _staggered(plan: Plan) -> tuple[str, float]:
    """Pressure and velocities on staggered points, both updated in place."""
    d, f, grid = plan.d, plan.f, plan.grid
    [start] = plan.start(-1.0, 1.0)
    bound = math.sqrt(d.number(0.5, 0.9) / grid.dimensions) / sum(map(abs, STAGGERED[grid.order]))
    density, modulus = plan.coefficient(bound, "b"), plan.coefficient(bound, "kappa")
    source = _source(plan)
    steps = _begin(plan, [start])
    pressure = f.let("p", Copy(start))
    velocities = [f.let(f"v{name}", 0.0 * start) for name in "xyz"[: grid.dimensions]]
    with f.loop("step", 0, steps) as step:
        with grid.points(f):
            for axis, velocity in enumerate(velocities):
                f.set(velocity[grid.here], density() * grid.between(pressure, axis, 1), "-")
        with grid.points(f):
            flows = [grid.between(velocity, axis, -1) for axis, velocity in enumerate(velocities)]
            f.set(pressure[grid.here], modulus() * total_of(flows), "-")
        _finish_step(plan, [pressure], source, step)
    _misfit(plan, [pressure, *velocities])
    return "staggered acoustics in place", 4 + 2 * grid.dimensions * grid.reach


def _in_place(plan: Plan) -> tuple[str, float]:
    """Sweeps of relaxation: each point uses neighbours that the sweep has changed before."""
    d, f, grid = plan.d, plan.f, plan.grid
    [start] = plan.start()
    weights = SECOND[grid.order]
    relaxation = plan.coefficient(d.number(0.7, 1.2) / (-weights[0] * grid.dimensions), "omega")
    load = f.parameter("load", grid.dimensions)
    plan.inputs["load"] = lambda shape, rng: rng.uniform(-0.1, 0.1, shape)
    plan.active.append("load")
    steps = _begin(plan, [start])
    field = f.let("u", Copy(start))
    with f.loop("step", 0, steps):
        with grid.points(f):
            f.add(field[grid.here], relaxation() * (grid.second(field) + load[grid.here]))
        if grid.boundary == "mirror":
            grid.edges(f, field)
    _misfit(plan, [field])
    return "relaxation in place", 4 + grid.dimensions * grid.reach


def _advection(plan: Plan) -> tuple[str, float]:
    """Transport with a field of speeds, or by the field itself, and some diffusion; one buffer and swaps."""
    d, f, grid = plan.d, plan.f, plan.grid
    [start] = plan.start()
    kind = d.one_of("speed", "burgers", "upwind")
    speed = f.parameter("speed", grid.dimensions) if kind != "burgers" else None
    if speed is not None:
        plan.inputs["speed"] = lambda shape, rng: rng.uniform(-1.0, 1.0, shape)
        plan.active.append("speed")
    diffusion = plan.coefficient(d.number(0.4, 0.7) / (LARGEST[grid.order] * grid.dimensions), "nu")
    ratio = d.number(0.02, 0.08)
    source = _source(plan)
    steps = _begin(plan, [start])
    old, new = f.let("u", Copy(start)), f.let("u_new", Copy(start))
    with f.loop("step", 0, steps) as step:
        with grid.points(f):
            own = old[grid.here]
            a = f.let("a", own if speed is None else speed[grid.here])
            if kind == "upwind":
                slopes = [
                    Select(a > 0.0, own - grid.near(old, axis, -1), grid.near(old, axis, 1) - own) for axis in grid.axes
                ]
            else:
                slopes = [grid.first(old, axis) for axis in grid.axes]
            f.set(new[grid.here], own - ratio * a * total_of(slopes) + diffusion() * grid.second(old))
        _finish_step(plan, [new], source, step)
        f.rotate(old, new)
    _misfit(plan, [old])
    return f"advection ({kind})", 4 + 2 * grid.dimensions * grid.reach
