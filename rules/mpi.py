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

    irad.mpi.open_send(data, n, kind, peer, tag, record, depth) ⇄ irad.mpi.open_add        adds what comes
    irad.mpi.open_recv(data, n, kind, peer, tag, record, depth) ⇄ irad.mpi.open_give       sends, leaves zeros
    irad.mpi.start(record, depth) ⇄ irad.mpi.finish(record, depth)

A derivative opens a companion of each record. That of the tangent goes the same way, and is started and finished with
the record. That of the cotangent goes the adjoint way; it is started where the reverse sweep comes to `finish`, and
finished where it comes to `start`. Data are read where a message starts and written where it is finished, not where it
is opened: of a companion, that is long before. The record knows its companions, those of later derivatives first.
``depth`` is the number of those of earlier ones: each derivative raises it in its copy of the call.

Derivatives' messages have the program's tags with one bit set that tags of the program must not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.types import I64, PTR, function_type
from irad.ir.values import ConstantInt, ConstantNull, Value, const_int
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
_NONE, _ONE, _TWO = frozenset[int](), frozenset({0}), frozenset({0, 1})
_BYTES: Final = (8, 16, 8)
"""Bytes of an element, for the kinds that have derivatives: float64, complex128, complex64."""


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


_COTANGENT: Final = {
    "open_send": "open_add",
    "open_add": "open_send",
    "open_recv": "open_give",
    "open_give": "open_recv",
}


def _open_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    _open(context, _COTANGENT[_name(call)], call)
    return ()


def _open_tangent(context: TangentContext, call: CallSite) -> None:
    _open(context, _name(call), call)


def _open(context: CopyContext, name: str, call: CallSite) -> None:
    """Opens a companion of a record, after the call that opens the record."""
    data, n, kind, peer, tag, record, _ = call.arguments
    given = [context.value(value) for value in (n, kind, peer, tag)]
    if context.is_active(data):
        shadow = context.shadow(data)
    elif _name(call) in ("open_send", "open_give"):
        shadow = ConstantNull(PTR)  # the other end takes part all the same
    else:
        shadow = _shadow(context, data)
    size = context.before.mul(given[0], const_int(I64, _BYTES[_kind(call)]))
    spare = context.allocate(context.before.add(size, const_int(I64, MPI_RECORD.size)))
    fill(context.before, spare, context.before.add(size, const_int(I64, MPI_RECORD.size)))
    build, companion = context.after, context.before.ptrtoint(spare, I64)
    given[-1] = _mirrored(build, given[-1])
    _call(context, build, name, [shadow, *given, companion, const_int(I64, 0)])
    _call(context, build, "link", [context.value(record), companion])
    _raise_depth(context, call)


def _kind(call: CallSite) -> int:
    kind = call.arguments[2]
    assert isinstance(kind, ConstantInt)
    return kind.value


def _nothing(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    """Adds nothing: the companion works between `start` and `finish`."""


def _raise_depth(context: CopyContext, call: CallSite) -> int:
    """Counts the companions of this derivative in front of those of the next; returns this direction's number."""
    last = len(call.arguments) - 1
    depth = call.arguments[last]
    assert isinstance(depth, ConstantInt)
    total = depth.value + context.width
    if total > MOST_COMPANIONS:
        raise UnsupportedError(
            f"a message has more than {MOST_COMPANIONS} derivatives",
            "(a) take fewer directions at once or (b) use numba_mpi.send and recv, which block",
            "a nonblocking message keeps them in a list of that length",
        )
    context.restate(last, const_int(I64, total))
    return total - context.lane


# ------------------------------------------------------------------------------------------------ wildcards

_ANYBODY: Final = {
    "anybody": (
        "numba_mpi.recv takes any message of any source, which it does if neither source nor tag is given",
        "name the source or the tag: numba_mpi.recv(data, source), numba_mpi.recv(data, tag=tag)",
        "it could take a message that belongs to a derivative, from a rank that is already in its reverse sweep",
    ),
    "anybody_later": (
        "numba_mpi.irecv takes a message of any source or with any tag, which it does unless both are given",
        "name both: numba_mpi.irecv(data, source, tag)",
        "its derivative is requested when it starts, and comes from that source or goes to it",
    ),
}


def _refused(context: Context, call: CallSite) -> Sequence[Value]:
    problem, remedy, reason = _ANYBODY[_name(call)]
    raise UnsupportedError(problem, remedy, reason)


def _refused_tangent(context: TangentContext, call: CallSite) -> None:
    _refused(context, call)


def _never(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    """Nothing: it was refused before."""


# ------------------------------------------------------------------------------------------------ steps of a message

_OPPOSITE: Final = {"start": "finish", "finish": "start"}


def _step_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    """The companion; the record itself is gone when the reverse sweep comes."""
    return (_companion(context, call),)


def _companion(context: CopyContext, call: CallSite) -> Value:
    back = const_int(I64, _raise_depth(context, call))
    return _call(context, context.before, "companion", [context.value(call.arguments[0]), back])


def _step_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    given = [context.value(saved[0]), const_int(I64, 0)]
    _call(context, context.builder, _OPPOSITE[_name(call)], given)


def _step_tangent(context: TangentContext, call: CallSite) -> None:
    companion = _companion(context, call)
    _call(context, context.after, _name(call), [companion, const_int(I64, 0)])


# ------------------------------------------------------------------------------------------------ all of it


def _waiting(name: str) -> CallRule:
    pointers = _NONE if name == "barrier" else _TWO if name in _OF_TWO else _ONE
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
    *(
        CallRule(
            (f"{_PREFIX}{name}",),
            Effects(reads=reads, writes=writes, lends=_ONE, remote=True),
            _nothing,
            _open_augmented,
            source="linear: the transpose",
            tangent=_open_tangent,
        )
        for name, reads, writes in (
            ("open_send", _ONE, _NONE),
            ("open_recv", _NONE, _ONE),
            ("open_add", _ONE, _ONE),
            ("open_give", _ONE, _ONE),
        )
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
    _quiet("link companion", "they manage messages of derivatives"),
    _quiet("rank size peer tag probe found undefined operation", "ranks, tags and sizes"),
    _quiet("take record null number number_of release is_first is_free", "they manage requests"),
    _quiet("has_finished", "whether a message is through", Effects(takes_lent=True)),
    _quiet("extreme", "which rank has the largest number", Effects(frozenset({0}), frozenset({0}))),
    *(
        _quiet(
            f"plain.{name}", "integers carry no derivative", Effects(both, both, writes_no_floats=True, integers=both)
        )
        for names, both in (("send recv bcast reduce allreduce", _ONE), ("scatter gather allgather", _TWO))
        for name in names.split()
    ),
    *(
        _quiet(
            f"plain.{name}",
            "integers carry no derivative",
            Effects(_ONE, _ONE, lends=_ONE, integers=_ONE, writes_no_floats=True),
        )
        for name in ("open_send", "open_recv")
    ),
)
