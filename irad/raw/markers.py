"""Names that ask for a derivative, and markers, which say how an argument takes part.

    double d = __enzyme_autodiff((void *)f, x);                        d: the derivative with respect to x
    __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, n);  dx[i] += that with respect to x[i]
    double t = __enzyme_fwddiff((void *)f, x, dx);                     t: the derivative along dx

Input   a call, or an argument of one.
Output  what the call asks for; the text of the marker.
Method  the marker of an argument is an integer that is loaded from a global called `enzyme_…` or `irad_…`, or metadata
        with that text.
"""

from __future__ import annotations

import enum
from typing import Final

from irad.ir import types
from irad.ir.instructions import CallSite, Cast, Freeze, Load, Phi
from irad.ir.module import Function, Module
from irad.ir.types import IntType
from irad.ir.values import GlobalVariable, MetadataOperand, Value, const_int
from irad.passes.mode import FORWARD_MODE, REVERSE_MODE, Mode

MODES: Final[dict[str, Mode]] = {"autodiff": REVERSE_MODE, "fwddiff": FORWARD_MODE}
"""The mode that a call asks for, by its kind."""
OTHER_KINDS: Final = {
    "augmentfwd": "the two sweeps as calls of their own",
    "reverse": "the two sweeps as calls of their own",
    "virtualreverse": "derivatives of pointers to functions as calls of their own",
    "batch": "a batch of calls",
}
"""Kinds of calls that irad does not have."""
CALL_NAMES: Final = tuple(f"__{whose}_{kind}" for kind in MODES for whose in ("irad", "enzyme"))
"""Substrings of the names of functions whose calls irad replaces."""
PRIMAL_RETURN: Final = "primal_return"
"""The marker that asks for the value beside its tangent."""
_PREFIXES: Final = ("irad_", "enzyme_")


class ArgumentRole(enum.Enum):
    """Part that an argument takes in the derivative."""

    CONST = "const"  # no derivative
    DUP = "dup"  # a pointer, followed by its shadow; in forward mode also a number, followed by its tangent
    DUP_NO_NEED = "dupnoneed"  # the same; the caller does not read what the primal leaves there
    OUT = "out"  # a number whose derivative is returned


ROLES: Final = {role.value: role for role in ArgumentRole}
SPACED: Final = {f"{role.value}v": role for role in (ArgumentRole.DUP, ArgumentRole.DUP_NO_NEED)}
"""Markers of pointers whose shadows lie in one array: their distance in bytes follows, then the argument."""
WIDTH: Final = "width"
"""The marker that the number of tangents or shadows follows that each argument has."""
_OWN: Final = frozenset({*ROLES, *SPACED, PRIMAL_RETURN, WIDTH})
"""Markers even where a variable of that name is defined: as Enzyme's users write `int enzyme_dup;`."""


def kind_of(call: CallSite) -> str | None:
    """Kind of derivative a call asks for: a key of `MODES` or of `OTHER_KINDS`; None for ordinary calls."""
    callee = call.callee
    if not isinstance(callee, Function) or callee.name is None or not callee.is_declaration:
        return None
    name = callee.name
    return next(
        (kind for kind in (*MODES, *OTHER_KINDS) if f"__enzyme_{kind}" in name or f"__irad_{kind}" in name), None
    )


def marker_of(value: Value) -> str | None:
    """The text of a marker without its prefix, or None if a value is none."""
    match value:
        case Load(operands=[GlobalVariable(name=str(name)) as variable]) if isinstance(value.type, IntType):
            text = _marker_text(name)
            return text if variable.initializer is None or text in _OWN else None
        case Cast(operands=[source]) | Freeze(operands=[source]):
            return marker_of(source)
        case Phi(operands=[Value() as first, *others]) if all(each is first for each in others):
            return marker_of(first)
        case MetadataOperand(text=text):
            return _marker_text(text.strip('!"'))
        case _:
            return None


def _marker_text(name: str) -> str | None:
    prefix = next((each for each in _PREFIXES if name.startswith(each)), None)
    return name.removeprefix(prefix) if prefix is not None else None


def drop_markers(module: Module) -> None:
    """Replaces loads of markers that are no longer used by a constant: their globals are declared, never defined.

    The loads stay, for debug records count the instructions of a function.
    """
    stand_in = GlobalVariable(types.PTR, "irad.marker", value_type=types.I32, constant=True, prefix=("private",))
    stand_in.initializer = const_int(types.I32, 0)
    for function in module.defined_functions():
        for inst in list(function.instructions()):
            if isinstance(inst, Load) and not inst.users and not inst.volatile and marker_of(inst) is not None:
                inst.set_operand(0, stand_in)
    if stand_in.users:
        module.globals["irad.marker"] = stand_in
