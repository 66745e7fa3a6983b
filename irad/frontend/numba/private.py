"""Everything irad needs from Numba that is not Numba's public interface.

Input   a dispatcher and argument types.
Output  the raw, unoptimised LLVM modules of the function and of everything that it calls.
Method  a *shadow compile*: while it is active, the calling thread sees a private target context whose code libraries
        neither optimise nor link nor load machine code, and private tables in place of every table in which Numba
        remembers what it compiled. Numba's own code does the rest, callees included, and finds nothing compiled yet.
        Other threads see Numba as usual; the user's tables, caches and statistics stay as they are.
Limit   functions are lowered again even if the user has compiled them: globals are read again, under the values that
        Numba froze where it kept them (`frozen`).
"""

from __future__ import annotations

import inspect
import re
import threading
import warnings
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import ExitStack, contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import llvmlite.binding as llvm
from numba.core import compiler, errors, typing
from numba.core.caching import NullCache
from numba.core.codegen import CodeLibrary
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.environment import lookup_environment
from numba.core.runtime import rtsys
from numba.core.target_extension import target_override
from numba.core.targetconfig import ConfigStack
from numba.core.types import Type

from irad.frontend.custom import catalogue
from irad.frontend.custom.catalogue import CustomRule
from irad.frontend.frozen import check
from irad.frontend.frozen.check import Lowered
from irad.frontend.frozen.values import following
from irad.frontend.numba import internals, patches
from irad.frontend.numba.form import Form
from irad.frontend.numba.target import real_context, typing_context
from irad.records import dataclass

if TYPE_CHECKING:
    from irad.frontend.numba.raw_target import RawContext

_CHANGED_FLAGS = (
    "boundscheck",
    "auto_parallel",
    "debuginfo",
    "dbg_directives_only",
    "dbg_extend_lifetimes",
    "dbg_optnone",
)


class _Redirect:
    """A data descriptor: in the shadow's thread the private table of an object, else its own attribute."""

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        self.name, self.make = name, make
        self._tables: defaultdict[Form, weakref.WeakKeyDictionary[Any, Any]] = defaultdict(weakref.WeakKeyDictionary)

    @property
    def tables(self) -> weakref.WeakKeyDictionary[Any, Any]:
        """The private tables: what is compiled in another form has tables of its own."""
        return self._tables[_SHADOW.form]

    def all_of(self, instance: object) -> list[Any]:
        """The private tables of an object."""
        return [tables[instance] for tables in self._tables.values() if instance in tables]

    def clear(self) -> None:
        """Drops what is in the tables."""
        for tables in self._tables.values():
            tables.clear()

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if not _SHADOW.is_here():
            try:
                return vars(instance)[self.name]
            except KeyError:
                raise AttributeError(self.name) from None
        table = self.tables.get(instance)
        if table is None:
            table = self.tables[instance] = self.make()
        return table

    def __set__(self, instance: object, value: object) -> None:
        vars(instance)[self.name] = value


@dataclass(slots=True)
class Marks:
    """Marks made in the shadow so far.

    Attributes:
        statements: number of statements lowered.
        customised: number of functions whose flags irad has set.
        checks: number of bounds checks emitted.
        elements: number of addresses of elements, of several axes of contiguous arrays, that were marked.
        rows: number of steps along the first axis of an array in a loop over it.
        stack: the statements that are being lowered, each with its lowering, the one that others wait for first.
        is_element: whether the index that is being lowered is that of an element of several axes.
    """

    statements: int = 0
    customised: int = 0
    checks: int = 0
    elements: int = 0
    rows: int = 0
    stack: list[tuple[Any, Any]] = field(default_factory=list)
    is_element: bool = False


