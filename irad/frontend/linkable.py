"""Derivatives as text for callers to link, and the run-time support that they call.

Input   LLVM text of a derivative.
Output  `Linkable`: what an ``@intrinsic`` gives to ``add_linking_library``. It has no machine code of its own: the code
        that links it inlines and optimises the text together with itself, so nothing is compiled twice.
Method  The support functions that are to be inlined travel with the derivatives that call them; these only declare the
        others, which `resident` loads.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import llvmlite.binding as llvm
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher

from irad.backend.link import check_symbols
from irad.backend.vector_math import with_vector_variants
from irad.driver import Signature
from irad.frontend import resident
from irad.frontend.calls.exceptions import IN_PYTHON
from irad.frontend.custom import catalogue
from irad.frontend.custom.ruled_calls import Outlined
from irad.frontend.frozen.values import is_of_library
from irad.frontend.generated import is_generated
from irad.frontend.numba import internals, marks, samplers, shortcuts
from irad.frontend.numba.library import (
    CPU,
    MARKER,
    LinkedLibrary,
    parse,
    refuse_extension_modules,
    set_environments,
    will_link_derivatives,
)
from irad.frontend.numba.patches import watch
from irad.frontend.values import abi
from irad.passes.mode import TANGENT

_VISIBLE = (llvm.Linkage.external, llvm.Linkage.weak_odr)

_NEVER_CACHED = f"@{MARKER} = weak_odr global i8 0"
refuse_extension_modules(MARKER)

_INNER, _ADAPTED = ".inner", ".adapted"
_OWN: Final = (("frame", abi.BOOKKEEPING), ("arena", abi.BOOKKEEPING))
_DERIVED: Final = re.compile(r"\.irad\d+\.\w+$")


class Linkable(internals.LinkedText):
    """Stands for a Numba code library where Numba links one.

    Two derivatives of a function, for different requests, have the same names in their texts. So what is exported is
    renamed by content, all else becomes internal.

    Attributes:
        name: for listings.
        symbols: name in the text → name to call it by.
        environments: objects of the environment globals of the text and of the libraries.
        alive: whatever must live as long as code that has linked this.
        libraries: Numba's libraries of functions that the text calls; they have no machine code either.
        functions: the Python functions of the program that the text is the derivative of.
        recursive: the name of the function, where it is recursive and the text is its reverse mode.
        signatures: memory that parameters of its functions point to, by their names during differentiation.
        has_vector_math: whether its loops may call other functions for vectors than for numbers.
        program_symbols: program symbols of the functions of the program that the text is the derivative of.
        ruled: users' declarations for functions that the text still calls, under the names that these have
            where it is differentiated: an inactive one stays inactive, and what was constant may be active next.
    """

    def __init__(
        self,
        text: str,
        exports: tuple[str, ...],
        environments: tuple[object, ...],
        alive: tuple[object, ...],
        libraries: tuple[LinkedLibrary, ...] = (),
        functions: frozenset[object] = frozenset(),
        signatures: tuple[Signature, ...] = (),
        recursive: str | None = None,
        has_vector_math: bool = False,
        program_symbols: frozenset[str] = frozenset(),
        ruled: tuple[Outlined, ...] = (),
    ) -> None:
        super().__init__()
        marked = with_vector_variants(text, CPU.features()) if has_vector_math else text
        digest = hashlib.sha256(marked.encode()).hexdigest()[:16]
        self.symbols = {name: f"{name}.{digest}" for name in exports}
        self.name, self.alive = f"irad.{digest}", alive
        self._declared = {each.symbol: f"{each.symbol}.{digest}" for each in ruled if f"@{each.symbol}(" in text}
        self.ruled = tuple(replace(each, symbol=name) for each in ruled if (name := self._declared.get(each.symbol)))
        self.environments = (*environments, *(each for library in libraries for each in library.environments))
        self.libraries, self.functions, self.program_symbols = libraries, functions, program_symbols
        called = resident.named_in(text)
        resident.load(called)
        # The support comes first: LLVM drops unused linkonce_odr functions from what is linked *into* a module,
        # and the calls of the lowering are not there yet. For the same reason exports become linkonce_odr last.
        self._text, self._given_signatures, self.recursive = text, signatures, recursive
        self.linked_module = self._with(resident.inline_text(called), marked)
        self._set_apart()
        self.linked_module.link_in(parse(_NEVER_CACHED))
        linked = {name for library in libraries for name in library.symbols()}
        check_symbols(self.linked_module, lambda name: name in linked or CPU.is_loaded(name))

    @cached_property
    def signatures(self) -> tuple[Signature, ...]:
        """Signatures of its functions: a shadow lies in memory of the same form."""
        memory = {each.symbol: each.memory for each in self._given_signatures}
        found = []
        for function in parse(self._text).functions:
            known = memory.get(_DERIVED.sub("", function.name), ())
            shadows = ((f"{name}.shadow", holds) for name, holds in known)
            own = _OWN if function.name.endswith(f".{TANGENT.name}") and known else ()
            name = self._declared.get(function.name, f"{function.name}{_INNER}")
            found.append(Signature(name, (*known, *shadows, *own)))
        return tuple(found)

    @property
    def text(self) -> str:
        """LLVM text of the derivative."""
        return self._text

    def for_differentiation(self) -> Any:
        """A module for a program that is differentiated: what manages memory stays calls, which have rules.

        Its functions have other names than those that the derivative of that program is going to have.
        """
        text = shortcuts.undefine(samplers.undefine_draws(self._text))
        module = self._with(resident.program_text(resident.named_in(text)), text)
        for function in module.functions:
            if function.name in self.symbols.values():
                function.linkage = "weak_odr"  # a pullback is called by what is linked later
            elif function.name in self._declared:
                function.name, function.linkage = self._declared[function.name], "weak_odr"
            elif not (function.is_declaration or function.name in IN_PYTHON):
                function.name += _INNER
                function.linkage = "internal"
        return module

    def _with(self, support: str, text: str) -> Any:
        module = llvm.parse_assembly(support)
        module.link_in(self._renamed(parse(text)))
        module.name = self.name
        for symbol in self.symbols.values():
            module.get_function(symbol).linkage = "linkonce_odr"
        return module

    def _set_apart(self) -> None:
        """Renames what generated code defines under a fixed name.

        LLVM has adapted such a function to the calls in this text, and its JIT would take it for the function of that
        name in whatever is loaded later, although it is internal.
        """
        for function in self.linked_module.functions:
            if function.name in (*IN_PYTHON, marks.RAISE) and not function.is_declaration:
                function.name += _ADAPTED

    def _renamed(self, module: Any) -> Any:
        for function in module.functions:
            if function.name in self.symbols:
                function.name = self.symbols[function.name]
                function.linkage = "external"  # LLVM does not link an internal function that is not called yet
            elif not function.is_declaration and function.linkage in _VISIBLE:
                function.linkage = "internal"
        for variable in module.global_variables:  # two derivatives may call one rule
            if not variable.is_declaration and variable.linkage is llvm.Linkage.external:
                variable.linkage = "internal"
        return module

    def link_into(self, library: Any) -> None:
        """Has a code library of Numba link this and what it calls."""
        will_link_derivatives(library)
        for each in (self, *self.libraries):  # callers first: LLVM drops what is not called yet
            library.add_linking_library(each)


def compile_pair(
    text: str,
    exports: tuple[str, ...],
    environments: tuple[object, ...],
    alive: tuple[object, ...],
    libraries: tuple[LinkedLibrary, ...],
    *,
    has_vector_math: bool,
) -> tuple[object, tuple[int, ...]]:
    """Machine code of a derivative that is called by address.

    Returns:
        Its library, which the code lives as long as, and the addresses of the exports.
    """
    linked = Linkable(text, exports, environments, alive, libraries, has_vector_math=has_vector_math)
    symbols = [linked.symbols[name] for name in exports]
    module = linked.linked_module.clone()
    for symbol in symbols:
        module.get_function(symbol).linkage = "external"
    for each in libraries:
        module.link_in(internals.module_for_linking(each), preserve=True)
    library = CPU.build(linked.name, str(module), linked.environments)
    library.alive = alive
    return library, tuple(library.get_pointer_to_function(symbol) for symbol in symbols)


def fill_environments(library: Any) -> None:
    """Fills the environment globals that a finished library got from the derivatives it linked."""
    for linked in internals.linked_libraries(library):
        if isinstance(linked, Linkable):
            set_environments(library, linked.environments)


def functions_of(library: Any) -> frozenset[object]:
    """The Python functions of whose derivatives a finished library holds the code."""
    found: frozenset[object] | None = getattr(library, _FUNCTIONS, None)
    if found is None:
        found = library.functions if isinstance(library, Linkable) else frozenset()
        setattr(library, _FUNCTIONS, found)  # a recursive function links itself
        found = found.union(*map(functions_of, internals.linked_libraries(library)))
        setattr(library, _FUNCTIONS, found)
    return found


_FUNCTIONS: Final = "irad_functions"


def _note_specialisation(dispatcher: Dispatcher, compiled: CompileResult) -> None:
    """Has functions of libraries, such as solvers, forgotten with the derivatives that they call."""
    is_of_user = not (is_generated(dispatcher.py_func) or is_of_library(dispatcher.py_func.__module__))
    functions = frozenset() if is_of_user else functions_of(compiled.library)
    if functions:
        catalogue.note_use(dispatcher, functions)


watch(_note_specialisation)
