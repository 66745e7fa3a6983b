"""Milliseconds to parse and to print 10,000 instructions of a real Numba module.

A compiled function's optimised module is taken, its largest functions are repeated under other names until there are
10,000 instructions, and the best of several runs is shown, with cyclic garbage collection paused.

    python bench/ir_speed.py [runs]
"""

from __future__ import annotations

import gc
import re
import sys
import time
from collections.abc import Callable

import llvmlite.binding as llvm
import numba
import numpy as np
from numpy.typing import NDArray

from irad.ir.module import Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module

WANTED = 10_000


def numba_module() -> str:
    """The optimised module of a function with loops, array expressions and library calls, in LLVM's own layout."""

    def work(a: NDArray[np.float64], x: NDArray[np.float64]) -> float:
        y = np.dot(a, x)
        t = np.zeros(x.shape[0])
        for i in range(x.shape[0]):
            t[i] = np.sin(y[i]) * x[i] ** 3
        return float((t * y + x).sum())

    compiled = numba.njit(work)
    compiled(np.eye(3), np.arange(3.0))
    return str(llvm.parse_assembly(compiled.inspect_llvm(compiled.signatures[0])))


def replicate(text: str, wanted: int) -> str:
    """The module with its definitions repeated until it has that many instructions (a last part may be over)."""
    definitions = re.split(r"(?m)^(?=define )", text)[1:]
    bodies = [part[: part.index("\n}") + 3] for part in definitions]
    names = [re.search(r"@([\w.$]+)\(", body) for body in bodies]
    count = count_instructions(parse_module(text))
    parts = [text]
    copy = 0
    while count < wanted:
        copy += 1
        for body, name in zip(bodies, names, strict=True):
            if name is not None and count < wanted:
                parts.append(body.replace(f"{name[0]}", f"@{name[1]}.copy{copy}(", 1))
                count += len(re.findall(r"(?m)^  [^ \]]", body))
    return "\n".join(parts)


def count_instructions(module: Module) -> int:
    """Instructions of all functions."""
    return sum(len(block.instructions) for function in module.functions.values() for block in function.blocks)


def best(run: Callable[[], object], runs: int) -> float:
    """Smallest CPU time of several runs, in milliseconds."""
    times: list[float] = []
    for _ in range(runs):
        gc.collect()
        gc.disable()
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
        gc.enable()
    return 1e3 * min(times)


def main() -> None:
    """Prints the figures, scaled to exactly 10,000 instructions."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    text = replicate(numba_module(), WANTED)
    module = parse_module(text)
    count = count_instructions(module)
    scale = WANTED / count
    parse = best(lambda: parse_module(text), runs) * scale
    printing = best(lambda: print_module(module), runs) * scale
    print(f"{count} instructions, {len(text)} characters")
    print(f"parse {parse:.1f} ms, print {printing:.1f} ms, both {parse + printing:.1f} ms per {WANTED} instructions")


if __name__ == "__main__":
    main()
