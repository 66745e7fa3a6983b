"""The folders are the architecture: an import goes to a lower layer, or to what `BESIDE` names of the same one.

No two packages need each other, and no two modules: imports inside of functions and for type checkers count. Only the
types of one folder may refer to each other, as a value knows the instructions that use it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("irad", "passes", "rules")

LAYERS = (
    (
        "irad.compiling",
        "irad.lazy",
        "irad.errors",
        "irad.message",
        "irad.records",
        "irad.source_text",
        "irad.options",
        "irad.data",
        "irad.versions",
        "irad.runtime_layouts",
    ),
    ("irad.ir",),
    ("irad.ruleset",),
    ("irad.passes", "irad.rules"),
    ("irad.driver", "irad.cache"),
    ("irad.frontend", "irad.backend", "irad.raw", "irad.kernel", "irad.debug"),
    (
        "irad",
        "irad.api",
        "irad.benchmark",
        "irad.c_library",
        "irad.cuda",
        "irad.cli",
        "irad.report",
        "irad.decompile",
        "irad.testing",
        "irad.nn",
        "irad.demo",
        "irad.implicit",
        "irad.integrate",
        "irad.interop",
        "irad.interpolate",
        "irad.ode",
        "irad.sparse_linalg",
        "irad.__main__",
    ),
)
LAYER_OF = {package: layer for layer, packages in enumerate(LAYERS) for package in packages}
BESIDE = {
    "irad.errors": {"irad.message"},
    "irad.options": {"irad.errors"},
    "irad.source_text": {"irad.records"},
    "irad.data": {"irad.errors", "irad.lazy", "irad.message", "irad.records"},
    "irad.raw": {"irad.backend"},
    "irad.kernel": {"irad.backend", "irad.raw"},
    "irad.frontend": {"irad.backend", "irad.raw", "irad.kernel", "irad.debug"},
    "irad": {"irad.api"},
    "irad.cuda": {"irad.api"},
    "irad.report": {"irad", "irad.api", "irad.cuda", "irad.decompile"},
    "irad.testing": {"irad", "irad.api", "irad.cuda", "irad.report"},
    "irad.benchmark": {"irad", "irad.testing"},
    "irad.c_library": {"irad"},
    "irad.demo": {"irad"},
    "irad.cli": {
        "irad",
        "irad.api",
        "irad.benchmark",
        "irad.cuda",
        "irad.demo",
        "irad.report",
        "irad.testing",
    },
    "irad.__main__": {"irad.cli"},
    "irad.implicit": {"irad.api"},
    "irad.integrate": {"irad.api"},
    "irad.interop": {"irad"},
    "irad.nn": {"irad"},
    "irad.ode": {"irad.api", "irad.implicit", "irad.integrate"},
    "irad.sparse_linalg": {"irad.api"},
}
"""What a package imports of its own layer; all others there are independent of each other."""

COMPILERS = frozenset({"numba", "llvmlite", "cupy"})
FIRST_LAYER_WITH_COMPILERS = LAYER_OF["irad.frontend"]


@dataclass(frozen=True)
class Import:
    module: str
    target: str
    line: int
    is_typed: bool = False

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "irad" else ("irad", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def all_modules() -> dict[str, Path]:
    """Every module by its one name; irad/passes and irad/rules are links and are read through the real folders."""
    links = (ROOT / "irad" / "passes", ROOT / "irad" / "rules")
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return {module_name(path): path for path in paths if not any(link in path.parents for link in links)}


@cache
def imports_of(module: str, source: str, modules: frozenset[str]) -> tuple[Import, ...]:
    """Imports anywhere in the file; a module's name in a string counts, since it is there to be imported."""
    return tuple(_imports_of(module, source, modules))


