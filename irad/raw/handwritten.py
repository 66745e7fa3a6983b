"""Derivatives written by hand, in the shape in which the engine calls pairs.

    double @f.irad1.augmented(ptr frame, ptr arena, double x)     calls f_augmented, keeps x and the tape in the frame
    void @f.irad1.reverse(ptr frame, ptr arena, double ct, ptr x_bar)     calls f_reverse, stores what it returns

Input   the derivative's module, in which the pair is declared; the functions that the module has for it.
Output  none; the pair is defined.

A shadow that an argument does not have is null: the argument is constant in that call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from irad.driver import ParameterKind, RuledFunctions
from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.module import Function, Module
from irad.ir.types import FloatType, PointerType, Type
from irad.ir.values import ConstantNull, Value, const_int, zero
from irad.passes.memory.record_layouts import scalars
from irad.passes.mode import AUGMENTED, REVERSE
from irad.raw.declared import Handwritten


def define_pair(module: Module, pair: RuledFunctions, functions: Handwritten) -> None:
    """Defines the two functions of a pair and the size of its frame.

    Raises:
        UnsupportedError: the function is used in a way that its derivative does not cover.
    """
    _Definition(module, pair, functions).run()


@dataclass(eq=False, slots=True)
class _Definition:
    module: Module
    pair: RuledFunctions
    functions: Handwritten
    places: list[tuple[Type, int]] = field(default_factory=list)
    size: int = 0

    def run(self) -> None:
        if self.pair.variant.result_has_shadow:
            raise UnsupportedError(
                f"{self.pair.primal} returns a pointer to active memory",
                "pass the memory as an argument",
                "a derivative written by hand does not return its shadow",
            )
        kept = [*self.values_of_augmented()]
        self.places = [(each.type, self.place(each.type)) for each in kept]
        tape = self.place(self.functions.tape) if self.functions.tape is not None else None
        self.define_augmented(tape)
        self.define_reverse(tape)
        frame = self.module.globals[self.pair.frame_size]
        frame.initializer = const_int(types.I64, -(-max(self.size, 1) // 64) * 64)
        frame.prefix = ("internal",)

    def place(self, type_: Type) -> int:
        """The offset of a value in the frame."""
        start = -(-self.size // types.alignment_of(type_)) * types.alignment_of(type_)
        self.size = start + types.size_of(type_)
        return start

    def values_of_augmented(self) -> Iterator[Value]:
        """The arguments of both functions of the module: each parameter, and after a pointer its shadow."""
        function = self.module.functions[self.pair.symbols[AUGMENTED]]
        count = len(self.functions.primal.params)
        shadows = iter(function.params[2 + count :])
        for param, kind in zip(function.params[2 : 2 + count], self.pair.variant.kinds, strict=True):
            yield param
            if isinstance(param.type, PointerType):
                yield next(shadows) if kind is ParameterKind.SHADOW else ConstantNull(param.type)

    def define_augmented(self, tape: int | None) -> None:
        function = self.module.functions[self.pair.symbols[AUGMENTED]]
        build = Builder(function.add_block("entry"))
        values = list(self.values_of_augmented())
        made = build.call(self.declared(self.functions.augmented), values)
        frame = function.params[0]
        for value, (_, offset) in zip(values, self.places, strict=True):
            build.store(value, build.byte_offset(frame, offset))
        result: Value | None = made
        if tape is not None:
            has_result = function.function_type.result is not types.VOID
            build.store(build.extract_value(made, 0) if has_result else made, build.byte_offset(frame, tape))
            result = build.extract_value(made, 1) if has_result else None
        build.ret(result if function.function_type.result is not types.VOID else None)

    def define_reverse(self, tape: int | None) -> None:
        function = self.module.functions[self.pair.symbols[REVERSE]]
        build = Builder(function.add_block("entry"))
        frame = function.params[0]
        rest: list[Value] = [*function.params[2:]]
        values: list[Value] = [build.load(kind, build.byte_offset(frame, offset)) for kind, offset in self.places]
        result = self.functions.primal.function_type.result
        if isinstance(result, FloatType):
            values.append(rest.pop(0) if self.pair.variant.result_active else zero(result))
        if tape is not None and self.functions.tape is not None:
            values.append(build.load(self.functions.tape, build.byte_offset(frame, tape)))
        returned = build.call(self.declared(self.functions.reverse), values)
        self.hand_out(build, function, returned, rest)
        build.ret()

    def hand_out(self, build: Builder, function: Function, returned: Value, slots: list[Value]) -> None:
        """Stores the derivatives with respect to the active parameters."""
        if returned.type is types.VOID:
            return
        packed = Builder.at_start(function.entry).alloca(returned.type, align=16)
        build.store(returned, packed)
        kinds = self.pair.variant.kinds
        numbers = [i for i, p in enumerate(self.functions.primal.params) if isinstance(p.type, FloatType)]
        for (offset, kind), index in zip(scalars(returned.type), numbers, strict=True):
            if kinds[index] is ParameterKind.ACTIVE:
                build.store(build.load(kind, build.byte_offset(packed, offset)), slots.pop(0))

    def declared(self, function: Function) -> Function:
        """A function of the original module, declared in this one."""
        return self.module.declare(str(function.name), function.function_type)
