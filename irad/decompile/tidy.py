"""Makes structured statements read as people write them.

What is on the left becomes what is on the right:

    if n > 0:                       for i in range(n):
        for i in range(n): …            …

    if c: raise E                   if c:
    else: rest                          raise E
                                    rest

    if err > tol:                   while err > tol:
        while True:                     …
            …
            if not err > tol: break
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from irad.decompile import trees


def tidy(augmented: list[ast.stmt], reverse: list[ast.stmt], kept: set[str]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Both sweeps, which share their variables; ``kept`` are those that the caller reads."""
    sweeps = [_block(augmented), _block(reverse)]
    while doomed := _unread(sweeps, kept):
        sweeps = [_block(trees.rewritten(body, lambda s: [] if s in doomed else [s])) for body in sweeps]
    return _without_repeated_comments(sweeps[0]), _without_repeated_comments(sweeps[1])


def _unread(sweeps: Sequence[list[ast.stmt]], kept: set[str]) -> set[ast.AST]:
    """The assignments to variables that nobody reads."""
    nodes = [node for body in sweeps for statement in body for node in ast.walk(statement)]
    read = kept | {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return {node for node in nodes if _is_unread(node, read)}


def _without_repeated_comments(body: list[ast.stmt]) -> list[ast.stmt]:
    """A comment that says the same as the one before goes."""
    last = ""

    def kept(statement: ast.stmt) -> list[ast.stmt]:
        nonlocal last
        if trees.is_comment(statement):
            before, last = last, ast.unparse(statement)
            return [] if last == before else [statement]
        return [statement]

    return trees.rewritten(body, kept)


def _is_unread(node: ast.AST, read: set[str]) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
            return name not in read
        case _:
            return False


def _block(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Statements, tidied; nothing follows one that jumps."""
    made: list[ast.stmt] = []
    for statement in body:
        if made and _is_done(statement, made[-1]):
            continue
        made += _tidied_if(statement) if isinstance(statement, ast.If) else [_inner(statement)]
        if _jumps(made):
            break
    return _without_stale_comments(made)


def _is_done(statement: ast.stmt, before: ast.stmt) -> bool:
    """True if an assignment repeats the previous one."""
    if not isinstance(statement, ast.Assign) or trees.shown(statement) != trees.shown(before):
        return False
    return bool(_stored(statement)) and not _stored(statement) & trees.names_in([statement])


def _inner(statement: ast.stmt) -> ast.stmt:
    match statement:
        case ast.For():
            statement.body = _loop_body(statement.body)
            statement.orelse = _block(statement.orelse)
        case ast.While():
            statement.body = _loop_body(statement.body)
            _to_while(statement)
        case _:
            pass
    return statement


def _loop_body(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    made = _without_last_continue(_with_break_inside(_block(body)))
    return made or [ast.Pass()]


def _with_break_inside(body: list[ast.stmt]) -> list[ast.stmt]:
    """`if c: a; continue` and then `b; break` is `if not c: b; break` and then a."""
    for i, statement in enumerate(body):
        rest = body[i + 1 :]
        if not isinstance(statement, ast.If) or statement.orelse or not rest:
            continue
        if isinstance(statement.body[-1], ast.Continue) and isinstance(rest[-1], ast.Break):
            left = ast.If(trees.negated(statement.test), rest, [])
            return [*body[:i], left, *statement.body[:-1]]
    return body


def _without_last_continue(body: list[ast.stmt]) -> list[ast.stmt]:
    """A `continue` that is the last thing in an iteration goes, in the arms of a last `if` too."""
    if not body:
        return body
    last = body[-1]
    if isinstance(last, ast.Continue):
        return _without_last_continue(body[:-1])
    if isinstance(last, ast.If):
        last.body = _without_last_continue(last.body)
        last.orelse = _without_last_continue(last.orelse)
        if not last.body:
            if not last.orelse:
                return _without_stale_comments(body[:-1])
            last.test, last.body, last.orelse = trees.negated(last.test), last.orelse, []
    return body


def _tidied_if(statement: ast.If) -> list[ast.stmt]:
    """Statements that replace an `if`."""
    test = statement.test
    body, orelse = _block(statement.body), _block(statement.orelse)
    if isinstance(test, ast.Constant):
        return body if test.value else orelse
    before = _hoisted(body, orelse, test)
    body, orelse = _without_stale_comments(body), _without_stale_comments(orelse)
    after: list[ast.stmt] = []
    while body and orelse and _same(body[-1], orelse[-1]):
        after.insert(0, body.pop())
        orelse.pop()
    if not body:
        test, body, orelse = trees.negated(test), orelse, []
    if not body:
        return before + after
    if orelse and _jumps(orelse) and not _jumps(body):
        test, body, orelse = trees.negated(test), orelse, body
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and orelse and not _jumps(body):
        test, body, orelse = test.operand, orelse, body
    if orelse and _jumps(body):
        after = orelse + after
        orelse = []
    if not orelse:
        unguarded = _unguarded(test, body)
        if unguarded is not None:
            return before + unguarded + after
    return [*before, ast.If(test, body, orelse), *after]


def _hoisted(body: list[ast.stmt], orelse: list[ast.stmt], test: ast.expr) -> list[ast.stmt]:
    """Takes assignments away that both arms begin with, in whatever order."""
    before: list[ast.stmt] = []
    while True:
        found = [
            (i, j)
            for i, statement in enumerate(_first_assignments(body))
            for j, other in enumerate(_first_assignments(orelse))
            if _same(statement, other)
            and not _touches(statement, test)
            and not _depends(statement, [*body[:i], *orelse[:j]])
        ]
        if not found:
            return before
        i, j = found[0]
        before.append(body.pop(i))
        orelse.pop(j)


def _first_assignments(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The assignments to variables, and comments, that a body begins with."""
    others = (i for i, s in enumerate(body) if not (trees.is_comment(s) or (isinstance(s, ast.Assign) and _stored(s))))
    return list(body[: next(others, len(body))])


def _stored(statement: ast.stmt) -> set[str]:
    """The variables that a statement assigns."""
    return trees.names_in([statement], ast.Store)


def _depends(statement: ast.stmt, earlier: Sequence[ast.stmt]) -> bool:
    """True if a statement may not be done before others."""
    reads, stores = trees.names_in([statement]), _stored(statement)
    return any(
        not trees.is_comment(other) and (_stored(other) & (reads | stores) or trees.names_in([other]) & stores)
        for other in earlier
    )


def _jumps(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise | ast.Break | ast.Continue)


def _same(a: ast.stmt, b: ast.stmt) -> bool:
    return isinstance(a, ast.Assign | ast.AugAssign) and trees.shown(a) == trees.shown(b)


def _touches(statement: ast.stmt, test: ast.expr) -> bool:
    stored = _stored(statement)
    return not stored or not stored.isdisjoint(trees.names_in([test]))  # none: an element of an array


def _without_stale_comments(body: list[ast.stmt]) -> list[ast.stmt]:
    """Comments that nothing follows go."""
    made: list[ast.stmt] = []
    for i, statement in enumerate(body):
        if trees.is_comment(statement) and (i + 1 == len(body) or trees.is_comment(body[i + 1])):
            continue
        made.append(statement)
    return made


# ---------------------------------------------------------------------------------------------------- guards


def _unguarded(test: ast.expr, body: list[ast.stmt]) -> list[ast.stmt] | None:
    """A loop without the condition in front of it, which its own head repeats."""
    meat = [s for s in body if not trees.is_comment(s)]
    if len(meat) != 1:
        return None
    (loop,) = meat
    if isinstance(loop, ast.For) and not loop.orelse and trees.shown(test) in _says_nonempty(loop.iter):
        return body
    if isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and not loop.orelse:
        last = loop.body[-1]
        breaks = isinstance(last, ast.If) and not last.orelse and [type(s) for s in last.body] == [ast.Break]
        if breaks and isinstance(last, ast.If) and not _has_continue(loop.body):
            if trees.shown(trees.negated(last.test)) != trees.shown(test):
                return None
            loop.test = test
            loop.body = _without_stale_comments(loop.body[:-1]) or [ast.Pass()]
            return body
    return None


def _has_continue(body: Sequence[ast.stmt]) -> bool:
    """True if an iteration may end early: then it would skip the test at its end."""
    return any(isinstance(statement, ast.Continue) for statement in trees.of_iteration(body))


def _says_nonempty(iterator: ast.expr) -> set[str]:
    """Conditions that are true just where a range is not empty."""
    if isinstance(iterator, ast.Call) and trees.shown(iterator.func) == "reversed":
        iterator = iterator.args[0]
    if not isinstance(iterator, ast.Call) or trees.shown(iterator.func) != "range":
        return set()
    bounds = [trees.shown(a) for a in iterator.args]
    if len(bounds) == 1:
        stop = bounds[0]
        return {f"{stop} > 0", f"{stop} >= 1", f"{stop} != 0", f"0 < {stop}"}
    start, stop = bounds[:2]
    step = iterator.args[2] if len(bounds) == 3 else ast.Constant(1)
    if isinstance(step, ast.Constant):
        found = {f"{stop} > {start}", f"{start} < {stop}"}
        first = iterator.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, int):
            found.add(f"{stop} >= {first.value + 1}")
        return found
    return {f"{stop} < {start}", f"{start} > {stop}"}


def _to_while(loop: ast.While) -> None:
    """A loop that begins with a conditional break."""
    if not isinstance(loop.test, ast.Constant) or not loop.body:
        return
    first = loop.body[0]
    if isinstance(first, ast.If) and not first.orelse and len(first.body) == 1 and isinstance(first.body[0], ast.Break):
        loop.test = trees.negated(first.test)
        loop.body = loop.body[1:] or [ast.Pass()]
