"""Eigenvalues of general matrices as Numba calls them: `np.linalg.eig`, `eigvals`.

    numba_ez_rgeev (kind, jobvl, jobvr, n, a, lda, wr, wi, vl, ldvl, vr, ldvr)          of real matrices
    numba_ez_cgeev (kind, jobvl, jobvr, n, a, lda, w, vl, ldvl, vr, ldvr)               of complex ones

Where the primal asks for values only, the adjoint computes the vectors that it needs. A real matrix may have pairs of
complex eigenvalues; then its adjoint is the real part of that of a complex matrix.
"""

from __future__ import annotations

import math
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.values import Value, const_int
from irad.rules.dense.adjoint import Adjoint, IsActive, MatrixShape, Room, Shapes, Sizes, VectorShape
from irad.rules.dense.elements import choose
from irad.rules.dense.kernel import I64, NONE, ONE, TWO, Kernel
from irad.rules.dense.matrix import NOWHERE, Matrix, Vector
from irad.rules.dense.routine import Routine, numba_rule
from irad.rules.dense.saved import letter
from irad.rules.dense.tangent import Differential, Tangent
from irad.rules.lapack.phases import over_gap, phase_rate, settled_phase, turn_column, turn_of
from irad.rules.lapack.spectra import EQUAL
from irad.rules.lapack.systems import GILES
from irad.ruleset.interface import Rule

_NUMPY: Final = "np.linalg.eig"
_DEFECTIVE: Final = EQUAL + "; defective matrix: NaN"
_REAL, _COMPLEX = "numba_ez_rgeev", "numba_ez_cgeev"


# ------------------------------------------------------------------------------------------------ one element type


def _adjoint_room(build: Builder, n: Value) -> Room:
    """Scratch of `_adjoint`: three matrices, w̄, pivots."""
    return Room([(n, n)] * 3, [n, build.mul(n, TWO)])


def _adjoint(v: Matrix, w: Vector, v_shadow: Matrix, w_shadow: Vector, bar: Matrix, memory: Value) -> None:
    v.k.outline("eigenvectors_adjoint", _adjoint_body, v, w, v_shadow, w_shadow, bar, memory)


def _adjoint_body(
    k: Kernel, v: Matrix, w: Vector, v_shadow: Matrix, w_shadow: Vector, bar: Matrix, memory: Value
) -> None:
    """Ā = V⁻ᴴ K Vᴴ, K = diag(w̄) + (Vᴴ V̄')ᵢⱼ / conj(wⱼ - wᵢ), V̄' = V̄ without what only changes length and phase."""
    work = _adjoint_room(k.build, w.size).divide(k, memory)
    (m, core, transposed), (w_bar, pivots) = work.matrices, work.vectors
    w_bar.take(w_shadow)
    _take_tangent_part(v, v_shadow, core)
    m.set(v.H @ core)
    largest = w.largest()
    with core.each() as (i, j):
        gap, product = w[j] - w[i], m[i, j]
        entry = over_gap(k, product, gap.conj(), largest, (product,), v[i, j])
        core[i, j] = choose(k.same(i, j), w_bar[j], entry)
    m.set(core @ v.H)
    transposed.set(v)
    transposed.transpose()
    n = w.size
    status = k.entry("numba_xgesv", n, n, transposed.data, n, pivots.data, m.data, n)
    failed = k.build.or_(k.build.icmp("ne", status, const_int(types.I32, 0)), _is_defective(transposed, w))
    lost = k.build.and_(failed, m.counts())
    bar.fill(lambda i, j: choose(lost, math.nan, m[i, j]))


def _is_defective(factors: Matrix, w: Vector) -> Value:
    """Test for equal eigenvalues with dependent vectors, by their LU factors: rounding keeps these from singular."""
    k = factors.k
    least, gap = k.real.variable(k.number(1.0)), k.real.variable(k.number(math.inf))
    with k.loop(w.size) as i:
        pivot = factors[i, i].magnitude()
        with k.when(pivot < least.value):
            least.value = pivot
        with k.loop(i) as j:
            distance = (w[i] - w[j]).magnitude()
            with k.when(distance < gap.value):
                gap.value = distance
    tied = gap.value <= (8.0 * k.element.epsilon) * w.largest()
    return k.build.and_(tied, least.value <= k.number(math.sqrt(k.element.epsilon)))


