"""The lowering of one function."""

from typing import Any

from llvmlite.ir import IRBuilder, Value
from numba.core.base import BaseContext
from numba.core.funcdesc import FunctionDescriptor
from numba.core.ir import FunctionIR, Loc

class BaseLower:
    builder: IRBuilder
    call_helper: Any
    context: BaseContext
    env: Any
    fndesc: FunctionDescriptor
    func_ir: FunctionIR
    library: Any
    loc: Loc
    metadata: dict[str, Any]
    def loadvar(self, name: str) -> Value: ...
    def return_exception(
        self, exc_class: type[BaseException], exc_args: object = ..., loc: Loc | None = ...
    ) -> None: ...

class Lower(BaseLower):
    def create_cpython_wrapper(self, release_gil: bool = ...) -> None: ...
    def fold_call_args(self, fnty: Any, signature: Any, pos_args: Any, vararg: Any, kw_args: Any) -> Any: ...

def __getattr__(name: str) -> Any: ...
