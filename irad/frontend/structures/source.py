"""The text of a function that is being written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from irad.frontend.generated import function_from


class Source:
    """Lines of a function, with the names that they use.

    Args:
        head: the parameters as they are written.
        scope: what is known by name.
    """

    def __init__(self, head: str, scope: dict[str, Any]) -> None:
        self._lines = [f"def structured({head}):"]
        self._depth, self._count = 1, 0
        self._scope = dict(scope)
        self._constants: dict[Any, str] = {}

    def line(self, text: str) -> None:
        """Adds a statement, if there is one."""
        if text:
            self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """What is added within is indented below a header."""
        self.line(header)
        self._depth += 1
        at = len(self._lines)
        yield
        if len(self._lines) == at:
            self.line("pass")
        self._depth -= 1

    def fresh(self, prefix: str) -> str:
        """A name that is not used yet."""
        self._count += 1
        return f"{prefix}_{self._count}"

    def variable(self, prefix: str, text: str) -> str:
        """The name of a new variable with a value."""
        name = self.fresh(prefix)
        self.line(f"{name} = {text}")
        return name

    def constant(self, value: Any, prefix: str) -> str:
        """The name of something that is known when the function is written."""
        if value not in self._constants:
            self._constants[value] = self.fresh(prefix)
            self._scope[self._constants[value]] = value
        return self._constants[value]

    def text(self) -> str:
        """The function as it is by now."""
        return "\n".join(self._lines) + "\n"

    def function(self, file: str) -> Callable[..., Any]:
        """The function."""
        return function_from("structured", self.text(), file, self._scope)
