"""Programs as trees: expressions, statements and functions, which `numba_text` and `c_text` print.

Everything is contiguous and in double precision or a 64-bit integer. An expression of rank 1 or more is computed
element by element, with scalars repeated; it may be assigned, returned, summed up or passed to a function.

    u, n = Var("u", 1), Var("n", type="long")
    For(i, Num(1), n, (Assign(u[i], 0.5 * u[i - 1] + exp(u[i])),))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

Type: TypeAlias = Literal["double", "long"]


@dataclass(frozen=True, eq=False)
class Expr:
    """An expression; operators make larger ones, indices take elements, rows and parts."""

    @property
    def rank(self) -> int:
        """Number of dimensions; 0 for a scalar."""
        return 0

    @property
    def type(self) -> Type:
        """Type of the number, or of the elements."""
        return "double"

    @property
    def children(self) -> tuple[Expr, ...]:
        """Expressions that this one is made of, in the order of its fields."""
        found = (getattr(self, each.name) for each in fields(self))
        parts = (part for value in found for part in (value if isinstance(value, tuple) else (value,)))
        return tuple(part for part in parts if isinstance(part, Expr))

    def walk(self) -> Iterator[Expr]:
        """This expression and all inside of it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def __getitem__(self, key: Any) -> Expr:
        if isinstance(key, slice):
            return Part(self, expr(key.start), expr(key.stop))
        keys = tuple(map(expr, key if isinstance(key, tuple) else (key,)))
        return At(self, keys)

    def __add__(self, other: Any) -> Binary:
        return Binary("+", self, expr(other))

    def __radd__(self, other: Any) -> Binary:
        return Binary("+", expr(other), self)

    def __sub__(self, other: Any) -> Binary:
        return Binary("-", self, expr(other))

    def __rsub__(self, other: Any) -> Binary:
        return Binary("-", expr(other), self)

    def __mul__(self, other: Any) -> Binary:
        return Binary("*", self, expr(other))

    def __rmul__(self, other: Any) -> Binary:
        return Binary("*", expr(other), self)

    def __truediv__(self, other: Any) -> Binary:
        return Binary("/", self, expr(other))

    def __rtruediv__(self, other: Any) -> Binary:
        return Binary("/", expr(other), self)

    def __mod__(self, other: Any) -> Binary:
        return Binary("%", self, expr(other))

    def __neg__(self) -> Negative:
        return Negative(self)

    def __lt__(self, other: Any) -> Compare:
        return Compare("<", self, expr(other))

    def __gt__(self, other: Any) -> Compare:
        return Compare(">", self, expr(other))

    def __ge__(self, other: Any) -> Compare:
        return Compare(">=", self, expr(other))


def expr(value: Any) -> Expr:
    """An expression as it is; a Python number as a literal."""
    return value if isinstance(value, Expr) else Num(value)


@dataclass(frozen=True, eq=False)
class Num(Expr):
    """A literal."""

    value: float

    @property
    def type(self) -> Type:
        return "long" if isinstance(self.value, int) else "double"


@dataclass(frozen=True, eq=False)
class Var(Expr):
    """A variable of the function, of any rank."""

    name: str
    dimensions: int = 0
    of: Type = "double"

    @property
    def rank(self) -> int:
        return self.dimensions

    @property
    def type(self) -> Type:
        return self.of


@dataclass(frozen=True, eq=False)
class At(Expr):
    """An element of an array, or what is left of it when the first indices are given.

    Attributes:
        wraps: an index may be negative, and counts from the end then, as in Python.
    """

    array: Expr
    indices: tuple[Expr, ...]
    wraps: bool = False

    @property
    def rank(self) -> int:
        return self.array.rank - len(self.indices)

    @property
    def type(self) -> Type:
        return self.array.type


@dataclass(frozen=True, eq=False)
class Part(Expr):
    """Rows of an array, ``array[start:stop]``."""

    array: Expr
    start: Expr
    stop: Expr

    @property
    def rank(self) -> int:
        return self.array.rank

    @property
    def type(self) -> Type:
        return self.array.type


@dataclass(frozen=True, eq=False)
class Size(Expr):
    """Length of an axis of an array."""

    array: Expr
    axis: int = 0

    @property
    def type(self) -> Type:
        return "long"


@dataclass(frozen=True, eq=False)
class Binary(Expr):
    """An operation of arithmetic. The remainder is of integers and has the sign of the divisor."""

    operator: str
    left: Expr
    right: Expr

    @property
    def rank(self) -> int:
        return max(self.left.rank, self.right.rank)

    @property
    def type(self) -> Type:
        return "long" if self.operator != "/" and self.left.type == self.right.type == "long" else "double"


@dataclass(frozen=True, eq=False)
class Negative(Expr):
    """The negative of a number."""

    operand: Expr

    @property
    def rank(self) -> int:
        return self.operand.rank

    @property
    def type(self) -> Type:
        return self.operand.type


@dataclass(frozen=True, eq=False)
class Compare(Expr):
    """A condition; `Both` joins two."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False)
class Both(Expr):
    """True if two conditions are."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False)
