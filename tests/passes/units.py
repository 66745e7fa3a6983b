"""Analyses and derivatives of hand-written functions."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import llvmlite.binding as ll

from irad.backend.runtime import support
from irad.driver import Derivative, derive
from irad.frontend.numba.convention import NUMBA
from irad.ir.module import Block, Function, Module
from irad.ir.text.parser import parse_module
from irad.ir.types import PointerType
from irad.ir.values import Value
from irad.passes.analysis.effects import Effects, find_effects
from irad.passes.convention import HostConvention
from irad.passes.derivative import analyse, generate, prepare_module
from irad.passes.generated import Generated, GeneratedPair
from irad.passes.memory.objects import PointsTo
from irad.passes.memory.points_to import find_objects
from irad.passes.mode import AUGMENTED, REVERSE
from irad.passes.plan.agreement import check_agreement
from irad.passes.program import Program
from irad.passes.request import MemoryType, ParameterKind, Request
from irad.passes.unit import Unit
from irad.passes.variant import Variant
from irad.rules import ALL
from irad.ruleset.registry import Registry

DOUBLES = MemoryType(8, ((0, "double"),))
INTEGERS = MemoryType(8, ((0, "i64"),))
POINTERS = MemoryType(8, ((0, "ptr"),))

COUNTING = """
declare ptr @NRT_MemInfo_alloc_aligned(i64, i32)
declare void @NRT_incref(ptr)
declare void @NRT_decref(ptr)
declare void @other(ptr)
"""
"""How Numba allocates memory and counts references to it, and a function that might do anything."""

_KINDS = {"c": ParameterKind.CONST, "a": ParameterKind.ACTIVE, "s": ParameterKind.SHADOW}


@cache
def registry() -> Registry:
    """The built-in rules."""
    return Registry.of(*ALL)


def canonical(text: str) -> str:
    """LLVM's own spelling of a module, which LLVM has checked."""
    module = ll.parse_assembly(text)
    module.verify()
    return str(module)


def parsed(text: str) -> tuple[Module, Function]:
    """A prepared module and its first function with a body."""
    module = parse_module(canonical(text))
    prepare_module(module)
    return module, module.defined_functions()[0]


def request_of(
    function: Function,
    kinds: str,
    memory: Sequence[MemoryType | None] | None = None,
    host: HostConvention = NUMBA,
    **options: Any,
) -> Request:
    """A request: a letter for each parameter (c, a, s); they point to doubles unless said otherwise."""
    if memory is None:
        memory = [DOUBLES if isinstance(p.type, PointerType) else None for p in function.params]
    assert function.name is not None
    return Request(function.name, tuple(_KINDS[k] for k in kinds), tuple(memory), host, **options)


def unit_of(
    text: str,
    kinds: str,
    memory: Sequence[MemoryType | None] | None = None,
    *,
    entry: bool = True,
    result_active: bool = False,
    **options: Any,
) -> Unit:
    """The analyses of the first function of a module."""
    module, function = parsed(text)
    request = request_of(function, kinds, memory, **options)
    variant = Variant(function, request.kinds, request.memory, result_active, False, is_entry=entry)
    return analyse(Program(module, registry(), request), variant)


def points_to_of(text: str, memory: Sequence[MemoryType | None] | None = None) -> tuple[Function, PointsTo]:
    """The points-to result of the first function; all parameters point to doubles unless said otherwise."""
    _, function = parsed(text)
    given = memory or [DOUBLES] * len(function.params)
    return function, find_objects(function, dict(zip(function.params, given, strict=True)), registry())


def effects_without_kept(unit: Unit, *, arguments_change: bool = False) -> Effects:
    """Effects of a unit when no allocation is kept."""
    return find_effects(unit.cfg, unit.mod_ref, arguments_change=arguments_change)


def derivative(text: str, kinds: str, memory: Sequence[MemoryType | None] | None = None, **options: Any) -> Generated:
    """What is made for the first function of a module."""
    module, function = parsed(text)
    made = generate(module, request_of(function, kinds, memory, **options), registry())
    for each in made.pairs if REVERSE in made.pairs[0].pair.functions else ():
        check_agreement(each.pair[AUGMENTED], each.pair[REVERSE])
    return made


def generated(
    text: str, kinds: str, memory: Sequence[MemoryType | None] | None = None, **options: Any
) -> tuple[GeneratedPair, ...]:
    """The pairs made for the first function of a module, the entry's first."""
    return tuple(derivative(text, kinds, memory, **options).pairs)


def value(function: Function, name: str) -> Value:
    """The parameter or instruction of that name."""
    everything: list[Value] = [*function.params, *function.instructions()]
    return next(v for v in everything if v.name == name)


def block(function: Function, name: str) -> Block:
    """The block of that name."""
    return next(b for b in function.blocks if b.name == name)


