"""What functions of `irad.jit` and derivatives add to Numba's ``inspect_llvm``, ``inspect_asm`` and so on."""

from __future__ import annotations

import inspect as python_inspect
from collections.abc import Sequence
from typing import Any

from irad.frontend.calls.dispatcher import DerivativeDispatcher
from irad.frontend.packing.dispatcher import StructureDispatcher
from irad.lazy import offered
from irad.options import Options


class Inspectable:
    """Methods for dispatchers.

    As with Numba's, without a signature the result is a dictionary with a text for each signature compiled so far.
    """

    def inspect(self, *args: Any, argnums: int | Sequence[int] | None = None, options: Options | None = None) -> Any:
        """An `irad.Inspection` for arguments of the function, or Numba types in their place; see `irad.inspect`."""
        inspect: Any = offered("irad").load("inspect")  # of a layer above; only those who look wait for its import
        return inspect(self, *args, argnums=argnums, options=options)

    def inspect_prepared(self, signature: tuple[Any, ...] | None = None) -> Any:
        """The program as the analyses of irad find it."""
        return self._stage("prepared", signature)

    def inspect_activity(self, signature: tuple[Any, ...] | None = None) -> Any:
        """What is active, and why."""
        return self._stage("activity", signature)

    def inspect_plan(self, signature: tuple[Any, ...] | None = None) -> Any:
        """What is saved and what is recomputed, and why."""
        return self._stage("plan", signature)

    def inspect_tape(self, signature: tuple[Any, ...] | None = None) -> Any:
        """Where saved values live, and how many bytes they take."""
        return self._stage("tape", signature)

    def inspect_adjoint(self, signature: tuple[Any, ...] | None = None) -> Any:
        """Both sweeps as irad generates them."""
        return self._stage("adjoint", signature)

    def _stage(self, name: str, signature: tuple[Any, ...] | None) -> Any:
        if signature is not None:
            return self.inspect(*signature).stage(name)
        dispatcher: Any = self
        mine, its = (
            python_inspect.signature(each.py_func).parameters
            for each in (dispatcher, getattr(dispatcher, "primal", dispatcher))
        )
        wanted = [i for i, parameter in enumerate(mine) if parameter in its]
        return {kinds: self.inspect(*(kinds[i] for i in wanted)).stage(name) for kinds in dispatcher.signatures}


class InspectableDispatcher(Inspectable, StructureDispatcher):
    """What `irad.jit` gives: Numba's dispatcher with further methods."""


class InspectableDerivative(Inspectable, DerivativeDispatcher):
    """What `irad.grad` and the like give."""
