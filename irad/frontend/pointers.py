"""Pairs for calls through pointers, made when a pointer is first called.

Input   what a derivative needs of the functions it calls through pointers (`PointerVariant`); addresses, at run time.
Output  tables (``irad/backend/runtime/pointers.ll``) that the derivative's code reads.
Method  an address that is not in the table is looked for among the functions that Numba has compiled in this process:
        njit functions, by either of their entries, and cfuncs. Its program is loaded and differentiated like that of
        any callee, the pair compiled and added to the table.
Limit   an address of other code has no derivative. That is an error of the derivative's call, raised when the forward
        sweep reaches the pointer: what the primal has done until then stays done.

A table lives as long as the process, and with it the functions in it: an address is never given to other code.
"""

from __future__ import annotations

import ctypes
import itertools
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

import llvmlite.binding as llvm

from irad.debug import events
from irad.driver import CalleeRequest, PointerVariant, Request, derive
from irad.errors import InternalError, NoRuleError, UnsupportedError
from irad.frontend import external
from irad.frontend.calls.exceptions import keeping
from irad.frontend.custom import catalogue
from irad.frontend.custom.program_rules import complete, memory_of, registry_of, rules_of
from irad.frontend.linkable import compile_pair
from irad.frontend.numba.cpu import load_callee
from irad.frontend.numba.library import CPU
from irad.frontend.numba.private import compiler_lock
from irad.frontend.numba.raw_target import function_at
from irad.records import dataclass
from irad.ruleset.python_names import python_name
from irad.ruleset.registry import Registry
from irad.runtime_layouts import PAIR, PAIRS


class _Entry(ctypes.Structure):
    """An entry of a table, as generated code reads it."""

    _fields_ = PAIR.in_c


class _Head(ctypes.Structure):
    """The start of a table."""

    _fields_ = PAIRS.in_c


@dataclass(eq=False)
class _Table:
    """The pairs of one variant; ``alive`` holds what their code refers to."""

    variant: PointerVariant
    request: Request
    registry: Registry
    head: _Head
    entries: dict[int, _Entry] = field(default_factory=dict)
    alive: list[Any] = field(default_factory=list)

    def entry(self, address: int) -> int:
        """The address of the entry for a function, which is made if there is none."""
        with compiler_lock():
            made = self.entries.get(address)
            if made is None:
                made = self.entries[address] = self.make(address)
                made.next = self.head.first
                self.head.first = ctypes.addressof(made)  # last: other threads read the list meanwhile
            return ctypes.addressof(made)

    def forget(self) -> None:
        """Drops all pairs: a rule has changed. Frames that refer to one keep it; it is only found no more."""
        self.alive += self.entries.values()
        self.entries.clear()
        self.head.first = None

    def make(self, address: int) -> _Entry:
        if self.variant.by_value:
            raise UnsupportedError(
                "arrays are passed by value through a function pointer, which irad does not support yet",
                "pass a function compiled by numba.njit instead of numba.cfunc",
                "a numba.cfunc function takes the fields of an array one by one, and irad cannot tell which of them "
                "are addresses",
            )
        found = function_at(address)
        if found is None:
            name = python_name(external.symbol_of(address, None, -1)) if address else "null"
            raise NoRuleError(
                f"a function pointer points to code without a derivative: {name}",
                "pass functions compiled by numba.njit or numba.cfunc",
                "Numba did not compile it in this process, so irad has no code to differentiate",
            )
        watches = self.request.watches
        promotes = self.request.plan == "default" and not watches
        program = load_callee(found, peels=not watches, checks=self.request.checks_bounds, promotes=promotes)
        variant = self.variant
        callee = CalleeRequest(variant.function_type, variant.result_active, variant.result_has_shadow)
        request = Request(
            program.entry,
            variant.kinds,
            variant.memory,
            self.request.host,
            self.request.mode,
            self.request.plan,
            strict=self.request.strict,
            zero_wins=self.request.zero_wins,
            no_zero_wins=self.request.no_zero_wins,
            shows_zeros=self.request.shows_zeros,
            vector_math=self.request.vector_math,
            callee=callee,
            ruled=memory_of(program.ruled),
            restores=catalogue.any_restores(),
            signatures=program.signatures,
            has_types=True,
            watches=self.request.watches,
            meters=self.request.meters,
            checks_bounds=self.request.checks_bounds,
        )
        registry = registry_of(program.ruled, self.registry, self.request.mode)
        derivative = derive(program.text, request, registry, canonical_loops=CPU.canonical_loops)
        install(derivative.pointers, request, self.registry)
        events.install(derivative.table, derivative.places, rules_of(program.ruled, self.request.mode))
        names = (*derivative.symbols.values(),)
        text, libraries = complete(derivative, program.ruled, request)
        library, addresses = compile_pair(
            text, names, program.environments, program.alive, libraries, has_vector_math=request.vector_math
        )
        self.alive += [found, program, library]
        return _Entry(None, address, *addresses, derivative.frame_size)


_MOST_FAILURES = 1024  # where several lanes fail, one of them is asked for why
_numbers: Final = itertools.count(1)
_failures: Final[OrderedDict[int, BaseException]] = OrderedDict()
_TABLES: Final[dict[int, _Table]] = {}
_BY_SYMBOL: Final[dict[str, _Table]] = {}


@catalogue.when_changed
def _forget() -> None:
    """Pairs are made again with the current rules."""
    with compiler_lock():
        for table in _TABLES.values():
            table.forget()


def install(tables: Mapping[str, PointerVariant], request: Request, registry: Registry) -> None:
    """Makes the tables that a derivative refers to known to LLVM.

    Args:
        tables: by symbol, from `Derivative.pointers`.
        request: request of that derivative.
        registry: the rules.
    """
    for symbol, variant in tables.items():
        if symbol not in _BY_SYMBOL:
            head = _Head(None, ctypes.cast(_resolver, ctypes.c_void_p))
            table = _Table(variant, request, registry, head)
            _BY_SYMBOL[symbol] = _TABLES[ctypes.addressof(head)] = table
            llvm.add_symbol(symbol, ctypes.addressof(head))


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))
def _resolver(table: int, address: int | None, why: Any) -> int | None:
    """Called by generated code for an address that its table lacks; writes the number of a failure.

    Numba's threads call it, too: what they cannot raise, the thread that called the derivative raises in the end.
    """
    try:
        return _TABLES[table].entry(address or 0)
    except BaseException as error:  # an interrupt, too
        why[0] = number = next(_numbers)
        _failures[number] = error
        if len(_failures) > _MOST_FAILURES:
            _failures.popitem(last=False)
        return None


@keeping
def keep_pending(number: int) -> None:
    """Has generated code raise why there is no pair."""
    raise _failures.pop(number, None) or InternalError("why a function pointer has no derivative got lost")
