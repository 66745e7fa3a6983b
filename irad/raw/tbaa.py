"""Types of accesses by clang's TBAA tags.

    load i64, ptr %p, !tbaa !5      !5 = !{!6, !6, i64 0}   !6 = !{!"double", !7, i64 0}      a double

A tag is (base type, type of the access, offset); the type's name says what it is: `double`, `float`, `any pointer`
(`p1 double` and the like since LLVM 20), `vtable pointer`, or an integer. `omnipotent char` says nothing.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Final

from irad.ir import types
from irad.ir.instructions import Instruction
from irad.ir.metadata import elements, is_reference
from irad.ir.module import Module
from irad.ir.types import Type
from irad.records import dataclass

_SAYS_NOTHING: Final = ("omnipotent char", "Simple C", "Simple C++", "long double", "__float128")
_POINTER: Final = re.compile(r"any pointer|vtable pointer|any p\d+ pointer|p\d+ .*")


@dataclass(eq=False, slots=True)
class Tbaa:
    """Reads the tags of one module."""

    module: Module
    _names: dict[str, str | None] = field(default_factory=dict)
    _has_tags: bool | None = None

    def type_of(self, inst: Instruction) -> Type | None:
        """The number or pointer that an access is of; None where it is of integers, or the tag says nothing."""
        return _named(self.name_of(inst))

    def kind_of(self, tag: str, size: int) -> Type | None:
        """The type of the elements of a member of a structure, by its tag; None where the tag says nothing.

        Args:
            tag: reference to the tag of an access to the member.
            size: bytes of the member, which may be an array.
        """
        name = self._read(tag)
        if name in _SAYS_NOTHING or name is None:
            return types.I8 if size < types.size_of(types.FLOAT) else None
        kind = _named(name)
        if kind is None:
            kind = next(
                (each for each in (types.I64, types.I32, types.I16) if size % types.size_of(each) == 0), types.I8
            )
        return kind if size % types.size_of(kind) == 0 else None

    def is_integer(self, inst: Instruction) -> bool:
        """True if a tag says that an access is of an integer."""
        name = self.name_of(inst)
        return name is not None and name not in _SAYS_NOTHING and self.type_of(inst) is None

    @property
    def has_tags(self) -> bool:
        """True if the front end made tags; without, accesses are of the types that they are spelled with."""
        if self._has_tags is None:
            self._has_tags = any('"omnipotent char"' in node.text for node in self.module.metadata.values())
        return self._has_tags

    def is_member(self, inst: Instruction) -> bool:
        """True if a tag says that an access is of a part of a structure."""
        tag = inst.metadata.get("tbaa")
        parts = self._references(tag) if tag is not None else []
        return len(parts) >= 2 and parts[0] != parts[1]

    def name_of(self, inst: Instruction) -> str | None:
        """The name of the type that is accessed."""
        tag = inst.metadata.get("tbaa")
        if tag is None:
            return None
        if tag not in self._names:
            self._names[tag] = self._read(tag)
        return self._names[tag]

    def _read(self, tag: str) -> str | None:
        parts = self._references(tag)
        if len(parts) < 2:
            return None
        first = next(iter(elements(self.text_of(parts[1]))), "")
        return first[2:-1] if first.startswith('!"') else None

    def _references(self, tag: str) -> list[str]:
        return [each for each in elements(self.text_of(tag)) if is_reference(each)]

    def text_of(self, reference: str) -> str:
        """The text of a node of metadata, or of one that is spelled where it is used."""
        node = self.module.metadata.get(int(reference[1:])) if reference[1:].isdigit() else None
        return node.text if node is not None else reference


def _named(name: str | None) -> Type | None:
    if name in ("double", "float"):
        return types.DOUBLE if name == "double" else types.FLOAT
    return types.PTR if name is not None and _POINTER.fullmatch(name) else None
