"""Everything that irad cannot differentiate, found before any code is generated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never, cast

from irad.errors import ActivityError, IradError, NoRuleError, UnsupportedError, UnsupportedProgram
from irad.ir import types
from irad.ir.instructions import (
    Alloca,
    AnyInstruction,
    AtomicRMW,
    Binary,
    Br,
    Call,
    CallBr,
    CallSite,
    Cast,
    CmpXchg,
    CondBr,
    ExceptionPad,
    ExceptionTerminator,
    ExtractElement,
    ExtractValue,
    FCmp,
    Fence,
    Freeze,
    GetElementPtr,
    ICmp,
    IndirectBr,
    InsertElement,
    InsertValue,
    Instruction,
    Invoke,
    LandingPad,
    Load,
    Phi,
    Resume,
    Ret,
    Select,
    ShuffleVector,
    Store,
    Switch,
    Unary,
    Unreachable,
    VAArg,
)
from irad.ir.module import Function
from irad.ir.types import FloatType, IntType, PointerType, Type, VectorType, holds_floats
from irad.ir.values import Parameter, Value
from irad.ir.worklist import Worklist
from irad.passes.analysis.integer_taint import lost_bits, lost_error, reinterpreted
from irad.passes.analysis.refused.memory import (
    broken_promise,
    describe_memory,
    is_header,
    may_be_anything,
    move_error,
    no_shadow,
    scratch_error,
    space_error,
    update_error,
    written_error,
)
from irad.passes.analysis.refused.tangents import lacks_cotangent, lacks_tangent
from irad.passes.callees import PARALLEL, TWO_VIEWS, Pointer, Unknown, is_remote, resolve
from irad.passes.memory.objects import MemoryObject, ObjectKind
from irad.passes.memory.points_to_graph import places_behind
from irad.passes.memory.signatures import BOOKKEEPING, kind_of
from irad.passes.unit import Unit
from irad.ruleset.interface import CallRule, ConstantParameters, Elementwise, Inactive, PairRule
from irad.ruleset.memory_type import MemoryType
from irad.ruleset.python_names import PYTHON_CODE, python_name
from irad.ruleset.registry import Registry

_CONVERT = "convert the numbers with x.astype(…); x.view(…) reinterprets their bits"
_BITS = "reinterpreting the bits of a number is not differentiable"
_NUMPY_NAMES = {"double": "float64", "float": "float32"}


def check_unit(unit: Unit) -> None:
    """Raises the errors of a function: a single one directly, several as `UnsupportedProgram`."""
    errors = _without_consequences(unit, list(_errors(unit)))
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise UnsupportedProgram(errors)


def _without_consequences(unit: Unit, errors: list[IradError]) -> list[IradError]:
    """Drops errors about reads from constant memory, if the stores of active values there are known.

    If it is not, a callee stores them.
    """
    stored = {error.memory for error in errors if isinstance(error, ActivityError)}
    kept = [error for error in errors if isinstance(error, ActivityError) or error.memory not in stored - {None}]
    return [error if isinstance(error, ActivityError) else broken_promise(unit, error) for error in kept]


def _errors(unit: Unit) -> Iterator[IradError]:
    if unit.loops.irreducible:
        yield _at(
            UnsupportedError(
                "a loop with more than one entry cannot be differentiated yet",
                "rewrite the loop so that it is entered only at its head",
                "the reverse sweep runs the iterations backwards and must know which one came first",
            ),
            unit.loops.irreducible[0].instructions[0],
        )
    for inst in lost_bits(unit):
        yield _at(lost_error(unit, inst), inst)
    for inst in reinterpreted(unit):
        seen = _NUMPY_NAMES.get(str(inst.type), inst.type)
        yield _at(
            UnsupportedError(
                f"memory that may hold active numbers of another type is read as {seen}",
                f"(a) keep the numbers of each type in arrays of their own or (b) {_CONVERT}",
                _BITS,
            ),
            inst,
        )
    for block in unit.cfg.order:
        # Where the function only raises, no reverse sweep follows.
        if block not in unit.live:
            continue
        for inst in block.instructions:
            error = space_error(unit, inst) or _precision_error(unit, inst)
            error = error or _view_error(unit, inst) or _error(unit, inst)
            if error is not None:
                yield _at(error, inst)


def _precision_error(unit: Unit, inst: Instruction) -> IradError | None:
    """Active numbers that are neither float nor double, as C's `long double`."""
    kind = inst.type
    if inst not in unit.activity.active or not isinstance(kind, FloatType) or kind in (types.FLOAT, types.DOUBLE):
        return None
    if kind is types.HALF and isinstance(inst, Load | Cast):
        return None  # on their way from or to memory
    return UnsupportedError(
        f"irad does not differentiate numbers of type {kind}, only single and double precision",
        "compute in float or double (C's long double and _Float16 are neither)",
        "a derivative has the precision of its number, and shadows exist for these two",
    )


