"""What a process loads when: the public names are in the stubs alone, and nothing is imported before it is needed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from irad.lazy import LazyNames

ROOT = Path(__file__).parents[1]
PACKAGES = ("irad", "irad.report", "irad.rules")
STEPS = {
    "import irad": ["numba", "llvmlite", "numpy", "irad.errors"],
    "import irad.ir.text.parser": ["numba", "llvmlite", "numpy", "irad.passes", "irad.rules"],
    "import irad; irad.IradError": ["numba", "numpy"],
    "import irad; irad.Options": ["numba", "numpy"],
    "import irad.rules": ["numba", "irad.rules.builtin", "irad.api"],
    "import irad; irad.grad": [
        "irad.rules.builtin",
        "scipy.linalg",
        "click",
        "rich",
        "matplotlib",
        "irad.cli",
        "irad.demo",
        "irad.testing",
    ],
    "import irad; irad.vjp; irad.rules.augmented_primal": [
        "scipy.linalg",
        "click",
        "rich",
        "irad.report.html",
        "irad.testing",
    ],
}
_NUMBA_IS_NOT_STARTED = """
import irad
irad.grad, irad.autodiff, irad.stop_gradient
from numba.core.runtime import rtsys
assert not rtsys._init
"""


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("step", STEPS)
def test_what_is_not_needed_is_not_imported(step: str):
    loaded = set(run(f"import sys\n{step}\nprint(*sys.modules)").split())
    assert loaded & set(STEPS[step]) == set()
    assert "irad.lazy" in loaded


def test_numba_starts_with_the_first_function_that_it_compiles():
    run(_NUMBA_IS_NOT_STARTED)


@pytest.mark.parametrize("package", PACKAGES)
def test_each_name_is_where_the_stub_says(package: str):
    module = importlib.import_module(package)
    names = LazyNames(package, Path(str(module.__file__)).with_suffix(".pyi"))
    for name, home in names.homes.items():
        value = getattr(module, name)
        if home == package:
            assert value is sys.modules[f"{package}.{name}"]
        else:
            assert value is vars(sys.modules[home])[name]
        assert vars(module)[name] is value, "the second time it is there"
    assert set(names.homes) == set(module.__all__) - {"__version__"}
    assert {*module.__all__, "__doc__"} <= set(dir(module))


@pytest.mark.parametrize("package", PACKAGES)
def test_other_names_are_unknown(package: str):
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing_of_the_kind'"):
        _ = module.nothing_of_the_kind
    assert not hasattr(module, "__wrapped__")


def test_names_and_homes_of_a_stub(tmp_path: Path):
    (tmp_path / "__init__.pyi").write_text(
        "from tool import part as part\nfrom tool.one import (\n    A as A,\n    b as b,\n)\nVERSION: str\n"
    )
    names = LazyNames("tool", tmp_path / "__init__.pyi")
    assert names.homes == {"part": "tool", "A": "tool.one", "b": "tool.one"}
