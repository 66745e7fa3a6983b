"""Changes of irad to Numba: the one table, and the one way to apply it.

Input   a row: something of Numba's, why irad changes it, and the public thing that would do instead.
Output  Numba as changed: by `TABLES`, `METHODS` and `NAMES` in the thread that compiles for irad, while it does
        (`private.Shadow`); by `KERNELS` while a CUDA kernel is lowered; by `FOR_GOOD` as long as the process lives, and
        by `LAUNCHES` once CUDA is used. `OVERRIDDEN` are methods that Numba calls on objects of irad's classes.
Limit   nothing of Numba is changed elsewhere; what is only read, and not public, is in `internals`.
        `tests/frontend/test_numba_private.py` checks both, that all of it exists, and that Numba calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from typing import Any, Final

from irad.backend import compat
from irad.errors import BackendError, SourceLocation
from irad.records import dataclass
from irad.versions import tested


class Aim(StrEnum):
    """Purpose of a patch of Numba."""

    COMPILATION = "private compilation"
    TABLES = "private tables"
    VALUES = "values that names stood for"
    RULES = "calls of functions with rules"
    BOUNDS = "bounds checks"
    MARKS = "lowering marks"
    LINES = "line marks"
    POINTS = "special points"
    LOOPS = "parallel loops"
    LIBRARIES = "code libraries"
    CALLS = "calls from Python"
    LAUNCHES = "CUDA launches"


@dataclass(frozen=True, slots=True)
class Patch:
    """Something of Numba that irad changes.

    Attributes:
        aim: irad's requirement.
        module: of Numba, by name, so that this table imports none.
        name: in the module: of a function, or of a class and its attribute.
        by: its replacement, as ``module:name``; for a table its initial content.
        why: its purpose.
        instead: the public thing that would make the change unnecessary.
        is_table: whether it is an attribute of instances.
    """

    aim: Aim
    module: str
    name: str
    by: str
    why: str
    instead: str
    is_table: bool = False

    @property
    def attribute(self) -> str:
        """The name in its owner."""
        return self.name.rpartition(".")[2]

    def owner(self) -> Any:
        """The module or class that has it.

        Raises:
            BackendError: this version of Numba has no such thing.
        """
        try:
            owner: Any = compat.numba_module(self.module)
            path = self.name.split(".")
            for name in path[:-1]:
                owner = getattr(owner, name)
            if not self.is_table:
                getattr(owner, path[-1])
        except (ModuleNotFoundError, AttributeError) as error:
            raise missing(f"has no {self.module}.{self.name}", self.why) from error
        return owner

    def replacement(self) -> Any:
        """Replacement of the patched attribute."""
        module, _, name = self.by.partition(":")
        return getattr(import_module(module), name)


def missing(what: str, why: str, place: SourceLocation | None = None) -> BackendError:
    """The refusal of a version of Numba that lacks something, or does not do it."""
    return BackendError(
        f"{compat.RUNNING} {what}",
        f"(a) install a version that irad was tested with, {tested()}, or (b) report this with the version of Numba",
        f"irad relies on it: {why}",
        place,
    )


def _rows(aim: Aim, instead: str, *rows: tuple[str, str, str, str], is_table: bool = False) -> tuple[Patch, ...]:
    """Rows of module, name, replacement and reason, for one aim."""
    return tuple(Patch(aim, *row, instead, is_table) for row in rows)


_DISPATCHER: Final = "numba.core.dispatcher"
_LOWERING: Final = "numba.core.lowering"
_INTERPRETER: Final = "numba.core.interpreter"
_TEMPLATES: Final = "numba.core.typing.templates"
_CODEGEN: Final = "numba.core.codegen"
_CONTEXT: Final = "numba.core.cpu"
_UFUNC: Final = "numba.np.ufunc.dufunc"
_UFUNC_BASE: Final = "numba.np.ufunc.ufunc_base"
_UFUNC_BUILDER: Final = "numba.np.ufunc.ufuncbuilder"
_WRAPPERS: Final = "numba.np.ufunc.wrappers"
_STENCIL: Final = "numba.stencils.stencil"

_PRIVATE_COMPILER: Final = "a way to compile with a target context and tables of one's own"
_CALL_HOOK: Final = "a hook for the lowering of a call, by callee and signature"
_INDEX_HOOK: Final = "a hook for the lowering of an index"
_INLINE_HOOK: Final = "a predicate for what is put in line, which knows the callee"
_LINE_TABLES: Final = "an option for line tables without variables, for one compilation"

TABLES: Final = _rows(
    Aim.TABLES,
    _PRIVATE_COMPILER,
    (_DISPATCHER, "_DispatcherBase.overloads", "dict", "the user's specialisations are neither found nor added to"),
    (_DISPATCHER, "_FunctionCompiler._failed_cache", "dict", "what fails for one target may compile for another"),
    ("numba.core.types.functions", "BaseFunction._impl_keys", "dict", "library functions are lowered again"),
    (_UFUNC_BUILDER, "UFuncDispatcher.overloads", "dict", "loop bodies of ufuncs are lowered again"),
    (_UFUNC_BUILDER, "UFuncDispatcher.cache", "no cache", "code from disk has no text before optimisation"),
    (_UFUNC_BASE, "UfuncLowererBase.libs", "list", "calls of a ufunc link the loop bodies that were lowered again"),
    (_STENCIL, "StencilFunc._type_cache", "dict", "stencils are lowered again"),
    (_STENCIL, "StencilFunc._targetctx", "target", "stencils keep the target that they compile for"),
    is_table=True,
)
"""Attributes of instances that have another value in the thread that compiles for irad."""

METHODS: Final = (
    *_rows(
        Aim.COMPILATION,
        _PRIVATE_COMPILER,
        (
            "numba.core.registry",
            "CPUTarget.target_context",
            "irad.frontend.numba.methods:target_context",
            "code is kept as it was lowered",
        ),
        (
            _DISPATCHER,
            "Dispatcher.compile",
            "irad.frontend.numba.methods:compile",
            "functions are lowered again, without caches, events and statistics",
        ),
        (
            _DISPATCHER,
            "Dispatcher.__init__",
            "irad.frontend.numba.methods:outside",
            "a dispatcher that is made meanwhile belongs to the user's target",
        ),
        (
            _DISPATCHER,
            "LiftedWith.compile",
            "irad.frontend.numba.methods:compile_lifted",
            "blocks in object mode are called through Python, and need machine code",
        ),
        (
            _DISPATCHER,
            "Dispatcher.get_compile_result",
            "irad.frontend.numba.methods:get_compile_result",
            "a first-class function is its lowered code, or a call of it where it has a rule",
        ),
        (
            _DISPATCHER,
            "Dispatcher.get_function_type",
            "irad.frontend.numba.methods:get_function_type",
            "the type depends on the user's signatures, which private tables lack",
        ),
        (
            _DISPATCHER,
            "_DispatcherBase.get_call_template",
            "irad.frontend.numba.methods:get_call_template",
            "of explicit signatures only the chosen one is lowered",
        ),
        (
            _TEMPLATES,
            "_OverloadFunctionTemplate._get_impl",
            "irad.frontend.numba.methods:implementation",
            "implementations of overloads are made once, under the user's flags; some are irad's own",
        ),
        (
            _TEMPLATES,
            "_IntrinsicTemplate.generic",
            "irad.frontend.numba.methods:type_intrinsic",
            "intrinsics that hold on to a function that they typed are typed again",
        ),
        (
            _UFUNC,
            "DUFunc.find_ewise_function",
            "irad.frontend.numba.methods:find_elementwise",
            "loop bodies of @vectorize functions are lowered again",
        ),
        (
            _UFUNC,
            "DUFunc._compile_for_argtys",
            "irad.frontend.numba.methods:compile_elementwise",
            "NumPy's ufunc object stays as it is while a loop body is lowered",
        ),
        (
            _UFUNC_BASE,
            "UfuncBase.find_ewise_function",
            "irad.frontend.numba.methods:find_elementwise",
            "loop bodies of @guvectorize functions are lowered again",
        ),
        (
            "numba.np.ufunc.gufunc",
            "GUFunc._compile_for_argtys",
            "irad.frontend.numba.methods:compile_generalized",
            "NumPy's ufunc object stays as it is while a loop body is lowered",
        ),
    ),
    *_rows(
        Aim.LINES,
        _LINE_TABLES,
        (
            _DISPATCHER,
            "_FunctionCompiler._customize_flags",
            "irad.frontend.numba.methods:customize_flags",
            "functions have line tables, and bounds checks where they are asked for",
        ),
        (
            _LOWERING,
            "BaseLower._compute_def_location",
            "irad.frontend.numba.methods:definition_location",
            "Numba would parse the source file of each function, which takes most of the compile time",
        ),
    ),
    *_rows(
        Aim.BOUNDS,
        "an option for what a bounds check raises, and the statement that is being lowered",
        (
            _LOWERING,
            "Lower.lower_inst",
            "irad.frontend.numba.marks:lower_statement",
            "bounds checks tell the line and the array; each index is checked to have its marks",
        ),
        (
            "numba.core.cgutils",
            "do_boundscheck",
            "irad.frontend.numba.marks:check_bounds",
            "an index out of bounds raises with the line, the array, the index and the size",
        ),
    ),
    *_rows(
        Aim.MARKS,
        _INDEX_HOOK,
        (
            "numba.np.arrayobj",
            "basic_indexing",
            "irad.frontend.numba.marks:index_array",
            "elements of a row lie side by side; it is known what belongs to one element",
        ),
        (
            "numba.np.arrayobj",
            "_getitem_array_single_int",
            "irad.frontend.numba.marks:row_of_array",
            "elements of a row lie side by side, in `for row in a`",
        ),
        (
            "numba.core.cgutils",
            "get_item_pointer2",
            "irad.frontend.numba.marks:address_of_element",
            "what subscripts are multiplied by is marked, so that elements are told apart",
        ),
    ),
    *_rows(
        Aim.LOOPS,
        "the arrays of a parallel loop's kernel in its compile result",
        (
            _WRAPPERS,
            "_GufuncWrapper._build_wrapper",
            "irad.frontend.numba.marks:build_wrapper",
            "the arrays that a parallel loop is given are noted with its kernel",
        ),
        (
            _WRAPPERS,
            "_GufuncWrapper.gen_loop_body",
            "irad.frontend.numba.marks:build_loop_body",
            "the code that raises in a thread is a function of its own",
        ),
    ),
    *_rows(
        Aim.POINTS,
        _CALL_HOOK,
        (
            "numba.cpython.numbers",
            "real_divmod",
            "irad.frontend.numba.shortcuts:divmod_of_reals",
            "for a remainder of zero Numba has a constant, whose derivative is not that of the function",
        ),
    ),
    *_rows(
        Aim.RULES,
        _CALL_HOOK,
        (
            _LOWERING,
            "Lower._lower_call_RecursiveCall",
            "irad.frontend.numba.methods:recursive_call",
            "a recursive call of a function with a rule stays a call",
        ),
        (
            _LOWERING,
            "Lower._Lower__get_first_class_function_pointer",
            "irad.frontend.numba.methods:function_pointer",
            "the address in a first-class function is read where it stands, without asking Python",
        ),
    ),
    *_rows(
        Aim.RULES,
        _INLINE_HOOK,
        (
            "numba.core.untyped_passes",
            "InlineInlinables._do_work",
            "irad.frontend.numba.methods:inline",
            "a function with a rule is not put in line",
        ),
        (
            "numba.core.typed_passes",
            "InlineOverloads._do_work_expr",
            "irad.frontend.numba.methods:inline_overload",
            "an overload with a rule is not put in line",
        ),
    ),
)
"""Functions and methods that work differently in the thread that compiles for irad.

