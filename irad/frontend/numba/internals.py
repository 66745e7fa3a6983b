"""Reading of Numba's private parts: a function for each, with the public thing that should replace it.

Input   objects of Numba.
Output  what irad wants of them, in the groups below. Outside this folder irad names no private attribute of Numba.
Limit   what irad *changes* in Numba is in `patches`. The other modules of this folder touch what is private where they
        alone need it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

import llvmlite.binding as llvm
from llvmlite.ir import IRBuilder, Value
from numba.core import bytecode, caching, ir
from numba.core.base import BaseContext
from numba.core.ccallback import CFunc
from numba.core.compiler import Compiler, CompileResult
from numba.core.dispatcher import Dispatcher, _FunctionCompiler
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import _reload_parfors
from numba.core.types import Type
from numba.core.typing import Signature
from numba.core.typing.templates import make_overload_method_template
from numba.cpython.listobj import ListInstance
from numba.experimental.jitclass._box import Box, box_get_dataptr
from numba.extending import _Intrinsic
from numba.typed.dictobject import _dict_lookup

# ------------------------------------------------------------------------------------------------ private compilation


def takes_new_types(dispatcher: Dispatcher) -> bool:
    """True if a dispatcher compiles for types that it has no specialisation for: not one with explicit signatures.

    Replace by: a property of dispatchers that says so.
    """
    return bool(getattr(dispatcher, "_can_compile", True))


def compile_only(dispatcher: Dispatcher, arguments: tuple[Type, ...], result: Type | None) -> CompileResult:
    """Compiles a function for argument types; the dispatcher does not remember it.

    Replace by: `numba.core.compiler.compile_extra`, if it took a dispatcher's options.
    """
    found: CompileResult = dispatcher._compiler.compile(arguments, result)
    return found


def is_lowered_by_numba(dispatcher: Dispatcher) -> bool:
    """True if the code of a dispatcher comes from Numba's lowering: a subclass may have a compiler of its own.

    Replace by: a public way to say how a dispatcher compiles.
    """
    compile_of: object = type(dispatcher._compiler).compile
    return compile_of is _FunctionCompiler.compile


def compiler_of(dispatcher: Dispatcher) -> Any:
    """Compiler of the functions of a dispatcher: it has its options, variables' types and pipeline.

    Replace by: public attributes of dispatchers, as `targetoptions` is one.
    """
    return dispatcher._compiler


def compile_with(dispatcher: Dispatcher, pipeline: type) -> None:
    """Has a dispatcher compile with another pipeline, unless it was given one of its own.

    Replace by: `pipeline_class` of `numba.njit`, if it could be set later.
    """
    if dispatcher._compiler.pipeline_class is Compiler:
        dispatcher._compiler.pipeline_class = pipeline


def while_compiling(dispatcher: Dispatcher) -> AbstractContextManager[None]:
    """A context in which a dispatcher knows that it is being compiled, so that its function may call itself.

    Replace by: nothing, if `compile_only` were public.
    """
    counter: AbstractContextManager[None] = dispatcher._compiling_counter
    return counter


def become(dispatcher: Dispatcher, kind: type) -> None:
    """Makes a dispatcher of Numba one of a class of irad.

    Replace by: an option of `numba.njit` for the class of the dispatcher.
    """
    dispatcher.__class__ = kind


def forget_overloads(dispatcher: Dispatcher) -> None:
    """Drops what a dispatcher has compiled.

    Replace by: a public method of dispatchers.
    """
    dispatcher._reset_overloads()


class OpenDispatcher(CPUDispatcher):
    """A dispatcher whose class says what is called where Numba's C code finds no specialisation for the arguments.

    Replace by: a public hook of dispatchers for that.
    """

    def specialisation_for(self, *args: Any, **kws: Any) -> Callable[..., Any]:
        """Callable for the arguments: a specialisation that it compiles for them."""
        found: Callable[..., Any] = super()._compile_for_args(*args, **kws)
        return found

    def _compile_for_args(self, *args: Any, **kws: Any) -> Callable[..., Any]:
        return self.specialisation_for(*args, **kws)


class Entryless:
    """A base of dispatchers whose specialisations have no entry for Python, so Numba's C code never finds one.

    Replace by: a public hook as above.
    """

    def _insert(self, *_: object) -> None:
        pass


class EntrylessDispatcher(Entryless, OpenDispatcher):
    """A dispatcher of functions that only compiled code calls."""


# ------------------------------------------------------------------------------------------------ callbacks from C


def signature_of_callback(callback: CFunc) -> Signature:
    """The signature of a ``numba.cfunc`` function.

    Replace by: a public attribute, as `address` is one.
    """
    found: Signature = callback._sig
    return found


def library_of_callback(callback: CFunc) -> Any:
    """The code library of a ``numba.cfunc`` function.

    Replace by: a public attribute, as `native_name` is one.
    """
    return callback._library


def options_of_callback(callback: CFunc) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of a ``numba.cfunc`` function, and the types of its variables as far as they are given.

    Replace by: public attributes, as dispatchers have them.
    """
    return callback._compiler.targetoptions, callback._compiler.locals


