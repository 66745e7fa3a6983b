"""Numba's CUDA target calls what irad puts in the place of its own while it lowers a kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from numba import cuda, float64, int64

from irad.frontend.cuda import numba_cuda
from irad.frontend.numba import patches

CONTEXTS = {
    "cuda_target._typingctx": (numba_cuda._TypingContext, "resolve_value_type"),
    "cuda_target._targetctx": (numba_cuda._TargetContext, "get_function"),
}


@cuda.jit(device=True)
def remainder(x, step):
    return x % step


def kernel(x, y, step, n):
    if n < 0:
        raise ValueError("negative")
    i = cuda.grid(1)
    if i < x.size:
        y[i] = remainder(x[i], step)


def counting(called: Counter[str], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        called[name] += 1
        return function(*args, **kwargs)

    return call


@pytest.fixture(scope="module")
def called() -> Counter[str]:
    """How often Numba called what is replaced, for a kernel that needs all of it."""
    found: Counter[str] = Counter()
    replaced = numba_cuda.replaced_for_kernels

    def counted(name: str, value: Any) -> AbstractContextManager[None]:
        return replaced(name, value if name in CONTEXTS else counting(found, name, value))

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(numba_cuda, "replaced_for_kernels", counted)
        for name, (owner, method) in CONTEXTS.items():
            monkeypatch.setattr(owner, method, counting(found, name, getattr(owner, method)))
        strided = float64[::2]
        numba_cuda.lower(kernel, (strided, strided, float64, int64), numba_cuda.KernelOptions(debug=True))
    return found


@pytest.mark.parametrize("patch", patches.KERNELS, ids=lambda patch: patch.name)
def test_numba_calls_it(called: Counter[str], patch: patches.Patch) -> None:
    assert called[patch.name] > 0, f"numba.cuda no longer calls {patch.name}, and with it goes this: {patch.why}"
