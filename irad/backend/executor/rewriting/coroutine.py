"""LLVM's coroutines: the frame of one, and where it is suspended.

Nothing in a frame has to be destroyed, so it is never: the scheduler uses its memory again for the next block.
"""

from __future__ import annotations

from irad.backend.compat import ends_coroutine_with_void
from irad.backend.executor.layout import LAUNCH, THREAD
from irad.ir import instructions as ir, types
from irad.ir.builder import Builder
from irad.ir.module import Block
from irad.ir.values import ConstantNull, Value, const_int
from irad.passes.augmented.allocation_failure import split_before

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
