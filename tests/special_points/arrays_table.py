"""Functions of arrays at their special points: what they are compared with there.

A case is a use of a function of one array `x`, points, and a reference: the same function in Python, written so that
it is analytic at these points, whose derivative is found by a complex step. At a kink the reference is the branch of
the convention in docs/special_points.md. `LINEAR` and `ELSEWHERE` say why the other functions have no case.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

Reference = Callable[[np.ndarray], Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A use of functions at special points.

    Attributes:
        names: as docs/support.md lists them.
        use: an expression of an array `x`; its elements, weighted, are the value.
        points: values of `x`.
        reference: the value of the use, analytic at the points.
        order: up to which derivatives exist, or agree with the reference.
        ties: elements of `x` that are equal may share their derivative in any way: only the sum over them is compared,
            and no weight has another sign than it.
    """

    names: str
    use: str
    points: Sequence[Sequence[float]]
    reference: Reference
    order: int = 2
    ties: bool = False


def _sum(values: Any) -> Any:
    """As the tests weight the elements of a use."""
    values = np.ravel(values)
    return np.sum(values * (1.0 + np.arange(len(values))))


# ------------------------------------------------------------------------------------------------ interpolation


def _interp(at: Any, xp: Any, fp: Any) -> Any:
    """The segment to the right of a knot; constant at both ends and beyond them."""
    if at.real <= xp[0].real:
        return fp[0]
    if at.real >= xp[-1].real:
        return fp[-1]
    j = int(np.searchsorted(xp.real, at.real, side="right")) - 1
    return fp[j] + (fp[j + 1] - fp[j]) / (xp[j + 1] - xp[j]) * (at - xp[j])


_KNOTS: Final = [0.0, 1.0, 2.0, 4.0]
_LINE: Final = [1.0, 3.0, 5.0, 9.0]
_BENT: Final = [0.0, 1.0, 4.0, -2.0]
_AT: Final = [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0]
_INTERP: Final = [[at, *_KNOTS, *fp] for at in _AT for fp in (_LINE, _BENT)]
_REPEATED: Final = [[1.0, 0.0, 1.0, 1.0, 3.0, 0.0, 1.0, 4.0, -2.0], [0.0, 0.0, 0.0, 1.0, 3.0, 5.0, 1.0, 4.0, 0.0]]


def _repeated(x: Any) -> Any:
    j = 2 if x[0].real == 1.0 else 1
    xp, fp = x[1:5], x[5:9]
    return fp[j] + (fp[j + 1] - fp[j]) / (xp[j + 1] - xp[j]) * (x[0] - xp[j])


_INTERPOLATION: Final = (
    Case("np.interp", "np.interp(x[0], x[1:5], x[5:9])", _INTERP, lambda x: _interp(x[0], x[1:5], x[5:9])),
    Case("np.interp", "np.interp(x[0], x[1:5], x[5:9])", _REPEATED, _repeated),
    Case(
        "np.interp",
        "np.interp(x[:4], x[4:7], x[7:])",
        [[1.0, 0.0, 2.0, 0.5, 0.0, 1.0, 2.0, 1.0, 3.0, 5.0], [1.0, 1.0, -1.0, 3.0, 0.0, 1.0, 2.0, 1.0, 3.0, 2.0]],
        lambda x: _sum([_interp(at, x[4:7], x[7:]) for at in x[:4]]),
    ),
    Case(
        "np.interp",
        "np.interp(x[0], x[1:5], x[5:9] + 2j * x[9:13])",
        [[*given, *reversed(_BENT)] for given in _INTERP],
        lambda x: _interp(x[0], x[1:5], x[5:9]) + 0.5 * 2.0 * _interp(x[0], x[1:5], x[9:13]),
    ),
)


# ------------------------------------------------------------------------------------------------ order, statistics


def _sorted(x: Any) -> Any:
    return x[np.argsort(x.real, kind="stable")]


