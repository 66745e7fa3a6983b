"""From LLVM text back to code that Numba can call, link and inline.

Input   scalar LLVM text of a whole program, as `numba.cpu` yields it and as irad's passes write it.
Output  a Numba code library.
Method  Numba's own library class: it links the runtime, optimises with vectorising, loads the code. What *callers* of
        the library link is the scalar text, so that they can inline it and optimise it together with their own code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import llvmlite.binding as llvm
from numba.core import cgutils, codegen, config
from numba.core.codegen import CodeLibrary
from numba.core.compiler import StateDict
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.runtime import rtsys

from irad.backend import equality
from irad.backend.link import check_symbols
from irad.backend.toolchain import Toolchain, vectors_of_derivatives
from irad.errors import HERE, BackendError
from irad.frontend import external
from irad.frontend.numba import fixups, internals, private, target
from irad.frontend.numba.patches import replace_for_good
from irad.frontend.numba.raw_target import ENVIRONMENT_PREFIX, RawContext, RawLibrary
from irad.frontend.numba.target import engine, target_context, without_gathers
from irad.options import errors_show_llvm

# ------------------------------------------------------------------------------------------------ text to code


def build_library(name: str, text: str, environments: tuple[object, ...]) -> object:
    """A finished Numba code library of LLVM text.

    It may be given to ``context.active_code_library.add_linking_library`` by an ``@intrinsic``; a caller can then
    inline the text's functions, and does so where they are marked ``alwaysinline``.

    Args:
        name: the library's name, for listings.
        text: a whole program: all that it calls is in it, in Numba's runtime or in the process.
        environments: values of its environment globals; they live as long as the library.

    Raises:
        BackendError: LLVM refuses the text, or a symbol has no definition.
    """
    with private.compiler_lock(), private.shadow().suspended():
        return finish(new_library(name), name, parse(text), environments)


def build_support(name: str, text: str, environments: tuple[object, ...]) -> object:
    """Compiles run-time support in one run of LLVM's pipeline: most of it is bookkeeping with little to optimise.

    Args:
        name: the library's name, for listings.
        text: of functions that nobody inlines.
        environments: values of its environment globals.

    Raises:
        BackendError: LLVM refuses the text, or a symbol has no definition.
    """
    with private.compiler_lock(), private.shadow().suspended():
        library = new_library(name)
        library.__class__ = SupportLibrary
        return finish(library, name, parse(text), environments)


def parse(text: str) -> Any:
    """The llvmlite module of a text.

    Raises:
        BackendError: LLVM refuses it.
    """
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        refused = BackendError(
            "LLVM rejects the generated code",
            "report it with the function that caused it, and with what IRAD_ERRORS=llvm shows",
            "this is a bug in irad or in this version of LLVM",
        )
        refused.llvm = str(error) if errors_show_llvm() else None
        raise refused from error
    return module


def finish(library: CodeLibrary, name: str, module: Any, environments: tuple[object, ...]) -> Any:
    """Checks a module, and loads it as the code of a library, which is returned."""
    module.name = name
    check_symbols(module, is_loaded_symbol)
    shared = module.clone()
    for function in shared.functions:
        if not function.is_declaration and function.linkage == llvm.Linkage.external:
            # Callers may inline the text, and LLVM drops what they do not call.
            function.linkage = "linkonce_odr"
    finish_library(library, module, shared)
    set_environments(library, environments)
    return library


# ------------------------------------------------------------------------------------------------ Numba's records


class LinkedLibrary(codegen.JITCodeLibrary):
    """Code that is only linked into other libraries: they optimise it, and only their code becomes machine code.

    Attributes:
        environments: values of its environment globals; whoever has linked it sets them.
        has_lanes: whether the code does the same to several numbers side by side.
    """

    environments: tuple[Any, ...] = ()
    has_lanes = False

    def add_ir_module(self, ir_module: Any) -> None:
        """Numba's hook after lowering: a derivative that calls this code may be differentiated itself."""
        module = llvm.parse_assembly(fixups.repair(cgutils.normalize_ir_text(str(ir_module))))
        module.name = ir_module.name
        module.verify()
        self.add_llvm_module(module)

    def symbols(self) -> list[str]:
        """Symbols of the functions that the library defines."""
        return [function.name for function in self.get_defined_functions()]

    def finalize(self) -> None:
        """Links what it calls, but for large functions of Numba's that are loaded: nobody would inline those."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            called = self._called_in(library)
            if called and all(map(_stays_call, called)):
                self._call_loaded(library, [function.name for function in called])
            else:
                self._final_module.link_in(internals.module_for_linking(library), preserve=True)
        self._finalized = True

    def _called_in(self, library: CodeLibrary) -> list[llvm.ValueRef]:
        """The compiled functions of a library that this declares; none where the library has no machine code."""
        if not isinstance(library, codegen.JITCodeLibrary) or isinstance(library, LinkedLibrary):
            return []
        functions = (function for function in self._final_module.functions if function.name.startswith("_ZN"))
        declared = {function.name for function in functions if function.is_declaration}
        return [function for function in library.get_defined_functions() if function.name in declared]

    def _call_loaded(self, library: CodeLibrary, names: list[str]) -> None:
        """Calls functions by symbols of their own: Numba expects to find the text of those that it named."""
        for name in names:
            symbol = f"irad.loaded.{name}"
            llvm.add_symbol(symbol, library.get_pointer_to_function(name))
            self._final_module.get_function(name).name = symbol


class InnerLibrary(LinkedLibrary):
    """Code of a function that only compiled code calls: that links it, optimises it and makes machine code of it.

    Numba optimises a function where it is compiled, and again in each that calls it, up to the one that Python calls.
    """

    _raw: RawLibrary | None = None

    def finalize(self) -> None:
        """Links all that it calls, for Numba may write the callers to its cache."""
        self._lowered = self._final_module.clone()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(internals.module_for_linking(library), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Numba's hook when it wants the entry, before it fills the environment: there is only a place for that."""
        self._ensure_finalized()
        new = [each.name for each in self._final_module.global_variables if _is_unplaced_environment(each)]
        if new:
            module = llvm.parse_assembly(str(self.codegen._create_empty_module(f"{self.name}.environment")))
            module.link_in(llvm.parse_assembly("\n".join(f"@{each} = common global ptr null" for each in new)))
            self.codegen._add_module(module)
        return 0

    @property
    def has_derivatives(self) -> bool:
        """True if it calls derivatives, whose text for programs is another than that for code that is run."""
        calls = dict.fromkeys(self._linking_libraries)
        inner = [each for each in calls if isinstance(each, InnerLibrary)]
        others = (each for each in calls if each not in inner)
        return any(type(each) is not codegen.JITCodeLibrary for each in others) or any(e.has_derivatives for e in inner)

    def raw(self, context: RawContext) -> RawLibrary:
        """Code as it was lowered, for programs in which it has a rule: lowering it again would yield the same."""
        if self._raw is None:
            self._ensure_finalized()
            self._raw = made = context.codegen().create_library(self.name)
            made.add_llvm_module(llvm.parse_assembly(equality.hide(str(self._lowered))))
            for library in dict.fromkeys(self._linking_libraries):
                made.add_linking_library(library.raw(context) if isinstance(library, InnerLibrary) else _kept(library))
        return self._raw


