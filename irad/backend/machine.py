"""The machines that irad runs on."""

from __future__ import annotations

import struct
import sys

from irad.errors import UnsupportedError


def check_machine(
    system: str = sys.platform, byte_order: str = sys.byteorder, pointer: int = struct.calcsize("P")
) -> None:
    """Refuses a machine on which irad's derivatives would be wrong, or would not be made.

    Args:
        system: as ``sys.platform`` names it.
        byte_order: as ``sys.byteorder`` names it.
        pointer: bytes of a pointer.

    Raises:
        UnsupportedError: names what is missing.
    """
    if system in ("win32", "cygwin", "emscripten", "wasi"):
        raise UnsupportedError(
            f"irad does not run on this platform ({system})",
            "(a) use Linux (on Windows: the Windows Subsystem for Linux, WSL) or (b) use a Linux container",
            "its run-time support needs POSIX threads and the ability to reserve address space",
        )
    if byte_order != "little" or pointer != 8:
        raise UnsupportedError(
            f"irad does not run on this processor ({8 * pointer} bits, {byte_order}-endian)",
            "use a machine with an x86-64 or an ARM64 processor",
            "the code that it generates assumes 64-bit pointers and little-endian numbers",
        )
