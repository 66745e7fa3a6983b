"""Compiled functions as Python sees them."""

from collections.abc import Callable
from typing import Any

from numba.core.compiler import CompileResult
from numba.core.types import Type
from numba.core.typing import Signature

class _DispatcherBase:
    py_func: Callable[..., Any]
    overloads: dict[Any, CompileResult]
    nopython_signatures: list[Signature]
    signatures: list[tuple[Type, ...]]
    _can_compile: bool
    _compiling_counter: Any
    __name__: str
    __qualname__: str
    __code__: Any
    __defaults__: Any
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def fold_argument_types(self, args: tuple[Type, ...], kws: dict[str, Type]) -> tuple[Any, tuple[Type, ...]]: ...
    def get_call_template(self, args: tuple[Type, ...], kws: dict[str, Type]) -> tuple[Any, Any, Any, Any]: ...
    def get_compile_result(self, sig: Signature) -> CompileResult: ...
    def get_overload(self, sig: Any) -> Any: ...
    def typeof_pyval(self, val: object) -> Type: ...
    def _clear(self) -> None: ...
    def _insert(self, codes: list[int], entry: Any, objectmode: bool) -> None: ...

class Dispatcher(_DispatcherBase):
    targetoptions: dict[str, Any]
    targetctx: Any
    locals: dict[str, Any]
    _compiler: Any
    _type: Any
    def __init__(
        self,
        py_func: Callable[..., Any],
        locals: dict[str, Any] | None = ...,
        targetoptions: dict[str, Any] | None = ...,
        pipeline_class: type = ...,
    ) -> None: ...
    def add_overload(self, cres: CompileResult) -> None: ...
    def compile(self, sig: Any) -> Any: ...
    def disable_compile(self, val: bool = ...) -> None: ...
    def _compile_for_args(self, *args: Any, **kws: Any) -> Any: ...
    def _reset_overloads(self) -> None: ...

class LiftedCode(_DispatcherBase):
    targetctx: Any
    flags: Any

class LiftedWith(LiftedCode): ...

class _FunctionCompiler:
    def __init__(self, *args: Any) -> None: ...

def __getattr__(name: str) -> Any: ...