What is put in place is given the shadow, Numba's own function and the arguments of the call.
"""

NAMES: Final = _rows(
    Aim.VALUES,
    "values of names as an argument of a compilation",
    (
        _INTERPRETER,
        "Interpreter.get_global_value",
        "irad.frontend.frozen.values:global_value",
        "globals have the values that Numba froze when it compiled the function",
    ),
    (
        _INTERPRETER,
        "Interpreter.get_closure_value",
        "irad.frontend.frozen.values:closure_value",
        "variables of enclosing functions have the values that Numba froze",
    ),
)
"""Methods that work differently in all threads while one compiles for irad: they look what their own thread follows.

What is put in place is given Numba's own function and the arguments of the call.
"""

FOR_GOOD: Final = (
    *_rows(
        Aim.VALUES,
        "an event (`numba.core.event`) for each specialisation, those from disk included",
        (
            _DISPATCHER,
            "Dispatcher.add_overload",
            "irad.frontend.numba.patches:watch",
            "derivatives are dropped when Numba compiles a function with other values of names",
        ),
    ),
    *_rows(
        Aim.CALLS,
        "`IradError` among the errors whose traceback Numba ends at the call",
        (
            _DISPATCHER,
            "Dispatcher._compile_for_args",
            "irad.frontend.calls.raising:end_tracebacks_at_the_call",
            "tracebacks of irad's errors end at the user's call, as those of Numba's do",
        ),
    ),
    *_rows(
        Aim.LIBRARIES,
        "a mark for code that is bound to the process, as Numba has one for what it caches",
        (
            _CODEGEN,
            "AOTCodeLibrary._finalize_specific",
            "irad.frontend.numba.library:refuse_extension_modules",
            "extension modules that call a derivative are refused: its code is bound to the process",
        ),
    ),
)
"""Changes for as long as the process lives, by `replace_for_good`."""

KERNELS: Final = (
    *_rows(
        Aim.COMPILATION,
        _PRIVATE_COMPILER,
        (
            "numba.cuda.descriptor",
            "cuda_target._typingctx",
            "irad.frontend.cuda.numba_cuda:_TypingContext",
            "calls of device functions go to dispatchers that compile for irad alone",
        ),
        (
            "numba.cuda.descriptor",
            "cuda_target._targetctx",
            "irad.frontend.cuda.numba_cuda:_TargetContext",
            "Numba never launches what is lowered for irad",
        ),
        (
            "numba.cuda.cudadrv.nvvm",
            "NVVM",
            "irad.frontend.cuda.numba_cuda:_Nvvm",
            "lowering asks the library for a version and a data layout",
        ),
        (
            "numba.cuda.dispatcher",
            "get_current_device",
            "irad.frontend.cuda.numba_cuda:CAPABILITY",
            "lowering asks the device for its compute capability",
        ),
    ),
    *_rows(
        Aim.MARKS,
        "an address by getelementptr in all versions",
        (
            "numba.cuda.cgutils",
            "pointer_add",
            "irad.frontend.cuda.numba_cuda:_pointer_add",
            "some versions make an integer of the address, and lose sight of the array",
        ),
    ),
    *_rows(
        Aim.POINTS,
        _CALL_HOOK,
        (
            "numba.cuda.cpython.numbers",
            "real_divmod",
            "irad.frontend.cuda.numba_cuda:_divmod_of_reals",
            "for a remainder of zero Numba has a constant, whose derivative is not that of the function",
        ),
    ),
    *_rows(
        Aim.CALLS,
        "public numbers of exceptions",
        (
            "numba.cuda.core.callconv",
            "_MinimalCallHelper._add_exception",
            "irad.frontend.cuda.numba_cuda:_number_of",
            "an exception has one number in all functions",
        ),
    ),
)
"""Changes while a CUDA kernel is lowered, under Numba's compiler lock, by `replaced_for_kernels`."""

