"""`irad.export`: functions and their derivatives as a library for C, C++ and Fortran, and its header."""

from __future__ import annotations

import inspect
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import llvmlite.binding as llvm
from numba.core import sigutils, types
from numba.core.types import Type
from numba.core.typing import Signature

import irad
from irad.c_library.entries import entry_of
from irad.c_library.interface import Prototype, header_text, identifier, returned
from irad.c_library.program import OK, REFUSED, UNKNOWN, Entry, Library, is_in_c, library_of
from irad.compiling import step
from irad.errors import BackendError, SignatureError, SourceLocation
from irad.frontend.calls.raising import public
from irad.frontend.numba.private import compiler_lock
from irad.raw.link import machine_for

_Signature: TypeAlias = str | tuple[Type, ...] | Signature
_SUFFIXES: Final = (".so", ".dylib", ".a", ".o")
_LAPACK: Final[Sequence[tuple[str, ...]]] = (("-lopenblas",), ("-llapack", "-lblas"), ("-framework", "Accelerate"))
_KNOWN: Final[Mapping[str, Sequence[str]]] = {
    "generic": (),
    "x86-64": ("sse2",),
    "x86-64-v2": ("sse2",),
    "x86-64-v3": ("sse2", "avx2"),
    "x86-64-v4": ("sse2", "avx2", "avx512f"),
}
"""Names that need not be asked for, with what vector variants of functions need."""
_ASK: Final = """
import sys, llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(cpu=sys.argv[1])
"""


@public
def export(
    f: Callable[..., Any] | Mapping[str, tuple[Callable[..., Any], _Signature]],
    signature: _Signature | None = None,
    path: str | os.PathLike[str] = "",
    *,
    name: str | None = None,
    cpu: str = "host",
    header: str | os.PathLike[str] | None = None,
) -> Path:
    """Compiles functions to a library for C, C++ and Fortran, and writes its header.

    The library needs neither Python nor Numba. Numbers are passed by value; complex numbers, arrays and tuples as
    structs by address; the result is stored at the address of the last argument. A function returns 0, or a status for
    the exception that it raised, whose text ``LIBRARY_message()`` gives. Arrays of the caller are used in place;
    returned arrays belong to the caller, who frees them. The header says all this for each function.

    Args:
        f: a function, plain or of ``numba.njit``, or a derivative such as ``irad.grad(f)``; or several, by their names
            in C, each with its signature: ``{"energy": (f, sig), "force": (irad.grad(f), sig)}``.
        signature: types of the arguments as Numba writes them: ``"float64(float64[::1])"``, ``"(float64[::1],)"`` or a
            tuple of types. None if ``f`` holds signatures.
        path: path of the library. Its suffix gives its kind: ``.so`` (shared, ``.dylib`` on macOS), ``.a`` (static) or
            ``.o``.
        name: name of the function in C; by default that of ``f``.
        cpu: the processor, by LLVM's name: ``"x86-64"``, ``"x86-64-v3"``, ``"neoverse-n1"``; ``"host"`` for this
            machine with all its features.
        header: path of the header; by default beside the library, with its name.

    Returns:
        The path of the library.

    Raises:
        SignatureError: a type has no counterpart in C, or the path or a name is invalid.
        BackendError: a function calls code that exists only in a process with Python, or there is no linker.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> import tempfile
        >>> from numba import njit
        >>> @njit
        ... def energy(x, stiffness):
        ...     return 0.5 * stiffness * np.sum((x[1:] - x[:-1]) ** 2)
        >>> signature = "(float64[::1], float64)"
        >>> functions = {"energy": (energy, signature), "force": (irad.grad(energy), signature)}
        >>> library = irad.export(functions, path=tempfile.mkdtemp() + "/spring.o")
        >>> print(*(line for line in library.with_suffix(".h").open() if " force(" in line))
        /* force(x: array(float64, 1d, C), stiffness: float64) -> array(float64, 1d, C) */
         int32_t force(const irad_f64_1d *x, double stiffness, irad_f64_1d *result);
        <BLANKLINE>
    """
    target = Path(path)
    library = target.stem.removeprefix("lib") if target.suffix in _SUFFIXES else ""
    if not library:
        raise SignatureError(
            f"a library cannot be written to {str(path)!r}",
            'pass a path such as "libmodel.so", "libmodel.a" or "model.o"',
            "its suffix says whether the library is shared, static or an object file",
        )
    functions = _functions(f, signature, name)
    prefix = identifier(library)
    entries = [_entry(each, prefix, *given) for each, given in functions.items()]
    # The options by which LLVM makes vectors are those of the process.
    with compiler_lock(), step(f"exporting {', '.join(functions)}"):
        made = library_of(entries, prefix, *_machine(cpu))
        _write(made, target, library)
    text = header_text(library, made.prototypes, _statuses(made), _head(made, target, cpu))
    Path(header if header is not None else target.with_name(f"{library}.h")).write_text(text, encoding="utf-8")
    return target


