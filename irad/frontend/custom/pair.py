"""What a derivative calls instead of a ruled function, compiled from the functions of the rule.

Input   what a derivative calls (`RuledFunctions`), the rule, the primal's signature.
Output  `CompiledRule`: Numba's libraries of functions, and LLVM text that gives them the shape of those of the mode.
Method  each is an njit function around that of the rule (`glue`, `forward.glue`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Final

from numba.core import types
from numba.core.compiler import CompileResult
from numba.core.typing import Signature

from irad.backend.link import check_names
from irad.driver import ParameterKind, RuledFunctions
from irad.errors import RuleError
from irad.frontend.custom import pair_text
from irad.frontend.custom.annotated import RuleConfig
from irad.frontend.custom.catalogue import CustomRule, place_of
from irad.frontend.custom.forward import text as tangent_text
from irad.frontend.custom.forward.glue import compile_tangent
from irad.frontend.custom.glue import Glue, compile_both
from irad.frontend.custom.signature import (
    Annotated,
    Result,
    arguments_of,
    c_signature,
    pointer_index,
    result_of,
)
from irad.frontend.custom.workspace.stateful import built
from irad.frontend.numba.library import CPU, LinkedLibrary
from irad.frontend.numba.private import to_differentiate
from irad.frontend.values import abi, layouts, tree
from irad.options import Options
from irad.passes.mode import TANGENT
from irad.passes.variant import Variant


@dataclass(frozen=True)
class CompiledRule:
    """What was made from a rule: ``text`` defines the symbols that a derivative calls by functions of ``libraries``.

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
    """The same for a function with the calling convention of C, of numbers and pointers."""
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
    """How functions of a calling convention are given the shape of those of a derivative, for each mode."""

    pair: Callable[..., str]
    tangent: Callable[..., str]


_NUMBA: Final = _Convention(pair_text.numba_text, tangent_text.numba_text)
_C: Final = _Convention(pair_text.c_text, tangent_text.c_text)


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
            f"of the augmented primal and the reverse of the rule of {rule.name}, one takes all directions at once",
            "register both with batched=True, or neither",
            "the tape and the shadows that one leaves for the other are for all directions, or for one",
            place_of(rule.part("reverse")),
        )
    lanes = wanted.width if rule.takes_lanes("forward" if is_forward else "augmented_primal") else None
    arguments = arguments_of(rule, signature, variant, first, is_forward=is_forward, lanes=lanes)
    result = result_of(rule, signature, is_active)
    config = _config(arguments, result, variant, options, lanes or 1, is_forward=is_forward)
    glue = Glue(rule, variant, arguments, result, config, wanted.width, slots)
    memo = _MEMO[-1] if _MEMO and glue.slots is None else {}
    argument_types = tuple(argument.type for argument in glue.arguments)
    variant = replace(wanted.variant, function=None, memory=())  # type: ignore[arg-type]  # the same for all callers
    key = (
        glue.rule.key,
        glue.rule.version,
        argument_types,
        glue.result.type,
        variant,
        convention,
        is_forward,
        wanted.width,
        options,
        is_primal,
    )
    if key not in memo:
        with to_differentiate() if is_primal else nullcontext():
            memo[key] = ((compile_tangent(glue, wanted.width),), 0) if is_forward else compile_both(glue)
    compiled, size = memo[key]
    symbols = [each.fndesc.mangled_name for each in compiled]
    if is_forward:
        text = convention.tangent(wanted, glue.shadowed, *symbols)
    else:
        text = convention.pair(wanted, glue.shadowed, *symbols, size)
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
    """The LLVM parameters that lead to the memory of an argument."""
    if leaf.has_memory or leaf.type == types.voidptr:
        return (pointer_index(leaf),)
    return range(leaf.index, leaf.index + layouts.width_of(leaf.type))
