"""Device functions that have a rule of the user's.

Input   a device function, what `irad.rules` knows about it.
Output  the dispatcher that kernels call in its place.
Method  a function with an easy rule becomes one that computes its value and the partial derivatives, and says so by the
        operation `linear` of the dialect, which gives the value (`irad.rules.cuda`). In a kernel that is not
        differentiated LLVM drops the partials. Other rules: see `ruled` below.
Limit   numbers.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.cuda.extending import intrinsic

from irad.errors import SourceLocation, UnsupportedError
from irad.frontend.custom import catalogue
from irad.frontend.custom.catalogue import ANY
from irad.frontend.custom.rule_arguments import AugmentedReturn, RuleConfig, is_active, is_needed
from irad.frontend.custom.rules_from_partials import slopes
from irad.frontend.emit import Emit
from irad.frontend.generated import function_from
from irad.options import Options
from irad.records import dataclass
from irad.rules.cuda import FROM_BODY, LINEAR, MOST_ARGUMENTS, RULE_PART, RULED, STOP

# Functions of a user's rule as functions of plain numbers, which any version of Numba's CUDA target compiles.
#
# Input   a function of a rule, which of its arguments are active.
# Output  a Python function: an annotated argument `x` has become the number `x`, its tangent the number `x_tangent`,
#         the configuration is gone, what an `AugmentedReturn` holds is a tuple (primal, tape).
# Method  on the syntax tree, where questions about arguments and the configuration are answered and branches that they
#         decide are dropped, as `irad.frontend.custom.partial_evaluation` does on the code of Numba for CPUs.
# Limit   numbers; annotated arguments are not passed on to other functions.

_BEFORE: Final = {"augmented_primal": 1, "reverse": 3, "forward": 1}  # parameters in front of the arguments
_TANGENT: Final = "{}_tangent"


def plain_function(
    function: Callable[..., Any], kind: str, name: str, active: Sequence[bool], replaced: Mapping[int, Any]
) -> Callable[..., Any]:
    """A function of a rule, of numbers.

    Args:
        function: it: of (config, arguments…); the reverse of (config, cotangent, tape, arguments…).
        kind: "augmented_primal", "reverse" or "forward".
        name: name of the function with the rule.
        active: for each argument whether it has a derivative.
        replaced: by identity, what stands for a global of the function.

    Returns:
        Of (arguments…), (cotangent, tape, arguments…) or (arguments…, tangents of the active ones…).

    Raises:
        UnsupportedError: the function does what a rule in a kernel cannot.
    """
    function = getattr(function, "py_func", function)
    source = _Source(function, name)
    definition = source.definition()
    names = [each.arg for each in definition.args.args]
    before = _BEFORE[kind]
    if len(names) != before + len(active) or definition.args.vararg or definition.args.kwonlyargs:
        raise source.refused(definition, "takes other arguments than (config, " + "…, " * (before > 1) + "arguments…)")
    arguments = dict(zip(names[before:], active, strict=True))
    body = _Plain(source, arguments, names[0], names[1] if before > 1 else None, _configuration(kind, len(active)))
    taken = [*names[1:], *(_TANGENT.format(each) for each, on in arguments.items() if on and kind == "forward")]
    definition.body = body.statements(definition.body)
    definition.args = ast.arguments([], [ast.arg(each) for each in taken], None, [], [], None, [])
    definition.decorator_list, definition.returns = [], None
    code = compile(ast.fix_missing_locations(ast.Module([definition], [])), source.file, "exec")
    scope = {key: replaced.get(id(value), value) for key, value in source.scope.items()}
    exec(code, scope)  # the user's own text, less what is decided
    made: Callable[..., Any] = scope[definition.name]
    return made


def _configuration(kind: str, count: int) -> RuleConfig:
    """Configuration of a rule in a kernel: whatever may be active is."""
    none, is_forward = (False,) * count, kind == "forward"
    return RuleConfig(
        needs_primal=True,
        needs_shadow=is_forward,
        has_cotangent=not is_forward,
        overwritten=(*none, False),
        written=none,
        returned=none,
        is_seen=True,
        width=1,
        options=Options(),
    )


@dataclass(frozen=True)
class _Source:
    """The text of a function, and what its names mean."""

    function: Callable[..., Any]
    name: str

    @property
    def file(self) -> str:
        return self.function.__code__.co_filename

    @property
    def scope(self) -> dict[str, Any]:
        return {**self.function.__globals__, **inspect.getclosurevars(self.function).nonlocals}

    def definition(self) -> ast.FunctionDef:
        try:
            lines, first = inspect.getsourcelines(self.function)
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except (OSError, SyntaxError):
            tree, first = ast.Module([], []), 1
        if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
            raise self.refused(None, "is not a function whose source can be read")
        ast.increment_lineno(tree, first - 1)
        return tree.body[0]

    def meaning(self, node: ast.expr) -> Any:
        """Value of a name, or of an attribute of one; None if that is not known."""
        if isinstance(node, ast.Name):
            return self.scope.get(node.id, getattr(builtins, node.id, None))
        if isinstance(node, ast.Attribute):
            return getattr(self.meaning(node.value), node.attr, None)
        return None

    def refused(self, node: Any, what: str) -> UnsupportedError:
        place = SourceLocation.of(self.function)
        line = getattr(node, "lineno", None)
        if place is not None and line is not None:
            place = SourceLocation(place.file, line, place.function)
        return UnsupportedError(
            f"the rule of the device function {self.name} cannot be used in kernels: {self.function.__name__} {what}",
            "use values, tangents and the cotangent of numbers only, in a function written with def; "
            "or give it an easy rule (irad.rules.easy_rule)",
            "in a kernel the functions of a rule are compiled as functions of numbers",
            location=place,
        )


@dataclass
class _Plain(ast.NodeTransformer):
    """Answers what is known, and drops what that decides."""

    source: _Source
    arguments: Mapping[str, bool]
    config: str
    cotangent: str | None
    known: RuleConfig

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """A block, which is never empty."""
        made: list[ast.stmt] = []
        for each in body:
            found = self.visit(each)
            made.extend(found if isinstance(found, list) else [found])
        return made or [ast.Pass()]

    def visit_If(self, node: ast.If) -> Any:
        test = self.visit(node.test)
        if isinstance(test, ast.Constant):
            return self.statements(node.body if test.value else node.orelse or [ast.Pass()])
        orelse = self.statements(node.orelse) if node.orelse else []
        return ast.copy_location(ast.If(test, self.statements(node.body), orelse), node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        test = self.visit(node.test)
        if isinstance(test, ast.Constant):
            return self.visit(node.body if test.value else node.orelse)
        return ast.copy_location(ast.IfExp(test, self.visit(node.body), self.visit(node.orelse)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        decides = isinstance(node.op, ast.Or)
        rest: list[Any] = []
        for each in node.values:
            found = self.visit(each)
            if isinstance(found, ast.Constant) and bool(found.value) is decides:
                return found if not rest else ast.copy_location(ast.BoolOp(node.op, [*rest, found]), node)
            if not isinstance(found, ast.Constant):
                rest.append(found)
        if not rest:
            return ast.copy_location(ast.Constant(not decides), node)
        return rest[0] if len(rest) == 1 else ast.copy_location(ast.BoolOp(node.op, rest), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.copy_location(ast.Constant(not node.operand.value), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        left, right = node.left, node.comparators[0]
        is_none = isinstance(right, ast.Constant) and right.value is None and len(node.ops) == 1
        if is_none and isinstance(left, ast.Name) and left.id == self.cotangent:
            return ast.copy_location(ast.Constant(isinstance(node.ops[0], ast.IsNot | ast.NotEq)), node)
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        match node:
            case ast.Subscript(ast.Constant(tuple() as held), ast.Constant(int() as index)):
                return ast.copy_location(ast.Constant(held[index]), node)
            case _:
                return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        if name == self.config:
            return ast.copy_location(ast.Constant(getattr(self.known, node.attr)), node)
        if name not in self.arguments:
            return self.generic_visit(node)
        if node.attr == "value":
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        if node.attr == "tangent" and self.arguments[name]:
            return ast.copy_location(ast.Name(_TANGENT.format(name), ast.Load()), node)
        raise self.source.refused(node, f"uses {name}.{node.attr}")

    def visit_Call(self, node: ast.Call) -> Any:
        called = self.source.meaning(node.func)
        if called in (is_active, is_needed):
            first = node.args[0]
            name = first.id if isinstance(first, ast.Name) else None
            if len(node.args) == 1 and name in (*self.arguments, self.cotangent):
                answer = called is is_needed or self.arguments.get(str(name), True)
                return ast.copy_location(ast.Constant(answer), node)
        if called is AugmentedReturn:
            given = dict(zip(AugmentedReturn._fields, node.args, strict=False))
            given.update({str(each.arg): each.value for each in node.keywords})
            parts = [self.visit(given[each]) for each in ("primal", "tape")]
            return ast.copy_location(ast.Tuple(parts, ast.Load()), node)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id == self.config or node.id in self.arguments:
            raise self.source.refused(node, f"passes {node.id} on")
        return node


# Calls of device functions that have a rule with functions of its own.
#
# Input   a device function, the types of its arguments, what `irad.rules` knows about it.
# Output  LLVM code of a call: that of the function itself, that of the augmented primal, and the operation `ruled` of
#         the dialect (`irad.rules.cuda`), which gives the former until a derivative decides; beside it the
#         reverse and the forward as functions of LLVM's own convention.
# Limit   numbers; a tape of numbers, in tuples or not. Others are refused by name.

_NUMBER_SUFFIXES: Final = {types.float32: "f32", types.float64: "f64"}
_POINTER: Final = ir.IntType(8).as_pointer()


def ruled(function: Any, plain: Any, make: Callable[..., Any], names: Sequence[str]) -> Any:
    """A function that calls another one by its rule.

    Args:
        function: the dispatcher that has the rule.
        plain: one for the same function, without the rule.
        make: makes a device function's dispatcher from a Python function and options.
        names: of parameters.
    """

    def typed(context: Any, given: tuple[Any, ...]) -> Any:
        given = tuple(map(types.unliteral, given))
        rule = catalogue.find(function, given)
        if rule is None:
            return _called(plain.compile_device(given))
        return _RuledCall(function, rule, plain, make, given).typed()

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
        return _call(Emit(context, builder), compiled, arguments)

    return compiled.signature, lower


def _call(emit: Emit, compiled: Any, arguments: Sequence[Value]) -> Value:
    """A call of a compiled function in a function of Numba's convention: what it raises is passed on."""
    context = emit.context
    context.active_code_library.add_linking_library(compiled.library)
    return context.call_internal(emit.builder, compiled.fndesc, compiled.signature, arguments)


