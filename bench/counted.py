"""``python -m bench.counted``: figures that do not depend on the machine, compared with those of ``counted.json``.

For some cases on their smallest inputs: instructions of LLVM IR of the value and gradient, optimised for a processor
without extensions, and bytes of the tape; also, how many of irad's modules a process has loaded after its first
gradient. They depend on the versions of Python, Numba and LLVM, so the file says which it was written with.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
import llvmlite.binding
import numba

from bench.cases import BY_NAME
from bench.variants import irad_gradient

FILE: Final = Path(__file__).with_name("counted.json")
CASES: Final = ("garch", "ode", "thomas", "cholesky-left", "heat", "cnn")
TOLERANCES: Final = {"instructions": 0.03, "modules": 0.03, "tape_bytes": 0.0}  # by the first word of a name
UPDATE: Final = "where this is meant: python -m bench.counted --update"
_PROCESSOR: Final = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_OPT": "3"}
_INSTRUCTION: Final = re.compile(r"^  (?!;)\S", re.MULTILINE)


def versions() -> dict[str, str]:
    """Versions on which the figures depend."""
    return {
        "machine": platform.machine(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numba": ".".join(numba.__version__.split(".")[:2]),
        "llvm": ".".join(map(str, llvmlite.binding.llvm_version_info)),
    }


def counted() -> dict[str, int]:
    """The figures by name, from a process of its own."""
    command = [sys.executable, "-m", "bench.counted", "--count"]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | _PROCESSOR, cwd=FILE.parents[1]
    )
    found: dict[str, int] = json.loads(done.stdout)
    return found


def _count() -> dict[str, int]:
    import irad  # here, because modules are counted

    found = {}
    for name in CASES:
        case = BY_NAME[name]
        gradient: Any = irad_gradient(case)
        gradient(*case.make("small"))
        if not found:
            found["modules"] = sum(each.partition(".")[0] == "irad" for each in sys.modules)
        texts = gradient.inspect_llvm().values()
        found[f"instructions {name}"] = sum(len(_INSTRUCTION.findall(text)) for text in texts)
    for name in CASES:
        case = BY_NAME[name]
        found[f"tape_bytes {name}"] = irad.tape_report(case.primal, *case.make("small"), argnums=case.argnums).total
    return found


def changes(old: Mapping[str, int], new: Mapping[str, int]) -> list[str]:
    """Figures that grew by more than their tolerance, and instructions that became fewer: vectors may be lost."""
    found = []
    for name in sorted(old.keys() | new.keys()):
        before, now = old.get(name, 0), new.get(name, 0)
        kind = name.partition(" ")[0]
        allowed = TOLERANCES[kind] * before
        if now - before > allowed or (kind == "instructions" and before - now > allowed):
            found.append(f"{name}: {now} in place of {before}")
    return found


@click.command()
@click.option("--update", is_flag=True, help="Write the file again.")
@click.option("--count", is_flag=True, hidden=True, help="Print the figures of this process.")
def main(update: bool, count: bool) -> None:
    """Compare figures that do not depend on the machine with those of bench/counted.json."""
    if count:
        click.echo(json.dumps(_count()))
        return
    figures = counted()
    if update:
        FILE.write_text(json.dumps({"versions": versions(), "figures": figures}, indent=2) + "\n", "utf-8")
        return
    for name, value in figures.items():
        click.echo(f"{name:28} {value:>8,}")
    recorded = json.loads(FILE.read_text("utf-8"))
    if recorded["versions"] != versions():
        sys.exit(f"{FILE.name} was written with {recorded['versions']}; here are {versions()}")
    if changed := changes(recorded["figures"], figures):
        sys.exit("\n".join([UPDATE, *changed]))


if __name__ == "__main__":
    main()
