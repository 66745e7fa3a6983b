"""Compiled specialisations as bytes and back, with Numba's own way of doing that.

Input   a compile result.
Output  bytes that mean the same in another process, or `CannotStore`.
Method  Machine code refers to what is outside by symbol. Symbols of functions have a number that Numba counts in each
        process; `number_apart` makes it one that no other process uses, so that stored code never meets other code of
        the same name. What is left of this process in the code is looked for: addresses, symbols that only it has.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import itertools
import os
import pickle
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import llvmlite.binding as llvm
from numba.core import serialize
from numba.core.caching import CompileResultCacheImpl
from numba.core.compiler import CompileResult
from numba.core.itanium_mangler import mangle_identifier
from numba.core.runtime import rtsys

from irad.backend import vector_math
from irad.frontend import resident
from irad.frontend.disk import locks
from irad.frontend.disk.fingerprint import CannotStore, Fingerprint, digest_of, module_and_name, surroundings
from irad.frontend.frozen import history
from irad.frontend.frozen.values import is_of_library
from irad.frontend.generated import HOME, is_generated
from irad.frontend.linkable import MARKER, Linkable
from irad.frontend.numba import internals
from irad.frontend.numba.library import CPU
from irad.frontend.numba.target import target_context

# Files of compiled code: found by fingerprint, written as a whole, checked when they are read.
#
# A file is never changed. Its name says which specialisation it is of, and its fingerprint; so writers do
# not disturb each other, and of several versions of a function each has its own. Versions that are not in
# use are removed in the end: closures of a factory, and derivatives with respect to different arguments,
# are versions of one specialisation, too.

_MAGIC: Final = b"irad 1\n"
_SUFFIX: Final = ".irad"
_KEPT: Final = 8
_IN_USE: Final = 24 * 3600 * 10**9
"""For how many nanoseconds a version counts as in use after it was read."""


def folder_of(function: Callable[..., Any]) -> Path | None:
    """The folder in which Numba would cache a function, made if need be; None where it has no file."""
    try:
        return Path(CompileResultCacheImpl(function).locator.get_cache_path())
    except RuntimeError:  # says Numba: it has no file, or no folder can be written to
        return None


def path_in(folder: Path, name: str, specialisation: str, digest: str) -> Path:
    """The file of a specialisation.

    Args:
        folder: by `folder_of`.
        name: of the function, for those who list the folder.
        specialisation: what tells it from others of that name, whatever its content.
        digest: the fingerprint.
    """
    short = "".join(letter if letter.isalnum() else "_" for letter in name)[-60:]
    group = hashlib.sha256(f"{name}\0{specialisation}".encode()).hexdigest()[:16]
    return folder / f"irad.{short}.{group}.{digest[:32]}{_SUFFIX}"


def read(path: Path) -> bytes | None:
    """The content of a file; None where there is none, or it is damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    start = len(_MAGIC) + hashlib.sha256().digest_size
    content = data[start:]
    if data[:start] != _MAGIC + hashlib.sha256(content).digest():
        return None
    # Reading counts as use, which keeps a version from being removed; where the folder cannot be written to, it still
    # is read.
    with contextlib.suppress(OSError):
        os.utime(path)
    return content


def write(path: Path, content: bytes) -> bool:
    """Writes a file, or leaves everything as it was; says which."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(_MAGIC + hashlib.sha256(content).digest() + content)
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        return False
    _drop_oldest(path)
    return True


def _drop_oldest(path: Path) -> None:
    """Removes old files of a specialisation, and what killed processes left; others may do the same."""
    group, recent = path.name.rsplit(".", 2)[0], time.time_ns() - _IN_USE
    versions = _by_age(path.parent, f"{group}.*{_SUFFIX}")[:-_KEPT]
    left = (*_by_age(path.parent, f"{group}.*.tmp"), *_by_age(path.parent, f"{group}.*{locks.SUFFIX}"))
    for used, each in (*versions, *left):
        if used < recent:
            with contextlib.suppress(OSError):
                each.unlink()


def _by_age(folder: Path, pattern: str) -> list[tuple[int, Path]]:
    """Files with the time in nanoseconds at which each was last used; the oldest first."""
    found = []
    for each in folder.glob(pattern):
        with contextlib.suppress(OSError):
            found.append((each.stat().st_mtime_ns, each))
    return sorted(found)


# Numba's own numbers, from one on, stay below the least; of this many no two processes draw the same.
_LEAST, _SPAN = 10**12, 1 << 60
_NUMBER: Final = re.compile(r"B\d+v(\d+)")
_DYNAMIC: Final = "numba.dynamic.globals."
_UNRESOLVED: Final = ".numba.unresolved$"
_INTEGER: Final = re.compile(r"(?<![\w.$-])\d{5,15}(?![\w.])")
"""Whatever could be an address: LLVM writes the type of an operand in front of the first one only."""
_SIZE: Final = re.compile(r"[1-9]\d*")
_ARRAY_EXPRESSION: Final = re.compile(r"_ZN13_3cdynamic_3e\d+__numba_array_expr_")
"""Name of the function that Numba makes of an expression of arrays."""
_GENERATED: Final = f"_ZN13_3cdynamic_3e{mangle_identifier(HOME)}"
_WITHIN: Final = mangle_identifier("<locals>")
_OF_NUMBA: Final = ("numba_", "_numba_hashsecret_", "NRT_", "Py", "_Py", "llvm.")
# The first page is never mapped, so a smaller number cannot be an address.
_LEAST_ADDRESS: Final = 1 << 12
_IN_PYTHON: Final = re.compile(r'c"(irad\.[\w.]+)\\00"')
_FREE_OF_PROCESS: Final = ("irad.frontend.calls.exceptions", "irad.frontend.pointers")
"""Modules of irad of which stored code may call functions. Others take numbers that code was given when compiled; those
of failures in functions called through pointers are given when it runs, by tables that it knows by symbols.
"""
_apart: Final[list[bool]] = []


def number_apart() -> None:
    """From now on, Numba numbers the functions that it compiles in a way of this process's own."""
    if not _apart:
        _apart.append(True)
        _start_anew()
        # A forked process would give its functions the numbers that its parent gives others.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_start_anew)


