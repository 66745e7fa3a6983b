"""Checks that IR is well formed, so that a faulty pass is found where it went wrong and not by LLVM later.

Checked: one terminator at the end of each block; phis at the head, one value for each incoming edge; parent links;
operands that belong to the same function and are available where they are used; the types of operands and result for
each shape; and that ``users`` lists exactly the users of a value.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import Final, NoReturn

from irad.errors import InternalError
from irad.ir.cfg import control_flow
from irad.ir.dominance import DominatorTree, dominators
from irad.ir.instruction_table import shape_problem
from irad.ir.instructions import CallBr, Instruction, Invoke, Phi, Terminator
from irad.ir.module import Block, Function, Module
from irad.ir.values import MetadataOperand, Parameter, TrackedValue, Value
from irad.records import dataclass

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
            problem = shape_problem(inst)
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
            check.fail("the phi comes after other instructions", inst)
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
    """True if a value is available on the edge from ``source`` to ``target``."""
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
