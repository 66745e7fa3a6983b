"""Numba's messages that users meet most, by their text: what each says in terms of the user's program.

A message is explained by the first hint whose pattern it holds.
"""

from __future__ import annotations

from typing import Final

from numba.core.errors import TypingError

from irad.records import dataclass

ONLY: Final = "irad differentiates what Numba compiles, and Numba supports a subset of Python and NumPy"
_AS_PYTHON: Final = "keep it as Python code and supply its derivative: irad.rules.import_rule({0}, rule, returns=…)"
_KNOWN: Final = "use functions that Numba supports (its documentation lists them)"
_OF_SCIPY: Final = (
    "use a function of math or np instead, if there is one, or (b) call the underlying C function: "
    "numba.extending.get_cython_function_address"
)
_TYPES: Final = "Numba supports numbers, arrays, tuples and its own classes, lists and dictionaries"
_PARTS: Final = "(a) pass the parts that the function needs as numbers, arrays or a named tuple"
_FIXED: Final = "compiled code treats global and closure variables as constants"
_NO_ARRAY: Final = "lists, sets and tuples are not arrays, and only arrays have arithmetic and array methods"
_TO_ARRAY: Final = "(a) pass an array, or make one: np.asarray(x) or (b) write a loop over the items"
_ONE_TYPE: Final = "in compiled code an expression has a single type"


@dataclass(frozen=True, slots=True)
class Hint:
    """A message of Numba's; the texts are formatted with the groups of the pattern, compiled when it is looked for."""

    pattern: str
    problem: str
    reason: str
    remedy: str
    focus: str | None = None


def refused(problem: str, reason: str, remedy: str) -> TypingError:
    """Error for typing functions of irad to raise, so that Numba says where: its message holds all three texts."""
    return TypingError(f"{problem}. Why: {reason}. Instead: {remedy}.")


