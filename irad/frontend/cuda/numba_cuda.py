"""Numba's CUDA target, whichever package it comes from, used without a driver, without a GPU and without NVVM.

Input   a Python function, argument types, the options of `numba.cuda.jit`.
Output  `Lowered`: LLVM modules as Numba lowers them, and the symbol of the kernel.
Method  Numba's own compiler runs in *private contexts*: its tables are not those of the user's kernels, so what is
        compiled here is never launched by Numba, and what Numba compiled for a device is not found here. Calls of
        device functions go to *twins*, dispatchers for the same Python functions. For the time of one compilation, and
        under Numba's compiler lock, some of Numba is replaced (`patches.KERNELS`): the contexts that `numba.cuda`
        compiles in, the current device, of which it asks the compute capability, the NVVM library, of which it asks the
        version of its IR and the data layout, the addition to an address, which loses sight of the array in some
        versions, and the numbers of exceptions.
"""

from __future__ import annotations

import operator
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, Final

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba import cuda
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from numba.cpython import builtins
from numba.cuda import compiler, cudaimpl, descriptor, models, target
from numba.cuda.dispatcher import CUDADispatcher
from numba.cuda.extending import intrinsic

from irad.backend import compat
from irad.errors import SourceLocation, UnsupportedError
from irad.frontend.calls.dispatcher import DerivativeDispatcher
from irad.frontend.cuda import device_derivatives, exceptions, rules
from irad.frontend.cuda.signatures import signatures_of
from irad.frontend.numba import internals, shortcuts
from irad.frontend.numba.patches import replaced_for_kernels
from irad.frontend.offered import (
    OFFERED_TYPES,
    compiled_by_irad,
    device_function_of,
    mark_for_derivatives,
    nothing,
    represent,
    type_of_constant,
)
from irad.records import dataclass

# Functions that exchange values within a warp, as calls of the kernel dialect.
#
# Numba lowers a shuffle of a 64-bit number as two shuffles of its halves, as integers, which nobody could
# differentiate; and it names the kind of a shuffle or vote by a number. These intrinsics take the place of Numba's
# functions (`_WARP_FUNCTIONS`): typed as Numba types the function, lowered to one call, in which a number stays one.

_I32: Final = ir.IntType(32)
_SUFFIXES: Final = {types.int32: "i32", types.int64: "i64", types.float32: "f32", types.float64: "f64"}
_ATTRIBUTES: Final = ("convergent", "nounwind")


def _numba_signature(context: Any, function: object, arguments: tuple[Any, ...]) -> Any:
    """Signature that Numba gives a call of its own function."""
    return context.resolve_function_type(context.numba_type(function), arguments, {})


def _warp_call(builder: Any, symbol: str, result: Any, arguments: list[Any]) -> Any:
    callee = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(result, [each.type for each in arguments]), symbol
    )
    for attribute in _ATTRIBUTES:
        callee.attributes.add(attribute)
    return builder.call(callee, arguments)


def _shuffle(function: object, kind: str) -> Any:
    @intrinsic
    def shuffle(typingctx: Any, mask: Any, value: Any, lane: Any) -> tuple[Any, Callable[..., Any]]:
        result = _numba_signature(typingctx, function, (mask, value, lane)).return_type

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            wanted = types.int32, result, types.int32
            given = [
                context.cast(builder, argument, type_, want)
                for argument, type_, want in zip(arguments, signature.args, wanted, strict=True)
            ]
            return _warp_call(builder, f"irad.cuda.shfl.{kind}.{_SUFFIXES[result]}", given[1].type, given)

        return result(mask, value, lane), lower

    return shuffle


def _vote(function: object, kind: str) -> Any:
    @intrinsic
    def vote(typingctx: Any, mask: Any, predicate: Any) -> tuple[Any, Callable[..., Any]]:
        result = _numba_signature(typingctx, function, (mask, predicate)).return_type

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lanes = context.cast(builder, arguments[0], signature.args[0], types.int32)
            truth = context.cast(builder, arguments[1], signature.args[1], types.boolean)
            found = _warp_call(builder, f"irad.cuda.vote.{kind}", _I32, [lanes, builder.zext(truth, _I32)])
            return context.cast(builder, found, types.int32, result)

        return result(mask, predicate), lower

    return vote


