"""Programs by name: ``stencil/8123`` is the stencil that is drawn from the seed 8123."""

from __future__ import annotations

import linecache
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bench.case import Case, Size
from bench.generated import truth
from bench.generated.c_text import c_text, plain_text
from bench.generated.draw import Draw, Drawn
from bench.generated.families import FAMILIES
from bench.generated.numba_text import complex_text, counting_text, numba_text


@dataclass(frozen=True)
class Program:
    """A program that was drawn.

    Attributes:
        name: its family and its seed, which say all about it.
    """

    name: str
    drawn: Drawn

    @property
    def family(self) -> str:
        """Name of the family."""
        return self.name.partition("/")[0]

    @property
    def argnums(self) -> tuple[int, ...]:
        """Positions of the active arguments."""
        names = [each.name for each in self.drawn.functions[-1].parameters]
        return tuple(position for position, name in enumerate(names) if name in self.drawn.active)

    def arguments(self, size: Size) -> tuple[Any, ...]:
        """Arguments of a size, always the same ones."""
        found = self.drawn.inputs(size, np.random.default_rng(zlib.crc32(self.name.encode())))
        return tuple(found[each.name] for each in self.drawn.functions[-1].parameters)

    @property
    def numba(self) -> str:
        """The program as Numba code."""
        return numba_text(self.drawn.functions)

    @property
    def c(self) -> str:
        """The program for Enzyme."""
        return c_text(self.drawn.functions, self.drawn.active)

    def plain_c(self, size: Size) -> str:
        """The program as C that needs no other tool, for arguments of a size."""
        return plain_text(self.drawn.functions, self.drawn.active, [np.shape(each) for each in self.arguments(size)])

    @cached_property
    def primal(self) -> Callable[..., float]:
        """The function to differentiate."""
        return compiled(self.numba, f"{self.name}.py")

    @cached_property
    def complex(self) -> Callable[..., complex]:
        """The function for complex arguments."""
        return compiled(complex_text(self.drawn.functions), f"{self.name}.complex.py")

    def operations(self, *args: Any) -> tuple[int, int]:
        """Operations of floats, and calls of elementary functions, that the function takes; counted while it runs."""
        counting = compiled(counting_text(self.drawn.functions), f"{self.name}.counting.py")
        count = np.zeros(2, np.int64)
        counting(*args, count)
        return int(count[0]), int(count[1])

    def flops(self, *args: Any) -> float:
        """Least number of operations of value and gradient: each one of the function has one in the adjoint."""
        return 2.0 * self.operations(*args)[0]

    def error(self, args: tuple[Any, ...], found: tuple[float, tuple[Any, ...]]) -> float:
        """Distance of a value and gradients from those of the complex step."""
        return truth.error(self.complex, self.argnums, args, found)

    def oracle(self, *args: Any) -> tuple[float, tuple[Any, ...]]:
        """Value and gradients by irad's slow and simple plan."""
        import irad  # here, so that programs can be printed alone

        options = irad.Options(plan="save_all")
        found: Any = irad.value_and_grad(self.primal, argnums=self.argnums, options=options)(*args)
        return found

    def case(self) -> Case:
        """The program as a case of the harness, which has no hand-written adjoint."""
        given = self.name, self.drawn.title, self.primal, self.oracle, self.arguments, self.argnums
        return Case(*given, flops=self.flops, source=self.c, error=self.error)


def program(name: str) -> Program:
    """The program of a name.

    Raises:
        KeyError: there is no such family.
    """
    family, _, seed = name.partition("/")
    return Program(name, FAMILIES[family](Draw(list(FAMILIES).index(family), int(seed))))


def compiled(text: str, file: str) -> Callable[..., Any]:
    """The function ``loss`` of a text; tracebacks show its lines."""
    names: dict[str, Any] = {}
    file = f"generated/{file}"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    found: Callable[..., Any] = names["loss"]
    return found
