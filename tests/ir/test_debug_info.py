from pathlib import Path

import pytest

from irad.errors import SourceLocation
from irad.ir import types
from irad.ir.debug_info import DebugInfo, source_location
from irad.ir.instructions import Binary, Instruction
from irad.ir.module import Module
from irad.ir.text.parser import parse_module

CORPUS = Path(__file__).parent / "corpus"
FILE = '/home/user/model (1), "final".py'


@pytest.fixture
def module() -> Module:
    return parse_module((CORPUS / "debug.ll").read_text())


def instruction(module: Module, index: int) -> Instruction:
    return list(module.functions["f"].instructions())[index]


def test_the_innermost_place_comes_first(module):
    assert DebugInfo(module).inline_chain(instruction(module, 0)) == [
        SourceLocation("/abs/lib.py", 31, "inner"),
        SourceLocation(FILE, 12, "f"),
    ]
    assert source_location(module, instruction(module, 0)) == SourceLocation("/abs/lib.py", 31, "inner")


def test_the_chain_goes_through_every_inlined_call(module):
    assert [(where.line, where.function) for where in DebugInfo(module).inline_chain(instruction(module, 3))] == [
        (33, "inner"), (40, "middle"), (12, "f"),
    ]  # fmt: skip


def test_lexical_blocks_lead_to_their_function(module):
    assert source_location(module, instruction(module, 1)) == SourceLocation(FILE, 12, "f")
    assert source_location(module, instruction(module, 2)) == SourceLocation(FILE, 0, "f")


def test_without_a_place_the_origin_answers(module):
    primal = instruction(module, 0)
    made = Binary(types.DOUBLE, operands=list(primal.operands), opcode="fadd", origin=primal)
    again = Binary(types.DOUBLE, operands=[made, made], opcode="fadd", origin=made)
    assert DebugInfo(module).inline_chain(again) == DebugInfo(module).inline_chain(primal)


def test_an_origin_is_read_with_the_metadata_of_its_own_module(module):
    primal = instruction(module, 0)
    made = Binary(types.DOUBLE, operands=list(primal.operands), opcode="fadd", origin=primal)
    assert source_location(Module(), made) == SourceLocation("/abs/lib.py", 31, "inner")


def test_its_own_place_comes_before_that_of_the_origin(module):
    made = Binary(types.DOUBLE, operands=[], metadata={"dbg": "!12"}, origin=instruction(module, 0))
    assert source_location(module, made) == SourceLocation(FILE, 11, "f")


def test_nothing_is_known_of_an_instruction_without_metadata_and_origin(module):
    made = Binary(types.DOUBLE, operands=[])
    assert source_location(module, made) is None
    assert DebugInfo(module).inline_chain(made) == []


def test_metadata_of_another_module_gives_no_place():
    assert source_location(Module(), Binary(types.DOUBLE, metadata={"dbg": "!7"})) is None


def test_cycles_end():
    module = parse_module("!0 = !DILocation(line: 1, scope: !1, inlinedAt: !0)\n!1 = !DILexicalBlock(scope: !1)\n")
    made = Binary(types.DOUBLE, metadata={"dbg": "!0"})
    made.origin = made
    assert DebugInfo(module).inline_chain(made) == [SourceLocation("", 1, "")]
    del made.metadata["dbg"]
    assert DebugInfo(module).inline_chain(made) == []


def test_a_node_written_in_place(module):
    made = Binary(types.DOUBLE, metadata={"dbg": "!DILocation(line: 5, column: 1, scope: !4)"})
    assert source_location(module, made) == SourceLocation(FILE, 5, "f")


def test_one_resolver_answers_for_many(module):
    info = DebugInfo(module)
    found = [info.location(inst) for inst in module.functions["f"].instructions()]
    assert [where.line for where in found if where] == [31, 12, 0, 33]


def test_frames_have_the_symbols_of_functions(module):
    frames = DebugInfo(module).frames(instruction(module, 0))
    assert [frame.place for frame in frames] == DebugInfo(module).inline_chain(instruction(module, 0))
    assert [frame.symbol for frame in frames] == ["", "_Z1f"]  # only f says what it was called


def test_frames_of_a_node(module):
    inst = instruction(module, 0)
    assert DebugInfo(module).frames_of(inst.metadata["dbg"]) == DebugInfo(module).frames(inst)
    assert DebugInfo(module).frames_of(None) == []