def _set_tangents(v: Matrix, w: Vector, tangent: Matrix, v_dot: Matrix, w_dot: Vector, memory: Value) -> None:
    v.k.outline("eigenvectors_tangent", _tangents_body, v, w, tangent, v_dot, w_dot, memory)


def _tangents_body(
    k: Kernel, v: Matrix, w: Vector, tangent: Matrix, v_dot: Matrix, w_dot: Vector, memory: Value
) -> None:
    """Ṡ = V⁻¹ Ȧ V: ẇ = diag(Ṡ), V̇ = V K, Kᵢⱼ = Ṡᵢⱼ / (wⱼ - wᵢ), without what changes length and phase."""
    work = _adjoint_room(k.build, w.size).divide(k, memory)
    (copy, core, product), (_, pivots), n = work.matrices, work.vectors, w.size
    product.set(tangent @ v)
    core.set(product)
    copy.set(v)
    status = k.entry("numba_xgesv", n, n, copy.data, n, pivots.data, core.data, n)
    failed = k.build.or_(k.build.icmp("ne", status, const_int(types.I32, 0)), _is_defective(copy, w))
    lost = k.build.and_(failed, product.counts())
    core.fill(lambda i, j: choose(lost, math.nan, core[i, j]))
    with k.when(w_dot.given):
        w_dot.fill(lambda j: core[j, j])
    with k.when(v_dot.given):
        largest = w.largest()
        with core.each() as (i, j):
            entry = over_gap(k, core[i, j], w[j] - w[i], largest, ())
            core[i, j] = choose(k.same(i, j), 0.0, entry)
        v_dot.set(v @ core)
        with k.loop(n) as j:
            _keep_length_and_phase(v.column(j), v_dot.column(j))


def _keep_length_and_phase(vector: Vector, tangent: Vector) -> None:
    k = vector.k
    length = vector.sum(lambda i: vector[i].conj() * tangent[i]).real
    tangent.fill(lambda i: tangent[i] - length * vector[i])
    if k.element.is_complex:
        anchor = _real_component(vector)
        turn_column(vector, tangent, phase_rate(k, vector[anchor], tangent[anchor]))


def _take_tangent_part(v: Matrix, shadow: Matrix, target: Matrix) -> None:
    """Takes the cotangent of vectors of length 1, without its part along each vector, with what the phase asks for."""
    k = v.k
    target.clear()
    with k.when(shadow.given), k.loop(v.columns) as j:
        vector, bar = v.column(j), shadow.column(j)
        length = vector.sum(lambda i: vector[i].conj() * bar[i]).real
        with k.loop(v.rows) as i:
            target[i, j] = bar[i] - length * vector[i]
        if k.element.is_complex:
            turn = turn_of(k, v.rows, lambda i: (vector[i], bar[i]))
            anchor = _real_component(vector)
            angle = settled_phase(turn, vector[anchor])
            target[anchor, j] = target[anchor, j] - angle.times_i()
        bar.fill(lambda i: k.nothing)


def _real_component(vector: Vector) -> Value:
    """The row of the largest component, which `geev` makes real."""
    k, build = vector.k, vector.k.build
    largest, place = k.real.variable(k.number(-1.0)), k.slot(I64)
    build.store(NONE, place)
    with k.loop(vector.size) as i:
        value = vector[i]
        size = choose(value.imag.is_zero(), value.real.magnitude(), -1.0)
        with k.when(size > largest.value):
            largest.value = size
            build.store(i, place)
    return build.load(I64, place)


# ------------------------------------------------------------------------------------------------ complex matrices


def _eig(r: Adjoint) -> None:
    _adjoint(r.matrix("new vr"), r.vector("new w"), r.bar("vr"), r.vector_bar("w"), r.bar("a"), r.memory)


