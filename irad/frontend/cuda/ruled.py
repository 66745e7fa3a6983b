"""Calls of device functions that have a rule with functions of its own.

Input   a device function, the types of its arguments, what `irad.rules` knows about it.
Output  LLVM code of a call: that of the function itself, that of the augmented primal, and the operation `ruled` of the
        dialect (`irad.rules.cuda.ruled`), which gives the former until a derivative decides; beside it the reverse and
        the forward as functions of LLVM's own convention.
Limit   numbers; a tape of numbers, in tuples or not. Others are refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types
from numba.cuda.extending import intrinsic

from irad.errors import UnsupportedError
from irad.frontend.cuda.rule_functions import plain_function
from irad.frontend.custom import catalogue
from irad.frontend.generated import function_from
from irad.rules.cuda.ruled import FROM_BODY, PART, RULED

_SUFFIXES: Final = {types.float32: "f32", types.float64: "f64"}
_POINTER: Final = ir.IntType(8).as_pointer()


def ruled(function: Any, plain: Any, make: Callable[..., Any], names: Sequence[str]) -> Any:
    """A function that calls another one by its rule.

    Args:
        function: the dispatcher that has the rule.
        plain: one for the same function, without the rule.
        make: of a Python function and options a dispatcher of a device function.
        names: of parameters.
    """

    def typed(context: Any, given: tuple[Any, ...]) -> Any:
        given = tuple(map(types.unliteral, given))
        rule = catalogue.find(function, given)
        if rule is None:
            return _called(plain.compile_device(given))
        return _Call(function, rule, plain, make, given).typed()

    listing = ", ".join(names)
    scope = {"typed": typed}
    apply = function_from(
        "apply", f"def apply(context, {listing}):\n    return typed(context, ({listing},))\n", "", scope
    )
    source = f"def ruled({listing}):\n    return apply({listing})\n"
    return function_from("ruled", source, f"irad.rules of {catalogue.name_of(function)}", {"apply": intrinsic(apply)})


def _called(compiled: Any) -> Any:
    """A call of a compiled function, as an intrinsic has it."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(context, builder, compiled, arguments)

    return compiled.signature, lower


def _call(context: Any, builder: Any, compiled: Any, arguments: Sequence[Any]) -> Any:
    """Of a compiled function in a function of Numba's convention: what it raises is passed on."""
    context.active_code_library.add_linking_library(compiled.library)
    return context.call_internal(builder, compiled.fndesc, compiled.signature, arguments)


