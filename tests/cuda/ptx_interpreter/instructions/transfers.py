"""What moves values: registers, memory, addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tests.cuda.ptx_interpreter.building import Builder, Reader, makes
from tests.cuda.ptx_interpreter.faults import MemoryFault
from tests.cuda.ptx_interpreter.instructions.operation import Words
from tests.cuda.ptx_interpreter.instructions.rounding import smaller
from tests.cuda.ptx_interpreter.machine import Step
from tests.cuda.ptx_interpreter.memory import LOCAL_WINDOW, SHARED_WINDOW
from tests.cuda.ptx_interpreter.syntax import Address, Instruction, Symbol, Vector
from tests.cuda.ptx_interpreter.types import PRED, U64, PtxType, ptx_type

_SPACES: Final = ("global", "shared", "local", "const", "param")
_WINDOWS: Final = {"global": 0, "const": 0, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
_SPACE_NUMBERS: Final = {"global": 0, "shared": 1, "local": 2}
_CACHES: Final = ("ca", "cg", "cs", "cv", "lu", "wb", "wt")
_HINTS: Final = tuple(f"L1::{hint}" for hint in ("evict_normal", "evict_first", "evict_last", "no_allocate"))
_SCOPES: Final = ("cta", "cluster", "gpu", "sys")


@makes("mov")
def _move(builder: Builder, instruction: Instruction) -> Step:
    words = Words(instruction.opcode)
    type_ = words.type()
    words.done()
    target, source = instruction.operands
    if isinstance(source, Vector):
        return _pack(builder, target, source, type_)
    if isinstance(target, Vector):
        return _unpack(builder, target, source, type_)
    read, write = builder.read(source, type_), builder.write(target, type_)
    return lambda threads: write(threads, read(threads))


def _pack(builder: Builder, target: Any, source: Vector, type_: PtxType) -> Step:
    part = ptx_type(f"b{type_.bits // len(source.parts)}")
    reads, write = [builder.read(each, part) for each in source.parts], builder.write(target, type_)

    def pack(threads: Any) -> None:
        joined = np.zeros(1, type_.raw)
        for number, read in enumerate(reads):
            joined = joined | read(threads).astype(type_.raw) << type_.raw.type(part.bits * number)
        write(threads, joined.view(type_.dtype))

    return pack


def _unpack(builder: Builder, target: Vector, source: Any, type_: PtxType) -> Step:
    part = ptx_type(f"b{type_.bits // len(target.parts)}")
    read, writes = builder.read(source, type_), [builder.write(each, part) for each in target.parts]

    def unpack(threads: Any) -> None:
        whole = read(threads).view(type_.raw)
        for number, write in enumerate(writes):
            write(threads, (whole >> type_.raw.type(part.bits * number)).astype(part.raw))

    return unpack


@makes("cvta")
def _convert_address(builder: Builder, instruction: Instruction) -> Step:
    words = Words(instruction.opcode)
    to, type_ = words.has("to"), words.type()
    window = np.uint64(_WINDOWS[words.one_of(tuple(_WINDOWS))])
    words.done()
    target, source = instruction.operands
    read, write = builder.read(source, type_), builder.write(target, type_)
    return lambda threads: write(threads, read(threads) - window if to else read(threads) + window)


@makes("isspacep")
def _is_space(builder: Builder, instruction: Instruction) -> Step:
    words = Words(instruction.opcode)
    number = _SPACE_NUMBERS[words.one_of(tuple(_SPACE_NUMBERS))]
    words.done()
    target, source = instruction.operands
    read, write, memory = builder.read(source, U64), builder.write(target, PRED), builder.machine.memory
    return lambda threads: write(threads, memory.space_of(read(threads)) == number)


# --- loads and stores -------------------------------------------------------------------------------------------------


def _address(builder: Builder, operand: Any) -> Reader:
    assert isinstance(operand, Address)
    read, offset = builder.read(operand.base, U64), np.uint64(operand.offset % (1 << 64))
    return lambda threads: np.broadcast_to(read(threads) + offset, threads.shape)


def _access(words: Words) -> tuple[str, PtxType, int, bool]:
    """Space, type, count of a vector; whether other threads may access the memory at the same time."""
    strong = words.has("volatile") or words.has("mmio")
    strong = bool(words.one_of(("relaxed", "acquire", "release"))) or strong
    words.has("weak")
    words.one_of(_SCOPES)
    words.one_of(_CACHES)
    words.one_of(_HINTS)
    space, type_ = words.one_of(_SPACES, "generic"), words.type()
    count = int(words.one_of(("v2", "v4", "v8"), "v1")[1:])
    return space, type_, count, strong


@makes("ld", "ldu")
def _load(builder: Builder, instruction: Instruction) -> Step:
    words = Words(instruction.opcode)
    constant = words.has("nc")
    space, type_, count, strong = _access(words)
    words.done()
    target, source = instruction.operands
    targets = target.parts if isinstance(target, Vector) else (target,)
    writes = [builder.write(each, type_, extends=True) for each in targets]
    if space == "param":
        return _load_parameter(builder, source, type_, writes)
    address, machine, size = _address(builder, source), builder.machine, type_.size
    view, log = machine.memory.views[size], machine.log
    strong = strong or _begins_exchange(builder, source)

    def load(threads: Any) -> None:
        place, shared = machine.memory.locate(space, address(threads), threads, size * count)
        if log is not None and shared.any():
            log.access(place[shared], threads[shared], size * count, "atomic" if strong else "read", constant=constant)
        for number, write in enumerate(writes):
            write(threads, view[place // size + number].view(type_.dtype))

    return load


def _begins_exchange(builder: Builder, source: Any) -> bool:
    """Whether it is the first load of a loop that compares and swaps, which LLVM makes a plain one."""
    return any(
        each.opcode.startswith("atom") and ".cas." in each.opcode and each.operands[1] == source
        for each in builder.function.instructions
    )


@makes("st")
def _store(builder: Builder, instruction: Instruction) -> Step:
    words = Words(instruction.opcode)
    space, type_, count, strong = _access(words)
    words.done()
    target, source = instruction.operands
    sources = source.parts if isinstance(source, Vector) else (source,)
    raw = ptx_type(f"b{type_.bits}")
    reads = [builder.read(each, raw, cut=True) for each in sources]
    if space == "param":
        return _store_parameter(builder, target, raw, reads)
    if space == "const":
        raise MemoryFault("a store to constant memory")
    address, machine, size = _address(builder, target), builder.machine, type_.size
    view, log = machine.memory.views[size], machine.log

    def store(threads: Any) -> None:
        place, shared = machine.memory.locate(space, address(threads), threads, size * count)
        machine.memory.check_writable(place)
        if log is not None and shared.any():
            log.access(place[shared], threads[shared], size * count, "atomic" if strong else "write")
        for number, read in enumerate(reads):
            view[place // size + number] = read(threads)

    return store


def _parameter(builder: Builder, operand: Any, size: int) -> tuple[Any, int]:
    """The bytes of a parameter for each thread, and where an access begins."""
    if not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
        raise MemoryFault(f"parameters are accessed by name, not as {operand}")
    data = builder.frame.parameters[operand.base.name]
    if not 0 <= operand.offset <= data.shape[1] - size or operand.offset % size:
        raise MemoryFault(f"{size} bytes at {operand.offset} of {operand.base.name}, which has {data.shape[1]}")
    return data, operand.offset


def _load_parameter(builder: Builder, source: Any, type_: PtxType, writes: list[Any]) -> Step:
    size = type_.size
    data, start = _parameter(builder, source, size * len(writes))

    def load(threads: Any) -> None:
        for number, write in enumerate(writes):
            at = start + size * number
            write(threads, np.ascontiguousarray(data[threads, at : at + size]).view(type_.dtype)[:, 0])

    return load


def _store_parameter(builder: Builder, target: Any, raw: PtxType, reads: list[Reader]) -> Step:
    size = raw.size
    data, start = _parameter(builder, target, size * len(reads))

    def store(threads: Any) -> None:
        for number, read in enumerate(reads):
            at = start + size * number
            values = np.ascontiguousarray(np.broadcast_to(read(threads), threads.shape))
            data[threads, at : at + size] = values.view(np.uint8).reshape(-1, size)

    return store


@makes("prefetch", "prefetchu", "membar", "fence", "nanosleep", "discard", "applypriority")
def _nothing(builder: Builder, instruction: Instruction) -> None:
    """Of no effect here: accesses are carried out in the order of the program."""


# --- atomic operations ------------------------------------------------------------------------------------------------

_ATOMICS: Final[dict[str, Callable[..., Any]]] = {
    "add": lambda old, b: old + b,
    "and": lambda old, b: old & b,
    "or": lambda old, b: old | b,
    "xor": lambda old, b: old ^ b,
    "exch": lambda old, b: b,
    "inc": lambda old, b: old.dtype.type(0) if old >= b else old + old.dtype.type(1),
    "dec": lambda old, b: b if old == 0 or old > b else old - old.dtype.type(1),
    "cas": lambda old, b, c: c if old == b else old,
}


def _extreme(name: str, old: Any, b: Any) -> Any:
    if old.dtype.kind != "f":
        return min(old, b) if name == "min" else max(old, b)
    sign = 1 if name == "min" else -1
    return sign * smaller(sign * old, sign * b, propagates=False)[()]


@makes("atom", "red")
def _atomic(builder: Builder, instruction: Instruction) -> Step:
    words = Words(instruction.opcode)
    words.has("noftz")
    words.one_of(("relaxed", "acquire", "release", "acq_rel"))
    words.one_of(_SCOPES)
    space, type_ = words.one_of(("global", "shared"), "generic"), words.type()
    name = words.one_of((*_ATOMICS, "min", "max"))
    words.done()
    target, operands = (
        (Symbol("_"), instruction.operands)
        if words.name == "red"
        else (
            instruction.operands[0],
            instruction.operands[1:],
        )
    )
    reads = [builder.read(each, type_) for each in operands[1:]]
    address, write, machine, size = (
        _address(builder, operands[0]),
        builder.write(target, type_),
        builder.machine,
        type_.size,
    )
    view, log = machine.memory.views[size], machine.log

    def function(old: Any, *given: Any) -> Any:
        return _extreme(name, old, *given) if name in ("min", "max") else _ATOMICS[name](old, *given)

    def atomic(threads: Any) -> None:
        place, shared = machine.memory.locate(space, address(threads), threads, size)
        machine.memory.check_writable(place)
        if not shared.all():
            raise MemoryFault(f"thread {int(threads[~shared][0])}: {instruction.opcode} of local memory is not defined")
        if log is not None:
            log.access(place, threads, size, "atomic")
        given = [np.broadcast_to(read(threads), threads.shape) for read in reads]
        found = np.zeros(len(threads), type_.dtype)
        numbers = range(len(threads))
        for number in reversed(numbers) if machine.order.backward else numbers:
            at = place[number] // size
            old = view[at : at + 1].view(type_.dtype)[0]
            found[number] = old
            view[at : at + 1].view(type_.dtype)[0] = function(old, *(each[number] for each in given))
        write(threads, found)

    return atomic
