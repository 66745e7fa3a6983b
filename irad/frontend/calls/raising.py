"""Errors as they leave irad: with the user's frames in the traceback, not with a hundred of irad's and Numba's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from irad.errors import InternalError, IradError, SourceLocation, without_source
from irad.frontend.numba.messages import REFUSALS
from irad.frontend.numba.patches import replace_for_good
from irad.options import errors_show_llvm

_P = ParamSpec("_P")
_R = TypeVar("_R")


def public(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorates public functions: an error names the line of the call, and its traceback has no frames of irad."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except IradError as error:
            __tracebackhide__ = True  # says IPython and pytest
            raise leaving(error)  # noqa: B904

    return without_source(call, function.__name__)


def end_tracebacks_at_the_call() -> None:
    """Ends tracebacks of irad's errors at the call of the user's function that asks for a derivative.

    Numba does so with its own errors. Of others it keeps the frames of its compiler and of irad, some fifty.
    """
    replace_for_good("Dispatcher._compile_for_args", _leaving_at_the_call)


def _leaving_at_the_call(original: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(original)
    def compile_for_args(self: Any, *args: object, **kwargs: object) -> object:
        try:
            return original(self, *args, **kwargs)
        except IradError as error:
            __tracebackhide__ = True  # says IPython and pytest
            raise leaving(error)  # noqa: B904

    return without_source(compile_for_args, "compile")


def leaving(error: IradError) -> IradError:
    """An error as the user gets it; to be raised immediately.

    Nothing is cut from the traceback of a fault of irad's own, and nothing at all with ``IRAD_ERRORS=llvm``. What
    raised the error stays its cause, unless it is Numba, whose message the error repeats.
    """
    if error.location is None or error.location.file.startswith("<irad."):  # of a derivative that is differentiated
        error.location = SourceLocation.here()
    if isinstance(error, InternalError) or errors_show_llvm():
        return error
    error.__cause__ = None if isinstance(error.__cause__, REFUSALS) else error.__cause__  # and the context is hidden
    return error.with_traceback(None)