def _imports_of(module: str, source: str, modules: frozenset[str]) -> Iterator[Import]:
    tree = ast.parse(source)
    guarded = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    typed = {line for node in guarded for line in range(node.lineno, int(node.end_lineno or 0) + 1)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as text) if text in modules and text != "irad":
                targets = [text]
            case ast.Import(names=names):
                targets = [alias.name for alias in names]
            case ast.ImportFrom(module=str() as base, names=names, level=0):
                targets = [f"{base}.{a.name}" if f"{base}.{a.name}" in modules else base for a in names]
            case ast.ImportFrom():
                pytest.fail(f"{module}:{node.lineno}: relative import")
            case _:
                continue
        for target in dict.fromkeys(targets):
            yield Import(module, target, node.lineno, node.lineno in typed)


def unit_of(module: str) -> str:
    """``irad.passes.reverse.memory`` belongs to ``irad.passes``."""
    return ".".join(module.split(".")[:2])


def complaint(found: Import) -> str | None:
    """Why an import breaks the layering, or None."""
    top = found.target.split(".")[0]
    source = unit_of(found.module)
    if top in ("passes", "rules"):
        return f"{found}: write irad.{top}, one file must have one module name"
    if top in COMPILERS and LAYER_OF[source] < FIRST_LAYER_WITH_COMPILERS:
        return f"{found}: only the front end and what is above it know a compiler"
    if source == "irad.ir" and top != "irad" and top not in sys.stdlib_module_names:
        return f"{found}: irad.ir imports no third party"
    if top != "irad":
        return None
    target = unit_of(found.target)
    if LAYER_OF[target] > LAYER_OF[source]:
        return f"{found}: upwards, from layer {LAYER_OF[source]} to layer {LAYER_OF[target]}"
    if LAYER_OF[target] == LAYER_OF[source] and target not in {source} | BESIDE.get(source, set()):
        return f"{found}: sideways, {source} does not depend on {target}"
    return None


def complaints(sources: dict[str, str]) -> list[str]:
    names = frozenset(sources)
    found = (i for module, source in sources.items() for i in imports_of(module, source, names))
    return [text for i in found if (text := complaint(i)) is not None]


@cache
def all_sources() -> dict[str, str]:
    return {name: path.read_text() for name, path in all_modules().items()}


def test_every_module_has_a_layer():
    homeless = {unit_of(m) for m in all_modules() if m != "irad"} - LAYER_OF.keys()
    assert not homeless, f"add to LAYERS: {sorted(homeless)}"


def test_imports_go_downwards():
    assert complaints(all_sources()) == []


def test_packages_of_a_layer_have_an_order():
    assert list(TopologicalSorter(BESIDE).static_order())
    pairs = [(source, target) for source, targets in BESIDE.items() for target in targets]
    assert [pair for pair in pairs if len({LAYER_OF[unit] for unit in pair}) > 1] == []


def test_what_a_package_may_import_beside_it_is_imported():
    sources = all_sources()
    imports = [i for name, source in sources.items() for i in imports_of(name, source, frozenset(sources))]
    found = {(unit_of(i.module), unit_of(i.target)) for i in imports if i.target.split(".")[0] == "irad"}
    allowed = {(source, target) for source, targets in BESIDE.items() for target in targets}
    assert allowed - found == set()


def needed(module: str, source: str, names: frozenset[str]) -> set[str]:
    """The modules that a module needs; not those of its folder of which it names types only."""
    folder = module.rpartition(".")[0]
    return {
        found.target
        for found in imports_of(module, source, names)
        if not f"{module}.".startswith(f"{found.target}.")
        if not (found.is_typed and found.target.rpartition(".")[0] == folder)
    }


def cycles(sources: dict[str, str]) -> list[str]:
    """Modules that need each other. The packages that a module is in do not count: Python has them already."""
    names = frozenset(sources)
    needs = {module: needed(module, source, names) for module, source in sources.items()}
    try:
        list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        return [" needs ".join(reversed(error.args[1]))]
    return []


def test_no_two_modules_need_each_other():
    assert cycles(all_sources()) == []


@pytest.mark.parametrize("typed", ["irad.x.b", "irad.b"])
def test_types_of_one_folder_may_refer_to_each_other(typed: str):
    sources = {"irad.x.a": f"if TYPE_CHECKING:\n    from {typed} import B", typed: "import irad.x.a"}
    assert len(cycles(sources)) == (typed == "irad.b")


