"""Clang, irad and the linker in a row: what the tests of raw IR share."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from irad.frontend.numba.library import CPU
from irad.options import Options
from irad.raw.differentiate import Differentiated, differentiate
from irad.raw.files import Form, encode, parse

LEVELS = (0, 1, 2, 3)
CLANG = os.environ.get("IRAD_TEST_CLANG", "clang")  # another release: clang-22
CLANGXX = CLANG.replace("clang", "clang++", 1)


def programs_in(folder: str) -> list[Path]:
    """The programs in C and C++ in a folder beside this file."""
    return sorted(p for p in (Path(__file__).parent / folder).iterdir() if p.suffix in (".c", ".cpp"))


def in_turn(programs: list[Path]) -> tuple[list[tuple[Path, int]], list[tuple[Path, int]]]:
    """Each program with a level of optimisation, levels in turn; and with the other levels."""
    chosen = [(path, LEVELS[number % len(LEVELS)]) for number, path in enumerate(programs)]
    return chosen, [(path, level) for path in programs for level in LEVELS if (path, level) not in chosen]


def name_of(value: object) -> str:
    """Of a program or a level, for the names of tests."""
    return value.name if isinstance(value, Path) else f"O{value}"


PROGRAMS = programs_in("programs")

needs_clang = pytest.mark.skipif(
    shutil.which(CLANG) is None or shutil.which(CLANGXX) is None, reason=f"{CLANG} is not installed"
)


def bitcode_of(source: Path, level: int, folder: Path, *flags: str) -> Path:
    """A C or C++ file as bitcode, optimised at a level, with the flags that its line `// flags: …` adds."""
    compiler = CLANG if source.suffix == ".c" else CLANGXX
    output = folder / f"{source.stem}.bc"
    own = own_flags(source)
    if "-fopenmp" in own and not has_openmp():
        pytest.skip("OpenMP is not installed for this clang")
    command = [compiler, f"-O{level}", "-emit-llvm", "-c", str(source), "-o", str(output), *flags, *own]
    subprocess.run(command, check=True, capture_output=True)
    return output


def own_flags(source: Path) -> list[str]:
    """The flags that a program asks for."""
    found = re.search(r"^// flags: (.*)$", source.read_text(), re.MULTILINE)
    return found[1].split() if found else []


@cache
def has_openmp() -> bool:
    """Whether programs with OpenMP can be compiled and linked: its header and library are a package of their own."""
    if shutil.which(CLANG) is None:
        return False
    command = [CLANG, "-fopenmp", "-x", "c", "-", "-o", os.devnull]
    source = "#include <omp.h>\nint main(void) { return omp_get_num_threads() - 1; }\n"
    return subprocess.run(command, input=source, text=True, capture_output=True, check=False).returncode == 0


def text_of(bitcode: Path) -> str:
    """Bitcode as the text that LLVM prints."""
    return str(parse(bitcode.read_bytes(), bitcode.name))


def differentiated(bitcode: Path, plan: str = "default") -> Differentiated:
    """The module with its derivatives, checked after every pass."""
    options = Options(plan="save_all" if plan == "save_all" else "default", verify=True)
    return differentiate(text_of(bitcode), CPU, options)


def run(made: Differentiated, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Links a differentiated program and runs it."""
    code, program = folder / "program.o", folder / "program"
    code.write_bytes(encode(made.module, Form.OBJECT))
    subprocess.run(
        ["clang++", str(code), "-o", str(program), "-lm", "-pthread", *flags], check=True, capture_output=True
    )
    return subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
