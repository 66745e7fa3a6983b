"""BLAS rules run for real: forward part, call and reverse part in one function, with Numba's own entry points."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba import njit

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Call, CallSite
from irad.ir.module import Function, Module
from irad.ir.text.printer import print_module
from irad.ir.values import Constant, Parameter, Value, const_float, const_int
from irad.ir.verifier import verify
from irad.rules import ALL
from irad.ruleset.interface import CallRule
from irad.ruleset.memory_type import MemoryType
from irad.ruleset.registry import Registry

REGISTRY = Registry.of(*ALL)
ELEMENT = {"d": types.DOUBLE, "s": types.FLOAT, "z": types.DOUBLE, "c": types.FLOAT}
DTYPE = {"d": np.float64, "s": np.float32, "z": np.complex128, "c": np.complex64}


@dataclass
class Sweep:
    """Both contexts at once: primal and adjoint are one function, so every primal value is at hand."""

    shadows: Mapping[Parameter, Value]
    overwrites: bool
    before: Builder
    after: Builder
    accumulated: list[tuple[Value, Value]] = field(default_factory=list)
    cotangent_value: Value | None = None
    zero_wins: bool = False
    is_exact: bool = True

    @property
    def builder(self) -> Builder:
        return self.after

    def is_active(self, value: Value) -> bool:
        return value in self.shadows

    def shadow(self, pointer: Value) -> Value:
        assert isinstance(pointer, Parameter)
        return self.shadows[pointer]

    def set_shadow(self, shadow: Value) -> None:
        raise AssertionError("no rule here returns a pointer")

    def allocate(self, size: Value) -> Value:
        malloc = self.declare("malloc", types.function_type(types.PTR, [types.I64]))
        return self.before.call(malloc, [size])

    def mark(self) -> Value:
        return number(0)

    def release(self, mark: Value) -> None:
        """Nothing here runs in a loop."""

    def is_read(self, pointer: Value, call: CallSite) -> bool:
        return True

    def earlier(self, call: CallSite) -> Sequence[Value]:
        return ()

    def layout(self, pointer: Value, *path: int) -> MemoryType | None:
        return None

    def holds_floats(self, pointer: Value, *path: int) -> bool:
        return True

    def holds_pointers(self, pointer: Value, *path: int) -> bool:
        return False

    def is_carried(self, pointer: Value, *path: int) -> bool:
        return self.holds_pointers(pointer, *path)

    def number_places(self, pointer: Value, size: Value | None = None) -> MemoryType | None:
        return None

    def is_made_here(self, pointer: Value) -> bool:
        return False

    def overwritten(self, pointer: Value) -> bool:
        return self.overwrites

    def value(self, primal: Value) -> Value:
        return primal

    def cotangent(self, result: Value) -> Value:
        assert self.cotangent_value is not None
        return self.cotangent_value

    def accumulate(self, value: Value, amount: Value) -> None:
        self.accumulated.append((value, amount))

    def declare(self, name: str, call_type: object, attributes: tuple[str, ...] = ()) -> Function:
        assert isinstance(call_type, types.FunctionType)
        return self.before.module.declare(name, call_type, attributes)


def rule_of(symbol: str) -> CallRule:
    rule = REGISTRY.lookup(symbol)
    assert isinstance(rule, CallRule)
    return rule


def letter(text: str) -> Value:
    return const_int(types.I8, ord(text))


def number(value: int) -> Value:
    return const_int(types.I64, value)


def slot(builder: Builder, type_: types.FloatType, value: complex | Value) -> Value:
    parts = [value.real, value.imag] if isinstance(value, complex) else [value]
    pointer = builder.alloca(types.array_type(2, type_) if isinstance(value, complex) else type_)
    for i, part in enumerate(parts):
        place = builder.byte_offset(pointer, i * types.size_of(type_)) if i else pointer
        builder.store(part if isinstance(part, Value) else const_float(type_, part), place)
    return pointer


@dataclass
class Program:
    """A function of pointers: the primal ones and the shadow of each (null: constant)."""

    kind: str
    arrays: Sequence[np.ndarray]
    shadows: Sequence[np.ndarray | None]
    overwrite: tuple[int, ...] = ()  # arrays that are cleared after the call
    forward: bool = False  # shadows hold tangents

    def run(self, symbol: str, arguments) -> None:
        """``arguments(builder, pointers)`` gives the call's arguments."""
        module = Module()
        count = len(self.arrays)
        function = module.define("run", types.function_type(types.VOID, [types.PTR] * (2 * count)))
        builder = Builder(function.add_block("entry"))
        pointers = function.params[:count]
        given = arguments(builder, pointers)
        callee = module.declare(symbol, types.function_type(types.I32, [v.type for v in given]))
        call = builder.call(callee, given)
        shadows = {
            p: s
            for p, s, array in zip(pointers, function.params[count:], self.shadows, strict=True)
            if array is not None
        }
        end = Builder(function.entry)
        self._differentiate(symbol, call, Sweep(shadows, bool(self.overwrite), Builder.before(call), end), pointers)
        end.ret()
        verify(module)
        execute(module, [*self.arrays, *self.shadows])

    def _differentiate(self, symbol: str, call: CallSite, sweep: Sweep, pointers: Sequence[Value]) -> None:
        rule = rule_of(symbol)
        if self.forward:
            assert rule.tangent is not None
            rule.tangent(sweep, call)
            return
        saved = rule.augmented(sweep, call)
        for index in self.overwrite:
            size = number(self.arrays[index].nbytes)
            arguments = [pointers[index], const_int(types.I8, 0xFF), size, const_int(types.I1, 0)]
            sweep.after.intrinsic("llvm.memset.p0.i64", types.VOID, arguments)
        rule.reverse(sweep, call, saved)


