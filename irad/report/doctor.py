"""The machine and the installation, as far as they matter to irad: what is there, what is missing, how to get it.

Nothing here takes a package for granted: what cannot be imported is a fact like any other.
"""

from __future__ import annotations

import ctypes
import enum
import importlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import irad
from irad import versions
from irad.backend.cuda.toolkit import find_libdevice, find_tool
from irad.errors import BackendError
from irad.options import Options
from irad.versions import NUMBA_CUDA, install, numbers_of, spelled

# What is found, and how it is looked for.


class State(enum.Enum):
    """Meaning of a fact for irad."""

    GOOD = "ok"
    NOTE = "note"
    MISSING = "missing"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that was looked at.

    Attributes:
        group: its group.
        what: its name.
        value: the finding.
        state: `State.MISSING` for something that irad does not need, `State.BROKEN` for something that it does.
        remedy: instructions to install or repair it; for a note its meaning.
    """

    group: str
    what: str
    value: str
    state: State = State.GOOD
    remedy: str = ""


def imported(name: str) -> tuple[Any, str]:
    """A module, or None and why it cannot be imported."""
    try:
        found: ModuleType | None = importlib.import_module(name)
    except (
        Exception
    ) as error:  # of packages that look for libraries as they are imported: whatever it is, it is the finding
        return None, str(error)
    return found, ""


def loads(library: str) -> bool:
    """True if a shared library is found."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def version_of(distribution: str) -> str | None:
    """The version of an installed distribution, None where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


# What of CUDA is on this machine, what it is for, and how to get what is missing.

GROUP: Final = "CUDA"
_CUPY: Final = ("cupy", "cupy-cuda12x", "cupy-cuda13x")
_EXTRA: Final = f"{install('cuda13')}, or with drivers older than 580 {install('cuda12')}"
_ON_THE_CPU: Final = "kernels and their derivatives run on the CPU, inside irad.cuda.executor()"


def cuda_facts() -> Iterator[Fact]:
    """The driver, the packages, the parts of the toolkit that irad calls; without a driver none of it is missing."""
    has_driver = loads("libcuda.so.1")
    if has_driver:
        yield Fact(GROUP, "driver", _driver_and_devices())
    else:
        yield Fact(GROUP, "driver", "none (no libcuda.so.1)", State.NOTE, f"{_ON_THE_CPU}; for a GPU: {_EXTRA}")
    yield _numba_cuda()
    cupy = ", ".join(f"{name} {version}" for name in _CUPY if (version := version_of(name)) is not None)
    for what, value, purpose in (
        ("CuPy", cupy, "arrays on the GPU, if you use its own"),
        ("libdevice", _found(find_libdevice), "mathematical functions in kernels on a GPU"),
        ("ptxas", _found(lambda: find_tool("ptxas")), "`irad inspect` counts registers with it"),
    ):
        if value:
            yield Fact(GROUP, what, value)
        elif has_driver:
            yield Fact(GROUP, what, "not found", State.MISSING, f"{purpose}: {_EXTRA}")
        else:
            yield Fact(GROUP, what, "not found", State.NOTE)


def _numba_cuda() -> Fact:
    """The package that `numba.cuda` comes from, if it can be imported."""
    version = version_of("numba-cuda")
    name = f"numba-cuda {version}" if version else "Numba's own"
    module, failure = imported("numba.cuda")
    if module is None:
        return Fact(GROUP, "numba.cuda", f"{name}: {failure}", State.MISSING, f"kernels are written with it: {_EXTRA}")
    if version and numbers_of(version) < NUMBA_CUDA:
        needed = spelled(NUMBA_CUDA)
        remedy = install(f"numba-cuda>={needed}")
        return Fact(GROUP, "numba.cuda", f"{name}, older than {needed}", State.MISSING, remedy)
    return Fact(GROUP, "numba.cuda", name)


def _found(find: Callable[[], Path]) -> str:
    """Place of a part of the toolkit; empty where it is missing."""
    try:
        return str(find())
    except BackendError:
        return ""


def _driver_and_devices() -> str:
    """Version and devices, as the driver itself says."""
    driver = ctypes.CDLL("libcuda.so.1")
    version, devices = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    text = f"for CUDA {version.value // 1000}.{version.value % 1000 // 10}"
    status = driver.cuInit(0)
    if status:
        return f"{text}, no device can be used (cuInit gives {status})"
    driver.cuDeviceGetCount(ctypes.byref(devices))
    return f"{text}, {devices.value} devices{_device_names()}"


def _device_names() -> str:
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    query = [program, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)
    return f": {'; '.join(done.stdout.strip().splitlines())}" if done.returncode == 0 else ""


# The facts, group by group.

SUPPORTED: Final = (
    "Linux on x86-64 is supported and tested. Other systems on which Numba compiles to little-endian code may work; "
    "the self-test shows whether it works. Windows is not supported."
)
_REQUIRED: Final = {
    "numba": min(versions.NUMBA),
    "llvmlite": min(versions.NUMBA.values()),
    "numpy": versions.NUMPY,
    "click": (8, 1),
    "rich": (13, 0),
}
_OPTIONAL: Final = {
    "scipy": "np.linalg, np.dot and @ in compiled code take their BLAS and LAPACK from it",
    "jinja2": "`irad inspect --html` writes its page with it",
    "matplotlib": "`irad demo` plots with it",
    "rocket-fft": "adds np.fft to compiled code",
}
_NO_SVML: Final = f"without it, exp, sin, … in loops are computed one number at a time: {install('intel-cmplr-lib-rt')}"
_CPU_FEATURES: Final = ("sse4.2", "avx", "avx2", "fma", "avx512f", "neon", "sve")
_LAYERS: Final = {
    "tbb": ("tbbpool", f"the layer that several Python threads may use at once: {install('tbb')}"),
    "omp": ("omppool", "apt install libgomp1"),
    "workqueue": ("workqueue", "reinstall numba, which includes this layer"),
}


def facts() -> Iterator[Fact]:
    """Everything, group by group; compiles and runs a small derivative at the end."""
    yield from _versions()
    yield from _platform()
    yield from _vector_functions()
    yield from _blas()
    yield from _threads()
    yield from cuda_facts()
    yield from _cache()
    yield _options()
    yield _self_test()


def _versions() -> Iterator[Fact]:
    group = "versions"
    yield Fact(group, "irad", irad.__version__)
    version = platform.python_version()
    yield _tested(Fact(group, "Python", f"{version} ({sys.executable})"), version, versions.PYTHON)
    for name, least in _REQUIRED.items():
        fact = _required(group, name, least)
        yield _tested(fact, version_of(name) or "", versions.NUMBA) if name == "numba" else fact
    for name, purpose in _OPTIONAL.items():
        found = version_of(name)
        if found is not None:
            yield Fact(group, name, found)
        else:
            yield Fact(group, name, "not installed", State.MISSING, f"{purpose}: {install(name)}")


def _tested(fact: Fact, version: str, tested: Collection[tuple[int, ...]]) -> Fact:
    """The fact, as a note where irad was not tested with this version."""
    if fact.state is not State.GOOD or numbers_of(version)[:2] in tested:
        return fact
    span = versions.span_of(tested)
    return replace(fact, value=f"{fact.value}, not tested", state=State.NOTE, remedy=f"irad was tested with {span}")


def _required(group: str, name: str, least: tuple[int, ...]) -> Fact:
    found, wanted = version_of(name), ".".join(map(str, least))
    module, failure = imported(name)
    remedy = install(f"{name}>={wanted}")
    if found is None or module is None:
        return Fact(group, name, failure or "not installed", State.BROKEN, remedy)
    if numbers_of(found) < least:
        return Fact(group, name, f"{found}, older than {wanted}", State.BROKEN, remedy)
    if name == "llvmlite":
        llvm = ".".join(map(str, importlib.import_module("llvmlite.binding").llvm_version_info))
        return Fact(group, name, f"{found} (LLVM {llvm})")
    return Fact(group, name, found)


def _platform() -> Iterator[Fact]:
    group = "machine"
    if sys.platform == "win32" or sys.byteorder != "little":
        yield Fact(group, "platform", platform.platform(), State.BROKEN, SUPPORTED)
    else:
        tested = sys.platform == "linux" and platform.machine() == "x86_64"
        yield Fact(group, "platform", platform.platform(), State.GOOD if tested else State.NOTE, SUPPORTED)
    llvm, _ = imported("llvmlite.binding")
    known = f" (LLVM: {llvm.get_host_cpu_name()})" if llvm else ""
    yield Fact(group, "CPU", f"{_cpu_model()}{known}, {os.cpu_count()} logical cores")
    if llvm:
        features = llvm.get_host_cpu_features()
        yield Fact(
            group, "CPU features", " ".join(name for name in _CPU_FEATURES if features.get(name)) or "none known"
        )


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("model name")]
    return models[0] if models else platform.machine()


def _vector_functions() -> Iterator[Fact]:
    group = "vector functions"
    config, _ = imported("numba.core.config")
    if config is not None and getattr(config, "USING_SVML", False):
        yield Fact(group, "SVML", "used by Numba")
    elif platform.machine() == "x86_64":
        targets, _ = imported("llvmlite.binding.targets")
        patched = targets is not None and targets.has_svml()
        value = "library not found" if patched else "this LLVM is built without it"
        yield Fact(group, "SVML", f"{value}; Numba does not use it", State.NOTE, _NO_SVML if patched else "")
    if sys.platform == "linux":
        found = loads("libmvec.so.1")
        yield Fact(group, "libmvec", "used by irad" if found else "not found")


def _blas() -> Iterator[Fact]:
    group = "BLAS"
    module, failure = imported("scipy.linalg.cython_blas")
    if module is None:
        yield Fact(
            group,
            "scipy.linalg.cython_blas",
            failure,
            State.MISSING,
            f"np.dot, @ and np.linalg do not compile without it. {install('scipy')}",
        )
        return
    yield Fact(group, "scipy.linalg.cython_blas", _built_with("scipy"))
    loaded = _loaded_libraries("blas", "mkl_rt", "blis", "accelerate")
    if loaded:
        yield Fact(group, "loaded", ", ".join(loaded))


def _built_with(package: str) -> str:
    settings = importlib.import_module(package).show_config(mode="dicts")
    blas = settings["Build Dependencies"]["blas"]
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def _loaded_libraries(*words: str) -> list[str]:
    """File names of shared libraries in this process."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    names = {Path(line.split(maxsplit=5)[5]).name for line in lines if "/" in line and ".so" in line}
    return sorted(name for name in names if name.startswith("lib") and any(word in name for word in words))


