"""Every public name stands in the reference and has an example in its docstring, which gives what it says.

Exempt are errors and warnings, which docs/errors.md shows by programs that cause them, and what has no docstring of its
own: modules and plain data.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import pytest

import irad
import irad.cuda
import irad.data
import irad.implicit
import irad.integrate
import irad.interpolate
import irad.nn
import irad.ode
import irad.rules
import irad.sparse_linalg
import irad.testing

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = DOCS / "reference"
MODULES = (
    *("cuda", "data", "implicit", "integrate", "interop", "interop.scipy", "interpolate", "nn", "ode", "rules"),
    *("sparse_linalg", "testing"),
)
BRIDGES = {
    "interop.dask": "distributed",
    "interop.ipopt": "cyipopt",
    "interop.jax": "jax",
    "interop.pytensor": "pytensor",
    "interop.torch": "torch",
}  # what has to be installed
TUPLES = ("irad.cuda.SCHEDULES", "irad.rules.ALL")
NOT_IN_REFERENCE = ("__version__", *MODULES, *BRIDGES)


def _public() -> dict[str, object]:
    absent = {name: partner for name, partner in BRIDGES.items() if find_spec(partner) is None}
    modules = (
        irad,
        *(attrgetter(name)(irad) for name in (*MODULES, *(each for each in BRIDGES if each not in absent))),
    )
    names = [(module, name) for module in modules for name in module.__all__]
    return {
        f"{module.__name__}.{name}": getattr(module, name)
        for module, name in names
        if f"{module.__name__}.{name}".removeprefix("irad.") not in absent
    }


def _names_of_absent() -> set[str]:
    """Public names of the bridges whose partners are not installed."""
    names: set[str] = set()
    for bridge, partner in BRIDGES.items():
        if find_spec(partner) is None:
            text = (DOCS.parent / "irad" / f"{bridge.replace('.', '/')}.py").read_text(encoding="utf-8")
            listed = re.search(r"^__all__ = (\[.*?\])$", text, re.MULTILINE)
            assert listed is not None
            names |= {f"irad.{bridge}.{name}" for name in ast.literal_eval(listed[1])}
    return names


def _is_exempt(member: object) -> bool:
    if isinstance(member, type) and issubclass(member, Exception):
        return True
    return isinstance(member, ModuleType | str | tuple)


EXPLAINED = {name: inspect.getdoc(member) or "" for name, member in _public().items() if not _is_exempt(member)}


def test_only_data_and_modules_have_no_example():
    exempt = {name for name, member in _public().items() if not isinstance(member, type) and _is_exempt(member)}
    assert exempt == {
        "irad.__version__",
        *(f"irad.{name}" for name in (*MODULES, *BRIDGES) if f"irad.{name}" in _public()),
        *TUPLES,
    }


@pytest.mark.parametrize("name", EXPLAINED)
def test_example(name: str):
    test = doctest.DocTestParser().get_doctest(EXPLAINED[name], {}, name, None, None)
    assert test.examples, f"the docstring of {name} has no example"
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    runner.run(test, out=printed.append)
    assert runner.failures == 0, "".join(printed)


def test_the_reference_has_every_public_name():
    documented = set(re.findall(r"^::: (\S+)$", "".join(p.read_text() for p in REFERENCE.iterdir()), re.MULTILINE))
    assert documented == (_public().keys() | _names_of_absent()) - {
        *(f"irad.{name}" for name in NOT_IN_REFERENCE),
        *TUPLES,
    }


def test_the_index_has_every_page():
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} - {"README.md"}
    linked = set(re.findall(r"\]\(([^)#]+\.md)", (DOCS / "README.md").read_text(encoding="utf-8")))
    assert pages - linked == set()


@pytest.mark.parametrize("name", [name for name in EXPLAINED if "\nArgs:\n" in EXPLAINED[name]])
def test_parameters_are_explained(name: str):
    parameters = inspect.signature(_public()[name]).parameters  # type: ignore[arg-type]
    explained = re.findall(r"^    (\w+(?:, \w+)*): ", EXPLAINED[name].partition("\nArgs:\n")[2], re.MULTILINE)
    assert parameters.keys() <= {each for line in explained for each in line.split(", ")}
