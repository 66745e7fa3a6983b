"""From a generated pair to what is said of its function: values, tape, calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from irad.errors import SourceLocation
from irad.frontend.custom.outline import Outlined
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import CallSite, Instruction, Load, Phi, Store
from irad.ir.loops import Loop
from irad.ir.module import Function
from irad.ir.printer import print_lines
from irad.ir.types import VOID, PointerType
from irad.ir.values import ConstantInt, Parameter, Value
from irad.passes.derivative import GeneratedPair
from irad.passes.objects import MemoryObject
from irad.passes.request import ParameterKind
from irad.passes.runtime import ARENA_ALLOC
from irad.report import words
from irad.report.model import FunctionReport, LoopTape, ShadowMemory, Storage, TapeEntry, ValueFacts
from irad.report.names import PARALLEL_LOOP, Namer, python_name
from irad.report.rule_origin import rule_of
from irad.report.source import UserSource
from irad.report.variables import Copies, variables_of


@dataclass(eq=False)
class PairReader:
    """Reads one pair.

    Attributes:
        definitions: where the functions of the program are defined, by symbol.
        names: spelling of the primal's values.
        copies: the Python variables behind values.
        allocations: how the engine names memory that a call allocates, and how to say it.
        primals: value of the forward sweep → the primal's value, and whether it is that one's shadow.
    """

    made: GeneratedPair
    info: DebugInfo
    source: UserSource
    namer: Namer
    ruled: tuple[Outlined, ...]
    definitions: Mapping[str, SourceLocation | None]
    copies: Copies
    names: Mapping[Value, str] = field(init=False)
    primals: dict[Value, tuple[Value, bool]] = field(init=False)
    allocations: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = print_lines(self.made.unit.function)[1]
        forward = self.made.forward
        self.primals = {copy: (primal, False) for primal, copy in forward.values.items()}
        self.primals |= {shadow: (primal, True) for primal, shadow in forward.shadows.items()}
        made = [item for item in self.made.unit.points_to.objects if isinstance(item.value, Instruction)]
        named = {str(item): self._memory_in_words(item) for item in made}
        self.allocations = dict(sorted(named.items(), key=lambda pair: -len(pair[0])))  # longest first: `.7` and `.7.i`

    def _memory_in_words(self, item: MemoryObject) -> str:
        place = self.place_of(item.value) if item.value is not None else None
        where = f" of line {place.line}" if place is not None else ""
        return {"allocation": f"memory{where}", "header": f"the record of memory{where}"}.get(
            item.kind.value, f"a local variable{where}"
        )

    def report(self, pairs: Iterable[GeneratedPair]) -> FunctionReport:
        """Everything about the function; ``pairs`` are all of the program, in the order of the report."""
        pair, function = self.made.pair, self.made.unit.function
        symbol = str(function.name)
        return FunctionReport(
            symbol=symbol,
            name=self.name(),
            variant=self.variant(),
            augmented=str(pair.augmented.name),
            reverse=str(pair.reverse.name),
            place=self.place(),
            calls=tuple(self.calls(pairs)),
            values=tuple(self.values()),
            tape=tuple(sorted(self.tape(), key=lambda entry: (-len(entry.loops), -entry.bytes))),
            loop_tapes=tuple(self.loop_tapes()),
            frame_bytes=frame_bytes(self.made),
            shadow_memory=tuple(self.shadow_memory()),
        )

    def name(self) -> str:
        """As Python names it; of the body of a parallel loop, by its first line."""
        name = self.namer.name(str(self.made.unit.function.name))
        chains = map(self.info.inline_chain, self.made.unit.function.instructions())
        lines = [line for chain in chains if (line := self.source.line_of(chain)) is not None]
        return f"{name} (line {min(lines)})" if name.startswith(PARALLEL_LOOP) and lines else name

    def variant(self) -> str:
        """How the function is differentiated, in words."""
        variant, function = self.made.unit.variant, self.made.unit.function
        active = dict.fromkeys(
            python_name(param.name or "?")
            for param, kind in zip(function.params, variant.kinds, strict=True)
            if kind is not ParameterKind.CONST and not _is_result(param)
        )
        seeded = variant.result_active or any(
            _is_result(param) and kind is ParameterKind.SHADOW
            for param, kind in zip(function.params, variant.kinds, strict=True)
        )
        lane = "one lane; " if variant.is_lane else ""
        return f"{lane}by {', '.join(active) or 'nothing'}; result {'active' if seeded else 'constant'}"

    def place(self) -> SourceLocation | None:
        """Where the function is defined; its first known place where that is not known, as of the body of a loop."""
        known = self.definitions.get(str(self.made.unit.function.name))
        if known is not None:
            return known
        chains = map(self.info.inline_chain, self.made.unit.function.instructions())
        return next((place for chain in chains if (place := self.source.place_of(chain[-1:])) is not None), None)

    def calls(self, pairs: Iterable[GeneratedPair]) -> Iterator[int]:
        """The places of the callees' pairs."""
        numbers = {made.pair: number for number, made in enumerate(pairs)}
        by_function = {made.pair.variant: number for made, number in zip(pairs, numbers.values(), strict=True)}
        for _, callee in self.made.forward.callee_frames.values():
            number = numbers.get(callee, by_function.get(callee.variant))
            if number is not None:
                yield number

    # -------------------------------------------------------------------------------------------- values

    def values(self) -> Iterator[ValueFacts]:
        """Parameters, then instructions that have a value or act on memory."""
        function = self.made.unit.function
        for param in function.params:
            yield self.facts(param)
        for inst in function.instructions():
            if inst.type is not VOID or isinstance(inst, CallSite | Store):
                yield self.facts(inst)

    def facts(self, value: Value) -> ValueFacts:
        """What is known of one value."""
        unit = self.made.unit
        about = value.operands[0] if isinstance(value, Store) else value
        rule = rule_of(value, unit.registry, self.ruled) if isinstance(value, CallSite) else None
        return ValueFacts(
            name=self.names.get(value, "") if value.type is not VOID else "",
            type=str(value.type),
            operation=self.plain(words.describe(value, unit, self.namer)),
            places=tuple(self.info.inline_chain(value)) if isinstance(value, Instruction) else (),
            is_active=unit.activity.is_active(about),
            activity=self.plain(unit.activity.explain(about)),
            memory=tuple(self.memory(value)),
            plan=self.plan(value),
            is_saved=any(self.primals.get(slot.value, (None,))[0] is value for slot in self.made.tape.slots),
            rule=rule.name if rule is not None else None,
            rule_origin=rule.place if rule is not None else None,
            operands=tuple(self.operands(value)),
            variables=variables_of(value, str(unit.function.name), self.copies, self.info),
        )

    def operands(self, value: Value) -> Iterator[str]:
        """The names of what a value is computed from."""
        if isinstance(value, Instruction):
            for operand in dict.fromkeys(value.operands):
                if isinstance(operand, Instruction | Parameter):
                    yield self.names[operand]

    def plain(self, text: str) -> str:
        """An explanation in a user's words."""
        for spelled, shown in self.allocations.items():
            text = text.replace(spelled, shown)
        return words.plain(text)

    def memory(self, value: Value) -> Iterator[str]:
        """What a pointer may point to and what is there; of a load, whether that stays."""
        unit = self.made.unit
        if isinstance(value.type, PointerType):
            yield self.plain(unit.points_to.explain(value))
            yield f"holds {self.plain(unit.memory_types.explain(value))}"
        if isinstance(value, Load):
            yield f"its memory: {self.plain(unit.effects.explain(value.operands[0], value))}"

    def plan(self, value: Value) -> str:
        """What the plan says of a value, and of its shadow if that is needed, too."""
        forward, plan = self.made.forward, self.made.plan
        if value.type is VOID:
            return ""
        told = self.plain(plan.explain(forward.value(value)))
        shadow = forward.shadows.get(value)
        if shadow is not None and shadow in plan.reasons:
            told += f"; its shadow: {self.plain(plan.explain(shadow))}"
        return told

    # -------------------------------------------------------------------------------------------- tape

    def tape(self) -> Iterator[TapeEntry]:
        """The slots of the tape."""
        spelled = print_lines(self.made.pair.augmented)[1]
        for slot in self.made.tape.slots:
            primal, is_shadow = self.primals.get(slot.value, (None, False))
            name = self.names.get(primal, "") if primal is not None else ""
            yield TapeEntry(
                value=f"{name}.shadow" if is_shadow else name or spelled.get(slot.value, "?"),
                type=str(slot.value.type),
                bytes=slot.size,
                storage=Storage(slot.storage.value),
                loops=tuple(self.loop_line(loop) for loop in _around(slot.loop)),
                place=self.place_of(primal if primal is not None else slot.value),
                why=self.why(slot.value),
            )

    def loop_tapes(self) -> Iterator[LoopTape]:
        """What each loop takes."""
        tape = self.made.tape
        for loop in self.made.unit.loops.loops:
            slots = [slot for slot in tape.slots if slot.loop is loop]
            if slots:
                storage = Storage(slots[0].storage.value)
                size = tape.per_iteration[loop]
                lines = tuple(self.loop_line(outer) for outer in _around(loop))
                yield LoopTape(lines, storage, _allocated(size) if storage is Storage.RECORD else size, len(slots))

    def shadow_memory(self) -> Iterator[ShadowMemory]:
        """What the forward sweep takes of the arena beside tapes and frames of callees: that is for shadows."""
        augmented = self.made.pair.augmented
        spelled = print_lines(augmented)[1]
        loops = {self.made.forward.block(b): self.made.unit.loops.loop_of(b) for b in self.made.unit.cfg.order}
        frames = {frame for frame, _ in self.made.forward.callee_frames.values()}
        for inst in augmented.instructions():
            if not isinstance(inst, CallSite) or inst in frames or inst.name == "record":
                continue
            if isinstance(inst.callee, Function) and inst.callee.name == ARENA_ALLOC:
                size = inst.arguments[1]
                around = loops.get(inst.block) if inst.block is not None else None
                yield ShadowMemory(
                    self.source.place_of(self.info.inline_chain(inst)),
                    tuple(self.loop_line(outer) for outer in _around(around)),
                    size.value if isinstance(size, ConstantInt) else None,
                    spelled.get(size, str(size)) if not isinstance(size, ConstantInt) else str(size.value),
                )

    def place_of(self, value: Value) -> SourceLocation | None:
        """The user's line that computes a value; of a choice between values, for which LLVM has none, that of one."""
        if isinstance(value, Instruction):
            candidates = (value, *value.operands) if isinstance(value, Phi) else (value,)
            places = (self.source.place_of(self.info.inline_chain(v)) for v in candidates if isinstance(v, Instruction))
            return next((place for place in places if place is not None), None)
        return self.place() if isinstance(value, Parameter) else None

    def why(self, value: Value) -> str:
        """Why a value is saved."""
        plan = self.made.plan
        if value in plan.reasons:
            return self.plain(plan.explain(value))
        return "saved: the tape of a loop, or how often it runs, is found by it"

    def loop_line(self, loop: Loop) -> int:
        """The line of a loop: where it is decided whether it goes on; 0 where that is not known."""
        for block in (*(inside for inside, _ in loop.exits), *loop.order):
            for inst in reversed(block.instructions):
                line = self.source.line_of(self.info.inline_chain(inst))
                if line is not None:
                    return line
        return 0


def _is_result(param: Parameter) -> bool:
    """Whether a parameter is the place for the result; LLVM numbers it in callees."""
    return (param.name or "").partition(".")[0] == "retptr"


def frame_bytes(made: GeneratedPair) -> int:
    """What a call takes outside loops."""
    size = made.pair.frame_size.initializer
    return size.value if isinstance(size, ConstantInt) else made.tape.frame_size


def _allocated(size: int) -> int:
    """What `irad.arena_alloc` takes for one of many allocations of a size: they begin at multiples of 16, or of 64."""
    step = 64 if size > 63 else 16
    return -(-size // step) * step


def _around(loop: Loop | None) -> list[Loop]:
    """A loop and those around it, outermost first."""
    found: list[Loop] = []
    while loop is not None:
        found.insert(0, loop)
        loop = loop.parent
    return found
