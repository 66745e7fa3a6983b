"""The pair of a ruled function, compiled from the functions of the rule.

Input   what a derivative calls (`RuledFunctions`), the rule, the primal's signature.
Output  `CompiledPair`: Numba's libraries of two functions, and LLVM text that gives them the shape of a pair.
Method  each is an njit function around that of the rule (`glue`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from numba.core import types
from numba.core.compiler import CompileResult
from numba.core.typing import Signature

from irad.backend.link import check_names
from irad.driver import ParameterKind, RuledFunctions
from irad.frontend.custom.annotated import RuleConfig
from irad.frontend.custom.catalogue import CustomRule
from irad.frontend.custom.glue import Glue, compile_both
from irad.frontend.custom.pair_text import c_text, numba_text
from irad.frontend.custom.signature import (
    Annotated,
    Result,
    arguments_of,
    c_signature,
    pointer_index,
    result_of,
)
from irad.frontend.custom.workspace.stateful import built
from irad.frontend.numba.code_libraries import LinkedLibrary
from irad.frontend.numba.library import CPU
from irad.frontend.values import abi, tree
from irad.passes.variant import Variant


@dataclass(frozen=True)
class CompiledPair:
    """A pair made from a rule: ``text`` defines its symbols by functions of ``libraries``.

    The first of these has an attribute ``slots``: those of a stateful rule, or None.
    """

    text: str
    libraries: tuple[LinkedLibrary, ...]


def compile_rule(rule: CustomRule, signature: Signature, wanted: RuledFunctions) -> CompiledPair:
    """Compiles the pair that a derivative calls.

    Raises:
        RuleError: the rule cannot be compiled, or returns something else than it must.
    """
    rule, slots = built(rule, signature)
    variant = wanted.variant
    arguments = arguments_of(rule, signature, variant, abi.FIRST_ARGUMENT_INDEX)
    result = result_of(rule, signature, variant.kinds[abi.RETURN_INDEX] is ParameterKind.SHADOW)
    config = _config(arguments, result, variant)
    return _pair(wanted, Glue(rule, variant, arguments, result, config, slots), numba_text)


def compile_symbol_rule(rule: CustomRule, wanted: RuledFunctions) -> CompiledPair:
    """The same for a function with the calling convention of C, of numbers and pointers."""
    variant = wanted.variant
    signature = c_signature(rule, variant.function_type, is_read=variant.result_is_read)
    rule, slots = built(rule, signature)
    if getattr(rule.parts.get("augmented_primal"), "calls_primal", False):
        check_names([wanted.primal], CPU.is_loaded)  # Numba would end the process
    arguments, result = arguments_of(rule, signature, variant, 0), result_of(rule, signature, variant.result_active)
    return _pair(wanted, Glue(rule, variant, arguments, result, _config(arguments, result, variant), slots), c_text)


_MEMO: Final[list[dict[object, tuple[CompileResult, CompileResult, int]]]] = []


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


def _pair(wanted: RuledFunctions, glue: Glue, text_of: Callable[..., str]) -> CompiledPair:
    memo = _MEMO[-1] if _MEMO and glue.slots is None else {}
    argument_types = tuple(argument.type for argument in glue.arguments)
    variant = replace(wanted.variant, function=None, memory=())  # type: ignore[arg-type]  # the same for all callers
    key = glue.rule.key, glue.rule.version, argument_types, glue.result.type, variant, text_of
    if key not in memo:
        memo[key] = compile_both(glue)
    augmented, reverse, size = memo[key]
    text = text_of(wanted, glue.shadowed, augmented.fndesc.mangled_name, reverse.fndesc.mangled_name, size)
    return CompiledPair(text, (augmented.library, reverse.library))


def _config(arguments: tuple[Annotated, ...], result: Result, variant: Variant) -> RuleConfig:
    overwritten = tuple(
        any(pointer_index(leaf) in variant.overwritten for leaf in argument.leaves if _is_memory(leaf))
        for argument in arguments
    )
    return RuleConfig(
        needs_primal=variant.result_is_read,
        needs_shadow=bool(result.arrays),
        has_cotangent=result.is_active and any(leaf.kind is not tree.LeafKind.INERT for leaf in result.leaves),
        overwritten=(*overwritten, False),
    )


def _is_memory(leaf: tree.Content) -> bool:
    return leaf.has_memory or leaf.type == types.voidptr
