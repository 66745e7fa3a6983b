"""Primitives of autograd (``@primitive``, with ``defvjp`` and ``defjvp``), differentiated by autograd.

It pairs cotangents without conjugation, so complex ones are conjugated on the way in and on the way out.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from irad.data.structure import mapped
from irad.frontend.foreign.rule import parameters_of as _parameters_of


def has_rule(f: object) -> bool:
    """True if something is a primitive of autograd."""
    return bool(getattr(f, "_is_autograd_primitive", False))


def function_of(f: Any) -> Callable[..., object]:
    """The function itself."""
    found: Callable[..., Any] = f
    return found


def parameters_of(f: Any) -> tuple[str, ...]:
    """The names of its parameters."""
    return _parameters_of(f.fun)


def rule_of(f: Any) -> Callable[..., Any]:
    """(value, pullback) of the function."""

    def rule(*arguments: object) -> tuple[Any, Callable[..., Any]]:
        make_vjp = import_module("autograd").make_vjp
        active = [i for i, x in enumerate(arguments) if np.asarray(x).dtype.kind in "fc"]
        pulls = []
        value = None
        for position in active:
            pull, value = make_vjp(f, position)(*arguments)
            pulls.append(pull)
        if not active:
            value = f(*arguments)

        def pullback(cotangent: Any) -> tuple[Any, ...]:
            found = {i: np.conj(pull(np.conj(cotangent))) for i, pull in zip(active, pulls, strict=True)}
            return tuple(found.get(i) for i in range(len(arguments)))

        return value, pullback

    return rule


def forward_of(f: Any) -> Callable[..., Any] | None:
    """(value, tangent) of the function, for arguments and their tangents, if it has ``defjvp``."""
    if f not in import_module("autograd.core").primitive_jvps:
        return None

    def forward(arguments: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        make_jvp = import_module("autograd.differential_operators").make_jvp
        value = total = None
        for position, direction in enumerate(tangents):
            if direction is not None:
                value, tangent = make_jvp(f, position)(*arguments)(direction)
                total = tangent if total is None else mapped(np.add, total, tangent)
        return value, total

    return forward
