"""The tests with every version of Python and Numba that irad supports: `nox` runs them all, docs/versions.md says more.

    nox --list
    nox                                             # everything, with what is installed of the Pythons
    nox -s "tests(python='3.12', numba='0.66')" -- tests/programs -k stencil
    nox -s edges                                    # the oldest and the newest Numba, some of the tests
    nox -s numba_cuda                               # kernels, with the oldest and the newest package numba-cuda
    nox -s bridges                                  # PyTorch and others, with which the bridges are tested
    nox -s types                                    # what mypy and Pyright infer, with these packages
    nox -s mutants -- --sample 50 --seed 1          # what the tests of passes/ do not notice
    nox -s next                                     # a release of Numba to come, where the index has one

Arguments after `--` go to pytest. A Python that is not installed is reported, and fails the run with
`--error-on-missing-interpreters`.
"""

from __future__ import annotations

import importlib.metadata
import runpy
from pathlib import Path

import nox

TABLE = runpy.run_path(str(Path(__file__).parent / "irad" / "versions.py"))  # not imported: nox has no Numba
SPELLED = TABLE["spelled"]
PYTHON = tuple(map(SPELLED, TABLE["PYTHON"]))
NUMBA = tuple(map(SPELLED, TABLE["NUMBA"]))
OLDEST_NUMPY = SPELLED(TABLE["NUMPY"])

SOME = (  # what depends most on how Numba lowers and how LLVM prints
    "tests/frontend/test_contiguous_views.py",
    "tests/frontend/test_fixups.py",
    "tests/frontend/test_numba_cpu.py",
    "tests/frontend/test_numba_patches.py",
    "tests/frontend/test_numba_private.py",
    "tests/frontend/test_vectors.py",
    "tests/backend/test_compat.py",
    "tests/backend/test_optimise.py",
    "tests/programs/test_structures.py",
    "tests/programs/test_linear_algebra.py",
    "tests/programs/test_indexing.py",
    "tests/programs/test_in_place.py",
    "tests/programs/test_random_draws.py",
    "tests/programs/test_recursion.py",
)

BRIDGES = (
    "torch==2.13.*",
    "jax==0.10.*",
    "pymc==5.28.*",  # holds Numba at 0.65
    "nutpie==0.16.*",
    "dask[array]==2026.8.*",
    "distributed==2026.8.*",
    "joblib",
    "cyipopt-wheels==1.7.0.dev0",
    "numba-mpi==1.3.*",
    "mpich==4.*",  # brings mpiexec
    "rocket-fft",
)
WITH_PARTNERS = (
    "tests/interop",
    "tests/mpi",
    "tests/nn/test_spectra.py",
    "tests/programs/test_fourier.py",
    "tests/robustness/test_processes.py",
    "tests/docs/test_guides.py",
    "tests/docs/test_docstrings.py",
    "-k",
    "(interop or mpi or spectra or fourier or use_with or joblib) and not scipy",
)

nox.options.sessions = ["tests"]


@nox.session
@nox.parametrize("python", PYTHON)
@nox.parametrize("numba", NUMBA)
def tests(session: nox.Session, numba: str) -> None:
    """The tests with one version of Python and one of Numba, and the newest NumPy that both permit."""
    _run(session, [f"numba=={numba}.*"], session.posargs)


@nox.session
@nox.parametrize("numba", [NUMBA[0], NUMBA[-1]])
def edges(session: nox.Session, numba: str) -> None:
    """Some tests with the oldest and the newest Numba; with the oldest also the oldest NumPy.

    With the Numba that is installed beside nox `scripts/test` runs all tests.
    """
    if numba == _installed_numba() and not session.posargs:
        session.skip(f"Numba {numba} is in this environment: scripts/test runs all tests with it")
    versions = [f"numba=={numba}.*"]
    if numba == NUMBA[0]:
        versions.append(f"numpy=={OLDEST_NUMPY}.*")
    _run(session, versions, session.posargs or SOME)


