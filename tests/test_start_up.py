"""What a process loads when: the public names are in the stubs alone, and nothing is imported before it is needed."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import irad
import irad.lazy
from irad import api
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
BELOW_API = ("backend", "data", "debug", "frontend", "ir", "kernel", "raw", "ruleset")
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


FIRST_GRADIENT = """
import sys
import numpy as np
from numba import njit
import irad

@njit
def sum_of_squares(x):
    s = 0.0
    for i in range(x.size):
        s += x[i] * x[i]
    return s

assert irad.grad(sum_of_squares)(np.ones(3)).tolist() == [2.0, 2.0, 2.0]
for name, module in sys.modules.items():
    if name.partition(".")[0] == "irad":
        print(name, "package" if hasattr(module, "__path__") else "module")
"""
LOADED = {
    "irad",
    "irad.api",
    "irad.backend",
    "irad.backend.runtime",
    "irad.data",
    "irad.data.recursive",
    "irad.debug",
    "irad.frontend",
    *(f"irad.frontend.{name}" for name in ("calls", "custom", "diagnosis", "frozen", "memory", "numba", "packing")),
    "irad.frontend.values",
    "irad.ir",
    "irad.ir.text",
    "irad.passes",
    *(f"irad.passes.{name}" for name in ("analysis", "augmented", "instrument", "memory", "parallel")),
    *(f"irad.passes.{name}" for name in ("analysis.refused", "plan", "prepare", "reverse", "subscripts")),
    "irad.rules",
    "irad.ruleset",
}
MOST_MODULES = 288
MOST_MODULES_BEFORE = 90
"""Before anything is derived: as many has a process that finds its derivatives on disk, and the cache."""
ENGINE = (
    "irad.driver",
    "irad.frontend.derivation",
    "irad.frontend.values.abi",
    "irad.ir.module",
    "irad.passes.pipeline",
)


def test_what_a_first_gradient_loads():
    """No Jacobians, no LAPACK, no cache on disk: a package that is to load with all gradients is named here."""
    loaded = dict(line.split() for line in run(FIRST_GRADIENT).splitlines())
    assert {name for name, kind in loaded.items() if kind == "package"} == LOADED
    assert len(loaded) <= MOST_MODULES
    assert {"irad.api.grad", "irad.rules.elementwise", *ENGINE} <= loaded.keys()


def test_what_making_a_gradient_loads():
    """The engine loads with the first derivation: a program that only makes derivatives does without."""
    made = FIRST_GRADIENT.replace("assert irad.grad(sum_of_squares)(np.ones(3)).tolist() == [2.0, 2.0, 2.0]", "{}")
    assert made != FIRST_GRADIENT
    calls = "irad.grad(sum_of_squares), irad.value_and_grad(sum_of_squares), irad.pushforward(sum_of_squares)"
    calls += ", irad.hvp(sum_of_squares), irad.hessian(sum_of_squares), irad.jacobian(sum_of_squares)"
    loaded = dict(line.split() for line in run(made.format(calls)).splitlines())
    assert loaded.keys() & set(ENGINE) == set()
    assert len(loaded) <= MOST_MODULES_BEFORE
    assert {"irad.api.makers", "irad.frontend.calls.dispatcher", "irad.frontend.frozen.history"} <= loaded.keys()


FIRST_USES = """
import numpy as np
from numba import njit
import irad

@njit
def square(x):
    return x * x

@njit
def call_autodiff(x):
    return irad.autodiff(irad.Reverse, square, irad.Active(x))[0]

@njit
def call_linearize(x):
    return irad.linearize(square, x)[1](1.0)

@njit
def call_split(x):
    forward, reverse = irad.split(irad.ReverseSplit, square, irad.Active)
    return reverse(forward(irad.Active(x)), 1.0)[0]

@njit
def call_vjp(x):
    return irad.vjp(square, x)[1](1.0)[0]

@njit
def call_taylor(x):
    return irad.taylor(square, 1)(x, (1.0,))[1][0]

@njit
def call_hessian(x):
    return irad.hessian(square)(x) * x

@njit
def call_dot(x):
    return irad.data.dot(x, 2.0)

@njit
def call_space(x):
    return (irad.data.VectorSpace(x) * 2.0).value

@njit
def call_stop(x):
    return irad.stop_gradient(x) + x

for call in (call_autodiff, call_linearize, call_split, call_vjp, call_taylor, call_hessian, call_dot, call_space):
    assert call(3.0) == 6.0, call
assert call_stop(3.0) == 6.0
"""


def test_compiled_code_calls_what_was_not_loaded_before():
    """Numba itself asks for these names, as it types the functions."""
    run(FIRST_USES)


def test_modules_that_tell_numba_of_functions_are_named_beside_those():
    """What a module registers for a function or class of another one is loaded with that."""
    public = irad.lazy.offered("irad").origins | irad.lazy.offered("irad.data").origins
    folder, found = Path(api.__path__[0]), dict[str, str]()
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text())
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        origins = {alias.name: str(node.module) for node in imports for alias in node.names}
        registered = {
            node.args[0].id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name)
            if ast.unparse(node.func) in ("offer", "overload", "refuse_on_device", "typeof_impl.register", "_register")
        }
        module = ".".join(("irad.api", *path.relative_to(folder).with_suffix("").parts))
        found |= {origins[name]: module for name in registered & origins.keys() if public.get(name) == origins[name]}
    assert {"irad.api.structures.functions", "irad.api.structures.space"} <= found.keys()
    assert found.items() <= irad._IN_COMPILED_CODE.items()
    assert irad._IN_COMPILED_CODE.keys() <= set(public.values())


def test_only_public_classes_are_dataclasses_of_the_standard_library():
    """It compiles each method of each of them, which takes longer than all else that these modules do."""
    folders = (*(ROOT / "irad" / name for name in BELOW_API), ROOT / "passes", ROOT / "rules")
    paths = [path for folder in folders for path in folder.rglob("*.py")]
    slow = {path.stem for path in paths if re.search(r"^from dataclasses import dataclass\b", path.read_text(), re.M)}
    assert slow == {"rule_arguments", "rule_workspace"}  # irad.rules.RuleConfig, irad.rules.StatefulRule


def test_numba_starts_with_the_first_function_that_it_compiles():
    run(_NUMBA_IS_NOT_STARTED)


@pytest.mark.parametrize("package", PACKAGES)
def test_each_name_is_where_the_stub_says(package: str):
    module = importlib.import_module(package)
    names = LazyNames(package, Path(str(module.__file__)).with_suffix(".pyi"))
    for name, origin in names.origins.items():
        value = getattr(module, name)
        if origin == package:
            assert value is sys.modules[f"{package}.{name}"]
        else:
            assert value is vars(sys.modules[origin])[name]
        assert vars(module)[name] is value, "the second time it is there"
    assert set(names.origins) == set(module.__all__) - {"__version__"}
    assert {*module.__all__, "__doc__"} <= set(dir(module))


@pytest.mark.parametrize("package", PACKAGES)
def test_other_names_are_unknown(package: str):
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing_of_the_kind'"):
        _ = module.nothing_of_the_kind
    assert not hasattr(module, "__wrapped__")


def test_names_and_origins_of_a_stub(tmp_path: Path):
    (tmp_path / "__init__.pyi").write_text(
        "from tool import part as part\nfrom tool.one import (\n    A as A,\n    b as b,\n)\nVERSION: str\n"
    )
    names = LazyNames("tool", tmp_path / "__init__.pyi")
    assert names.origins == {"part": "tool", "A": "tool.one", "b": "tool.one"}
