"""How variables are called: as in the source, by what they are, or by the value of which they are the cotangent."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from irad.decompile import trees
from irad.decompile.memory.memory import PairMemory
from irad.decompile.naming.names import FreshNames, source_name, source_names
from irad.decompile.sheet import Sheet
from irad.errors import SourceLocation
from irad.ir.instructions import Binary, CallSite, FCmp, ICmp, Instruction, Load, Phi, Select
from irad.ir.types import FloatType, PointerType
from irad.ir.values import Parameter, Value
from irad.passes.callees import resolve
from irad.passes.generated import GeneratedPair
from irad.ruleset.interface import Elementwise

_NOTES = {"from": "branch", "last": "last_step", "begin": "begin"}


@dataclass(eq=False, slots=True)
class ValueNames:
    """The names of one pair.

    Attributes:
        place_of: the user's line of an instruction.
        known: the names in the source.
        counters: values that count the iterations of a `while`.
        names: of variables.
        tape_names: of what is saved in loops.
    """

    captured: GeneratedPair
    memory: PairMemory
    namer: FreshNames
    place_of: Callable[[Instruction], SourceLocation | None]
    known: set[str]
    counters: set[Value]
    names: dict[Value, str] = field(default_factory=dict)
    tape_names: dict[Value, str] = field(default_factory=dict)
    primal_of: dict[Value, Value] = field(init=False)

    def __post_init__(self) -> None:
        self.primal_of = {shadow: primal for primal, shadow in self.captured.augmented.shadows.items()}

    def reader(self, value: Value) -> Callable[[], ast.expr]:
        """What writes a variable, when it has a name."""
        return lambda: trees.name(self.names.get(value) or "_")

    def may_share(self, a: Value, b: Value) -> bool:
        """Variables of different names in the source stay apart."""
        mine, theirs = source_name(a.name, self.known), source_name(b.name, self.known)
        return mine is None or theirs is None or mine == theirs

    def name_classes(self, classes: dict[Value, list[Value]], name_of: Callable[[Value], str | None]) -> None:
        """Gives each variable a name, by the values in it; words behind ~ only where there is no name."""
        done: set[int] = set()
        for members in classes.values():
            if id(members) in done or self.names.get(members[0]):
                continue
            done.add(id(members))
            wanted = [n for n in map(name_of, members) if n is not None]
            good = [n for n in wanted if not n.startswith("~")]
            name = self.namer.new((good or [w[1:] for w in wanted] or ["value"])[0])
            self.names.update(dict.fromkeys(members, name))

    def name_recomputed(self, sheet: Sheet, classes: dict[Value, list[Value]]) -> None:
        """What is computed again has the name that it has in the forward sweep, if that has one value only."""
        assert sheet.augmented is not None
        for members in classes.values():
            again = sheet.reads.recomputed.get(members[0])
            if len(members) == 1 and again in sheet.augmented.stable and again in self.names:
                self.names[members[0]] = self.names[again]

    def augmented_name(self, value: Value) -> str | None:
        """The source's name of a value, or behind ~ a word for what it is."""
        if isinstance(value.type, PointerType):
            return self._pointer_name(value)
        found = source_name(value.name, self.known)
        if found is not None:
            return found
        if value in self.counters:
            return "step"
        if isinstance(value, Instruction) and not isinstance(value, Phi):
            place = self.place_of(value)
            if place is not None and self._is_root(value, place):
                assigned = source_names(place.file).assigned.get(place.line)
                if assigned is not None:
                    return assigned
        word = self._word(value)
        return f"~{word}" if word else None

    def _pointer_name(self, value: Value) -> str:
        """The name of a variable that is one array or another, from its phi or from the line that chooses."""
        primal = self.primal_of.get(value)
        if primal is not None:
            own = self.names.get(self.captured.augmented.values.get(primal, primal))
            return f"{own or self._pointer_name(primal).removeprefix('~')}_bar"
        if isinstance(value, Phi):
            return source_name(value.name, self.known) or "~source"
        place = self.place_of(value) if isinstance(value, Instruction) else None
        assigned = source_names(place.file).assigned.get(place.line) if place is not None else None
        return assigned or "~source"

    def _is_root(self, value: Instruction, place: SourceLocation) -> bool:
        """Whether a value is what the statement of its line assigns: nothing else there is computed from it."""
        return isinstance(value.type, FloatType) and all(
            isinstance(user, Phi) or self.place_of(user) != place for user in value.users
        )

    def _word(self, value: Value) -> str | None:
        match value:
            case Instruction(name="from" | "last" | "begin" as word):
                return _NOTES[word]
            case CallSite():
                callee = resolve(value, self.captured.augmented.unit.registry)
                return callee.name.removeprefix("as_") if isinstance(callee, Elementwise) else "called"
            case Load(operands=[pointer]):
                array = self.memory.array_behind(pointer)
                return f"{array.name}_i" if array is not None else "loaded"
            case ICmp() | FCmp():
                return "condition"
            case Select():
                return "chosen"
            case Phi():
                words = {
                    w
                    for v in value.operands
                    if isinstance(v, Instruction) and not isinstance(v, Phi)
                    for w in [self._word(v)]
                }
                return words.pop() if len(words) == 1 else None
            case Binary(opcode="fadd" | "fsub"):
                return "total"
            case Binary(opcode="fmul"):
                return "product"
            case Binary(opcode="fdiv"):
                return "quotient"
            case _:
                return None

    def array_name(self, origin: Value) -> str:
        """The name of new memory."""
        place = self.place_of(origin) if isinstance(origin, Instruction) else None
        assigned = source_names(place.file).assigned.get(place.line) if place is not None else None
        return assigned or "temporary"

    def reverse_name(self, sheet: Sheet, value: Value) -> str | None:
        """The name of what is computed again, or of the value of which this is the cotangent."""
        again = sheet.reads.recomputed.get(value)
        if again is not None:
            return self.names.get(again) or self.augmented_name(again)
        primal = sheet.reads.cotangents.get(value)
        if primal is None and isinstance(value, Instruction):
            primal = self._consumer(value)
        if primal is not None:
            return self._bar(primal)
        word = self._word(value)
        return f"~{word}" if word else None

    def _consumer(self, value: Instruction) -> Value | None:
        """The primal instruction whose adjoint a value goes into: it is the cotangent of that."""
        origins = {id(user.origin): user.origin for user in value.users if user.origin is not None}
        if len(origins) != 1 or value.origin is None:
            return None
        (origin,) = origins.values()
        return origin if origin is not value.origin and isinstance(origin.type, FloatType) else None

    def _bar(self, primal: Value) -> str:
        if isinstance(primal, Parameter):
            return f"{source_name(primal.name, self.known) or 'value'}_bar"
        copy = self.captured.augmented.values.get(primal, primal)
        known = self.names.get(copy)
        if known:
            return f"{known}_bar"
        tape = self.tape_names.get(copy)
        name = tape.removeprefix("saved_") if tape else (self.augmented_name(copy) or "value")
        return f"~{name.removeprefix('~')}_bar" if name.startswith("~") else f"{name}_bar"
