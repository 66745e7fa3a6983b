"""The types of PTX, and what of NumPy holds them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

_NAMES: Final = ("pred", "f16", "f16x2", "f32", "f64", *(f"{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64)))


@dataclass(frozen=True, slots=True)
class PtxType:
    """A type.

    Attributes:
        kind: "pred", "b" for bits, "u", "s", "f" or "f16x2".
        bits: its width; 8 for predicates.
        dtype: of a number.
        raw: of its bits.
    """

    name: str
    kind: str
    bits: int
    dtype: Any
    raw: Any

    @property
    def size(self) -> int:
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_signed(self) -> bool:
        return self.kind == "s"


@cache
def ptx_type(name: str) -> PtxType:
    """A type by its name.

    Raises:
        KeyError: there is none.
    """
    if name not in _NAMES:
        raise KeyError(name)
    if name == "pred":
        return PtxType(name, name, 8, np.dtype(bool), np.dtype(bool))
    kind, bits = (name, 32) if name == "f16x2" else (name[0], int(name[1:]))
    letter = {"s": "i", "f": "f"}.get(kind, "u")
    return PtxType(name, kind, bits, np.dtype(f"{letter}{bits // 8}"), np.dtype(f"u{bits // 8}"))


def is_type(word: str) -> bool:
    """Whether a word of an opcode is a type."""
    return word in _NAMES


PRED: Final = ptx_type("pred")
U32: Final = ptx_type("u32")
B32: Final = ptx_type("b32")
U64: Final = ptx_type("u64")
