"""Eigenvalues of Hermitian matrices as Numba calls them: `np.linalg.eigh` and what is built of it.

    numba_ez_xxxevd(kind, jobz, uplo, n, a, lda, w)                                     eigh, eigvalsh

Where the primal asks for vectors they are kept. Where it asks for values only, the matrix is kept, and the adjoint
computes the vectors that it needs. What vectors leave open: `phases`.
"""

from __future__ import annotations

from typing import Final

from irad.ir.instructions import CallSite
from irad.rules.dense.adjoint import Adjoint, MatrixShape, Room, Shapes, VectorShape
from irad.rules.dense.elements import choose
from irad.rules.dense.kernel import NONE
from irad.rules.dense.matrix import Matrix, Vector
from irad.rules.dense.routine import Routine, Work, numba_rule
from irad.rules.dense.saved import letter
from irad.rules.dense.tangent import Differential, Tangent
from irad.rules.lapack.phases import over_gap, phase_rate, settled_phase, turn_column, turn_of
from irad.rules.lapack.systems import GILES
from irad.ruleset.interface import Rule

EQUAL: Final = (
    "equal eigenvalues: NaN if cotangents reach their eigenvectors; for the eigenvalues, the derivative given by the "
    "eigenvectors that LAPACK returns"
)
_EVD: Final = "numba_ez_xxxevd"


def _eigh(r: Adjoint) -> None:
    """Ā = V K Vᴴ, K = diag(w̄) + (Vᴴ V̄ - V̄ᴴ V)ᵢⱼ / 2 (wⱼ - wᵢ)."""
    k, v, w, bar = r.k, r.matrix("new a"), r.vector("new w"), r.bar("a")
    m, core = r.work.matrices
    w_bar = r.work.reals[0]
    w_bar.take(r.vector_bar("w"))
    if k.element.is_complex:
        _settle_first_components(v, bar)
    m.set(v.H @ bar)
    largest = w.largest()
    with k.loop(w.size) as j:
        with k.loop(j) as i:
            gap, products = w[j] - w[i], (m[i, j], m[j, i].conj())
            entry = over_gap(k, 0.5 * (products[0] - products[1]), gap, largest, products, v[i, j])
            core[i, j], core[j, i] = entry, entry.conj()
        core[j, j] = w_bar[j]
    m.set(v @ core)
    core.set(m @ v.H)
    bar.set(bar.strictly_lower)  # clears the upper triangle, which is not read
    _fold_lower(core, bar)


def _settle_first_components(v: Matrix, bar: Matrix) -> None:
    """The reduction to a tridiagonal matrix by `hetrd` leaves the first components of all vectors real."""
    with v.k.loop(v.columns) as j:
        turn = turn_of(v.k, v.rows, lambda i: (v[i, j], bar[i, j]))
        bar[NONE, j] = bar[NONE, j] - settled_phase(turn, v[NONE, j]).times_i()


def _eigh_tangent(r: Tangent) -> None:
    """Ṡ = Vᴴ Ȧ V: ẇ = diag(Ṡ), V̇ = V K, Kᵢⱼ = Ṡᵢⱼ / (wⱼ - wᵢ), turned so that the first components stay real."""
    k, v, w = r.k, r.matrix("a"), r.vector("w")
    core, product = r.work.matrices
    r.clear("w")
    with r.moving("a") as tangent:
        _unfold_lower(tangent, core)
        product.set(core @ v)
        core.set(v.H @ product)
        with r.active_vector("w") as w_dot:
            w_dot.fill(lambda i: core[i, i].real)
        largest = w.largest()
        with core.each() as (i, j):
            entry = over_gap(k, core[i, j], w[j] - w[i], largest, ())
            core[i, j] = choose(k.same(i, j), 0.0, entry)
        tangent.set(v @ core)
        if k.element.is_complex:
            with k.loop(v.columns) as j:
                turn_column(v.column(j), tangent.column(j), phase_rate(k, v[NONE, j], tangent[NONE, j]))


