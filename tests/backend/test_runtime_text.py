"""LLVM text written by hand: every file alone, names of fields and numbers, the table of structs, repeated numbers."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import llvmlite.binding as ll
import pytest

import irad
from irad import runtime_layouts
from irad.backend.cuda import ptx
from irad.backend.executor import layout, scheduler
from irad.backend.executor.rewriting import libdevice
from irad.backend.runtime import support
from irad.backend.runtime.text import PRECISIONS, LlvmText, read
from irad.c_library import program
from irad.ir.instructions import AtomicRMW, CmpXchg, GetElementPtr, Instruction, Load, Store
from irad.ir.module import Module
from irad.ir.text.parser import parse_module
from irad.ir.types import NamedStructType, field_offsets, size_of, struct_body
from irad.ir.values import ConstantInt
from irad.kernel import derive
from irad.raw.program import C
from irad.runtime_layouts import OUT_OF_MEMORY, PAIR_MISSING, PARTIAL, STRUCTS, TAPE_FULL, UNWINDING

FILES = sorted(path.name.removesuffix(".ll") for path in support.FOLDER.glob("*.ll"))
BY_HAND = sorted(Path(irad.__file__).parent.rglob("*.ll"))


@pytest.mark.parametrize("name", FILES)
def test_llvm_takes_each_file_alone(name: str):
    module = ll.parse_assembly(read(support.FOLDER, name).text())
    module.verify()
    assert any(not function.is_declaration for function in module.functions)


@pytest.mark.parametrize("path", BY_HAND, ids=lambda path: path.stem)
def test_a_file_has_a_head_and_nothing_that_is_not_read(path: Path):
    text = path.read_text()
    assert text.startswith("; ")
    items = re.sub(r"^define [^\n]*\{\n(?:[^}\n][^\n]*\n|\n)*\}$", "", text, flags=re.M)
    assert not [line for line in items.split("\n") if not re.match(r"$|;|declare |@", line)]


def test_every_file_is_part_of_the_whole():
    assert sorted((*support.FILES, support.MESSAGES, "standalone", "uncounted")) == FILES
    folders = {path.parent.name for path in BY_HAND}
    assert folders == {"runtime", "native", "cuda", "device", "c_library"}, "give its text to a test of those below"


# ----------------------------------------------------------------------------------------------- names in braces


STRUCT = re.compile(r"getelementptr (?:inbounds )?%(irad[\w.]+), ptr [^,\n]+, i32 0((?:, i32 [^,\n]+)+)")


@pytest.mark.parametrize("path", BY_HAND, ids=lambda path: path.stem)
def test_fields_are_those_of_the_struct_by_name(path: Path):
    structs = {struct.name: struct for struct in (*STRUCTS, *layout.STRUCTS)}
    for name, indices in STRUCT.findall(path.read_text()):
        kind: object = structs[name]
        for index in re.findall(r", i32 ([^,]+)", indices):
            assert isinstance(kind, runtime_layouts.Struct), (name, indices)
            field = re.fullmatch(rf"\$\{{{kind.name.rpartition('.')[2]}\.(\w+)\}}", index)
            assert field is not None, f"{path.name}: {index} is not a field of %{kind.name} by name"
            kind = kind.kind(field[1])


@pytest.mark.parametrize("path", BY_HAND, ids=lambda path: path.stem)
def test_there_are_no_other_indices_into_structs(path: Path):
    """What a pattern over usual lines does not see: constant expressions, structs without a name, several lines."""
    text = path.read_text()
    assert text.count("getelementptr") == len(re.findall(r"= getelementptr (?:inbounds )?[^\n(]+$", text, re.M))
    assert not re.search(r"getelementptr[^\n]*\{ ", text)
    assert len(STRUCT.findall(text)) == len(re.findall(r"getelementptr[^\n]*, i32 0, i32", text))


def hand_written() -> Iterator[LlvmText | str]:
    yield from (support.support().text(), support.standalone_text(), derive._support(), scheduler.scheduler_text())
    yield from (libdevice.libdevice_text(), read(ptx._DEVICE, "operations", parameters=ptx._SHUFFLES).text())
    yield read(ptx._DEVICE, "fast").text()
    yield program.runtime_of_c("model")


def test_every_name_in_braces_exists():
    assert sum(text.count("\ndefine ") for text in hand_written()) > 300
    assert not any("${" in text for text in hand_written())
    with pytest.raises(KeyError, match=r"arena\.tip"):
        support.support().with_text("define void @f() {\n  ${arena.tip}\n}").text()


def test_a_parameter_in_a_symbol_makes_a_function_for_each_value():
    definition = "define ${real} @f_${suffix}(${real} %x) {\n  ; ${sizeof real}\n  ret ${real} %x\n}\n"
    read_text = LlvmText({}, "", {}, {}).with_text(f"{definition}declare ${{real}} @g.${{suffix}}()", PRECISIONS)
    assert set(read_text.functions) == {"f_f64", "f_f32"}
    assert set(read_text.outside) == {"g.f64", "g.f32"}
    assert read_text.functions["f_f32"].text == "define float @f_f32(float %x) {\n  ; 4\n  ret float %x\n}"


@cache
def whole() -> Module:
    module = ll.parse_assembly(support.support().text())
    module.verify()
    return parse_module(str(module))


def test_nothing_is_declared_that_nobody_defines():
    outside = {"malloc", "calloc", "realloc", "free", "mmap", "munmap", "sched_yield", "NRT_decref"}
    declared = {name for name, function in whole().functions.items() if function.is_declaration}
    left = {name for name in declared - outside if not name.startswith(("llvm.", "pthread_", "MPI_"))}
    assert left == set()


def test_every_function_is_marked():
    functions = support.support().functions
    assert functions.keys() == {name for name, function in whole().functions.items() if not function.is_declaration}
    assert all("nounwind" in function.head for function in functions.values())


# ------------------------------------------------------------------------------------------------ the table of structs


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.name)
def test_offsets_are_those_of_llvm(struct: runtime_layouts.Struct):
    types = "\n".join(each.text for each in STRUCTS)
    text = f"{types}\n@it = external global %{struct.name}\n"
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
    assert len(found) > 200
    for place, user in found:
        type_ = place.source_type
        for index in place.operands[2:]:
            assert isinstance(index, ConstantInt)
            type_ = struct_body(type_).elements[index.value]
        if isinstance(user, Store) and user.operands[0] is place:
            continue  # the address is what is stored
        assert (user.type if isinstance(user, Load) else user.operands[0].type) is type_, (place, user)


def test_no_first_field_is_accessed_through_the_address_of_its_struct():
    bare = [
        (function.name, user)
        for function in whole().functions.values()
        for inst in function.instructions()
        if isinstance(inst, GetElementPtr) and isinstance(inst.source_type, NamedStructType) and len(inst.operands) > 2
        for user in inst.operands[0].users
        if isinstance(user, Load | Store | AtomicRMW | CmpXchg) and pointer_of(user) is inst.operands[0]
    ]
    assert not bare


def pointer_of(inst: Instruction) -> object:
    return inst.operands[1 if isinstance(inst, Store) else 0]


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
    assert runtime_layouts.PAGES_ACCESS == mmap.PROT_READ | mmap.PROT_WRITE
    assert runtime_layouts.PAGES_FLAGS == mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


def test_statuses_are_those_of_the_host():
    assert "i32 %no.derivative, i32 %exhausted" in support.support().functions["irad.arena_reason"].text
    text = support.standalone_text(["b", "a", "b"])
    module = ll.parse_assembly(text)
    module.verify()
    cases = {C.exhausted: "no_memory", C.no_derivative: "no_derivative", UNWINDING: "unwinding"}
    for status, label in cases.items():
        assert f"i32 {status}, label %{label}\n" in text
    assert f"@{support.STOP_SYMBOL}(i32 {C.exhausted})" in text
    assert f"@{support.TLS_KEY_SYMBOL} = " in text
    assert {"a", "b"} <= {variable.name for variable in module.global_variables}


def test_entries_of_partial_shadows_are_words():
    assert set(PARTIAL.types) == {"i64"}, "irad.partial_field takes the index of a field for that of a word"
