"""Exceptions of kernels that are compiled with ``debug=True``.

Numba numbers what a function may raise, and has the first thread that raises store that number and its own coordinates
in variables of the module, which the host reads after the launch. A derivative would need those of the primal, and on
the CPU launches that run at the same time would share them. So here a record of the launch's takes their place: a
pointer to it is the last parameter of the kernel.

Numba's numbers start again in each function, and so it takes the exception of a device function for one of the
kernel's. Here all functions share the numbers.
"""

from __future__ import annotations

import os
import struct
from typing import Any, Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Call
from irad.ir.module import Function, Module
from irad.ir.values import Parameter

_WORDS: Final = ("errcode", "tidz", "tidy", "tidx", "ctaidz", "ctaidy", "ctaidx")
"""Fields of the record, each an i32; coordinates in the order in which Numba's messages have them."""
RECORD_SIZE: Final = 4 * len(_WORDS)
RECORD: Final = "irad.raised"
"""Name of the parameter."""


class _Numbers:
    """The numbers of exceptions, which are the same whenever a function is compiled; used under Numba's lock."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], int] = {}
        self._raised: list[tuple[type[Exception], tuple[Any, ...] | None, tuple[str, str, int] | None]] = []

    def number(self, kind: Any, arguments: Any, place: Any) -> int:
        """The number of an exception."""
        key = kind, repr(arguments), place
        if key not in self._known:
            self._raised.append((kind, arguments, place))
            self._known[key] = len(self._raised)
        return self._known[key]

    def exception(self, code: int, thread: list[int], block: list[int]) -> Exception:
        """Exception that Numba raises for a number."""
        kind, arguments, place = self._raised[code - 1]
        where = f"tid={thread} ctaid={block}"
        if place is not None:
            function, file, line = place
            where = f"In function {function!r}, file {os.path.abspath(file)}, line {line}, {where}"
        return kind(f"{where}: {arguments[0]}", *arguments[1:]) if arguments else kind(where)


_NUMBERS: Final = _Numbers()


def number_of(kind: Any, arguments: Any, place: Any) -> int:
    """The number of an exception that compiled code may raise; the same whenever it is compiled."""
    return _NUMBERS.number(kind, arguments, place)


def exception_of(record: bytes) -> Exception | None:
    """The exception that a launch raised, as Numba has it; None if it raised nothing."""
    code, *where = struct.unpack(f"<{len(_WORDS)}i", record)
    return _NUMBERS.exception(code, where[:3], where[3:]) if code else None


def take_record(module: Module, kernel: Function) -> bool:
    """Gives a kernel that records exceptions a parameter for the record, in place of Numba's variables.

    Returns:
        Whether it records exceptions.
    """
    variables = [module.globals.get(f"{kernel.name}__{word}__") for word in _WORDS]
    places = {id(variable): 4 * index for index, variable in enumerate(variables) if variable and variable.users}
    if not places:
        return False
    record = _appended(kernel)
    for function in module.defined_functions():
        found = [
            (user, i) for user in function.instructions() for i, each in enumerate(user.operands) if id(each) in places
        ]
        if found:
            own = record if function is kernel else _passed_on(function, kernel, record)
            b = Builder.at_start(function.entry)
            for user, i in found:
                user.set_operand(i, b.byte_offset(own, places[id(user.operands[i])]))
    return True


def _appended(function: Function) -> Parameter:
    """A new last parameter; nothing else points to its memory."""
    record = Parameter(types.PTR, RECORD, attributes=("noalias",))
    function.params = [*function.params, record]
    signature = function.function_type
    function.function_type = types.function_type(signature.result, [param.type for param in function.params])
    return record


def _passed_on(function: Function, kernel: Function, record: Parameter) -> Parameter:
    """A new last parameter of the function that numba-cuda's kernels call to record an exception."""
    inner = _appended(function)
    for call in [inst for inst in kernel.instructions() if isinstance(inst, Call) and inst.callee is function]:
        b = Builder.before(call)
        b.metadata = dict(call.metadata)
        b.call(function, [*call.arguments, record])
        call.erase()
    return inner
