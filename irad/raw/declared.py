"""Declarations of a module about its functions: which carry no derivative, and which have a hand-written derivative.

    __attribute__((annotate("enzyme_inactive"))) void log_it(double);
    void *__enzyme_inactivefn[] = {(void *)log_it};
    void *__enzyme_register_gradient_f[] = {(void *)f, (void *)f_augmented, (void *)f_reverse};

Input   a module.
Output  `Declared`.
Method  annotations, attributes and variables with those names (or with `irad` in the place of `enzyme`) are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Final

from irad.driver import ParameterKind, RuledFunctions
from irad.errors import SignatureError, UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.module import Function, Module
from irad.ir.types import FloatType, IntType, PointerType, StructType, Type, holds_floats
from irad.ir.values import (
    ConstantAggregate,
    ConstantExpression,
    ConstantNull,
    ConstantString,
    GlobalVariable,
    Value,
    const_int,
    zero,
)
from irad.passes.analysis.summary import summarise
from irad.passes.callees import effects_of
from irad.passes.memory.objects import may_hold_pointer
from irad.passes.memory.record_layouts import scalars
from irad.passes.mode import AUGMENTED, REVERSE
from irad.raw.symbols import expanded, named_by
from irad.records import dataclass
from irad.ruleset.interface import Effects, Inactive, PairRule, Rule
from irad.ruleset.registry import Registry

_INACTIVE: Final = ("enzyme_inactive", "irad_inactive")
_INACTIVE_TABLES: Final = ("__enzyme_inactivefn", "__irad_inactivefn")
_GRADIENTS: Final = ("__enzyme_register_gradient", "__irad_register_gradient")
_HOW: Final = "see irad opt --help for the parameters of the two functions"
_WHY: Final = "the derivative calls these two functions instead of the original one, with these types"


@dataclass(frozen=True, slots=True)
class Handwritten:
    """A function with its augmented primal and its reverse as the module has them.

    Attributes:
        tape: type of the tape that the first passes to the second; None: nothing.
    """

    primal: Function
    augmented: Function
    reverse: Function
    tape: Type | None


@dataclass(frozen=True, slots=True)
class Declared:
    """Declarations of a module, by symbol.

    Attributes:
        inactive: functions without derivative, and their effects on memory where their code shows these.
        handwritten: derivatives, by symbol of the primal.
    """

    inactive: dict[str, Effects | None]
    handwritten: dict[str, Handwritten]

    def rules(self) -> tuple[Rule, ...]:
        """Rules for what the module declares."""
        why = "the module declares it inactive"
        inactive = (Inactive((name,), why, effects, name) for name, effects in self.inactive.items())
        return (*inactive, *(PairRule((name,), name, 0) for name in self.handwritten))

    def symbols(self) -> frozenset[str]:
        """The functions that stay calls."""
        return frozenset((*self.inactive, *self.handwritten))


def read_declared(module: Module, registry: Registry) -> Declared:
    """Reads what a module declares.

    Args:
        module: it.
        registry: the rules of libraries.

    Raises:
        SignatureError: a derivative does not fit its function.
    """
    inactive = dict.fromkeys((*_annotated(module), *_attributed(module), *_listed(module)))
    handwritten = {str(each.primal.name): each for each in _registered(module)}
    known = {name: _effects(module.functions[name], registry) for name in inactive if name not in handwritten}
    return Declared(known, handwritten)


def _effects(function: Function, registry: Registry) -> Effects | None:
    """Effects of a function on the memory of its arguments; None where its code does not show them."""
    result = function.function_type.result
    is_replaceable = any(word in ("weak", "linkonce") for word in function.prefix)
    if function.is_declaration or is_replaceable or (may_hold_pointer(result) and not isinstance(result, IntType)):
        return None
    given, function.attributes = function.attributes, ()
    summarise(function, {}, registry)
    effects, function.attributes = effects_of(function), given
    return effects


def _annotated(module: Module) -> Iterator[str]:
    table = module.globals.get("llvm.global.annotations")
    if table is not None and isinstance(table.initializer, ConstantAggregate):
        for entry in table.initializer.elements:
            if isinstance(entry, ConstantAggregate) and _text(entry.elements[1]) in _INACTIVE:
                yield from (str(f.name) for f in _functions(entry.elements[0]))


def _attributed(module: Module) -> Iterator[str]:
    for name, function in module.functions.items():
        if any(word.strip('"').split('"')[0] in _INACTIVE for word in expanded(function, module)):
            yield name


def _listed(module: Module) -> Iterator[str]:
    for name, variable in module.globals.items():
        if any(each in name for each in _INACTIVE_TABLES) and variable.initializer is not None:
            yield from (str(f.name) for f in _functions(variable.initializer))


def _registered(module: Module) -> Iterator[Handwritten]:
    for name, variable in module.globals.items():
        if any(each in name for each in _GRADIENTS):
            found = list(_functions(variable.initializer)) if variable.initializer is not None else []
            if len(found) != 3:
                raise SignatureError(
                    f"{name} holds {len(found)} functions that are known when it is compiled, not three",
                    "make it an array of (void *)function, (void *)augmented, (void *)reverse",
                    "the three belong together: the function, its forward sweep and its reverse sweep",
                )
            yield _checked(*found)


def _functions(value: Value) -> Iterator[Function]:
    return (each for each in named_by(value) if isinstance(each, Function))


def _text(value: Value) -> str | None:
    while isinstance(value, ConstantExpression) and value.operands:
        value = value.operands[0]
    content = value.initializer if isinstance(value, GlobalVariable) else None
    return content.data.rstrip(b"\0").decode("utf-8", "replace") if isinstance(content, ConstantString) else None


# ------------------------------------------------------------------------------------------------ signatures


def with_shadows(primal: Function) -> list[Type]:
    """The parameters of a function with a shadow after each pointer."""
    return [each for p in primal.params for each in ([p.type] * (2 if isinstance(p.type, PointerType) else 1))]


def _checked(primal: Function, augmented: Function, reverse: Function) -> Handwritten:
    """The derivative, if it fits."""
    result = primal.function_type.result
    if not isinstance(result, FloatType) and result is not types.VOID:
        raise SignatureError(
            f"{primal.name} returns {result}",
            "supply derivatives of functions that return a number",
            "the reverse function takes the cotangent of the result: one number, or none",
        )
    for number, param in enumerate(primal.params, 1):
        by_value = any(word.startswith(("byval", "sret")) for word in param.attributes)
        if by_value or (holds_floats(param.type) and not isinstance(param.type, FloatType)):
            raise SignatureError(
                f"argument {number} of {primal.name}, which has a registered derivative, is a structure by value",
                "supply derivatives of functions that take numbers and pointers",
                "there is no convention for where the shadow of such a structure goes",
            )
    given = with_shadows(primal)
    taken = [*given, *([result] if isinstance(result, FloatType) else [])]
    got = [param.type for param in reverse.params]
    tape = got[-1] if len(got) == len(taken) + 1 else None
    if got[: len(taken)] != taken or len(got) - (tape is not None) != len(taken):
        wanted = ", ".join(map(str, taken))
        raise SignatureError(
            f"{reverse.name}, the reverse of {primal.name}, does not take ({wanted}), and then perhaps the tape",
            _HOW,
            _WHY,
        )
    if [param.type for param in augmented.params] != given:
        raise SignatureError(
            f"{augmented.name}, the augmented {primal.name}, does not take ({', '.join(map(str, given))})",
            _HOW,
            _WHY,
        )
    _check_results(primal, augmented, reverse, tape)
    return Handwritten(primal, augmented, reverse, tape)


def _check_results(primal: Function, augmented: Function, reverse: Function, tape: Type | None) -> None:
    result = primal.function_type.result
    parts = [each for each in (tape, result) if each is not None and each is not types.VOID]
    made = augmented.function_type.result
    single = parts[0] if parts else types.VOID
    fits = made is single if len(parts) < 2 else isinstance(made, StructType) and list(made.elements) == parts
    if not fits:
        raise SignatureError(
            f"{augmented.name}, the augmented {primal.name}, returns {made}, not "
            + (" and ".join(map(str, parts)) or "nothing"),
            "return the tape, if there is one, followed by what the function returns",
            _WHY,
        )
    numbers = [param.type for param in primal.params if isinstance(param.type, FloatType)]
    returned = reverse.function_type.result
    if [kind for _, kind in scalars(returned) if returned is not types.VOID] != numbers:
        raise SignatureError(
            f"{reverse.name}, the reverse of {primal.name}, returns {returned}, not "
            + (" and ".join(map(str, numbers)) or "nothing"),
            "return the derivative with respect to each floating-point parameter, several in a structure",
            _WHY,
        )


# Hand-written derivatives, in the shape in which the engine calls pairs.
#
#     double @f.irad1.augmented(ptr frame, ptr arena, double x)     calls f_augmented, keeps x and the tape in the frame
#     void @f.irad1.reverse(ptr frame, ptr arena, double ct, ptr x_bar)     calls f_reverse, stores what it returns
#
# Input   the derivative's module, in which the pair is declared; the functions that the module has for it.
# Output  none; the pair is defined.
#
# A shadow that an argument does not have is null: the argument is constant in that call.


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
                "a hand-written derivative does not return its shadow",
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
