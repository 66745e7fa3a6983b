"""Instructions and messages of the engine in words that a Python programmer knows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from irad.decompile.naming.symbols import Namer, python_name
from irad.ir import instructions as ir
from irad.ir.module import Function
from irad.ir.values import Parameter, Value
from irad.passes.callees import resolve
from irad.passes.unit import Unit
from irad.ruleset.interface import Elementwise

_OPERATIONS: Final = {
    "fadd": "sum", "fsub": "difference", "fmul": "product", "fdiv": "quotient", "frem": "remainder",
    "add": "integer sum", "sub": "integer difference", "mul": "integer product", "fneg": "negation",
    "udiv": "integer quotient", "sdiv": "integer quotient", "urem": "integer remainder", "srem": "integer remainder",
    "shl": "shift of bits", "lshr": "shift of bits", "ashr": "shift of bits",
    "and": "and of bits", "or": "or of bits", "xor": "exclusive or of bits",
}  # fmt: skip
_PARAMETER: Final = re.compile(r"(?<![%\w.])arg\.([A-Za-z_]\w*)(?:\.\d+)*")

_TAPE: Final = re.compile(r"\birad\.arena_\w+ is not called again")
_EXCEPTION: Final = re.compile(r"\bargument excinfo\b")
_RAISED: Final = re.compile(r"global \.const\.picklebuf\.\w+(?:\.\d+)?(?:, global \.const\.picklebuf\.\w+(?:\.\d+)?)*")
_RUNTIME: Final = {
    "NRT_MemInfo": "Numba's allocator", "NRT_": "Numba's reference counts",
    "get_sched": "Numba's scheduler", "allocate_sched": "Numba's scheduler", "deallocate_sched": "Numba's scheduler",
    "do_scheduling": "Numba's scheduler", "set_parallel_chunksize": "Numba's scheduler",
    "get_parallel_chunksize": "Numba's scheduler", "get_num_threads": "Numba's thread count",
    "irad.parallel.": "what fills or copies an array",
}  # fmt: skip
"""What Numba calls by itself, by the beginning of its symbols; the first that fits counts."""

_RESULT: Final = re.compile(r"\bargument retptr(?:\.\d+)?\b")


def plain(text: str) -> str:
    """An explanation with the Python names of arguments: `argument arg.x.4` is `argument x`."""
    text = _TAPE.sub("memory of the tape is not allocated again", text)
    text = _RAISED.sub("what the function raises", _EXCEPTION.sub("the place of exceptions", text))
    return _RESULT.sub("the memory of the result", _PARAMETER.sub(lambda match: match[1], text))


def in_loops(lines: Sequence[int]) -> str:
    """Loops by their lines, given outermost first: "the loop of line 7 in a loop"."""
    return " in ".join(f"the loop of line {line}" if line else "a loop" for line in reversed(lines))


def describe(value: Value, unit: Unit, namer: Namer) -> str:
    """What a value is, in a few words; the engine's names of memory stay in."""
    match value:
        case Parameter():
            return plain(f"argument {python_name(value.name or '?')}")
        case ir.Load():
            return f"load from {_objects(value.operands[0], unit)}"
        case ir.Store():
            return f"store to {_objects(value.operands[1], unit)}"
        case ir.CallSite():
            return f"call of {callee_name(value, unit, namer)}"
        case ir.Phi():
            loop = unit.loops.loop_of(value.block) if value.block is not None else None
            carried = loop is not None and loop.header is value.block
            return "carried from one iteration to the next" if carried else "a value chosen by a branch"
        case ir.GetElementPtr():
            return "address of an element"
        case ir.Binary() | ir.Unary():
            return _OPERATIONS.get(str(value.opcode), str(value.opcode))
        case ir.ICmp() | ir.FCmp():
            return "comparison"
        case ir.Select():
            return "choice by a condition"
        case ir.Cast():
            return f"conversion ({value.opcode})"
        case ir.Alloca():
            return "local variable in memory"
        case ir.CondBr() | ir.Ret():
            return "branch" if isinstance(value, ir.CondBr) else "return"
        case ir.Instruction():
            return type(value).__name__.lower()
        case _:
            return "value"


def callee_name(call: ir.CallSite, unit: Unit, namer: Namer) -> str:
    """What a call calls."""
    callee = resolve(call, unit.registry)
    if isinstance(callee, Elementwise):
        return callee.name
    target = call.callee
    if isinstance(target, Function) and target.name is not None:
        own = next((words for start, words in _RUNTIME.items() if str(target.name).startswith(start)), None)
        return own or namer.name(target.name)
    return "what a pointer leads to"


def _objects(pointer: Value, unit: Unit) -> str:
    objects = unit.points_to.of(pointer)
    names = [str(item) for item in objects[:3]]
    return ", ".join(names) + (", …" if len(objects) > 3 else "") if names else "no known memory"
