"""BLAS as Numba calls it: `np.dot`, `@`, `np.linalg.norm` of contiguous arrays.

Numba's entry points take a letter for the type, sizes, and pointers; matrices are in column-major order with a leading
dimension, scalars come through pointers, the result goes through a pointer, the i32 returned is a status:

    numba_xxdot (kind, conjugate, n, x, y, result)                                     result = x · y
    numba_xxgemv(kind, trans, m, n, alpha, a, lda, x, beta, y)                         y = α op(A) x + β y
    numba_xxgemm(kind, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)   C = α op(A) op(B) + β C
    numba_xxnrm2(kind, n, x, incx, result)                                             result = ‖x‖₂

The adjoints are calls of the same functions. An operand that may change before the reverse sweep comes is copied in
the forward sweep. A result's shadow holds the cotangent of the new content on the way in and that of the old content on
the way out. Operands may be one and the same array (`A @ A`): each contributes to the one shadow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Alloca, CallSite, Store
from irad.ir.types import FloatType
from irad.ir.values import ConstantFloat, ConstantInt, GlobalVariable, Value, const_float, const_int, zero
from irad.rules.kernels import add_scaled, scale_matrix
from irad.ruleset.interface import CallRule, Effects, ForwardContext, ReverseContext, Rule

_GILES: Final = (
    "Giles 2008, Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
)
_I32, _I64, _CHAR, _PTR = types.I32, types.I64, types.I8, types.PTR
_DOT: Final = types.function_type(_I32, (_CHAR, _CHAR, _I64, _PTR, _PTR, _PTR))
_GEMV: Final = types.function_type(_I32, (_CHAR, _CHAR, _I64, _I64, _PTR, _PTR, _I64, _PTR, _PTR, _PTR))
_GEMM: Final = types.function_type(
    _I32, (_CHAR, _CHAR, _CHAR, _I64, _I64, _I64, _PTR, _PTR, _I64, _PTR, _I64, _PTR, _PTR, _I64)
)
_KINDS: Final = {ord("s"): types.FLOAT, ord("d"): types.DOUBLE}
_COMPLEX: Final = {ord("c"): "complex64", ord("z"): "complex128"}
_PLAIN: Final = const_int(_CHAR, ord("n"))
_TRANSPOSED: Final = const_int(_CHAR, ord("t"))
_ONE: Final = const_int(_I64, 1)


# ------------------------------------------------------------------------------------------------ dot


def _dot_forward(context: ForwardContext, call: CallSite) -> Sequence[Value]:
    kind, _, count, x, y, _ = call.arguments
    type_, count = _element(kind, "np.dot"), context.value(count)
    return (
        _kept(context, x, type_, lambda _: count, wanted=context.is_active(y)),
        _kept(context, y, type_, lambda _: count, wanted=context.is_active(x)),
    )


def _dot_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, _, count, x, y, result = call.arguments
    if not context.is_active(result):
        return
    type_, builder = _element(kind, "np.dot"), context.builder
    cotangent = _take(context, result, type_)
    length = context.value(count)
    for operand, other in ((x, saved[1]), (y, saved[0])):
        if context.is_active(operand):
            add_scaled(builder, type_, length, cotangent, context.value(other), context.shadow(operand), _ONE)


# ------------------------------------------------------------------------------------------------ norm


def _norm_forward(context: ForwardContext, call: CallSite) -> Sequence[Value]:
    kind, count, x, step, result = call.arguments
    type_ = _element(kind, "np.linalg.norm")
    count, step = context.value(count), context.value(step)

    def extent(builder: Builder) -> Value:
        distance = builder.intrinsic("llvm.abs.i64", _I64, [step, const_int(types.I1, 0)])
        return _extent(builder, _ONE, count, distance)

    norm = context.after.load(type_, context.value(result))
    return _kept(context, x, type_, extent, wanted=context.is_active(x)), norm


def _norm_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, count, x, step, result = call.arguments
    if not context.is_active(result):
        return
    type_, builder = _element(kind, "np.linalg.norm"), context.builder
    cotangent = _take(context, result, type_)
    if not context.is_active(x):
        return
    norm, nothing = context.value(saved[1]), const_float(type_, 0.0)
    # At the origin the subgradient 0 is taken; a zero cotangent stays zero whatever the norm.
    silent = builder.or_(builder.fcmp("oeq", norm, nothing), builder.fcmp("oeq", cotangent, nothing))
    scale = builder.select(silent, nothing, builder.fdiv(cotangent, norm))
    add_scaled(
        builder, type_, context.value(count), scale, context.value(saved[0]), context.shadow(x), context.value(step)
    )


# ------------------------------------------------------------------------------------------------ matrix times vector


def _gemv_forward(context: ForwardContext, call: CallSite) -> Sequence[Value]:
    kind, trans, m, n, alpha, a, lda, x, beta, _ = call.arguments
    type_ = _element(kind, "np.dot")
    trans, m, n, lda = (context.value(v) for v in (trans, m, n, lda))

    def extent_a(builder: Builder) -> Value:
        return _extent(builder, m, n, lda)

    def length_x(builder: Builder) -> Value:
        return builder.select(_is_plain(builder, trans), n, m)

    return (
        _scalar(context, alpha, type_, "alpha"),
        _scalar(context, beta, type_, "beta"),
        _kept(context, a, type_, extent_a, wanted=context.is_active(x)),
        _kept(context, x, type_, length_x, wanted=context.is_active(a)),
    )


def _gemv_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, trans, m, n, _, a, lda, x, _, y = call.arguments
    if not context.is_active(y):
        return
    type_, builder = _element(kind, "np.dot"), context.builder
    flag, rows, columns, leading = (context.value(v) for v in (trans, m, n, lda))
    scale = _slot(builder, context.value(saved[0]), type_)
    one = _slot(builder, const_float(type_, 1.0), type_)
    plain, y_shadow = _is_plain(builder, flag), context.shadow(y)
    if context.is_active(a):
        # A is m × n as stored: its cotangent is α ȳ xᵀ, or α x ȳᵀ where the product took Aᵀ.
        vector = context.value(saved[3])
        left, right = builder.select(plain, y_shadow, vector), builder.select(plain, vector, y_shadow)
        gemm = context.declare("numba_xxgemm", _GEMM)
        args = [kind, _PLAIN, _PLAIN, rows, columns, _ONE, scale, left, _at_least_one(builder, rows), right, _ONE]
        builder.call(gemm, [*args, one, context.shadow(a), leading])
    if context.is_active(x):
        gemv = context.declare("numba_xxgemv", _GEMV)
        args = [kind, _flipped(builder, flag), rows, columns, scale, context.value(saved[2]), leading]
        builder.call(gemv, [*args, y_shadow, one, context.shadow(x)])
    length = builder.select(plain, rows, columns)
    _scale_result(context, type_, context.value(saved[1]), y_shadow, length, _ONE, length)


# ------------------------------------------------------------------------------------------------ matrix times matrix


def _gemm_forward(context: ForwardContext, call: CallSite) -> Sequence[Value]:
    kind, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, _, _ = call.arguments
    type_ = _element(kind, "np.dot")
    transa, transb, m, n = (context.value(v) for v in (transa, transb, m, n))
    k, lda, ldb = (context.value(v) for v in (k, lda, ldb))

    def extent(flag: Value, rows: Value, columns: Value, leading: Value) -> Callable[[Builder], Value]:
        def emitted(builder: Builder) -> Value:
            stored = _chosen(builder, _is_plain(builder, flag), (rows, columns), (columns, rows))
            return _extent(builder, stored[0], stored[1], leading)

        return emitted

    return (
        _scalar(context, alpha, type_, "alpha"),
        _scalar(context, beta, type_, "beta"),
        _kept(context, a, type_, extent(transa, m, k, lda), wanted=context.is_active(b)),
        _kept(context, b, type_, extent(transb, k, n, ldb), wanted=context.is_active(a)),
    )


def _gemm_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, transa, transb, m, n, k, _, a, lda, b, ldb, _, c, ldc = call.arguments
    if not context.is_active(c):
        return
    type_, builder = _element(kind, "np.dot"), context.builder
    flag_a, flag_b, rows, columns, inner = (context.value(v) for v in (transa, transb, m, n, k))
    lead_a, lead_b, lead_c = (context.value(v) for v in (lda, ldb, ldc))
    scale = _slot(builder, context.value(saved[0]), type_)
    one = _slot(builder, const_float(type_, 1.0), type_)
    gemm, c_shadow = context.declare("numba_xxgemm", _GEMM), context.shadow(c)
    if context.is_active(a):
        # Ā += α C̄ op(B)ᵀ (m × k), or α op(B) C̄ᵀ (k × m) where the product took Aᵀ.
        operand = context.value(saved[3])
        plain = [_PLAIN, _flipped(builder, flag_b), rows, inner, columns, scale, c_shadow, lead_c, operand, lead_b]
        other = [flag_b, _TRANSPOSED, inner, rows, columns, scale, operand, lead_b, c_shadow, lead_c]
        chosen = _chosen(builder, _is_plain(builder, flag_a), plain, other)
        builder.call(gemm, [kind, *chosen, one, context.shadow(a), lead_a])
    if context.is_active(b):
        # B̄ += α op(A)ᵀ C̄ (k × n), or α C̄ᵀ op(A) (n × k) where the product took Bᵀ.
        operand = context.value(saved[2])
        plain = [_flipped(builder, flag_a), _PLAIN, inner, columns, rows, scale, operand, lead_a, c_shadow, lead_c]
        other = [_TRANSPOSED, flag_a, columns, inner, rows, scale, c_shadow, lead_c, operand, lead_a]
        chosen = _chosen(builder, _is_plain(builder, flag_b), plain, other)
        builder.call(gemm, [kind, *chosen, one, context.shadow(b), lead_b])
    _scale_result(context, type_, context.value(saved[1]), c_shadow, rows, columns, lead_c)


# ------------------------------------------------------------------------------------------------ parts


def _element(kind: Value, operation: str) -> FloatType:
    """The type that a BLAS letter stands for.

    Raises:
        UnsupportedError: complex numbers, or a letter that is not known at compile time.
    """
    if isinstance(kind, ConstantInt) and kind.value in _KINDS:
        return _KINDS[kind.value]
    if isinstance(kind, ConstantInt) and kind.value in _COMPLEX:
        raise UnsupportedError(
            f"{operation} of {_COMPLEX[kind.value]} arrays has no derivative rule",
            "(a) write the product as loops, or (b) keep real and imaginary parts in real arrays",
        )
    raise UnsupportedError(
        f"the element type of this {operation} is not known at compile time",
        "call it in separate functions for each element type",
    )


def _kept(
    context: ForwardContext, pointer: Value, type_: FloatType, count: Callable[[Builder], Value], *, wanted: bool
) -> Value:
    """An operand as the reverse sweep finds it: itself, or a copy if it may be overwritten; null if not wanted."""
    if not wanted:
        return zero(_PTR)
    operand = context.value(pointer)
    if not context.overwritten(pointer):
        return operand
    size = context.before.mul(count(context.before), const_int(_I64, types.size_of(type_)))
    copy, never = context.allocate(size), const_int(types.I1, 0)
    context.before.intrinsic("llvm.memcpy.p0.p0.i64", types.VOID, [copy, operand, size, never])
    return copy


def _scalar(context: ForwardContext, pointer: Value, type_: FloatType, name: str) -> Value:
    """The value of alpha or beta, read before the call.

    Raises:
        UnsupportedError: it depends on active values. Numba passes constants.
    """
    known = _constants_in(pointer)
    is_constant = isinstance(pointer, GlobalVariable) and pointer.constant
    if known is None and context.is_active(pointer) and not is_constant:
        raise UnsupportedError(
            f"the BLAS factor {name} depends on differentiated values",
            "multiply by it outside the product",
        )
    if known is not None and len({constant.text for constant in known}) == 1:
        return known[0]
    return context.before.load(type_, context.value(pointer))


def _constants_in(pointer: Value) -> list[ConstantFloat] | None:
    """What a slot can hold, if that is only constants; None if it is anything else."""
    if isinstance(pointer, GlobalVariable):
        constant = pointer.initializer if pointer.constant else None
        return [constant] if isinstance(constant, ConstantFloat) else None
    if not isinstance(pointer, Alloca):
        return None
    found: list[ConstantFloat] = []
    for user in pointer.users:
        match user:
            case Store(operands=[ConstantFloat() as stored, target]) if target is pointer:
                found.append(stored)
            case CallSite() if _only_reads(user, pointer):
                pass
            case _:
                return None
    return found or None


def _only_reads(call: CallSite, pointer: Value) -> bool:
    """Whether a call leaves a slot as it is: a lifetime marker, or a product that takes it as alpha or beta."""
    name = call.callee.name or ""
    factors = {"numba_xxgemv": (4, 8), "numba_xxgemm": (6, 11)}.get(name, ())
    positions = [index for index, argument in enumerate(call.arguments) if argument is pointer]
    return name.startswith("llvm.lifetime.") or all(index in factors for index in positions)


def _slot(builder: Builder, value: Value, type_: FloatType) -> Value:
    """A pointer to a scalar: a constant of the module, or a slot in the frame that is filled here."""
    if isinstance(value, ConstantFloat):
        name = f"irad_constant_{type_}_{value.text}"
        found = builder.module.globals.get(name)
        if found is None:
            found = GlobalVariable(
                _PTR, name, value_type=type_, initializer=value, constant=True, prefix=("private", "unnamed_addr")
            )
            builder.module.globals[name] = found
        return found
    slot = Builder.at_start(builder.function.entry).alloca(type_)
    builder.store(value, slot)
    return slot


def _take(context: ReverseContext, result: Value, type_: FloatType) -> Value:
    """The cotangent of a result in memory; it is zero afterwards."""
    shadow = context.shadow(result)
    cotangent = context.builder.load(type_, shadow)
    context.builder.store(zero(type_), shadow)
    return cotangent


def _scale_result(
    context: ReverseContext, type_: FloatType, beta: Value, shadow: Value, rows: Value, columns: Value, leading: Value
) -> None:
    """Turns the cotangent of the new content of a result into that of the old one: β times it."""
    if isinstance(beta, ConstantFloat) and beta.value == 1.0:
        return
    scale_matrix(context.builder, type_, rows, columns, beta, shadow, leading)


def _is_plain(builder: Builder, flag: Value) -> Value:
    """Whether a transposition letter says "as it is" (`n` or `N`)."""
    lower = builder.or_(flag, const_int(_CHAR, 0x20))
    return builder.icmp("eq", lower, _PLAIN)


def _flipped(builder: Builder, flag: Value) -> Value:
    return builder.select(_is_plain(builder, flag), _TRANSPOSED, _PLAIN)


def _chosen(builder: Builder, condition: Value, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
    return [builder.select(condition, x, y) for x, y in zip(a, b, strict=True)]


def _at_least_one(builder: Builder, size: Value) -> Value:
    """A leading dimension that BLAS accepts for an empty matrix too."""
    return builder.intrinsic("llvm.smax.i64", _I64, [size, _ONE])


def _extent(builder: Builder, rows: Value, columns: Value, leading: Value) -> Value:
    """Elements from the first to behind the last of a column-major matrix."""
    extent = builder.add(builder.mul(builder.sub(columns, _ONE), leading), rows)
    return builder.intrinsic("llvm.smax.i64", _I64, [extent, const_int(_I64, 0)])


def _effects(reads: tuple[int, ...], writes: int) -> Effects:
    return Effects(reads=frozenset(reads), writes=frozenset({writes}), other=False)


RULES: Final[tuple[Rule, ...]] = (
    CallRule(("numba_xxdot",), _effects((3, 4), 5), _dot_reverse, _dot_forward, _GILES),
    CallRule(("numba_xxnrm2",), _effects((2,), 4), _norm_reverse, _norm_forward),
    CallRule(("numba_xxgemv",), _effects((4, 5, 7, 8, 9), 9), _gemv_reverse, _gemv_forward, _GILES),
    CallRule(("numba_xxgemm",), _effects((6, 7, 9, 11, 12), 12), _gemm_reverse, _gemm_forward, _GILES),
)
