"""Compiled specialisations as bytes, with Numba's own way of doing that.

Input   a compile result.
Output  bytes that mean the same in another process (`stored.loaded`), or `CannotStore`.
Method  Machine code refers to what is outside by symbol. What is left of this process in the code is looked for:
        addresses, symbols that only it has.
"""

from __future__ import annotations

import ctypes
import itertools
import pickle
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from numba.core import serialize
from numba.core.itanium_mangler import mangle_identifier

from irad.frontend import external, resident
from irad.frontend.calls.watch_hooks import descriptions_in
from irad.frontend.custom.workspace_pools import pool_at
from irad.frontend.disk.fingerprint import CannotStore, Fingerprint, module_and_name, place_in_library
from irad.frontend.disk.stored import LEAST, Object
from irad.frontend.frozen import history
from irad.frontend.frozen.values import is_of_library
from irad.frontend.generated import HOME, is_generated
from irad.frontend.inner import inner_at
from irad.frontend.linkable import Linkable
from irad.frontend.numba import internals
from irad.frontend.numba.internals import OBJECT, OF_THREADS
from irad.frontend.numba.library import MARKER

_NUMBER: Final = re.compile(r"B\d+v(\d+)")
_DYNAMIC: Final = "numba.dynamic.globals."
_UNRESOLVED: Final = ".numba.unresolved$"
_INTEGER: Final = re.compile(r"(?<![\w.$-])\d{5,15}(?![\w.])")
"""Whatever could be an address: LLVM writes the type of an operand in front of the first one only."""
_OBJECT: Final = re.compile(rf"^@({re.escape(OBJECT)}\w+) = .*\bptr inttoptr \(i64 (\d+) to ptr\).*$", re.MULTILINE)
_SIZE: Final = re.compile(r"[1-9]\d*")
_PART: Final = re.compile(r"_ZN13_3cdynamic_3e\d+__numba_(array_expr|parfor_gufunc)_")
"""Name of the function that Numba makes of a part of another: of an expression of arrays, or the body of a loop."""
_GENERATED: Final = f"_ZN13_3cdynamic_3e{mangle_identifier(HOME)}"
_WITHIN: Final = mangle_identifier("<locals>")
_OF_NUMBA: Final = ("numba_", "_numba_hashsecret_", "NRT_", "Py", "_Py", "llvm.")
# The first page is never mapped, so a smaller number cannot be an address.
_LEAST_ADDRESS: Final = 1 << 12
_IN_PYTHON: Final = re.compile(r'c"(irad\.[\w.]+)\\00"')
_FREE_OF_PROCESS: Final = (
    "irad.frontend.calls.exceptions",
    "irad.frontend.calls.watch_hooks",
    "irad.frontend.pointers",
)
"""Modules of irad of which stored code may call functions. Others take numbers that code was given when compiled; those
of failures in functions called through pointers are given when it runs, by tables that it knows by symbols, and those
of watched calls are made of what they stand for, which is stored as well.
"""


def dumped(compiled: Any, found: Fingerprint, beside: object) -> bytes:
    """A specialisation as bytes.

    Args:
        compiled: the specialisation.
        found: the fingerprint of its program.
        beside: what goes with it.

    Raises:
        CannotStore: it is bound to this process.
    """
    library: Any = compiled.library
    module = internals.compiled_module(library)
    before = {*compiled.reload_init, *internals.run_when_loaded(library)}
    if compiled.lifted or compiled.objectmode or before - {internals.start_threads}:
        raise CannotStore("it runs Python code")
    _check_overloads(library, found)
    _check_names(module)
    text = str(module)
    objects = [_object(symbol, int(address), found) for symbol, address in _OBJECT.findall(text)]
    _check_addresses(_OBJECT.sub("", text))
    outside = _outside(module)
    support, watched = resident.compiled_of(outside), descriptions_in(text, outside)
    tables = () if watched is None else (symbol for symbol, *_ in watched.tables)
    _check_outside(outside, {*support, *tables, *OF_THREADS})
    descriptor: Any = compiled.fndesc
    # Numba's reduction empties both, and the specialisation is in use.
    kept = descriptor.typemap, descriptor.calltypes
    try:
        reduced = internals.reduced(compiled)
        return bytes(pickle.dumps((beside, watched, support, outside, objects, serialize.dumps(reduced))))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise CannotStore(f"a part of it cannot be written: {error}") from error
    finally:
        descriptor.typemap, descriptor.calltypes = kept


