"""The CPU as a target."""

from typing import Any

from numba.core.base import BaseContext
from numba.core.dispatcher import Dispatcher
from numba.core.typing import BaseContext as TypingContext

class CPUDispatcher(Dispatcher): ...

class CPUTarget:
    options: Any
    target_context: BaseContext
    typing_context: TypingContext
    _toplevel_target_context: BaseContext

cpu_target: CPUTarget

def __getattr__(name: str) -> Any: ...
