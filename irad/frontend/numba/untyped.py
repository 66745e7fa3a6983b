"""Names of Numba without their types.

Numba declares itself typed, but its stubs, and what a checker infers from its sources, lack members that exist.
"""

import os
from typing import Any, Final

import numba as _numba
from numba.core import cpu as _cpu
from numba.core import dispatcher as _dispatcher
from numba.core import types as _types
from numba.cpython.unsafe import tuple as _tuple
from numba.np.ufunc import gufunc as _gufunc
from numba.np.ufunc import ufuncbuilder as _ufuncbuilder
from numba.np.ufunc import wrappers as _wrappers

numba_folder: Final = os.path.dirname(str(_numba.__file__)) + os.sep
cpu: Any = _cpu
dispatcher: Any = _dispatcher
types: Any = _types
GUFunc: Any = _gufunc.GUFunc
tuple_setitem: Any = _tuple.tuple_setitem
UFuncDispatcher: Any = _ufuncbuilder.UFuncDispatcher
GUFuncWrapper: Any = _wrappers._GufuncWrapper