@nox.session
@nox.parametrize("package", ["0.24", None])
def numba_cuda(session: nox.Session, package: str | None) -> None:
    """Kernels on the CPU, with the newest package numba-cuda, and with the oldest beside the oldest Numba."""
    oldest = [f"numba-cuda=={package}.*", f"numba=={NUMBA[0]}.*", "numpy<2.3"]
    versions = oldest if package else ["numba-cuda", f"numba=={NUMBA[-1]}.*"]
    _run(session, versions, session.posargs or ("tests/cuda/front", "tests/cuda/host"))


@nox.session
def bridges(session: nox.Session) -> None:
    """The bridges to PyTorch and others, each with its partner, whose extras the other sessions do not install."""
    session.install("--editable", ".", "pytest", "pytest-xdist", "scipy", *BRIDGES)
    session.run("python", "-c", _SAY, silent=False)
    session.run("python", "-m", "pytest", "-n", "auto", "--maxprocesses", "8", *(session.posargs or WITH_PARTNERS))


@nox.session
def types(session: nox.Session) -> None:
    """Types that mypy and Pyright infer of derivatives, bridges and examples."""
    session.install("--editable", ".", "pytest", "mypy", "pyright[nodejs]", "scipy", "scipy-stubs", *BRIDGES)
    session.run("python", "-m", "pytest", *(session.posargs or ("tests/typing",)))


@nox.session
def mutants(session: nox.Session) -> None:
    """Small changes of passes/ that its tests do not notice: a sample, after `--` its size and seed."""
    session.install("--editable", ".[test]")
    session.run("python", "scripts/mutants.py", *session.posargs)


@nox.session(name="next")
def next_release(session: nox.Session) -> None:
    """The tests with a release of Numba that irad was not tested with, where the index has one; docs/new_numba.md."""
    numba, llvmlite = (_newest(session, package) for package in ("numba", "llvmlite"))
    if TABLE["numbers_of"](numba)[:2] in TABLE["NUMBA"]:
        session.skip(
            f"the index has no release of Numba to come: the newest, pre-releases included, is {numba}, "
            f"that of llvmlite {llvmlite}; irad was tested with Numba {TABLE['span_of'](TABLE['NUMBA'])}"
        )
    session.log(f"Numba {numba}; the newest llvmlite is {llvmlite}")
    _run(session, [f"numba=={numba}"], session.posargs)  # it names its llvmlite, a pre-release if need be


def _installed_numba() -> str | None:
    """The Numba of the environment that nox runs in, spelled as in the table."""
    try:
        return str(SPELLED(TABLE["numbers_of"](importlib.metadata.version("numba"))[:2]))
    except importlib.metadata.PackageNotFoundError:
        return None


def _newest(session: nox.Session, package: str) -> str:
    """The newest version of a package in the index, pre-releases included."""
    listed = str(session.run("python", "-m", "pip", "index", "versions", "--pre", package, silent=True))
    versions = next(line for line in listed.splitlines() if line.startswith("Available versions:"))
    return versions.partition(":")[2].split(",")[0].strip()


def _run(session: nox.Session, versions: list[str], arguments: list[str] | tuple[str, ...]) -> None:
    """Installs irad with its tests' dependencies and these versions, says which there are, and runs pytest."""
    session.install("--editable", ".[test]", *versions)
    session.run("python", "-c", _SAY, silent=False)
    session.run("python", "-m", "pytest", "-n", "auto", "--maxprocesses", "8", "--dist", "worksteal", *arguments)


_SAY = """
import importlib.metadata, platform
INSTALLED = {found.name for found in importlib.metadata.distributions()}
print("Python", platform.python_version(), *(f"{name} {importlib.metadata.version(name)}"
      for name in ("numba", "llvmlite", "numpy", "scipy", "numba-cuda", "cuda-bindings", "torch", "jax", "pymc", "dask",
                   "joblib", "cyipopt-wheels", "numba-mpi", "mpich")
      if name in INSTALLED),
      sep=" | ", flush=True)
"""
