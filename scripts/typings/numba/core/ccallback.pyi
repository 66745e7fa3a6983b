from collections.abc import Callable
from typing import Any

from numba.core.typing import Signature

class CFunc:
    """A function that C calls."""

    address: int
    _compiler: Any
    _library: Any
    _pyfunc: Callable[..., Any]
    __wrapped__: Callable[..., Any]
    _sig: Signature
    _wrapper_address: int
    def __init__(
        self, pyfunc: Callable[..., Any], sig: Any, locals: dict[str, Any], options: dict[str, Any]
    ) -> None: ...
    def compile(self) -> None: ...

def __getattr__(name: str) -> Any: ...
