"""Derivatives of plain Python functions by complex steps: exact to rounding, also next to a jump.

The text of the function is run as it stands, but floats become complex numbers: a derivative is the imaginary part
after an imaginary step too small to change a real part. Comparisons and casts look at real parts. What a program with a
log decides is read from there.

Source:
    Squire and Trapp 1998, "Using complex variables to estimate derivatives of real functions".
"""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from irad.data.floats import Vector
from tests.tools.random_programs import Program

_STEP: Final = 1e-30
_FUNCTIONS: Final = ("sin", "cos", "tanh", "exp", "sqrt", "sum", "dot", "cumsum", "where")
_ROUNDING: Final = ("floor", "ceil", "trunc")


def differentiate(program: Program, weights: Vector) -> tuple[Vector, tuple[Any, ...]]:
    """The floats of the result, and the derivative of their weighted sum by each base (None for ints)."""
    function = program.function(_names(), _with_real_comparisons(program.source))
    value = _run(function, program, None, 0)
    derivatives: list[Any] = []
    for number, base in enumerate(program.bases):
        if not _is_float(base):
            derivatives.append(None)
            continue
        partials = [weights @ _run(function, program, number, k).imag / _STEP for k in range(np.size(base))]
        derivatives.append(np.reshape(partials, base.shape) if isinstance(base, np.ndarray) else partials[0])
    return value.real, tuple(derivatives)


def differentiate_along(program: Program, tangents: tuple[Any, ...]) -> tuple[Vector, Vector, tuple[Any, ...]]:
    """The floats of the result, its derivative along a tangent for each base, and that of memory afterwards."""
    function = program.function(_names(), _with_real_comparisons(program.source))
    bases = tuple(
        _complex(base) + 1j * _STEP * tangent if _is_float(base) else _complex(base)
        for base, tangent in zip(program.bases, tangents, strict=True)
    )
    value = floats_of(function(*program.arguments(bases)))
    afterwards = tuple(
        base.imag / _STEP if _is_float(old) else None for base, old in zip(bases, program.bases, strict=True)
    )
    return value.real, np.asarray(value.imag) / _STEP, afterwards


def floats_of(value: Any) -> Any:
    """The numbers of a result, in one vector."""
    parts = value if isinstance(value, tuple) else (value,)
    return np.concatenate([np.ravel(np.asarray(part)) for part in parts])


def _run(function: Any, program: Program, number: int | None, element: int) -> Any:
    bases = [_complex(base) for base in program.bases]
    if number is not None:
        base = bases[number]
        if isinstance(base, np.ndarray):
            base[np.unravel_index(element, base.shape)] += 1j * _STEP
        else:
            bases[number] = base + 1j * _STEP
    return floats_of(function(*program.arguments(tuple(bases))))


def _is_float(base: Any) -> bool:
    return np.asarray(base).dtype.kind == "f"


def _complex(base: Any) -> Any:
    if isinstance(base, np.ndarray):
        return base.astype(np.complex128) if _is_float(base) else base.copy()
    return complex(base) if _is_float(base) else base


class _RealComparisons(ast.NodeTransformer):
    """`a < b` becomes `_real(a) < _real(b)`."""

    def visit_Compare(self, node: ast.Compare) -> ast.Compare:
        """Wraps both sides of every comparison."""
        self.generic_visit(node)
        sides = [ast.Call(ast.Name("_real", ast.Load()), [side], []) for side in (node.left, *node.comparators)]
        node.left, node.comparators = sides[0], list(sides[1:])
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Reads a decision in place of making it."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "decided":
            node.func.id = "_replayed"
        return node


def _with_real_comparisons(source: str) -> str:
    return ast.unparse(_RealComparisons().visit(ast.parse(source)))


def _of_real_part(function: Any) -> Any:
    return lambda x: function(x.real)


def _replayed(log: Any, choice: Any) -> int:
    log[0] += 1
    return int(log[log[0]])


def _real(value: Any) -> Any:
    return value.real


def _names() -> dict[str, Any]:
    """Globals that stand in for those of a program."""
    functions = {name: getattr(np, name) for name in _FUNCTIONS}
    rounding = {name: _of_real_part(getattr(np, name)) for name in _ROUNDING}
    fill = {"zeros": lambda n: np.zeros(n, complex), "full": lambda n, value: np.full(n, value, complex)}
    return {
        "np": SimpleNamespace(**functions, **fill, **rounding),
        "math": SimpleNamespace(**functions, atan=np.arctan),
        "_replayed": _replayed,
        "njit": lambda *args, **options: args[0] if args else lambda function: function,
        "abs": lambda x: x if x.real >= 0 else -x,
        "min": lambda a, b: b if b.real < a.real else a,
        "int": lambda x: int(x.real),
        "_real": _real,
    }
