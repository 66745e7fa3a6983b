"""Clang, irad and the linker in a row: what the tests of raw IR share."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from irad.frontend.raw.differentiate import Differentiated, differentiate
from irad.frontend.raw.read import parse
from irad.frontend.raw.write import Form, encode
from irad.options import Options

PROGRAMS = sorted(p for p in (Path(__file__).parent / "programs").iterdir() if p.suffix in (".c", ".cpp"))
LEVELS = (0, 1, 2, 3)

needs_clang = pytest.mark.skipif(
    shutil.which("clang") is None or shutil.which("clang++") is None, reason="clang is not installed"
)


def bitcode_of(source: Path, level: int, folder: Path, *flags: str) -> Path:
    """A C or C++ file as bitcode, optimised at a level, with the flags that its line `// flags: …` adds."""
    compiler = "clang" if source.suffix == ".c" else "clang++"
    output = folder / f"{source.stem}.bc"
    command = [compiler, f"-O{level}", "-emit-llvm", "-c", str(source), "-o", str(output), *flags, *own_flags(source)]
    subprocess.run(command, check=True, capture_output=True)
    return output


def own_flags(source: Path) -> list[str]:
    """The flags that a program asks for."""
    found = re.search(r"^// flags: (.*)$", source.read_text(), re.MULTILINE)
    return found[1].split() if found else []


def text_of(bitcode: Path) -> str:
    """Bitcode as the text that LLVM prints."""
    return str(parse(bitcode.read_bytes(), bitcode.name))


def differentiated(bitcode: Path, plan: str = "default") -> Differentiated:
    """The module with its derivatives, checked after every pass."""
    return differentiate(text_of(bitcode), Options(plan="save_all" if plan == "save_all" else "default", verify=True))


def run(made: Differentiated, folder: Path) -> subprocess.CompletedProcess[str]:
    """Links a differentiated program and runs it."""
    code, program = folder / "program.o", folder / "program"
    code.write_bytes(encode(made.module, Form.OBJECT))
    subprocess.run(["clang++", str(code), "-o", str(program), "-lm", "-pthread"], check=True, capture_output=True)
    return subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
