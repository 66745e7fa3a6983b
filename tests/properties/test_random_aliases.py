"""Random assignments to arrays of which only the run knows which are the same: the default plan agrees with the oracle.

``IRAD_RANDOM_ALIASES=100`` tests as many, ``IRAD_RANDOM_ALIASES=50:100`` those seeds only.
"""

from __future__ import annotations

import linecache
import os
from random import Random

import numpy as np
import pytest
from numba import njit

import irad

FIRST, _, END = f"0:{os.environ.get('IRAD_RANDOM_ALIASES', '6')}".rpartition(":")
ARRAYS = ("a", "b", "d", "p", "q")
HEAD = """def program(a, c, which, n, k):
    b = np.zeros(n)
    d = np.ones(n)
    q = a if which == 1 else (b if which == 2 else d)
"""
OTHERS = ("    p = d if which == 1 else (a if which == 2 else b)\n", "    p = a[1:] if which == 0 else b\n")
END_OF_ALL = """
    s = 0.0
    for j in range(4):
        s += (j + 1.0) * (a[j] + 0.3 * b[j] + 0.7 * d[j])
    return s
"""


def source_of(draw: Random) -> str:
    """A program of four to nine assignments, in a loop or not."""
    in_loop = draw.random() < 0.6
    subscripts = ("0", "1", "2", "k", "i", "i + 1") if in_loop else ("0", "1", "2", "k")
    numbers = ["c"]

    def element() -> str:
        return f"{draw.choice(ARRAYS)}[{draw.choice(subscripts)}]"

    def number() -> str:
        return draw.choice(numbers)

    lines = []
    for count in range(draw.randint(4, 9)):
        kind = draw.random()
        if kind < 0.35:
            lines.append(f"x{count} = {element()}")
            numbers.append(f"x{count}")
        elif kind < 0.5:
            lines.append(f"{element()} += {number()} * {draw.choice((*numbers, '0.5'))}")
        else:
            made = (
                f"{number()} * {number()}",
                f"{element()} * {number()} - {element()}",
                f"0.5 * {element()} + {number()}",
                f"np.sin({element()}) + {element()}",
            )
            lines.append(f"{element()} = {draw.choice(made)}")
    indent = "        " if in_loop else "    "
    loop = "    for i in range(2):\n" if in_loop else ""
    return HEAD + draw.choice(OTHERS) + loop + "\n".join(indent + line for line in lines) + END_OF_ALL


@pytest.mark.parametrize("seed", range(int(FIRST.rpartition(":")[2]), int(END)))
def test_plans_agree(seed: int):
    source, name = source_of(Random(seed)), f"<assignments {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names = {"np": np}
    exec(compile(source, name, "exec"), names)
    program = njit(names["program"])
    default, oracle = (
        irad.grad(program, argnums=(0, 1), options=irad.Options(plan=plan)) for plan in ("default", "save_all")
    )
    numbers = np.random.default_rng(seed).uniform(0.5, 1.5, 6)
    for which in range(3):
        for k in range(2):
            found, wanted = (each(numbers.copy(), 0.7, which, 6, k) for each in (default, oracle))
            np.testing.assert_allclose(found[0], wanted[0], rtol=1e-9, atol=1e-11, err_msg=source)
            np.testing.assert_allclose(found[1], wanted[1], rtol=1e-9, atol=1e-11, err_msg=source)
