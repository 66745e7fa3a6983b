"""Errors as they leave irad: with the user's frames in the traceback, not with a hundred of irad's and Numba's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from irad.errors import InternalError, IradError, SourceLocation, without_source
from irad.frontend.numba.messages import REFUSALS
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