def _threads() -> Iterator[Fact]:
    group = "threads"
    config, _ = imported("numba.core.config")
    if config is None:
        return
    for layer, (module, remedy) in _LAYERS.items():
        found, failure = imported(f"numba.np.ufunc.{module}")
        if found is not None:
            yield Fact(group, f"layer {layer}", "available")
        else:
            state = State.BROKEN if layer == "workqueue" else State.MISSING
            yield Fact(group, f"layer {layer}", failure, state, remedy)
    chosen = f"{config.NUMBA_NUM_THREADS} threads, layer {config.THREADING_LAYER!r}"
    yield Fact(group, "setting", f"{chosen} (NUMBA_NUM_THREADS, NUMBA_THREADING_LAYER)")


def _cache() -> Iterator[Fact]:
    group = "cache"
    config, _ = imported("numba.core.config")
    if config is None:
        return
    folder = Path(config.CACHE_DIR or importlib.import_module("numba.misc.appdirs").user_cache_dir("numba", False))
    beside = "__pycache__ beside each source file; where that cannot be written, "
    where = f"{folder} (NUMBA_CACHE_DIR)" if config.CACHE_DIR else f"{beside}{folder}"
    yield Fact(group, "folder", where)
    yield Fact(group, "Numba (cache=True)", _size(folder, "*.nb?"))
    switch = "on for all (IRAD_CACHE=1)" if Options.from_environment().cache else "on request, with cache=True"
    yield Fact(group, "irad", f"{switch}; {_size(folder, '*.irad')}; to clear it, delete irad.*.irad")


def _size(folder: Path, pattern: str) -> str:
    files = [path for path in folder.rglob(pattern) if path.is_file()] if folder.is_dir() else []
    return f"{sum(path.stat().st_size for path in files) / 1e6:.1f} MB in {len(files)} files there"


def _options() -> Fact:
    options = Options.from_environment()
    which = options.zero_times_infinity
    more = f" zero_times_infinity={which}" if which != "cotangent" else ""
    return Fact("irad", "options", f"plan={options.plan} strict={options.strict} verify={options.verify}{more}")


def _self_test() -> Fact:
    """Result of one derivative: all that a broken installation may break takes part."""
    try:
        slope = irad.grad(_cube)(2.0)
    except Exception as error:  # whatever it is, it is the finding
        return Fact("irad", "self-test", f"{type(error).__name__}: {error}", State.BROKEN, _REINSTALL)
    if slope == 12.0:
        return Fact("irad", "self-test", "a derivative compiles and is right")
    return Fact("irad", "self-test", f"d/dx x³ at 2 is {slope}, not 12", State.BROKEN, _REINSTALL)


_REINSTALL: Final = "reinstall numba and llvmlite in matching versions; if that does not help, report it"


def _cube(x: float) -> float:
    return x * x * x
