"""The tape between the two sweeps of reverse mode, as Python has it: that of `irad.vjp` and of `irad.split`."""

from __future__ import annotations

import weakref
from threading import Lock
from typing import Any

from irad.debug.events import close_call
from irad.debug.seal import Seal
from irad.frontend.calls.separate_dispatcher import AugmentedDispatcher, Specialisation
from irad.frontend.calls.separate_state import call_of, used_tape


class Tape:
    """What a forward sweep saved for its reverse sweep.

    It frees its memory when it is garbage-collected, and keeps what it refers to alive. Threads take turns.

    Attributes:
        sweep: the forward sweep that made it.
        number: of the specialisation.

    Args:
        sweep: as above.
        number: as above.
        state: what the sweep left.
        shadows: those of the arguments.
        alive: what these refer to.
        seal: of debug mode.
    """

    __slots__ = ("__weakref__", "_alive", "_lock", "_saved", "_seal", "number", "sweep")

    def __init__(
        self, sweep: AugmentedDispatcher, number: int, state: Any, shadows: Any, alive: Any, seal: Seal | None = None
    ) -> None:
        self.sweep, self.number, self._alive = sweep, int(number), alive
        self._saved: tuple[Any, Any] | None = (state, shadows)
        self._seal, self._lock = seal, Lock()
        if seal is not None:
            weakref.finalize(self, close_call, call_of(state)).atexit = False

    @property
    def function(self) -> str:
        """The name of the function that ran."""
        name: str = self.sweep.primal.py_func.__qualname__
        return name

    @property
    def specialisation(self) -> Specialisation:
        """The sweeps that it belongs to."""
        return self.sweep.specialisations[self.number]

    def reverse(self, cotangent: Any) -> Any:
        """Runs the reverse sweep: one entry for each argument.

        Raises:
            UsedTapeError: it has run, and may run only once.
        """
        with self._lock:
            run, saved = self.specialisation.pullback, self.saved()
            if self._seal is None:
                found = run(*saved, cotangent)
            else:
                found = self._seal.call(lambda given: run(*saved, given), cotangent)
            if not self.sweep.sweeps.repeats:
                self._saved = self._alive = self._seal = None
        return found

    def saved(self) -> tuple[Any, Any]:
        """The state and the shadows, as compiled code takes them.

        Raises:
            UsedTapeError: it was reversed, and may be only once.
        """
        if self._saved is None:
            raise used_tape()
        return self._saved

    def __reduce__(self) -> Any:
        raise TypeError("a tape holds memory of this process and cannot be copied or pickled")

    def __repr__(self) -> str:
        return f"<tape of {self.function}>" if self._saved is not None else f"<used tape of {self.function}>"
