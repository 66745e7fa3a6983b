"""Numba's functions that call BLAS and LAPACK, as LLVM text that calls a system library by the usual names (`dgemm_`).

Numba's own ones look for SciPy's copy of the library, by Python. Each is given the type of the numbers as a letter. A
routine that wants work space is asked how much, and gets it from the C library.

    i32 @numba_xgesv(i8 %kind, i64 %n, …)       calls sgesv_, dgesv_, cgesv_ or zgesv_ by reference, returns its info
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import llvmlite.binding as llvm

from irad.records import dataclass

_REAL: Final = {"s": ("float", 4), "d": ("double", 8), "c": ("float", 4), "z": ("double", 8)}
"""By the letter of a type: that of its real part, and the bytes of that."""
_TYPES: Final = {"char": "i8", "int": "i64", "double": "double"}


@dataclass(frozen=True, slots=True)
class _Routine:
    """A function of Numba.

    Attributes:
        symbol: its name.
        parameters: after the letter of the type, `name`, `name:char`, `name:int` or `name:double`; else pointers.
        calls: names of Fortran by the letters of types that they are for, with the arguments that they take. Besides
            the parameters these are `info`, `one`, and work space: `work`, `rwork` (of real numbers) and `iwork` (of
            integers), with `lwork`, `lrwork` and `liwork` where the routine takes how much there is.
        sizes: text that computes `%iwork.size` and `%rwork.size`, where a routine does not tell.
    """

    symbol: str
    parameters: str
    calls: dict[str, str]
    sizes: str = ""


_SVD_SIZES: Final = """
  %low = call i64 @llvm.smin.i64(i64 %m, i64 %n)
  %high = call i64 @llvm.smax.i64(i64 %m, i64 %n)
  %iwork.size = mul i64 %low, 8
  %five = mul i64 %low, 5
  %tall = add i64 %five, 7
  %sum = add i64 %low, %high
  %twice = mul i64 %sum, 2
  %wide = add i64 %twice, 1
  %most = call i64 @llvm.smax.i64(i64 %tall, i64 %wide)
  %rwork.size = mul i64 %low, %most"""
_EIGENVECTORS: Final = "vl:ptr ldvl:int vr:ptr ldvr:int"

ROUTINES: Final = (
    _Routine(
        "numba_xxgemm",
        "transa:char transb:char m:int n:int k:int alpha a lda:int b ldb:int beta c ldc:int",
        {"sdcz": "gemm: transa transb m n k alpha a lda b ldb beta c ldc"},
    ),
    _Routine(
        "numba_xxgemv",
        "trans:char m:int n:int alpha a lda:int x beta y",
        {"sdcz": "gemv: trans m n alpha a lda x one beta y one"},
    ),
    _Routine("numba_xxgetrf", "m:int n:int a lda:int ipiv", {"sdcz": "getrf: m n a lda ipiv info"}),
    _Routine("numba_ez_xxgetri", "n:int a lda:int ipiv", {"sdcz": "getri: n a lda ipiv work lwork info"}),
    _Routine("numba_xxpotrf", "uplo:char n:int a lda:int", {"sdcz": "potrf: uplo n a lda info"}),
    _Routine("numba_xgesv", "n:int nrhs:int a lda:int ipiv b ldb:int", {"sdcz": "gesv: n nrhs a lda ipiv b ldb info"}),
    _Routine("numba_ez_geqrf", "m:int n:int a lda:int tau", {"sdcz": "geqrf: m n a lda tau work lwork info"}),
    _Routine(
        "numba_ez_xxgqr",
        "m:int n:int k:int a lda:int tau",
        {"sd": "orgqr: m n k a lda tau work lwork info", "cz": "ungqr: m n k a lda tau work lwork info"},
    ),
    _Routine(
        "numba_ez_rgeev",
        f"jobvl:char jobvr:char n:int a lda:int wr wi {_EIGENVECTORS}",
        {"sd": "geev: jobvl jobvr n a lda wr wi vl ldvl vr ldvr work lwork info"},
    ),
    _Routine(
        "numba_ez_cgeev",
        f"jobvl:char jobvr:char n:int a lda:int w {_EIGENVECTORS}",
        {"cz": "geev: jobvl jobvr n a lda w vl ldvl vr ldvr work lwork rwork info"},
        "  %rwork.size = mul i64 %n, 2",
    ),
    _Routine(
        "numba_ez_xxxevd",
        "jobz:char uplo:char n:int a lda:int w",
        {
            "sd": "syevd: jobz uplo n a lda w work lwork iwork liwork info",
            "cz": "heevd: jobz uplo n a lda w work lwork rwork lrwork iwork liwork info",
        },
    ),
    _Routine(
        "numba_ez_gesdd",
        "jobz:char m:int n:int a lda:int s u ldu:int vt ldvt:int",
        {
            "sd": "gesdd: jobz m n a lda s u ldu vt ldvt work lwork iwork info",
            "cz": "gesdd: jobz m n a lda s u ldu vt ldvt work lwork rwork iwork info",
        },
        _SVD_SIZES,
    ),
    _Routine(
        "numba_ez_gelsd",
        "m:int n:int nrhs:int a lda:int b ldb:int s rcond:double rank",
        {
            "sd": "gelsd: m n nrhs a lda b ldb s rcond rank work lwork iwork info",
            "cz": "gelsd: m n nrhs a lda b ldb s rcond rank work lwork rwork iwork info",
        },
    ),
)
_PRODUCTS: Final = string.Template("""
declare float @sdot_(ptr, ptr, ptr, ptr, ptr)
declare double @ddot_(ptr, ptr, ptr, ptr, ptr)
declare float @snrm2_(ptr, ptr, ptr)
declare double @dnrm2_(ptr, ptr, ptr)
declare float @scnrm2_(ptr, ptr, ptr)
declare double @dznrm2_(ptr, ptr, ptr)
@irad.zero = private unnamed_addr constant [16 x i8] zeroinitializer
@irad.one.c = private unnamed_addr constant { float, float } { float 1.0, float 0.0 }
@irad.one.z = private unnamed_addr constant { double, double } { double 1.0, double 0.0 }

