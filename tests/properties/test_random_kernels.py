"""Random CUDA kernels without races: reverse mode against differences and forward mode, on the executor and as PTX.

IRAD_RANDOM_KERNELS=200 tests more of them.
"""

from __future__ import annotations

import math
import os
import random
from typing import Any

import numpy as np
import pytest
from numba import cuda, float64

from irad.backend.executor.scheduler import IN_ORDER, Schedule
from irad.frontend.generated import function_from
from irad.options import Options
from irad.passes.mode import FORWARD_MODE
from tests.cuda.case import Case
from tests.cuda.conftest import as_ptx  # noqa: F401 - a fixture of every test here
from tests.kernel.launches import launch_of

COUNT = int(os.environ.get("IRAD_RANDOM_KERNELS", "12"))
THREADS, BLOCKS = 32, 2


class Writer:
    """Writes a kernel: numbers stay of order one, and barriers stand wherever threads exchange them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 1

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def atom(self) -> str:
        r = self.random
        return r.choice(
            [
                *("v", "w", "v", "w", "x[i]"),
                *(f"c[{r.randrange(3)}]", f"a[{r.randrange(3)}]", f"x[(i + {r.randrange(9)}) % x.size]"),
                *("y[i]", f"{r.uniform(-1, 1):.3f}"),
            ]
        )

    def expression(self) -> str:
        a, b = self.atom(), self.atom()
        return self.random.choice(
            [
                *(f"math.sin({a} + {b})", f"math.tanh({a} * {b})", f"{a} / (2.0 + {b} * {b})"),
                *(f"math.exp(-{a} * {a}) * {b}", f"math.sqrt(1.0 + {a} * {a}) - {b} * 0.5"),
                *(f"({a} if {b} > 0.1 else 0.7 * {b})", f"0.5 * {a} - 0.3 * {b}"),
            ]
        )

    def number(self) -> str:
        return self.random.choice("vw")

    def private(self) -> None:
        """What a thread does alone."""
        r = self.random
        match r.randrange(6):
            case 0 | 1:
                self.line(f"{self.number()} = {self.expression()}")
            case 2:
                self.line(f"a[{r.randrange(3)}] = {self.expression()}")
            case 3:
                self.line(f"y[i] {r.choice(['=', '+=', '*='])} {self.expression()}")
            case 4:
                self.line(f"cuda.atomic.{r.choice(['add', 'sub'])}(z, t % {r.randrange(1, 4)}, {self.expression()})")
            case 5:
                kind, mask = r.choice(["down", "up", "xor"]), "0xFFFFFFFF"
                self.line(f"{self.number()} = 0.7 * v + 0.2 * w")
                if self.is_uniform:
                    self.line(f"{self.number()} = cuda.shfl_{kind}_sync({mask}, {self.number()}, {r.randrange(1, 17)})")

    is_uniform = True

    def exchange(self) -> None:
        """Numbers through shared memory."""
        r = self.random
        match r.randrange(3):
            case 0:
                self.line(f"s[t] = {self.expression()}")
            case 1:
                self.line("s[t] = 0.1 * v")
                self.line("cuda.syncthreads()")
                self.line(f"cuda.atomic.add(s, (t * {r.randrange(2, 6)}) % 32, 0.1 * {self.number()})")
            case 2:
                self.line(f"s[31 - t] = {self.expression()}")
        self.line("cuda.syncthreads()")
        self.line(f"{self.number()} = math.sin(s[(t + {r.randrange(32)}) % 32]) + 0.5 * s[{r.randrange(32)}]")
        self.line("cuda.syncthreads()")

    def statement(self, levels: int) -> None:
        r = self.random
        kind = r.randrange(8) if levels else r.randrange(5)
        if kind < 3:
            self.private()
        elif kind < 5:
            if self.is_uniform:
                self.exchange()
            else:
                self.private()
        elif kind == 5:
            self.block(f"for k{self.depth} in range({r.randrange(4)}):", levels)
        elif kind == 6:
            self.block(f"if {r.choice(['n > 3', 'n < 3', 'cuda.blockIdx.x == 0'])}:", levels)
        else:
            was, self.is_uniform = self.is_uniform, False
            header = r.choice([f"if t < {r.randrange(1, 31)}:", "if v > 0.2:", "if i % 3 == 1:"])
            self.block(header, levels)
            self.is_uniform = was

    def block(self, header: str, levels: int) -> None:
        self.line(header)
        self.depth += 1
        for _ in range(self.random.randrange(1, 4)):
            self.statement(levels - 1)
        self.depth -= 1

    def kernel(self) -> str:
        self.lines = ["def kernel(x, c, y, z, n):"]
        for line in (
            f"s = cuda.shared.array({THREADS}, float64)",
            "a = cuda.local.array(3, float64)",
            "t = cuda.threadIdx.x",
            "i = cuda.grid(1)",
            "v = x[i]",
            "w = c[0]",
            "for k in range(3):",
            "    a[k] = c[k] * v",
        ):
            self.line(line)
        for _ in range(self.random.randrange(4, 9)):
            self.statement(2)
        self.line("y[i] += v + w * a[1]")
        return "\n".join(self.lines) + "\n"


def case_of(seed: int) -> tuple[str, Case]:
    source = Writer(seed).kernel()
    scope = {"cuda": cuda, "math": math, "float64": float64}
    kernel = function_from("kernel", source, f"random kernel {seed}", scope)
    rng = np.random.default_rng(seed)
    x, c = rng.normal(size=THREADS * BLOCKS), rng.normal(size=3)

    def fresh(_: Any) -> tuple[Any, ...]:
        return x.copy(), c.copy(), np.zeros_like(x), np.zeros(3), 5

    return source, Case(kernel, kernel, fresh, BLOCKS, THREADS, (2, 3), (0, 1, 2, 3))


@pytest.mark.parametrize("seed", range(COUNT))
def test_gradients(seed: int):
    source, case = case_of(seed)
    launch = launch_of(case)
    rng = np.random.default_rng(seed + 1)
    fresh = case.fresh()
    tangents = {p: rng.normal(size=fresh[p].shape) for p in case.active}
    seeds = {p: rng.normal(size=fresh[p].shape) * (p in case.outputs) for p in case.active}
    step, ends = 1e-6, []
    for sign in (step, -step):
        arguments = list(case.fresh())
        for p in case.active:
            arguments[p] = arguments[p] + sign * tangents[p]
        launch.run(arguments, races=True)
        ends.append(arguments)
    expected = sum(np.vdot(seeds[p], ends[0][p] - ends[1][p]) / (2 * step) for p in case.outputs)
    carried = {p: tangents[p].copy() for p in case.active}
    launch.run_derivative(launch.derivative(FORWARD_MODE), case.fresh(), carried)
    forward = sum(np.vdot(seeds[p], carried[p]) for p in case.outputs)
    scale = sum(np.sum(np.abs(seeds[p] * carried[p])) for p in case.outputs)
    assert forward == pytest.approx(expected, abs=1e-5 * (1.0 + scale)), source
    for plan, apart, schedule in (("default", True, IN_ORDER), ("save_all", False, Schedule("shuffled", seed))):
        shadows = {p: seeds[p].copy() for p in case.active}
        made = launch.derivative(options=Options(plan=plan), apart=apart)
        launch.run_derivative(made, case.fresh(), shadows, schedule, races=True)
        found = sum(np.vdot(shadows[p], tangents[p]) for p in case.active)
        assert found == pytest.approx(forward, abs=1e-10 * (1.0 + scale)), source
