"""Libraries for C: what they compute, in C, C++, Fortran and a Python without Numba, and what cannot be exported."""

from __future__ import annotations

import ctypes.util
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit, prange, typed, types

import irad
from irad.errors import BackendError, IradError, SignatureError

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import functions  # noqa: E402

GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="no C compiler")
LAPACK = next((each for each in ("-lopenblas", "-llapack") if ctypes.util.find_library(each[2:])), None)
SPRING = "(float64[::1], float64)"


def run(*command: object, **options: Any) -> str:
    """Runs a command; returns what it printed."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@njit
def spring(x: Any, k: float) -> float:
    if k < 0:
        raise ValueError("k must not be negative")
    return 0.5 * k * np.sum((x[1:] - x[:-1]) ** 2)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shared library of a function and its gradient."""
    if GCC is None:
        pytest.skip("no linker")
    folder = tmp_path_factory.mktemp("shared")
    given = {"spring": (spring, SPRING), "spring_slope": (irad.grad(spring), SPRING)}
    return irad.export(given, path=folder / "libspring.so", cpu="x86-64" if platform.machine() == "x86_64" else "host")


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A static library of all functions of `functions`."""
    if GCC is None or LAPACK is None:
        pytest.skip("no linker, or no LAPACK")
    folder = tmp_path_factory.mktemp("everything")
    return irad.export(functions.EXPORTED, path=folder / "libmodel.a", cpu="host")


def _linked(library: Path, compiler: str, source: Path, *options: str) -> str:
    program = library.with_name("program")
    blas = (LAPACK or "", *(("-lblas",) if LAPACK == "-llapack" else ()))
    libraries = (library, *blas, "-lpthread", "-lm")
    run(compiler, *options, "-Wall", "-Werror", f"-I{library.parent}", source, "-o", program, *libraries)
    return run(program, env={"ASAN_OPTIONS": "detect_leaks=1", "OPENBLAS_NUM_THREADS": "1"})


@needs_gcc
def test_a_c_program_under_the_address_sanitiser(everything: Path) -> None:
    printed = _linked(everything, "gcc", HERE / "program.c", "-std=c11", "-g", "-fsanitize=address")
    drawn = [float.fromhex(line) for line in printed.split()]
    assert drawn == functions.drawn(7, 5).tolist()


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_a_cpp_program(everything: Path, tmp_path: Path) -> None:
    source = tmp_path / "program.cpp"
    source.write_text((HERE / "program.c").read_text())
    assert len(_linked(everything, "g++", source, "-std=c++17").split()) == 5


def _of_the_guide(language: str) -> str:
    """The program in C or Fortran on the page of the documentation."""
    text = (HERE.parents[1] / "docs" / "use_with" / "c_and_fortran.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)
    return str(found)


@pytest.mark.parametrize(
    ("compiler", "language", "suffix", "printed"),
    [
        ("gcc", "c", "c", r"-2 -2 4 \n1 ValueError: k must not be negative \(test_export.py:\d+ in spring\)\n"),
        ("gfortran", "fortran", "f90", r" -2.00 -2.00  4.00\n"),
    ],
    ids=("C", "Fortran"),
)
def test_the_programs_of_the_guide(
    compiler: str, language: str, suffix: str, printed: str, shared: Path, tmp_path: Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    source, program = tmp_path / f"program.{suffix}", tmp_path / "program"
    source.write_text(_of_the_guide(language))
    flags = (f"-I{shared.parent}", f"-L{shared.parent}", "-lspring", f"-Wl,-rpath,{shared.parent}")
    run(compiler, "-Wall", "-Werror", source, "-o", program, *flags, cwd=tmp_path)
    assert re.fullmatch(printed, run(program))


WITHOUT_NUMBA = """
import ctypes, sys
class Array(ctypes.Structure):
    _fields_ = [("data", ctypes.POINTER(ctypes.c_double)), ("shape", ctypes.c_int64 * 1)]
