"""Code for products of a Jacobian and vectors, for one array among the arguments and one value that is returned.

All take vectors, as the rows of an array, and then what the function takes, and return products as the rows of
another: `forward` J·v, `reverse` Jᵀ·v, and `sets`, whose vectors and products are sets of inputs
(`irad.api.forward.dependence`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, Literal, TypeAlias

from numba.core.registry import CPUDispatcher
from numba.core.types import Type

from irad.api.forward import dependence
from irad.api.functions import remembered
from irad.api.jacobians import source
from irad.api.jacobians.call import Call
from irad.api.jacobians.source import indented, when
from irad.api.jacobians.structure import Part
from irad.api.jacobians.task import JacobianTask
from irad.api.specialised import Written, specialised
from irad.errors import SignatureError
from irad.frontend.calls.dispatcher import INTERNAL, DerivativeDispatcher, make_wrapper, parameter_names
from irad.frontend.memory.arrays import shadow_like
from irad.frontend.numba.messages import location_of
from irad.options import Options

Product: TypeAlias = Literal["forward", "reverse", "sets"]

WIDTH: Final = 4
"""Directions in each run of forward mode."""


def products_of(
    kind: str, product: Product, primal: CPUDispatcher, position: int, has_aux: bool, options: Options
) -> DerivativeDispatcher:
    """From vectors and the arguments of a function to ``(rows, products)``, or ``(rows, products, aux)``.

    Args:
        kind: the name of the public function that asks.
        product: which, see above.
        primal: a dispatcher.
        position: of the argument.
        has_aux: the function returns ``(value, aux)``.
        options: of the derivative.

    Returns:
        A callable. ``rows`` is how many numbers the value has; there are no products of vectors that do not fit it.
    """
    task = JacobianTask("jacobian", (position,), True, WIDTH, None, has_aux, options)
    function = primal.py_func
    vectors = f"{INTERNAL}directions"

    def build() -> DerivativeDispatcher:
        def write(argument_types: tuple[Type, ...]) -> Written:
            return _CALLS[product](primal, task, argument_types[1:]).products()

        called = specialised(kind, [vectors, *parameter_names(function)], write)
        wrapper = make_wrapper(kind, function, [vectors], f"irad_call({vectors}, {{arguments}})", called)
        rebuild = (products_of, (kind, product, primal, position, has_aux, options))
        return DerivativeDispatcher(wrapper, called, primal, kind, rebuild, lambda result: result, form=(options, None))

    return remembered(primal, (kind, product, task), build)


class SparseCall(Call):
    """A Jacobian of one array with respect to another."""

    repetition = "its sparse Jacobian is computed in several runs"

    def check_types(self) -> None:
        """Checks that the Jacobian is one matrix of floats.

        Raises:
            SignatureError: it is not.
        """
        structure = self.structure
        parts = [*structure.inputs, *structure.outputs]
        if len(parts) != 2 or not structure.inputs[0].is_array or any(part.is_complex or part.path for part in parts):
            raise self.no_matrix()

    def no_matrix(self) -> SignatureError:
        """The error of a Jacobian that is not one matrix of floats."""
        return SignatureError(
            f"the Jacobian of {self.function.__qualname__} for these arguments is not one matrix of floats",
            "(a) pass an array of floats to a function that returns one or (b) irad.jacobian",
            "a sparse matrix has a row for each number returned and a column for each number of one argument",
            location_of(self.function),
        )


class _Forward(SparseCall):
    """Products with the Jacobian, some in each run."""

    def products(self) -> Written:
        """Code of the products."""
        self.check_types()
        return self.code(self._lines(), {"irad_push": self.push, "irad_shadow_like": shadow_like})

    @property
    def _input(self) -> Part:
        return self.structure.inputs[0]

    @property
    def _output(self) -> Part:
        return self.structure.outputs[0]

    @property
    def _array(self) -> str:
        return self._input.of(self.names[self._input.position])

    @property
    def _result(self) -> str:
        return "return irad_rows, irad_products" + ", irad_aux" * self.task.has_aux

    def _lines(self) -> Iterator[str]:
        written, width, aux = self.restored(), self.width, ", irad_aux" * self.task.has_aux
        dtype, size = f"irad_np.{self._output.dtype}", "irad_found[0].size" if self._output.is_array else "1"
        tangents = "".join(f"(irad_tangents[{lane}], ), " for lane in range(width))
        # Each run begins with the arrays as they were, for the function overwrites them.
        yield from (f"irad_copy{i} = {at}.copy()" for i, at in enumerate(written))
        yield f"irad_tangents = ({f'irad_shadow_like({self._array}), ' * width})"
        yield f"irad_products = irad_np.zeros((0, 0), {dtype})"
        yield "irad_count, irad_first, irad_rows = irad_directions.shape[0], 0, 0"
        yield "while True:"
        yield from indented(when("irad_first > 0", [f"{at}[...] = irad_copy{i}" for i, at in enumerate(written)]))
        yield from indented(_lanes(width, [*_filled("irad_tangents[irad_lane]")]))
        yield f"    irad_value, irad_found{aux} = irad_push(({tangents}), {self.call})"
        yield "    if irad_first == 0:"
        yield f"        irad_rows = {size}"
        yield f"        irad_products = irad_np.zeros((irad_count, irad_rows), {dtype})"
        yield from indented(_lanes(width, [*_taken(self._output, "irad_found[irad_lane]")]))
        yield f"    irad_first += {width}"
        yield "    if irad_first >= irad_count:"
        yield "        break"
        yield self._result


class _Sets(_Forward):
    """Sets of the vectors that each number of the value depends on, in one run for each row of sets."""

    @cached_property
    def push(self) -> DerivativeDispatcher:
        """Sets in place of tangents."""
        found: DerivativeDispatcher = dependence(
            self.primal, self.task.argnums, self.task.has_aux, options=self.task.options
        )
        return found

    @cached_property
    def width(self) -> int:
        """One row of sets."""
        return 1


class _Reverse(_Forward):
    """Products with the transpose, one in each reverse sweep: rules that users wrote take no more."""

    @property
    def row_width(self) -> int:
        """One cotangent."""
        return 1

    def products(self) -> Written:
        """Code of the products."""
        self.check_types()
        scope, derivation = self.reverse()
        self.check_repeats(derivation)
        return self.code(self._lines(), scope)

    def _lines(self) -> Iterator[str]:
        output, has_aux, at = self._output, self.task.has_aux, self._array
        seed = "irad_cotangent" if output.is_array else "irad_cotangent[0]"
        shape, size = ("irad_value.shape", "irad_value.size") if output.is_array else ("1", "1")
        yield from source.forward_sweep(self.call, ", ".join(self.parameters), has_aux)
        yield f"irad_rows = {size}"
        yield "irad_count = irad_directions.shape[0] if irad_directions.shape[1] == irad_rows else 0"
        yield f"irad_cotangent = irad_np.zeros({shape}, irad_np.{output.dtype})"
        yield f"irad_products = irad_np.zeros((irad_count, {at}.size), irad_np.{self._input.dtype})"
        yield "for irad_row in range(irad_count):"
        yield from indented(_filled("irad_cotangent"))
        yield f"    irad_found = irad_pullback(({f'({seed}, None)' if has_aux else seed}, ))"
        yield from indented(_taken(self._input, f"irad_found[{self._input.position}][0]"))
        yield self._result


_CALLS: Final[dict[Product, type[_Forward]]] = {"forward": _Forward, "reverse": _Reverse, "sets": _Sets}


def _lanes(width: int, lines: Iterable[str]) -> Iterator[str]:
    """Does something for each vector of a run; the last one may have fewer."""
    yield f"for irad_lane in range(min({width}, irad_count - irad_first)):"
    yield "    irad_row = irad_first + irad_lane"
    yield from indented(lines)


def _filled(into: str) -> Iterator[str]:
    """Takes a vector as a tangent or cotangent."""
    yield f"irad_vector = {into}"
    yield "for irad_i in range(irad_vector.size):"
    yield "    irad_vector.flat[irad_i] = irad_directions[irad_row, irad_i]"


def _taken(part: Part, found: str) -> Iterator[str]:
    """Stores a product."""
    if not part.is_array:
        yield f"irad_products[irad_row, 0] = {found}"
        return
    yield "irad_i = 0"
    yield f"for irad_number in {found}.flat:"
    yield "    irad_products[irad_row, irad_i] = irad_number"
    yield "    irad_i += 1"
