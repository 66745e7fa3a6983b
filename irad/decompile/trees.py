"""Small makers of `ast` nodes, and comments, which `ast` does not know."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence

COMMENT = "#"


class Compare(ast.Compare):
    """A comparison that knows whether it has an opposite; those of floats have none, because of NaN.

    Its name is that of its base, by which `ast.unparse` knows how to write it.
    """

    has_opposite: bool = False


def name(text: str) -> ast.Name:
    """A variable."""
    return ast.Name(text, ast.Load())


def target(text: str) -> ast.Name:
    """A variable that is assigned."""
    return ast.Name(text, ast.Store())


def number(value: float) -> ast.expr:
    """A literal; negative ones are negated literals, as Python parses them."""
    if value != value:
        return dotted("np.nan")
    if value in (float("inf"), -float("inf")):
        return dotted("np.inf") if value > 0 else ast.UnaryOp(ast.USub(), dotted("np.inf"))
    if value < 0 or str(value).startswith("-"):
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def dotted(text: str) -> ast.expr:
    """`np.exp`."""
    first, *rest = text.split(".")
    made: ast.expr = name(first)
    for part in rest:
        made = ast.Attribute(made, part, ast.Load())
    return made


def call(function: str, *arguments: ast.expr) -> ast.Call:
    """`function(arguments…)`."""
    return ast.Call(dotted(function), list(arguments), [])


def subscript(base: ast.expr, indices: Sequence[ast.expr]) -> ast.Subscript:
    """`base[i, j]`."""
    index = indices[0] if len(indices) == 1 else ast.Tuple(list(indices), ast.Load())
    return ast.Subscript(base, index, ast.Load())


def binary(left: ast.expr, operator: ast.operator, right: ast.expr) -> ast.expr:
    """An arithmetic operation; the sum with a negated product is a difference."""
    if isinstance(operator, ast.Add) and isinstance(right, ast.BinOp) and isinstance(right.op, ast.Mult | ast.Div):
        factor = right.left
        if isinstance(factor, ast.UnaryOp) and isinstance(factor.op, ast.USub):
            return ast.BinOp(left, ast.Sub(), ast.BinOp(factor.operand, right.op, right.right))
    return ast.BinOp(left, operator, right)


TIMES, DIVIDED, AS_INT64, NATURAL, WHOLE = "times", "divided", "as_int64", "natural", "whole_items"


def strong_product(is_product: bool, left: ast.expr, right: ast.expr) -> ast.expr:
    """A product or quotient that is zero where its first factor, a cotangent, is."""
    return call(TIMES if is_product else DIVIDED, left, right)


def with_plain_products(function: ast.FunctionDef) -> ast.FunctionDef:
    """A copy with `*` and `/` for strong products, `np.sign` for signs, and integers that do not wrap around."""
    made = _PlainProducts().visit(copy.deepcopy(function))
    assert isinstance(made, ast.FunctionDef)
    return made


class _PlainProducts(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        operators: dict[str, ast.operator] = {TIMES: ast.Mult(), DIVIDED: ast.Div(), WHOLE: ast.FloorDiv()}
        if isinstance(node.func, ast.Name) and node.func.id in operators:
            return binary(node.args[0], operators[node.func.id], node.args[1])
        if isinstance(node.func, ast.Name) and node.func.id in (AS_INT64, NATURAL):
            return node.args[0]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return binary(node.left, node.op, node.right)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        of = node.test.left if isinstance(node.test, ast.Compare) else node.test
        sign = f"1.0 if {ast.unparse(of)} > 0.0 else -1.0 if {ast.unparse(of)} < 0.0 else 0.0 * {ast.unparse(of)}"
        return call("np.sign", of) if ast.unparse(node) == sign else node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        (place,) = node.targets
        return node if isinstance(place, ast.Tuple) else assign(place, node.value)


def compare(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.expr:
    """A comparison."""
    return ast.Compare(left, [operator], [right])


def both_or_either(word: str, left: ast.expr, right: ast.expr) -> ast.expr:
    """`left and right`, `left or right`; a side that is known decides or goes."""
    for side, other in ((left, right), (right, left)):
        if isinstance(side, ast.Constant) and isinstance(side.value, bool):
            return other if side.value == (word == "and") else side
    return ast.BoolOp(ast.And() if word == "and" else ast.Or(), [left, right])


def disjunction(*parts: ast.expr) -> ast.expr:
    """`a or b`."""
    return ast.BoolOp(ast.Or(), list(parts))


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
}


def integer_compare(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.expr:
    """A comparison of integers, which has an opposite."""
    made = Compare(left, [operator], [right])
    made.has_opposite = True
    return made


def negated(test: ast.expr) -> ast.expr:
    """`not test`, simplified."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare):
        if isinstance(test, Compare) and test.has_opposite:
            return integer_compare(test.left, _OPPOSITE[type(test.ops[0])](), test.comparators[0])
        if isinstance(test.ops[0], ast.Eq | ast.NotEq):
            return compare(test.left, _OPPOSITE[type(test.ops[0])](), test.comparators[0])
    if isinstance(test, ast.Constant) and isinstance(test.value, bool):
        return ast.Constant(not test.value)
    return ast.UnaryOp(ast.Not(), test)


