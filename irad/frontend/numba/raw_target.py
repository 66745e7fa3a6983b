"""Numba's CPU target cut off after lowering: what the shadow compile (`numba.private`) compiles for.

A raw library keeps the module that Numba's lowering printed: LLVM neither optimises it nor links callees nor makes
machine code.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, codegen, cpu, debuginfo, dispatcher, types
from numba.core.base import BaseContext, _wrap_impl
from numba.core.ccallback import CFunc
from numba.core.registry import CPUDispatcher
from numba.core.types import Type
from numba.core.typing import Signature, templates
from numba.np.ufunc import dufunc
from numba.np.ufunc.gufunc import GUFunc

from irad.backend import equality
from irad.frontend import external
from irad.frontend.custom.ruled_calls import Outlined, caller_of, outlined_call, rule_of
from irad.frontend.frozen.check import Lowered
from irad.frontend.frozen.inherited_options import DEFAULT, under
from irad.frontend.numba import fixups, internals, mpi, shortcuts, transforms
from irad.frontend.numba.form import Form
from irad.frontend.numba.patches import missing
from irad.frontend.numba.samplers import mark_draws
from irad.frontend.numba.target import real_context
from irad.records import dataclass
from irad.ruleset.symbols import external_text

if TYPE_CHECKING:
    from irad.driver import LoopArray

ENVIRONMENT_PREFIX = "_ZN08NumbaEnv"
UNRESOLVED_PREFIX = ".numba.unresolved$"
SIGNED_RANGES = (types.range_iter32_type, types.range_iter64_type)


class Entry:
    """Stands for a function's entry point in the private tables: nothing is ever called."""

    def __init__(self, symbol: str, name: str) -> None:
        self.symbol = symbol
        self.__name__ = name


class RawLibrary(codegen.JITCodeLibrary):
    """Keeps a function's LLVM module as Numba lowered it: no passes, no linking of callees, no machine code."""

    descriptor: Any = None
    environment: Any = None
    function: tuple[Callable[..., Any], Signature] | None = None
    kernel: tuple[str, tuple[LoopArray, ...]] | None = None
    has_lines = False
    outlined: Outlined | None = None
    lowered: Lowered | None = None
    environments: tuple[Any, ...] = ()
    """Values of the environment globals of a rule's function and of what it calls."""
    pullback: str | None = None
    """The function of which the code makes a pullback, so that it cannot be differentiated itself."""

    def add_ir_module(self, ir_module: ir.Module) -> None:
        """Takes a lowered module; its functions may later be linked into several programs."""
        text = equality.hide(fixups.repair(cgutils.normalize_ir_text(str(ir_module))))
        self.has_lines = self.has_lines or "!DILocation(" in text
        module = llvm.parse_assembly(text)
        module.name = ir_module.name
        self.add_llvm_module(module)

    def add_llvm_module(self, ll_module: llvm.ModuleRef) -> None:
        """Takes a module that is already parsed."""
        for function in ll_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "weak_odr"
        self._final_module.link_in(ll_module)

    def add_linking_library(self, library: Any) -> None:
        """Remembers a callee."""
        if library not in self._linking_libraries:
            self._linking_libraries.append(library)

    def finalize(self) -> None:
        """Nothing to do: there is no machine code."""
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """No address; Numba stores it in places that are never used."""
        self._finalized = True
        return 0

    @property
    def module(self) -> llvm.ModuleRef:
        """The raw module. Not to be changed: clone it."""
        return self._final_module

    def symbols(self) -> list[str]:
        """Symbols of the functions that the library defines."""
        return [function.name for function in self.get_defined_functions()]

    @property
    def callees(self) -> list[RawLibrary]:
        """Libraries of the functions that are called."""
        return list(self._linking_libraries)


class RawCodegen(codegen.JITCPUCodegen):
    """Makes raw libraries."""

    _library_class = RawLibrary


class LineTable(debuginfo.DIBuilder):
    """Debug information without variables and types: every operation's file and line, cheaply."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._locations: dict[tuple[int, int], object] = {}

    def mark_location(self, builder: IRBuilder, line: int) -> None:
        """Called for every operation, so the line's metadata is looked up by number, not by content."""
        key = len(self.subprograms), line
        location = self._locations.get(key)
        if location is None:
            location = self._locations[key] = self._add_location(line)
        builder.debug_metadata = location

    def mark_variable(self, *args: object, **kwargs: object) -> None:
        """No variables."""

    def _di_subroutine_type(self, *args: object, **kwargs: object) -> object:
        return self.module.add_debug_info("DISubroutineType", {"types": self.module.add_metadata([])})