@dataclass
class _RuledCall:
    """A call for given types of arguments."""

    function: Any
    rule: catalogue.CustomRule
    plain: Any
    make: Callable[..., Any]
    given: tuple[Any, ...]

    def typed(self) -> Any:
        """The signature of the call, and the function that lowers it."""
        own = self.plain.compile_device(self.given)
        result = own.signature.return_type
        self.check(result)
        active = [
            type_ in _NUMBER_SUFFIXES and i not in self.rule.inactive_arguments for i, type_ in enumerate(self.given)
        ]
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
            emit = Emit(context, builder)
            value = made = _call(emit, own, arguments)
            kept: Any = None
            if augmented is not None:
                packed = _call(emit, augmented, arguments)
                made, kept = cgutils.unpack_tuple(builder, packed)
                made = context.cast(builder, made, augmented.signature.return_type[0], result)
            saved = list(self.flat(builder, tape, kept))
            parts = [
                _POINTER(None) if reverse is None else self.reverse(emit, reverse, active, tape),
                _POINTER(None) if forward is None else self.forward(emit, forward, active),
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
        if result not in _NUMBER_SUFFIXES:
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
            location=catalogue.location_of(self.rule.target),
        )

    def compiled(self, kind: str, active: Sequence[bool], given: tuple[Any, ...]) -> Any:
        """Numba's compile result of a function of the rule."""
        replaced = {id(each): self.plain for each in (self.function, getattr(self.function, "py_func", None))}
        part = plain_function(self.rule.part(kind), kind, self.rule.name, active, replaced)
        return self.make(part, {}).compile_device(given)

    # -------------------------------------------------------------------------------------------- tapes

    def leaves(self, type_: types.Type) -> Iterator[Any]:
        """The numbers of a tape."""
        if isinstance(type_, types.BaseTuple):
            for each in type_:
                yield from self.leaves(each)
        elif isinstance(type_, types.Number | types.Boolean) and not isinstance(type_, types.Complex):
            yield type_
        elif type_ != types.none:
            raise self.refused(f"keeps {type_} on its tape")

    def flat(self, builder: IRBuilder, type_: types.Type, value: Value) -> Iterator[Any]:
        """Values in a value of a type, with tuples taken apart."""
        if isinstance(type_, types.BaseTuple):
            for index, each in enumerate(type_):
                yield from self.flat(builder, each, builder.extract_value(value, index))
        elif type_ != types.none:
            yield value

    def packed(self, emit: Emit, type_: types.Type, rest: Iterator[Any]) -> Any:
        """A tape of its values."""
        context = emit.context
        if isinstance(type_, types.BaseTuple):
            parts = [self.packed(emit, each, rest) for each in type_]
            return context.make_tuple(emit.builder, type_, parts)
        return context.get_dummy_value() if type_ == types.none else next(rest)

    # -------------------------------------------------------------------------------------------- LLVM functions

    def reverse(self, emit: Emit, compiled: Any, active: Sequence[bool], tape: Any) -> Value:
        """(cotangent, arguments…, tape…) → {cotangents of the floats}."""
        result, count = compiled.signature.args[0], len(self.given)
        wanted = [type_ for type_ in self.given if type_ in _NUMBER_SUFFIXES]
        given = [result, *self.given, *self.leaves(tape)]
        function, inside = self.begin(emit, "reverse", given, wanted)
        cotangent, *rest = function.args
        kept = self.packed(inside, tape, iter(rest[count:]))
        found = self.run(inside, compiled, [cotangent, kept, *rest[:count]])
        returned = compiled.signature.return_type
        if not isinstance(returned, types.BaseTuple) or len(returned) != count:
            raise self.refused(f"has a reverse that returns {returned}, not {count} cotangents in a tuple")
        parts = zip(cgutils.unpack_tuple(inside.builder, found), returned, self.given, active, strict=True)
        made = [self.number(inside, *part) for part in parts if part[2] in _NUMBER_SUFFIXES]
        self.end(inside.builder, function, made)
        return emit.builder.bitcast(function, _POINTER)

    def forward(self, emit: Emit, compiled: Any, active: Sequence[bool]) -> Any:
        """(arguments…, tangents of the floats…) → {value, tangent}."""
        floats = [i for i, type_ in enumerate(self.given) if type_ in _NUMBER_SUFFIXES]
        returned = compiled.signature.return_type
        if not isinstance(returned, types.BaseTuple) or len(returned) != 2:
            raise self.refused(f"has a forward that returns {returned}, not (value, tangent)")
        result = self.plain.compile_device(self.given).signature.return_type
        given = [*self.given, *(self.given[i] for i in floats)]
        function, inside = self.begin(emit, "forward", given, [result, result])
        count = len(self.given)
        tangents = [each for i, each in zip(floats, function.args[count:], strict=True) if active[i]]
        found = self.run(inside, compiled, [*function.args[:count], *tangents])
        parts = zip(cgutils.unpack_tuple(inside.builder, found), returned, strict=True)
        self.end(inside.builder, function, [self.number(inside, value, type_, result, True) for value, type_ in parts])
        return emit.builder.bitcast(function, _POINTER)

    def number(self, emit: Emit, value: Value, found: Any, wanted: Any, active: bool) -> Value:
        """A number of the type that is wanted; zero where none is."""
        context = emit.context
        if not active:
            return context.get_constant(wanted, 0.0)
        if not isinstance(found, types.Number) or isinstance(found, types.Complex):
            raise self.refused(f"has a function that returns {found} in the place of a number")
        return context.cast(emit.builder, value, found, wanted)

    def begin(self, emit: Emit, kind: str, given: Sequence[Any], wanted: Sequence[Any]) -> tuple[Any, Emit]:
        """A function of LLVM's own convention, and what emits code into it."""
        context, builder = emit.context, emit.builder
        values = [context.get_value_type(each) for each in given]
        result = ir.LiteralStructType([context.get_value_type(each) for each in wanted])
        name = builder.module.get_unique_name(f"{RULE_PART}{kind}")
        function = ir.Function(builder.module, ir.FunctionType(result, values), name)
        function.linkage = "internal"
        return function, Emit(context, ir.IRBuilder(function.append_basic_block()))

    def run(self, emit: Emit, compiled: Any, arguments: Sequence[Value]) -> Any:
        """Calls a compiled function; one that raises gives what it had."""
        context = emit.context
        context.active_code_library.add_linking_library(compiled.library)
        _, found = context.call_internal_no_propagate(emit.builder, compiled.fndesc, compiled.signature, arguments)
        return found

    def end(self, builder: IRBuilder, function: Any, made: Sequence[Any]) -> None:
        """Returns numbers."""
        packed: Any = ir.Constant(function.function_type.return_type, ir.Undefined)
        for index, each in enumerate(made):
            packed = builder.insert_value(packed, each, index)
        builder.ret(packed)

    def operation(self, module: Any, operands: Sequence[Any]) -> Any:
        """The operation of the dialect; its body gives the first operand."""
        suffix = _NUMBER_SUFFIXES[self.plain.compile_device(self.given).signature.return_type]
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


