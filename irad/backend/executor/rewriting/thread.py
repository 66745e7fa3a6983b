"""The kernel as what one thread does: a coroutine that is suspended wherever threads wait for each other.

    define void @k(ptr %x, i64 %n)                        define ptr @irad.cuda.start(ptr %thread)
      %t = call i32 @…sreg.tid.x()              →           %t = load of the thread's record
      call void @…barrier.cta.sync…(i32 0)                  state ← barrier; llvm.coro.suspend
      ret void                                              state ← finished

The parameters are loaded from a struct that all threads share. A kernel in which nobody waits is not a coroutine: it
runs to its end and gives null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from irad.backend.compat import ends_coroutine_with_void
from irad.backend.executor import dialect
from irad.backend.executor.dialect import LANES, WAITS, State, Wait
from irad.backend.executor.layout import LAUNCH, THREAD
from irad.backend.executor.rewriting.arrays import SharedMemory, place_shared
from irad.backend.executor.rewriting.sites import Sites
from irad.ir import instructions as ir, types
from irad.ir.builder import Builder
from irad.ir.module import Block, Function, Module
from irad.ir.types import Type
from irad.ir.values import ConstantNull, Value, const_int
from irad.passes.augmented.allocation_failure import split_before
from irad.records import dataclass
from irad.runtime_layouts import Struct

# LLVM's coroutines: the frame of one, and where it is suspended.
#
# Nothing in a frame has to be destroyed, so it is never: the scheduler uses its memory again for the next block.

_ALIGNMENT = 64  # of frames, as take_frame gives them


class Coroutine:
    """The coroutine that a function becomes.

    Attributes:
        suspended: where it goes to give control back; its way out.
    """

    def __init__(self, entry: Builder, thread: Value) -> None:
        """Makes the frame.

        Args:
            entry: at the end of the first block; afterwards at the end of another one, where the body is to begin.
            thread: the record of the thread, to which the frame belongs.
        """
        function = entry.function
        function.attributes = (*function.attributes, "presplitcoroutine")
        null, none = ConstantNull(types.PTR), ConstantNull(types.TOKEN)
        launch = entry.load(types.PTR, entry.byte_offset(thread, THREAD.offset("launch")))
        take = entry.load(types.PTR, entry.byte_offset(launch, LAUNCH.offset("take_frame")))
        ident = entry.intrinsic("llvm.coro.id", types.TOKEN, [const_int(types.I32, _ALIGNMENT), null, null, null])
        size = entry.intrinsic("llvm.coro.size.i64", types.I64, [])
        memory = entry.call(take, [thread, size], types.function_type(types.PTR, [types.PTR, types.I64]))
        begin, failed = function.add_block("begin"), function.add_block("no.memory")
        self.suspended = function.add_block("suspended")
        entry.cond_br(entry.icmp("eq", memory, null), failed, begin)
        Builder(failed).ret(null)
        entry.block = begin
        handle = entry.intrinsic("llvm.coro.begin", types.PTR, [ident, memory])
        leave = Builder(self.suspended)
        nothing = types.VOID if ends_coroutine_with_void() else types.I1
        leave.intrinsic("llvm.coro.end", nothing, [handle, const_int(types.I1, 0), none])
        leave.ret(handle)

    def suspend(self, build: Builder, before: ir.Instruction) -> None:
        """Suspends in front of an instruction, with which a new block begins.

        Args:
            build: inserts in front of the instruction.
            before: it runs when the coroutine is resumed.
        """
        arguments: list[Value] = [ConstantNull(types.TOKEN), const_int(types.I1, 0)]
        why = build.intrinsic("llvm.coro.suspend", types.I8, arguments)
        here: Block = build.block
        rest = split_before(before)
        Builder(here).switch(why, self.suspended, [(0, rest)])


START: Final = "irad.cuda.start"


@dataclass(frozen=True, slots=True)
class Registers:
    """Registers that every part of the thread's function can use.

    Attributes:
        thread: the record of the thread.
        launch: data shared by all threads.
        shared: the start of shared memory.
    """

    thread: Value
    launch: Value
    shared: Value


def make_thread(
    kernel: Function,
    memory: SharedMemory,
    sites: Sites,
    instrument: Callable[[Function, Registers, SharedMemory, Sites], None] | None,
) -> None:
    """Puts the function of a thread in the place of a kernel.

    Args:
        kernel: the only function of its module that has a body.
        memory: where its shared arrays are.
        sites: gets the places at which threads wait.
        instrument: rewrites accesses to memory first, if it is given.
    """
    module = kernel.module
    assert module is not None
    thread = module.define(START, types.function_type(types.PTR, [types.PTR]), ["thread"])
    entry = Builder(thread.add_block("start"))
    launch = entry.load(types.PTR, _field(entry, THREAD, "launch", thread.params[0]))
    shared = entry.load(types.PTR, _field(entry, LAUNCH, "shared", launch))
    registers = Registers(thread.params[0], launch, shared)
    _load_arguments(entry, kernel, launch)
    body = _move_blocks(kernel, thread)
    _move_allocas(body, entry)
    if instrument is not None:
        instrument(thread, registers, memory, sites)
    place_shared(thread, memory, shared)
    instructions = [inst for block in thread.blocks[1:] for inst in block.instructions]
    waits = any(_wait_of(inst) is not None for inst in instructions)
    coroutine = Coroutine(entry, registers.thread) if waits else None
    entry.br(body)
    for inst in instructions:
        _rewrite(inst, registers, sites, coroutine)
    _forget_operations(module)


def _field(build: Builder, struct: Struct, field: str, base: Value) -> Value:
    return build.byte_offset(base, struct.offset(field))


def _load_arguments(entry: Builder, kernel: Function, launch: Value) -> None:
    """Replaces the parameters of the kernel."""
    arguments = entry.load(types.PTR, _field(entry, LAUNCH, "arguments", launch))
    offsets = types.field_offsets(types.struct_type([param.type for param in kernel.params]))
    for param, offset in zip(kernel.params, offsets, strict=True):
        ir.replace_uses(param, entry.load(param.type, entry.byte_offset(arguments, offset), name=param.name))


def _move_blocks(kernel: Function, thread: Function) -> Block:
    """Takes the kernel out of its module, and gives its first block, which is now the thread's."""
    assert kernel.module is not None
    body = kernel.blocks[0]
    for block in kernel.blocks:
        block.function = thread
    thread.blocks += kernel.blocks
    kernel.blocks = []
    del kernel.module.functions[kernel.name or ""]
    return body


