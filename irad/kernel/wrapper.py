"""The kernel that runs a derivative: it has the shared memory and the shadows of it, and a slice of the tape.

    ptx_kernel void @k.reverse(primal parameters…, shadows…, cotangents of numbers…,
                               ptr tape, i64 slice, ptr report, i32 dynamic)

Input   the module of a derivative, the program it was made of.
Output  the kernel, added to the module.
Method  the threads of a block clear the shadows of shared arrays together and wait; then each runs the sweeps, with its
        frame in local memory. What a thread finds out about its tape goes to the report (i64s, cleared before): the
        most bytes that a thread wanted, until something did not fit, and whether that happened; where the tape is
        metered, after these for each place the units that all threads asked for. In debug mode the last word is the
        number of the watched call, and the tape's head says which block and thread it is of. The tape has a slice, of
        whole words, for each thread of each warp. Cotangents of numbers are added up over all threads. Where threads
        of a block leave apart, they wait between the sweeps (`leaving`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

from irad.backend.cuda.kernel import DYNAMIC_SHARED
from irad.backend.cuda.limits import STATIC_SHARED
from irad.driver import Derivative
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Alloca
from irad.ir.module import Function, Module
from irad.ir.types import I32, I64, PTR, VOID, Type, function_type
from irad.ir.values import ConstantNull, GlobalVariable, Parameter, Undef, Value, const_int, zero
from irad.kernel.leaving import meet_anywhere, wait_for_others
from irad.kernel.program import KernelProgram
from irad.kernel.refusals import check_shared
from irad.kernel.shared_memory import SPACE, SharedArray
from irad.passes.mode import AUGMENTED, REVERSE, TANGENT, Mode
from irad.passes.request import ParameterKind
from irad.passes.runtime import sum_function
from irad.records import dataclass
from irad.rules.cuda import BLOCK_BARRIER
from irad.runtime_layouts import ARENA, REPORT, THREAD_TAPE, WARP, WORD

CONVENTION: Final = "ptx_kernel"
TRAILING: Final = (("tape", PTR), ("slice", I64), ("report", PTR), ("dynamic", I32))
BLOCK_NUMBER: Final = ARENA.size
THREAD_NUMBER: Final = ARENA.size + 8
"""In debug mode, where in the tape's head they are."""
_FRAME_ALIGNMENT: Final = 64
SHADOW_ALIGNMENT: Final = 16
"""Alignment of shadows after the dynamic shared arrays, in bytes."""
REPORT_WORDS: Final = REPORT.size // WORD
_TAPE: Final = types.struct_type([{"ptr": PTR, "i32": I32}[kind] for kind in THREAD_TAPE.types])
_CONVERGENT: Final = ("convergent", "nounwind")


def add_wrapper(
    module: Module,
    name: str,
    program: KernelProgram,
    kinds: Sequence[ParameterKind],
    mode: Mode,
    derivative: Derivative,
    axes: int,
) -> int:
    """Adds the kernel to the derivative's module.

    Args:
        module: module of the derivative.
        name: symbol of the kernel.
        program: that the derivative was made of.
        kinds: one for each parameter of the primal kernel.
        mode: mode of the derivative.
        derivative: see there.
        axes: along how many the kernel is launched.

    Returns:
        How many bytes of dynamic shared memory a block needs after the copies of that of the kernel.

    Raises:
        UnsupportedError: no GPU has so much shared memory.
    """
    wrapper = _Wrapper(module, name, program, tuple(kinds), mode, derivative, axes)
    check_shared(program.shared, wrapper.shadowed, mode.width)
    wrapper.emit()
    return wrapper.shared_beside


def report_words(derivative: Derivative) -> int:
    """Number of words of the report of a launch."""
    return REPORT_WORDS + len(derivative.tape) + (derivative.table is not None)


def bytes_beside(arrays: Sequence[SharedArray], shadowed: Sequence[SharedArray], width: int) -> int:
    """Bytes of shadows of shared arrays that a kernel cannot declare, since there is too much already."""
    own, beside = (
        sum(_aligned(types.size_of(a.type)) for a in each if not a.is_dynamic) for each in (arrays, shadowed)
    )
    return width * beside if own + width * beside > STATIC_SHARED else 0


