"""The text of random programs: helpers and a function ``program``.

Every float stays bounded because it is made by bounded functions, or is scaled down before it is added; every index is
taken modulo a length that is known while writing.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tests.tools.random_decisions import DECIDED, FAST_MATH, Decisions
from tests.tools.random_expressions import Helper, Signature
from tests.tools.random_statements import Statements

_OPTIONS: Final = ("", "", "", '(error_model="numpy")', "(boundscheck=True)")


def write_program(signature: tuple[Signature, ...], random: Random) -> str:
    """The text of a module: helpers, then ``program`` with the given parameters.

    With a parameter of kind ``log`` it is compiled with fastmath, and decides things by numbers next to a jump.
    """
    decides = any(s.kind == "log" for s in signature)
    helpers: list[Helper] = []
    texts: list[str] = [DECIDED] if decides else []
    for number in range(random.choice((0, 0, 1, 1, 2))):
        form = random.choice(("scalar", "memory", "recursion", "fresh"))
        texts.append(_write_helper(Helper(f"h{number}", form), tuple(helpers), random))
        helpers.append(Helper(f"h{number}", form))
    writer = Decisions if decides else Statements
    function = writer(random, tuple(helpers), list(signature), random.randint(4, 9))
    function.line(f"@njit{random.choice(FAST_MATH if decides else _OPTIONS)}")
    function.line(f"def program({', '.join(s.name for s in signature)}):")
    has_overlap = any(s.kind == "view" for s in signature)  # a pullback does not tell which gradients are in common
    form = "float" if has_overlap else random.choice(("float", "float", "float", "tuple", "array"))
    with function.indented():
        for grid in (s.name for s in signature if s.kind == "grid"):
            function.line(f"{grid} = {grid}.copy()")  # apart from the log, so that it is read again and not saved
        function.line("s0 = 0.5")
        function.scope.append(Signature("s0", "float"))
        function.statements(form)
        function.result(form)
    return "\n\n".join([*texts, "\n".join(function.lines)]) + "\n"


def _write_helper(helper: Helper, callees: tuple[Helper, ...], random: Random) -> str:
    array, scalar = Signature("a", "view", (3,)), Signature("s", "float")
    parameters = {
        "scalar": (scalar, Signature("t", "float")),
        "memory": (array, Signature("i", "int"), scalar),
        "recursion": (array, Signature("d", "int"), scalar),
        "fresh": (array, scalar),
    }[helper.form]
    function = Statements(random, callees, list(parameters), random.randint(1, 3))
    function.fixed = {"d"}
    function.line("@njit")
    function.line(f"def {helper.name}({', '.join(p.name for p in parameters)}):")
    with function.indented():
        if helper.form == "recursion":
            function.line("if d <= 0:")
            function.line(f"    return {function.bounded(1)}")
        function.statements("float" if helper.form != "fresh" else "array")
        if helper.form == "recursion":
            function.line(f"r = {helper.name}(a, d - {random.randint(1, 2)}, {function.bounded(2)})")
            function.scope.append(Signature("r", "float"))
            function.statement("float")
        if helper.form == "fresh":
            function.line(f"return {random.choice(('a.copy()', 'np.sin(a)', 'a * s', 'a + a[0]', 'a[::-1] * 0.5'))}")
        else:
            function.result("float")
    return "\n".join(function.lines)
