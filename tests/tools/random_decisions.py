"""Statements that decide things by numbers next to a jump, for random programs compiled with fastmath.

`x / h` of multiples of a tenth is a whole number or just below one, as it happens to be rounded: an index, a trip count
or a branch made of it is another one if the two sweeps of a derivative round it differently. Which one it was when the
function ran is written to an array, so that it can be run again, in Python, with what it decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.tools.random_statements import Statements

# `log[0]` counts what was decided. The complex-step reference reads it in place of deciding again.
DECIDED: Final = """@njit
def decided(log, choice):
    log[0] += 1
    log[log[0]] = int(choice)
    return choice
"""
FAST_MATH: Final = (
    *["(fastmath=True)"] * 4,
    '(fastmath=True, error_model="numpy")',
    '(fastmath={"arcp"})',
    '(fastmath={"contract"})',
    '(fastmath={"reassoc", "nsz"})',
    '(fastmath={"reassoc", "arcp", "contract", "afn"})',
)


@dataclass(slots=True)
class Decisions(Statements):
    """Writes the lines of a function with parameters of the kinds log, grid (an array) and step (a float)."""

    def statement(self, form: str) -> None:
        """One statement, every other time one that decides something."""
        if self.random.random() < 0.5 or self.budget <= 0 or self.loops > 2:
            Statements.statement(self, form)
            return
        self.budget -= 1
        forms: list[Callable[[str], None]] = [self._number_of, self._whole_part, self._gather, self._choose]
        if self.indent <= 2:
            forms += [self._branch, self._repeat, self._each]
        self.random.choice(forms)(form)

    def _next_to_a_jump(self) -> str:
        """A float that is a whole number but for rounding."""
        x, y = self._on_grid(), self._on_grid()
        h = self.one_of("step").name
        forms = (
            f"{x} / {h}",
            f"{x} / {h}",
            f"({x} + {y}) / {h}",
            f"({x} - {y}) / {h} + 7.0",
            f"{x} * {y} / ({h} * {h})",
        )
        return self.random.choice(forms)

    def _on_grid(self) -> str:
        grid = self.one_of("grid")
        return f"{grid.name}[{self.index(str(grid.shape[0]))}]"

    def _decided(self, choice: str) -> str:
        return f"decided({self.one_of('log').name}, {choice})"

    def _number_of(self, form: str) -> None:
        decided = self._decided(f"int({self._next_to_a_jump()})")
        self.line(f"{self.fresh('int')} = {decided}")

    def _whole_part(self, form: str) -> None:
        self.names += 1
        t = f"t_{self.names}"
        self.line(f"{t} = {self._next_to_a_jump()}")
        whole = self._decided(f"np.{self.random.choice(('floor', 'ceil', 'trunc'))}({t})")
        factor = self.bounded(1)
        self.line(f"{self.fresh('float')} = {factor} * (0.1 * {t} - 0.2 * {whole})")

    def _gather(self, form: str) -> None:
        arrays = self.of("array")
        if not arrays or not self.of("float"):
            return self._number_of(form)
        array, index = self.random.choice(arrays), self._decided(f"int({self._next_to_a_jump()})")
        place = f"{array.name}[{index} % {array.shape[0]}]"
        target = self.one_of("float").name
        forms = (*[f"{target} += {self.bounded(1)} * {place} * {place}"] * 3, f"{place} *= 0.9")
        return self.line(self.random.choice(forms))

    def _choose(self, form: str) -> None:
        choice = f"{self.bounded(1)} if {self._condition()} else 0.3 * {self.value(1)}"
        self.line(f"{self.fresh('float')} = {choice}")

    def _condition(self) -> str:
        whole = self.random.choice(("2.0", "3.0", "5.0", "7.0", "8.0"))
        sign = self.random.choice(("<", ">=", ">", "<="))
        return f"{self._decided(f'int({self._next_to_a_jump()} {sign} {whole})')} == 1"

    def _branch(self, form: str) -> None:
        self.line(f"if {self._condition()}:")
        with self.indented():
            self.block(form, 2)
        self.line("else:")
        with self.indented():
            self.block(form, 2)

    def _repeat(self, form: str) -> None:
        count = self._decided(f"int({self._next_to_a_jump()})")
        known = len(self.scope)
        head = f"for {self.fresh('int')} in range({count} % 5):"
        own = self.scope[known:]
        del self.scope[known:]
        self._body(head, own, form)

    def _each(self, form: str) -> None:
        known = len(self.scope)
        head = f"for {self.fresh('int')} in range({self.one_of('grid').name}.size):"
        own = self.scope[known:]
        del self.scope[known:]
        self._body(head, own, form)

    def statements(self, form: str) -> None:
        """Statements between two loops over the grid, which decide what becomes of the result."""
        self._over_the_grid()
        Statements.statements(self, form)
        self._over_the_grid()

    def _over_the_grid(self) -> None:
        """A loop that changes ``s0``: LLVM moves what it can of a division by the step out of it, if it may."""
        grid, h, array = self.one_of("grid"), self.one_of("step").name, self.random.choice(self.of("array"))
        self.names += 1
        i, a, n = f"n_{self.names}", array.name, array.shape[0]
        ratio = f"{grid.name}[{i}] / {h}"
        index = self._decided(f"int({ratio})")
        truth = self._decided(f"int({ratio} >= {self.random.choice(('3.0', '6.0', '7.0', '12.0', '14.0'))})")
        bodies = (
            [f"s0 += 0.1 * {a}[{index} % {n}] * {grid.name}[{i}]"],
            [f"k_{i} = {index}", f"s0 += 0.1 * math.sin({a}[k_{i} % {n}] * {a}[(k_{i} + 1) % {n}])"],
            [f"for j_{i} in range({index} % 5):", f"    s0 = 0.9 * s0 + 0.2 * math.sin(s0) * {a}[j_{i} % {n}]"],
            [f"if {truth} == 1:", f"    s0 += 0.1 * {a}[0] * {a}[1]", "else:", "    s0 = 0.8 * math.sin(s0)"],
            [f"s0 += 0.1 * ({a}[0] * {a}[1] if {truth} == 1 else {a}[2] * {grid.name}[{i}])"],
            [f"t_{i} = {ratio}", f"s0 += 0.1 * {a}[0] * (t_{i} - {self._decided(f'np.floor(t_{i})')})"],
        )
        self.line(f"for {i} in range({grid.name}.size):")
        for line in self.random.choice(bodies):
            self.line(f"    {line}")

    def result(self, form: str) -> None:
        """The return of what is in scope, ``s0`` above all."""
        Statements.result(self, form)
        self.lines[-1] = self.lines[-1].replace("return ", "return 2.0 * s0 + ", 1)
