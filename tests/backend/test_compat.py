"""What differs between the versions of Numba and llvmlite, and the warning about versions that were not tested."""

from __future__ import annotations

import subprocess
import sys
import warnings

import llvmlite.binding as llvm
import pytest

from irad import versions
from irad.backend import compat
from irad.errors import UntestedVersionWarning

MODULE = """
define internal fastcc i32 @"a(b) c"(ptr noalias captures(none) dereferenceable(8) %x, i32 %y) unnamed_addr #0 {
  ret i32 %y
}
define i32 @plain() local_unnamed_addr section "of (code" {
  %z = call fastcc i32 @"a(b) c"(ptr null, i32 1)
  ret i32 %z
}
define i32 @other(i32 range(i32 0, 7) %x) {
  ret i32 %x
}
attributes #0 = { nounwind }
"""


def attributes_of(module: llvm.ModuleRef) -> dict[str, set[bytes]]:
    return {f.name: {word for words in f.attributes for word in words.split()} for f in module.functions}


@pytest.mark.parametrize("marks", [True, False])
def test_attributes_are_put_on_functions(monkeypatch: pytest.MonkeyPatch, marks: bool):
    monkeypatch.setattr(compat, "_MARKS_FUNCTIONS", marks and compat._MARKS_FUNCTIONS)
    module = compat.with_attribute(llvm.parse_assembly(MODULE), ["a(b) c", "plain"], "noinline")
    module.verify()
    marked = attributes_of(module)
    assert marked == {"a(b) c": {b"noinline", b"nounwind"}, "plain": {b"noinline"}, "other": set()}


def test_nothing_to_mark():
    module = llvm.parse_assembly(MODULE)
    assert compat.with_attribute(module, [], "noinline") is module


NEWEST = versions.spelled(max(versions.NUMBA))


@pytest.mark.parametrize(
    ("numba", "python", "words"),
    [
        ("0.99.0rc1", "3.12.4", "not with Numba 0.99.0rc1:"),
        (NEWEST + ".3", "3.99.0", "not with Python 3.99.0:"),
        ("1.0", "4.0.1", "not with Numba 1.0 and Python 4.0.1:"),
    ],
)
def test_untested_versions_are_told_once(numba: str, python: str, words: str):
    compat.check_versions.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compat.check_versions(numba, python)
        compat.check_versions(numba, python)
    [warning] = caught
    assert warning.category is UntestedVersionWarning
    assert words in str(warning.message)
    assert "tested with Numba 0.65 to 0.68 and Python 3.11 to 3.13" in str(warning.message)


@pytest.mark.parametrize("version", versions.NUMBA)
def test_tested_versions_are_fine(version: versions.Numbers):
    compat.check_versions.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for python in versions.PYTHON:
            compat.check_versions(versions.spelled(version) + ".1", versions.spelled(python) + ".7")


@pytest.mark.parametrize("use", ["import irad; irad.grad; irad.vjp", "from irad import grad, value_and_grad"])
def test_the_warning_names_the_users_line(use: str):
    code = f"import numba\nnumba.__version__ = '0.99.0'\n\n{use}\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.startswith("<string>:4: UntestedVersionWarning: ")
    assert done.stderr.count("UntestedVersionWarning") == 1


def test_the_warning_can_be_filtered():
    code = (
        "import warnings, irad, numba\nnumba.__version__ = '0.99.0'\n"
        "warnings.simplefilter('ignore', irad.UntestedVersionWarning)\nirad.grad"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_coroutines_end_as_this_llvm_has_it():
    assert compat.ends_coroutine_with_void() == (llvm.llvm_version_info >= (22,))
