"""The shape of a tangent: LLVM text that gives an njit function the parameters by which a derivative calls it.

Input   the symbol of a function of Numba's: (arena, returned, its shadow, shadows…, tangents of floats…, arguments…).
Output  text that defines the symbol of a `RuledFunctions` by a call of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from irad.driver import ParameterKind, RuledFunctions
from irad.frontend.custom.pair_text import NOTE
from irad.frontend.values import abi
from irad.ir.types import FunctionType
from irad.passes.mode import TANGENT
from irad.passes.variant import shadowed


def numba_text(wanted: RuledFunctions, shadow_parameters: Sequence[int], symbol: str) -> str:
    """LLVM text for a function with Numba's calling convention: its status is that of the rule."""
    values, lanes, numbers = _parameters(wanted)
    returned = [shadow_of.get(abi.RETURN_INDEX, "ptr null") for shadow_of in lanes]
    given = [shadow_of[index] for shadow_of in lanes for index in shadow_parameters]
    first = ["ptr %slot", "ptr %3", "ptr %1", "ptr %2"]
    arguments = [*first, *returned, *given, *numbers, *values[abi.FIRST_ARGUMENT_INDEX :]]
    body = f"""\
  %slot = alloca ptr
  %status = call i32 @"{symbol}"({", ".join(arguments)})
  ret i32 %status
"""
    return _text(wanted, symbol, arguments, body)


def c_text(wanted: RuledFunctions, shadow_parameters: Sequence[int], symbol: str) -> str:
    """The same for a function with C's: what was raised waits in the arena."""
    values, lanes, numbers = _parameters(wanted)
    result = str(wanted.variant.function_type.result)
    has_value = result not in ("void", "ptr")  # Numba calls what returns nothing as if it returned a pointer
    place = result if has_value else "ptr"
    tangents = [f"%tangent{lane}" for lane in range(wanted.width)]
    given = [shadow_of[index] for shadow_of in lanes for index in shadow_parameters]
    first = ["ptr %slot", "ptr %exception", "ptr %1", "ptr %returned", *(f"ptr {each}" for each in tangents)]
    arguments = [*first, *given, *numbers, *values]
    places = "\n".join(
        f"  {each} = alloca {place}\n  store {place} zeroinitializer, ptr {each}" for each in ("%returned", *tangents)
    )
    body = f"""\
  %slot = alloca ptr
  %exception = alloca ptr
{places}
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
    kind = str(_type_of(wanted).result)
    if not has_value:
        return "  ret void\n" if kind == "void" else f"  ret {kind} zeroinitializer\n"
    if not wanted.variant.result_active:
        return f"  %value = load {result}, ptr %returned\n  ret {result} %value\n"
    lines, packed = [], "zeroinitializer"
    for index, place in enumerate(("%returned", *(f"%tangent{lane}" for lane in range(wanted.width)))):
        lines.append(f"  %part{index} = load {result}, ptr {place}\n")
        lines.append(f"  %packed{index} = insertvalue {kind} {packed}, {result} %part{index}, {index}\n")
        packed = f"%packed{index}"
    return "".join([*lines, f"  ret {kind} {packed}\n"])


def _parameters(wanted: RuledFunctions) -> tuple[list[str], list[dict[int, str]], list[str]]:
    """The parameters, typed: those of the primal, for each lane by number of these their shadows, the tangents."""
    variant = wanted.variant
    shadows = shadowed(variant.kinds)
    typed = [f"{kind} %{i}" for i, kind in enumerate(_type_of(wanted).params)]
    first = 2 + len(variant.function_type.params)
    tangents = first + len(shadows) * wanted.width
    active = sum(kind is ParameterKind.ACTIVE for kind in variant.kinds)
    assert len(typed) - tangents == active * wanted.width
    lanes = (typed[start : start + len(shadows)] for start in range(first, tangents, len(shadows) or 1))
    pointers = list(lanes) or [[]] * wanted.width
    return typed[2:first], [dict(zip(shadows, each, strict=True)) for each in pointers], typed[tangents:]


def _type_of(wanted: RuledFunctions) -> FunctionType:
    [tangent] = wanted.symbols
    return tangent.type_of(wanted.variant, shadowed(wanted.variant.kinds))


def _text(wanted: RuledFunctions, symbol: str, arguments: Sequence[str], body: str) -> str:
    kind = _type_of(wanted)
    parameters = ", ".join(f"{each} %{i}" for i, each in enumerate(kind.params))
    return f"""\
@"{wanted.frame_size}" = constant i64 0
declare i32 @"{symbol}"({", ".join(each.rsplit(maxsplit=1)[0] for each in arguments)})

define {kind.result} @"{wanted.symbols[TANGENT]}"({parameters}) {{
entry:
{body}}}
"""
