"""A test kernel: what is launched, and the same computation in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """A kernel as users write it, with arguments, a launch and a reference.

    Attributes:
        kernel: a plain function, to be compiled by `numba.cuda.jit`.
        reference: takes the same arguments, and does the same to them in NumPy.
        arguments: fresh arguments from a random generator.
        grid: blocks; the blocks of all kernels are few and small.
        block: threads of a block.
        outputs: positions of the arguments that the kernel writes.
        active: positions of the float arguments that have a derivative, outputs among them.
        shared: bytes of dynamic shared memory.
        tolerance: relative, of results: the order of atomic additions is not that of NumPy.
    """

    kernel: Callable[..., None]
    reference: Callable[..., None]
    arguments: Callable[[np.random.Generator], Arguments]
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    outputs: tuple[int, ...]
    active: tuple[int, ...]
    shared: int = 0
    tolerance: float = 1e-12

    @property
    def name(self) -> str:
        return self.kernel.__name__

    def fresh(self, seed: int = 0) -> Arguments:
        """The arguments, the same for the same seed."""
        return self.arguments(np.random.default_rng(seed))

    def types(self) -> tuple[numba.types.Type, ...]:
        """The argument types of Numba."""
        return tuple(numba.typeof(argument) for argument in self.fresh())

    def expected(self, seed: int = 0) -> Arguments:
        """The arguments after the reference has run."""
        arguments = self.fresh(seed)
        self.reference(*arguments)
        return arguments

    def check(self, arguments: Arguments, seed: int = 0) -> None:
        """Compares arguments after a launch with those of the reference: inputs must not have changed."""
        for position, (found, wanted) in enumerate(zip(arguments, self.expected(seed), strict=True)):
            if isinstance(wanted, np.ndarray) and wanted.dtype.names is None and position in self.outputs:
                np.testing.assert_allclose(found, wanted, rtol=self.tolerance, atol=self.tolerance)
            else:
                np.testing.assert_array_equal(found, wanted)
