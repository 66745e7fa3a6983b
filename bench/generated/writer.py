"""Writes a function of a program, statement by statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from bench.generated.tree import (
    Assign,
    Call,
    Evaluate,
    Expr,
    For,
    Function,
    If,
    Return,
    Rotate,
    Statement,
    Type,
    Unpack,
    Var,
    expr,
)


class Writer:
    """A function in the making. Loops and branches are `with` blocks."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._parameters: list[Var] = []
        self._bodies: list[list[Statement]] = [[]]

    def parameter(self, name: str, rank: int = 0, of: Type = "double") -> Var:
        """The next parameter."""
        self._parameters.append(Var(name, rank, of))
        return self._parameters[-1]

    def let(self, name: str, value: Any) -> Var:
        """A variable with a value; one that has the name gets the value."""
        value = expr(value)
        variable = Var(name, value.rank, value.type)
        self.set(variable, value)
        return variable

    def set(self, target: Expr, value: Any, operator: str = "") -> None:
        """``target = value``, or ``target += value`` and the like."""
        self._append(Assign(target, expr(value), operator))

    def add(self, target: Expr, value: Any) -> None:
        """``target += value``."""
        self.set(target, value, "+")

    def sizes(self, array: Var, *names: str) -> tuple[Var, ...]:
        """The lengths of the axes of an array."""
        variables = tuple(Var(name, 0, "long") for name in names)
        self._append(Unpack(variables, array))
        return variables

    def rotate(self, *arrays: Var) -> None:
        """Each name gets the array of the next one, the last name that of the first."""
        self._append(Rotate(arrays))

    def do(self, call: Call) -> None:
        """A call for what it writes."""
        self._append(Evaluate(call))

    @contextmanager
    def loop(self, name: str, start: Any, stop: Any, step: int = 1) -> Iterator[Var]:
        """A loop over ``range(start, stop, step)``."""
        variable = Var(name, 0, "long")
        body = self._open()
        yield variable
        self._bodies.pop()
        self._append(For(variable, expr(start), expr(stop), tuple(body), step))

    @contextmanager
    def nest(self, names: Sequence[str], starts: Sequence[Any], stops: Sequence[Any]) -> Iterator[list[Var]]:
        """Loops inside each other."""
        with ExitStack() as stack:
            yield [stack.enter_context(self.loop(*each)) for each in zip(names, starts, stops, strict=True)]

    @contextmanager
    def when(self, condition: Expr) -> Iterator[None]:
        """A branch."""
        body = self._open()
        yield
        self._bodies.pop()
        self._append(If(condition, tuple(body)))

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """The other way of the branch before."""
        body = self._open()
        yield
        self._bodies.pop()
        before = self._bodies[-1].pop()
        assert isinstance(before, If)
        self._append(If(before.condition, before.yes, tuple(body)))

    def function(self, result: Any = None, shape: tuple[Any, ...] = ()) -> Function:
        """The function, with what it returns: a number, or an array of the shape."""
        if result is not None:
            self._append(Return(expr(result)))
        [body] = self._bodies
        sizes = tuple(map(expr, shape))
        return Function(self._name, tuple(self._parameters), tuple(body), sizes, result is not None)

    def _open(self) -> list[Statement]:
        self._bodies.append([])
        return self._bodies[-1]

    def _append(self, statement: Statement) -> None:
        self._bodies[-1].append(statement)