class RawContext(cpu.CPUContext):
    """Numba's CPU target, up to lowering."""

    DIBuilder = LineTable
    suspended: Callable[[], AbstractContextManager[None]] = nullcontext
    form = Form()

    def init(self) -> None:
        """Called by Numba's constructor."""
        self.is32bit = False
        self._internal_codegen = RawCodegen("irad.raw")
        self._cfuncs: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.libraries: weakref.WeakValueDictionary[str, RawLibrary] = weakref.WeakValueDictionary()
        self.outlined: dict[object, object] = {}

    def refresh(self) -> None:
        """Loads Numba's lowerings, with signed ranges counting without signed wrap-around."""
        super().refresh()
        selector = self._defns["iternext"]
        for index, (signature, implementation) in enumerate(selector.versions):
            if signature and signature[0] in SIGNED_RANGES and not hasattr(implementation, "no_signed_wrap"):
                selector.versions[index] = signature, _no_signed_wrap(implementation)
                selector._cache.clear()
        marked = {signature[0] for signature, lower in selector.versions if hasattr(lower, "no_signed_wrap")}
        if not marked.issuperset(SIGNED_RANGES):
            raise missing(
                "has no lowering for the steps of a range", "without a mark there LLVM cannot bound a counter"
            )

    def get_function(self, fn: Any, sig: Signature, _firstcall: bool = True) -> Any:
        """The lowering of a call; ufuncs registered theirs only with Numba's own context.

        A callee with a rule of the user is called as a function of its own.
        """
        key = fn.get_impl_key(sig) if isinstance(fn, types.Callable) else fn
        if isinstance(key, dufunc.DUFunc | GUFunc) and key not in self._defns:
            self._defns[key] = real_context()._defns[key]
        if self.form.only_runs:
            return super().get_function(fn, sig, _firstcall)
        rule = self.form.rule(rule_of(fn, sig.args))
        if isinstance(key, templates._EmptyImplementationEntry) and rule is not None:
            fn = self._not_inlined(fn, sig)
        stand_in = transforms.lowering(key, sig, self.suspended) or mpi.lowering(fn, sig)
        lower = super().get_function(fn, sig, _firstcall) if stand_in is None else _wrap_impl(stand_in, self, sig)
        function = fn.typing_key if isinstance(fn, types.Function) else fn
        lower = shortcuts.lowering(self, function, sig, lower)
        return lower if rule is None else outlined_call(self, rule, sig.as_function(), lower, self.outlined)

    def get_ufunc_info(self, ufunc_key: object) -> Any:
        """The kernels of a ufunc, by the types that they are for."""
        found = super().get_ufunc_info(ufunc_key)
        return found if self.form.only_runs else shortcuts.kernels(ufunc_key, found)

    def _not_inlined(self, fn: Any, sig: Signature) -> object:
        """The implementation of an overload that Numba only puts in line, as a function that can be called."""
        for template in fn.templates:
            if sig.args in getattr(template, "_inline_overloads", {}):
                implementation, _ = template(self.typing_context)._get_impl(sig.args, {})
                callee = types.Dispatcher(implementation)
                callee.get_call_type(self.typing_context, sig.args, {})
                return callee
        return fn

    def get_getattr(self, typ: Type, attr: str) -> Any:
        """The lowering of an attribute; operators of numba_mpi are numbers, not addresses of this process."""
        number = mpi.operator_number(typ, attr)
        if number is None:
            return super().get_getattr(typ, attr)  # type: ignore[misc]
        return lambda context, builder, typ, val, attr: context.get_constant(types.int64, number)

    def get_constant_generic(self, builder: IRBuilder, ty: Type, val: object) -> Value:
        """A constant. Functions given by address get a symbol, under which rules and messages know them."""
        operator = mpi.operator_number(ty, getattr(val, "name", ""))
        if operator is not None:
            return self.get_constant(types.int64, operator)
        if isinstance(ty, types.ExternalFunctionPointer):
            pointer = self.get_function_pointer_type(ty)
            symbol = self._symbol_at(ty.get_pointer(val), val, len(ty.sig.args))
            return builder.bitcast(cgutils.get_or_insert_function(builder.module, pointer.pointee, symbol), pointer)
        if isinstance(ty, types.FunctionType) and ty.get_precise().is_precise():
            return self._function_value(builder, ty.get_precise(), val)
        return super().get_constant_generic(builder, ty, val)

    def _function_value(self, builder: IRBuilder, ty: Any, val: Any) -> Value:
        """A constant first-class function: the wrapper that is called through it, by symbol instead of by address.

        As in Numba's own lowering there is no direct entry (`jit_addr`): exceptions end in the wrapper.
        """
        value = cgutils.create_struct_proxy(ty)(self, builder)
        value.py_addr = self.add_dynamic_addr(builder, id(val), info=type(val).__name__)
        wrapper = self.get_value_type(ty.ftype)
        if isinstance(val, CFunc):
            symbol = self.compile_cfunc(val).fndesc.llvm_cfunc_wrapper_name
        elif isinstance(val, dispatcher.Dispatcher):
            symbol = val.get_compile_result(ty.signature).fndesc.llvm_cfunc_wrapper_name
        else:
            symbol = self._symbol_at(val.__wrapper_address__(), val, len(ty.signature.args))
        function = cgutils.get_or_insert_function(builder.module, wrapper.pointee, symbol)
        value.c_addr = builder.bitcast(function, self.get_value_type(types.voidptr))
        return value._getvalue()

    def _symbol_at(self, address: int, val: object, arity: int) -> str:
        """The symbol of the function at an address: of its lowered code where Numba compiled it."""
        symbol = external.symbol_of(address, val, arity)
        found = function_at(address) if external_text(symbol) is not None else None
        if found is None or not found.is_wrapper:
            return symbol
        if isinstance(found.function, CFunc):
            compiled = self.compile_cfunc(found.function)
        else:
            compiled = found.function.get_compile_result(found.signature)
        wrapper: str = compiled.fndesc.llvm_cfunc_wrapper_name
        return wrapper

    def compile_cfunc(self, val: Any) -> Any:
        """Numba's compile result of a `@cfunc` function, which has no dispatcher of its own."""
        signature, own = internals.signature_of_callback(val), self._cfuncs.get(val)
        if own is None:
            options, _ = internals.options_of_callback(val)
            own = self._cfuncs[val] = CPUDispatcher(val.__wrapped__, targetoptions=options)
        own = caller_of(own)
        with under(DEFAULT):
            own.compile(signature)
        compiled = own.overloads[tuple(signature.args)]
        compiled.library.lowered.callback = val
        return compiled

    def get_executable(self, library: Any, fndesc: Any, env: object) -> Entry:
        """The end of a compilation: no machine code, but the library is remembered under its symbol."""
        library.descriptor, library.environment = fndesc, env
        if not self.form.only_runs:
            mark_draws(library.module, fndesc)
        self.libraries[fndesc.mangled_name] = library
        return Entry(fndesc.mangled_name, fndesc.qualname)

    def forget(self, entry: Entry) -> None:
        """Drops the lowering of a function whose dispatcher is gone."""
        self._defns.pop(entry, None)

    def create_cpython_wrapper(self, *args: object, **kwargs: object) -> None:
        """Never called from Python."""

    def create_cfunc_wrapper(self, *args: object, **kwargs: object) -> None:
        """Made on demand by `cfunc_library`."""

    def cfunc_library(self, library: RawLibrary) -> RawLibrary:
        """The wrapper through which a function is called as a first-class value."""
        wrapper = self.codegen().create_library(library.name + ".cfunc")
        descriptor, environment = library.descriptor, library.environment
        with self.push_code_library(wrapper):
            context = self.subtarget(fndesc=descriptor, environment=environment)
            cpu.CPUContext.create_cfunc_wrapper(context, wrapper, descriptor, environment, None)
        wrapper.add_linking_library(library)
        result: RawLibrary = wrapper
        return result


