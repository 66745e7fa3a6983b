"""Recurrences with exp, log, min and max: likelihoods of series, scores of alignments, running maxima, gates."""

from __future__ import annotations

import numpy as np

from bench.case import Size
from bench.generated.draw import Draw, Drawn, Inputs, lengths, total_of
from bench.generated.tree import Expr, New, Num, Select, Var, absolute, exp, greatest, least, log, square, tanh
from bench.generated.writer import Writer


def draw(d: Draw) -> Drawn:
    """A program of the family."""
    return d.one_of(_markov, _markov, _volatility, _volatility, _softmax, _alignment, _alignment, _gates, _tree)(d)


def _markov(d: Draw) -> Drawn:
    """The forward algorithm of a hidden Markov model, with logarithms or with scaled probabilities."""
    states = d.integer(2, 24)
    steps = d.lengths(5, 30000 // states**2 + 50, 300000 // states**2)
    scaled, emits = d.chance(0.4), d.one_of("gauss", "cauchy", "laplace", "poisson")
    f = Writer("loss")
    transition, mean, spread = f.parameter("transition", 2), f.parameter("mean", 1), f.parameter("spread", 1)
    series = f.parameter("series", 1)
    [count], [k] = f.sizes(series, "n"), f.sizes(mean, "states")
    alpha, following = f.let("alpha", New((k,))), f.let("following", New((k,)))
    total = f.let("total", 0.0)
    with f.loop("j", 0, k) as j:
        f.set(alpha[j], 1.0 / k if scaled else 0.0)
    with f.loop("t", 0, count) as t:
        if scaled:
            f.let("norm", 0.0)
        with f.loop("j", 0, k) as j:
            gap = f.let("gap", (series[t] - mean[j]) / spread[j])
            emissions = {
                "gauss": -0.5 * gap * gap - log(spread[j]),
                "cauchy": -log(1.0 + gap * gap) - log(spread[j]),
                "laplace": -absolute(gap) - log(2.0 * spread[j]),
                "poisson": series[t] * mean[j] - exp(mean[j]) * spread[j],
            }
            emission = emissions[emits]
            if scaled:
                s = f.let("s", 0.0)
                with f.loop("i", 0, k) as i:
                    f.add(s, alpha[i] * transition[i, j])
                f.set(following[j], s * exp(emission))
                f.add(Var("norm"), following[j])
            else:
                _log_sum_exp(f, alpha, transition, k, j)
                f.set(following[j], Var("top") + log(Var("s")) + emission)
        if scaled:
            f.add(total, log(Var("norm")))
            with f.loop("j", 0, k) as j:
                f.set(alpha[j], following[j] / Var("norm"))
        else:
            f.rotate(alpha, following)
    if not scaled:
        top = f.let("top", alpha[0])
        with f.loop("j", 1, k) as j:
            f.set(top, greatest(top, alpha[j]))
        s = f.let("s", 0.0)
        with f.loop("j", 0, k) as j:
            f.add(s, exp(alpha[j] - top))
        f.set(total, top + log(s))

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        count = 3 if size == "small" else states
        matrix = rng.dirichlet(np.full(count, 2.0), count)
        return {
            "transition": matrix if scaled else np.log(matrix),
            "mean": rng.standard_normal(count),
            "spread": rng.uniform(0.5, 1.5, count),
            "series": rng.standard_normal(steps[size]),
        }

    active = d.one_of(["transition", "mean", "spread"], ["transition"], ["mean", "spread", "series"])
    return Drawn(
        f"hidden Markov model, {states} states, {'scaled' if scaled else 'logarithms'}",
        [f.function(total)],
        make,
        active,
    )


def _log_sum_exp(f: Writer, alpha: Var, transition: Var, k: Var, j: Var) -> None:
    """The largest exponent in ``top``, and in ``s`` the sum of the exponentials over that."""
    top = f.let("top", alpha[0] + transition[0, j])
    with f.loop("i", 1, k) as i:
        f.set(top, greatest(top, alpha[i] + transition[i, j]))
    s = f.let("s", 0.0)
    with f.loop("i", 0, k) as i:
        f.add(s, exp(alpha[i] + transition[i, j] - top))


def _volatility(d: Draw) -> Drawn:
    """The likelihood of returns whose variance depends on those before."""
    steps, kind = d.lengths(8, 5000, 100000), d.one_of("garch", "egarch", "gjr", "smoothing", "threshold")
    stores, student, freedom = d.chance(0.4), d.chance(0.4), d.number(4.0, 9.0)
    f = Writer("loss")
    parameters, returns = f.parameter("parameters", 1), f.parameter("returns", 1)
    [count] = f.sizes(returns, "n")
    a, b, c, e = (f.let(name, parameters[number]) for number, name in enumerate(("omega", "alpha", "beta", "gamma")))
    h = f.let("h", a if kind != "egarch" else 0.0 * a)
    path = f.let("path", New((count,), is_zero=False)) if stores else None
    total = f.let("total", 0.0)
    with f.loop("t", 0, count) as t:
        r = f.let("r", returns[t])
        variance: Expr = f.let("variance", exp(h)) if kind == "egarch" else h
        if path is not None:
            f.set(path[t], variance)
        if student:
            f.add(total, 0.5 * log(variance) + 0.5 * (freedom + 1.0) * log(1.0 + r * r / (freedom * variance)))
        else:
            f.add(total, 0.5 * (log(variance) + r * r / variance))
        updates = {
            "garch": a + b * r * r + c * h,
            "egarch": a + c * h + b * (absolute(r) * exp(-0.5 * h) - 0.8) + e * r * exp(-0.5 * h),
            "gjr": a + (b + Select(r < 0.0, e, Num(0.0))) * r * r + c * h,
            "smoothing": a + c * h + (0.9 - c) * least(r * r, 4.0),
            "threshold": a + b * square(greatest(r - e, 0.0)) + e * square(greatest(-r, 0.0)) + c * h,
        }
        f.set(h, updates[kind])
    if path is not None:
        weight = d.number(0.01, 0.1)
        with f.loop("t", 1, count) as t:
            f.add(total, weight * d.one_of(square(path[t] - path[t - 1]), log(path[t] / path[t - 1]) * path[t]))

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        values = rng.uniform(0.9, 1.1, 4) * np.array([0.1, 0.08, 0.8, 0.05])
        return {"parameters": values, "returns": rng.standard_normal(steps[size])}

    active = ["parameters"] if d.chance(0.6) else ["parameters", "returns"]
    return Drawn(f"volatility ({kind})", [f.function(total)], make, active)


def _softmax(d: Draw) -> Drawn:
    """Softmax of rows: in two passes, or with a running maximum that scales what was summed before."""
    rows, width = d.lengths(4, 1000, 5000), d.integer(4, 100)
    online, kind = d.chance(0.5), d.one_of("cross entropy", "attention", "free energy")
    f = Writer("loss")
    scores, values = f.parameter("scores", 2), f.parameter("values", 2)
    n, m = f.sizes(scores, "n", "m")
    total = f.let("total", 0.0)
    with f.loop("i", 0, n) as i:
        top = f.let("top", scores[i, 0])
        s, weighted = f.let("s", 1.0 if online else 0.0), f.let("weighted", values[i, 0] if online else 0.0)
        if not online:
            with f.loop("j", 1, m) as j:
                f.set(top, greatest(top, scores[i, j]))
        with f.loop("j", 1 if online else 0, m) as j:
            if online:
                higher = f.let("higher", greatest(top, scores[i, j]))
                scale = f.let("scale", exp(top - higher))
                share = f.let("share", exp(scores[i, j] - higher))
                f.set(s, s * scale + share)
                f.set(weighted, weighted * scale + share * values[i, j])
                f.set(top, higher)
            else:
                share = f.let("share", exp(scores[i, j] - top))
                f.add(s, share)
                f.add(weighted, share * values[i, j])
        f.add(
            total,
            {
                "cross entropy": top + log(s) - scores[i, 0],
                "attention": square(weighted / s),
                "free energy": (top + log(s)) * weighted / s,
            }[kind],
        )

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        shape = rows[size], 4 if size == "small" else width
        return {"scores": rng.standard_normal(shape), "values": rng.standard_normal(shape)}

    active = ["scores"] if kind == "cross entropy" or d.chance(0.5) else ["scores", "values"]
    return Drawn(f"softmax, {kind}, {'running' if online else 'two passes'}", [f.function(total)], make, active)


def _alignment(d: Draw) -> Drawn:
    """Alignment of two series: each cell from three before it, by a minimum that is soft or hard."""
    side, soft = d.lengths(5, 150, 700), d.chance(0.6)
    keeps_all, kind, costs = d.chance(0.6), d.one_of("warping", "gaps"), d.one_of("square", "size", "bell")
    f = Writer("loss")
    x, y, parameters = f.parameter("x", 1), f.parameter("y", 1), f.parameter("parameters", 1)
    [n], [m] = f.sizes(x, "n"), f.sizes(y, "m")
    gamma, gap = f.let("gamma", parameters[0]), f.let("gap", parameters[1])
    edge = 0.0 if kind == "warping" else gap
    table, before, row = Var("table", 2), Var("before", 1), Var("row", 1)
    if keeps_all:
        f.set(table, New((n + 1, m + 1)))
        with f.loop("i", 1, n + 1) as i:
            f.set(table[i, 0], table[i - 1, 0] + edge + 0.3)
        with f.loop("j", 1, m + 1) as j:
            f.set(table[0, j], table[0, j - 1] + edge + 0.3)
    else:
        f.set(before, New((m + 1,)))
        f.set(row, New((m + 1,)))
        with f.loop("j", 1, m + 1) as j:
            f.set(before[j], before[j - 1] + edge + 0.3)
    with f.loop("i", 1, n + 1) as i:
        if not keeps_all:
            f.set(row[0], before[0] + edge + 0.3)
        with f.loop("j", 1, m + 1) as j:
            up, left, corner = (
                (table[i - 1, j], table[i, j - 1], table[i - 1, j - 1])
                if keeps_all
                else (before[j], row[j - 1], before[j - 1])
            )
            gap_of = x[i - 1] - y[j - 1]
            cost = f.let(
                "cost", {"square": square(gap_of), "size": absolute(gap_of), "bell": 1.0 - exp(-square(gap_of))}[costs]
            )
            if kind == "gaps":
                up, left, corner = up + gap, left + gap, corner + cost
            value = _soft_minimum(f, [up, left, corner], gamma) if soft else least(least(up, left), corner)
            f.set(table[i, j] if keeps_all else row[j], value if kind == "gaps" else cost + value)
        if not keeps_all:
            f.rotate(before, row)
    last = table[n, m] if keeps_all else before[m]

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        return {
            "x": np.cumsum(rng.standard_normal(side[size])) * 0.3,
            "y": np.cumsum(rng.standard_normal(side[size] + 2)) * 0.3,
            "parameters": np.array([0.7, 0.4]) * rng.uniform(0.9, 1.1, 2),
        }

    active = d.one_of(["x", "y"], ["x"], ["x", "y", "parameters"] if soft else ["x", "y"])
    title = f"alignment, {kind}, {'soft' if soft else 'hard'} minimum, {'table' if keeps_all else 'two rows'}"
    return Drawn(title, [f.function(last)], make, active)


def _soft_minimum(f: Writer, terms: list[Expr], gamma: Var) -> Expr:
    names = [f.let(name, -term / gamma) for name, term in zip(("a", "b", "c"), terms, strict=True)]
    top = f.let("top", greatest(greatest(names[0], names[1]), names[2]))
    return -gamma * (top + log(total_of([exp(name - top) for name in names])))


def _gates(d: Draw) -> Drawn:
    """Units with gates, or leaky ones, that are driven by a series."""
    units = d.integer(1, 16)
    steps = d.lengths(5, 50000 // (units * (units + 4)), 500000 // (units * (units + 4)))
    kind, coupled, reads_all = d.one_of("leaky", "gated", "saturating"), d.chance(0.6), d.chance(0.5)
    keep, leak = d.number(0.6, 0.9), d.number(0.05, 0.2)
    f = Writer("loss")
    weights, inputs, bias = f.parameter("weights", 2), f.parameter("inputs", 2), f.parameter("bias", 1)
    series, target = f.parameter("series", 1), f.parameter("target", 1)
    [count], [k] = f.sizes(series, "n"), f.sizes(bias, "units")
    h, following = f.let("h", New((k,))), f.let("following", New((k,)))
    total = f.let("total", 0.0)
    with f.loop("t", 0, count) as t:
        with f.loop("j", 0, k) as j:
            s = f.let("s", bias[j] + inputs[0, j] * series[t])
            if coupled:
                with f.loop("i", 0, k) as i:
                    f.add(s, weights[j, i] * h[i])
            else:
                f.add(s, weights[j, j] * h[j])
            gate = 1.0 / (1.0 + exp(-(inputs[1, j] * series[t] + 0.5 * h[j])))
            if kind == "gated":
                z = f.let("z", gate)
                f.set(following[j], z * h[j] + (1.0 - z) * tanh(s))
            elif kind == "leaky":
                f.set(following[j], keep * h[j] + (1.0 - keep) * greatest(s, leak * s))
            else:
                f.set(following[j], least(greatest(s, -1.0), 1.0) * keep + leak * h[j])
        f.rotate(h, following)
        f.add(total, square(h[0] - target[t]))
        if reads_all:
            with f.loop("j", 0, k) as j:
                f.add(total, 0.01 * h[j] * h[j])

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        count = min(units, 3) if size == "small" else units
        return {
            "weights": 0.6 * rng.standard_normal((count, count)) / np.sqrt(count),
            "inputs": rng.standard_normal((2, count)),
            "bias": 0.3 * rng.standard_normal(count),
            "series": rng.standard_normal(steps[size]),
            "target": rng.uniform(-0.5, 0.5, steps[size]),
        }

    active = d.one_of(["weights", "inputs", "bias"], ["weights", "bias"], ["weights", "inputs", "bias", "series"])
    return Drawn(f"{units} {kind} units, {'coupled' if coupled else 'alone'}", [f.function(total)], make, active)


def _tree(d: Draw) -> Drawn:
    """Options on a recombining tree, from the end to the start, in place."""
    depth, options = d.lengths(5, 200, 700), lengths(2, d.integer(1, 8))
    american, put = d.chance(0.6), d.chance(0.5)
    f = Writer("loss")
    spots, market = f.parameter("spots", 1), f.parameter("market", 1)
    steps = f.parameter("steps", 0, "long")
    [count] = f.sizes(spots, "n")
    rate, volatility, strike = (f.let(name, market[n]) for n, name in enumerate(("rate", "volatility", "strike")))
    step = f.let("dt", 1.0 / steps)
    up = f.let("up", exp(volatility * market[3]))
    down = f.let("down", 1.0 / up)
    share = f.let("share", (exp(rate * step) - down) / (up - down))
    discount = f.let("discount", exp(-rate * step))
    values = f.let("values", New((steps + 1,)))
    total = f.let("total", 0.0)
    with f.loop("e", 0, count) as e:
        price = f.let("price", spots[e])
        with f.loop("i", 0, steps):
            f.set(price, down, "*")
        with f.loop("j", 0, steps + 1) as j:
            f.set(values[j], greatest(strike - price if put else price - strike, 0.0))
            f.set(price, up * up, "*")
        with f.loop("i", steps - 1, -1, -1) as i:
            if american:
                f.set(price, spots[e])
                with f.loop("k", 0, i):
                    f.set(price, down, "*")
            with f.loop("j", 0, i + 1) as j:
                held = f.let("held", discount * (share * values[j + 1] + (1.0 - share) * values[j]))
                if american:
                    f.set(values[j], greatest(held, strike - price if put else price - strike))
                    f.set(price, up * up, "*")
                else:
                    f.set(values[j], held)
        f.add(total, values[0])

    def make(size: Size, rng: np.random.Generator) -> Inputs:
        count = depth[size]
        return {
            "spots": rng.uniform(0.8, 1.2, options[size]),
            "market": np.array([0.031, 0.23, 1.01, np.sqrt(1.0 / count)]),
            "steps": count,
        }

    active = d.one_of(["spots", "market"], ["market"])
    return Drawn(
        f"{'American' if american else 'European'} {'put' if put else 'call'} on a tree",
        [f.function(total)],
        make,
        active,
    )