; Which way Fortran returns a complex number depends on the compiler, so the product is that of a matrix of one column.
define i32 @numba_xxdot(i8 %kind, i8 %conjugate, i64 %n, ptr %x, ptr %y, ptr %result) {
entry:
  %n.at = alloca i32
  %inc = alloca i32
  %short = trunc i64 %n to i32
  store i32 %short, ptr %n.at
  store i32 1, ptr %inc
  %conjugates = icmp ne i8 %conjugate, 0
  %trans = select i1 %conjugates, i8 $C, i8 $T
  %rows = call i64 @llvm.smax.i64(i64 %n, i64 1)
  switch i8 %kind, label %d [ i8 $s, label %s i8 $c, label %c i8 $z, label %z ]
s:
  %sum.s = call float @sdot_(ptr %n.at, ptr %x, ptr %inc, ptr %y, ptr %inc)
  store float %sum.s, ptr %result
  ret i32 0
d:
  %sum.d = call double @ddot_(ptr %n.at, ptr %x, ptr %inc, ptr %y, ptr %inc)
  store double %sum.d, ptr %result
  ret i32 0
c:
  store { float, float } zeroinitializer, ptr %result
  %done.c = call i32 @numba_xxgemv(i8 $c, i8 %trans, i64 %n, i64 1, ptr @irad.one.c,
    ptr %x, i64 %rows, ptr %y, ptr @irad.zero, ptr %result)
  ret i32 0
z:
  store { double, double } zeroinitializer, ptr %result
  %done.z = call i32 @numba_xxgemv(i8 $z, i8 %trans, i64 %n, i64 1, ptr @irad.one.z,
    ptr %x, i64 %rows, ptr %y, ptr @irad.zero, ptr %result)
  ret i32 0
}

