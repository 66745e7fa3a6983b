"""Derivatives that device code calls: ``irad.grad(f)(x)`` in a kernel or in a device function.

Input   what irad offers to compiled code (`irad.frontend.offered`), and the derivatives that it makes for the CPU.
Output  for each function that makes derivatives an intrinsic of the CUDA target, for each derivative a device function.
Method  what a derivative does is written down in its `Task`, whatever the target. Here a call of it becomes one of a
        function that is declared only, given the address of the primal; `irad.kernel.inside` derives that and defines
        the function. So derivatives nest: the outer one sees the code of the inner one.
Limit   numbers, tuples, and arrays with memory for their derivatives: device code cannot allocate.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, Final

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.typing import Signature
from numba.cuda.extending import intrinsic

from irad.errors import SourceLocation, UnsupportedError
from irad.frontend.calls import seeding
from irad.frontend.calls.definition import DerivativeCall
from irad.frontend.calls.dispatcher import DerivativeDispatcher
from irad.frontend.calls.lanes import seed_types_of_lanes, seeds_of_lanes, targets_of_lanes
from irad.frontend.calls.result_types import derivative_type, gradient_types_of, structured
from irad.frontend.calls.signature import check_arguments, check_return
from irad.frontend.calls.sweeps import Cotangents
from irad.frontend.calls.task import Returns, Role, Seed
from irad.frontend.calls.typed_call import check_targets, target_types, target_values
from irad.frontend.derivation import Derivation, kind_of_parameter
from irad.frontend.emit import Emit
from irad.frontend.generated import function_from
from irad.frontend.memory.arrays import memory_at
from irad.frontend.numba.messages import described
from irad.frontend.offered import typing_of
from irad.frontend.values import abi, gradients, layouts, tree
from irad.frontend.values.abi import Argument
from irad.frontend.values.tree import Content, LeafKind
from irad.kernel.inside import WantedInside
from irad.passes.request import MemoryType, ParameterKind
from irad.records import dataclass

_OWN: Final = {"__name__": __name__}  # errors name the first line that is not irad's
_POINTER: Final = ir.IntType(8).as_pointer()
_Make = Callable[[Callable[..., Any], Mapping[str, Any]], Any]

WANTED: Final[dict[str, WantedInside]] = {}
"""By the symbol of the function that is called."""


def offered_intrinsic(function: object, make: _Make) -> tuple[Any, bool] | None:
    """The intrinsic that device code calls instead of a function that irad offers, and whether it needs literals.

    None for other functions.

    Args:
        function: as the user's code names it.
        make: makes a device function's dispatcher from a Python function and options.
    """
    found = typing_of(function)
    if found is None:
        return None
    typed = found.typed if found.on_device is None else partial(found.on_device, make)
    if found.is_refused:
        return intrinsic(lambda irad_context, *args, **named: typed(*args, **named)), True
    parameters = inspect.signature(typed).parameters.values()

    def bridged(values: tuple[Any, ...]) -> Any:
        kinds = [each if isinstance(each, types.Type) else types.Omitted(each) for each in values]
        taken = [types.unliteral(kind) for kind in kinds]
        compiled = make(typed(*values), {}).compile_device(tuple(taken))
        # Numba finds what lowers a call by the types: those of literals tell calls apart
        signature = compiled.signature.return_type(
            *(types.none if isinstance(kind, types.Omitted) else kind for kind in kinds)
        )

        def lower(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Sequence[Value]) -> Value:
            if isinstance(signature.return_type, types.Dispatcher):  # which is nothing at run time
                return context.get_dummy_value()
            passed = [
                value if isinstance(wanted, types.Omitted) else context.cast(builder, value, kind, wanted)
                for value, kind, wanted in zip(arguments, signature.args, taken, strict=True)
            ]
            context.active_code_library.add_linking_library(compiled.library)
            return context.call_internal(builder, compiled.fndesc, compiled.signature, passed)

        return signature, lower

    scope: dict[str, Any] = {"irad_bridged": bridged, **_OWN}
    texts = []
    for each in parameters:
        scope[f"irad_default_{each.name}"] = each.default
        default = "" if each.default is each.empty else f"=irad_default_{each.name}"
        texts.append(each.name + default)
    names = "".join(f"{each.name}, " for each in parameters)
    source = f"def offered(irad_context, {', '.join(texts)}):\n    return irad_bridged(({names}))\n"
    return intrinsic(function_from("offered", source, "irad.frontend.cuda", scope)), found.literals


def calls_derivatives(kernel: Any) -> bool:
    """True if a kernel, or a function that it calls, names a function that makes derivatives.

    Told from the names in their code, so that nothing has to be compiled. It may say so of a kernel that never does.
    """
    known: dict[str, Any] = kernel.__dict__
    if _CALLS not in known:
        known[_CALLS] = any(map(_is_of_derivatives, _named(kernel.py_func)))
    return bool(known[_CALLS])


_CALLS: Final = "_irad_calls_derivatives"


def _is_of_derivatives(value: Any) -> bool:
    return isinstance(value, DerivativeDispatcher) or typing_of(value) is not None


def _named(function: FunctionType) -> Iterator[Any]:
    """Values that the code of a function and of its callees names: globals, nonlocals, attributes of modules."""
    seen, pending = set[int](), [function]
    for each in pending:
        code = each.__code__
        cells = dict(zip(code.co_freevars, each.__closure__ or (), strict=True))
        values = [each.__globals__[name] for name in code.co_names if name in each.__globals__]
        values += [cell.cell_contents for cell in cells.values() if _is_filled(cell)]
        modules = [value for value in values if isinstance(value, ModuleType)]
        values += [getattr(module, name) for module in modules for name in code.co_names if hasattr(module, name)]
        for value in values:
            if id(value) not in seen:
                seen.add(id(value))
                yield value
                callee = getattr(value, "py_func", value)
                pending += [callee] if isinstance(callee, FunctionType) else []


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def derivative_twin(derivative: Any, make: _Make) -> Any:
    """The device function for a derivative; None if irad does not support it on the GPU.

    Args:
        derivative: a `DerivativeDispatcher`.
        make: as for `offered_intrinsic`.
    """
    called = derivative.irad_called
    if called.meaning is None:
        return None
    listing = ", ".join(called.names)
    scope = {"typed": lambda context, given: _typed(context, called.meaning, given, make), **_OWN}
    source = f"def irad_call(irad_context, {listing}):\n    return typed(irad_context, ({listing},))\n"
    call = intrinsic(function_from("irad_call", source, "irad", scope))
    wrapper = derivative.py_func
    code = FunctionType(wrapper.__code__, {**wrapper.__globals__, "irad_call": call}, wrapper.__name__)
    code.__defaults__, code.__qualname__, code.__module__ = (
        wrapper.__defaults__,
        wrapper.__qualname__,
        wrapper.__module__,
    )
    return make(code, {})


def _typed(context: Any, meaning: Any, given: tuple[Any, ...], make: _Make) -> tuple[Any, Callable[..., Any]]:
    given = tuple(map(types.unliteral, given))
    if isinstance(meaning, DerivativeCall):
        call = _Call(context, meaning, given)
        return call.result_type(*given), call.lower

    def returned(function: Any, kinds: tuple[Any, ...]) -> Any:
        return context.numba_type(function).dispatcher.compile_device(kinds).signature.return_type

    compiled = make(meaning(given, returned), {}).compile_device(given)

    def lower(context: BaseContext, builder: IRBuilder, _: Any, arguments: Sequence[Value]) -> Value:
        context.active_code_library.add_linking_library(compiled.library)
        return context.call_internal(builder, compiled.fndesc, compiled.signature, arguments)

    return compiled.signature.return_type(*given), lower


@dataclass(frozen=True)
class _Lane:
    """One direction: memory given for arguments, the shadow of the result's memory, the cotangents of numbers."""

    targets: Mapping[int, tuple[Any, Any]]
    shadow: Any
    cotangents: Cotangents


