"""Exceptions whose message Python writes: compiled code that writes numbers takes longer to compile than what raises.

``raise FormattedValueError("{} rows for {} columns", n, m)`` in compiled code is a ``ValueError`` where Python gets it:
Numba passes on the class and the arguments, and makes the exception from these.
"""

from __future__ import annotations


class FormattedValueError(ValueError):
    """A ``ValueError`` of a text with ``{}`` in place of the values that follow it."""

    def __new__(cls, text: str, *values: object) -> ValueError:  # type: ignore[misc]
        """Makes the exception, which is of the class that users know."""
        return ValueError(text.format(*values))


class FormattedIndexError(IndexError):
    """An ``IndexError`` of a text with ``{}`` in place of the values that follow it."""

    def __new__(cls, text: str, *values: object) -> IndexError:  # type: ignore[misc]
        """Makes the exception, which is of the class that users know."""
        return IndexError(text.format(*values))