STANDINS: Final = (
    *("to_device", "device_array", "device_array_like", "pinned_array", "pinned_array_like"),
    *("mapped_array", "mapped_array_like", "managed_array", "as_cuda_array", "is_cuda_array", "is_available"),
    *("stream", "default_stream", "event", "event_elapsed_time", "synchronize"),
)
"""Functions of `numba.cuda` that have a form for the executor; no version need have all of them."""

_ON_EXECUTOR: Final = "kernels run on the executor, on a tape, and by irad where they call derivatives"
_BY: Final = "irad.cuda.interception:install"

LAUNCHES: Final = _rows(
    Aim.LAUNCHES,
    "a hook for launches, copies and assignments in `numba.cuda`",
    ("numba.cuda.dispatcher", "CUDADispatcher.__getitem__", _BY, _ON_EXECUTOR),
    ("numba.cuda.dispatcher", "_LaunchConfiguration.__call__", _BY, _ON_EXECUTOR),
    ("numba.cuda.dispatcher", "ForAll.__call__", _BY, _ON_EXECUTOR),
    ("numba.cuda", "jit", _BY, "a kernel with signatures is compiled when it runs, where there is no driver"),
    ("numba.cuda.cudadrv.devicearray", "DeviceNDArray.copy_to_device", _BY, "a tape records copies"),
    ("numba.cuda.cudadrv.devicearray", "DeviceNDArray.copy_to_host", _BY, "a tape records copies"),
    ("numba.cuda.cudadrv.devicearray", "DeviceNDArray.__setitem__", _BY, "a tape does not see assignments"),
    ("numba.cuda.vectorizers", "CUDAVectorize.__init__", _BY, "its kernels are launched unseen"),
    ("numba.cuda.vectorizers", "CUDAGUFuncVectorize.__init__", _BY, "its kernels are launched unseen"),
    ("numba.cuda.kernels.reduction", "Reduce.__call__", _BY, "its kernel has no derivative"),
    *(("numba.cuda", name, _BY, "arrays, streams and events of the executor") for name in STANDINS),
)
"""Changes for good once `irad.cuda` is used, by `replace_for_good`."""

