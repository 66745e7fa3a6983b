"""Expressions of random programs: floats of bounded size, ints, indices in bounds, conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

ARRAYS: Final = ("array", "view", "single", "row")


@dataclass(frozen=True, slots=True)
class Signature:
    """A variable: its name, kind and shape.

    Kinds: array (contiguous), view (of any stride), row (of a matrix), single (precision), matrix, float, int, indices,
    tuple (of a float and an array), list.
    """

    name: str
    kind: str
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Helper:
    """A helper that programs call.

    Forms: scalar, memory (it gets an array and an int), recursion, fresh (it returns a new array).
    """

    name: str
    form: str


@dataclass(slots=True)
class Expressions:
    """Draws expressions over the variables in scope.

    Attributes:
        random: the source of all choices.
        helpers: functions that can be called.
        scope: variables that are defined where the expression will stand.
    """

    random: Random
    helpers: tuple[Helper, ...]
    scope: list[Signature]

    def of(self, *kinds: str) -> list[Signature]:
        """The variables of some kinds."""
        return [s for s in self.scope if s.kind in kinds]

    def one_of(self, *kinds: str) -> Signature:
        """One of the variables of some kinds, of which there is one."""
        return self.random.choice(self.of(*kinds))

    def value(self, depth: int) -> str:
        """A float, as bounded as the variables in scope."""
        options: list[Callable[[], str]] = [self._number, *[self._variable, self._element] * 2]
        if depth > 0:
            options += [lambda: self._operation(depth), lambda: self.bounded(depth), lambda: self._operation(depth)]
            options += [lambda: self._call(depth)] if self.helpers else []
        return self.random.choice(options)()

    def bounded(self, depth: int) -> str:
        """A float of at most 3 in magnitude."""
        e = self.value(depth - 1)
        f = self.random.choice(("sin", "cos", "tanh"))
        forms = (
            f"math.{f}({e})",
            f"np.{f}({e})",
            f"1.0 / (1.5 + ({e}) ** 2)",
            f"({e}) / math.sqrt(1.0 + ({e}) * ({e}))",
            f"math.exp(-({e}) ** 2)",
            f"math.atan({e})",
        )
        return self.random.choice(forms if len(e) < 40 else forms[:2])

    def _number(self) -> str:
        if self.of("int") and self.random.random() < 0.5:
            return f"0.25 * {self.one_of('int').name}"
        return str(round(self.random.uniform(0.1, 1.9), 2))

    def _variable(self) -> str:
        return self.one_of("float").name if self.of("float") else self._element()

    def _element(self) -> str:
        kinds = [s for s in self.scope if s.kind in (*ARRAYS, "matrix", "tuple", "list")]
        return self.place(self.random.choice(kinds)) if kinds else self._variable()

    def place(self, s: Signature) -> str:
        """An element of a variable."""
        match s.kind:
            case "matrix":
                return f"{s.name}[{self.index(str(s.shape[0]))}, {self.index(str(s.shape[1]))}]"
            case "tuple":
                return self.random.choice((f"{s.name}[0]", f"{s.name}[1][{self.index('4')}]"))
            case "list":
                return f"{s.name}[{self.index(f'len({s.name})')}]"
        others = [o for o in self.of("array") if s.kind == "array" and o.name != s.name]
        if others and self.of("int") and self.random.random() < 0.12:
            other = self.random.choice(others)
            shortest = min(s.shape[0], other.shape[0])
            return f"({s.name}, {other.name})[{self.integer()} % 2][{self.index(str(shortest))}]"
        return f"{s.name}[{self.index(str(s.shape[0]))}]"

    def index(self, length: str) -> str:
        """An int in bounds; lengths in scope are at least 2."""
        if self.random.random() < 0.3 or not self.of("int", "indices"):
            return self.random.choice(("0", "1", "-1", "-2"))
        return f"{self.integer()} % {length}"

    def integer(self) -> str:
        """An int expression, in parentheses or an atom."""
        atoms = [s.name for s in self.of("int")]
        atoms += [f"{s.name}[{self.random.randint(0, s.shape[0] - 1)}]" for s in self.of("indices")]
        if self.of("indices") and self.of("int"):
            s = self.one_of("indices")
            atoms.append(f"{s.name}[{self.one_of('int').name} % {s.shape[0]}]")
        if not atoms:
            return str(self.random.randint(0, 4))
        a, b = self.random.choice(atoms), self.random.choice([*atoms, "3", "2"])
        return self.random.choice((a, a, f"({a} + {b})", f"({a} * 2 - {b})", f"({a} // 2)", f"({a} ^ {b})"))

    def _operation(self, depth: int) -> str:
        a, b = self.value(depth - 1), self.value(depth - 1)
        forms = (
            f"{a} * {b}",
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} if {self.condition()} else {b})",
            f"min({a}, {b})",
            f"abs({a})",
        )
        return self.random.choice(forms[:4] * 2 + forms)

    def _call(self, depth: int) -> str:
        helper = self.random.choice(self.helpers)
        arrays = [s for s in self.of(*ARRAYS) if s.shape[0] >= 3]
        if helper.form == "scalar":
            return f"{helper.name}({self.value(depth - 1)}, {self.value(depth - 1)})"
        if not arrays:
            return self.bounded(depth)
        array = self.random.choice(arrays).name
        if helper.form == "fresh":
            return f"{helper.name}({array}, {self.value(depth - 1)})[{self.index('3')}]"
        count = f"{self.integer()} % 4" if helper.form == "recursion" else self.integer()
        return f"{helper.name}({array}, {count}, {self.value(depth - 1)})"

    def condition(self) -> str:
        """A condition, of ints or of floats."""
        a = self.value(1)
        forms = [f"{a} > {self.random.uniform(-0.5, 1.0):.2f}", f"{a} < {self.value(1)}"]
        if self.of("int", "indices"):
            forms += [f"{self.integer()} % {self.random.randint(2, 3)} == 0", f"{self.integer()} > 2"]
        first = self.random.choice(forms)
        if self.random.random() < 0.2:
            return f"({first} {self.random.choice(('and', 'or'))} {self.random.choice(forms)})"
        return first
