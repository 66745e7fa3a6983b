"""Reads LLVM IR from a file: text or bitcode, of any front end and any LLVM release that LLVM still upgrades.

Input   a path.
Output  the module as text in the form that this LLVM prints, which `irad.ir.text.parser` reads.
Limit   little-endian targets with 64-bit pointers: sizes and offsets are computed for those.
"""

from __future__ import annotations

import enum
import re
import sys
from pathlib import Path
from typing import Final

import llvmlite.binding as llvm
from llvmlite.binding import ModuleRef

from irad.errors import BackendError, UnsupportedError
from irad.raw.link import machine_for

STDIN: Final = Path("-")
_BITCODE: Final = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
_POINTER: Final = re.compile(r"p0?:(\d+)(?::.*)?")


def read_module(path: Path) -> str:
    """The module in a file as LLVM text.

    Args:
        path: of LLVM text or bitcode; its first bytes tell which. `STDIN` is standard input.

    Raises:
        BackendError: the file cannot be read, or LLVM does not accept it.
        UnsupportedError: the module is for a target that irad does not know.
    """
    try:
        content = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except OSError as error:
        raise BackendError(
            f"cannot read {path}: {error.strerror}",
            "pass the path of a .ll or .bc file",
            "irad differentiates the LLVM IR in the file",
        ) from None
    name = "standard input" if path == STDIN else str(path)
    module = parse(content, name)
    check_target(module, name)
    return str(module)


def parse(content: bytes, name: str) -> llvm.ModuleRef:
    """An llvmlite module.

    Raises:
        BackendError: it is neither LLVM text nor bitcode, or it is not valid.
    """
    try:
        if content.startswith(_BITCODE):
            module = llvm.parse_bitcode(content)
        else:
            module = llvm.parse_assembly(content.decode("utf-8", "surrogateescape"))
        module.verify()
    except RuntimeError as error:
        said = str(error).replace("LLVM IR parsing error", "").replace("<string>:", f"{name}:")
        reason = " ".join(said.split())
        release = ".".join(map(str, llvm.llvm_version_info))
        raise BackendError(
            f"LLVM {release} cannot read {name}: {reason}",
            "(a) pass LLVM text or bitcode, as clang -emit-llvm makes it (with -S or -c), or "
            "(b) if a compiler writes text that this LLVM does not know, pass bitcode, which it reads from older "
            "releases too",
            "LLVM's text changes from release to release; bitcode is upgraded",
        ) from None
    return module


def check_target(module: llvm.ModuleRef, name: str) -> None:
    """Refuses targets whose memory is laid out otherwise than irad computes it."""
    layout = module.data_layout
    pointer = next((found for part in layout.split("-") if (found := _POINTER.fullmatch(part))), None)
    if layout.startswith("E") or (pointer is not None and pointer[1] != "64"):
        raise UnsupportedError(
            f"{name} is for {module.triple or 'an unknown target'}, which is big-endian or has no 64-bit pointers",
            "compile for a little-endian 64-bit target, such as x86-64 or AArch64",
            "irad computes memory layouts for such targets only",
        )


# What comes out: LLVM text, bitcode, assembly or an object file.


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
        form: the form.
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