_SUFFIXES: Final = {types.float32: "f32", types.float64: "f64"}
_Maker = Callable[[Callable[..., Any], Mapping[str, Any]], Any]


def declared(function: Any) -> int:
    """A number that changes with what was declared for a device function; 0 for nothing."""
    return max((each.version for each in catalogue.entries_of(function)), default=0)


def twin(function: Any, make: _Maker) -> Any:
    """The dispatcher of a device function that kernels call.

    Args:
        function: a dispatcher.
        make: makes a dispatcher from a Python function and options of `numba.cuda.jit`.
    """
    entries = list(catalogue.entries_of(function))
    plain = make(function.py_func, function.targetoptions)
    if not entries:
        return plain
    rule, names = entries[0], list(inspect.signature(function.py_func).parameters)
    if len(entries) > 1 or rule.pattern != ANY or not (rule.is_easy or rule.inactive is not None):
        return make(ruled(function, plain, make, names), function.targetoptions)
    arity = len(names)
    given = slopes(function, rule.partials or (), lambda each: make(each, {}), arity)
    names = [f"x{i}" for i in range(arity)]
    listing = ", ".join(names)
    terms = "".join(
        f", x{i}, partial{i}({', '.join([*names, 'value'] if with_result else names)})" for i, _, with_result in given
    )
    source = f"def ruled({listing}):\n    value = f({listing})\n    return linear(value{terms})\n"
    scope = {"f": plain, "linear": _LINEAR[len(given)], **{f"partial{i}": each for i, each, _ in given}}
    made = function_from("ruled", source, f"irad.rules of {rule.name}", scope)
    return make(made, function.targetoptions)


