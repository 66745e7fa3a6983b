"""Requests: the entry function, its active parameters, and the contents of its memory."""

from __future__ import annotations

from irad.ir.types import FunctionType
from irad.passes.convention import HostConvention
from irad.passes.mode import REVERSE_MODE, Mode
from irad.passes.variant import ParameterKind
from irad.records import dataclass
from irad.ruleset.memory_type import MemoryType

__all__ = ["CalleeRequest", "LoopArray", "MemoryType", "ParameterKind", "Request", "Signature"]


@dataclass(frozen=True, slots=True)
class CalleeRequest:
    """Callers' expectation of a derivative: the type of the primal, and that its result is active or has a shadow."""

    function_type: FunctionType
    result_active: bool
    result_has_shadow: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """Memory that the pointer parameters of a function point to, by its types; those not named may point anywhere."""

    symbol: str
    memory: tuple[tuple[str, MemoryType], ...]


@dataclass(frozen=True, slots=True)
class LoopArray:
    """An argument of a parallel loop's kernel: an array, or a scalar in memory.

    Attributes:
        memory: its contents, None if unknown.
        size: bytes of an element.
        axes: for each axis the positions of its extent and of its stride in the kernel's vectors.
    """

    memory: MemoryType | None
    size: int
    axes: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One derivative to make.

    Attributes:
        entry: symbol of the primal in the program text.
        kinds: one for each LLVM parameter of the entry (return pointer and exception pointer included).
        memory: for each LLVM parameter what its pointee holds, None where unknown or no pointer.
        host: the convention of the host that compiled the program.
        mode: the functions that are wanted.
        plan: "default", or "save_all", the oracle: everything saved, all memory active, nothing assumed.
        arguments_may_change: the caller may overwrite the arguments' memory between the sweeps (`vjp`).
        stays: parameters whose memory the caller nevertheless leaves as it is.
        strict: adjoint sums keep the order of the primal (no `reassoc`).
        callee: the derivative is called by others, as one of their callees; None for what the front end calls.
        kernels: symbol and arguments of the kernel of each parallel loop.
        workspace: constant parameters in whose memory active values may still be stored: it has a shadow then.
        unneeded: parameters whose memory's primal content the caller does not need afterwards.
        ruled: symbols of functions whose derivative comes from outside, and what their parameters point to.
        restores: derivatives from outside may put back, in the reverse, what their functions overwrote.
        signatures: those of functions that the entry may call.
        has_types: the program was typed: integers that calls return are numbers, never the bits of floats.
        watches: floating-point operations are checked while they run (`irad.passes.instrument.watch`).
        meters: the bytes of the tape are counted (`irad.passes.instrument.meter`).
        is_primal: the derivative is going to be differentiated itself, as a part of another program.
        zero_wins: a zero partial derivative makes zero of an infinite cotangent.
        no_zero_wins: nor does a zero cotangent make zero of an infinite partial derivative: arithmetic decides.
        shows_zeros: a cotangent that is zero because a partial derivative is, of something that varies, does not win
            over an infinity: it is made as small as a number can be, so that where such zeros matter the result is
            infinite or NaN. The derivative is of use for nothing else.
        is_linear: the program is to be transposed: what is not linear in the active inputs is refused.
        vector_math: whoever makes code of the derivative may use other functions for vectors than for numbers.
        checks_bounds: the program checks its indices, and so do the functions that its pointers point to.
        speculates: the caller looks for NaN in all results and, where there is one, asks again without this; otherwise
            zeros have to be strong.
        axes: of a kernel, along how many axes it is launched; along the others there is one thread of one block.
    """

    entry: str
    kinds: tuple[ParameterKind, ...]
    memory: tuple[MemoryType | None, ...]
    host: HostConvention
    mode: Mode = REVERSE_MODE
    plan: str = "default"
    arguments_may_change: bool = False
    stays: frozenset[int] = frozenset()
    strict: bool = False
    callee: CalleeRequest | None = None
    kernels: tuple[tuple[str, tuple[LoopArray, ...]], ...] = ()
    workspace: frozenset[int] = frozenset()
    unneeded: frozenset[int] = frozenset()
    ruled: tuple[tuple[str, tuple[MemoryType | None, ...]], ...] = ()
    restores: bool = False
    signatures: tuple[Signature, ...] = ()
    has_types: bool = False
    watches: bool = False
    meters: bool = False
    checks_bounds: bool = False
    zero_wins: bool = False
    no_zero_wins: bool = False
    shows_zeros: bool = False
    is_linear: bool = False
    vector_math: bool = False
    is_primal: bool = False
    speculates: bool = False
    axes: int = 3
