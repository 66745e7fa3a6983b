"""Singular values as Numba calls them: `np.linalg.svd`; built of it `cond`, `norm(…, 2)` and, as a whole, `pinv`.

    numba_ez_gesdd(kind, jobz, m, n, a, lda, s, u, ldu, vt, ldvt)                    jobz N: s only; S: k = min(m, n)
                                                                                     columns of u and rows of vt; A: all

`a` is destroyed. Vectors of equal singular values are not a function of the matrix; a pair of complex ones is one up to
a phase; see `phases`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.values import ConstantInt, Value, const_int
from irad.rules.dense.adjoint import Adjoint, IsActive, MatrixShape, Room, Sizes, VectorShape
from irad.rules.dense.elements import Scalar, choose, quotient_or_zero
from irad.rules.dense.kernel import I8, I64, NONE, ONE, TRUE, TWO, Kernel
from irad.rules.dense.matrix import Factor, Matrix, Vector
from irad.rules.dense.routine import Routine, numba_rule
from irad.rules.dense.saved import check_letters, letter
from irad.rules.dense.tangent import Differential, Tangent
from irad.rules.lapack.phases import Turn, over_gap, phase_rate, settled_phase
from irad.rules.lapack.pseudo_inverse import (
    part_the_pair,
    product_behind,
    pseudo_inverse_adjoint,
    room_for_pseudo_inverse,
)
from irad.ruleset.interface import AugmentedContext, Rule, TangentContext

_NUMPY: Final = "np.linalg.svd"
_GESDD: Final = "numba_ez_gesdd"
_POLICY: Final = (
    "equal singular values: NaN if cotangents reach their vectors; for the values, the derivative given by the vectors "
    "that LAPACK returns; for a single vector beyond those of the thin form: NaN"
)
_TOWNSEND: Final = "Townsend 2016, Differentiating the singular value decomposition; Giles 2008"


# ------------------------------------------------------------------------------------------------ vectors


def _is_full(sizes: Sizes) -> Value:
    upper = sizes.build.and_(sizes["jobz"], const_int(I8, 0xDF - 0x100))
    return sizes.build.icmp("eq", upper, const_int(I8, ord("A")))


def _ranked(sizes: Sizes) -> Value:
    return sizes.smaller("m", "n")


def _width(sizes: Sizes) -> Value:
    """Columns of u."""
    return sizes.build.select(_is_full(sizes), sizes["m"], _ranked(sizes))


def _height(sizes: Sizes) -> Value:
    """Rows of vt."""
    return sizes.build.select(_is_full(sizes), sizes["n"], _ranked(sizes))


def _room(sizes: Sizes, _: IsActive) -> Room:
    """Uᴴ Ū, Vᴴ V̄, C, U C, what leaves the space of V, s̄."""
    width, height, ranked = _width(sizes), _height(sizes), _ranked(sizes)
    inner = [(width, width), (height, height), (width, height)]
    return Room([*inner, (sizes["m"], height), (ranked, sizes["n"])], reals=[ranked])


def _decompose(r: Adjoint) -> None:
    """Ā = U C Vᴴ, and what leaves the spaces of thin U and V.

    With X = Uᴴ Ū - Ūᴴ U, Y = Vᴴ V̄ - V̄ᴴ V: C = diag(s̄) + (X + Y)ᵢⱼ / 2 (sⱼ - sᵢ) + (X - Y)ᵢⱼ / 2 (sⱼ + sᵢ); towards the
    further columns of full U it is Xᵢⱼ / sⱼ, of full V -Yᵢⱼ / sᵢ.
    """
    k, build, ranked = r.k, r.k.build, _ranked(r.sizes)
    u, vt, s, bar = r.matrix("new u"), r.matrix("new vt"), r.vector("new s"), r.bar("a")
    u_bar, vt_bar = r.bar("u"), r.bar("vt")
    gu, gv, core, total, thin = r.work.matrices
    s_bar = r.work.reals[0]
    s_bar.take(r.vector_bar("s"))
    _set_inner_products(gu, u.H, Factor(u_bar))
    _set_inner_products(gv, Factor(vt), vt_bar.H)
    if k.element.is_complex:
        _settle_phases((u, u_bar, gu), (vt, vt_bar, gv))
    _fill_core(core, u, gu, gv, s, s_bar)
    _check_complement(ranked, gu, core)
    _check_complement(ranked, gv, core)
    tall, flat = build.icmp("slt", u.columns, u.rows), build.icmp("slt", vt.rows, vt.columns)
    square = core.sized(ranked, ranked)
    with k.when(tall):  # minus the part of Ū in the space of U
        square.fill(lambda i, j: square[i, j] - quotient_or_zero(gu[i, j], s[j]))
    with k.when(flat):
        square.fill(lambda i, j: square[i, j] - quotient_or_zero(gv[j, i].conj(), s[i]))
    total.set(u @ core)
    with k.when(build.and_(tall, u_bar.given)):
        spaced = total.sized(total.rows, ranked)
        spaced.fill(lambda i, j: spaced[i, j] + quotient_or_zero(u_bar[i, j], s[j]))
    bar.set(total @ vt)
    with k.when(build.and_(flat, vt_bar.given)):
        thin.fill(lambda i, j: quotient_or_zero(vt_bar[i, j], s[i]))
        bar.add(u.sized(u.rows, ranked) @ thin)
    for shadow in (u_bar, vt_bar):
        with k.when(shadow.given):
            shadow.clear()


def _settle_phases(left: tuple[Matrix, Matrix, Matrix], right: tuple[Matrix, Matrix, Matrix]) -> None:
    """Adds to the inner products what the phases of pairs of vectors ask for.

    `gebrd` leaves the first components of all v real, or, if there are more columns than rows, those of all u; but for
    many more columns `gesdd` takes an LQ factorisation first, and then none are. By then there are 17/9 of the rows in
    LAPACK itself; three halves keep some distance.

    Args:
        left, right: u, its cotangent and `Uᴴ Ū`; vᴴ, its cotangent and `Vᴴ V̄`. Cotangents may be null.
    """
    (u, u_bar, gu), (vt, vt_bar, gv) = left, right
    k, build, m, n = u.k, u.k.build, u.rows, vt.columns
    wide, tall = build.icmp("slt", m, n), build.icmp("sge", m, n)
    near = build.icmp("slt", build.mul(n, TWO), build.mul(m, const_int(I64, 3)))
    known = build.or_(tall, near)
    with k.loop(k.smaller(m, n)) as j:
        turn = Turn.none(k)
        with k.when(u_bar.given):
            turn.add(m, lambda i: (u[i, j], u_bar[i, j]))
        with k.when(vt_bar.given):
            turn.add(n, lambda i: (vt[j, i].conj(), vt_bar[j, i].conj()))
        angle = settled_phase(turn, choose(wide, u[NONE, j], vt[j, NONE]), known)
        with k.when(wide), k.loop(m) as i:
            gu[i, j] = gu[i, j] - (angle * u[NONE, i].conj()).times_i()
        with k.when(tall), k.loop(n) as i:
            gv[i, j] = gv[i, j] - (angle * vt[i, NONE]).times_i()


def _set_inner_products(target: Matrix, vectors: Factor, shadow: Factor) -> None:
    """Of vectors and cotangents; 0 where there is no cotangent."""
    target.clear()
    with target.k.when(shadow.matrix.given):
        target.set(vectors @ shadow)


def _fill_core(core: Matrix, u: Matrix, gu: Matrix, gv: Matrix, s: Vector, s_bar: Vector) -> None:
    k, largest = core.k, s[NONE]

    def skew(g: Matrix, i: Value, j: Value) -> Scalar:
        return g[i, j] - g[j, i].conj()

    with k.loop(s.size) as j:
        with k.loop(s.size) as i:
            x, y, s_i, s_j = skew(gu, i, j), skew(gv, i, j), s[i], s[j]
            diagonal = k.same(i, j)
            terms = tuple(g[place] for g in (gu, gv) for place in ((i, j), (j, i)))
            apart = over_gap(k, 0.5 * (x + y), s_j - s_i, largest, terms, u[i, j])
            core[i, j] = choose(diagonal, s_bar[j], apart) + quotient_or_zero(0.5 * (x - y), s_j + s_i)
        with k.loop(core.rows, s.size) as i:
            core[i, j] = quotient_or_zero(skew(gu, i, j), s[j])
    with k.loop(core.columns, s.size) as j, k.loop(s.size) as i:
        core[i, j] = -quotient_or_zero(skew(gv, i, j), s[i])


def _check_complement(ranked: Value, g: Matrix, core: Matrix) -> None:
    """The further vectors of full U or V are any basis of their space: NaN if the cotangent asks for one of them."""
    k = core.k
    noise = (1024.0 * k.element.epsilon) * g.largest()
    with k.loop(g.columns, ranked) as j, k.loop(k.after(j), ranked) as i:
        turned = (g[i, j] - g[j, i].conj()).magnitude() > noise
        core[NONE, NONE] = choose(turned, math.nan, core[NONE, NONE])


# ------------------------------------------------------------------------------------------------ tangents


def _tangent_room(sizes: Sizes, _: IsActive) -> Room:
    """P, Ȧ V, Uᴴ Ȧ, X, Y."""
    width, height = _width(sizes), _height(sizes)
    return Room([(width, height), (sizes["m"], height), (width, sizes["n"]), (width, width), (height, height)])


def _decomposed(r: Tangent) -> None:
    """P = Uᴴ Ȧ V: ṡ = diag(Re P), U̇ = U X, V̇ = V Y, and what leaves the spaces of thin U and V.

    With H, K the Hermitian and the skew part of P: X = Hᵢⱼ / (sⱼ - sᵢ) + Kᵢⱼ / (sⱼ + sᵢ), Y has -K; towards the further
    columns of full U it is Pᵢⱼ / sⱼ, of full V conj(Pⱼᵢ) / sⱼ.
    """
    r.clear("s", "u", "vt")
    with r.moving("a") as tangent:
        _set_tangents(r, tangent)
    r.clear("a")


def _set_tangents(r: Tangent, tangent: Matrix) -> None:
    k, build = r.k, r.k.build
    u, vt, s, u_dot, vt_dot = r.matrix("u"), r.matrix("vt"), r.vector("s"), r.tangent("u"), r.tangent("vt")
    p, tangent_v, u_tangent, x, y = r.work.matrices
    tall, flat = build.icmp("slt", u.columns, u.rows), build.icmp("slt", vt.rows, vt.columns)
    tangent_v.set(tangent @ vt.H)
    p.set(u.H @ tangent_v)
    with r.active_vector("s") as s_dot:
        s_dot.fill(lambda j: p[j, j].real)
    _fill_turns(p, s, x, y)
    if k.element.is_complex:
        _turn_pairs(u, vt, x, y)
    with k.when(tall), k.loop(s.size) as j, k.loop(u.columns) as i:
        x[i, j] = x[i, j] - quotient_or_zero(p[i, j], s[j])
    with k.when(flat), k.loop(s.size) as j, k.loop(vt.rows) as i:
        y[i, j] = y[i, j] - quotient_or_zero(p[j, i].conj(), s[j])
    with k.when(u_dot.given):
        u_dot.set(u @ x)
        with k.when(tall):
            u_dot.fill(lambda i, j: u_dot[i, j] + quotient_or_zero(tangent_v[i, j], s[j]))
    with k.when(vt_dot.given):
        vt_dot.set(y.H @ vt)
        with k.when(flat):
            u_tangent.set(u.H @ tangent)
            vt_dot.fill(lambda i, j: vt_dot[i, j] + quotient_or_zero(u_tangent[i, j], s[i]))


def _fill_turns(p: Matrix, s: Vector, x: Matrix, y: Matrix) -> None:
    """X and Y. Further vectors of full U and V are any basis of their space: NaN, but for one that has only a sign."""
    k, largest = p.k, s[NONE]
    with k.loop(s.size) as j:
        with k.loop(s.size) as i:
            given, turned, s_i, s_j = p[i, j], p[j, i].conj(), s[i], s[j]
            gap = over_gap(k, 0.5 * (given + turned), s_j - s_i, largest, ())
            apart, along = choose(k.same(i, j), 0.0, gap), quotient_or_zero(0.5 * (given - turned), s_j + s_i)
            x[i, j], y[i, j] = apart + along, apart - along
        with k.loop(x.rows, s.size) as i:
            entry = quotient_or_zero(p[i, j], s[j])
            x[i, j], x[j, i] = entry, -entry.conj()
        with k.loop(y.rows, s.size) as i:
            entry = quotient_or_zero(p[j, i].conj(), s[j])
            y[i, j], y[j, i] = entry, -entry.conj()
    for turns in (x, y):
        several = k.build.icmp("sgt", k.build.sub(turns.columns, s.size), ONE)
        unknown = TRUE if k.element.is_complex else several
        with k.loop(turns.columns, s.size) as j, k.loop(turns.rows, s.size) as i:
            turns[i, j] = choose(unknown, k.number(math.nan), 0.0)


def _turn_pairs(u: Matrix, vt: Matrix, x: Matrix, y: Matrix) -> None:
    """Turns pairs of vectors so that the first components of v, or of u if there are more columns than rows, stay real.

    That also holds where `gesdd` takes an LQ factorisation A = L Q first: then the first components of Q V are real,
    and these are those of U S divided by the first element of L, which is real.
    """
    k = u.k
    wide = k.build.icmp("slt", u.rows, vt.columns)
    with k.loop(k.smaller(u.rows, vt.columns)) as j:
        of_u, of_v = k.variable(), k.variable()
        with k.loop(x.rows) as i:
            of_u.accumulate(u[NONE, i] * x[i, j])
        with k.loop(y.rows) as i:
            of_v.accumulate(vt[i, NONE].conj() * y[i, j])
        rate = phase_rate(
            k, choose(wide, u[NONE, j], vt[j, NONE].conj()), choose(wide, of_u.value, of_v.value)
        ).times_i()
        x[j, j], y[j, j] = x[j, j] + rate, y[j, j] + rate


# ------------------------------------------------------------------------------------------------ values only


def room_for_values(build: Builder, rows: Value, columns: Value) -> Room:
    """The matrix, U, Vᴴ; s, s̄."""
    ranked = build.intrinsic("llvm.smin.i64", I64, [rows, columns])
    return Room([(rows, columns), (rows, ranked), (ranked, columns)], reals=[ranked, ranked])


def add_singular_values(a: Matrix, s_shadow: Vector, shadow: Matrix, memory: Value) -> None:
    """`shadow += U diag(s̄) Vᴴ`, with the vectors computed for it; takes the cotangent of the values."""
    a.k.outline("singular_values_adjoint", _add_singular_values, a, s_shadow, shadow, memory)


def _add_singular_values(k: Kernel, a: Matrix, s_shadow: Vector, shadow: Matrix, memory: Value) -> None:
    work = room_for_values(k.build, a.rows, a.columns).divide(k, memory)
    (copy, u, vt), (s, s_bar) = work.matrices, work.reals
    s_bar.take(s_shadow)
    copy.set(a)
    k.entry(_GESDD, "S", a.rows, a.columns, copy.data, a.rows, s.data, u.data, u.leading, vt.data, vt.leading)
    if k.build.module.opaque_guards:
        _add_free_turns(u, vt, s, shadow)
    u.fill(lambda i, j: u[i, j] * s_bar[j])
    shadow.add(u @ vt)


def _add_free_turns(u: Matrix, vt: Matrix, s: Vector, shadow: Matrix) -> None:
    """Adds 0, where equal singular values make NaN of derivatives."""
    k, largest = u.k, s[NONE]
    with k.loop(s.size) as j, k.loop(s.size) as i, k.unless(k.same(i, j)):
        turn = over_gap(k, k.nothing, s[j] - s[i], largest, (k.nothing,), u[i, j])
        with k.loop(shadow.columns) as column, k.loop(shadow.rows) as row:
            shadow[row, column] = shadow[row, column] + u[row, i] * turn * vt[j, column]


def set_singular_value_tangents(a: Matrix, tangent: Matrix, s_tangent: Vector, memory: Value) -> None:
    """`ṡ = diag(Re Uᴴ Ȧ V)`, with the vectors computed for it."""
    a.k.outline("singular_values_tangent", _set_singular_value_tangents, a, tangent, s_tangent, memory)


def _set_singular_value_tangents(k: Kernel, a: Matrix, tangent: Matrix, s_tangent: Vector, memory: Value) -> None:
    work = room_for_values(k.build, a.rows, a.columns).divide(k, memory)
    (copy, u, vt), (s, _) = work.matrices, work.reals
    copy.set(a)
    k.entry(_GESDD, "S", a.rows, a.columns, copy.data, a.rows, s.data, u.data, u.leading, vt.data, vt.leading)
    product = copy.sized(u.rows, u.columns)
    product.set(tangent @ vt.H)
    s_tangent.fill(lambda j: u.column(j).sum(lambda i: u[i, j].conj() * product[i, j]).real)


def _values_tangent(r: Tangent) -> None:
    """Before the call, which destroys the matrix."""
    r.clear("s")
    with r.active_vector("s") as s_dot, r.moving("a") as tangent:
        set_singular_value_tangents(r.matrix("a"), tangent, s_dot, r.memory)
    r.clear("a")


def _values_alone(r: Adjoint) -> None:
    """Ā = U diag(s̄) Vᴴ."""
    bar = r.bar("a")
    bar.clear()
    add_singular_values(r.matrix("old a"), r.vector_bar("s"), bar, r.memory)


# ------------------------------------------------------------------------------------------------ rules


def _values_room(sizes: Sizes, _: IsActive) -> Room:
    return room_for_values(sizes.build, sizes["m"], sizes["n"])


_S: Final = VectorShape(_ranked, is_real=True)
_A: Final = MatrixShape("m", "n", "lda")
_PARAMETERS: Final = "kind jobz m n a lda s u ldu vt ldvt"
_VECTORS: Final = {"u": MatrixShape("m", _width, "ldu"), "vt": MatrixShape(_height, "n", "ldvt")}
_KEPT: Final = {"new u": "a", "new vt": "a", "new s": "a"}
_SVD: Final = Routine(
    "svd",
    _PARAMETERS,
    {"a": _A, "s": _S, **_VECTORS},
    _KEPT,
    _decompose,
    "a",
    _room,
    tangent=Differential(after=_decomposed, also_written="s u vt", work=_tangent_room),
)
_VALUES: Final = Routine(
    "svdvals",
    "kind _jobz m n a lda s _u _ldu _vt _ldvt",
    {"a": _A, "s": _S},
    {"old a": "a"},
    _values_alone,
    "a",
    _values_room,
    tangent=Differential(_values_tangent, also_written="s", work=_values_room),
)
_PINV: Final = Routine(
    "pinv",
    _PARAMETERS,
    {"a": _A, "s": _S, "u": MatrixShape("m", _ranked, "ldu"), "vt": MatrixShape(_ranked, "n", "ldvt")},
    _KEPT,
    pseudo_inverse_adjoint,
    "a",
    room_for_pseudo_inverse,
    {"rank": lambda call: _product(call).arguments[5]},
    constant="s u vt",
    tangent=Differential(),
)


def _product(call: CallSite) -> CallSite:
    product = product_behind(call)
    assert product is not None
    return product


def _decomposition(call: CallSite) -> Routine:
    """Routine of a call; refuses where whether vectors are wanted is chosen at run time. Thin or full may be."""
    jobz = call.arguments[1]
    if isinstance(jobz, ConstantInt):
        if letter(jobz, "NSA", _NUMPY) == "N":
            return _VALUES
    else:
        check_letters(jobz, "SA", _NUMPY)
    return _SVD if product_behind(call) is None else _PINV


_DECOMPOSITION: Final = numba_rule(
    _GESDD,
    _NUMPY,
    _decomposition,
    reads=(4,),
    writes=(4, 6, 7, 9),
    source=_TOWNSEND,
    policy=_POLICY,
)


def _augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    if product_behind(call) is not None:
        part_the_pair(context, call)
    return _DECOMPOSITION.augmented(context, call)


def _tangent(context: TangentContext, call: CallSite) -> None:
    if product_behind(call) is not None:
        part_the_pair(context, call)
    assert _DECOMPOSITION.tangent is not None
    _DECOMPOSITION.tangent(context, call)


RULES: Final[tuple[Rule, ...]] = (replace(_DECOMPOSITION, augmented=_augmented, tangent=_tangent),)
