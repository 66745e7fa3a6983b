"""Puts derivatives into the module that asks for them.

Input   the module, its calls replaced; the modules of the derivatives, which were made from copies of it.
Output  one module that needs neither Python nor Numba.
Method  what a derivative's module shares with the original by identity becomes a declaration there: variables, and
        functions whose address is used. Those are visible to the linker while it works, and local again afterwards.
        All else in a derivative's module is its own. Derivatives and run-time support are optimised together first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import llvmlite.binding as llvm

from irad.backend.runtime.support import runtime_text, standalone_text
from irad.errors import BackendError, InternalError
from irad.ir.module import Function, Module
from irad.ir.text.printer import print_module
from irad.ir.values import GlobalVariable
from irad.passes.prepare.devirtualise import taken_functions
from irad.raw.program import CANDIDATES
from irad.raw.symbols import expanded

_LOCAL: Final = frozenset({"internal", "private"})
_PROCESSOR: Final = ('"target-cpu"', '"target-features"', '"tune-cpu"')  # the code may use what the primal's may
_KEPT_WORDS: Final = ("thread_local", "addrspace", "unnamed_addr", "local_unnamed_addr")


def share(derivative: Module, original: Module, wrapper: str, primal: Function) -> set[str]:
    """Makes what a derivative's module has in common with the original a declaration there; all but the wrapper local.

    Returns:
        The symbols that the original must show to the linker.
    """
    shared: set[str] = set()
    derivative.globals.pop(CANDIDATES, None)
    for name, variable in derivative.globals.items():
        found = original.globals.get(name)
        # A variable must be one and the same: code outside writes to it or compares its address.
        if found is not None and found.initializer is not None and not _is_plain_constant(found):
            _declare_variable(variable)
            shared.add(name)
        elif variable.initializer is not None:
            variable.prefix = ("internal", *(w for w in variable.prefix if w.startswith(_KEPT_WORDS)))
    taken = taken_functions(derivative)
    processor = sorted(w for w in expanded(primal, original) if w.startswith(_PROCESSOR))
    for name, function in derivative.functions.items():
        if function.is_declaration:
            found_function = original.functions.get(name)
            if found_function is not None and not found_function.is_declaration:
                shared.add(name)
        # A function whose address is used must be one and the same: pointers to it are compared and looked up.
        elif name in original.functions and not original.functions[name].is_declaration and function in taken:
            _declare_function(function, original.functions[name])
            shared.add(name)
        elif name != wrapper:
            function.prefix = ("internal",)
        if not function.is_declaration:
            function.attributes = (*function.attributes, *processor)
    return shared


def _is_plain_constant(variable: GlobalVariable) -> bool:
    """True if a copy is as good: a constant that only this module sees and whose address means nothing."""
    return variable.constant and bool(_LOCAL & set(variable.prefix)) and "unnamed_addr" in variable.prefix


def _declare_variable(variable: GlobalVariable) -> None:
    variable.initializer = None
    variable.prefix = ("external", *(w for w in variable.prefix if w.startswith(_KEPT_WORDS)))
    variable.suffix = tuple(w for w in variable.suffix if w.startswith("align"))
    variable.metadata = ()


def _declare_function(function: Function, original: Function) -> None:
    if function.function_type is not original.function_type:
        raise InternalError(f"{function.name} has changed its type, though its address is used")
    for inst in list(function.instructions()):
        inst.set_operands(())
    function.blocks.clear()
    function.prefix, function.attributes, function.suffix = (), (), ()
    function.operands, function.metadata = (), ()


# ------------------------------------------------------------------------------------------------ linking


def join(
    original: Module,
    derivatives: Iterable[Module],
    shared: Collection[str],
    wrappers: Collection[str],
    tables: Collection[str],
    level: int,
) -> llvm.ModuleRef:
    """Links everything.

    Args:
        original: with its calls replaced by those of ``wrappers``.
        derivatives: with their wrappers; `share` has been called for each.
        shared: symbols of the original that derivatives refer to.
        wrappers: symbols of the functions that take the place of calls.
        tables: symbols of the tables that calls through pointers ask.
        level: of optimisation of the derivatives, 0 to 3; the original stays as it is.

    Returns:
        An llvmlite module, verified.
    """
    was = _show(original, shared)
    module = _parsed(print_module(original))
    texts = [*(print_module(each) for each in derivatives), runtime_text(), standalone_text(tables)]
    support = _support(texts, frozenset(wrappers), level, module)
    module.link_in(support)
    _hide(module, was, wrappers)
    pipeline = llvm.create_new_module_pass_manager()
    pipeline.add_global_dead_code_eliminate_pass()
    pipeline.add_strip_dead_prototype_pass()
    pipeline.run(module, pass_builder(machine_for(module.triple, 0), 0))
    module.verify()
    return module


def _parsed(text: str) -> llvm.ModuleRef:
    try:
        return llvm.parse_assembly(text)
    except RuntimeError as error:
        raise InternalError(f"LLVM does not accept what irad generated: {error}") from error


def _show(original: Module, shared: Collection[str]) -> dict[str, str]:
    """Makes symbols visible to the linker; returns the linkage of those that were not."""
    was: dict[str, str] = {}
    for name in sorted(shared):
        value: GlobalVariable | Function = original.globals.get(name) or original.functions[name]
        local = _LOCAL & set(value.prefix)
        if local:
            was[name] = next(iter(local))
            value.prefix = tuple(w for w in value.prefix if w not in _LOCAL)
    return was


def _hide(module: llvm.ModuleRef, was: dict[str, str], wrappers: Collection[str]) -> None:
    for name in wrappers:
        # Not before linking, which resolves the calls of the original by these names.
        module.get_function(name).linkage = "internal"
    for value in (*module.functions, *module.global_variables):
        if value.name in was:
            value.linkage = was[value.name]


def _support(texts: list[str], wrappers: frozenset[str], level: int, original: llvm.ModuleRef) -> llvm.ModuleRef:
    """The derivatives with the run-time support, optimised; only the wrappers are visible."""
    module = _parsed(texts[0])
    for text in texts[1:]:
        module.link_in(_parsed(text))
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name not in wrappers and not value.name.startswith("llvm."):
            value.linkage = "internal"
    module.triple, module.data_layout = original.triple, original.data_layout
    builder = pass_builder(machine_for(module.triple, level), level)
    builder.getModulePassManager().run(module, builder)
    return module


def machine_for(triple: str, level: int = 2, cpu: str = "", features: str = "") -> llvm.TargetMachine:
    """A target machine for a module: of its architecture, by default of no processor in particular.

    Args:
        triple: triple of the module.
        level: of optimisation.
        cpu: a processor, by LLVM's name.
        features: features that it has or lacks in addition to those of its name, as LLVM writes them.

    Raises:
        BackendError: this LLVM makes no code for it.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # of inline assembly
    try:
        target = llvm.Target.from_triple(triple) if triple else llvm.Target.from_default_triple()
    except RuntimeError as error:
        raise BackendError(
            f"no code can be generated for {triple}: {error}",
            "(a) write bitcode and compile it with a compiler for the target, or (b) compile on such a machine",
            "the LLVM that irad uses supports only a few targets",
        ) from None
    machine: llvm.TargetMachine = target.create_target_machine(
        cpu=cpu, features=features, opt=level, reloc="pic", codemodel="default"
    )
    return machine


def pass_builder(machine: llvm.TargetMachine, level: int) -> llvm.PassBuilder:
    """LLVM's pipeline of a level of optimisation for a machine; from level 2 on it makes vectors."""
    tuning = llvm.create_pipeline_tuning_options(level)
    tuning.loop_vectorization = tuning.slp_vectorization = level > 1
    builder: llvm.PassBuilder = llvm.create_pass_builder(machine, tuning)
    return builder
