"""What the parameters of a parallel loop's body are in the source: what the function around it passes to the loop.

array.2     charges
array.4     the array made on line 30
stride.1    a stride of positions
schedule    the bounds of the threads' shares
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from irad.ir.instructions import Alloca, CallSite, Instruction, Load, Store
from irad.ir.types import PointerType
from irad.ir.values import Parameter, Value
from irad.passes.memory.addresses import offset_modulo
from irad.passes.parallel.flatten import CHUNKS, LANE, SCHEDULE, STEP, THREADS, ParallelLoop

_ENGINE: Final = {
    LANE: "the number of the thread",
    THREADS: "the number of threads",
    CHUNKS: "the number of the threads' shares",
    SCHEDULE: "the bounds of the threads' shares",
    STEP: "the size of a thread's share in memory",
}


def numbers_of(loop: ParallelLoop) -> frozenset[Parameter]:
    """The parameters that lead to one number, which is not an array in the source."""
    arrays = ((param, loop.array_of(number)) for number, param in enumerate(loop.function.params))
    return frozenset(param for param, array in arrays if array is not None and not array.axes)


def lane_words(loop: ParallelLoop, launch: CallSite | None, word_of: Callable[[Value], str]) -> dict[Parameter, str]:
    """The parameters of a loop function in words.

    Args:
        loop: the function.
        launch: its call, in the function around the loop.
        word_of: what a value of that function is in the source; of a pointer, the memory it leads to.
    """
    params = loop.function.params
    words = {params[number]: word for number, word in _ENGINE.items()}
    passed = dict(zip(params, launch.arguments, strict=True)) if launch is not None else {}
    for number, param in enumerate(params[SCHEDULE:], SCHEDULE):
        array = loop.array_of(number)
        if param in words or not isinstance(param.type, PointerType):
            continue
        given = _given(passed[param]) if param in passed else None
        words[param] = word_of(given) if given is not None else "memory of the loop"
        for axis in array.axes if array is not None else ():
            extent, stride = loop.extent_and_stride(axis)
            words.setdefault(params[extent], f"a size of {words[param]}")
            words.setdefault(params[stride], f"a stride of {words[param]}")
    for param in params:
        words.setdefault(param, "a size or stride in the loop")
    return words


def _given(argument: Value) -> Value | None:
    """What is passed: Numba stores pointers in a vector that the loop gets, and numbers in variables of their own."""
    value: Value | None = argument
    if isinstance(argument, Load):
        value = _last_stored(argument.operands[0], argument)
    if isinstance(value, Alloca):
        return _last_stored(value, None) or value
    return value


def _last_stored(pointer: Value, before: Instruction | None) -> Value | None:
    """What was stored at an address last, in the order of the code."""
    base, offset = _base(pointer)
    found: Value | None = None
    for inst in _instructions_around(base):
        if inst is before:
            break
        if isinstance(inst, Store) and _base(inst.operands[1]) == (base, offset):
            found = inst.operands[0]
    return found


def _base(pointer: Value) -> tuple[Value, int | None]:
    base = pointer
    while isinstance(base, Instruction) and not isinstance(base, Alloca | Load) and base.operands:
        base = base.operands[0]
    return base, offset_modulo(pointer, None)


def _instructions_around(value: Value) -> Iterator[Instruction]:
    block = value.block if isinstance(value, Instruction) else None
    function = block.function if block is not None else None
    return iter(()) if function is None else iter(function.instructions())
