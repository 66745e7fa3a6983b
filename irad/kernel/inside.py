"""Derivatives inside kernels: calls that stand for the derivative of a device function become code.

    %s = call i32 @irad.inside.3f….9a(ptr %ret, ptr @f, arguments of f…, shadows…, cotangents…)

Input   a kernel with such calls; what each of them asks for, by symbol (`WantedInside`).
Output  a kernel without.
Method  innermost first, so that a derivative of a derivative finds the code of that: the device function is brought
        into the normal form of the engine with all that it calls, derived, and both sweeps become one function, whose
        frame and tape are local variables. Their size must be known. All that is inlined in the end; then it is known
        which additions go to local memory, where they need not, and must not, be atomic.

The shadow of the memory that the result is returned through comes first among the shadows, which are those of one
direction after those of another; so are the addresses that cotangents are added to, or the tangents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Final

import llvmlite.binding as llvm

from irad.backend import equality
from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.local_atomics import sources
from irad.driver import Derivative, derive, locate
from irad.errors import InternalError, IradError, SourceLocation, UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import control_flow
from irad.ir.dominance import dominators
from irad.ir.instructions import (
    Alloca,
    AtomicRMW,
    Binary,
    Call,
    CallSite,
    Cast,
    CondBr,
    ICmp,
    Instruction,
    replace_uses,
)
from irad.ir.loops import Loop, loop_nest
from irad.ir.module import Block, Function, Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.trip_count import trip_count
from irad.ir.types import I1, I32, PTR
from irad.ir.values import ConstantInt, ConstantNull, Parameter, Value, const_int
from irad.ir.worklist import reachable
from irad.kernel.derive import built_in_rules
from irad.kernel.half import define_rounding
from irad.kernel.operations import call_atomics, drop_body, end_stops, give_bodies, is_part, restore_atomics
from irad.kernel.program import INSIDE, forget_promises, inlined, normalised, promise_apart
from irad.kernel.refusals import without_shadow
from irad.kernel.shared_memory import shared_arrays
from irad.kernel.toolchain import NVPTX
from irad.options import Options
from irad.passes import runtime
from irad.passes.mode import AUGMENTED, REVERSE, TANGENT, Mode
from irad.passes.request import ParameterKind, Request
from irad.records import dataclass
from irad.rules.cuda import BLOCK_BARRIER, PREDICATED_BARRIERS, WARP_BARRIER, settle
from irad.ruleset.memory_type import MemoryType

PREFIX: Final = "irad.inside."
_DERIVED: Final = "irad.derived."
_FRAME_ALIGNMENT: Final = 64
_TOGETHER: Final = (
    BLOCK_BARRIER,
    *PREDICATED_BARRIERS,
    WARP_BARRIER,
    "irad.cuda.barrier.",
    "irad.cuda.shfl.",
    "irad.cuda.vote.",
)
_MOST_LOCAL: Final = 1 << 18
"""Bytes of tape: half of what a thread can have of local memory."""


@dataclass(frozen=True, slots=True)
class WantedInside:
    """The derivative of a device function.

    Attributes:
        kinds: one for each LLVM parameter of the function, that for its result first.
        memory: memory that each of them points to, None if unknown or if it is not a pointer.
        mode: forward or reverse, with its width.
        options: options of the derivation.
        name: of the function, as the user wrote it.
        source: where it is defined.
    """

    kinds: tuple[ParameterKind, ...]
    memory: tuple[MemoryType | None, ...]
    mode: Mode
    options: Options
    name: str
    source: SourceLocation | None

    @property
    def symbol(self) -> str:
        """Name of the function that is called: the same for what is equal, in all processes."""
        parts = [each.value for each in self.kinds], self.memory, self.mode.name, self.options, self.name, self.source
        return PREFIX + hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class _Site:
    """A call, with the device function that it is a derivative of."""

    call: CallSite
    symbol: str
    primal: Function


def expand(kernel: KernelModule, wanted: Mapping[str, WantedInside]) -> KernelModule:
    """The kernel with code in place of calls that stand for derivatives.

    Args:
        kernel: with the calls, in the kernel dialect otherwise.
        wanted: requested derivatives, by the called symbol up to its last dot.

    Raises:
        IradError: a device function cannot be differentiated, or the size of a tape is not known.
    """
    if PREFIX not in kernel.text:
        return kernel
    text, number = kernel.text, 0
    while sites := list(_sites(module := parse_module(text))):
        site, number = _innermost(module, sites), number + 1
        text = _with_one(module, site, wanted[site.symbol.rpartition(".")[0]], number)
    module = inlined(parse_module(text), kernel.name)
    module = parse_module(_simplified(print_module(module)))
    _add_plainly(module)
    give_bodies(module)
    return replace(kernel, text=print_module(module))


# ---------------------------------------------------------------------------------------------------- calls


def _sites(module: Module) -> Iterator[_Site]:
    for function in module.defined_functions():
        yield from _sites_in(function)


def _sites_in(function: Function) -> Iterator[_Site]:
    for inst in function.instructions():
        if isinstance(inst, CallSite) and str(getattr(inst.callee, "name", "")).startswith(PREFIX):
            primal = inst.arguments[1]
            while isinstance(primal, Cast):  # pointers had types
                primal = primal.operands[0]
            assert isinstance(primal, Function)
            yield _Site(inst, str(inst.callee.name), primal)


def _innermost(module: Module, sites: list[_Site]) -> _Site:
    """A call of the derivative of a function that calls no derivative itself."""
    waiting = {site.call.block.function for site in sites if site.call.block is not None}
    for site in sites:
        if not waiting & _reached(site.primal):
            return site
    raise UnsupportedError(
        f"the derivative of {sites[0].primal.name} calls itself",
        "write it as a loop",
        "a derivative inside a kernel is generated once the code of its function is known",
    )


def _reached(function: Function) -> set[Function]:
    """A function with all that it calls, or passes the address of."""

    def named(caller: Function) -> Iterator[Function]:
        return (each for inst in caller.instructions() for each in inst.operands if isinstance(each, Function))

    return set(reachable([function], named))


def _with_one(module: Module, site: _Site, wanted: WantedInside, number: int) -> str:
    """The module's text with code for one derivative, wherever that is called."""
    primal = str(site.primal.name)
    derived = _derived(print_module(module), primal, wanted, number)
    name = f"{_DERIVED}{number}"
    for each in list(_sites(module)):
        if each.symbol == site.symbol and str(each.primal.name) == primal:
            arguments = [each.call.arguments[0], *each.call.arguments[2:]]
            callee = module.declare(name, types.function_type(I32, [value.type for value in arguments]))
            made = Builder.before(each.call).call(callee, arguments)
            assert isinstance(made, Call)
            made.metadata = {**made.metadata, **each.call.metadata}
            replace_uses(each.call, made)
            address = each.call.arguments[1]
            each.call.erase()
            while isinstance(address, Cast) and not address.users:
                dead, address = address, address.operands[0]
                dead.erase()
    if site.symbol in module.functions and not module.functions[site.symbol].users:
        del module.functions[site.symbol]
    for function in module.defined_functions():
        if is_part(function):  # of which the derivative has declarations
            function.prefix = ()
    return _linked(print_module(module), derived, name)


