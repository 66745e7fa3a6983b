"""Speculation: whether a derivative may be made as if zeros need not be strong.

Input   the entry of a program with its analyses.
Output  a yes or no. Nothing is changed.
Method  Zero times infinity is NaN where a product has no guard (`irad.ruleset.guards`), and NaN stays NaN in all that a
        reverse sweep does with cotangents: sums, products, and products of matrices, where a zero may hide it that
        would have made zero of any number. So a result that is not NaN is that of the sweep with guards. Where one is
        NaN the caller starts again with guards, which it can if the function does the same once more: it writes to no
        memory of the caller's, and to none that outlives it.
Why     a guard costs about as much as a look at one number of a result, so functions that compute little for each of
        these gain nothing, and lose up to a tenth in arrays of a hundred thousand. They are looked through all the
        same: by a NaN the caller learns of a zero that won, and may have to tell of it.

    %ct = fmul double %seed, %partial       without guard: NaN where %seed is 0 and %partial infinite
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from irad.ir.instructions import Binary, CallSite, GetElementPtr, Instruction, Load
from irad.ir.module import Block, Function
from irad.ir.text.keywords import POISONING
from irad.ir.types import PointerType
from irad.ir.values import ConstantExpression, ConstantFloat, Value
from irad.ir.worklist import Worklist
from irad.passes.callees import effects_of, resolve
from irad.passes.memory.objects import SEPARATE, ObjectKind
from irad.passes.unit import Unit
from irad.ruleset.interface import Effects, Elementwise, Origin

# Which memory a program may write: its arguments', and what is neither theirs nor its own.


def written_parameters(entry: Unit) -> Iterator[int]:
    """Parameters of the entry whose memory, or memory reached by pointers in it, the program may write.

    Writes through a pointer of unknown origin may be writes to any of them.
    """
    points_to, written = entry.points_to, entry.effects.written
    unknown = any(item.kind is ObjectKind.UNKNOWN and written >> item.index & 1 for item in points_to.objects)
    for index, param in enumerate(entry.function.params):
        reached = points_to.reachable(points_to.mask(param))  # parameters may share the memory that they point to
        if isinstance(param.type, PointerType) and (unknown or reached & written):
            yield index


def writes_elsewhere(entry: Unit) -> bool:
    """True if the program may write to memory that is neither its own nor that of its parameters."""
    written = entry.effects.written
    kinds = {item.kind for item in entry.points_to.objects if written >> item.index & 1}
    return not kinds <= {*SEPARATE, ObjectKind.ARGUMENT} or _may_write_to_numbers(entry)


def _may_write_to_numbers(entry: Unit) -> bool:
    """True if a function that returns, or one that it calls, may write to an address that the program has as a number.

    Such an address points to no object.
    """
    functions = Worklist([entry.function])
    for function in functions:
        for inst in function.instructions():
            if function is entry.function and inst.block not in entry.live:
                continue
            if not isinstance(inst, Load | GetElementPtr) and any(map(_is_number, inst.operands)):
                return True
            if isinstance(inst, CallSite) and isinstance(inst.callee, Function):
                functions.add(inst.callee)
    return False


def _is_number(pointer: Value) -> bool:
    while isinstance(pointer, GetElementPtr):
        pointer = pointer.operands[0]
    return isinstance(pointer, ConstantExpression) and (
        pointer.opcode == "inttoptr" or any(map(_is_number, pointer.operands))
    )


_SILENT: Final = ("llvm.stacksave", "llvm.stackrestore")
"""Prefixes of functions without lasting effects."""


def may_speculate(entry: Unit) -> bool:
    """True if a derivative may be made without guards."""
    return entry.program.request.speculates and _writes_nothing(entry) and is_pure(entry) and _has_guards(entry)


def _writes_nothing(entry: Unit) -> bool:
    """True if a second run finds the same memory as the first."""
    return not (writes_elsewhere(entry) or any(_is_data(entry, index) for index in written_parameters(entry)))


def is_pure(entry: Unit) -> bool:
    """True if a second run does the same, as far as calls are concerned, and NaN is a number like any other."""
    functions = Worklist([entry.function])
    for function in functions:
        for inst in function.instructions():
            if function is entry.function and inst.block not in entry.live:
                continue
            # A NaN is poison there, and need not be in the result that is looked through.
            if not POISONING.isdisjoint(getattr(inst, "flags", ())):
                return False
            if isinstance(inst, CallSite):
                callee = resolve(inst, entry.registry)
                if isinstance(callee, Function):
                    functions.add(callee)
                elif not _is_silent(entry, inst, effects_of(callee)):
                    return False
    return True


def _is_silent(entry: Unit, call: CallSite, effects: Effects | None) -> bool:
    """True if a call has no lasting effect but on memory of the program, and draws no random number."""
    silent = (*_SILENT, *entry.program.request.host.ends)
    if isinstance(call.callee, Function) and (call.callee.name or "").startswith(silent):
        return True
    if effects is None:
        return False
    counts, callee = entry.program.request.host.references, call.callee
    is_reference = counts is not None and isinstance(callee, Function) and callee.name == counts.takes
    return not effects.other or effects.result is Origin.FRESH or bool(effects.frees) or is_reference


def _is_data(entry: Unit, index: int) -> bool:
    """True if a parameter points to data: the result aside, and bookkeeping, of which nothing is known."""
    its_type = entry.memory[entry.function.params[index]]
    return index != entry.program.request.host.result and (its_type is None or bool(its_type.fields))


def _has_guards(entry: Unit) -> bool:
    return any(True for block in entry.cfg.order for _ in _guarded(entry, block))


def _guarded(entry: Unit, block: Block) -> Iterator[Instruction]:
    """The operations of a block whose adjoint would have a guard."""
    for inst in block.instructions:
        if not entry.activity.is_active(inst):
            continue
        match inst:
            case Binary(opcode="fmul" | "fdiv", operands=[_, factor]) if not isinstance(factor, ConstantFloat):
                yield inst
            case CallSite() if isinstance(resolve(inst, entry.registry), Elementwise):
                yield inst
