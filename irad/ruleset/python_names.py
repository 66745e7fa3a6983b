"""Python names of LLVM symbols, for messages about calls that have no rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from irad.ruleset.symbols import external_text

PYTHON_CODE: Final = "Python code (objmode)"
_EXACT: Final[Mapping[str, str]] = {
    "numba_xxdot": "np.dot or @ of vectors",
    "numba_xxgemv": "np.dot or @ of a matrix and a vector",
    "numba_xxgemm": "np.dot or @ of matrices",
    "numba_xxnrm2": "np.linalg.norm",
    "numba_cpow": "a power of a complex number",
    "numba_cpowf": "a power of a complex number",
    "__muldc3": "a product of complex numbers",
    "__divdc3": "a quotient of complex numbers",
    "numba_xgesv": "np.linalg.solve",
    "numba_xxgetrf": "an LU factorisation (np.linalg.inv, np.linalg.det, np.linalg.slogdet)",
    "numba_ez_xxgetri": "np.linalg.inv",
    "numba_xxpotrf": "np.linalg.cholesky",
    "numba_ez_rgeev": "np.linalg.eig",
    "numba_ez_cgeev": "np.linalg.eig",
    "numba_ez_xxxevd": "np.linalg.eigh",
    "numba_ez_gesdd": "np.linalg.svd",
    "numba_ez_geqrf": "np.linalg.qr",
    "numba_ez_xxgqr": "np.linalg.qr",
    "numba_ez_gelsd": "np.linalg.lstsq",
    "numba_parallel_for": "a parallel loop (parallel=True)",
    "numba_unpickle": PYTHON_CODE,
}
_PREFIXES: Final[Mapping[str, str]] = {
    "numba_list_": "numba.typed.List",
    "numba_dict_": "numba.typed.Dict",
    "numba_set_": "numba.typed.Set",
    "Py": PYTHON_CODE,
    "NRT_adapt_": PYTHON_CODE,
    "irad.drawn.": "a random draw",
    "irad.fft.": "np.fft",
    "irad.mpi.": "numba_mpi",
}


def python_name(symbol: str) -> str:
    """The symbol in Python terms, with the symbol itself; just the symbol if nothing is known about it.

    Of Python's own functions the symbol is left out: it says how Numba calls Python, not what the user wrote.
    """
    external = external_text(symbol)
    if external is not None:
        return external
    known = _EXACT.get(symbol)
    if known is None:
        known = next((text for prefix, text in _PREFIXES.items() if symbol.startswith(prefix)), None)
    if known is None or known == PYTHON_CODE:
        return known or symbol
    return f"{known} ({symbol})"
