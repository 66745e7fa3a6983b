"""The text of random programs: functions of bounded values, written statement by statement.

`_Function` holds what is in scope. Every float stays bounded because it is made by bounded functions, or is scaled down
before it is added; every index is taken modulo a length that is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Final

_OPTIONS: Final = ("", "", "", '(error_model="numpy")', "(boundscheck=True)")
_ARRAYS: Final = ("array", "view", "single", "row")
_DEPTH: Final = 3


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


def write_program(signature: tuple[Signature, ...], random: Random) -> str:
    """The text of a module: helpers, then ``program`` with the given parameters."""
    helpers: list[Helper] = []
    texts: list[str] = []
    for number in range(random.choice((0, 0, 1, 1, 2))):
        form = random.choice(("scalar", "memory", "recursion", "fresh"))
        texts.append(_write_helper(Helper(f"h{number}", form), tuple(helpers), random))
        helpers.append(Helper(f"h{number}", form))
    function = _Function(random, tuple(helpers), random.randint(4, 9), scope=list(signature))
    function.line(f"@njit{random.choice(_OPTIONS)}")
    function.line(f"def program({', '.join(s.name for s in signature)}):")
    form = random.choice(("float", "float", "float", "float", "tuple", "array"))
    with function.indented():
        function.line("s0 = 0.5")
        function.scope.append(Signature("s0", "float"))
        function.statements(form)
        function.result(form)
    return "\n\n".join([*texts, "\n".join(function.lines)]) + "\n"


def _write_helper(helper: Helper, callees: tuple[Helper, ...], random: Random) -> str:
    array, scalar = Signature("a", "view", (3,)), Signature("s", "float")
    parameters = {
        "scalar": (scalar, Signature("t", "float")),
        "memory": (array, Signature("i", "int"), scalar),
        "recursion": (array, Signature("d", "int"), scalar),
        "fresh": (array, scalar),
    }[helper.form]
    function = _Function(random, callees, random.randint(1, 3), scope=list(parameters))
    function.fixed = {"d"}
    function.line("@njit")
    function.line(f"def {helper.name}({', '.join(p.name for p in parameters)}):")
    with function.indented():
        if helper.form == "recursion":
            function.line("if d <= 0:")
            function.line(f"    return {function.bounded(1)}")
        function.statements("float" if helper.form != "fresh" else "array")
        if helper.form == "recursion":
            function.line(f"r = {helper.name}(a, d - {random.randint(1, 2)}, {function.bounded(2)})")
            function.scope.append(Signature("r", "float"))
            function.statement("float")
        if helper.form == "fresh":
            function.line(f"return {random.choice(('a.copy()', 'np.sin(a)', 'a * s', 'a + a[0]', 'a[::-1] * 0.5'))}")
        else:
            function.result("float")
    return "\n".join(function.lines)


@dataclass(slots=True)
class _Function:
    """A function that is being written."""

    random: Random
    helpers: tuple[Helper, ...]
    budget: int
    scope: list[Signature]
    lines: list[str] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)
    indent: int = 0
    loops: int = 0
    names: int = 0

    def line(self, text: str) -> None:
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
        self.names += 1
        self.scope.append(Signature(f"{kind[0]}_{self.names}", kind, shape))
        return self.scope[-1].name

    def of(self, *kinds: str) -> list[Signature]:
        return [s for s in self.scope if s.kind in kinds]

    def one_of(self, *kinds: str) -> Signature:
        return self.random.choice(self.of(*kinds))

    # Expressions

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
        kinds = [s for s in self.scope if s.kind in (*_ARRAYS, "matrix", "tuple", "list")]
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
        arrays = [s for s in self.of(*_ARRAYS) if s.shape[0] >= 3]
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

    # Statements

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
        targets = self.of(*_ARRAYS, "matrix", "list", "indices")
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
        arrays = self.of(*_ARRAYS)
        forms = [(f"np.zeros({n})", n), (f"np.full({n}, {self.value(1)})", n)]
        if arrays:
            a = self.random.choice(arrays)
            length = a.shape[0]
            texts = (f"{a.name} * {self.value(1)}", f"np.sin({a.name})", f"{a.name} + np.cos({a.name})")
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
            views = [("::-1", n), (":", n)] + [("1:", n - 1), (":-1", n - 1), ("-2::-1", n - 1)] * (n > 2)
            views += [("::2", (n + 1) // 2)] * (n > 3)
            view, length = self.random.choice(views)
            self.line(f"{self.fresh('view', (length,))} = {a.name}[{view}]")
        else:
            self._assign()

    def _whole_array(self) -> None:
        arrays = self.of(*_ARRAYS)
        if not arrays:
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
        arrays = self.of(*_ARRAYS, "list")
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
        terms += [self.place(s) for s in self.of(*_ARRAYS, "matrix", "list")]
        self.random.shuffle(terms)
        total = " + ".join(f"{0.5 + 0.25 * i} * {term}" for i, term in enumerate(terms[:4]))
        arrays = self.of("array")
        if form == "tuple" and terms:
            self.line(f"return {total}, {self.bounded(1)}")
        elif form == "array" and arrays:
            self.line(f"return {self.random.choice(arrays).name} * ({total})")
        else:
            self.line(f"return {total}")
