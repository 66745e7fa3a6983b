"""Methods of Numba's as they work in a shadow compile (`private`): what is lowered goes to private tables.

Each is given the shadow if it asks for it, then Numba's own method, the object and the arguments of the call.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeAlias

from llvmlite.ir import IRBuilder, Value
from numba import njit
from numba.core import cgutils, cpu, dispatcher, errors, funcdesc, ir, ir_utils, sigutils
from numba.core.compiler import CompileResult, Flags, StateDict
from numba.core.dispatcher import Dispatcher
from numba.core.lowering import Lower
from numba.core.targetconfig import ConfigStack
from numba.core.types import Type
from numba.core.typing import Signature
from numba.np.ufunc.gufunc import GUFunc

from irad.frontend.custom import catalogue
from irad.frontend.custom.ruled_calls import caller_of, outlined_call, rule_of
from irad.frontend.frozen.check import Lowered
from irad.frontend.frozen.inherited_options import inherited, under
from irad.frontend.frozen.values import Reads, following
from irad.frontend.numba import internals, marks
from irad.frontend.numba.raw_target import RawContext
from irad.frontend.numba.target import real_context, typing_context

if TYPE_CHECKING:
    from irad.frontend.numba.private import Shadow

Original: TypeAlias = Callable[..., Any]
"""Numba's own method."""


def target_context(shadow: Shadow, _: object, __: object) -> RawContext:
    """The private target context, in place of `CPUTarget.target_context`."""
    return shadow.context


def compile(shadow: Shadow, _: object, self: Dispatcher, sig: Signature) -> object:
    """`Dispatcher.compile` without caches, events, statistics."""
    arguments, result = sigutils.normalize_signature(sig)
    existing = self.overloads.get(tuple(arguments))
    if existing is not None:
        return existing.entry_point
    if not internals.takes_new_types(self):
        raise RuntimeError("compilation disabled")
    return _lower(shadow, self, arguments, result)


def _lower(shadow: Shadow, self: Dispatcher, arguments: Sequence[Type], result: Type | None) -> object:
    """Lowers one signature into the private table."""
    rule = shadow.form.rule(catalogue.find(self, tuple(arguments)))
    is_inner = isinstance(self, internals.EntrylessDispatcher)
    if is_inner and rule is not None and rule.stands_for_body and not shadow.form.checks:
        taken = _take(shadow, self, tuple(arguments))
        if taken is not None:
            return taken
    statements, customised = shadow.marks.statements, shadow.marks.customised
    with internals.while_compiling(self), shadow.lowering(rule):
        try:
            code = inspect.unwrap(self.py_func).__code__
            with _as_compiled(_specialisation(self, tuple(arguments)), code) as reads:
                compiled = internals.compile_only(self, tuple(arguments), result)
        except errors.ForceLiteralArg as request:
            fold = self.fold_argument_types
            raise request.bind_fold_arguments(lambda args, kws: fold(args, kws)[1]) from None
        if internals.is_lowered_by_numba(self):
            _check_marks(shadow, self, compiled.library, statements, customised)
        compiled.library.lowered = Lowered(self, tuple(compiled.signature.args), compiled, reads)
        compiled.library.lowered.is_implementation = self in shadow.implementations
        compiled = compiled._replace(type_annotation=None, metadata={})  # they hold the function, and it the dispatcher
        compiled.library.function = self.py_func, compiled.signature
        self.overloads[tuple(compiled.signature.args)] = compiled
        # the private context would keep the code forever, as Numba's would if its dispatchers did not do the same
        weakref.finalize(self, shadow.context.forget, compiled.entry_point).atexit = False
        return compiled.entry_point