def _start_anew() -> None:
    internals.number_functions(itertools.count(_LEAST + secrets.randbelow(_SPAN)))


def dumped(compiled: Any, found: Fingerprint) -> bytes:
    """A specialisation as bytes.

    Raises:
        CannotStore: it is bound to this process.
    """
    library: Any = compiled.library
    module = internals.compiled_module(library)
    if compiled.lifted or compiled.objectmode or compiled.reload_init or internals.runs_when_loaded(library):
        raise CannotStore("it runs Python code, or loops in parallel")
    _check_overloads(library, found)
    _check_names(module)
    _check_addresses(str(module))
    support = resident.named_in(" ".join(f"@{name}" for name in _outside(module)))
    _check_outside(module, support)
    descriptor: Any = compiled.fndesc
    # Numba's reduction empties both, and the specialisation is in use.
    kept = descriptor.typemap, descriptor.calltypes
    try:
        reduced = internals.reduced(compiled)
        return bytes(pickle.dumps((sorted(support), _outside(module), serialize.dumps(reduced))))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise CannotStore(f"a part of it cannot be written: {error}") from error
    finally:
        descriptor.typemap, descriptor.calltypes = kept


def loaded(content: bytes, context: Any, folder: Path) -> Any:
    """The specialisation that was stored; None where this process lacks what it calls.

    Args:
        content: by `dumped`.
        context: Numba's, of the target.
        folder: where the support that it calls is stored.
    """
    support, outside, reduced = pickle.loads(content)
    # Stored code calls Numba's runtime, which a process that has compiled nothing has not loaded yet.
    rtsys.initialize(context)
    resident.load(support, partial(_support, folder))
    # Functions of the C library for vectors, which this process may not have.
    if any(name.startswith("_ZGV") for name in outside) and not vector_math.is_loaded():
        return None
    if not all(name in support or _is_known(name) for name in outside):
        return None
    compiled = internals.rebuilt(context, pickle.loads(reduced))
    compiled.library.irad_is_stored = True
    return compiled


def is_stored(compiled: CompileResult) -> bool:
    """True if a specialisation was loaded from irad's cache."""
    return bool(getattr(compiled.library, "irad_is_stored", False))


def _support(folder: Path, name: str, text: str, environments: tuple[object, ...]) -> Any:
    """A library of the run-time support, loaded from the disk where it is there, and written to it otherwise."""
    path = path_in(folder, name, "", digest_of((*surroundings(), text)))
    content, lock = read(path), None
    if content is None:
        lock = locks.lock_of(path)
        content = read(path) if lock is None else None
    if content is not None:
        codegen: Any = target_context().codegen()
        return codegen.unserialize_library(pickle.loads(content))
    is_written = False
    try:
        library: Any = CPU.build(name, text, environments)
        is_written = write(path, pickle.dumps(library.serialize_using_object_code()))
    finally:
        if lock is not None:
            lock.release(is_stored=is_written)
    return library


def _outside(module: Any) -> list[str]:
    """The symbols that code takes from elsewhere."""
    every = itertools.chain(module.functions, module.global_variables)
    return sorted({each.name for each in every if each.is_declaration and not each.name.startswith("llvm.")})


def _is_known(name: str) -> bool:
    return llvm.address_of_symbol(name) is not None


def _check_names(module: Any) -> None:
    for each in itertools.chain(module.functions, module.global_variables):
        if each.name.startswith("_ZN") and not each.is_declaration:
            numbers = [int(number) for number in _NUMBER.findall(each.name)]
            # Numba counts from one in each process: where this is loaded, the name may be that of another function.
            if min(numbers, default=0) < _LEAST:
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


def _check_outside(module: Any, support: Iterable[str]) -> None:
    # Another process finds the symbols of the C library by name, but not those that this one gave to LLVM as addresses.
    process = ctypes.CDLL(None)
    for name in _outside(module):
        if not (name in support or name.startswith(_OF_NUMBA) or hasattr(process, name)):
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
        if not (is_covered or symbol.startswith(_GENERATED) or _ARRAY_EXPRESSION.match(symbol)):
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
