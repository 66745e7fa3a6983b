"""Subclasses of ``torch.autograd.Function``: their ``apply``, recorded by PyTorch.

Its convention for complex numbers is irad's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from irad.data.structure import mapped
from irad.frontend.foreign.rule import parameters_of as _parameters_of


def has_rule(f: object) -> bool:
    """True if something is a subclass of ``torch.autograd.Function``."""
    return inspect.isclass(f) and any(
        base.__module__ == "torch.autograd.function" and base.__name__ == "Function" for base in f.__mro__
    )


def function_of(f: Any) -> Callable[..., object]:
    """The function, which gives what NumPy understands."""

    def call(*arguments: object) -> Any:
        torch = import_module("torch")
        with torch.no_grad():
            return mapped(_to_numpy, f.apply(*(_tensor(torch, x)[0] for x in arguments)))

    call.__name__ = call.__qualname__ = f.__name__
    return call


def parameters_of(f: Any) -> tuple[str, ...]:
    """The names of the parameters of ``forward``, without the context."""
    names = _parameters_of(f.forward)
    has_own_setup = "setup_context" in {name for base in f.__mro__[:-1] for name in vars(base) if not _is_torchs(base)}
    return names if has_own_setup else names[1:]


def rule_of(f: Any) -> Callable[..., Any]:
    """(value, pullback) of the function."""

    def rule(*arguments: object) -> tuple[Any, Callable[..., Any]]:
        torch = import_module("torch")
        with torch.enable_grad():
            pairs = [_tensor(torch, x) for x in arguments]
            inputs = [tensor.requires_grad_() for tensor, is_active in pairs if is_active]
            value = f.apply(*(tensor for tensor, _ in pairs))
        outputs = value if isinstance(value, tuple) else (value,)

        def pullback(cotangent: Any) -> tuple[Any, ...]:
            given = cotangent if isinstance(value, tuple) else (cotangent,)
            active = [(y, c) for y, c in zip(outputs, given, strict=True) if getattr(y, "requires_grad", False)]
            found = iter(_gradients(torch, active, inputs))
            return tuple(next(found) if is_active else None for _, is_active in pairs)

        return mapped(_to_numpy, value), pullback

    return rule


def forward_of(f: Any) -> Callable[..., Any] | None:
    """(value, tangent) of the function, for arguments and their tangents, if the class has a ``jvp``."""
    if not any("jvp" in vars(base) for base in f.__mro__[:-1] if not _is_torchs(base)):
        return None

    def forward(arguments: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        torch = import_module("torch")
        duals = import_module("torch.autograd.forward_ad")
        given = [_tensor(torch, x)[0] for x in arguments]
        with torch.no_grad(), duals.dual_level():
            for i, tangent in enumerate(tangents):
                if tangent is not None:
                    given[i] = duals.make_dual(given[i], torch.tensor(np.asarray(tangent)).to(given[i].dtype))
            found = f.apply(*given)
            return mapped(_to_numpy, found), mapped(lambda each: _tangent_of(duals.unpack_dual(each)), found)

    return forward


def _tangent_of(dual: Any) -> Any:
    return None if dual.tangent is None else _to_numpy(dual.tangent)


def _gradients(torch: Any, active: list[tuple[Any, Any]], inputs: list[Any]) -> list[Any]:
    if not active:
        return [None] * len(inputs)
    outputs = [y for y, _ in active]
    weights = [torch.as_tensor(np.asarray(c), dtype=y.dtype).reshape(y.shape) for y, c in active]
    found = torch.autograd.grad(outputs, inputs, weights, retain_graph=True, allow_unused=True)
    return [None if each is None else each.numpy() for each in found]


def _tensor(torch: Any, value: object) -> tuple[Any, bool]:
    """A float or an array of floats as a tensor, and whether it takes part; anything else as it is."""
    array = np.asarray(value)
    if array.dtype.kind in "fc":
        return torch.tensor(array), True
    return (torch.tensor(array) if isinstance(value, np.ndarray) else value), False


def _is_torchs(base: type) -> bool:
    return base.__module__.split(".")[0] == "torch"


def _to_numpy(value: Any) -> Any:
    return value.detach().resolve_conj().numpy() if hasattr(value, "detach") else np.asarray(value)
