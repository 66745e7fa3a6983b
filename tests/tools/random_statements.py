"""Statements of random programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from tests.tools.random_expressions import ARRAYS, Expressions, Signature

_DEPTH: Final = 3


@dataclass(slots=True)
class Statements(Expressions):
    """Writes the lines of one function.

    Attributes:
        budget: how many statements there may still be; a block that was begun is finished.
        lines: what was written.
        fixed: ints that may not be assigned to: something ends by them.
        indent: depth of the current block.
        loops: number of loops around the current line.
        names: number of variables made so far.
    """

    budget: int
    lines: list[str] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)
    indent: int = 0
    loops: int = 0
    names: int = 0

    def line(self, text: str) -> None:
        """Adds a line to the current block."""
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def indented(self, loop: bool = False) -> Iterator[None]:
        """A block: what is defined in it is forgotten after it."""
        known = len(self.scope)
        self.indent += 1
        self.loops += loop
        yield
        self.indent -= 1
        self.loops -= loop
        del self.scope[known:]

    def fresh(self, kind: str, shape: tuple[int, ...] = ()) -> str:
        """The name of a new variable, which is in scope from now on."""
        self.names += 1
        self.scope.append(Signature(f"{kind[0]}_{self.names}", kind, shape))
        return self.scope[-1].name

    def statements(self, form: str) -> None:
        """Statements until the budget is spent."""
        while self.budget > 0:
            self.statement(form)

    def block(self, form: str, most: int) -> None:
        """One to ``most`` statements."""
        for _ in range(self.random.randint(1, most)):
            self.statement(form)

    def statement(self, form: str) -> None:
        """One statement, in a function with the given form of result."""
        self.budget -= 1
        simple = [self._assign, self._assign, self._update, self._update, self._store, self._store, self._store]
        simple += [self._make_array, self._make_view, self._whole_array, self._exchange, self._list, self._swap]
        simple.append(self._count)
        if self.indent <= _DEPTH and self.budget > 0 and self.random.random() < 0.45:
            compound = (self._if, self._for, self._for, self._while)
            self.random.choice(compound)(form)
        else:
            self.random.choice(simple)()

    def _assign(self) -> None:
        e = self.value(2)
        targets = [s.name for s in self.of("float")]
        if targets and self.random.random() < 0.5:
            self.line(f"{self.random.choice(targets)} = {self.bounded(2)}")
        else:
            self.line(f"{self.fresh('float')} = 0.5 * {e}")

    def _update(self) -> None:
        if not self.of("float"):
            return self._assign()
        s, e = self.one_of("float").name, self.bounded(2)
        forms = (f"{s} += {e}", f"{s} = 0.6 * {s} + {e}", f"{s} *= {e}", f"{s} -= 0.3 * {s} * {e}")
        return self.line(self.random.choice(forms))

    def _store(self) -> None:
        targets = self.of(*ARRAYS, "matrix", "list", "indices")
        if not targets:
            return self._assign()
        s = self.random.choice(targets)
        if s.kind == "indices":
            return self.line(f"{s.name}[{self.index(str(s.shape[0]))}] = {self.integer()} % 5")
        place, e = self.place(s), self.bounded(2)
        forms = (f"{place} = {e}", f"{place} += 0.5 * {e}", f"{place} *= {e}", f"{place} = {self.place(s)} * {e}")
        return self.line(self.random.choice(forms))

    def _make_array(self) -> None:
        n = self.random.randint(3, 5)
        arrays = self.of(*ARRAYS)
        # 1.0: a name that is float32 first and float64 later makes Numba fail to unify the arrays
        forms = [(f"np.zeros({n})", n), (f"np.full({n}, 1.0 * {self.value(1)})", n)]
        if arrays:
            a = self.random.choice(arrays)
            length = a.shape[0]
            texts = (f"{a.name} * (1.0 * {self.value(1)})", f"np.sin({a.name})", f"{a.name} + np.cos({a.name})")
            forms += [(text, length) for text in texts]
            if a.kind != "single":
                forms.append((f"{a.name}.copy()", length))
        text, length = self.random.choice(forms)
        kind = "array" if "single" not in {a.kind for a in arrays if a.name in text} else "single"
        self.line(f"{self.fresh(kind, (length,))} = {text}")

    def _make_view(self) -> None:
        arrays = self.of("array", "view", "row")
        matrices = self.of("matrix")
        if matrices and self.random.random() < 0.4:
            m = self.random.choice(matrices)
            rows, columns = m.shape
            slices = ((self.index(str(rows)), columns), (f":, {self.index(str(columns))}", rows))
            index, length = self.random.choice(slices)
            self.line(f"{self.fresh('row', (length,))} = {m.name}[{index}]")
        elif arrays:
            a = self.random.choice(arrays)
            n = a.shape[0]
            if a.kind == "view" and "_" in a.name and self.random.random() < 0.5:
                self.line(f"{a.name} = {a.name}[::-1]")
                return
            views = [("::-1", n), (":", n)] + [("1:", n - 1), (":-1", n - 1), ("-2::-1", n - 1)] * (n > 2)
            views += [("::2", (n + 1) // 2)] * (n > 3)
            view, length = self.random.choice(views)
            self.line(f"{self.fresh('view', (length,))} = {a.name}[{view}]")
        else:
            self._assign()

    def _whole_array(self) -> None:
        arrays = self.of(*ARRAYS)
        if not arrays or self.random.random() < 0.5:  # Numba takes seconds to compile some of these
            return self._assign()
        a = self.random.choice(arrays)
        b = self.random.choice([s for s in arrays if s.shape == a.shape])
        forms = [
            f"{a.name} *= {self.bounded(1)}",
            f"{a.name}[:] = {self.bounded(1)}",
            f"{a.name}[:] = np.tanh({b.name})",
        ]
        forms += [f"{a.name}[1:] = {b.name}[:-1]", f"{a.name}[::-1] = {b.name}", f"{a.name}[:-1] += 0.5 * {b.name}[1:]"]
        if self.of("float"):
            s = self.one_of("float").name
            forms += [f"{s} = 0.3 * {a.name}.sum()", f"{s} += math.sin(np.sum({a.name} * {b.name}))"]
            forms += [f"{s} = 0.4 * np.dot({a.name}, {b.name})"] * (a.kind == b.kind == "array")
        forms.append(f"{a.name}[:] = 0.5 * np.cumsum({b.name})")
        forms.append(f"{a.name}[:] = np.where({b.name} > 0.1, {a.name}, 0.3 * {b.name})")
        return self.line(self.random.choice(forms))

    def _exchange(self) -> None:
        floats = self.of("float")
        if len(floats) < 2:
            return self._assign()
        a, b = self.random.sample([s.name for s in floats], 2)
        forms = (f"{a}, {b} = {b}, {self.bounded(1)}", f"{a}, {b} = ({b} + 0.1, 0.5 * {a})")
        return self.line(self.random.choice(forms))

    def _list(self) -> None:
        if self.of("list"):
            s = self.one_of("list").name
            return self.line(f"{s}.append({self.value(1)})")
        first, second = self.value(1), self.value(1)
        return self.line(f"{self.fresh('list')} = [0.5 + {first}, 0.0 + {second}]")

    def _swap(self) -> None:
        arrays = self.of("array")
        pairs = [(a.name, b.name) for a in arrays for b in arrays if a.name < b.name and a.shape == b.shape]
        if not pairs:
            return self._store()
        a, b = self.random.choice(pairs)
        return self.line(f"{a}, {b} = {b}, {a}")

    def _count(self) -> None:
        counters = [s.name for s in self.of("int") if s.name not in self.fixed]
        e = self.integer()
        cast = f"int(3.0 + 2.5 * {self.random.choice(('math.sin', 'math.tanh'))}({self.value(1)}))"
        e = self.random.choice((e, cast))
        if counters and self.random.random() < 0.3:
            return self.line(f"{self.random.choice(counters)} = {e} % 6")
        return self.line(f"{self.fresh('int')} = {e}")

    def _if(self, form: str) -> None:
        self.line(f"if {self.condition()}:")
        with self.indented():
            self.block(form, 2)
            self._leave(form)
        for _ in range(self.random.choice((0, 0, 1))):
            self.line(f"elif {self.condition()}:")
            with self.indented():
                self.block(form, 2)
        if self.random.random() < 0.4:
            self.line("else:")
            with self.indented():
                self.block(form, 2)
                self._leave(form)

    def _leave(self, form: str) -> None:
        """Now and then a way out at the end of a branch."""
        chance = self.random.random()
        if self.loops and chance < 0.35:
            self.line(self.random.choice(("break", "continue")))
        elif chance < 0.45 and form == "float":
            self.line(f"return {self.value(1)} * 1.0")

    def _for(self, form: str) -> None:
        arrays = self.of(*ARRAYS, "list")
        forms: Sequence[str] = ("range", "range", "down", "count", "each", "enumerate", "zip")
        match self.random.choice(forms if arrays else forms[:4]):
            case "range":
                known = len(self.scope)
                count = self.random.choice((self.random.randint(2, 5), f"{self.integer()} % 5"))
                head = f"for {self.fresh('int')} in range({count}):"
            case "down":
                known = len(self.scope)
                start = self.random.randint(2, 4)
                head = f"for {self.fresh('int')} in range({start}, {self.random.randint(-1, 1)}, -1):"
            case "count":
                known = len(self.scope)
                count = f"int(2.0 + 2.0 * math.sin({self.value(1)}))"
                head = f"for {self.fresh('int')} in range({count}):"
            case "each":
                known = len(self.scope)
                array = self.random.choice(arrays).name
                head = f"for {self.fresh('float')} in {array}:"
            case "enumerate":
                known = len(self.scope)
                array = self.random.choice(arrays).name
                head = f"for {self.fresh('int')}, {self.fresh('float')} in enumerate({array}):"
            case _:
                known = len(self.scope)
                a, b = self.random.choice(arrays).name, self.random.choice(arrays).name
                head = f"for {self.fresh('float')}, {self.fresh('float')} in zip({a}, {b}):"
        own = self.scope[known:]
        del self.scope[known:]
        self._body(head, own, form)

    def _while(self, form: str) -> None:
        self.names += 1
        counter = Signature(f"c_{self.names}", "int")
        self.line(f"{counter.name} = 0")
        condition = self.random.choice(("", f" and {self.condition()}"))
        self.fixed.add(counter.name)
        head = f"while {counter.name} < {self.random.randint(2, 5)}{condition}:"
        self._body(head, [counter], form, first=f"{counter.name} += 1")

    def _body(self, head: str, own: Sequence[Signature], form: str, first: str | None = None) -> None:
        self.line(head)
        lists = [s for s in self.scope if s.kind == "list" and s.name in head]
        self.scope = [s for s in self.scope if s not in lists]
        with self.indented(loop=True):
            if first is not None:
                self.line(first)
            self.scope.extend(own)
            self.block(form, 3)
            if self.random.random() < 0.2:
                self.line(f"if {self.condition()}:")
                self.line(f"    {self.random.choice(('break', 'continue'))}")
                self.statement(form)
        self.scope.extend(lists)

    def result(self, form: str) -> None:
        """The return of what is in scope."""
        terms = [s.name for s in self.of("float")]
        terms += [self.place(s) for s in self.of(*ARRAYS, "matrix", "list")]
        self.random.shuffle(terms)
        total = " + ".join(f"{0.5 + 0.25 * i} * {term}" for i, term in enumerate(terms[:4]))
        arrays = self.of("array")
        if form == "tuple" and terms:
            self.line(f"return {total}, {self.bounded(1)}")
        elif form == "array" and arrays:
            self.line(f"return {self.random.choice(arrays).name} * ({total})")
        else:
            self.line(f"return {total}")