def _linked(text: str, derived: str, name: str) -> str:
    try:
        module, other = llvm.parse_assembly(text), llvm.parse_assembly(derived)
        for value in (*other.functions, *other.global_variables):
            if not value.is_declaration and value.name != name and not value.name.startswith("llvm."):
                value.linkage = "internal"
        module.link_in(other)
        module.get_function(name).linkage = "internal"
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM does not accept what irad generated: {error}") from error
    return str(module)


# ---------------------------------------------------------------------------------------------------- derivation


def _derived(text: str, primal: str, wanted: WantedInside, number: int) -> str:
    """A module that defines the derivative, as a function."""
    program = _program(text, primal, wanted)
    request = Request(
        entry=primal,
        kinds=wanted.kinds,
        memory=wanted.memory,
        host=INSIDE,
        mode=wanted.mode,
        plan=wanted.options.plan,
        strict=wanted.options.strict,
        zero_wins=wanted.options.zero_times_infinity == "zero",
        no_zero_wins=wanted.options.zero_times_infinity == "nan",
        is_primal=True,  # whoever differentiates the kernel differentiates this
    )
    try:
        _check(program, wanted)
        settle(program, is_forward=wanted.mode.is_forward)
        derivative = derive(
            print_module(program),
            request,
            built_in_rules(),
            check=wanted.options.verify,
            canonical_loops=NVPTX.canonical_loops,
        )
    except IradError as error:
        locate(error, program, INSIDE)
        error.location = error.location or wanted.source
        raise
    module = parse_module(derivative.text)
    forget_promises(module)
    end_stops(module)
    _add_sweeps(module, f"{_DERIVED}{number}", program.functions[primal], derivative, wanted)
    module = parse_module(NVPTX.canonical_loops(_simplified(_in_one(module, f"{_DERIVED}{number}"))))
    function = module.functions[f"{_DERIVED}{number}"]
    _settle_tape(module, function, wanted)
    _count_as(function, primal)
    restore_atomics(module)
    define_rounding(module)
    return print_module(module)


