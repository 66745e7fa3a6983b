"""For which types of arguments a declaration holds: patterns, and which of two is the more specific.

A pattern has an entry for each argument: a Numba type, a class of Numba's types (``types.Float``), or None for any. An
array type of layout A stands for arrays of that dtype and rank in every layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from numba import typeof
from numba.core import sigutils, types
from numba.core.errors import NumbaError
from numba.core.types import Type
from numba.core.typing import Signature

from irad.errors import RuleError
from irad.frontend.numba.messages import readable

Entry: TypeAlias = Any


@dataclass(frozen=True)
class Pattern:
    """The types of arguments that a declaration is for; ``entries`` is None where it is for all."""

    entries: tuple[Entry, ...] | None = None

    def __str__(self) -> str:
        return "all signatures" if self.entries is None else f"({', '.join(map(_spelled, self.entries))})"

    def fits(self, arguments: tuple[Any, ...]) -> bool:
        """Whether it is for these types."""
        if self.entries is None:
            return True
        plain = tuple(map(plain_type, arguments))
        return len(plain) == len(self.entries) and all(map(_covers, self.entries, plain))

    def covers(self, other: Pattern) -> bool:
        """Whether it is for all that another is for."""
        if self.entries is None or other.entries is None:
            return self.entries is None
        return len(self.entries) == len(other.entries) and all(map(_covers, self.entries, other.entries))

    def overlaps(self, other: Pattern) -> bool:
        """Whether there may be types that both are for."""
        if self.entries is None or other.entries is None:
            return True
        return len(self.entries) == len(other.entries) and all(map(_overlap, self.entries, other.entries))

    def meet(self, other: Pattern) -> Pattern:
        """The pattern that is for just what two that overlap are both for."""
        if self.entries is None or other.entries is None:
            return self if other.entries is None else other
        pairs = zip(self.entries, other.entries, strict=True)
        return Pattern(tuple(two if _covers(one, two) else one for one, two in pairs))


ANY: Final = Pattern()


def pattern_of(signature: Signature) -> Pattern:
    """The pattern that a user wrote: None, a signature of Numba's, its text, or a tuple of entries.

    Raises:
        RuleError: it is none of these.
    """
    if signature is None:
        return ANY
    if isinstance(signature, tuple | list):
        return Pattern(tuple(map(_entry, signature)))
    try:
        return Pattern(tuple(sigutils.normalize_signature(signature)[0]))
    except (TypeError, ValueError, SyntaxError, NameError, NumbaError) as error:
        raise _not_a_signature(signature) from error


def check_concrete(pattern: Pattern) -> None:
    """Refuses a pattern that is not the signature of a call.

    Raises:
        RuleError: an entry is not a Numba type.
    """
    for entry in pattern.entries or ():
        if not isinstance(entry, types.Type):
            raise RuleError(
                f"{pattern} is not the signature of a call",
                'give a Numba type for each argument, "(float64, float64[::1])"',
                "which rule a call is differentiated by depends on the types of all its arguments",
            )


def plain_type(numba_type: Type) -> Type:
    """The type of a value, whether it is a literal, or a default that the caller left out."""
    if isinstance(numba_type, types.Omitted):
        return types.unliteral(typeof(numba_type.value))
    return types.unliteral(numba_type)


def _entry(given: object) -> Entry:
    if given is None or isinstance(given, types.Type) or (isinstance(given, type) and issubclass(given, types.Type)):
        return given
    if isinstance(given, str):
        try:
            (found,) = sigutils.normalize_signature(f"({given},)")[0]
        except (TypeError, ValueError, SyntaxError, NameError, NumbaError) as error:
            raise _not_a_signature(given) from error
        return found
    raise _not_a_signature(given)


def _not_a_signature(given: object) -> RuleError:
    return RuleError(
        f"{given!r} is not a signature",
        "give for each argument a Numba type, a class of these such as types.Float, or None for any: "
        '(types.Float, "float64[:]", None)',
        "a declaration may be limited to calls with arguments of these types",
    )


def _covers(general: Entry, special: Entry) -> bool:
    if general is None:
        return True
    if special is None:
        return False
    if isinstance(general, type):
        return issubclass(special if isinstance(special, type) else type(special), general)
    if isinstance(special, type):
        return False
    if isinstance(general, types.Array) and isinstance(special, types.Array):
        same = (general.dtype, general.ndim) == (special.dtype, special.ndim)
        return same and general.layout in ("A", special.layout)
    return bool(general == special)


def _overlap(one: Entry, other: Entry) -> bool:
    if isinstance(one, type) and isinstance(other, type):
        return issubclass(one, other) or issubclass(other, one)
    return _covers(one, other) or _covers(other, one)


def _spelled(entry: Entry) -> str:
    if entry is None:
        return "any"
    return entry.__name__ if isinstance(entry, type) else readable(str(entry))