def _kept(library: CodeLibrary) -> CodeLibrary:
    """A library whose functions the linker keeps, though what refers to them may come later."""
    if library is rtsys.library:
        return library
    module = llvm.parse_assembly(equality.hide(str(private.raw_module_of(library))))
    for function in module.functions:
        if function.name.startswith("_ZN") and function.linkage == llvm.Linkage.linkonce_odr:
            function.linkage = "weak_odr"  # LLVM's linker leaves out what nothing refers to yet
    made: Any = private.shadow().context.codegen().create_library(library.name)
    made.add_llvm_module(module)
    return made


def _is_unplaced_environment(variable: llvm.ValueRef) -> bool:
    return variable.name.startswith(ENVIRONMENT_PREFIX) and not engine().is_symbol_defined(variable.name)


# Whoever links a derivative holds addresses of this process: of the support functions, of tables and of Python objects.
# Numba looks for globals of this name, and does not write such code to its cache on disk, with a warning. irad's own
# cache (`irad.frontend.disk`) looks at the code itself.
MARKER: Final = "numba.dynamic.globals.irad"
_DYNAMIC: Final = MARKER.removesuffix("irad")


class StorableLibrary(codegen.JITCodeLibrary):
    """Code that irad may store: variables with addresses of objects have names that no other process uses."""

    def _optimize_final_module(self) -> None:
        super()._optimize_final_module()
        # Numba names such a variable by the address in it. Where the code is loaded from disk, that may be the
        # address of something else, which other code refers to by this name.
        variables = [each for each in self._final_module.global_variables if each.name.startswith(_DYNAMIC)]
        named = [each for each in variables if each.name != MARKER]
        for variable in named:
            variable.name, variable.linkage = internals.object_symbol(), "external"
        if named and len(named) == len(variables):  # Numba looks for its name before it caches what links this
            self._final_module.link_in(parse(f"@{MARKER} = weak_odr global i8 0"))