def _program(text: str, primal: str, wanted: WantedInside) -> Module:
    """The module of a device function in normal form."""
    module = parse_module(text)
    needed = _reached(module.functions[primal])
    for function in module.defined_functions():
        if function not in needed:
            drop_body(function)
    module.functions = {name: each for name, each in module.functions.items() if each in needed or each.users}
    # what older versions of Numba note of kernels, which may be gone; nothing refers to it any more
    module.metadata = {n: node for n, node in module.metadata.items() if not node.text.startswith("!{ptr @")}
    entry = module.functions[primal]
    entry.prefix = ()
    module = inlined(module, primal)
    for function in module.defined_functions():
        if is_part(function):
            drop_body(function)
            function.attributes = ("nounwind",)
    entry = module.functions[primal]
    if shared_arrays(module):
        raise UnsupportedError(
            f"{wanted.name} is differentiated inside a kernel, and makes a shared array",
            "make the array in the kernel, and pass it with a shadow: irad.Duplicated(array, shadow)",
            "shared memory belongs to the block, and the derivative to a thread",
            location=wanted.source,
        )
    for index, param in enumerate(entry.params):
        param.name = param.name or f"arg.{index}"
    call_atomics(module)
    made = normalised(module, primal)
    promise_apart([made.functions[primal].params[0]])
    return made


def _check(module: Module, wanted: WantedInside) -> None:
    """Refuses what threads do together: the derivative is that of one thread's function."""
    for function in module.defined_functions():
        for inst in function.instructions():
            if isinstance(inst, CallSite) and str(getattr(inst.callee, "name", "")).startswith(_TOGETHER):
                error = UnsupportedError(
                    f"{wanted.name} is differentiated inside a kernel, and its threads wait for each other or exchange "
                    "values there",
                    "(a) do that outside of the function or (b) differentiate the kernel: irad.cuda.grad(kernel)",
                    "a derivative inside a kernel is that of what one thread computes",
                )
                error.instruction = inst
                raise error


# ---------------------------------------------------------------------------------------------------- sweeps


def _add_sweeps(module: Module, name: str, primal: Function, derivative: Derivative, wanted: WantedInside) -> None:
    """Adds the function that runs the sweeps.

    Its parameters are those of the primal, then the shadows, then where cotangents are added, or the tangents.
    """
    mode, taken = wanted.mode, [param.type for param in primal.params]
    for index in derivative.shadows:
        if wanted.kinds[index] is not ParameterKind.SHADOW:
            who = f"{wanted.name} is differentiated inside a kernel, and"
            raise without_shadow(who, primal.params[index], wanted.source)
    shadowed = [index for index, kind in enumerate(wanted.kinds) if kind is ParameterKind.SHADOW]
    numbers = [taken[index] for index, kind in enumerate(wanted.kinds) if kind is ParameterKind.ACTIVE]
    beside = [*[PTR] * len(shadowed) * mode.width, *(numbers if mode.is_forward else [PTR] * len(numbers)) * mode.width]
    function = module.define(name, types.function_type(I32, [*taken, *beside]))
    build = Builder(function.add_block("entry"))
    size = max(derivative.frame_size, 1)
    frame = build.alloca(types.array_type(size, types.I8), align=_FRAME_ALIGNMENT)
    flat, rest = function.params[: len(taken)], function.params[len(taken) :]
    lanes = [rest[lane * len(shadowed) : (lane + 1) * len(shadowed)] for lane in range(mode.width)]
    last = rest[len(shadowed) * mode.width :]
    given: list[Value] = [frame, ConstantNull(PTR), *flat]
    for lane in lanes:
        own: dict[int, Parameter] = dict(zip(shadowed, lane, strict=True))
        given += [own[index] for index in derivative.shadows]
    first = module.functions[derivative.symbols[TANGENT if mode.is_forward else AUGMENTED]]
    status = build.call(first, [*given, *(last if mode.is_forward else ())])
    if mode.is_forward:
        build.ret(status)
        return
    leave, go_on = function.add_block("leave"), function.add_block("reverse")
    build.cond_br(build.icmp("sgt", status, const_int(I32, 0)), leave, go_on)
    Builder(leave).ret(status)
    build = Builder(go_on)
    build.call(module.functions[derivative.symbols[REVERSE]], [frame, ConstantNull(PTR), *last])
    build.ret(status)


