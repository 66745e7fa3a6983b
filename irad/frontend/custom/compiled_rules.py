"""Functions that a derivative calls instead of a ruled function, compiled from the functions of the rule.

Input   what a derivative calls (`RuledFunctions`), the rule, the primal's signature.
Output  `CompiledRule`: Numba's libraries of functions, and LLVM text that gives them the parameters by which the
        derivative calls them.
Method  each is an njit function around that of the rule (`rule_adapters`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from string import Template
from typing import Final

from numba.core import types
from numba.core.compiler import CompileResult
from numba.core.typing import Signature

from irad.backend.link import check_names
from irad.driver import ParameterKind, RuledFunctions
from irad.errors import RuleError
from irad.frontend.custom.catalogue import CustomRule, location_of
from irad.frontend.custom.rule_adapters import RulePairAdapter, compile_both, compile_tangent
from irad.frontend.custom.rule_arguments import RuleConfig
from irad.frontend.custom.rule_types import Annotated, Result, arguments_of, c_signature, pointer_index, result_of
from irad.frontend.custom.rule_workspace import built
from irad.frontend.numba.library import CPU, LinkedLibrary
from irad.frontend.numba.private import to_differentiate
from irad.frontend.values import abi, layouts, tree
from irad.ir.types import FunctionType
from irad.options import Options
from irad.passes.mode import AUGMENTED, REVERSE, TANGENT, ModeFunction
from irad.passes.variant import Variant, shadowed
from irad.records import dataclass
from irad.runtime_layouts import ARENA, RULE_RAISED

# Parameters of what a derivative calls: two pointers, those of the primal, its shadows by lane, tangents of numbers.


def _parameters(wanted: RuledFunctions, function: ModeFunction) -> tuple[list[str], list[dict[int, str]], list[str]]:
    """The parameters, typed: of the primal; for each lane its shadows by number of these; tangents of numbers."""
    shadows = shadowed(wanted.variant.kinds)
    typed = [f"{kind} %{i}" for i, kind in enumerate(_type_of(wanted, function).params)]
    first = 2 + len(wanted.variant.function_type.params)
    end = first + wanted.width * len(shadows)
    starts = (first + lane * len(shadows) for lane in range(wanted.width))
    lanes = [dict(zip(shadows, typed[start : start + len(shadows)], strict=True)) for start in starts]
    return typed[2:first], lanes, typed[end:]


def _type_of(wanted: RuledFunctions, function: ModeFunction) -> FunctionType:
    """The type of a function of the mode, at its width."""
    found = next(each for each in wanted.symbols if each == function)
    return found.type_of(wanted.variant, shadowed(wanted.variant.kinds))


# Reverse mode: LLVM text that defines the symbols of a pair by calls of two njit functions,
# (frame, arena, returned, its shadow, shadows…, arguments…) and (frame, pointers for cotangents…).

# Where a rule has raised before, a reverse does nothing: another exception would take the place of the one that waits.
_PAIR: Final = Template(
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
_NOTE: Final = f"""\
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


def _numba_pair_text(
    wanted: RuledFunctions, shadow_parameters: Sequence[int], forward: str, backward: str, size: int
) -> str:
    """LLVM text of a pair for a function with Numba's calling convention; the augmented primal has a status.

    The status is stored after the frame.
    """
    values, lanes, _ = _parameters(wanted, AUGMENTED)
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


def _c_pair_text(
    wanted: RuledFunctions, shadow_parameters: Sequence[int], forward: str, backward: str, size: int
) -> str:
    """LLVM text of a pair for a function with C's calling convention.

    The cotangent of its result is stored after the frame.
    """
    values, lanes, _ = _parameters(wanted, AUGMENTED)
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
    after = ["  %raised = icmp ne i32 %status, 0", "  br i1 %raised, label %note, label %done", "note:", _NOTE]
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
    return _PAIR.substitute(
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
        note=_NOTE,
        flag=ARENA.offset("failed"),
        raised=RULE_RAISED,
    )