def _quantile(x: Any, q: Any) -> Any:
    """Between the closest ranks; at a rank itself the slope to the right, at the last rank to the left."""
    x = _sorted(x[~np.isnan(x)])
    last = len(x) - 1
    k = min(int(np.floor(last * q.real)), last - 1)
    return x[k] + (last * q - k) * (x[k + 1] - x[k])


_DATA: Final = [1.0, 9.0, 4.0, 2.0, 8.0]
_TIED: Final = [2.0, 7.0, 2.0, 2.0, 7.0]
_QUANTILES: Final = [[q, *data] for q in (0.0, 0.25, 0.3, 0.5, 1.0) for data in (_DATA, _TIED)]
_PERCENTILES: Final = [[100.0 * q, *data] for q, *data in _QUANTILES]
_GAPS: Final = [[q, *data, np.nan] for q, *data in _QUANTILES]

_STATISTICS: Final = (
    Case(
        "np.percentile", "np.percentile(x[1:], x[0])", _PERCENTILES, lambda x: _quantile(x[1:], x[0] / 100), ties=True
    ),
    Case("np.quantile", "np.quantile(x[1:], x[0])", _QUANTILES, lambda x: _quantile(x[1:], x[0]), ties=True),
    Case(
        "np.nanpercentile",
        "np.nanpercentile(x[1:], 100.0 * x[0])",
        _GAPS,
        lambda x: _quantile(x[1:], x[0]),
        ties=True,
    ),
    Case("np.nanquantile", "np.nanquantile(x[1:], x[0])", _GAPS, lambda x: _quantile(x[1:], x[0]), ties=True),
)

_CONSTANT: Final = [[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]]
_DEVIATIONS: Final = (
    Case("np.std", "np.std(x)", _CONSTANT, lambda x: 0.0 * x[0], order=1),
    Case("np.nanstd", "np.nanstd(x)", [[2.0, np.nan, 2.0]], lambda x: 0.0 * x[0], order=1),
    Case("np.var", "np.var(x)", _CONSTANT, lambda x: np.sum((x - np.sum(x) / 3) ** 2) / 3),
    Case("np.nanvar", "np.nanvar(x)", [[2.0, np.nan, 2.0]], lambda x: (x[0] - x[2]) ** 2 / 4),
    Case(
        "np.linalg.norm",
        "np.array([np.linalg.norm(x, o) for o in (3.0, 1.5, 1.0, np.inf)])",
        [[0.0, 0.0, 0.0]],
        lambda x: 0.0 * x[0],
        order=1,
    ),
)


def _correlation(x: Any) -> Any:
    a, b = x[:3] - np.sum(x[:3]) / 3, x[3:] - np.sum(x[3:]) / 3
    return np.sum(a * b) / np.sqrt(np.sum(a * a) * np.sum(b * b))


_PROPORTIONAL: Final = [
    [*data, *(factor * np.array(data))]
    for data in ([1.0, 2.0, 3.5], [0.1, 0.7, 1.3], [0.3, 0.1, 0.2])
    for factor in (3.0, -2.0, 0.7)
]
_CORRELATION: Final = Case("np.corrcoef", "np.corrcoef(x[:3], x[3:])[0, 1]", _PROPORTIONAL, _correlation)


# ------------------------------------------------------------------------------------------------ phases


def _unwrapped(x: Any) -> Any:
    turns = np.rint((np.unwrap(x.real) - x.real) / (2 * np.pi))
    return _sum(x + 2 * np.pi * turns)


_UNWRAP: Final = Case(
    "np.unwrap",
    "np.unwrap(x)",
    [[0.0, np.pi, 2 * np.pi, 0.3, 4.0], [0.0, 3 * np.pi, -np.pi, 0.0, 0.0], [0.0, 0.0, 2 * np.pi, 1.0, -np.pi]],
    _unwrapped,
)


# ------------------------------------------------------------------------------------------------ polynomials


def _roots(p: Any) -> Any:
    """The roots of a cubic polynomial nearest those of the real part, by Newton's method."""
    known = np.trim_zeros(p.real, "f")
    found = np.sort(np.roots(known).real).astype(complex)
    for _ in range(8):
        found = found - np.polyval(p, found) / np.polyval(p[:-1] * np.arange(len(p) - 1, 0, -1), found)
    return _sum(found)


