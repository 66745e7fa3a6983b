from __future__ import annotations

import re

from irad.backend.runtime.support import runtime_text
from irad.ir.module import Module
from irad.ir.text.parser import parse_module
from irad.passes import runtime
from tests.passes.units import canonical

NAMES = (
    runtime.ARENA_ALLOC,
    runtime.ARENA_ALLOC_PRODUCT,
    runtime.ARENA_DEFER,
    runtime.ARENA_FAILED,
    runtime.STACK_FULL,
)


def test_the_declared_types_are_those_of_the_support_library():
    library = parse_module(canonical(runtime_text()))
    module = Module()
    for name in NAMES:
        declared = runtime.runtime_function(module, name)
        defined = library.functions[name]
        assert not defined.is_declaration
        assert declared.function_type is defined.function_type


def test_a_function_is_declared_once():
    module = Module()
    first = runtime.runtime_function(module, runtime.ARENA_ALLOC)
    assert runtime.runtime_function(module, runtime.ARENA_ALLOC) is first
    assert re.fullmatch(r"irad\.\w+", runtime.ARENA_ALLOC)
