"""Values that users pass instead of a function that Numba compiles, and remedies."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from irad.errors import SignatureError
from irad.frontend.diagnosis.unexpected import spelled
from irad.message import with_article

_MADE_BY_NUMBA: Final = {
    "DUFunc": "a ufunc made by numba.vectorize",
    "GUFunc": "a ufunc made by numba.guvectorize",
    "CFunc": "a numba.cfunc function",
}
_KERNELS: Final = ("CUDADispatcher", "DerivativeKernel")  # by name: numba.cuda may not be imported
_COMPILED: Final = "irad differentiates compiled code, and compiles plain Python functions itself"


def not_a_function(f: Any) -> SignatureError:
    """The error for something that cannot be differentiated as it is."""
    what, remedy, reason = _explained(f)
    return SignatureError(f"{what}, which irad cannot differentiate", remedy, reason)


def _explained(f: Any) -> tuple[str, str, str]:
    """Problem, remedy and reason for a value that is not a compiled function."""
    if not callable(f) and not of_numba_cuda_mlir(f):
        remedy = "pass the function itself, without calling it: irad.grad(f)(x), where f is a numba.njit function"
        return f"{_shown(f)} is not a function but a value (type {type(f).__name__})", remedy, _COMPILED
    for is_one, explain in _KINDS:
        if is_one(f):
            return explain(f)
    name = type(f).__name__
    return (
        f"{_shown(f)} is a callable object (type {name})",
        f"(a) write the computation as a numba.njit function of numbers and arrays or (b) make {name} a "
        "numba.experimental.jitclass, and call its method in a numba.njit function that takes the instance",
        _COMPILED,
    )


def _method(f: Any) -> tuple[str, str, str]:
    owner = f.__self__.__name__ if inspect.isclass(f.__self__) else type(f.__self__).__name__
    if hasattr(type(f.__self__), "_numba_type_"):
        call = f"lambda obj{_arguments(f)}: obj.{f.__name__}({_arguments(f)[2:]})"
        remedy = f"pass a function that takes the instance as its first argument: {call}"
        return (
            f"{owner}.{f.__name__} is a method bound to an instance",
            remedy,
            "the instance is an argument of the method",
        )
    return (
        f"{owner}.{f.__name__} is a method of a Python object",
        f"(a) write it as a numba.njit function of the numbers and arrays of {owner} that it uses or (b) make {owner} "
        "a numba.experimental.jitclass",
        f"compiled code cannot hold the {owner} that the method belongs to",
    )


def _partial(f: Any) -> tuple[str, str, str]:
    name = getattr(f.func, "__name__", "f")
    name = "f" if name == "<lambda>" else name
    return (
        f"{name} with fixed arguments is a functools.partial",
        f"fix the arguments in a function: lambda x: {name}(…, x), where {name} is a numba.njit function",
        "Numba does not compile functools.partial",
    )


def _vectorized(_: Any) -> tuple[str, str, str]:
    return (
        "a numpy.vectorize object calls Python for each element",
        "decorate the scalar function with numba.njit, and pass a numba.njit function that calls it for each element "
        "in a "
        "loop",
        _COMPILED,
    )


def _cached(f: Any) -> tuple[str, str, str]:
    name = f.__name__
    return (
        f"{name} is wrapped by functools.lru_cache",
        f"pass the wrapped function: {name}.__wrapped__",
        "Numba does not compile functions with a cache of results",
    )


def _class(f: Any) -> tuple[str, str, str]:
    return f"{f.__qualname__} is a class", "pass a function that creates the instance and returns a float", _COMPILED


def _kernel(f: Any) -> tuple[str, str, str]:
    kernel = getattr(f, "kernel", f)
    name = kernel.py_func.__qualname__
    if kernel.targetoptions.get("device"):
        remedy = f"differentiate a kernel that calls it, with irad.cuda.grad, or pass the plain function {name}.py_func"
        return f"{name} is a device function for a GPU", remedy, _COMPILED
    return (
        f"{name} is a CUDA kernel",
        f"(a) irad.cuda.grad({name})[blocks, threads](…), with irad.Duplicated(x, dx) for arrays, or (b) irad.inspect, "
        "which shows its derivative",
        "many threads run a kernel, and it returns nothing; its arguments are differentiated",
    )


def of_numba_cuda_mlir(f: Any) -> bool:
    """True if something is a kernel, a device function or a configured launch of the package numba-cuda-mlir."""
    return type(f).__module__.partition(".")[0] == "numba_cuda_mlir"


def _kernel_of_mlir(f: Any) -> tuple[str, str, str]:
    kind = "device function" if getattr(f, "targetoptions", {}).get("device") else "kernel"
    return (
        f"{getattr(f, '__name__', 'this')} is a {kind} of numba-cuda-mlir",
        f"compile the {kind} with numba.cuda: `from numba import cuda` in place of `from numba_cuda_mlir import cuda`; "
        "its source can stay as it is, unless it uses extensions of numba-cuda-mlir",
        "irad differentiates the LLVM IR of numba.cuda; numba-cuda-mlir has its own compiler and types",
    )


def _library(f: Any) -> tuple[str, str, str]:
    name = spelled(f)
    arguments = ", ".join("xyzw"[: getattr(f, "nin", 1)])
    kind = type(f).__name__
    return (
        f"{name} is {_MADE_BY_NUMBA.get(kind, f'a library function (type {kind})')}",
        f"pass a function that calls it: lambda {arguments}: {name}({arguments})",
        _COMPILED,
    )


_KINDS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], tuple[str, str, str]]], ...]] = (
    (of_numba_cuda_mlir, _kernel_of_mlir),
    (lambda f: type(f).__name__ in _KERNELS, _kernel),
    (inspect.ismethod, _method),
    (lambda f: isinstance(f, functools.partial), _partial),
    (lambda f: isinstance(f, np.vectorize), _vectorized),
    (inspect.isclass, _class),
    (lambda f: hasattr(f, "cache_info") and hasattr(f, "__wrapped__"), _cached),
    (lambda f: isinstance(f, np.ufunc | types.BuiltinFunctionType) or hasattr(f, "__name__"), _library),
)


def _arguments(method: Any) -> str:
    names = list(inspect.signature(method.__func__).parameters)[1:]
    return "".join(f", {name}" for name in names)


def _shown(f: Any) -> str:
    text = " ".join(repr(f).split())
    return text if len(text) <= 40 else with_article(type(f).__name__)