def objects(points_to: PointsTo, pointer: Value) -> set[str]:
    """The objects a pointer may point to, in words."""
    return {str(item) for item in points_to.of(pointer)}


_SUPPORT = """
define void @NRT_decref(ptr %p) {{ ret void }}
define void @NRT_incref(ptr %p) {{ ret void }}
define ptr @malloc(i64 %size) {{
  %big = icmp ugt i64 %size, {limit}
  br i1 %big, label %none, label %some
none:
  ret ptr null
some:
  %p = call ptr @calloc(i64 1, i64 %size)
  ret ptr %p
}}
declare ptr @calloc(i64, i64)
"""


@dataclass
class Running:
    """A derivative in machine code, with an arena whose chunks cannot be larger than a limit."""

    derivative: Derivative
    engine: Any
    arena: int
    frame: Any = field(init=False)

    def __post_init__(self) -> None:
        self.frame = (ctypes.c_byte * (self.derivative.frame_size + 64))()

    def call(self, name: str, *arguments: Any, result: Any = ctypes.c_int32) -> Any:
        """Calls the augmented primal or the reverse on frame and arena."""
        address = self.engine.get_function_address(name)
        assert address
        types = [ctypes.c_void_p, ctypes.c_void_p, *(type(a) for a in arguments)]
        frame = -(-ctypes.addressof(self.frame) // 64) * 64
        return ctypes.CFUNCTYPE(result, *types)(address)(frame, self.arena, *arguments)

    def augmented(self, *arguments: Any) -> int:
        """The status of the forward sweep."""
        status: int = self.call(self.derivative.symbols[AUGMENTED], *arguments)
        return status

    def reverse(self, *arguments: Any) -> None:
        """Runs the reverse sweep."""
        self.call(self.derivative.symbols[REVERSE], *arguments, result=None)

    def close(self) -> None:
        """Gives the arena back."""
        delete = self.engine.get_function_address("irad.arena_delete")
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(delete)(self.arena)


def running(
    text: str,
    kinds: str,
    memory: Sequence[MemoryType | None] | None = None,
    *,
    limit: int = 1 << 30,
    derivative: Derivative | None = None,
    **options: Any,
) -> Running:
    """Compiles the derivative of the first function of a module.

    Args:
        text: the module.
        kinds: as in `request_of`.
        memory: as in `request_of`.
        limit: larger pieces of memory are not available.
        derivative: compiled in place of that of ``text``.
        options: of the request.
    """
    _, function = parsed(text)
    made = derivative or derive(canonical(text), request_of(function, kinds, memory, **options), registry(), check=True)
    support.install()
    module = ll.parse_assembly(support.runtime_text())
    for other in (made.text, _SUPPORT.format(limit=limit)):
        module.link_in(ll.parse_assembly(other))
    module.verify()
    engine = ll.create_mcjit_compiler(module, ll.Target.from_default_triple().create_target_machine(jit=True))
    engine.finalize_object()
    new = engine.get_function_address("irad.arena_new")
    return Running(made, engine, ctypes.CFUNCTYPE(ctypes.c_void_p)(new)())


def doubles(*values: float) -> Any:
    """A C array."""
    return (ctypes.c_double * len(values))(*values)


def pointer(array: Any) -> ctypes.c_void_p:
    """The address of a C array."""
    return ctypes.c_void_p(ctypes.addressof(array))


def straight(body: str) -> str:
    """A function of two numbers %x and %y whose result is %z."""
    return f"""
    declare double @exp(double)
    define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {{
      %b = getelementptr double, ptr %a, i64 1
      %x = load double, ptr %a
      %y = load double, ptr %b
      {body}
      store double %z, ptr %r
      ret i32 0
    }}"""


def gradient(text: str, point: Sequence[float], *integers: int, limit: int = 1 << 30, **options: Any) -> list[float]:
    """The gradient of `i32 (ptr result, ptr exception, ptr a, i64…)` by a; the sizes of memory are the caller's.

    Raises:
        MemoryError: the tape is larger than the limit.
        ArithmeticError: another status than 0.
    """
    kinds = "scs" + "c" * len(integers)
    memory = [DOUBLES, POINTERS, DOUBLES, *(None for _ in integers)]
    made = running(text, kinds, memory, limit=limit, **options)
    result, seed, a, shadow = doubles(0.0), doubles(0.0), doubles(*point), doubles(*(0.0 for _ in point))
    numbers = [ctypes.c_int64(i) for i in integers]
    try:
        status = made.augmented(
            pointer(result), ctypes.c_void_p(0), pointer(a), *numbers, pointer(seed), pointer(shadow)
        )
        if status == NUMBA.exhausted:
            raise MemoryError
        if status:
            raise ArithmeticError(status)
        seed[0] = 1.0
        made.reverse()
    finally:
        made.close()
    return list(shadow)
