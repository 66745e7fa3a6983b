"""Numba's CPU target. Only this module, and the two that put a private one in its place, name it.

While the shadow compile is active, `target_context` is the private one, as it is for Numba itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm
from numba.core import config, registry
from numba.core.base import BaseContext
from numba.core.compiler import Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.typing import BaseContext as TypingContext

_TARGET: Final = registry.cpu_target


def typing_context() -> TypingContext:
    """Numba's typing context: the types of functions and of their calls."""
    return _TARGET.typing_context


def target_context() -> BaseContext:
    """Numba's target context: represents types, and lowers."""
    return _TARGET.target_context


def real_context() -> BaseContext:
    """Numba's own target context, also while the private one is in its place."""
    return _TARGET._toplevel_target_context


def flags_of(options: Mapping[str, object]) -> Flags:
    """Compiler flags for the options of a decorator."""
    flags = Flags()
    _TARGET.options.parse_as_flags(flags, options)
    return flags


def refresh() -> None:
    """Loads what has been registered with Numba since it last looked."""
    typing_context().refresh()
    target_context().refresh()


def refresh_if_compiling() -> None:
    """Has Numba look for what has been registered with it, where this thread is compiling a function that may use it.

    Otherwise Numba looks itself, before the next function. The first time takes it a third of a second.
    """
    if global_compiler_lock.is_locked():  # by this thread
        refresh()


def machine() -> llvm.TargetMachine:
    """The machine that Numba generates code for."""
    return target_context().codegen()._tm


def features() -> frozenset[str]:
    """Processor features that Numba generates code for, as LLVM names them; empty where LLVM has vector maths.

    Numba has LLVM call Intel's vector library where that is installed.
    """
    if config.USING_SVML:
        return frozenset()
    codegen: Any = target_context().codegen()
    words = codegen._tm_features.split(",")
    return frozenset(word[1:] for word in words if word.startswith("+"))


def new_machine(features: str = "") -> llvm.TargetMachine:
    """Such a machine that an engine may own.

    Args:
        features: features in addition to those of the processor, as LLVM writes them.
    """
    options: dict[str, Any] = {"opt": config.OPT}
    target_context().codegen()._customize_tm_options(options)
    options["features"] = ",".join(filter(None, (options["features"], features)))
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(**options)


@contextmanager
def without_gathers(codegen: Any) -> Iterator[None]:
    """Meanwhile Numba's optimiser puts vectors together from single loads and stores where addresses are far apart.

    Instructions that gather are as slow on most processors of this kind, and many times slower on those that guard
    against what gathers reveal of other programs. Adjoints of loops over rows would be full of them.
    """
    before = codegen._tm
    codegen._tm = _machine_without_gathers() if llvm.get_process_triple().startswith("x86_64") else before
    try:
        yield
    finally:
        codegen._tm = before


@cache
def _machine_without_gathers() -> llvm.TargetMachine:
    return new_machine("+prefer-no-gather,+prefer-no-scatter")


def engine() -> llvm.ExecutionEngine:
    """The engine that holds the machine code of all that Numba compiled."""
    return real_context().codegen()._engine