_WARP_FUNCTIONS: Final = (
    (cuda.shfl_sync, _shuffle(cuda.shfl_sync, "idx")),
    (cuda.shfl_up_sync, _shuffle(cuda.shfl_up_sync, "up")),
    (cuda.shfl_down_sync, _shuffle(cuda.shfl_down_sync, "down")),
    (cuda.shfl_xor_sync, _shuffle(cuda.shfl_xor_sync, "bfly")),
    (cuda.all_sync, _vote(cuda.all_sync, "all")),
    (cuda.any_sync, _vote(cuda.any_sync, "any")),
    (cuda.eq_sync, _vote(cuda.eq_sync, "uni")),
    (cuda.ballot_sync, _vote(cuda.ballot_sync, "ballot")),
)
"""Numba's functions, each with what is called in its place."""


# `max` and `min` of numbers in kernels, for versions of Numba whose CUDA target cannot compile its own.
#
# From Numba 0.66 on they are functions of any number of arguments, which its CUDA target compiles as if they had one;
# that of numba-cuda does not. Numbers are compared as Numba does: the first stays where others are not larger
# (smaller).


def _extreme(name: str, compare: Callable[[Any, Any], Any]) -> Any:
    def typed(context: Any, numbers: tuple[Any, ...]) -> Any:
        known = bool(numbers) and all(isinstance(each, types.Number | types.Boolean) for each in numbers)
        result = context.unify_types(*numbers) if known else None
        if result is None:
            raise TypingError(f"{name} in a kernel is of numbers, or of a tuple of numbers, not of {numbers}")
        return result

    @intrinsic
    def extreme(typingctx: Any, *given: Any) -> tuple[Any, Callable[..., Any]]:
        one = given[0] if len(given) == 1 else None
        numbers = tuple(one) if isinstance(one, types.BaseTuple) else given

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            (packed,) = arguments
            if numbers is not given:
                packed = builder.extract_value(packed, 0)
            return builtins.do_minmax(context, builder, list(numbers), cgutils.unpack_tuple(builder, packed), compare)

        return typed(typingctx, numbers)(types.Tuple.from_types(given)), lower

    return extreme


_EXTREMES: Final = (
    ((max, _extreme("max", operator.gt)), (min, _extreme("min", operator.lt)))
    if compat.cuda_compiles_one_argument()
    else ()
)
"""`max` and `min`, each with what is called in its place, where that is needed."""


CAPABILITY: Final = (7, 0)
"""Compute capability that Numba lowers for: with atomic additions of float64, without inline PTX for later GPUs."""

_LAYOUT: Final = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-"
    "v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """Those options of `numba.cuda.jit` that change the code of a kernel.

    Attributes:
        debug: exceptions are recorded, divisions by zero and wrong indices of tuples raise.
        max_registers, launch_bounds: options of the assembler.
    """

    fastmath: bool = False
    debug: bool = False
    max_registers: int | None = None
    launch_bounds: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel as Numba lowers it.

    Attributes:
        texts: LLVM modules, that of the kernel first.
        symbol: symbol of the kernel.
        arguments: names and types of its arguments.
        counts: for each argument the number of LLVM parameters.
        body: symbol of the function whose parameters have names; that of the kernel, unless it is only called by it.
    """

    texts: tuple[str, ...]
    symbol: str
    arguments: tuple[tuple[str, Any], ...]
    counts: tuple[int, ...]
    body: str


class _Nvvm:
    """Answers, without the NVVM library, to what Numba's lowering asks it."""

    data_layout = _LAYOUT

    def get_ir_version(self) -> tuple[int, int, int, int]:
        """NVVM IR 2.0 with debug information 3.1: LLVM's upgrade does not look at it."""
        return 2, 0, 3, 1