class Shadow:
    """The private compiler. One per process, used under Numba's compiler lock.

    Attributes:
        form: that of what is compiled now.
        marks: the marks set in lowered code.
        implementations: dispatchers that Numba made for overloads.
        own_implementations: in place of Numba's tables for overloads of irad, in functions that are differentiated.
        typed_intrinsics: the same for Numba's intrinsics.
    """

    def __init__(self) -> None:
        self._owner: int | None = None
        self._depth = 0
        self._is_outdated = False
        self._in_ruled = False
        self.form = Form()
        self._unchanged: dict[str, Any] = {}
        self.implementations: weakref.WeakSet[Any] = weakref.WeakSet()
        self.own_implementations: dict[type, dict[Any, Any]] = {}
        self.typed_intrinsics: defaultdict[tuple[Form, type], dict[Any, Any]] = defaultdict(dict)
        self.marks = Marks()
        self._contexts: dict[Form, RawContext] = {}
        self._redirects = {patch.name: _Redirect(patch.attribute, _EMPTY[patch.by]) for patch in patches.TABLES}

    @property
    def context(self) -> RawContext:
        """The private target context for the form; made at first use."""
        if self.form not in self._contexts:
            from irad.frontend.numba.raw_target import RawContext  # what lowers: code from disk does without

            made = self._contexts[self.form] = RawContext(typing_context(), "cpu")
            made.suspended, made.form = self.suspended, self.form
        return self._contexts[self.form]

    def forget_callers(self) -> None:
        """Drops what was lowered, since the meaning of calls has changed."""
        for context in self._contexts.values():
            context.outlined.clear()
        self.typed_intrinsics.clear()
        for redirect in self._redirects.values():
            redirect.clear()

    def forget_callers_when_idle(self) -> None:
        """Drops what was lowered, now or when the function that is being lowered is complete: it needs the tables."""
        self._is_outdated = self._depth > 0
        if not self._is_outdated:
            self.forget_callers()

    def tables(self, name: str) -> Mapping[Any, Any]:
        """The private tables of objects, by the name of the attribute in `patches.TABLES`."""
        return self._redirects[name].tables

    def lowered(self, owner: object, key: object) -> list[Lowered]:
        """Sources that a specialisation of a dispatcher was lowered from."""
        tables = self._redirects["_DispatcherBase.overloads"].all_of(owner)
        return [found.library.lowered for table in tables if (found := table.get(key)) is not None]

    def all_lowered(self, owner: object) -> list[Lowered]:
        """Sources that the specialisations of a dispatcher were lowered from."""
        tables = self._redirects["_DispatcherBase.overloads"].all_of(owner)
        return [found.library.lowered for table in tables for found in table.values()]

    @contextmanager
    def lowering(self, rule: CustomRule | None) -> Iterator[None]:
        """While a function is lowered: in one with a rule, pullbacks may be made (`refuses_pullbacks`)."""
        before = self._in_ruled, self._unchanged
        self._in_ruled = self._in_ruled or (rule is not None and rule.replaces_body)
        try:
            yield
        finally:
            self._in_ruled, self._unchanged = before

    @property
    def refuses_pullbacks(self) -> bool:
        """True if code that is compiled now is to be differentiated, so that it must not make a pullback.

        The body of a function with a rule, and what that calls, is only run. Whoever else calls the same functions
        finds them marked (`RawLibrary.pullback`).
        """
        return self.differentiates() and not self._in_ruled

    def note_flags(self, flags: Any) -> None:
        """Notes what the user, or Numba, wants of a function, before irad changes it; None: irad does not."""
        self._unchanged = (
            {name: getattr(flags, name) if flags.is_set(name) else None for name in _CHANGED_FLAGS}
            if flags is not None
            else {}
        )

    def flags_of_user(self) -> Any:
        """The flags under which Numba compiles, by itself, the function that is compiled now."""
        flags = (ConfigStack.top_or_none() or compiler.DEFAULT_FLAGS).copy()
        for name, value in self._unchanged.items():
            if value is None:
                flags.discard(name)
            else:
                setattr(flags, name, value)
        return flags

    def is_here(self) -> bool:
        """True if the calling thread compiles in the shadow now."""
        return self._owner == threading.get_ident()

    def differentiates(self) -> bool:
        """True if the calling thread compiles, in the shadow, code that is to be differentiated."""
        return self.is_here() and not self.form.only_runs

    @contextmanager
    def active(self, form: Form | None = None) -> Iterator[None]:
        """Shadow compilation for the calling thread. Re-entrant; also inside a compilation by Numba."""
        with ExitStack() as stack:
            stack.enter_context(global_compiler_lock)
            real_context().refresh()  # before the private one, which would make the runtime its own
            if self._depth == 0:
                stack.enter_context(self._patched())
            stack.enter_context(self._entered(form or Form()))
            stack.enter_context(_fresh_compilation())
            stack.enter_context(self._outside_functions())
            self.context.refresh()
            yield

    @contextmanager
    def _outside_functions(self) -> Iterator[None]:
        before = self._in_ruled, self._unchanged
        self._in_ruled, self._unchanged = False, {}
        try:
            yield
        finally:
            self._in_ruled, self._unchanged = before

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Numba as it is, inside a shadow compilation."""
        owner, self._owner = self._owner, None
        try:
            yield
        finally:
            self._owner = owner

    @contextmanager
    def _entered(self, form: Form) -> Iterator[None]:
        before = self._owner, self.form
        self._owner, self.form = threading.get_ident(), form
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self._owner, self.form = before
            if self._is_outdated:
                self.forget_callers_when_idle()

    @contextmanager
    def _patched(self) -> Iterator[None]:
        undo: list[tuple[Any, str, bool, Any]] = []
        try:
            for owner, name, value in self._replacements():
                undo.append((owner, name, name in vars(owner), vars(owner).get(name)))
                setattr(owner, name, value)
            yield
        finally:
            for owner, name, existed, value in reversed(undo):
                if existed:
                    setattr(owner, name, value)
                else:
                    delattr(owner, name)

    def _replacements(self) -> Iterator[tuple[Any, str, Any]]:
        """Attributes of Numba and their replacements, by the table of `patches`."""
        for patch in patches.TABLES:
            yield patch.owner(), patch.attribute, self._redirects[patch.name]
        for patch in patches.METHODS:
            owner, replacement = patch.owner(), patch.replacement()
            numbas = inspect.getattr_static(owner, patch.attribute)
            if isinstance(numbas, property):
                yield owner, patch.attribute, property(self._bound(replacement, numbas.fget))
            else:
                yield owner, patch.attribute, self._bound(replacement, numbas)
        for patch in patches.NAMES:
            owner = patch.owner()
            yield owner, patch.attribute, _asking(patch.replacement(), getattr(owner, patch.attribute))

    def _bound(self, replacement: Callable[..., Any], original: Any) -> Callable[..., Any]:
        """A function that is ``replacement`` in the shadow's thread and ``original`` elsewhere."""

        def method(*args: object, **kwargs: object) -> Any:
            if not self.is_here():
                return original(*args, **kwargs)
            return replacement(self, original, *args, **kwargs)

        return method


