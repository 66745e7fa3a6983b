"""NVIDIA's tools on this machine: the places of libdevice and ptxas.

Looked for in this order: the directory that the environment names (``CUDA_HOME``, ``CUDA_PATH``), NVIDIA's packages
from PyPI, a conda environment, the path, the usual place. Nothing of them is imported.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from irad.errors import BackendError
from irad.records import dataclass
from irad.versions import install

_VARIABLES: Final = ("CUDA_HOME", "CUDA_PATH")
_USUAL: Final = Path("/usr/local/cuda")
_LIBDEVICE: Final = "nvvm/libdevice/libdevice.10.bc"
_WHEELS: Final = ("cu13", "cu12", "cuda_nvcc")
"""Folders of the namespace package ``nvidia`` that look like a toolkit."""


def find_libdevice() -> Path:
    """NVIDIA's library of mathematics, LLVM bitcode.

    Raises:
        BackendError: it is not there; says what to install.
    """
    for root in _roots():
        if (found := root / _LIBDEVICE).is_file():
            return found
    raise _missing("libdevice, NVIDIA's library of mathematical functions,", "nvidia-nvvm")


def find_tool(name: str) -> Path:
    """A program of the toolkit.

    Args:
        name: ``ptxas``, ``nvdisasm``.

    Raises:
        BackendError: it is not there; says what to install.
    """
    for root in _roots():
        if os.access(found := root / "bin" / name, os.X_OK):
            return found
    if on_path := shutil.which(name):
        return Path(on_path)
    raise _missing(f"the program {name}", {"nvdisasm": "nvidia-cuda-nvdisasm"}.get(name, "nvidia-cuda-nvcc"))


def _roots() -> Iterator[Path]:
    """Directories that look like an installed toolkit."""
    yield from (Path(found) for variable in _VARIABLES if (found := os.environ.get(variable)))
    if (package := find_spec("nvidia")) is not None and package.submodule_search_locations is not None:
        for place in package.submodule_search_locations:
            yield from (Path(place) / folder for folder in _WHEELS)
    yield Path(sys.prefix)  # where conda's packages are
    yield _USUAL


def _missing(what: str, package: str) -> BackendError:
    return BackendError(
        f"{what} is not on this machine",
        f"(a) {install(package)}, or (b) install the CUDA toolkit and set CUDA_HOME to its directory",
        "only kernels that call no mathematical function can be compiled without it"
        if package == "nvidia-nvvm"
        else None,
    )


# PTX to machine code by ptxas, and what that says of registers and memory.

_ENTRY: Final = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES: Final = re.compile(
    r"Function properties for (\S+)\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_USED: Final = re.compile(r"Used (\d+) registers(.*)")
_SHARED: Final = re.compile(r"(\d+) bytes smem")
_BARRIERS: Final = re.compile(r"used (\d+) barriers")
_FAULT: Final = re.compile(r"line (\d+); (error|fatal)\s*: (.*)")


@dataclass(frozen=True, slots=True)
class Assembly:
    """A kernel as machine code.

    Attributes:
        arch: the GPU that it is for.
        entry: the kernel's name.
        cubin: the code, as the driver loads it.
        registers: of each thread, of 32 bits.
        stack: bytes of local memory of each thread, local arrays and spilled registers.
        spill_stores, spill_loads: bytes that are moved because registers are too few, as they stand in the code.
        shared: bytes of static shared memory of each block.
        barriers: number of hardware barriers used.
    """

    arch: str
    entry: str
    cubin: bytes
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int
    barriers: int


def assemble(ptx: str, arch: str, *, max_registers: int | None = None) -> Assembly:
    """Machine code of PTX that has one kernel.

    Args:
        ptx: as `compile_ptx` or Numba makes it.
        arch: the GPU, as ``sm_90``.
        max_registers: no thread gets more; the rest is spilled.

    Raises:
        BackendError: ptxas is missing, or does not take the text: the message has its line.
    """
    command = [str(find_tool("ptxas")), f"-arch={arch}", "-v"]
    if max_registers is not None:
        command.append(f"-maxrregcount={max_registers}")
    with tempfile.TemporaryDirectory(prefix="irad-") as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        done = subprocess.run([*command, str(source), "-o", str(cubin)], capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        if done.returncode:
            raise _fault(ptx, arch, said)
        return _read(said, arch, cubin.read_bytes())


def _read(said: str, arch: str, cubin: bytes) -> Assembly:
    """Reads the output of ``ptxas -v``; a function that is not inlined has its own lines and counts in the kernel's."""
    entries = _ENTRY.findall(said)
    if len(entries) != 1:
        raise BackendError(
            f"the PTX has {len(entries)} kernels, not one",
            "assemble one kernel at a time",
            "registers and memory are counted for one kernel",
        )
    [entry] = entries
    frames = {name: tuple(map(int, sizes)) for name, *sizes in _PROPERTIES.findall(said)}
    used = _USED.search(said)
    if entry not in frames or used is None:
        raise BackendError(
            "irad cannot parse the output of this version of ptxas",
            "report it with the version of ptxas",
            "the numbers of registers and bytes come from the output of ptxas",
        )
    stack, stores, loads = frames[entry]
    return Assembly(
        arch=arch,
        entry=entry,
        cubin=cubin,
        registers=int(used[1]),
        stack=stack,
        spill_stores=stores,
        spill_loads=loads,
        shared=_number(_SHARED, used[2]),
        barriers=_number(_BARRIERS, used[2]),
    )


def _number(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return int(found[1]) if found else 0


def _fault(ptx: str, arch: str, said: str) -> BackendError:
    found = _FAULT.search(said)
    if found is None:
        return BackendError(
            f"ptxas failed for {arch}: {said.strip()}",
            "correct the errors that ptxas reports",
            "ptxas is NVIDIA's assembler, which irad runs as a program",
        )
    line = int(found[1])
    text = ptx.splitlines()[line - 1].strip() if 0 < line <= ptx.count("\n") + 1 else ""
    return BackendError(
        f"ptxas rejects line {line} of the PTX for {arch}: {found[3]}",
        "(a) compile for this architecture, or (b) report it with the kernel, if irad made the PTX",
        "PTX is for an architecture and a version of the language",
        detail=text or None,
    )
