"""What `irad.autodiff` and `irad.split` compute: modes, and how one is made of another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from irad.errors import SignatureError

_UNCHANGED: Any = object()


@dataclass(frozen=True, slots=True, repr=False)
class AutodiffMode:
    """What `irad.autodiff` or `irad.split` computes.

    Modes are immutable; equal ones are interchangeable, also as keys, and they can be pickled. Calling one gives the
    mode with other modifiers: ``irad.Reverse(primal=True)`` is ``irad.ReverseWithPrimal``.

    Attributes:
        is_forward: whether tangents are carried along, instead of cotangents back.
        has_primal: whether the value is returned, too.
        is_split: whether the two sweeps of reverse mode are called separately; then it is a mode of `irad.split`.
        modified: of a split mode the positions of the arguments whose memory the caller may change between the sweeps,
            in order; None: any of them.
        repeatable: of a split mode, whether a tape may be reversed more than once.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def square(x):
        ...     return x * x
        >>> irad.autodiff(irad.Reverse, square, irad.Active(3.0))
        (6.0,)
        >>> irad.autodiff(irad.ReverseWithPrimal, square, irad.Active(3.0))
        ((6.0,), 9.0)
        >>> irad.autodiff(irad.Forward, square, irad.Duplicated(3.0, 1.0))
        6.0
        >>> irad.autodiff(irad.ForwardWithPrimal, square, irad.Duplicated(3.0, 1.0))
        (6.0, 9.0)
        >>> irad.ReverseSplit(primal=True, modified=(0,))
        irad.ReverseSplitWithPrimal(modified=(0,))
    """

    is_forward: bool = False
    has_primal: bool = False
    is_split: bool = False
    modified: tuple[int, ...] | None = None
    repeatable: bool = False

    def __post_init__(self) -> None:
        if self.modified is not None:
            object.__setattr__(self, "modified", _positions(self.modified))
        if self.is_forward and self.is_split:
            raise SignatureError(
                "forward mode cannot be split",
                "(a) irad.ReverseSplit or (b) irad.Forward",
                "forward mode has one sweep",
            )
        if not self.is_split and (self.modified is not None or self.repeatable):
            raise SignatureError(
                f"{self._name} has no modifiers modified and repeatable",
                "irad.ReverseSplit(modified=…, repeatable=…), for irad.split",
                "they say what happens between two sweeps that are called separately",
            )

    def __call__(
        self,
        *,
        primal: bool = _UNCHANGED,
        split: bool = _UNCHANGED,
        modified: Iterable[int] | None = _UNCHANGED,
        repeatable: bool = _UNCHANGED,
    ) -> AutodiffMode:
        """The same mode but for what is given.

        Args:
            primal: whether the value is returned, too.
            split: whether the sweeps are called separately; False drops the other modifiers of split modes.
            modified: positions of the arguments whose memory may change between the sweeps; None: any of them. That
                the others stay as the forward sweep left them is the caller's promise: it makes the tape smaller.
            repeatable: whether a tape may be reversed more than once; it lives until the last reference is gone.

        Raises:
            SignatureError: the mode has no such modifier, or ``modified`` holds something else than positions.
        """
        given: dict[str, Any] = {
            "has_primal": primal,
            "is_split": split,
            "modified": modified,
            "repeatable": repeatable,
        }
        combined: dict[str, Any] = {"modified": None, "repeatable": False} if split is False else {}
        return replace(self, **combined, **{name: each for name, each in given.items() if each is not _UNCHANGED})

    @property
    def _name(self) -> str:
        return (
            f"irad.{'Forward' if self.is_forward else 'Reverse'}{'Split' * self.is_split}"
            f"{'WithPrimal' * self.has_primal}"
        )

    def __repr__(self) -> str:
        modifiers = [f"modified={self.modified}"] if self.modified is not None else []
        modifiers += ["repeatable=True"] if self.repeatable else []
        return f"{self._name}({', '.join(modifiers)})" if modifiers else self._name


def _positions(given: Any) -> tuple[int, ...]:
    try:
        found = tuple(given)
    except TypeError:
        found = (given,)
    if all(type(each) is int and each >= 0 for each in found):
        return tuple(sorted(set(found)))
    raise SignatureError(
        f"modified={given!r} does not hold positions of arguments",
        "name the arguments by position, counted from 0: modified=(0, 2)",
        "modified says which arguments may change between the two sweeps",
    )


Reverse = AutodiffMode()
ReverseWithPrimal = Reverse(primal=True)
ReverseSplit = Reverse(split=True)
ReverseSplitWithPrimal = ReverseSplit(primal=True)
Forward = AutodiffMode(is_forward=True)
ForwardWithPrimal = Forward(primal=True)
