"""Functions of JAX: ``jax.custom_vjp``, ``jax.custom_jvp`` and ``jax.jit`` objects, differentiated by JAX.

JAX pairs cotangents without conjugation, so complex ones are conjugated on the way in and on the way out. Numbers keep
their precision, whatever JAX is configured for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from irad.data.structure import mapped
from irad.frontend.foreign.rule import parameters_of as _parameters_of


def has_rule(f: object) -> bool:
    """True if something is a function of JAX."""
    return callable(f) and type(f).__module__.split(".")[0] in ("jax", "jaxlib")


def function_of(f: Any) -> Callable[..., object]:
    """The function, which gives what NumPy understands."""

    def call(*arguments: object) -> Any:
        with _in_double_precision():
            return mapped(np.asarray, f(*arguments))

    call.__name__ = call.__qualname__ = getattr(f, "__name__", "jax_function")
    return call


def parameters_of(f: object) -> tuple[str, ...]:
    """The names of its parameters."""
    return _parameters_of(f)


def rule_of(f: Any) -> Callable[..., Any]:
    """(value, pullback) of the function."""

    def rule(*arguments: object) -> tuple[Any, Callable[..., Any]]:
        jax = import_module("jax")
        active = [i for i, x in enumerate(arguments) if _is_inexact(x)]
        with _in_double_precision():
            value, pull = jax.vjp(_of(f, arguments, active), *(np.asarray(arguments[i]) for i in active))
            like = jax.tree_util.tree_map(lambda leaf: leaf.dtype, value)

        def pullback(cotangent: object) -> tuple[Any, ...]:
            with _in_double_precision():
                given = jax.tree_util.tree_map(lambda dtype, c: np.conj(np.asarray(c, dtype)), like, cotangent)
                found = dict(zip(active, map(np.conj, map(np.asarray, pull(given))), strict=True))
            return tuple(found.get(i) for i in range(len(arguments)))

        return mapped(np.asarray, value), pullback

    return rule


def forward_of(f: Any) -> Callable[..., Any] | None:
    """(value, tangent) of the function, for arguments and their tangents; JAX has none of a ``custom_vjp``."""
    if type(f).__name__ == "custom_vjp":
        return None

    def forward(arguments: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        jax = import_module("jax")
        active = [i for i, tangent in enumerate(tangents) if tangent is not None]
        primals = tuple(np.asarray(arguments[i]) for i in active)
        directions = tuple(np.asarray(tangents[i], x.dtype) for i, x in zip(active, primals, strict=True))
        with _in_double_precision():
            found: tuple[Any, Any] = jax.jvp(_of(f, arguments, active), primals, directions)
        return mapped(np.asarray, found[0]), mapped(np.asarray, found[1])

    return forward


def _of(f: Any, arguments: tuple[Any, ...], positions: list[int]) -> Callable[..., Any]:
    """The function of some of its arguments."""

    def of_some(*given: object) -> Any:
        every = list(arguments)
        for i, x in zip(positions, given, strict=True):
            every[i] = x
        return f(*every)

    return of_some


def _in_double_precision() -> Any:
    jax = import_module("jax")
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return import_module("jax.experimental").enable_x64(True)  # JAX before 0.8


def _is_inexact(value: object) -> bool:
    return np.asarray(value).dtype.kind in "fc"
