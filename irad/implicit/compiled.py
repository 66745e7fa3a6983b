"""Calls of the solvers of this folder in compiled code: the function that is solved is known when a call is typed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from irad.api.custom.higher_order import passed_along
from irad.api.nopython import function_behind, literal
from irad.frontend.generated import function_from
from irad.frontend.inner import inner_overload
from irad.implicit.unknowns import MADE, is_none, made_in_compiled_code

_FILE: Final = "irad.implicit"


def offer(
    function: Callable[..., Any],
    make: Callable[..., Any],
    call: str,
    *,
    literals: tuple[str, ...] = (),
    functions: tuple[str, ...] = (),
    present: tuple[str, ...] = (),
    **scope: Any,
) -> None:
    """Lets compiled code call a function of this folder.

    Args:
        function: the Python function; its first argument is a function.
        make: from the dispatcher of that, the values of ``literals``, the dispatchers of ``functions``, and whether
            ``present`` are not None, what is called.
        call: its arguments, as an expression of the parameters.
        literals: the parameters that have to be literals.
        functions: the parameters that are functions or None.
        present: the parameters of which it matters if they are None.
        scope: other objects that the expression refers to.
    """
    parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
    defaults = {f"default_{each.name}": each.default for each in parameters if each.default is not each.empty}
    head = ", ".join(each.name + f"=default_{each.name}" * (f"default_{each.name}" in defaults) for each in parameters)
    names = [each.name for each in parameters]
    name = function.__name__

    def typed(*given: Any) -> Any:
        kinds = dict(zip(names, given, strict=True))
        if isinstance(given[1], MADE):
            raise made_in_compiled_code(f"{name} is given")
        constants = [literal(kinds[each], each) for each in literals]
        others = [None if is_none(kinds[each]) else function_behind(kinds[each]) for each in functions]
        chosen = make(function_behind(given[0]), *constants, *others, *(not is_none(kinds[each]) for each in present))
        source = f"def {name}({head}):\n    return solve({call})\n"
        return function_from(name, source, _FILE, {"solve": chosen, "passed_along": passed_along, **scope, **defaults})

    source = f"def {name}({head}):\n    return typed({', '.join(names)})\n"
    declared = function_from(name, source, _FILE, {"typed": typed, **defaults})
    inner_overload(function, prefer_literal=True, strict=False)(declared)
