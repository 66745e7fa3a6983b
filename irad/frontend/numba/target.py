"""Numba's CPU target. Only this module, and the two that put a private one in its place, name it.

While the shadow compile is active, `target_context` is the private one, as it is for Numba itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import llvmlite.binding as llvm
from numba.core import config, registry
from numba.core.base import BaseContext
from numba.core.compiler import Flags
from numba.core.typing import BaseContext as TypingContext

_TARGET: Final = registry.cpu_target


def typing_context() -> TypingContext:
    """What knows the types of functions and of their calls."""
    return _TARGET.typing_context


def target_context() -> BaseContext:
    """What knows how types are represented, and lowers."""
    return _TARGET.target_context


def real_context() -> BaseContext:
    """Numba's own target context, also while the private one is in its place."""
    return _TARGET._toplevel_target_context


def flags_of(options: Mapping[str, object]) -> Flags:
    """What the options of a decorator mean to Numba's compiler."""
    flags = Flags()
    _TARGET.options.parse_as_flags(flags, options)
    return flags


def refresh() -> None:
    """Loads what has been registered with Numba since it last looked."""
    typing_context().refresh()
    target_context().refresh()


def machine() -> llvm.TargetMachine:
    """The machine that Numba generates code for."""
    return target_context().codegen()._tm


def features() -> frozenset[str]:
    """What the processor has of what Numba generates code for, as LLVM names it; empty where LLVM has vector maths.

    Numba has LLVM call Intel's vector library where that is installed.
    """
    if config.USING_SVML:
        return frozenset()
    codegen: Any = target_context().codegen()
    words = codegen._tm_features.split(",")
    return frozenset(word[1:] for word in words if word.startswith("+"))


def new_machine() -> llvm.TargetMachine:
    """Such a machine that an engine may own."""
    options: dict[str, object] = {"opt": config.OPT}
    target_context().codegen()._customize_tm_options(options)
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(**options)


def engine() -> llvm.ExecutionEngine:
    """The engine that holds the machine code of all that Numba compiled."""
    return real_context().codegen()._engine
