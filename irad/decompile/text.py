"""The adjoint of a function as Python source, and the functions that its executable form calls."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numba.core import types

from irad.decompile import trees
from irad.decompile.arrays import ReturnedValue, result_of
from irad.decompile.names import PARALLEL_LOOP, FreshNames, demangle
from irad.decompile.pair_text import PairText, pair_text
from irad.decompile.raises import reaching_success
from irad.decompile.refusal import refused
from irad.driver import locate
from irad.errors import IradError, SignatureError, UnsupportedError
from irad.frontend.calls.task import Role, Seed, Task
from irad.frontend.derivation import generated
from irad.frontend.numba.convention import NUMBA
from irad.frontend.numba.cpu import NumbaProgram
from irad.frontend.values import tree
from irad.frontend.values.abi import Argument
from irad.ir.instructions import CallSite
from irad.ir.module import Function, Module
from irad.options import Options
from irad.passes.callees import Pointer, resolve
from irad.passes.generated import GeneratedPair
from irad.ruleset.expr import evaluate, expression
from irad.ruleset.interface import CallRule
from irad.ruleset.python_names import python_name
from irad.ruleset.shortcut_slopes import BODIES, VALUES

# What irad generates for a function, stopped before the plan is carried out.
#
# Input   a dispatcher, argument types, a task.
# Output  `Capture`: for the entry and each callee with a derivative a `GeneratedPair`: both sweeps as objects of
#         `irad.ir`, and the plan. The reverse sweep still has placeholders for what it needs of the forward sweep.
# Method  the steps of `irad.driver.derive`, with the same request, rules and passes; the text is not printed, and
#         nothing is compiled. So what is rendered is what the compiled gradient is made of.


@dataclass(frozen=True, slots=True)
class Capture:
    """A whole derivative; the pair of the entry comes first."""

    program: NumbaProgram
    arguments: tuple[Argument, ...]
    return_type: Any
    module: Module
    pairs: tuple[GeneratedPair, ...]


def capture(dispatcher: Any, argument_types: tuple[Any, ...], task: Task) -> Capture:
    """Runs irad up to the plan.

    Raises:
        IradError: the function cannot be compiled or differentiated.
    """
    wanted, module, made = generated(dispatcher, argument_types, task, "plan.plan")
    return Capture(wanted.program, wanted.arguments, wanted.return_type, module, tuple(made.pairs))


# What the executable form of an adjoint needs besides numpy.


def times(cotangent: Any, factor: Any) -> Any:
    """A product that is zero where the cotangent is, whatever the factor is."""
    return cotangent * factor if cotangent != 0.0 else cotangent * 0.0


def divided(cotangent: Any, divisor: Any) -> Any:
    """A quotient that is zero where the cotangent is, whatever the divisor is."""
    return cotangent / divisor if cotangent != 0.0 else cotangent * 0.0


def unsigned(number: int, bits: int = 64) -> int:
    """The number that the same bits are without a sign."""
    return int(number) % (1 << bits)


def wrapped(number: int, bits: int = 64) -> int:
    """The number with a sign that the lowest bits are."""
    return (int(number) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


as_int64 = wrapped
"""`wrapped` to 64 bits, written in the exact form only; the text for readers leaves it out."""


def truncated_quotient(a: int, b: int) -> int:
    """Division that rounds towards zero, as machines divide."""
    whole = abs(int(a)) // abs(int(b))
    return whole if (a < 0) == (b < 0) else -whole


def truncated_rest(a: int, b: int) -> int:
    """Remainder of a division that rounds towards zero."""
    return int(a) - truncated_quotient(a, b) * int(b)


def natural(index: int) -> int:
    """An index into a part of an array, where only the exact form says it: Python counts others from the end."""
    if index < 0:
        raise IndexError(f"{index} is in front of the part of an array that is read or written")
    return index


def whole_items(count: int, size: int) -> int:
    """The number of items in ``count`` bytes; the text for readers is `count // size`, without the check."""
    if count % size:
        raise IndexError(f"{count} bytes are not a whole number of items of {size} bytes each")
    return count // size


def address(array: Any) -> int:
    """Address of the items of an array: two arrays are compared by it, to see whether they overlap."""
    return int(array.ctypes.data)


def slope(name: str) -> Callable[..., float]:
    """A function in which derivatives of Numba's functions are written (`irad.ruleset.shortcut_slopes`)."""
    return lambda *arguments: evaluate(BODIES[name](*map(expression, map(float, arguments))), {})


HELPERS: Final = {
    **{name: slope(name) for name in BODIES if name not in VALUES},
    "as_int64": as_int64, "address": address, "natural": natural, "whole_items": whole_items, "times": times,
    "divided": divided, "unsigned": unsigned, "wrapped": wrapped, "truncated_quotient": truncated_quotient,
    "truncated_rest": truncated_rest,
}  # fmt: skip
"""Functions that the source calls besides numpy, `scipy.special` and those of Python."""

BUILTINS: Final = ("abs", "bool", "float", "int", "len", "max", "min", "range", "reversed")
"""Functions of Python that the source calls."""


