"""Limits of GPUs, needs of kernels, and the check that a launch fits.

The driver says only that there are too few resources; here a launch that cannot fit is an error that says of what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Final

from irad.backend.cuda.kernel import DYNAMIC_SHARED, KernelModule
from irad.errors import BackendError, SignatureError
from irad.ir import types
from irad.ir.module import Function, Module
from irad.records import dataclass

# The GPUs that code is made for: what LLVM has to know about each.

OLDEST_ISA: Final = 80
"""PTX 8.0, which every driver since CUDA 12.0 reads; older ones run no Numba that irad knows."""

_FIRST_ISA: Final = {
    "sm_75": 63,
    "sm_80": 70,
    "sm_86": 71,
    "sm_87": 74,
    "sm_89": 78,
    "sm_90": 78,
    "sm_90a": 80,
    "sm_100": 86,
    "sm_100a": 86,
    "sm_120": 87,
    "sm_120a": 87,
}
"""The first version of the PTX language with each architecture, times ten."""


def target_of(arch: str) -> tuple[str, int]:
    """Target that LLVM is asked for: an architecture, and the version of the PTX language, times ten, as old as can be.

    A GPU newer than all that irad knows runs the code of the newest one before it.

    Args:
        arch: as ``sm_90``.

    Raises:
        BackendError: it is none, or too old.
    """
    digits = arch.removeprefix("sm_")
    if arch not in _FIRST_ISA and digits.isdecimal():
        older = [each for each in _FIRST_ISA if _number(each).isdecimal() and int(_number(each)) < int(digits)]
        arch = max(older, key=lambda each: int(_number(each)), default=arch)
    if arch not in _FIRST_ISA:
        raise BackendError(
            f"irad does not compile for {arch!r}",
            f"name one of {', '.join(_FIRST_ISA)}, or a newer one",
            "architectures have the names that ptxas uses, and older ones lack atomic additions of float64",
        )
    return arch, max(OLDEST_ISA, _FIRST_ISA[arch])


def _number(arch: str) -> str:
    return arch.removeprefix("sm_")


STATIC_SHARED: Final = 48 * 1024
"""Bytes of shared memory that a kernel may declare on any GPU; more has to be dynamic, and asked for."""
SMALL_PARAMETERS: Final = 4352
"""Bytes of parameters that ptxas takes in every version of PTX; from 8.1 on it takes those of `DeviceLimits`."""
_WARP: Final = 32
_REGISTER_UNIT: Final = 8  # a thread gets a multiple of it
_WARP_UNIT: Final = 4  # registers are allocated for four warps at a time
# the hardware addresses no more for a thread
_MOST_REGISTERS: Final = 255
_PROMISES: Final = ('"nvvm.maxnreg"', '"nvvm.maxntid"', '"nvvm.minctasm"', '"nvvm.maxclusterrank"')


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """Resources that a launch may ask for.

    Attributes:
        name: name of the GPU or its architecture.
        shared: bytes of shared memory of a block, static and dynamic together.
        registers: of a block, of 32 bits.
        threads: threads of a block.
        block, grid: along x, y and z.
        constant: bytes of constant memory of a kernel.
        parameters: bytes of its parameters.
    """

    name: str
    shared: int
    registers: int = 64 * 1024
    threads: int = 1024
    block: tuple[int, int, int] = (1024, 1024, 64)
    grid: tuple[int, int, int] = ((1 << 31) - 1, 65535, 65535)
    constant: int = 64 * 1024
    parameters: int = 32764

    def threads_with(self, registers: int) -> int:
        """Most threads of a block, in whole warps, if each needs a number of registers."""
        unit = _WARP_UNIT * _WARP
        each = -(-max(registers, 1) // _REGISTER_UNIT) * _REGISTER_UNIT
        return min(self.threads, self.registers // (each * unit) * unit)


def _limits(arch: str, kibibytes: int) -> DeviceLimits:
    return DeviceLimits(arch, kibibytes * 1024)


LIMITS: Final[Mapping[str, DeviceLimits]] = MappingProxyType(
    {
        each.name: each
        for each in (
            _limits("sm_75", 64),
            _limits("sm_80", 163),
            _limits("sm_86", 99),
            _limits("sm_87", 163),
            _limits("sm_89", 99),
            _limits("sm_90", 227),
            _limits("sm_100", 227),
            _limits("sm_120", 99),
        )
    }
)
"""By architecture: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"."""
LARGEST: Final = DeviceLimits("any GPU", max(each.shared for each in LIMITS.values()))
"""Limits that no GPU exceeds."""


def limits_of(arch: str) -> DeviceLimits:
    """Those of an architecture.

    Raises:
        BackendError: irad does not compile for it.
    """
    target, _ = target_of(arch)
    return LIMITS[target.removesuffix("a")]


@dataclass(frozen=True, slots=True)
class Needs:
    """Resources that a kernel needs of a GPU.

    Attributes:
        static_shared: bytes of shared memory that it declares.
        constant: bytes of its constant arrays.
        parameters: bytes.
        registers: of a thread; 0 if they are not known.
        threads: the most of a block that it was compiled for; None if nothing was promised.
    """

    static_shared: int
    constant: int = 0
    parameters: int = 0
    registers: int = 0
    threads: int | None = None


