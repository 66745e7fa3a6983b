"""Random compositions: compiled functions that call derivatives of functions that call derivatives, as text.

Functions have the parameters ``(x, c)``, an array of three numbers and a number, or ``(a, b)``, two numbers. Kinds of
functions: ``number`` (of numbers), ``sum`` (of an array, a number), ``map`` (of an array, an array), ``place`` (as
``sum``, but writes to its array). Derivatives are made where they are called or before, and some are called in loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

SIZE: Final = 3
_MOST_ORDER: Final = 2
_MOST_CALLS: Final = 2
_BOUNDED: Final = ("np.sin({})", "np.cos({})", "np.tanh({})")
_FORMS: Final = (*_BOUNDED, "1.0 / (1.5 + ({}) ** 2)", "0.5 * ({}) ** 3", "np.exp(-({}) ** 2)")
_ORDERS: Final = {"grad": 1, "pushforward": 1, "value_and_grad": 1, "both": 1, "jacobian": 1, "hvp": 2, "hessian": 2}
_FIRST: Final = ("grad", "pushforward", "value_and_grad", "both")
_WAYS: Final = {
    "number": (*_FIRST, "hvp", "hessian"),
    "sum": (*_FIRST, "hvp", "hessian"),
    "place": _FIRST,
    "map": ("pushforward", "jacobian"),
}


@dataclass(frozen=True, slots=True)
class Composition:
    """The text of a module, and the kind of its function ``program``."""

    seed: int
    source: str
    kind: str


def compose(seed: int) -> Composition:
    """The composition of a seed: two or three functions."""
    random = Random(seed)
    writer = _Writer(random)
    texts = [
        writer.function(f"f{i}", random.choice(("sum", "map", "number", "place")))
        for i in range(random.choice((1, 1, 2)))
    ]
    kind = random.choice(("sum", "sum", "map", "number"))
    return Composition(seed, "\n\n\n".join([*texts, writer.function("program", kind)]) + "\n", kind)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A function of a composition; ``order`` counts the derivatives that are nested in it."""

    name: str
    kind: str
    order: int