def globals_of_exact_form() -> dict[str, Any]:
    """A namespace in which the source runs."""
    found: dict[str, Any] = {"np": np, "special": None, **HELPERS}
    with contextlib.suppress(ImportError):
        found["special"] = importlib.import_module("scipy.special")  # takes long, and few functions need it
    return found


# The text.


@dataclass(frozen=True, slots=True)
class PythonText:
    """An adjoint as Python.

    Attributes:
        name: name of the function in it.
        source: the readable form.
        exact: the same with products that keep a zero cotangent zero (see docs/contracts.md) spelled out as calls of
            `times` and `divided`, and integers that wrap around.
        exceptions: those that it raises, by name.
    """

    name: str
    source: str
    exact: str
    exceptions: dict[str, type[BaseException]] = field(default_factory=dict)

    @property
    def lines(self) -> list[str]:
        """The lines of the readable form."""
        return self.source.rstrip("\n").split("\n")

    def namespace(self, *, exact: bool = True) -> dict[str, Any]:
        """The namespace after executing the text, with the function under its name."""
        found = {**globals_of_exact_form(), **self.exceptions}
        exec(compile(self.exact if exact else self.source, f"<{self.name}>", "exec"), found)
        return found


def adjoint_as_python(
    dispatcher: Any, argument_types: tuple[Any, ...], positions: tuple[int, ...], options: Options | None = None
) -> PythonText:
    """The value and the gradient of a Numba function as Python source, derived from the compiled code.

    Args:
        dispatcher: a function that `numba.njit` compiled.
        argument_types: Numba types, one per parameter.
        positions: positions of the arguments to differentiate with respect to.
        options: options of the derivative.

    Raises:
        UnsupportedError: something in it has no Python form.
    """
    options = options or Options()
    _check_parameters(dispatcher, argument_types)
    exact, exceptions = _function(dispatcher, argument_types, positions, options)
    source = trees.with_plain_products(exact)
    source.body[0] = ast.Expr(ast.Constant(f"{ast.get_docstring(exact)}\n\n    {_PLAIN}\n    "))
    return PythonText(exact.name, trees.unparse([source]), trees.unparse([exact]), exceptions)


def _check_parameters(dispatcher: Any, argument_types: tuple[Any, ...]) -> None:
    parameters = inspect.signature(dispatcher.py_func).parameters.values()
    if len(parameters) != len(argument_types):
        raise SignatureError(
            f"{dispatcher.py_func.__qualname__} has {len(parameters)} parameters, but {len(argument_types)} types are "
            "given",
            "give one for each parameter, defaults included",
            "the function is written for the types of one call",
        )
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        raise UnsupportedError(
            "arguments that a star collects cannot be written as Python",
            "pass them as one tuple, without the star",
            "the compiled function takes them one by one",
        )


_PLAIN = "A zero cotangent (…_bar) times anything is zero."


def _function(
    dispatcher: Any, argument_types: tuple[Any, ...], positions: tuple[int, ...], options: Options
) -> tuple[ast.FunctionDef, dict[str, type[BaseException]]]:
    """The exact form, and its exceptions."""
    task = Task(tuple((p, Role.GRADIENT) for p in positions), seed=Seed.GIVEN, options=options, lends_shadows=True)
    captured = capture(dispatcher, argument_types, task)
    _check_result(captured)
    _check_arguments(captured, positions)
    result = result_of(captured.return_type)
    bars = [f"{name}_bar" for name in result.names]
    namer = FreshNames({"np", "special", *HELPERS, *BUILTINS, *result.names, *result.shape, *bars})
    arguments = tuple(_named(argument, namer) for argument in captured.arguments)
    try:
        _check_calls(captured)
        made = pair_text(captured.pairs[0], arguments, result, namer)
    except IradError as error:
        locate(error, captured.module, NUMBA)
        raise
    name = f"{dispatcher.py_func.__name__}_gradient"
    return _written(name, arguments, result, positions, made), made.exceptions


def _named(argument: Argument, namer: FreshNames) -> Argument:
    """Gives it a name that is unique in the text."""
    name = namer.new_family(argument.name, ["_".join(map(str, ("", *leaf.path))) for leaf in argument.leaves])
    return replace(argument, name=name)


def _written(
    name: str, arguments: tuple[Argument, ...], result: ReturnedValue, positions: tuple[int, ...], made: PairText
) -> ast.FunctionDef:
    bars = [f"{name}_bar" for name in result.names]
    given = [arguments[p] for p in positions]
    docstring = f"Value, and gradient with respect to {', '.join(a.name for a in given)}."
    body: list[ast.stmt] = [ast.Expr(ast.Constant(docstring))]
    used = trees.names_in([*made.augmented, *made.reverse])
    for argument in arguments:
        body += _unpacked(argument, used if argument not in given else None)
    for tape in made.tape:
        body.append(trees.assign(trees.name(tape), ast.Dict([], [])))
    body += made.augmented
    body.append(trees.comment("reverse sweep"))
    body += made.reverse
    value = _tuple([trees.name(name) for name in result.names])
    if made.is_flat:
        value = trees.call("result.reshape", *map(trees.name, result.shape))
    gradients = _tuple([_gradient(argument, argument.type, ()) for argument in given])
    body.append(ast.Return(ast.Tuple([value, gradients], ast.Load())))
    parameters = [ast.arg(a.name) for a in arguments] + [ast.arg(b) for b in bars]
    defaults: list[ast.expr] = [ast.Constant(1.0)] if len(bars) == 1 and result.data is None else []
    signature = ast.arguments([], parameters, None, [], [], None, defaults)
    return ast.FunctionDef(name, signature, body, [], None)


