from typing import Any

from numba.core.base import BaseContext
from numba.core.codegen import JITCPUCodegen

class CPUContext(BaseContext):
    is32bit: bool
    _internal_codegen: JITCPUCodegen
    def create_cfunc_wrapper(self, *args: Any, **kwargs: Any) -> None: ...

def __getattr__(name: str) -> Any: ...
