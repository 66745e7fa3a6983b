"""Dask: derivatives of a sum over the partitions of data that Dask keeps on many workers.

One task for each partition computes a value and a gradient where the partition is; a binary tree adds them up. Which
partitions are added first depends on their number alone, so the result has the same bits on any number of workers.
"""

from __future__ import annotations

import functools
import itertools
import operator
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any, Concatenate, Final, Literal, NamedTuple, TypeAlias, TypeVar, overload

import numpy as np

import irad
from irad import data
from irad.data import structure
from irad.errors import SignatureError
from irad.frontend.calls.raising import public
from irad.interop.flat import filled, mapped, positional, positions_of, split
from irad.message import with_article
from irad.options import Options
from irad.versions import needed

with needed("dask"):
    import dask
    import dask.array as da
    import dask.bag as db
    from dask.base import get_scheduler, is_dask_collection
    from dask.core import flatten
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph
    from dask.sizeof import sizeof
    from dask.task_spec import DataNode, Task, TaskRef

__all__ = ["hvp", "value_and_grad"]

_X = TypeVar("_X")
_Function: TypeAlias = Callable[..., Any]
_Loss: TypeAlias = Callable[..., float | np.floating[Any]]
_Kind: TypeAlias = Literal["value_and_grad", "hvp"]
_Key: TypeAlias = Any
_LARGE: Final = 1 << 20
"""Bytes of arguments that are not partitioned from which on they are scattered, and are not a part of the graph."""
_ATTEMPTS: Final = 4
"""Number of times that scattered arguments are sent if all workers with them die: as often as Dask tries a task."""


@overload
def value_and_grad(
    loss: Callable[Concatenate[_X, ...], float | np.floating[Any]],
    argnums: Literal[0] = 0,
    *,
    compute: Literal[True] = True,
    options: Options | None = None,
) -> Callable[Concatenate[_X, ...], tuple[float, _X]]: ...


@overload
def value_and_grad(
    loss: _Loss, argnums: int | Sequence[int] = 0, *, compute: Literal[True] = True, options: Options | None = None
) -> Callable[..., tuple[float, Any]]: ...


@overload
def value_and_grad(
    loss: _Loss, argnums: int | Sequence[int] = 0, *, compute: bool, options: Options | None = None
) -> Callable[..., Delayed]: ...


@public
def value_and_grad(
    loss: _Function, argnums: int | Sequence[int] = 0, *, compute: bool = True, options: Options | None = None
) -> _Function:
    """The value and the gradient of a sum of a function over the partitions of data.

    The result is called with the arguments of ``loss``, data in place of a partition: ``(params, data, ...)``. Data is

    - an array of Dask of blocks of rows: ``loss`` is given a block as an array of NumPy;
    - a bag of Dask: ``loss`` is given the items of a partition as an array if they are numbers, else as a list; empty
      partitions contribute nothing;
    - a list of `dask.delayed` values, or of futures: ``loss`` is given one of these values.

    Several such arguments have the same number of partitions, of as many rows each. They may lie in tuples and
    dictionaries. A single delayed value, or a future, is a value that all partitions share, like all other arguments.

    The first call in a process compiles the derivative, or loads it from disk; see `docs/cache.md`.

    Args:
        loss: a function of one partition that returns a float, plain or of ``numba.njit``.
        argnums: the position of the argument, or a tuple of positions, that the gradient is with respect to: arrays,
            numbers, or structures of these. They are shared by all partitions.
        compute: if False, the result of a call is lazy: a `dask.delayed.Delayed` of the pair, which can be unpacked.
        options: how the derivative is created; see `irad.Options`. By default as the environment says, with
            ``cache=True``. Gradients are never speculative: their bits would depend on what a worker did before.

    Returns:
        A callable ``(*args) -> (value, gradient)``, the gradient as in `irad.value_and_grad`.

    Raises:
        SignatureError: the function has no argument at that position. A call raises it if no argument is partitioned,
            if partitions do not fit each other, or if what is differentiated is partitioned.

    Examples:
        >>> import irad.interop.dask
        >>> import dask.array as da
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def loss(weights, features, targets):
        ...     return np.sum((features @ weights - targets) ** 2)
        >>> features = da.from_array(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), chunks=(2, 2))
        >>> targets = da.from_array(np.array([1.0, 3.0, 5.0]), chunks=2)
        >>> value, gradient = irad.interop.dask.value_and_grad(loss)(np.array([1.0, 1.0]), features, targets)
        >>> value == 5.0, gradient
        (True, array([ -6., -10.]))
    """
    return _summed("value_and_grad", loss, argnums, compute, options)


