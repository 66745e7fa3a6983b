"""Every public name stands in the reference, with its parameters, its result and an example that prints what it says.

Exempt are modules and plain data, which have no docstring of their own.
"""

from __future__ import annotations

import ast
import doctest
import enum
import inspect
import re
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import pairwise
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
from irad.api import annotations
from irad.frontend.custom import stop_gradient

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
SECOND_NAMES = {
    "irad.ignore_derivatives": "irad.stop_gradient",
    "irad.rules.ignore_derivatives": "irad.stop_gradient",
    "irad.Constant": "irad.Const",
    "irad.nn.gelu": "irad.nn.gelu_tanh",
    "irad.nn.thresholdrelu": "irad.nn.trelu",
}
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


def _documentation(name: str, member: object) -> str:
    """The docstring; of a value that the module names, the string below the assignment."""
    module, _, own = name.rpartition(".")
    given = _below_assignments().get(own) if module in ("irad", "irad.rules") else None
    return given or inspect.getdoc(member) or ""


@cache
def _below_assignments() -> dict[str, str]:
    """Docstrings of names that are assigned: modes, and second names of functions."""
    found: dict[str, str] = {}
    for module in (annotations, stop_gradient):
        body = ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
        for assigned, text in pairwise(body):
            if isinstance(assigned, ast.Assign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                found[ast.unparse(assigned.targets[0])] = inspect.cleandoc(str(text.value.value))
    return found


def _entries() -> dict[str, str]:
    """Entries of the reference by their public names, each with the options that follow it."""
    text = "".join(page.read_text(encoding="utf-8") for page in REFERENCE.iterdir())
    listed = re.findall(r"^::: (\S+)\n((?: +\S.*\n)*)", text, re.MULTILINE)
    return {re.sub(r"\.(\w+)\.\1$", r".\1", identifier): options for identifier, options in listed}


def _is_data(member: object) -> bool:
    return isinstance(member, ModuleType | str | tuple)


MEMBERS = {name: member for name, member in _public().items() if not _is_data(member)}
EXPLAINED = {name: _documentation(name, member) for name, member in MEMBERS.items()}
FUNCTIONS = [name for name, member in MEMBERS.items() if hasattr(member, "__name__") and not isinstance(member, type)]
CLASSES = [
    name
    for name, member in MEMBERS.items()
    if isinstance(member, type) and not issubclass(member, Exception) and name not in SECOND_NAMES
]
MADE_BY_IRAD = {"irad.Inspection", "irad.interop.ipopt.Problem"}
"""Classes whose constructors users do not call; those of other results are in their attributes."""
NEEDED = {
    **dict.fromkeys(("irad.nn.stft", "irad.nn.istft", "irad.nn.spectrogram"), "rocket_fft"),
    "irad.Inspection.html": "jinja2",
}
"""Examples that need an optional package."""


def _methods(name: str) -> dict[str, str]:
    """Docstrings of the public methods and properties of a class that the reference shows."""
    shown = re.search(r"members: \[(.*?)\]", _entries().get(name, ""))
    return {
        f"{name}.{method}": inspect.getdoc(member) or ""
        for method, member in vars(MEMBERS[name]).items()
        if (not method.startswith("_") if shown is None else method in shown[1].split(", "))
        and (inspect.isroutine(member) or isinstance(member, property | cached_property | classmethod))
    }


METHODS = {method: text for name in CLASSES for method, text in _methods(name).items()}
EXAMPLES = {**EXPLAINED, **{name: text for name, text in METHODS.items() if ">>>" in text}}


def _described(text: str, *sections: str) -> set[str]:
    """The names that sections of a docstring describe."""
    found: set[str] = set()
    for section in sections:
        block = re.split(r"^\S", text.partition(f"\n{section}:\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
        found |= {
            name for line in re.findall(r"^    (\w+(?:, \w+)*): ", block, re.MULTILINE) for name in line.split(", ")
        }
    return found


def test_only_data_and_modules_have_no_example():
    assert _public().keys() - EXPLAINED.keys() == {
        "irad.__version__",
        *(f"irad.{name}" for name in (*MODULES, *BRIDGES) if f"irad.{name}" in _public()),
        *TUPLES,
    }


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str):
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], {}, name, None, None)
    assert test.examples, f"the docstring of {name} has no example"
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=printed.append)
    assert runner.failures == 0, "".join(printed)
    assert "SKIP" not in EXAMPLES[name]


def test_the_reference_has_every_public_name():
    assert _entries().keys() == (_public().keys() | _names_of_absent()) - {
        *(f"irad.{name}" for name in NOT_IN_REFERENCE),
        *TUPLES,
    }


def test_the_index_has_every_page():
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} - {"README.md"}
    linked = set(re.findall(r"\]\(([^)#]+\.md)", (DOCS / "README.md").read_text(encoding="utf-8")))
    assert pages - linked == set()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_and_results_are_explained(name: str):
    signature = inspect.signature(MEMBERS[name])  # type: ignore[arg-type]
    described = _described(EXPLAINED[name], "Args")
    if name not in SECOND_NAMES:
        assert signature.parameters.keys() == described
        returns = signature.return_annotation not in (None, "None")
        assert returns == bool(re.search(r"\n(?:Returns|Yields):\n", EXPLAINED[name]))


@pytest.mark.parametrize("name", CLASSES)
def test_parameters_and_attributes_of_classes_are_explained(name: str):
    described = _described(EXPLAINED[name], "Args", "Attributes")
    if name not in MADE_BY_IRAD:
        fields = getattr(MEMBERS[name], "_fields", None)
        if fields is None and not issubclass(MEMBERS[name], enum.Enum):  # type: ignore[arg-type]
            fields = list(inspect.signature(MEMBERS[name].__init__).parameters)[1:]  # type: ignore[misc]
        assert set(fields or ()) <= described


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_explained_and_shown(name: str):
    owner, _, method = name.rpartition(".")
    assert METHODS[name]
    is_named = re.search(rf"[.`]{method}\b", EXPLAINED[owner]) is not None
    assert is_named or method.startswith("__") or ">>>" in METHODS[name], f"{owner} shows no use of {method}"


def test_second_names():
    for name, other in SECOND_NAMES.items():
        assert MEMBERS[name] is MEMBERS[other]