def _asking(replacement: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is ``replacement`` in all threads: it is Numba's where none follows anything."""

    def method(*args: object, **kwargs: object) -> Any:
        return replacement(original, *args, **kwargs)

    return method


def _target() -> RawContext:
    return _SHADOW.context


_EMPTY: Final[Mapping[str, Callable[[], Any]]] = {"dict": dict, "list": list, "no cache": NullCache, "target": _target}
"""Initial content of private tables."""


@contextmanager
def _fresh_compilation() -> Iterator[None]:
    """No enclosing call stack, flags or target: Numba may be compiling in this thread."""
    context = typing_context()
    callstack = context.callstack
    context.callstack = typing.context.CallStack()
    try:
        with ConfigStack().enter(compiler.DEFAULT_FLAGS.copy()), target_override("cpu"), warnings.catch_warnings():
            # the user did not ask for line tables, so what is missing in them is not the user's concern
            warnings.simplefilter("ignore", errors.NumbaDebugInfoWarning)
            yield
    finally:
        context.callstack = callstack


_SHADOW: Final[Shadow] = Shadow()


def shadow() -> Shadow:
    """The process's private compiler."""
    return _SHADOW


def compile_raw(user_dispatcher: Dispatcher, arguments: tuple[Type, ...]) -> CompileResult | None:
    """Numba's compile result of a dispatcher for argument types, from the private table.

    Call it while the shadow is active. The signature of the result differs from ``arguments`` where the dispatcher has
    only explicit signatures; if none of these takes such arguments, the result is None.
    """
    overloads = user_dispatcher.overloads
    if arguments not in overloads:
        if internals.takes_new_types(user_dispatcher):
            epoch = None
            while epoch != catalogue.epoch():  # a module that registers rules may be imported while it is compiled
                epoch = catalogue.epoch()
                user_dispatcher.compile(arguments)
            overloads = user_dispatcher.overloads
        else:
            template, _, folded, kws = user_dispatcher.get_call_template(arguments, {})
            chosen = template(typing_context()).apply(folded, kws)
            if chosen is None:
                return None
            return overloads[tuple(chosen.args)]
    return overloads[arguments]


@contextmanager
def to_differentiate() -> Iterator[None]:
    """While functions of a rule are compiled for a derivative that is differentiated itself.

    They are lowered like the rest of its program, so that the rules of what they call apply, and pullbacks run their
    function again.
    """
    with _SHADOW.active(Form(plain=True)):
        yield


def declared_arguments(user_dispatcher: Dispatcher) -> list[tuple[Type, ...]]:
    """The arguments of each explicit signature of a dispatcher."""
    with _SHADOW.suspended():
        return [tuple(signature.args) for signature in user_dispatcher.nopython_signatures]


def compiled_by_numba(owner: object, compiled: CompileResult | None) -> Any:
    """Code that Numba compiles now for a specialisation of a dispatcher, under the values that it kept with that."""
    with _SHADOW.suspended(), _fresh_compilation(), following(compiled):
        return check.compiled_anew(owner, compiled)


def compiled_again(owner: Any) -> None:
    """Has Numba compile the specialisations of a dispatcher again, in place of those that it has."""
    with _SHADOW.suspended(), _fresh_compilation():
        owner.recompile()


def overload_functions() -> Iterator[tuple[str, Any]]:
    """(symbol, library function) of every implementation of a library function lowered so far."""
    from irad.frontend.numba.raw_target import Entry  # loaded by what lowered them

    for function_type, implementations in list(_SHADOW.tables("BaseFunction._impl_keys").items()):
        for key in implementations.values():
            if isinstance(key, Entry):
                yield key.symbol, function_type.typing_key


def runtime_library() -> Any:
    """Numba's runtime as a code library."""
    return rtsys.library


def find_environment(name: str) -> Any:
    """The value of an environment global, or None."""
    return lookup_environment(name)


def raw_module_of(library: CodeLibrary) -> llvm.ModuleRef:
    """A copy of a compiled library's module, for the few callees that have no raw one, and of a derivative's."""
    make = getattr(library, "for_differentiation", None)
    return _without_runtime(internals.module_for_linking(library)) if make is None else make()


def _without_runtime(module: llvm.ModuleRef) -> llvm.ModuleRef:
    """A copy of a module in which functions of Numba's runtime are declared, not defined.

    References are counted by calls in what irad reads, and machine code has been made of the runtime's own module: LLVM
    has put intrinsics of the processor in the place of its atomic instructions.
    """
    runtime = {function.name for function in rtsys.library.get_defined_functions()}
    if not any(function.name in runtime for function in module.functions if not function.is_declaration):
        return module.clone()
    return llvm.parse_assembly(_DEFINITION.sub(lambda found: _declared(found, runtime), str(module)))


_DEFINITION: Final = re.compile(
    r"^define (?:(?:linkonce_odr|linkonce|weak_odr|weak|internal|private|dso_local) )*"
    r"([^@\n]*@([\w.]+)\(.*) \{\n(?:.*\n)*?\}\n",
    re.MULTILINE,
)


def _declared(found: re.Match[str], runtime: Set[str]) -> str:
    return f"declare {found[1]}\n" if found[2] in runtime else found[0]


def inline_runtime() -> str:
    """The part of Numba's runtime that must be inlined: the access to an allocation's data."""
    return _INLINE_RUNTIME


_INLINE_RUNTIME = """
define linkonce_odr ptr @NRT_MemInfo_data_fast(ptr %info) alwaysinline {
  %field = getelementptr i8, ptr %info, i64 24
  %data = load ptr, ptr %field, align 8
  ret ptr %data
}
"""


def compiler_lock() -> Any:
    """Numba's lock on everything that compiles."""
    return global_compiler_lock
