"""Libraries of LLVM text: called and inlined by njit code, refused when they could not run."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba import float64, njit, typeof
from numba.core import cgutils, codegen
from numba.extending import intrinsic

import irad
from irad.errors import BackendError
from irad.frontend.numba.cpu import load_program
from irad.frontend.numba.library import DerivativeLibrary, build_library
from tests.tools.identity import identity
from tests.tools.text_dispatcher import Generated, TextDispatcher

TWICE = """
define double @{name}(double %x) {attributes} {{
  %r = fmul double %x, 2.0
  ret double %r
}}
"""


def calling(library: Any, symbol: str) -> Any:
    """An intrinsic that calls a function ``double → double`` of a library."""

    @intrinsic
    def call(typing_context, x):
        def generate(context, builder, signature, arguments):
            context.active_code_library.add_linking_library(library)
            kind = ir.FunctionType(ir.DoubleType(), [ir.DoubleType()])
            return builder.call(cgutils.get_or_insert_function(builder.module, kind, symbol), arguments)

        return float64(x), generate

    @njit
    def caller(x):
        return call(x) + 1.0

    return caller


def test_library_is_called_and_inlined() -> None:
    library = build_library("twice", TWICE.format(name="irad_test_twice", attributes="alwaysinline"), ())
    caller = calling(library, "irad_test_twice")
    assert caller(3.0) == 7.0
    text = caller.inspect_llvm((float64,))
    assert " call double @irad_test_twice" not in text


def test_noinline_functions_stay_calls() -> None:
    library = build_library("kept", TWICE.format(name="irad_test_kept", attributes="noinline"), ())
    caller = calling(library, "irad_test_kept")
    assert caller(3.0) == 7.0
    assert " call double @irad_test_kept" in caller.inspect_llvm((float64,))


def test_a_caller_of_a_library_can_be_loaded() -> None:
    library = build_library("loaded", TWICE.format(name="irad_test_loaded", attributes=""), ())
    caller = calling(library, "irad_test_loaded")
    text = load_program(caller, (float64,)).text
    assert "fadd double" in text
    assert identity(caller)(3.0) == caller(3.0) == 7.0


UNDEFINED = """
declare double @nobody(double)
define double @calls_nobody(double %x) {
  %r = call double @nobody(double %x)
  ret double %r
}
"""


def test_undefined_symbols_are_refused() -> None:
    with pytest.raises(BackendError, match="no definition of nobody"):
        build_library("undefined", UNDEFINED, ())


def test_text_that_llvm_refuses() -> None:
    with pytest.raises(BackendError, match="LLVM rejects the generated code"):
        build_library("broken", "define double @f(", ())


def test_runtime_is_linked() -> None:
    @njit
    def allocate(n):
        return np.zeros(n) + 1.0

    program = load_program(allocate, (typeof(3),))
    dispatcher = TextDispatcher(
        allocate.py_func,
        lambda types: Generated(program.text, program.entry, program.signature, program.environments),
        {},
    )
    assert dispatcher(3).sum() == 3.0
    assert dispatcher.signatures == [(typeof(3),)]


def test_exceptions_with_values_outlive_the_primal() -> None:
    """They need the environment object of the function that raises, which nothing but the library holds here."""

    def make() -> Any:
        @njit
        def raises(x):
            if x < 0:
                raise ValueError("negative", x)
            return x

        return identity(raises)

    copy = make()
    assert copy(1.0) == 1.0

    @njit
    def caller(x):
        return copy(x)

    assert caller(1.0) == 1.0
    gc.collect()
    for function in (copy, caller):
        with pytest.raises(ValueError, match="negative") as raised:
            function(-2.0)
        assert raised.value.args == ("negative", -2.0)


def test_two_programs_share_an_environment() -> None:
    @njit
    def raises(x):
        if x < 0:
            raise ValueError("negative", x)
        return x

    first, second = identity(raises), identity(raises)
    for function in (first, second, raises):
        with pytest.raises(ValueError, match="negative"):
            function(-1.0)


def test_specialises_lazily() -> None:
    @njit
    def square(x):
        return x * x

    asked = []
    copy = identity(square, lambda text: asked.append(text) or text)
    assert copy(3) == 9
    assert copy(3) == 9
    assert copy(1.5) == 2.25
    assert len(asked) == 2
    assert np.array_equal(copy(np.arange(3)), np.arange(3) ** 2)


def energy(x):
    return (np.sin(x) * x).sum()


@pytest.mark.parametrize("is_called_by_a_callee", [False, True])
def test_extension_modules_with_derivatives_are_refused_as_they_are_compiled(
    tmp_path: Path, is_called_by_a_callee: bool
):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba.pycc is deprecated, and makes use of what Python deprecates
        pycc = pytest.importorskip("numba.pycc")
        slope = irad.grad(njit(energy))
        callee = njit(lambda x: slope(x))
        module = pycc.CC("shipped")
        module.output_dir = str(tmp_path)
        module.export("step", "f8[::1](f8[::1])")(
            (lambda x: callee(x)) if is_called_by_a_callee else lambda x: slope(x)
        )
        with pytest.raises(irad.IradError, match="extension module shipped cannot be built") as caught:
            module.compile()
    assert caught.value.location.file == __file__
    assert "irad.export" in caught.value.remedy
    assert not list(tmp_path.iterdir())


def test_other_extension_modules_are_made(tmp_path: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pycc = pytest.importorskip("numba.pycc")
        irad.grad(njit(energy))(np.ones(2))
        module = pycc.CC("plain")
        module.export("energy", "f8(f8[::1])")(energy)
        module._compile_object_files(str(tmp_path))


def test_functions_of_derivatives_get_the_passes_that_numba_gives_them(monkeypatch: pytest.MonkeyPatch):
    """One set of passes for all of them leaves the same code as one for each, and leaves out what is only declared."""
    ours, pairs, runs = DerivativeLibrary._optimize_functions, [], []

    def optimize_both(library: Any, module: Any) -> None:
        theirs = module.clone()
        codegen.JITCodeLibrary._optimize_functions(library, theirs)
        made_by, before = library.codegen, library.codegen._function_pass_manager
        monkeypatch.setattr(made_by, "_function_pass_manager", lambda: runs.append(1) or before())
        ours(library, module)
        monkeypatch.setattr(made_by, "_function_pass_manager", before)
        pairs.append((str(module), str(theirs)))

    monkeypatch.setattr(DerivativeLibrary, "_optimize_functions", optimize_both)
    assert irad.grad(njit(energy))(np.array([1.0, 2.0])) is not None
    assert pairs
    assert all(here == there for here, there in pairs)
    assert len(runs) == len(pairs)
