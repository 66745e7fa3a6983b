"""Programs in C and C++ whose own checks say whether the derivative is right, at every level of clang's optimisation.

By default each program runs at one level, in turn; `-m 'slow or not slow'` runs all, and the oracle plan too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.raw.toolchain import PROGRAMS, bitcode_of, differentiated, in_turn, name_of, needs_clang, own_flags, run

pytestmark = needs_clang

IN_TURN, OTHERS = in_turn(PROGRAMS)


def test_there_are_enough_programs():
    assert len(PROGRAMS) >= 60
    assert len([path for path in PROGRAMS if path.suffix == ".cpp"]) >= 15


@pytest.mark.parametrize(("path", "level"), IN_TURN, ids=name_of)
def test_derivative(path: Path, level: int, tmp_path: Path):
    check(path, level, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "level"), OTHERS, ids=name_of)
def test_derivative_at_the_other_levels(path: Path, level: int, tmp_path: Path):
    check(path, level, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_derivative_by_the_oracle_plan(path: Path, tmp_path: Path):
    check(path, 1, tmp_path, plan="save_all")


EXAMPLES = re.findall(
    r"```c\n(// \w+\.c\n.*?)```", (Path(__file__).parents[2] / "docs" / "raw_ir.md").read_text(), re.DOTALL
)


@pytest.mark.parametrize("source", EXAMPLES, ids=lambda source: source.split()[1])
def test_example_of_the_documentation(source: str, tmp_path: Path):
    path = tmp_path / "example.c"
    path.write_text(source)
    done = run(differentiated(bitcode_of(path, 2, tmp_path)), tmp_path)
    [told] = re.findall(r"printf\(.*// (.*)", source)
    assert done.stdout.strip() == told.strip()


def test_there_are_examples():
    assert len(EXAMPLES) == 3


def check(path: Path, level: int, folder: Path, plan: str = "default") -> None:
    """Asserts that the program's own checks pass, and that nothing asks for a derivative any more."""
    bitcode = bitcode_of(path, level, folder)
    made = differentiated(bitcode, plan)
    names = {function.name for function in made.module.functions}
    assert not [name for name in names if "_autodiff" in name and not name.startswith("irad.autodiff.")]
    done = run(made, folder, *(flag for flag in own_flags(path) if flag == "-fopenmp"))
    assert (done.returncode, done.stderr) == (0, "")