def needs_of(module: Module, name: str) -> Needs:
    """Needs of a kernel that its text shows."""
    shared = constant = 0
    for symbol, variable in module.globals.items():
        if "addrspace(3)" in variable.prefix and symbol != DYNAMIC_SHARED:
            shared = _after(shared, variable.suffix) + types.size_of(variable.value_type)
        elif "addrspace(4)" in variable.prefix:
            constant = _after(constant, variable.suffix) + types.size_of(variable.value_type)
    function = module.functions[name]
    bytes_ = parameter_bytes([param.type for param in function.params])
    bound = next((word for word in promises_of(module, function) if word.startswith('"nvvm.maxntid"')), None)
    promised = None if bound is None else prod(int(each) for each in bound.split('"')[3].split(","))
    return Needs(shared, constant, bytes_, threads=promised)


def promises_of(module: Module, function: Function) -> tuple[str, ...]:
    """LLVM attributes for `launch_bounds` and `max_registers` of a kernel."""
    groups = [module.attribute_groups.get(word, (word,)) for word in function.attributes]
    return tuple(word for group in groups for word in group if word.startswith(_PROMISES))


def _after(size: int, words: Sequence[str]) -> int:
    align = next((int(word.split()[1]) for word in words if word.startswith("align ")), 8)
    return -(-size // align) * align


def parameter_bytes(parameters: Sequence[types.Type]) -> int:
    """Bytes of the parameters of a kernel, each aligned as its type is."""
    near = [types.PTR if isinstance(each, types.PointerType) else each for each in parameters]
    return types.size_of(types.struct_type(near)) if near else 0


def check_launch(
    name: str,
    limits: DeviceLimits,
    needs: Needs,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    dynamic_shared: int,
) -> None:
    """Refuses a launch that a GPU would refuse.

    Raises:
        SignatureError: it needs more than there is.
    """
    for problem, remedy, reason in _problems(limits, needs, grid, block, dynamic_shared):
        raise SignatureError(
            f"{name} cannot be launched with grid {grid}, block {block}: {problem}", remedy, f"{limits.name} {reason}"
        )


def _problems(
    limits: DeviceLimits,
    needs: Needs,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    dynamic_shared: int,
) -> Iterator[tuple[str, str, str]]:
    """Problem, remedy and reason for each limit that a launch exceeds."""
    threads = prod(block)
    if min(*grid, *block) < 1:
        yield "it has no threads", "give at least one block and one thread", "runs blocks of threads"
    if threads > limits.threads:
        most = f"at most {limits.threads} threads a block"
        yield f"{threads} threads in a block", f"launch blocks of {most}", f"takes {most}"
    for what, sizes, most_each in (("block", block, limits.block), ("grid", grid, limits.grid)):
        if any(size > most for size, most in zip(sizes, most_each, strict=True)):
            yield f"the {what} is too long along an axis", "use another axis as well", f"takes a {what} of {most_each}"
    if needs.threads is not None and threads > needs.threads:
        yield (
            f"it was compiled for blocks of at most {needs.threads} threads",
            "launch smaller blocks, or change launch_bounds of cuda.jit",
            "keeps what launch_bounds promised",
        )
    if dynamic_shared < 0:
        yield f"{dynamic_shared} bytes of dynamic shared memory", "pass 0 or more", "has no negative memory"
    if needs.static_shared > STATIC_SHARED:
        yield (
            f"its shared arrays have {needs.static_shared} bytes",
            "(a) make them smaller or (b) use dynamic shared memory, cuda.shared.array(0, …)",
            f"takes {STATIC_SHARED} bytes of shared arrays of a fixed size",
        )
    if needs.static_shared + dynamic_shared > limits.shared:
        yield (
            f"it needs {needs.static_shared} + {dynamic_shared} bytes of shared memory, static and dynamic",
            "use smaller tiles, or fewer of them: a derivative has a shadow for each shared array of floats",
            f"has {limits.shared} bytes for a block",
        )
    fitting = limits.threads_with(needs.registers) if needs.registers else limits.threads
    if threads > fitting:
        yield (
            f"it needs {needs.registers} registers for each of {threads} threads",
            f"(a) launch blocks of at most {fitting} threads or (b) limit registers by max_registers or launch_bounds "
            "of cuda.jit, so that the rest is spilled",
            f"has {limits.registers} registers for a block",
        )
    if needs.constant > limits.constant:
        yield (
            f"its constant arrays have {needs.constant} bytes",
            "pass large tables as arguments",
            f"has {limits.constant} bytes of constant memory",
        )
    if needs.parameters > limits.parameters:
        yield (
            f"its parameters have {needs.parameters} bytes",
            "pass fewer arrays, or one array for several",
            f"takes {limits.parameters} bytes of parameters",
        )


def bounds_of_launch(module: KernelModule, threads: int, limits: DeviceLimits = LARGEST) -> int | None:
    """For how many threads of a block a kernel has to be compiled; None where any number of registers fits.

    A kernel for which the user has promised something is compiled as that says.
    """
    unit = _WARP_UNIT * _WARP
    rounded = min(-(-threads // unit) * unit, limits.threads)
    if rounded <= limits.threads_with(_MOST_REGISTERS) or '"nvvm.max' in module.text:
        return None
    return rounded
