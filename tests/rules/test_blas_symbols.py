"""Rules of BLAS and LAPACK by symbol, run for real with every letter, against differences of the routines."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba.extending import get_cython_function_address
from scipy.linalg import cython_blas, cython_lapack

from irad.frontend.external import scipy_functions
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.module import Module
from irad.ir.values import ConstantAggregate, const_float, const_int
from irad.ir.verifier import verify
from irad.rules.blas.level1 import RULES as LEVEL_1
from irad.rules.blas.level2 import RULES as LEVEL_2
from irad.rules.blas.level3 import RULES as LEVEL_3
from irad.rules.lapack.symbols import RULES as LAPACK
from irad.ruleset.interface import CallRule
from tests.rules.test_blas import DTYPE, Sweep, execute, random_array, rule_of

BLAS_MODULE, LAPACK_MODULE = cython_blas.__name__, cython_lapack.__name__
RESULT_BAR = {"s": 1.75, "d": 1.75, "c": 1.75 - 0.5j, "z": 1.75 - 0.5j}
RETURNING = frozenset({"dot", "dotu", "dotc", "nrm2", "asum"})
REAL_RESULT = frozenset({"nrm2", "asum"})
ONLY_COMPLEX = frozenset({"dotu", "dotc", "geru", "gerc"})
PARAMETERS = {
    "dot": "n x incx y incy",
    "dotu": "n x incx y incy",
    "dotc": "n x incx y incy",
    "nrm2": "n x incx",
    "asum": "n x incx",
    "axpy": "n alpha x incx y incy",
    "scal": "n alpha x incx",
    "copy": "n x incx y incy",
    "swap": "n x incx y incy",
    "gemv": "trans m n alpha a lda x incx beta y incy",
    "ger": "m n alpha x incx y incy a lda",
    "geru": "m n alpha x incx y incy a lda",
    "gerc": "m n alpha x incx y incy a lda",
    "symv": "uplo n alpha a lda x incx beta y incy",
    "trmv": "uplo trans diag n a lda x incx",
    "trsv": "uplo trans diag n a lda x incx",
    "gemm": "transa transb m n k alpha a lda b ldb beta c ldc",
    "symm": "side uplo m n alpha a lda b ldb beta c ldc",
    "syrk": "uplo trans n k alpha a lda beta c ldc",
    "trmm": "side uplo transa diag m n alpha a lda b ldb",
    "trsm": "side uplo transa diag m n alpha a lda b ldb",
    "getrf": "m n a lda ipiv info",
    "getrs": "trans n nrhs a lda ipiv b ldb info",
    "gesv": "n nrhs a lda ipiv b ldb info",
    "potrf": "uplo n a lda info",
    "potrs": "uplo n nrhs a lda b ldb info",
    "trtrs": "uplo trans diag n nrhs a lda b ldb info",
}
Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module", autouse=True)
def _blas_is_known():
    scipy_functions()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def symbol_of(kind: str, routine: str) -> str:
    """The export of SciPy."""
    module = LAPACK_MODULE if " info" in PARAMETERS[routine] else BLAS_MODULE
    returned = {"c": "s", "z": "d"}.get(kind, "") if routine in REAL_RESULT else ""
    return f"{module}.{returned}{kind}{routine}"


def result_kind(kind: str, routine: str) -> str | None:
    """The letter of what a routine returns."""
    return ({"c": "s", "z": "d"}.get(kind, kind) if routine in REAL_RESULT else kind) if routine in RETURNING else None


class _Complex(ctypes.Structure):
    _fields_ = (("real", ctypes.c_double), ("imag", ctypes.c_double))


@dataclass
class Call:
    """A routine with letters and sizes; arrays and factors are made to fit."""

    routine: str
    given: Mapping[str, str | int]

    def __str__(self) -> str:
        return "-".join([self.routine, *(str(value) for value in self.given.values())])

    def arrays(self, kind: str) -> Arrays:
        """Arrays that the pointers point to. Matrices have more rows than the call counts."""
        found: Arrays = {}
        for index, name in enumerate(PARAMETERS[self.routine].split()):
            value = self.given.get(name)
            if isinstance(value, str):
                found[name] = np.array([ord(value)], np.uint8)
            elif name == "ipiv":
                found[name] = np.array([3, 2, 4, 4], np.int32)
            elif name.startswith("ld"):
                found[name] = np.array([5], np.int32)
            elif value is not None or name.startswith("inc") or name == "info":
                found[name] = np.array([1 if value is None else value], np.int32)
            elif name in ("alpha", "beta"):
                found[name] = random_array(kind, 1, seed=index)
            elif name in ("x", "y"):
                found[name] = random_array(kind, 14, seed=index)
            else:
                found[name] = np.asfortranarray(random_array(kind, 5, 4, seed=index))
        if self.routine in ("trsm", "trsv") or symbol_of(kind, self.routine).startswith(LAPACK_MODULE):
            np.fill_diagonal(found["a"], 6.0 if self.routine == "potrf" else 2.0)
        return found


def run(routine: str, kind: str, arrays: Arrays) -> complex:
    """The routine itself, in double precision; returns what it returns."""
    result = {"d": ctypes.c_double, "z": _Complex, None: None}[result_kind(kind, routine)]
    address = get_cython_function_address(*symbol_of(kind, routine).rsplit(".", 1))
    function = ctypes.CFUNCTYPE(result, *[ctypes.c_void_p] * len(arrays))(address)
    value = function(*(array.ctypes.data for array in arrays.values()))
    return complex(value.real, value.imag) if isinstance(value, _Complex) else value or 0.0


def reverse(
    symbol: str, routine: str, arrays: Arrays, shadows: Mapping[str, np.ndarray], *, overwrite: Sequence[str] = ()
) -> None:
    """Forward part, call, and reverse part, which changes the shadows."""
    module, names = Module(), list(arrays)
    function = module.define("run", types.function_type(types.VOID, [types.PTR] * (2 * len(names))))
    builder = Builder(function.add_block("entry"))
    pointers = dict(zip(names, function.params, strict=False))
    kind = result_kind(symbol.rsplit(".", 1)[1][len(routine) * -1 - 1], routine)
    scalar = types.FLOAT if kind in ("s", "c") else types.DOUBLE
    returned = types.VOID if kind is None else types.struct_type([scalar] * 2) if kind in ("c", "z") else scalar
    callee = module.declare(symbol, types.function_type(returned, [types.PTR] * len(names)))
    call = builder.call(callee, list(pointers.values()))
    shadowed = {pointers[n]: s for n, s in zip(names, function.params[len(names) :], strict=True) if n in shadows}
    sweep = Sweep(shadowed, bool(overwrite), Builder.before(call), Builder(function.entry))
    if kind is not None:
        bar = complex(RESULT_BAR[kind])
        parts = [const_float(scalar, part) for part in (bar.real, bar.imag)]
        sweep.cotangent_value = ConstantAggregate(returned, elements=tuple(parts)) if kind in ("c", "z") else parts[0]
    rule = rule_of(symbol)
    saved = rule.augmented(sweep, call)
    for name in overwrite:
        size = const_int(types.I64, arrays[name].nbytes)
        arguments = [pointers[name], const_int(types.I8, 0xFF), size, const_int(types.I1, 0)]
        sweep.after.intrinsic("llvm.memset.p0.i64", types.VOID, arguments)
    rule.reverse(sweep, call, saved)
    sweep.after.ret()
    verify(module)
    execute(module, [*arrays.values(), *(shadows.get(name) for name in names)])


def check(call: Call, kind: str, active: Sequence[str] | None = None, *, later: bool = False) -> None:
    """Compares with differences: of sums, so that a large step is as good as a small one, but for trsm."""
    double = {"s": "d", "c": "z"}.get(kind, kind)
    before = call.arrays(kind)
    floats = [name for name, array in before.items() if array.dtype == DTYPE[kind]]
    active = floats if active is None else active
    seeds = {name: random_array(double, *before[name].shape, seed=20 + i) for i, name in enumerate(floats)}

    def loss(moved: str, place: tuple[int, ...], step: complex) -> float:
        arrays = {n: a.astype(DTYPE[double]) if n in floats else a.copy() for n, a in before.items()}
        arrays = {n: np.asfortranarray(a) for n, a in arrays.items()}
        arrays[moved][place] += step
        result = run(call.routine, double, arrays)
        sums = sum(float(np.sum(np.conj(seeds[name]) * arrays[name]).real) for name in active)
        bar = RESULT_BAR[result_kind(double, call.routine) or "d"]
        return sums + (np.conj(bar) * result).real

    shadows = {name: np.array(seeds[name], DTYPE[kind], order="F") for name in active}
    arrays = {name: array.copy(order="F") for name, array in before.items()}
    reverse(symbol_of(kind, call.routine), call.routine, arrays, shadows, overwrite=list(arrays) if later else ())
    for name in active:
        expected = np.zeros(before[name].shape, DTYPE[double])
        for place in np.ndindex(*expected.shape):
            for unit in (1, 1j) if double == "z" else (1,):
                step = 1e-5 * unit
                expected[place] += unit * (loss(name, place, step) - loss(name, place, -step)) / 2e-5
        scale = max(1.0, float(np.abs(expected).max()))
        tolerance = 1e-8 if kind == double else 1e-4
        np.testing.assert_allclose(shadows[name], expected, atol=scale * tolerance, rtol=0, err_msg=name)


def calls() -> Iterator[Call]:
    for routine in ("dot", "dotu", "dotc", "axpy", "copy", "swap"):
        for steps in ((1, 1), (2, -3), (-2, 1)):
            yield Call(routine, {"n": 3, "incx": steps[0], "incy": steps[1]})
    for routine, step in product(("nrm2", "asum", "scal"), (1, 2, -1)):
        yield Call(routine, {"n": 3, "incx": step})
    for trans, steps in product("NtC", ((1, 1), (-2, 3))):
        yield Call("gemv", {"trans": trans, "m": 4, "n": 3, "incx": steps[0], "incy": steps[1]})
    for steps in ((1, 1), (2, -3)):
        for routine in ("ger", "geru", "gerc"):
            yield Call(routine, {"m": 4, "n": 3, "incx": steps[0], "incy": steps[1]})
        for uplo in "Ul":
            yield Call("symv", {"uplo": uplo, "n": 4, "incx": steps[0], "incy": steps[1]})
    for routine, uplo, trans, diag in product(("trmv", "trsv"), "uL", "nT", "uN"):
        yield Call(routine, {"uplo": uplo, "trans": trans, "diag": diag, "n": 4, "incx": -2 if uplo == "u" else 1})
    for transa, transb in product("nT", "Nt"):
        yield Call("gemm", {"transa": transa, "transb": transb, "m": 4, "n": 3, "k": 2})
    for side, uplo in product("Lr", "uL"):
        yield Call("symm", {"side": side, "uplo": uplo, "m": 4, "n": 3})
    for uplo, trans in product("uL", "Nt"):
        yield Call("syrk", {"uplo": uplo, "trans": trans, "n": 4, "k": 3})
    for routine, side, uplo, trans, diag in product(("trmm", "trsm"), "Lr", "uL", "nT", "uN"):
        yield Call(routine, {"side": side, "uplo": uplo, "transa": trans, "diag": diag, "m": 4, "n": 3})
    yield Call("getrf", {"m": 4, "n": 4})
    yield Call("gesv", {"n": 4, "nrhs": 3})
    for trans in "Nt":
        yield Call("getrs", {"trans": trans, "n": 4, "nrhs": 3})
    for uplo in "Ul":
        yield Call("potrf", {"uplo": uplo, "n": 4})
        yield Call("potrs", {"uplo": uplo, "n": 4, "nrhs": 3})
    for uplo, trans, diag in product("uL", "Nt", "Un"):
        yield Call("trtrs", {"uplo": uplo, "trans": trans, "diag": diag, "n": 4, "nrhs": 3})


CALLS = tuple(calls())
FIRST = tuple({call.routine: call for call in CALLS}.values())


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_every_letter(call: Call):
    check(call, "z" if call.routine in ONLY_COMPLEX else "d", later=True)


@pytest.mark.parametrize("call", FIRST, ids=str)
def test_operands_that_nobody_overwrites(call: Call):
    check(call, "z" if call.routine in ONLY_COMPLEX else "d")


VECTORS = ("axpy", "scal", "copy", "swap", "nrm2", "asum")


@pytest.mark.parametrize("call", FIRST, ids=str)
def test_single_precision(call: Call):
    check(call, "c" if call.routine in ONLY_COMPLEX else "s", later=True)


@pytest.mark.parametrize("call", [c for c in FIRST if c.routine in VECTORS], ids=str)
@pytest.mark.parametrize("kind", "cz")
def test_complex_vectors(call: Call, kind: str):
    check(call, kind, later=True)


COMPLEX_CALLS = [
    *(Call("gemv", {"trans": t, "m": 4, "n": 3, "incx": -2, "incy": 3}) for t in "nTc"),
    *(Call("gemm", {"transa": x, "transb": y, "m": 4, "n": 3, "k": 2}) for x, y in product("nTc", "NtC")),
    *(
        Call(routine, {"uplo": uplo, "trans": trans, "diag": diag, "n": 4, "incx": -2})
        for routine, (uplo, diag), trans in product(("trmv", "trsv"), ("uN", "Lu"), "nTc")
    ),
    *(Call("syrk", {"uplo": uplo, "trans": trans, "n": 4, "k": 3}) for uplo, trans in product("uL", "Nt")),
    *(
        Call(routine, {"side": side, "uplo": uplo, "transa": trans, "diag": diag, "m": 4, "n": 3})
        for routine, (side, uplo, diag), trans in product(("trmm", "trsm"), ("luN", "rLu", "LLn", "Run"), "nTc")
    ),
]


@pytest.mark.parametrize("call", COMPLEX_CALLS, ids=str)
def test_complex_products(call: Call):
    check(call, "z", later=True)


@pytest.mark.parametrize("call", COMPLEX_CALLS[::5], ids=str)
def test_complex_products_in_single_precision(call: Call):
    check(call, "c", later=True)


def test_a_system_without_right_hand_sides():
    """The matrix is not factorised then, so its cotangent stays."""
    check(Call("gesv", {"n": 3, "nrhs": 0}), "d")


@pytest.mark.parametrize(
    ("routine", "active"),
    [
        *(("gemm", names) for names in ("a c", "b c", "alpha c", "beta c", "c")),
        *(("gemv", names) for names in ("a y", "x y", "alpha y", "beta y")),
        *((name, names) for name in ("ger", "geru", "gerc") for names in ("x a", "y a", "alpha a")),
        *(("trsm", names) for names in ("b", "a b", "alpha b")),
        *(("trmm", names) for names in ("b", "a b", "alpha b")),
        *(("syrk", names) for names in ("a c", "alpha c", "beta c")),
        *(("symm", names) for names in ("a c", "b c", "alpha c")),
        *((name, names) for name in ("dot", "dotc") for names in "xy"),
        *(("axpy", names) for names in ("x y", "alpha y", "y")),
        *((name, "b") for name in ("gesv", "getrs", "potrs", "trtrs")),
    ],
)
def test_some_operands_are_constant(routine: str, active: str):
    call = next(call for call in FIRST if call.routine == routine)
    check(call, "z" if call.routine in ONLY_COMPLEX else "d", active.split(), later=True)


NOTHING_TO_DO = [
    Call("gemm", {"transa": "n", "transb": "n", "m": 2, "n": 2, "k": 0}),
    Call("gemm", {"transa": "n", "transb": "n", "m": 0, "n": 2, "k": 2}),
    Call("gemv", {"trans": "n", "m": 3, "n": 0}),
    Call("gemv", {"trans": "t", "m": 3, "n": 0}),
    Call("ger", {"m": 0, "n": 2}),
    Call("trsm", {"side": "l", "uplo": "u", "transa": "n", "diag": "n", "m": 0, "n": 2}),
    *(Call(c.routine, {**c.given, "n": 0}) for c in FIRST if c.routine not in ("gemm", "gemv", "ger", "trsm")),
]


@pytest.mark.parametrize("call", NOTHING_TO_DO, ids=str)
def test_nothing_to_do(call: Call):
    check(call, "z" if call.routine in ONLY_COMPLEX else "d", later=True)


def test_nan_in_what_is_overwritten():
    """With beta = 0 BLAS does not read C, and neither does the adjoint."""
    call = next(call for call in FIRST if call.routine == "gemm")
    arrays = call.arrays("d")
    arrays["beta"][:], arrays["c"][:] = 0.0, np.nan
    shadows = {name: np.ones_like(arrays[name]) for name in "abc"}
    reverse(symbol_of("d", "gemm"), "gemm", arrays, shadows)
    assert all(np.isfinite(shadow).all() for shadow in shadows.values())
    assert not shadows["c"][:4, :3].any()


def test_a_zero_cotangent_stays_zero():
    for call in FIRST:
        if call.routine in ONLY_COMPLEX:
            continue
        arrays = call.arrays("d")
        for name in set("axb") & set(arrays):
            arrays[name][...] = np.inf
        output = PARAMETERS[call.routine].split()
        if call.routine in RETURNING:
            continue
        shadows = {name: np.zeros_like(arrays[name]) for name in output if arrays[name].dtype == np.float64}
        shadows.pop("beta", None)
        reverse(symbol_of("d", call.routine), call.routine, arrays, shadows)
        assert not any(shadow.any() for shadow in shadows.values()), call.routine


def test_every_rule_is_tested():
    rules: list[Any] = [*LEVEL_1, *LEVEL_2, *LEVEL_3, *LAPACK]
    named = {symbol for rule in rules if isinstance(rule, CallRule) for symbol in rule.symbols}
    double = {symbol_of(kind, routine) for routine in PARAMETERS for kind in "dz"}
    assert double >= {s for s in named if s.startswith("scipy.") and s.rsplit(".", 1)[1][0] in "dz"}
    assert {call.routine for call in CALLS} == set(PARAMETERS)


def test_factors_of_a_matrix_that_is_not_square_are_nan():
    call = Call("getrf", {"m": 4, "n": 3})
    arrays = call.arrays("d")
    shadows = {"a": np.ones_like(arrays["a"])}
    reverse(symbol_of("d", "getrf"), "getrf", arrays, shadows)
    assert np.isnan(shadows["a"][:4, :3]).all()
