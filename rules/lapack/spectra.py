"""Eigenvalues of Hermitian matrices as Numba calls them: `np.linalg.eigh` and what is built of it.

    numba_ez_xxxevd(kind, jobz, uplo, n, a, lda, w)                                     eigh, eigvalsh

Where the primal asks for vectors they are kept. Where it asks for values only, the matrix is kept, and the adjoint
computes the vectors that it needs. What vectors leave open: `phases`.
"""

from __future__ import annotations

from typing import Final

from irad.ir.instructions import CallSite
from irad.rules.dense.adjoint import Adjoint, MatrixShape, Room, Shapes, VectorShape
from irad.rules.dense.kernel import NONE
from irad.rules.dense.matrix import Matrix
from irad.rules.dense.routine import Routine, Work, numba_rule
from irad.rules.dense.saved import letter
from irad.rules.lapack.phases import all_zero, over_gap, settled_phase, turn_of
from irad.rules.lapack.systems import GILES
from irad.ruleset.interface import Rule

EQUAL: Final = (
    "equal eigenvalues: NaN if cotangents reach their vectors; of the values, that of the vectors LAPACK finds"
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
            entry = over_gap(k, 0.5 * (products[0] - products[1]), gap, largest, all_zero(*products))
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


def _eigvalsh(r: Adjoint) -> None:
    """Ā = V diag(w̄) Vᴴ; the shadow's upper triangle stays: LAPACK does not touch that of the matrix."""
    v, scaled, core = r.work.matrices
    w, w_bar = r.work.reals
    w_bar.take(r.vector_bar("w"))
    v.set(r.matrix("old a"))
    r.k.entry(_EVD, "V", "L", v.rows, v.data, v.leading, w.data)
    scaled.fill(lambda i, j: v[i, j] * w_bar[j])
    core.set(scaled @ v.H)
    _fold_lower(core, r.bar("a"))


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
_EIGH: Final = Routine("eigh", _PARAMETERS, _SHAPES, _KEPT, _eigh, "a", _room(2, 1))
_EIGVALSH: Final = Routine("eigvalsh", _PARAMETERS, _SHAPES, {"old a": "a w"}, _eigvalsh, "a", _room(3, 2))


def _of_lower(call: CallSite) -> Routine:
    _, jobz, uplo, *_ = call.arguments
    letter(uplo, "L", "np.linalg.eigh")
    return _EIGVALSH if letter(jobz, "NV", "np.linalg.eigh") == "N" else _EIGH


RULES: Final[tuple[Rule, ...]] = (
    numba_rule(_EVD, "np.linalg.eigh", _of_lower, reads=(4,), writes=(4, 6), source=GILES, policy=EQUAL),
)
