"""From a kernel of `numba.cuda` and argument types to its program. Start here."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from irad.backend.cuda.kernel import KernelModule
from irad.compiling import step
from irad.errors import SourceLocation
from irad.frontend.cuda import inside, numba_cuda
from irad.frontend.cuda.counters import restart_counters
from irad.frontend.cuda.dialect import to_dialect
from irad.frontend.cuda.signatures import types_for
from irad.frontend.custom import catalogue
from irad.kernel.inside import expand


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """An argument of a kernel.

    Attributes:
        name: as the user wrote it.
        type: Numba's.
        flattened: names of the LLVM parameters, in order. Those of an array are meminfo, parent, nitems, itemsize,
            data, then an extent for each axis, then a stride in bytes for each; those of a tuple or of a complex number
            are those of its parts. A record is one pointer.
    """

    name: str
    type: Any
    flattened: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """What a kernel takes: the LLVM parameters are those of the arguments, in order."""

    parameters: tuple[KernelParameter, ...]

    @property
    def types(self) -> tuple[Any, ...]:
        """Numba's types of the arguments."""
        return tuple(each.type for each in self.parameters)


@dataclass(frozen=True, slots=True)
class KernelProgram:
    """A kernel for given argument types.

    Attributes:
        module: its text.
        signature: what it takes.
        source: where it is defined.
        raises: whether the address of a record of what it raises follows its arguments (`exceptions.py`).
    """

    module: KernelModule
    signature: KernelSignature
    source: SourceLocation
    raises: bool = False


_PROGRAMS: Final[weakref.WeakKeyDictionary[Any, dict[Any, KernelProgram]]] = weakref.WeakKeyDictionary()


def load_kernel(
    kernel: Callable[..., Any], argument_types: tuple[Any, ...], *, fastmath: bool | None = None
) -> KernelProgram:
    """The program of a kernel: compiled by Numba once, then remembered as long as the kernel lives.

    Args:
        kernel: what `numba.cuda.jit` made, or a plain function.
        argument_types: Numba's.
        fastmath: in place of what the decorator says; device functions keep to theirs.

    Raises:
        numba.core.errors.NumbaError: Numba cannot compile it; the error is Numba's own.
        UnsupportedError: it uses an operation of the GPU that irad does not know.
        SignatureError: it has signatures, and none of them fits.
    """
    options = numba_cuda.options_of(kernel)
    argument_types = types_for(kernel, argument_types)
    if fastmath is not None:
        options = replace(options, fastmath=fastmath)
    known = _PROGRAMS.setdefault(kernel, {})
    key = argument_types, options, catalogue.epoch()  # device functions may have rules
    if key not in known:
        known[key] = _load(kernel, argument_types, options)
    return known[key]


def compile_kernel(
    kernel: Callable[..., Any], argument_types: tuple[Any, ...], *, fastmath: bool | None = None
) -> KernelModule:
    """The text of a kernel (`load_kernel`)."""
    return load_kernel(kernel, argument_types, fastmath=fastmath).module


def _load(kernel: Any, argument_types: tuple[Any, ...], options: numba_cuda.KernelOptions) -> KernelProgram:
    function = getattr(kernel, "py_func", kernel)
    source = SourceLocation.of(function)
    assert source is not None, "a kernel is a function of Python"
    with step(f"compiling {source.function} with Numba"):
        lowered = numba_cuda.lower(function, argument_types, options)
        text, names, raises = to_dialect(lowered, options)
        text, symbol = restart_counters(text, lowered.symbol)
        module = expand(KernelModule(text, symbol, options.fastmath, contract=True), inside.WANTED)
    rest = iter(names)
    parameters = (
        KernelParameter(name, type_, tuple(islice(rest, count)))
        for (name, type_), count in zip(lowered.arguments, lowered.counts, strict=True)
    )
    return KernelProgram(module, KernelSignature(tuple(parameters)), source, raises)
