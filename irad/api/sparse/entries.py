"""Code that writes the entries of a sparse matrix to an array of the caller, in memory that is kept between calls.

What is differentiated is a function that writes to memory given to it, so that nothing is allocated for its results or
their derivatives. One product serves all entries of a colour, and each is stored where the plan says:

    forward mode     written(out, *args), or irad.value_and_grad_into(f) for a Hessian: tangents of out are products
    reverse mode     weighted(cotangents, *args): its gradient is a product

The scratch memory is one array of bytes, whose size follows from the arguments of each call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from llvmlite.ir import IRBuilder, Value
from numba import njit
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.registry import CPUDispatcher
from numba.core.types import Type
from numba.extending import intrinsic

from irad.api.functions import remembered
from irad.api.grad import value_and_grad_into
from irad.api.jacobians.call import Call
from irad.api.jacobians.source import indented, when
from irad.api.jacobians.structure import Part
from irad.api.jacobians.task import JacobianTask, call_of
from irad.api.makers import MAKERS, derivative_of
from irad.api.sparse.colouring import Compression
from irad.api.sparse.products import WIDTH, SparseCall
from irad.api.specialised import Written, specialised
from irad.errors import SignatureError
from irad.frontend.calls.dispatcher import INTERNAL, DerivativeDispatcher, make_wrapper, parameter_names
from irad.frontend.calls.task import Returns, Role, Seed, Task
from irad.frontend.derivation import Derivation, derivation_of
from irad.frontend.emit import INTP, Emit
from irad.frontend.generated import function_from
from irad.frontend.memory.arrays import own_tangent
from irad.frontend.memory.shadows import array_at
from irad.frontend.numba.messages import location_of
from irad.options import Options

_LEADING: Final = [f"{INTERNAL}values", f"{INTERNAL}plan", f"{INTERNAL}scratch"]
_SHARED: Final = (
    'raise irad_misfit("the array for the entries shares memory with an argument", "pass an array of its own", '
    '"the function reads its arguments while entries are written")'
)


class Plan(NamedTuple):
    """The products that a matrix is computed from, and where in them each entry is, for compiled code.

    A vector has a number for each column in forward mode, for each row in reverse mode; a product the other way round.

    Attributes:
        colours: of the numbers of a vector.
        weights: the vector of the further product that entries are compared with.
        starts: where in `entries` those of each colour begin, and where the last ones end.
        entries: a row for each entry, by colour: its position in the array of the caller; where in the product it is;
            then the number of the product that it is added to in a check, and that of the vector it is multiplied by.
        length: of a product.
        is_lower: entries above the diagonal are not stored.
        checks: compare with one more product.
    """

    colours: Any
    weights: Any
    starts: Any
    entries: Any
    length: int
    is_lower: bool
    checks: bool


Format: TypeAlias = Literal["csc", "csr", "coo"]

_SEED: Final = 20261123


@dataclass(frozen=True, slots=True)
class Layout:
    """The entries of a matrix, and their order.

    Attributes:
        format: of the matrix: by columns, by rows, or by columns with the place of each entry.
        is_lower: entries above the diagonal are left out.
    """

    format: Format
    is_lower: bool = False

    def planned(self, compression: Compression, *, checks: bool) -> tuple[Any, Any, Plan]:
        """The rows and columns of the entries, and the plan.

        Args:
            compression: of the whole matrix.
            checks: compare with one more product.
        """
        pattern = compression.pattern
        rows = pattern.indices.astype(np.int64)
        columns = np.repeat(np.arange(pattern.shape[1]), np.diff(pattern.indptr))
        order = np.lexsort((columns, rows)) if self.format == "csr" else np.lexsort((rows, columns))
        order = order[rows[order] >= columns[order]] if self.is_lower else order
        rows, columns, product, place = (
            each[order] for each in (rows, columns, compression.product, compression.place)
        )
        by_colour = np.argsort(product, kind="stable")
        starts = np.searchsorted(product[by_colour], np.arange(compression.count + 1))
        lines, across = (rows, columns) if compression.mode == "forward" else (columns, rows)
        length = pattern.shape[0 if compression.mode == "forward" else 1]
        # those of single precision, so that a vector of either precision holds the same
        weights = np.random.default_rng(_SEED).uniform(1.0, 2.0, compression.colours.size).astype(np.float32)
        entries = np.column_stack([np.arange(rows.size), place, lines, across])[by_colour]
        plan = Plan(compression.colours, weights.astype(np.float64), starts, entries, length, self.is_lower, checks)
        return rows, columns, plan

    def empty_plan(self, compression: Compression, columns: int) -> Plan:
        """A plan without products, for a run that finds out how many rows there are.

        Args:
            compression: of the whole matrix, which may have another shape.
            columns: number of columns.
        """
        rows, is_forward = compression.pattern.shape[0], compression.mode == "forward"
        size, length = (columns, rows) if is_forward else (rows, columns)
        starts, entries = np.zeros(1, np.int64), np.zeros((0, 4), np.int64)
        return Plan(np.zeros(size, np.int64), np.zeros(size), starts, entries, length, self.is_lower, False)

    def matrix(self, values: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
        """The matrix of SciPy's.

        Args:
            values: of the entries.
            rows: as `planned` returns them.
            columns: the same.
            shape: of the matrix.
        """
        from scipy import sparse  # an optional dependency

        if self.format == "coo":
            return sparse.coo_array((values, (rows, columns)), shape=shape)
        along, across = (columns, rows) if self.format == "csc" else (rows, columns)
        starts = np.searchsorted(along, np.arange(shape[1 if self.format == "csc" else 0] + 1))
        made = sparse.csc_array if self.format == "csc" else sparse.csr_array
        return made((values, across, starts), shape=shape)


@dataclass(frozen=True, slots=True)
class EntriesTask:
    """A request for entries.

    Attributes:
        kind: the name of the public function.
        is_forward: columns are computed together, and not rows.
        position: of the argument.
        through: positions of further arrays that have derivatives: results, or what they are computed from.
        has_aux: the function returns ``(value, aux)``.
        options: of the derivative.
    """

    kind: str
    is_forward: bool
    position: int
    through: tuple[int, ...]
    has_aux: bool
    options: Options

    @property
    def active(self) -> tuple[int, ...]:
        """Positions of all arguments that have derivatives."""
        return tuple(sorted({self.position, *self.through}))


def entries_of(primal: CPUDispatcher, function: CPUDispatcher, task: EntriesTask) -> DerivativeDispatcher:
    """Maps an array for the entries, a `Plan`, memory, and the arguments to a report.

    Args:
        primal: the user's function.
        function: the function that returns the results; `primal` itself for a Hessian.
        task: description of the request.

    Returns:
        A callable that returns ``(rows, line, itemsize, scratch)``, and ``aux`` after these. ``rows`` is how many
        numbers there are in the value: where the plan has another number, no entries are written. ``line`` is that of a
        product that differs from the entries, or -1. ``itemsize`` is that of the dtype of the matrix. ``scratch`` is
        the memory, or larger memory if it was too small.
    """

    def build() -> DerivativeDispatcher:
        code = _Gradients if task.kind == "sparse_hessian" else _Columns if task.is_forward else _Rows
        names = parameter_names(function.py_func)

        def write(given: tuple[Type, ...]) -> Written:
            return code(function, task, given[len(_LEADING) :]).written(given[0])

        called = specialised(task.kind, [*_LEADING, *names], write)
        body = f"irad_call({', '.join(_LEADING)}, {{arguments}})"
        wrapper = make_wrapper(task.kind, function.py_func, _LEADING, body, called)
        rebuild = (entries_of, (primal, function, task))
        return DerivativeDispatcher(
            wrapper, called, primal, task.kind, rebuild, lambda result: result, form=(task.options, None)
        )

    return remembered(function, ("entries", task), build)


# --- functions that write to memory given to them ---------------------------------------------------------------------


def _with_destination(function: CPUDispatcher, has_aux: bool, ndim: int | None) -> Any:
    """``written(out, *args)``, which writes the value to ``out``, and returns how many numbers it has."""
    lines = _for_each_number(ndim, "irad_out", "irad_out[irad_i] = irad_each")
    return _around(function, "irad_out", has_aux, ndim, ["irad_total = 0.0", *lines])


def _with_weights(function: CPUDispatcher, has_aux: bool, ndim: int | None) -> Any:
    """``weighted(cotangents, *args)``, which returns the sum of cotangents and numbers of the value, and how many."""
    lines = _for_each_number(ndim, "irad_weights", "irad_total += irad_weights[irad_i] * irad_each")
    return _around(function, "irad_weights", has_aux, ndim, ["irad_total = 0.0", *lines])


def _for_each_number(ndim: int | None, memory: str, statement: str) -> list[str]:
    """Lines that count the numbers of a value, and run a statement for each if memory has a place for each."""
    if ndim is None:
        lines = ["irad_rows = 1", f"if {memory}.size == 1:", "    irad_i, irad_each = 0, irad_value"]
        return [*lines, f"    {statement}"]
    lines = ["irad_rows = irad_value.size", f"if {memory}.size == irad_rows:"]
    if ndim == 1:  # by its index, which is faster than `flat`
        return [
            *lines,
            "    for irad_i in range(irad_rows):",
            "        irad_each = irad_value[irad_i]",
            f"        {statement}",
        ]
    lines += ["    irad_i = 0", "    for irad_each in irad_value.flat:", f"        {statement}"]
    return [*lines, "        irad_i += 1"]


def _around(function: CPUDispatcher, first: str, has_aux: bool, ndim: int | None, lines: list[str]) -> Any:
    """A function of one more argument that calls another, and returns ``(total, (rows, aux))``."""
    given = function.py_func

    def build() -> Any:
        call, aux = call_of(given), ", irad_aux" * has_aux
        returned = f"return irad_total, {'(irad_rows, irad_aux)' if has_aux else 'irad_rows'}"
        body = [f"irad_value{aux} = irad_f({call})", *lines, returned]
        source = f"def around({first}, {call}):\n" + "".join(f"    {line}\n" for line in body)
        made: Any = function_from(
            "around", source, f"irad.sparse_jacobian of {given.__qualname__}", {"irad_f": function}
        )
        made.__signature__ = inspect.signature(made)
        made.__qualname__, made.__module__, made.__wrapped__ = given.__qualname__, given.__module__, given
        return njit(nogil=bool(function.targetoptions.get("nogil")))(made)

    return remembered(function, (first, has_aux, ndim), build)


# --- what compiled code calls -----------------------------------------------------------------------------------------


@intrinsic
def _part(typing: Any, scratch: Any, start: Any, shape: Any, number: Any) -> Any:
    """An array in C order in an array of bytes, whose reference it does not take."""

    def lower(context: BaseContext, builder: IRBuilder, signature: Any, values: Sequence[Any]) -> Value:
        emit = Emit(context, builder)
        memory = emit.array(signature.args[0], values[0])
        lengths = cgutils.unpack_tuple(builder, values[2])
        strides: list[Value] = [INTP(context.get_abi_sizeof(context.get_data_type(number)))]
        for length in reversed(lengths[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        data = builder.gep(memory.data, [values[1]])
        return array_at(emit, signature.return_type, data, lengths, strides[: len(lengths)], None)

    lengths = types.UniTuple(types.intp, len(shape)) if len(shape) else shape
    return types.Array(number, len(shape), "C")(scratch, types.intp, lengths, number), lower


@njit
def _prepare(vectors: Any, products: Any, first: int, colours: Any, weights: Any, count: int) -> None:
    """Makes the vectors of some products: the numbers of a colour, or all of them with their weights."""
    for lane in range(vectors.shape[0]):
        number = first + lane
        for i in range(colours.size):
            vectors[lane, i] = weights[i] if number == count else colours[i] == number
        for i in range(products.shape[1]):
            products[lane, i] = 0.0


@njit
def _store(values: Any, products: Any, first: int, starts: Any, entries: Any) -> None:
    """Stores the entries of some products."""
    for lane in range(min(products.shape[0], starts.size - 1 - first)):
        for k in range(starts[first + lane], starts[first + lane + 1]):
            values[entries[k, 0]] = products[lane, entries[k, 1]]


@njit
def _differing(values: Any, product: Any, entries: Any, weights: Any, sums: Any, is_lower: bool, eps: float) -> int:
    """The number of a product that is not the sum of the entries, each times its weight; -1 if there is none."""
    sums[:] = 0.0
    for k in range(values.size):
        value, line, across = values[entries[k, 0]], entries[k, 2], entries[k, 3]
        sums[0, line] += value * weights[across]
        sums[1, line] += abs(value) * weights[across]
        if is_lower and line != across:
            sums[0, across] += value * weights[line]
            sums[1, across] += abs(value) * weights[line]
    largest = 0.0
    for line in range(product.size):
        largest = max(largest, sums[1, line])
    for line in range(product.size):
        bound = np.sqrt(eps) * (sums[1, line] + eps * largest)
        if np.isfinite(sums[0, line]) and not abs(product[line] - sums[0, line]) <= bound:  # others tell nothing
            return line
    return -1


# --- the code ---------------------------------------------------------------------------------------------------------


class _Entries:
    """Entries from some products in each run of a derivative.

    Args:
        function: returns the results.
        task: description of the request.
        given: the types of its arguments.

    Attributes:
        width: number of products in each run.
        expected: an expression for the number of rows of the plan.
    """

    width = WIDTH
    expected = "irad_length"

    def __init__(self, function: CPUDispatcher, task: EntriesTask, given: tuple[Type, ...]) -> None:
        self.function, self.task, self.given = function, task, given
        self._sizes: list[str] = []
        self._parts: list[str] = []

    def written(self, values: Any) -> Written:
        """The body and its global names.

        Args:
            values: the type of the array for the entries.

        Raises:
            SignatureError: there is no such matrix, or the entries do not fit the array.
            UnsupportedError: the function cannot be run again and again.
        """
        self._check_through()
        self._check(values)
        arrays = [at for at in self.derived.arrays if not self._is_own(at)]
        self._part("irad_vectors", self.vector_dtype, self.width, "irad_colours.size")
        self._part("irad_products", self.dtype, self.width, "irad_length")
        self._part("irad_sums", "float64", 2, "irad_length")
        saved = [*self._saved()]
        run = list(self.run())  # names the remaining parts
        eps = max(float(np.finfo(each).eps) for each in (self.dtype, self.vector_dtype))
        checked = "irad_entries, irad_weights, irad_sums, irad_is_lower"
        body = [
            f"{', '.join(f'irad_{each}' for each in Plan._fields)} = irad_plan",
            *when(" or ".join(f"irad_share_memory(irad_values, {at})" for at in arrays), [_SHARED]),
            "irad_end = 0",
            *self._sizes,
            *when("irad_scratch.size < irad_end", ["irad_scratch = irad_np.empty(irad_end, irad_np.uint8)"]),
            *self._parts,
            *(f"{copy}[...] = {at}" for copy, at in saved),
            "irad_line, irad_first, irad_count = -1, 0, irad_starts.size - 1",
            "while True:",
            *indented(when("irad_first > 0", [f"{at}[...] = {copy}" for copy, at in saved])),
            "    irad_prepare(irad_vectors, irad_products, irad_first, irad_colours, irad_weights, irad_count)",
            *indented(run),
            *indented(when(f"irad_rows != {self.expected}", ["break"])),
            "    irad_store(irad_values, irad_products, irad_first, irad_starts, irad_entries)",
            f"    irad_first += {self.width}",
            "    if irad_first >= irad_count + int(irad_checks):",
            "        if irad_checks:",
            f"            irad_product = irad_products[irad_count - irad_first + {self.width}]",
            f"            irad_line = irad_differing(irad_values, irad_product, {checked}, {eps!r})",
            "        break",
            f"return irad_rows, irad_line, {np.dtype(self.dtype).itemsize}, irad_scratch"
            + ", irad_aux" * self.task.has_aux,
        ]
        scope = {
            "irad_part": _part,
            "irad_prepare": _prepare,
            "irad_store": _store,
            "irad_differing": _differing,
            "irad_own": own_tangent,
        }
        return self.derived.code(body, {**scope, **self.scope})

    def _check_through(self) -> None:
        arguments = Call(self.function, self._jacobian((self.task.position,)), self.given).arguments
        for each in self.task.through:
            kind = arguments[each].type
            if not isinstance(kind, types.Array) or not isinstance(kind.dtype, types.Float):
                raise SignatureError(
                    f"argument {each} of {self.function.py_func.__qualname__}, named by work= or outputs=, is {kind}",
                    "name arrays of floats",
                    "irad keeps memory for the derivatives of these arrays",
                    location_of(self.function.py_func),
                )

    def _check(self, values: Any) -> None:
        if isinstance(values.dtype, types.Float) and values.dtype.bitwidth >= 8 * np.dtype(self.dtype).itemsize:
            return
        raise SignatureError(
            f"entries of irad.{self.task.kind} of {self.function.py_func.__qualname__} are to be written to an array "
            f"of {values.dtype}",
            f"pass an array of {self.dtype}",
            "the entries would lose precision",
            location_of(self.function.py_func),
        )

    # ---------------------------------------------------------------------------------- what each kind says of itself

    @cached_property
    def derived(self) -> Call:
        """A function with memory for results, or cotangents, before the arguments of the user: it is differentiated."""
        raise NotImplementedError

    @property
    def vector_dtype(self) -> str:
        """The dtype of vectors."""
        raise NotImplementedError

    @property
    def dtype(self) -> str:
        """The dtype of products, and so of the entries."""
        raise NotImplementedError

    @cached_property
    def derivation(self) -> Derivation:
        """That of the derivative that is called."""
        return self.derived.derivation

    @property
    def scope(self) -> dict[str, object]:
        """The derivative that is called, by name."""
        return {"irad_push": self.derived.push}

    def run(self) -> Iterator[str]:
        """A call of the derivative, which gives `irad_rows` its value, and `irad_aux`."""
        raise NotImplementedError

    # -------------------------------------------------------------------------------------------------- arguments

    @cached_property
    def _base(self) -> Call:
        """The function that returns the results."""
        task = self.task
        call = SparseCall(self.function, self._jacobian((task.position,), has_aux=task.has_aux), self.given)
        call.check_types()
        return call

    def _jacobian(self, argnums: tuple[int, ...], *, has_aux: bool = True) -> JacobianTask:
        return JacobianTask("jacobian", argnums, False, WIDTH, None, has_aux, self.task.options)

    @cached_property
    def leading(self) -> int:
        """The number of parameters for memory before the arguments of the user."""
        return 1

    def _made_from(self, made: Any, leading: Sequence[Any], argnums: Sequence[int], *, has_aux: bool = True) -> Call:
        """A function that calls the user's; messages are about that.

        Args:
            made: the function.
            leading: types of what precedes the user's arguments.
            argnums: as those of a Jacobian.
            has_aux: the function returns ``(value, aux)``.
        """
        call = SparseCall(made, self._jacobian(tuple(argnums), has_aux=has_aux), (*leading, *self.given))
        call.function = self.function.py_func
        return call

    @property
    def _call(self) -> str:
        return call_of(self.function.py_func)

    def _is_own(self, at: str) -> bool:
        """True of memory for results, or cotangents, which precedes the arguments of the user."""
        return at.partition("[")[0] in self.derived.parameters[: self.leading]

    def _at(self, position: int) -> str:
        return self.derived.names[self.leading + position]

    def _type(self, position: int) -> Any:
        return self.derived.arguments[self.leading + position].type

    @cached_property
    def _others(self) -> list[int]:
        """Arguments that results pass through; those that are not arrays are refused where they are returned."""
        return [each for each in self.task.active if each != self.task.position]

    # ----------------------------------------------------------------------------------------------------- memory

    def _part(self, name: str, dtype: str, lanes: int, count: str) -> None:
        """Adds an array of two dimensions in the scratch memory."""
        self._sizes += [
            f"irad_at_{name} = irad_end",
            f"irad_end += ({lanes} * {count} * {np.dtype(dtype).itemsize} + 63) // 64 * 64",
        ]
        kind = "bool_" if dtype == "bool" else dtype
        self._parts.append(f"{name} = irad_part(irad_scratch, irad_at_{name}, ({lanes}, {count}), irad_np.{kind}(0))")

    def _lane(self, name: str, lane: int, position: int) -> str:
        """A row of an array in the scratch memory, with the shape of an argument."""
        return self._shaped(name, lane, self._at(position), self._type(position))

    @staticmethod
    def _shaped(name: str, lane: int, at: str, kind: Any) -> str:
        if kind.ndim == 1:
            return f"{name}[{lane}]"
        dtype = "bool_" if kind.dtype == types.boolean else str(kind.dtype)
        start = f"irad_at_{name} + {lane} * {at}.size * {at}.itemsize"
        return f"irad_part(irad_scratch, {start}, {at}.shape, irad_np.{dtype}(0))"

    def _saved(self) -> Iterator[tuple[str, str]]:
        """Copies of the arrays that are restored before each run, and these."""
        for i, (at, kind) in enumerate(self.derived.written(self.derivation)):
            if self._is_own(at):
                continue
            if isinstance(kind.dtype, types.Number | types.Boolean):
                self._part(f"irad_copy{i}", str(kind.dtype), 1, f"{at}.size")
                copy = self._shaped(f"irad_copy{i}", 0, at, kind)
            else:
                copy = f"{at}.copy()"
            self._parts.append(f"irad_saved{i} = {copy}")
            yield f"irad_saved{i}", at


class _Columns(_Entries):
    """Entries by forward mode."""

    @cached_property
    def derived(self) -> Call:
        """The function that writes its results to memory."""
        output = self._base.structure.outputs[0]
        made = _with_destination(self.function, self.task.has_aux, output.type.ndim if output.is_array else None)
        argnums = (0, *(1 + each for each in self.task.active))
        return self._made_from(made, [_vector_of(output)], argnums)

    @property
    def vector_dtype(self) -> str:
        """That of the argument."""
        return str(self._type(self.task.position).dtype)

    @property
    def dtype(self) -> str:
        """That of the value."""
        return str(self._base.structure.outputs[0].dtype)

    def run(self) -> Iterator[str]:
        """Products with some vectors."""
        self._part("irad_results", self.dtype, 1, "irad_length")
        yield from self._others_cleared()
        yield from self._pushed("irad_results[0]", lambda lane: f"irad_products[{lane}]", "irad_found")
        yield f"irad_rows{', irad_aux' * self.task.has_aux} = irad_found"

    def _others_cleared(self) -> Iterator[str]:
        """Makes tangents of further arrays, which are zero before each run."""
        for each in self._others:
            self._part(f"irad_other{each}", str(self._type(each).dtype), self.width, f"{self._at(each)}.size")
            yield f"irad_other{each}[...] = 0"

    def _pushed(self, results: str, product: Callable[[int], str], aux: str) -> Iterator[str]:
        """The call of the pushforward.

        Args:
            results: memory for these.
            product: from a lane to memory for the tangents of the results.
            aux: auxiliary output; empty if there is none.
        """

        def tangent(position: int, lane: int) -> str:
            at, kind = self._at(position), self._type(position)
            name = "irad_vectors" if position == self.task.position else f"irad_other{position}"
            given = self._lane(name, lane, position)
            return given if kind.layout == "C" else f"irad_own({given}, {at})"

        lanes = (
            _tuple([product(lane), *(tangent(each, lane) for each in self.task.active)]) for lane in range(self.width)
        )
        found = f"irad_value, irad_slope, {aux}" if aux else "irad_value, irad_slope"
        yield f"{found} = irad_push({_tuple(lanes)}, {results}, {self._call})"


class _Gradients(_Columns):
    """Entries of a Hessian: the gradient is the result, and is written to memory as it is."""

    @cached_property
    def derived(self) -> Call:
        """The gradient."""
        task = self.task
        of_function = SparseCall(self.function, self._jacobian((task.position,)), self.given)
        kind = of_function.arguments[task.position].type
        if not isinstance(kind, types.Array) or not isinstance(kind.dtype, types.Float):
            raise of_function.no_matrix()
        kinds = [of_function.arguments[each].type for each in task.active]
        out: list[Any] = [types.Array(each.dtype, each.ndim, "C") for each in kinds]
        self._is_in_place = len(kinds) > 1 and all(each.layout == "C" for each in kinds)
        if self._is_in_place:
            gradient = _added_gradient(self.function, task.active, task.options, has_aux=task.has_aux)
        else:
            gradient = value_and_grad_into(self.function, task.active, task.has_aux, options=task.options)
            out = [types.Tuple(out)]
        argnums = (*range(len(out)), *(len(out) + each for each in task.active))
        return self._made_from(gradient, out, argnums, has_aux=task.has_aux)

    @cached_property
    def leading(self) -> int:
        """One for each array, or one for all."""
        return len(self.derived.parameters) - len(self.given)

    @property
    def dtype(self) -> str:
        """That of the argument."""
        return self.vector_dtype

    def run(self) -> Iterator[str]:
        """Products of the Hessian and some vectors."""
        yield from self._others_cleared()
        position = self.task.position
        for each in self.task.active:
            at, dtype = self._at(each), str(self._type(each).dtype)
            self._part(f"irad_gradient{each}", dtype, 1, f"{at}.size")
            if each != position:
                self._part(f"irad_slope{each}", dtype, self.width, f"{at}.size")

            if self._is_in_place:  # added to
                yield f"irad_gradient{each}[...] = 0"
                yield from [f"irad_slope{each}[...] = 0"] * (each != position)

        def product(lane: int) -> str:
            names = {each: f"irad_slope{each}" for each in self._others} | {position: "irad_products"}
            return self._together(self._lane(names[each], lane, each) for each in self.task.active)

        gradients = self._together(self._lane(f"irad_gradient{each}", 0, each) for each in self.task.active)
        yield from self._pushed(gradients, product, "irad_aux" * self.task.has_aux)
        yield f"irad_rows = {self._at(position)}.size"

    def _together(self, arrays: Iterable[str]) -> str:
        return ", ".join(arrays) if self._is_in_place else _tuple(arrays)


class _Rows(_Entries):
    """Entries by reverse mode, with a product in each run: rules that users wrote take no more."""

    width = 1
    expected = "irad_colours.size"

    @cached_property
    def derived(self) -> Call:
        """The function whose gradient is a product."""
        output = self._base.structure.outputs[0]
        made = _with_weights(self.function, self.task.has_aux, output.type.ndim if output.is_array else None)
        argnums = tuple(1 + each for each in self.task.active)
        return self._made_from(made, [_vector_of(output)], argnums)

    @cached_property
    def _is_in_place(self) -> bool:
        """True if products are computed where they are read; else they have the strides of the argument first."""
        return all(self._type(each).layout == "C" for each in self.task.active)

    @cached_property
    def _gradient(self) -> Any:
        primal, argnums, options = self.derived.primal, self.derived.task.argnums, self.task.options
        if self._is_in_place:
            return _added_gradient(primal, argnums, options)
        return value_and_grad_into(primal, argnums, True, options=options)

    @cached_property
    def derivation(self) -> Derivation:
        """That of the gradient."""
        return derivation_of(self.derived.primal, self.derived.argument_types, self._gradient.task)

    @property
    def scope(self) -> dict[str, object]:
        """The gradient, by name."""
        return {"irad_into": self._gradient}

    @property
    def vector_dtype(self) -> str:
        """That of the value."""
        return str(self._base.structure.outputs[0].dtype)

    @property
    def dtype(self) -> str:
        """That of the argument."""
        return str(self._type(self.task.position).dtype)

    def run(self) -> Iterator[str]:
        """The product of the transpose and a vector."""
        for each in self._others:
            self._part(f"irad_other{each}", str(self._type(each).dtype), 1, f"{self._at(each)}.size")
            yield f"irad_other{each}[...] = 0"
        names = {each: f"irad_other{each}" for each in self._others} | {self.task.position: "irad_products"}
        shadows = [self._lane(names[each], 0, each) for each in self.task.active]
        out = ", ".join(shadows) if self._is_in_place else _tuple(shadows)
        yield f"irad_value, irad_found = irad_into({out}, irad_vectors[0], {self._call})"
        yield f"irad_rows{', irad_aux' * self.task.has_aux} = irad_found"


def _added_gradient(primal: Any, argnums: tuple[int, ...], options: Options, *, has_aux: bool = True) -> Any:
    """The gradient, added to shadows, one for each argument, that are passed first; with no buffer in between.

    Where one of several arguments is written to, `value_and_grad_into` computes in buffers, which it allocates.
    """

    def build() -> Any:
        roles = tuple((each, Role.SHADOW) for each in argnums)
        task = Task(roles, Seed.ONE, Returns.VALUE, has_aux=has_aux, lends_shadows=True, options=options)
        rebuild = partial(_added_gradient, has_aux=has_aux), (primal, argnums, options)
        return derivative_of(MAKERS["autodiff"], primal, task, rebuild)

    return remembered(primal, ("added gradient", argnums, options, has_aux), build)


def _vector_of(output: Part) -> Any:
    """The type of a vector of the numbers that are returned."""
    return types.Array(getattr(output.type, "dtype", output.type), 1, "C")


def _tuple(items: Iterable[str]) -> str:
    return f"({''.join(f'{each}, ' for each in items)})"
