"""The shape of a pair: LLVM text that gives njit functions the parameters by which a derivative calls a pair.

Input   the symbols of two functions of Numba's: (frame, arena, returned, its shadow, shadows…, arguments…) and
        (frame, pointers for cotangents…).
Output  text that defines the symbols of a `RuledFunctions` by calls of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template
from typing import Final

from irad.driver import ParameterKind, RuledFunctions
from irad.frontend.values import abi
from irad.ir.types import FunctionType
from irad.passes.mode import AUGMENTED, REVERSE, ModeFunction
from irad.passes.variant import shadowed
from irad.runtime_layouts import ARENA, RULE_RAISED

_TEXT: Final = Template(
    """
@"$frame" = constant i64 $size
declare i32 @"$forward"($forward_types)
declare i32 @"$backward"($backward_types)

define $result @"$augmented"($parameters) {
entry:
$before  %status = call i32 @"$forward"($forward_values)
$after}

define void @"$reverse"($reverse_parameters) {
entry:
  %slot = alloca ptr
  %exception = alloca ptr
  %flags = getelementptr i8, ptr %1, i64 $flag
  %reason = load i32, ptr %flags
  %over = icmp eq i32 %reason, $raised
  br i1 %over, label %done, label %look
look:
$look
run:
  store ptr null, ptr %exception
$seed  %status = call i32 @"$backward"($backward_values)
  %raised = icmp ne i32 %status, 0
  br i1 %raised, label %note, label %done
note:
$note
  br label %done
done:
  ret void
}
"""
)

# What was raised where there is no status to return waits in the arena.
NOTE: Final = f"""\
  %pending = load ptr, ptr %exception
  %place = getelementptr i8, ptr %1, i64 {ARENA.offset("pending")}
  %code = getelementptr i8, ptr %1, i64 {ARENA.offset("pending_code")}
  %flag = getelementptr i8, ptr %1, i64 {ARENA.offset("failed")}
  store ptr %pending, ptr %place
  store i32 %status, ptr %code
  store i32 {RULE_RAISED}, ptr %flag"""


# The primal may have caught what the augmented primal raised: there is nothing in the frame to go back from then.
_LOOK: Final = Template(
    """\
  %status.slot = getelementptr i8, ptr %0, i64 $size
  %ended = load i32, ptr %status.slot
  %fine = icmp eq i32 %ended, 0
  br i1 %fine, label %run, label %nothing