@overload
def hvp(
    loss: Callable[Concatenate[_X, ...], float | np.floating[Any]],
    argnums: Literal[0] = 0,
    *,
    compute: Literal[True] = True,
    options: Options | None = None,
) -> Callable[Concatenate[_X, _X, ...], _X]: ...


@overload
def hvp(
    loss: _Loss, argnums: int | Sequence[int] = 0, *, compute: bool = True, options: Options | None = None
) -> Callable[..., Any]: ...


@public
def hvp(
    loss: _Function, argnums: int | Sequence[int] = 0, *, compute: bool = True, options: Options | None = None
) -> _Function:
    """The product of the Hessian of a sum of a function over the partitions of data and a vector.

    The vector follows the last of the arguments that are differentiated: ``(params, vector, data, ...)``, as in
    `irad.hvp` and ``hessp`` of `scipy.optimize.minimize`.

    Args:
        loss: a function of one partition, as in `irad.interop.dask.value_and_grad`.
        argnums: the position of the argument, or a tuple of positions; for a tuple the vector is one, too.
        compute: whether a call computes the product; otherwise its result is lazy.
        options: how the derivative is created, as in `irad.interop.dask.value_and_grad`.

    Returns:
        A callable ``(*args) -> product``.

    Raises:
        SignatureError: as in `irad.interop.dask.value_and_grad`, or there is no vector.

    Examples:
        >>> import irad.interop.dask
        >>> import dask.array as da
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def loss(x, block):
        ...     return np.sum(block * x**3)
        >>> data = da.ones(4, chunks=2)
        >>> irad.interop.dask.hvp(loss)(2.0, 1.0, data)
        48.0
    """
    return _summed("hvp", loss, argnums, compute, options)


def _summed(
    kind: _Kind, loss: _Function, argnums: int | Sequence[int], compute: bool, options: Options | None
) -> _Function:
    """The function that computes a derivative of each partition and adds them up."""
    compiled: Any = loss if hasattr(loss, "py_func") or not callable(loss) else irad.jit(loss)
    wanted = replace(Options.from_environment(), cache=True) if options is None else options
    # After a NaN a speculative gradient computes with other code from then on: bits would depend on the worker's past.
    derivative = getattr(irad, kind)(loss, argnums, options=replace(wanted, speculative=False))
    positions = positions_of(compiled, argnums) or frozenset()
    vector = max(positions) + 1 if kind == "hvp" else None

    @public
    @functools.wraps(compiled.py_func)
    def call(*args: Any, **keywords: Any) -> Any:
        given = _with_vector(compiled, vector, args, keywords)
        split_up = [_SplitArgument.of(each) for each in given]
        for i in (*positions, *(() if vector is None else (vector,))):
            split_up[i].check_is_whole(compiled.py_func.__qualname__, i, is_vector=i == vector)
        partitions = _Partitions.of([leaf for each in split_up for leaf in each.leaves])
        prepared = _Call(
            derivative,
            tuple(each.value for each in split_up),
            tuple(bool(each.leaves) for each in split_up),
            partitions.are_bags,
        )
        name = f"{kind}_{compiled.py_func.__name__.strip('<>')}"
        return _computed(name, prepared, partitions) if compute else _graph(name, prepared, partitions)

    return call


