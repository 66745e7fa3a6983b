"""Machine code of LLVM text, in this process."""

from __future__ import annotations

import ctypes.util
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from irad.backend.executor.objects import undefined_symbols
from irad.backend.link import check_names


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
