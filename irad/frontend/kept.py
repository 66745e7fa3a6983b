"""Exceptions that Python raises for compiled code to carry on.

Numba's status "Python has the exception" ends in a crash where compiled code catches it: no exception of Numba's goes
with it, and Python's would stay set. So the exception is kept aside, and compiled code raises `Kept` as any other
class. If that gets to Python, which makes an instance of it then, the instance is the exception that was kept.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final, ParamSpec

from irad.errors import InternalError

_P = ParamSpec("_P")

RAISED: Final = -1
"""What a function returns in place of an exception that it raised."""
_ASKED: Final = 2  # times that Numba and Python ask for an instance: one to try, one to raise


class _Thread(threading.local):
    """The last exception of a thread: held until it has been raised, known as long as somebody else holds it."""

    error: BaseException | None = None
    known: Callable[[], BaseException | None] = staticmethod(lambda: None)
    asked: int = 0


_thread: Final = _Thread()


class Kept(Exception):
    """Stands for the last exception that this thread kept."""

    def __new__(cls, *_: object) -> BaseException:  # type: ignore[misc]
        """That exception."""
        error = _thread.error or _thread.known()
        _thread.asked += 1
        if _thread.asked >= _ASKED:
            _thread.error = None
        return error or InternalError("an exception that was raised for compiled code got lost")


def keep(error: BaseException) -> int:
    """Keeps an exception for this thread to raise."""
    _thread.error, _thread.asked = error, 0
    try:
        _thread.known = weakref.ref(error)
    except TypeError:  # of a class written in C
        _thread.known = lambda: None
    return RAISED


def keep_failure() -> int:
    """Keeps that Python could not be called: an interrupt in that moment, or no memory left."""
    return keep(InternalError("compiled code could not call Python"))


def keeping(function: Callable[_P, int | None]) -> Callable[_P, int]:
    """Decorates what compiled code calls: returns `RAISED` where the function raises, else its number or 0."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> int:
        try:
            return function(*args, **kwargs) or 0
        except BaseException as error:  # an interrupt, too
            return keep(error)

    return call


def raise_kept(context: Any, builder: Any) -> None:
    """Ends the function that is being generated with the exception that was kept."""
    context.call_conv.return_user_exc(builder, Kept, ())