class _TypingContext(target.CUDATypingContext):
    """Numba's, with twins of device functions, and irad's form of functions that exchange values within a warp."""

    def __init__(self) -> None:
        self._twins: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._are_twins: weakref.WeakSet[Any] = weakref.WeakSet()
        self._replaced = {id(f): (f, own) for f, own in (*_WARP_FUNCTIONS, *_EXTREMES)}
        super().__init__()

    def resolve_value_type(self, val: Any) -> Any:
        self._replace_offered(val)
        _, val = self._replaced.get(id(val), (None, val))
        found = type_of_constant(val) if internals.global_of_target(self, val) is None else None
        return self.numba_type(val) if found is None else found

    def _replace_offered(self, val: Any) -> None:
        """Has device code call an intrinsic in place of a function that irad offers to compiled code."""
        found = None if id(val) in self._replaced else device_derivatives.offered_intrinsic(val, self._new_twin)
        if found is not None:
            own, wants_literals = found
            self._replaced[id(val)] = val, own
            self.refresh()  # it is new to Numba
            for template in self.numba_type(own).templates:
                template.prefer_literal = wants_literals

    def numba_type(self, val: Any) -> Any:
        """The type of a value, where no function is replaced but by its twin."""
        return self._with_twins(super().resolve_value_type(self._twin_of(val)))

    def _twin_of(self, val: Any) -> Any:
        """For a dispatcher one for the same function that compiles only here."""
        if not isinstance(val, (Dispatcher, CUDADispatcher)) or val in self._are_twins:
            return val
        val = device_function_of(val)
        version = rules.declared(val)
        if val not in self._twins or self._twins[val][0] != version:
            twin = self._derivative(val) if isinstance(val, DerivativeDispatcher) else rules.twin(val, self._new_twin)
            represent(twin, val)
            self._twins[val] = version, twin
            for arguments, result in signatures_of(val):
                twin.compile_device(arguments, result)
            if twin.overloads:
                twin.disable_compile()  # as Numba does: arguments are converted
        return self._twins[val][1]

    def _derivative(self, val: DerivativeDispatcher) -> Any:
        twin = device_derivatives.derivative_twin(val, self._new_twin)
        if twin is None:
            raise UnsupportedError(
                f"device code calls {val!r}",
                "(a) irad.grad, irad.value_and_grad, irad.jvp, irad.vjp, irad.jacobian, irad.hessian, irad.hvp or "
                "irad.autodiff or (b) call it on the host",
                f"irad.{val.kind} is not available on GPUs, where code cannot allocate memory",
                SourceLocation.of(val.primal.py_func),
            )
        return twin

    def _new_twin(self, function: Callable[..., Any], options: Mapping[str, Any]) -> CUDADispatcher:
        """A dispatcher of a device function that compiles only here."""
        twin = CUDADispatcher(function, targetoptions={"opt": True, **options, "device": True, "lineinfo": True})
        self._are_twins.add(twin)
        return twin

    def _with_twins(self, type_: types.Type) -> Any:
        """A type with twins in place of the functions that it mentions, such as that of a tuple of functions."""
        if isinstance(type_, types.Dispatcher) and type_.dispatcher not in self._are_twins:
            return super().resolve_value_type(self._twin_of(type_.dispatcher))
        if isinstance(type_, types.Tuple | types.UniTuple):
            return types.Tuple.from_types([self._with_twins(each) for each in type_.types])
        return type_


class _TargetContext(target.CUDATargetContext):
    """Numba's, in which functions whose code takes shortcuts at single points say what they compute."""

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        lower = super().get_function(fn, sig, _firstcall)
        function = fn.typing_key if isinstance(fn, types.Function) else fn
        return shortcuts.lowering(self, function, sig, lower)

    def get_ufunc_info(self, ufunc_key: object) -> Any:
        """The kernels of a ufunc, by the types that they are for."""
        return shortcuts.kernels(ufunc_key, super().get_ufunc_info(ufunc_key))


_REAL_DIVMOD: Final = compat.numba_module("numba.cuda.cpython.numbers").real_divmod


def _divmod_of_reals(context: BaseContext, builder: IRBuilder, x: Value, y: Value) -> Any:
    """Quotient and remainder of floats; for halves there is no rule."""
    if x.type in (ir.FloatType(), ir.DoubleType()):
        return shortcuts.divmod_of_reals(None, _REAL_DIVMOD, context, builder, x, y)
    return _REAL_DIVMOD(context, builder, x, y)


