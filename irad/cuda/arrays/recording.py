"""A call of an array library while a tape records: it runs, and is recorded, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irad.api.annotations import Const
from irad.cuda.arrays.library import Library, accumulate, is_injective
from irad.cuda.arrays.rules import IN_PLACE, find_rule
from irad.cuda.arrays.ruleset import ArrayCall, Rule, contributions, gathered, mapped
from irad.cuda.devices.current import RECORDING
from irad.cuda.devices.device import ArrayView, Device
from irad.cuda.recording.operations import Saved
from irad.cuda.recording.record import Record, append, check_numbers, check_unchanged, current_record
from irad.cuda.recording.regions import Regions
from irad.errors import UnsupportedError

# A call of an array library, as a tape holds it.


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
        function: the called function.
        args, kwargs: its arguments, with a `Leaf` for each array; ``kwargs`` without ``out``.
        output: the result, or what was overwritten.
        in_place: whether it was overwritten.
        saved: the previous contents.
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
        """Arrays that the operation has written to."""
        return [self.output] if self.output.dtype.kind in "fc" else []

    @property
    def runs_again(self) -> bool:
        """False: the recomputed result is in separate memory."""
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


@contextmanager
def suspended() -> Iterator[None]:
    """Nothing is recorded while the block lasts."""
    token = RECORDING.set(None)
    try:
        yield
    finally:
        RECORDING.reset(token)


def call_function(
    library: Library, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Calls a function of an array library, on a tape if one records.

    Args:
        library: whose function it is.
        name: as `Rule.name`.
        function: the function to call with plain arrays.
        args, kwargs: as the user gave them; `irad.Const` stands for an array without a derivative.

    Raises:
        UnsupportedError: the result has a derivative that no rule gives.
    """
    record = current_record()
    if record is None:
        return function(*_plain(library, args), **_plain(library, kwargs))
    return _Call(record, library, name, function, args, dict(kwargs)).run()


def _plain(library: Library, value: Any) -> Any:
    return mapped(value, lambda each: library.plain(each.value if isinstance(each, Const) else each), _is_array_like)


def _is_array_like(value: Any) -> bool:
    return isinstance(value, Const) or hasattr(value, "dtype")