def _take(shadow: Shadow, self: Dispatcher, arguments: tuple[Type, ...]) -> object | None:
    """Puts code by Numba of an inner function with a rule into the private table: it is run, not differentiated.

    Returns:
        The entry; None where it calls derivatives, and has to be lowered as all others.
    """
    with shadow.suspended(), ConfigStack().enter(shadow.flags_of_user()):
        self.compile(arguments)
    compiled = _specialisation(self, arguments)
    assert compiled is not None
    if compiled.library.has_derivatives:
        return None
    library = compiled.library.raw(shadow.context)
    library.function = self.py_func, compiled.signature
    entry = shadow.context.get_executable(library, compiled.fndesc, compiled.environment)
    shadow.context.insert_user_function(entry, compiled.fndesc, [library])
    self.overloads[arguments] = compiled._replace(library=library, entry_point=entry, type_annotation=None, metadata={})
    weakref.finalize(self, shadow.context.forget, entry).atexit = False
    return entry


def _check_marks(shadow: Shadow, self: Dispatcher, library: Any, statements: int, customised: int) -> None:
    """Refuses code that Numba lowered without calling what irad has put in its place."""
    if shadow.marks.statements == statements or shadow.marks.customised == customised:
        raise marks.unmarked(self.py_func, "the flags and statements that irad sees", "indices are checked there")
    if not library.has_lines:
        raise marks.unmarked(self.py_func, "a line table", "derivatives and messages tell lines by it")


@contextmanager
def _as_compiled(compiled: CompileResult | None, code: CodeType | None = None) -> Iterator[Reads]:
    """Names have the values, and callers the options, with which Numba compiled a specialisation, if it did."""
    with following(compiled, code) as reads, under({} if compiled is None else inherited(compiled)):
        yield reads


def _specialisation(owner: object, key: object) -> CompileResult | None:
    """Specialisation that Numba itself compiled, or None."""
    found: CompileResult | None = vars(owner)["overloads"].get(key)
    return found


def _lower_declared(shadow: Shadow, self: Dispatcher, arguments: tuple[Type, ...]) -> None:
    """Lowers an explicit signature of a dispatcher that has no other."""
    declared = _specialisation(self, arguments)
    if declared is not None and arguments not in self.overloads:
        _lower(shadow, self, arguments, declared.signature.return_type)


def outside(shadow: Shadow, original: Original, self: object, *args: object, **kwargs: object) -> None:
    """A dispatcher made during a shadow compile belongs to Numba's own context."""
    with shadow.suspended():
        original(self, *args, **kwargs)


def compile_lifted(shadow: Shadow, original: Original, self: dispatcher.LiftedWith, sig: Signature) -> object:
    """A ``with objmode`` block is called through its Python object: it needs machine code."""
    with shadow.suspended():
        self.targetctx = real_context()
        self.flags = self.flags.copy()
        # Switched on by `customize_flags`, for code that irad reads.
        self.flags.debuginfo = False
        return original(self, sig)


def get_compile_result(shadow: Shadow, original: Original, self: Dispatcher, sig: Signature) -> object:
    """For a dispatcher that becomes a first-class function value: its code, or a call of it where it has a rule."""
    called = caller_of(self)
    if called is not self:
        return called.get_compile_result(sig)
    if not internals.takes_new_types(self):
        _lower_declared(shadow, self, tuple(sig.args))
    return original(self, sig)


def get_function_type(shadow: Shadow, original: Original, self: object) -> object:
    """A dispatcher's function type depends on how many signatures the user gave it."""
    with shadow.suspended():
        return original(self)


def get_call_template(shadow: Shadow, original: Original, self: Dispatcher, args: object, kws: object) -> object:
    """A dispatcher with explicit signatures is resolved among those, and only the chosen one is lowered."""
    if internals.takes_new_types(self) or isinstance(self, dispatcher.LiftedCode):
        return original(self, args, kws)
    with shadow.suspended():
        template, pysig, args, kws = original(self, args, kws)
    chosen = template(typing_context()).apply(args, kws)
    if chosen is not None:
        _lower_declared(shadow, self, tuple(chosen.args))
    return template, pysig, args, kws


