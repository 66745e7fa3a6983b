"""Random programs: Numba functions as text with arguments, the same for the same seed.

They end, stay in bounds and finite, and use what users use: loops and branches that depend on data, early ways out,
views and swapped arrays, memory written in place, temporaries, tuples, lists, helpers and recursion. `random_program`
draws until the plain Python function runs at the arguments with a moderate value.
"""

from __future__ import annotations

import linecache
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

import numba
import numpy as np

from tests.tools.random_expressions import Signature
from tests.tools.random_source import write_program

_LARGEST: Final = 1e4
_MOST_LINES: Final = 100_000
_LONGEST_LOG: Final = 2000
_GRID: Final = (0.2, 0.3, 0.3, 0.6, 0.6, 0.7, 0.7, 0.8)  # 0.3 / 0.1 is just below 3.0, 0.3 * (1.0 / 0.1) is not
_LENGTHS: Final = (4, 4, 5, 6)
_ARRAY_VIEWS: Final = ("[::-1]", "[1:]", "[:-1]", "[::2]", "[2:]")
_MATRIX_VIEWS: Final = ("", "", ".T", "[:, ::-1]")
_KINDS: Final = (*["array"] * 4, *["float"] * 2, "matrix", "view", "single", "indices", "int", "tuple")


@dataclass(frozen=True, slots=True)
class Program:
    """A function with arguments.

    Attributes:
        seed: it was made from.
        source: text of the module; the function is ``program``.
        bases: memory and numbers that the arguments are made of.
        views: for each argument, the expressions over a base (its number and what follows its name) it consists of:
            one, or several for a tuple. Arguments with one base share memory.
        log: number of the base to which the function writes what it decides; None if it does not.
    """

    seed: int
    source: str
    bases: tuple[Any, ...]
    views: tuple[tuple[tuple[int, str], ...], ...]
    log: int | None = None

    @property
    def file(self) -> str:
        """The name of the source in tracebacks and in the messages of compilers."""
        return f"<random program {self.seed}>"

    def function(self, names: Mapping[str, Any], source: str | None = None) -> Callable[..., Any]:
        """Runs the module with the given global names; returns the function."""
        text = self.source if source is None else source
        linecache.cache[self.file] = (len(text), None, text.splitlines(keepends=True), self.file)
        namespace = dict(names)
        exec(compile(text, self.file, "exec"), namespace)
        return namespace["program"]

    def compiled(self) -> Callable[..., Any]:
        """The function compiled by Numba."""
        return self.function({"np": np, "math": math, "njit": numba.njit})

    def copy_bases(self) -> tuple[Any, ...]:
        """New memory with the same content."""
        return tuple(b.copy() if isinstance(b, np.ndarray) else b for b in self.bases)

    def arguments(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments as views of ``bases``."""
        made = [tuple(view_of(bases[number], view) for number, view in entries) for entries in self.views]
        return tuple(entries[0] if len(entries) == 1 else entries for entries in made)

    def __str__(self) -> str:
        """A script that defines the function and ``args``."""
        bases = [f"base{i} = {_literal(base)}" for i, base in enumerate(self.bases)]
        arguments = []
        for entries in self.views:
            texts = [f"base{number}{view}" for number, view in entries]
            arguments.append(texts[0] if len(texts) == 1 else f"({', '.join(texts)})")
        imports = "import math\nimport numpy as np\nfrom numba import njit\n"
        return "\n".join([imports, self.source, *bases, f"args = ({', '.join(arguments)},)"])


def random_program(seed: int, *, decides: bool = False) -> Program:
    """The program of a seed; on request one with fastmath, which decides things by numbers next to a jump."""
    for attempt in range(100):
        random = Random(1000 * seed + attempt)
        program = _draw(seed, random, decides=decides)
        if runs(program):
            return program
    raise AssertionError(f"seed {seed}: none of 100 programs runs")


def runs(program: Program) -> bool:
    """Whether the plain Python function ends without an exception, with finite numbers of moderate size."""
    function = program.function({"np": np, "math": math, "njit": _undecorated})
    bases = program.copy_bases()
    try:
        with np.errstate(all="ignore"):
            value = _end_soon(function, *program.arguments(bases))
    except Exception:  # of whatever a drawn or reduced program does wrong
        return False
    if value is None:
        return False
    numbers = [np.ravel(v) for v in (*(value if isinstance(value, tuple) else (value,)), *bases)]
    return all(bool(np.all(np.abs(n) < _LARGEST)) for n in numbers)


def _end_soon(function: Callable[..., Any], *args: Any) -> Any:
    """The result; raises when the function runs forever, as one does whose counter was taken away by a reduction."""
    lines = iter(range(_MOST_LINES))

    def count(frame: Any, event: str, argument: Any) -> Any:
        if next(lines, None) is None:
            raise RuntimeError("the program does not end")
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        return function(*args)
    finally:
        sys.settrace(before)


def view_of(base: Any, view: str) -> Any:
    """What the expression says of a base, in a container of the base's own."""
    return eval(f"base{view}", {"base": base})


def _undecorated(*args: Any, **options: Any) -> Any:
    return args[0] if args else lambda function: function


def _literal(base: Any) -> str:
    if not isinstance(base, np.ndarray):
        return repr(base)
    if not base.any():
        return f"np.zeros({base.shape}, np.{base.dtype})"
    dtype = "" if base.dtype in (np.float64, np.int64) else f", np.{base.dtype}"
    return f"np.array({base.tolist()}{dtype})"


def _draw(seed: int, random: Random, *, decides: bool) -> Program:
    kinds = ["array", *(random.choice(_KINDS) for _ in range(random.randint(1, 4)))]
    if decides:
        kinds = ["array", "grid", "step", "log", *random.choices(("array", "float", "matrix", "int"), k=2)]
    bases: list[Any] = []
    views: list[tuple[tuple[int, str], ...]] = []
    signature: list[Signature] = []
    for position, kind in enumerate(kinds):
        entry = Signature(f"{kind[0]}{position}", kind)
        match kind:
            case "view":
                views.append(((0, random.choice(_ARRAY_VIEWS)),))
                entry = replace(entry, shape=np.shape(view_of(bases[0], views[-1][0][1])))
            case "matrix":
                bases.append(_floats(random, random.randint(2, 3), random.randint(3, 4)))
                views.append(((len(bases) - 1, random.choice(_MATRIX_VIEWS)),))
                entry = replace(entry, shape=np.shape(view_of(bases[-1], views[-1][0][1])))
            case "tuple":
                bases += [_number(random), _floats(random, 4)]
                views.append(((len(bases) - 2, ""), (len(bases) - 1, "")))
                entry = replace(entry, shape=(4,))
            case _:
                bases.append(_base(kind, random))
                views.append(((len(bases) - 1, ""),))
                entry = replace(entry, shape=np.shape(bases[-1]))
        signature.append(entry)
    log = kinds.index("log") if decides else None
    return Program(seed, write_program(tuple(signature), random), tuple(bases), tuple(views), log)


def _base(kind: str, random: Random) -> Any:
    length = random.choice(_LENGTHS)
    match kind:
        case "array":
            return _floats(random, length)
        case "single":
            return _floats(random, length).astype(np.float32)
        case "indices":
            return np.array([random.randint(0, 6) for _ in range(length)])
        case "float":
            return _number(random)
        case "grid":
            return np.array([random.choice(_GRID) for _ in range(6)])
        case "step":
            return random.choice((0.1, 0.05))
        case "log":
            return np.zeros(_LONGEST_LOG, np.int64)
    return random.randint(0, 5)


def _floats(random: Random, *shape: int) -> Any:
    return np.array([_number(random) for _ in range(math.prod(shape))]).reshape(shape)


def _number(random: Random) -> float:
    return round(random.uniform(0.2, 1.6) * random.choice((1, 1, -1)), 3)
