"""LLVM's optimiser, twice: for the text that irad reads, and for the code that runs.

`scalarise` makes the normal form that the passes of irad start from: scalar code, inlined and simplified, with every loop
in canonical form (preheader, one latch, dedicated exits, LCSSA) and one return. `optimise` is the full pipeline with
vectorising for what irad generated.

Reference counts stay calls. Numba's runtime defines them in LLVM IR; here they are declarations, so that the optimiser can
pair and remove them but not look inside, and the runtime's library gives them their bodies again when a program is linked.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import llvmlite.binding as llvm

from irad.frontend import numba_private

_DEBUG_RECORD = re.compile(r"^\s+(?:#dbg_\w+\(.*\)|(?:tail )?call void @llvm\.dbg\..*)$\n?", re.MULTILINE)


def scalarise(module_or_text: Any, keep: Collection[str], *, noinline: Collection[str] = ()) -> str:
    """LLVM text of a whole program in the normal form that irad reads.

    Args:
        module_or_text: an llvmlite module, which is changed and must not be used afterwards, or LLVM text.
        keep: symbols that stay visible; all else becomes internal and may be inlined and removed.
        noinline: functions that must stay calls.
    Returns:
        The optimised text. Source lines stay attached; debug records are removed.
    """
    module = llvm.parse_assembly(module_or_text) if isinstance(module_or_text, str) else module_or_text
    _internalise(module, frozenset(keep), frozenset(noinline))
    builder = _pass_builder(level=2, vectorise=False)
    pipeline = builder.getModulePassManager()
    pipeline.add_refprune_pass()
    pipeline.run(module, builder)
    _normal_form(module, builder)
    return _DEBUG_RECORD.sub("", str(module))


def optimise(module_or_text: Any, level: int = 3, *, vectorise: bool = True) -> Any:
    """Runs LLVM's whole pipeline on a module.

    Args:
        module_or_text: an llvmlite module, which is changed, or LLVM text.
        level: 0 to 3.
        vectorise: loop and straight-line vectorising, unrolling and interleaving.
    Returns:
        The llvmlite module.
    """
    module = llvm.parse_assembly(module_or_text) if isinstance(module_or_text, str) else module_or_text
    builder = _pass_builder(level=level, vectorise=vectorise)
    pipeline = builder.getModulePassManager()
    pipeline.add_refprune_pass()
    pipeline.run(module, builder)
    return module


def _internalise(module: Any, keep: frozenset[str], noinline: frozenset[str]) -> None:
    """Only ``keep`` stays visible."""
    for function in module.functions:
        if function.is_declaration:
            continue
        function.linkage = "external" if function.name in keep else "internal"
        if function.name in noinline:
            function.add_function_attribute("noinline")


def _pass_builder(level: int, vectorise: bool) -> Any:
    options = llvm.create_pipeline_tuning_options(level)
    options.loop_vectorization = vectorise
    options.slp_vectorization = vectorise
    options.loop_unrolling = vectorise
    options.loop_interleaving = vectorise
    return llvm.create_pass_builder(numba_private.target_machine(), options)


def _normal_form(module: Any, builder: Any) -> None:
    """No switch, one return, canonical loops. The order matters: the first two change the graph, the last only adds phis."""
    pipeline = llvm.create_new_module_pass_manager()
    pipeline.add_lower_switch_pass()
    pipeline.add_unify_function_exit_nodes_pass()
    pipeline.add_loop_simplify_pass()
    pipeline.add_lcssa_pass()
    pipeline.add_strip_dead_prototype_pass()
    pipeline.run(module, builder)