nothing:
$zeros  br label %done"""
)


def numba_text(wanted: RuledFunctions, shadow_parameters: Sequence[int], forward: str, backward: str, size: int) -> str:
    """LLVM text of a pair for a function with Numba's calling convention; the augmented primal has a status.

    The status is passed on behind the frame.
    """
    values, lanes = _parameters(wanted)
    returned_shadows = [shadow_of.get(abi.RETURN_INDEX, "ptr null") for shadow_of in lanes]
    given = [shadow_of[index] for shadow_of in lanes for index in shadow_parameters]
    variant, first_out = wanted.variant, 2
    numbers = zip(variant.function_type.params, variant.kinds, strict=True)
    active = [type_ for type_, kind in numbers if kind is ParameterKind.ACTIVE] * wanted.width
    zeros = [f"  store {type_} zeroinitializer, ptr %{i}\n" for i, type_ in enumerate(active, first_out)]
    after = [f"  %status.slot = getelementptr i8, ptr %0, i64 {size}", "  store i32 %status, ptr %status.slot"]
    first = ["ptr %slot", "ptr %3", "ptr %0", "ptr %1", "ptr %2", *returned_shadows]
    return _pair_text(
        wanted,
        forward,
        backward,
        [*first, *given, *values[abi.FIRST_ARGUMENT_INDEX :]],
        size=size + 8,
        before="  %slot = alloca ptr\n",
        after="".join(f"{line}\n" for line in (*after, "  ret i32 %status")),
        look=_LOOK.substitute(size=size, zeros="".join(zeros)),
        seed="",
        first_out=first_out,
    )


def c_text(wanted: RuledFunctions, shadow_parameters: Sequence[int], forward: str, backward: str, size: int) -> str:
    """The same for a function with C's. The cotangent of its result is passed on behind the frame."""
    values, lanes = _parameters(wanted)
    result = str(wanted.variant.function_type.result)
    has_value = result not in ("void", "ptr")  # Numba calls what returns nothing as if it returned a pointer
    given = [shadow_of[index] for shadow_of in lanes for index in shadow_parameters]
    cotangents = [
        f"  %cotangent{lane} = getelementptr i8, ptr %0, i64 {size + 8 * lane}" for lane in range(wanted.width)
    ]
    lines = [
        "  %slot = alloca ptr",
        "  %exception = alloca ptr",
        f"  %returned = alloca {result if has_value else 'ptr'}",
    ]
    lines += cotangents
    if has_value:
        lines.append(f"  store {result} zeroinitializer, ptr %returned")
    after = ["  %raised = icmp ne i32 %status, 0", "  br i1 %raised, label %note, label %done", "note:", NOTE]
    after += ["  br label %done", "done:"]
    if has_value:
        after += [f"  %value = load {result}, ptr %returned", f"  ret {result} %value"]
    else:
        kind = _type_of(wanted, AUGMENTED).result
        after.append("  ret void" if str(kind) == "void" else f"  ret {kind} zeroinitializer")
    is_seeded = wanted.variant.result_active
    seed = [*cotangents, *(f"  store {result} %{2 + i}, ptr %cotangent{i}" for i in range(wanted.width))]
    first = ["ptr %slot", "ptr %exception", "ptr %0", "ptr %1", "ptr %returned"]
    first += [f"ptr %cotangent{lane}" for lane in range(wanted.width)]
    return _pair_text(
        wanted,
        forward,
        backward,
        [*first, *given, *values],
        size=size + 8 + 8 * wanted.width,
        before="".join(f"{line}\n" for line in lines),
        after="".join(f"{line}\n" for line in after),
        look="  br label %run",
        seed="".join(f"{line}\n" for line in seed) if is_seeded else "",
        first_out=2 + wanted.width if is_seeded else 2,
    )


def _parameters(wanted: RuledFunctions) -> tuple[list[str], list[dict[int, str]]]:
    """The parameters of an augmented primal, typed: of the primal; for each lane by number of these its shadows."""
    shadows = shadowed(wanted.variant.kinds)
    typed = [f"{kind} %{i}" for i, kind in enumerate(_type_of(wanted, AUGMENTED).params)]
    count = 2 + len(wanted.variant.function_type.params)
    starts = (count + lane * len(shadows) for lane in range(wanted.width))
    return typed[2:count], [dict(zip(shadows, typed[start : start + len(shadows)], strict=True)) for start in starts]


def _type_of(wanted: RuledFunctions, function: ModeFunction) -> FunctionType:
    """The type of a function of the mode, at its width."""
    found = next(each for each in wanted.symbols if each == function)
    return found.type_of(wanted.variant, shadowed(wanted.variant.kinds))


def _pair_text(
    wanted: RuledFunctions,
    forward: str,
    backward: str,
    forward_values: list[str],
    *,
    size: int,
    before: str,
    after: str,
    look: str,
    seed: str,
    first_out: int,
) -> str:
    kind, back = _type_of(wanted, AUGMENTED), _type_of(wanted, REVERSE)
    outs = [f"ptr %{i}" for i in range(first_out, len(back.params))]
    backward_values = ["ptr %slot", "ptr %exception", "ptr %0", *outs]
    return _TEXT.substitute(
        frame=wanted.frame_size,
        size=size,
        forward=forward,
        backward=backward,
        forward_types=", ".join(each.split()[0] for each in forward_values),
        backward_types=", ".join("ptr" for _ in backward_values),
        result=kind.result,
        augmented=wanted.symbols[AUGMENTED],
        parameters=", ".join(f"{each} %{i}" for i, each in enumerate(kind.params)),
        before=before,
        forward_values=", ".join(forward_values),
        after=after,
        look=look,
        reverse=wanted.symbols[REVERSE],
        reverse_parameters=", ".join(f"{each} %{i}" for i, each in enumerate(back.params)),
        seed=seed,
        backward_values=", ".join(backward_values),
        note=NOTE,
        flag=ARENA.offset("failed"),
        raised=RULE_RAISED,
    )
