"""The function that takes the place of a call for a derivative.

    double @irad.autodiff.0(double %x)                         of  double __enzyme_autodiff(f, x)
    void @irad.autodiff.1(ptr %x, ptr %x.shadow, i32 %n)       of  __enzyme_autodiff(f, enzyme_dup, x, dx, n)
    double @irad.fwddiff.2(double %x, double %dx)              of  double __enzyme_fwddiff(f, x, dx)

Input   the derivative's module, the call, the derivative.
Output  the function, added to the module: it takes what the call passes, markers aside, and returns what it returns.
Method  frame and tape come from the thread's arena; the augmented primal runs, the reverse, then the cotangents of the
        `out` arguments are laid out in memory as C lays out a structure of them (where there are several directions,
        those of each argument one after the other), and read as the type that is returned. In forward mode the one
        function runs, and the tangent of the result is returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from irad.backend.runtime.support import STOP_SYMBOL
from irad.driver import Derivative
from irad.errors import SignatureError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite, Invoke, LandingPad
from irad.ir.module import Block, Function, Module
from irad.ir.types import PTR, VOID, FloatType, FunctionType, IntType, PointerType, Type, function_type
from irad.ir.values import ConstantNull, Value, const_float, const_int, zero
from irad.passes.memory.record_layouts import scalars
from irad.passes.mode import AUGMENTED, REVERSE, TANGENT
from irad.raw.arguments import MarkedArgument
from irad.raw.calls import AutodiffCall
from irad.raw.markers import ArgumentRole
from irad.raw.normal_form.by_value import returned_structure
from irad.raw.program import C, returns_numbers
from irad.records import dataclass
from irad.runtime_layouts import UNWINDING

PERSONALITY: Final = "__gxx_personality_v0"
_FRAME_ALIGNMENT: Final = 64
_NUMBER: Final = 8  # bytes
_EXHAUSTED: Final = const_int(types.I32, C.exhausted)


@dataclass(frozen=True, slots=True)
class ReturnLayout:
    """Layout of the returned numbers in memory: type and offset of each."""

    parts: tuple[tuple[Type, int], ...]


def result_of(asked: AutodiffCall) -> ReturnLayout:
    """Layout in which the cotangents of the `out` arguments are returned, or in forward mode the tangent of the result.

    Raises:
        SignatureError: the result type of the call has no room for them.
    """
    if asked.is_forward:
        return ReturnLayout(tuple(_tangent_parts(asked)))
    parts = _cotangent_parts(asked)
    returned = asked.call.type
    if asked.result is None and parts and not _has_room(returned, parts):
        wanted = " and ".join(str(kind) for kind, _ in parts)
        raise SignatureError(
            f"the call for the derivative of {asked.primal.name} returns {returned}, its arguments' derivatives are "
            f"{wanted}",
            f"(a) declare a function whose name contains __irad_autodiff and that returns {_spell(parts)}, or (b) mark "
            "arguments whose derivative is not wanted enzyme_const",
            "the call returns the derivative with respect to each number among the arguments",
        )
    return ReturnLayout(tuple(parts))


def _cotangent_parts(asked: AutodiffCall) -> list[tuple[Type, int]]:
    parts: list[tuple[Type, int]] = []
    end = 0
    for argument, param in zip(asked.arguments, asked.primal.params, strict=True):
        if argument.role is ArgumentRole.OUT:
            size = types.size_of(param.type)
            start = -(-end // size) * size
            end = start + size * asked.mode.width
            parts.extend((param.type, place) for place in range(start, end, size))
    return parts


def _tangent_parts(asked: AutodiffCall) -> list[tuple[Type, int]]:
    """The numbers of the result, after those of the value where that is returned, too.

    Raises:
        SignatureError: the result has none, or the call returns something else.
    """
    result = asked.primal.function_type.result
    structure = _structure_of_result(asked)
    if structure is not None:
        result = structure
    elif not returns_numbers(result):
        if asked.returns_primal or (isinstance(result, PointerType) and asked.call.type is not VOID):
            raise SignatureError(
                f"{asked.primal.name} returns {'no number' if result is VOID else result}, which has no tangent to "
                "return",
                "(a) return a number, or a structure of numbers, or (b) write the results to memory that is passed "
                "with its shadow, and make the call one that returns nothing",
                "the call returns the tangent of the result",
            )
        return []
    size, count = types.size_of(result), asked.mode.width + asked.returns_primal
    parts = [(kind, size * number + offset) for number in range(count) for offset, kind in scalars(result)]
    given = returned_structure(asked.call.argument_attributes[0], asked.module)
    returned = asked.call.type if given is None else given
    if not _has_room(returned, parts):
        wanted = " and ".join(str(kind) for kind, _ in parts)
        raise SignatureError(
            f"the call for the tangent of {asked.primal.name} returns {_described(returned)}, not {wanted}",
            f"declare a function whose name contains __irad_fwddiff and that returns {_spell(parts)}",
            "the call returns the tangent of the result, with enzyme_primal_return after the value",
        )
    return parts


def _structure_of_result(asked: AutodiffCall) -> Type | None:
    """The structure that the function returns through a pointer, if it does."""
    if not asked.arguments or not asked.arguments[0].is_result:
        return None
    return returned_structure(asked.primal.params[0].attributes, asked.module)


def _described(type_: Type) -> str:
    return "nothing" if type_ is VOID else " and ".join(str(kind) for _, kind in scalars(type_))


def _has_room(returned: Type, parts: Sequence[tuple[Type, int]]) -> bool:
    """True if a returned value holds just these numbers: C passes two floats as a vector, structures as they are."""
    return returned is not VOID and [(kind, at) for at, kind in scalars(returned)] == list(parts)


def _spell(parts: Sequence[tuple[Type, int]]) -> str:
    kinds = [str(kind) for kind, _ in parts]
    return kinds[0] if len(kinds) == 1 else "a structure of " + ", ".join(kinds)


def wrapper_type(asked: AutodiffCall) -> FunctionType:
    """The type of the function that takes the place of the call."""
    params: list[Type] = [PTR] if asked.result is not None else []
    params.extend(value.type for argument in asked.arguments for value in _passed(argument))
    return function_type(asked.call.type, params)


def operands_of(asked: AutodiffCall) -> list[Value]:
    """Arguments that the call passes to it."""
    values = [asked.result] if asked.result is not None else []
    return [*values, *(value for argument in asked.arguments for value in _passed(argument))]


def _passed(argument: MarkedArgument) -> list[Value]:
    """Values that the call passes for an argument."""
    if argument.is_result:
        return []
    distance = [] if argument.distance is None else [argument.distance]
    return [argument.value, *argument.shadows, *distance]


def add_wrapper(module: Module, asked: AutodiffCall, derivative: Derivative, name: str, *, catches: bool) -> Function:
    """Adds the function to the module of the derivative.

    Args:
        module: module of the derivative.
        asked: the call.
        derivative: the requested derivative.
        name: name of the function.
        catches: whether C++ exceptions may come out of the derivative.
    """
    function = module.define(name, wrapper_type(asked))
    wrapper = _Wrapper(module, asked, derivative, function, Builder(function.add_block("entry")))
    if catches:
        wrapper.add_pad()
    wrapper.emit()
    return function


@dataclass(eq=False, slots=True)
class _Wrapper:
    module: Module
    asked: AutodiffCall
    derivative: Derivative
    function: Function
    build: Builder
    pad: Block | None = None

    def add_pad(self) -> None:
        """Adds the block where exceptions end: clean-ups of the derivative have not run, so the process ends."""
        personality = self.module.declare(PERSONALITY, function_type(types.I32, [], variadic=True))
        self.function.operands = (("personality", personality),)
        self.pad = self.function.add_block("exception")
        build = Builder(self.pad)
        caught = types.struct_type([PTR, types.I32])
        build.insert(LandingPad(caught, operands=[ConstantNull(PTR)], clauses=("catch",)))
        stop = self.runtime(STOP_SYMBOL, function_type(VOID, [types.I32]))
        build.call(stop, [const_int(types.I32, UNWINDING)])
        build.unreachable()

    def emit(self) -> None:
        layout = result_of(self.asked)
        values, lanes = self.parameters()
        result = self.asked.primal.function_type.result
        size = types.size_of(result) if returns_numbers(result) else _NUMBER
        value, value_shadows = self.place(size), [self.place(size) for _ in lanes]
        # entry parameters: the place of the value, then those of the primal
        flat = [value, *(self.converted(v, p.type) for v, p in zip(values, self.asked.primal.params, strict=True))]
        twins = [[place, *lane] for place, lane in zip(value_shadows, lanes, strict=True)]
        arena = self.build.call(self.runtime("irad.arena_open", function_type(PTR, [])), [])
        self.stop_if(self.build.icmp("eq", arena, ConstantNull(PTR)), _EXHAUSTED)
        given = [*flat, *(lane[i] for lane in twins for i in self.derivative.shadows)]
        symbols = self.derivative.symbols
        if self.asked.is_forward:
            self.run(symbols[TANGENT], [ConstantNull(PTR), arena, *given, *self.tangents(lanes)], arena)
            found = [value, *value_shadows] if self.asked.returns_primal else value_shadows
            offsets = [offset for offset, _ in scalars(result)] if returns_numbers(result) else []
            slots = [self.build.byte_offset(place, offset) for place in found for offset in offsets]
        else:
            if isinstance(result, FloatType):
                for place in value_shadows:
                    self.build.store(const_float(result, 1.0), place)
            slots = [self.place() for _ in layout.parts]
            width = len(lanes)  # the sweep takes the places of one direction after the other
            outs = [slot for lane in range(width) for slot in slots[lane::width]]
            frame = self.frame(arena)
            self.run(symbols[AUGMENTED], [frame, arena, *given], arena)
            self.run(symbols[REVERSE], [frame, arena, *outs], arena)
        self.build.call(self.runtime("irad.arena_close", function_type(VOID, [PTR])), [arena])
        self.give_back(layout, slots)

    def parameters(self) -> tuple[list[Value], list[list[Value]]]:
        """The arguments, and in each direction their shadows or tangents, null where there is none."""
        rest = list(self.function.params[1 if self.asked.result is not None else 0 :])
        values: list[Value] = []
        lanes: list[list[Value]] = [[] for _ in range(self.asked.mode.width)]
        for argument in self.asked.arguments:
            if argument.is_result:
                value, shadows = self.returned_memory()
            else:
                value = rest.pop(0)
                shadows = [rest.pop(0) for _ in argument.shadows] or [zero(value.type)] * len(lanes)
                if argument.distance is not None:
                    given = rest.pop(0)
                    distance = given if given.type is types.I64 else self.build.sext(given, types.I64)
                    steps = (self.build.mul(distance, const_int(types.I64, lane)) for lane in range(len(lanes)))
                    shadows = [self.build.byte_offset(shadows[0], step) for step in steps]
            values.append(value)
            for lane, shadow in zip(lanes, shadows, strict=True):
                lane.append(shadow)
        return values, lanes

    def returned_memory(self) -> tuple[Value, list[Value]]:
        """Memory of a structure that is returned through a pointer, and of its tangents, which start as zero."""
        structure = _structure_of_result(self.asked)
        assert structure is not None
        size, returned = types.size_of(structure), self.function.params[0]
        before, width = int(self.asked.returns_primal), self.asked.mode.width
        value = returned if before else self.build.alloca(_words(size), align=16)
        shadows = [self.build.byte_offset(returned, size * (before + lane)) for lane in range(width)]
        nothing, no = const_int(types.I8, 0), const_int(types.I1, 0)
        whole = const_int(types.I64, size * width)
        self.build.intrinsic("llvm.memset.p0.i64", VOID, [shadows[0], nothing, whole, no])
        return value, shadows

    def tangents(self, lanes: Sequence[Sequence[Value]]) -> Iterator[Value]:
        """Tangents of the numbers among the arguments, in one direction after the other."""
        for given in lanes:
            for argument, tangent, param in zip(self.asked.arguments, given, self.asked.primal.params, strict=True):
                if argument.has_tangent:
                    yield self.converted(tangent, param.type)

    def place(self, size: int = _NUMBER) -> Value:
        """Zeroed bytes on the stack, for a number if nothing else is said."""
        place = self.build.alloca(_words(size), align=16)
        self.build.store(zero(_words(size)), place)
        return place

    def converted(self, value: Value, wanted: Type) -> Value:
        """An argument as the primal takes it: variable arguments of C are promoted to int and double."""
        match value.type, wanted:
            case (FloatType(bits=given), FloatType(bits=taken)) if given != taken:
                cast = self.build.fptrunc if given > taken else self.build.fpext
                return cast(value, wanted)
            case (IntType(bits=given), IntType(bits=taken)) if given > taken:
                return self.build.trunc(value, wanted)
            case _:
                return value

    def frame(self, arena: Value) -> Value:
        """Memory for what lives from one sweep to the other."""
        size = const_int(types.I64, max(self.derivative.frame_size, _FRAME_ALIGNMENT))
        allocate = self.runtime("irad.arena_alloc", function_type(PTR, [PTR, types.I64]))
        frame = self.build.call(allocate, [arena, size])
        self.stop_if(self.build.icmp("eq", frame, ConstantNull(PTR)), _EXHAUSTED)
        return frame

    def run(self, symbol: str, values: list[Value], arena: Value) -> None:
        """Calls a sweep; the process ends if it could not go on."""
        sweep = self.module.functions[symbol]
        status: Value = self.call(sweep, values)
        if sweep.function_type.result is VOID:
            failed: Value = self.build.call(self.runtime("irad.arena_failed", function_type(types.I1, [PTR])), [arena])
            reason = self.runtime("irad.arena_reason", function_type(types.I32, [PTR, types.I32, types.I32]))
            status = self.build.call(reason, [arena, _EXHAUSTED, const_int(types.I32, C.no_derivative)])
        else:
            failed = self.build.icmp("ne", status, const_int(types.I32, 0))
        self.stop_if(failed, status)

    def call(self, sweep: Function, values: list[Value]) -> CallSite:
        """A call that exceptions do not leave."""
        if self.pad is None:
            return self.build.call(sweep, values)
        following = self.function.add_block("run")
        call = Invoke(
            sweep.function_type.result,
            operands=[*values, sweep],
            function_type=sweep.function_type,
            argument_attributes=((),) * len(values),
            targets=[following, self.pad],
        )
        self.build.insert(call)
        self.build = Builder(following)
        return call

    def stop_if(self, failed: Value, status: Value) -> None:
        stop, rest = self.function.add_block("stop"), self.function.add_block("run")
        self.build.cond_br(failed, stop, rest)
        leave = Builder(stop)
        leave.call(self.runtime(STOP_SYMBOL, function_type(VOID, [types.I32])), [status])
        leave.unreachable()
        self.build = Builder(rest)

    def give_back(self, layout: ReturnLayout, slots: list[Value]) -> None:
        """Returns the cotangents."""
        if self.asked.result is not None:
            if slots:  # a tangent that the function itself returns through a pointer is there already
                self.lay_out(layout, slots, self.function.params[0])
            self.build.ret()
            return
        returned = self.asked.call.type
        if returned is VOID:
            self.build.ret()
        elif not layout.parts:
            self.build.ret(zero(returned))
        else:
            packed = Builder.at_start(self.function.entry).alloca(returned, align=16)
            self.lay_out(layout, slots, packed)
            self.build.ret(self.build.load(returned, packed))

    def lay_out(self, layout: ReturnLayout, slots: list[Value], target: Value) -> None:
        for (kind, offset), slot in zip(layout.parts, slots, strict=True):
            self.build.store(self.build.load(kind, slot), self.build.byte_offset(target, offset))

    def runtime(self, symbol: str, type_: FunctionType) -> Function:
        return self.module.declare(symbol, type_)


def _words(size: int) -> Type:
    """An array with room for ``size`` bytes."""
    return types.array_type(-(-size // _NUMBER), types.I64)
