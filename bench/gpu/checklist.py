"""``scripts/gpu``: what to run on a machine with a GPU, in this order; what fails is reported, and the rest goes on.

Each step is a process of its own: after an illegal access no kernel runs any more in a process. The steps share a limit
of time, and what they find is written after each: a machine that is lent may be taken away in the middle.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import click

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("numba", "numba-cuda", "llvmlite", "numpy", "cupy-cuda12x", "cupy-cuda13x", "nvidia-cuda-nvcc")
SECONDS: Final = 480.0
"""For all steps together."""
NO_GPU: Final = 77
"""Status of a step that has nothing to do here."""


@dataclass(frozen=True)
class Step:
    """One process.

    Attributes:
        name: for the report.
        command: arguments of the interpreter; an empty one means that a program it needs is not installed.
        limit: seconds; less where less is left for all of them.
    """

    name: str
    command: tuple[str, ...]
    limit: float = 120.0


@dataclass(frozen=True)
class Outcome:
    """Outcome of a step: "done", "failed" or "skipped"; ``output`` is the end of what it printed."""

    name: str
    result: str
    seconds: float
    output: str


def steps() -> tuple[Step, ...]:
    """All of them."""
    own, python = (sys.executable, "-m", "bench.gpu.checklist", "--only"), sys.executable
    tests = (python, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider")
    sanitizer = shutil.which("compute-sanitizer")
    small = (python, "-m", "bench.gpu", "--small", "--rounds", "1")
    checks = [
        Step(
            f"compute-sanitizer {tool}",
            (sanitizer, "--tool", tool, "--error-exitcode", "1", *small) if sanitizer else (),
        )
        for tool in ("memcheck", "racecheck")
    ]
    return (
        Step("versions", (*own, "versions"), 30.0),
        Step("PTX that was made without a GPU", (*own, "ptx"), 60.0),
        Step("limits of the hardware", (*tests, "tests/cuda/host/test_hardware.py")),
        Step("arrays and streams of Numba", (*own, "numba")),
        Step("arrays and streams of CuPy", (*own, "cupy")),
        Step("tests", (*tests, "tests/cuda/host/test_on_gpu.py", "tests/cuda/host/test_gpu.py"), 240.0),
        *checks,
        Step("timings", (python, "-m", "bench.gpu")),
    )


def run_steps(todo: Sequence[Step], say: Callable[[str], None], seconds: float = SECONDS) -> Iterator[Outcome]:
    """Runs one step after the other, whatever becomes of them, until the time is up."""
    end = time.monotonic() + seconds
    for step in todo:
        say(f"== {step.name}")
        outcome = run_step(step, end - time.monotonic())
        say(outcome.output)
        say(f"== {step.name}: {outcome.result}, {outcome.seconds:.0f} s\n")
        yield outcome


def run_step(step: Step, left: float) -> Outcome:
    """Runs one, for as long as it may take and as there is time left, in seconds."""
    if not step.command:
        return Outcome(step.name, "skipped", 0.0, "the program is not installed")
    if left <= 0.0:
        return Outcome(step.name, "skipped", 0.0, "the time was up")
    begin = time.monotonic()
    try:
        done = subprocess.run(
            step.command,
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=min(step.limit, left),
        )
        result = {0: "done", NO_GPU: "skipped"}.get(done.returncode, f"failed (status {done.returncode})")
        output = done.stdout
    except subprocess.TimeoutExpired as error:
        result, output = "failed (out of time)", (error.stdout or b"").decode(errors="replace")
    except OSError as error:
        result, output = "failed", str(error)
    return Outcome(step.name, result, time.monotonic() - begin, output[-20_000:].rstrip())


# ------------------------------------------------------------------------------------------------ the steps


def show_versions() -> None:
    """The machine's, the driver's and the packages'."""
    print(platform.platform(), "Python", platform.python_version())
    for name in PACKAGES:
        try:
            print(name, metadata.version(name))
        except metadata.PackageNotFoundError:
            print(name, "is not installed")
    query = ("nvidia-smi", "--query-gpu=name,driver_version,memory.total,compute_cap", "--format=csv")
    subprocess.run(query, check=True)


