"""Boxing of results of compiled code as Python objects, where Numba's own way would lose something.

Numba turns a float32 into a Python float and a complex64 into a Python complex. A derivative has the dtype of its
argument, so single precision comes back as a NumPy scalar. Only the wrapper that Python calls differs: for compiled
callers the number stays what it is, and a function without such results is compiled as any other.

A record of Numba's is a pointer into memory that something else owns, usually an array, and a tuple that holds one
cannot be returned. So in compiled code the records that irad makes, gradients with respect to records and records that
a derivative passes on, are zero-dimensional arrays whose item is the record; Python is given a record.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.compiler import CompilerBase, DefaultPassBuilder, StateDict
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.datamodel.models import ArrayModel
from numba.core.lowering import Lower
from numba.core.pythonapi import _BoxContext as BoxContext
from numba.core.typed_passes import NativeLowering
from numba.core.types import Type
from numba.extending import box, register_model
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import as_dtype

from irad.frontend.values.layouts import mapped

_PYTHON_TYPE = "irad_python_type"
_CODE = "irad_code"


class NumPyNumber(types.Type):
    """A number that becomes a NumPy scalar where it leaves compiled code.

    Attributes:
        number: the Numba type of the number.
    """

    def __init__(self, number: Type) -> None:
        self.number = number
        super().__init__(f"irad.NumPyNumber({number})")


register_model(NumPyNumber)(lambda manager, numba_type: manager.lookup(numba_type.number))


@box(NumPyNumber)
def _box_numpy_number(numba_type: NumPyNumber, value: Value, c: BoxContext) -> Value:
    plain = c.box(numba_type.number, value)
    scalar_class = c.env_manager.read_const(c.env_manager.add_const(as_dtype(numba_type.number).type))
    result = c.pyapi.call_function_objargs(scalar_class, (plain,))
    c.pyapi.decref(plain)
    return result


def with_numpy_numbers(numba_type: Type) -> Type:
    """``numba_type`` with NumPy scalars in place of numbers in single precision."""
    return mapped(numba_type, _with_numpy_numbers)


def _with_numpy_numbers(numba_type: Type) -> Type:
    if isinstance(numba_type, types.List):
        return types.List(with_numpy_numbers(numba_type.dtype), reflected=numba_type.reflected)
    if isinstance(numba_type, types.Optional):
        return types.Optional(with_numpy_numbers(numba_type.type))
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
    def lowering_class(self) -> type[Lower]:
        return _Lower

    def run_pass(self, state: StateDict) -> bool:
        if any(state.metadata[_CODE].values()):
            from irad.frontend.numba.library import choose_library  # what compiles; loaded with the derivative

            choose_library(state, **state.metadata[_CODE])
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class _StorableLowering(NativeLowering):
    _name = "irad_storable_lowering"

    def run_pass(self, state: StateDict) -> bool:
        from irad.frontend.numba.library import make_storable  # what compiles: code from disk does without

        make_storable(state)
        return bool(super().run_pass(state))


class StorableCompiler(CompilerBase):
    """Numba's compiler for functions that are kept on disk."""

    def define_pipelines(self) -> list[PassManager]:
        """The pipeline of nopython mode; Numba's hook."""
        return [_with_lowering(self.state, _StorableLowering)]


def _with_lowering(state: StateDict, lowering: type[NativeLowering]) -> PassManager:
    """Numba's pipeline with its last step replaced."""
    manager = DefaultPassBuilder.define_nopython_pipeline(state)
    manager.passes = [(lowering if each is NativeLowering else each, text) for each, text in manager.passes]
    manager.finalize()
    return manager


def compiler_boxing(
    python_type: Callable[[Type], Type], *, has_lanes: bool = False, is_inner: bool = False
) -> type[CompilerBase]:
    """A compiler for functions whose result Python is given as another type.

    Args:
        python_type: from the type of a result to one with the same representation, which says how it is boxed.
        has_lanes: whether the code does the same to several numbers at a time.
        is_inner: whether the code is left to its callers, which are compiled.
    """

    class Compiler(CompilerBase):
        """Numba's compiler with its last step replaced."""

        def define_pipelines(self) -> list[PassManager]:
            code = {"has_lanes": has_lanes, "is_inner": is_inner}
            self.state.metadata |= {_PYTHON_TYPE: python_type, _CODE: code}
            return [_with_lowering(self.state, _Lowering)]

    return Compiler


class OwnedRecord(types.Array):
    """An array without dimensions that becomes a record where it leaves compiled code."""

    def __init__(self, record: types.Record) -> None:
        super().__init__(record, 0, "C", name=f"irad.OwnedRecord({record})")


register_model(OwnedRecord)(ArrayModel)


@box(OwnedRecord)
def _box_owned_record(numba_type: OwnedRecord, value: Value, c: BoxContext) -> Value:
    data = make_array(numba_type)(c.context, c.builder, value).data
    size = ir.Constant(ir.IntType(32), numba_type.dtype.size)
    pointer = c.builder.bitcast(data, ir.IntType(8).as_pointer())
    record = c.pyapi.recreate_record(pointer, size, numba_type.dtype.dtype, c.env_manager)
    c.context.nrt.decref(c.builder, numba_type, value)
    return record


def owned_record(context: BaseContext, builder: IRBuilder, record: types.Record, meminfo: Value, data: Value) -> Value:
    """A value of type `OwnedRecord`.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        record: the type of the record.
        meminfo: whose reference the value takes over.
        data: where the record lies in its memory.
    """
    array = make_array(OwnedRecord(record))(context, builder)
    pointer = builder.bitcast(data, array.data.type)
    populate_array(array, pointer, (), (), cgutils.intp_t(record.size), meminfo)
    return array._getvalue()
