"""What threads of a block or a warp do together: barriers, shuffles, votes, matches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tests.cuda.ptx_interpreter.building import Builder, makes
from tests.cuda.ptx_interpreter.faults import UnknownInstructionError
from tests.cuda.ptx_interpreter.instructions.operation import Words
from tests.cuda.ptx_interpreter.machine import WARP, Step, Waiting
from tests.cuda.ptx_interpreter.syntax import Immediate, Instruction, Negated, Pair
from tests.cuda.ptx_interpreter.types import B32, PRED, U32, PtxType

_FULL: Final = 0xFFFFFFFF


def _nothing(threads: Any, *values: Any) -> tuple[()]:
    return ()


# --- barriers of blocks -----------------------------------------------------------------------------------------------


@makes("bar", "barrier")
def _barrier(builder: Builder, instruction: Instruction) -> Waiting:
    words = Words(instruction.opcode)
    if words.has("warp"):
        return _warp_barrier(builder, instruction, words)
    words.has("cta")
    aligned = words.has("aligned") or words.name == "bar"
    kind = words.one_of(("sync", "red"))
    if not kind:
        raise words.unknown()
    reduction = words.one_of(("popc", "and", "or")) if kind == "red" else ""
    if kind == "red":
        words.has("pred") or words.has("u32")
    words.done()
    target, operands = (
        (instruction.operands[0], instruction.operands[1:]) if reduction else (None, instruction.operands)
    )
    if operands[0] != Immediate(0) or len(operands) > (2 if reduction else 1):
        raise UnknownInstructionError("the interpreter knows barrier 0, of all threads of a block")
    if not reduction:
        return Waiting(instruction, "block", _everybody, lambda threads: (), _nothing, _nothing, one_place=aligned)
    holds = builder.read(operands[1], PRED)
    type_ = U32 if reduction == "popc" else PRED
    write = builder.write(target, type_)
    reduce: Callable[[Any], Any] = {"popc": np.count_nonzero, "and": np.all, "or": np.any}[reduction]
    return Waiting(
        instruction,
        "block",
        _everybody,
        lambda threads: (holds(threads),),
        lambda threads, given: (np.full(len(threads), reduce(given), type_.dtype),),
        lambda threads, results: write(threads, results[0]),
        one_place=aligned,
    )


def _everybody(threads: Any) -> Any:
    return np.full(len(threads), _FULL)


# --- warps ------------------------------------------------------------------------------------------------------------


def _warp_barrier(builder: Builder, instruction: Instruction, words: Words) -> Waiting:
    if not words.has("sync"):
        raise words.unknown()
    words.done()
    mask = _mask(builder, instruction)
    return Waiting(instruction, "warp", mask, lambda threads: (), _nothing, _nothing, orders_warp=True)


def _mask(builder: Builder, instruction: Instruction) -> Callable[[Any], Any]:
    """The last operand."""
    read = builder.read(instruction.operands[-1], B32)
    return lambda threads: np.broadcast_to(read(threads), threads.shape)


@makes("activemask")
def _active_mask(builder: Builder, instruction: Instruction) -> Step:
    """Those that are here now: any others may be elsewhere."""
    [target] = instruction.operands
    write, machine = builder.write(target, B32), builder.machine

    def active(threads: Any) -> None:
        warps = machine.warp[threads]
        masks = {int(warp): int((1 << machine.lane[threads[warps == warp]]).sum()) for warp in np.unique(warps)}
        write(threads, np.array([masks[warp] for warp in warps.tolist()], np.uint32))

    return active


@makes("shfl")
def _shuffle(builder: Builder, instruction: Instruction) -> Waiting:
    words = Words(instruction.opcode)
    mode = words.one_of(("idx", "up", "down", "bfly"))
    if not words.has("sync"):
        raise words.unknown()
    words.type()
    words.done()
    target, value, place, clamp, _ = instruction.operands
    target, inside = target.parts if isinstance(target, Pair) else (target, None)
    reads = [builder.read(value, B32), builder.read(place, U32), builder.read(clamp, U32)]
    write = builder.write(target, B32)
    write_inside = builder.write(inside, PRED) if inside is not None else _nothing
    machine = builder.machine
    garbage = np.full(4, machine.order.garbage, np.uint8).view(np.uint32)[0]

    def combine(threads: Any, values: Any, places: Any, clamps: Any) -> tuple[Any, ...]:
        lanes = machine.lane[threads]
        held = np.full(WARP, garbage, np.uint32)  # what other lanes hold, nobody knows
        held[lanes] = values
        source, valid = source_lanes(mode, lanes, places, clamps)
        return held[source], valid

    def put(threads: Any, results: Any) -> None:
        write(threads, results[0])
        write_inside(threads, results[1])

    return Waiting(
        instruction,
        "warp",
        _mask(builder, instruction),
        lambda threads: tuple(np.broadcast_to(read(threads), threads.shape) for read in reads),
        combine,
        put,
    )


def source_lanes(mode: str, lane: Any, place: Any, clamp: Any) -> tuple[Any, Any]:
    """The lane that each lane reads, and whether it is inside of its segment: it reads its own value if not."""
    place, segment, end = place & 31, clamp >> 8 & 31, clamp & 31
    lane = lane.astype(np.int64)
    top, bottom = (lane & segment) | (end & ~segment & 31), lane & segment
    match mode:
        case "up":
            source = lane - place.astype(np.int64)
            valid = source >= top
        case "down":
            source = lane + place
            valid = source <= top
        case "bfly":
            source = lane ^ place
            valid = source <= top
        case _:
            source = bottom | (place & ~segment & 31)
            valid = source <= top
    return np.where(valid, source, lane).astype(np.int64), valid


@makes("vote")
def _vote(builder: Builder, instruction: Instruction) -> Waiting:
    words = Words(instruction.opcode)
    kind = words.one_of(("all", "any", "uni", "ballot"))
    if not words.has("sync") or not kind:
        raise words.unknown()
    type_ = words.type()
    words.done()
    target, predicate, _ = instruction.operands
    assert not isinstance(target, Negated)

    def combine(threads: Any, holds: Any) -> tuple[Any]:
        lanes = builder.machine.lane[threads]
        found: Any = {
            "all": holds.all(),
            "any": holds.any(),
            "uni": holds.all() or not holds.any(),
            "ballot": int((1 << lanes[holds]).sum()),
        }[kind]
        return (np.full(len(threads), found, type_.dtype),)

    return _exchange(builder, instruction, target, type_, predicate, PRED, combine)


@makes("match")
def _match(builder: Builder, instruction: Instruction) -> Waiting:
    words = Words(instruction.opcode)
    type_ = words.type()
    if not words.has("sync") or not words.has("any"):
        raise words.unknown()
    words.done()
    target, value, _ = instruction.operands

    def combine(threads: Any, values: Any) -> tuple[Any]:
        lanes = builder.machine.lane[threads]
        return (np.array([(1 << lanes[values == each]).sum() for each in values], np.uint32),)

    return _exchange(builder, instruction, target, B32, value, type_, combine)


@makes("redux")
def _reduce(builder: Builder, instruction: Instruction) -> Waiting:
    words = Words(instruction.opcode)
    type_ = words.type()
    functions: dict[str, Any] = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }
    function = functions[words.one_of(tuple(functions))]
    if not words.has("sync"):
        raise words.unknown()
    words.done()
    target, value, _ = instruction.operands

    def combine(threads: Any, values: Any) -> tuple[Any]:
        return (np.full(len(threads), function.reduce(values, dtype=type_.dtype), type_.dtype),)

    return _exchange(builder, instruction, target, type_, value, type_, combine)


def _exchange(
    builder: Builder,
    instruction: Instruction,
    target: Any,
    result: PtxType,
    value: Any,
    type_: PtxType,
    combine: Callable[..., tuple[Any]],
) -> Waiting:
    """One value from each thread, one result."""
    read, write = builder.read(value, type_), builder.write(target, result)
    return Waiting(
        instruction,
        "warp",
        _mask(builder, instruction),
        lambda threads: (np.broadcast_to(read(threads), threads.shape),),
        combine,
        lambda threads, results: write(threads, results[0]),
    )
