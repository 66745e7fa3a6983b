"""Values, instructions and messages of the engine in words that a Python programmer knows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from irad.decompile.names import Namer, python_name
from irad.errors import SourceLocation
from irad.ir import instructions as ir
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import Alloca, Binary, CallSite, GetElementPtr, Instruction, Load, Phi, Store
from irad.ir.module import Function
from irad.ir.types import PointerType
from irad.ir.values import ConstantInt, Parameter, Value
from irad.passes.callees import resolve
from irad.passes.instrument.loop_sources import LoopSources
from irad.passes.memory.addresses import offset_modulo
from irad.passes.memory.objects import MemoryObject, ObjectKind
from irad.passes.parallel.flatten import CHUNKS, LANE, SCHEDULE, STEP, THREADS, ParallelLoop
from irad.passes.unit import Unit
from irad.report.source import is_library
from irad.report.variables import Copies, variables_of
from irad.ruleset.interface import Elementwise
from irad.source_text import loop_variable

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
"""Words for what Numba calls by itself, by the beginning of its symbols; the first that fits counts."""

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
    """A value in a few words; the engine's names of memory stay in."""
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
    """Name of a call's callee."""
    callee = resolve(call, unit.registry)
    if isinstance(callee, Elementwise):
        return callee.name
    target = call.callee
    if isinstance(target, Function) and target.name is not None:
        own = next((words for start, words in _RUNTIME.items() if str(target.name).startswith(start)), None)
        return own or namer.name(target.name)
    return "an indirect callee"


def _objects(pointer: Value, unit: Unit) -> str:
    objects = unit.points_to.of(pointer)
    names = [str(item) for item in objects[:3]]
    return ", ".join(names) + (", …" if len(objects) > 3 else "") if names else "no known memory"


# What the values of a program are in the source: variables where there are some, else operations with their line.
#
# %total.2.082  total
# %.176         element of x
# %.184         exp(…) on line 11
# %arg.x.2      x.size
# %from         which branch ran

_PHI: Final = re.compile(r"([A-Za-z_]\w*)\.\d")
_LEAF: Final = re.compile(r"arg\.([A-Za-z_]\w*)\.(\d+)(?:\.(\d+))?")
_ARRAY_PARTS: Final = {"0": "owner of {}", "1": "owner of {}", "2": "{}.size", "3": "{}.itemsize", "4": "{}"}
_NUMBA: Final = frozenset({"num_threads_var", "excinfo", "retptr"})  # variables in code that Numba writes
_REGISTER: Final = re.compile(r"cuda\.(?:\w+\.[xyz]|laneid|warpsize)")
_ENGINE: Final = {
    "from": "which branch ran",
    "slab": "tape of a loop",
    "record": "tape of a loop",
    "iterations": "how often a loop runs",
    "iteration": "number of the iteration",
}
"""Values that the forward sweep makes itself, by the first part of their names."""


