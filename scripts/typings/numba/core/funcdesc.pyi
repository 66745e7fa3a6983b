"""What a lowered function is called, takes and returns."""

from collections.abc import Callable
from typing import Any

from numba.core.types import Type

class FunctionDescriptor:
    abi_tags: tuple[str, ...]
    argtypes: tuple[Type, ...]
    llvm_cfunc_wrapper_name: str
    llvm_func_name: str
    mangled_name: str
    modname: str
    qualname: str
    restype: Type
    def __init__(self, **fields: Any) -> None: ...

default_mangler: Callable[..., str]

def __getattr__(name: str) -> Any: ...