def customize_flags(shadow: Shadow, original: Original, self: Any, flags: Flags) -> Flags:
    """The user's flags, with line tables: they cost no instruction. ``debug=True`` must not stop the optimiser."""
    flags = original(self, flags)
    shadow.marks.customised += 1
    shadow.note_flags(flags)
    # Numba's default is to check bounds in code with debug information, which is switched on below.
    if not flags.debuginfo and not self.targetoptions.get("boundscheck"):
        flags.boundscheck = False
    if shadow.form.checks:
        flags.boundscheck = True
    if shadow.form.plain or shadow.form.checks:
        flags.auto_parallel = cpu.ParallelOptions(False)
    flags.debuginfo = True
    flags.dbg_directives_only = True
    flags.dbg_extend_lifetimes = False
    flags.dbg_optnone = False
    return flags


def definition_location(_: Shadow, __: object, self: Lower) -> ir.Loc:
    """First line of a function. Numba would parse the source file of every function: most of the compile time."""
    return self.func_ir.loc


def function_pointer(_: Shadow, __: object, self: Lower, ftype: Type, fname: str, sig: Signature) -> Value:
    """The address in a first-class function.

    If it is null, Numba's own code asks Python again, which no analysis can follow; here that is an error immediately.
    """
    address = self.builder.extract_value(self.loadvar(fname), 0)
    with self.builder.if_then(cgutils.is_null(self.builder, address), likely=False):
        self.return_exception(RuntimeError, exc_args=(f"{ftype} function address is null",), loc=self.loc)
    return self.builder.bitcast(address, self.context.get_value_type(ftype))


def recursive_call(
    _: Shadow, original: Original, self: Lower, callee: Any, expr: ir.Expr, signature: Signature
) -> object:
    """A recursive call of a function with a rule is a call of a function with a rule."""
    rule = rule_of(callee, signature.args)
    if rule is None:
        return original(self, callee, expr, signature)
    arguments = self.fold_call_args(callee, signature, expr.args, expr.vararg, expr.kws)
    overload = callee.get_overloads(signature.args)
    mangle = self.context.mangler or funcdesc.default_mangler
    symbol = mangle(overload.qualname, signature.args, abi_tags=self.fndesc.abi_tags, uid=overload.uid)

    def lower(builder: IRBuilder, values: Sequence[Value]) -> Value:
        return self.context.call_unresolved(builder, symbol, signature, values)

    assert isinstance(self.context, RawContext)
    return outlined_call(self.context, rule, signature, lower, self.context.outlined)(self.builder, arguments)


def _unless(has_rule: Callable[[StateDict, ir.Expr], bool]) -> Callable[..., object]:
    """A call is inlined, unless its callee has a rule."""

    def method(
        _: Shadow,
        original: Original,
        self: object,
        state: StateDict,
        work: object,
        block: object,
        i: int,
        expr: ir.Expr,
        worker: object,
    ) -> object:
        if has_rule(state, expr):
            return False
        return original(self, state, work, block, i, expr, worker)

    return method


def _is_declared(state: StateDict, expr: ir.Expr) -> bool:
    try:
        definition = state.func_ir.get_definition(expr.func)
    except KeyError:
        return False
    if getattr(definition, "op", None) == "getattr":
        callee = ir_utils.resolve_func_from_module(state.func_ir, definition)
    else:
        callee = vars(definition).get("value")
    return bool(callee) and catalogue.is_declared(callee)


def _has_rule(state: StateDict, expr: ir.Expr) -> bool:
    return expr.op == "call" and rule_of(state.typemap.get(expr.func.name), state.calltypes[expr].args) is not None


inline = _unless(_is_declared)  # in Numba's own code
inline_overload = _unless(_has_rule)  # of library functions


def implementation(shadow: Shadow, original: Original, self: Any, args: object, kws: object) -> tuple[object, object]:
    """The implementation of an overload that Numba has, or will have: its function is made once for types and flags.

    Those of irad answer otherwise where a derivative is made, and some of Numba's have one of irad in their place.
    """
    if (self._overload_func.__module__ or "").startswith("irad."):
        if shadow.refuses_pullbacks:
            self._impl_cache = shadow.own_implementations.setdefault(type(self), {})
        return original(self, args, kws)
    own = None if shadow.form.only_runs else _stand_in(self)
    if own is not None:
        self._overload_func = own
        self._impl_cache = shadow.own_implementations.setdefault(type(self), {})
    with ConfigStack().enter(shadow.flags_of_user()):
        found, arguments = original(self, args, kws)
    if found is not None and own is None:
        shadow.implementations.add(found)
    return found, arguments