def _convolved(a: Any, b: Any, count: int) -> Any:
    return _sum(np.convolve(a, b)[:count])


def _quotient(x: Any) -> Any:
    """(c₀ + c₁ z + c₂ z²) / (a + b z) where c₂ is 0: of the quotient its constant, and the remainder."""
    (c, (a, b)), last = (x[:3], x[3:]), x[2] / x[4]
    whole = (c[1] - a * last) / b
    return whole + (c[0] - a * whole)


_POLY: Final = "np.polynomial.polynomial."
_POLYNOMIALS: Final = (
    Case(
        "np.roots",
        "np.sort(np.roots(x))",
        [[1.0, -3.0, 2.0, 0.0], [0.0, 1.0, -3.0, 2.0], [0.0, 1.0, -3.0, 0.0], [1.0, -6.0, 11.0, -6.0]],
        _roots,
    ),
    Case(
        f"{_POLY}polyadd",
        f"{_POLY}polyadd(x[:3], x[3:])",
        [[1.0, 2.0, 0.0, 1.0, -1.0, 3.0]],
        lambda x: _sum(x[:3] + x[3:]),
    ),
    Case(
        f"{_POLY}polysub",
        f"{_POLY}polysub(x[:3], x[3:])",
        [[1.0, 2.0, 0.0, 1.0, -1.0, 3.0]],
        lambda x: _sum(x[:3] - x[3:]),
    ),
    Case(
        f"{_POLY}polymul",
        f"{_POLY}polymul(x[:3], x[3:])",
        [[1.0, 2.0, 0.0, 1.0, 3.0]],
        lambda x: _convolved(x[:3], x[3:], 3),
    ),
    Case(
        f"{_POLY}polydiv",
        f"{_POLY}polydiv(x[:3], x[3:])[0][0] + {_POLY}polydiv(x[:3], x[3:])[1][0]",
        [[1.0, 2.0, 0.0, 1.0, 3.0]],
        _quotient,
    ),
)


# ------------------------------------------------------------------------------------------------ linear algebra


def _determinant(x: Any) -> Any:
    n = int(np.sqrt(len(x)))
    a, total = x.reshape(n, n), 0.0
    for order in itertools.permutations(range(n)):
        sign = (-1) ** sum(order[i] > order[j] for i in range(n) for j in range(i + 1, n))
        total = total + sign * np.prod(a[range(n), list(order)])
    return total


_MATRICES: Final = [
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 5.0, 7.0, 9.0],
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
    [1.0] * 9,
    [0.0] * 9,
    [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 5.0, 7.0, 11.0],
]
_DETERMINANTS: Final = (
    Case("np.linalg.det", "np.linalg.det(x.reshape(3, 3))", _MATRICES, _determinant),
    Case(
        "np.linalg.det",
        "np.linalg.det((1 + 1j) * x.reshape(3, 3))",
        _MATRICES,
        lambda x: (-2 + 0.5 * 2) * _determinant(x),
    ),
)

FIRST: Final[dict[str, tuple[Case, ...]]] = {
    "interpolation": _INTERPOLATION,
    "statistics": (_STATISTICS[0], *_DEVIATIONS, _DETERMINANTS[0]),
}
"""Tested by default."""


# ------------------------------------------------------------------------------------------------ Numba's own code

_ZEROS: Final = [[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]]
_TIES: Final = [[2.0, 1.0, 2.0, 1.0], [3.0, 3.0, 3.0, 3.0]]
_IN_PAIRS: Final = [[*row, np.nan] for row in _TIES]


def _extreme(sign: float) -> Reference:
    return lambda x: sign * _sorted(sign * x[~np.isnan(x)])[-1]


def _middle(x: Any) -> Any:
    return np.sum(_sorted(x[~np.isnan(x)])[1:3]) / 2