def _with_vector(f: Any, vector: int | None, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
    """All arguments of a call by position; ``vector`` is the position of the one that is none of the function's."""
    if vector is None:
        return positional(f, args, keywords)
    if len(args) <= vector:
        raise SignatureError(
            f"hvp of {f.py_func.__qualname__} is called with {len(args)} arguments by position, so there is no vector",
            f"pass {vector} arguments and then the vector by position",
            "the vector follows the last argument that is differentiated",
        )
    own = positional(f, args[:vector] + args[vector + 1 :], keywords)
    return *own[:vector], args[vector], *own[vector:]


# ------------------------------------------------------------------------------------------------ arguments


@dataclass(frozen=True, slots=True)
class _Listed:
    """A list of delayed values or futures, one for each partition."""

    values: list[Any]


def _is_value(value: Any) -> bool:
    """True for a value that Dask has, or is to compute: `Delayed`, or a future of distributed."""
    return isinstance(value, Delayed | TaskRef)


def _listed(value: Any) -> Any:
    """A structure with its lists of delayed values and futures marked as such."""
    if isinstance(value, dict):
        return {key: _listed(each) for key, each in value.items()}
    if isinstance(value, list) and any(map(_is_value, value)):
        if not all(map(_is_value, value)):
            raise SignatureError(
                "a list mixes delayed values and others",
                "(a) make all of them delayed, one for each partition, or (b) pass a tuple of values that are shared",
                "a list of delayed values is data, with a value for each partition",
            )
        return _Listed(value)
    if isinstance(value, tuple | list):
        items = map(_listed, value)
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


class _SplitArgument(NamedTuple):
    """An argument of a call.

    Attributes:
        value: with `LEAF` for each of the leaves; the argument itself if there are none.
        leaves: what Dask has of it.
    """

    value: Any
    leaves: list[Any]

    @classmethod
    def of(cls, argument: Any) -> _SplitArgument:
        leaves: list[Any] = []
        found = split(_listed(argument), leaves, (da.Array, db.Bag, Delayed, TaskRef, _Listed))
        mapped(found, _check_collection)
        return cls(found if leaves else argument, leaves)

    def check_is_whole(self, function: str, position: int, *, is_vector: bool) -> None:
        """Refuses partitions of what is differentiated."""
        if not all(_is_value(each) for each in self.leaves):
            what = "the vector" if is_vector else f"argument {position}"
            raise SignatureError(
                f"{what} of a derivative of {function} is split into partitions",
                "(a) pass a NumPy array or (b) choose argnums of arguments that all partitions share",
                "each partition uses the whole argument and contributes to its whole gradient",
            )


def _check_collection(part: Any) -> Any:
    if is_dask_collection(part):
        raise SignatureError(
            f"an argument is {with_article(type(part).__name__)} of Dask",
            "(a) convert it: frame.to_dask_array(lengths=True) or (b) pass the list item.to_delayed()",
            "data are arrays, bags and lists of delayed values",
        )
    return part


class _Partitions(NamedTuple):
    """The values of the leaves of all arguments, by their keys.

    Attributes:
        keys: for each partition the key of the value of each leaf.
        are_bags: whether each leaf is a bag.
        collections: of Dask, which the keys belong to.
        futures: of distributed, which keys belong to, too.
    """

    keys: list[tuple[_Key, ...]]
    are_bags: tuple[bool, ...]
    collections: tuple[Any, ...]
    futures: tuple[Any, ...]

    @classmethod
    def of(cls, leaves: list[Any]) -> _Partitions:
        """The partitions of leaves.

        Raises:
            SignatureError: there are none, or other ones of one leaf than of another.
        """
        flat = [value for each in leaves for value in (each.values if isinstance(each, _Listed) else [each])]
        futures = tuple(each for each in flat if isinstance(each, TaskRef))
        _check_rows([each for each in leaves if isinstance(each, da.Array) and each.ndim])
        # All at once: what they share is computed once, and blocks are fused with what they are made from.
        optimized = iter(dask.optimize(*(each for each in flat if not isinstance(each, TaskRef))))
        known = [each if isinstance(each, TaskRef) else next(optimized) for each in flat]
        values, columns, counts = iter(known), list[Iterable[_Key]](), list[int]()
        for leaf in leaves:
            if isinstance(leaf, _Listed):
                columns.append([each.key for each in itertools.islice(values, len(leaf.values))])
                counts.append(len(leaf.values))
            elif _is_value(leaf) or (isinstance(leaf, da.Array) and not leaf.ndim):
                value = next(values)
                columns.append(itertools.repeat(value.key if _is_value(value) else (value.name,)))
            else:
                keys = list(flatten(next(values).__dask_keys__()))
                columns.append(keys)
                counts.append(len(keys))
        _check_counts(counts)
        return cls(
            list(itertools.islice(zip(*columns, strict=False), counts[0])),
            tuple(isinstance(each, db.Bag) for each in leaves),
            tuple(each for each in known if not isinstance(each, TaskRef)),
            futures,
        )


def _check_rows(arrays: Sequence[Any]) -> None:
    known = [rows for each in arrays if not any(map(np.isnan, rows := each.chunks[0]))]
    for each in arrays:
        if any(count > 1 for count in each.numblocks[1:]):
            raise SignatureError(
                f"a Dask array has {each.numblocks} blocks",
                "make them blocks of whole rows: x.rechunk({1: -1}).persist()",
                "the function is called for each block of rows",
            )
    for rows in known[1:]:
        if rows != known[0]:
            raise SignatureError(
                f"Dask arrays have blocks of {_shown(known[0])} and of {_shown(rows)} rows",
                "give them the same blocks: y = y.rechunk({0: x.chunks[0]}).persist()",
                "the function is called for blocks of the same rows",
            )


def _shown(rows: tuple[int, ...]) -> str:
    return ", ".join(map(str, rows[:4])) + (", …" if len(rows) > 4 else "")


def _check_counts(counts: list[int]) -> None:
    if not counts:
        raise SignatureError(
            "no argument is split into partitions",
            "(a) pass data as a Dask array, a bag or a list of delayed values or (b) call irad.value_and_grad",
            "irad.interop.dask differentiates a sum over partitions",
        )
    if len(set(counts)) > 1 or not counts[0]:
        raise SignatureError(
            f"arguments have {' and '.join(map(str, dict.fromkeys(counts)))} partitions",
            "pass data with the same number of partitions, at least one",
            "the function is called with a partition of each",
        )


# ------------------------------------------------------------------------------------------------ tasks


@dataclass(frozen=True, slots=True)
class _Call:
    """The derivative and its arguments, which all partitions share. It goes to each worker once.

    Attributes:
        derivative: the callable.
        args: with `LEAF` for what a partition has of its own.
        are_split: whether there is a `LEAF` in each of them.
        are_bags: whether what stands for each `LEAF` is the partition of a bag.
    """

    derivative: _Function
    args: tuple[Any, ...]
    are_split: tuple[bool, ...]
    are_bags: tuple[bool, ...]

    def __sizeof__(self) -> int:
        """Bytes; Dask asks for them before it sends or keeps something."""
        return int(sizeof(self.args))

    def __call__(self, *values: Any) -> Any:
        """The derivative for one partition; None for no items of a bag."""
        blocks = [
            _items(value) if is_bag else _block(value) for value, is_bag in zip(values, self.are_bags, strict=True)
        ]
        if any(is_bag and len(block) == 0 for block, is_bag in zip(blocks, self.are_bags, strict=True)):
            return None
        given = iter(blocks)
        args = [
            filled(each, given) if is_split else each for each, is_split in zip(self.args, self.are_split, strict=True)
        ]
        # Other tasks use the same memory. And memory that came from another worker may be read-only, or not: with all
        # of it read-only there is one type, and so one compilation.
        return self.derivative(*(structure.mapped(_read_only, each) for each in args))


def _read_only(part: Any) -> Any:
    if not isinstance(part, np.ndarray):
        return part
    view = part.view()
    view.flags.writeable = False
    return view


def _block(value: Any) -> Any:
    """A value as the function takes it: a number for an array without axes."""
    return value[()] if isinstance(value, np.ndarray) and not value.ndim else value


def _items(partition: Any) -> Any:
    """Items of a bag as the function takes them."""
    if not isinstance(partition, list | Iterator):
        return partition  # what `Bag.map_partitions` made of them
    items = list(partition)
    return np.asarray(items) if items and isinstance(items[0], Number | np.bool_) else items


def _evaluated(call: _Call, *values: Any) -> Any:
    return call(*values)


def _sum(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return data.recursive_map(operator.add, a, b)


def _total(result: Any) -> Any:
    if result is None:
        raise SignatureError(
            "all partitions of a bag are empty",
            "pass a bag with items",
            "without an item, the types for which to compile the function are unknown",
        )
    return result


def _graph(name: str, call: _Call, partitions: _Partitions, sent: Any = None) -> Delayed:
    """The result as a lazy value.

    Args:
        name: of its tasks, for progress bars and the dashboard.
        call: what is computed for each partition.
        partitions: the data.
        sent: the future of ``call``, if it was scattered.
    """
    token = uuid.uuid4().hex
    shared = f"{name}_arguments-{token}" if sent is None else sent.key
    tasks: dict[_Key, Any] = {each.key: each for each in partitions.futures}
    tasks[shared] = DataNode(shared, call) if sent is None else sent
    row = list[_Key]()
    for i, keys in enumerate(partitions.keys):
        row.append((f"{name}_partition-{token}", i))
        tasks[row[-1]] = Task(row[-1], _evaluated, TaskRef(shared), *map(TaskRef, keys))
    for level in itertools.count():
        if len(row) == 1:
            break
        pairs = [tuple(row[i : i + 2]) for i in range(0, len(row), 2)]
        row = [(f"{name}_sum-{token}", level, i) if len(pair) == 2 else pair[0] for i, pair in enumerate(pairs)]
        for key, pair in zip(row, pairs, strict=True):
            if len(pair) == 2:
                tasks[key] = Task(key, _sum, *map(TaskRef, pair))
    key = f"{name}-{token}"
    tasks[key] = Task(key, _total, TaskRef(row[0]))
    graph = HighLevelGraph.from_collections(key, tasks, dependencies=partitions.collections)
    return Delayed(key, graph, 2 if name.startswith("value_and_grad") else None)


def _computed(name: str, call: _Call, partitions: _Partitions) -> Any:
    """The result, computed by the scheduler that Dask is set to."""
    client = getattr(get_scheduler(), "__self__", None)  # of distributed, else None
    if client is None or sizeof(call) < _LARGE:
        return _graph(name, call, partitions).compute()
    for _ in range(_ATTEMPTS - 1):
        sent = client.scatter(call, broadcast=True, hash=False)
        try:
            return _graph(name, call, partitions, sent).compute()
        except CancelledError:
            if sent.status == "finished":
                raise
    return _graph(name, call, partitions).compute()
