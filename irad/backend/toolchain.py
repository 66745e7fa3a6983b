"""Toolchain for one kind of machine: one object, handed from the front end to whatever needs it.

The passes need none: what they have to know about a machine is in the module that they are given. Its triple says to
which library mathematics goes (`irad.ruleset.symbols`), its pointers name their address spaces, and the tape is
allocated, and shadows that threads share are added to, by run-time functions (`irad.passes.runtime`), which whoever
makes the code callable has to define.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final

import llvmlite.binding as llvm

from irad.records import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class Toolchain:
    """A machine, and how text becomes code for it. Compared by identity.

    Attributes:
        machine: LLVM's machine; its features say how wide vectors are and what instructions cost. A function, since it
            may have to start another compiler.
        foreign_spaces: address spaces whose pointers are not plain addresses of 64 bits: no shadow can lie there.
        is_loaded: whether code that is loaded defines a symbol; those of the process aside.
        features: processor features that vector variants of functions need, with LLVM's names.
        build: name, text and environments to a library: finished code, to be called and linked.
    """

    machine: Callable[[], Any] = field(repr=False)
    foreign_spaces: frozenset[int]
    is_loaded: Callable[[str], bool] = field(repr=False)
    build: Callable[[str, str, tuple[Any, ...]], Any] = field(repr=False)
    features: Callable[[], frozenset[str]] = field(default=frozenset, repr=False)

    def scalar_pass_builder(self, *, unrolls: bool = False) -> Any:
        """LLVM's pipeline without vectorisation, for text that irad is going to read.

        Args:
            unrolls: whether loops of few iterations become straight code.
        """
        options = llvm.create_pipeline_tuning_options(2)
        # The engine analyses one function at a time, so it understands best what LLVM has inlined.
        options.inlining_threshold = 2_000
        # Adjoints are derived from loops of scalars; vectors are made afterwards, of both sweeps.
        options.loop_vectorization = False
        options.slp_vectorization = False
        options.loop_unrolling = unrolls
        options.loop_interleaving = False
        return llvm.create_pass_builder(self.machine(), options)

    def canonical_loops(self, text: str) -> str:
        """The text with loops in canonical form; nothing else changes."""
        module = llvm.parse_assembly(text)
        pipeline = llvm.create_new_module_pass_manager()
        add_loop_passes(pipeline)
        pipeline.run(module, self.scalar_pass_builder())
        return str(module)


def add_loop_passes(pipeline: Any) -> None:
    """Adds the passes that give loops a preheader, one latch, dedicated exits and loop-closed values."""
    pipeline.add_loop_simplify_pass()
    pipeline.add_lcssa_pass()


_VECTORS: Final = {
    # of sums of floats, too, in the order in which the program adds
    "force-ordered-reductions": ("true", "false"),
    # else rows are taken to have one element, and a scalar loop is left
    "enable-mem-access-versioning": ("false", "true"),
    # whether rows overlap is not known before a loop that goes through them downwards
    "hoist-runtime-checks": ("false", "true"),
    # LLVM 22 moves a masked load after a store to the same place, if a mask is to cut off what a sum must not have
    "force-tail-folding-style": ("none", "data-without-lane-mask"),
}
"""Options of LLVM's: their value for derivatives, and afterwards that by default (of the last, the one of x86)."""


_ONE_OF_EACH_FUNCTION: Final = {"funcspec-max-iters": ("0", "10")}
"""LLVM clones large functions for constant arguments, those that stay calls as well; values as above."""


@contextmanager
def vectors_of_derivatives() -> Iterator[None]:
    """Meanwhile LLVM makes vectors of more loops.

    For all that LLVM compiles in this process, so under the compiler's lock.
    """
    with _options(_VECTORS):
        yield


@contextmanager
def one_of_each_function() -> Iterator[None]:
    """Meanwhile LLVM does not clone functions: a clone has another name, by which no rule is found.

    For all that LLVM compiles in this process, so under the compiler's lock.
    """
    with _options(_ONE_OF_EACH_FUNCTION):
        yield


@contextmanager
def _options(values: Mapping[str, tuple[str, str]]) -> Iterator[None]:
    _set_options(values, 0)
    try:
        yield
    finally:
        _set_options(values, 1)


def _set_options(values: Mapping[str, tuple[str, str]], which: int) -> None:
    for option, each in values.items():
        llvm.set_option("", f"-{option}={each[which]}")


def own_code(text: str) -> Any:
    """LLVM's engine with code that the process calls itself, whatever machine derivatives are for."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True, opt=0)  # no loops to speed up
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    return engine
