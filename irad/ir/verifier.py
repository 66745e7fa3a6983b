"""Checks that IR is well formed, so that a faulty pass is found where it went wrong and not by LLVM later.

Checked: one terminator at the end of each block; phis at the head, one value for each incoming edge; parent links;
operands that belong to the same function and are available where they are used; the types of operands and result for
each shape; and that ``users`` lists exactly the users of a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Final, NoReturn, assert_never, cast

from irad.errors import InternalError
from irad.ir import instructions as ir, types
from irad.ir.cfg import control_flow
from irad.ir.dominance import DominatorTree, dominators
from irad.ir.instructions import CallBr, Instruction, Invoke, Phi, Terminator
from irad.ir.module import Block, Function, Module
from irad.ir.types import FloatType, FunctionType, IntType, PointerType, Type, VectorType
from irad.ir.values import MetadataOperand, Parameter, TrackedValue, Value

# The rules each instruction shape has for the number and types of its operands and result.

_FLOAT_OPCODES: Final = ("fadd", "fsub", "fmul", "fdiv", "frem")
# opcode → (kind of the operand's scalars, kind of the result's scalars)
_CASTS: Final[dict[str, tuple[type[Type], type[Type]]]] = {
    "trunc": (IntType, IntType),
    "zext": (IntType, IntType),
    "sext": (IntType, IntType),
    "fptrunc": (FloatType, FloatType),
    "fpext": (FloatType, FloatType),
    "fptoui": (FloatType, IntType),
    "fptosi": (FloatType, IntType),
    "uitofp": (IntType, FloatType),
    "sitofp": (IntType, FloatType),
    "ptrtoint": (PointerType, IntType),
    "ptrtoaddr": (PointerType, IntType),
    "inttoptr": (IntType, PointerType),
    "addrspacecast": (PointerType, PointerType),
    "bitcast": (Type, Type),
}


def shape_problem(inst: ir.Instruction, function: Function) -> str | None:
    """What is wrong with the operands of an instruction of ``function``, in words; None if nothing is."""
    given = [operand.type for operand in inst.operands]
    match cast(ir.AnyInstruction, inst):
        case ir.Binary(opcode=opcode):
            kind = FloatType if opcode in _FLOAT_OPCODES else IntType
            return _expect(given, [inst.type, inst.type]) or _kind(inst.type, kind)
        case ir.Unary():
            return _expect(given, [inst.type]) or _kind(inst.type, FloatType)
        case ir.Freeze():
            return _expect(given, [inst.type])
        case ir.Cast() as conversion:
            return _cast(conversion)
        case ir.ICmp() | ir.FCmp():
            return _compare(inst, given)
        case ir.Select():
            truth = given[0] if given and isinstance(given[0], VectorType) else types.I1
            return _expect(given, [truth, inst.type, inst.type]) or _scalar_is(truth, types.I1)
        case ir.ExtractValue() | ir.InsertValue() as part:
            return _element_access(part, given)
        case ir.ExtractElement() | ir.InsertElement() | ir.ShuffleVector():
            return _vector_access(inst, given)
        case (
            ir.Alloca()
            | ir.Load()
            | ir.Store()
            | ir.GetElementPtr()
            | ir.AtomicRMW()
            | ir.CmpXchg()
            | ir.VAArg() as access
        ):
            return _memory(access, given)
        case ir.Call() | ir.Invoke() | ir.CallBr() as site:
            return _call(site, given)
        case (
            ir.Ret()
            | ir.CondBr()
            | ir.Switch()
            | ir.Br()
            | ir.Unreachable()
            | ir.Fence()
            | ir.IndirectBr()
            | ir.Resume() as end
        ):
            return _terminator(end, given, function)
        case ir.Phi() | ir.LandingPad() | ir.ExceptionPad() | ir.ExceptionTerminator():
            return None  # phis need the graph; pads hold what the personality wants
        case shape:
            assert_never(shape)


def _expect(given: Sequence[Type], wanted: Sequence[Type]) -> str | None:
    if len(given) == len(wanted) and all(map(is_, given, wanted)):
        return None
    return f"its operands are ({_list(given)}), they must be ({_list(wanted)})"


def _list(types_: Sequence[Type]) -> str:
    return ", ".join(map(str, types_))


def _count(given: Sequence[Type], least: int, most: int | None = None) -> str | None:
    if least <= len(given) <= (least if most is None else most):
        return None
    return f"it has {len(given)} operands"


def _scalar(type_: Type) -> Type:
    return type_.element if isinstance(type_, VectorType) else type_


def _scalar_is(type_: Type, wanted: Type) -> str | None:
    return None if _scalar(type_) is wanted else f"{type_} stands where {wanted} must"


def _kind(type_: Type, kind: type[Type]) -> str | None:
    return None if isinstance(_scalar(type_), kind) else f"expected a type of class {kind.__name__}, got {type_}"


def _lanes(type_: Type) -> tuple[int, bool] | None:
    return (type_.count, type_.scalable) if isinstance(type_, VectorType) else None


def _cast(inst: ir.Cast) -> str | None:
    if len(inst.operands) != 1 or inst.opcode not in _CASTS:
        return f"{inst.opcode} of {len(inst.operands)} operands"
    source, target = inst.operands[0].type, inst.type
    before, after = _CASTS[inst.opcode]
    problem = _kind(source, before) or _kind(target, after)
    if problem is None and inst.opcode != "bitcast" and _lanes(source) != _lanes(target):
        problem = f"{source} has not as many lanes as {target}"
    if problem is None and inst.opcode in ("trunc", "fptrunc", "zext", "sext", "fpext"):
        narrow, wide = (target, source) if inst.opcode.endswith("trunc") else (source, target)
        if _bits(narrow) >= _bits(wide):
            problem = f"{inst.opcode} from {source} to {target}"
    return problem


def _bits(type_: Type) -> int:
    scalar = _scalar(type_)
    assert isinstance(scalar, IntType | FloatType)
    return scalar.bits


def _compare(inst: ir.Instruction, given: Sequence[Type]) -> str | None:
    problem = _count(given, 2)
    if problem is None and given[0] is not given[1]:
        problem = f"it compares {given[0]} with {given[1]}"
    if problem is None and isinstance(inst, ir.FCmp):
        problem = _kind(given[0], FloatType)
    if problem is None and _lanes(given[0]) != _lanes(inst.type):
        problem = f"its result is {inst.type}"
    return problem or _scalar_is(inst.type, types.I1)


def _element_access(inst: ir.ExtractValue | ir.InsertValue, given: Sequence[Type]) -> str | None:
    problem = _count(given, 1 if isinstance(inst, ir.ExtractValue) else 2)
    if problem is not None:
        return problem
    element = given[0]
    for index in inst.indices:
        inner = types.element_types(element) if isinstance(element, _AGGREGATES) else ()
        if index >= len(inner):
            return f"{given[0]} has no element {inst.indices}"
        element = inner[index]
    if isinstance(inst, ir.ExtractValue):
        return _expect([inst.type], [element])
    return _expect(given, [inst.type, element])


_AGGREGATES: Final = (types.ArrayType, types.StructType, types.NamedStructType)


def _vector_access(inst: ir.Instruction, given: Sequence[Type]) -> str | None:
    vector = given[0] if given else types.VOID
    if not isinstance(vector, VectorType):
        return f"its first operand is {vector}, not a vector"
    if isinstance(inst, ir.ShuffleVector):
        return _count(given, 3) or _expect(given[1:2], [vector])
    index = given[-1]
    wanted = [vector, index] if isinstance(inst, ir.ExtractElement) else [vector, vector.element, index]
    result = vector.element if isinstance(inst, ir.ExtractElement) else vector
    return _expect(given, wanted) or _expect([inst.type], [result]) or _kind(index, IntType)


def _memory(
    inst: ir.Alloca | ir.Load | ir.Store | ir.GetElementPtr | ir.AtomicRMW | ir.CmpXchg | ir.VAArg,
    given: Sequence[Type],
) -> str | None:
    match inst:
        case ir.Alloca():
            return _count(given, 0, 1) or (_kind(given[0], IntType) if given else None) or _kind(inst.type, PointerType)
        case ir.Load() | ir.VAArg():
            return _count(given, 1) or _pointer(given[0])
        case ir.Store():
            return _count(given, 2) or _pointer(given[1]) or _sized(given[0])
        case ir.GetElementPtr():
            return _address(inst, given)
        case ir.AtomicRMW():
            return _count(given, 2) or _pointer(given[0]) or _expect([inst.type], [given[1]])
        case ir.CmpXchg():
            return _count(given, 3) or _pointer(given[0]) or _expect([given[2]], [given[1]])
        case _:
            assert_never(inst)


def _pointer(type_: Type) -> str | None:
    return None if isinstance(type_, PointerType) else f"{type_} is not a pointer"


def _sized(type_: Type) -> str | None:
    return f"a {type_} cannot be stored" if isinstance(type_, types.SimpleType | FunctionType) else None


def _address(inst: ir.GetElementPtr, given: Sequence[Type]) -> str | None:
    if not given:
        return "it has no base"
    for index in given[1:]:
        problem = _kind(index, IntType)
        if problem is not None:
            return problem
    lanes = next((lanes for lanes in map(_lanes, given) if lanes is not None), None)
    return _kind(given[0], PointerType) or (None if _lanes(inst.type) == lanes else f"its result is {inst.type}")


def _call(site: ir.CallSite, given: Sequence[Type]) -> str | None:
    if not given:
        return "it has no callee"
    arguments = [argument.type for argument in site.arguments]
    type_ = site.function_type
    fixed = arguments[: len(type_.params)] if type_.variadic else arguments
    problem = _expect(fixed, type_.params) or _expect([site.type], [type_.result]) or _pointer(given[-1])
    if problem is None and len(site.argument_attributes) not in (0, len(arguments)):
        problem = f"it has attributes for {len(site.argument_attributes)} of {len(arguments)} arguments"
    callee: Value = site.callee
    if problem is None and isinstance(callee, Function) and callee.convention != site.convention:
        problem = f"its convention is {site.convention}, that of @{callee.name} is {callee.convention}"
    return problem


def _terminator(
    inst: ir.Ret | ir.CondBr | ir.Switch | ir.Br | ir.Unreachable | ir.Fence | ir.IndirectBr | ir.Resume,
    given: Sequence[Type],
    function: Function,
) -> str | None:
    match inst:
        case ir.Ret():
            result = function.function_type.result
            return _expect(given, [] if result is types.VOID else [result])
        case ir.CondBr():
            return _expect(given, [types.I1]) or _targets(inst, 2)
        case ir.Switch():
            return _count(given, 1, len(given)) or _expect(given, [given[0]] * len(given)) or _targets(inst, len(given))
        case ir.Br():
            return _expect(given, []) or _targets(inst, 1)
        case ir.IndirectBr():
            return _count(given, 1) or _pointer(given[0])
        case ir.Resume():
            return _count(given, 1)
        case ir.Unreachable() | ir.Fence():
            return _expect(given, []) or _targets(inst, 0)
        case _:
            assert_never(inst)


def _targets(inst: ir.Instruction, count: int) -> str | None:
    return None if len(inst.targets) == count else f"it has {len(inst.targets)} targets"


_ENDS: Final = (Terminator, Invoke, CallBr)


def verify(unit: Module | Function) -> None:
    """Checks a function, or all of a module.

    Raises:
        InternalError: the first fault, with function, block and instruction.
    """
    if isinstance(unit, Function):
        _verify_function(unit)
        return
    for name, function in unit.functions.items():
        if function.module is not unit or function.name != name:
            raise InternalError(f"invalid IR: @{function.name} is listed as @{name} or belongs to another module")
        _verify_function(function)
    _verify_global_users(unit)


@dataclass(slots=True)
class _Check:
    """One function under test; knows how to name the place of a fault."""

    function: Function
    position: dict[Instruction, int] = field(default_factory=dict)
    uses: dict[Value, dict[Instruction, int]] = field(default_factory=dict)
    incoming: dict[Block, Counter[Block]] = field(default_factory=dict)

    def fail(self, problem: str, at: Block | Instruction | None = None) -> NoReturn:
        block = at.block if isinstance(at, Instruction) else at
        parts = [f"@{self.function.name}"]
        if block is not None:
            parts.append(f"block %{block.name or self.function.blocks.index(block)}")
        if isinstance(at, Instruction):
            parts.append(describe(at))
        raise InternalError(f"invalid IR in {', '.join(parts)}: {problem}")


def describe(inst: Instruction) -> str:
    """A short name for messages: `%x = Binary(fadd)`."""
    detail = getattr(inst, "opcode", None) or getattr(inst, "predicate", None)
    name = f"%{inst.name} = " if inst.name is not None else ""
    return f"{name}{type(inst).__name__}" + (f"({detail})" if detail else "")


def _verify_function(function: Function) -> None:
    check = _Check(function)
    if tuple(p.type for p in function.params) != function.function_type.params:
        check.fail(f"its parameters do not fit its type {function.function_type}")
    if function.is_declaration:
        return
    _verify_blocks(check)
    tree = dominators(control_flow(function))
    for block in function.blocks:
        for inst in block.instructions:
            problem = shape_problem(inst, function)
            if problem is not None:
                check.fail(problem, inst)
            if isinstance(inst, Phi):
                _verify_phi(check, tree, inst, block)
            else:
                for value in inst.operands:
                    _verify_operand(check, tree, value, inst, block)
    for local in (*function.params, *check.position):
        _verify_users(check, local, check.uses.pop(local, {}))
    for shared, uses in check.uses.items():
        _verify_users(check, shared, uses)


def _verify_blocks(check: _Check) -> None:
    """Terminators, parent links, targets, phis first; fills ``position``, ``uses`` and ``incoming``."""
    function = check.function
    check.incoming = {block: Counter() for block in function.blocks}
    if len(check.incoming) != len(function.blocks):
        check.fail("a block is listed twice")
    for block in function.blocks:
        if block.function is not function:
            check.fail("the block belongs to another function", block)
        if not block.instructions:
            check.fail("the block is empty", block)
        _verify_order(check, block)
    if check.incoming[function.entry]:
        check.fail("the entry has predecessors", function.entry)


def _verify_order(check: _Check, block: Block) -> None:
    head = True
    last = len(block.instructions) - 1
    position, uses = check.position, check.uses
    for index, inst in enumerate(block.instructions):
        if inst.block is not block or inst in position:
            check.fail("the instruction belongs to another block or is listed twice", inst)
        position[inst] = index
        for value in inst.operands:
            if isinstance(value, TrackedValue):
                users = uses.setdefault(value, {})
                users[inst] = users.get(inst, 0) + 1
        ends = isinstance(inst, _ENDS)
        if ends != (index == last):
            check.fail("a terminator stands in the middle" if ends else "the block has no terminator", inst)
        if not isinstance(inst, Phi):
            head = False
        elif not head:
            check.fail("the phi stands behind other instructions", inst)
        if ends or inst.targets:
            _verify_targets(check, inst, block)


def _verify_targets(check: _Check, inst: Instruction, block: Block) -> None:
    if inst.targets and not isinstance(inst, _ENDS):
        check.fail("it has targets but is not a terminator", inst)
    for target in inst.targets:
        if target not in check.incoming:
            check.fail(f"the target %{target.name} is not in the function", inst)
        check.incoming[target][block] += 1


def _verify_phi(check: _Check, tree: DominatorTree, phi: Phi, block: Block) -> None:
    if len(phi.blocks) != len(phi.operands):
        check.fail(f"{len(phi.operands)} values from {len(phi.blocks)} blocks", phi)
    edges = check.incoming[block]
    if Counter(phi.blocks) != edges:
        names = ", ".join(f"%{b.name}" for b in edges.elements())
        check.fail(f"it receives from {', '.join(f'%{b.name}' for b in phi.blocks)}; the predecessors are {names}", phi)
    first: dict[Block, Value] = {}
    for value, source in phi.incoming():
        if value.type is not phi.type:
            check.fail(f"it receives a {value.type} from %{source.name}", phi)
        known = first.setdefault(source, value)
        if known is not value and isinstance(value, TrackedValue):
            check.fail(f"it receives different values from %{source.name}", phi)
        _verify_ownership(check, value, phi)
        if isinstance(value, Instruction) and not _reaches_end(tree, value, source, block):
            check.fail(f"{describe(value)} is not available at the end of %{source.name}", phi)


def _reaches_end(tree: DominatorTree, value: Instruction, source: Block, target: Block) -> bool:
    """Whether a value is available on the edge from ``source`` to ``target``."""
    home = value.block
    assert home is not None
    if home is source and isinstance(value, Invoke | CallBr):
        return value.targets[0] is target and value.targets.count(target) == 1
    return tree.dominates(home, source) if home is source else tree.value_dominates(value, source.terminator)


def _verify_operand(check: _Check, tree: DominatorTree, value: Value, inst: Instruction, block: Block) -> None:
    if isinstance(value, MetadataOperand) and value.value is not None:
        value = value.value
    _verify_ownership(check, value, inst)
    if not isinstance(value, Instruction):
        return
    if value.block is block:
        position = check.position
        available = position[value] < position[inst] or block not in tree.immediate
    else:
        available = tree.value_dominates(value, inst)
    if not available:
        check.fail(f"{describe(value)} is not available here", inst)


def _verify_ownership(check: _Check, value: Value, user: Instruction) -> None:
    """A local operand must be of the same function, a function of the same module."""
    if isinstance(value, Instruction):
        if value not in check.position:
            check.fail(f"its operand {describe(value)} is not in the function", user)
    elif isinstance(value, Parameter):
        if not any(value is p for p in check.function.params):
            check.fail(f"its operand %{value.name} is a parameter of another function", user)
    elif isinstance(value, Function) and value.module is not check.function.module:
        check.fail(f"@{value.name} is of another module", user)


def _verify_users(check: _Check, value: Value, uses: dict[Instruction, int]) -> None:
    """``users`` must tell the uses in this function, and of a local value no others."""
    assert isinstance(value, TrackedValue)
    if value.users == uses:
        return
    local = isinstance(value, Instruction | Parameter)
    at = value if isinstance(value, Instruction) else None
    for user in dict.fromkeys((*uses, *(value.users if local else ()))):
        recorded, found = value.users.get(user, 0), uses.get(user, 0)
        if user not in check.position:
            check.fail(f"%{value.name} is used by {describe(user)}, which is not in the function", at)
        if recorded != found:
            check.fail(f"%{value.name} is used {found} times by {describe(user)}, {recorded} are recorded", at)


def _verify_global_users(module: Module) -> None:
    for value in (*module.globals.values(), *module.aliases.values(), *module.functions.values()):
        for user, count in value.users.items():
            home = user.block.function if user.block is not None else None
            if home is None or home.module is not module:
                raise InternalError(f"invalid IR: @{value.name} is used by {describe(user)}, which is in no function")
            if sum(operand is value for operand in user.operands) != count:
                raise InternalError(f"invalid IR: @{value.name} is not used {count} times by {describe(user)}")