library = ctypes.CDLL(sys.argv[1])
library.spring_message.restype = ctypes.c_char_p
x = (ctypes.c_double * 3)(0.0, 1.0, 3.0)
given, slope, value = Array(x, (3,)), Array(), ctypes.c_double()
assert library.spring(ctypes.byref(given), ctypes.c_double(2.0), ctypes.byref(value)) == 0
assert library.spring_slope(ctypes.byref(given), ctypes.c_double(2.0), ctypes.byref(slope)) == 0
print(value.value, slope.shape[0], *slope.data[:3])
library.spring_free(slope.data)
assert library.spring(ctypes.byref(given), ctypes.c_double(-2.0), ctypes.byref(value)) == 11
assert b"ValueError: k must not be negative (test_export.py:" in library.spring_message()
assert "numba" not in sys.modules and "numpy" not in sys.modules
"""


def test_a_python_without_numba(shared: Path) -> None:
    printed = run(sys.executable, "-S", "-I", "-c", WITHOUT_NUMBA, shared)
    assert printed.split() == ["5.0", "3", "-2.0", "-2.0", "4.0"]


def test_what_the_library_needs_is_in_the_c_library(shared: Path) -> None:
    needed = run("nm", "-D", "--undefined-only", shared)
    assert not [line for line in needed.splitlines() if any(word in line for word in ("NRT", "numba", "Py", "irad"))]
    defined = [line.split()[-1] for line in run("nm", "-D", "--defined-only", shared).splitlines()]
    assert sorted(defined) == ["spring", "spring_free", "spring_message", "spring_slope"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names of registers of x86")
def test_the_processor_is_the_one_that_was_named(shared: Path, tmp_path: Path) -> None:
    def assembly(path: Path) -> str:
        return run("objdump", "-d", "--no-show-raw-insn", path)

    assert not re.findall("[yz]mm", assembly(shared))
    newer = irad.export(irad.grad(spring), SPRING, tmp_path / "newer.o", cpu="x86-64-v3", name="slope")
    assert set(re.findall("[yz]mm", assembly(newer))) == {"ymm"}
    with pytest.raises(BackendError, match="LLVM does not know the processor 'x86-64-v9'"):
        irad.export(spring, SPRING, tmp_path / "wrong.o", cpu="x86-64-v9")


@needs_gcc
def test_object_files_link_side_by_side_and_the_header_is_where_it_was_wanted(tmp_path: Path) -> None:
    first = irad.export(spring, SPRING, tmp_path / "one.o", header=tmp_path / "first.h")
    second = irad.export(lambda x: x * x, "(float64,)", tmp_path / "two.o", name="square")
    source = tmp_path / "main.c"
    source.write_text(
        '#include "first.h"\n#include "two.h"\n'
        "int main(void) { double x[2] = {1, 3}, y, z; irad_f64_1d a = {x, {2}};\n"
        "return spring(&a, 2.0, &y) || square(y, &z) || z != 16.0; }\n"
    )
    run("gcc", source, first, second, "-o", tmp_path / "main", "-lm", "-lpthread")
    run(tmp_path / "main")


class Array(ctypes.Structure):
    """An array of one axis as C sees it."""

    _fields_ = [("data", ctypes.c_void_p), ("shape", ctypes.c_int64 * 1)]


class Matrix(ctypes.Structure):
    """An array of two axes as C sees it."""

    _fields_ = [("data", ctypes.c_void_p), ("shape", ctypes.c_int64 * 2)]


def passed(x: np.ndarray[Any, Any]) -> Any:
    """An array as an exported function takes it."""
    return ctypes.byref((Array if x.ndim == 1 else Matrix)(x.ctypes.data, x.shape))


@pytest.fixture(scope="module")
def algebra(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library of linear algebra, loaded."""
    if GCC is None or LAPACK is None:
        pytest.skip("no linker, or no LAPACK")
    return ctypes.CDLL(str(irad.export(functions.ALGEBRA, path=tmp_path_factory.mktemp("algebra") / "libalgebra.so")))