def _object(symbol: str, address: int, found: Fingerprint) -> Object:
    """An object that code has the address of, by the function that it is or belongs to.

    Raises:
        CannotStore: it is neither a function of the fingerprint or of irad, nor the workspace of a rule for one.
    """
    pool = pool_at(address)
    for number, dispatcher in enumerate(found.dispatchers):
        if id(dispatcher) == address:
            return Object(symbol, address, number, is_pool=False)
        if pool is not None and pool.target in (dispatcher, dispatcher.py_func):
            return Object(symbol, address, number, is_pool=True)
    inner = inner_at(address)
    place = place_in_library(inner if pool is None else pool.target)
    # Nobody else can get at an inner function without a name, and compiled code has no use for its address.
    if place is not None or inner is not None:
        return Object(symbol, address, place, is_pool=pool is not None)
    raise CannotStore(f"it has the address of an object of this process, {address:#x}")


def _outside(module: Any) -> list[str]:
    """The symbols that code takes from elsewhere."""
    every = itertools.chain(module.functions, module.global_variables)
    return sorted({each.name for each in every if each.is_declaration and not each.name.startswith("llvm.")})


def _check_names(module: Any) -> None:
    for each in itertools.chain(module.functions, module.global_variables):
        if each.name.startswith("_ZN") and not each.is_declaration:
            numbers = [int(number) for number in _NUMBER.findall(each.name)]
            # Numba counts from one in each process: where this is loaded, the name may be that of another function.
            if min(numbers, default=0) < LEAST:
                raise CannotStore(f"{each.name} was compiled before irad's cache was switched on")


def _check_addresses(text: str) -> None:
    found = addresses_in(text)
    if found is not None:
        raise CannotStore(found)
    for module in _IN_PYTHON.findall(text):
        if module not in _FREE_OF_PROCESS:
            raise CannotStore(f"it calls {module}, which knows objects of this process by numbers")


def addresses_in(text: str) -> str | None:
    """Sentence about what LLVM text holds that only this process has; None if it holds nothing of the kind."""
    if any(name != MARKER for name in re.findall(rf"@({re.escape(_DYNAMIC)}[\w.$]+)", text)) or _UNRESOLVED in text:
        return "it has addresses of objects of this process"
    mapped = tuple(_mapped())
    for number in set(_INTEGER.findall(text)):
        if any(start <= int(number) < end for start, end in mapped):
            return f"it has an address of this process, {int(number):#x}"
    return None


def _mapped() -> Iterator[tuple[int, int]]:
    """The memory of this process; all there could be, where the system does not tell."""
    if sys.platform != "linux":
        yield _LEAST_ADDRESS, 1 << 64
        return
    with open("/proc/self/maps", encoding="ascii", errors="replace") as lines:
        for line in lines:
            start, _, end = line.split(" ", 1)[0].partition("-")
            yield int(start, 16), int(end, 16)


def _check_outside(outside: Iterable[str], known: Collection[str]) -> None:
    # Another process finds the symbols of the C library by name, but not those that this one gave to LLVM as addresses.
    process = ctypes.CDLL(None)
    for name in outside:
        found_again = name.startswith(_OF_NUMBA) or external.finds_linear_algebra(name)
        if not (name in known or found_again or hasattr(process, name)):
            raise CannotStore(f"it calls {name}, which this process has the address of")


def _check_overloads(library: Any, found: Fingerprint) -> None:
    """Refuses functions of users that were compiled and that the fingerprint does not cover."""
    linked = internals.with_all_linked(library)
    wrappers = (function for function, _ in history.compilations() if is_generated(function))
    known = {_symbol_of(each) for each in (*found.functions, *wrappers)}
    symbols = {symbol for each in linked if isinstance(each, Linkable) for symbol in each.program_symbols}
    for each in linked:
        if not isinstance(each, Linkable):
            symbols.update(function.name for function in each.get_defined_functions())
    for symbol in sorted(symbols):
        name, module = _function_of(symbol)
        outer = "" if name is None else name.partition(_WITHIN)[0]  # its code is part of what it is in
        is_covered = name is None or name in known or outer in known or is_of_library(module)
        if not (is_covered or symbol.startswith(_GENERATED) or _PART.match(symbol)):
            raise CannotStore(f"it calls {symbol}, which is not found from the names in it")


def _symbol_of(function: Any) -> str:
    """Beginning of the symbols of its specialisations."""
    return f"_Z{mangle_identifier(module_and_name(function))}".removesuffix("E")


def _function_of(symbol: str) -> tuple[str | None, str]:
    """The part of a symbol that stands for a function, and its outermost module; None for the wrappers for C."""
    parts, end = [], len("_ZN")
    if not symbol.startswith("_ZN"):
        return None, ""
    while (size := _SIZE.match(symbol, end)) is not None:
        end = size.end() + int(size[0])
        parts.append(symbol[size.end() : end])
    is_wrapper = parts[:1] in (["cpython"], ["numba_cfunc"]) or symbol.startswith("_ZN08NumbaEnv")
    return (None, "") if is_wrapper or not parts else (symbol[:end], parts[0])
