"""The run-time support as text: every file alone, its types against the one table of structs, numbers it repeats."""

from __future__ import annotations

import mmap
from functools import cache
from pathlib import Path

import llvmlite.binding as ll
import pytest

from irad import runtime_layouts
from irad.backend.runtime import process, standalone, support
from irad.ir.instructions import GetElementPtr, Instruction, Load, Store
from irad.ir.module import Module
from irad.ir.text.parser import parse_module
from irad.ir.types import NamedStructType, field_offsets, size_of, struct_body
from irad.ir.values import ConstantInt
from irad.raw.convention import C
from irad.runtime_layouts import OUT_OF_MEMORY, PAIR_MISSING, STRUCTS, TAPE_FULL

FOLDER = Path(support.__file__).parent
FILES = sorted(path.name.removesuffix(".ll") for path in FOLDER.glob("*.ll"))


@pytest.mark.parametrize("name", FILES)
def test_llvm_takes_each_file_alone(name: str):
    module = ll.parse_assembly(f"{support.TYPES}\n{FOLDER.joinpath(f'{name}.ll').read_text()}")
    module.verify()
    assert any(not function.is_declaration for function in module.functions)


@pytest.mark.parametrize("name", FILES)
def test_a_file_defines_no_types_and_heads_are_on_one_line(name: str):
    lines = FOLDER.joinpath(f"{name}.ll").read_text().split("\n")
    assert not [line for line in lines if line.startswith("%") and " type " in line]
    assert all(line.endswith("{") for line in lines if line.startswith("define "))


def test_every_file_is_part_of_the_whole():
    assert sorted((*support.FILES, "standalone")) == FILES


@cache
def whole() -> Module:
    module = ll.parse_assembly(support.runtime_text())
    module.verify()
    return parse_module(str(module))


def test_nothing_is_declared_that_nobody_defines():
    outside = {"malloc", "calloc", "realloc", "free", "mmap", "munmap", "sched_yield", "NRT_decref"}
    declared = {name for name, function in whole().functions.items() if function.is_declaration}
    left = {name for name in declared - outside if not name.startswith(("llvm.", "pthread_"))}
    assert left == set()


def test_every_function_is_marked():
    functions = support.support().functions
    assert functions.keys() == {name for name, function in whole().functions.items() if not function.is_declaration}
    assert all("nounwind" in function.head for function in functions.values())


# ------------------------------------------------------------------------------------------------ the table of structs


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.name)
def test_offsets_are_those_of_llvm(struct: runtime_layouts.Struct):
    text = f"{support.TYPES}\n@it = external global %{struct.name}\n"
    type_ = parse_module(str(ll.parse_assembly(text))).globals["it"].value_type
    assert struct.size == size_of(type_)
    assert tuple(struct.offset(field) for field in struct.fields) == field_offsets(type_)


def accesses() -> list[tuple[GetElementPtr, Instruction]]:
    places = [
        inst
        for function in whole().functions.values()
        for inst in function.instructions()
        if isinstance(inst, GetElementPtr) and isinstance(inst.source_type, NamedStructType) and len(inst.operands) > 2
    ]
    return [(place, user) for place in places for user in place.users if isinstance(user, Load | Store)]


def test_every_field_is_accessed_as_what_it_is():
    found = accesses()
    assert len(found) > 150
    for place, user in found:
        type_ = place.source_type
        for index in place.operands[2:]:
            assert isinstance(index, ConstantInt)
            type_ = struct_body(type_).elements[index.value]
        if isinstance(user, Store) and user.operands[0] is place:
            continue  # the address is what is stored
        assert (user.type if isinstance(user, Load) else user.operands[0].type) is type_, (place, user)


def test_reasons_are_those_of_the_table():
    failed = runtime_layouts.ARENA.fields.index("failed")
    written = {
        user.operands[0].value
        for place, user in accesses()
        if isinstance(user, Store) and isinstance(user.operands[0], ConstantInt)
        if place.source_type.name.startswith("irad.arena")  # LLVM numbers what modules of a process call alike
        if [i.value for i in place.operands[2:]] == [failed]
    }
    assert written == {0, OUT_OF_MEMORY, PAIR_MISSING, TAPE_FULL}


# ------------------------------------------------------------------------------------------------ numbers of others


def test_pages_are_mapped_as_python_maps_them():
    text = support.support().functions["irad.partial_allocate"].definition
    access, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    assert f"@mmap(ptr null, i64 %bytes, i32 {access}, i32 {flags}, i32 -1, i64 0)" in text


def test_statuses_are_those_of_the_host():
    reason = support.support().functions["irad.arena_reason"].definition
    assert f"icmp eq i32 %failed, {PAIR_MISSING}" in reason
    assert "i32 %no.derivative, i32 %exhausted" in reason
    text = standalone.standalone_text(["b", "a", "b"])
    module = ll.parse_assembly(text)
    module.verify()
    cases = {C.exhausted: "no_memory", C.no_derivative: "no_derivative", standalone.UNWIND_STATUS: "unwinding"}
    for status, label in cases.items():
        assert f"i32 {status}, label %{label}\n" in text
    assert f"@{standalone.STOP_SYMBOL}(i32 {C.exhausted})" in text
    assert f"@{process.TLS_KEY_SYMBOL} = " in text
    assert {"a", "b"} <= {variable.name for variable in module.global_variables}
