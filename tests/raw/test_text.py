"""Property: LLVM reads what irad prints of clang's modules as the same modules, at -O0 to -O3.

The programs hold inline assembly, indirectbr, invoke and landing pads, variable arguments, constant expressions,
atomics and vectors; `test_what_the_programs_hold` sees to it that they do.
"""

from __future__ import annotations

from pathlib import Path

import llvmlite.binding as llvm
import pytest

from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.verifier import verify
from tests.raw.test_programs import IN_TURN, OTHERS
from tests.raw.toolchain import LEVELS, PROGRAMS, bitcode_of, name_of, needs_clang, text_of

pytestmark = needs_clang

_CONSTRUCTS = {
    "elsewhere_untouched": ("asm ", "indirectbr", "blockaddress", "atomicrmw", "va_start", ", ...)"),
    "exceptions_elsewhere": ("invoke ", "landingpad", "resume ", "personality", "catch ptr"),
    "vectorised_loop": ("<2 x double>",),
    "virtual_calls": ("getelementptr inbounds (",),
    "function_table": ("constant [3 x ptr]",),
}


@pytest.mark.parametrize(("path", "level"), IN_TURN, ids=name_of)
def test_roundtrip(path: Path, level: int, tmp_path: Path):
    check(path, level, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "level"), OTHERS, ids=name_of)
def test_roundtrip_at_the_other_levels(path: Path, level: int, tmp_path: Path):
    check(path, level, tmp_path)


def check(path: Path, level: int, folder: Path) -> None:
    """Asserts the property; without debug information at odd levels."""
    wanted = text_of(bitcode_of(path, level, folder, *(["-g"] if level % 2 == 0 else [])))
    module = parse_module(wanted)
    verify(module)
    printed = print_module(module)
    assert canonical(printed) == canonical(wanted)
    assert print_module(parse_module(printed)) == printed


def canonical(text: str) -> str:
    """The text as LLVM prints it, but for the name of the module."""
    printed = str(llvm.parse_assembly(text, context=llvm.create_context()))
    return printed.removeprefix("; ModuleID = '<string>'\n")


@pytest.mark.parametrize("name", _CONSTRUCTS)
def test_what_the_programs_hold(name: str, tmp_path: Path):
    [path] = [path for path in PROGRAMS if path.stem == name]
    texts = "".join(text_of(bitcode_of(path, level, tmp_path)) for level in LEVELS[::2])
    assert [word for word in _CONSTRUCTS[name] if word not in texts] == []
