"""Tangents of the products that Numba calls: `products` has the entry points.

Matrix products are calls of the same entry point on operands and tangents: see `bilinear`.
"""

from __future__ import annotations

from typing import Final

from irad.ir.instructions import CallSite
from irad.ir.values import const_int
from irad.rules.blas.bilinear import GEMM, GEMM_SHAPES, GEMV, gemv_shapes
from irad.rules.blas.level1 import inner_product_tangent
from irad.rules.dense.adjoint import Shapes, VectorShape
from irad.rules.dense.elements import Scalar, choose, element_of
from irad.rules.dense.kernel import I8, NONE, ONE, TRUE
from irad.rules.dense.library import NumbaLibrary
from irad.rules.dense.tangent import Differential, Interface, Tangent, emit_tangent
from irad.rules.lapack.pseudo_inverse import (
    PRODUCT_PARAMETERS,
    PRODUCT_SHAPES,
    PRODUCT_TANGENT,
    ends_pseudo_inverse,
)
from irad.ruleset.interface import TangentContext, TangentPart


def _dot(r: Tangent) -> None:
    conjugates = r.k.build.icmp("ne", r.sizes["conjugate"], const_int(I8, 0))

    def turned(x: Scalar) -> Scalar:
        return choose(conjugates, x.conj(), x) if r.k.element.is_complex else x

    r.vector_tangent("result")[NONE] = inner_product_tangent(r, turned)


def _norm(r: Tangent) -> None:
    """The real part of Σ conj(x) x' / ‖x‖, 0 at the origin."""
    total, x, norm = r.k.real.variable(), r.vector("x"), r.vector("result")[NONE]
    is_smooth = norm.is_nonzero() if r.k.build.module.strong_zeros else TRUE
    with r.k.when(is_smooth), r.active_vector("x") as tangent, r.k.loop(x.size) as i:
        total.accumulate(r.scaled(tangent[i], (x[i] / norm).conj()).real)
    r.vector_tangent("result")[NONE] = total.value


def _part(name: str, parameters: str, shapes: Shapes, output: str, tangent: Differential) -> TangentPart:
    interface = Interface(name, parameters, shapes, output)

    def emit(context: TangentContext, call: CallSite) -> None:
        emit_tangent(interface, tangent, NumbaLibrary(element_of(call.arguments[0], "np.dot")), context, call)

    return emit


def gemm_tangent(context: TangentContext, call: CallSite) -> None:
    """The tangent of a matrix product, or of the pseudo-inverse that it ends."""
    (_pseudo_inverse_tangent if ends_pseudo_inverse(call) else _gemm_tangent)(context, call)


_X: Final = VectorShape("n")
_NUMBER: Final = VectorShape(lambda sizes: ONE)
_gemm_tangent: Final = _part(
    "numba_xxgemm", "kind transa transb m n k alpha a lda b ldb beta c ldc", GEMM_SHAPES, "c", GEMM
)

_pseudo_inverse_tangent: Final = _part("pinv", PRODUCT_PARAMETERS, PRODUCT_SHAPES, "a", PRODUCT_TANGENT)
gemv_tangent: Final = _part("numba_xxgemv", "kind trans m n alpha a lda x beta y", gemv_shapes("", ""), "y", GEMV)
dot_tangent: Final = _part(
    "numba_xxdot",
    "kind conjugate n x y result",
    {"x": _X, "y": _X, "result": _NUMBER},
    "result",
    Differential(before=_dot),
)
norm_tangent: Final = _part(
    "numba_xxnrm2",
    "kind n x incx result",
    {"x": VectorShape("n", "incx"), "result": VectorShape(lambda sizes: ONE, is_real=True)},
    "result",
    Differential(after=_norm),
)
