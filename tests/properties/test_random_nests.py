"""Random loop nests that change an array in place: the default plan agrees with the oracle, which saves everything.

``IRAD_RANDOM_NESTS=100`` tests as many, ``IRAD_RANDOM_NESTS=50:100`` those seeds only.
"""

from __future__ import annotations

import linecache
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from tests.passes.subscripts.nests import Access, Branch, Loop, Node, Sum, random_nest

FIRST, _, END = f"0:{os.environ.get('IRAD_RANDOM_NESTS', '2')}".rpartition(":")


def source_of(body: list[Node]) -> str:
    """A program as Python: accesses of one axis go through a flat view of the same memory."""
    lines = ["def program(x, flags, n):", " a = x.copy()", " flat, total, at = a.ravel(), 0.5, 0"]
    _write(body, " ", lines)
    return "\n".join([*lines, " return total + np.sum(a * a)"])


def _write(body: list[Node], indent: str, lines: list[str]) -> None:
    for node in body:
        match node:
            case Access(is_store=is_store):
                place = _place(node)
                changed = f"{place} = 0.5 * {place} + math.sin(total + {place})"
                lines.append(indent + (changed if is_store else f"total = 0.9 * total + {place} * {place}"))
            case Branch(body=then):
                lines += [f"{indent}at = (at + 1) % flags.size", f"{indent}if flags[at]:"]
                _write(then, indent + " ", lines)
            case Loop():
                _loop(node, indent, lines)


def _loop(loop: Loop, indent: str, lines: list[str]) -> None:
    best = loop.best or "_"
    lines.append(f"{indent}{best} = {_text(loop.start)}")
    lines.append(f"{indent}for {loop.name} in range({_text(loop.start)}, {_text(loop.bound)}, {loop.step}):")
    inside = indent + " "
    _write(loop.body, inside, lines)
    lines.append(f"{inside}at = (at + 1) % flags.size")
    if loop.breaks:
        lines += [f"{inside}if flags[at] and flags[at - 1]:", f"{inside} break"]
    if loop.best is not None:
        lines += [f"{inside}if flags[at]:", f"{inside} {loop.best} = {loop.name}"]


def _place(access: Access) -> str:
    inner = ", ".join(map(_text, access.subscripts[-2:]))
    return f"a[{inner}]" if len(access.subscripts) > 1 else f"flat[{inner}]"


def _text(number: Sum) -> str:
    return " + ".join([str(number.constant), *(f"{factor} * {name}" for name, factor in number.factors.items())])


def compiled(seed: int) -> Callable[..., Any]:
    """The program of a seed."""
    text, file = source_of(random_nest(seed)), f"<nest {seed}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    scope: dict[str, Any] = {"np": np, "math": math}
    exec(compile(text, file, "exec"), scope)
    return njit(scope["program"])


@pytest.mark.parametrize("seed", range(int(FIRST.rpartition(":")[-1]), int(END)))
def test_the_plans_agree(seed):
    program, oracle = compiled(seed), irad.Options(plan="save_all")
    rng = np.random.default_rng(seed)
    x, flags = rng.uniform(0.1, 1.0, (128, 64)), rng.integers(0, 2, 31)
    for n in (4, 2, 0):
        found, saved = irad.grad(program, 0)(x, flags, n), irad.grad(program, 0, options=oracle)(x, flags, n)
        np.testing.assert_allclose(found, saved, rtol=1e-11, atol=1e-11)
