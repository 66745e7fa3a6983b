"""Alias metadata: tells LLVM which accesses of a generated function never touch the same bytes.

A memory object has a scope for its primal memory and one for its shadow (for that of each lane); the tape has one. An
access carries the scopes of all objects it may touch, and as `noalias` those of all that it cannot. Shadows overlap
neither primal memory nor those of other lanes, and the tape overlaps nothing. An access that may touch unknown memory
carries nothing. Where there are many objects, those that are accessed in the innermost loops have scopes of their own,
the others share one.

The scopes are declared at the function's head: inlined into a loop of a caller, each iteration gets its own, because
there the same scope may mean other memory each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import ControlFlow
from irad.ir.instructions import Load, Metadata, Store
from irad.ir.loops import LoopNest
from irad.ir.module import Function, MetadataNode, Module
from irad.ir.types import function_type
from irad.ir.values import MetadataOperand
from irad.passes.memory.objects import ObjectKind, PointsTo
from irad.records import dataclass

_REST = -1  # in place of the index of an object that has no scope of its own
_TAPE = ("tape", _REST)
_MOST_OBJECTS = 64  # lists of scopes grow with the square of their number
_DECLARE = "llvm.experimental.noalias.scope.decl"


@dataclass(eq=False, slots=True)
class AliasScopes:
    """The scopes of one generated function.

    Attributes:
        ranked: indices of objects, those first whose scopes matter most; all objects if not given.
        lanes: number of shadows of an object; they do not overlap.
        scopes: by "primal", "shadow" (of a lane) or "tape", and object.
    """

    module: Module
    points_to: PointsTo
    enabled: bool = True
    ranked: Sequence[int] | None = None
    lanes: int = 1
    domain: int = -1
    scopes: dict[tuple[str, int], int] = field(default_factory=dict)
    lists: dict[tuple[int, ...], str] = field(default_factory=dict)
    groups: dict[tuple[str, int], Metadata] = field(default_factory=dict)
    used: set[tuple[str, int]] = field(default_factory=set)
    _kinds: dict[str, tuple[str, int]] = field(default_factory=dict)  # by list of scopes

    def __post_init__(self) -> None:
        if not self.enabled:
            return
        self.domain = self._node("distinct", '!{{!{self}, !"irad"}}')
        ranked = self.ranked if self.ranked is not None else range(len(self.points_to.objects))
        for index in (*ranked[: _MOST_OBJECTS // self.lanes], _REST):
            for kind in ("primal", *map(_shadow_kind, range(self.lanes))):
                self.scopes[kind, index] = self._scope()
        self.scopes[_TAPE] = self._scope()

    def _node(self, kind: str, template: str) -> int:
        number = self.module.new_metadata_number()
        text = template.format(self=number, domain=self.domain)
        self.module.metadata[number] = MetadataNode(text, kind == "distinct")
        return number

    def _scope(self) -> int:
        return self._node("distinct", "!{{!{self}, !{domain}}}")

    def tape(self) -> Metadata:
        """Alias scopes of an access of the tape."""
        return self._group("tape", 0)

    def primal(self, mask: int) -> Metadata:
        """Alias scopes of an access of primal memory, to any object of a set."""
        return self._group("primal", mask)

    def shadow(self, mask: int, lane: int = 0) -> Metadata:
        """Alias scopes of an access of shadow memory."""
        return self._group(_shadow_kind(lane), mask)

    def kind_of(self, metadata: Metadata) -> tuple[str, int] | None:
        """Memory of an access: "tape", "primal" or the shadow of a lane, and its objects; None if it is unknown."""
        return self._kinds.get(metadata.get("alias.scope", ""))

    def _group(self, kind: str, mask: int) -> Metadata:
        if not self.enabled:
            return {}
        key = (kind, mask)
        if key not in self.groups:
            self.groups[key] = self._new_group(kind, mask)
        return self.groups[key]

    def _new_group(self, kind: str, mask: int) -> Metadata:
        if kind == "tape":
            own: list[tuple[str, int]] = [_TAPE]
            near: set[tuple[str, int]] = {_TAPE}
        else:
            members = list(self.points_to.members(mask))
            if not members or any(o.kind is ObjectKind.UNKNOWN for o in members):
                return {}
            own = list(dict.fromkeys(self._key(kind, o.index) for o in members))
            touched = self.points_to.members(self.points_to.overlapping(mask))
            near = {self._key(kind, o.index) for o in touched if o.kind is not ObjectKind.UNKNOWN}
        self.used.update(own)
        apart = [k for k in self.scopes if k not in near]
        listed = self._list(own)
        self._kinds[listed] = kind, mask | self._kinds.get(listed, (kind, 0))[1]
        return {"alias.scope": listed, "noalias": self._list(apart)}

    def _key(self, kind: str, index: int) -> tuple[str, int]:
        return (kind, index) if (kind, index) in self.scopes else (kind, _REST)

    def _list(self, keys: list[tuple[str, int]]) -> str:
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


def _shadow_kind(lane: int) -> str:
    return f"shadow{lane or ''}"


def rank_objects(points_to: PointsTo, cfg: ControlFlow, loops: LoopNest) -> tuple[int, ...]:
    """The objects that loads and stores access, by the deepest loop in which one does."""
    depths: dict[int, int] = {}
    for block in cfg.order:
        depth = loops.depth_of(block)
        for inst in block.instructions:
            match inst:
                case Load(operands=[pointer]) | Store(operands=[_, pointer]):
                    for item in points_to.members(points_to.mask(pointer)):
                        depths[item.index] = max(depth, depths.get(item.index, 0))
                case _:
                    pass
    return tuple(sorted(depths, key=lambda index: (-depths[index], index)))