def _in_one(module: Module, name: str) -> str:
    """The text with all that a function calls in that function."""
    for function in module.defined_functions():
        if function.name != name:
            function.prefix = ("internal",)
            function.attributes = tuple(dict.fromkeys((*function.attributes, "alwaysinline")))
    return print_module(module)


def _count_as(function: Function, primal: str) -> None:
    """Lets lines of a derivative count as lines of what it was made of, which the module has no more."""
    module = function.module
    assert module is not None
    named = f'linkageName: "{primal}"'
    found = [n for n, node in module.metadata.items() if node.text.startswith("!DISubprogram(") and named in node.text]
    if found:
        function.metadata = (*function.metadata, ("dbg", f"!{found[0]}"))


def _simplified(text: str) -> str:
    """The text after inlining, with constants found out and local variables as values where they can be.

    What compares equal stays apart, since the text may be differentiated (`irad.backend.equality`).
    """
    module = llvm.parse_assembly(equality.hide(text))
    pipeline = llvm.create_new_module_pass_manager()
    pipeline.add_always_inliner_pass()
    pipeline.add_sroa_pass()
    pipeline.add_instruction_combine_pass()
    pipeline.add_simplify_cfg_pass()
    pipeline.add_global_dead_code_eliminate_pass()
    pipeline.add_strip_dead_prototype_pass()
    pipeline.run(module, NVPTX.scalar_pass_builder())
    return equality.reveal(str(module))


# ---------------------------------------------------------------------------------------------------- tape

_ALLOCATES: Final = (runtime.ARENA_ALLOC, runtime.ARENA_ALLOC_PRODUCT, runtime.ARENA_SHADOW, runtime.SHADOW_ALLOC)
_ANSWERS: Final[Mapping[str, Value | None]] = {
    runtime.ARENA_FAILED: const_int(I1, 0),
    runtime.STACK_FULL: const_int(I1, 0),
    runtime.ARENA_TOP: ConstantNull(PTR),
    runtime.ARENA_REASON: None,  # the second argument
}
_NOTHING: Final = (runtime.ARENA_REWIND, runtime.ARENA_DEFER, runtime.SHADOW_FREE)


def _settle_tape(module: Module, function: Function, wanted: WantedInside) -> None:
    """Local variables in place of what is allocated from the tape.

    Raises:
        UnsupportedError: the size depends on values at run time.
    """
    found = [
        (inst, str(getattr(inst.callee, "name", ""))) for inst in function.instructions() if isinstance(inst, Call)
    ]
    runs, taken = _Runs(function), 0
    for call in [call for call, symbol in found if symbol in _ALLOCATES]:
        size, times = _size_of(call), runs.most(call)
        if size is None or times is None:
            raise _refused(module, call, wanted, None)
        taken += size * times
        if taken > _MOST_LOCAL:
            raise _refused(module, call, wanted, taken)
        _allocate_locally(function, call, size, times)
    for call, symbol in found:
        if symbol in _ANSWERS:
            answer = _ANSWERS[symbol]
            replace_uses(call, call.arguments[1] if answer is None else answer)
        if symbol in _ANSWERS or symbol in _NOTHING:
            call.erase()