_ORDER: Final = tuple(
    Case(f"np.{name}", f"np.{name}(x)", _IN_PAIRS if "nan" in name else _TIES, reference, ties=True)
    for name, reference in {
        "amax": _extreme(1.0),
        "max": _extreme(1.0),
        "amin": _extreme(-1.0),
        "min": _extreme(-1.0),
        "nanmax": _extreme(1.0),
        "nanmin": _extreme(-1.0),
        "median": _middle,
        "nanmedian": _middle,
    }.items()
)
_SORTS: Final = (
    Case("np.ptp", "np.ptp(x)", [[2.0, 1.0, 2.0, 0.0]], lambda x: (x[0] + x[2]) / 2 - x[3], ties=True),
    Case(
        "np.sort np.argsort",
        "(np.sort(x) + x[np.argsort(x)])[:2]",
        _TIES,
        lambda x: _sum(2 * _sorted(x)[:2]),
        ties=True,
    ),
    Case("np.partition", "np.partition(x, 2)[2]", _TIES, lambda x: _sorted(x)[2], ties=True),
    Case("np.argpartition", "x[np.argpartition(x, 2)[2]]", _TIES, lambda x: _sorted(x)[2], ties=True),
    Case("np.unique", "np.unique(x)[0]", _TIES, lambda x: _sorted(x)[0], ties=True),
    Case("np.union1d", "np.union1d(x[:2], x[2:])[0]", _TIES, lambda x: _sorted(x)[0], ties=True),
    Case("np.intersect1d", "np.intersect1d(x[:2], x[2:])[0]", _TIES, lambda x: _sorted(x)[0], ties=True),
    Case(
        "np.setdiff1d np.setxor1d",
        "np.setdiff1d(x[:2], x[2:])[0] * np.setxor1d(x[:2], x[2:])[1]",
        [[1.0, 2.0, 2.0, 3.0]],
        lambda x: x[0] * x[3],
    ),
)
_PRODUCTS: Final = (
    Case("np.prod np.nanprod", "np.prod(x) + np.nanprod(x)", _ZEROS, lambda x: 2 * np.prod(x)),
    Case("np.cumprod np.nancumprod", "np.cumprod(x) + np.nancumprod(x)", _ZEROS, lambda x: _sum(2 * np.cumprod(x))),
    Case("np.vander", "np.vander(x, 4)", _ZEROS, lambda x: _sum(np.vander(x, 4))),
    Case(
        "np.dot np.vdot np.trace",
        "np.dot(x, x) + np.vdot(x, x) + np.trace(np.outer(x, x))",
        _ZEROS,
        lambda x: 3 * np.sum(x * x),
    ),
    Case(
        "np.outer np.kron", "np.outer(x, x) + np.kron(x, x).reshape(3, 3)", _ZEROS, lambda x: _sum(2 * np.outer(x, x))
    ),
    Case(
        "np.cross",
        "np.cross(x, np.array([x[1], x[2], x[0]]))",
        _ZEROS,
        lambda x: _sum(np.cross(x, np.array([x[1], x[2], x[0]]))),
    ),
    Case(
        "np.convolve np.correlate",
        "np.convolve(x, x)[:3] + np.correlate(x, x, 'same')",
        _ZEROS,
        lambda x: _sum(np.convolve(x, x)[:3] + np.convolve(x, x[::-1], "same")),
    ),
    Case(
        f"{_POLY}polyval {_POLY}polyint",
        f"{_POLY}polyval(x[0], x) + {_POLY}polyval(x[1], {_POLY}polyint(x))",
        _ZEROS[:1],
        lambda x: x[0] + x[1] * x[0] + x[2] * x[0] ** 2 + x[0] * x[1] + x[1] ** 3 / 2 + x[2] * x[1] ** 3 / 3,
    ),
    Case("np.average", "np.average(x, weights=x)", _ZEROS[:2], lambda x: np.sum(x * x) / np.sum(x)),
    Case(
        "np.cov",
        "np.cov(x[:2], x[1:])",
        _CONSTANT,
        lambda x: ((x[1] - x[0]) ** 2 + 5 * (x[1] - x[0]) * (x[2] - x[1]) + 4 * (x[2] - x[1]) ** 2) / 2,
    ),
    Case(
        "np.linalg.matrix_power",
        "np.linalg.matrix_power(x.reshape(2, 2), 0) + np.linalg.matrix_power(x.reshape(2, 2), 1)"
        " + np.linalg.matrix_power(x.reshape(2, 2), 5)",
        [[0.0, 1.0, 0.0, 0.0], [0.0] * 4],
        lambda x: 5.0 + _sum(x.reshape(2, 2) + np.linalg.matrix_power(x.reshape(2, 2), 5)),  # 5: of the power 0
    ),
)
_ELEMENTS: Final = (
    Case(
        "np.clip",
        "np.clip(x[:3], x[3], x[4])",
        [[1.0, 2.0, 1.5, 1.0, 2.0]],
        lambda x: _sum([x[0], x[1], x[2]]),
        ties=True,
    ),
    Case(  # the same bounds
        "np.clip",
        "np.clip(x[:3], x[3], x[4])",
        [[1.0, 2.0, 3.0, 2.0, 2.0]],
        lambda x: _sum([x[3], x[4], x[4]]),
    ),
    Case(  # crossed ones
        "np.clip",
        "np.clip(x[:3], x[3], x[4])",
        [[1.0, 2.0, 3.0, 3.0, 2.0]],
        lambda x: _sum([x[4], x[4], x[4]]),
    ),
    Case(
        "np.clip",
        "np.clip(x[:3], x[3:6], x[6:])",
        [[1.0, 2.0, 2.5, 1.0, 2.0, 2.0, 1.0, 2.0, 3.0]],
        lambda x: _sum([x[6], x[7], x[2]]),
    ),
    Case(
        "np.angle",
        "np.angle(x[:2] + 1j * x[2:])",
        [[1.0, 0.0, 0.0, 1.0]],
        lambda x: np.arctan(x[2] / x[0]) + np.pi - 2 * np.arctan(x[1] / x[3]),
    ),
    Case("np.nan_to_num", "np.nan_to_num(x)", [[1.0, np.nan, 2.0]], lambda x: x[0] + 3 * x[2]),
    Case(
        "np.kaiser",
        "np.kaiser(5, x[0])",
        [[0.0], [1.0]],
        lambda x: _sum(
            np.sum(
                [
                    ((x[0] / 2) ** (2 * k) * (1 - (np.arange(5) / 2 - 1) ** 2) ** k)
                    / np.prod(np.arange(1.0, k + 1)) ** 2
                    for k in range(20)
                ],
                axis=0,
            )
            / np.sum([(x[0] / 2) ** (2 * k) / np.prod(np.arange(1.0, k + 1)) ** 2 for k in range(20)])
        ),
    ),
    Case(
        "np.geomspace np.logspace",
        "np.geomspace(x[0], x[1], 3) + np.logspace(x[0], x[1], 3)",
        [[1.0, 1.0]],
        lambda x: _sum(np.array([x[0], np.sqrt(x[0] * x[1]), x[1]]) + 10 ** np.array([x[0], (x[0] + x[1]) / 2, x[1]])),
    ),
)


