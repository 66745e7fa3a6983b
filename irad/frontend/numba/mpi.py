"""Functions of numba_mpi, in terms that have derivatives.

numba_mpi calls MPI's functions by the addresses that ctypes has of them. Programs that are differentiated get these
functions instead: copies between the program's arrays and messages are ordinary code, which is differentiated as such,
and the messages go through functions of the run-time support (`irad/backend/runtime/mpi.ll`), which have rules
(`rules/mpi.py`). So these rules know contiguous memory only, no shapes and strides, and what is found out before a
message is received, its source, its tag and its length, is there for the adjoint, too.

    recv(data, source, tag)        probe the message, receive it in a buffer of its length, copy it to `data`
    allreduce(x, y, MAX)           find the lowest rank that has the maximum, then sum x there and zeros elsewhere
    isend(data, dest, tag)         open a record of a message that reads `data`, start it; the request is its number

Limit   a message from any source with any tag could be one of a derivative, and is refused. So is isend of an array
        that is not contiguous, of which numba_mpi sends a copy that it frees too early. Requests have to be completed
        where they were made: by the program that is differentiated.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import llvmlite.binding as llvm
import numpy as np
from llvmlite.ir import IRBuilder, Value
from numba import njit, typeof
from numba.core import types, typing
from numba.core.base import BaseContext
from numba.core.types import Type
from numba.core.typing import Signature

from irad.frontend.emit import Emit
from irad.runtime_layouts import DERIVATIVE_TAG, MOST_REQUESTS, MPI_LIBRARY, MPI_RECORD

_PACKAGE: Final = "numba_mpi"
_KINDS: Final = (types.float64, types.complex128, types.complex64, types.int32, types.int64, types.uint8)
_WITH_DERIVATIVES: Final = 3  # of these, the first
_OPERATORS: Final = ("SUM", "MAX", "MIN")
_SUM, _MIN = 0, 2
_PROC_NULL, _ANY_SOURCE, _ANY_TAG = -1, -2, -1  # as the run-time support has them
_RECEIVES, _SENDS = 0, 1  # modes of records there
_LATEST: Final = 2**62  # a number that no message has
_Lower = Callable[[BaseContext, IRBuilder, Signature, Sequence[Value]], Value]

_WILDCARDS: Final = (
    "irad: numba_mpi.recv from any source with any tag could receive a message of a derivative; "
    "name the source or the tag"
)
_IRECV: Final = "irad: numba_mpi.irecv needs a source and a tag, so that its derivative goes back there; name both"
_TAG: Final = "irad: tags from 16384 on are for messages of derivatives; use lower ones"
_COPY: Final = (
    "irad: numba_mpi.isend of an array that is not contiguous sends a copy, which is freed before it is sent; "
    "make a contiguous copy that lives until the message is complete"
)
_ORDER: Final = (
    "irad: of two messages with one tag between the same ranks the later one was waited for first, so the order of "
    "their derivatives is not known; give them different tags"
)
_FOREIGN: Final = "irad: a request was not made in the function that is differentiated; wait where it was made"
_MANY: Final = "irad: too many messages are on their way; wait for some of them"
_SHORT: Final = "irad: an array has fewer elements than numba_mpi is to send or receive"


def lowering(callee: object, signature: Signature) -> _Lower | None:
    """The lowering of what stands in for a function of numba_mpi; None for other functions."""
    if _PACKAGE not in sys.modules:
        return None
    match callee:
        case types.Dispatcher():
            function: object = callee.dispatcher
        case types.Function():
            function = callee.typing_key
        case _:
            return None
    try:
        make = _makers().get(function)
    except TypeError:  # it cannot be hashed
        return None
    implementation = None if make is None else make(*map(_plain_type, signature.args))
    if function is _function("recv") and all(map(_is_wildcard, signature.args[1:])):
        implementation = _refusal("anybody")
    elif function is _function("irecv") and any(map(_is_wildcard, signature.args[1:])):
        implementation = _refusal("anybody_later")
    if implementation is None:
        return None

    def lower(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Sequence[Value]) -> Value:
        given = [_plain(Emit(context, builder), *pair) for pair in zip(signature.args, arguments, strict=True)]
        plain = typing.signature(signature.return_type, *(type_ for type_, _ in given))
        return context.compile_internal(builder, implementation, plain, [value for _, value in given])

    return lower


def _function(name: str) -> object:
    return getattr(sys.modules[_PACKAGE], name, None)


def _is_wildcard(type_: Type) -> bool:
    """True if a source or a tag was left out."""
    return isinstance(type_, types.Omitted)


def _refusal(name: str) -> Callable[..., Any]:
    """A call that is refused with the line that it is on."""
    refused, request_type = _support(name, 1, 0), _request_type()

    def recv(data, source, tag):  # type: ignore[no-untyped-def]
        return np.int32(refused(data.ctypes))

    def irecv(data, source, tag):  # type: ignore[no-untyped-def]
        return np.int32(refused(data.ctypes)), np.empty(1, request_type)

    return recv if name == "anybody" else irecv


def _plain_type(type_: Type) -> Type:
    """The type of an argument, without the value that may be known; an operator is a number."""
    plain = types.unliteral(typeof(type_.value) if isinstance(type_, types.Omitted) else type_)
    return types.int64 if isinstance(plain, types.IntEnumMember) else plain


def _plain(emit: Emit, type_: Type, value: Value) -> tuple[Type, Value]:
    plain = _plain_type(type_)
    if isinstance(type_, types.IntEnumMember):
        return plain, value
    if isinstance(type_, types.Omitted):
        name = getattr(type_.value, "name", None)  # of an operator
        known = type_.value if name is None else _OPERATORS.index(name)
        return plain, emit.context.get_constant_generic(emit.builder, plain, known)
    return plain, emit.context.cast(emit.builder, value, type_, plain)


# ------------------------------------------------------------------------------------------------ the support


def _support(name: str, pointers: int, numbers: int) -> types.ExternalFunction:
    arguments = (types.voidptr,) * pointers + (types.int64,) * numbers
    return types.ExternalFunction(f"irad.mpi.{name}", types.int64(*arguments))


_rank, _size, _barrier = _support("rank", 0, 0), _support("size", 0, 0), _support("barrier", 0, 0)
_peer, _tag, _probe, _found = (
    _support("peer", 0, 1),
    _support("tag", 0, 1),
    _support("probe", 0, 3),
    _support("found", 0, 1),
)
_operation = _support("operation", 0, 1)
_take, _record, _null = _support("take", 0, 0), _support("record", 0, 1), _support("null", 0, 0)
_number, _number_of, _release = _support("number", 0, 1), _support("number_of", 0, 1), _support("release", 0, 1)
_start, _finish = _support("start", 0, 2), _support("finish", 0, 2)
_is_free = _support("is_free", 0, 4)
_is_first, _has_finished, _undefined = (
    _support("is_first", 0, 1),
    _support("has_finished", 0, 1),
    _support("undefined", 0, 0),
)


def _of_kind(name: str, kind: int, pointers: int, numbers: int) -> types.ExternalFunction:
    """A function for elements of a kind; another where they have no derivatives."""
    return _support(name if kind < _WITH_DERIVATIVES else f"plain.{name}", pointers, numbers)


def _kind(array: Type) -> int | None:
    """The number of a kind of elements; None where numba_mpi has another way to send them."""
    if not isinstance(array, types.Array) or array.dtype not in _KINDS:
        return None
    return _KINDS.index(array.dtype)


# ------------------------------------------------------------------------------------------------ arrays and messages


@njit
def _taken(data: Any) -> Any:
    """The elements of an array, in memory of their own."""
    return np.ascontiguousarray(data).reshape(-1).copy()


@njit
def _put_in_row(data: Any, buffer: Any, n: int) -> None:
    row = data.reshape(-1)
    for i in range(n):
        row[i] = buffer[i]


@njit
def _put_anywhere(data: Any, buffer: Any, n: int) -> None:
    row = data.flat
    for i in range(n):
        row[i] = buffer[i]


def _putter(array: Any) -> Callable[[Any, Any, int], None]:
    """Sets the first elements of an array."""
    return _put_in_row if array.layout == "C" else _put_anywhere


@njit
def _checked(tag: int) -> int:
    if tag >= DERIVATIVE_TAG:
        raise ValueError(_TAG)
    return tag


@njit
def _overtakes(peer: int, tag: int, mode: int) -> None:
    """Refuses a message that is waited for while an earlier one with its tag is on its way; see `_ORDER`."""
    if peer != _PROC_NULL and _is_free(peer, tag, mode, _LATEST) == 0:
        raise ValueError(_ORDER)


# ------------------------------------------------------------------------------------------------ messages


def _make_send(data: Type, dest: Type, tag: Type) -> Callable[..., Any] | None:
    kind = _kind(data)
    if kind is None:
        return None
    send = _of_kind("send", kind, 1, 4)

    def implementation(data, dest, tag):  # type: ignore[no-untyped-def]
        buffer, peer = _taken(data), _peer(dest)
        _overtakes(peer, _checked(tag), _SENDS)
        status = send(buffer.ctypes, buffer.size, kind, peer, tag)
        return np.int32(status + 0 * buffer.size)  # which keeps the buffer until then

    return implementation


def _receiver(array: Type, kind: int) -> Callable[..., int]:
    receive, put = _of_kind("recv", kind, 1, 4), _putter(array)

    @njit
    def received(data: Any, source: int, tag: int) -> int:
        peer, wanted = _peer(source), _checked(_tag(tag))
        if peer == _PROC_NULL:
            return 0
        if peer == _ANY_SOURCE and wanted == _ANY_TAG:
            raise ValueError(_WILDCARDS)
        _probe(peer, wanted, kind)
        peer, wanted, n = _found(0), _found(1), _found(2)
        _overtakes(peer, wanted, _RECEIVES)
        room = min(n, data.size)  # of a message that is too long MPI says so
        buffer = np.zeros(room, data.dtype)
        status = receive(buffer.ctypes, room, kind, peer, wanted)
        put(data, buffer, room)
        return status

    return received


def _make_recv(data: Type, source: Type, tag: Type) -> Callable[..., Any] | None:
    kind = _kind(data)
    if kind is None:
        return None
    received = _receiver(data, kind)

    def implementation(data, source, tag):  # type: ignore[no-untyped-def]
        return np.int32(received(data, source, tag))

    return implementation


def _make_sendrecv(
    senddata: Type, dest: Type, recvdata: Type, source: Type, sendtag: Type, recvtag: Type
) -> Callable[..., Any] | None:
    sent, kind = _kind(senddata), _kind(recvdata)
    if sent is None or kind is None:
        return None
    opened, received = _opener("send", sent), _receiver(recvdata, kind)

    def implementation(senddata, dest, recvdata, source, sendtag, recvtag):  # type: ignore[no-untyped-def]
        buffer = _taken(senddata)
        request = opened(buffer, dest, sendtag)
        status = received(recvdata, source, recvtag)
        other = _completed(_record(request))
        return np.int32((status if status != 0 else other) + 0 * buffer.size)

    return implementation


def _make_rank() -> Callable[..., Any]:
    return lambda: np.int32(_rank())


def _make_size() -> Callable[..., Any]:
    return lambda: np.int32(_size())


def _make_barrier() -> Callable[..., Any]:
    return lambda: np.int32(_barrier())


# ------------------------------------------------------------------------------------------------ requests


def _opener(way: str, kind: int) -> Callable[..., int]:
    """Starts a message that is not waited for; returns its request."""
    open_record = _of_kind(f"open_{way}", kind, 1, 6)

    @njit
    def opened(data: Any, peer: int, tag: int) -> int:
        request = _take()
        if request == 0:
            raise RuntimeError(_MANY)
        record = _record(request)
        open_record(data.ctypes, data.size, kind, _peer(peer), _checked(tag), record, 0)
        _number(record)
        _start(record, 0)
        return request

    return opened


def _request_type() -> Any:
    return sys.modules[_PACKAGE].RequestType


def _make_isend(data: Type, dest: Type, tag: Type) -> Callable[..., Any] | None:
    kind = _kind(data)
    if kind is None:
        return None
    opened, request_type = _opener("send", kind), _request_type()

    def implementation(data, dest, tag):  # type: ignore[no-untyped-def]
        if not data.flags.c_contiguous:
            raise ValueError(_COPY)
        request = np.empty(1, request_type)
        request[0] = opened(data, dest, tag)
        return np.int32(0), request

    return implementation


def _make_irecv(data: Type, source: Type, tag: Type) -> Callable[..., Any] | None:
    kind = _kind(data)
    if kind is None:
        return None
    opened, request_type = _opener("recv", kind), _request_type()

    def implementation(data, source, tag):  # type: ignore[no-untyped-def]
        assert data.flags.c_contiguous
        if _peer(source) == _ANY_SOURCE or (_tag(tag) == _ANY_TAG and _peer(source) != _PROC_NULL):
            raise ValueError(_IRECV)
        request = np.empty(1, request_type)
        request[0] = opened(data, source, max(tag, 0))
        return np.int32(0), request

    return implementation


@njit
def _pending(request: int) -> int:
    """The record of a request; 0 where it is complete."""
    record = _record(request)
    if record == -1:
        raise ValueError(_FOREIGN)
    if record != 0 and _number_of(record) == 0:
        return 0
    return record


@njit
def _completed(record: int) -> int:
    if _is_first(record) == 0:
        raise ValueError(_ORDER)
    status = _finish(record, 0)
    _release(record)
    return status


@njit
def _complete(requests: Any, i: int) -> int:
    record, status = _pending(requests[i]), 0
    if record != 0:
        status = _completed(record)
    requests[i] = _null()
    return status


@njit
def _complete_all(requests: Any) -> int:
    """In the order in which they were started: messages with one tag between the same ranks must not overtake."""
    status = 0
    for _ in range(requests.size):
        first, least = -1, 0
        for i in range(requests.size):
            record = _pending(requests[i])
            if record != 0 and (first < 0 or _number_of(record) < least):
                first, least = i, _number_of(record)
        if first < 0:
            break
        status = max(status, _complete(requests, first))
    for i in range(requests.size):
        requests[i] = _null()
    return status


@njit
def _are_through(requests: Any) -> bool:
    for i in range(requests.size):
        record = _pending(requests[i])
        if record != 0 and _has_finished(record) == 0:
            return False
    return True


@njit
def _through(requests: Any) -> int:
    """The number of a request that is through; -1 where there is none yet, -2 where all are complete."""
    found = -2
    for i in range(requests.size):
        record = _pending(requests[i])
        if record != 0:
            if _is_first(record) != 0 and _has_finished(record) != 0:
                return i
            found = -1
    return found


def _make_wait(request: Type) -> Callable[..., Any]:
    def implementation(request):  # type: ignore[no-untyped-def]
        return np.int32(_complete(request, 0))

    return implementation


def _make_test(request: Type) -> Callable[..., Any]:
    def implementation(request):  # type: ignore[no-untyped-def]
        status, through = 0, _through(request[:1])
        if through == 0:
            status = _complete(request, 0)
        return np.int32(status), through != -1

    return implementation


def _as_array(requests: Type) -> Callable[[Any], Any]:
    if isinstance(requests, types.BaseTuple):
        return njit(lambda requests: np.hstack(requests))
    return njit(lambda requests: requests)


def _make_waitall(requests: Type) -> Callable[..., Any]:
    as_array = _as_array(requests)

    def implementation(requests):  # type: ignore[no-untyped-def]
        return np.int32(_complete_all(as_array(requests)))

    return implementation


def _make_waitany(requests: Type) -> Callable[..., Any]:
    as_array = _as_array(requests)

    def implementation(requests):  # type: ignore[no-untyped-def]
        every = as_array(requests)
        through = _through(every)
        while through == -1:
            through = _through(every)
        if through == -2:
            return np.int32(0), np.int32(_undefined())
        return np.int32(_complete(every, through)), np.int32(through)

    return implementation


def _make_testall(requests: Type) -> Callable[..., Any]:
    as_array = _as_array(requests)

    def implementation(requests):  # type: ignore[no-untyped-def]
        every, status = as_array(requests), 0
        through = _are_through(every)
        if through:
            status = _complete_all(every)
        return np.int32(status), through

    return implementation


def _make_testany(requests: Type) -> Callable[..., Any]:
    as_array = _as_array(requests)

    def implementation(requests):  # type: ignore[no-untyped-def]
        every, status = as_array(requests), 0
        through = _through(every)
        if through < 0:
            return np.int32(0), through == -2, np.int32(_undefined())
        status = _complete(every, through)
        return np.int32(status), True, np.int32(through)

    return implementation


# ------------------------------------------------------------------------------------------------ all ranks together


def _make_bcast(data: Type, root: Type) -> Callable[..., Any] | None:
    kind = _kind(data)
    if kind is None:
        return None
    bcast, put = _of_kind("bcast", kind, 1, 3), _putter(data)

    def implementation(data, root):  # type: ignore[no-untyped-def]
        assert data.flags.c_contiguous
        buffer = _taken(data)
        status = bcast(buffer.ctypes, buffer.size, kind, root)
        put(data, buffer, buffer.size)
        return np.int32(status)

    return implementation


@njit
def _whole(data: Any, n: int) -> Any:
    """The first elements of an array, in memory of their own."""
    if n > data.size:
        raise ValueError(_SHORT)
    return _taken(data)[:n].copy()


def _make_scatter(send_data: Type, recv_data: Type, count: Type, root: Type) -> Callable[..., Any] | None:
    kind = _kind(recv_data)
    if kind is None or _kind(send_data) != kind:
        return None
    scatter, put = _of_kind("scatter", kind, 2, 3), _putter(recv_data)

    def implementation(send_data, recv_data, count, root):  # type: ignore[no-untyped-def]
        assert send_data.flags.c_contiguous
        assert recv_data.flags.c_contiguous
        if count > recv_data.size:
            raise ValueError(_SHORT)
        whole = _whole(send_data, count * _size() if _rank() == root else 0)
        part = np.zeros(count, recv_data.dtype)
        status = scatter(whole.ctypes, part.ctypes, count, kind, root)
        put(recv_data, part, count)
        return np.int32(status + 0 * whole.size)

    return implementation


def _make_gather(send_data: Type, recv_data: Type, count: Type, root: Type) -> Callable[..., Any] | None:
    kind = _kind(recv_data)
    if kind is None or _kind(send_data) != kind:
        return None
    gather, put = _of_kind("gather", kind, 2, 3), _putter(recv_data)

    def implementation(send_data, recv_data, count, root):  # type: ignore[no-untyped-def]
        assert send_data.flags.c_contiguous
        assert recv_data.flags.c_contiguous
        n = count * _size() if _rank() == root else 0
        if n > recv_data.size:
            raise ValueError(_SHORT)
        whole, part = np.zeros(n, recv_data.dtype), _whole(send_data, count)
        status = gather(whole.ctypes, part.ctypes, count, kind, root)
        put(recv_data, whole, n)
        return np.int32(status + 0 * part.size)

    return implementation


def _make_allgather(send_data: Type, recv_data: Type, count: Type) -> Callable[..., Any] | None:
    kind = _kind(recv_data)
    if kind is None or _kind(send_data) != kind:
        return None
    gather, put = _of_kind("allgather", kind, 2, 3), _putter(recv_data)

    def implementation(send_data, recv_data, count):  # type: ignore[no-untyped-def]
        assert send_data.flags.c_contiguous
        assert recv_data.flags.c_contiguous
        n = count * _size()
        if n > recv_data.size:
            raise ValueError(_SHORT)
        whole, part = np.zeros(n, recv_data.dtype), _whole(send_data, count)
        status = gather(whole.ctypes, part.ctypes, count, kind, 0)
        put(recv_data, whole, n)
        return np.int32(status + 0 * part.size)

    return implementation


# ------------------------------------------------------------------------------------------------ reductions


def operator_number(class_: Type, attribute: str) -> int | None:
    """The number of an operator that a program names; numba_mpi has an address there, of this process.

    None for an attribute of another class.
    """
    package = sys.modules.get(_PACKAGE)
    if package is None or not isinstance(class_, types.EnumClass | types.IntEnumMember):
        return None
    if class_.instance_class is not package.Operator or attribute not in _OPERATORS:
        return None
    return _OPERATORS.index(attribute)


def _reduced(kind: int) -> Callable[..., int]:
    """Reduces the elements in a buffer, in place: at the root, or everywhere where that is -1."""
    if kind >= _WITH_DERIVATIVES:
        return _reduced_integers(kind)
    fold, total, extreme = _support("fold", 1, 3), _support("sum", 1, 3), _support("extreme", 1, 3)
    least = _support("plain.allreduce", 1, 3)
    ranks = _KINDS.index(types.int64)
    has_order = kind == 0

    @njit
    def extremes(buffer: Any, operation: int) -> None:
        """Leaves each extreme at the lowest rank that has it, and zeros elsewhere."""
        found, owners, rank = buffer.copy(), np.empty(buffer.size, np.int64), _rank()
        extreme(found.ctypes, found.size, kind, operation)
        for i in range(buffer.size):
            # NaN is unequal to itself; MPI does not define the result.
            is_mine = buffer[i] == found[i] or (found[i] != found[i] and buffer[i] != buffer[i])
            owners[i] = rank if is_mine else _size()
        least(owners.ctypes, owners.size, ranks, _MIN)
        for i in range(buffer.size):
            if owners[i] != rank:
                buffer[i] = -0.0  # the sum of -0.0 and x is x, also where x is -0.0

    @njit
    def reduced(buffer: Any, operation: int, root: int) -> int:
        if operation != _SUM:
            if not has_order:
                raise ValueError("irad: complex numbers have no maximum and no minimum")
            extremes(buffer, operation)
        if root < 0:
            return total(buffer.ctypes, buffer.size, kind, 0)
        return fold(buffer.ctypes, buffer.size, kind, root)

    return reduced


def _reduced_integers(kind: int) -> Callable[..., int]:
    reduce, allreduce = _of_kind("reduce", kind, 1, 4), _of_kind("allreduce", kind, 1, 3)

    @njit
    def reduced(buffer: Any, operation: int, root: int) -> int:
        if root < 0:
            return allreduce(buffer.ctypes, buffer.size, kind, operation)
        return reduce(buffer.ctypes, buffer.size, kind, root, operation)

    return reduced


def _reduction(sendobj: Type, recvobj: Any) -> Callable[..., int] | None:
    """`(sendobj, recvobj, operation, root) -> status`; a root of -1 stands for all ranks."""
    kind = _kind(recvobj)
    is_number = isinstance(sendobj, types.Number)
    if kind is None or not (is_number or _kind(sendobj) == kind):
        return None
    if is_number and sendobj != recvobj.dtype:
        return None
    reduced, put = _reduced(kind), _putter(recvobj)
    taken = njit(lambda number: np.array([number])) if is_number else _taken

    @njit
    def reduction(sendobj: Any, recvobj: Any, operation: int, root: int) -> int:
        buffer = taken(sendobj)
        status = reduced(buffer, operation, root)
        if root < 0 or _rank() == root:
            put(recvobj, buffer, buffer.size)
        return status

    return reduction


def _make_reduce(sendobj: Type, recvobj: Type, operator: Type, root: Type) -> Callable[..., Any] | None:
    reduction = _reduction(sendobj, recvobj)
    if reduction is None:
        return None

    def implementation(sendobj, recvobj, operator, root):  # type: ignore[no-untyped-def]
        return np.int32(reduction(sendobj, recvobj, _operation(operator), root))

    return implementation


def _make_allreduce(sendobj: Type, recvobj: Type, operator: Type) -> Callable[..., Any] | None:
    reduction = _reduction(sendobj, recvobj)
    if reduction is None:
        return None

    def implementation(sendobj, recvobj, operator):  # type: ignore[no-untyped-def]
        return np.int32(reduction(sendobj, recvobj, _operation(operator), -1))

    return implementation


_MAKERS: Final[dict[str, Callable[..., Callable[..., Any] | None]]] = {
    "send": _make_send,
    "recv": _make_recv,
    "sendrecv": _make_sendrecv,
    "isend": _make_isend,
    "irecv": _make_irecv,
    "wait": _make_wait,
    "waitall": _make_waitall,
    "waitany": _make_waitany,
    "test": _make_test,
    "testall": _make_testall,
    "testany": _make_testany,
    "bcast": _make_bcast,
    "scatter": _make_scatter,
    "gather": _make_gather,
    "allgather": _make_allgather,
    "reduce": _make_reduce,
    "allreduce": _make_allreduce,
    "barrier": _make_barrier,
    "rank": _make_rank,
    "size": _make_size,
}


@functools.cache
def _makers() -> dict[object, Callable[..., Callable[..., Any] | None]]:
    """By the functions of numba_mpi."""
    package = sys.modules[_PACKAGE]
    return {getattr(package, name): make for name, make in _MAKERS.items() if hasattr(package, name)}


# ------------------------------------------------------------------------------------------------ the library


class _Library(ctypes.Structure):
    _fields_ = MPI_LIBRARY.in_c


def constants() -> str:
    """Constants of the MPI library in compiled code, as text; empty where the process does not use numba_mpi."""
    package = sys.modules.get(_PACKAGE)
    if package is None:
        return ""
    MPI = sys.modules["mpi4py.MPI"]
    return f"mpi {package.RequestType} {MPI.ANY_SOURCE} {MPI.ANY_TAG} {MPI.PROC_NULL}"


@functools.cache
def install() -> None:
    """Makes MPI's functions, handles and constants known to LLVM, once in a process."""
    # Not at the head of the file: numba_mpi is optional, and starts MPI.
    from mpi4py import MPI  # pyright: ignore[reportMissingImports]
    from numba_mpi import common  # pyright: ignore[reportMissingImports]

    for name in _FUNCTIONS:
        address = ctypes.cast(getattr(common.libmpi, name), ctypes.c_void_p).value
        assert address is not None
        llvm.add_symbol(name, address)

    def handle(given: Any) -> int:
        size, address = MPI._sizeof(given), MPI._addressof(given)
        return int.from_bytes(ctypes.string_at(address, size), sys.byteorder)

    kinds = (MPI.DOUBLE, MPI.C_DOUBLE_COMPLEX, MPI.C_FLOAT_COMPLEX, MPI.INT32_T, MPI.INT64_T, MPI.CHAR)
    names = ("float64", "complex128", "complex64", "int32", "int64", "uint8")
    operations = {"sum": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN}
    records = ctypes.create_string_buffer(MPI_RECORD.size * MOST_REQUESTS)
    source_at, tag_at = _places_in_status(MPI)
    library = _Library(
        comm=handle(MPI.COMM_WORLD),
        **{name: handle(operation) for name, operation in operations.items()},
        **{f"{name}_at": MPI._addressof(operation) for name, operation in operations.items()},
        **{name: handle(kind) for name, kind in zip(names, kinds, strict=True)},
        **{f"{name}_size": np.dtype(name).itemsize for name in names},
        in_place=_in_place(MPI),
        null_request=handle(MPI.REQUEST_NULL),
        proc_null=MPI.PROC_NULL,
        any_source=MPI.ANY_SOURCE,
        any_tag=MPI.ANY_TAG,
        source_at=source_at,
        tag_at=tag_at,
        undefined=MPI.UNDEFINED,
        records=ctypes.addressof(records),
    )
    llvm.add_symbol("irad.mpi_library", ctypes.addressof(library))
    _ALIVE.extend((library, records))


_ALIVE: Final[list[object]] = []
_FUNCTIONS: Final = (
    *("MPI_Send", "MPI_Recv", "MPI_Isend", "MPI_Irecv", "MPI_Wait", "MPI_Test", "MPI_Probe", "MPI_Get_count"),
    *("MPI_Bcast", "MPI_Reduce", "MPI_Allreduce", "MPI_Gather", "MPI_Scatter", "MPI_Allgather"),
    *("MPI_Reduce_scatter_block", "MPI_Barrier", "MPI_Comm_rank", "MPI_Comm_size"),
)


def _places_in_status(MPI: Any) -> tuple[int, int]:
    """Bytes from the start of an MPI_Status to the source and to the tag: each library has its own order."""
    status, found = MPI.Status(), []
    for put, mark in ((status.Set_source, 0x1234567), (status.Set_tag, 0x7654321)):
        put(mark)
        content = ctypes.string_at(MPI._addressof(status), MPI._sizeof(status))
        found.append(content.index(mark.to_bytes(4, sys.byteorder)))
    return found[0], found[1]


def _in_place(MPI: Any) -> int:
    """The address that stands for MPI_IN_PLACE."""
    return int(MPI.IN_PLACE)
