"""A call of an array library, as a tape holds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from irad.cuda.arrays.accumulate import accumulate
from irad.cuda.arrays.library import Library
from irad.cuda.arrays.ruleset import ArrayCall, Rule, contributions
from irad.cuda.arrays.structure import mapped
from irad.cuda.devices.device import ArrayView, Device
from irad.cuda.recording.operations import Saved
from irad.cuda.recording.regions import Regions


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array among the arguments.

    Attributes:
        view: where it is.
        is_active: whether it has a derivative.
    """

    view: ArrayView
    is_active: bool


@dataclass(slots=True)
class ArrayOperation:
    """A call that gave one array, new or overwritten.

    Attributes:
        library: whose function was called.
        rule: of the function; None where no array of floats is concerned.
        function: what was called.
        args, kwargs: its arguments, with a `Leaf` for each array; ``kwargs`` without ``out``.
        output: the result, or what was overwritten.
        in_place: whether it was overwritten.
        saved: what was there before.
    """

    library: Library
    rule: Rule | None
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: list[Leaf]
    output: ArrayView
    in_place: bool
    saved: list[Saved] = field(default_factory=list)

    @property
    def views(self) -> Sequence[ArrayView]:
        """The arrays that have a derivative."""
        return [leaf.view for leaf in self.leaves if leaf.is_active] + list(self.written)

    @property
    def written(self) -> Sequence[ArrayView]:
        """Those of them that it has written to."""
        return [self.output] if self.output.dtype.kind in "fc" else []

    @property
    def runs_again(self) -> bool:
        """What it computes again is in memory of its own."""
        return False

    def reverse(self, device: Device, regions: Regions, stream: Any) -> None:
        """Adds what its rule says to the shadows of the arguments.

        What was overwritten has no cotangent any more. A new array keeps it, as its first content on the tape.
        """
        assert self.rule is not None
        with self.library.running(stream):
            shadow = self.library.array(regions.shadow(self.output))
            cotangent = shadow.copy()
            if self.in_place:
                shadow[...] = 0
            call = self._call()
            views = [leaf.view for leaf in self.leaves if leaf.is_active]
            for view, added in zip(views, contributions(self.rule, call, cotangent), strict=True):
                if added is not None and view.size:
                    accumulate(self.library, regions.shadow(view), added)

    def _call(self) -> ArrayCall:
        active: list[Any] = []

        def restored(leaf: Any) -> Any:
            array = self.library.array(leaf.view)
            if leaf.is_active:
                active.append(array)
            return array

        args, kwargs = mapped((self.args, self.kwargs), restored, lambda value: isinstance(value, Leaf))
        known = None if self.in_place else self.library.array(self.output)
        changes = self.rule.changes if self.rule is not None else None
        return ArrayCall(self.library.xp, self.function, args, kwargs, active, changes, known)
