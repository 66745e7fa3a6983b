"""Branches, calls and returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.cuda.ptx_interpreter.building import Builder, ends
from tests.cuda.ptx_interpreter.faults import PtxFault, UnknownInstructionError
from tests.cuda.ptx_interpreter.machine import Frame, Step
from tests.cuda.ptx_interpreter.syntax import Group, Instruction, Symbol
from tests.cuda.ptx_interpreter.types import U32


@ends("bra")
def _branch(builder: Builder, instruction: Instruction) -> Step:
    [target] = instruction.operands
    place, labels = builder.machine.place, builder.labels

    def branch(threads: Any) -> None:
        place[threads] = labels[target.name]

    return branch


@ends("brx")
def _branch_by_index(builder: Builder, instruction: Instruction) -> Step:
    index, table = instruction.operands
    read, targets = builder.read(index, U32), builder.function.tables[table.name]
    place, labels = builder.machine.place, builder.labels

    def branch(threads: Any) -> None:
        chosen = np.broadcast_to(read(threads), threads.shape)
        if (chosen >= len(targets)).any():
            raise PtxFault(f"brx.idx: {int(chosen.max())} of {len(targets)} targets")
        place[threads] = np.array([labels[target] for target in targets])[chosen]

    return branch


@ends("ret")
def _return(builder: Builder, instruction: Instruction) -> Step:
    machine, frame = builder.machine, builder.frame
    return lambda threads: machine.leave(frame, threads)


@ends("exit")
def _exit(builder: Builder, instruction: Instruction) -> Step:
    return builder.machine.exit


@ends("trap")
def _trap(builder: Builder, instruction: Instruction) -> Step:
    def trap(threads: Any) -> None:
        raise PtxFault(f"thread {int(threads[0])} runs into the trap of line {instruction.line}")

    return trap


@ends("call")
def _call(builder: Builder, instruction: Instruction) -> Step:
    groups = [each for each in instruction.operands if isinstance(each, Group)]
    names = [each for each in instruction.operands if isinstance(each, Symbol)]
    if [each.name for each in names] == ["vprintf"]:
        return _print(builder, groups[0].parts[0].name)
    if len(names) != 1 or names[0].name not in builder.machine.frames:
        raise UnknownInstructionError(f"the interpreter does not know the function of the call {instruction.operands}")
    machine, caller, callee = builder.machine, builder.frame, builder.machine.frames[names[0].name]
    function = callee.function
    result = groups[0].parts[0].name if function.returned is not None else ""
    given = [each.name for each in (groups[-1].parts if function.parameters else ())]
    following = len(machine.blocks)

    def call(threads: Any) -> None:
        passed = [caller.parameters[name][threads] for name in given]
        before = _saved(callee, threads)
        for parameter, data in zip(function.parameters, passed, strict=True):
            callee.parameters[parameter.name][threads] = data
        for number, thread in enumerate(threads.tolist()):
            machine.returns[thread].append(_returning(caller, result, callee, before, number, following))
        machine.enter(callee, threads)

    return call


def _print(builder: Builder, result: str) -> Step:
    """What is printed is not looked at; it succeeds."""
    following = builder.go_to(len(builder.machine.blocks))

    def succeed(threads: Any) -> None:
        builder.frame.parameters[result][threads] = 0
        following(threads)

    return succeed


def _saved(frame: Frame, threads: Any) -> dict[int, tuple[Any, Any]] | None:
    """What a function that is active already holds: arrays, and their elements for the threads."""
    if not frame.depth[threads].any():
        return None
    arrays = [*frame.registers.values(), *frame.parameters.values(), frame.carry, frame.start]
    return {id(array): (array, array[threads].copy()) for array in arrays}


def _returning(
    caller: Frame, result: str, callee: Frame, before: dict[int, tuple[Any, Any]] | None, number: int, following: int
) -> Callable[[int], int]:
    """Hands a thread's result over and restores what the function held; where the thread goes on."""

    def back(thread: int) -> int:
        data = None
        if callee.function.returned is not None:
            data = callee.parameters[callee.function.returned.name][thread].copy()
        for array, values in (before or {}).values():
            array[thread] = values[number]
        if data is not None:
            caller.parameters[result][thread] = data
        return following

    return back
