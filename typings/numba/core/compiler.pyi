"""One compilation."""

from typing import Any

from numba.core.funcdesc import FunctionDescriptor
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

class StateDict:
    args: tuple[Any, ...]
    bc: Any
    calltypes: dict[Any, Signature]
    flags: Any
    func_id: Any
    func_ir: Any
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
