"""The text of `docs/errors.md`: what irad says, with an example of each kind from the catalogue."""

from __future__ import annotations

import ast
from typing import Final

from tests.errors.catalogue import HERE, Program

PAGE: Final = HERE.parents[1] / "docs" / "errors.md"

_HEAD: Final = """# Errors

Written by `scripts/make_errors_page.py` from the wrong programs in `tests/errors/programs`; do not edit. Every message
here is compared with what irad says, and every remedy is run, by `tests/errors`.

What irad cannot do it says before anything runs, as an exception whose text has four parts:

| | |
| --- | --- |
| first line | what is wrong; it names the function and the argument |
| `at` | file, line and function, and the line itself; of a function that was inlined, also where it was `called from` |
| `why` | the reason, in terms of Python |
| `do` | the remedy; where there are several, (a), (b), … on lines of their own |

*Active* is what depends on the arguments that you differentiate with respect to; the *primal* is your function; a
*shadow* is the array that holds the derivative with respect to another; a *cotangent* (or seed) says how much each
number of a result weighs.

The same text is shown by an uncaught exception, in notebooks, at the command line, and by
`print(irad.check(f, *args))`, which lists all problems of a function without running it.

## What can be caught

| class | when |
| --- | --- |
| `irad.IradError` | the root of all |
| `irad.SignatureError` | an argument, an annotation, a shadow or a cotangent does not fit |
| `irad.UnsupportedError` | irad cannot differentiate that |
| `irad.UnsupportedProgram` | several such places of one function, listed in `errors`; an `UnsupportedError` |
| `irad.NoRuleError` | a call of code that irad does not see, without rule; an `UnsupportedError` |
| `irad.ActivityError` | derivatives would be lost in memory that was passed as constant |
| `irad.BoundsError` | with `Options(boundscheck=True)`, an index is out of bounds; an `IndexError` |
| `irad.KernelError` | a CUDA kernel that runs on the CPU has a `RaceError`, `BarrierError` or `KernelBoundsError` |
| `irad.RuleError` | a rule that you wrote contradicts what it is for |
| `irad.BackendError` | Numba cannot compile the function, or LLVM the derivative |
| `irad.PlanError`, `irad.ParseError`, `irad.InternalError` | irad is at fault: please report it |

Each has the parts of the text as attributes: `problem`, `reason`, `remedy`, `location` (with `file`, `line` and
`function`), `callers`. What the function raises itself (a `ValueError`, a `ZeroDivisionError`) its derivative raises
as it is.

## Seeing more

A traceback ends at the call in your code: irad's own frames, and those of Numba's compiler, are left out. With the
environment variable `IRAD_ERRORS=llvm` they are shown, with Numba's whole message, and beside the line of your source
the LLVM instruction that irad stumbled over. A fault of irad's own (`InternalError`) always has its whole traceback.
"""

_KINDS: Final = {
    "calls": "Calls and annotations",
    "activity": "Active and constant memory",
    "unsupported": "What irad does not differentiate",
    "compiler": "What Numba does not compile",
    "rules": "Rules",
    "platform": "The machine and the settings",
}

_SHOWN: Final = (
    Program("calls", "integer_argument"),
    Program("calls", "array_result"),
    Program("calls", "active_array"),
    Program("calls", "shadow_of_another_shape"),
    Program("calls", "index_out_of_bounds"),
    Program("activity", "constant_array_written_in_callee"),
    Program("unsupported", "object_mode"),
    Program("unsupported", "several_problems"),
    Program("compiler", "scipy_function"),
    Program("compiler", "variable_of_two_types"),
    Program("rules", "ctypes_function"),
    Program("rules", "too_few_cotangents"),
    Program("platform", "environment"),
)


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    kind = ""
    for program in _SHOWN:
        if program.kind != kind:
            kind = program.kind
            parts.append(f"## {_KINDS[kind]}\n")
        parts.append(_example(program))
    return "\n".join(parts)


def _example(program: Program) -> str:
    text = program.path.read_text(encoding="utf-8")
    title = (ast.get_docstring(ast.parse(text)) or "").rstrip(".")
    shown = text.partition("\ndef mended")[0].rstrip("\n")
    message = program.golden.read_text(encoding="utf-8").rstrip("\n")
    return f"### {title}\n\n```python\n{shown}\n```\n\n```text\n{message}\n```\n"
