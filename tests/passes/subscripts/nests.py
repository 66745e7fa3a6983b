"""Random loop nests over one array: as LLVM text, and as what they access when they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import NamedTuple

SIZE = 64
"""The marked dimensions: subscripts of marked accesses are smaller."""

_MIDDLE = 25

Values = dict[str, int]


class Sum(NamedTuple):
    """A constant and multiples of variables."""

    constant: int
    factors: Mapping[str, int]

    def value(self, values: Values) -> int:
        return self.constant + sum(factor * values[name] for name, factor in self.factors.items())


@dataclass
class Access:
    """A load or a store: bytes `scale·(…)` after the start of the array, or elements of several axes."""

    name: str
    is_store: bool
    subscripts: tuple[Sum, ...]
    type: str = "double"
    marked: bool = False

    @property
    def size(self) -> int:
        return 8 if self.type == "double" else 4

    def bytes(self, values: Values) -> range:
        *outer, last = (each.value(values) for each in self.subscripts)
        assert not self.marked or all(0 <= each < SIZE for each in [*outer[1:], last]), "out of bounds"
        element = 0
        for subscript in outer:
            element = (element + subscript) * (SIZE if self.marked else 3)
        start = self.size * (element + last)
        return range(start, start + self.size)


@dataclass
class Branch:
    body: list[Node]


@dataclass
class Loop:
    """`for name in range(start, bound, step)`; ``best`` is its start or one of the later values, chosen by data."""

    name: str
    start: Sum
    bound: Sum
    step: int
    ordered: bool  # the exit asks for an order rather than equality
    breaks: bool
    best: str | None
    body: list[Node]


Node = Access | Branch | Loop


@dataclass
class Nest:
    """A random program.

    Attributes:
        random: of its shape.
        names: of accesses and variables.
    """

    random: Random
    names: Iterator[int] = field(default_factory=count)

    def body(self, depth: int, variables: list[str]) -> list[Node]:
        known = list(variables)
        return [self.node(depth, known) for _ in range(self.random.randint(1, 3))]

    def node(self, depth: int, known: list[str]) -> Node:
        drawn = self.random.random()
        if depth < 3 and drawn < (0.95 if depth == 0 else 0.5):
            return self.loop(depth, known)
        if drawn < 0.55:
            return Branch([self.access(known)])
        return self.access(known)

    def loop(self, depth: int, known: list[str]) -> Loop:
        random, name = self.random, f"v{next(self.names)}"
        step = random.choice((1, 1, 1, 1, 2, 3)) * random.choice((1, 1, -1))
        ordered = abs(step) > 1 or random.random() < 0.3
        near, far = self.sum(known, 0), self.sum(known, 2 if random.random() < 0.5 else 0, n=random.random() < 0.6)
        start, bound = (near, far) if step > 0 else (far, near)
        best = f"b{next(self.names)}" if random.random() < 0.25 else None
        breaks = best is None and random.random() < 0.15
        loop = Loop(name, start, bound, step, ordered, breaks, best, self.body(depth + 1, [*known, name]))
        known += [best] if best is not None else []
        return loop

    def sum(self, known: list[str], most: int, n: bool = False) -> Sum:
        random = self.random
        factors = dict.fromkeys(random.sample(known, min(len(known), random.choice((0, 1, 1, 1)))), 1)
        if n:
            factors = {"n": 1}
        return Sum(random.randint(-1, 1 + most), factors)

    def access(self, known: list[str]) -> Access:
        random = self.random
        axes = random.choice((1, 1, 2, 2, 2, 3))
        marked = axes > 1 and random.random() < 0.9
        subscripts = tuple(self.subscript(known) for _ in range(axes))
        kind = "float" if axes == 1 and random.random() < 0.2 else "double"
        if axes == 1:  # at the elements of the other accesses, all the same
            subscripts = (self.flattened(*subscripts, 2 if kind == "float" else 1),)
        is_store = random.random() < 0.5
        return Access(f"{'s' if is_store else 'x'}{next(self.names)}", is_store, subscripts, kind, marked)

    def subscript(self, known: list[str]) -> Sum:
        random = self.random
        factors: dict[str, int] = {}
        for name in random.sample(known, min(len(known), random.choice((0, 1, 1, 1, 1, 2)))):
            factors[name] = random.choice((1, 1, 1, 1, -1, 2))
        if random.random() < 0.1:
            factors["n"] = 1
        return Sum(_MIDDLE + random.randint(-1, 1) * random.randint(0, 1), factors)

    def flattened(self, number: Sum, scale: int) -> Sum:
        row = self.random.choice((0, 0, SIZE))
        factors = {name: scale * self.random.choice((1, row or 1)) * factor for name, factor in number.factors.items()}
        return Sum(scale * (row * _MIDDLE + number.constant), factors)


def random_nest(seed: int) -> list[Node]:
    """A program of its own for each seed."""
    return Nest(Random(seed)).body(0, [])


# --- running ----------------------------------------------------------------------------------------------------------


@dataclass
class Event:
    """An access: its bytes, and which run of each loop it was part of."""

    access: Access
    bytes: range
    runs: dict[str, int]


def run(body: list[Node], n: int, seed: int) -> list[Event]:
    """What a program accesses, in order, with random data."""
    data, runs, events = Random(seed), count(), list[Event]()

    def execute(nodes: list[Node], values: Values, inside: dict[str, int]) -> None:
        for node in nodes:
            match node:
                case Access():
                    events.append(Event(node, node.bytes(values), inside))
                case Branch(body=then):
                    if data.random() < 0.5:
                        execute(then, values, inside)
                case Loop():
                    iterate(node, values, {**inside, node.name: next(runs)})

    def iterate(loop: Loop, values: Values, inside: dict[str, int]) -> None:
        steps = range(loop.start.value(values), loop.bound.value(values), loop.step)
        best = loop.start.value(values)
        for value in steps:
            execute(loop.body, {**values, loop.name: value}, inside)
            if loop.breaks and data.random() < 0.2:
                break
            best = value if data.random() < 0.5 else best
        if loop.best is not None:
            values[loop.best] = best

    execute(body, {"n": n}, {})
    return events


# --- text -------------------------------------------------------------------------------------------------------------


@dataclass
class Emitter:
    """Writes a program as LLVM text, with rotated loops, as the front end gives them."""

    random: Random
    lines: list[str] = field(default_factory=list)
    block: str = "entry"
    numbers: Iterator[int] = field(default_factory=count)

    def new(self, text: str) -> str:
        name = f"%t{next(self.numbers)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def open(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def sum(self, number: Sum) -> str:
        total = str(number.constant)
        for name, factor in number.factors.items():
            term = f"%{name}" if factor == 1 else self.new(f"mul i64 %{name}, {factor}")
            total = self.new(f"add i64 {total}, {term}")
        return total

    def body(self, nodes: list[Node]) -> None:
        for node in nodes:
            match node:
                case Access():
                    self.access(node)
                case Branch(body=then):
                    self.branch(then)
                case Loop():
                    self.loop(node)

    def decision(self) -> str:
        """Something that depends on data."""
        return self.new("call i1 @decide()")

    def branch(self, then: list[Node]) -> None:
        number = next(self.numbers)
        self.lines.append(f"  br i1 {self.decision()}, label %then{number}, label %join{number}")
        self.open(f"then{number}")
        self.body(then)
        self.lines.append(f"  br label %join{number}")
        self.open(f"join{number}")

    def access(self, access: Access) -> None:
        offsets = [self.sum(each) for each in access.subscripts]
        parts = [offsets[-1]]
        for place, offset in enumerate(offsets[:-1]):
            for _ in range(len(offsets) - 1 - place):
                offset = self.new(f"mul i64 {offset}, {'%d' if access.marked else '3'}")
            parts.append(offset)
        self.random.shuffle(parts)
        pointer = "%a"
        while parts:
            part = parts.pop()
            if parts and self.random.random() < 0.5:
                part = self.new(f"add i64 {part}, {parts.pop()}")
            pointer = self.new(f"getelementptr {access.type}, ptr {pointer}, i64 {part}")
        if access.is_store:
            self.lines.append(f"  store {access.type} 1.0, ptr {pointer} ; {access.name}")
        else:
            self.lines.append(f"  %{access.name} = load {access.type}, ptr {pointer}")

    def loop(self, loop: Loop) -> None:
        name, (start, bound) = loop.name, (self.sum(loop.start), self.sum(loop.bound))
        before, holds = self.block, "slt" if loop.step > 0 else "sgt"
        self.lines.append(
            f"  br i1 {self.new(f'icmp {holds} i64 {start}, {bound}')}, label %pre{name}, label %after{name}"
        )
        self.lines += [f"pre{name}:", f"  br label %head{name}"]
        self.open(f"head{name}")
        self.lines.append(f"  %{name} = phi i64 [ {start}, %pre{name} ], [ %next{name}, %latch{name} ]")
        if loop.best is not None:
            self.lines.append(f"  %best{name} = phi i64 [ {start}, %pre{name} ], [ %choice{name}, %latch{name} ]")
        self.body(loop.body)
        if loop.breaks:
            self.lines.append(f"  br i1 {self.decision()}, label %exit{name}, label %latch{name}")
        else:
            self.lines.append(f"  br label %latch{name}")
        self.open(f"latch{name}")
        if loop.best is not None:
            self.lines.append(f"  %choice{name} = select i1 {self.decision()}, i64 %{name}, i64 %best{name}")
        self.lines.append(f"  %next{name} = add i64 %{name}, {loop.step}")
        more = self.new(f"icmp {holds if loop.ordered else 'ne'} i64 %next{name}, {bound}")
        self.lines.append(f"  br i1 {more}, label %head{name}, label %exit{name}")
        self.open(f"exit{name}")
        if loop.best is not None:
            self.lines.append(f"  %last{name} = phi i64 [ %choice{name}, %latch{name} ]")
        self.lines.append(f"  br label %after{name}")
        self.open(f"after{name}")
        if loop.best is not None:
            self.lines.append(f"  %{loop.best} = phi i64 [ {start}, %{before} ], [ %last{name}, %exit{name} ]")


def text_of(body: list[Node], seed: int) -> str:
    """A program as LLVM text; stores are told apart by the order in which they stand."""
    emitter = Emitter(Random(seed))
    emitter.body(body)
    return "\n".join(
        [
            "declare i64 @irad.dimension(i64, ptr)",
            "declare i1 @decide()",
            "define void @f(ptr %a, i64 %n, i64 %m) {",
            "entry:",
            "  %d = call i64 @irad.dimension(i64 %m, ptr %a)",
            *emitter.lines,
            "  ret void",
            "}",
        ]
    )


def accesses(body: list[Node]) -> list[Access]:
    """Those of a program, as they stand in the text."""
    found: list[Access] = []
    for node in body:
        match node:
            case Access():
                found.append(node)
            case Branch(body=inner) | Loop(body=inner):
                found += accesses(inner)
    return found