@njit
def _load_blas(a):
    return np.dot(a, a), np.linalg.norm(a)


@pytest.fixture(scope="module", autouse=True)
def _blas_is_loaded():
    """Numba makes its entry points known to LLVM when it first compiles a product."""
    _load_blas(np.ones(2))
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def execute(module: Module, arrays: Sequence[np.ndarray | None]) -> None:
    compiled = llvm.parse_assembly(print_module(module))
    compiled.verify()
    engine = llvm.create_mcjit_compiler(compiled, llvm.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(engine.get_function_address("run"))
    run(*(None if array is None else array.ctypes.data for array in arrays))


def close(kind: str, given: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(
        given, expected, rtol=1e-12 if kind in "dz" else 2e-4, atol=1e-12 if kind in "dz" else 2e-5
    )


def random_array(kind: str, *shape: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng((seed, *shape))
    real = rng.normal(size=shape)
    return (real + 1j * rng.normal(size=shape) if kind in "cz" else real).astype(DTYPE[kind])


def factor(kind: str, value: complex) -> complex:
    """A number of the kind's type; a complex one with an imaginary part, unless it is 0 or 1."""
    return value + 0.75j * (value not in (0, 1)) if kind in "cz" else value


def conj_t(a: np.ndarray) -> np.ndarray:
    return np.conj(a.T)


# ------------------------------------------------------------------------------------------------ dot


@pytest.mark.parametrize(("kind", "overwrite", "n"), list(product("cz", [(), (0, 1)], [0, 7])))
@pytest.mark.parametrize("conjugate", [0, 1])
def test_complex_dot(kind: str, overwrite: tuple[int, ...], n: int, conjugate: int):
    x, y, out = random_array(kind, n), random_array(kind, n, seed=1), np.zeros(1, DTYPE[kind])
    x0, y0 = x.copy(), y.copy()
    x_bar, y_bar, out_bar = np.ones_like(x), np.ones_like(y), np.array([2.5 - 1j], DTYPE[kind])
    program = Program(kind, [x, y, out], [x_bar, y_bar, out_bar], overwrite)
    program.run("numba_xxdot", lambda b, p: [letter(kind), const_int(types.I8, conjugate), number(n), *p])
    close(kind, out, np.array([np.vdot(x0, y0) if conjugate else x0 @ y0]))
    close(kind, x_bar, 1 + ((2.5 + 1j) * y0 if conjugate else (2.5 - 1j) * np.conj(y0)))
    close(kind, y_bar, 1 + (2.5 - 1j) * (x0 if conjugate else np.conj(x0)))
    assert out_bar[0] == 0


@pytest.mark.parametrize(("kind", "overwrite", "n"), list(product("ds", [(), (0, 1)], [0, 1, 7])))
def test_dot(kind: str, overwrite: tuple[int, ...], n: int):
    x, y, out = random_array(kind, n), random_array(kind, n, seed=1), np.zeros(1, DTYPE[kind])
    x0, y0 = x.copy(), y.copy()
    x_bar, y_bar, out_bar = np.ones_like(x), np.ones_like(y), np.array([2.5], DTYPE[kind])
    program = Program(kind, [x, y, out], [x_bar, y_bar, out_bar], overwrite)
    program.run("numba_xxdot", lambda b, p: [letter(kind), const_int(types.I8, 0), number(n), *p])
    close(kind, out, np.array([x0 @ y0]))
    close(kind, x_bar, 1 + 2.5 * y0)
    close(kind, y_bar, 1 + 2.5 * x0)
    assert out_bar[0] == 0


def test_dot_of_an_array_with_itself():
    x, out = random_array("d", 5), np.zeros(1)
    x_bar, out_bar = np.zeros(5), np.ones(1)
    Program("d", [x, out], [x_bar, out_bar]).run(
        "numba_xxdot", lambda b, p: [letter("d"), const_int(types.I8, 0), number(5), p[0], p[0], p[1]]
    )
    close("d", x_bar, 2 * x)


def test_dot_with_a_constant_keeps_only_that():
    x, y, out = random_array("d", 5), random_array("d", 5, seed=1), np.zeros(1)
    y0, x_bar = y.copy(), np.zeros(5)
    program = Program("d", [x, y, out], [x_bar, None, np.ones(1)], (0, 1))
    program.run("numba_xxdot", lambda b, p: [letter("d"), const_int(types.I8, 0), number(5), *p])
    close("d", x_bar, y0)


def test_a_zero_cotangent_stays_zero_beside_infinities():
    x, y, out = np.array([np.inf, 1.0]), np.array([np.nan, 2.0]), np.zeros(1)
    x_bar, y_bar = np.zeros(2), np.zeros(2)
    program = Program("d", [x, y, out], [x_bar, y_bar, np.zeros(1)])
    program.run("numba_xxdot", lambda b, p: [letter("d"), const_int(types.I8, 0), number(2), *p])
    assert not x_bar.any()
    assert not y_bar.any()


# ------------------------------------------------------------------------------------------------ norm


@pytest.mark.parametrize(("kind", "overwrite", "step"), list(product("dscz", [(), (0,)], [1, 3])))
def test_norm(kind: str, overwrite: tuple[int, ...], step: int):
    x, real = random_array(kind, 10), DTYPE["d" if kind in "dz" else "s"]
    out = np.zeros(1, real)
    x_bar, out_bar = np.zeros_like(x), np.array([2.0], real)
    taken = x[::step].copy()
    program = Program(kind, [x, out], [x_bar, out_bar], overwrite)
    program.run("numba_xxnrm2", lambda b, p: [letter(kind), number(len(taken)), p[0], number(step), p[1]])
    close(kind, x_bar[::step], 2.0 * taken / np.linalg.norm(taken))
    assert np.count_nonzero(x_bar) == len(taken)
    assert out_bar[0] == 0


def test_norm_at_the_origin():
    x, out, x_bar = np.zeros(3), np.zeros(1), np.zeros(3)
    Program("d", [x, out], [x_bar, np.ones(1)]).run(
        "numba_xxnrm2", lambda b, p: [letter("d"), number(3), p[0], number(1), p[1]]
    )
    assert not x_bar.any()


def test_norm_keeps_a_zero_cotangent_zero():
    x, out, x_bar = np.array([np.nan, 1.0]), np.zeros(1), np.zeros(2)
    Program("d", [x, out], [x_bar, np.zeros(1)]).run(
        "numba_xxnrm2", lambda b, p: [letter("d"), number(2), p[0], number(1), p[1]]
    )
    assert not x_bar.any()


# ------------------------------------------------------------------------------------------------ matrix times vector


@pytest.mark.parametrize(
    ("kind", "trans", "overwrite", "beta"), list(product("dscz", "nt", [(), (0, 1)], [0.0, 1.0, 0.5]))
)
def test_matrix_times_vector(kind: str, trans: str, overwrite: tuple[int, ...], beta: complex):
    type_, alpha, beta = ELEMENT[kind], factor(kind, 1.5), factor(kind, beta)
    stored = random_array(kind, 4, 3)  # row-major 4 × 3 is column-major 3 × 4
    m, n = 3, 4
    a = stored.T.copy()
    operator = a if trans == "n" else a.T
    x, y = random_array(kind, operator.shape[1], seed=1), random_array(kind, operator.shape[0], seed=2)
    x0, y0 = x.copy(), y.copy()
    a_bar, x_bar, y_bar = np.ones_like(stored), np.ones_like(x), random_array(kind, len(y), seed=3)
    seed = y_bar.copy()

    def arguments(b: Builder, p: Sequence[Value]) -> list[Value]:
        factors = slot(b, type_, alpha), slot(b, type_, beta)
        return [letter(kind), letter(trans), number(m), number(n), factors[0], p[0], number(m), p[1], factors[1], p[2]]

    Program(kind, [stored, x, y], [a_bar, x_bar, y_bar], overwrite).run("numba_xxgemv", arguments)
    close(kind, y, alpha * operator @ x0 + beta * y0)
    outer = np.outer(seed, np.conj(x0)) if trans == "n" else np.outer(np.conj(x0), seed)
    close(kind, a_bar.T, 1 + np.conj(alpha) * outer)
    close(kind, x_bar, 1 + np.conj(alpha) * conj_t(operator) @ seed)
    close(kind, y_bar, np.conj(beta) * seed)


# ------------------------------------------------------------------------------------------------ matrix times matrix


@pytest.mark.parametrize(
    ("kind", "transa", "transb", "overwrite", "beta"), list(product("dscz", "nt", "nt", [(), (0, 1)], [0.0, 0.5]))
)
def test_matrix_times_matrix(kind: str, transa: str, transb: str, overwrite: tuple[int, ...], beta: complex):
    type_, alpha, beta, (m, n, k) = ELEMENT[kind], factor(kind, -0.5), factor(kind, beta), (2, 3, 4)
    op_a, op_b = random_array(kind, m, k), random_array(kind, k, n, seed=1)
    a = (op_a if transa == "n" else op_a.T).copy(order="F")
    b = (op_b if transb == "n" else op_b.T).copy(order="F")
    c = np.asfortranarray(random_array(kind, m, n, seed=2))
    c0 = c.copy()
    a_bar, b_bar = np.ones_like(a), np.ones_like(b)
    c_bar = np.asfortranarray(random_array(kind, m, n, seed=3))
    seed = c_bar.copy()

    def arguments(builder: Builder, p: Sequence[Value]) -> list[Value]:
        sizes = [number(m), number(n), number(k)]
        left = [slot(builder, type_, alpha), p[0], number(a.shape[0]), p[1], number(b.shape[0])]
        return [
            letter(kind),
            letter(transa),
            letter(transb),
            *sizes,
            *left,
            slot(builder, type_, beta),
            p[2],
            number(m),
        ]

    Program(kind, [a, b, c], [a_bar, b_bar, c_bar], overwrite).run("numba_xxgemm", arguments)
    close(kind, c, alpha * op_a @ op_b + beta * c0)
    expected_a, expected_b = np.conj(alpha) * seed @ conj_t(op_b), np.conj(alpha) * conj_t(op_a) @ seed
    close(kind, a_bar, 1 + (expected_a if transa == "n" else expected_a.T))
    close(kind, b_bar, 1 + (expected_b if transb == "n" else expected_b.T))
    close(kind, c_bar, np.conj(beta) * seed)


def test_a_matrix_times_itself():
    a, c = np.asfortranarray(random_array("d", 3, 3)), np.zeros((3, 3), order="F")
    a_bar, seed = np.zeros((3, 3), order="F"), np.asfortranarray(random_array("d", 3, 3, seed=1))
    c_bar = seed.copy(order="F")

    def arguments(b: Builder, p: Sequence[Value]) -> list[Value]:
        three, one, none = number(3), slot(b, types.DOUBLE, 1.0), slot(b, types.DOUBLE, 0.0)
        left = [letter("d"), letter("n"), letter("n"), three, three, three]
        return [*left, one, p[0], three, p[0], three, none, p[1], three]

    Program("d", [a, c], [a_bar, c_bar]).run("numba_xxgemm", arguments)
    close("d", a_bar, seed @ a.T + a.T @ seed)


def test_factors_from_memory_are_read_before_the_call():
    factors = np.array([2.0, 0.25])
    a, b, c = (np.asfortranarray(random_array("d", 2, 2, seed=s)) for s in range(3))
    a0, b0 = a.copy(), b.copy()
    a_bar, c_bar = np.zeros((2, 2), order="F"), np.ones((2, 2), order="F")

    def arguments(builder: Builder, p: Sequence[Value]) -> list[Value]:
        two = number(2)
        head = [letter("d"), letter("n"), letter("n"), two, two, two]
        return [*head, p[3], p[0], two, p[1], two, builder.byte_offset(p[3], 8), p[2], two]

    Program("d", [a, b, c, factors], [a_bar, None, c_bar, None], (3,)).run("numba_xxgemm", arguments)
    close("d", a_bar, 2.0 * np.ones((2, 2)) @ b0.T)
    close("d", c_bar, 0.25 * np.ones((2, 2)))
    assert (a == a0).all()


def test_clearing_removes_nan_too():
    c_bar = np.full((2, 2), np.nan, order="F")
    a = np.ones((2, 2), order="F")

    def arguments(b: Builder, p: Sequence[Value]) -> list[Value]:
        two, one, none = number(2), slot(b, types.DOUBLE, 1.0), slot(b, types.DOUBLE, 0.0)
        head = [letter("d"), letter("n"), letter("n"), two, two, two]
        return [*head, one, p[0], two, p[0], two, none, p[1], two]

    Program("d", [a, np.zeros((2, 2))], [None, c_bar]).run("numba_xxgemm", arguments)
    assert not c_bar.any()


def test_a_transposition_known_at_run_time():
    """LLVM may merge two products that differ in their letters only."""
    op_a, b, seed = random_array("d", 2, 3), random_array("d", 3, 2, seed=1), random_array("d", 2, 2, seed=2)
    flags = np.array([ord("t")], np.uint8)
    a, right = np.asfortranarray(op_a.T), np.asfortranarray(b)
    a_bar, b_bar, c_bar = np.zeros_like(a), np.zeros_like(right), np.asfortranarray(seed.copy())

    def arguments(builder: Builder, p: Sequence[Value]) -> list[Value]:
        one, none = slot(builder, types.DOUBLE, 1.0), slot(builder, types.DOUBLE, 0.0)
        head = [letter("d"), builder.load(types.I8, p[3]), letter("n"), number(2), number(2), number(3)]
        return [*head, one, p[0], number(3), p[1], number(3), none, p[2], number(2)]

    program = Program("d", [a, right, np.zeros((2, 2), order="F"), flags], [a_bar, b_bar, c_bar, None])
    program.run("numba_xxgemm", arguments)
    close("d", a_bar, (seed @ b.T).T)
    close("d", b_bar, op_a.T @ seed)


def test_an_unknown_element_type_is_refused():
    program = Program("d", [np.ones(1)] * 3, [np.ones(1)] * 3)
    with pytest.raises(UnsupportedError, match="element type") as caught:
        program.run("numba_xxdot", lambda b, p: [b.load(types.I8, p[0]), const_int(types.I8, 0), number(1), *p])
    assert "separate function" in caught.value.remedy


def test_an_active_factor_is_refused():
    program = Program("d", [np.ones(1)] * 4, [np.ones(1)] * 4)

    def arguments(b: Builder, p: Sequence[Value]) -> list[Value]:
        one = number(1)
        return [letter("d"), letter("n"), one, one, p[3], p[0], one, p[1], slot(b, types.DOUBLE, 0.0), p[2]]

    with pytest.raises(UnsupportedError, match="alpha"):
        program.run("numba_xxgemv", arguments)


def test_a_constant_result_needs_no_adjoint():
    module = Module()
    function = module.define("run", types.function_type(types.VOID, [types.PTR] * 3))
    builder = Builder(function.add_block("entry"))
    callee = module.declare(
        "numba_xxdot", types.function_type(types.I32, [types.I8, types.I8, types.I64, *[types.PTR] * 3])
    )
    arguments = [letter("d"), const_int(types.I8, 0), number(3), *function.params]
    call = builder.call(callee, arguments)
    sweep = Sweep({}, True, Builder.before(call), Builder(function.entry))
    saved = rule_of("numba_xxdot").augmented(sweep, call)
    rule_of("numba_xxdot").reverse(sweep, call, saved)
    assert list(function.instructions()) == [call]
    assert all(isinstance(value, Constant) for value in saved)


# ------------------------------------------------------------------------------------------------ scalars via memory


@pytest.mark.parametrize("kind", "ds")
def test_frexp(kind: str):
    type_, name = ELEMENT[kind], "numba_frexp" if kind == "d" else "numba_frexpf"
    for x in (12.0, -0.3, 0.0):
        given = np.zeros(1, DTYPE[kind])
        module = Module()
        function = module.define("run", types.function_type(types.VOID, [types.PTR]))
        builder = Builder(function.add_block("entry"))
        callee = module.declare(name, types.function_type(type_, [type_, types.PTR]))
        value = const_float(type_, x)
        call = builder.call(callee, [value, builder.alloca(types.I32)])
        assert isinstance(call, Call)
        end = Builder(function.entry)
        sweep = Sweep({}, False, Builder.before(call), end, cotangent_value=const_float(type_, 3.0))
        rule_of(name).reverse(sweep, call, rule_of(name).augmented(sweep, call))
        [(argument, amount)] = sweep.accumulated
        assert argument is value
        end.store(amount, function.params[0])
        end.ret()
        execute(module, [given])
        mantissa = np.frexp(x)[0]
        assert given[0] == (3.0 * mantissa / x if x else 3.0)


def complex_power(kind: str, a: complex, b: complex, seed: complex, active: tuple[bool, bool]) -> list[complex]:
    dtype, name = ("c16", "numba_cpow") if kind == "d" else ("c8", "numba_cpowf")
    arrays = [np.array([v], dtype) for v in (a, b, 0.0)]
    shadows = [np.zeros(1, dtype), np.zeros(1, dtype), np.array([seed], dtype)]
    module = Module()
    function = module.define("run", types.function_type(types.VOID, [types.PTR] * 6))
    builder = Builder(function.add_block("entry"))
    callee = module.declare(name, types.function_type(types.VOID, [types.PTR] * 3))
    call = builder.call(callee, function.params[:3])
    end = Builder(function.entry)
    known = {p: s for p, s, on in zip(function.params, function.params[3:], (*active, True), strict=False) if on}
    sweep = Sweep(known, False, Builder.before(call), end)
    rule_of(name).reverse(sweep, call, rule_of(name).augmented(sweep, call))
    end.ret()
    verify(module)
    execute(module, [*arrays, *shadows])
    assert shadows[2][0] == 0
    return [complex(shadow[0]) for shadow in shadows[:2]]


@pytest.mark.parametrize("kind", "ds")
def test_complex_power(kind: str):
    a, b, seed = 0.7 - 1.1j, 1.3 + 0.4j, 0.6 + 2.0j
    given = complex_power(kind, a, b, seed, (True, True))
    c = a**b
    # The cotangent of a holomorphic function is the seed times the conjugate of the derivative.
    expected = [seed * np.conj(b * c / a), seed * np.conj(c * np.log(a))]
    np.testing.assert_allclose(given, expected, rtol=1e-13 if kind == "d" else 1e-5)


def test_complex_power_of_a_constant_base():
    assert complex_power("d", 2.0, 3.0, 1.0, (False, True))[0] == 0


@pytest.mark.parametrize(("b", "expected"), [(1.0, 1.0), (2.0, 0.0), (0.0, 0.0)])
def test_complex_power_at_the_origin(b: float, expected: float):
    assert complex_power("d", 0.0, b, 1.0, (True, True)) == [expected, 0.0]


def test_complex_power_keeps_a_zero_cotangent_zero():
    assert complex_power("d", 0.0, -1.0, 0.0, (True, True)) == [0.0, 0.0]
