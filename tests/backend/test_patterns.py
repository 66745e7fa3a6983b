"""What is read off LLVM's text by patterns, and that no more of it is than the README names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irad.backend.patterns import call_graph, calls_through_pointers

ROOT = Path(__file__).parents[2] / "irad"

# Regular expressions over something else: Python and its messages, Numba's flags, names of symbols and values, what the
# engine and ptxas explain, the data layout.
OTHER_TEXTS = {
    *(
        "frontend/numba/messages.py",
        "frontend/numba/reports.py",
        "frontend/external.py",
        "source_text.py",
        "frontend/frozen/inherited_options.py",
        "frontend/linkable.py",
        "frontend/packing/packed.py",
        "debug/seal.py",
        "c_library/interface.py",
        "interop/jax.py",
        "interop/pytensor.py",
    ),
    "frontend/diagnosis/unexpected.py",
    *(
        f"raw/{name}.py"
        for name in ("normal_form/openmp", "normal_form/masked", "normal_form/vectors", "tbaa", "files")
    ),
    *(f"report/{name}.py" for name in ("collect", "functions", "source", "variables", "words")),
    *(f"report/shown/{name}.py" for name in ("amounts", "text")),
    *(
        "decompile/names.py",
        "cli/doctor.py",
        "message.py",
        "backend/cuda/toolkit.py",
        *(f"backend/executor/{name}.py" for name in ("printing", "rewriting/arrays", "rewriting/sites")),
        "passes/memory/signatures.py",
        "rules/builtin.py",
        "ruleset/registry.py",
    ),
}


def test_the_readme_names_every_module_with_patterns():
    modules = {*ROOT.rglob("*.py"), *(ROOT / "passes").rglob("*.py"), *(ROOT / "rules").rglob("*.py")}
    found = {str(path.relative_to(ROOT)) for path in modules if re.search(r"^import re$", path.read_text(), re.M)}
    found = {name for name in found if not name.startswith("ir/")}
    table = (ROOT / "backend" / "README.md").read_text().partition("## Patterns over LLVM's text")[2]
    named = re.findall(r"^\| `([\w/]+\.py)` \|", table, re.M)
    expected = {name if "/" in name and not name.startswith("runtime/") else f"backend/{name}" for name in named}
    assert found - OTHER_TEXTS == expected, "name it in OTHER_TEXTS above, or in the README if it reads LLVM's text"
    assert found >= OTHER_TEXTS


TEXT = """define internal i32 @"a b"(ptr %p) {
  %1 = call i32 @g(ptr %p), !dbg !7
  %2 = tail call noundef i32 @"a b"(ptr %p)
  ret i32 %1
}

define i32 @g(ptr %p) {
  call void @llvm.trap()
  ret i32 0
}

declare void @llvm.trap()
"""


def test_call_graph():
    calls, sizes = call_graph(TEXT)
    assert calls == {"a b": ["g", "a b"], "g": ["llvm.trap"]}
    assert sizes["a b"] > sizes["g"] > 0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  %1 = call i32 %f(ptr %p)", True),
        ('  %1 = tail call i32 %"a b"(ptr %p), !dbg !7', True),
        ("  %1 = call i32 @g(ptr %p)", False),
        ("  ; call i32 %f(ptr %p)", False),
    ],
)
def test_calls_through_pointers(line: str, expected: bool):
    assert calls_through_pointers(f"define i32 @h(ptr %f, ptr %p) {{\n{line}\n  ret i32 0\n}}\n") == expected