define i32 @numba_xxnrm2(i8 %kind, i64 %n, ptr %x, i64 %incx, ptr %result) {
entry:
  %n.at = alloca i32
  %inc = alloca i32
  %short = trunc i64 %n to i32
  store i32 %short, ptr %n.at
  %step = trunc i64 %incx to i32
  store i32 %step, ptr %inc
  switch i8 %kind, label %d [ i8 $s, label %s i8 $c, label %c i8 $z, label %z ]
s:
  %norm.s = call float @snrm2_(ptr %n.at, ptr %x, ptr %inc)
  store float %norm.s, ptr %result
  ret i32 0
d:
  %norm.d = call double @dnrm2_(ptr %n.at, ptr %x, ptr %inc)
  store double %norm.d, ptr %result
  ret i32 0
c:
  %norm.c = call float @scnrm2_(ptr %n.at, ptr %x, ptr %inc)
  store float %norm.c, ptr %result
  ret i32 0
z:
  %norm.z = call double @dznrm2_(ptr %n.at, ptr %x, ptr %inc)
  store double %norm.z, ptr %result
  ret i32 0
}
""").substitute({letter: str(ord(letter)) for letter in "CTscz"})

_OF_SCIPY: Final = {"cython_blas.{}trsm": (11, 4), "cython_blas.{}trmm": (11, 4), "cython_lapack.{}getrs": (9, 1)}
"""Routines that derivatives call as SciPy exports them, with the numbers of arguments and of letters among them."""
_EXPORTS: Final = {
    f"scipy.linalg.{name.format(letter)}": given for name, given in _OF_SCIPY.items() for letter in _REAL
}
SYMBOLS: Final = frozenset({"numba_xxdot", "numba_xxnrm2", *(each.symbol for each in ROUTINES), *_EXPORTS})


def text() -> str:
    """LLVM text of all of them."""
    found = ["declare i64 @llvm.smin.i64(i64, i64)", "declare i64 @llvm.smax.i64(i64, i64)"]
    found += ["declare ptr @malloc(i64)", "declare void @free(ptr)", _PRODUCTS]
    declared: dict[str, str] = {}
    for routine in ROUTINES:
        found.append(_dispatch(routine))
        for letters, call in routine.calls.items():
            for letter in letters:
                found += _body(routine, letter, call, declared)
    for export, (count, characters) in _EXPORTS.items():
        symbol, given = f"{export.rpartition('.')[2]}_", [f"%{number}" for number in range(count)]
        listed = ", ".join(f"ptr {each}" for each in given)
        declared[symbol] = f"declare void @{symbol}({', '.join(['ptr'] * count + ['i64'] * characters)})"
        found.append(f"define void @{export}({listed}) {{\n{_call(symbol, given, characters)}\n  ret void\n}}")
    return "\n".join((*declared.values(), *found))


@cache
def system_symbols() -> frozenset[str]:
    """Functions of a system library that these call."""
    module = llvm.parse_assembly(text())
    return frozenset(each.name for each in module.functions if each.is_declaration and each.name.endswith("_"))


def _parameters(routine: _Routine) -> dict[str, str]:
    """LLVM types of the parameters after the first, by name."""
    pairs = (each.partition(":") for each in routine.parameters.split())
    return {name: _TYPES.get(kind, "ptr") for name, _, kind in pairs}


def _dispatch(routine: _Routine) -> str:
    """The function: a call of that for the type."""
    parameters = _parameters(routine)
    listed = ", ".join(f"{type_} %{name}" for name, type_ in parameters.items())
    letters, fails = "".join(routine.calls), all("info" in call.split() for call in routine.calls.values())
    cases = " ".join(f"i8 {ord(letter)}, label %kind.{letter}" for letter in letters)
    lines = [f"define i32 @{routine.symbol}(i8 %kind, {listed}) {{", f"  switch i8 %kind, label %none [ {cases} ]"]
    for letter in letters:
        lines += [f"kind.{letter}:", f"  %{letter}.info = call i32 @{routine.symbol}.{letter}({listed})"]
        lines += [f"  ret i32 %{letter}.info" if fails else "  ret i32 0"]  # so that LLVM drops what handles errors
    return "\n".join((*lines, "none:", "  unreachable", "}"))


def _body(routine: _Routine, letter: str, call: str, declared: dict[str, str]) -> Iterator[str]:
    """The function for one type."""
    stem, _, given = call.partition(": ")
    names, parameters = given.split(), _parameters(routine)
    real, _ = _REAL[letter]
    yield f"define internal i32 @{routine.symbol}.{letter}("
    yield ", ".join(f"{type_} %{name}" for name, type_ in parameters.items()) + ") {"
    integers = [name for name in names if parameters.get(name) == "i64"]
    for name in (*integers, "info", "one", "lwork", "lrwork", "liwork", "rank"):
        yield f"  %{name}.at = alloca i32"
    for name in integers:
        yield f"  %{name}.short = trunc i64 %{name} to i32"
        yield f"  store i32 %{name}.short, ptr %{name}.at"
    yield "  store i32 0, ptr %info.at\n  store i32 1, ptr %one.at\n  store i32 0, ptr %rank.at"
    for name in (name for name in names if parameters.get(name) == "i8"):
        yield f"  %{name}.at = alloca i8\n  store i8 %{name}, ptr %{name}.at"
    if "rcond" in names:
        yield f"  %rcond.at = alloca {real}"
        yield "  %rcond.real = fptrunc double %rcond to float" if real == "float" else ""
        yield f"  store {real} {'%rcond.real' if real == 'float' else '%rcond'}, ptr %rcond.at"
    at = {name: f"%{name}" if parameters.get(name) == "ptr" and name != "rank" else f"%{name}.at" for name in names}
    symbol = f"{letter}{stem}_"
    characters = sum(parameters.get(name) == "i8" for name in names)
    # Fortran is given the lengths of strings after all arguments.
    declared[symbol] = f"declare void @{symbol}({', '.join(['ptr'] * len(names) + ['i64'] * characters)})"
    spaces = [name for name in names if name in ("work", "rwork", "iwork")]
    if spaces:
        yield from _with_work(routine, names, at, symbol, characters, letter)
    else:
        yield _call(symbol, [at[name] for name in names], characters)
    if "rank" in names:
        yield "  %rank.short = load i32, ptr %rank.at\n  %rank.long = sext i32 %rank.short to i64"
        yield "  store i64 %rank.long, ptr %rank"
    for name in spaces:
        yield f"  call void @free(ptr %{name}.space)"
    yield "  %code = load i32, ptr %info.at\n  ret i32 %code"
    if spaces:
        yield "no_memory:"
        for name in spaces:
            yield f"  call void @free(ptr %{name}.space)"
        yield "  ret i32 -1"
    yield "}"


def _with_work(
    routine: _Routine, names: Sequence[str], at: dict[str, str], symbol: str, characters: int, letter: str
) -> Iterator[str]:
    """Asks for the size of the work space, allocates it and calls the routine with it."""
    real, size = _REAL[letter]
    spaces = [name for name in names if name in ("work", "rwork", "iwork")]
    for name in spaces:
        yield f"  %{name}.at = alloca [2 x double]"
        yield f"  store i32 -1, ptr %l{name}.at"
    yield routine.sizes
    yield _call(symbol, [at[name] for name in names], characters)
    for name in spaces:
        if f"%{name}.size" not in routine.sizes and name == "iwork":
            yield f"  %{name}.told = load i32, ptr %{name}.at\n  %{name}.size = sext i32 %{name}.told to i64"
        elif f"%{name}.size" not in routine.sizes:
            yield f"  %{name}.told = load {real}, ptr %{name}.at\n  %{name}.size = fptosi {real} %{name}.told to i64"
        each = {"work": size * (2 if letter in "cz" else 1), "rwork": size, "iwork": 4}[name]
        yield f"  %{name}.some = call i64 @llvm.smax.i64(i64 %{name}.size, i64 1)"
        yield f"  %{name}.bytes = mul i64 %{name}.some, {each}"
        yield f"  %{name}.space = call ptr @malloc(i64 %{name}.bytes)"
        yield f"  %{name}.lacks = icmp eq ptr %{name}.space, null"
        yield f"  %{name}.short = trunc i64 %{name}.size to i32\n  store i32 %{name}.short, ptr %l{name}.at"
    lacks = f"%{spaces[0]}.lacks"
    for number, name in enumerate(spaces[1:]):
        yield f"  %lacks.{number} = or i1 {lacks}, %{name}.lacks"
        lacks = f"%lacks.{number}"
    yield f"  br i1 {lacks}, label %no_memory, label %fine\nfine:"
    yield _call(symbol, [f"%{name}.space" if name in spaces else at[name] for name in names], characters)


def _call(symbol: str, pointers: Sequence[str], characters: int) -> str:
    given = ", ".join((*(f"ptr {each}" for each in pointers), *(["i64 1"] * characters)))
    return f"  call void @{symbol}({given})"
