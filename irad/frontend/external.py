"""Symbols for functions that a program knows only by address: those of ctypes, cffi, Cython.

Input   the address of a function, and the Python object that gave it.
Output  a symbol under which LLVM finds that address. Rules are looked up by it, messages name the function by it.
Method  the first that applies:

    erf                               the process's own function of that name (the C library)
    scipy.special.jv                  what `scipy.special.cython_special` exports; `.f32` and `.i64` for its variants in
                                      single precision and with integer arguments, `.c128` where it is
                                      complex
    scipy.linalg.cython_blas.dgemm    what that module and `cython_lapack` export
    irad.external.<address>.<text>    anything else: the text says, in words, what the dynamic linker knows

Limit   Cython's functions end with an integer that says which overload calls them. A C type that leaves it out, as
        most users write it, has the plain symbol; one that has it ends in `.dispatch`.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import field
from typing import Any, Final

import llvmlite.binding as llvm

from irad.records import dataclass
from irad.ruleset.symbols import TABLE, external_symbol, symbols_of_function

_SCIPY: Final = "scipy.special.cython_special"
_LINALG: Final = ("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack")
_FUSED: Final = re.compile(r"^__pyx_fuse_\d+(?:_\d+)*_?(?P<name>[a-z]\w*)$")
_SIGNATURE: Final = re.compile(r"^(?P<result>.+?) \((?P<arguments>.*)\)$")
_FLAG: Final = "int __pyx_skip_dispatch"
_COMPLEX: Final = "__pyx_t_double_complex"
_WRITING: Final = re.compile(rf"^double(, double)*((, double \*)+|(, {_COMPLEX} \*)+)$")
_FADDEEVA: Final = "wofz"  # the one complex function that a rule calls
_VARIANTS: Final = {"double": "", "float": ".f32"}
_INTEGERS: Final = ("long", "Py_ssize_t")


@dataclass(frozen=True, slots=True)
class _Export:
    """A function that a Cython module exports; ``arity`` without the flag, -1 where it is not known."""

    symbol: str
    arity: int


@dataclass(slots=True)
class _Addresses:
    """Functions known by address. Extended as modules are imported, never shrunk."""

    library: dict[int, str] = field(default_factory=dict)
    exports: dict[int, _Export] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)

    def refresh(self) -> None:
        """Reads the C library once, and each Cython module once."""
        if not self.library:
            process = ctypes.CDLL(None)  # LLVM's own look-up gives stubs of llvmlite for some
            for symbol in _library_symbols():
                if hasattr(process, symbol):
                    self.library.setdefault(_address_of(getattr(process, symbol)), symbol)
        for name, module in list(sys.modules.items()):
            exported = getattr(module, "__dict__", {}).get("__pyx_capi__")  # getattr would wake lazy modules
            if name not in self.modules and isinstance(exported, dict):
                self.modules.add(name)
                for function, capsule in exported.items():
                    self.add(name, function, capsule)

    def add(self, module: str, function: str, capsule: object) -> None:
        signature = _capsule_name(capsule)
        if signature is None or "(" not in signature.decode():
            return  # a variable
        address = _capsule_pointer(capsule, signature)
        export = _known_export(module, function, signature.decode())
        if export is None:
            self.exports[address] = _Export(external_symbol(address, f"{module}.{function}"), -1)
        else:
            llvm.add_symbol(export.symbol, address)  # also for the partials of rules, which call it by this name
            self.exports[address] = export


_ADDRESSES: Final = _Addresses()


def symbol_of(address: int, source: object, arity: int) -> str:
    """The symbol of a function at an address; LLVM resolves it to that address from now on.

    Args:
        address: address of its code.
        source: the Python object that represents the function.
        arity: the number of arguments that it is called with.
    """
    _ADDRESSES.refresh()
    symbol = _ADDRESSES.library.get(address) or _own_name(address, source)
    if symbol is not None:
        return symbol
    export = _ADDRESSES.exports.get(address)
    if export is None:
        symbol = external_symbol(address, _described(address, source))
    elif arity == export.arity + 1:
        symbol = f"{export.symbol}.dispatch"
    elif export.arity in (arity, -1):
        symbol = export.symbol
    else:
        symbol = external_symbol(address, f"{export.symbol} with {arity} arguments")
    llvm.add_symbol(symbol, address)
    return symbol


def scipy_functions() -> dict[str, int]:
    """Symbols of SciPy's special functions and their numbers of arguments; LLVM finds them from now on.

    Empty until `scipy.special.cython_special` is imported.
    """
    _ADDRESSES.refresh()
    known = {export.symbol: export.arity for export in _ADDRESSES.exports.values() if export.arity >= 0}
    return {symbol: arity for symbol, arity in known.items() if symbol.startswith("scipy.special.")}


def finds_linear_algebra(name: str) -> bool:
    """True if a symbol is an export of SciPy's BLAS or LAPACK; LLVM finds it from now on."""
    module = name.rpartition(".")[0]
    if module not in _LINALG:
        return False
    importlib.import_module(module)
    _ADDRESSES.refresh()
    return llvm.address_of_symbol(name) is not None