def _no_signed_wrap(implementation: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering of a range's step with ``nsw`` on the sum, without which LLVM cannot bound a counter.

    The count runs down to zero, so the sum that could overflow is never read. An unsigned range must not get it: its
    values lie beyond the signed range.
    """

    def lower(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Value) -> Value:
        add = builder.add
        builder.add = lambda lhs, rhs, name="", flags=(): add(lhs, rhs, name, flags=(*flags, "nsw"))
        try:
            return implementation(context, builder, signature, arguments)
        finally:
            del builder.add

    for name, value in vars(implementation).items():
        setattr(lower, name, value)
    lower.no_signed_wrap = True  # type: ignore[attr-defined]
    return lower


@dataclass(frozen=True)
class AddressedFunction:
    """A dispatcher or cfunc with a signature; ``code`` is Numba's library, ``is_wrapper`` which entry is meant."""

    function: Any
    signature: Signature
    is_wrapper: bool
    code: Any


def function_at(address: int) -> AddressedFunction | None:
    """The function whose machine code, as Numba compiled it, begins at an address: searched among all objects.

    Those that ``gc.freeze`` has put aside come last, and are put aside again.
    """
    if not address:
        return None
    found = _among(gc.get_objects(), address)
    if found is None and gc.get_freeze_count():
        gc.unfreeze()
        try:
            found = _among(gc.get_objects(), address)
        finally:
            gc.freeze()
    return found


def _among(objects: list[Any], address: int) -> AddressedFunction | None:
    for found in objects:
        kind = type(found)
        if issubclass(kind, CFunc):
            if found._wrapper_address == address:
                signature, library = internals.signature_of_callback(found), internals.library_of_callback(found)
                return AddressedFunction(found, signature, True, library)
        elif issubclass(kind, dispatcher.Dispatcher):
            for compiled in list(vars(found).get("overloads", {}).values()):
                if not isinstance(compiled.library, codegen.JITCodeLibrary):
                    continue  # of another machine, as a device function of a GPU
                names = compiled.fndesc.llvm_cfunc_wrapper_name, compiled.fndesc.llvm_func_name
                for name in names:
                    if compiled.library.get_pointer_to_function(name) == address:
                        return AddressedFunction(found, compiled.signature, name == names[0], compiled.library)
    return None