def _eigvals(r: Adjoint) -> None:
    """As with vectors, which are computed first."""
    (copy, v), (w, unused, memory) = r.work.matrices, r.work.vectors
    copy.set(r.matrix("old a"))
    n = v.rows
    r.k.entry(_COMPLEX, "N", "V", n, copy.data, n, w.data, unused.data, ONE, v.data, n)
    _adjoint(v, w, Matrix(r.k, NOWHERE, n, n, n), r.vector_bar("w"), r.bar("a"), memory.data)


def _eig_tangent(r: Tangent) -> None:
    r.clear("w", "vr")
    with r.moving("a") as a_dot:
        _set_tangents(r.matrix("vr"), r.vector("w"), a_dot, r.tangent("vr"), r.vector_tangent("w"), r.memory)
    r.clear("a")


def _eigvals_tangent(r: Tangent) -> None:
    """Before the call, which destroys the matrix."""
    r.clear("w")
    with r.moving("a") as a_dot:
        (copy, v), (w, unused, memory) = r.work.matrices, r.work.vectors
        copy.set(r.matrix("a"))
        n = v.rows
        r.k.entry(_COMPLEX, "N", "V", n, copy.data, n, w.data, unused.data, ONE, v.data, n)
        _set_tangents(v, w, a_dot, Matrix(r.k, NOWHERE, n, n, n), r.vector_tangent("w"), memory.data)
    r.clear("a")


# ------------------------------------------------------------------------------------------------ real matrices


def _paired_room(build: Builder, n: Value) -> Room:
    """In complex numbers: V, V̄, Ā; w, w̄, and what `_adjoint` works in."""
    return Room([(n, n)] * 3, [n, n, _size(build, _adjoint_room(build, n))])


def _size(build: Builder, room: Room) -> Value:
    size = room.size(build)
    assert size is not None
    return size


def _real_room(build: Builder, n: Value) -> Value:
    """Real numbers in what `_real_adjoint` works in."""
    return build.mul(_size(build, _paired_room(build, n)), TWO)


def _real_eig(r: Adjoint) -> None:
    values, shadows = (r.vector("new wr"), r.vector("new wi")), (r.vector_bar("wr"), r.vector_bar("wi"))
    _real_adjoint(r.matrix("new vr"), values, r.bar("vr"), shadows, r.bar("a"), r.memory)


def _real_eigvals(r: Adjoint) -> None:
    """As with vectors, which are computed first."""
    (copy, v), (wr, wi, unused, memory) = r.work.matrices, r.work.vectors
    copy.set(r.matrix("old a"))
    n = v.rows
    r.k.entry(_REAL, "N", "V", n, copy.data, n, wr.data, wi.data, unused.data, ONE, v.data, n)
    shadows = r.vector_bar("wr"), r.vector_bar("wi")
    _real_adjoint(v, (wr, wi), Matrix(r.k, NOWHERE, n, n, n), shadows, r.bar("a"), memory.data)


def _real_adjoint(
    v: Matrix,
    values: tuple[Vector, Vector],
    v_shadow: Matrix,
    shadows: tuple[Vector, Vector],
    bar: Matrix,
    memory: Value,
) -> None:
    """The adjoint in real numbers if all eigenvalues are real, else the real part of that in complex numbers."""
    k, (wr, wi), (wr_shadow, wi_shadow) = v.k, values, shadows
    paired = Matrix.dense(k, wi.data, wi.size, ONE).any_nonzero()
    with k.unless(paired):
        Vector(k, memory, wi.size).take(wi_shadow)
        _adjoint(v, wr, v_shadow, wr_shadow, bar, memory)
    with k.when(paired):
        work = _paired_room(k.build, wi.size).divide(k.complex, memory)
        (cv, cv_bar, c_bar), (w, w_bar, rest) = work.matrices, work.vectors
        w.fill(lambda j: wr[j] + wi[j].times_i())
        taken = Vector(k, cv.data, wi.size), Vector(k, cv_bar.data, wi.size)
        for place, shadow in zip(taken, shadows, strict=True):
            place.take(shadow)
        w_bar.fill(lambda j: taken[0][j] + taken[1][j].times_i())
        _unpack_vectors(wi, v, cv, conjugates=True)
        _unpack_vectors(wi, v_shadow, cv_bar, conjugates=False)
        with k.when(v_shadow.given):
            v_shadow.clear()
        _adjoint(cv, w, cv_bar, w_bar, c_bar, rest.data)
        bar.fill(lambda i, j: c_bar[i, j].real)


