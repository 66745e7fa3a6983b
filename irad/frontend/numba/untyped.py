"""Names of Numba, and where it lies."""

import os
from typing import Final

import numba
from numba.core import cpu as cpu, dispatcher as dispatcher, types as types
from numba.cpython.unsafe.tuple import tuple_setitem as tuple_setitem
from numba.np.ufunc import wrappers
from numba.np.ufunc.gufunc import GUFunc as GUFunc
from numba.np.ufunc.ufuncbuilder import UFuncDispatcher as UFuncDispatcher

GUFuncWrapper = wrappers._GufuncWrapper
numba_folder: Final = os.path.dirname(str(numba.__file__)) + os.sep
