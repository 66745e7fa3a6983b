"""Numba's IR of Python functions."""

from collections.abc import Iterator, Sequence
from typing import Any

class Loc:
    filename: str
    line: int

class Inst:
    loc: Loc
    def list_vars(self) -> list[Var]: ...

class Stmt(Inst): ...

class Var(Inst):
    name: str
    scope: Scope

class Scope:
    def redefine(self, name: str, loc: Loc) -> Var: ...

class Expr(Inst):
    op: str
    fn: Any
    def __getattr__(self, name: str) -> Any: ...
    @classmethod
    def build_tuple(cls, items: Sequence[Var], loc: Loc) -> Expr: ...
    @classmethod
    def call(cls, func: Var, args: Sequence[Var], kws: Any, loc: Loc, vararg: Any = ...) -> Expr: ...

class Assign(Stmt):
    target: Var
    value: Any
    def __init__(self, value: Inst, target: Var, loc: Loc) -> None: ...

class SetItem(Stmt): ...
class Del(Stmt): ...

class Arg(Inst):
    name: str
    index: int

class Const(Inst):
    value: Any
    def __init__(self, value: object, loc: Loc, use_literal_type: bool = ...) -> None: ...

class Global(Inst):
    name: str
    value: Any
    def __init__(self, name: str, value: object, loc: Loc) -> None: ...

class FreeVar(Inst):
    name: str
    value: Any

class Block:
    body: list[Stmt]
    loc: Loc
    scope: Scope
    def find_insts(self, cls: type | None = ...) -> Iterator[Any]: ...

class FunctionIR:
    blocks: dict[int, Block]
    func_id: Any
    loc: Loc
    _definitions: dict[str, list[Inst]]
    def get_definition(self, value: Var | str) -> Any: ...

def __getattr__(name: str) -> Any: ...
