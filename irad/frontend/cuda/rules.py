"""Device functions that have a rule of the user's.

Input   a device function, what `irad.rules` knows about it.
Output  the dispatcher that kernels call in its place.
Method  a function with an easy rule becomes one that computes its value and the partial derivatives, and says so by the
        operation `linear` of the dialect, which gives the value (`irad.rules.cuda.linear`). In a kernel that is not
        differentiated LLVM drops the partials. Other rules: see `ruled`.
Limit   numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.cuda.extending import intrinsic

from irad.frontend.cuda.ruled import ruled
from irad.frontend.custom import catalogue
from irad.frontend.custom.easy import slopes
from irad.frontend.custom.patterns import ANY
from irad.frontend.generated import function_from
from irad.rules.cuda.linear import LINEAR, MOST_ARGUMENTS, STOP

_SUFFIXES: Final = {types.float32: "f32", types.float64: "f64"}
_Maker = Callable[[Callable[..., Any], Mapping[str, Any]], Any]


def declared(function: Any) -> int:
    """A number that changes with what was declared for a device function; 0 for nothing."""
    return max((each.version for each in catalogue.entries_of(function)), default=0)


def twin(function: Any, make: _Maker) -> Any:
    """The dispatcher of a device function that kernels call.

    Args:
        function: a dispatcher.
        make: of a Python function and options of `numba.cuda.jit` a dispatcher.
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
    """The operation for so many arguments, as a function that kernels can call."""

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
