"""Emission of code into the function that Numba is lowering, and reading of memory there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.types import Type

from irad.records import dataclass

INTP: Final = cgutils.intp_t
VOID_POINTER: Final = cgutils.voidptr_t
WORD: Final = 8


@dataclass(frozen=True, slots=True)
class Emit:
    """Emits code at one place of a function.

    Attributes:
        context: Numba's target context.
        builder: of llvmlite; it stands where the next instruction is added.
    """

    context: BaseContext
    builder: IRBuilder

    def at(self, pointer: Value, offset: int) -> Any:
        """An address plus an offset in bytes."""
        return self.builder.gep(pointer, [INTP(offset)])

    def load(self, pointer: Value, offset: int) -> Any:
        """The address stored at an offset from an address."""
        return self.builder.load(self.builder.bitcast(self.at(pointer, offset), VOID_POINTER.as_pointer()))

    def load_word(self, pointer: Value, offset: int) -> Any:
        """The integer stored at an offset from an address."""
        return self.builder.load(self.builder.bitcast(self.at(pointer, offset), INTP.as_pointer()))

    def stored(self, numba_type: Type, place: Any) -> Any:
        """A value of a type in memory, which need not be aligned."""
        model = self.context.data_model_manager[numba_type]
        pointer = self.builder.bitcast(place, model.get_data_type().as_pointer())
        return model.load_from_data_pointer(self.builder, pointer, align=1)

    def call(self, name: str, result: Any, arguments: Sequence[Any]) -> Any:
        """Calls a function of C by name."""
        function_type = ir.FunctionType(result, [argument.type for argument in arguments])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, function_type, name), arguments)

    def array(self, array_type: Any, value: Any = None) -> Any:
        """Numba's accessor of an array, whose fields are attributes; without a value of a new one."""
        return self.context.make_array(array_type)(self.context, self.builder, value)
