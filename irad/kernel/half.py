"""Half precision: arithmetic becomes that of single precision, rounded after each operation.

    %h = fmul half %a, %b        %p = fmul float %a.wide, %b.wide
                                 %h.wide = call float @irad.cuda.half.f32(float %p)

Input   a module in normal form.
Output  whether anything was changed; numbers in half precision are left in loads and stores only.
Method  every half has a float of the same value; a sum, product or quotient of two halves in single precision, rounded
        to half precision, is the correctly rounded one, since a float has more than twice the digits. The rounding has
        the slope one, and cotangents keep their precision up to memory.
Source  Figueroa, When is double rounding innocuous?, 1995.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from irad.ir.builder import Builder
from irad.ir.cfg import control_flow
from irad.ir.instructions import (
    Binary,
    Call,
    Cast,
    FCmp,
    Freeze,
    Instruction,
    Phi,
    Select,
    Store,
    Unary,
    replace_uses,
)
from irad.ir.module import Block, Function, Module
from irad.ir.types import DOUBLE, FLOAT, HALF, Type, function_type
from irad.ir.values import ConstantFloat, Poison, Undef, Value, const_float
from irad.records import dataclass
from irad.rules.cuda import ROUND_TO_HALF

_PURE: Final = ("nounwind", "willreturn", "speculatable", "memory(none)")
_NAMES: Final[Mapping[Type, str]] = {FLOAT: "f32", DOUBLE: "f64"}
_EXACT: Final = (
    *("fabs", "copysign", "maxnum", "minnum", "maximum", "minimum", "maximumnum", "minimumnum"),
    *("floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven", "sqrt"),
)
_FUNCTIONS: Final = {**{f"llvm.{name}.f16": FLOAT for name in _EXACT}, "llvm.fma.f16": DOUBLE}
"""The precision in which functions of halves, rounded once more, are what they are in half precision."""


def widen_halves(module: Module) -> bool:
    """Rewrites a module."""
    changed = False
    for function in module.defined_functions():
        halves = [inst for inst in function.instructions() if inst.type is HALF]
        if halves:
            _Widening(module, function).run()
            changed = True
    return changed


def define_rounding(module: Module) -> None:
    """Defines the rounding that `widen_halves` declared."""
    for type_, name in _NAMES.items():
        function = module.functions.get(f"{ROUND_TO_HALF}.{name}")
        if function is not None and function.is_declaration:
            function.prefix, function.attributes = ("internal",), ("alwaysinline",)
            build = Builder(function.add_block("entry"))
            build.ret(build.fpext(build.fptrunc(function.params[0], HALF), FLOAT))
            assert function.params[0].type is type_


@dataclass(eq=False, slots=True)
class _Widening:
    """The floats of the halves of one function."""

    module: Module
    function: Function
    wide: dict[Value, Value] = field(default_factory=dict)

    def run(self) -> None:
        computed = [inst for inst in self.function.instructions() if inst.type is HALF]
        phis: list[tuple[Phi, Phi]] = []
        for block in self.function.blocks:
            for inst in list(block.instructions):
                if isinstance(inst, Phi) and inst.type is HALF:
                    twin = Builder.at_start(block).phi(FLOAT, name=inst.name)
                    self.wide[inst] = twin
                    phis.append((inst, twin))
        for block in _in_order(self.function):
            for inst in list(block.instructions):
                self.widen(inst)
        for phi, twin in phis:
            given: dict[Block, Value] = {}
            for value, source in phi.incoming():
                if source not in given:  # one value for all edges of a switch
                    given[source] = self.of(value, Builder.before(source.terminator))
                twin.add_incoming(given[source], source)
        self.drop([inst for inst in computed if _is_computed(inst)])

    def of(self, value: Value, build: Builder) -> Value:
        """The float of a half."""
        if isinstance(value, ConstantFloat):
            return const_float(FLOAT, value.value)
        if isinstance(value, Undef):
            return Undef(FLOAT)
        if isinstance(value, Poison):
            return Poison(FLOAT)
        found = self.wide.get(value)
        if found is None:  # an argument
            found = build.fpext(value, FLOAT)
        return found

    def widen(self, inst: Instruction) -> None:
        """Makes the float of an instruction, or has it use those of its operands."""
        build = Builder.before(inst)
        build.origin, build.metadata = inst, {k: v for k, v in inst.metadata.items() if k == "dbg"}
        match inst:
            case Binary(type=kind, operands=[a, b]) if kind is HALF:
                total = build.binary(inst.opcode, self.of(a, build), self.of(b, build), inst.flags)
                self.wide[inst] = self.rounded(build, total)
            case Unary(type=kind, operands=[a]) if kind is HALF:
                self.wide[inst] = build.fneg(self.of(a, build), inst.flags)
            case Cast(opcode="fptrunc", type=kind, operands=[a]) if kind is HALF and a.type in _NAMES:
                self.wide[inst] = self.rounded(build, a)
            case Select(type=kind, operands=[c, a, b]) if kind is HALF:
                self.wide[inst] = build.select(c, self.of(a, build), self.of(b, build))
            case Freeze(type=kind, operands=[a]) if kind is HALF:
                self.wide[inst] = build.freeze(self.of(a, build))
            case FCmp(operands=[a, b]) if a.type is HALF:
                self.replace(inst, build.fcmp(inst.predicate, self.of(a, build), self.of(b, build), inst.flags))
            case Cast(opcode="fpext", operands=[a]) if a.type is HALF:
                found = self.of(a, build)
                self.replace(inst, found if inst.type is FLOAT else build.fpext(found, inst.type))
            case Store(operands=[value, _]) if value.type is HALF:
                inst.set_operand(0, build.fptrunc(self.of(value, build), HALF))
            case Call(callee=Function(name=name), type=kind) if kind is HALF and str(name) in _FUNCTIONS:
                self.wide[inst] = self.called(build, str(name), [self.of(each, build) for each in inst.arguments])
            case Phi():
                pass  # its float is there already
            case _ if inst.type is HALF:  # loads, calls, conversions of integers and bits
                after = Builder.after(inst)
                self.wide[inst] = after.fpext(inst, FLOAT)

    def called(self, build: Builder, name: str, operands: list[Value]) -> Value:
        """A function of halves: in double where single precision could round twice."""
        kind = _FUNCTIONS[name]
        given = operands if kind is FLOAT else [build.fpext(each, kind) for each in operands]
        return self.rounded(build, build.intrinsic(name.replace("f16", _NAMES[kind]), kind, given))

    def rounded(self, build: Builder, value: Value) -> Value:
        symbol = f"{ROUND_TO_HALF}.{_NAMES[value.type]}"
        return build.call(self.module.declare(symbol, function_type(FLOAT, [value.type]), _PURE), [value])

    def replace(self, inst: Instruction, value: Value) -> None:
        replace_uses(inst, value)
        for key, found in self.wide.items():
            if found is inst:
                self.wide[key] = value
        inst.erase()

    def drop(self, halves: list[Instruction]) -> None:
        """Takes out what has a float; what still uses it (calls, bits) is given the float, converted."""
        gone = set(halves)
        for half in halves:
            outside = [user for user in half.users if user not in gone]
            if outside:
                assert half.block is not None
                build = Builder.at_start(half.block) if isinstance(half, Phi) else Builder.before(half)
                narrow = build.fptrunc(self.wide[half], HALF)
                for user in outside:
                    user.set_operands([narrow if operand is half else operand for operand in user.operands])
        for half in halves:
            half.set_operands(())
        for half in halves:
            half.erase()


def _is_computed(inst: Instruction) -> bool:
    """True if a half is computed from halves, or is a rounded number."""
    if isinstance(inst, Cast):
        return inst.opcode == "fptrunc"
    if isinstance(inst, Call):
        return isinstance(inst.callee, Function) and str(inst.callee.name) in _FUNCTIONS
    return isinstance(inst, Binary | Unary | Select | Freeze | Phi)


def _in_order(function: Function) -> tuple[Block, ...]:
    """Blocks such that what defines a value comes before its uses, phis aside."""
    return control_flow(function).order
