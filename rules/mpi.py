"""Communication between processes: what numba_mpi is made of in derivatives (`irad/frontend/numba/mpi.py`).

Numbers go from one program to others, in which they may have derivatives whatever is active here, so all rules apply to
every call. Each call is linear, and the adjoint of a call is one of the same family:

    irad.mpi.send(data, n, kind, peer, tag)        ⇄ irad.mpi.recv           irad.mpi.barrier() ⇄ irad.mpi.barrier
    irad.mpi.bcast(data, n, kind, root)            ⇄ irad.mpi.fold           the sum at the root, zeros elsewhere
    irad.mpi.sum(data, n, kind, root)              ⇄ irad.mpi.sum
    irad.mpi.scatter(whole, part, n, kind, root)   ⇄ irad.mpi.gather
    irad.mpi.allgather(whole, part, n, kind, root) ⇄ irad.mpi.reduce_scatter

The data are consumed: they are memory that the program makes for one call and does not read again, unless the call
wrote it. So the adjoint assigns to shadows, and the copies between such memory and the program's arrays are
differentiated as code. Messages that are not waited for use the program's own memory, by way of a record:

    irad.mpi.open_send(data, n, kind, peer, tag, record, depth)        irad.mpi.start(record, depth)
    irad.mpi.open_recv(data, n, kind, peer, tag, record, depth)        irad.mpi.finish(record, depth)

A derivative opens a companion of each record: for the tangent, which is started and finished with it; or for the
cotangent, in the other direction, which is started where the reverse sweep comes to `finish`, and finished where it comes
to `start`. The record knows its companions, those of later derivatives first. ``depth`` is their number in front of the
ones that are to come: each derivative raises it in its copy of the call.

Derivatives' messages have the program's tags with one bit set that tags of the program must not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.types import I64, PTR, Type, function_type
from irad.ir.values import ConstantInt, Value, const_int
from irad.rules.memory import fill
from irad.ruleset.interface import (
    AugmentedContext,
    CallRule,
    Context,
    CopyContext,
    Effects,
    Inactive,
    ReverseContext,
    Rule,
    TangentContext,
)
from irad.runtime_layouts import DERIVATIVE_TAG, MOST_COMPANIONS, MPI_RECORD

_PREFIX: Final = "irad.mpi."
_ONE, _TWO = frozenset({0}), frozenset({0, 1})
_ELEMENTS: Final = (("f64", 1, 8), ("f64", 2, 16), ("f32", 2, 8))
"""Of kinds that have derivatives: the precision, numbers and bytes of an element."""


def _name(call: CallSite) -> str:
    return str(call.callee.name).removeprefix(_PREFIX)


def _call(context: Context, build: Builder, name: str, arguments: Sequence[Value]) -> Value:
    """Calls another function of the family."""
    type_ = function_type(I64, [value.type for value in arguments])
    return build.call(context.declare(f"{_PREFIX}{name}", type_), list(arguments))


def _mirrored(build: Builder, tag: Value) -> Value:
    """The tag of a derivative's message."""
    return build.or_(tag, const_int(I64, DERIVATIVE_TAG))


# ------------------------------------------------------------------------------------------------ calls that wait

_ADJOINT: Final = {
    "send": "recv",
    "recv": "send",
    "bcast": "fold",
    "fold": "bcast",
    "sum": "sum",
    "scatter": "gather",
    "gather": "scatter",
    "allgather": "reduce_scatter",
    "reduce_scatter": "allgather",
    "barrier": "barrier",
}
_MESSAGES: Final = ("send", "recv")
_OF_TWO: Final = ("scatter", "gather", "allgather", "reduce_scatter")