def _real_eig_tangent(r: Tangent) -> None:
    r.clear("wr", "wi", "vr")
    with r.moving("a") as a_dot:
        values, tangents = (
            (r.vector("wr"), r.vector("wi")),
            (r.vector_tangent("wr"), r.vector_tangent("wi")),
        )
        _set_real_tangents(r.matrix("vr"), values, a_dot, r.tangent("vr"), tangents, r.memory)
    r.clear("a")


def _real_eigvals_tangent(r: Tangent) -> None:
    """Before the call, which destroys the matrix."""
    r.clear("wr", "wi")
    with r.moving("a") as a_dot:
        (copy, v), (wr, wi, unused, memory) = r.work.matrices, r.work.vectors
        copy.set(r.matrix("a"))
        n = v.rows
        r.k.entry(_REAL, "N", "V", n, copy.data, n, wr.data, wi.data, unused.data, ONE, v.data, n)
        tangents = r.vector_tangent("wr"), r.vector_tangent("wi")
        _set_real_tangents(v, (wr, wi), a_dot, Matrix(r.k, NOWHERE, n, n, n), tangents, memory.data)
    r.clear("a")


def _set_real_tangents(
    v: Matrix,
    values: tuple[Vector, Vector],
    tangent: Matrix,
    v_dot: Matrix,
    tangents: tuple[Vector, Vector],
    memory: Value,
) -> None:
    """The tangents in real numbers if all eigenvalues are real, else those in complex numbers, packed."""
    k, (wr, wi), (wr_dot, wi_dot) = v.k, values, tangents
    paired = Matrix.dense(k, wi.data, wi.size, ONE).any_nonzero()
    with k.unless(paired):
        _set_tangents(v, wr, tangent, v_dot, wr_dot, memory)
    with k.when(paired):
        work = _paired_room(k.build, wi.size).divide(k.complex, memory)
        (cv, cv_dot, c_dot), (w, w_dot, rest) = work.matrices, work.vectors
        w.fill(lambda j: wr[j] + wi[j].times_i())
        c_dot.fill(lambda i, j: tangent[i, j])
        _unpack_vectors(wi, v, cv, conjugates=True)
        _set_tangents(cv, w, c_dot, cv_dot, w_dot, rest.data)
        with k.when(wr_dot.given):
            wr_dot.fill(lambda j: w_dot[j].real)
        with k.when(wi_dot.given):
            wi_dot.fill(lambda j: w_dot[j].imag)
        with k.when(v_dot.given):
            _pack_vectors(wi, cv_dot, v_dot)


def _pack_vectors(wi: Vector, vectors: Matrix, target: Matrix) -> None:
    """Packs the tangents of complex vectors as a real `geev` packs these: of a pair, those of x and y of x + i y."""
    k = wi.k
    with k.loop(target.columns) as j:
        second = k.nothing > wi[j]
        start = k.build.sub(j, k.build.zext(second, I64))
        with k.loop(target.rows) as i:
            target[i, j] = choose(second, vectors[i, start].imag, vectors[i, start].real)


def _unpack_vectors(wi: Vector, packed: Matrix, target: Matrix, *, conjugates: bool) -> None:
    """Complex vectors, or their cotangents, as a real `geev` packs them: x, y stand for x + i y and x - i y.

    The second of a pair is the conjugate of the first, or, of a cotangent, 0. A pointer to packed ones may be null.
    """
    k, other = wi.k, 1.0 if conjugates else 0.0
    target.clear()
    with k.when(packed.given), k.loop(target.columns) as j:
        imag = wi[j]
        second, pair = k.nothing > imag, k.build.zext(imag.is_nonzero(), I64)
        start = k.build.sub(j, k.build.zext(second, I64))
        sign = choose(second, k.number(-other), choose(imag > k.nothing, k.number(1.0), 0.0))
        share = choose(second, k.number(other), 1.0)
        with k.loop(target.rows) as i:
            x, y = packed[i, start], packed[i, k.build.add(start, pair)]
            target[i, j] = share * x + (sign * y).times_i()