# Forward mode: LLVM text that defines the symbol of a tangent by a call of an njit function,
# (arena, returned, its shadow, shadows…, tangents of floats…, arguments…).


def _numba_tangent_text(wanted: RuledFunctions, shadow_parameters: Sequence[int], symbol: str) -> str:
    """LLVM text for a function with Numba's calling convention: its status is that of the rule."""
    values, lanes, numbers = _parameters(wanted, TANGENT)
    returned = [shadow_of.get(abi.RETURN_INDEX, "ptr null") for shadow_of in lanes]
    given = [shadow_of[index] for shadow_of in lanes for index in shadow_parameters]
    first = ["ptr %slot", "ptr %3", "ptr %1", "ptr %2"]
    arguments = [*first, *returned, *given, *numbers, *values[abi.FIRST_ARGUMENT_INDEX :]]
    body = f"""\
  %slot = alloca ptr
  %status = call i32 @"{symbol}"({", ".join(arguments)})
  ret i32 %status
"""
    return _tangent_text(wanted, symbol, arguments, body)


def _c_tangent_text(wanted: RuledFunctions, shadow_parameters: Sequence[int], symbol: str) -> str:
    """LLVM text for a function with C's calling convention: an exception waits in the arena."""
    values, lanes, numbers = _parameters(wanted, TANGENT)
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
{_NOTE}
  br label %done
done:
{_return(wanted, result, has_value=has_value)}"""
    return _tangent_text(wanted, symbol, arguments, body)


def _return(wanted: RuledFunctions, result: str, *, has_value: bool) -> str:
    kind = str(_type_of(wanted, TANGENT).result)
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


def _tangent_text(wanted: RuledFunctions, symbol: str, arguments: Sequence[str], body: str) -> str:
    kind = _type_of(wanted, TANGENT)
    parameters = ", ".join(f"{each} %{i}" for i, each in enumerate(kind.params))
    return f"""\
@"{wanted.frame_size}" = constant i64 0
declare i32 @"{symbol}"({", ".join(each.rsplit(maxsplit=1)[0] for each in arguments)})

