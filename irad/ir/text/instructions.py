"""The texts of instructions: functions that read what follows the opcode and print the whole, side by side.

An instruction whose text is its opcode, flags and operands with their types needs no functions of its own: `listed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from irad.ir import instructions as ir, types
from irad.ir.module import Block
from irad.ir.text.keywords import (
    ACCESS_WORDS,
    ALLOCA_WORDS,
    ARITHMETIC_FLAGS,
    ATOMIC_OPCODES,
    CAST_FLAGS,
    COMPARISON_FLAGS,
    FAST_MATH,
    FCMP_PREDICATES,
    ICMP_PREDICATES,
    POINTER_FLAGS,
)
from irad.ir.text.names import Names
from irad.ir.text.parser_constants import BodyReader
from irad.ir.types import FunctionType, PointerType, Type
from irad.ir.values import Value

_I = TypeVar("_I", bound=ir.Instruction)
_S = TypeVar("_S", bound=ir.CallSite)

InstructionReader: TypeAlias = Callable[[BodyReader, str, "str | None"], ir.Instruction]
"""Reads what follows the opcode: (reader, opcode, name of the result)."""


class Text(NamedTuple, Generic[_I]):
    """Reader and printer of a shape, without the name of its result and without metadata."""

    read: InstructionReader
    write: Callable[[_I, Names], str]


def _words(words: tuple[str, ...]) -> str:
    return " ".join(words) + " " if words else ""


def _list(values: Sequence[Value], n: Names) -> str:
    return ", ".join([f"{v.type.text} {n[v]}" for v in values])


def _labels(blocks: Sequence[Block], n: Names) -> str:
    return ", ".join([f"label {n[b]}" for b in blocks])


def _read_labels(r: BodyReader) -> list[Block]:
    """`[label %a, label %b]`."""
    r.expect("[")
    return r.listed("]", r.label)


def _align(align: int | None) -> str:
    return f", align {align}" if align is not None else ""


def _scope(scope: str | None) -> str:
    return f' syncscope("{scope}")' if scope is not None else ""


def _more(r: BodyReader) -> bool:
    """Takes a comma, unless metadata follows it."""
    if r.tokens[r.i] == "," and r.tokens[r.i + 1][0] != "!":
        r.i += 1
        return True
    return False


def listed(
    shape: type[_I], opcode: str, count: int, allowed: frozenset[str], settle: Callable[[_I], str | None]
) -> Text[_I]:
    """The text `opcode flags T a, T b, …`.

    Args:
        shape: with a field ``flags``, if any are allowed.
        opcode: its first word.
        count: number of operands.
        allowed: words that may follow the opcode.
        settle: gives an instruction that has been read the type of its result, and returns what is wrong, in words.
    """

    def read(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
        flags = r.words(allowed)
        values = [r.typed_value()]
        while len(values) < count:
            r.expect(",")
            values.append(r.typed_value())
        made: Any = shape(types.VOID, name, {}, values)
        if flags:
            made.flags = flags
        inst: _I = made
        problem = settle(inst)
        if problem is not None:
            r.fail(problem, r.i - 1)
        return inst

    def write(inst: Any, n: Names) -> str:
        return f"{opcode} {_words(inst.flags) if allowed else ''}{_list(inst.operands, n)}"

    return Text(read, write)


# ------------------------------------------------------------------------------------------------ arithmetic


def _read_binary(r: BodyReader, opcode: str, name: str | None) -> ir.Instruction:
    flags = r.words(ARITHMETIC_FLAGS) if r.tokens[r.i] in ARITHMETIC_FLAGS else ()
    left, right = r.pair()
    return ir.Binary(left.type, name, {}, [left, right], opcode=opcode, flags=flags)


def _write_binary(inst: ir.Binary, n: Names) -> str:
    left, right = inst.operands
    return f"{inst.opcode} {_words(inst.flags)}{inst.type.text} {n[left]}, {n[right]}"


BINARY: Final = Text(_read_binary, _write_binary)


def _read_cast(r: BodyReader, opcode: str, name: str | None) -> ir.Instruction:
    flags = r.words(CAST_FLAGS)
    value = r.typed_value()
    r.expect("to")
    return ir.Cast(r.type(), name, {}, [value], opcode=opcode, flags=flags)


def _write_cast(inst: ir.Cast, n: Names) -> str:
    return f"{inst.opcode} {_words(inst.flags)}{n.typed(inst.operands[0])} to {inst.type.text}"


CAST: Final = Text(_read_cast, _write_cast)


def _comparison(
    shape: type[ir.ICmp | ir.FCmp], opcode: str, allowed: frozenset[str], predicates: frozenset[str]
) -> Text[ir.ICmp | ir.FCmp]:
    def read(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
        flags = r.words(allowed)
        predicate = r.predicate(predicates)
        left, right = r.pair()
        truth = types.as_many(left.type, types.I1)
        return shape(truth, name, {}, [left, right], predicate=predicate, flags=flags)

    def write(inst: ir.ICmp | ir.FCmp, n: Names) -> str:
        left, right = inst.operands
        return f"{opcode} {_words(inst.flags)}{inst.predicate} {n.typed(left)}, {n[right]}"

    return Text(read, write)


ICMP: Final = _comparison(ir.ICmp, "icmp", COMPARISON_FLAGS, ICMP_PREDICATES)
FCMP: Final = _comparison(ir.FCmp, "fcmp", FAST_MATH, FCMP_PREDICATES)


def _read_select(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    flags = r.words(FAST_MATH)
    condition = r.typed_value()
    r.expect(",")
    left = r.typed_value()
    r.expect(",")
    type_ = r.type()
    if type_ is not left.type:
        r.fail(f"select of {left.type} or {type_}")
    return ir.Select(type_, name, {}, [condition, left, r.value(type_)], flags=flags)


def _write_select(inst: ir.Select, n: Names) -> str:
    return f"select {_words(inst.flags)}{_list(inst.operands, n)}"


SELECT: Final = Text(_read_select, _write_select)  # the text that `listed` makes, but frequent: this is faster


def _read_phi(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    flags = r.words(FAST_MATH)
    type_ = r.type()
    values: list[Value] = []
    blocks: list[Block] = []
    while True:
        r.expect("[")
        values.append(r.value(type_))
        r.expect(",")
        blocks.append(r.block())
        r.expect("]")
        if r.tokens[r.i] != "," or r.tokens[r.i + 1] != "[":
            return ir.Phi(type_, name, {}, values, blocks=blocks, flags=flags)
        r.i += 1


def _write_phi(inst: ir.Phi, n: Names) -> str:
    incoming = ", ".join([f"[ {n[v]}, {n[b]} ]" for v, b in zip(inst.operands, inst.blocks, strict=True)])
    return f"phi {_words(inst.flags)}{inst.type.text} {incoming}"


PHI: Final = Text(_read_phi, _write_phi)


# ------------------------------------------------------------------------------------------------ aggregates, vectors


def _read_indices(r: BodyReader, aggregate: Type) -> tuple[Type, tuple[int, ...]]:
    """`, 0, 1` and the type of the element they select."""
    indices: list[int] = []
    while _more(r):
        indices.append(r.integer())
    if not indices:
        r.unexpected("an index")
    element = types.element_at(aggregate, indices)
    if element is None:
        r.fail(f"{aggregate} has no such element", r.i - 1)
    return element, tuple(indices)


def _read_extractvalue(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    aggregate = r.typed_value()
    element, indices = _read_indices(r, aggregate.type)
    return ir.ExtractValue(element, name, {}, [aggregate], indices=indices)


def _write_extractvalue(inst: ir.ExtractValue, n: Names) -> str:
    return f"extractvalue {n.typed(inst.operands[0])}, {', '.join(map(str, inst.indices))}"


EXTRACTVALUE: Final = Text(_read_extractvalue, _write_extractvalue)


def _read_insertvalue(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    aggregate = r.typed_value()
    r.expect(",")
    value = r.typed_value()
    element, indices = _read_indices(r, aggregate.type)
    if element is not value.type:
        r.fail(f"{value.type} into a place of type {element}")
    return ir.InsertValue(aggregate.type, name, {}, [aggregate, value], indices=indices)


def _write_insertvalue(inst: ir.InsertValue, n: Names) -> str:
    return f"insertvalue {_list(inst.operands, n)}, {', '.join(map(str, inst.indices))}"


INSERTVALUE: Final = Text(_read_insertvalue, _write_insertvalue)


# ------------------------------------------------------------------------------------------------ memory


def _read_alloca(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    words = r.words(ALLOCA_WORDS)
    allocated = r.type()
    operands: list[Value] = []
    align: int | None = None
    addrspace = 0
    while _more(r):
        if r.accept("align"):
            align = r.integer()
        elif r.tokens[r.i].startswith("addrspace("):
            addrspace = int(r.take()[10:-1])
        elif operands:
            r.unexpected("an alignment")
        else:
            operands.append(r.typed_value())
    return ir.Alloca(
        types.pointer_type(addrspace), name, {}, operands, allocated_type=allocated, align=align, words=words
    )


def _write_alloca(inst: ir.Alloca, n: Names) -> str:
    text = f"alloca {_words(inst.words)}{inst.allocated_type}"
    if inst.operands:
        text += f", {n.typed(inst.operands[0])}"
    text += _align(inst.align)
    type_ = inst.type
    if isinstance(type_, PointerType) and type_.addrspace:
        text += f", addrspace({type_.addrspace})"
    return text


ALLOCA: Final = Text(_read_alloca, _write_alloca)


def _read_load(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    words = r.words(ACCESS_WORDS) if r.tokens[r.i] in ACCESS_WORDS else ()
    type_ = r.type()
    r.expect(",")
    load = ir.Load(type_, name, {}, [r.typed_value()], volatile="volatile" in words)
    if "atomic" in words:
        load.syncscope, load.ordering = r.sync_scope(), r.ordering()
    load.align = r.alignment()
    return load


def _write_load(inst: ir.Load, n: Names) -> str:
    return f"load {_atomic(inst)}{inst.type.text}, {n.typed(inst.operands[0])}{_ordering(inst)}"


LOAD: Final = Text(_read_load, _write_load)


def _read_store(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    words = r.words(ACCESS_WORDS) if r.tokens[r.i] in ACCESS_WORDS else ()
    value = r.typed_value()
    r.expect(",")
    store = ir.Store(types.VOID, name, {}, [value, r.typed_value()], volatile="volatile" in words)
    if "atomic" in words:
        store.syncscope, store.ordering = r.sync_scope(), r.ordering()
    store.align = r.alignment()
    return store


def _write_store(inst: ir.Store, n: Names) -> str:
    value, pointer = inst.operands
    return f"store {_atomic(inst)}{n.typed(value)}, {n.typed(pointer)}{_ordering(inst)}"


STORE: Final = Text(_read_store, _write_store)


def _atomic(inst: ir.Load | ir.Store) -> str:
    return ("atomic " if inst.ordering else "") + ("volatile " if inst.volatile else "")


def _ordering(inst: ir.Load | ir.Store) -> str:
    order = f"{_scope(inst.syncscope)} {inst.ordering}" if inst.ordering else ""
    return order + _align(inst.align)


def _read_getelementptr(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    flags = r.words(POINTER_FLAGS) if r.tokens[r.i] in POINTER_FLAGS else ()
    source_type = r.type()
    r.expect(",")
    operands = [r.typed_value()]
    while r.tokens[r.i] == "," and r.tokens[r.i + 1][0] != "!":  # `_more`, without the cost of a call
        r.i += 1
        operands.append(r.typed_value())
    result = types.address_type([operand.type for operand in operands])
    return ir.GetElementPtr(result, name, {}, operands, source_type=source_type, flags=flags)


def _write_getelementptr(inst: ir.GetElementPtr, n: Names) -> str:
    return f"getelementptr {_words(inst.flags)}{inst.source_type.text}, {_list(inst.operands, n)}"


GETELEMENTPTR: Final = Text(_read_getelementptr, _write_getelementptr)


def _read_atomicrmw(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    volatile = r.accept("volatile")
    opcode = r.take()
    if opcode not in ATOMIC_OPCODES:
        r.fail(f"unknown atomic operation {opcode!r}", r.i - 1)
    pointer = r.typed_value()
    r.expect(",")
    value = r.typed_value()
    scope, ordering, align = r.sync_scope(), r.ordering(), r.alignment()
    return ir.AtomicRMW(
        value.type, name, {}, [pointer, value],
        opcode=opcode, ordering=ordering, align=align, volatile=volatile, syncscope=scope,
    )  # fmt: skip


def _write_atomicrmw(inst: ir.AtomicRMW, n: Names) -> str:
    head = f"atomicrmw {'volatile ' if inst.volatile else ''}{inst.opcode} {_list(inst.operands, n)}"
    return f"{head}{_scope(inst.syncscope)} {inst.ordering}{_align(inst.align)}"


ATOMICRMW: Final = Text(_read_atomicrmw, _write_atomicrmw)


def _read_cmpxchg(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    weak, volatile = r.accept("weak"), r.accept("volatile")
    pointer = r.typed_value()
    r.expect(",")
    old = r.typed_value()
    r.expect(",")
    if r.type() is not old.type:
        r.fail(f"a {old.type} is wanted", r.i - 1)
    new = r.value(old.type)
    scope = r.sync_scope()
    success, failure = r.ordering(), r.ordering()
    return ir.CmpXchg(
        types.struct_type((old.type, types.I1)), name, {}, [pointer, old, new],
        success=success, failure=failure, weak=weak, volatile=volatile, syncscope=scope, align=r.alignment(),
    )  # fmt: skip


def _write_cmpxchg(inst: ir.CmpXchg, n: Names) -> str:
    words = ("weak " if inst.weak else "") + ("volatile " if inst.volatile else "")
    orderings = f"{inst.success} {inst.failure}{_align(inst.align)}"
    return f"cmpxchg {words}{_list(inst.operands, n)}{_scope(inst.syncscope)} {orderings}"


CMPXCHG: Final = Text(_read_cmpxchg, _write_cmpxchg)


def _read_fence(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    scope = r.sync_scope()
    return ir.Fence(types.VOID, name, ordering=r.ordering(), syncscope=scope)


def _write_fence(inst: ir.Fence, _: Names) -> str:
    return f"fence{_scope(inst.syncscope)} {inst.ordering}"


FENCE: Final = Text(_read_fence, _write_fence)


def _read_va_arg(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    pointer = r.typed_value()
    r.expect(",")
    return ir.VAArg(r.type(), name, {}, [pointer])


def _write_va_arg(inst: ir.VAArg, n: Names) -> str:
    return f"va_arg {n.typed(inst.operands[0])}, {inst.type}"


VA_ARG: Final = Text(_read_va_arg, _write_va_arg)


# ------------------------------------------------------------------------------------------------ calls


def _read_site(r: BodyReader, kind: type[_S], name: str | None, opcode: str = "") -> _S:
    """Parses the common part of `call`, `invoke` and `callbr`: from the calling convention to the operand bundles."""
    flags = r.words(FAST_MATH) if kind is ir.Call else ()
    convention = r.convention()
    result_attributes = r.parameter_attributes()
    addrspace = int(r.take()[10:-1]) if r.tokens[r.i].startswith("addrspace(") else None
    result = r.type()
    function_type = r.function_type(result) if r.tokens[r.i] == "(" else None
    callee = r.value(types.pointer_type(addrspace) if addrspace else types.PTR)
    operands, argument_attributes = _read_arguments(r, opcode == "musttail")
    if function_type is None:
        function_type = types.function_type(result, [v.type for v in operands])
    else:
        _fit_arguments(r, function_type, operands)
    attributes = r.function_attributes()
    bundles = _read_bundles(r, operands) if r.tokens[r.i] == "[" else ()
    operands.append(callee)
    return kind(
        result, name, {}, operands,
        function_type=function_type, convention=convention, result_attributes=result_attributes,
        argument_attributes=argument_attributes, attributes=attributes, bundles=bundles, flags=flags,
        addrspace=addrspace,
    )  # fmt: skip


def _read_arguments(r: BodyReader, musttail: bool) -> tuple[list[Value], tuple[tuple[str, ...], ...]]:
    r.expect("(")
    operands: list[Value] = []
    attributes: list[tuple[str, ...]] = []
    tokens = r.tokens
    while tokens[r.i] != ")":
        if operands:
            r.expect(",")
        if musttail and r.accept("..."):  # passes the variadic arguments of the caller on; implied by the callee's type
            break
        type_ = r.type()
        attributes.append(r.parameter_attributes())
        operands.append(r.value(type_))
    r.expect(")")
    return operands, tuple(attributes)


def _fit_arguments(r: BodyReader, written: FunctionType, operands: list[Value]) -> None:
    fixed = len(written.params)
    given = tuple([v.type for v in operands])
    if given[:fixed] != written.params or (len(given) > fixed and not written.variadic):
        r.fail(f"the arguments do not fit {written}", r.i - 1)


def _read_bundles(r: BodyReader, operands: list[Value]) -> tuple[tuple[str, int], ...]:
    """`[ "tag"(T v, …), … ]`; the operands go after the arguments."""

    def bundle() -> tuple[str, int]:
        tag = r.string()
        r.expect("(")
        given = r.listed(")", r.typed_value)
        operands.extend(given)
        return tag, len(given)

    r.expect("[")
    return tuple(r.listed("]", bundle))


def _site(inst: ir.CallSite, n: Names, musttail: bool = False) -> str:
    """Text of what `_read_site` reads."""
    function_type = inst.function_type
    head = f"{inst.convention} " if inst.convention else ""
    if inst.result_attributes:
        head += _words(inst.result_attributes)
    if inst.addrspace is not None:
        head += f"addrspace({inst.addrspace}) "
    head += function_type.text if function_type.variadic else function_type.result.text
    operands = inst.operands
    arguments = inst.arguments
    if any(inst.argument_attributes):
        attributes = inst.argument_attributes
        inside = ", ".join(
            [
                f"{v.type.text} {_words(attributes[i]) if i < len(attributes) else ''}{n[v]}"
                for i, v in enumerate(arguments)
            ]
        )
    else:
        inside = _list(arguments, n)
    if musttail and function_type.variadic:
        inside += ", ..." if inside else "..."
    tail = f" {' '.join(inst.attributes)}" if inst.attributes else ""
    if inst.bundles:
        tail += _bundles(inst, operands[len(arguments) : -1], n)
    return f"{head} {n[operands[-1]]}({inside}){tail}"


def _bundles(inst: ir.CallSite, operands: list[Value], n: Names) -> str:
    parts: list[str] = []
    start = 0
    for tag, count in inst.bundles:
        parts.append(f'"{tag}"({_list(operands[start : start + count], n)})')
        start += count
    return f" [ {', '.join(parts)} ]"


def _read_call(r: BodyReader, opcode: str, name: str | None) -> ir.Instruction:
    if opcode != "call":
        r.expect("call")
    call = _read_site(r, ir.Call, name, opcode)
    call.tail = None if opcode == "call" else opcode
    return call


def _write_call(inst: ir.Call, n: Names) -> str:
    flags = _words(inst.flags)
    if inst.tail:
        return f"{inst.tail} call {flags}{_site(inst, n, inst.tail == 'musttail')}"
    return f"call {flags}{_site(inst, n)}"


CALL: Final = Text(_read_call, _write_call)


def _read_invoke(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    invoke = _read_site(r, ir.Invoke, name)
    r.expect("to")
    normal = r.label()
    r.expect("unwind")
    invoke.targets = [normal, r.label()]
    return invoke


def _write_invoke(inst: ir.Invoke, n: Names) -> str:
    normal, unwind = inst.targets
    head = f"invoke {_words(inst.flags)}{_site(inst, n)}"
    return f"{head}\n          to label {n[normal]} unwind label {n[unwind]}"


INVOKE: Final = Text(_read_invoke, _write_invoke)


def _read_callbr(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    callbr = _read_site(r, ir.CallBr, name)
    r.expect("to")
    callbr.targets = [r.label(), *_read_labels(r)]
    return callbr


def _write_callbr(inst: ir.CallBr, n: Names) -> str:
    head = f"callbr {_words(inst.flags)}{_site(inst, n)}"
    return f"{head}\n          to label {n[inst.targets[0]]} [{_labels(inst.targets[1:], n)}]"


CALLBR: Final = Text(_read_callbr, _write_callbr)


# ------------------------------------------------------------------------------------------------ terminators


def _read_ret(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    type_ = r.type()
    return ir.Ret(types.VOID, name, {}, [] if type_ is types.VOID else [r.value(type_)])


def _write_ret(inst: ir.Ret, n: Names) -> str:
    return f"ret {n.typed(inst.operands[0])}" if inst.operands else "ret void"


RET: Final = Text(_read_ret, _write_ret)


def _read_br(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    if r.tokens[r.i] == "label":
        return ir.Br(types.VOID, name, targets=[r.label()])
    condition = r.typed_value()
    if condition.type is not types.I1:
        r.fail("a condition must be i1", r.i - 1)
    r.expect(",")
    first = r.label()
    r.expect(",")
    return ir.CondBr(types.VOID, name, {}, [condition], targets=[first, r.label()])


def _write_br(inst: ir.Br, n: Names) -> str:
    return f"br label {n[inst.targets[0]]}"


BR: Final = Text(_read_br, _write_br)


def _write_cond_br(inst: ir.CondBr, n: Names) -> str:
    yes, no = inst.targets
    return f"br i1 {n[inst.operands[0]]}, label {n[yes]}, label {n[no]}"


COND_BR: Final = Text(_read_br, _write_cond_br)


def _read_switch(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    operands = [r.typed_value()]
    r.expect(",")
    targets = [r.label()]
    r.expect("[")
    while not r.accept("]"):
        case = r.typed_value()
        if case.type is not operands[0].type:
            r.fail(f"a case must be {operands[0].type}", r.i - 1)
        operands.append(case)
        r.expect(",")
        targets.append(r.label())
    return ir.Switch(types.VOID, name, {}, operands, targets=targets)


def _write_switch(inst: ir.Switch, n: Names) -> str:
    value, *constants = inst.operands
    default, *targets = inst.targets
    pairs = zip(constants, targets, strict=True)
    cases = "".join([f"    {n.typed(case)}, label {n[target]}\n" for case, target in pairs])
    return f"switch {n.typed(value)}, label {n[default]} [\n{cases}  ]"


SWITCH: Final = Text(_read_switch, _write_switch)


def _read_indirectbr(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    address = r.typed_value()
    r.expect(",")
    return ir.IndirectBr(types.VOID, name, {}, [address], targets=_read_labels(r))


def _write_indirectbr(inst: ir.IndirectBr, n: Names) -> str:
    return f"indirectbr {n.typed(inst.operands[0])}, [{_labels(inst.targets, n)}]"


INDIRECTBR: Final = Text(_read_indirectbr, _write_indirectbr)


def _read_unreachable(_r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    return ir.Unreachable(types.VOID, name)


def _write_unreachable(_inst: ir.Unreachable, _: Names) -> str:
    return "unreachable"


UNREACHABLE: Final = Text(_read_unreachable, _write_unreachable)


# ------------------------------------------------------------------------------------------------ exceptions


def _read_landingpad(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    type_ = r.type()
    cleanup = r.accept("cleanup")
    clauses: list[str] = []
    operands: list[Value] = []
    while r.tokens[r.i] in ("catch", "filter"):
        clauses.append(r.take())
        operands.append(r.typed_value())
    return ir.LandingPad(type_, name, {}, operands, cleanup=cleanup, clauses=tuple(clauses))


def _write_landingpad(inst: ir.LandingPad, n: Names) -> str:
    lines = ["cleanup"] if inst.cleanup else []
    lines += [f"{word} {n.typed(v)}" for word, v in zip(inst.clauses, inst.operands, strict=True)]
    return "\n          ".join([f"landingpad {inst.type}", *lines])


LANDINGPAD: Final = Text(_read_landingpad, _write_landingpad)


def _read_pad(r: BodyReader, opcode: str, name: str | None) -> ir.Instruction:
    r.expect("within")
    operands = [r.value(types.TOKEN)]
    r.expect("[")
    operands += r.listed("]", r.typed_value)
    return ir.ExceptionPad(types.TOKEN, name, {}, operands, opcode=opcode)


def _write_pad(inst: ir.ExceptionPad, n: Names) -> str:
    return f"{inst.opcode} within {n[inst.operands[0]]} [{_list(inst.operands[1:], n)}]"


EXCEPTION_PAD: Final = Text(_read_pad, _write_pad)


def _read_exception_terminator(r: BodyReader, opcode: str, name: str | None) -> ir.Instruction:
    r.expect("within" if opcode == "catchswitch" else "from")
    pad = r.value(types.TOKEN)
    targets = _read_labels(r) if opcode == "catchswitch" else []
    to_caller = False
    if opcode == "catchret":
        r.expect("to")
        targets.append(r.label())
    else:
        r.expect("unwind")
        to_caller = r.accept("to")
        if to_caller:
            r.expect("caller")
        else:
            targets.append(r.label())
    type_ = types.TOKEN if opcode == "catchswitch" else types.VOID
    return ir.ExceptionTerminator(type_, name, {}, [pad], targets=targets, opcode=opcode, unwind_to_caller=to_caller)


def _write_exception_terminator(inst: ir.ExceptionTerminator, n: Names) -> str:
    pad = n[inst.operands[0]]
    if inst.opcode == "catchret":
        return f"catchret from {pad} to label {n[inst.targets[0]]}"
    unwind = "to caller" if inst.unwind_to_caller else f"label {n[inst.targets[-1]]}"
    if inst.opcode == "cleanupret":
        return f"cleanupret from {pad} unwind {unwind}"
    handlers = inst.targets if inst.unwind_to_caller else inst.targets[:-1]
    return f"catchswitch within {pad} [{_labels(handlers, n)}] unwind {unwind}"


EXCEPTION_TERMINATOR: Final = Text(_read_exception_terminator, _write_exception_terminator)
