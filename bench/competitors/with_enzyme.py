"""Enzyme on C++: the loops of the primals, compiled and differentiated in process by enzyme-ad's `cpp_call` (clang).

A case is a file in ``enzyme/``, or a text of its own, with ``loss(arguments..., double *out)``. Arrays, and numbers to
differentiate with respect to, are pointers; other numbers are constants of the program, and so are the shapes,
``shape[argument][axis]``.
The reverse pass is asked for inside of C++, by ``__enzyme_autodiff``: then forward and reverse sweep are compiled
together, and nothing is differentiated with respect to data. With the setting "shapes" the shapes are known only when
the program runs, as they are to Numba; "fast" is clang's `-ffast-math`; "libmvec" lets clang call glibc's vectors of
elementary functions, too.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, Final

import jax
import llvmlite.binding as llvm
import numpy as np
from enzyme_ad.jax import cpp_call

from bench.case import Case
from bench.competitors import Found, Prepared

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

SOURCES = Path(__file__).parent / "enzyme"

_FAST: Final = (
    *("-ffast-math", "-menable-no-infs", "-menable-no-nans", "-fapprox-func", "-funsafe-math-optimizations"),
    *("-fno-signed-zeros", "-mreassociate", "-freciprocal-math", "-ffp-contract=fast"),
)
FLAGS: Final = {"": (), "shapes": (), "fast": _FAST, "libmvec": (*_FAST, "-fveclib=libmvec")}


def warm_up() -> None:
    """Loads JAX; the compiler itself is part of the library."""
    jax.block_until_ready(jax.jit(lambda x: x + 1.0)(np.ones(3)))


def prepare(case: Case, args: tuple[Any, ...], setting: str) -> Prepared | None:
    """Arrays are JAX's before."""
    source = case.source or _file_of(case)
    if source is None:
        return None
    tensors = {i: np.atleast_1d(a) for i, a in enumerate(args) if i in case.argnums or isinstance(a, np.ndarray)}
    given = [jax.numpy.asarray(tensor) for tensor in tensors.values()]
    outputs = [jax.core.ShapedArray((1,), np.float64)]
    outputs += [jax.core.ShapedArray(tensors[i].shape, np.float64) for i in case.argnums]
    shapes = _shapes(args, is_known=setting != "shapes")
    text = (SOURCES / "prelude.h").read_text() + shapes + source + _entry(case, args, tensors)
    flags = ("-O3", "-vectorize-loops", "-vectorize-slp", "-target-cpu", llvm.get_host_cpu_name(), *FLAGS[setting])
    if setting == "libmvec":
        ctypes.CDLL("libmvec.so.1", mode=ctypes.RTLD_GLOBAL)  # where the linker in the process looks for its functions

    @jax.jit
    def gradient(*arrays: Any) -> Any:
        return cpp_call(*arrays, out_shapes=outputs, source=text, fn="entry_of_case", argv=flags)

    def read(result: Any) -> Found:
        value, *gradients = map(np.asarray, result)
        pairs = zip(gradients, case.argnums, strict=True)
        return float(value[0]), tuple(gradient.reshape(np.shape(args[i])) for gradient, i in pairs)

    return Prepared(lambda: jax.block_until_ready(gradient(*given)), read)


def _file_of(case: Case) -> str | None:
    file = SOURCES / f"{case.name.replace('-', '_')}.cpp"
    return file.read_text() if file.exists() else None


def _shapes(args: tuple[Any, ...], *, is_known: bool) -> str:
    rows = (", ".join(map(str, np.shape(arg) or (1,))) for arg in args)
    # Of a symbol that others can see, LLVM does not know what it holds.
    table = "constexpr long shape" if is_known else "long shape"
    return table + "[][3] = {" + ", ".join(f"{{{row}}}" for row in rows) + "};\n"


def _entry(case: Case, args: tuple[Any, ...], tensors: dict[int, Any]) -> str:
    """Entry that XLA calls: the value and the gradients first, then the arrays."""
    names = ["value", *(f"bar{i}" for i in case.argnums), *(f"arg{i}" for i in tensors)]
    passed = []
    for i, arg in enumerate(args):
        if i in case.argnums:
            passed.append(f"enzyme_dup, &arg{i}, &bar{i}")
        else:
            passed.append(f"enzyme_const, {f'&arg{i}' if i in tensors else f'{_type_of(arg)}({arg!r})'}")
    parameters = ", ".join(f"{'const ' if n.startswith('arg') else ''}T_{n} &{n}" for n in names)
    cleared = "".join(f"    __builtin_memset((void *)&bar{i}, 0, sizeof bar{i});\n" for i in case.argnums)
    return (
        f"template <{', '.join(f'class T_{name}' for name in names)}>\n"
        f"void entry_of_case({parameters}) {{\n{cleared}    double seed = 1.0;\n"
        f"    __enzyme_autodiff((void *)loss, {', '.join(passed)}, enzyme_dup, &value, &seed);\n}}\n"
    )


def _type_of(number: float) -> str:
    """The type in C++ of a number that is constant."""
    return "long" if isinstance(number, int) else "double"