def _functions(f: Any, signature: Any, name: str | None) -> dict[str, tuple[Any, tuple[Type, ...], Type | None]]:
    """The functions by name, with the types of their arguments, and of the result where that is stated."""
    if isinstance(f, Mapping):
        if signature is not None or name is not None:
            raise SignatureError(
                "signature or name is given together with a dictionary of functions",
                "write {name: (function, signature)}",
                "each function has its own",
            )
        given = dict(f)
    else:
        given = {name or getattr(f, "__name__", ""): (f, signature)}
    found = {}
    for each, pair in given.items():
        if not isinstance(each, str) or identifier(each) != each:
            raise SignatureError(
                f"{each!r} is not a name for a function of C",
                'pass name="…", of ASCII letters, digits and underscores',
                "it is the symbol that C programs link",
            )
        if is_in_c(each):
            raise SignatureError(
                f"{each} is the name of a function of the C library",
                'pass name="…", or write another name in the dictionary',
                "programs that link the exported function would call it in place of that one",
            )
        if not (isinstance(pair, tuple) and len(pair) == 2 and callable(pair[0])):
            raise SignatureError(
                f"{each} is not given as a function and its signature",
                'pass a function and a signature such as "(float64[::1], float64)"',
                "C needs to know the types",
            )
        found[each] = pair[0], *_types(each, pair[1])
    return found


def _types(name: str, signature: Any) -> tuple[tuple[Type, ...], Type | None]:
    try:
        arguments, result = sigutils.normalize_signature(signature)
    except Exception as error:  # of whatever class evaluating the text gives
        raise SignatureError(
            f"{signature!r}, the signature of {name}, is not one of Numba",
            'write the types of the arguments, as in "(float64[::1], int64)"; of a single one "(float64[::1],)"',
            "C needs to know the types",
        ) from error
    return tuple(types.unliteral(each) for each in arguments), result


def _entry(name: str, prefix: str, function: Any, parameters: tuple[Type, ...], result: Type | None) -> Entry:
    if name in (f"{prefix}_message", f"{prefix}_free"):
        raise SignatureError(
            f"{name} is the name of a function that every library {prefix} has",
            "choose another",
            "in C, a name belongs to one function",
        )
    is_compiled = hasattr(function, "py_func") or hasattr(function, "_numba_type_")
    if not (is_compiled or inspect.isfunction(function)):
        raise SignatureError(
            f"{name} is of the type {type(function).__name__}",
            "pass a Python function, a numba.njit function, or a derivative of one",
            "Numba compiles Python functions",
        )
    compiled = function if is_compiled else irad.jit(function)
    dispatcher, kinds, found = entry_of(compiled, parameters, name)
    names = _names(function, len(parameters))

    def prototype() -> Prototype:
        if result is not None and returned(result) != found[0]:
            raise SignatureError(
                f"{name} returns {found[0]}, not {result} as its signature says",
                "leave the type of the result out of the signature, or convert the result in the function",
                "the C function returns what the Python function returns",
            )
        # Numba's names of types hold commas and brackets, but nothing that would end a comment.
        listed = ", ".join(f"{each}: {type_}" for each, type_ in zip(names, parameters, strict=True))
        return Prototype(name, tuple(zip(names, parameters, strict=True)), found[0], f"{name}({listed}) -> {found[0]}")

    return Entry(name, dispatcher, kinds, prototype, SourceLocation.of(_user_function(function)))


def _user_function(function: Any) -> Any:
    while hasattr(function, "primal"):
        function = function.primal
    return inspect.unwrap(getattr(function, "py_func", function))