@dataclass(eq=False)
class ValueWords:
    """Names the values of one function.

    Attributes:
        place_of: the user's line of a value.
        loops: where loops are.
        parameters: values in the enclosing function for the parameters of a parallel loop's body.
        numbers: those of them that point to one number.
    """

    unit: Unit
    info: DebugInfo
    namer: Namer
    copies: Copies
    place_of: Callable[[Value], SourceLocation | None]
    loops: LoopSources
    parameters: Mapping[Parameter, str] = field(default_factory=dict)
    numbers: Collection[Value] = ()
    _known: dict[Value, str] = field(default_factory=dict)

    def of(self, value: Value) -> str:
        """Words for a value of the primal."""
        if value not in self._known:
            self._known[value] = self._parameter(value) if isinstance(value, Parameter) else self._made(value)
        return self._known[value]

    def of_engine(self, value: Value) -> str:
        """Words for a value that only the forward sweep has."""
        known = _ENGINE.get((value.name or "").partition(".")[0])
        if known is not None:
            return known
        callee = value.callee if isinstance(value, CallSite) else None
        if isinstance(callee, Function) and str(callee.name).startswith("irad."):
            return "memory that the forward sweep keeps"
        origin = value.origin if isinstance(value, Instruction) else None
        while origin is not None and origin.origin is not None:
            origin = origin.origin
        if origin is None or origin.block is None or origin.block.function is not self.unit.function:
            return "a number that the forward sweep computes"
        return f"part of {self.of(origin)}"

    def of_given(self, value: Value) -> str:
        """Words for what is passed to a parallel loop: numbers as they are, pointers as the memory they point to."""
        return self._of_objects(value) if isinstance(value.type, PointerType) else self.of(value)

    def _parameter(self, value: Parameter) -> str:
        if value in self.parameters:
            return self.parameters[value]
        name = value.name or "argument"
        leaf = _LEAF.fullmatch(name)
        if leaf is None:
            special = {"retptr": "the result", "excinfo": "the place of exceptions"}
            return special.get(name.partition(".")[0], python_name(name))
        names = {param.name for param in self.unit.function.params}
        if not {f"arg.{leaf[1]}.4", f"arg.{leaf[1]}.5.0", f"arg.{leaf[1]}.6.0"} <= names:
            return leaf[1]
        if leaf[3] is not None:
            return f"{leaf[1]}.{'shape' if leaf[2] == '5' else 'strides'}[{leaf[3]}]"
        return _ARRAY_PARTS.get(leaf[2], "{}").format(leaf[1])

    def _made(self, value: Value) -> str:
        if not isinstance(value, Instruction):
            return "constant"
        chain = self.info.inline_chain(value)
        if chain and not is_library(chain[0].file):
            variables = variables_of(value, str(self.unit.function.name), self.copies, self.info)
            if variables and variables[0] not in _NUMBA:
                return variables[0]
        words_ = self._variable_of_phi(value) or self._variable_of_loop(value) or self._operation(value)
        place = self.place_of(value)
        has_line = place is None or not place.line or " line " in words_ or words_.isidentifier()
        return words_ if has_line or place is None else f"{words_} on line {place.line}"

    def _variable_of_phi(self, value: Instruction) -> str | None:
        """LLVM names a phi by the variable whose values meet there."""
        found = _PHI.match(value.name or "") if isinstance(value, Phi) else None
        return found[1] if found is not None and found[1] in self._variables - _NUMBA else None

    def _variable_of_loop(self, value: Instruction) -> str | None:
        """Variable of the ``for`` loop whose iterations a phi counts, or of which that is computed."""
        loop = self.unit.loops.loop_of(value.block) if value.block is not None else None
        if not isinstance(value, Phi) or loop is None or loop.header is not value.block:
            return None
        counts = any(isinstance(step, Binary) and value in step.operands and step.opcode == "add"
                     and any(isinstance(each, ConstantInt) for each in step.operands)
                     for step in value.operands)  # fmt: skip
        place = self.loops.of(loop) if counts else None
        return loop_variable(place.file, place.line) if place is not None else None

    @cached_property
    def _variables(self) -> frozenset[str]:
        return frozenset(name.partition(".")[0] for found in self.copies.variables.values() for name in found)

    def _operation(self, value: Instruction) -> str:
        match value:
            case Load():
                objects = self.unit.points_to.of(value.operands[0])
                if objects and all(item.value in self.numbers for item in objects):
                    return self._behind(value)
                is_array = all(item.kind is ObjectKind.HEADER for item in objects)
                if isinstance(value.type, PointerType):
                    return self._behind(value) if is_array else f"pointer in {self._behind(value)}"
                return f"element of {self._behind(value)}"
            case CallSite():
                name = callee_name(value, self.unit, self.namer)
                if _REGISTER.fullmatch(name):
                    return name
                return f"result of {name}" if " " in name else f"{name}(…)"
            case GetElementPtr():
                return f"place in {self._behind(value)}"
            case Phi():
                loop = self.unit.loops.loop_of(value.block) if value.block is not None else None
                carried = loop is not None and loop.header is value.block
                return "value from the iteration before" if carried else "value chosen by a branch"
            case _:
                return describe(value, self.unit, self.namer)

    def _behind(self, value: Instruction) -> str:
        """The memory that a load or an address is of."""
        return self._of_objects(value.operands[0])

    def _of_objects(self, pointer: Value) -> str:
        objects = self.unit.points_to.of(pointer)
        names = dict.fromkeys(map(self._object, objects[:2]))
        return " or ".join(names) if 0 < len(objects) <= 2 else "memory"

    def _object(self, item: MemoryObject) -> str:
        value = item.value
        if item.kind is ObjectKind.ARGUMENT and isinstance(value, Parameter):
            return self._parameter(value)
        if not isinstance(value, Instruction):
            return plain(str(item))
        place = self.place_of(value)
        what = "a local variable" if item.kind is ObjectKind.LOCAL else "the array made"
        return (
            f"{what} on line {place.line}"
            if place is not None and place.line
            else what.replace(" made", " that is made")
        )


# What the parameters of a parallel loop's body are in the source: what the function around it passes to the loop.
#
# array.2     charges
# array.4     the array made on line 30
# stride.1    a stride of positions
# schedule    the bounds of the threads' shares

_PARAMETERS_OF_LOOPS: Final = {
    LANE: "the number of the thread",
    THREADS: "the number of threads",
    CHUNKS: "the number of the threads' shares",
    SCHEDULE: "the bounds of the threads' shares",
    STEP: "the size of a thread's share in memory",
}


def numbers_of(loop: ParallelLoop) -> frozenset[Parameter]:
    """The parameters that point to one number, which is not an array in the source."""
    arrays = ((param, loop.array_of(number)) for number, param in enumerate(loop.function.params))
    return frozenset(param for param, array in arrays if array is not None and not array.axes)


def lane_words(loop: ParallelLoop, launch: CallSite | None, word_of: Callable[[Value], str]) -> dict[Parameter, str]:
    """The parameters of a loop function in words.

    Args:
        loop: the function.
        launch: its call, in the function around the loop.
        word_of: gives the source form of a value of that function; for a pointer, the memory it points to.
    """
    params = loop.function.params
    words = {params[number]: word for number, word in _PARAMETERS_OF_LOOPS.items()}
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
    """Value that is passed: Numba stores pointers in a vector for the loop, and numbers in variables of their own."""
    value: Value | None = argument
    if isinstance(argument, Load):
        value = _last_stored(argument.operands[0], argument)
    if isinstance(value, Alloca):
        return _last_stored(value, None) or value
    return value


def _last_stored(pointer: Value, before: Instruction | None) -> Value | None:
    """Value stored at an address last, in the order of the code."""
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