def _view_error(unit: Unit, inst: Instruction) -> IradError | None:
    """Numbers that a function returns as numbers of another type: its caller distinguishes memory by types."""
    if not isinstance(inst, Store) or not isinstance(inst.operands[0].type, PointerType):
        return None
    value, pointer = inst.operands
    position = unit.points_to.position(pointer)
    for target in unit.points_to.of(pointer):
        places = places_behind(target.holds) if target.holds is not None else ()
        allowed = {kind for place, inner in places if place.may_be(position) and (kind := _numbers_in(inner))}
        for item in unit.points_to.of(value) if allowed else ():
            kind = _numbers_in(item.holds)
            if kind and allowed != {kind}:
                return UnsupportedError(
                    "a function that is not inlined returns an array viewed as another number type",
                    _CONVERT,
                    _BITS,
                )
    return None


def _numbers_in(holds: MemoryType | None) -> tuple[str, ...]:
    """The types of numbers in memory of which a signature says that it holds nothing else."""
    kind = kind_of(holds)
    return kind if isinstance(kind, tuple) and kind != BOOKKEEPING else ()


def _at(error: IradError, inst: Instruction) -> IradError:
    error.instruction = inst
    return error


def _error(unit: Unit, inst: Instruction) -> IradError | None:
    shape = cast("AnyInstruction", inst)
    match shape:
        case Load():
            return _load_error(unit, shape)
        case Store():
            return _store_error(unit, shape)
        case Call() | Invoke() | CallBr():
            return _call_error(unit, shape)
        case AtomicRMW() | CmpXchg():
            return update_error(unit, shape)
        case VAArg():
            return _variable_argument_error(unit, shape)
        case IndirectBr():
            return UnsupportedError(
                "a computed goto has no derivative in irad",
                "use a switch",
                "the reverse sweep must know where control may have come from",
            )
        case Switch():
            return UnsupportedError(
                "this kind of branch has no derivative in irad",
                "report it with the function",
                "it should have been turned into plain branches earlier",
            )
        case (
            Binary() | Unary() | Cast() | ICmp() | FCmp() | Select() | Phi() | Freeze() | ExtractValue() | InsertValue()
            | ExtractElement() | InsertElement() | ShuffleVector() | Alloca() | GetElementPtr() | Fence() | Ret() | Br()
            | CondBr() | Unreachable() | Resume() | LandingPad() | ExceptionPad() | ExceptionTerminator()
        ):  # fmt: skip
            return None
        case _:
            assert_never(shape)


def _load_error(unit: Unit, load: Load) -> IradError | None:
    if load not in unit.activity.active:
        return None
    return _kind_error(unit, load.type, load.operands[0]) or _access_error(unit, load, load.operands[0])


def _store_error(unit: Unit, store: Store) -> IradError | None:
    activity, (value, pointer) = unit.activity, store.operands
    if value in activity.active or value in activity.varied:
        error = scratch_error(unit, store)
        if error is not None or value not in activity.active:
            return error
        return _kind_error(unit, value.type, pointer) or _access_error(unit, store, pointer)
    is_packed = isinstance(value.type, VectorType) or types.size_of(value.type) > types.size_of(types.PTR)
    if is_packed and activity.has_shadow(value) and not unit.everything:
        return UnsupportedError(
            "a pointer to active memory is stored as a part of a packed value",
            "store the pointer by itself",
            "the shadow of a pointer is stored beside it, but irad does not see where in the value it lies",
        )
    return None


def _variable_argument_error(unit: Unit, argument: VAArg) -> IradError | None:
    if argument not in unit.activity.useful or not holds_floats(argument.type):
        return None
    return UnsupportedError(
        "a variable argument that is a floating-point number is read",
        "pass such numbers in an array",
        "which arguments a function reads is known only at run time",
    )


def _kind_error(unit: Unit, accessed: Type, pointer: Value) -> IradError | None:
    """An argument's numbers seen as numbers of another type: their cotangents would have the wrong bits."""
    if unit.everything or not isinstance(accessed, FloatType) or unit.memory_types.is_float_at(pointer, accessed):
        return None
    items = unit.points_to.of(pointer)
    if not items or not all(_states_numbers(unit, item) for item in items):
        return None
    seen = _NUMPY_NAMES.get(str(accessed), accessed)
    return UnsupportedError(
        f"{describe_memory(items[0])} is accessed as {seen}, but holds numbers of another type",
        _CONVERT,
        _BITS,
    )


def _states_numbers(unit: Unit, item: MemoryObject) -> bool:
    """True if an object is an argument's memory for which the caller states the positions of numbers."""
    if item.kind is not ObjectKind.ARGUMENT or not isinstance(item.value, Parameter):
        return False
    memory = unit.variant.memory[unit.function.params.index(item.value)]
    return memory is not None and bool(memory.floats())