HINTS: Final = (
    Hint(
        r"(?:^|(?<=\n)) *(?:\w+: )?([^\n]+?)\. Why: ([^\n]+?)\. Instead: ([^\n]+)\.",
        "{0}",
        "{1}",
        "{2}",
    ),
    Hint(
        r"name '(\w+)': Cannot determine Numba type of <class 'function'>",
        "it calls {0}, which is a plain Python function",
        "compiled code can only call compiled functions",
        "(a) decorate {0} with numba.njit or (b) " + _AS_PYTHON,
        "{0}",
    ),
    Hint(
        r"name '(\w+)': Cannot determine Numba type of <class 'numpy\.ufunc'>",
        "it calls {0}, a ufunc that Numba does not support",
        ONLY,
        f"(a) {_OF_SCIPY} or (c) " + _AS_PYTHON,
        "{0}",
    ),
    Hint(
        r"name '(\w+)': Cannot determine Numba type of <class 'numpy\.vectorize'>",
        "it calls {0}, which was made by np.vectorize",
        "np.vectorize calls a Python function for each element; compiled code can only call compiled functions",
        "make {0} with numba.vectorize instead of np.vectorize",
        "{0}",
    ),
    Hint(
        r"name '(\w+)': Cannot determine Numba type of <class 'functools\.partial'>",
        "it calls {0}, a functools.partial",
        "compiled code can only call compiled functions",
        "make {0} a numba.njit function that passes the fixed arguments on",
        "{0}",
    ),
    Hint(
        r"name '(\w+)': Cannot determine Numba type of <class 'type'>",
        "it uses {0}, which is a class",
        "compiled code cannot read attributes of Python classes or create instances of them",
        "(a) assign what it needs to a variable of the module or (b) make {0} a numba.experimental.jitclass",
        "{0}",
    ),
    Hint(
        r"name '(\w+)': Cannot determine Numba type of <class '([\w.<>]+)'>",
        "it uses {0}, an object of type {1}",
        _TYPES,
        f"{_PARTS} or (b) make its class a numba.experimental.jitclass",
        "{0}",
    ),
    Hint(
        r"The use of a (.+) type, assigned to variable '(\w+)' in globals, is not supported",
        "it uses the global {1}, a {0}",
        _FIXED,
        "(a) pass {1} as an argument or (b) make it a tuple or an array, which is read when the function is compiled",
        "{1}",
    ),
    Hint(
        r"OverloadSelector[^\n]*\(([\w.]+)\(.*\n.*= freevar\((\w+):",
        "it uses {1}, a {0} of the function around it",
        _FIXED,
        "(a) pass {1} as an argument or (b) make it a tuple or an array, which is read when the function is compiled",
        "{1}",
    ),
    Hint(
        r"name '(\w+)' is not defined",
        "the name {0} is not defined",
        "it is neither a variable of the function nor a name in its module",
        "(a) correct the name or (b) define or import it before the function is called",
        "{0}",
    ),
    Hint(
        r"Cannot modify readonly array",
        "it writes to an array that is read-only",
        "compiled code treats a global array as a constant, with its contents at the time of compilation",
        "(a) pass the array as an argument or (b) create it inside the function",
    ),
    Hint(
        r"Unknown attribute '(\w+)' of type Module\(<module '(scipy\.special)'",
        "it uses {1}.{0}, which Numba does not support",
        ONLY,
        f"(a) {_OF_SCIPY} or (c) " + _AS_PYTHON.replace("{0}", "{1}.{0}"),
        "{0}",
    ),
    Hint(
        r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'",
        "it uses {1}.{0}, which Numba does not support",
        ONLY,
        f"(a) {_KNOWN} or (b) " + _AS_PYTHON.replace("{0}", "{1}.{0}"),
        "{0}",
    ),
    Hint(
        r"Use of unsupported NumPy function '(?:\w+\.)*?(\w+)'",
        "it uses np.{0}, which Numba does not support",
        ONLY,
        f"(a) {_KNOWN} or (b) " + _AS_PYTHON.replace("{0}", "np.{0}"),
        "np.{0}",
    ),
    Hint(
        r"Unknown attribute '(\w+)' of type ((?:reflected )?(?:list|set)\(.+|(?:Uni)?Tuple\(.+)",
        "a value of type {1} has no attribute {0}",
        _NO_ARRAY,
        _TO_ARRAY,
        "{0}",
    ),
    Hint(
        r"Unknown attribute '(\w+)' of type ((?:float|complex|int|uint)\d+)\b",
        "a value of type {1} has no attribute {0}",
        "operations on numbers and on zero-dimensional arrays yield numbers, which have no array methods",
        "(a) pass a one-dimensional array: np.atleast_1d(x) or (b) leave out {0}: there is only one number",
        "{0}",
    ),
    Hint(
        r"Unknown attribute '(\w+)' of type (.+)",
        "a value of type {1} has no attribute {0}",
        "Numba supports some of the attributes and methods that Python has",
        "(a) correct the name or (b) use one that Numba supports (its documentation lists them)",
        "{0}",
    ),
    Hint(
        r"Invalid use of getiter with parameters \((?:Named)?Tuple\((.+)\)\)",
        "it loops over a tuple whose items have different types: {0}",
        _ONE_TYPE,
        "loop over numba.literal_unroll(items), which compiles the loop for each item",
    ),
    Hint(
        r"Cannot unify (.+?) and (.+?) for '([A-Za-z_]\w*)[^']*'",
        "the variable {2} is {0} in one place and {1} in another",
        "in compiled code a variable has a single type",
        "(a) give it values of a single type or (b) use two variables",
        "{2}",
    ),
    Hint(
        r"Cannot unify (.+?) and (.+?) for '\$",
        "an expression is {0} in one case and {1} in another",
        _ONE_TYPE,
        "give it the same type in all cases, for instance 0.0 instead of 0 or None",
    ),
    Hint(
        r"Can't unify return type from the following types: (.+)",
        "it returns values of different types: {0}",
        "in compiled code a function returns values of a single type",
        "return values of a single type, for instance 0.0 instead of 0 or None",
    ),
    Hint(
        r">>> exception_match\(",
        "it catches exceptions of one class",
        "in compiled code `except` catches every exception, whatever its class",
        "(a) write `except Exception:` or (b) test beforehand for the condition that raises it",
    ),
    Hint(
        r"cannot type infer runaway recursion",
        "it calls itself on every path",
        "Numba infers the type of its result from a path that returns without a recursive call",
        "return a value before the recursive call, for instance `if n == 0: return 1.0`",
    ),
    Hint(
        r"Type of variable '\$\S+' cannot be determined",
        "Numba cannot tell the type of an expression on this line",
        _ONE_TYPE,
        "split the line into several statements",
    ),
    Hint(
        r"unsupported opcode \((?:STORE|DELETE)_GLOBAL\)",
        "it assigns to a global variable",
        _FIXED,
        "(a) return the value or (b) pass an array and store the value in it",
    ),
    Hint(
        r"unsupported opcode \(IMPORT_(?:NAME|FROM)\)",
        "it imports a module",
        "an import runs Python code",
        "move the import out of the function, to the top of the file",
    ),
    Hint(
        r"unsupported opcode \(LOAD_BUILD_CLASS\)",
        "it defines a class",
        "a class statement runs Python code",
        "define the class outside, as a numba.experimental.jitclass",
    ),
    Hint(
        r"unsupported opcode \((\w+)\)",
        "it uses a statement or an expression that Numba does not support (opcode {0})",
        ONLY,
        "write the line differently",
    ),
    Hint(
        r"format spec in f-strings not supported",
        "it formats a value in an f-string",
        "Numba supports f-strings without format specifications",
        "(a) print the value itself, without an f-string: print(x) or (b) format it in Python, outside of the function",
    ),
    Hint(
        r"'with \(context manager\) as \(variable\):' construct is not supported",
        "it uses a with statement",
        "Numba supports only one context manager, numba.objmode",
        "move the statement into the Python code that calls the function",
    ),
    Hint(
        r"No implementation of function Function\(<[^>]*>\)[^>]*>>> (?P<operation>(?:i?(?:add|sub|mul|truediv|pow|"
        r"matmul)|neg|\w*_impl))\((.*\b(?:list|set|(?:Uni)?Tuple)\(.*)\)",
        "{0} is not defined for the types ({1})",
        _NO_ARRAY,
        _TO_ARRAY,
    ),
    Hint(
        r"No implementation of function Function\(<[^>]*>\)[^>]*>>> (?P<operation>\w+)\((.*)\)",
        "{0} is not defined for the types ({1})",
        "Numba compiles each operation for the types of its operands, and supports no version for these",
        "(a) convert the operands, or leave out arguments that Numba does not support or (b) keep everything that is "
        "not a number out of the function",
    ),
    Hint(
        r"Cannot determine Numba type of <class '([\w.<>]+)'>",
        "it uses an object of type {0}",
        _TYPES,
        f"{_PARTS} or (b) make its class a numba.experimental.jitclass",
    ),
)