class _Contexts:
    """The private contexts; made at first use, under the compiler's lock."""

    def __init__(self) -> None:
        self._made: tuple[_TypingContext, Any] | None = None
        self._types = 0

    @contextmanager
    def active(self) -> Iterator[Any]:
        """Numba's CUDA target compiles in the private contexts: gives the target context."""
        with compiler.global_compiler_lock, ExitStack() as stack:
            device = SimpleNamespace(compute_capability=CAPABILITY)
            stack.enter_context(warnings.catch_warnings())
            # Of functions without a file, whose lines nobody could show anyway.
            warnings.filterwarnings("ignore", ".*Could not find source for function")
            stack.enter_context(compiled_by_irad())
            stack.enter_context(replaced_for_kernels("NVVM", _Nvvm))
            stack.enter_context(replaced_for_kernels("pointer_add", _pointer_add))
            stack.enter_context(replaced_for_kernels("real_divmod", _divmod_of_reals))
            stack.enter_context(replaced_for_kernels("get_current_device", lambda: device))
            stack.enter_context(replaced_for_kernels("_MinimalCallHelper._add_exception", _number_of))
            self._take_types()
            if self._made is None:
                typing_context = _TypingContext()
                self._made = typing_context, _TargetContext(typing_context)
                mark_for_derivatives(self._made[1])
                numbas = internals.cuda_context(descriptor.cuda_target)
                internals.take_externals(numbas, self._made[1], compiler.ExternFunction)
            typing_context, target_context = self._made
            stack.enter_context(replaced_for_kernels("cuda_target._typingctx", typing_context))
            stack.enter_context(replaced_for_kernels("cuda_target._targetctx", target_context))
            yield target_context

    def _take_types(self) -> None:
        """Makes types of irad's known to the CUDA target, which may have tables of its own for all of this."""
        for each in OFFERED_TYPES[self._types :]:
            models.register_model(each.kind)(each.model)
            if each.values is not None:
                cudaimpl.registry.lower_constant(each.kind)(nothing)
            if each.call is not None:
                key, lower = each.call
                cudaimpl.registry.lower(key, each.kind, types.VarArg(types.Any))(lower)
        self._types = len(OFFERED_TYPES)


_CONTEXTS: Final = _Contexts()


def _pointer_add(builder: Any, ptr: Any, offset: Any, return_type: Any = None) -> Any:
    """An address a number of bytes further on; as a pointer, which some versions make an integer of in between."""
    step = ir.IntType(64)(offset) if isinstance(offset, int) else offset
    moved = builder.gep(builder.bitcast(ptr, ir.IntType(8).as_pointer()), [step])
    return builder.bitcast(moved, return_type or ptr.type)


def _number_of(_: Any, kind: Any, arguments: Any, place: Any) -> int:
    """The number of an exception, in place of the method with which each function counts its own."""
    return exceptions.number_of(kind, arguments, place)


def options_of(function: object) -> KernelOptions:
    """Options that the user's decorator states; none for a plain function."""
    given = getattr(function, "targetoptions", {})
    known = {field.name: given[field.name] for field in fields(KernelOptions) if given.get(field.name) is not None}
    bounds = known.pop("launch_bounds", ())
    return KernelOptions(**known, launch_bounds=(bounds,) if isinstance(bounds, int) else tuple(bounds))


@contextmanager
def _recursion_refused(function: Callable[..., Any]) -> Iterator[None]:
    """Numba's CUDA target lacks what its lowering of a function that calls itself asks for."""
    try:
        yield
    except AttributeError as error:
        if error.name != "insert_unresolved_ref":
            raise
        raise UnsupportedError(
            f"{function.__qualname__} calls a device function that calls itself",
            "write it as a loop",
            "Numba does not compile such functions for GPUs",
            SourceLocation.of(function),
        ) from None


def lower(function: Callable[..., Any], argument_types: tuple[Any, ...], options: KernelOptions) -> Lowered:
    """Has Numba lower a kernel and all that it calls.

    Args:
        function: of Python.

    Raises:
        numba.core.errors.NumbaError: Numba cannot compile it.
        UnsupportedError: a device function calls itself.
    """
    with _CONTEXTS.active() as context, _recursion_refused(function):
        compiled = compiler.compile_cuda(
            function,
            types.void,
            argument_types,
            debug=options.debug,
            lineinfo=True,
            fastmath=options.fastmath,
            nvvm_options={"fastmath": options.fastmath, "opt": 3},
            cc=CAPABILITY,
        )
        library, symbol = compat.cuda_kernel(compiler, compiled, function, options.debug)
        named = tuple(zip(compiled.fndesc.args, compiled.signature.args, strict=True))
        return Lowered(
            texts=tuple(dict.fromkeys(map(str, library.modules))),  # what two functions call is listed twice
            symbol=symbol,
            arguments=named,
            counts=tuple(len(context.get_arg_packer([type_]).argument_types) for _, type_ in named),
            body=compiled.fndesc.llvm_func_name,
        )