class DerivativeLibrary(StorableLibrary):
    """Code with derivatives: LLVM makes vectors of more of their loops, and sums keep their order.

    Attributes:
        has_lanes: whether the code does the same to several numbers side by side.
    """

    has_lanes = False

    def _optimize_functions(self, ll_module: llvm.ModuleRef) -> None:
        # Numba makes passes for each function, also where it is only declared, as nine of ten are: 6 % of compile time.
        made_by: Any = self.codegen
        ll_module.data_layout = made_by._data_layout
        manager, builder = made_by._function_pass_manager()
        for function in ll_module.functions:
            if not function.is_declaration:
                manager.run(function, builder)

    def _optimize_final_module(self) -> None:
        # Numba leaves out the pass that makes vectors of code without loops, as lanes side by side are.
        before = config.SLP_VECTORIZE
        config.SLP_VECTORIZE = int(before or any(getattr(each, "has_lanes", False) for each in text_of(self)))
        try:
            with vectors_of_derivatives(), without_gathers(self.codegen):
                super()._optimize_final_module()
        finally:
            config.SLP_VECTORIZE = before


class SupportLibrary(codegen.JITCodeLibrary):
    """Run-time support: LLVM's pipeline runs once, not three times, over what is written as it would leave it."""

    def _optimize_functions(self, ll_module: llvm.ModuleRef) -> None:
        made_by: Any = self.codegen
        ll_module.data_layout = made_by._data_layout

    def _optimize_final_module(self) -> None:
        made_by: Any = self.codegen
        manager, builder = made_by._module_pass_manager()
        manager.run(self._final_module, builder)


def text_of(library: Any) -> list[Any]:
    """A code library and those from whose text its machine code is made: they have none of their own."""
    found, kinds = [library], (LinkedLibrary, internals.LinkedText)
    for each in found:
        found += [one for one in internals.linked_libraries(each) if isinstance(one, kinds) and one not in found]
    return found


def choose_library(state: StateDict, *, has_lanes: bool = False, is_inner: bool = False) -> None:
    """Chooses the library of a function, before its lowering; not where its code is read, not run.

    Args:
        state: of the compilation.
        has_lanes: whether the code does the same to several numbers side by side.
        is_inner: whether it is left to its callers.
    """
    made_by = state.targetctx.codegen()
    if made_by._library_class is codegen.JITCodeLibrary:
        state.library = (InnerLibrary if is_inner else DerivativeLibrary)(made_by, state.func_id.func_qualname)
        state.library.has_lanes = has_lanes
        if not is_inner:
            state.library.enable_object_caching()


def will_link_derivatives(library: CodeLibrary) -> None:
    """Makes a code library, before it is finished, a `DerivativeLibrary`; not where its code is read, not run."""
    if type(library) in (codegen.JITCodeLibrary, StorableLibrary):
        library.__class__ = DerivativeLibrary


def refuse_extension_modules(marker: str) -> None:
    """Has `numba.pycc` refuse code that defines a global variable, whoever of its callees has linked that.

    The hook that Numba leaves empty runs once all is linked. What should replace it: a way to mark code as bound to the
    process, which Numba asks for here as it does before it caches code.
    """

    def refuse(library: Any) -> None:
        if any(variable.name == marker for variable in internals.compiled_module(library).global_variables):
            raise BackendError(
                f"the extension module {library.name} cannot be built: a function in it calls a derivative",
                "(a) for programs in C, C++ or Fortran, build a library with irad.export, or "
                "(b) for Python, compile it at run time with @irad.jit(cache=True), which caches it on disk",
                "the code of a derivative refers to objects and functions of the process that compiled it",
                HERE,
            )

    replace_for_good("AOTCodeLibrary._finalize_specific", lambda _: refuse)


