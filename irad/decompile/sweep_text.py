"""One sweep as Python statements: the contents of the blocks, with comments that name the source lines."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field

from irad.decompile import trees
from irad.decompile.arrays import items_in
from irad.decompile.chosen import array_of, choice_text
from irad.decompile.cleanup import is_zero
from irad.decompile.expressions import array_text, element_text, natural_text, operation, sum_text, text_of
from irad.decompile.integers import first_index, is_checked_arithmetic, is_fixed, is_run, plain_bounds, polynomial_of
from irad.decompile.loops import LoopForm, exit_of
from irad.decompile.pair_memory import ArrayPlace, is_allocation
from irad.decompile.pointers import element_of, flat_index, place_of
from irad.decompile.polynomial import Polynomial
from irad.decompile.raises import Raised
from irad.decompile.refusal import refused
from irad.decompile.sheet import Sheet
from irad.decompile.variables import Site, is_silent
from irad.errors import SourceLocation
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import (
    Alloca,
    Call,
    CallSite,
    CondBr,
    ICmp,
    Instruction,
    Phi,
    Select,
    Store,
    Switch,
)
from irad.ir.loops import Loop
from irad.ir.module import Block
from irad.ir.types import I64, FloatType, IntType, PointerType
from irad.ir.values import ConstantInt, Value
from irad.passes.convention import LibraryCode

# Calls that move or fill memory, as slices.


def bulk_statements(sheet: Sheet, call: CallSite) -> list[ast.stmt] | None:
    """The statements of a call; None for other calls."""
    name = call.callee.name or ""
    arguments = call.arguments
    if name.startswith("llvm.memset"):
        return _fill(sheet, call, arguments)
    if name.startswith(("llvm.memcpy", "llvm.memmove")):
        into, source, size = arguments[:3]
        if place_of(sheet, into).array.is_result or place_of(sheet, source).array.is_result:
            return None
        return [trees.assign(_slice(sheet, into, size), _slice(sheet, source, size))]
    if name.startswith("irad.copy_adjoint"):
        into, source, size = arguments
        taken, grown = _slice(sheet, into, size), _slice(sheet, source, size)
        return [_added(grown, taken), trees.assign(taken, trees.number(0.0))]
    return None


def _fill(sheet: Sheet, call: CallSite, arguments: list[Value]) -> list[ast.stmt] | None:
    pointer, byte, size = arguments[:3]
    place = place_of(sheet, pointer)
    if not isinstance(byte, ConstantInt) or (byte.value and place.array.itemsize != 1):
        raise refused("memory that is filled with bytes other than zero", call)
    if place.array.is_result:
        return [] if place.array.is_shadow else None
    number = trees.number(byte.value if place.array.itemsize == 1 else 0.0)
    return [trees.assign(_slice(sheet, pointer, size), number)]


def _added(into: ast.expr, amount: ast.expr) -> ast.stmt:
    return trees.assign(into, trees.binary(into, ast.Add(), amount))


def _slice(sheet: Sheet, pointer: Value, size: Value) -> ast.expr:
    """The items in the ``size`` bytes from a pointer on."""
    place: ArrayPlace = place_of(sheet, pointer)
    array = place.array
    first, number = (items_in(total, array.itemsize) for total in (place.offset, polynomial_of(sheet, size)))
    base = array_text(sheet, array)
    if len(array.strides) > 1 or array.is_flat:
        base = ast.Call(ast.Attribute(base, "reshape", ast.Load()), [trees.number(-1)], [])
    written = natural_text if array.is_view else sum_text
    lower = written(sheet, first) if first.terms else None
    upper = sum_text(sheet, first + number)
    return ast.Subscript(base, ast.Slice(lower, upper), ast.Load())


# The ranges of loops, in both directions.


@dataclass(frozen=True, slots=True)
class Range:
    """The head of a `for`, the block that ends its iterations, and where the loop goes when they are exhausted."""

    variable: str
    iterator: ast.expr
    last: Block
    exit: Block


def range_text(sheet: Sheet, loop: Loop) -> Range | None:
    """The range of a loop of a sweep; None for a `while`."""
    return _reverse_range(sheet, loop) if sheet.is_reverse else _forward_range(sheet, loop)


def _forward_range(sheet: Sheet, twin: Loop) -> Range | None:
    form = next((f for f in sheet.forms.values() if f.twin.header is twin.header), None)
    if form is None or form.count is None:
        return None
    latch = form.twin.latch
    assert latch is not None
    return Range(str(form.variable.name), _iterator(sheet, form), latch, exit_of(form))


def _iterator(sheet: Sheet, form: LoopForm) -> ast.expr:
    start, stop, step = bounds(sheet, form)
    if form.index is not None:
        return _range(sheet, start, stop, step)
    if abs(step) == 1:
        return trees.call("range", sum_text(sheet, (stop - start).scaled(step)))
    return trees.call("range", trees.call("len", _range(sheet, start, stop, step)))


def bounds(sheet: Sheet, form: LoopForm) -> tuple[Polynomial, Polynomial, int]:
    """Start, stop and step of the range of a loop of the forward sweep, empty only if the loop is not run."""
    start, stop, step = plain_bounds(sheet, form)
    if not is_run(sheet, form):
        first = start + Polynomial.constant(1 if step > 0 else -1)
        stop = Polynomial.of(_extreme(sheet, stop, first, "max" if step > 0 else "min"))
    return start, stop, step


def _extreme(sheet: Sheet, stop: Polynomial, first: Polynomial, function: str) -> Value:
    """`max(stop, start + 1)`: a range that is run at least once."""
    made = Value(I64)
    sheet.extremes[made] = stop.values | first.values
    sheet.texts[made] = lambda: trees.call(function, sum_text(sheet, stop), sum_text(sheet, first))
    return made


def _range(sheet: Sheet, start: Polynomial, stop: Polynomial, step: int) -> ast.expr:
    arguments = [sum_text(sheet, start), sum_text(sheet, stop)]
    if step != 1:
        arguments.append(trees.number(step))
    elif not start.terms:
        arguments = arguments[1:]
    return trees.call("range", *arguments)


def _reverse_range(sheet: Sheet, loop: Loop) -> Range | None:
    """The range of the reversed loop: that of the loop backwards, from the last iteration that was run."""
    numbers = sheet.reads.numbers.items()
    known = next(((p, n) for p, n in numbers if isinstance(n, Instruction) and n.block is loop.header), None)
    if known is None:
        return None
    primal, number = known
    form = sheet.forms[primal]
    last, exit_ = _last_block(sheet, loop, number)
    if form.is_for and sheet.captured.loops.trips.get(primal) is not None and sheet.augmented is not None:
        start, stop, _ = bounds(sheet.augmented, form)
        if all(is_fixed(sheet.augmented, v) for v in start.values | stop.values):
            return Range(str(form.variable.name), trees.call("reversed", _iterator(sheet.augmented, form)), last, exit_)
    first = _first_number(sheet, loop, number)
    count = polynomial_of(sheet, first) + Polynomial.constant(1)
    iterator: ast.expr = trees.call("range", sum_text(sheet, count))
    if form.index is not None:
        start, step = first_index(sheet, form), form.index.step
        iterator = _range(sheet, start, start + count.scaled(step), step)
    return Range(str(form.variable.name), trees.call("reversed", iterator), last, exit_)


def _last_block(sheet: Sheet, loop: Loop, number: Value) -> tuple[Block, Block]:
    """The block that tests whether iteration 0 is done, and its successor in that case."""
    for block in loop.order:
        match block.terminator:
            case CondBr(operands=[ICmp(predicate="eq", operands=[tested, ConstantInt(value=0)])], targets=[out, _]):
                if tested is number and out not in loop.blocks:
                    return block, out
            case _:
                pass
    raise refused("a loop that is reversed in this way", number)


def _first_number(sheet: Sheet, loop: Loop, number: Value) -> Value:
    assert isinstance(number, Phi)
    outside = [v for v, b in number.incoming() if b not in loop.blocks]
    if len({id(v) for v in outside}) != 1:
        raise refused("a loop that is entered at several places", number)
    return outside[0]


# The statements of a sweep.


@dataclass(eq=False, slots=True)
class SweepText:
    """Writes the contents of the blocks of one sweep.

    Attributes:
        variables: values that are variables.
        outs: pointers through which the reverse sweep hands out cotangents of parameters: the variables.
        raised: exceptions, by block.
        skipped: instructions that stand for nothing in Python.
        place_of: the user's line of an instruction.
        is_flat: the array that is returned is one without its shape.
    """

    sheet: Sheet
    variables: set[Value]
    place_of: Callable[[Instruction], SourceLocation | None]
    raised: dict[Block, Raised | None] = field(default_factory=dict)
    skipped: set[Instruction] = field(default_factory=set)
    outs: dict[Value, str] = field(default_factory=dict)
    ranges: dict[Loop, Range | None] = field(default_factory=dict)
    ignored: set[Value] = field(default_factory=set)
    last_line: tuple[str, int] | None = None
    is_flat: bool = False

    # ------------------------------------------------------------------------------------------------ blocks

    def block(self, block: Block) -> list[ast.stmt]:
        """The statements of a block."""
        self.last_line = None
        made: list[ast.stmt] = []
        for phi in block.phis():
            if phi in self.sheet.tape:
                made.append(trees.assign(self.sheet.tape[phi](), self._value(phi)))
        for inst in block.instructions:
            if isinstance(inst, Phi) or inst.targets or inst in self.skipped:
                continue
            statements = self.statements(inst)
            if statements:
                made += self._comment(inst)
                made += statements
        return made

    def statements(self, inst: Instruction) -> list[ast.stmt]:
        """Statements of an instruction; none if it is written at its use."""
        if isinstance(inst, Store):
            return self._store(inst)
        if isinstance(inst, Call) and is_allocation(inst):
            return self._allocation(inst)
        if isinstance(inst, Call) and is_checked_arithmetic(inst):
            return []
        if isinstance(inst, CallSite) and inst not in self.variables:
            is_inline = bool(inst.users) and isinstance(inst.type, FloatType | IntType)
            return [] if is_silent(inst) or is_inline else self._call(inst)
        if inst in self.sheet.tape and isinstance(inst.type, PointerType) and inst not in self.sheet.chosen:
            return [trees.assign(self.sheet.tape[inst](), sum_text(self.sheet, flat_index(self.sheet, inst)))]
        if inst in self.variables:
            if isinstance(inst, Select) and inst in self.sheet.chosen:
                value = choice_text(self.sheet, inst)
            else:
                value = operation(self.sheet, inst)
            place = self.sheet.tape[inst]() if inst in self.sheet.tape else self.sheet.texts[inst]()
            return [trees.assign(place, value)]
        return []

    def edge(self, source: Block, target: Block) -> list[ast.stmt]:
        """Assignments of phis on an edge."""
        pairs: list[tuple[ast.expr, ast.expr]] = []
        for phi in target.phis():
            if phi not in self.variables:
                continue
            place, value = self.sheet.texts[phi](), self._value(phi.value_from(source))
            if trees.shown(place) != trees.shown(value):
                pairs.append((place, value))
        return _assigned_at_once(pairs)

    def _value(self, value: Value) -> ast.expr:
        """Value that is assigned to a variable: a number, or an array."""
        is_array = isinstance(value.type, PointerType)
        return array_of(self.sheet, value) if is_array else text_of(self.sheet, value)

    def test(self, block: Block) -> ast.expr:
        """The condition of a branch."""
        last = block.terminator
        assert isinstance(last, CondBr)
        condition = last.operands[0]
        return text_of(self.sheet, condition)

    def cases(self, block: Block) -> tuple[ast.expr, list[ast.expr]]:
        """Value and cases of a switch."""
        last = block.terminator
        assert isinstance(last, Switch)
        value, *cases = last.operands
        return text_of(self.sheet, value), [text_of(self.sheet, case) for case in cases]

    def end(self, block: Block) -> list[ast.stmt]:
        """A raise; the return is written by the caller."""
        if block not in self.raised:
            return []
        raised = self.raised[block]
        if raised is None:
            return [ast.Raise(trees.call("RuntimeError", ast.Constant("a callee has raised")))]
        arguments: list[ast.expr] = [ast.Constant(a) for a in raised.arguments]
        return [ast.Raise(ast.Call(trees.name(raised.kind.__name__), arguments, []))]

    def range_of(self, loop: Loop) -> Range | None:
        """The range of a `for`."""
        if loop not in self.ranges:
            self.ranges[loop] = range_text(self.sheet, loop)
        return self.ranges[loop]

    # ------------------------------------------------------------------------------------------------ instructions

    def _store(self, store: Store) -> list[ast.stmt]:
        value, pointer = store.operands
        if pointer in self.outs:
            text = text_of(self.sheet, value)
            return (
                [] if trees.shown(text) == self.outs[pointer] else [trees.assign(trees.name(self.outs[pointer]), text)]
            )
        if pointer in self.ignored:
            return []
        place = place_of(self.sheet, pointer)
        if place.array.name in ("result", "result_bar") and self.sheet.memory.result.data is not None:
            return self._array_result(place, value)
        if place.is_header or isinstance(value.type, PointerType):
            if place.array.is_result or place.is_header:
                return []
            raise refused("a pointer that is stored in memory", store)
        element = element_of(self.sheet, pointer, value.type)
        if element.array.name.endswith("_bar") and element.array.name.startswith("result") and is_zero(value):
            return []  # the cotangent of the result is taken once
        return [trees.assign(element_text(self.sheet, element), text_of(self.sheet, value))]

    def _array_result(self, place: ArrayPlace, value: Value) -> list[ast.stmt]:
        """A part of the array that is returned, or its cotangent, which is added to that of the array it is."""
        result, offset = self.sheet.memory.result, place.offset.number
        if not place.array.is_shadow and offset in result.variables:
            return [trees.assign(trees.name(result.variables[offset]), text_of(self.sheet, value))]
        if offset != result.data or not isinstance(value.type, PointerType) or self.sheet.is_reverse:
            return []
        returned = place_of(self.sheet, value)
        if returned.array.sources:
            raise refused("returning a variable that is one array or another", value)
        if returned.is_header or returned.offset.terms:
            raise refused("a part of an array that is returned", value)
        text = trees.name(returned.array.name)
        is_flat = result.dimensions > len(returned.array.strides)
        if not place.array.is_shadow:
            self.is_flat |= is_flat
            return [trees.assign(trees.name("result"), text)]
        given = trees.call("result_bar.ravel") if is_flat else trees.name("result_bar")
        return [trees.assign(text, trees.binary(text, ast.Add(), given))]

    def _allocation(self, call: Call) -> list[ast.stmt]:
        array, shadow = self.sheet.memory.allocations[call]
        size = polynomial_of(self.sheet, call.arguments[0])
        parts = size.divided(array.strides[0])
        if parts is None or parts[1].terms:
            raise refused("an allocation of this size", call)
        count = sum_text(self.sheet, parts[0])
        dtype = array.dtype
        more = [ast.keyword("dtype", trees.dotted(dtype))] if dtype != "np.float64" else []
        made: list[ast.stmt] = []
        for each, function in ((array, "np.empty"), (shadow, "np.zeros")):
            if each is not None:
                made.append(ast.Assign([trees.target(each.name)], ast.Call(trees.dotted(function), [count], more)))
                tape = self.sheet.tape.get(each.origin)
                if tape is not None:
                    made.append(trees.assign(tape(), trees.name(each.name)))
        return made

    def _call(self, call: CallSite) -> list[ast.stmt]:
        found = bulk_statements(self.sheet, call)
        if found is None:
            raise refused(f"the call of {getattr(call.callee, 'name', None) or 'a function value'}", call)
        return found

    def _comment(self, inst: Instruction) -> list[ast.stmt]:
        place = self.place_of(inst)
        if place is None:
            return []
        key = place.file, place.line
        if key == self.last_line:
            return []
        self.last_line = key
        return [trees.comment(f"line {place.line}: {linecache.getline(place.file, place.line).strip()}")]

    # ------------------------------------------------------------------------------------------------ liveness

    def sites(self) -> tuple[dict[Block, list[Site]], dict[tuple[Block, Block], set[Value]]]:
        """Uses and assignments of each statement; uses on each edge."""
        sheet = self.sheet
        sites: dict[Block, list[Site]] = {}
        edges: dict[tuple[Block, Block], set[Value]] = {}
        used: set[Value] = set()
        sheet.used = used.add
        for block in sheet.cfg.order:
            found: list[Site] = []
            for phi in block.phis():
                if phi in self.sheet.tape:
                    used.clear()
                    self.sheet.tape[phi]()
                    found.append(Site({phi} | used))
            for inst in block.instructions:
                if isinstance(inst, Phi) or inst in self.skipped or isinstance(inst, Alloca):
                    continue
                used.clear()
                if isinstance(inst, CondBr | Switch):
                    if not self._ends_range(block):
                        text_of(sheet, inst.operands[0])
                elif not inst.targets:
                    self.statements(inst)
                    used.discard(inst)
                if not (isinstance(inst, CondBr) and self._ends_range(block)):
                    defined = inst if inst in self.variables and inst not in self.sheet.tape else None
                    found.append(Site(set(used), defined))
                    continue
                found += self._handed_out(block, used)
            sites[block] = found
            for successor in sheet.cfg.successors[block]:
                used.clear()
                for phi in successor.phis():
                    if phi in self.variables:
                        self._value(phi.value_from(block))
                edges[block, successor] = set(used)
        for loop in sheet.nest.loops:
            self.ranges.pop(loop, None)  # its text is written again, to see what it uses
            used.clear()
            if self.range_of(loop) is not None and loop.preheader in sites:
                sites[loop.preheader].append(Site(set(used)))
        sheet.used = None
        return sites, edges

    def _handed_out(self, block: Block, used: set[Value]) -> list[Site]:
        """The assignments at the exit of a `for`, which each iteration makes."""
        range_ = self._range_ended_by(block)
        assert range_ is not None
        found: list[Site] = []
        for phi in range_.exit.phis():
            if phi in self.variables:
                used.clear()
                value = phi.value_from(block)
                self._value(value)
                found.append(Site(set(used), phi, value))
        return found

    def carried(self) -> tuple[dict[Block, set[Value]], set[frozenset[Value]]]:
        """Values that `for` loops yield, by the blocks that end their last iteration; values to keep apart from them.

        Python's loop runs the end of the last iteration as that of any other before it is left.
        """
        found: dict[Block, set[Value]] = {}
        apart: set[frozenset[Value]] = set()
        for loop in self.sheet.nest.loops:
            range_ = self.range_of(loop)
            if range_ is None:
                continue
            handed = {p: p.value_from(range_.last) for p in range_.exit.phis() if p in self.variables}
            block = range_.last
            while True:
                found.setdefault(block, set()).update(handed)
                onwards = [t for t in block.successors if t is not range_.exit]
                if onwards[0] is loop.header:
                    break
                (block,) = onwards
            for phi in loop.header.phis():
                for out, value in handed.items():
                    if phi in self.variables and phi.value_from(block) is not value:
                        apart.add(frozenset((phi, out)))
        return found, apart

    def _range_ended_by(self, block: Block) -> Range | None:
        loop = self.sheet.nest.loop_of(block)
        range_ = self.range_of(loop) if loop is not None else None
        return range_ if range_ is not None and range_.last is block else None

    def _ends_range(self, block: Block) -> bool:
        return self._range_ended_by(block) is not None


def _assigned_at_once(pairs: list[tuple[ast.expr, ast.expr]]) -> list[ast.stmt]:
    """Parallel assignments, one after the other where the order does not matter."""
    made: list[ast.stmt] = []
    pending = list(pairs)
    while pending:
        for pair in pending:
            name = trees.shown(pair[0])
            others = [v for p, v in pending if p is not pair[0]]
            if not any(name in trees.names_in([v]) for v in others):
                made.append(trees.assign(*pair))
                pending.remove(pair)
                break
        else:
            together = _depending(pending)
            places = ast.Tuple([trees.stored(p) for p, _ in together], ast.Store())
            values = ast.Tuple([v for _, v in together], ast.Load())
            made.append(ast.Assign([places], values))
            pending = [pair for pair in pending if pair not in together]
    return made


def _depending(pairs: list[tuple[ast.expr, ast.expr]]) -> list[tuple[ast.expr, ast.expr]]:
    """The first pair, and all that read what these assign or assign what these read."""
    names = {trees.shown(pairs[0][0])} | trees.names_in([pairs[0][1]])
    while True:
        found = [(p, v) for p, v in pairs if not names.isdisjoint({trees.shown(p)} | trees.names_in([v]))]
        more = names.union(*({trees.shown(p)} | trees.names_in([v]) for p, v in found))
        if more == names:
            return found
        names = more


def debug_places(debug: DebugInfo, library: LibraryCode) -> Callable[[Instruction], SourceLocation | None]:
    """The user's line of an instruction: the innermost that is not library code."""

    def found(inst: Instruction) -> SourceLocation | None:
        for frame in debug.frames(inst):
            place = frame.place
            is_known = place.line and not place.function.startswith(library.without_lines)
            if is_known and not library.holds(place.file):
                return place
        return None

    return found
