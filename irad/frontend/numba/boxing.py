"""How results of compiled code become Python objects, where Numba's own way would lose something.

Numba makes a Python float of a float32 and a Python complex of a complex64. A derivative has the dtype of its argument,
so single precision comes back as a NumPy scalar. Only the wrapper that Python calls differs: for compiled callers the
number stays what it is, and a function without such results is compiled as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.extending import box, register_model
from numba.np.numpy_support import as_dtype

from irad.frontend.memory.layouts import tuple_type
from irad.frontend.numba.untyped import types

_PYTHON_TYPE = "irad_python_type"


class NumPyNumber(types.Type):
    """A number that becomes a NumPy scalar where it leaves compiled code.

    Attributes:
        number: the Numba type of the number.
    """

    def __init__(self, number: Any) -> None:
        self.number = number
        super().__init__(f"irad.NumPyNumber({number})")


register_model(NumPyNumber)(lambda manager, numba_type: manager.lookup(numba_type.number))


@box(NumPyNumber)
def _box_numpy_number(numba_type: Any, value: Any, c: Any) -> Any:
    plain = c.box(numba_type.number, value)
    scalar_class = c.env_manager.read_const(c.env_manager.add_const(as_dtype(numba_type.number).type))
    result = c.pyapi.call_function_objargs(scalar_class, (plain,))
    c.pyapi.decref(plain)
    return result


def with_numpy_numbers(numba_type: Any) -> Any:
    """The same structure with NumPy scalars in place of numbers in single precision."""
    if isinstance(numba_type, types.BaseTuple):
        return tuple_type(numba_type, tuple(map(with_numpy_numbers, numba_type.types)))
    if isinstance(numba_type, types.List):
        return types.List(with_numpy_numbers(numba_type.dtype), reflected=numba_type.reflected)
    return NumPyNumber(numba_type) if numba_type in (types.float32, types.complex64) else numba_type


class _Lower(Lower):
    """Lowers a function; the wrapper for Python boxes another type than the function returns."""

    def create_cpython_wrapper(self, release_gil: bool = False) -> None:
        descriptor = copy(self.fndesc)
        descriptor.restype = self.metadata[_PYTHON_TYPE](self.fndesc.restype)
        self.context.create_cpython_wrapper(
            self.library, descriptor, self.env, self.call_helper, release_gil=release_gil
        )


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "irad_native_lowering"

    @property
    def lowering_class(self) -> Any:
        return _Lower


def compiler_boxing(python_type: Callable[[Any], Any]) -> type[CompilerBase]:
    """A compiler for functions whose result Python is given as another type.

    Args:
        python_type: from the type of a result to one with the same representation, which says how it is boxed.
    """

    class Compiler(CompilerBase):
        """Numba's compiler with its last step replaced."""

        def define_pipelines(self) -> list[Any]:
            self.state.metadata[_PYTHON_TYPE] = python_type
            manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
            manager.passes = [
                (_Lowering if each is NativeLowering else each, description) for each, description in manager.passes
            ]
            manager.finalize()
            return [manager]

    return Compiler
