"""One compilation."""

from typing import Any

from numba.core.funcdesc import FunctionDescriptor
from numba.core.ir import FunctionIR
from numba.core.typing import Signature

class CompileResult:
    entry_point: Any
    environment: Any
    fndesc: FunctionDescriptor
    library: Any
    objectmode: bool
    signature: Signature
    type_annotation: Any
    def _replace(self, **kws: object) -> CompileResult: ...

class Flags:
    """Options of a compilation; each is an attribute."""

    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: object) -> None: ...
    @classmethod
    def demangle(cls, s: str) -> str: ...
    def copy(self) -> Flags: ...
    def discard(self, name: str) -> None: ...
    def is_set(self, name: str) -> bool: ...

DEFAULT_FLAGS: Flags

class StateDict:
    args: tuple[Any, ...]
    bc: Any
    calltypes: dict[Any, Signature]
    flags: Flags
    func_id: Any
    func_ir: FunctionIR
    library: Any
    lifted: Any
    metadata: dict[str, Any]
    targetctx: Any
    typemap: dict[str, Any]

class CompilerBase:
    state: StateDict
    def __init__(self, *args: Any) -> None: ...

class Compiler(CompilerBase): ...

def __getattr__(name: str) -> Any: ...