def _linear(count: int) -> Any:
    """The operation for a number of arguments, as a function that kernels can call."""

    def typed(value: Any, rest: list[Any]) -> Any:
        if value not in _SUFFIXES or not all(isinstance(each, types.Number | types.Boolean) for each in rest):
            raise TypingError(f"an easy rule in a kernel is for numbers, not for {value} and {rest}")
        result = value
        wanted = [result] * (1 + len(rest))

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            numbers = [
                context.cast(builder, argument, type_, want)
                for argument, type_, want in zip(arguments, signature.args, wanted, strict=True)
            ]
            suffix = _SUFFIXES[result]
            stop = _first(builder.module, f"{STOP}.{suffix}", 1, numbers[0].type)
            stopped = [builder.call(stop, [each]) if n % 2 == 0 else each for n, each in enumerate(numbers)]
            linear = _first(builder.module, f"{LINEAR}.{count}.{suffix}", len(numbers), numbers[0].type)
            return builder.call(linear, stopped)

        return result(value, *rest), lower

    names = [f"a{i}" for i in range(2 * count)]
    listing = ", ".join(["typingctx", "value", *names])
    source = f"def linear({listing}):\n    return typed(value, [{', '.join(names)}])\n"
    return intrinsic(function_from("linear", source, "irad.rules of device functions", {"typed": typed}))


def _first(module: Any, symbol: str, count: int, type_: Any) -> Any:
    """A function that returns the first of its arguments, until a derivative gives it a rule."""
    function = cgutils.get_or_insert_function(module, ir.FunctionType(type_, [type_] * count), symbol)
    if function.is_declaration:
        function.linkage = "linkonce_odr"
        function.attributes.add("alwaysinline")
        builder = ir.IRBuilder(function.append_basic_block())
        builder.ret(function.args[0])
    return function


_LINEAR: Final = tuple(_linear(count) for count in range(MOST_ARGUMENTS + 1))
