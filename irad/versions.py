"""The versions of Python and Numba that irad was tested with: the one table.

`noxfile.py` runs the tests with each, `docs/versions.md` has the results, `pyproject.toml` and the README make the
claim; `tests/test_versions.py` compares them.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

Numbers = tuple[int, ...]

PYTHON: Final[tuple[Numbers, ...]] = ((3, 11), (3, 12), (3, 13))

NUMBA: Final[dict[Numbers, Numbers]] = {
    (0, 65): (0, 47),
    (0, 66): (0, 48),
    (0, 67): (0, 49),
    (0, 68): (0, 50),
}
"""Each version of Numba with the llvmlite that belongs to it."""

NUMPY: Final[Numbers] = (1, 26)
"""The oldest NumPy."""

NUMBA_CUDA: Final[Numbers] = (0, 24)
"""The oldest numba-cuda; without it, `numba.cuda` is Numba's own."""


EXTRAS: Final = {
    "demo": ("matplotlib", "scipy"),
    "report": ("jinja2",),
    "dask": ("dask[array]", "distributed"),
    "ipopt": ("cyipopt-wheels",),
    "jax": ("jax",),
    "mpi": ("numba-mpi",),
    "pytensor": ("pytensor",),
    "torch": ("torch",),
    "fft": ("rocket-fft",),
    "cuda12": ("cupy-cuda12x", "numba-cuda[cu12]", "nvidia-cuda-nvcc-cu12"),
    "cuda13": ("cupy-cuda13x", "numba-cuda[cu13]", "nvidia-cuda-nvcc"),
}
"""The packages of the extras of `pyproject.toml` that messages say how to install."""


def install(what: str) -> str:
    """A command that installs the packages of an extra, or a package.

    It names the packages and not ``irad[extra]``, which pip would look for in an index where irad is not installed.
    """
    return shlex.join(["pip", "install", *EXTRAS.get(what, (what,))])


@contextmanager
def needed(what: str) -> Iterator[None]:
    """Around imports of an extra, or a package: where it is missing, the error says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        error.add_note(f"To install what irad needs here: {install(what)}")
        raise


def numbers_of(version: str) -> Numbers:
    """The leading numbers of a version: of ``0.68.1rc1`` they are 0, 68 and 1."""
    parts = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        parts.append(int(digits))
        if digits != part:
            break
    return tuple(parts)


def span_of(versions: Collection[Numbers]) -> str:
    """The oldest and the newest: ``0.65 to 0.68``."""
    return f"{spelled(min(versions))} to {spelled(max(versions))}"


def spelled(version: Numbers) -> str:
    """Text of a version: ``0.65``."""
    return ".".join(map(str, version))


def untested(numba: str, python: str) -> tuple[str, ...]:
    """Those of two versions that irad was not tested with, by name; patch releases do not matter."""
    found = []
    if numbers_of(numba)[:2] not in NUMBA:
        found.append(f"Numba {numba}")
    if numbers_of(python)[:2] not in PYTHON:
        found.append(f"Python {python}")
    return tuple(found)


def tested() -> str:
    """Versions that irad was tested with, in words."""
    return f"Numba {span_of(NUMBA)} and Python {span_of(PYTHON)}"