class Select(Expr):
    """One of two scalars."""

    condition: Expr
    yes: Expr
    no: Expr

    @property
    def type(self) -> Type:
        return self.yes.type


@dataclass(frozen=True, eq=False)
class Library(Expr):
    """A function of the library: exp, log, sqrt, sin, cos, tanh, abs, min, max, square, or int, which truncates."""

    name: str
    arguments: tuple[Expr, ...]

    @property
    def rank(self) -> int:
        return max(argument.rank for argument in self.arguments)

    @property
    def type(self) -> Type:
        return "long" if self.name == "int" else "double"


@dataclass(frozen=True, eq=False)
class Elements(Expr):
    """``np.array([...])`` of scalars."""

    elements: tuple[Expr, ...]

    @property
    def rank(self) -> int:
        return 1


@dataclass(frozen=True, eq=False)
class New(Expr):
    """A new array: of zeros, or not initialised."""

    shape: tuple[Expr, ...]
    is_zero: bool = True

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True, eq=False)
class Copy(Expr):
    """A copy of an array."""

    array: Expr

    @property
    def rank(self) -> int:
        return self.array.rank


@dataclass(frozen=True, eq=False)
class Sum(Expr):
    """Sum over the elements of an expression, from the first to the last."""

    array: Expr


@dataclass(frozen=True, eq=False)
class Call(Expr):
    """A call of a function of the program."""

    function: Function
    arguments: tuple[Expr, ...]

    @property
    def rank(self) -> int:
        return len(self.function.shape)


# Statements.


@dataclass(frozen=True, eq=False)
class Assign:
    """``target = value``, or with an operator ``target += value``; a part of an array is filled.

    A row of an array, assigned to a variable, is a view of it.
    """

    target: Expr
    value: Expr
    operator: str = ""


@dataclass(frozen=True, eq=False)
class Evaluate:
    """A call for what it writes into its arguments."""

    call: Call


@dataclass(frozen=True, eq=False)
class Rotate:
    """``a, b, c = b, c, a`` of arrays."""

    arrays: tuple[Var, ...]


@dataclass(frozen=True, eq=False)
class Unpack:
    """``n, m = array.shape``."""

    sizes: tuple[Var, ...]
    array: Var


@dataclass(frozen=True, eq=False)
class For:
    """A loop over ``range(start, stop, step)``."""

    variable: Var
    start: Expr
    stop: Expr
    body: tuple[Statement, ...]
    step: int = 1


@dataclass(frozen=True, eq=False)
class If:
    """A branch."""

    condition: Expr
    yes: tuple[Statement, ...]
    no: tuple[Statement, ...] = ()


@dataclass(frozen=True, eq=False)
class Return:
    """The last statement of a function that has a result."""

    value: Expr


Statement: TypeAlias = Assign | Evaluate | Rotate | Unpack | For | If | Return


@dataclass(frozen=True, eq=False)
class Function:
    """A function of a program.

    Attributes:
        shape: of the array that it returns, in terms of the parameters; empty where it returns a number.
        returns: False for a function that only writes into its arguments.
    """

    name: str
    parameters: tuple[Var, ...]
    body: tuple[Statement, ...]
    shape: tuple[Expr, ...] = ()
    returns: bool = True
    written: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        written = frozenset(_written(self.body)) & {each.name for each in self.parameters}
        object.__setattr__(self, "written", written)

    def __call__(self, *arguments: Any) -> Call:
        """A call of the function."""
        return Call(self, tuple(map(expr, arguments)))


def statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements, those in loops and branches as well."""
    for statement in body:
        yield statement
        if isinstance(statement, For):
            yield from statements(statement.body)
        elif isinstance(statement, If):
            yield from statements(statement.yes)
            yield from statements(statement.no)


def _written(body: tuple[Statement, ...]) -> set[str]:
    """Names of arrays whose elements are written here, by a view or in a function that is called."""
    bases: dict[str, str] = {}

    def name_of(array: Expr) -> str:
        name = base_of(array).name
        return bases.get(name, name)

    found = set()
    for statement in statements(body):
        if isinstance(statement, Assign):
            if not isinstance(statement.target, Var):
                found.add(name_of(statement.target))
            elif is_view(statement.value):
                bases[statement.target.name] = name_of(statement.value)
        elif isinstance(statement, Evaluate):
            call = statement.call
            pairs = zip(call.function.parameters, call.arguments, strict=True)
            found |= {name_of(argument) for parameter, argument in pairs if parameter.name in call.function.written}
    return found


def is_view(value: Expr) -> bool:
    """True for rows and parts of arrays, which are memory of the array."""
    return value.rank > 0 and isinstance(value, At | Part)


def base_of(array: Expr) -> Var:
    """The variable that an element, a row or a part belongs to."""
    while not isinstance(array, Var):
        assert isinstance(array, At | Part)
        array = array.array
    return array


def _library(name: str) -> Any:
    def make(*arguments: Any) -> Library:
        return Library(name, tuple(map(expr, arguments)))

    return make


exp, log, sqrt, sin, cos, tanh = map(_library, ("exp", "log", "sqrt", "sin", "cos", "tanh"))
absolute, least, greatest, square, truncate = map(_library, ("abs", "min", "max", "square", "int"))