@pytest.mark.parametrize("letter", "sdcz")
def test_linear_algebra_gives_what_numpy_gives(letter: str, algebra: Any) -> None:
    random = np.random.default_rng(3)
    dtype = np.dtype(str(functions.TYPES[letter]))
    a, b = random.normal(size=(5, 3)), random.normal(size=5)
    if dtype.kind == "c":
        a, b = a + 1j * random.normal(size=a.shape), b + 1j * random.normal(size=5)
    a, b, found = a.astype(dtype), b.astype(dtype), Array()
    expected = functions.algebra.py_func(a, b)
    assert getattr(algebra, f"algebra_{letter}")(passed(a), passed(b), ctypes.byref(found)) == 0
    result = np.array((ctypes.c_double * 14).from_address(found.data))
    algebra.algebra_free(ctypes.c_void_p(found.data))
    single = dtype.itemsize == (8 if dtype.kind == "c" else 4)
    np.testing.assert_allclose(result, expected, rtol=2e-4 if single else 1e-9)


def test_mathematics_of_numbas_own_library(algebra: Any) -> None:
    square, value = np.random.default_rng(1).normal(size=(4, 4)), ctypes.c_double()
    assert algebra.real_eigenvalues(passed(square), ctypes.byref(value)) == 0
    assert value.value == pytest.approx(functions.real_eigenvalues.py_func(square), rel=1e-12)
    for x, n in ((0.3, 5), (2.5, -3), (1.0, 0)):
        assert algebra.special(ctypes.c_double(x), ctypes.c_int64(n), ctypes.byref(value)) == 0
        assert value.value == functions.special(x, n)


# ------------------------------------------------------------------------------------------------ refusals


@njit
def printing(x: float) -> float:
    print("x is", x)
    return x


@njit(parallel=True)
def in_threads(x: Any) -> float:
    total = 0.0
    for i in prange(len(x)):
        total += x[i]
    return total


@njit
def with_dictionary(x: float) -> float:
    found = typed.Dict.empty(types.int64, types.float64)
    found[1] = x
    return found[1]


LARGE = np.arange(200_000.0)


@njit
def indexed(i: int) -> float:
    return LARGE[i]


@njit
def returns_text(x: float) -> str:
    return "text"


@pytest.mark.parametrize(
    ("function", "signature", "words"),
    [
        (printing, "(float64,)", ("Python", "test_export.py", "print(")),
        (in_threads, "(float64[::1],)", ("parallel loop", "numba_parallel_for", "test_export.py", "parallel=True")),
        (with_dictionary, "(float64,)", ("numba.typed.Dict", "test_export.py", "arrays and tuples")),
        (returns_text, "(float64,)", ("the result of returns_text", "unicode_type")),
        (spring, "(float64[::1],", ("signature", "is not one of Numba")),
        (spring, (types.ListType(types.float64), types.float64), ("parameter 0 of spring", "ListType")),
        (spring, "(unicode_type, float64)", ("parameter 0 of spring",)),
        (spring, "(float64, float64)", ("Numba cannot compile spring", "test_export.py", "(x[1:] - x[:-1])")),
        (indexed, "(int64,)", ("indexed cannot be exported", "address of this process", "large array")),
    ],
)
def test_what_needs_python_or_has_no_type_in_c_is_refused(
    function: Any, signature: Any, words: tuple[str, ...], tmp_path: Path
) -> None:
    with pytest.raises(IradError) as caught:
        irad.export(function, signature, tmp_path / "refused.o")
    assert [word for word in words if word not in str(caught.value)] == []
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "path", "options", "problem"),
    [
        ((spring, SPRING), "model.dll", {}, "a library cannot be written to"),
        ((spring, SPRING), "lib.so", {}, "a library cannot be written to"),
        ((spring, SPRING), "libmodel.so", {"name": "two words"}, "not a name"),
        (({"spring": spring},), "model.o", {}, "not given as a function and its signature"),
        (({"model_free": (spring, SPRING)},), "model.o", {}, "every library model has"),
        (({"spring": (spring, SPRING)}, SPRING), "model.o", {}, "together with a dictionary"),
        ((lambda x: x, "(float64,)"), "model.o", {}, "not a name"),
        (({"index": (spring, SPRING)},), "model.o", {}, "the name of a function of the C library"),
        ((spring, "float32(float64[::1], float64)"), "model.o", {}, "returns float64, not float32"),
        ((np.sin, "(float64,)"), "model.o", {"name": "sine"}, "sine is of the type ufunc"),
    ],
)
def test_a_call_that_cannot_be_meant_is_refused(
    given: tuple[Any, ...], path: str, options: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(SignatureError, match=problem):
        irad.export(*given, path=tmp_path / path, **options)