# ------------------------------------------------------------------------------------------------ code libraries


def module_for_linking(library: Any) -> llvm.ModuleRef:
    """The module of a code library that others link and put in line. Not to be changed: clone it.

    Replace by: a public method of code libraries.
    """
    return library._get_module_for_linking()


def set_module_for_linking(library: Any, module: llvm.ModuleRef) -> None:
    """Gives a finished code library another module for others to link and put in line.

    Replace by: a public method of code libraries.
    """
    library._shared_module = module


def compiled_module(library: Any) -> llvm.ModuleRef:
    """The module from which the machine code of a library is made.

    Replace by: `CodeLibrary.get_llvm_str`, if it gave the module.
    """
    return library._final_module


def linked_libraries(library: Any) -> tuple[Any, ...]:
    """The libraries that a code library links; placeholders for irad's own libraries link none.

    Replace by: a public attribute of code libraries.
    """
    return tuple(getattr(library, "_linking_libraries", ()))


def with_all_linked(library: Any) -> list[Any]:
    """A code library and all that it links."""
    found = [library]
    for each in found:
        found += [more for more in linked_libraries(each) if more not in found]
    return found


OBJECT: Final = "irad.object."
"""Beginning of the names of variables that hold the address of an object of this process."""


def object_symbol() -> str:
    """A new name of such a variable; all are of one length."""
    return f"{OBJECT}{secrets.token_hex(8)}"


def run_when_loaded(library: Any) -> set[Callable[[], object]]:
    """The functions of Python that have to run before code of a library that was loaded from disk is called.

    Replace by: `CompileResult.reload_init`, if it had those of linked libraries.
    """
    found: set[Callable[[], object]] = library._reload_init
    return found


start_threads: Final[Callable[[], object]] = _reload_parfors
"""Starts the threads of parallel loops, and gives LLVM the symbols by which code calls them.

Replace by: a public function for that.
"""
OF_THREADS: Final = (
    "allocate_sched",
    "deallocate_sched",
    "do_scheduling_signed",
    "do_scheduling_unsigned",
    "get_num_threads",
    "get_parallel_chunksize",
    "get_sched_size",
    "get_thread_id",
    "numba_parallel_for",
    "set_num_threads",
    "set_parallel_chunksize",
)
"""The symbols that `start_threads` gives LLVM.

Replace by: a public list of them.
"""


class LinkedText:
    """Stands for a code library where Numba links one; it has no machine code.

    Replace by: a public class of code libraries made of a module.

    Attributes:
        linked_module: the module to link.
    """

    linked_module: Any

    def __init__(self) -> None:
        self._reload_init: set[str] = set()

    def _ensure_finalized(self) -> None:
        """Numba asks before it links; there is nothing to finish."""

    def _get_module_for_linking(self) -> Any:
        return self.linked_module


# ------------------------------------------------------------------------------------------------ call conventions


def exception_argument(context: BaseContext, builder: IRBuilder) -> Any:
    """The parameter of a function through which it tells what it raises.

    Replace by: a public method of the call convention.
    """
    return context.call_conv._get_excinfo_argument(builder.function)


def status_of(convention: Any, builder: IRBuilder, code: Value, exception: Value) -> Any:
    """Status of a call, as Numba reads it.

    Replace by: `call_function` of the call convention, if it took a function that is called otherwise.
    """
    return convention._get_return_status(builder, code, exception)


def return_status(context: BaseContext, builder: IRBuilder, code: Any) -> None:
    """Ends a function with a status; the exception is in place.

    Replace by: `return_status_propagate` of the call convention, if it took a code.
    """
    context.call_conv._return_errcode_raw(builder, code)


def handler_of(builder: IRBuilder) -> Any:
    """Handler of the ``try`` block of the statement that is lowered: what is raised in it branches there; else None.

    Replace by: `return_user_exc` of the call convention, if it took values.
    """
    found = getattr(builder, "_in_try_block", None)
    return None if found is None else found["target"]


# ------------------------------------------------------------------------------------------------ caches

CacheOfDispatcher: Final[Any] = caching._Cache
"""The interface of what a dispatcher asks for a specialisation before it compiles.

Replace by: the same under a public name.
"""


def cache_of(dispatcher: Dispatcher) -> Any:
    """Cache of a dispatcher's specialisations on disk; None where it has nothing of the kind.

    Replace by: a public property of dispatchers.
    """
    return getattr(dispatcher, "_cache", None)


def set_cache(dispatcher: Dispatcher, cache: object) -> None:
    """Gives a dispatcher something that keeps its specialisations on disk.

    Replace by: an option of `numba.njit`: ``cache=`` with an object.
    """
    vars(dispatcher)["_cache"] = cache


def number_functions(numbers: Iterator[int]) -> None:
    """Has Numba take the numbers in the symbols of functions from an iterator, from now on.

    Replace by: symbols that do not clash between processes.
    """
    bytecode.FunctionIdentity._unique_ids = numbers


def reduced(compiled: CompileResult) -> Any:
    """A compile result as a tuple that can be written to disk; its descriptor loses its types of variables.

    Replace by: pickling of compile results.
    """
    numbas: Any = compiled
    return numbas._reduce()