class _Runs:
    """The most times that instructions run in one call of a function."""

    def __init__(self, function: Function) -> None:
        self._cfg = control_flow(function)
        self._dominators = dominators(self._cfg)
        self._loops = loop_nest(self._cfg, self._dominators)

    def most(self, inst: Instruction) -> int | None:
        """The number, None where it is not known."""
        assert inst.block is not None
        if any(self._reaches(inst.block, each) and self._reaches(each, inst.block) for each in self._loops.irreducible):
            return None
        times, loop = 1, self._loops.loop_of(inst.block)
        while loop is not None:
            count = trip_count(loop, self._cfg, self._dominators)
            known = count.emit(Builder.before(loop.preheader.terminator)) if count and loop.preheader else None
            turns = known.value + 1 if isinstance(known, ConstantInt) else self._shifts(loop)
            if turns is None:
                return None
            times, loop = times * turns, loop.parent
        return times

    def _shifts(self, loop: Loop) -> int | None:
        """The turns of a loop that ends when a number has no bits left, as that of a power with an integer exponent."""
        for block, _ in loop.exits:
            test = block.terminator.operands[0] if isinstance(block.terminator, CondBr) else None
            if not isinstance(test, ICmp) or loop.latch is None or not self._dominators.dominates(block, loop.latch):
                continue
            shifted, bound = test.operands
            ends = isinstance(bound, ConstantInt) and bound.value == 0 and test.predicate in ("eq", "ne", "ugt")
            for phi in loop.header.phis() if ends else ():
                match phi.value_from(loop.latch):
                    case Binary(opcode="lshr", operands=[of, ConstantInt(value=bits)]) as step if of is phi and bits:
                        if shifted in (phi, step):
                            return 8 * types.size_of(phi.type) + 1
        return None

    def _reaches(self, start: Block, end: Block) -> bool:
        return end in reachable([start], lambda block: self._cfg.successors[block])


def _size_of(call: Call) -> int | None:
    """The bytes that a call allocates, None where they are not known; in steps of eight."""
    sizes = [argument for argument in call.arguments if argument.type is not PTR]
    known = [size.value for size in sizes if isinstance(size, ConstantInt)]
    return -(-prod(known) // 8) * 8 if len(known) == len(sizes) else None


def _allocate_locally(function: Function, call: Call, size: int, times: int) -> None:
    """A local variable in place of memory from the tape: for a call in a loop with a place for each time it runs."""
    start = Builder.at_start(function.entry)
    place: Value = start.alloca(types.array_type(max(size * times, 1), types.I8), align=8)
    if times > 1:
        next_free = start.alloca(types.I64, align=8)
        start.store(const_int(types.I64, 0), next_free)
        build = Builder.before(call)
        offset = build.load(types.I64, next_free)
        build.store(build.add(offset, const_int(types.I64, size)), next_free)
        place = build.byte_offset(place, offset)
    replace_uses(call, place)
    call.erase()


def _refused(module: Module, call: Call, wanted: WantedInside, size: int | None) -> UnsupportedError:
    """The error of a tape that is too large, or of a size that is not known."""
    outside = "differentiate the kernel instead: irad.cuda.grad(kernel), whose tape is in the memory of the GPU"
    if size is None:
        error = UnsupportedError(
            f"the derivative of {wanted.name} inside a kernel needs a tape of a size that is not known when the kernel "
            "is compiled",
            "(a) bound the number of iterations by a constant, for i in range(20), and leave the loop with break, or "
            f"(b) use forward mode, which needs none: irad.jvp, or (c) {outside}",
            "the tape of a derivative inside a kernel lies in the registers and the local memory of the thread; a loop "
            "whose iterations depend on each other saves values in each of them",
        )
    else:
        error = UnsupportedError(
            f"the derivative of {wanted.name} inside a kernel needs a tape of {size} bytes or more in each thread",
            f"(a) use forward mode, which needs none: irad.jvp, or (b) {outside}",
            f"the tape lies in the local memory of the thread, of which irad uses {_MOST_LOCAL} bytes at most",
        )
    error.instruction = _first_with_line(call)
    locate(error, module, INSIDE)
    error.location = error.location or wanted.source
    return error


def _first_with_line(inst: Instruction) -> Instruction:
    """Next instruction with a place in the source: an allocation has none, the loop that it is for has."""
    assert inst.block is not None
    for block in reachable([inst.block], lambda block: block.successors):
        items = block.instructions[block.instructions.index(inst) :] if block is inst.block else block.instructions
        for each in items:
            if "dbg" in each.metadata:
                return each
    return inst


# ---------------------------------------------------------------------------------------------------- additions


def _add_plainly(module: Module) -> None:
    """Makes atomic additions to local memory plain ones: no other thread sees it.

    Where an address may be that of local memory or not, the thread decides when it runs (`backend.cuda.local_atomics`).
    """
    for function in module.defined_functions():
        for inst in list(function.instructions()):
            if isinstance(inst, AtomicRMW) and inst.opcode in ("fadd", "fsub") and not inst.users:
                pointer, amount = inst.operands
                if all(isinstance(each, Alloca) for each in sources(pointer)):
                    build = Builder.before(inst)
                    build.store(build.binary(inst.opcode, build.load(amount.type, pointer), amount), pointer)
                    inst.erase()
