"""Rules for what only CUDA kernels do: barriers, atomic sums, shuffles, users' rules for device functions, halves.

Barriers: the reverse sweep waits where the primal did. What threads wrote before a barrier others read after it. In the
reverse sweep they add to the shadow after it and the writer takes it before, so there has to be a barrier between,
whatever is active in the thread itself.

Atomic sums, `y[i] += v` by many threads at once, whose result nobody reads. The element keeps its cotangent, since what
was there before is a term of the sum, too:

    void @irad.cuda.atomic.add.f64(ptr %y, double %v)        v̄ += ȳ[i]

Shuffles: lanes of a warp read each other's numbers; cotangents return to where the numbers came from. The sum is a
run-time function of the lanes that take part, the cotangent, and the number that says where the lane read
(`irad/backend/cuda/warps.ll`):

    y_i = x_{s(i)}            x̄_j += Σ ȳ_i over the lanes i with s(i) = j

A number whose partial derivatives a user gives: a device function with an easy rule. No derivative flows through v and
the partials, since they are passed through `stop`:

    double @irad.cuda.linear.2.f64(double %v, double %x0, double %p0, double %x1, double %p1)        the value v
    x̄0 += v̄·p0, x̄1 += v̄·p1
    double @irad.cuda.stop.f64(double %v)        v, through which no derivative flows

A number from a device function with a user's rule, whose functions are compiled apart:

    double @irad.cuda.ruled.2.f64…(double %own, double %made, ptr %reverse, ptr %forward, %x0, %x1, %tape…)

`own` is the value of the function, `made` that of its augmented primal, which also makes the tape: these values are
saved or recomputed like any others. No derivative flows through them; `settle` says so before a kernel is
differentiated. The functions, null where there is none, are

    {cotangents of the floats} reverse(cotangent, x…, tape…)        {value, tangent} forward(x…, tangents of the floats)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Call, CallSite, replace_uses
from irad.ir.module import Function, Module
from irad.ir.types import DOUBLE, FLOAT, VOID, Type, function_type
from irad.ir.values import Value, const_int
from irad.ruleset.define import inactive
from irad.ruleset.guards import partial_zero, strong_zero
from irad.ruleset.interface import PURE, CallRule, Effects, Inactive, ReverseContext, Rule, TangentContext

# Barriers.

BLOCK_BARRIER: Final = "llvm.nvvm.barrier.cta.sync.aligned.all"
PREDICATED_BARRIERS: Final = tuple(f"irad.cuda.barrier.{word}" for word in ("popc", "and", "or"))
BARRIER_ANYWHERE: Final = "irad.cuda.barrier.anywhere"
"""A barrier that threads may reach in different places; says whether all of them have given a number that is not 0."""
WARP_BARRIER: Final = "llvm.nvvm.bar.warp.sync"
_CONVERGENT: Final = ("convergent", "nounwind")


def _block_waits(context: ReverseContext, call: CallSite) -> None:
    barrier = context.declare(BLOCK_BARRIER, function_type(VOID, [types.I32]), _CONVERGENT)
    context.builder.call(barrier, [const_int(types.I32, 0)])


def _warp_waits(context: ReverseContext, call: CallSite) -> None:
    barrier = context.declare(WARP_BARRIER, function_type(VOID, [types.I32]), _CONVERGENT)
    context.builder.call(barrier, [context.value(call.arguments[0])])


_BARRIERS: Final[tuple[Rule, ...]] = (
    Inactive((BLOCK_BARRIER,), "the threads of a block wait for each other", Effects(), adjoint=_block_waits),
    Inactive(
        PREDICATED_BARRIERS,
        "the threads of a block wait for each other and count; the result is an integer",
        Effects(),
        adjoint=_block_waits,
    ),
    Inactive((WARP_BARRIER,), "the threads of a warp wait for each other", Effects(), adjoint=_warp_waits),
)


# Atomic sums.

ATOMIC_ADD: Final = "irad.cuda.atomic.add"
ATOMIC_SUBTRACT: Final = "irad.cuda.atomic.sub"
_UPDATES: Final = Effects(reads=frozenset({0}), writes=frozenset({0}))


def is_subtraction(symbol: str) -> bool:
    """True if an operation subtracts."""
    return symbol.startswith(ATOMIC_SUBTRACT)


def _reverse_atomic(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    pointer, amount = call.arguments
    if not context.is_active(pointer) or not context.is_active(amount):
        return
    build = context.builder
    cotangent: Value = build.load(amount.type, context.shadow(pointer))
    context.accumulate(amount, build.fneg(cotangent) if is_subtraction(str(call.callee.name)) else cotangent)


def _tangent_atomic(context: TangentContext, call: CallSite) -> None:
    pointer, amount = call.arguments
    if context.is_active(pointer) and context.is_active(amount):
        opcode = "fsub" if is_subtraction(str(call.callee.name)) else "fadd"
        context.after.atomic(opcode, context.tangent(amount), context.shadow(pointer))


_ATOMICS: Final[tuple[Rule, ...]] = (
    CallRule(
        tuple(f"{name}.{kind}" for name in (ATOMIC_ADD, ATOMIC_SUBTRACT) for kind in ("f32", "f64")),
        _UPDATES,
        _reverse_atomic,
        tangent=_tangent_atomic,
        series=_tangent_atomic,
    ),
)


# Shuffles.

SHUFFLE: Final = "irad.cuda.shfl."
SHUFFLE_ADJOINT: Final = "irad.cuda.shfl.adjoint."
_SHUFFLE_KINDS: Final = ("idx", "up", "down", "bfly")


def _reverse_shuffle(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    mask, value, where = call.arguments
    cotangent = context.cotangent(call)
    if not context.is_active(value):
        return
    name = str(call.callee.name).replace(SHUFFLE, SHUFFLE_ADJOINT)
    type_ = function_type(value.type, [types.I32, value.type, types.I32])
    adjoint = context.declare(name, type_, _CONVERGENT)
    returned = context.builder.call(adjoint, [context.value(mask), cotangent, context.value(where)])
    context.accumulate(value, returned)


def _tangent_shuffle(context: TangentContext, call: CallSite) -> None:
    mask, value, where = call.arguments
    if context.is_active(value):
        given = [context.value(mask), context.tangent(value), context.value(where)]
        context.set_tangent(context.after.call(call.callee, given, call.function_type))


_SHUFFLES: Final[tuple[Rule, ...]] = (
    CallRule(
        tuple(f"{SHUFFLE}{kind}.{number}" for kind in _SHUFFLE_KINDS for number in ("f32", "f64")),
        Effects(),
        _reverse_shuffle,
        tangent=_tangent_shuffle,
        series=_tangent_shuffle,
    ),
    inactive(
        tuple(f"{SHUFFLE}{kind}.{number}" for kind in _SHUFFLE_KINDS for number in ("i32", "i64")),
        "an integer held by another thread of the warp",
        Effects(),
    ),
)


# Numbers with given partial derivatives.

LINEAR: Final = "irad.cuda.linear"
STOP: Final = "irad.cuda.stop"
# A rule names its symbols, so there is one for each number of arguments up to this.
MOST_ARGUMENTS: Final = 16


def _slopes(call: CallSite) -> Iterator[tuple[Value, Value]]:
    """Arguments and their partials."""
    _, *rest = call.arguments
    return zip(rest[::2], rest[1::2], strict=True)


def _product(build: Builder, derivative: Value, partial: Value, *, zero_wins: bool) -> Value:
    product = build.fmul(derivative, partial)
    if zero_wins:
        product = partial_zero(build, derivative, partial, product)
    return strong_zero(build, derivative, product)


def _reverse_linear(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    cotangent = context.cotangent(call)
    for argument, partial in _slopes(call):
        if context.is_active(argument):
            slope = context.value(partial)
            scaled = _product(context.builder, cotangent, slope, zero_wins=context.zero_wins)
            context.accumulate(argument, scaled)


def _tangent_linear(context: TangentContext, call: CallSite) -> None:
    build, total = context.after, None
    for argument, partial in _slopes(call):
        if context.is_active(argument):
            slope = context.value(partial)
            term = _product(build, context.tangent(argument), slope, zero_wins=context.zero_wins)
            total = term if total is None else build.fadd(total, term)
    if total is not None:
        context.set_tangent(total)


_LINEAR_RULES: Final[tuple[Rule, ...]] = (
    CallRule(
        tuple(f"{LINEAR}.{n}.{kind}" for n in range(MOST_ARGUMENTS + 1) for kind in ("f32", "f64")),
        PURE,
        _reverse_linear,
        tangent=_tangent_linear,
    ),
    inactive(f"{STOP}.f32 {STOP}.f64", "the derivative of what a rule computes is given by the rule", PURE),
)


# Device functions with a user's rule.

RULED: Final = "irad.cuda.ruled"
RULE_PART: Final = "irad.cuda.rule_part."
"""Beginning of the symbols of a rule's functions."""
FROM_BODY: Final = "from_body"
"""A word in the symbol: forward mode may differentiate the body of the function."""
_FLOATS: Final[Mapping[Type, str]] = {FLOAT: "f32", DOUBLE: "f64"}
_GIVEN: Final = 4  # where the arguments of the function begin