def _move_allocas(body: Block, entry: Builder) -> None:
    """Local arrays belong to the first block: there LLVM knows that a frame has each of them once."""
    for inst in list(body.instructions):
        if isinstance(inst, ir.Alloca):
            body.instructions.remove(inst)
            entry.insert(inst)


def _callee_name(inst: ir.Instruction) -> str | None:
    return inst.callee.name if isinstance(inst, ir.Call) and isinstance(inst.callee, Function) else None


def _wait_of(inst: ir.Instruction) -> Wait | None:
    return WAITS.get(_callee_name(inst) or "")


def _rewrite(inst: ir.Instruction, registers: Registers, sites: Sites, coroutine: Coroutine | None) -> None:
    """One operation of the dialect, or a return."""
    if isinstance(inst, ir.Ret):
        _finish(inst, registers.thread, coroutine)
        return
    wait, name = _wait_of(inst), _callee_name(inst)
    build = Builder.before(inst)
    if wait is not None:
        assert isinstance(inst, ir.Call)
        assert coroutine is not None
        number = sites.anywhere(wait.words, inst) if wait.is_anywhere else sites.add(wait.words, inst)
        _suspend(inst, wait, registers.thread, number, coroutine)
    elif name in dialect.NO_OPERATION:
        inst.erase()
    elif name in dialect.OPERATIONS:
        ir.replace_uses(inst, _register(build, name or "", registers))
        inst.erase()


def _register(build: Builder, name: str, registers: Registers) -> Value:
    """The value of a special register."""
    if name in dialect.IN_THREAD:
        return _fixed(build, THREAD, dialect.IN_THREAD[name], registers.thread)
    if name in dialect.IN_LAUNCH:
        return _fixed(build, LAUNCH, dialect.IN_LAUNCH[name], registers.launch)
    if name == dialect.WARP_SIZE:
        return const_int(types.I32, LANES)
    lane = build.and_(_fixed(build, THREAD, "index", registers.thread), const_int(types.I32, LANES - 1))
    if name == dialect.LANE:
        return lane
    assert name == dialect.LANES_BELOW
    one = const_int(types.I32, 1)
    return build.sub(build.shl(one, lane), one)


def _fixed(build: Builder, struct: Struct, field: str, base: Value) -> Value:
    """A field that does not change while the thread runs."""
    loaded = build.load(types.I32, _field(build, struct, field, base))
    loaded.metadata["invariant.load"] = build.module.shared_metadata("!{}")
    return loaded


def _finish(ret: ir.Ret, thread: Value, coroutine: Coroutine | None) -> None:
    build = Builder.before(ret)
    build.store(const_int(types.I32, State.FINISHED), _field(build, THREAD, "state", thread))
    if coroutine is None:
        build.ret(ConstantNull(types.PTR))
    else:
        build.br(coroutine.suspended)
    ret.erase()


def _suspend(call: ir.Call, wait: Wait, thread: Value, site: int, coroutine: Coroutine) -> None:
    """Stores what the thread waits for, suspends it, and reads the result."""
    build = Builder.before(call)
    fields: dict[str, Value] = {"state": const_int(types.I32, wait.state), "site": const_int(types.I32, site)}
    for field, position in (("mask", wait.mask), ("operand", wait.operand)):
        if position is not None:
            fields[field] = call.arguments[position]
    if wait.value is not None:
        fields["value"] = _bits(build, call.arguments[wait.value])
    for field, value in fields.items():
        build.store(value, _field(build, THREAD, field, thread))
    coroutine.suspend(build, call)
    after = Builder.before(call)
    if call.users:
        loaded = after.load(types.I64, _field(after, THREAD, "value", thread))
        ir.replace_uses(call, _from_bits(after, loaded, call.type))
    call.erase()


def _bits(build: Builder, value: Value) -> Value:
    """A number as 64 bits."""
    match value.type:
        case types.FloatType(bits=bits):
            return build.zext(build.bitcast(value, types.int_type(bits)), types.I64)
        case _:
            return build.zext(value, types.I64)


def _from_bits(build: Builder, value: Value, type_: Type) -> Value:
    match type_:
        case types.FloatType(bits=bits):
            return build.bitcast(build.trunc(value, types.int_type(bits)), type_)
        case _:
            return build.trunc(value, type_)


def _forget_operations(module: Module) -> None:
    """Removes the declarations of rewritten functions."""
    for name in dialect.OPERATIONS & module.functions.keys():
        del module.functions[name]
