"""Loops that rules need, as functions of the derivative module: defined once, internal, inlined where it pays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.module import Function, Module
from irad.ir.types import FloatType, Type
from irad.ir.values import Value, const_float, const_int

_ZERO = const_int(types.I64, 0)
_ONE = const_int(types.I64, 1)
_ATTRIBUTES = ("nounwind", "willreturn", "memory(argmem: readwrite)")


def add_scaled(
    builder: Builder,
    type_: FloatType,
    count: Value,
    scale: Value,
    x: Value,
    y: Value,
    step: Value,
    *,
    zero_wins: bool = False,
) -> None:
    """`y[i] += scale * x[i]` for ``count`` elements, ``step`` elements apart; nothing at all where ``scale`` is zero.

    ``x`` and ``y`` are pointers, ``count`` and ``step`` are i64. A negative step walks the same memory backwards, which
    makes no difference, so only its size counts. With ``zero_wins`` a zero of ``x`` adds nothing where ``scale`` is
    infinite.
    """
    name = "add_scaled_zero_wins" if zero_wins else "add_scaled"
    define = _add_scaled_zero_wins if zero_wins else _add_scaled
    kernel = _kernel(builder.module, name, type_, (types.I64, type_, types.PTR, types.PTR, types.I64), define)
    builder.call(kernel, [count, scale, x, y, step])


def scale_matrix(
    builder: Builder, type_: FloatType, rows: Value, columns: Value, scale: Value, matrix: Value, leading: Value
) -> None:
    """`matrix *= scale`, columns ``leading`` elements apart; a zero scale clears what is there, NaN included."""
    parameters = (types.I64, types.I64, type_, types.PTR, types.I64)
    kernel = _kernel(builder.module, "scale_matrix", type_, parameters, _scale_matrix)
    builder.call(kernel, [rows, columns, scale, matrix, leading])


def add_scaled_complex(
    builder: Builder,
    type_: FloatType,
    count: Value,
    scale: tuple[Value, Value],
    sign: Value,
    x: Value,
    y: Value,
    step: Value,
    *,
    zero_wins: bool = False,
) -> None:
    """`y[i] += scale * x[i]` of complex numbers, as `add_scaled`; ``sign`` −1.0 takes the conjugates of ``x``."""
    parameters = (types.I64, type_, type_, type_, types.PTR, types.PTR, types.I64)
    name = "add_scaled_complex_zero_wins" if zero_wins else "add_scaled_complex"
    define = _add_scaled_complex_zero_wins if zero_wins else _add_scaled_complex
    kernel = _kernel(builder.module, name, type_, parameters, define)
    builder.call(kernel, [count, *scale, sign, x, y, step])


def scale_complex_matrix(
    builder: Builder,
    type_: FloatType,
    rows: Value,
    columns: Value,
    scale: tuple[Value, Value],
    matrix: Value,
    leading: Value,
) -> None:
    """`matrix *= scale` of complex numbers, as `scale_matrix`."""
    parameters = (types.I64, types.I64, type_, type_, types.PTR, types.I64)
    kernel = _kernel(builder.module, "scale_complex_matrix", type_, parameters, _scale_complex_matrix)
    builder.call(kernel, [rows, columns, *scale, matrix, leading])


def conjugate_matrix(
    builder: Builder, type_: FloatType, rows: Value, columns: Value, matrix: Value, leading: Value
) -> None:
    """Replaces complex numbers by their conjugates, columns ``leading`` elements apart."""
    parameters = (types.I64, types.I64, types.PTR, types.I64)
    kernel = _kernel(builder.module, "conjugate_matrix", type_, parameters, _conjugate_matrix)
    builder.call(kernel, [rows, columns, matrix, leading])


def _kernel(
    module: Module,
    name: str,
    type_: FloatType,
    parameters: tuple[Type, ...],
    define: Callable[[Function, FloatType], None],
) -> Function:
    symbol = f"irad_{name}_{'f64' if type_ is types.DOUBLE else 'f32'}"
    found = module.functions.get(symbol)
    if found is None:
        found = module.define(symbol, types.function_type(types.VOID, parameters))
        found.prefix, found.attributes = ("internal",), _ATTRIBUTES
        define(found, type_)
    return found


_Product: TypeAlias = Callable[[Builder, Value, Value], Value]


def _product(builder: Builder, scale: Value, x: Value) -> Value:
    return builder.fmul(scale, x)


def _product_or_zero(builder: Builder, scale: Value, x: Value) -> Value:
    """The product, or zero where ``x`` is and ``scale`` is a number."""
    assert isinstance(x.type, FloatType)
    zero = const_float(x.type, 0.0)
    wins = builder.and_(builder.fcmp("oeq", x, zero), builder.fcmp("oeq", scale, scale))
    return builder.select(wins, zero, builder.fmul(scale, x))


def _add_scaled_zero_wins(function: Function, type_: FloatType) -> None:
    _add_scaled(function, type_, _product_or_zero)


def _add_scaled_complex_zero_wins(function: Function, type_: FloatType) -> None:
    _add_scaled_complex(function, type_, _product_or_zero)


def _add_scaled(function: Function, type_: FloatType, multiply: _Product = _product) -> None:
    count, scale, x, y, step = function.params
    builder = Builder(function.add_block("entry"))
    distance = builder.intrinsic("llvm.abs.i64", types.I64, [step, const_int(types.I1, 0)])
    nothing = builder.fcmp("oeq", scale, const_float(type_, 0.0))
    loop = _Loop.open(builder, builder.select(nothing, _ZERO, count))
    index = builder.mul(loop.index, distance)
    target = builder.gep(type_, y, [index])
    product = multiply(builder, scale, builder.load(type_, builder.gep(type_, x, [index])))
    builder.store(builder.fadd(builder.load(type_, target), product), target)
    loop.close(builder)
    builder.ret()


def _scale_matrix(function: Function, type_: FloatType) -> None:
    rows, columns, scale, matrix, leading = function.params
    zero = const_float(type_, 0.0)
    builder = Builder(function.add_block("entry"))
    clear = builder.fcmp("oeq", scale, zero)
    outer = _Loop.open(builder, columns)
    start = builder.mul(outer.index, leading)
    inner = _Loop.open(builder, rows)
    target = builder.gep(type_, matrix, [builder.add(start, inner.index)])
    product = builder.fmul(scale, builder.load(type_, target))
    builder.store(builder.select(clear, zero, product), target)
    inner.close(builder)
    outer.close(builder)
    builder.ret()


def _add_scaled_complex(function: Function, type_: FloatType, multiply: _Product = _product) -> None:
    count, real, imag, sign, x, y, step = function.params
    zero = const_float(type_, 0.0)
    builder = Builder(function.add_block("entry"))
    distance = builder.intrinsic("llvm.abs.i64", types.I64, [step, const_int(types.I1, 0)])
    nothing = builder.and_(builder.fcmp("oeq", real, zero), builder.fcmp("oeq", imag, zero))
    loop = _Loop.open(builder, builder.select(nothing, _ZERO, count))
    index = builder.mul(loop.index, distance)
    (x_real, x_imag), (y_real, y_imag) = _parts(builder, type_, x, index), _parts(builder, type_, y, index)
    a, b = builder.load(type_, x_real), builder.fmul(sign, builder.load(type_, x_imag))
    product_real = builder.fsub(multiply(builder, real, a), multiply(builder, imag, b))
    product_imag = builder.fadd(multiply(builder, real, b), multiply(builder, imag, a))
    for part, product in ((y_real, product_real), (y_imag, product_imag)):
        builder.store(builder.fadd(builder.load(type_, part), product), part)
    loop.close(builder)
    builder.ret()


def _scale_complex_matrix(function: Function, type_: FloatType) -> None:
    rows, columns, real, imag, matrix, leading = function.params
    zero = const_float(type_, 0.0)
    builder = Builder(function.add_block("entry"))
    clear = builder.and_(builder.fcmp("oeq", real, zero), builder.fcmp("oeq", imag, zero))
    with _each_element(builder, type_, rows, columns, matrix, leading) as parts:
        a, b = (builder.load(type_, part) for part in parts)
        products = (
            builder.fsub(builder.fmul(real, a), builder.fmul(imag, b)),
            builder.fadd(builder.fmul(real, b), builder.fmul(imag, a)),
        )
        for part, product in zip(parts, products, strict=True):
            builder.store(builder.select(clear, zero, product), part)
    builder.ret()


def _conjugate_matrix(function: Function, type_: FloatType) -> None:
    rows, columns, matrix, leading = function.params
    builder = Builder(function.add_block("entry"))
    with _each_element(builder, type_, rows, columns, matrix, leading) as (_, imag):
        builder.store(builder.fneg(builder.load(type_, imag)), imag)
    builder.ret()


@contextmanager
def _each_element(
    builder: Builder, type_: FloatType, rows: Value, columns: Value, matrix: Value, leading: Value
) -> Iterator[tuple[Value, Value]]:
    """Loops over a complex matrix in column-major order; gives pointers to real and imaginary part."""
    outer = _Loop.open(builder, columns)
    start = builder.mul(outer.index, leading)
    inner = _Loop.open(builder, rows)
    yield _parts(builder, type_, matrix, builder.add(start, inner.index))
    inner.close(builder)
    outer.close(builder)


def _parts(builder: Builder, type_: FloatType, base: Value, index: Value) -> tuple[Value, Value]:
    """Pointers to real and imaginary part of a complex number in an array."""
    real = builder.gep(type_, base, [builder.mul(index, const_int(types.I64, 2))])
    return real, builder.gep(type_, real, [_ONE])


@dataclass(slots=True)
class _Loop:
    """`for index in range(count)`, built from the builder's block on; the builder ends up after it."""

    index: Value
    _close: Callable[[Builder], None]

    @classmethod
    def open(cls, builder: Builder, count: Value) -> _Loop:
        function, before = builder.function, builder.block
        header, body, after = (function.add_block(name) for name in ("header", "body", "after"))
        builder.br(header)
        builder.block = header
        index = builder.phi(types.I64, [(_ZERO, before)])
        builder.cond_br(builder.icmp("slt", index, count), body, after)
        builder.block = body

        def close(builder: Builder) -> None:
            index.add_incoming(builder.add(index, _ONE, flags=("nuw", "nsw")), builder.block)
            builder.br(header)
            builder.block = after

        return cls(index, close)

    def close(self, builder: Builder) -> None:
        """Ends the body."""
        self._close(builder)
