"""Tracebacks of errors that irad raises while Numba compiles a function of the user that asks for a derivative.

Numba ends the traceback of its own errors at the call of the function. Others keep the frames of its compiler and of
irad, some fifty; here they end there, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from irad.errors import IradError, without_source
from irad.frontend.calls.raising import leaving
from irad.frontend.numba.patches import replace_for_good


def shorten() -> None:
    """Puts the end in the method by which a call of any compiled function starts the compiler."""
    replace_for_good("Dispatcher._compile_for_args", _shortened)


def _shortened(original: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(original)
    def compile_for_args(self: Any, *args: object, **kwargs: object) -> object:
        try:
            return original(self, *args, **kwargs)
        except IradError as error:
            __tracebackhide__ = True  # says IPython and pytest
            raise leaving(error)  # noqa: B904

    return without_source(compile_for_args, "compile")
