"""From a kernel to the kernel of its derivative."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm

import irad.backend.cuda
from irad.backend.cuda.kernel import KernelModule
from irad.backend.runtime.text import read
from irad.driver import Derivative, Observer, derive, locate
from irad.errors import InternalError, IradError, SignatureError
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.kernel.half import define_rounding
from irad.kernel.operations import give_bodies, restore_atomics
from irad.kernel.program import ENTRY, KERNEL, KernelProgram, forget_promises, load, promise_apart
from irad.kernel.refusals import check_communication, check_options, check_shadows, check_tape
from irad.kernel.toolchain import NVPTX
from irad.kernel.wrapper import SHADOW_ALIGNMENT, add_wrapper
from irad.options import Options
from irad.passes.mode import REVERSE_MODE, Mode
from irad.passes.request import ParameterKind, Request
from irad.records import dataclass
from irad.rules import builtin
from irad.rules.cuda import RULES as OF_KERNELS, settle
from irad.ruleset.memory_type import MemoryType
from irad.ruleset.registry import Registry

_SUPPORT = Path(irad.backend.cuda.__file__).parent


@dataclass(frozen=True, slots=True)
class KernelDerivative:
    """A kernel that runs a derivative; `irad.kernel.wrapper` says what its parameters are.

    Attributes:
        module: the kernel.
        uses_tape: whether its threads need a slice of a tape beyond their local memory.
        frame_size: bytes of local memory that a thread keeps from one sweep to the other.
        shared_copies: its dynamic shared memory as a multiple of the primal's.
        shared_beside: bytes of dynamic shared memory that it needs after these.
        derivative: the result of the engine.
    """

    module: KernelModule
    uses_tape: bool
    frame_size: int
    shared_copies: int
    shared_beside: int
    derivative: Derivative

    def dynamic_shared(self, own: int) -> int:
        """Bytes of dynamic shared memory of a launch with which the kernel itself would have ``own``."""
        copies = own * self.shared_copies
        if not self.shared_beside:
            return copies
        return -(-copies // SHADOW_ALIGNMENT) * SHADOW_ALIGNMENT + self.shared_beside


def derive_kernel(
    kernel: KernelModule,
    kinds: Sequence[ParameterKind],
    memory: Sequence[MemoryType | None],
    options: Options,
    mode: Mode = REVERSE_MODE,
    *,
    apart: bool = False,
    axes: int = 3,
    rules: Registry | None = None,
    observe: Observer | None = None,
) -> KernelDerivative:
    """Differentiates a kernel.

    Args:
        kernel: the primal.
        kinds: one for each of its LLVM parameters: a pointer of kind SHADOW comes with its shadow, a number of kind
            ACTIVE with a pointer to where its cotangent is added, or in forward mode with its tangent.
        memory: contents of each parameter's pointee, None if unknown or if it is not a pointer.
        options: options of the derivation.
        mode: reverse or forward.
        apart: whether the caller knows that no two parameters point to the same memory.
        axes: along how many axes the kernel is going to be launched, from x on.
        rules: the user's rules.
        observe: is shown each pass after it has run.

    Raises:
        IradError: the kernel cannot be differentiated; with the place in the user's source.
    """
    check_options(options)
    program = load(kernel, axes)
    if len(kinds) != len(program.parameters):
        raise SignatureError(
            f"{kernel.name} has {len(program.parameters)} parameters, and {len(kinds)} kinds were given",
            "give one for each parameter of the LLVM function",
            "a kind says how a parameter takes part in the derivative",
        )
    with check_communication(program.text, leaves_apart=program.leaves_apart and not mode.is_forward):
        derivative = derive(
            _settled(program.text, kinds if apart else (), mode),
            _request(program, kinds, memory, options, mode, axes),
            built_in_rules() if rules is None else rules.overlaid_on(built_in_rules()),
            check=options.verify,
            observe=observe,
            canonical_loops=NVPTX.canonical_loops,
        )
    check_tape(derivative)
    check_shadows(derivative, parse_module(program.text).functions[ENTRY], kinds)
    module = parse_module(derivative.text)
    forget_promises(module)
    name = f"{kernel.name}.{mode.functions[-1].name}"
    beside = add_wrapper(module, name, program, kinds, mode, derivative, axes)
    restore_atomics(module)
    give_bodies(module)
    define_rounding(module)
    linked = _linked(print_module(module), name, program.apart)
    has_dynamic = any(each.is_dynamic for each in program.shared)
    return KernelDerivative(
        KernelModule(linked, name, kernel.fastmath, kernel.contract),
        "@irad.thread_alloc" in derivative.text or "@irad.tape_alloc" in derivative.text,
        derivative.frame_size,
        1 + mode.width if has_dynamic else 1,
        beside,
        derivative,
    )


def _request(
    program: KernelProgram,
    kinds: Sequence[ParameterKind],
    memory: Sequence[MemoryType | None],
    options: Options,
    mode: Mode,
    axes: int,
) -> Request:
    shared = [each.memory for each in program.shared]
    beside = [ParameterKind.SHADOW if each is None or each.floats() else ParameterKind.CONST for each in shared]
    first = 1 + len(kinds)
    return Request(
        entry=ENTRY,
        # In front the place of a result, which kernels do not have; at the end the size of dynamic shared memory.
        kinds=(ParameterKind.CONST, *kinds, *beside, ParameterKind.CONST),
        memory=(None, *memory, *shared, None),
        host=KERNEL,
        mode=mode,
        plan=options.plan,
        strict=options.strict,
        zero_wins=options.zero_times_infinity == "zero",
        no_zero_wins=options.zero_times_infinity == "nan",
        watches=options.debug,
        meters=options.measure_tape and not mode.is_forward,
        axes=axes,
        unneeded=frozenset(range(first, first + len(shared))),
    )


def _settled(text: str, apart: Sequence[ParameterKind], mode: Mode) -> str:
    """The text with a promise at each pointer that has a shadow, and without rules that do not hold in the mode."""
    module = parse_module(text)
    params = zip(module.functions[ENTRY].params[1:], apart, strict=False)
    promise_apart(param for param, kind in params if kind is ParameterKind.SHADOW)
    try:
        settle(module, is_forward=mode.is_forward)
    except IradError as error:
        locate(error, module, KERNEL)
        raise
    return print_module(module)


def _linked(text: str, name: str, apart: str) -> str:
    """The module with the run-time support and the functions of rules; only the kernel is visible."""
    try:
        module = llvm.parse_assembly(text)
        for each in (_support(), *([apart] if apart else [])):
            module.link_in(llvm.parse_assembly(each))
        for value in (*module.functions, *module.global_variables):
            if not value.is_declaration and value.name != name and not value.name.startswith("llvm."):
                value.linkage = "internal"
        pipeline = llvm.create_new_module_pass_manager()
        pipeline.add_global_dead_code_eliminate_pass()
        pipeline.add_strip_dead_prototype_pass()
        pipeline.run(module, NVPTX.scalar_pass_builder())
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM does not accept what irad generated: {error}") from error
    return str(module)


@cache
def _support() -> str:
    return read(_SUPPORT, "tape", "warps").text()


@cache
def built_in_rules() -> Registry:
    """The rules for what kernels do, before those for all programs."""
    return Registry.of(*OF_KERNELS).overlaid_on(builtin.registry())