def _aligned(size: int) -> int:
    return -(-size // SHADOW_ALIGNMENT) * SHADOW_ALIGNMENT


@dataclass(eq=False, slots=True)
class _Wrapper:
    module: Module
    name: str
    program: KernelProgram
    kinds: tuple[ParameterKind, ...]
    mode: Mode
    derivative: Derivative
    axes: int
    function: Function = field(init=False)
    build: Builder = field(init=False)
    primal: list[Parameter] = field(init=False)
    beside: list[list[Parameter]] = field(init=False)
    trailing: dict[str, Parameter] = field(init=False)

    def __post_init__(self) -> None:
        given = [param.type for param in self.program.parameters]
        beside = self.beside_types()
        width = self.mode.width
        all_types = [*given, *beside * width, *(type_ for _, type_ in TRAILING)]
        self.function = self.module.define(self.name, function_type(VOID, all_types))
        self.function.convention, self.function.attributes = CONVENTION, self.program.promises
        params = self.function.params
        self.primal = params[: len(given)]
        for param, source in zip(self.primal, self.program.parameters, strict=True):
            param.name = source.name
        rest = params[len(given) : len(params) - len(TRAILING)]
        self.beside = [rest[lane * len(beside) : (lane + 1) * len(beside)] for lane in range(width)]
        self.trailing = {}
        for (label, _), param in zip(TRAILING, params[-len(TRAILING) :], strict=True):
            param.name = label
            self.trailing[label] = param
        self.build = Builder(self.function.add_block("entry"))

    def beside_types(self) -> list[Type]:
        """For each shadow its pointer; for each active number where its cotangent is added, or its tangent."""
        active = [p.type for p, kind in zip(self.program.parameters, self.kinds, strict=True) if kind is _ACTIVE]
        shadows = [PTR for kind in self.kinds if kind is ParameterKind.SHADOW]
        return [*shadows, *(active if self.mode.is_forward else [PTR] * len(active))]

    def emit(self) -> None:
        arrays = [self.array(each) for each in self.program.shared]
        twins = [[self.shadow(each, lane) for each in self.program.shared] for lane in range(self.mode.width)]
        # A thread may add to elements of a shadow that another one clears.
        if any(twin is not None for lane in twins for twin in lane):
            self.wait()
        frame, tape = self.frame(), self.tape()
        flat: list[Value] = [ConstantNull(PTR), *self.primal, *arrays, self.trailing["dynamic"]]
        given = [*flat, *(twin for lane in range(self.mode.width) for twin in self.shadows(lane, twins[lane]))]
        symbols = self.derivative.symbols
        if self.mode.is_forward:
            tangents = [value for lane in self.beside for value in lane[self.shadow_count :]]
            self.build.call(self.module.functions[symbols[TANGENT]], [frame, tape, *given, *tangents])
            self.report(tape)
        else:
            status = self.build.call(self.module.functions[symbols[AUGMENTED]], [frame, tape, *given])
            self.report(tape)
            self.leave_if(self.build.icmp("ne", status, const_int(I32, 0)))
            # Threads that leave at different barriers would otherwise meet threads that are still in the other sweep.
            if self.program.leaves_apart:
                for each in (AUGMENTED, REVERSE):
                    meet_anywhere(self.module.functions[symbols[each]])
                self.build = wait_for_others(self.build)
            outs = [[self.slot(p.type) for p in self.active_parameters()] for _ in self.beside]
            self.build.call(
                self.module.functions[symbols[REVERSE]], [frame, tape, *(out for lane in outs for out in lane)]
            )
            for lane, mine in zip(self.beside, outs, strict=True):
                for place, out in zip(lane[self.shadow_count :], mine, strict=True):
                    total = self.build.load(out.allocated_type, out)
                    self.build.call(sum_function(self.module, out.allocated_type), [place, total])
        self.build.ret()

    # -------------------------------------------------------------------------------------------- arguments

    @property
    def shadow_count(self) -> int:
        """Number of parameters with a shadow."""
        return sum(kind is ParameterKind.SHADOW for kind in self.kinds)

    def active_parameters(self) -> list[Parameter]:
        """The numbers among the parameters that are active."""
        return [p for p, kind in zip(self.program.parameters, self.kinds, strict=True) if kind is _ACTIVE]

    def shadows(self, lane: int, shared: Sequence[Value | None]) -> list[Value]:
        """The shadows that the derivative's functions take, in one direction; null where there is none."""
        own = iter(self.beside[lane])
        of_kernel = [next(own) if kind is ParameterKind.SHADOW else None for kind in self.kinds]
        found: list[Value | None] = [None, *of_kernel, *shared]
        types_ = [PTR, *(param.type for param in self.primal), *(SPACE for _ in shared)]
        return [found[i] or zero(types_[i]) for i in self.derivative.shadows]

    def slot(self, type_: Type) -> Alloca:
        """A number on the stack, zero at first."""
        slot = self.build.alloca(type_)
        self.build.store(zero(type_), slot)
        return slot

    # -------------------------------------------------------------------------------------------- shared memory

    def array(self, array: SharedArray) -> Value:
        """A shared array of the kernel, as a variable again."""
        return self.variable(array.name, array)

    def variable(self, name: str, array: SharedArray) -> GlobalVariable:
        words = ("external",) if array.is_dynamic else ("internal",)
        made = GlobalVariable(
            SPACE, name, value_type=array.type, prefix=(*words, "addrspace(3)"), suffix=(array.align,)
        )
        # Shared memory has no initial values: LLVM accepts no other initialiser here.
        made.initializer = None if array.is_dynamic else Undef(array.type)
        self.module.globals[name] = made
        return made

    def shadow(self, array: SharedArray, lane: int) -> Value | None:
        """The shadow of a shared array, cleared; None where it has none.

        That of the dynamic array lies after the array. Others are variables; where all variables together would be
        more than a kernel may declare, they lie after the dynamic arrays.
        """
        if array not in self.shadowed:
            return None
        if array.is_dynamic:
            size = self.dynamic_bytes
            base: Value = self.build.byte_offset(self.dynamic, self.build.mul(size, const_int(I64, lane + 1)))
        elif self.shared_beside:
            size = const_int(I64, types.size_of(array.type))
            base = self.build.byte_offset(self.dynamic, self.start_beside(array, lane))
        else:
            base = self.variable(f"{array.name}.shadow{lane or ''}", array)
            size = const_int(I64, types.size_of(array.type))
        self.clear(base, size)
        return base

    @property
    def shadowed(self) -> list[SharedArray]:
        """The shared arrays that have shadows."""
        first = 1 + len(self.primal)
        return [each for i, each in enumerate(self.program.shared, first) if i in self.derivative.shadows]

    @property
    def shared_beside(self) -> int:
        """Bytes of shadows that are not variables, in all directions."""
        return bytes_beside(self.program.shared, self.shadowed, self.mode.width)

    @property
    def dynamic(self) -> GlobalVariable:
        """Dynamic shared memory."""
        known = self.module.globals.get(DYNAMIC_SHARED)
        return known or self.variable(
            DYNAMIC_SHARED, SharedArray(DYNAMIC_SHARED, types.array_type(0, types.I8), "align 16")
        )

    @property
    def dynamic_bytes(self) -> Value:
        """Size of the kernel's own dynamic shared array."""
        return self.build.zext(self.trailing["dynamic"], I64)

    def start_beside(self, array: SharedArray, lane: int) -> Value:
        """Start of a shadow that is not a variable."""
        each = [_aligned(types.size_of(other.type)) for other in self.shadowed if not other.is_dynamic]
        position = [other for other in self.shadowed if not other.is_dynamic].index(array)
        copies = 1 + self.mode.width if any(other.is_dynamic for other in self.program.shared) else 1
        build = self.build
        before = build.mul(self.dynamic_bytes, const_int(I64, copies))
        start = build.and_(build.add(before, const_int(I64, SHADOW_ALIGNMENT - 1)), const_int(I64, -SHADOW_ALIGNMENT))
        return build.add(start, const_int(I64, lane * sum(each) + sum(each[:position])))

    def clear(self, base: Value, size: Value) -> None:
        """Emits the loop in which the threads of a block clear memory, by bytes where its size is not a multiple."""
        build = self.build
        thread, threads = self.linear("tid", "ntid")
        unit = _word_of(size)
        count = build.udiv(size, const_int(I64, types.size_of(unit)))
        start = build.block
        head, body, done = (self.function.add_block(f"clear.{part}") for part in ("head", "body", "done"))
        build.br(head)
        build = Builder(head)
        index = build.phi(I64, [(thread, start)])
        build.cond_br(build.icmp("ult", index, count), body, done)
        build = Builder(body)
        build.store(zero(unit), build.gep(unit, base, [index]))
        index.add_incoming(build.add(index, threads), body)
        build.br(head)
        self.build = Builder(done)

    def linear(self, index: str, extent: str) -> tuple[Value, Value]:
        """The number of a thread in its block, or of a block in its grid, and how many there are."""
        build = self.build
        number: Value = const_int(I64, 0)
        count: Value = const_int(I64, 1)
        for axis in "xyz"[: self.axes]:
            number = build.add(number, build.mul(self.special(f"{index}.{axis}"), count))
            count = build.mul(count, self.special(f"{extent}.{axis}"))
        return number, count

    def special(self, register: str) -> Value:
        """A special register, as i64."""
        name = f"llvm.nvvm.read.ptx.sreg.{register}"
        return self.build.zext(self.build.call(self.module.declare(name, function_type(I32, [])), []), I64)

    def wait(self) -> None:
        """Emits a barrier of the block."""
        barrier = self.module.declare(BLOCK_BARRIER, function_type(VOID, [I32]), _CONVERGENT)
        self.build.call(barrier, [const_int(I32, 0)])

    # -------------------------------------------------------------------------------------------- tape

    def frame(self) -> Value:
        """Frame that lives from one sweep to the other."""
        size = max(self.derivative.frame_size, 1)
        return Builder.at_start(self.function.entry).alloca(types.array_type(size, types.I8), align=_FRAME_ALIGNMENT)

    def tape(self) -> Value:
        """The thread's slice of the tape, which has slices for whole warps."""
        tape = Builder.at_start(self.function.entry).alloca(self.head_type, align=8)
        thread, threads = self.linear("tid", "ntid")
        block, _ = self.linear("ctaid", "nctaid")
        build = self.build
        number = build.add(build.mul(block, threads), thread)
        slice_ = self.trailing["slice"]
        # The slices of a warp are interleaved word by word: what its threads save together is adjacent in memory.
        warp = build.and_(number, const_int(I64, -WARP))
        lane = build.shl(build.and_(number, const_int(I64, WARP - 1)), const_int(I64, 3))
        start = build.byte_offset(build.byte_offset(self.trailing["tape"], build.mul(warp, slice_)), lane)
        end = build.byte_offset(start, build.mul(slice_, const_int(I64, WARP)))
        fields = {
            "top": start,
            "end": end,
            "start": start,
            "report": self.trailing["report"],
            "failed": const_int(I32, 0),
        }
        for name, value in fields.items():
            build.store(value, build.byte_offset(tape, THREAD_TAPE.offset(name)))
        if self.derivative.tape:
            units = build.byte_offset(self.trailing["report"], 8 * REPORT_WORDS)
            build.store(units, build.byte_offset(tape, ARENA.offset("meter")))
        if self.derivative.table is not None:
            last = report_words(self.derivative) - 1
            call = build.load(I64, build.byte_offset(self.trailing["report"], 8 * last))
            build.store(call, build.byte_offset(tape, ARENA.offset("watched_call")))
            build.store(ConstantNull(PTR), build.byte_offset(tape, ARENA.offset("activation")))
            build.store(block, build.byte_offset(tape, BLOCK_NUMBER))
            build.store(thread, build.byte_offset(tape, THREAD_NUMBER))
        return tape

    @property
    def head_type(self) -> Type:
        """Type of the tape's head, with the fields of arenas where something is counted or watched."""
        is_plain = not self.derivative.tape and self.derivative.table is None
        return _TAPE if is_plain else types.array_type(ARENA.size + 16, types.I8)

    def report(self, tape: Value) -> None:
        """Says how many bytes of its tape the thread has; where something does not fit, the allocation says so."""
        report = self.module.declare("irad.thread_report", function_type(VOID, [PTR, I64, I64]), ("nounwind",))
        self.build.call(report, [tape, const_int(I64, 0), const_int(I64, 0)])

    def leave_if(self, failed: Value) -> None:
        """Ends the thread."""
        stop, rest = self.function.add_block("stop"), self.function.add_block("run")
        self.build.cond_br(failed, stop, rest)
        Builder(stop).ret()
        self.build = Builder(rest)


_ACTIVE: Final = ParameterKind.ACTIVE


def _word_of(size: Value) -> Type:
    """In what steps memory of a size can be cleared: the launch gives dynamic arrays a multiple of eight bytes."""
    known = getattr(size, "value", 8)
    return next(unit for unit in (I64, I32, types.I8) if known % types.size_of(unit) == 0)
