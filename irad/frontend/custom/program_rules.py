"""Rules of the functions in one program, as the engine sees them; and the pairs that its derivative then calls.

Input   a `Program` with the functions that users wrote rules for.
Output  `registry_of`: the built-in rules under those of the program. `complete`: the text of a derivative in which the
        pairs of ruled functions are defined, and the libraries that they are in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from numba.core.typing import Signature

from irad.debug.events import RulePlaces
from irad.driver import Derivative, MemoryType, Request
from irad.frontend.custom import catalogue
from irad.frontend.custom.catalogue import CustomRule
from irad.frontend.custom.ruled_calls import Outlined
from irad.frontend.numba.library import LinkedLibrary, parse
from irad.frontend.numba.messages import location_of
from irad.frontend.values import abi, layouts
from irad.options import Options
from irad.passes.mode import Mode
from irad.ruleset.interface import ConstantParameters, Inactive, PairRule, Rule
from irad.ruleset.registry import Registry

_FORWARD_OF_IMPORTED: Final = (
    "(a) give import_rule the form for forward mode, too: irad.rules.import_rule(f, rule, forward=…), a function of "
    "arguments and tangents that returns (value, tangent) or (b) use reverse mode: irad.grad, irad.vjp or "
    "irad.autodiff(irad.Reverse, …)"
)


def registry_of(ruled: tuple[Outlined, ...], base: Registry, mode: Mode) -> Registry:
    """The rules for a program: those that users wrote, for its functions and for symbols, over the built-in ones."""
    rules = tuple(_rules(ruled, mode))
    return Registry.of(*rules).overlaid_on(base) if rules else base


def rules_of(ruled: tuple[Outlined, ...], mode: Mode) -> dict[str, RulePlaces]:
    """The rules that the functions of a program have, by symbol; in forward mode a rule has one part for everything."""
    found = {each.symbol: each.rule for each in ruled} | dict(catalogue.symbols())
    return {symbol: _places(rule, mode) for symbol, rule in found.items() if rule.parts}


def _places(rule: CustomRule, mode: Mode) -> RulePlaces:
    first = next(iter(rule.parts.values()))
    if mode.is_forward:
        place = location_of(rule.parts.get("forward", first))
        return RulePlaces(rule.name, place, place)
    forward, reverse = rule.parts.get("augmented_primal", first), rule.parts.get("reverse", first)
    return RulePlaces(rule.name, location_of(forward), location_of(reverse))


def _rules(ruled: tuple[Outlined, ...], mode: Mode) -> Iterator[Rule]:
    for symbol, rule in catalogue.symbols().items():
        yield from _rule(symbol, rule, frozenset(), mode)
    for each in ruled:
        yield from _rule(each.symbol, each.rule, frozenset(_constant_parameters(each)), mode)


def _rule(symbol: str, rule: CustomRule, constant: frozenset[int], mode: Mode) -> Iterator[Rule]:
    is_forward = mode.is_forward
    has_tangent = is_forward and rule.is_for_forward
    is_replaced = has_tangent or (rule.replaces_body and not (is_forward and rule.forward_from_body))
    if rule.inactive is not None:
        yield Inactive((symbol,), rule.inactive, None, rule.name)
    elif is_replaced:
        yield PairRule(
            (symbol,),
            rule.name,
            rule.version,
            constant,
            rule.noalias,
            has_tangent,
            rule.takes_lanes("forward" if is_forward else "augmented_primal"),
            forward_remedy=_FORWARD_OF_IMPORTED if rule.is_imported else None,
            has_cotangent=rule.is_for_reverse,
            leaves_arguments=rule.is_easy or rule.is_total,
            repeats=rule.repeats,
        )
    elif constant or rule.noalias:
        yield ConstantParameters((symbol,), rule.name, constant, rule.noalias)


def _constant_parameters(outlined: Outlined) -> Iterator[int]:
    """The LLVM parameters of the arguments through which no derivative flows."""
    index = abi.FIRST_ARGUMENT_INDEX
    for position, numba_type in enumerate(outlined.signature.args):
        width = layouts.width_of(numba_type)
        if position in outlined.rule.inactive_arguments:
            yield from range(index, index + width)
        index += width


def memory_of(ruled: tuple[Outlined, ...]) -> tuple[tuple[str, tuple[MemoryType | None, ...]], ...]:
    """The symbols of the functions, and the memory that their LLVM parameters point to.

    Of the memory for the result nothing is known before the call, so no pointer there has a known target.
    """
    return tuple((each.symbol, tuple(_memory(each.signature))) for each in ruled)


def _memory(signature: Signature) -> Iterator[MemoryType | None]:
    yield abi.BOOKKEEPING
    yield abi.BOOKKEEPING
    index = abi.FIRST_ARGUMENT_INDEX
    for numba_type in signature.args:
        for leaf in abi.leaves_of(numba_type, index):
            for offset in range(layouts.width_of(leaf.type)):
                yield abi.memory_of_parameter(leaf, offset, active=False)
        index += layouts.width_of(numba_type)


def complete(
    derivative: Derivative, ruled: tuple[Outlined, ...], request: Request
) -> tuple[str, tuple[LinkedLibrary, ...]]:
    """The text of a derivative with the pairs of ruled functions in it, and the libraries which that calls.

    Args:
        derivative: it.
        ruled: the functions of its program that have rules.
        request: the request that it was made for.

    Raises:
        RuleError: a rule cannot be compiled.
    """
    text = _inlinable(derivative.text, ruled)
    if not derivative.ruled:
        return text, ()
    from irad.frontend.custom.compiled_rules import (  # few programs call rules of users
        compile_rule,
        compile_symbol_rule,
    )

    options = _options(request)
    by_symbol = {each.symbol: each for each in ruled}
    module = parse(text)
    libraries: list[LinkedLibrary] = []
    for wanted in derivative.ruled:
        callee = by_symbol.get(wanted.primal)
        if callee is None:
            made = compile_symbol_rule(catalogue.symbols()[wanted.primal], wanted, options, request.is_primal)
        else:
            made = compile_rule(callee.rule, callee.signature, wanted, options, request.is_primal)
        module.link_in(parse(made.text))
        libraries += made.libraries
    return str(module), tuple(dict.fromkeys(libraries))


def _options(request: Request) -> Options:
    """The options of a derivative that the code depends on, for the derivatives that its rules make."""
    return Options(
        plan="save_all" if request.plan == "save_all" else "default",
        strict=request.strict,
        debug=request.watches,
        boundscheck=request.checks_bounds,
        zero_times_infinity="zero" if request.zero_wins else "nan" if request.no_zero_wins else "cotangent",
        vector_math=request.vector_math,
    )


def _inlinable(text: str, ruled: tuple[Outlined, ...]) -> str:
    """A derivative's text that LLVM may inline the plain functions in: they had to stay calls for the analyses only."""
    symbols = [f"@{each.symbol}(" for each in ruled if not each.rule.noinline]
    if not symbols:
        return text
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.startswith("define ") and any(symbol in line for symbol in symbols):
            lines[number] = line.replace(") noinline", ")", 1)
    return "".join(lines)