def launch_ptx() -> None:
    """A kernel in LLVM text through LLVM to PTX, and through the driver to the GPU; Numba has no part in it."""
    import ctypes

    import numpy as np

    from irad.backend.cuda.ptx import compile_ptx
    from irad.cuda.devices.gpu import gpu

    card = gpu().driver
    x = np.arange(64.0)
    place = card.allocate(x.nbytes)
    card.upload(place, x.tobytes(), 0)
    function = card.load(compile_ptx(doubling_kernel(), card.architecture).encode() + b"\0", "double_all")
    card.launch(function, (2, 1, 1, 32, 1, 1), 0, 0, [ctypes.c_uint64(place)])
    found = np.frombuffer(card.download(place, x.nbytes, 0))
    np.testing.assert_array_equal(found, 2.0 * x)
    print(f"{card.architecture}: 64 numbers doubled")


def doubling_kernel() -> Any:
    """x[i] *= 2, as text."""
    from irad.backend.cuda.kernel import KernelModule

    registers = "\n".join(f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}.x()" for name in ("tid", "ntid", "ctaid"))
    body = "\n".join(f"  %{name} = call i32 @llvm.nvvm.read.ptx.sreg.{name}.x()" for name in ("tid", "ntid", "ctaid"))
    text = f"""target triple = "nvptx64-nvidia-cuda"
{registers}
define ptx_kernel void @double_all(ptr %x) {{
{body}
  %before = mul i32 %ctaid, %ntid
  %i = add i32 %before, %tid
  %at = getelementptr double, ptr %x, i32 %i
  %old = load double, ptr %at
  %new = fmul double %old, 2.0
  store double %new, ptr %at
  ret void
}}
"""
    return KernelModule(text, "double_all")


def check_numba_arrays() -> None:
    """Derivatives on Numba's arrays, on the default stream and on another one, against those of the executor."""
    from numba import cuda

    stream = cuda.stream()
    compare(cuda.to_device, lambda array: array.copy_to_host(), (0, stream))


def check_cupy_arrays() -> None:
    """Derivatives on CuPy's arrays, on the default stream and on another one, against those of the executor."""
    try:
        import cupy
    except ImportError:
        print("CuPy is not installed")
        sys.exit(NO_GPU)
    compare(cupy.asarray, cupy.asnumpy, (0, cupy.cuda.Stream(non_blocking=True)))


def compare(place: Any, fetch: Any, streams: Sequence[Any]) -> None:
    """Each case's derivative where `place` brings arrays, against that of the executor."""
    import numpy as np

    import irad.cuda
    from bench.gpu.cases import CASES
    from bench.gpu.derivative import arrays_of, reverse

    for case in CASES:
        expected = arrays_of(case, case.small, np.copy)
        with irad.cuda.executor():
            reverse(case, case.launch(case.small), expected)
        for stream in streams:
            arrays = arrays_of(case, case.small, place)
            reverse(case, (*case.launch(case.small), stream), arrays)
            if hasattr(stream, "synchronize"):
                stream.synchronize()
            for name in (*(f"d{each}" for each in case.active), case.output):
                np.testing.assert_allclose(fetch(arrays[name]), expected[name], rtol=1e-9, atol=1e-9)
        print(f"{case.name}: agrees on {len(streams)} streams")


OWN: Final[dict[str, Callable[[], None]]] = {
    "versions": show_versions,
    "ptx": launch_ptx,
    "numba": check_numba_arrays,
    "cupy": check_cupy_arrays,
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", type=click.Choice(list(OWN)), help="One step, in this process.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Result file.")
@click.option("--seconds", default=SECONDS, show_default=True, type=float, help="For all steps together.")
def main(only: str | None, output: Path | None, seconds: float) -> None:
    """Run everything that needs a GPU; the status is 1 if a step has failed."""
    if only is not None:
        OWN[only]()
        return
    path = output or ROOT / "bench" / "results" / f"checklist-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for outcome in run_steps(steps(), click.echo, seconds):
        outcomes.append(outcome)
        path.write_text(json.dumps([asdict(each) for each in outcomes], indent=2) + "\n")
    for outcome in outcomes:
        click.echo(f"{outcome.name:40} {outcome.result}")
    click.echo(f"written to {path}")
    sys.exit(any(outcome.result.startswith("failed") for outcome in outcomes))


if __name__ == "__main__":
    main()
