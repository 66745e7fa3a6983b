"""Benchmark cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Size: TypeAlias = Literal["small", "medium", "full"]
Gradient: TypeAlias = Callable[..., tuple[float, tuple[Any, ...]]]


@dataclass(frozen=True)
class Case:
    """One function, its careful hand-written gradient and its inputs.

    Attributes:
        name: short, as on the command line.
        title: one line for the table, with the size of the inputs.
        primal: an njit function that returns a float, written as a user writes it.
        hand: an njit function of the same arguments that returns ``(value, gradients)``, a tuple with one gradient per
            entry of ``argnums``; it allocates its gradients, as irad's do. Of a program that was drawn, irad's oracle.
        make: makes the arguments; ``"small"`` is for the tests, where every entry is checked by finite differences;
            ``"full"`` is what the table shows.
        argnums: positions of the arguments whose gradient is asked for.
        hand_opt: the same as ``hand`` with every means: other layouts, blocks, products of matrices, identities.
        flops: of the arguments, how many additions and products ``hand`` needs, where that can be counted simply; a
            division counts as one, and functions such as exp do not count.
        source: the C++ for Enzyme, where it is not a file.
        error: of arguments, and a value and gradients: how far they are from what is known to be right; of a
            program that was drawn.
    """

    name: str
    title: str
    primal: Callable[..., float]
    hand: Gradient
    make: Callable[[Size], tuple[Any, ...]]
    argnums: tuple[int, ...]
    hand_opt: Gradient | None = None
    flops: Callable[..., float] | None = None
    source: str | None = None
    error: Callable[[tuple[Any, ...], tuple[float, tuple[Any, ...]]], float] | None = None

    @property
    def is_drawn(self) -> bool:
        """True if there is no hand-written adjoint: ``hand`` is not timed."""
        return self.error is not None