@dataclass
class _Call:
    """A call for given types of arguments."""

    function: Any
    rule: catalogue.CustomRule
    plain: Any
    make: Callable[..., Any]
    given: tuple[Any, ...]

    def typed(self) -> Any:
        """What it is typed as, and what lowers it."""
        own = self.plain.compile_device(self.given)
        result = own.signature.return_type
        self.check(result)
        active = [type_ in _SUFFIXES and i not in self.rule.inactive_arguments for i, type_ in enumerate(self.given)]
        if self.rule.inactive is not None:
            raise self.refused("is declared inactive for some types of arguments only")
        augmented = reverse = forward = None
        tape: Any = types.none
        if self.rule.is_for_reverse:
            augmented = self.compiled("augmented_primal", active, self.given)
            returned = augmented.signature.return_type
            if not isinstance(returned, types.BaseTuple) or len(returned) != 2:
                raise self.refused("has an augmented primal that returns no AugmentedReturn")
            tape = returned[1]
            list(self.leaves(tape))
            reverse = self.compiled("reverse", active, (result, tape, *self.given))
        if self.rule.is_for_forward:
            tangents = [type_ for type_, on in zip(self.given, active, strict=True) if on]
            forward = self.compiled("forward", active, (*self.given, *tangents))

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = made = _call(context, builder, own, arguments)
            kept: Any = None
            if augmented is not None:
                packed = _call(context, builder, augmented, arguments)
                made, kept = cgutils.unpack_tuple(builder, packed)
                made = context.cast(builder, made, augmented.signature.return_type[0], result)
            saved = list(self.flat(builder, tape, kept))
            parts = [
                _POINTER(None) if reverse is None else self.reverse(context, builder, reverse, active, tape),
                _POINTER(None) if forward is None else self.forward(context, builder, forward, active),
            ]
            operands = [value, made, *parts, *arguments, *saved]
            return builder.call(self.operation(builder.module, operands), operands)

        return result(*self.given), lower

    # -------------------------------------------------------------------------------------------- checks

    def check(self, result: Any) -> None:
        """Refuses what is not about numbers, and rules of kinds that kernels do not know."""
        for type_ in self.given:
            if not isinstance(type_, types.Number | types.Boolean) or isinstance(type_, types.Complex):
                raise self.refused(f"is called with {type_}")
        if result not in _SUFFIXES:
            raise self.refused(f"returns {result}")
        if "build_rule" in self.rule.parts or self.rule.is_imported:
            raise self.refused("has a rule that is built for each call, or Python code")
        if self.rule.batched and not self.rule.is_easy:
            raise self.refused("has a rule for several directions at once")

    def refused(self, what: str) -> UnsupportedError:
        """An error that names the function."""
        return UnsupportedError(
            f"the device function {self.rule.name} has a rule that kernels cannot use: it {what}",
            "let it take numbers and return one, with functions for one direction; or leave out the rule",
            "in a kernel the functions of a rule are compiled as functions of numbers",
            location=catalogue.place_of(self.rule.target),
        )

    def compiled(self, kind: str, active: Sequence[bool], given: tuple[Any, ...]) -> Any:
        """Numba's compile result of a function of the rule."""
        replaced = {id(each): self.plain for each in (self.function, getattr(self.function, "py_func", None))}
        part = plain_function(self.rule.part(kind), kind, self.rule.name, active, replaced)
        return self.make(part, {}).compile_device(given)

    # -------------------------------------------------------------------------------------------- tapes

    def leaves(self, type_: Any) -> Iterator[Any]:
        """The numbers of a tape."""
        if isinstance(type_, types.BaseTuple):
            for each in type_:
                yield from self.leaves(each)
        elif isinstance(type_, types.Number | types.Boolean) and not isinstance(type_, types.Complex):
            yield type_
        elif type_ != types.none:
            raise self.refused(f"keeps {type_} on its tape")

    def flat(self, builder: Any, type_: Any, value: Any) -> Iterator[Any]:
        """Their values."""
        if isinstance(type_, types.BaseTuple):
            for index, each in enumerate(type_):
                yield from self.flat(builder, each, builder.extract_value(value, index))
        elif type_ != types.none:
            yield value

    def packed(self, context: Any, builder: Any, type_: Any, rest: Iterator[Any]) -> Any:
        """A tape of its values."""
        if isinstance(type_, types.BaseTuple):
            parts = [self.packed(context, builder, each, rest) for each in type_]
            return context.make_tuple(builder, type_, parts)
        return context.get_dummy_value() if type_ == types.none else next(rest)

    # -------------------------------------------------------------------------------------------- LLVM functions

    def reverse(self, context: Any, builder: Any, compiled: Any, active: Sequence[bool], tape: Any) -> Any:
        """(cotangent, arguments…, tape…) → {cotangents of the floats}."""
        result, count = compiled.signature.args[0], len(self.given)
        wanted = [type_ for type_ in self.given if type_ in _SUFFIXES]
        given = [result, *self.given, *self.leaves(tape)]
        function, inside = self.begin(context, builder, "reverse", given, wanted)
        cotangent, *rest = function.args
        kept = self.packed(context, inside, tape, iter(rest[count:]))
        found = self.run(context, inside, compiled, [cotangent, kept, *rest[:count]])
        returned = compiled.signature.return_type
        if not isinstance(returned, types.BaseTuple) or len(returned) != count:
            raise self.refused(f"has a reverse that returns {returned}, not {count} cotangents in a tuple")
        parts = zip(cgutils.unpack_tuple(inside, found), returned, self.given, active, strict=True)
        made = [self.number(context, inside, *part) for part in parts if part[2] in _SUFFIXES]
        self.end(inside, function, made)
        return builder.bitcast(function, _POINTER)

    def forward(self, context: Any, builder: Any, compiled: Any, active: Sequence[bool]) -> Any:
        """(arguments…, tangents of the floats…) → {value, tangent}."""
        floats = [i for i, type_ in enumerate(self.given) if type_ in _SUFFIXES]
        returned = compiled.signature.return_type
        if not isinstance(returned, types.BaseTuple) or len(returned) != 2:
            raise self.refused(f"has a forward that returns {returned}, not (value, tangent)")
        result = self.plain.compile_device(self.given).signature.return_type
        given = [*self.given, *(self.given[i] for i in floats)]
        function, inside = self.begin(context, builder, "forward", given, [result, result])
        count = len(self.given)
        tangents = [each for i, each in zip(floats, function.args[count:], strict=True) if active[i]]
        found = self.run(context, inside, compiled, [*function.args[:count], *tangents])
        parts = zip(cgutils.unpack_tuple(inside, found), returned, strict=True)
        self.end(inside, function, [self.number(context, inside, value, type_, result, True) for value, type_ in parts])
        return builder.bitcast(function, _POINTER)

    def number(self, context: Any, builder: Any, value: Any, found: Any, wanted: Any, active: bool) -> Any:
        """A number of the type that is wanted; zero where none is."""
        if not active:
            return context.get_constant(wanted, 0.0)
        if not isinstance(found, types.Number) or isinstance(found, types.Complex):
            raise self.refused(f"has a function that returns {found} in the place of a number")
        return context.cast(builder, value, found, wanted)

    def begin(self, context: Any, builder: Any, kind: str, given: Sequence[Any], wanted: Sequence[Any]) -> Any:
        """A function of LLVM's own convention, and a builder in it."""
        values = [context.get_value_type(each) for each in given]
        result = ir.LiteralStructType([context.get_value_type(each) for each in wanted])
        name = builder.module.get_unique_name(f"{PART}{kind}")
        function = ir.Function(builder.module, ir.FunctionType(result, values), name)
        function.linkage = "internal"
        return function, ir.IRBuilder(function.append_basic_block())

    def run(self, context: Any, inside: Any, compiled: Any, arguments: Sequence[Any]) -> Any:
        """Calls a compiled function; one that raises gives what it had."""
        context.active_code_library.add_linking_library(compiled.library)
        _, found = context.call_internal_no_propagate(inside, compiled.fndesc, compiled.signature, arguments)
        return found

    def end(self, inside: Any, function: Any, made: Sequence[Any]) -> None:
        """Returns numbers."""
        packed: Any = ir.Constant(function.function_type.return_type, ir.Undefined)
        for index, each in enumerate(made):
            packed = inside.insert_value(packed, each, index)
        inside.ret(packed)

    def operation(self, module: Any, operands: Sequence[Any]) -> Any:
        """The operation of the dialect; its body gives the first operand."""
        suffix = _SUFFIXES[self.plain.compile_device(self.given).signature.return_type]
        word = FROM_BODY if self.rule.forward_from_body else "ruled"
        kinds = "".join(str(each.type).replace("*", "p") for each in operands)
        symbol = f"{RULED}.{len(self.given)}.{word}.{suffix}.{kinds}"
        function = cgutils.get_or_insert_function(
            module, ir.FunctionType(operands[0].type, [each.type for each in operands]), symbol
        )
        if function.is_declaration:
            function.linkage = "linkonce_odr"
            function.attributes.add("alwaysinline")
            ir.IRBuilder(function.append_basic_block()).ret(function.args[0])
        return function
