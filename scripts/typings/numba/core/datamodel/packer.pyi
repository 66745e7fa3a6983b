from collections.abc import Iterable, Sequence
from typing import Any

from llvmlite import ir
from numba.core.base import DataModelManager
from numba.core.types import Type

class ArgPacker:
    def __init__(self, dmm: DataModelManager, fe_args: Iterable[Type]) -> None: ...
    argument_types: tuple[ir.Type, ...]
    def as_arguments(self, builder: ir.IRBuilder, values: Sequence[ir.Value]) -> tuple[ir.Value, ...]: ...
    def from_arguments(self, builder: ir.IRBuilder, args: Sequence[ir.Value]) -> tuple[Any, ...]: ...

def __getattr__(name: str) -> Any: ...
