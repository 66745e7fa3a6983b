"""LLVM's optimiser, for the text that irad reads.

`scalarise` makes the normal form that the passes of irad start from: scalar code, inlined and simplified, with every
loop in canonical form (preheader, one latch, dedicated exits, LCSSA) and one return. What irad generates is optimised
by Numba, as its own code is.

Reference counts stay calls. Numba's runtime defines them in LLVM IR; here they are declarations, so that the optimiser
can pair and remove them but not look inside, and the runtime's library gives them their bodies again when a program is
linked. Meanwhile what is compared are copies of numbers, see `irad.backend.equality`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import llvmlite.binding as llvm

from irad.backend import equality, patterns
from irad.backend.compat import with_attribute
from irad.backend.toolchain import Toolchain, add_loop_passes, one_of_each_function
from irad.ir.instructions import Br, CondBr
from irad.ir.module import Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.worklist import reachable
from irad.passes.convention import ReferenceCounts
from irad.passes.prepare.overlap_tests import drop_overlap_tests
from irad.passes.prepare.remainders import choose_remainders
from irad.passes.prepare.shape_specialisation import separate_usual_shapes
from irad.passes.prepare.stack_buffers import add_stack_buffers
from irad.passes.prepare.stack_promotion import promote_small_arrays

_Rewrite: TypeAlias = Callable[[Module, ReferenceCounts], bool]
_Lengths: TypeAlias = Mapping[str, Mapping[int, int]]

SHAPES: Final[dict[str, Callable[[Module, ReferenceCounts, _Lengths], bool]]] = {
    "prepare.shape_specialisation": separate_usual_shapes
}
"""The pass after which LLVM simplifies the program again."""

REWRITES: Final[dict[str, _Rewrite]] = {
    "prepare.remainders": lambda module, references: choose_remainders(module),
    # before arrays become variables: an address that is compared as a number would keep them from it
    "prepare.overlap_tests": drop_overlap_tests,
    "prepare.stack_promotion": promote_small_arrays,
    "prepare.stack_buffers": add_stack_buffers,
}
"""The passes between two of LLVM's pipelines, in order."""

_INLINE_BUDGET = 40_000
# More often than LLVM peels any loop, so that it takes the loop to be peeled enough.
_OFTEN = 1 << 20


def scalarise(
    module_or_text: Any,
    keep: Collection[str],
    toolchain: Toolchain,
    *,
    noinline: Collection[str] = (),
    raising: Collection[str] = (),
    peels: bool = True,
    references: ReferenceCounts | None = None,
    lengths: _Lengths = MappingProxyType({}),
) -> str:
    """LLVM text of a whole program in the normal form that irad reads.

    Args:
        module_or_text: LLVM text; or an llvmlite module, which is changed and must not be used afterwards, and whose
            parts have gone through `equality.hide`.
        keep: symbols that stay visible; all else becomes internal and may be inlined and removed.
        toolchain: for whose machine LLVM weighs what it does.
        noinline: functions that must stay calls.
        raising: functions that do nothing but raise: they stay calls, and are not worth optimising.
        peels: whether LLVM may take iterations out of loops, so that those that are left are counted from another one.
        references: functions that count references, if small arrays are to become values; then remainders of
            what a loop counts become selects, too.
        lengths: lengths of arrays that parameters of functions probably are, by their numbers.

    Returns:
        The optimised text. Source lines stay attached.
    """
    # With functions that must stay calls a front end holds the compiler's lock, as options of LLVM ask for.
    with one_of_each_function() if noinline else nullcontext():
        return _scalarise(module_or_text, keep, toolchain, noinline, raising, peels, references, lengths)


def _scalarise(
    module_or_text: Any,
    keep: Collection[str],
    toolchain: Toolchain,
    noinline: Collection[str],
    raising: Collection[str],
    peels: bool,
    references: ReferenceCounts | None,
    lengths: _Lengths,
) -> str:
    module = llvm.parse_assembly(equality.hide(module_or_text)) if isinstance(module_or_text, str) else module_or_text
    cold = frozenset(raising).difference(keep)
    module = _internalise(module, frozenset(keep), cold.union(noinline))
    builder = toolchain.scalar_pass_builder()
    _rotate_loops(module, builder)
    _run_pipeline(module, builder)
    if left := _left_to_inline(module, frozenset(keep) | frozenset(noinline)):
        module = with_attribute(module, left, "alwaysinline")
        _run_pipeline(module, builder)
    if not peels:
        module = _forbid_peeling(module)
    if references is not None:
        module = _rewrite(_separate_usual_shapes(module, builder, references, lengths), builder, references)
    _unroll_short_loops(module, toolchain)
    module = _decide_comparisons(module, builder)
    _normal_form(module, builder)
    module = _mark_cold(module, cold)
    # The marks that kept LLVM from peeling loops would also keep later pipelines from it.
    text = str(module) if peels else print_module(_without_loop_marks(str(module)))
    return equality.reveal(text)


def _separate_usual_shapes(module: Any, builder: Any, references: ReferenceCounts, lengths: _Lengths) -> Any:
    """The module with second versions for arrays of shapes that are probable, simplified again."""
    if not lengths and not patterns.suggests_shapes(str(module), references.plain):
        return module
    parsed = _with_counted_loops(module, builder)
    if not any(run(parsed, references, lengths) for run in SHAPES.values()):
        return module
    module = llvm.parse_assembly(print_module(parsed))
    _run_pipeline(module, builder)
    return module