def _inverse(x: Any) -> Any:
    a, b, c, d = x
    return np.array([d, -b, -c, a]) / (a * d - b * c)


_SCALED: Final = [[2.0, 0.0, 0.0, 2.0]]
_MATRIX: Final = "x.reshape(2, 2)"


def _residual(a: Any, b: Any) -> Any:
    rest = b - a @ np.linalg.solve(a.T @ a, a.T @ b)
    return rest @ rest


def _complex_residual(x: Any) -> Any:
    """Each complex number as a real matrix of two rows."""
    real, imag = x[:12].reshape(2, 3, 2)
    return _residual(np.block([[real, -imag], [imag, real]]), x[12:])


_SPECTRA: Final = (
    Case(
        "np.linalg.eigh np.linalg.eigvalsh",
        f"np.sum(np.linalg.eigh({_MATRIX})[0] ** 2 + np.linalg.eigvalsh({_MATRIX}))",
        _SCALED,
        lambda x: x[0] ** 2 + x[3] ** 2 + 2 * x[2] ** 2 + x[0] + x[3],
        order=1,
    ),
    Case(
        "np.linalg.eig np.linalg.eigvals",
        f"np.sum(np.linalg.eig({_MATRIX})[0] ** 2 + np.linalg.eigvals({_MATRIX}))",
        _SCALED,
        lambda x: x[0] ** 2 + x[3] ** 2 + 2 * x[1] * x[2] + x[0] + x[3],
        order=1,
    ),
    Case(
        "np.linalg.svd",
        f"np.sum(np.linalg.svd({_MATRIX})[1] ** 2)",
        [*_SCALED, [0.0] * 4],
        lambda x: np.sum(x * x),
        order=1,
    ),
    Case(
        "np.linalg.slogdet",
        f"np.linalg.slogdet({_MATRIX})[1]",
        [*_SCALED, [0.0, 1.0, 1.0, 0.0]],
        lambda x: np.log((x[0] * x[3] - x[1] * x[2]) ** 2) / 2,
    ),
    Case(
        "np.linalg.inv np.linalg.pinv",
        f"np.linalg.inv({_MATRIX}) + np.linalg.pinv({_MATRIX})",
        [*_SCALED, [0.0, 1.0, 1.0, 0.0]],
        lambda x: _sum(2 * _inverse(x)),
        order=1,
    ),
    Case(
        "np.linalg.solve np.linalg.lstsq",
        f"np.linalg.solve({_MATRIX}, x[:2].copy()) + np.linalg.lstsq({_MATRIX}, x[:2].copy())[0]",
        _SCALED,
        lambda x: _sum(2 * _inverse(x).reshape(2, 2) @ x[:2]),
        order=1,
    ),
    Case(  # the residual is 0
        "np.linalg.lstsq",
        "np.linalg.lstsq(x[:6].reshape(3, 2), x[6:].copy())[1]",
        [[3.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0], [3.0, 0.5, 0.0, 2.0, 0.0, 0.0, 3.5, 2.0, 0.0]],
        lambda x: _residual(x[:6].reshape(3, 2), x[6:]),
    ),
    Case(  # with complex numbers
        "np.linalg.lstsq",
        "np.linalg.lstsq((x[:6] + 1j * x[6:12]).reshape(3, 2), x[12:15] + 1j * x[15:])[1]",
        [
            [3.0, 0.0, 0.0, 2.0, 0.0, 0.0, *12 * [0.0]],
            [3.0, 0.5, 0.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.5, -1.0, 0.0, 0.0, 3.5, 2.0, 0.0, 1.0, -0.5, 0.0],
        ],
        _complex_residual,
    ),
    Case(
        "np.linalg.cholesky",
        f"np.linalg.cholesky({_MATRIX})",
        _SCALED,
        lambda x: np.sqrt(x[0]) + 3 * x[2] / np.sqrt(x[0]) + 4 * np.sqrt(x[3] - x[2] ** 2 / x[0]),
    ),
    Case("np.linalg.cond", f"np.linalg.cond({_MATRIX})", [[3.0, 0.0, 0.0, 1.0]], lambda x: x[0] / x[3], order=1),
)