def _stays_call(function: llvm.ValueRef) -> bool:
    """True if a function is one of Numba's library, which lives as long as the process, and too large to be inlined."""
    if not function.name.startswith("_ZN5numba") or any(b"alwaysinline" in each for each in function.attributes):
        return False
    size = sum(1 for block in function.blocks for _ in block.instructions)
    return size > _MOST_INLINED


_MOST_INLINED: Final = 200
"""Instructions: LLVM's own limit is a quarter of that, unless arguments are constant."""


def _of_library(name: str, replace: Callable[[StateDict], None]) -> type[FunctionPass]:
    """A pass that decides which library a function is lowered into; it runs after `RewriteSemanticConstants`."""

    class Replacement(FunctionPass):
        _name = name

        def __init__(self) -> None:
            FunctionPass.__init__(self)

        def run_pass(self, state: StateDict) -> bool:
            replace(state)
            return False

    register_pass(mutates_CFG=False, analysis_only=True)(Replacement)
    return Replacement


def make_storable(state: StateDict) -> None:
    """Chooses the library of a function that is kept on disk, before its lowering; not where its code is read."""
    made_by = state.targetctx.codegen()
    if made_by._library_class is codegen.JITCodeLibrary:
        state.library = StorableLibrary(made_by, state.func_id.func_qualname)
        state.library.enable_object_caching()


def _only_link(state: StateDict) -> None:
    """Has a compilation, before its lowering, make a `LinkedLibrary` with no entry point, unless it makes a raw one."""
    if isinstance(state.targetctx, RawContext):
        return
    state.library = LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
    state.flags.no_compile = True


OnlyLink = _of_library("irad_only_link", _only_link)
LinkIntoCallers = _of_library("irad_link_into_callers", partial(choose_library, is_inner=True))


def new_library(name: str) -> CodeLibrary:
    """An empty code library of the context in force: a raw one inside a shadow compile."""
    context = target_context()
    rtsys.initialize(context)  # done already, unless Numba has compiled nothing so far
    library = context.codegen().create_library(name)
    will_link_derivatives(library)
    library.enable_object_caching()
    return library


def finish_library(library: CodeLibrary, module: llvm.ModuleRef, shared: llvm.ModuleRef) -> None:
    """Puts a module into a library and generates its code.

    Args:
        library: from `new_library`, wrappers already added.
        module: the llvmlite module; given away.
        shared: the module that callers link and inline; ownership passes on.
    """
    if isinstance(library, RawLibrary):
        # This code is differentiated again: LLVM must not replace a number by one that it was compared with, which has
        # another derivative.
        library.add_llvm_module(llvm.parse_assembly(equality.hide(str(module))))
        return
    library.add_llvm_module(module)
    library.add_linking_library(rtsys.library)
    library._shared_module = shared
    library.finalize()


def set_environments(library: Any, environments: tuple[Any, ...]) -> None:
    """Fills the environment globals of a library's code and keeps the environments alive with it."""
    library.environments = environments
    if isinstance(library, RawLibrary):
        return
    present = {variable.name for variable in internals.compiled_module(library).global_variables}
    for environment in environments:
        if environment.env_name in present:
            library.codegen.set_env(environment.env_name, environment)


def is_loaded_symbol(name: str) -> bool:
    """True if code of Numba that is already loaded, its runtime, or BLAS as SciPy exports it, defines a symbol."""
    if engine().is_symbol_defined(name) or external.finds_linear_algebra(name):
        return True
    return any(function.name == name for function in rtsys.library.get_defined_functions())


CPU: Final = Toolchain(
    machine=target.machine,
    features=target.features,
    foreign_spaces=frozenset({256, 257, 258, 270, 271, 272}),  # x86: relative to gs, fs and ss; pointers of other sizes
    is_loaded=is_loaded_symbol,
    build=build_library,
)
"""The processor that Python runs on, as Numba compiles for it."""
