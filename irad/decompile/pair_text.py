"""Both sweeps of one function as Python: analyses, names, statements."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from irad.decompile import trees
from irad.decompile.arrays import ParameterFacts, ReturnedValue
from irad.decompile.chosen import find_chosen
from irad.decompile.cleanup import clean_up, keep_choices
from irad.decompile.integers import find_affine, find_choices
from irad.decompile.loops import LoopForm, find_loop_forms, name_loops
from irad.decompile.names import FreshNames, source_names
from irad.decompile.pair_memory import PairMemory, Reads, is_allocation
from irad.decompile.pointers import origin_of, place_of
from irad.decompile.raises import Raised, split_raises
from irad.decompile.refusal import refused
from irad.decompile.sheet import Sheet, block_of
from irad.decompile.structure import Structurer
from irad.decompile.sweep_text import SweepText, debug_places
from irad.decompile.tidy import tidy
from irad.decompile.variables import Interference, ValueNames, VariableChoice, share_variables
from irad.errors import SourceLocation, UnsupportedError
from irad.frontend.values import abi
from irad.ir.cfg import control_flow
from irad.ir.debug_info import DebugInfo
from irad.ir.dominance import dominators
from irad.ir.instructions import Call, Instruction, Load, Phi, Store
from irad.ir.loops import Loop, loop_nest
from irad.ir.module import Block
from irad.ir.trip_count import affine_variables
from irad.ir.types import PointerType
from irad.ir.values import ConstantInt, Value
from irad.ir.worklist import reachable
from irad.passes.generated import GeneratedPair
from irad.passes.request import ParameterKind


@dataclass(eq=False, slots=True)
class PairText:
    """The sweeps of one function.

    Attributes:
        augmented, reverse: their statements.
        tape: the names of what is saved in loops, in the order of the forward sweep.
        is_flat: the array that is returned has one dimension in Python, and takes its shape at the end.
        exceptions: those that are raised, by name.
        outs: the variables in which the reverse sweep leaves the cotangents of parameters, by parameter index.
    """

    augmented: list[ast.stmt] = field(default_factory=list)
    reverse: list[ast.stmt] = field(default_factory=list)
    tape: list[str] = field(default_factory=list)
    outs: dict[int, str] = field(default_factory=dict)
    is_flat: bool = False
    exceptions: dict[str, type[BaseException]] = field(default_factory=dict)


def pair_text(
    captured: GeneratedPair,
    arguments: tuple[abi.Argument, ...],
    result: ReturnedValue,
    namer: FreshNames,
) -> PairText:
    """Writes both sweeps; ``result`` is the return value."""
    return _Writer(captured, arguments, result, namer).run()


@dataclass(eq=False, slots=True)
class _Writer:
    captured: GeneratedPair
    arguments: tuple[abi.Argument, ...]
    result: ReturnedValue
    namer: FreshNames
    forms: dict[Loop, LoopForm] = field(default_factory=dict)
    keys: dict[Loop, Value] = field(default_factory=dict)
    same: dict[Value, Value] = field(default_factory=dict)
    place_of: Callable[[Instruction], SourceLocation | None] = field(init=False)
    memory: PairMemory = field(init=False)
    naming: ValueNames = field(init=False)

    def run(self) -> PairText:
        captured = self.captured
        function = captured.augmented.function
        raised = split_raises(function, function.params[3])
        captured.loops.cfg = control_flow(function)
        captured.loops.dominators = dominators(captured.loops.cfg)
        program = captured.augmented.program
        self.place_of = debug_places(DebugInfo(program.module), program.request.host.library)
        self.forms = find_loop_forms(captured)
        keep_choices(captured)
        self._count_iterations()
        reads = clean_up(captured)
        self.memory = PairMemory(captured, self.arguments, self.result)
        places = filter(None, map(self.place_of, function.instructions()))
        known: set[str] = set().union(*(source_names(place.file).known_at(place.line) for place in places))
        counters = set(self.keys.values())
        self.naming = ValueNames(captured, self.memory, self.namer, self.place_of, known, counters)
        augmented = self._sheet(Reads(), None)
        reverse = self._sheet(reads, augmented)
        name_loops(self.forms, self.place_of, self.namer)
        made = PairText()
        made.exceptions = {each.kind.__name__: each.kind for each in raised.values() if each is not None}
        self.namer.taken |= made.exceptions.keys()
        made.outs = self._outs()
        first = self._choose(augmented, raised, made)
        second = self._choose_reverse(reverse)
        forward_body, reverse_body = self._statements(first), self._statements(second)
        made.is_flat = first.is_flat
        kept = {*self.result.names, *(self.result.shape if made.is_flat else ()), *made.outs.values()}
        made.augmented, made.reverse = tidy(forward_body, reverse_body, kept)
        return made

    # ------------------------------------------------------------------------------------------------ sheets

    def _sheet(self, reads: Reads, augmented: Sheet | None) -> Sheet:
        captured = self.captured
        function = captured.augmented.function if augmented is None else captured.sweep.function
        cfg = control_flow(function)
        tree = dominators(cfg)
        params = captured.augmented.function.params[2:]
        facts = ParameterFacts.of(self.arguments, params, lambda start: self.memory.starts[start].array)
        sheet = Sheet(
            captured, function, cfg, tree, loop_nest(cfg, tree), self.forms, self.memory, reads,
            is_reverse=augmented is not None, same={**self.same, **facts.same}, augmented=augmented,
            affine=dict(facts.known), sizes=facts.sizes | facts.strides, nonnegative=set(facts.sizes),
            truths=facts.truths,
        )  # fmt: skip
        find_affine(sheet)
        for value, text in facts.texts.items():
            sheet.texts[value] = _parsed(text)
            if value in facts.unsigned:
                sheet.unsigned[value] = _parsed(text)
                sheet.texts[value] = _parsed(f"wrapped({text}, {facts.unsigned[value]})")
        find_choices(sheet)
        find_chosen(sheet)
        return sheet

    def _count_iterations(self) -> None:
        """Loops that are not a `for` and in which something is saved have a variable that counts."""
        captured = self.captured
        for value in captured.plan.saved:
            block = value.block if isinstance(value, Instruction) else None
            loop = captured.loops.innermost.get(block) if block is not None else None
            while loop is not None:
                if not self.forms[loop].is_for:
                    self.keys[loop] = self._counter(loop)
                loop = loop.parent
        captured.plan = captured.plan.saving((*captured.plan.saved, *self.keys.values()))

    def _counter(self, loop: Loop) -> Value:
        """Counter of iterations from 0: a variable of the source, if one does."""
        made = self.captured.loops.counter(loop)
        for phi, variable in affine_variables(self.forms[loop].twin).items():
            start = variable.start
            is_like = phi is not made and phi.type is made.type and variable.step == 1
            if is_like and isinstance(start, ConstantInt) and start.value == 0:
                self.same[made] = phi
                return phi
        return made

    # ------------------------------------------------------------------------------------------------ choices

    def _choose(self, sheet: Sheet, raised: dict[Block, Raised | None], made: PairText) -> SweepText:
        captured = self.captured
        choice = VariableChoice(sheet, self._line, set())
        forced: dict[Value, None] = {}
        for value in captured.plan.saved:
            is_moved = value in sheet.affine and origin_of(sheet, value) not in sheet.chosen
            if isinstance(value, Instruction) and not choice.is_stable(value) and not is_moved:
                forced[value] = None
        choice.forced = set(forced)
        sheet.texts.update({v: self.naming.reader(v) for v in forced if not isinstance(v.type, PointerType)})
        kept: set[Value] = set()  # arrays that the reverse sweep names
        variables = choice.run()
        sheet.texts.update({v: self.naming.reader(v) for v in variables})
        sheet.derivable |= {v for v in variables if choice.is_stable(v)}
        for value in forced:
            if isinstance(value.type, PointerType):
                kept.add(self._save_pointer(sheet, choice, value))
                continue
            loop = self._loop_of(value)
            if loop is not None and value not in self.keys.values():
                sheet.tape[value] = self._tape_reader(value, loop)
        alive = set(sheet.function.instructions())
        for array, shadow in (made for call, made in self.memory.allocations.items() if call in alive):
            array.name = self.namer.new(self.naming.array_name(array.origin))
            if shadow is not None:
                shadow.name = self.namer.new(f"{array.name}_bar")
        for value, reader in sheet.tape.items():
            if not isinstance(value, Phi) and value in variables:
                sheet.texts[value] = reader
        text = SweepText(sheet, variables, self.place_of, raised, self._allocation_code())
        text.ignored = {captured.augmented.function.params[3]}  # where exceptions go
        saved_once = {v for v in (*forced, *kept) if v in variables and v not in sheet.tape}
        classes = self._share(text, {v for v in variables if v not in sheet.tape or isinstance(v, Phi)}, saved_once)
        named = {v: members for v, members in classes.items() if v not in self.memory.allocations}
        self.naming.name_classes(named, self.naming.augmented_name)
        for value in sheet.chosen:
            self.memory.starts[value].array.name = self.naming.names[value]
        for value in sheet.tape:
            base = self._array_of(value) or self.naming.augmented_name(value) or "value"
            if isinstance(value.type, PointerType) and value not in sheet.chosen and self._array_of(value) is None:
                base = "index"
            name = self.namer.new(f"saved_{base.removeprefix('~')}")
            self.naming.tape_names[value] = name
            if self._loop_of(value) is not None:
                made.tape.append(name)
        for loop, counter in self.keys.items():
            self.forms[loop].variable.name = self.naming.names[counter]
        sheet.stable |= saved_once  # what is needed at the end is not assigned again
        sheet.stable |= {v for v in variables if self._loop_of(v) is None and len(classes.get(v, [v])) == 1}
        return text

    def _loop_of(self, value: Value) -> Loop | None:
        """The innermost loop around a value of the forward sweep."""
        block = value.block if isinstance(value, Instruction) else None
        return self.captured.loops.innermost.get(block) if block is not None else None

    def _save_pointer(self, sheet: Sheet, choice: VariableChoice, value: Value) -> Value:
        """Saves the parts of a pointer: its array, if each iteration makes one, and its index, if not recomputable.

        Returns the start of the array.
        """
        place = place_of(sheet, value)
        origin = place.array.origin
        loop = self._loop_of(origin)
        if loop is not None:
            sheet.tape[origin] = self._tape_reader(origin, loop)
        if not place.is_header and not all(map(choice.is_stable, place.offset.values)):
            sheet.tape[value] = self._tape_reader(value, self._loop_of(value))
        return origin

    def _array_of(self, value: Value) -> str | None:
        for pair in self.memory.allocations.values():
            for array in pair:
                if array is not None and array.origin is value:
                    return array.name
        return None

    def _tape_reader(self, key: Value, loop: Loop | None) -> Callable[[], ast.expr]:
        loops: list[Loop] = []
        current: Loop | None = loop
        while current is not None:
            loops.insert(0, current)
            current = current.parent

        def read() -> ast.expr:
            name = self.naming.tape_names.get(key, "saved")
            indices: list[ast.expr] = [trees.name(str(self.forms[each].variable.name)) for each in loops]
            return trees.subscript(trees.name(name), indices) if indices else trees.name(name)

        return read

    def _choose_reverse(self, sheet: Sheet) -> SweepText:
        check_results(sheet)
        choice = VariableChoice(sheet, self._line, set())
        variables = choice.run()
        sheet.texts.update({v: self.naming.reader(v) for v in variables})
        text = SweepText(sheet, variables, self.place_of, outs=self._out_pointers())
        classes = self._share(text, variables, set())
        handed_out: dict[int, str] = {}
        for inst in sheet.function.instructions():
            if isinstance(inst, Store) and inst.operands[1] in text.outs and inst.operands[0] in classes:
                value, pointer = inst.operands
                handed_out.setdefault(id(classes[value]), text.outs[pointer])
        for members in classes.values():
            if id(members) in handed_out:
                for each in members:
                    self.naming.names[each] = handed_out[id(members)]
        self.naming.name_recomputed(sheet, classes)
        self.naming.name_classes(classes, lambda v: self.naming.reverse_name(sheet, v))
        return text

    def _allocation_code(self) -> set[Instruction]:
        """Code that rules of allocations add to the forward sweep: the shadow, which is one statement in Python."""
        augmented = self.captured.augmented
        copies = set(augmented.values.values())
        return {
            inst
            for inst in augmented.function.instructions()
            if inst not in copies and isinstance(inst.origin, Call) and is_allocation(inst.origin)
        }

    def _share(self, text: SweepText, variables: set[Value], at_end: set[Value]) -> dict[Value, list[Value]]:
        sites, edges = text.sites()
        for site in (site for found in sites.values() for site in found):
            site.uses &= variables
        edges = {edge: used & variables for edge, used in edges.items()}
        carried, apart = text.carried()
        text.ranges.clear()  # names are not known yet
        carried = {block: values & variables for block, values in carried.items()}
        conflicts = Interference(text.sheet, sites, edges, at_end, carried).run() | apart
        return share_variables(text.sheet, variables, conflicts, self.naming.may_share)

    def _line(self, inst: Instruction) -> int | None:
        place = self.place_of(inst)
        return place.line if place is not None else None

    # ------------------------------------------------------------------------------------------------ results

    def _out_pointers(self) -> dict[Value, str]:
        params = self.captured.sweep.function.params[2 + self.captured.pair.variant.result_active :]
        return dict(zip(params, self._outs().values(), strict=True))

    def _outs(self) -> dict[int, str]:
        names = {leaf.index: "_".join([a.name, *map(str, leaf.path)]) for a in self.arguments for leaf in a.leaves}
        kinds = enumerate(self.captured.pair.variant.kinds)
        return {index: f"{names[index]}_bar" for index, kind in kinds if kind is ParameterKind.ACTIVE}

    def _statements(self, text: SweepText) -> list[ast.stmt]:
        sheet = text.sheet
        return Structurer(sheet.cfg, sheet.dominators, sheet.nest, text).run()


def check_results(sheet: Sheet) -> None:
    """The cotangent of each part of the result is read once on each way through the reverse sweep."""
    loads: dict[int, list[Load]] = {}
    for inst in sheet.function.instructions():
        if isinstance(inst, Load) and not isinstance(inst.type, PointerType):
            try:
                place = place_of(sheet, inst.operands[0])
            except UnsupportedError:
                continue
            if place.array.name == "result_bar":
                loads.setdefault(place.offset.number or 0, []).append(inst)
    for found in loads.values():
        blocks = list(map(block_of, found))
        following = [after for block in blocks for after in sheet.cfg.successors[block]]
        behind = set(reachable(following, sheet.cfg.successors.__getitem__))
        if len(set(blocks)) < len(blocks) or not behind.isdisjoint(blocks):
            raise refused("a result that is written in several places", found[0])


def _parsed(text: str) -> Callable[[], ast.expr]:
    return lambda: ast.parse(text, mode="eval").body