def _waiting_adjoint(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    _repeat(context, context.builder, _ADJOINT[_name(call)], call)


def _waiting_tangent(context: TangentContext, call: CallSite) -> None:
    if _name(call) != "barrier":
        _repeat(context, context.after, _name(call), call)


def _repeat(context: Context, build: Builder, name: str, call: CallSite) -> None:
    """Does the same, or its adjoint, with the shadows."""
    given = [_shadow(context, a) if isinstance(a.type, types.PointerType) else context.value(a) for a in call.arguments]
    if name in _MESSAGES:
        given[-1] = _mirrored(build, given[-1])
    _call(context, build, name, given)


def _shadow(context: Context, data: Value) -> Value:
    if not context.is_active(data):
        raise UnsupportedError(
            "numba_mpi is given memory that irad has no shadow for",
            "report it with the function",
            "the derivatives of the numbers in a message lie in the shadow of its memory",
        )
    return context.shadow(data)


# ------------------------------------------------------------------------------------------------ messages on their way


def _companion_memory(context: CopyContext) -> Value:
    """The address of a new record on the tape."""
    memory = context.allocate(const_int(I64, MPI_RECORD.size))
    return context.before.ptrtoint(memory, I64)


def _open(context: CopyContext, name: str, data: Value, call: CallSite) -> Value:
    """Opens a companion of a record, after the call that opens the record."""
    _, n, kind, peer, tag, record, depth = (context.value(argument) for argument in call.arguments)
    build, companion = context.after, _companion_memory(context)
    _call(context, build, name, [data, n, kind, peer, _mirrored(build, tag), companion, const_int(I64, 0)])
    _call(context, build, "link", [record, companion])
    _raise_depth(context, call)
    return companion


def _raise_depth(context: CopyContext, call: CallSite) -> int:
    """Counts the companions of this derivative in front of those of the next; returns how many there were."""
    last = len(call.arguments) - 1
    depth = call.arguments[last]
    assert isinstance(depth, ConstantInt)
    if depth.value + context.width > MOST_COMPANIONS:
        raise UnsupportedError(
            f"a message has more than {MOST_COMPANIONS} derivatives",
            "(a) take fewer directions at once or (b) use numba_mpi.send and recv, which wait",
            "a message that is not waited for keeps a list of them, of that length",
        )
    context.restate(last, const_int(I64, depth.value + context.width))
    return depth.value


def _size(build: Builder, call: CallSite, n: Value) -> Value:
    return build.mul(n, const_int(I64, _element(call)[2]))


def _element(call: CallSite) -> tuple[str, int, int]:
    kind = call.arguments[2]
    assert isinstance(kind, ConstantInt)
    return _ELEMENTS[kind.value]


def _cleared(context: CopyContext, call: CallSite) -> Value:
    """Memory on the tape for a message, with zeros in it: none comes from MPI_PROC_NULL."""
    size = _size(context.before, call, context.value(call.arguments[1]))
    memory = context.allocate(size)
    fill(context.before, memory, size)
    return memory


def _send_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    """The cotangent is received in memory of its own: the data may be read meanwhile."""
    memory = _cleared(context, call)
    if context.is_active(call.arguments[0]):
        context.shadow(call.arguments[0])
    _open(context, "open_recv", memory, call)
    return (memory,)


def _send_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    data, n = call.arguments[:2]
    if context.is_active(data):
        precision, numbers, _ = _element(call)
        build = context.builder
        add = context.declare(f"irad.add_{precision}", function_type(types.VOID, [PTR, PTR, I64]))
        count = build.mul(context.value(n), const_int(I64, numbers))
        build.call(add, [context.shadow(data), context.value(saved[0]), count])


def _send_tangent(context: TangentContext, call: CallSite) -> None:
    data = call.arguments[0]
    tangent = context.shadow(data) if context.is_active(data) else _cleared(context, call)
    _open(context, "open_send", tangent, call)


def _recv_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    return (_open(context, "open_send", _shadow(context, call.arguments[0]), call),)


def _recv_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    """What was overwritten has no derivative; the message may have been shorter than the memory for it."""
    build = context.builder
    length = _call(context, build, "length", [context.value(saved[0])])
    fill(build, context.shadow(call.arguments[0]), _size(build, call, length))


def _recv_tangent(context: TangentContext, call: CallSite) -> None:
    _open(context, "open_recv", _shadow(context, call.arguments[0]), call)


# ------------------------------------------------------------------------------------------------ wildcards

_ANYBODY: Final = {
    "anybody": (
        "numba_mpi.recv takes any message of any source, as it does if neither source nor tag is named",
        "name the source or the tag: numba_mpi.recv(data, source), numba_mpi.recv(data, tag=tag)",
        "it could take a message of a derivative, from a rank that is in its reverse sweep already",
    ),
    "anybody_later": (
        "numba_mpi.irecv takes a message of any source or with any tag, as it does if one is not named",
        "name both: numba_mpi.irecv(data, source, tag)",
        "what comes with the message in a derivative is asked for when it starts, and goes to or comes from that source",
    ),
}


def _refused(context: Context, call: CallSite) -> Sequence[Value]:
    raise UnsupportedError(*_ANYBODY[_name(call)])


def _refused_tangent(context: TangentContext, call: CallSite) -> None:
    _refused(context, call)


def _never(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    """Refused before."""


# ------------------------------------------------------------------------------------------------ steps of a message

_OPPOSITE: Final = {"start": "finish", "finish": "start"}


def _step_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    """The companion; the record itself is gone when the reverse sweep comes."""
    return (_companion(context, call),)


def _companion(context: CopyContext, call: CallSite) -> Value:
    depth, lane = _raise_depth(context, call), context.lane
    back = const_int(I64, depth + context.width - lane)
    return _call(context, context.before, "companion", [context.value(call.arguments[0]), back])


def _step_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    given = [context.value(saved[0]), const_int(I64, 0)]
    _call(context, context.builder, _OPPOSITE[_name(call)], given)


def _step_tangent(context: TangentContext, call: CallSite) -> None:
    companion = _companion(context, call)
    _call(context, context.after, _name(call), [companion, const_int(I64, 0)])


# ------------------------------------------------------------------------------------------------ all of it


def _waiting(name: str) -> CallRule:
    pointers = frozenset[int]() if name == "barrier" else _TWO if name in _OF_TWO else _ONE
    return CallRule(
        (f"{_PREFIX}{name}",),
        Effects(reads=pointers, writes=pointers, remote=True),
        _waiting_adjoint,
        source="linear: the transpose",
        tangent=_waiting_tangent,
    )


def _quiet(names: str, why: str, effects: Effects | None = None) -> Inactive:
    return Inactive(tuple(f"{_PREFIX}{name}" for name in names.split()), why, effects or Effects())


RULES: Final[tuple[Rule, ...]] = (
    *map(_waiting, _ADJOINT),
    CallRule(
        (f"{_PREFIX}open_send",),
        Effects(reads=frozenset({0}), lends=frozenset({0}), remote=True),
        _send_reverse,
        _send_augmented,
        source="linear: the transpose",
        tangent=_send_tangent,
    ),
    CallRule(
        (f"{_PREFIX}open_recv",),
        Effects(writes=frozenset({0}), lends=frozenset({0}), remote=True),
        _recv_reverse,
        _recv_augmented,
        source="linear: the transpose",
        tangent=_recv_tangent,
    ),
    CallRule(
        (f"{_PREFIX}start", f"{_PREFIX}finish"),
        Effects(remote=True, takes_lent=True),
        _step_reverse,
        _step_augmented,
        source="linear: the transpose",
        tangent=_step_tangent,
    ),
    CallRule(
        tuple(f"{_PREFIX}{name}" for name in _ANYBODY),
        Effects(writes=_ONE, remote=True),
        _never,
        _refused,
        source="refused",
        tangent=_refused_tangent,
    ),
    _quiet("link companion length", "they manage messages of derivatives"),
    _quiet("rank size peer tag probe found undefined operation", "ranks, tags and sizes"),
    _quiet("take record null number number_of release is_first", "they manage requests"),
    _quiet("has_finished", "whether a message is through", Effects(takes_lent=True)),
    _quiet("extreme", "which rank has the largest number", Effects(frozenset({0}), frozenset({0}))),
    *(
        _quiet(f"plain.{name}", "integers carry no derivative", Effects(both, both, writes_no_floats=True, integers=both))
        for names, both in (("send recv bcast reduce allreduce", _ONE), ("scatter gather allgather", _TWO))
        for name in names.split()
    ),
    *(
        _quiet(f"plain.{name}", "integers carry no derivative", Effects(_ONE, _ONE, lends=_ONE, integers=_ONE))
        for name in ("open_send", "open_recv")
    ),
)