def _stand_in(template: Any) -> Callable[..., Any] | None:
    """Stand-in that Numba asks for an implementation in place of its own function, if there is one."""
    make = _makers().get(name_of(template))
    if make is None:
        return None
    original: Any = internals.overload_function(template)

    @functools.wraps(original)  # Numba compares the signatures
    def choose(*args: Any, **kwargs: Any) -> Any:
        implementation = original(*args, **kwargs)
        if implementation is None:
            return None
        options = {name: value for name, value in internals.overload_options(template).items() if name != "nopython"}
        made = make(njit(**options)(implementation), *args, **kwargs)
        return implementation if made is None else made

    return choose


def name_of(template: Any) -> tuple[str, str]:
    """Module and name of the function that is registered: of the implementation, if it is the same for all types."""
    function: Any = internals.overload_function(template)
    if function.__qualname__.startswith("register_jitable."):
        function = template.key
    return function.__module__, function.__qualname__


@functools.cache
def _makers() -> Mapping[tuple[str, str], Callable[..., Any]]:
    from irad.frontend.numba.stand_ins import MAKERS  # it uses `irad.stop_gradient`, which imports this package

    return MAKERS


def type_intrinsic(shadow: Shadow, original: Original, self: Any, args: object, kws: object) -> object:
    """One of Numba's may hold on to a function that it typed, whose tables are those of the shadow, or are not."""
    if (self._definition_func.__module__ or "").startswith("numba."):
        self._impl_cache = shadow.typed_intrinsics[shadow.form, type(self)]
    return original(self, args, kws)


def find_elementwise(
    shadow: Shadow, original: Original, self: Any, ewise_types: Sequence[Type]
) -> tuple[object, object]:
    """The loop body of a ``@vectorize`` or ``@guvectorize`` function for element types, lowered in the shadow."""
    with shadow.suspended():
        declared, _ = original(self, ewise_types)
    overloads = caller_of(self._dispatcher).overloads
    if declared is not None and declared not in overloads:
        _lower_elementwise(shadow, self, declared)
    if declared is None and not self._frozen:
        declared = next((sig for sig in overloads if self.match_signature(tuple(ewise_types), sig)), None)
    if declared is None:
        return None, None
    return declared, overloads[declared]


def compile_elementwise(
    shadow: Shadow, _: object, self: object, argtys: Sequence[Type], return_type: Type | None = None
) -> object:
    """Lowers the loop body of a ``@vectorize`` function; NumPy's own ufunc object stays as it is."""
    return _lower_elementwise(shadow, self, tuple(argtys) if return_type is None else return_type(*argtys))


def compile_generalized(
    shadow: Shadow, _: object, self: Any, argtys: Sequence[Type], return_type: Type | None = None
) -> object:
    """Lowers the loop body of a ``@guvectorize`` function for element types in the shadow."""
    return _lower_elementwise(shadow, self, self._get_function_type(*argtys))


def _lower_elementwise(shadow: Shadow, self: Any, sig: object) -> CompileResult:
    options = self.gufunc_builder.targetoptions if isinstance(self, GUFunc) else self.targetoptions
    checks = {"boundscheck": True} if shadow.form.checks else {}
    declared, compiles = vars(self._dispatcher)["overloads"], caller_of(self._dispatcher)
    arguments, _ = sigutils.normalize_signature(sig)
    existing = next((each for key, each in declared.items() if key.args == tuple(arguments)), None)
    with _as_compiled(existing) as reads, shadow.lowering(None):
        shadow.note_flags(None)
        compiled = compiles.compile(sig, **{**options, **checks})
    if compiles is self._dispatcher:
        compiled.library.lowered = Lowered(compiles, compiled.signature, compiled, reads)
    self._lower_me.libs.append(compiled.library)
    return compiled
