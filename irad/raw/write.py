"""What comes out: LLVM text, bitcode, assembly or an object file."""

from __future__ import annotations

import enum

from llvmlite.binding import ModuleRef

from irad.raw.link import machine_for


class Form(enum.Enum):
    """The forms of a module, by the suffix that files of them have."""

    TEXT = "ll"
    BITCODE = "bc"
    ASSEMBLY = "s"
    OBJECT = "o"


def encode(module: ModuleRef, form: Form) -> bytes:
    """A module in one of its forms.

    Args:
        module: of llvmlite; machine code is made for its target, position-independent.
        form: which.
    """
    match form:
        case Form.TEXT:
            return str(module).encode("utf-8", "surrogateescape")
        case Form.BITCODE:
            return module.as_bitcode()
        case Form.ASSEMBLY:
            return machine_for(module.triple).emit_assembly(module).encode()
        case Form.OBJECT:
            return machine_for(module.triple).emit_object(module)