# ------------------------------------------------------------------------------------------------ rules

_A: Final = MatrixShape("n", "n", "lda")
_N: Final = VectorShape("n")
_VALUES: Final[Shapes] = {"a": _A, "w": _N}
_PARTS: Final[Shapes] = {"a": _A, "wr": _N, "wi": _N}
_VR: Final = {"vr": MatrixShape("n", "n", "ldvr")}


def _eig_room(sizes: Sizes, _: IsActive) -> Room:
    return _adjoint_room(sizes.build, sizes["n"])


def _eigvals_room(sizes: Sizes, _: IsActive) -> Room:
    """The matrix, V; w, a left vector that is not wanted."""
    n = sizes["n"]
    return Room([(n, n)] * 2, [n, n, _size(sizes.build, _adjoint_room(sizes.build, n))])


def _real_eig_room(sizes: Sizes, _: IsActive) -> Room:
    return Room(vectors=[_real_room(sizes.build, sizes["n"])])


def _real_eigvals_room(sizes: Sizes, _: IsActive) -> Room:
    """The matrix, V; both parts of w, a left vector that is not wanted."""
    n = sizes["n"]
    return Room([(n, n)] * 2, [n, n, n, _real_room(sizes.build, n)])


_EIG: Final = Routine(
    "eig",
    "kind _jobvl _jobvr n a lda w _vl _ldvl vr ldvr",
    {**_VALUES, **_VR},
    {"new vr": "a w vr", "new w": "a w vr"},
    _eig,
    "a",
    _eig_room,
    tangent=Differential(after=_eig_tangent, also_written="w vr", work=_eig_room),
)
_EIGVALS: Final = Routine(
    "eigvals",
    "kind _jobvl _jobvr n a lda w _vl _ldvl _vr _ldvr",
    _VALUES,
    {"old a": "a w"},
    _eigvals,
    "a",
    _eigvals_room,
    tangent=Differential(_eigvals_tangent, also_written="w", work=_eigvals_room),
)
_REAL_EIG: Final = Routine(
    "real_eig",
    "kind _jobvl _jobvr n a lda wr wi _vl _ldvl vr ldvr",
    {**_PARTS, **_VR},
    {"new vr": "a wr wi vr", "new wr": "a wr wi vr", "new wi": "a wr wi vr"},
    _real_eig,
    "a",
    _real_eig_room,
    tangent=Differential(after=_real_eig_tangent, also_written="wr wi vr", work=_real_eig_room),
)
_REAL_EIGVALS: Final = Routine(
    "real_eigvals",
    "kind _jobvl _jobvr n a lda wr wi _vl _ldvl _vr _ldvr",
    _PARTS,
    {"old a": "a wr wi"},
    _real_eigvals,
    "a",
    _real_eigvals_room,
    tangent=Differential(_real_eigvals_tangent, also_written="wr wi", work=_real_eigvals_room),
)


def _without_left(call: CallSite, values: Routine, vectors: Routine) -> Routine:
    _, jobvl, jobvr, *_ = call.arguments
    letter(jobvl, "N", _NUMPY)
    return values if letter(jobvr, "NV", _NUMPY) == "N" else vectors


RULES: Final[tuple[Rule, ...]] = (
    numba_rule(
        _REAL,
        _NUMPY,
        lambda call: _without_left(call, _REAL_EIGVALS, _REAL_EIG),
        reads=(4,),
        writes=(4, 6, 7, 8, 10),
        source=GILES,
        policy=_DEFECTIVE,
    ),
    numba_rule(
        _COMPLEX,
        _NUMPY,
        lambda call: _without_left(call, _EIGVALS, _EIG),
        reads=(4,),
        writes=(4, 6, 7, 9),
        source=GILES,
        policy=_DEFECTIVE,
    ),
)
