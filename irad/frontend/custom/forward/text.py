"""The shape of a tangent: LLVM text that gives an njit function the parameters by which a derivative calls it.

Input   the symbol of a function of Numba's: (arena, returned, its shadow, shadows…, tangents of floats…, arguments…).
Output  text that defines the symbol of a `RuledFunctions` by a call of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from irad.driver import ParameterKind, RuledFunctions
from irad.frontend.custom.pair_text import NOTE
from irad.frontend.values import abi
from irad.passes.mode import TANGENT
from irad.passes.variant import shadowed


def numba_text(wanted: RuledFunctions, shadow_parameters: Sequence[int], symbol: str) -> str:
    """LLVM text for a function with Numba's calling convention: its status is that of the rule."""
    values, shadow_of, numbers = _parameters(wanted)
    given = [shadow_of[index] for index in shadow_parameters]
    first = ["ptr %slot", "ptr %3", "ptr %1", "ptr %2", shadow_of.get(abi.RETURN_INDEX, "ptr null")]
    arguments = [*first, *given, *numbers, *values[abi.FIRST_ARGUMENT_INDEX :]]
    body = f"""\
  %slot = alloca ptr
  %status = call i32 @"{symbol}"({", ".join(arguments)})
  ret i32 %status
"""
    return _text(wanted, symbol, arguments, body)


def c_text(wanted: RuledFunctions, shadow_parameters: Sequence[int], symbol: str) -> str:
    """The same for a function with C's: what was raised waits in the arena."""
    values, shadow_of, numbers = _parameters(wanted)
    result = str(wanted.variant.function_type.result)
    has_value = result not in ("void", "ptr")  # Numba calls what returns nothing as if it returned a pointer
    place = result if has_value else "ptr"
    given = [shadow_of[index] for index in shadow_parameters]
    first = ["ptr %slot", "ptr %exception", "ptr %1", "ptr %returned", "ptr %tangent"]
    arguments = [*first, *given, *numbers, *values]
    body = f"""\
  %slot = alloca ptr
  %exception = alloca ptr
  %returned = alloca {place}
  %tangent = alloca {place}
  store {place} zeroinitializer, ptr %returned
  store {place} zeroinitializer, ptr %tangent
  store ptr null, ptr %exception
  %status = call i32 @"{symbol}"({", ".join(arguments)})
  %raised = icmp ne i32 %status, 0
  br i1 %raised, label %note, label %done
note:
{NOTE}
  br label %done
done:
{_return(wanted, result, has_value=has_value)}"""
    return _text(wanted, symbol, arguments, body)


def _return(wanted: RuledFunctions, result: str, *, has_value: bool) -> str:
    kind = str(TANGENT.type_of(wanted.variant, shadowed(wanted.variant.kinds)).result)
    if not has_value:
        return "  ret void\n" if kind == "void" else f"  ret {kind} zeroinitializer\n"
    if not wanted.variant.result_active:
        return f"  %value = load {result}, ptr %returned\n  ret {result} %value\n"
    return f"""\
  %value = load {result}, ptr %returned
  %amount = load {result}, ptr %tangent
  %first = insertvalue {kind} zeroinitializer, {result} %value, 0
  %both = insertvalue {kind} %first, {result} %amount, 1
  ret {kind} %both
"""


def _parameters(wanted: RuledFunctions) -> tuple[list[str], dict[int, str], list[str]]:
    """The parameters, typed: those of the primal, by number of these their shadows, the tangents of floats."""
    variant = wanted.variant
    shadows = shadowed(variant.kinds)
    typed = [f"{kind} %{i}" for i, kind in enumerate(TANGENT.type_of(variant, shadows).params)]
    tangents = 2 + len(variant.function_type.params) + len(shadows)
    values, pointers = typed[2 : tangents - len(shadows)], typed[tangents - len(shadows) : tangents]
    assert len(typed) - tangents == sum(kind is ParameterKind.ACTIVE for kind in variant.kinds)
    return values, dict(zip(shadows, pointers, strict=True)), typed[tangents:]


def _text(wanted: RuledFunctions, symbol: str, arguments: Sequence[str], body: str) -> str:
    kind = TANGENT.type_of(wanted.variant, shadowed(wanted.variant.kinds))
    parameters = ", ".join(f"{each} %{i}" for i, each in enumerate(kind.params))
    return f"""\
@"{wanted.frame_size}" = constant i64 0
declare i32 @"{symbol}"({", ".join(each.rsplit(maxsplit=1)[0] for each in arguments)})

define {kind.result} @"{wanted.symbols[TANGENT]}"({parameters}) {{
entry:
{body}}}
"""
