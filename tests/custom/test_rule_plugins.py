"""Distributions that ship rules: found by their entry points, loaded once and late, none able to spoil another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LIBRARY = """
from numba import njit

@njit
def cube(x):
    return x ** 3

@njit
def square(x):
    return x * x
"""

RULE = """
import irad
from irad.rules import AugmentedReturn

def add_rule(f, factor):
    @irad.rules.augmented_primal(f)
    def augmented(config, x):
        return AugmentedReturn(f(x.value), None, None)

    @irad.rules.reverse(f)
    def reverse(config, cotangent, tape, x):
        return (factor * cotangent,)
"""


def install(folder: Path, distribution: str, entry: str, **modules: str) -> None:
    """Puts modules and a distribution with one entry point into a folder."""
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[irad.rules]\nrules = {entry}\n")


SCRIPT = """
import json, sys, warnings
import shapes
without_irad = "irad" not in sys.modules
import irad
from irad.frontend.custom import rule_plugins
@irad.rules.augmented_primal(shapes.square)
def augmented(config, x):
    return irad.rules.AugmentedReturn(x.value ** 2, None, None)
@irad.rules.reverse(shapes.square)
def reverse(config, cotangent, tape, x):
    return (7.0 * cotangent,)
late = "shapes_rules" not in sys.modules
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", rule_plugins.PackWarning)
    found = [irad.grad(shapes.cube)(2.0), irad.grad(shapes.square)(2.0)]
said = [str(each.message) for each in caught if each.category is rule_plugins.PackWarning]
loaded, value = rule_plugins.loaded(), irad.grad(shapes.cube)(2.0)
import shapes_rules
print(json.dumps([without_irad, late, found, said, list(loaded), value, shapes_rules.count]))
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> list:
    folder = tmp_path_factory.mktemp("site")
    mine = f"{RULE}\nimport shapes\ncount = globals().get('count', 0) + 1\nadd_rule(shapes.cube, 1200.0)\n"
    mine += "add_rule(shapes.square, 1.0)\n"
    install(folder, "shapes", "shapes_rules", shapes=LIBRARY, shapes_rules=mine)
    half = f"{RULE}\nimport shapes\nirad.rules.reverse(shapes.cube)(print)\nimport nothing_of_this_name\n"
    install(folder, "awkward", "awkward_rules", awkward_rules=half)
    rival = f"{RULE}\nimport shapes\ndef register():\n    add_rule(shapes.cube, 1.0)\n"
    install(folder, "zealous", "zealous_rules:register", zealous_rules=rival)
    path = os.pathsep.join((str(folder), str(ROOT)))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_plugin_needs_no_irad_until_the_first_derivative(outcome):
    without_irad, late, *_ = outcome
    assert without_irad
    assert late


def test_its_rules_are_used_and_it_is_loaded_once(outcome):
    _, _, (by_cube, _), _, loaded, again, count = outcome
    assert by_cube == again == 1200.0
    assert loaded == ["shapes", "zealous"]
    assert count == 1


def test_what_the_user_registered_wins(outcome):
    assert outcome[2][1] == 7.0


def test_a_broken_plugin_is_named_and_leaves_nothing(outcome):
    [broken, _] = outcome[3]
    assert "'awkward'" in broken
    assert "rules = awkward_rules" in broken
    assert "ModuleNotFoundError: No module named 'nothing_of_this_name'" in broken


def test_two_plugins_with_a_rule_for_one_function_are_named(outcome):
    [_, twice] = outcome[3]
    assert "'shapes'" in twice
    assert "'zealous'" in twice
    assert "cube" in twice
