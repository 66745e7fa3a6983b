"""Instructions that compute or touch memory. Calls and terminators: `irad.ir.text.parser_instructions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

from irad.ir import instructions as ir, types
from irad.ir.instructions import (
    Br,
    Call,
    CallBr,
    CallSite,
    CondBr,
    ExceptionPad,
    ExceptionTerminator,
    IndirectBr,
    Instruction,
    Invoke,
    LandingPad,
    Resume,
    Ret,
    Switch,
    Unreachable,
)
from irad.ir.module import Block
from irad.ir.text.keywords import (
    ALLOCA_WORDS,
    ARITHMETIC_FLAGS,
    ATOMIC_OPCODES,
    BINARY_OPCODES,
    CAST_FLAGS,
    CAST_OPCODES,
    COMPARISON_FLAGS,
    FAST_MATH,
    FCMP_PREDICATES,
    ICMP_PREDICATES,
    ORDERINGS,
    POINTER_FLAGS,
)
from irad.ir.text.names import name_of_key
from irad.ir.text.parser_constants import AttributeReader
from irad.ir.types import FunctionType, Type, VectorType
from irad.ir.values import Value


class BodyReader(AttributeReader):
    """Reads the inside of one function body at a time."""

    __slots__ = ()

    def label(self) -> Block:
        """`label %b`."""
        self.expect("label")
        return self.block()

    def block(self) -> Block:
        """`%b`: the block of that name, made on first mention."""
        token = self.tokens[self.i]
        found = self.scope.get(token)
        if isinstance(found, Block):
            self.i += 1
            return found
        key = self.sigil("%", "the name of a block")
        found = self.scope.get(key)
        if found is None:
            found = self.scope[key] = Block(types.LABEL, name_of_key(key))
            self.pending[key] = self.i - 1
        if not isinstance(found, Block):
            self.fail(f"{token} is not a block", self.i - 1)
        return found

    def alignment(self) -> int | None:
        """`, align n`, if there."""
        i, tokens = self.i, self.tokens
        if tokens[i] != "," or tokens[i + 1] != "align":
            return None
        self.i = i + 2
        return self.integer()

    def sync_scope(self) -> str | None:
        """`syncscope("…")`, if there: the name with its quotes taken off."""
        token = self.tokens[self.i]
        if not token.startswith('syncscope("'):
            return None
        self.i += 1
        return token[11:-2]

    def ordering(self) -> str:
        """An atomic ordering."""
        token = self.tokens[self.i]
        if token not in ORDERINGS:
            self.unexpected("an atomic ordering")
        self.i += 1
        return token

    def predicate(self, allowed: frozenset[str]) -> str:
        """A predicate of a comparison."""
        token = self.tokens[self.i]
        if token not in allowed:
            self.unexpected("a predicate")
        self.i += 1
        return token


InstructionParser: TypeAlias = Callable[[BodyReader, str, "str | None"], ir.Instruction]


def _binary(r: BodyReader, opcode: str, name: str | None) -> ir.Instruction:
    flags = r.words(ARITHMETIC_FLAGS) if r.tokens[r.i] in ARITHMETIC_FLAGS else ()
    left, right = r.pair()
    return ir.Binary(left.type, name, {}, [left, right], opcode=opcode, flags=flags)


def _unary(r: BodyReader, opcode: str, name: str | None) -> ir.Instruction:
    flags = r.words(FAST_MATH)
    value = r.typed_value()
    return ir.Unary(value.type, name, {}, [value], opcode=opcode, flags=flags)


def _cast(r: BodyReader, opcode: str, name: str | None) -> ir.Instruction:
    flags = r.words(CAST_FLAGS)
    value = r.typed_value()
    r.expect("to")
    return ir.Cast(r.type(), name, {}, [value], opcode=opcode, flags=flags)


def _compare(r: BodyReader, opcode: str, name: str | None) -> ir.Instruction:
    is_float = opcode == "fcmp"
    flags = r.words(FAST_MATH if is_float else COMPARISON_FLAGS)
    predicate = r.predicate(FCMP_PREDICATES if is_float else ICMP_PREDICATES)
    left, right = r.pair()
    truth = types.as_many(left.type, types.I1)
    return (ir.FCmp if is_float else ir.ICmp)(truth, name, {}, [left, right], predicate=predicate, flags=flags)


def _select(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    flags = r.words(FAST_MATH)
    condition = r.typed_value()
    r.expect(",")
    left = r.typed_value()
    r.expect(",")
    type_ = r.type()
    if type_ is not left.type:
        r.fail(f"select of {left.type} or {type_}")
    return ir.Select(type_, name, {}, [condition, left, r.value(type_)], flags=flags)


def _phi(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
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


def _freeze(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    value = r.typed_value()
    return ir.Freeze(value.type, name, {}, [value])


def _indices(r: BodyReader, aggregate: Type) -> tuple[Type, tuple[int, ...]]:
    """`, 0, 1` and the type of the element they select."""
    indices: list[int] = []
    element = aggregate
    while r.tokens[r.i] == "," and r.tokens[r.i + 1][0] != "!":
        r.i += 1
        index = r.integer()
        if not isinstance(element, types.ArrayType | types.StructType | types.NamedStructType):
            r.fail(f"{element} has no elements", r.i - 1)
        if isinstance(element, types.ArrayType):
            inside = index < element.count
            element = element.element
        else:
            fields = r.fields(element)
            inside = index < len(fields)
            element = fields[index] if inside else element
        if not inside:
            r.fail(f"{aggregate} has no such element", r.i - 1)
        indices.append(index)
    if not indices:
        r.unexpected("an index")
    return element, tuple(indices)


def _extractvalue(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    aggregate = r.typed_value()
    element, indices = _indices(r, aggregate.type)
    return ir.ExtractValue(element, name, {}, [aggregate], indices=indices)


def _insertvalue(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    aggregate = r.typed_value()
    r.expect(",")
    value = r.typed_value()
    element, indices = _indices(r, aggregate.type)
    if element is not value.type:
        r.fail(f"{value.type} into a place of type {element}")
    return ir.InsertValue(aggregate.type, name, {}, [aggregate, value], indices=indices)


def _vector(r: BodyReader) -> tuple[Value, VectorType]:
    value = r.typed_value()
    if not isinstance(value.type, VectorType):
        r.fail(f"{value.type} is not a vector", r.i - 1)
    return value, value.type


def _extractelement(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    vector, type_ = _vector(r)
    r.expect(",")
    return ir.ExtractElement(type_.element, name, {}, [vector, r.typed_value()])


def _insertelement(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    vector, type_ = _vector(r)
    r.expect(",")
    if r.type() is not type_.element:
        r.fail(f"a {type_.element} is wanted", r.i - 1)
    value = r.value(type_.element)
    r.expect(",")
    return ir.InsertElement(type_, name, {}, [vector, value, r.typed_value()])


def _shufflevector(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    left, type_ = _vector(r)
    r.expect(",")
    if r.type() is not type_:
        r.fail(f"a {type_} is wanted", r.i - 1)
    right = r.value(type_)
    r.expect(",")
    mask, mask_type = _vector(r)
    return ir.ShuffleVector(types.as_many(mask_type, type_.element), name, {}, [left, right, mask])


def _alloca(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    words = r.words(ALLOCA_WORDS)
    allocated = r.type()
    operands: list[Value] = []
    align: int | None = None
    addrspace = 0
    while r.tokens[r.i] == "," and r.tokens[r.i + 1][0] != "!":
        r.i += 1
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


def _load(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    atomic, volatile = r.accept("atomic"), r.accept("volatile")
    type_ = r.type()
    r.expect(",")
    load = ir.Load(type_, name, {}, [r.typed_value()], volatile=volatile)
    if atomic:
        load.syncscope, load.ordering = r.sync_scope(), r.ordering()
    load.align = r.alignment()
    return load


def _store(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    atomic, volatile = r.accept("atomic"), r.accept("volatile")
    value = r.typed_value()
    r.expect(",")
    store = ir.Store(types.VOID, name, {}, [value, r.typed_value()], volatile=volatile)
    if atomic:
        store.syncscope, store.ordering = r.sync_scope(), r.ordering()
    store.align = r.alignment()
    return store


def _getelementptr(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    flags = r.words(POINTER_FLAGS) if r.tokens[r.i] in POINTER_FLAGS else ()
    source_type = r.type()
    r.expect(",")
    operands = [r.typed_value()]
    while r.tokens[r.i] == "," and r.tokens[r.i + 1][0] != "!":
        r.i += 1
        operands.append(r.typed_value())
    result = types.address_type([operand.type for operand in operands])
    return ir.GetElementPtr(result, name, {}, operands, source_type=source_type, flags=flags)


def _atomicrmw(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
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


def _cmpxchg(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
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


def _fence(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    scope = r.sync_scope()
    return ir.Fence(types.VOID, name, ordering=r.ordering(), syncscope=scope)


def _va_arg(r: BodyReader, _: str, name: str | None) -> ir.Instruction:
    pointer = r.typed_value()
    r.expect(",")
    return ir.VAArg(r.type(), name, {}, [pointer])


COMPUTATIONS: Final[dict[str, InstructionParser]] = {
    **dict.fromkeys(BINARY_OPCODES, _binary),
    **dict.fromkeys(CAST_OPCODES, _cast),
    "fneg": _unary,
    "icmp": _compare,
    "fcmp": _compare,
    "select": _select,
    "phi": _phi,
    "freeze": _freeze,
    "extractvalue": _extractvalue,
    "insertvalue": _insertvalue,
    "extractelement": _extractelement,
    "insertelement": _insertelement,
    "shufflevector": _shufflevector,
    "alloca": _alloca,
    "load": _load,
    "store": _store,
    "getelementptr": _getelementptr,
    "atomicrmw": _atomicrmw,
    "cmpxchg": _cmpxchg,
    "fence": _fence,
    "va_arg": _va_arg,
}


# Calls, terminators and the pads of exception handling.

_C = TypeVar("_C", bound=CallSite)


def _site(r: BodyReader, kind: type[_C], name: str | None, opcode: str = "") -> _C:
    """What `call`, `invoke` and `callbr` have in common."""
    flags = r.words(FAST_MATH) if kind is Call else ()
    convention = r.convention()
    result_attributes = r.parameter_attributes()
    addrspace = int(r.take()[10:-1]) if r.tokens[r.i].startswith("addrspace(") else None
    result = r.type()
    function_type = r.function_type(result) if r.tokens[r.i] == "(" else None
    callee = r.value(types.pointer_type(addrspace) if addrspace else types.PTR)
    operands, argument_attributes = _arguments(r, opcode == "musttail")
    if function_type is None:
        function_type = types.function_type(result, [v.type for v in operands])
    else:
        _check_arguments(r, function_type, operands)
    attributes = r.function_attributes()
    bundles = _bundles(r, operands) if r.tokens[r.i] == "[" else ()
    operands.append(callee)
    return kind(
        result, name, {}, operands,
        function_type=function_type, convention=convention, result_attributes=result_attributes,
        argument_attributes=argument_attributes, attributes=attributes, bundles=bundles, flags=flags,
        addrspace=addrspace,
    )  # fmt: skip


def _arguments(r: BodyReader, musttail: bool) -> tuple[list[Value], tuple[tuple[str, ...], ...]]:
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


def _check_arguments(r: BodyReader, written: FunctionType, operands: list[Value]) -> None:
    fixed = len(written.params)
    given = tuple([v.type for v in operands])
    if given[:fixed] != written.params or (len(given) > fixed and not written.variadic):
        r.fail(f"the arguments do not fit {written}", r.i - 1)


def _bundles(r: BodyReader, operands: list[Value]) -> tuple[tuple[str, int], ...]:
    """`[ "tag"(T v, …), … ]`; the operands go after the arguments."""

    def bundle() -> tuple[str, int]:
        tag = r.string()
        r.expect("(")
        given = r.listed(")", r.typed_value)
        operands.extend(given)
        return tag, len(given)

    r.expect("[")
    return tuple(r.listed("]", bundle))


def _call(r: BodyReader, opcode: str, name: str | None) -> Instruction:
    if opcode != "call":
        r.expect("call")
    call = _site(r, Call, name, opcode)
    call.tail = None if opcode == "call" else opcode
    return call


def _invoke(r: BodyReader, _: str, name: str | None) -> Instruction:
    invoke = _site(r, Invoke, name)
    r.expect("to")
    normal = r.label()
    r.expect("unwind")
    invoke.targets = [normal, r.label()]
    return invoke


def _callbr(r: BodyReader, _: str, name: str | None) -> Instruction:
    callbr = _site(r, CallBr, name)
    r.expect("to")
    callbr.targets = [r.label(), *_labels(r)]
    return callbr


def _labels(r: BodyReader) -> list[Block]:
    """`[label %a, label %b]`."""
    r.expect("[")
    return r.listed("]", r.label)


def _ret(r: BodyReader, _: str, name: str | None) -> Instruction:
    type_ = r.type()
    return Ret(types.VOID, name, {}, [] if type_ is types.VOID else [r.value(type_)])


def _br(r: BodyReader, _: str, name: str | None) -> Instruction:
    if r.tokens[r.i] == "label":
        return Br(types.VOID, name, targets=[r.label()])
    condition = r.typed_value()
    if condition.type is not types.I1:
        r.fail("a condition must be i1", r.i - 1)
    r.expect(",")
    first = r.label()
    r.expect(",")
    return CondBr(types.VOID, name, {}, [condition], targets=[first, r.label()])


def _switch(r: BodyReader, _: str, name: str | None) -> Instruction:
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
    return Switch(types.VOID, name, {}, operands, targets=targets)


def _indirectbr(r: BodyReader, _: str, name: str | None) -> Instruction:
    address = r.typed_value()
    r.expect(",")
    return IndirectBr(types.VOID, name, {}, [address], targets=_labels(r))


def _unreachable(_r: BodyReader, _: str, name: str | None) -> Instruction:
    return Unreachable(types.VOID, name)


def _resume(r: BodyReader, _: str, name: str | None) -> Instruction:
    return Resume(types.VOID, name, {}, [r.typed_value()])


def _landingpad(r: BodyReader, _: str, name: str | None) -> Instruction:
    type_ = r.type()
    cleanup = r.accept("cleanup")
    clauses: list[str] = []
    operands: list[Value] = []
    while r.tokens[r.i] in ("catch", "filter"):
        clauses.append(r.take())
        operands.append(r.typed_value())
    return LandingPad(type_, name, {}, operands, cleanup=cleanup, clauses=tuple(clauses))


def _pad(r: BodyReader, opcode: str, name: str | None) -> Instruction:
    r.expect("within")
    operands = [r.value(types.TOKEN)]
    r.expect("[")
    operands += r.listed("]", r.typed_value)
    return ExceptionPad(types.TOKEN, name, {}, operands, opcode=opcode)


def _catchswitch(r: BodyReader, opcode: str, name: str | None) -> Instruction:
    r.expect("within")
    within = r.value(types.TOKEN)
    targets = _labels(r)
    to_caller = _unwind(r, targets)
    return ExceptionTerminator(
        types.TOKEN, name, {}, [within], targets=targets, opcode=opcode, unwind_to_caller=to_caller
    )


def _unwind(r: BodyReader, targets: list[Block]) -> bool:
    """`unwind to caller`, or `unwind label %b`, which is added to the targets."""
    r.expect("unwind")
    if r.accept("to"):
        r.expect("caller")
        return True
    targets.append(r.label())
    return False


def _pad_return(r: BodyReader, opcode: str, name: str | None) -> Instruction:
    r.expect("from")
    pad = r.value(types.TOKEN)
    targets: list[Block] = []
    to_caller = False
    if opcode == "catchret":
        r.expect("to")
        targets.append(r.label())
    else:
        to_caller = _unwind(r, targets)
    return ExceptionTerminator(types.VOID, name, {}, [pad], targets=targets, opcode=opcode, unwind_to_caller=to_caller)


CONTROL: Final[dict[str, InstructionParser]] = {
    "call": _call,
    "tail": _call,
    "musttail": _call,
    "notail": _call,
    "invoke": _invoke,
    "callbr": _callbr,
    "ret": _ret,
    "br": _br,
    "switch": _switch,
    "indirectbr": _indirectbr,
    "unreachable": _unreachable,
    "resume": _resume,
    "landingpad": _landingpad,
    "catchpad": _pad,
    "cleanuppad": _pad,
    "catchswitch": _catchswitch,
    "catchret": _pad_return,
    "cleanupret": _pad_return,
}
