"""Programs as C, in the common part of C and C++: arrays are pointers, and their lengths follow as arguments.

The main function has the form that `bench.competitors.with_enzyme` asks for: pointers to arrays and to numbers that are
active, ``shape[argument][axis]``, and where the result goes. Arrays of a function are allocated once, before the loop
that makes them first, and freed at the end, as one writes it in C.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from bench.generated import tree
from bench.generated.text import ATOM, Printer

HELPERS: Final = """
static double least(double a, double b) { return b < a ? b : a; }
static double greatest(double a, double b) { return b > a ? b : a; }
static long from_end(long i, long n) { return i < 0 ? i + n : i; }
static long around(long i, long n) { return i < 0 ? i + n : i >= n ? i - n : i; }
"""
PLAIN_HEAD: Final = """
#include <math.h>
#include <stdlib.h>
static double *doubles(long n) { return (double *)malloc(n * sizeof(double)); }
static double square(double x) { return x * x; }
"""
_NAMES: Final = {"abs": "fabs", "min": "least", "max": "greatest", "int": "(long)"}


def c_text(functions: Sequence[tree.Function], active: Collection[str]) -> str:
    """The program in C; ``active`` are parameters of the last function."""
    *others, main = functions
    texts = [_C(each).function() for each in others]
    return HELPERS + "\n" + "\n".join([*texts, _Main(main, active).function()])


def plain_text(functions: Sequence[tree.Function], active: Collection[str], shapes: Sequence[tuple[int, ...]]) -> str:
    """The program as C without any other tool; ``loss`` is visible from outside."""
    rows = ", ".join("{" + ", ".join(map(str, shape or (1,))) + "}" for shape in shapes)
    text = c_text(functions, active).replace("static void loss(", "void loss(")
    return f"{PLAIN_HEAD}static const long shape[][3] = {{{rows}}};\n{text}"


class _C(Printer):
    """Prints one function."""

    conjunction = "&&"

    def __init__(self, function: tree.Function) -> None:
        self._function = function
        self._lines: list[str] = []
        self._depth = 1
        self._shapes: dict[str, tuple[str, ...]] = {}
        self._element: str | None = None  # the position in the arrays of an expression that is computed by elements
        self._allocated: list[str] = []
        self._pending: list[str] = []  # lines that allocate, to stand before the statement that is printed
        self._made = 0
        last = function.body[-1]
        value = last.value if isinstance(last, tree.Return) else None
        # a local array that is made in place of the result
        self._returned = value.name if isinstance(value, tree.Var) and value.rank else None
        for each in function.parameters:
            self._shapes[each.name] = tuple(f"{each.name}_{axis}" for axis in range(each.rank))

    def function(self) -> str:
        body = self._function.body
        self._declare(body)
        for each in body:
            start = len(self._lines)
            self.statement(each)
            self._lines[start:start] = self._pending
            self._pending = []
        if not isinstance(body[-1], tree.Return):
            self._free()
        text = "\n".join(self._lines)
        return f"static {self.head()} {{\n{text}\n}}\n"

    def head(self) -> str:
        """The function's type and parameters."""
        parameters = []
        for each in self._function.parameters:
            if each.rank:
                parameters.append(f"{self._pointer_to(each)}{each.name}")
                parameters += [f"long {name}" for name in self._shapes[each.name]]
            else:
                parameters.append(f"{each.type} {each.name}")
        if self._function.shape:
            parameters.append("double *result")
        result = "double" if self._function.returns and not self._function.shape else "void"
        return f"{result} {self._function.name}({', '.join(parameters)})"

    def give(self, value: str) -> None:
        """Returns a number."""
        if self._allocated:
            self.line(f"const double value_of_it = {value};")
            self._free()
            value = "value_of_it"
        self.line(f"return {value};")

    def _pointer_to(self, array: tree.Var) -> str:
        return f"{'' if array.name in self._function.written else 'const '}{array.type} *"

    def _free(self) -> None:
        for name in self._allocated:
            self.line(f"free({name});")

    def _declare(self, body: tuple[tree.Statement, ...]) -> None:
        known = {each.name for each in self._function.parameters}
        constant = {each.name for each in self._function.parameters} - self._function.written
        names: dict[str, list[str]] = {"double": [], "long": []}
        for each in tree.statements(body):
            if not isinstance(each, tree.Assign) or not isinstance(each.target, tree.Var) or each.target.name in known:
                continue
            target = each.target
            known.add(target.name)
            if target.rank == 0:
                names[target.type].append(target.name)
            elif tree.is_view(each.value):
                is_constant = tree.base_of(each.value).name in constant
                constant |= {target.name} if is_constant else set()
                self.line(f"{'const ' if is_constant else ''}{target.type} *{target.name};")
        for type_of, found in names.items():
            if found:
                self.line(f"{type_of} {', '.join(found)};")

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def statement(self, statement: tree.Statement) -> None:
        match statement:
            case tree.Assign():
                self._assign(statement)
            case tree.Evaluate():
                self.line(f"{self.text(statement.call)};")
            case tree.Rotate():
                self._rotate(statement.arrays)
            case tree.Unpack():
                pairs = zip(statement.sizes, self._shapes[statement.array.name], strict=True)
                self.line(f"const long {', '.join(f'{size.name} = {length}' for size, length in pairs)};")
            case tree.For():
                name, up = statement.variable.name, statement.step > 0
                bounds = (
                    f"{name} = {self.text(statement.start)}; {name} {'<' if up else '>'} {self.text(statement.stop)}"
                )
                step = f"{name}{'++' if up else '--'}" if abs(statement.step) == 1 else f"{name} += {statement.step}"
                self._block(f"for (long {bounds}; {step}) {{", statement.body)
            case tree.If():
                condition = self.text(statement.condition)
                self._block(f"if ({condition}) {{", statement.yes)
                if statement.no:
                    self._lines.pop()
                    self._block("} else {", statement.no)
            case tree.Return():
                self._return(statement.value)

    def _block(self, head: str, body: Sequence[tree.Statement]) -> None:
        self.line(head)
        self._depth += 1
        for each in body:
            self.statement(each)
        self._depth -= 1
        self.line("}")

    def _rotate(self, arrays: Sequence[tree.Var]) -> None:
        names = [each.name for each in arrays]
        moves = " ".join(f"{a} = {b};" for a, b in zip(names, [*names[1:], "first"], strict=True))
        self.line(f"{{ double *first = {names[0]}; {moves} }}")

    def _return(self, value: tree.Expr) -> None:
        if value.rank:
            if not (isinstance(value, tree.Var) and value.name == self._returned):
                self._fill("result", value)
            self._free()
        else:
            self.give(self.text(self._hoisted(value)))

    def _assign(self, statement: tree.Assign) -> None:
        target, value = statement.target, statement.value
        if target.rank == 0:
            value = self._hoisted(value)
            self.line(f"{self.text(target)} {statement.operator}= {self.text(value)};")
        elif tree.is_view(value) and isinstance(target, tree.Var):
            self._shapes[target.name] = self._shape(value)
            self.line(f"{target.name} = {self._pointer(value)};")
        elif isinstance(target, tree.Var):
            if target.name not in self._shapes:
                self._allocate(target.name, self._shape(value))
            self._fill(target.name, value, statement.operator)
        else:
            self._fill(self._pointer(target), value, statement.operator)

    def _fill(self, pointer: str, value: tree.Expr, operator: str = "") -> None:
        """Fills an array with what a value is, element by element."""
        match value:
            case tree.New():
                if value.is_zero:
                    self._loop(value, f"{pointer}[at] = 0.0;")
            case tree.Elements():
                elements = [self.text(self._hoisted(each)) for each in value.elements]
                computed = ", ".join(f"e{number} = {text}" for number, text in enumerate(elements))
                stores = " ".join(f"{pointer}[{number}] {operator}= e{number};" for number in range(len(elements)))
                self.line(f"{{ const double {computed}; {stores} }}")
            case tree.Call() if not operator and not self._reads(value, pointer):
                self.line(f"{self._call(value, pointer)};")
            case _:
                bracketed = f"({pointer})" if " " in pointer else pointer
                hoisted = self._hoisted(value)
                shape = hoisted if hoisted.rank else value
                text = self._by_element(hoisted)
                if hoisted.rank == 0:
                    raise TypeError(value)
                self._loop(shape, f"{bracketed}[at] {operator}= {text};")

    @staticmethod
    def _reads(call: tree.Call, pointer: str) -> bool:
        return any(isinstance(each, tree.Var) and each.name == pointer for each in call.walk())

    def _loop(self, value: tree.Expr, text: str) -> None:
        self.line(f"for (long at = 0; at < {self._length(self._shape(value))}; at++) {text}")

    def _by_element(self, value: tree.Expr) -> str:
        self._element = "at"
        text = self.text(value)
        self._element = None
        return text

    def _allocate(self, name: str, shape: tuple[str, ...]) -> None:
        self._shapes[name] = shape
        if name == self._returned:
            self._pending.append(f"    double *{name} = result;")
            return
        self._allocated.append(name)
        self._pending.append(f"    double *{name} = doubles({self._length(shape)});")

    def _new_name(self, stem: str) -> str:
        self._made += 1
        return f"{stem}{self._made}"

    def _hoisted(self, value: tree.Expr) -> tree.Expr:
        """The value with sums, and calls that return arrays, in variables that are computed before."""
        match value:
            case tree.Sum():
                name = self._new_name("sum")
                array = self._hoisted(value.array)
                self.line(f"double {name} = 0.0;")
                self._loop(array, f"{name} += {self._by_element(array)};")
                return tree.Var(name)
            case tree.Call() if value.rank:
                return self._temporary(value)
            case tree.Elements() if self._element is None:
                return self._temporary(value)
            case tree.Binary():
                return tree.Binary(value.operator, self._hoisted(value.left), self._hoisted(value.right))
            case tree.Library():
                return tree.Library(value.name, tuple(map(self._hoisted, value.arguments)))
            case tree.Call():
                return tree.Call(value.function, tuple(map(self._hoisted_argument, value.arguments)))
            case _:
                return value

    def _hoisted_argument(self, value: tree.Expr) -> tree.Expr:
        if value.rank and not isinstance(value, tree.Var) and not tree.is_view(value):
            return self._temporary(value)
        return self._hoisted(value)

    def _temporary(self, value: tree.Expr) -> tree.Var:
        """An array of its own with the value."""
        name = self._new_name("temporary")
        self._allocate(name, self._shape(value))
        self._fill(name, value)
        return tree.Var(name, value.rank)

    def _call(self, call: tree.Call, out: str | None = None) -> str:
        arguments = []
        for argument in call.arguments:
            value = self._hoisted_argument(argument)
            if value.rank:
                arguments += [self._pointer(value), *self._shape(value)]
            else:
                arguments.append(self.text(value))
        return f"{call.function.name}({', '.join([*arguments, *([out] if out else [])])})"

    def _shape(self, value: tree.Expr) -> tuple[str, ...]:
        """Lengths of the axes, as text of numbers that the function knows."""
        match value:
            case tree.Var():
                return self._shapes[value.name]
            case tree.At():
                return self._shape(value.array)[len(value.indices) :]
            case tree.Part():
                start, stop = self.text(value.start), self.text(value.stop, 4)
                return stop if start == "0" else f"{stop} - {start}", *self._shape(value.array)[1:]
            case tree.New():
                return tuple(self.text(size, ATOM) for size in value.shape)
            case tree.Elements():
                return (str(len(value.elements)),)
            case tree.Call():
                return tuple(self._size_of_result(size, value) for size in value.function.shape)
            case tree.Copy():
                return self._shape(value.array)
            case _:
                return next(self._shape(each) for each in value.children if each.rank)

    def _size_of_result(self, size: tree.Expr, call: tree.Call) -> str:
        if isinstance(size, tree.Num):
            return self.text(size)
        names = [each.name for each in call.function.parameters]
        if isinstance(size, tree.Size):
            return self._shape(call.arguments[names.index(tree.base_of(size.array).name)])[size.axis]
        assert isinstance(size, tree.Var)
        return self.text(call.arguments[names.index(size.name)], ATOM)

    @staticmethod
    def _length(shape: tuple[str, ...]) -> str:
        return " * ".join(f"({each})" if " " in each and len(shape) > 1 else each for each in shape)

    def _pointer(self, array: tree.Expr) -> str:
        """Address of an array's first element."""
        match array:
            case tree.Var():
                return array.name
            case tree.At():
                return f"{self._pointer(array.array)} + {self._offset(array)}"
            case tree.Part():
                offset = " * ".join([self.text(array.start, 4), *self._shape(array.array)[1:]])
                return (
                    self._pointer(array.array) if offset.startswith("0") else f"{self._pointer(array.array)} + {offset}"
                )
            case _:
                raise TypeError(array)

    def _offset(self, element: tree.At) -> str:
        """Distance of an element from the array's first."""
        shape = self._shape(element.array)
        terms = []
        for axis, index in enumerate(element.indices):
            inner = shape[axis + 1 :]
            text = self.text(index, 4 if inner else 0)
            place = f"from_end({self.text(index)}, {shape[axis]})" if element.wraps else text
            terms.append(" * ".join([place, *inner]))
        return " + ".join(terms)

    def remainder(self, value: tree.Binary) -> tuple[str, int]:
        return f"around({self.text(value.left)}, {self.text(value.right)})", ATOM

    def selection(self, value: tree.Select) -> str:
        return f"{self.text(value.condition, 1)} ? {self.text(value.yes, 1)} : {self.text(value.no)}"

    def library(self, value: tree.Library) -> tuple[str, int]:
        name = _NAMES.get(value.name, value.name)
        return f"{name}({', '.join(map(self.text, value.arguments))})", ATOM

    def atom(self, value: tree.Expr) -> str:
        match value:
            case tree.Var():
                return f"{value.name}[{self._element}]" if value.rank else value.name
            case tree.At() if value.rank:
                return f"({self._pointer(value)})[{self._element}]"
            case tree.At():
                return (
                    f"{self._pointer(value.array)}[{self._offset(value)}]"
                    if self._is_simple(value)
                    else self._far(value)
                )
            case tree.Part():
                return f"({self._pointer(value)})[{self._element}]"
            case tree.Size(array):
                return self._shape(array)[value.axis]
            case tree.Call():
                return self._call(value)
            case tree.Copy():
                return self.atom(value.array)
            case _:
                raise TypeError(value)

    @staticmethod
    def _is_simple(value: tree.At) -> bool:
        return isinstance(value.array, tree.Var)

    def _far(self, value: tree.At) -> str:
        return f"({self._pointer(value.array)})[{self._offset(value)}]"


class _Main(_C):
    """Prints the function that is differentiated."""

    def __init__(self, function: tree.Function, active: Collection[str]) -> None:
        super().__init__(function)
        self._active = active
        self._lines = list(self._opening())

    def _opening(self) -> Iterator[str]:
        for position, each in enumerate(self._function.parameters):
            for axis, name in enumerate(self._shapes[each.name]):
                yield f"    const long {name} = shape[{position}][{axis}];"
            if each.rank == 0 and each.name in self._active:
                yield f"    double {each.name} = *{each.name}_at;"

    def head(self) -> str:
        parameters = []
        for each in self._function.parameters:
            if each.rank:
                parameters.append(f"{self._pointer_to(each)}{each.name}")
            else:
                parameters.append(
                    f"const double *{each.name}_at" if each.name in self._active else f"{each.type} {each.name}"
                )
        return f"void {self._function.name}({', '.join([*parameters, 'double *out'])})"

    def give(self, value: str) -> None:
        self.line(f"*out = {value};")
        self._free()
