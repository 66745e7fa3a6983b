"""Programs as Numba code: for irad, with complex numbers for the complex step, and with a count of operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.generated import tree
from bench.generated.text import ATOM, Printer

HEAD: Final = "import math\n\nimport numpy as np\nfrom numba import njit\n"
_COMPLEX_HEAD: Final = """
@njit
def least(a, b):
    return b if b.real < a.real else a


@njit
def greatest(a, b):
    return b if b.real > a.real else a


@njit
def absolute(a):
    return a if a.real >= 0.0 else -a
"""
# A name that no program has for something of its own.
_COUNTER: Final = "_operations"
_ELEMENTARY: Final = ("exp", "log", "sqrt", "sin", "cos", "tanh")


def numba_text(functions: Sequence[tree.Function]) -> str:
    """The program as a user of Numba writes it; the last function is the one to differentiate."""
    return "\n\n".join([HEAD, *(_Numba().function(each) for each in functions)])


def complex_text(functions: Sequence[tree.Function]) -> str:
    """The program for complex numbers, in which conditions look at real parts: it is analytic away from kinks."""
    return "\n\n".join([HEAD.replace("import math", "import cmath"), _COMPLEX_HEAD.strip("\n") + "\n"]) + "\n\n".join(
        ["", *(_Complex().function(each) for each in functions)]
    )


def counting_text(functions: Sequence[tree.Function]) -> str:
    """The program with a last parameter, to which numbers of float operations and elementary calls are added."""
    return "\n\n".join([HEAD, *(_Counting().function(each) for each in functions)])


class _Numba(Printer):
    conjunction = "and"

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 1

    def function(self, function: tree.Function) -> str:
        self._lines = []
        parameters = ", ".join(self.parameters(function))
        self.body(function.body)
        text = "\n".join(self._lines)
        return f'@njit(error_model="numpy")\ndef {function.name}({parameters}):\n{text}\n'

    def parameters(self, function: tree.Function) -> list[str]:
        return [each.name for each in function.parameters]

    def body(self, statements: Sequence[tree.Statement]) -> None:
        for each in statements:
            self.statement(each)

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def statement(self, statement: tree.Statement) -> None:
        match statement:
            case tree.Assign():
                target = self.text(statement.target)
                is_fill = statement.target.rank > 0 and not isinstance(statement.target, tree.Var)
                suffix = "[:]" if is_fill and not isinstance(statement.target, tree.Part) else ""
                self.line(f"{target}{suffix} {statement.operator}= {self.text(statement.value)}")
            case tree.Evaluate():
                self.line(self.text(statement.call))
            case tree.Rotate():
                names = [each.name for each in statement.arrays]
                self.line(f"{', '.join(names)} = {', '.join([*names[1:], names[0]])}")
            case tree.Unpack():
                names, shape = [each.name for each in statement.sizes], f"{statement.array.name}.shape"
                self.line(f"{', '.join(names)} = {shape}{'[0]' if len(names) == 1 else ''}")
            case tree.For():
                self._block(f"for {statement.variable.name} in {self._range(statement)}:", statement.body)
            case tree.If():
                self._block(f"if {self.text(statement.condition)}:", statement.yes)
                if statement.no:
                    self._block("else:", statement.no)
            case tree.Return():
                self.line(f"return {self.text(statement.value)}")

    def _block(self, head: str, body: Sequence[tree.Statement]) -> None:
        self.line(head)
        self._depth += 1
        self.body(body)
        self._depth -= 1

    def _range(self, loop: tree.For) -> str:
        bounds = [self.text(loop.start), self.text(loop.stop), str(loop.step)]
        if loop.step == 1:
            bounds = bounds[:2] if bounds[0] != "0" else bounds[1:2]
        return f"range({', '.join(bounds)})"

    def remainder(self, value: tree.Binary) -> tuple[str, int]:
        return self.product(self.text(value.left, 5), self.text(value.right, 5))

    def selection(self, value: tree.Select) -> str:
        return f"{self.text(value.yes, 1)} if {self.text(value.condition, 1)} else {self.text(value.no, 1)}"

    def library(self, value: tree.Library) -> tuple[str, int]:
        arguments = [self.text(argument) for argument in value.arguments]
        if value.name == "square":
            return self.power(self.text(value.arguments[0], ATOM))
        if value.name in _ELEMENTARY:
            return f"{'np' if value.rank else 'math'}.{value.name}({arguments[0]})", ATOM
        return f"{value.name}({', '.join(arguments)})", ATOM

    def atom(self, value: tree.Expr) -> str:
        match value:
            case tree.Var():
                return value.name
            case tree.At():
                return f"{self.text(value.array, ATOM)}[{', '.join(map(self.text, value.indices))}]"
            case tree.Part():
                start = "" if isinstance(value.start, tree.Num) and value.start.value == 0 else self.text(value.start)
                return f"{self.text(value.array, ATOM)}[{start}:{self.text(value.stop)}]"
            case tree.Size(array):
                return f"{self.text(array, ATOM)}.shape[{value.axis}]"
            case tree.Elements():
                return f"np.array([{', '.join(map(self.text, value.elements))}])"
            case tree.New():
                shape = ", ".join(map(self.text, value.shape))
                shape = f"({shape})" if len(value.shape) > 1 else shape
                return f"np.{'zeros' if value.is_zero else 'empty'}({shape}{self.dtype()})"
            case tree.Copy():
                return f"{self.text(value.array, ATOM)}.copy()"
            case tree.Sum():
                return f"np.sum({self.text(value.array)})"
            case tree.Call():
                return f"{value.function.name}({', '.join(self.arguments(value))})"
            case _:
                raise TypeError(value)

    def arguments(self, call: tree.Call) -> list[str]:
        return [self.text(argument) for argument in call.arguments]

    def dtype(self) -> str:
        return ""


class _Complex(_Numba):
    def comparison(self, value: tree.Compare) -> str:
        sides = [self._real(side) for side in (value.left, value.right)]
        return f"{sides[0]} {value.operator} {sides[1]}"

    def _real(self, value: tree.Expr) -> str:
        return self.text(value, 4) if value.type == "long" else f"{self.text(value, ATOM)}.real"

    def library(self, value: tree.Library) -> tuple[str, int]:
        arguments = [self.text(argument) for argument in value.arguments]
        renamed = {"min": "least", "max": "greatest", "abs": "absolute"}
        if value.name in renamed:
            return f"{renamed[value.name]}({', '.join(arguments)})", ATOM
        if value.name == "int":
            return f"int({self._real(value.arguments[0])})", ATOM
        if value.name in _ELEMENTARY and value.rank == 0:
            return f"cmath.{value.name}({arguments[0]})", ATOM
        return super().library(value)

    def atom(self, value: tree.Expr) -> str:
        if isinstance(value, tree.Elements):
            return f"np.array([{', '.join(f'complex({self.text(each)})' for each in value.elements)}])"
        return super().atom(value)

    def dtype(self) -> str:
        return ", np.complex128"


class _Counting(_Numba):
    def parameters(self, function: tree.Function) -> list[str]:
        return [*super().parameters(function), _COUNTER]

    def arguments(self, call: tree.Call) -> list[str]:
        return [*super().arguments(call), _COUNTER]

    def statement(self, statement: tree.Statement) -> None:
        counts: dict[tuple[int, str], int] = {}
        for value in _values(statement):
            for each in value.walk():
                kind = _kind(each)
                if kind is not None:
                    key = kind, self._extent(each)
                    counts[key] = counts.get(key, 0) + 1
        if isinstance(statement, tree.Assign) and statement.operator and statement.target.type == "double":
            key = 0, self._extent(statement.target)
            counts[key] = counts.get(key, 0) + 1
        for (kind, extent), number in counts.items():
            self.line(f"{_COUNTER}[{kind}] += {number}{extent}")
        super().statement(statement)

    def _extent(self, value: tree.Expr) -> str:
        """A factor: the number of elements."""
        if value.rank == 0 and not isinstance(value, tree.Sum):
            return ""
        arrays = (each for each in value.walk() if each.rank > 0 and isinstance(each, tree.Var | tree.At | tree.Part))
        return f" * {self.text(next(arrays), ATOM)}.size"


def _values(statement: tree.Statement) -> tuple[tree.Expr, ...]:
    """Expressions that a statement computes each time."""
    match statement:
        case tree.Assign():
            return statement.target, statement.value
        case tree.Return():
            return (statement.value,)
        case tree.Evaluate():
            return (statement.call,)
        case tree.If():
            return (statement.condition,)
        case _:
            return ()


def _kind(value: tree.Expr) -> int | None:
    """0 for an operation of floats, 1 for an elementary function; None for all else."""
    if isinstance(value, tree.Library):
        return 1 if value.name in _ELEMENTARY else 0 if value.type == "double" else None
    is_operation = isinstance(value, tree.Binary | tree.Sum) or (
        isinstance(value, tree.Negative) and not isinstance(value, tree.Num)
    )
    return 0 if is_operation and value.type == "double" else None