OVERRIDDEN: Final = (
    *_rows(
        Aim.COMPILATION,
        "a target that keeps code as it was lowered",
        (
            _CODEGEN,
            "JITCPUCodegen._library_class",
            "irad.frontend.numba.raw_target:RawCodegen",
            "libraries keep the modules as they were lowered",
        ),
        (
            _CODEGEN,
            "JITCodeLibrary.add_ir_module",
            "irad.frontend.numba.raw_target:RawLibrary",
            "lowered text is brought into one form and kept",
        ),
        (
            _CODEGEN,
            "JITCodeLibrary.add_linking_library",
            "irad.frontend.numba.raw_target:RawLibrary",
            "the code of callees is kept beside it",
        ),
        (
            _CODEGEN,
            "JITCodeLibrary.finalize",
            "irad.frontend.numba.raw_target:RawLibrary",
            "there is no machine code to make",
        ),
        (
            _CONTEXT,
            "CPUContext.get_executable",
            "irad.frontend.numba.raw_target:RawContext",
            "a compilation ends with its lowered code",
        ),
        (
            _CONTEXT,
            "CPUContext.get_constant_generic",
            "irad.frontend.numba.raw_target:RawContext",
            "functions given by address have a symbol",
        ),
    ),
    *_rows(
        Aim.RULES,
        _CALL_HOOK,
        (
            _CONTEXT,
            "CPUContext.get_function",
            "irad.frontend.numba.raw_target:RawContext",
            "a call of a function with a rule stays a call; special points and Fourier transforms are marked",
        ),
        (
            _CONTEXT,
            "CPUContext.get_ufunc_info",
            "irad.frontend.numba.raw_target:RawContext",
            "kernels of ufuncs say at special points what they compute",
        ),
    ),
    *_rows(
        Aim.LINES,
        _LINE_TABLES,
        (
            _CONTEXT,
            "CPUContext.DIBuilder",
            "irad.frontend.numba.raw_target:RawContext",
            "line tables are made without variables and types",
        ),
        (
            "numba.core.debuginfo",
            "DIBuilder.mark_location",
            "irad.frontend.numba.raw_target:LineTable",
            "each operation has its line",
        ),
        (
            "numba.core.debuginfo",
            "DIBuilder.mark_variable",
            "irad.frontend.numba.raw_target:LineTable",
            "variables are left out",
        ),
        (
            "numba.core.debuginfo",
            "DIBuilder._di_subroutine_type",
            "irad.frontend.numba.raw_target:LineTable",
            "types are left out",
        ),
    ),
    *_rows(
        Aim.LIBRARIES,
        "options of LLVM for a code library",
        (
            _CODEGEN,
            "JITCodeLibrary._optimize_final_module",
            "irad.frontend.numba.library:DerivativeLibrary",
            "LLVM makes vectors of more loops, without instructions that gather, and of lanes side by side",
        ),
        (
            _CODEGEN,
            "JITCodeLibrary._optimize_final_module",
            "irad.frontend.numba.library:StorableLibrary",
            "variables with addresses of objects get names that no other process uses",
        ),
        (
            _CODEGEN,
            "JITCodeLibrary._optimize_functions",
            "irad.frontend.numba.library:DerivativeLibrary",
            "passes are made once for the functions of a module, and not for those that are only declared",
        ),
        (
            _CODEGEN,
            "JITCodeLibrary._optimize_functions",
            "irad.frontend.numba.library:SupportLibrary",
            "LLVM's pipeline runs once over the run-time support, in every process's first gradient",
        ),
        (
            _CODEGEN,
            "JITCodeLibrary._optimize_final_module",
            "irad.frontend.numba.library:SupportLibrary",
            "LLVM's pipeline runs once over the run-time support, in every process's first gradient",
        ),
    ),
    *_rows(
        Aim.CALLS,
        "a hook for arguments that Numba has no type for, and methods for some of the types of a class",
        (
            _DISPATCHER,
            "Dispatcher._compile_for_args",
            "irad.frontend.numba.internals:OpenDispatcher",
            "structures of Python are packed before a call",
        ),
        (
            _TEMPLATES,
            "_OverloadMethodTemplate._resolve",
            "irad.frontend.numba.internals:method_of_some",
            "packed dictionaries have methods, other named tuples fields of these names",
        ),
    ),
    *_rows(
        Aim.TABLES,
        "a documented interface for the cache of a dispatcher",
        (
            "numba.core.caching",
            "_Cache.load_overload",
            "irad.frontend.disk.cache:DiskCache",
            "irad's cache looks at all that a program depends on",
        ),
        (
            "numba.core.caching",
            "_Cache.save_overload",
            "irad.frontend.disk.cache:DiskCache",
            "irad's cache keeps derivatives, too",
        ),
    ),
)
"""Methods of Numba's classes that classes of irad have in another form, and Numba calls: `Patch.by` is the class."""