def _names(function: Any, count: int) -> list[str]:
    """Names of the parameters, as far as the function tells."""
    try:
        parameters = list(inspect.signature(getattr(function, "py_func", function)).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = [identifier(each.name) for each in parameters if each.kind is not each.VAR_POSITIONAL][:count]
    return [*named, *(f"x{index}" for index in range(len(named), count))]


# ------------------------------------------------------------------------------------------------ the processor


def _machine(cpu: str) -> tuple[Any, frozenset[str]]:
    """LLVM's machine for a processor, and those of its features that vector variants of functions need.

    Raises:
        BackendError: LLVM does not know it.
    """
    triple, features = llvm.get_process_triple(), ""
    known = _KNOWN.get(cpu, ())
    if cpu == "host":
        cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        known = [word[1:] for word in features.split(",") if word.startswith("+")]
    elif cpu not in _KNOWN:
        # Of an unknown name LLVM says so on standard error, and takes any processor.
        asked = subprocess.run([sys.executable, "-c", _ASK, cpu], capture_output=True, text=True, check=False)
        if asked.returncode or asked.stderr:
            raise BackendError(
                f"LLVM does not know the processor {cpu!r}",
                'pass "host", "x86-64-v3", or another name that clang accepts as -march or -mcpu',
                (asked.stderr.strip().splitlines() or ["it is not one of this architecture"])[0],
            )
    if triple.startswith("x86_64"):
        # Instructions that gather are slower than single loads on most of these processors.
        features = ",".join(filter(None, (features, "+prefer-no-gather,+prefer-no-scatter")))
    return machine_for(triple, 3, cpu, features), frozenset(known)


# ------------------------------------------------------------------------------------------------ files


def _write(made: Library, target: Path, library: str) -> None:
    code = made.machine.emit_object(made.module)
    if target.suffix == ".o":
        target.write_bytes(code)
        return
    with tempfile.TemporaryDirectory() as folder:
        object_ = Path(folder) / f"{library}.o"
        object_.write_bytes(code)
        finished = Path(folder) / target.name
        if target.suffix == ".a":
            _run(("AR", "ar", "ranlib"), "archiver", ["rcs", str(finished), str(object_)])
        else:
            _link(object_, finished, made.needs_lapack)
        # A program that has the old file mapped keeps it.
        shutil.copyfile(finished, target.with_name(f".{target.name}.new"))
        target.with_name(f".{target.name}.new").replace(target)


def _link(object_: Path, finished: Path, needs_lapack: bool) -> None:
    """Makes a shared library.

    Raises:
        BackendError: there is no linker, or no BLAS that it finds.
    """
    arguments = ["-shared", "-o", str(finished), str(object_)]
    if sys.platform == "linux":
        # Threads that end later still call the library, to free the memory that is kept for them.
        arguments += ["-Wl,-z,nodelete", "-Wl,-z,defs", f"-Wl,-soname,{finished.name}"]
    failed = None
    for libraries in _LAPACK if needs_lapack else ((),):
        try:
            return _run(("CC", "cc", "gcc", "clang"), "linker", [*arguments, *libraries, "-lpthread", "-lm"])
        except BackendError as error:
            if not needs_lapack or "there is no linker" in error.problem:
                raise
            failed = failed or error
    raise BackendError(
        "no BLAS and LAPACK found to link against",
        "(a) install a development package (Debian: libopenblas-dev, or liblapack-dev) or (b) export a .a or .o file "
        "and link it to the library that the program uses",
        "the function calls NumPy's linear algebra",
    ) from failed


def _run(names: Sequence[str], what: str, arguments: Sequence[str]) -> None:
    """Runs a tool: the one that the environment names first, or that is found.

    Raises:
        BackendError: there is none, or it fails.
    """
    variable, *known = names
    found = next(filter(None, map(shutil.which, (os.environ.get(variable) or known[0], *known))), None)
    if found is None:
        raise BackendError(
            f"there is no {what} ({', '.join(known)})",
            f"(a) install a C compiler, or name one in the environment variable {variable}, or (b) export a .o file",
            "irad writes object files; a library is put together by the system's tools",
        )
    done = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BackendError(
            f"{Path(found).name} fails: {done.stderr.strip()[:500]}",
            "see its message",
            "it was run on the code that irad generated",
        )


# ------------------------------------------------------------------------------------------------ the header


def _statuses(made: Library) -> dict[str, tuple[int, str]]:
    """The enumerators, each with its number and meaning."""
    found = {"OK": (OK, "the result is stored"), "UNKNOWN": (UNKNOWN, "it ended in a way that has no text")}
    for name, number in sorted(made.statuses.items(), key=lambda pair: pair[1]):
        words = "".join(f"_{c}" if c.isupper() and p.islower() else c for p, c in zip(f"_{name}", name, strict=False))
        if number == REFUSED:
            found["REFUSED"] = number, "irad refuses the arguments of a derivative"
        else:
            found[identifier(words.upper())] = number, f"it raised {name}"
    return found


def _head(made: Library, target: Path, cpu: str) -> str:
    libraries = " -lopenblas (or -llapack -lblas)" if made.needs_lapack and target.suffix in (".a", ".o") else ""
    own = f"-l{target.stem.removeprefix('lib')}" if target.suffix in (".so", ".dylib", ".a") else target.name
    return (
        f"{target.name}: made by irad {irad.__version__} for {platform.machine()}, {cpu}.\n"
        f"   To link: {own}{libraries} -lpthread -lm"
    )