define {kind.result} @"{wanted.symbols[TANGENT]}"({parameters}) {{
entry:
{body}}}
"""


# Compilation of a rule for one call.


@dataclass(frozen=True)
class CompiledRule:
    """A compiled rule: ``text`` defines the symbols that a derivative calls by functions of ``libraries``.

    The first of these has an attribute ``slots``: those of a stateful rule, or None.
    """

    text: str
    libraries: tuple[LinkedLibrary, ...]


def compile_rule(
    rule: CustomRule, signature: Signature, wanted: RuledFunctions, options: Options, is_primal: bool
) -> CompiledRule:
    """Compiles the functions that a derivative calls; if that is differentiated itself, as functions to differentiate.

    Raises:
        RuleError: the rule cannot be compiled, or returns something else than it must.
    """
    is_active = wanted.variant.kinds[abi.RETURN_INDEX] is ParameterKind.SHADOW
    return _compile(rule, signature, wanted, abi.FIRST_ARGUMENT_INDEX, is_active, _NUMBA, options, is_primal)


def compile_symbol_rule(rule: CustomRule, wanted: RuledFunctions, options: Options, is_primal: bool) -> CompiledRule:
    """Compiles the functions that a derivative calls for a C function, of numbers and pointers."""
    variant = wanted.variant
    signature = c_signature(rule, variant.function_type, is_read=variant.result_is_read)
    if any(getattr(function, "calls_primal", False) for function in rule.parts.values()):
        check_names([wanted.primal], CPU.is_loaded)  # Numba would end the process
    return _compile(rule, signature, wanted, 0, variant.result_active, _C, options, is_primal)


_MEMO: Final[list[dict[object, tuple[tuple[CompileResult, ...], int]]]] = []


@contextmanager
def remembering() -> Iterator[None]:
    """While many derivatives with one rule are made: functions of rules are compiled once for each way to call them.

    Otherwise each derivative compiles them again, since what they refer to may have changed.
    """
    _MEMO.append({})
    try:
        yield
    finally:
        _MEMO.pop()


@dataclass(frozen=True)
class _Convention:
    """Writers of the text that adapts functions of a calling convention to a derivative, for each mode."""

    pair: Callable[..., str]
    tangent: Callable[..., str]


_NUMBA: Final = _Convention(_numba_pair_text, _numba_tangent_text)
_C: Final = _Convention(_c_pair_text, _c_tangent_text)


def _compile(
    rule: CustomRule,
    signature: Signature,
    wanted: RuledFunctions,
    first: int,
    is_active: bool,
    convention: _Convention,
    options: Options,
    is_primal: bool,
) -> CompiledRule:
    is_forward, variant = TANGENT in wanted.symbols, wanted.variant
    rule, slots = built(rule, signature, is_forward=is_forward)
    if not is_forward and rule.takes_lanes("augmented_primal") != rule.takes_lanes("reverse"):
        raise RuleError(
            f"in the rule for {rule.name}, only one of augmented_primal and reverse takes all directions at once",
            "register both with batched=True, or neither",
            "the tape and the shadows that pass from one to the other hold either all directions or one",
            location_of(rule.part("reverse")),
        )
    lanes = wanted.width if rule.takes_lanes("forward" if is_forward else "augmented_primal") else None
    arguments = arguments_of(rule, signature, variant, first, is_forward=is_forward, lanes=lanes)
    result = result_of(rule, signature, is_active)
    config = _config(arguments, result, variant, options, lanes or 1, is_forward=is_forward)
    adapter = RulePairAdapter(rule, variant, arguments, result, config, wanted.width, slots)
    memo = _MEMO[-1] if _MEMO and adapter.slots is None else {}
    argument_types = tuple(argument.type for argument in adapter.arguments)
    variant = replace(wanted.variant, function=None, memory=())  # type: ignore[arg-type]  # the same for all callers
    key = (
        adapter.rule.key,
        adapter.rule.version,
        argument_types,
        adapter.result.type,
        variant,
        convention,
        is_forward,
        wanted.width,
        options,
        is_primal,
    )
    if key not in memo:
        with to_differentiate() if is_primal else nullcontext():
            memo[key] = ((compile_tangent(adapter),), 0) if is_forward else compile_both(adapter)
    compiled, size = memo[key]
    symbols = [each.fndesc.mangled_name for each in compiled]
    if is_forward:
        text = convention.tangent(wanted, adapter.shadowed, *symbols)
    else:
        text = convention.pair(wanted, adapter.shadowed, *symbols, size)
    return CompiledRule(text, tuple(each.library for each in compiled))


def _config(
    arguments: tuple[Annotated, ...],
    result: Result,
    variant: Variant,
    options: Options,
    width: int,
    *,
    is_forward: bool,
) -> RuleConfig:
    has_derivative = result.is_active and any(leaf.kind is not tree.LeafKind.INERT for leaf in result.leaves)

    def any_in(parameters: frozenset[int]) -> tuple[bool, ...]:
        return tuple(any(not parameters.isdisjoint(_pointers(leaf)) for leaf in a.leaves) for a in arguments)

    overwritten = any_in(frozenset() if is_forward else variant.overwritten)
    return RuleConfig(
        needs_primal=variant.result_is_read,
        needs_shadow=has_derivative if is_forward else bool(result.arrays),
        has_cotangent=has_derivative and not is_forward,
        overwritten=(*overwritten, False),
        written=any_in(variant.written),
        returned=any_in(variant.returned),
        is_seen=variant.is_seen,
        width=width,
        options=options,
    )


def _pointers(leaf: tree.Content) -> Collection[int]:
    """LLVM parameters that point to the memory of an argument."""
    if leaf.has_memory or leaf.type == types.voidptr:
        return (pointer_index(leaf),)
    return range(leaf.index, leaf.index + layouts.width_of(leaf.type))
