"""Alias metadata: tells LLVM which accesses of a generated function never touch the same bytes.

Every memory object has a scope for its primal memory and one for its shadow; the tape has one. An access carries the
scopes of all objects it may touch, and as `noalias` those of all that it cannot. Shadows are apart from all primal
memory, the tape from both. An access that may touch unknown memory carries nothing.

The scopes are declared at the function's head: inlined into a loop of a caller, each iteration gets its own, because
there the same scope may stand for other memory each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Metadata
from irad.ir.module import Function, MetadataNode, Module
from irad.ir.types import function_type
from irad.ir.values import MetadataOperand
from irad.passes.objects import ObjectKind, PointsTo

_TAPE = -1
_MOST_OBJECTS = 64  # lists of scopes grow with the square of their number
_DECLARE = "llvm.experimental.noalias.scope.decl"


@dataclass(eq=False, slots=True)
class AliasScopes:
    """The scopes of one generated function, by object index; -2 - index for its shadow, -1 for the tape."""

    module: Module
    points_to: PointsTo
    enabled: bool = True
    domain: int = -1
    scopes: dict[int, int] = field(default_factory=dict)
    lists: dict[tuple[int, ...], str] = field(default_factory=dict)
    groups: dict[tuple[str, int], Metadata] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        if not self.enabled:
            return
        self.domain = self._node("distinct", '!{{!{self}, !"irad"}}')
        for item in self.points_to.objects[:_MOST_OBJECTS]:
            self.scopes[item.index] = self._scope()
            self.scopes[-2 - item.index] = self._scope()
        self.scopes[_TAPE] = self._scope()

    def _node(self, kind: str, template: str) -> int:
        number = self.module.new_metadata_number()
        text = template.format(self=number, domain=self.domain)
        self.module.metadata[number] = MetadataNode(text, kind == "distinct")
        return number

    def _scope(self) -> int:
        return self._node("distinct", "!{{!{self}, !{domain}}}")

    def tape(self) -> Metadata:
        """Of an access of the tape."""
        return self._group("tape", 0)

    def primal(self, mask: int) -> Metadata:
        """Of an access of primal memory, to any object of a set."""
        return self._group("primal", mask)

    def shadow(self, mask: int) -> Metadata:
        """Of an access of shadow memory."""
        return self._group("shadow", mask)

    def _group(self, kind: str, mask: int) -> Metadata:
        if not self.enabled:
            return {}
        key = (kind, mask)
        if key not in self.groups:
            self.groups[key] = self._new_group(kind, mask)
        return self.groups[key]

    def _new_group(self, kind: str, mask: int) -> Metadata:
        if kind == "tape":
            own, near = [_TAPE], {_TAPE}
        else:
            members = list(self.points_to.members(mask))
            if not members or any(o.kind is ObjectKind.UNKNOWN or o.index not in self.scopes for o in members):
                return {}
            own = [_key(kind, o.index) for o in members]
            near = {_key(kind, o.index) for o in self.points_to.members(self.points_to.overlapping(mask))}
        self.used.update(own)
        apart = [k for k in self.scopes if k not in near]
        return {"alias.scope": self._list(own), "noalias": self._list(apart)}

    def _list(self, keys: list[int]) -> str:
        numbers = tuple(self.scopes[k] for k in keys)
        if numbers not in self.lists:
            inside = ", ".join(f"!{n}" for n in numbers)
            self.lists[numbers] = f"!{self._node('', '!{{' + inside + '}}')}"
        return self.lists[numbers]

    def declare(self, function: Function) -> None:
        """Declares the scopes in use at the head of the function."""
        if not self.groups:
            return
        build = Builder.at_start(function.entry)
        declare = self.module.declare(_DECLARE, function_type(types.VOID, [types.METADATA]))
        for key in sorted(self.used):
            build.call(declare, [MetadataOperand(types.METADATA, None, self._list([key]))])


def _key(kind: str, index: int) -> int:
    return index if kind == "primal" else -2 - index