def assign(place: ast.expr, value: ast.expr) -> ast.stmt:
    """`place = value`; `place += …` where the value is a sum that begins with it."""
    target_ = stored(place)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        text = shown(place)
        if shown(value.left) == text:
            assert isinstance(target_, ast.Name | ast.Subscript | ast.Attribute)
            return ast.AugAssign(target_, value.op, value.right)
        if isinstance(value.op, ast.Add | ast.Mult) and shown(value.right) == text:
            assert isinstance(target_, ast.Name | ast.Subscript | ast.Attribute)
            return ast.AugAssign(target_, value.op, value.left)
    return ast.Assign([target_], value)


def stored(place: ast.expr) -> ast.expr:
    """A place that is assigned."""
    made = ast.parse(f"{shown(place)} = 0").body[0]
    assert isinstance(made, ast.Assign)
    return made.targets[0]


def shown(node: ast.AST) -> str:
    """The text of a node, to compare it with others."""
    return ast.unparse(ast.fix_missing_locations(node))


def names_in(nodes: Sequence[ast.AST], context: type[ast.expr_context] = ast.Load) -> set[str]:
    """The variables that are read, or assigned where ``context`` is `ast.Store`."""
    found = (each for node in nodes for each in ast.walk(node))
    return {each.id for each in found if isinstance(each, ast.Name) and isinstance(each.ctx, context)}


def rewritten(body: Sequence[ast.stmt], change: Callable[[ast.stmt], list[ast.stmt]]) -> list[ast.stmt]:
    """Statements, each replaced by the result of ``change``, in the order of the text; nested ones first."""
    made: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.If | ast.For | ast.While):
            statement.body = rewritten(statement.body, change)
            statement.orelse = rewritten(statement.orelse, change)
        made += change(statement)
    return made


def of_iteration(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements but those of loops in the body: a `break` or `continue` among them is of the loop around."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            yield from of_iteration(statement.body)
        if isinstance(statement, ast.If | ast.For | ast.While):
            yield from of_iteration(statement.orelse)


def comment(text: str) -> ast.stmt:
    """A separate line."""
    return ast.Expr(ast.Constant(f"{COMMENT} {text}"))


def is_comment(statement: ast.stmt) -> bool:
    """True if a statement is a comment."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str() as text)):
            return text.startswith(COMMENT)
        case _:
            return False


def unparse(body: Sequence[ast.stmt]) -> str:
    """The text of statements, with comments."""
    module = ast.Module(list(body), [])
    lines = ast.unparse(ast.fix_missing_locations(module)).splitlines()
    return "\n".join(_with_comment(line) for line in lines) + "\n"


def _with_comment(line: str) -> str:
    bare = line.strip()
    if len(bare) > 1 and bare[0] in "'\"" and bare[1] == COMMENT:
        found = ast.literal_eval(bare)
        assert isinstance(found, str)
        return line[: len(line) - len(line.lstrip())] + found
    return line
