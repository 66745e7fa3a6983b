"""Repairs of the LLVM text that Numba lowers, before LLVM optimises it.

Input   the text of one LLVM module as Numba's lowering printed it.
Output  text of an equivalent module.
Method  regular expressions over lines; text without the patterns is returned as it is.

Numba before 0.67 adds to addresses as integers, which hides from every analysis what array an element belongs to. Later
ones move the pointer; so that is what is written here::

    %i = ptrtoint ptr %array to i64         %element = getelementptr i8, ptr %array, i64 %offset
    %sum = add i64 %i, %offset
    %element = inttoptr i64 %sum to ptr

Numba 0.65 lists functions in metadata, for a pass that has run by now. The list would keep naming a function that was
renamed or inlined, so it is dropped.

A record is copied by Numba as one value of type ``[N x i8]``. LLVM's scalar optimiser splits such a value into bytes
and with it the doubles inside, so that no analysis sees a float any more. The value is kept in a stack slot instead::

    %v = load [16 x i8], ptr %src           call void @llvm.memcpy.p0.p0.i64(ptr %v.copy, ptr %src, i64 16, i1 false)
    store [16 x i8] %v, ptr %dst            call void @llvm.memcpy.p0.p0.i64(ptr %dst, ptr %v.copy, i64 16, i1 false)

The slot keeps the meaning when the source is overwritten between the two (``a[i], a[j] = a[j], a[i]``); LLVM removes it
where it is not.
"""

from __future__ import annotations

import re

from irad.passes.subscripts.dimensions import DIMENSION

_NAME = r'%(?:"[^"]+"|[\w.$-]+)'
_POINTER = r"(?:ptr|\[\d+ x i8\]\s*\*)"
_ADDRESS_SUM = re.compile(
    rf"^(?P<sum>\s+(?P<address>{_NAME}) = ptrtoint [^\n(]*?(?P<base>[%@]{_NAME[1:]}) to i64\b[^\n]*\n"
    rf"\s+(?P<end>{_NAME}) = add i64 (?P=address), (?P<offset>{_NAME}|-?\d+)(?:, !dbg !\d+)?\n)"
    rf"(?P<indent>\s+)(?P<element>{_NAME}) = inttoptr i64 (?P=end) to [^\n]*?(?P<line>, !dbg !\d+)?$",
    re.MULTILINE,
)
_NAMED_FUNCTIONS = re.compile(r"^!numba_args_may_always_need_nrt = [^\n]*\n?", re.MULTILINE)
_MARK_OF_DIMENSION = re.compile(rf'^declare [^\n]*@"?{re.escape(DIMENSION)}"?\([^\n]*$', re.MULTILINE)
_DECLARED_MARK = f"declare i64 @{DIMENSION}(i64, ptr nocapture readnone) nounwind willreturn speculatable memory(none)"
_BYTES_LOAD = re.compile(
    rf"^(?P<indent>\s+)(?P<value>{_NAME}) = load \[(?P<size>\d+) x i8\], "
    rf"{_POINTER} (?P<source>{_NAME})(?P<rest>[^\n]*)$",
    re.MULTILINE,
)
_FUNCTION = re.compile(r"^define [^\n]*(?:\n\{|\{)\n(?P<body>.*?)^\}", re.MULTILINE | re.DOTALL)
_MEMCPY = "llvm.memcpy.p0.p0.i64"
_MEMCPY_DECLARATION = f"declare void @{_MEMCPY}(ptr, ptr, i64, i1)\n"


def repair(text: str) -> str:
    """The module text with moved pointers for sums of addresses and memory copies for copies of records.

    LLVM may move and join the calls that mark dimensions (`marks`).

    Args:
        text: one module as printed by llvmlite's IR layer.
    """
    text = _NAMED_FUNCTIONS.sub("", _ADDRESS_SUM.sub(_moved_pointer, text))
    text = _MARK_OF_DIMENSION.sub(_DECLARED_MARK, text)
    # Each module of a program comes here, and most have nothing to repair.
    if not _BYTES_LOAD.search(text):
        return text
    repaired = _FUNCTION.sub(lambda found: _repair_function(found.group(0)), text)
    if repaired != text and f"@{_MEMCPY}(" not in text:
        repaired += "\n" + _MEMCPY_DECLARATION
    return repaired


def _moved_pointer(found: re.Match[str]) -> str:
    """The pointer that such a sum is cast to; LLVM removes the sum where nothing else reads it."""
    base, offset, line = found["base"], found["offset"], found["line"] or ""
    return f"{found['sum']}{found['indent']}{found['element']} = getelementptr i8, ptr {base}, i64 {offset}{line}"


def _repair_function(text: str) -> str:
    """One function with its record copies rewritten."""
    slots: list[str] = []
    for found in list(_BYTES_LOAD.finditer(text)):
        value, size, rest = found.group("value"), found.group("size"), found.group("rest")
        pattern = rf"^(\s+)store \[{size} x i8\] {re.escape(value)}, {_POINTER} ({_NAME})([^\n]*)$"
        store = re.compile(pattern, re.MULTILINE)
        uses = len(re.findall(re.escape(value) + r"(?![\w.$-])", text)) - 1
        if uses == 0 or len(store.findall(text)) != uses:
            continue  # the value goes elsewhere than to memory: leave it to LLVM
        slot = _slot_name(value)
        slots.append(f"  {slot} = alloca [{size} x i8], align 16\n")
        text = text.replace(found.group(0), _copy(found.group("indent"), slot, found.group("source"), size, rest), 1)
        for stored in list(store.finditer(text)):
            indent, target, suffix = stored.groups()
            text = text.replace(stored.group(0), _copy(indent, target, slot, size, suffix), 1)
    return _insert_at_entry(text, slots) if slots else text


def _copy(indent: str, target: str, source: str, size: str, rest: str) -> str:
    """A copy of ``size`` bytes; ``rest`` is what followed the access; only the source line in it is kept."""
    line = re.search(r"!dbg !\d+", rest)
    suffix = f", {line.group(0)}" if line else ""
    return f"{indent}call void @{_MEMCPY}(ptr {target}, ptr {source}, i64 {size}, i1 false){suffix}"


def _slot_name(value: str) -> str:
    """The name of the stack slot for a value."""
    return f'%"{value[1:].strip(chr(34))}.copy"'


def _insert_at_entry(function: str, lines: list[str]) -> str:
    """The function with lines put at the head of its entry block."""
    entry = re.search(r"^[^\s{][^\n]*:[^\n]*\n", function[function.index("{") :], re.MULTILINE)
    assert entry is not None, "Numba names the entry block"
    at = function.index("{") + entry.end()
    return function[:at] + "".join(lines) + function[at:]