def _access_error(unit: Unit, inst: Instruction, pointer: Value) -> IradError | None:
    assert isinstance(inst, Load | Store)
    target = inst.operands[-1]
    has_shadow = bool(unit.points_to.mask(target) & unit.activity.shadowed)
    if unit.everything and not has_shadow:
        return None  # whether that is right was decided with what is really active
    if isinstance(inst, Store) and not has_shadow and not may_be_anything(unit, target):
        return None  # nothing active is ever read from there
    for item in unit.points_to.of(target):
        if not unit.activity.shadowed >> item.index & 1 and not (has_shadow and is_header(unit, item)):
            return no_shadow(item)
    if not unit.points_to.mask(target) and not unit.everything:
        return UnsupportedError(
            "active memory is accessed through a pointer whose origin irad cannot determine",
            "report it with the function",
            "irad cannot tell which array it points to, and therefore not where the derivative belongs",
        )
    return None


def _call_error(unit: Unit, call: CallSite) -> IradError | None:
    if unit.everything:
        return None  # decided with what is really active
    callee, is_opaque = unit.mod_ref.callee(call), unit.mod_ref.of(call).is_opaque
    ruled = _overwriting_error(unit, call) or _two_views_error(unit, call)
    if ruled is not None:
        return ruled
    if unit.activity.takes_part(call):
        lacking = lacks_tangent(unit, call) if _is_forward(unit) else lacks_cotangent(unit, call)
        if lacking is not None:
            return lacking
    if isinstance(callee, CallRule):
        return written_error(unit, call) or move_error(unit, call)
    if isinstance(callee, Inactive):
        return _integers_error(unit, call, callee)
    if isinstance(callee, Elementwise):
        return _partial_error(unit, call, callee)
    if isinstance(callee, Function | Pointer) and is_opaque and _passes_address(unit, call):
        return UnsupportedError(
            "the address of active memory is passed to a function as an integer",
            "pass the array itself, and take its address where it is used",
            "inside the function nothing shows that the integer is an address, or of which array",
        )
    if isinstance(callee, Function | Pointer) and call.function_type.variadic and unit.activity.takes_part(call):
        return UnsupportedError(
            "a function with a variable number of arguments takes or returns active values",
            "pass them in an array",
            "which arguments such a function reads is known only at run time",
        )
    if isinstance(callee, Function) and unit.activity.passes_by_value(call):
        return UnsupportedError(
            "a structure that may hold the address of active memory is passed or returned by value",
            "(a) pass a pointer to it, or (b) call the Python function of a numba.cfunc, compiled by numba.njit",
            "irad follows memory between functions through pointers; an integer in a structure may be an address as "
            "well",
        )
    if isinstance(callee, Function) and PARALLEL in callee.attributes and is_remote(callee):
        return UnsupportedError(
            "a parallel loop communicates with other processes",
            "communicate before the loop or after it",
            "its threads would do so in any order, and the other processes could not follow it in reverse",
        )
    if isinstance(callee, Unknown):
        unseen: Unknown | None = callee
    elif isinstance(callee, Function) and PARALLEL in callee.attributes and is_opaque:
        unseen = _unseen_callee(callee, unit.registry)
    else:
        return None
    if not unit.activity.is_active(call) and not any(unit.activity.is_active(a) for a in call.arguments):
        return None
    if unseen is not None:
        return no_rule(unseen.name)
    return UnsupportedError(
        "a parallel loop uses active arrays together with an object that points to other memory (a list, an instance)",
        "before the loop, extract the arrays and numbers that it needs from the object",
        "irad must know which memory each iteration writes to, and cannot follow it through the object",
    )


def _integers_error(unit: Unit, call: CallSite, rule: Inactive) -> IradError | None:
    """A callee is given the bytes of numbers as integers."""
    numbers = rule.effects.integers if rule.effects is not None else ()
    for pointer in (call.arguments[number] for number in sorted(numbers)):
        if unit.memory_types.holds_floats(unit.points_to.mask(pointer)):
            return UnsupportedError(
                f"{python_name(rule.symbols[0])} is given the bytes of floating-point numbers as integers",
                "pass the array itself, not a view of it as another type",
                "integers carry no derivative, so that of the numbers would be lost",
            )
    return None


def _two_views_error(unit: Unit, call: CallSite) -> IradError | None:
    """A callee with a rule returns an array and a view of it as another type, as `analysis.summary` found."""
    if TWO_VIEWS not in getattr(call.callee, "attributes", ()) or not unit.activity.takes_part(call):
        return None
    return UnsupportedError(
        "a function with a rule returns one array as numbers of two types",
        "return a copy of one of them",
        "irad tells apart what such a function returns by the types of its numbers",
    )