class _Call:
    """A call of a derivative in device code, for the types of its arguments.

    Raises:
        SignatureError, UnsupportedError: there is no such derivative on a GPU.
    """

    def __init__(self, context: Any, what: DerivativeCall, given: tuple[Any, ...]) -> None:
        self.what, self.task, self.given = what, what.task, given[: what.count]
        rest = list(given[what.count :])
        self.target_types = target_types(what.primal, what.task, rest.pop(0)) if what.has_targets else {}
        self.seed_type = rest.pop(0) if what.has_seed else None
        self.twin = context.numba_type(what.primal).dispatcher
        self.compiled = self.twin.compile_device(self.given)
        self.check()
        self.result_type = derivative_type(self.derivation, self.target_types)

    @cached_property
    def derivation(self) -> Derivation:
        """Derivation of a call in code for the CPU."""
        arguments = abi.arguments_of(self.what.primal.py_func, self.given)
        nothing: Any = SimpleNamespace(written=frozenset())
        return_type = self.compiled.signature.return_type
        function = inspect.unwrap(self.what.primal.py_func)
        return Derivation(self.task, self.given, self.given, arguments, arguments, return_type, nothing, function)

    @property
    def name(self) -> str:
        """Name of the differentiated function, for messages."""
        primal, name = self.what.primal, self.derivation.function.__qualname__
        while hasattr(primal, "primal"):
            primal, name = primal.primal, f"irad.{primal.kind} of {name}"
        return name

    # -------------------------------------------------------------------------------------------- checks

    def check(self) -> None:
        """Refuses what cannot be."""
        primal, derivation = self.what.primal, self.derivation
        check_arguments(primal, derivation.arguments, self.task)
        check_return(primal, derivation.return_type, self.task)
        check_targets(primal, derivation, self.target_types)
        for each in () if self.seed_type is None else seed_types_of_lanes(primal, self.seed_type, self.task):
            seeding.check_seed(primal.py_func.__qualname__, derivation.return_type, each)
        for argument in derivation.arguments:
            for leaf in argument.leaves:
                self._check_leaf(argument, leaf)
        for leaf in tree.returned_leaves(derivation.return_type):
            if leaf.kind not in (LeafKind.NUMBER, LeafKind.INERT) or isinstance(leaf.type, types.Buffer):
                raise self._refused(
                    f"returns {described(leaf.type)}",
                    "return numbers or tuples of numbers, and write arrays to an argument",
                    "device code cannot create arrays",
                )

    def _check_leaf(self, argument: Argument, leaf: Content) -> None:
        role = self.task.role_of(argument.position)
        if role is Role.CONST:
            return
        if leaf.kind not in (LeafKind.NUMBER, LeafKind.INERT, LeafKind.ARRAY):
            raise self._refused(
                f"takes {described(leaf.type)} as {argument.name}",
                "pass numbers, tuples of these, or arrays",
                "in device code these have derivatives",
            )
        if leaf.kind is LeafKind.ARRAY and role is Role.GRADIENT:
            name = argument.name
            raise self._refused(
                f"takes an array as {name}, and device code asks for its gradient as a new array",
                f"pass memory for it: (a) irad.value_and_grad_into(f)(out, {name}), with a local array as out, or (b) "
                f"irad.autodiff(irad.Reverse, f, irad.Duplicated({name}, shadow))",
                "device code cannot create arrays",
            )

    def _refused(self, what: str, remedy: str, reason: str) -> UnsupportedError:
        function = self.derivation.function
        return UnsupportedError(
            f"the derivative of {self.name} in device code: {self.name} {what}",
            remedy,
            reason,
            location=SourceLocation.of(function),
        )

    # -------------------------------------------------------------------------------------------- code

    @cached_property
    def wanted(self) -> WantedInside:
        """The derivative that the call asks the engine for."""
        derivation, has_shadow = self.derivation, self.task.is_forward or self.task.seed is not Seed.NONE
        kinds = [ParameterKind.SHADOW if has_shadow else ParameterKind.CONST]
        memory: list[MemoryType | None] = [abi.memory_of_return(derivation.return_type)]
        for argument in derivation.arguments:
            active = self.task.role_of(argument.position) is not Role.CONST
            for leaf in argument.leaves:
                for offset in range(layouts.width_of(leaf.type)):
                    kinds.append(kind_of_parameter(leaf, offset) if active else ParameterKind.CONST)
                    memory.append(abi.memory_of_parameter(leaf, offset, active=active))
        function = derivation.function
        return WantedInside(
            tuple(kinds),
            tuple(memory),
            self.task.mode,
            self.task.options,
            self.name,
            SourceLocation.of(function),
        )

    def lower(self, context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
        """Emits the call."""
        emit = Emit(context, builder)
        arguments, more = values[: self.what.count], list(values[self.what.count :])
        targets = target_values(builder, self.target_types, more.pop(0)) if self.what.has_targets else {}
        lanes = [self._lane(emit, each) for each in targets_of_lanes(builder, targets, self.task)]
        for lane in lanes:
            self._check_shapes(emit, arguments, lane)
            self._clear(emit, lane)
        if not self.task.is_forward:
            self._seed(emit, lanes, more)
        value = self._call(emit, arguments, lanes)
        return self._result(emit, value, lanes)

    def _lane(self, emit: Emit, targets: Mapping[int, tuple[Any, Any]]) -> _Lane:
        context, builder = emit.context, emit.builder
        memory = context.data_model_manager[self.derivation.return_type].get_return_type()
        shadow = cgutils.alloca_once(builder, memory)
        builder.store(cgutils.get_null_value(memory), shadow)
        return _Lane(targets, shadow, Cotangents(emit, self.derivation))

    def _arrays(self, emit: Emit, lane: _Lane) -> Iterator[tuple[Argument, Content, Any, Any]]:
        """The arrays that have a derivative, each with the memory for that and its type."""
        for argument, leaf in self.derivation.active_memory():
            yield argument, leaf, *memory_at(emit, *lane.targets[argument.position], leaf.path)

    def _seed(self, emit: Emit, lanes: Sequence[_Lane], more: list[Any]) -> None:
        """Makes the cotangent of the value."""
        builder = emit.builder
        if self.task.seed is Seed.ONE:
            for lane in lanes:
                seeding.store_unit(builder, lane.shadow, (0,) if self.task.has_aux else ())
        elif self.task.seed is Seed.GIVEN:
            for lane, (value, kind) in zip(
                lanes, seeds_of_lanes(builder, (more.pop(0), self.seed_type), self.task), strict=True
            ):
                _store_seed(emit, self.derivation.return_type, kind, value, lane.shadow, ())

    def _call(self, emit: Emit, arguments: Sequence[Value], lanes: Sequence[_Lane]) -> Any:
        """Emits the call of the function that is only declared; returns the primal's result."""
        context, builder = emit.context, emit.builder
        context.active_code_library.add_linking_library(self.compiled.library)
        compiled = self.compiled.fndesc
        convention = getattr(compiled, "call_conv", None) or context.call_conv  # numba-cuda has it at the function
        kind = convention.get_function_type(compiled.restype, compiled.argtypes)
        primal = cgutils.get_or_insert_function(builder.module, kind, compiled.mangled_name)
        given = [(types.voidptr, builder.bitcast(primal, _POINTER)), *zip(self.given, arguments, strict=True)]
        for lane in lanes:
            if self.wanted.kinds[0] is ParameterKind.SHADOW:
                given.append((types.voidptr, builder.bitcast(lane.shadow, _POINTER)))
            for _, _, array, _ in self._arrays(emit, lane):
                given.append((types.voidptr, builder.bitcast(array.data, _POINTER)))
        for lane in lanes:
            if self.task.is_forward:
                given += self._tangents(emit, lane)
            else:
                given += [(types.voidptr, builder.bitcast(p, _POINTER)) for p in lane.cotangents.pointers()]
        kinds, values = [kind for kind, _ in given], [value for _, value in given]
        result = self.derivation.return_type
        packer = context.get_arg_packer(kinds)
        memory = context.data_model_manager[result].get_return_type()
        callee_type = ir.FunctionType(ir.IntType(32), [memory.as_pointer(), *packer.argument_types])
        WANTED[self.wanted.symbol] = self.wanted
        told_apart = hashlib.sha256(str(callee_type).encode()).hexdigest()[:8]
        callee = cgutils.get_or_insert_function(builder.module, callee_type, f"{self.wanted.symbol}.{told_apart}")
        status, value = context.call_conv.call_function(builder, callee, result, kinds, values)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return value

    def _tangents(self, emit: Emit, lane: _Lane) -> Iterator[tuple[Any, Any]]:
        context, builder = emit.context, emit.builder
        for argument, leaf in self.derivation.active_numbers():
            value, kind = lane.targets[argument.position]
            for step in leaf.path:
                value, kind = builder.extract_value(value, step), kind.types[step]
            if kind == types.none:
                number: Any = cgutils.get_null_value(context.get_value_type(leaf.number))
            else:
                number = context.cast(builder, value, kind, leaf.number)
            yield leaf.number, number

    # -------------------------------------------------------------------------------------------- memory given

    def _clear(self, emit: Emit, lane: _Lane) -> None:
        """Zeros in the arrays that the derivative overwrites."""
        for argument, _, array, kind in self._arrays(emit, lane):
            if self.task.role_of(argument.position) is Role.INTO:
                _emit(emit, _clearing(kind.ndim), types.none(kind), (array._getvalue(),))

    def _check_shapes(self, emit: Emit, arguments: Sequence[Value], lane: _Lane) -> None:
        """Raises where the memory for a derivative is not laid out as its array is."""
        for argument, leaf, array, kind in self._arrays(emit, lane):
            own, own_type = memory_at(emit, arguments[argument.position], argument.type, leaf.path)
            is_fixed = own_type.layout == kind.layout in ("C", "F")
            code = _checking(kind.ndim, has_strides=not is_fixed)
            _emit(emit, code, types.none(own_type, kind), (own._getvalue(), array._getvalue()))

    # -------------------------------------------------------------------------------------------- results

    def _result(self, emit: Emit, value: Any, lanes: Sequence[_Lane]) -> Any:
        task = self.task
        if not task.is_forward:
            self._store_scalars(emit, lanes)
        if task.returns is Returns.VALUE:
            return value
        if task.is_forward:
            found = [self._tangent_of_value(emit, lane) for lane in lanes]
            derivative, kind = _packed(emit, found) if task.is_batched else found[0]
        else:
            columns = [self._gradients(emit, lane, number) for number, lane in enumerate(lanes)]
            if task.is_batched:
                columns = [[_packed(emit, each) for each in zip(*columns, strict=True)]]
            derivative, kind = columns[0][0] if task.single else _packed(emit, columns[0])
        value_type: Any = self.derivation.return_type
        held, aux = (value, value_type), []
        if task.has_aux:
            parts = [(emit.builder.extract_value(value, i), value_type.types[i]) for i in range(2)]
            aux = parts[1:]
            held = parts[0] if task.is_forward else held
        match task.returns:
            case Returns.GRADIENT:
                parts = [(derivative, kind), *aux]
            case Returns.VALUE_AND_GRADIENT:
                parts = [held, (derivative, kind), *(aux if task.is_forward else ())]
            case _:
                parts = [(derivative, kind), held, *(aux if task.is_forward else ())]
        return parts[0][0] if len(parts) == 1 else _packed(emit, parts, self.result_type)[0]

    def _tangent_of_value(self, emit: Emit, lane: _Lane) -> tuple[Any, Any]:
        """From the shadow of the memory that the value is returned through, with its type."""
        builder = emit.builder
        full: Any = self.derivation.return_type
        held = emit.context.get_returned_value(builder, full, builder.load(lane.shadow))
        if self.task.has_aux:
            held, full = builder.extract_value(held, 0), full.types[0]
        wanted = gradients.tangent_type(full)
        return _without_inert(emit, held, full, wanted), wanted

    def _gradients(self, emit: Emit, lane: _Lane, number: int) -> list[tuple[Any, Any]]:
        """The derivatives of one direction that are returned, with their types."""
        found = []
        for position in self.task.returned:
            kind = self.derivation.caller_arguments[position].type
            item_type = gradient_types_of(self.derivation, position, self.target_types)[number]

            def make(leaf: Content, wanted: Any, position: int = position) -> Any:
                if leaf.kind is LeafKind.ARRAY:
                    return memory_at(emit, *lane.targets[position], leaf.path)[0]._getvalue()
                return lane.cotangents.value(leaf, wanted)

            leaves = iter(self.derivation.arguments[position].leaves)
            found.append((structured(emit, kind, item_type, leaves, make), item_type))
        return found

    def _store_scalars(self, emit: Emit, lanes: Sequence[_Lane]) -> None:
        """Derivatives of numbers that go to arrays of one element."""
        builder = emit.builder
        for lane in lanes:
            for argument, leaf in self.derivation.active_numbers():
                if self.task.role_of(argument.position) is Role.INTO:
                    array, kind = memory_at(emit, *lane.targets[argument.position], leaf.path)
                    builder.store(lane.cotangents.value(leaf, kind.dtype), array.data)


def _packed(emit: Emit, parts: Sequence[tuple[Any, Any]], kind: Any = None) -> tuple[Any, Any]:
    kind = kind or types.BaseTuple.from_types(tuple(each for _, each in parts))
    return emit.context.make_tuple(emit.builder, kind, [value for value, _ in parts]), kind


def _without_inert(emit: Emit, value: Value, kind: Any, wanted: Any) -> Any:
    """A value with None in place of parts without a derivative."""
    context, builder = emit.context, emit.builder
    if isinstance(kind, types.BaseTuple):
        parts = [
            _without_inert(emit, builder.extract_value(value, i), item, its)
            for i, (item, its) in enumerate(zip(kind.types, wanted.types, strict=True))
        ]
        return context.make_tuple(builder, wanted, parts)
    return context.get_dummy_value() if wanted == types.none else value


def _store_seed(emit: Emit, kind: Any, seed_type: Any, seed: Any, shadow: Any, path: tuple[int, ...]) -> None:
    """Stores the cotangents of the numbers in a value."""
    builder = emit.builder
    if seed_type == types.none:
        return
    if isinstance(kind, types.BaseTuple):
        for i, (item, its) in enumerate(zip(kind.types, seed_type.types, strict=True)):
            part = builder.extract_value(seed, i)
            _store_seed(emit, item, its, part, shadow, (*path, i))
        return
    builder.store(emit.context.cast(builder, seed, seed_type, kind), seeding.place_of(builder, shadow, path))


def _emit(emit: Emit, code: Callable[..., Any], signature: Signature, values: Sequence[Value]) -> None:
    context, builder = emit.context, emit.builder
    compiled = context.compile_subroutine(builder, code, signature, caching=False)
    context.call_internal(builder, compiled.fndesc, signature, values)


def _clearing(ndim: int) -> Callable[..., Any]:
    """Code that makes all elements of an array zero."""
    lines = [f"{'    ' * (i + 1)}for i{i} in range(out.shape[{i}]):" for i in range(ndim)]
    index = ", ".join(f"i{i}" for i in range(ndim)) or "()"
    lines.append(f"{'    ' * (ndim + 1)}out[{index}] = 0")
    return function_from("clear", "def clear(out):\n" + "\n".join(lines) + "\n", "irad.inside", {})


def _checking(ndim: int, *, has_strides: bool) -> Callable[..., Any]:
    """Code that raises where an array and the memory for its derivative are not laid out alike."""
    parts = ["shape", "strides"] if has_strides else ["shape"]
    tests = [f"array.{part}[{i}] != memory.{part}[{i}]" for part in parts for i in range(ndim)] or ["False"]
    message = "the shadow of an array has another shape, or other strides"
    source = f"def check(array, memory):\n    if {' or '.join(tests)}:\n        raise ValueError({message!r})\n"
    return function_from("check", source, "irad.inside", {})