def _factors(a: Any, as_of: np.ndarray) -> Any:
    """Q + R of a square matrix by Gram and Schmidt, with the signs that LAPACK gives another matrix."""
    signs, q, r = np.sign(np.diag(np.linalg.qr(as_of)[1]).real), [], np.zeros_like(a)
    for j, column in enumerate(a.T):
        for i, unit in enumerate(q):
            r[i, j] = unit @ column
            column = column - r[i, j] * unit
        r[j, j] = np.repeat(signs, len(a) // len(signs))[j] * np.sqrt(column @ column)
        q.append(column / r[j, j])
    return np.stack(q, axis=1) + r


def _of_complex(x: Any) -> Any:
    """Q + R of a complex matrix of real and imaginary parts, weighted: each number as a real matrix of two rows."""
    real, imag = x.reshape(2, 2, 2)
    blocks = np.kron(real, np.eye(2)) + np.kron(imag, [[0.0, -1.0], [1.0, 0.0]])
    columns = _factors(blocks, real.real + 1j * imag.real)[:, ::2]
    return _sum(columns[::2] + 0.5 * columns[1::2])


_NO_REFLECTOR: Final = [
    [2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0],
    [1.5, 0.3, -0.4, 0.0, -0.7, 0.6, 0.0, 0.0, 0.5],
    [1.5, 0.3, -0.4, 0.0, -0.7, 0.6, 0.0, 0.8, 0.5],
    [1.5, 0.3, -0.4, 0.0, -0.7, 0.6, 0.9, 0.0, 0.5],
]
"""Matrices of whose columns some, or all, are zero below the diagonal."""
_REFLECTORS: Final = (
    Case(
        "np.linalg.qr",
        "np.add(*np.linalg.qr(x.reshape(3, 3)))",
        _NO_REFLECTOR,
        lambda x: _sum(_factors(x.reshape(3, 3), x.real.reshape(3, 3))),
    ),
)
_COMPLEX_REFLECTORS: Final = (
    Case(
        "np.linalg.qr",
        "np.add(*np.linalg.qr((x[:4] + 1j * x[4:]).reshape(2, 2)))",
        [[2.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0], [1.5, 0.3, 0.0, -0.7, 0.0, 0.8, 0.0, 0.4]],
        _of_complex,
    ),
)

LATER: Final[dict[str, tuple[Case, ...]]] = {
    "quantiles": _STATISTICS[1:],
    "correlation": (_CORRELATION,),
    "phases": (_UNWRAP,),
    "roots": _POLYNOMIALS[:1],
    "polynomials": _POLYNOMIALS[1:],
    "complex determinants": _DETERMINANTS[1:],
    "extremes": _ORDER,
    "sorts": _SORTS,
    "products": _PRODUCTS,
    "elements": _ELEMENTS,
    "spectra": _SPECTRA,
    "reflectors": _REFLECTORS,
    "complex reflectors": _COMPLEX_REFLECTORS,
}
"""Tested among the slow tests."""

LINEAR: Final = {
    "elements are moved, repeated or left out; ties and zeros make no difference": (
        "np.array np.asarray np.asarray_chkfinite np.ascontiguousarray np.asfortranarray np.copy np.diag np.diagflat "
        "np.empty np.empty_like np.frombuffer np.full np.full_like np.zeros np.zeros_like np.append np.array_split "
        "np.atleast_1d np.atleast_2d np.atleast_3d np.broadcast_arrays np.broadcast_to np.column_stack np.concatenate "
        "np.concat np.delete np.dsplit np.dstack np.expand_dims np.extract np.fill_diagonal np.flip np.fliplr "
        "np.flipud np.hsplit np.hstack np.insert np.moveaxis np.ravel np.repeat np.reshape np.resize np.roll "
        "np.rot90 np.row_stack np.split np.stack np.swapaxes np.take np.take_along_axis np.transpose "
        "np.permute_dims np.tril "
        "np.triu np.vsplit np.vstack np.lib.stride_tricks.as_strided np.lib.stride_tricks.sliding_window_view "
        "np.nditer np.ndenumerate "
        "np.ndindex np.where np.select np.real np.imag"
    ),
    "linear in all elements": (
        "np.arange np.linspace np.bincount np.cumsum np.diff np.ediff1d np.mean np.nancumsum np.nanmean np.nansum "
        "np.sum np.trapezoid"
    ),
    "how many elements the result has depends on which are zero; those that it has are moved": (
        "np.trim_zeros np.polynomial.polynomial.Polynomial np.polynomial.polyutils.as_series "
        "np.polynomial.polyutils.trimseq"
    ),
    "constant between its steps": "np.around np.round",
}
"""Functions without a special point, by the reason."""

ELSEWHERE: Final = {"with the scalar functions": "np.sinc"}
"""Functions whose special points other tests have."""