@dataclass(slots=True)
class _Writer:
    """Writes one function after the other; derivatives made in advance stand before their callers."""

    random: Random
    pieces: list[_Piece] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    prepared: list[str] = field(default_factory=list)
    floats: list[str] = field(default_factory=list)
    arrays: list[str] = field(default_factory=list)
    order: int = 0
    calls: int = 0
    names: int = 0

    def function(self, name: str, kind: str) -> str:
        """The text of a function, of derivatives of those written before."""
        self.lines, self.prepared, self.order, self.calls = [], [], 0, 0
        self.floats, self.arrays = (["a", "b"], []) if kind == "number" else (["c"], ["x"])
        for _ in range(self.random.randint(1, 2)):
            self._statement(kind)
        for _ in range(2 if name == "program" else bool(self.pieces)):
            self._derivative()
            if self.random.random() < 0.6:
                self._statement(kind)
        found = " + ".join([*self.floats[-3:], *(f"{y}[{self.random.randrange(SIZE)}]" for y in self.arrays[-2:])])
        returned = f"{self._array()} * np.sin({found})" if kind == "map" else f"{self._float(1)} + {found}"
        self.pieces.append(_Piece(name, kind, self.order))
        head = f"def {name}({'a, b' if kind == 'number' else 'x, c'}):"
        return "\n\n\n".join([*self.prepared, "\n".join(["@njit", head, *self.lines, f"    return {returned}"])])

    # ------------------------------------------------------------------------------------------ expressions

    def _new(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def _float(self, depth: int) -> str:
        draw = self.random.random()
        if depth == 0 or draw < 0.15:
            places = [*self.floats, *(f"{y}[{self.random.randrange(SIZE)}]" for y in self.arrays)]
            return self.random.choice(places)
        if draw < 0.35 and self.arrays:
            y, z = self.random.choice(self.arrays), self.random.choice(self.arrays)
            return self.random.choice((f"{y}.sum()", f"np.dot({y}, {z})", f"({y} * {z}[::-1]).sum()"))
        if draw < 0.7:
            return self.random.choice(_FORMS).format(self._float(depth - 1))
        if draw < 0.78 and (callees := self._callees("number", "sum", "place")):
            return self._call(self.random.choice(callees))
        operation = self.random.choice(("+", "-", "*", "*"))
        return f"({self._float(depth - 1)} {operation} {self._float(depth - 1)})"

    def _bounded(self, depth: int) -> str:
        return self.random.choice(_BOUNDED).format(self._float(depth))

    def _array(self) -> str:
        draw = self.random.random()
        if not self.arrays or draw < 0.2:
            return f"np.array([{', '.join(self._bounded(1) for _ in range(SIZE))}])"
        y, z = self.random.choice(self.arrays), self.random.choice(self.arrays)
        if draw < 0.35 and (callees := self._callees("map")):
            return self._call(self.random.choice(callees))
        return self.random.choice(
            (f"np.sin({y}) * {z}", f"{y} * {self._bounded(1)}", f"{y} - 0.5 * {z}[::-1]", f"{y}.copy()")
        )

    def _callees(self, *kinds: str) -> list[_Piece]:
        """Functions that can be called here; none once there are two calls, or texts would grow without end."""
        return [p for p in self.pieces if p.kind in kinds and self._fits(p, 0) and self.calls < _MOST_CALLS]

    def _fits(self, piece: _Piece, derivatives: int) -> bool:
        return piece.order + derivatives <= _MOST_ORDER

    def _arguments(self, piece: _Piece) -> tuple[str, str]:
        self.order = max(self.order, piece.order)
        if piece.kind == "number":
            return self._bounded(1), self._float(0)
        array = (
            self._array() if piece.kind != "place" or not self.arrays else f"{self.random.choice(self.arrays)}.copy()"
        )
        return array, self._bounded(0)

    def _call(self, piece: _Piece) -> str:
        self.calls += 1
        return f"{piece.name}({', '.join(self._arguments(piece))})"

    # ------------------------------------------------------------------------------------------- statements

    def _statement(self, kind: str) -> None:
        forms = [self._assign, self._branch, self._loop, self._until, self._fresh]
        if any(y != "x" or kind == "place" for y in self.arrays):
            forms += [self._write] * 2
        self.random.choice(forms)(kind)

    def _line(self, text: str) -> None:
        self.lines.append(text)

    def _assign(self, kind: str) -> None:
        name = self._new("t")
        self._line(f"    {name} = {self._float(2)}")
        self.floats.append(name)

    def _fresh(self, kind: str) -> None:
        name = self._new("y")
        self._line(f"    {name} = {self._array()}")
        self.arrays.append(name)

    def _branch(self, kind: str) -> None:
        name = self._new("t")
        self._line(f"    if {self._float(1)} > {self.random.uniform(-0.3, 0.9):.2f}:")
        self._line(f"        {name} = {self._float(2)}")
        self._line("    else:")
        self._line(f"        {name} = {self._float(1)}")
        self.floats.append(name)

    def _loop(self, kind: str) -> None:
        name = self._new("t")
        self._line(f"    {name} = {self._float(1)}")
        index = self._new("i")
        self._line(f"    for {index} in range({self.random.randint(2, 4)}):")
        if self.arrays and self.random.random() < 0.6:
            term = f"{self.random.choice(self.arrays)}[{index} % {SIZE}]"
        else:
            term = self._float(1)
        self._line(f"        {name} = {self.random.choice(_BOUNDED).format(f'{name} + {term} * {self._float(1)}')}")
        self.floats.append(name)

    def _until(self, kind: str) -> None:
        name, number = self._new("t"), self._new("n")
        self._line(f"    {name}, {number} = {self._bounded(1)}, 0")
        self._line(f"    while {name} < 1.3 and {number} < 5:")
        self._line(f"        {name} += 0.4 + 0.3 * {self._bounded(1)} * {name}")
        self._line(f"        {number} += 1")
        self.floats.append(name)

    def _write(self, kind: str) -> None:
        array = self.random.choice([y for y in self.arrays if y != "x" or kind == "place"])
        place = self.random.randrange(SIZE)
        self._line(
            self.random.choice(
                (
                    f"    {array}[{place}] = {self._bounded(2)}",
                    f"    {array}[{place}] *= {self._bounded(1)}",
                    f"    {array}[1:] += 0.5 * {array}[:-1] * {self._float(0)}",
                )
            )
        )

    # ------------------------------------------------------------------------------------------ derivatives

    def _derivative(self) -> None:
        """A statement that takes the derivative of an earlier function and makes variables of what it gives."""
        choices = [(p, way) for p in self.pieces for way in _WAYS[p.kind] if self._fits(p, _ORDERS[way])]
        piece, way = self.random.choice(choices)
        a, b = self._arguments(piece)
        arguments = f"{a}, {b}"
        self.order = max(self.order, piece.order + _ORDERS[way])
        position = self.random.randrange(2)
        first, second = self._kinds(piece)
        kind = (first, second)[position]
        match way:
            case "pushforward":
                tangents, argnums = self._tangent(kind), position
                if self.random.random() < 0.4:
                    tangents, argnums = f"({self._tangent(first)}, {self._tangent(second)})", (0, 1)
                value = "y" if piece.kind == "map" else "t"
                given = f"{a}, {tangents}, {b}" if argnums == 0 else f"{arguments}, {tangents}"
                self._keep(value, f"{self._made(way, piece, argnums)}({given})[1]")
            case "value_and_grad":
                names = self._new("t"), self._new(kind)
                self._line(f"    {', '.join(names)} = {self._made(way, piece, position)}({arguments})")
                self._known("t", names[0])
                self._known(kind, names[1])
            case "both":
                names = self._new(first), self._new(second)
                self._line(f"    {', '.join(names)} = {self._made('grad', piece, (0, 1))}({arguments})")
                self._known(first, names[0])
                self._known(second, names[1])
            case "hvp":
                tangent = self._tangent(kind)
                given = f"{a}, {tangent}, {b}" if position == 0 else f"{arguments}, {tangent}"
                self._keep(kind, f"{self._made(way, piece, position)}({given})")
            case "hessian" | "jacobian":
                row = f"[{self.random.randrange(SIZE)}]" if first == "y" and (way == "hessian" or position == 0) else ""
                argnums = 0 if way == "hessian" else position
                self._keep(first, f"{self._made(way, piece, argnums)}({arguments}){row}")
            case "grad":
                self._keep(kind, f"{self._made(way, piece, position)}({arguments})")

    def _kinds(self, piece: _Piece) -> tuple[str, str]:
        """The first letters of the names of variables like the two parameters."""
        return ("t" if piece.kind == "number" else "y"), "t"

    def _tangent(self, kind: str) -> str:
        return self._array() if kind == "y" else self._bounded(1)

    def _known(self, kind: str, name: str) -> None:
        (self.arrays if kind == "y" else self.floats).append(name)

    def _keep(self, kind: str, text: str) -> None:
        name = self._new(kind)
        if self.random.random() < 0.3:
            index, total = self._new("i"), self._new(kind)
            self._line(f"    {total} = 0.3 * {text}")
            self._line(f"    for {index} in range({self.random.randint(1, 3)}):")
            self._line(f"        {name} = {text}")
            self._line(f"        {total} = {total} * 0.5 + np.sin({name})")
            name = total
        else:
            self._line(f"    {name} = {text}")
        self._known(kind, name)

    def _made(self, maker: str, piece: _Piece, argnums: int | tuple[int, ...]) -> str:
        text = f"irad.{maker}({piece.name}{'' if argnums == 0 else f', {argnums}'})"
        if self.random.random() < 0.5:
            return text
        name = self._new("d")
        self.prepared.append(f"{name} = {text}")
        return name