def _library_symbols() -> Iterator[str]:
    """The symbols of the C library that elementwise rules know."""
    for name in TABLE:
        for symbol, _ in symbols_of_function(name):
            if not symbol.startswith(("llvm.", "numba_", "__nv_", "irad_", "scipy.")):
                yield symbol


def _address_of(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def _own_name(address: int, source: object) -> str | None:
    """The name that the object states, where LLVM finds that very function under it."""
    name = getattr(source, "__name__", None)
    return name if isinstance(name, str) and name and llvm.address_of_symbol(name) == address else None


# --- Cython -----------------------------------------------------------------------------------------------------------


def _capsule_name(capsule: object) -> bytes | None:
    get = ctypes.pythonapi.PyCapsule_GetName
    get.restype, get.argtypes = ctypes.c_char_p, [ctypes.py_object]
    name: bytes | None = get(capsule)
    return name


def _capsule_pointer(capsule: object, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address: int = get(capsule, name)
    return address


def _known_export(module: str, function: str, signature: str) -> _Export | None:
    """The symbol of an export of which rules may speak; None for others."""
    if module == _SCIPY:
        return _scipy_export(function, signature)
    if module in _LINALG:
        return _Export(f"{module}.{function}", signature.count(",") + 1)
    return None


def _scipy_export(function: str, signature: str) -> _Export | None:
    """The symbol of a real function, of one that writes its results, or of the Faddeeva function; None for others."""
    name = _FUSED.sub(r"\g<name>", function)
    parts = _SIGNATURE.match(signature)
    if parts is None:
        return None
    arguments = [text.strip() for text in parts["arguments"].split(",")]
    if parts["result"] == "void" and _WRITING.match(parts["arguments"]):
        return _Export(f"scipy.special.{name}", len(arguments))
    if arguments.pop() != _FLAG:
        return None
    if name == _FADDEEVA and parts["result"] == _COMPLEX and arguments == [_COMPLEX]:
        return _Export(f"scipy.special.{name}.c128", 1)
    variant = _VARIANTS.get(parts["result"])
    if variant is not None and all(text == parts["result"] for text in arguments):
        return _Export(f"scipy.special.{name}{variant}", len(arguments))
    if parts["result"] == "double" and {"double"} < {"double", *arguments} <= {"double", *_INTEGERS}:
        return _Export(f"scipy.special.{name}.i64", len(arguments))
    return None


# --- the dynamic linker -----------------------------------------------------------------------------------------------


class _Info(ctypes.Structure):
    """`Dl_info`."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _described(address: int, source: object) -> str:
    """A function in words: its name and its library, as far as they are known."""
    name = getattr(source, "__name__", None)
    info = _linked(address)
    if info is not None and info.symbol and info.address == address:
        name = info.symbol.decode(errors="replace")
    file = os.path.basename(info.file.decode(errors="replace")) if info is not None and info.file else ""
    what = name if isinstance(name, str) and name else "a C function whose name is not known"
    return f"{what} of {file}" if file else what


def _linked(address: int) -> Any:
    """The dynamic linker's information about an address."""
    look_up = getattr(ctypes.CDLL(None), "dladdr", None)
    if look_up is None:
        return None
    look_up.argtypes, look_up.restype = [ctypes.c_void_p, ctypes.POINTER(_Info)], ctypes.c_int
    info = _Info()
    return info if look_up(address, ctypes.byref(info)) else None
