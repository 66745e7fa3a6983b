"""Numba's types under one untyped name: the stub file that comes with Numba names only a few of them."""

from typing import Any

from numba.core import types as _types

types: Any = _types
