"""Runs the threads of a launch.

Registers are arrays with an element for each thread of the grid. A step runs one basic block for all threads of a group
that are at it, the block that comes first in the text before the others, so that threads that went apart meet again. A
group goes on until each of its threads waits or has returned, then the next one does. An `Order` says what groups there
are. Where all of them stand still, barriers and operations of warps are carried out for those that are complete.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tests.cuda.ptx_interpreter.faults import BarrierFault, PtxFault
from tests.cuda.ptx_interpreter.memory import Memory, Region
from tests.cuda.ptx_interpreter.races import Log
from tests.cuda.ptx_interpreter.syntax import Function, Instruction, Program

WARP: Final = 32
_STEPS: Final = 2_000_000
_RECURSION: Final = 64
_RUNS, _WAITS, _RETURNED = range(3)

Step = Callable[[Any], None]
Size = tuple[int, int, int]


@dataclass(frozen=True)
class Order:
    """In which threads run.

    Attributes:
        together: how many threads run in step; 0 for all of the grid.
        backward: whether the last ones begin.
        garbage: a byte; what was never written holds it.
    """

    together: int = 0
    backward: bool = False
    garbage: int = 0xA5

    def groups(self, count: int) -> list[Any]:
        threads = np.arange(count)
        size = self.together or count
        groups = [threads[start : start + size] for start in range(0, count, size)]
        return groups[::-1] if self.backward else groups


IN_STEP: Final = Order()
"""All threads of the grid together: what is read and written back without an atomic operation loses additions."""
BACKWARD: Final = Order(8, backward=True, garbage=0xFB)
"""Eight threads at a time, the last ones first: warps are never all in one place."""
ORDERS: Final = (IN_STEP, BACKWARD)


@dataclass
class Waiting:
    """An instruction that threads wait at, and carry out together.

    Attributes:
        instruction: as written.
        scope: "block" or "warp".
        mask: the lanes that take part, for each thread that waits; of no meaning for a block.
        read: what threads contribute, a tuple of arrays.
        combine: results, a tuple of arrays, from threads and what they contribute.
        write: puts results into registers of threads.
        one_place: whether all must be at this instruction.
        orders_warp: whether it orders accesses to memory of the warp's threads.
    """

    instruction: Instruction
    scope: str
    mask: Callable[[Any], Any]
    read: Callable[[Any], tuple[Any, ...]]
    combine: Callable[..., tuple[Any, ...]]
    write: Callable[[Any, tuple[Any, ...]], None]
    one_place: bool = False
    orders_warp: bool = False


@dataclass
class Block:
    """A basic block.

    Attributes:
        steps: what computes.
        end: sets where threads go on.
        waiting: what threads wait at, at its end.
    """

    number: int
    steps: list[tuple[Step, Instruction]] = field(default_factory=list)
    end: Step | None = None
    waiting: Waiting | None = None


@dataclass
class Frame:
    """What a function has for each thread.

    Attributes:
        function: the function.
        first: number of its first block.
        registers: by name.
        carry: the carry flag.
        parameters: bytes of variables in the space of parameters, a row for each thread.
        offsets: of its local variables, from the start of the frame.
        size: of the frame in local memory.
        start: of each thread's frame.
        depth: how many activations each thread has.
    """

    function: Function
    first: int
    registers: dict[str, Any]
    carry: Any
    parameters: dict[str, Any]
    offsets: dict[str, int]
    size: int
    start: Any
    depth: Any


class Machine:
    """The threads of one launch; `run` runs them, once frames and blocks are there.

    Args:
        program: the module, with one entry.
        regions: the memory of the host that threads may touch.
        order: of the threads.
        races: whether unordered accesses are faults.
    """

    def __init__(
        self,
        program: Program,
        grid: Size,
        block: Size,
        regions: Sequence[Region],
        *,
        dynamic_shared: int = 0,
        order: Order = IN_STEP,
        races: bool = True,
    ) -> None:
        self.program, self.grid, self.block_size, self.order = program, grid, block, order
        self.dynamic_shared = dynamic_shared
        self._number_threads()
        variables = [*program.variables.values()]
        variables += [each for function in program.functions.values() for each in function.variables.values()]
        frames = sum(_frame_size(function) + 64 for function in program.functions.values())
        stack = frames * (_RECURSION if _calls(program) else 1)
        self.memory = Memory(regions, variables, dynamic_shared, self.block, stack, order.garbage)
        self.memory.initialise(variables)
        self.log = Log(self.memory.shared_end, self.block, self.warp) if races else None
        self.stack_top = np.zeros(self.count, np.int64)
        self.state = np.full(self.count, _RUNS, np.int8)
        self.place = np.zeros(self.count, np.int32)
        self.returns: list[list[Callable[[int], int]]] = [[] for _ in range(self.count)]
        self.blocks: list[Block] = []
        self.frames: dict[str, Frame] = {}

    def _number_threads(self) -> None:
        size, blocks = int(np.prod(self.block_size)), int(np.prod(self.grid))
        self.count = size * blocks
        every = np.arange(self.count)
        self.block, self.in_block = every // size, every % size
        self.lane = self.in_block % WARP
        self.warp = self.block * -(-size // WARP) + self.in_block // WARP
        self.special = {"%laneid": self.lane, "%lanemask_lt": (1 << self.lane) - 1, "%warpid": self.in_block // WARP}
        self.special["%lanemask_eq"] = 1 << self.lane
        self.special["%lanemask_le"] = (2 << self.lane) - 1
        self.special["%lanemask_gt"] = 0xFFFFFFFF ^ self.special["%lanemask_le"]
        self.special["%lanemask_ge"] = 0xFFFFFFFF ^ self.special["%lanemask_lt"]
        self.special["%dynamic_smem_size"] = np.full(self.count, self.dynamic_shared)
        for name, number, sizes in (("tid", self.in_block, self.block_size), ("ctaid", self.block, self.grid)):
            for axis, size in zip("xyz", sizes, strict=True):
                self.special[f"%{name}.{axis}"] = number % size
                self.special[f"%n{name}.{axis}"] = np.full(self.count, size)
                number = number // size

    # --- running ------------------------------------------------------------------------------------------------------

    def run(self, arguments: Sequence[bytes]) -> None:
        """Until all threads have returned.

        Args:
            arguments: the bytes of each parameter.

        Raises:
            PtxFault: what they do is wrong.
        """
        entry = self.frames[self.program.entry.name]
        _pass(entry, arguments)
        self.enter(entry, np.arange(self.count))
        groups = self.order.groups(self.count)
        self._left = _STEPS
        with np.errstate(all="ignore"):
            while True:
                for group in groups:
                    self._advance(group)
                if (self.state == _RETURNED).all():
                    break
                if not self._release():
                    raise BarrierFault(f"threads wait forever:\n{self._places(np.flatnonzero(self.state == _WAITS))}")
        self.memory.finish()

    def _advance(self, group: Any) -> None:
        """Runs threads until each waits or has returned."""
        while True:
            running = group[self.state[group] == _RUNS]
            if not running.size:
                return
            places = self.place[running]
            first = places.min()
            self._step(self.blocks[first], running[places == first])
            self._left -= 1
            if self._left < 0:
                raise PtxFault(f"a loop does not end:\n{self._places(running)}")

    def _step(self, block: Block, threads: Any) -> None:
        at = 0
        try:
            for at, (step, _) in enumerate(block.steps):  # noqa: B007 - `at` is for the message
                step(threads)
        except PtxFault as fault:
            instruction = block.steps[at][1]
            fault.add_note(f"line {instruction.line}: {instruction.opcode} {instruction.operands}")
            raise
        if block.waiting is not None:
            self.state[threads] = _WAITS
            return
        assert block.end is not None
        block.end(threads)

    def _places(self, threads: Any) -> str:
        lines = defaultdict(list)
        for thread in threads.tolist():
            block = self.blocks[self.place[thread]]
            instruction = block.waiting.instruction if block.waiting else block.steps[-1][1] if block.steps else None
            what = f"line {instruction.line}: {instruction.opcode}" if instruction else "at a branch"
            lines[what].append(thread)
        return "\n".join(f"  {what}: threads {found}" for what, found in lines.items())

    # --- barriers and warps -------------------------------------------------------------------------------------------

    def _release(self) -> bool:
        """Carries out what is complete; whether anything was."""
        waiting = np.flatnonzero(self.state == _WAITS)
        at = [self.blocks[place] for place in self.place[waiting].tolist()]
        of_blocks, of_warps = defaultdict[int, list[int]](list), defaultdict[Any, list[int]](list)
        for thread, block in zip(waiting.tolist(), at, strict=True):
            assert block.waiting is not None
            if block.waiting.scope == "block":
                of_blocks[int(self.block[thread])].append(thread)
            else:
                mask = int(block.waiting.mask(np.array([thread]))[0])
                of_warps[int(self.warp[thread]), block.waiting.instruction.opcode, mask].append(thread)
        released = [self._release_block(number, threads) for number, threads in of_blocks.items()]
        released += [self._release_warp(warp, mask, threads) for (warp, _, mask), threads in of_warps.items()]
        return any(released)

    def _release_block(self, number: int, waiting: list[int]) -> bool:
        alive = np.flatnonzero((self.block == number) & (self.state != _RETURNED))
        if len(alive) != len(waiting):
            return False
        places = np.unique(self.place[alive])
        if len(places) > 1 and any(self._waiting_at(place).one_place for place in places):
            raise BarrierFault(f"threads of a block wait at different barriers:\n{self._places(alive)}")
        self._carry_out(alive)
        if self.log is not None:
            self.log.passed[alive] += 1
            self.log.warp_passed[alive] += 1
        return True

    def _release_warp(self, warp: int, mask: int, waiting: list[int]) -> bool:
        threads = np.array(waiting)
        outside = threads[(mask >> self.lane[threads]) & 1 == 0]
        if outside.size:
            raise BarrierFault(f"the mask {mask:#x} does not have the thread itself:\n{self._places(outside)}")
        members = np.flatnonzero((self.warp == warp) & (self.state != _RETURNED))
        if len(members[(mask >> self.lane[members]) & 1 == 1]) != len(threads):
            return False
        self._carry_out(threads)
        return True

    def _carry_out(self, threads: Any) -> None:
        """Threads may be at different places, each with registers of its own."""
        places = self.place[threads]
        parts = [(self._waiting_at(place), np.flatnonzero(places == place)) for place in np.unique(places)]
        first = parts[0][0]
        inputs = [each.read(threads[chosen]) for each, chosen in parts]
        gathered = []
        for number in range(len(inputs[0])):
            values = np.zeros(len(threads), inputs[0][number].dtype)
            for (_, chosen), given in zip(parts, inputs, strict=True):
                values[chosen] = given[number]
            gathered.append(values)
        results = first.combine(threads, *gathered)
        for each, chosen in parts:
            each.write(threads[chosen], tuple(result[chosen] for result in results))
        if self.log is not None and first.orders_warp:
            self.log.warp_passed[threads] += 1
        self.state[threads] = _RUNS
        self.place[threads] += 1

    def _waiting_at(self, place: int) -> Waiting:
        waiting = self.blocks[place].waiting
        assert waiting is not None
        return waiting

    # --- calls --------------------------------------------------------------------------------------------------------

    def enter(self, frame: Frame, threads: Any) -> None:
        """Gives threads a frame of a function, and sends them to its first block."""
        frame.start[threads] = self.stack_top[threads]
        if frame.size:
            self.memory.take_frame(threads, frame.start[threads], frame.size, self.order.garbage)
        self.stack_top[threads] += frame.size + (-frame.size % 64) + 64
        if (self.stack_top[threads] > self.memory.stack).any():
            raise PtxFault(f"{frame.function.name} calls itself too often")
        frame.depth[threads] += 1
        self.place[threads] = frame.first

    def leave(self, frame: Frame, threads: Any) -> None:
        """Takes the frame away, and sends threads to where they were called from."""
        if frame.size:
            self.memory.drop_frame(threads, frame.start[threads], frame.size)
        self.stack_top[threads] = frame.start[threads]
        frame.depth[threads] -= 1
        for thread in threads.tolist():
            if self.returns[thread]:
                self.place[thread] = self.returns[thread].pop()(thread)
            else:
                self.state[thread] = _RETURNED

    def exit(self, threads: Any) -> None:
        """Ends threads, whatever they were called from."""
        self.state[threads] = _RETURNED


def _calls(program: Program) -> bool:
    return any(
        instruction.opcode.startswith("call")
        for each in program.functions.values()
        for instruction in each.instructions
    )


def _frame_size(function: Function) -> int:
    return sum(
        -(-each.size // max(each.align, 1)) * max(each.align, 1) + each.align
        for each in function.variables.values()
        if each.space == "local"
    )


def _pass(frame: Frame, arguments: Sequence[bytes]) -> None:
    if len(arguments) != len(frame.function.parameters):
        raise PtxFault(f"{len(frame.function.parameters)} arguments are wanted, {len(arguments)} are given")
    for parameter, data in zip(frame.function.parameters, arguments, strict=True):
        if len(data) != parameter.size:
            raise PtxFault(f"{parameter.name} has {parameter.size} bytes, {len(data)} are given")
        frame.parameters[parameter.name][:] = np.frombuffer(data, np.uint8)
