"""Integrators: a right-hand side that returns a small array, and steps written with expressions of such arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.case import Size
from bench.generated.draw import Draw, Drawn, Inputs, lengths, total_of
from bench.generated.tree import (
    Copy,
    Elements,
    Expr,
    Function,
    New,
    Num,
    Part,
    Size as Length,
    Sum,
    Var,
    cos,
    exp,
    sin,
    sqrt,
    square,
    tanh,
)
from bench.generated.writer import Writer

Step = Callable[[Writer, Function, Var, Var, Var], Expr]


def draw(d: Draw) -> Drawn:
    """A program of the family."""
    name, rhs, states, parameters = d.one_of(_reactions, _reactions, _oscillators, _named, _rigid_body)(d)
    method = d.one_of("euler", "midpoint", "heun", "rk3", "rk4", "rk4", "kutta 3/8", "dormand-prince")
    in_function, follows = d.chance(0.5), d.chance(0.5)
    helpers = [_step_function(method, rhs)] if in_function else []
    trajectories = lengths(1, d.one_of(1, 1, 1, 8))
    stages = {"euler": 1, "midpoint": 2, "heun": 2, "rk3": 3, "rk4": 4, "kutta 3/8": 4, "dormand-prince": 6}[method]
    budget = 1.5e5 / (stages * (states + 4) * trajectories["full"])
    steps = lengths(3, max(20, round(budget * d.number(0.5, 2.0))))
    f = Writer("loss")
    starts, p, target = f.parameter("starts", 2), f.parameter("p", 1), f.parameter("target", 1)
    h, count = f.parameter("h"), f.parameter("steps", 0, "long")
    total = f.let("total", 0.0)
    with f.loop("e", 0, Length(starts)) as e:
        y = f.let("y", Copy(starts[e]))
        with f.loop("step", 0, count):
            if helpers:
                f.set(y, helpers[0](y, p, h))
            else:
                f.set(y, _stages(method, f, rhs, y, p, h))
            if follows:
                f.add(total, h * square(y[0] - target[0]))
        f.add(total, Sum(square(y - target)) if d.chance(0.5) else square(y[0] - target[0]) + 0.3 * square(y[1]))

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        return {
            "starts": rng.uniform(0.3, 1.0, (trajectories[size], states)),
            "p": rng.uniform(0.3, 1.0, parameters),
            "target": rng.uniform(0.3, 1.0, states),
            "h": 2.0 / steps["full"],
            "steps": steps[size],
        }

    active = d.one_of(["starts", "p"], ["p"], ["starts", "p"])
    title = f"{name}, {states} states, {method}{' in a function' if in_function else ''}"
    return Drawn(title, [rhs, *helpers, f.function(total)], make, active)


def _step_function(method: str, rhs: Function) -> Function:
    f = Writer("advance")
    y, p, h = f.parameter("y", 1), f.parameter("p", 1), f.parameter("h")
    return f.function(_stages(method, f, rhs, y, p, h), (Length(y),))


def _stages(method: str, f: Writer, rhs: Function, y: Var, p: Var, h: Var) -> Expr:
    """The stages of a step, and the expression that is the next state."""
    tables: dict[str, tuple[list[list[float]], list[float]]] = {
        "euler": ([], [1.0]),
        "midpoint": ([[0.5]], [0.0, 1.0]),
        "heun": ([[1.0]], [0.5, 0.5]),
        "rk3": ([[0.5], [-1.0, 2.0]], [1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0]),
        "kutta 3/8": ([[1.0 / 3.0], [-1.0 / 3.0, 1.0], [1.0, -1.0, 1.0]], [0.125, 0.375, 0.375, 0.125]),
        "dormand-prince": (
            [
                [0.2],
                [0.075, 0.225],
                [44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0],
                [19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0],
                [9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0],
            ],
            [35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0],
        ),
    }
    slopes = [f.let("k1", rhs(y, p))]
    if method == "rk4":
        slopes.append(f.let("k2", rhs(y + 0.5 * h * slopes[0], p)))
        slopes.append(f.let("k3", rhs(y + 0.5 * h * slopes[1], p)))
        slopes.append(f.let("k4", rhs(y + h * slopes[2], p)))
        return y + h / 6.0 * (slopes[0] + 2.0 * slopes[1] + 2.0 * slopes[2] + slopes[3])
    nodes, weights = tables[method]
    for number, row in enumerate(nodes):
        value = y + h * _weighted(row, slopes)
        slopes.append(f.let(f"k{number + 2}", rhs(value, p)))
    return y + h * _weighted(weights, slopes)


def _weighted(weights: list[float], slopes: list[Var]) -> Expr:
    """A sum with weights, without those that are zero or one."""
    pairs = zip(weights, slopes, strict=True)
    return total_of([slope if weight == 1.0 else weight * slope for weight, slope in pairs if weight != 0.0])


def _reactions(d: Draw) -> tuple[str, Function, int, int]:
    """A random network of reactions by the law of mass action, element by element."""
    states, reactions = d.integer(3, 10), d.integer(3, 14)
    f = Writer("rates")
    y, p = f.parameter("y", 1), f.parameter("p", 1)
    out = f.let("out", New((Length(y),)))
    for number in range(reactions):
        a, b, c = d.integer(0, states - 1), d.integer(0, states - 1), d.integer(1, states - 1)
        c = (a + c) % states  # another one
        kind = d.one_of("decay", "pair", "pair", "saturating", "arrhenius")
        speed: Expr = p[number] * y[a]
        if kind == "pair":
            speed = p[number] * y[a] * y[b]
        elif kind == "saturating":
            speed = p[number] * y[a] / (1.0 + y[b])
        elif kind == "arrhenius":
            speed = exp(-p[number] / (0.5 + y[b] * y[b])) * y[a]
        r = f.let("r", speed)
        f.set(out[a], r, "-")
        f.add(out[c], r)
    return f"{reactions} reactions", f.function(out, (Length(y),)), states, reactions


def _oscillators(d: Draw) -> tuple[str, Function, int, int]:
    """A chain of oscillators by a loop: positions first, velocities after."""
    pairs, kind = d.integer(2, 6), d.one_of("linear", "cubic", "sine")
    f = Writer("slopes")
    y, p = f.parameter("y", 1), f.parameter("p", 1)
    out = f.let("out", New((Num(2 * pairs),), is_zero=False) if d.chance(0.5) else New((Length(y),)))
    sliced = d.chance(0.5)
    if sliced:
        f.set(Part(out, *_bounds(0, pairs)), Part(y, *_bounds(pairs, 2 * pairs)))
    with f.loop("i", 0, pairs) as i:
        if not sliced:
            f.set(out[i], y[pairs + i])
        pull = f.let("pull", y[i])
        with f.when(i > 0):
            f.add(pull, 0.5 * (y[i] - y[i - 1]))
        force = {"linear": pull, "cubic": pull + 0.3 * pull * pull * pull, "sine": sin(pull)}[kind]
        f.set(out[pairs + i], -p[0] * force - 0.1 * p[1] * y[pairs + i])
    return f"chain of {kind} oscillators", f.function(out, (Length(y),)), 2 * pairs, 2


def _bounds(start: int, stop: int) -> tuple[Expr, Expr]:
    return Num(start), Num(stop)


def _named(d: Draw) -> tuple[str, Function, int, int]:
    """Well-known systems: elements of the state have names, and the result is an array of expressions."""
    f = Writer("slopes")
    y, p = f.parameter("y", 1), f.parameter("p", 1)
    name = d.one_of("predators", "lorenz", "pendulum", "epidemic", "fitzhugh")
    states = {"predators": 2, "lorenz": 3, "pendulum": 4, "epidemic": 4, "fitzhugh": 2}[name]
    if name == "pendulum":
        a, b, u, v = (f.let(label, y[number]) for number, label in enumerate("abuv"))
        s, c = f.let("s", sin(a - b)), f.let("c", cos(a - b))
        scale = f.let("scale", 1.0 / (2.0 - c * c))
        return (
            "double pendulum",
            f.function(
                Elements(
                    (
                        u,
                        v,
                        scale * (-s * (v * v + c * u * u) - p[0] * (2.0 * sin(a) - c * sin(b))),
                        scale * (s * (2.0 * u * u + c * v * v) + 2.0 * p[0] * (c * sin(a) - sin(b))),
                    )
                ),
                (4,),
            ),
            states,
            1,
        )
    a, b = f.let("a", y[0]), f.let("b", y[1])
    c = f.let("c", y[2]) if states > 2 else a
    e = f.let("e", y[3]) if states > 3 else a
    elements: dict[str, tuple[Expr, ...]] = {
        "predators": (p[0] * a - p[1] * a * b, p[2] * a * b - p[3] * b),
        "lorenz": (3.0 * p[0] * (b - a), a * (2.0 * p[1] - c) - b, a * b - p[2] * c),
        "epidemic": (-p[0] * a * c, p[0] * a * c - p[1] * b, p[1] * b - p[2] * c, p[2] * c - 0.1 * e),
        "fitzhugh": (a - a * a * a / 3.0 - b + p[0], 0.3 * (a + p[1] - p[2] * b)),
    }
    if d.chance(0.3):
        out = f.let("out", New((Num(states),), is_zero=False))
        for number, value in enumerate(elements[name]):
            f.set(out[number], value)
        return name, f.function(out, (states,)), states, 4
    return name, f.function(Elements(elements[name]), (states,)), states, 4


def _rigid_body(d: Draw) -> tuple[str, Function, int, int]:
    """Parts of the state as arrays: a body in a field, with positions and velocities of two or three axes."""
    axes = d.integer(2, 3)
    f = Writer("slopes")
    y, p = f.parameter("y", 1), f.parameter("p", 1)
    position, velocity = (
        f.let("position", Part(y, *_bounds(0, axes))),
        f.let("velocity", Part(y, *_bounds(axes, 2 * axes))),
    )
    r = f.let("r", sqrt(Sum(position * position) + 0.1))
    law = d.one_of(1.0 / (r * r * r), exp(-r) / r, tanh(r) / r)
    out = f.let("out", New((Num(2 * axes),), is_zero=False))
    f.set(Part(out, *_bounds(0, axes)), velocity)
    acceleration = -p[0] * law * position - 0.2 * p[1] * velocity
    if d.chance(0.5):
        pull = f.let("pull", acceleration)
        f.set(Part(out, *_bounds(axes, 2 * axes)), pull)
    else:
        f.set(Part(out, *_bounds(axes, 2 * axes)), acceleration)
    return f"body in a field, {axes}-D", f.function(out, (Length(y),)), 2 * axes, 2
