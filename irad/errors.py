"""irad's errors: one root, one format.

Every error says what is wrong (``problem``), where (``location``, a place in the user's source), what was met there
(``detail``: the operation in Python terms) and what to do (``remedy``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A place in a source file. ``line`` counts from 1; 0 means unknown."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" in {self.function}" if self.function else "")


class IradError(Exception):
    """Root of every error that irad raises on purpose.

    Attributes:
        problem: one sentence, what is wrong.
        remedy: what the user can do; alternatives are "(a) … or (b) …".
        location: where in the user's source, or None.
        detail: the operation there, in Python terms, or None.
        instruction: the instruction of the program that is concerned, until the driver has turned it into a location.
    """

    def __init__(
        self, problem: str, remedy: str, *, location: SourceLocation | None = None, detail: str | None = None
    ) -> None:
        self.problem, self.remedy, self.location, self.detail = problem, remedy, location, detail
        self.instruction: object | None = None
        super().__init__(problem)

    def __str__(self) -> str:
        lines = [self.problem]
        if self.location is not None:
            lines.append(f"  at  {self.location}")
        if self.detail:
            lines.append(f"  in  {self.detail}")
        lines.append(f"  do  {self.remedy}")
        return "\n".join(lines)


class ParseError(IradError):
    """Text that is not LLVM IR as irad knows it; ``line`` and ``column`` count from 1."""

    def __init__(self, problem: str, line: int, column: int) -> None:
        self.line, self.column = line, column
        super().__init__(
            f"{problem} (line {line}, column {column} of the LLVM text)",
            "report it with the function: this LLVM version prints something irad does not read",
        )


class UnsupportedError(IradError):
    """A construct irad cannot differentiate."""


class SignatureError(IradError):
    """Wrong annotation, argument count, shadow or seed."""


class ActivityError(IradError):
    """Active values would be lost: stored to constant memory, or through a pointer of unclear provenance."""


class NoRuleError(UnsupportedError):
    """A call of a function without body and without rule."""


class RuleError(IradError):
    """A rule that contradicts itself or another one."""


class PlanError(IradError):
    """A needed value can be neither saved nor recomputed."""


class BackendError(IradError):
    """LLVM or Numba refused what irad generated, or Numba cannot compile the user's function."""


class InternalError(IradError):
    """A fault of irad itself."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "report it with the function that caused it")


class UnsupportedProgram(UnsupportedError):
    """Several unsupported constructs of one program, listed at once in ``errors``."""

    def __init__(self, errors: Sequence[IradError]) -> None:
        self.errors = tuple(errors)
        super().__init__("the function has several constructs that irad cannot differentiate", "change each as said")

    def __str__(self) -> str:
        listed = dict.fromkeys(str(e) for e in self.errors)
        if len(listed) == 1:
            return next(iter(listed))
        return "\n\n".join((f"{self.problem} ({len(listed)})", *listed))