def rebuilt(context: BaseContext, parts: Any) -> CompileResult:
    """A compile result of what `reduced` gave.

    Replace by: pickling of compile results.
    """
    kind: Any = CompileResult
    found: CompileResult = kind._rebuild(context, *parts)
    return found


def intrinsic_function(value: object) -> Callable[..., Any] | None:
    """The Python function of a ``numba.extending.intrinsic``; None for anything else.

    Replace by: its `__wrapped__`.
    """
    return value._defn if isinstance(value, _Intrinsic) else None


# ------------------------------------------------------------------------------------------------ overloads


def overload_function(template: Any) -> Callable[..., Any] | None:
    """The Python function that Numba asks for the implementation of an overload; None for a template of another kind.

    Replace by: a public attribute of templates, as `key` is one.
    """
    found: Callable[..., Any] | None = getattr(template, "_overload_func", None)
    return found


def overload_options(template: Any) -> dict[str, Any]:
    """The options with which the implementation of an overload is compiled.

    Replace by: a public attribute of templates, as `key` is one.
    """
    options: Mapping[str, Any] | None = getattr(template, "_jit_options", None)
    return dict(options or {})


def may_be_inlined(template: Any) -> bool:
    """True if Numba may put the implementation of an overload in line.

    Replace by: a public attribute of templates, as `key` is one.
    """
    found = getattr(template, "_inline", None)
    return not (found is None or found.is_never_inline)


def overloaded_attribute(template: Any) -> str:
    """The name of the attribute or method that a template is for.

    Replace by: a public attribute of templates, as `key` is one.
    """
    return str(getattr(template, "_attr", ""))


def method_of_some(tuple_type: type, name: str, function: Callable[..., Any], has_it: Callable[[Any], bool]) -> Any:
    """The template of a method that only some types of a class have: the others may have a field of that name.

    Replace by: `numba.extending.overload_method` for types that a predicate chooses.
    """
    template: Any = make_overload_method_template(tuple_type, name, function, inline="never", strict=False)

    class OfSome(template):
        def _resolve(self, typ: Any, attr: str) -> Any:
            return super()._resolve(typ, attr) if has_it(typ) else None

    return OfSome


def global_of_target(typing_context: Any, value: object) -> Any:
    """The type that a typing context has registered for a global; None where there is none.

    Replace by: `resolve_value_type` of typing contexts, if it did not make types.
    """
    return typing_context._lookup_global(value)


# ------------------------------------------------------------------------------------------------ Numba's IR


def define(func_ir: ir.FunctionIR, name: str, value: ir.Inst) -> None:
    """Tells the IR of a function what a new variable is defined by.

    Replace by: `FunctionIR` that follows changes of its blocks.
    """
    func_ir._definitions[name] = [value]


def redefine(func_ir: ir.FunctionIR, name: str, before: ir.Inst, value: ir.Inst) -> None:
    """Tells the IR of a function that a variable is defined by something else, in place of what it was.

    Replace by: `FunctionIR` that follows changes of its blocks.
    """
    definitions = func_ir._definitions[name]
    definitions[definitions.index(before)] = value


# ------------------------------------------------------------------------------------------------ containers, instances

look_up_key: Final[Any] = _dict_lookup
"""For compiled code: the place of a key in a typed dictionary, and its value.

Replace by: a method of dictionaries that gives the place.
"""


def allocated_items(items: ListInstance) -> Any:
    """The number of items that a reflected list has room for.

    Replace by: a property of `ListInstance`, as `size` is one.
    """
    return items._payload.allocated


def address_of_item(items: ListInstance, index: Value) -> Any:
    """The address of an item of a reflected list.

    Replace by: a public method of `ListInstance`, as `getitem` is one.
    """
    return items._gep(index)


def is_jitclass(cls: type) -> bool:
    """True if instances of a class are those of a jitclass.

    Replace by: a public function of `numba.experimental`.
    """
    return issubclass(cls, Box)


def address_of_instance(instance: Any) -> int:
    """The address of the fields of an instance of a jitclass.

    Replace by: a public function of `numba.experimental`.
    """
    return int(box_get_dataptr(instance))


def address_of_container(container: Any) -> int | None:
    """The address of a typed list or dictionary; None before it has a type.

    Replace by: a public attribute of typed containers.
    """
    opaque = getattr(container, "_opaque", None)
    return None if opaque is None else int(opaque.data)


# ------------------------------------------------------------------------------------------------ numba.cuda


def cuda_context(target: Any) -> Any:
    """The target context of a CUDA target if it is made already; else None.

    Replace by: `target_context` of targets, if it did not make one.
    """
    return target._targetctx


def take_externals(numbas: Any, own: BaseContext, kind: type) -> None:
    """Gives a context the external functions that Numba has declared in its own: it does so once, when first used.

    Replace by: declarations of external functions in a registry.

    Args:
        numbas: Numba's context; None if it is not made yet.
        own: the context that is given them.
        kind: the class of what stands for an external function.
    """
    for key, implementations in () if numbas is None else list(numbas._defns.items()):
        if isinstance(key, kind):
            own._defns.setdefault(key, implementations)