def _eigvalsh_tangent(r: Tangent) -> None:
    """ẇ = diag(Vᴴ Ȧ V), before the call, which destroys the lower triangle."""
    v, core, product = r.work.matrices
    w = r.work.reals[0]
    r.clear("w")
    with r.active_vector("w") as w_dot, r.moving("a") as tangent:
        v.set(r.matrix("a"))
        r.k.entry(_EVD, "V", "L", v.rows, v.data, v.leading, w.data)
        _unfold_lower(tangent, core)
        product.set(core @ v)
        w_dot.fill(lambda j: v.column(j).sum(lambda i: v[i, j].conj() * product[i, j]).real)
    with r.active("a") as tangent, r.k.loop(tangent.columns) as j, r.k.loop(tangent.rows, j) as i:
        tangent[i, j] = r.k.nothing


def _unfold_lower(lower: Matrix, target: Matrix) -> None:
    """Sets a Hermitian matrix from its lower triangle."""
    k = target.k
    with k.loop(target.columns) as j:
        target[j, j] = lower[j, j].real
        with k.loop(target.rows, k.after(j)) as i:
            target[i, j], target[j, i] = lower[i, j], lower[i, j].conj()


def _eigvalsh(r: Adjoint) -> None:
    """Ā = V diag(w̄) Vᴴ; the shadow's upper triangle stays: LAPACK does not touch that of the matrix."""
    v, scaled, core = r.work.matrices
    w, w_bar = r.work.reals
    w_bar.take(r.vector_bar("w"))
    v.set(r.matrix("old a"))
    r.k.entry(_EVD, "V", "L", v.rows, v.data, v.leading, w.data)
    if r.k.build.module.opaque_guards:
        _set_core(core, v, w, w_bar)
        scaled.set(v @ core)
    else:
        scaled.fill(lambda i, j: v[i, j] * w_bar[j])
    core.set(scaled @ v.H)
    _fold_lower(core, r.bar("a"))


def _set_core(core: Matrix, v: Matrix, w: Vector, w_bar: Vector) -> None:
    """diag(w̄), where equal eigenvalues make NaN of derivatives."""
    k, largest = core.k, w.largest()
    with core.each() as (i, j):
        entry = over_gap(k, k.nothing, w[j] - w[i], largest, (k.nothing,), v[i, j])
        core[i, j] = choose(k.same(i, j), w_bar[j], entry)


def _fold_lower(symmetric: Matrix, target: Matrix) -> None:
    """The cotangent of a Hermitian matrix as that of its lower triangle, which alone is read."""
    k = target.k
    with k.loop(target.columns) as j:
        target[j, j] = symmetric[j, j].real
        with k.loop(target.rows, k.after(j)) as i:
            target[i, j] = symmetric[i, j] + symmetric[j, i].conj()


def _room(squares: int, reals: int) -> Work:
    return lambda sizes, _: Room([(sizes["n"], sizes["n"])] * squares, reals=[sizes["n"]] * reals)


_PARAMETERS: Final = "kind _jobz _uplo n a lda w"
_SHAPES: Final[Shapes] = {"a": MatrixShape("n", "n", "lda"), "w": VectorShape("n", is_real=True)}
_KEPT: Final = {"new a": "a w", "new w": "a w"}
_EIGH: Final = Routine(
    "eigh",
    _PARAMETERS,
    _SHAPES,
    _KEPT,
    _eigh,
    "a",
    _room(2, 1),
    tangent=Differential(after=_eigh_tangent, also_written="w", work=_room(2, 0)),
)
_EIGVALSH: Final = Routine(
    "eigvalsh",
    _PARAMETERS,
    _SHAPES,
    {"old a": "a w"},
    _eigvalsh,
    "a",
    _room(3, 2),
    tangent=Differential(_eigvalsh_tangent, also_written="w", work=_room(3, 1)),
)


def _of_lower(call: CallSite) -> Routine:
    _, jobz, uplo, *_ = call.arguments
    letter(uplo, "L", "np.linalg.eigh")
    return _EIGVALSH if letter(jobz, "NV", "np.linalg.eigh") == "N" else _EIGH


RULES: Final[tuple[Rule, ...]] = (
    numba_rule(
        _EVD,
        "np.linalg.eigh",
        _of_lower,
        reads=(4,),
        writes=(4, 6),
        source=GILES,
        policy=EQUAL,
    ),
)
