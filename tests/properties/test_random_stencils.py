"""Random stencils over fields that may overlap, in place or not: the default plan agrees with the oracle.

``IRAD_RANDOM_STENCILS=100`` tests as many, ``IRAD_RANDOM_STENCILS=50:100`` those seeds only.
"""

from __future__ import annotations

import linecache
import os
from random import Random

import numpy as np
import pytest
from numba import njit

import irad

FIRST, _, END = f"0:{os.environ.get('IRAD_RANDOM_STENCILS', '4')}".rpartition(":")
HEAD = "def program(a, b, c, which, n, m, steps):\n    p = a if which == 0 else b\n"
VIEWS = (
    "    q = a[1:, :] if which == 1 else (b if which == 0 else c)\n",
    "    q = b[:, ::-1] if which == 1 else c[:, ::-1]\n",
    "    q = c if which == 2 else b\n",
)
RESULT = """
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += (0.1 * i + 0.3 * j + 1.0) * (a[i, j] + 0.7 * b[i, j] - 0.4 * c[i, j] ** 2)
    return s
"""


def source_of(draw: Random) -> str:
    """One or two nests of loops, in time steps or not, with one to three assignments each."""
    fields, buffers = ["a", "b", "c", "p", "q"], draw.random() < 0.4
    text = HEAD + draw.choice(VIEWS)
    if buffers:
        fields += ["old", "cur"]
        text += "    old, cur = a, b\n"
    steps = draw.random() < 0.5
    indent = "        " if steps else "    "
    text += "    for t in range(steps):\n" if steps else ""
    for _ in range(draw.randint(1, 2)):
        first = draw.choice((1, 2))
        rows = draw.choices((f"{first}, n - 2", f"n - 3, {first} - 1, -1"), (3, 1))[0]
        text += f"{indent}for i in range({rows}):\n"
        text += f"{indent}    for j in range(1, {draw.choices(('m - 2', 'min(i + 1, m - 2)'), (4, 1))[0]}):\n"
        for _ in range(draw.randint(1, 3)):
            text += f"{indent}        {_assignment(draw, fields)}\n"
    if buffers and steps:
        text += f"{indent}old, cur = cur, old\n"
    return text + RESULT


def _assignment(draw: Random, fields: list[str]) -> str:
    def element() -> str:
        if draw.random() < 0.8:
            return f"{draw.choice(fields)}[i + {draw.randint(-1, 1)}, j + {draw.randint(-1, 1)}]"
        return f"{draw.choice(fields)}[{draw.choice(('0', 'i'))}, {draw.choice(('j', '1'))}]"

    target = element()
    return draw.choice(
        (
            f"{target} += 0.1 * {element()} * {element()}",
            f"{target} = 0.5 * {element()} - 0.3 * {target} + 0.05 * {element()} * {element()}",
            f"{target} = np.sin({element()}) + 0.2 * {element()}",
            f"{target} = 2.0 * {target} - {target} + 0.1 * ({element()} + {element()} - 2.0 * {element()})",
        )
    )


def fields_of(seed: int, n: int, m: int, *, overlap: bool) -> list[np.ndarray]:
    """Three fields, next to each other, or each one row after the one before in the same memory."""
    memory = np.random.default_rng(seed).uniform(0.5, 1.5, (3 * (n + 1), m))
    starts = (0, 1, n + 1) if overlap else (0, n + 1, 2 * (n + 1))
    return [memory[start : start + n + 1] for start in starts]


@pytest.mark.parametrize("seed", range(int(FIRST.rpartition(":")[2]), int(END)))
def test_plans_agree(seed: int):
    draw = Random(seed)
    source, name = source_of(draw), f"<stencil {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names = {"np": np}
    exec(compile(source, name, "exec"), names)
    program = njit(error_model=draw.choice(("numpy", "python")))(names["program"])
    default, oracle = (
        irad.grad(program, argnums=(0, 1, 2), options=irad.Options(plan=plan)) for plan in ("default", "save_all")
    )
    for n, m in ((6, 5), (9, 14), (4, 4)):
        for overlap in (False, True):
            for which in range(3):
                found, wanted = (
                    each(*fields_of(seed, n, m, overlap=overlap), which, n, m, 2) for each in (default, oracle)
                )
                for one, other in zip(found, wanted, strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9, err_msg=source)