def _overwriting_error(unit: Unit, call: CallSite) -> IradError | None:
    """A callee writes constants to memory with a derivative: nothing clears the derivatives of the old contents."""
    function = call.callee
    rule = unit.registry.lookup(function.name) if isinstance(function, Function) and function.name is not None else None
    written = frozenset(unit.mod_ref.of(call).targets)
    arguments = written - {unit.program.request.host.ruled_result}
    match rule:
        case PairRule(name=name, leaves_arguments=True):
            numbers, said = arguments, f"{name}, whose rule says nothing about what it overwrites,"
        case Inactive(name=name) if name:
            numbers, said = arguments, f"{name}, which was declared inactive,"
        case PairRule(name=name, parameters=constant) | ConstantParameters(name=name, parameters=constant):
            numbers, said = written & constant, f"{name}, some of whose arguments were declared inactive,"
        case _:
            return None
    active = unit.activity.active_objects
    for item in (item for number in sorted(numbers) for item in unit.points_to.of(call.arguments[number])):
        if active >> item.index & 1:
            return ActivityError(
                f"{said} writes to {describe_memory(item)}, which has a derivative",
                "(a) let it write to memory that has no derivative or (b) give it a rule instead, whose reverse sets "
                "the "
                "shadow of what it overwrites to zero (irad.rules.augmented_primal and reverse)",
                "overwritten elements no longer have a derivative, and irad cannot know which elements those are",
            )
    return None


def _unseen_callee(function: Function, registry: Registry) -> Unknown | None:
    """The first code without a body or a rule that a function calls, or a function that it calls."""
    pending, seen = [function], {function}
    for each in pending:
        for inst in each.instructions():
            callee = resolve(inst, registry) if isinstance(inst, CallSite) else None
            if isinstance(callee, Unknown):
                return callee
            if isinstance(callee, Function) and callee not in seen:
                seen.add(callee)
                pending.append(callee)
    return None


def no_rule(symbol: str) -> NoRuleError:
    """The refusal of a call of code that irad does not see."""
    name = python_name(symbol)
    if name == PYTHON_CODE:
        return NoRuleError(
            f"no derivative rule for a call to {name}",
            "(a) write that code so that Numba can compile it or (b) move it into a function and supply its "
            "derivative: "
            "irad.rules.import_rule or (c) run it beforehand and pass the result as a constant argument",
            "a block in object mode runs in Python, where irad cannot follow active values",
        )
    return NoRuleError(
        f"no derivative rule for a call to {name}",
        "(a) supply its derivative: irad.rules.easy_rule, or irad.rules.augmented_primal and reverse or (b) declare "
        "it with irad.rules.inactive, if no derivative flows through it",
        "it is compiled elsewhere, and irad sees only the call",
        focus=name,
    )


def _is_forward(unit: Unit) -> bool:
    return unit.program.request.mode.is_forward


def _passes_address(unit: Unit, call: CallSite) -> bool:
    """True if an argument that is not a pointer was computed from one to active memory."""
    pending = Worklist(a for a in call.arguments if isinstance(a.type, IntType))
    for value in pending:
        match value:
            case Cast(opcode="ptrtoint", operands=[pointer]):
                if unit.activity.has_shadow(pointer):
                    return True
            case Binary(opcode="sub"):
                if not all(map(_is_address, value.operands)):  # between two addresses it is a distance
                    pending.add(value.operands[0])
            case Binary(opcode="add" | "or") | Cast() | Phi() | Select() | Freeze():
                pending.add(*value.operands)
            case _:
                pass
    return False


def _is_address(value: Value) -> bool:
    return isinstance(value, Cast) and value.opcode == "ptrtoint"


def _ordinal(index: int) -> str:
    return ("first", "second", "third", "fourth", "fifth")[index] if index < 5 else f"{index + 1}th"


def _partial_error(unit: Unit, call: CallSite, rule: Elementwise) -> IradError | None:
    for index in sorted(rule.refused):
        if unit.activity.is_active(call.arguments[index]):
            name = python_name(call.callee.name or rule.name)
            return NoRuleError(
                f"irad has no derivative of {name} with respect to its {_ordinal(index)} argument",
                "(a) keep that argument constant: do not differentiate with respect to what it is computed from or "
                "(b) write a rule for the function: irad.rules.easy_rule",
                "there is no usable formula for it, as for most orders and shape parameters",
            )
    return None


def unsupported(inst: Instruction) -> UnsupportedError:
    """The refusal of an instruction that irad cannot differentiate."""
    return UnsupportedError(
        f"irad cannot differentiate the LLVM instruction {type(inst).__name__}",
        "(a) report it with the function or (b) take the value out of the derivative: irad.stop_gradient(x)",
        "no compiler is known to emit such code for active values",
    )
