"""Machine code of LLVM text, in this process."""

from __future__ import annotations

import ctypes.util
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm

from irad.backend.link import check_names

# Symbols that object code needs: LLVM's JIT ends the process where one is not defined.

_ELF: Final = b"\x7fELF\x02\x01"  # of 64 bits, little-endian
_SYMBOL_TABLE: Final = 2
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")


def undefined_symbols(code: bytes) -> list[str]:
    """Names that an ELF object refers to and does not define; none of an object in another format."""
    if not code.startswith(_ELF):
        return []
    [offset] = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    sections = [_SECTION.unpack_from(code, offset + number * size) for number in range(count)]
    tables = [section for section in sections if section[1] == _SYMBOL_TABLE]
    return [name for table in tables for name in _undefined(code, table, sections[table[6]][4])]


def _undefined(code: bytes, table: tuple[int, ...], strings: int) -> Iterator[str]:
    start, size = table[4], table[5]
    for position in range(start + _SYMBOL.size, start + size, _SYMBOL.size):  # the first one is empty
        name, _, _, section, _, _ = _SYMBOL.unpack_from(code, position)
        if section == 0:
            end = code.index(b"\0", strings + name)
            yield code[strings + name : end].decode()


@cache
def _prepare() -> None:
    """LLVM for this machine, and the C library's functions, for it to find."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    library = ctypes.util.find_library("m")
    if library is not None:
        llvm.load_library_permanently(library)


def host_machine() -> Any:
    """The machine that runs kernels: this one."""
    _prepare()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True)


def optimise(module: Any, machine: Any) -> None:
    """Runs LLVM's whole pipeline, which also splits coroutines."""
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(2))
    builder.getModulePassManager().run(module, builder)


def loaded(module: Any, machine: Any) -> Any:
    """LLVM's engine with the code of a module, which is freed with the engine.

    Raises:
        BackendError: the code needs a symbol that is not defined.
    """
    code = machine.emit_object(module)
    check_names(undefined_symbols(code), lambda _: False)
    engine: Any = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine
