"""What a pass is, and the stages in which passes run.

By stage a pass works on

PREPARE    the `Module` of the program
PROGRAM    the `Program`: all of it, before anything is differentiated
FUNCTION   a `Unit`: one variant of a function, analysed
PAIR       a `GeneratedPair`: the two functions that are made of it
DERIVATIVE the `Generated` derivative with all its pairs
FINISH     the same, after the places of its instructions have been read off
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class PassStage(enum.Enum):
    """What a pass works on."""

    PREPARE = "prepare"
    PROGRAM = "program"
    FUNCTION = "function"
    PAIR = "pair"
    DERIVATIVE = "derivative"
    FINISH = "finish"


def _always(record: Any) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass.

    Attributes:
        name: its module in `irad.passes`.
        run: does the work.
        applies: whether there is any for a record.
        changes: the code, so that it is worth verifying afterwards.
    """

    name: str
    stage: PassStage
    run: Callable[[Any], None]
    applies: Callable[[Any], bool] = _always
    changes: bool = False

    @property
    def purpose(self) -> str:
        """What it is for, in a sentence."""
        return self.run.__doc__ or ""
