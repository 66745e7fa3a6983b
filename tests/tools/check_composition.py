"""`check_composition`: the value of a random composition and its derivatives in both modes, against nested duals."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba import njit

import irad
from irad.testing.gradients.trial import optimisation_limited
from tests.tools.nested_duals import IRAD, NUMPY, number
from tests.tools.random_compositions import SIZE, Composition

_RTOL = 1e-9
_LARGEST = 1e7


def check_composition(composition: Composition, *, second: bool) -> None:
    """Checks the function ``program`` of a composition: value, pushforward, pullback, on request Hessian products.

    Raises:
        AssertionError: one of them is wrong.
    """
    reference = _run(composition, {"np": NUMPY, "irad": IRAD, "njit": lambda function: function})
    program = _run(composition, {"np": np, "irad": irad, "njit": njit})
    random = np.random.default_rng(composition.seed)
    args, direction = _drawn(composition, random), _drawn(composition, random)
    push, along = IRAD.pushforward(reference, (0, 1)), _as_objects(direction)
    value, tangent = (_floats(part) for part in push(*_as_objects(args), along))
    if not np.max(np.abs(tangent)) < _LARGEST:
        return  # a pole is close by
    with optimisation_limited():
        found = irad.pushforward(program, (0, 1))(*_copies(args), _copies(direction))
        _same(found[0], value, "value")
        _same(found[1], tangent, "tangent")
        _same(program(*_copies(args)), value, "value of the plain function")
        seed = np.linspace(0.7, 1.3, value.size)
        _, pullback = irad.vjp(program, *_copies(args))
        pulled = pullback(seed if composition.kind == "map" else float(seed[0]))
        products = _floats(pulled) * _floats(direction)
        _same(products.sum(), seed @ tangent, "⟨Jᵀ seed, direction⟩", float(np.abs(products).sum()))
        if second and composition.kind != "map":
            product = irad.hvp(program, (0, 1))(*_copies(args), _copies(direction))
            gradient = IRAD.grad(reference, (0, 1))
            wanted = IRAD.pushforward(gradient, (0, 1))(*_as_objects(args), along)[1]
            _same(product, _floats(wanted), "product of the Hessian")


def _run(composition: Composition, names: Mapping[str, Any]) -> Callable[..., Any]:
    file, text = f"<random composition {composition.seed}>", composition.source
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace = dict(names)
    exec(compile(text, file, "exec"), namespace)
    program: Callable[..., Any] = namespace["program"]
    return program


def _drawn(composition: Composition, random: np.random.Generator) -> tuple[Any, ...]:
    first = random.uniform(-1.0, 1.0, SIZE)
    return (float(first[0]) if composition.kind == "number" else first), float(random.uniform(0.2, 1.0))


def _copies(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(np.copy(v) if isinstance(v, np.ndarray) else v for v in values)


def _as_objects(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(v.astype(object) if isinstance(v, np.ndarray) else v for v in values)


def _floats(value: Any) -> np.ndarray[Any, Any]:
    parts = value if isinstance(value, tuple) else (value,)
    return np.array([number(each) for part in parts for each in np.ravel(np.asarray(part, object))])


def _same(found: Any, wanted: Any, what: str, scale: float = 0.0) -> None:
    scale = max(scale, float(np.max(np.abs(wanted), initial=1e-2)))
    np.testing.assert_allclose(_floats(found), _floats(wanted), _RTOL, _RTOL * scale, err_msg=what)