def _rewrite(module: Any, builder: Any, references: ReferenceCounts) -> Any:
    """The module with small arrays as local variables and remainders as selects, of which LLVM, next, makes values."""
    text = str(module)
    if not patterns.may_allocate_few_bytes(text, references.plain) and not patterns.takes_remainders(text):
        return module
    parsed = _with_counted_loops(module, builder)
    changed = [run(parsed, references) for run in REWRITES.values()]
    return llvm.parse_assembly(print_module(parsed)) if any(changed) else module


def _with_counted_loops(module: Any, builder: Any) -> Module:
    """The parsed module, with loops in the form in which their iterations can be counted."""
    pipeline = llvm.create_new_module_pass_manager()
    pipeline.add_loop_simplify_pass()
    pipeline.run(module, builder)
    return parse_module(str(module))


def _decide_comparisons(module: Any, builder: Any) -> Any:
    """Folds the hidden comparisons of numbers that inlining has made known."""
    # Folding a comparison may drop branches, after which LLVM knows the numbers of further ones.
    while equality.has_hidden([function.name for function in module.functions]):
        text = equality.reveal_decided(str(module))
        if text is None:
            break
        module = llvm.parse_assembly(text)
        _run_pipeline(module, builder)
    return module


def _run_pipeline(module: Any, builder: Any) -> None:
    pipeline = builder.getModulePassManager()
    # Counts of references are calls of declarations here, which only this pass of Numba's pairs and removes.
    pipeline.add_refprune_pass()
    pipeline.run(module, builder)


def _unroll_short_loops(module: Any, toolchain: Toolchain) -> None:
    """Loops of a few iterations, whose number is known, become straight code if that stays small.

    A loop of unknown form needs a record per iteration, straight code only what it cannot recompute: of `x**2` of
    an array Numba makes a loop over the bits of the exponent. LLVM decides by its own measure of size; of its pipelines
    this is the one that unrolls such loops and no others.
    """
    builder = toolchain.scalar_pass_builder(unrolls=True)
    pipeline = builder.getFunctionPassManager()
    for function in module.functions:
        if not function.is_declaration:
            pipeline.run(function, builder)


def _forbid_peeling(module: Any) -> Any:
    """The module with a mark on each branch: a loop that it closes has been peeled as often as LLVM peels one at most.

    Of LLVM's pipelines that unroll, none has a switch for this.
    """
    parsed = _without_loop_marks(str(module))
    peeled = f'!{{!"llvm.loop.peeled.count", i32 {_OFTEN}}}'
    for function in parsed.defined_functions():
        for block in function.blocks:
            if isinstance(block.terminator, Br | CondBr):
                block.terminator.metadata["llvm.loop"] = parsed.loop_mark(peeled)
    return llvm.parse_assembly(print_module(parsed))


def _without_loop_marks(text: str) -> Module:
    parsed = parse_module(text)
    for function in parsed.defined_functions():
        for inst in function.instructions():
            inst.metadata.pop("llvm.loop", None)
    return parsed


def _left_to_inline(module: Any, exempt: frozenset[str]) -> list[str]:
    """The functions that LLVM did not inline but that should be.

    A derivative across a call costs a frame and hides memory from the analyses, so a callee is inlined unless it is
    recursive or would make the program larger than `_INLINE_BUDGET` instructions.
    """
    candidates = [f.name for f in module.functions if not (f.is_declaration or f.name in exempt or _must_not_inline(f))]
    if not candidates:
        return []
    calls, sizes = patterns.call_graph(str(module))
    budget = _INLINE_BUDGET - sum(sizes.values())
    left = list[str]()
    for name in candidates:
        if _reaches(calls, name, name):
            continue
        copies = sum(callees.count(name) for callees in calls.values()) - 1
        if copies >= 0 and copies * sizes[name] <= budget:
            budget -= copies * sizes[name]
            left.append(name)
    return left


def _must_not_inline(function: Any) -> bool:
    """True if Numba says so, as of what unpacks the arguments of an exception."""
    return any(b"noinline" in words.split() for words in function.attributes)


def _reaches(calls: dict[str, list[str]], start: str, goal: str) -> bool:
    return goal in reachable(calls.get(start, ()), lambda name: calls.get(name, ()))


def _internalise(module: Any, keep: frozenset[str], noinline: frozenset[str]) -> Any:
    """The module with only ``keep`` visible, and functions that must stay calls marked.

    Of what is visible and stays a call LLVM must not know the body: it passes poison where an argument is not used.
    """
    calls = list[str]()
    for function in module.functions:
        if function.is_declaration:
            continue
        function.linkage = "external" if function.name in keep else "internal"
        if function.name in noinline:
            calls.append(function.name)
            function.linkage = "weak_odr" if function.name in keep else "internal"
    return with_attribute(module, calls, "noinline")


def _mark_cold(module: Any, symbols: Collection[str]) -> Any:
    """Tells LLVM that functions hardly ever run. Last, since it inlines nothing into functions with this mark."""
    left = [f.name for f in module.functions if f.name in symbols and not f.is_declaration]
    return with_attribute(with_attribute(module, left, "cold"), left, "optsize")


def _rotate_loops(module: Any, builder: Any) -> None:
    """Rotated loops first: otherwise LLVM moves code out of Numba's one-turn loops and drops its source lines."""
    pipeline = llvm.create_new_module_pass_manager()
    pipeline.add_loop_rotate_pass()
    pipeline.run(module, builder)


def _normal_form(module: Any, builder: Any) -> None:
    """No switch, one return, canonical loops.

    The order matters: the first two change the graph, the third makes the loops canonical, the last only adds phis.
    """
    pipeline = llvm.create_new_module_pass_manager()
    pipeline.add_lower_switch_pass()
    pipeline.add_unify_function_exit_nodes_pass()
    add_loop_passes(pipeline)
    pipeline.add_strip_dead_prototype_pass()
    pipeline.run(module, builder)
