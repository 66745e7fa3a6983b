"""Numba's CPU target. Only this module, and the two that put a private one in its place, name it.

While the shadow compile is active, `target_context` is the private one, as it is for Numba itself.
"""

from __future__ import annotations

from typing import Any, Final

import llvmlite.binding as llvm
from numba.core import compiler, config, registry

_TARGET: Final[Any] = registry.cpu_target


def typing_context() -> Any:
    """What knows the types of functions and of their calls."""
    return _TARGET.typing_context


def target_context() -> Any:
    """What knows how types are represented, and lowers."""
    return _TARGET.target_context


def real_context() -> Any:
    """Numba's own target context, also while the private one is in its place."""
    return _TARGET._toplevel_target_context


def flags_of(options: Any) -> Any:
    """What the options of a decorator mean to Numba's compiler."""
    flags = compiler.Flags()
    _TARGET.options.parse_as_flags(flags, options)
    return flags


def refresh() -> None:
    """Loads what has been registered with Numba since it last looked."""
    typing_context().refresh()
    target_context().refresh()


def machine() -> Any:
    """The machine that Numba generates code for."""
    return target_context().codegen()._tm


def new_machine() -> Any:
    """Such a machine that an engine may own."""
    options: dict[str, Any] = {"opt": config.OPT}
    target_context().codegen()._customize_tm_options(options)
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(**options)


def engine() -> Any:
    """The engine that holds the machine code of all that Numba compiled."""
    return target_context().codegen()._engine