def replace_for_good(name: str, make: Callable[[Any], Any]) -> None:
    """Puts something in the place of Numba's own, for the rest of the process.

    Args:
        name: name of a row of `FOR_GOOD` or `LAUNCHES`.
        make: makes the replacement from the original.
    """
    patch = _row(name, (*FOR_GOOD, *LAUNCHES))
    owner = patch.owner()
    setattr(owner, patch.attribute, make(getattr(owner, patch.attribute)))


@contextmanager
def replaced_for_kernels(name: str, value: object) -> Iterator[None]:
    """Something else in the place of Numba's own, while a CUDA kernel is lowered.

    Args:
        name: name of a row of `KERNELS`.
        value: the replacement.
    """
    patch = _row(name, KERNELS)
    owner = patch.owner()
    before = getattr(owner, patch.attribute)
    setattr(owner, patch.attribute, value)
    try:
        yield
    finally:
        setattr(owner, patch.attribute, before)


def _row(name: str, table: tuple[Patch, ...]) -> Patch:
    """The row of a name. What is not in the table is not changed."""
    [found] = [patch for patch in table if patch.name == name]
    return found


def watch(note: Callable[[Any, Any], None]) -> None:
    """Has a function called with each dispatcher and its new specialisation, under Numba's lock, for good.

    Numba's own events (`numba.core.event`) leave out what comes from disk.
    """

    def watched(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        def add_overload(self: Any, cres: Any) -> None:
            original(self, cres)
            note(self, cres)

        return add_overload

    replace_for_good("Dispatcher.add_overload", watched)
