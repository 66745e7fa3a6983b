"""How compiled functions are called, and how they say that they raised."""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core.pythonapi import PythonAPI
from numba.core.types import Type

class Status:
    code: ir.Value
    is_error: ir.Value
    is_none: ir.Value
    is_python_exc: ir.Value
    excinfoptr: ir.Value

class BaseCallConv:
    def call_function(
        self, builder: ir.IRBuilder, callee: ir.Value, resty: Type, argtys: Sequence[Type], args: Sequence[ir.Value]
    ) -> tuple[Status, ir.Value]: ...
    def decode_arguments(
        self, builder: ir.IRBuilder, argtypes: Sequence[Type], func: ir.Function
    ) -> list[ir.Value]: ...
    def get_function_type(self, restype: Type, argtypes: Sequence[Type]) -> ir.FunctionType: ...
    def raise_error(self, builder: ir.IRBuilder, api: PythonAPI, status: Status) -> None: ...
    def return_optional_value(self, builder: ir.IRBuilder, retty: Type, valty: Type, value: ir.Value) -> None: ...
    def return_status_propagate(self, builder: ir.IRBuilder, status: Status) -> None: ...
    def return_user_exc(
        self, builder: ir.IRBuilder, exc: type[BaseException], exc_args: tuple[object, ...] | None = ..., **where: Any
    ) -> None: ...
    def return_value(self, builder: ir.IRBuilder, retval: ir.Value) -> None: ...
    def set_dynamic_user_exc(
        self,
        builder: ir.IRBuilder,
        exc: type[BaseException],
        exc_args: tuple[object, ...],
        nb_types: tuple[Type | None, ...],
        **where: Any,
    ) -> None: ...
    def _get_excinfo_argument(self, func: ir.Function) -> ir.PointerArgument: ...
    def _get_return_status(self, builder: ir.IRBuilder, code: ir.Value, excinfoptr: ir.Value) -> Status: ...
    def _return_errcode_raw(self, builder: ir.IRBuilder, code: int | ir.Value) -> None: ...

RETCODE_EXC: ir.Constant
RETCODE_USEREXC: ir.Constant
excinfo_t: ir.Type

def __getattr__(name: str) -> Any: ...