@dataclass(slots=True)
class _Call:
    """One call that a tape sees."""

    record: Record
    library: Library
    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def run(self) -> Any:
        """Calls the function, and records it if necessary."""
        rule = find_rule(self.name, self.function)
        out = self.kwargs.pop("out", None)
        out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
        changed = out if rule is None or rule.changes is None else self.args[rule.changes]
        target = self.target(rule, changed) if changed is not None else None
        leaves = self.leaves()
        if self.name in IN_PLACE and any(leaf.is_active for leaf in leaves):
            raise self.refusal(None)
        check_numbers(
            self.record,
            f"an array that {self.title} is given",
            [*(leaf.view for leaf in leaves), *([target] if target else [])],
        )
        used = [leaf.view for leaf in leaves if leaf.is_active] + ([target] if target is not None else [])
        check_unchanged(self.record, f"an array that {self.title} is given", used)
        self.check_seen()
        stream = self.library.stream()
        saved = self.record.log.save([(target, True)], stream) if target is not None else []
        with suspended():
            result = self.function(*_plain(self.library, self.args), **self.keywords(out))
        if target is None:
            return self.result(result, rule, leaves, stream)
        operation = self.operation(rule, leaves, target, in_place=True)
        operation.saved = saved
        append(self.record, operation, self.touched(leaves, target), stream)
        return changed if result is not None else None

    def target(self, rule: Rule | None, changed: Any) -> ArrayView:
        """Array that is overwritten; floats are overwritten by rules only."""
        if isinstance(changed, tuple) or not self.library.is_array(changed):
            raise self.refusal(None)
        view = self.view(changed)
        if view.dtype.kind in "fc" and (rule is None or self.objection(rule)):
            raise self.refusal(rule)
        if view.dtype.kind in "fc" and not is_injective(view):
            raise UnsupportedError(
                f"{self.title} overwrites a view whose elements share memory",
                "(a) overwrite a copy, view.copy(), or (b) a part without such elements, or (c) use a kernel",
                "which element is stored last depends on the library",
            )
        return view

    @property
    def title(self) -> str:
        """The function, as messages name it."""
        return self.name.removeprefix("ndarray.")

    # --- arguments ----------------------------------------------------------------------------------------------------

    def leaves(self) -> list[Leaf]:
        """The arrays among the arguments."""
        return gathered(self.stored(), lambda value: isinstance(value, Leaf))

    def stored(self) -> Any:
        """The arguments as the tape keeps them: arrays by their address, constants of the host as copies."""
        return mapped((self.args, self.kwargs), self.leaf, _is_array_like)

    def leaf(self, value: Any) -> Any:
        """An argument as the tape keeps it."""
        array = value.value if isinstance(value, Const) else value
        if not self.library.is_array(array):
            return array.copy() if isinstance(array, np.ndarray) else array
        view = self.view(array)
        return Leaf(view, not isinstance(value, Const) and view.dtype.kind in "fc" and bool(view.size))

    def view(self, array: Any) -> ArrayView:
        """Address, shape and strides of an array of the library."""
        found = self.record.device.view(array)
        if found is None:
            raise UnsupportedError(
                f"{self.title} is given an array that is not in device memory",
                "pass device arrays",
                "the tape identifies memory by its address",
            )
        return found

    def keywords(self, out: Any) -> dict[str, Any]:
        """The arguments by name, as the function takes them."""
        kwargs = _plain(self.library, self.kwargs)
        return kwargs if out is None else {**kwargs, "out": _plain(self.library, out)}

    def objection(self, rule: Rule) -> str | None:
        """Reason why the rule does not hold for the call."""
        args, kwargs = mapped((self.args, self.kwargs), lambda each: each.value, lambda each: isinstance(each, Const))
        constant = {id(each.value) for each in gathered((self.args, self.kwargs), lambda v: isinstance(v, Const))}

        def is_active(value: Any) -> bool:
            known = hasattr(value, "dtype") and self.library.is_array(value)
            return known and value.dtype.kind in "fc" and id(value) not in constant

        complexes = [leaf for leaf in self.leaves() if leaf.is_active and leaf.view.dtype.kind == "c"]
        if rule.is_real and complexes:
            return "it has no rule for complex numbers"
        return rule.objection(args, kwargs, is_active)

    def check_seen(self) -> None:
        """Refuses arrays that something unseen has made."""
        for value in gathered(
            (self.args, self.kwargs), lambda each: not isinstance(each, Const) and _is_array_like(each)
        ):
            if self.library.is_array(value) and value.dtype.kind in "fc":
                self.record.check_seen(f"an array that {self.title} is given", value, self.view(value))

    # --- results ------------------------------------------------------------------------------------------------------

    def result(self, result: Any, rule: Rule | None, leaves: list[Leaf], stream: int) -> Any:
        """Result for the user: views and results without floats need no record."""
        active = [leaf for leaf in leaves if leaf.is_active]
        found = mapped(result, self.library.wrapped, _is_array_like)
        floats = gathered(found, _is_float)
        fresh = [each for each in floats if not self.is_view(each, leaves)]
        if not active or not (fresh or result is None):
            return found
        if rule is None or result is None or self.objection(rule) or fresh[0] is not found:
            raise self.refusal(rule)
        operation = self.operation(rule, leaves, self.view(found), in_place=False)
        append(self.record, operation, self.touched(leaves, operation.output), stream)
        return found

    def is_view(self, array: Any, leaves: list[Leaf]) -> bool:
        """True if a result lies in the memory of an argument."""
        low, high = self.view(array).extent
        extents = [leaf.view.extent for leaf in leaves]
        return low == high or any(start <= low and high <= end for start, end in extents)

    def operation(self, rule: Rule | None, leaves: list[Leaf], output: ArrayView, *, in_place: bool) -> ArrayOperation:
        """The record of the call."""
        args, kwargs = self.stored()
        return ArrayOperation(self.library, rule, self.function, args, kwargs, leaves, output, in_place)

    @staticmethod
    def touched(leaves: list[Leaf], output: ArrayView) -> list[ArrayView]:
        """All memory that the call has used."""
        return [*(leaf.view for leaf in leaves), output]

    def refusal(self, rule: Rule | None) -> UnsupportedError:
        """The error for a function without a rule."""
        objection = self.objection(rule) if rule is not None else None
        which = f", as it is called here: {objection}" if objection else ""
        return UnsupportedError(
            f"{self.title} of {self.library.name} has no rule for a tape{which}",
            "(a) irad.cuda.rule(function, reverse), a rule of your own, or (b) irad.Const(array), for arguments "
            "without a derivative, or (c) a kernel",
            "the tape would treat its result as constant",
        )


def _is_float(value: Any) -> bool:
    """True if a value is an array of floats."""
    return hasattr(value, "dtype") and value.dtype.kind in "fc"