def _unpacked(argument: Argument, used: set[str] | None) -> list[ast.stmt]:
    """Arrays out of tuples, and memory for cotangents; without ``used`` for all, else for those that are used."""
    made: list[ast.stmt] = []
    for leaf in argument.leaves:
        if not leaf.is_array:
            continue
        text = argument.name + "".join(f"_{i}" for i in leaf.path)
        if leaf.path:
            place = ast.parse(argument.name + "".join(f"[{i}]" for i in leaf.path), mode="eval").body
            made.append(trees.assign(trees.name(text), place))
        if leaf.kind is tree.LeafKind.ARRAY and (used is None or f"{text}_bar" in used):
            made.append(trees.assign(trees.name(f"{text}_bar"), trees.call("np.zeros_like", trees.name(text))))
    return made


def _gradient(argument: Argument, numba_type: Any, path: tuple[int, ...]) -> ast.expr:
    """The gradient in the structure of the argument; None where there is none."""
    if isinstance(numba_type, types.BaseTuple):
        parts = [_gradient(argument, item, (*path, i)) for i, item in enumerate(numba_type.types)]
        return ast.Tuple(parts, ast.Load())
    if tree.kind_of(numba_type) is tree.LeafKind.INERT:
        return ast.Constant(None)
    return trees.name(f"{argument.name}{''.join(f'_{i}' for i in path)}_bar")


def _tuple(parts: Sequence[ast.expr]) -> ast.expr:
    return parts[0] if len(parts) == 1 else ast.Tuple(list(parts), ast.Load())


def _called(captured: Capture, symbol: str) -> str:
    """Description of a call, with the callee's name in the source."""
    known = captured.program.python_functions.get(symbol)
    ruled = next((each.rule.name for each in captured.program.ruled if each.symbol == symbol), None)
    demangled = demangle(symbol)
    is_loop = demangled is not None and demangled.name == PARALLEL_LOOP
    if is_loop or symbol.startswith("irad.parallel."):  # what fills and copies arrays in Numba's loops
        return "a parallel loop"
    if symbol.startswith(("irad.arena_", "irad.shadow_", "irad.strong_zero_")):
        return "a derivative inside the function"
    name = known[0].__qualname__ if known is not None else ruled
    name = name or (demangled.name if demangled is not None else python_name(symbol))
    return f"a call of {name}, which was not inlined,"


def _check_calls(captured: Capture) -> None:
    """Calls that stay calls and take part in the derivative have no form in Python yet."""
    unit = captured.pairs[0].augmented.unit
    good = reaching_success(unit.function)
    for inst in unit.function.instructions():
        if inst.block not in good or not isinstance(inst, CallSite):
            continue
        callee = resolve(inst, unit.registry)
        symbol = str(inst.callee.name) if isinstance(inst.callee, Function) else "a function value"
        moves = symbol.startswith(("NRT_", "llvm.mem", "malloc"))
        if isinstance(callee, Function | Pointer) or (isinstance(callee, CallRule) and not moves):
            why = "what is written is one function, with all that was inlined into it"
            raise refused(_called(captured, symbol), inst, why=why)


def _check_result(captured: Capture) -> None:
    """Refuses results other than numbers and arrays of floats."""
    returned = captured.return_type
    if isinstance(returned, types.Array) and isinstance(returned.dtype, types.Float) and returned.layout == "C":
        return
    pending = [captured.return_type]
    while pending:
        returned = pending.pop()
        if isinstance(returned, types.BaseTuple):
            pending.extend(returned.types)
        elif not isinstance(returned, types.Float | types.Integer | types.Boolean):
            raise UnsupportedError(
                f"a function that returns {captured.return_type} cannot be written as Python with its adjoint",
                "return numbers or an array of floats, or look at the adjoint as LLVM IR",
                "the adjoint begins with the cotangent of the value, numbers or one array",
            )


def _check_arguments(captured: Capture, positions: tuple[int, ...]) -> None:
    """Checks that differentiated arguments are floats or arrays of floats."""
    for position in positions:
        argument = captured.arguments[position]
        for leaf in argument.leaves:
            number = leaf.type.dtype if leaf.kind is tree.LeafKind.ARRAY else leaf.type
            if leaf.kind is not tree.LeafKind.INERT and not isinstance(number, types.Float):
                raise refused(
                    f"the gradient with respect to {argument}, a {argument.type},",
                    instead="differentiate with respect to floats and arrays of floats",
                    why="what is written returns gradients as numbers and arrays",
                )