@pytest.mark.parametrize(
    "source", ["import irad.b", "def f():\n    from irad.b import g", "class A:\n    from irad import b"]
)
def test_a_cycle_is_seen(source: str):
    assert cycles({"irad.a": source, "irad.b": "", "irad.c": "import irad.a"}) == []
    [text] = cycles({"irad.a": source, "irad.b": "import irad.c", "irad.c": "import irad.a"})
    assert "irad.a needs irad.b" in text


def test_public_names_are_lazy():
    tree = ast.parse((ROOT / "irad" / "__init__.py").read_text())
    eager = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert eager == ["__future__", "importlib", "pathlib", "irad.lazy"]


def test_a_stub_is_of_the_layer_that_offers_its_names():
    """What users see as `irad.rules`, say, is defined above it: `irad` offers it, and `irad.rules` does not know it."""
    modules = frozenset(all_modules())
    offered = {"irad": "irad", "irad.data": "irad", "irad.rules": "irad"}
    offered |= {name: name for name in ("irad.cuda", "irad.interop", "irad.report")}
    stubs = {module: path.with_suffix(".pyi") for module, path in all_modules().items()}
    sources = {module: stub.read_text() for module, stub in stubs.items() if stub.exists()}
    assert sources.keys() == offered.keys()
    found = [i for module, source in sources.items() for i in imports_of(offered[module], source, modules)]
    texts = [text for each in found if (text := complaint(each)) is not None]
    named_only = "irad:"  # its names load on first use: it needs nothing of what is beside it
    assert [text for text in texts if not (text.startswith(named_only) and "sideways" in text)] == []


@pytest.mark.parametrize(
    ("module", "source", "words"),
    [
        ("irad.ir.text.parser", "import irad.passes.plan.plan", "upwards"),
        ("irad.ir.text.parser", "if TYPE_CHECKING:\n    from irad.driver import run", "upwards"),
        ("irad.ir.text.parser", "def f():\n    import_module('irad.driver').run()", "upwards"),
        ("irad.frontend.calls.dispatcher", "import irad", "upwards"),
        ("irad.ir.text.parser", "def f():\n    from irad.driver import run", "upwards"),
        ("irad.ir.text.parser", "import numpy as np", "no third party"),
        ("irad.rules.blas1", "from irad.passes import plan", "does not depend on irad.passes"),
        ("irad.passes.plan.plan", "from irad import rules", "does not depend on irad.rules"),
        ("irad.backend.link", "from irad.frontend import pointers", "sideways"),
        ("irad.debug.events", "if TYPE_CHECKING:\n    import irad.frontend.pointers", "sideways"),
        ("irad.api.grad", "def f():\n    from irad.report import check", "sideways"),
        ("irad.nn.dense", "import irad.ode", "does not depend on irad.ode"),
        ("irad.passes.plan.plan", "import passes.activity", "write irad.passes"),
        ("irad.api", "from rules.blas1 import DOT", "write irad.rules"),
        ("irad.passes.plan.plan", "from numba import njit", "know a compiler"),
        ("irad.driver", "import llvmlite.binding", "know a compiler"),
    ],
)
def test_a_wrong_import_is_seen(module: str, source: str, words: str):
    names = ("irad", "irad.driver", "irad.rules", "irad.passes", "irad.passes.plan.plan")
    sources = dict.fromkeys(names, "") | {module: source}
    [text] = complaints(sources)
    assert words in text


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("irad.passes.plan.plan", "from irad.ir.values import Value\nimport irad.errors\nimport heapq"),
        ("irad.rules.blas1", "from irad.rules.memory import COPY"),
        ("irad.frontend.values.abi", "import numba\nfrom irad.driver import derive"),
        ("irad.demo.model", "from numba import njit\nimport irad"),
    ],
)
def test_a_right_import_passes(module: str, source: str):
    assert complaints({module: source}) == []