def _arguments(call: CallSite) -> tuple[Sequence[Value], Sequence[Value]]:
    """Those of the function, and its tape."""
    count = int(str(call.callee.name).removeprefix(RULED).split(".")[1])
    return call.arguments[_GIVEN : _GIVEN + count], call.arguments[_GIVEN + count :]


def _reverse_ruled(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    cotangent, build = context.cotangent(call), context.builder
    reverse = call.arguments[2]
    assert isinstance(reverse, Function)
    arguments, tape = _arguments(call)
    given = [cotangent, *map(context.value, arguments), *map(context.value, tape)]
    made = build.call(reverse, given, reverse.function_type)
    for index, argument in enumerate(each for each in arguments if each.type in _FLOATS):
        context.accumulate(argument, build.extract_value(made, index))


def _tangent_ruled(context: TangentContext, call: CallSite) -> None:
    forward, build = call.arguments[3], context.after
    assert isinstance(forward, Function)
    arguments, _ = _arguments(call)
    tangents = [context.tangent(each) for each in arguments if each.type in _FLOATS]
    made = build.call(forward, [*map(context.value, arguments), *tangents], forward.function_type)
    context.set_tangent(build.extract_value(made, 1))


def settle(module: Module, *, is_forward: bool) -> None:
    """Decides for each call whether its rule holds in a mode, or the body of the function is differentiated.

    Raises:
        UnsupportedError: neither does.
    """
    for function in module.defined_functions():
        for call in list(function.instructions()):
            if isinstance(call, Call) and str(getattr(call.callee, "name", "")).startswith(RULED):
                _settle(module, call, is_forward=is_forward)


def _settle(module: Module, call: Call, *, is_forward: bool) -> None:
    own, made, reverse, forward = call.arguments[:_GIVEN]
    if isinstance(forward if is_forward else reverse, Function):
        stop = module.declare(f"{STOP}.{_FLOATS[own.type]}", function_type(own.type, [own.type]))
        value = Builder.before(call).call(stop, [own]) if is_forward else made
        call.set_operand(call.operands.index(own), value)
    elif is_forward and f".{FROM_BODY}." not in str(call.callee.name):
        error = UnsupportedError(
            "this device function has a rule for reverse mode, and none for forward mode",
            "register one with irad.rules.forward, or irad.rules.forward_from_body to have its body differentiated",
            "the body of a function with a rule may not be differentiable",
        )
        error.instruction = call
        raise error
    else:
        replace_uses(call, own)
        call.erase()


_RULED_RULES: Final[tuple[Rule, ...]] = (CallRule((f"{RULED}.*",), PURE, _reverse_ruled, tangent=_tangent_ruled),)


# Rounding to half precision: its slope is one, as that of the conversions between single and double precision.

ROUND_TO_HALF: Final = "irad.cuda.half"


def _reverse_half(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    (argument,) = call.arguments
    cotangent = context.cotangent(call)
    if argument.type is not cotangent.type:
        cotangent = context.builder.fpext(cotangent, argument.type)
    context.accumulate(argument, cotangent)


def _tangent_half(context: TangentContext, call: CallSite) -> None:
    (argument,) = call.arguments
    tangent = context.tangent(argument)
    context.set_tangent(tangent if tangent.type is types.FLOAT else context.after.fptrunc(tangent, types.FLOAT))


_HALVES: Final[tuple[Rule, ...]] = (
    CallRule(
        (f"{ROUND_TO_HALF}.f32", f"{ROUND_TO_HALF}.f64"),
        PURE,
        _reverse_half,
        policy="rounding has derivative 1",
        tangent=_tangent_half,
        series=_tangent_half,
    ),
)


# Operations that carry no derivative.

_INACTIVE: Final[tuple[Rule, ...]] = (
    inactive("irad.cuda.dynamic_shared_size irad.cuda.lanemask.*", "an integer set by the launch", PURE),
    inactive("irad.cuda.vote.* irad.cuda.activemask irad.cuda.match.*", "a mask of threads of a warp", Effects()),
    inactive("llvm.nvvm.membar.cta", "orders memory accesses within the block; the reverse sweep needs only barriers"),
    inactive("llvm.nvvm.nanosleep llvm.nvvm.read.ptx.sreg.clock* llvm.nvvm.read.ptx.sreg.globaltimer*", "time"),
)


RULES: Final[tuple[Rule, ...]] = (
    *_BARRIERS,
    *_ATOMICS,
    *_SHUFFLES,
    *_LINEAR_RULES,
    *_RULED_RULES,
    *_HALVES,
    *_INACTIVE,
)
"""Before those of `irad.rules.builtin`."""
