"""The table of instructions: a row for the opcodes of one kind, with their text, flags and types.

The parser finds opcodes here, the printer and the verifier shapes. From a row follow

- the text, if it is the opcode, flags and the operands with their types (`freeze T %a`); any other text is a pair of
  functions in `irad.ir.text.instructions`;
- what the verifier demands of operands, result and targets, and the parser of instructions without such functions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import EllipsisType
from typing import Any, Final, NamedTuple, TypeAlias

from irad.ir import instructions as ir, types
from irad.ir.module import Function
from irad.ir.text import instructions as text
from irad.ir.text.keywords import FAST_MATH, FLOAT_OPCODES, INTEGER_OPCODES
from irad.ir.text.names import Names
from irad.ir.types import I1, TOKEN, VOID, FloatType, FunctionType, IntType, PointerType, Type, VectorType

TypeRule: TypeAlias = Callable[[Any, Type], "Type | str"]
"""Check of the type at a place: from the instruction and the type that stands there to the right type, which is the
same one if it fits, or to words that say what is wrong."""


class Row(NamedTuple):
    """Opcodes of one kind.

    Attributes:
        shape: the class; it has several rows only if its field ``opcode`` tells them apart.
        opcodes: the words with which the text begins.
        operands: a rule for each; `...` at the end repeats the one before it, zero times or more. None: not known.
        result: the rule for the result.
        text: None for the opcode, flags and all operands with their types.
        flags: the words that may follow the opcode, if ``text`` is None.
        targets: number of successors; None if it varies.
        check: what else is wrong, in words; None if nothing is.
    """

    shape: type[ir.Instruction]
    opcodes: Collection[str]
    operands: Sequence[TypeRule | EllipsisType] | None
    result: TypeRule
    text: text.Text[Any] | None = None
    flags: frozenset[str] = frozenset()
    targets: int | None = 0
    check: Callable[[Any], str | None] | None = None


# ------------------------------------------------------------------------------------------------ rules


def _exactly(type_: Type) -> TypeRule:
    return lambda _inst, _given: type_


def _scalar(type_: Type) -> Type:
    return type_.element if isinstance(type_, VectorType) else type_


def _scalars(kind: type[Type]) -> TypeRule:
    """Types of a class, and vectors of them."""

    def rule(_: ir.Instruction, given: Type) -> Type | str:
        return given if isinstance(_scalar(given), kind) else f"expected a type of class {kind.__name__}, got {given}"

    return rule


_void: Final = _exactly(VOID)
_i1: Final = _exactly(I1)
_token: Final = _exactly(TOKEN)
_integers: Final = _scalars(IntType)
_floats: Final = _scalars(FloatType)
_addresses: Final = _scalars(PointerType)


def _anything(_: ir.Instruction, given: Type) -> Type:
    return given


def _result(inst: ir.Instruction, _: Type) -> Type:
    return inst.type


def _first(inst: ir.Instruction, _: Type) -> Type:
    return inst.operands[0].type


def _second(inst: ir.Instruction, _: Type) -> Type:
    return inst.operands[1].type


def _lane(inst: ir.Instruction, _: Type) -> Type:
    return _scalar(inst.operands[0].type)


def _vector(_: ir.Instruction, given: Type) -> Type | str:
    return given if isinstance(given, VectorType) else f"{given} is not a vector"


def _pointer(_: ir.Instruction, given: Type) -> Type | str:
    return given if isinstance(given, PointerType) else f"{given} is not a pointer"


def _sized(_: ir.Instruction, given: Type) -> Type | str:
    return f"a {given} cannot be stored" if isinstance(given, types.SimpleType | FunctionType) else given


def _truth(inst: ir.Instruction, _: Type) -> Type:
    return types.as_many(inst.operands[0].type, I1)


def _condition(inst: ir.Select, given: Type) -> Type:
    return types.as_many(inst.type, I1) if isinstance(given, VectorType) else I1


def _part(inst: ir.ExtractValue | ir.InsertValue, _: Type) -> Type | str:
    whole = inst.operands[0].type
    return types.element_at(whole, inst.indices) or f"{whole} has no element {inst.indices}"


def _shuffled(inst: ir.ShuffleVector, _: Type) -> Type:
    return types.as_many(inst.operands[2].type, _scalar(inst.operands[0].type))


def _address(inst: ir.GetElementPtr, _: Type) -> Type:
    return types.address_type([operand.type for operand in inst.operands])


def _exchanged(inst: ir.CmpXchg, _: Type) -> Type:
    return types.struct_type((inst.operands[1].type, I1))


def _returned(site: ir.CallSite, _: Type) -> Type:
    return site.function_type.result


# ------------------------------------------------------------------------------------------------ checks


def _same_lanes(inst: ir.Cast) -> str | None:
    source, target = inst.operands[0].type, inst.type
    if types.as_many(source, I1) is types.as_many(target, I1):
        return None
    return f"{source} has not as many lanes as {target}"


def _bits(type_: Type) -> int:
    scalar = _scalar(type_)
    assert isinstance(scalar, IntType | FloatType)
    return scalar.bits


def _narrows(inst: ir.Cast) -> str | None:
    source, target = inst.operands[0].type, inst.type
    fits = _bits(target) < _bits(source)
    return _same_lanes(inst) or (None if fits else f"{inst.opcode} from {source} to {target}")


def _widens(inst: ir.Cast) -> str | None:
    source, target = inst.operands[0].type, inst.type
    fits = _bits(source) < _bits(target)
    return _same_lanes(inst) or (None if fits else f"{inst.opcode} from {source} to {target}")


def _check_alloca(inst: ir.Alloca) -> str | None:
    return f"it has {len(inst.operands)} operands" if len(inst.operands) > 1 else None


def _check_call(site: ir.CallSite) -> str | None:
    if not site.operands:
        return "it has no callee"
    arguments = [argument.type for argument in site.arguments]
    type_, callee = site.function_type, site.callee
    problem = _differ(arguments[: len(type_.params)] if type_.variadic else arguments, type_.params)
    if problem is not None:
        return problem
    if not isinstance(callee.type, PointerType):
        return f"{callee.type} is not a pointer"
    if len(site.argument_attributes) not in (0, len(arguments)):
        return f"it has attributes for {len(site.argument_attributes)} of {len(arguments)} arguments"
    if isinstance(callee, Function) and callee.convention != site.convention:
        return f"its convention is {site.convention}, that of @{callee.name} is {callee.convention}"
    return None


def _check_ret(inst: ir.Ret) -> str | None:
    function = inst.block.function if inst.block is not None else None
    if function is None:
        return "it is in no function"
    result = function.function_type.result
    return _differ([value.type for value in inst.operands], [] if result is VOID else [result])


def _check_switch(inst: ir.Switch) -> str | None:
    return None if len(inst.targets) == len(inst.operands) else f"it has {len(inst.targets)} targets"


# ------------------------------------------------------------------------------------------------ the table

TABLE: Final[tuple[Row, ...]] = (
    # shape, opcodes, operands, result, text
    Row(ir.Binary, INTEGER_OPCODES, (_result, _result), _integers, text.BINARY),
    Row(ir.Binary, FLOAT_OPCODES, (_result, _result), _floats, text.BINARY),
    Row(ir.Unary, ("fneg",), (_result,), _floats, flags=FAST_MATH),
    Row(ir.Cast, ("trunc",), (_integers,), _integers, text.CAST, check=_narrows),
    Row(ir.Cast, ("zext", "sext"), (_integers,), _integers, text.CAST, check=_widens),
    Row(ir.Cast, ("fptrunc",), (_floats,), _floats, text.CAST, check=_narrows),
    Row(ir.Cast, ("fpext",), (_floats,), _floats, text.CAST, check=_widens),
    Row(ir.Cast, ("fptoui", "fptosi"), (_floats,), _integers, text.CAST, check=_same_lanes),
    Row(ir.Cast, ("uitofp", "sitofp"), (_integers,), _floats, text.CAST, check=_same_lanes),
    Row(ir.Cast, ("ptrtoint", "ptrtoaddr"), (_addresses,), _integers, text.CAST, check=_same_lanes),
    Row(ir.Cast, ("inttoptr",), (_integers,), _addresses, text.CAST, check=_same_lanes),
    Row(ir.Cast, ("addrspacecast",), (_addresses,), _addresses, text.CAST, check=_same_lanes),
    Row(ir.Cast, ("bitcast",), (_anything,), _anything, text.CAST),
    Row(ir.ICmp, ("icmp",), (_anything, _first), _truth, text.ICMP),
    Row(ir.FCmp, ("fcmp",), (_floats, _first), _truth, text.FCMP),
    Row(ir.Select, ("select",), (_condition, _result, _result), _anything, text.SELECT),
    Row(ir.Phi, ("phi",), None, _anything, text.PHI),  # its operands are checked with the blocks they come from
    Row(ir.Freeze, ("freeze",), (_result,), _anything),
    Row(ir.ExtractValue, ("extractvalue",), (_anything,), _part, text.EXTRACTVALUE),
    Row(ir.InsertValue, ("insertvalue",), (_result, _part), _anything, text.INSERTVALUE),
    Row(ir.ExtractElement, ("extractelement",), (_vector, _integers), _lane),
    Row(ir.InsertElement, ("insertelement",), (_vector, _lane, _integers), _first),
    Row(ir.ShuffleVector, ("shufflevector",), (_vector, _first, _vector), _shuffled),
    # memory
    Row(ir.Alloca, ("alloca",), (_integers, ...), _pointer, text.ALLOCA, check=_check_alloca),
    Row(ir.Load, ("load",), (_pointer,), _anything, text.LOAD),
    Row(ir.Store, ("store",), (_sized, _pointer), _void, text.STORE),
    Row(ir.GetElementPtr, ("getelementptr",), (_addresses, _integers, ...), _address, text.GETELEMENTPTR),
    Row(ir.AtomicRMW, ("atomicrmw",), (_pointer, _result), _anything, text.ATOMICRMW),
    Row(ir.CmpXchg, ("cmpxchg",), (_pointer, _anything, _second), _exchanged, text.CMPXCHG),
    Row(ir.Fence, ("fence",), (), _void, text.FENCE),
    Row(ir.VAArg, ("va_arg",), (_pointer,), _anything, text.VA_ARG),
    # calls
    Row(ir.Call, ("call", "tail", "musttail", "notail"), None, _returned, text.CALL, check=_check_call),
    Row(ir.Invoke, ("invoke",), None, _returned, text.INVOKE, targets=2, check=_check_call),
    Row(ir.CallBr, ("callbr",), None, _returned, text.CALLBR, targets=None, check=_check_call),
    # terminators
    Row(ir.Ret, ("ret",), None, _void, text.RET, check=_check_ret),
    Row(ir.Br, ("br",), (), _void, text.BR, targets=1),
    Row(ir.CondBr, ("br",), (_i1,), _void, text.COND_BR, targets=2),
    Row(ir.Switch, ("switch",), (_anything, _first, ...), _void, text.SWITCH, targets=None, check=_check_switch),
    Row(ir.IndirectBr, ("indirectbr",), (_pointer,), _void, text.INDIRECTBR, targets=None),
    Row(ir.Unreachable, ("unreachable",), (), _void, text.UNREACHABLE),
    Row(ir.Resume, ("resume",), (_anything,), _void),
    # exceptions: what the operands of pads are is for the personality to say
    Row(ir.LandingPad, ("landingpad",), None, _anything, text.LANDINGPAD),
    Row(ir.ExceptionPad, ("catchpad", "cleanuppad"), None, _token, text.EXCEPTION_PAD),
    Row(
        ir.ExceptionTerminator, ("catchswitch", "catchret", "cleanupret"), None, _anything, text.EXCEPTION_TERMINATOR,
        targets=None,
    ),
)  # fmt: skip


# ------------------------------------------------------------------------------------------------ what follows from it


def _text(row: Row) -> text.Text[Any]:
    if row.text is not None:
        return row.text
    (opcode,) = row.opcodes
    assert row.operands is not None
    like = row.operands.index(_result) if _result in row.operands else None

    def settle(inst: ir.Instruction) -> str | None:
        fitting = inst.operands[like].type if like is not None else row.result(inst, VOID)
        if isinstance(fitting, str):
            return fitting
        inst.type = fitting
        return _problem(row, inst)

    return text.listed(row.shape, opcode, len(row.operands), row.flags, settle)


_ROWS: Final[dict[type[ir.Instruction], list[Row]]] = {}
for _each in TABLE:
    _ROWS.setdefault(_each.shape, []).append(_each)
_TEXTS: Final = [(row, _text(row)) for row in TABLE]
_WRITERS: Final = {row.shape: found.write for row, found in _TEXTS}
READERS: Final = {opcode: found.read for row, found in _TEXTS for opcode in row.opcodes}
"""opcode → reader of what follows it."""


def text_of(inst: ir.Instruction, names: Names) -> str:
    """The text without the name of the result and without metadata; several lines for some terminators."""
    return _WRITERS[type(inst)](inst, names)


def shape_problem(inst: ir.Instruction) -> str | None:
    """Problem with operands, result and targets, in words; None if there is none."""
    row = _row(inst)
    return "unknown opcode" if row is None else _problem(row, inst)


def _problem(row: Row, inst: ir.Instruction) -> str | None:
    problem = None if row.operands is None else _operand_problem(row.operands, inst)
    if problem is not None:
        return problem
    result = row.result(inst, inst.type)
    if result is not inst.type:
        return result if isinstance(result, str) else f"its result is {inst.type}, it must be {result}"
    if row.targets is not None and len(inst.targets) != row.targets:
        return f"it has {len(inst.targets)} targets"
    return row.check(inst) if row.check is not None else None


def _row(inst: ir.Instruction) -> Row | None:
    """The row of a shape, or of its opcode."""
    rows = _ROWS[type(inst)]
    if isinstance(inst, ir.Binary | ir.Cast):
        return next((row for row in rows if inst.opcode in row.opcodes), None)
    return rows[0]


def _operand_problem(rules: Sequence[Any], inst: ir.Instruction) -> str | None:
    given = [operand.type for operand in inst.operands]
    if rules and rules[-1] is ...:
        fixed = rules[:-2]
        rules = [*fixed, *[rules[-2]] * (len(given) - len(fixed))]
    if len(given) != len(rules):
        return f"it has {len(given)} operands"
    wanted = [rule(inst, type_) for rule, type_ in zip(rules, given, strict=True)]
    if wanted == given:
        return None
    return next((each for each in wanted if isinstance(each, str)), None) or _differ(given, wanted)


def _differ(given: Sequence[Type], wanted: Sequence[Type | str]) -> str | None:
    if list(given) == list(wanted):
        return None
    return f"its operands are ({', '.join(map(str, given))}), they must be ({', '.join(map(str, wanted))})"
