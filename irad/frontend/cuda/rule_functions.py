"""Functions of a user's rule as functions of plain numbers, which any version of Numba's CUDA target compiles.

Input   a function of a rule, which of its arguments are active.
Output  a Python function: an annotated argument `x` has become the number `x`, its tangent the number `x_tangent`, the
        configuration is gone, what an `AugmentedReturn` holds is a tuple (primal, tape).
Method  on the syntax tree, where questions about arguments and the configuration are answered and branches that they
        decide are dropped, as `irad.frontend.custom.specialise` does on the code of Numba for CPUs.
Limit   numbers; annotated arguments are not passed on to other functions.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from irad.errors import SourceLocation, UnsupportedError
from irad.frontend.custom.annotated import AugmentedReturn, RuleConfig, is_active, is_needed
from irad.options import Options

_BEFORE: Final = {"augmented_primal": 1, "reverse": 3, "forward": 1}  # parameters in front of the arguments
_TANGENT: Final = "{}_tangent"


def plain_function(
    function: Callable[..., Any], kind: str, name: str, active: Sequence[bool], replaced: Mapping[int, Any]
) -> Callable[..., Any]:
    """A function of a rule, of numbers.

    Args:
        function: it: of (config, arguments…); the reverse of (config, cotangent, tape, arguments…).
        kind: "augmented_primal", "reverse" or "forward".
        name: of what has the rule.
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
    """Of a rule in a kernel, which takes part wherever it may."""
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
        """What a name, or an attribute of one, is; None where that is not known."""
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
