"""Code for products of a Jacobian and vectors, for one array among the arguments and one that is returned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irad.api.jacobians.structure import Part
from irad.api.jacobians.writing import indented, when


@dataclass(frozen=True)
class Products:
    """Writes the code; the vectors are the rows of `irad_directions`, the products those of the result.

    Attributes:
        at: an expression for the argument.
        input: the argument.
        output: what is returned.
        written: expressions for the arrays that the function may write to.
        width: products in each run.
    """

    at: str
    input: Part
    output: Part
    written: list[str]
    width: int

    def lines(self, call: str) -> Iterator[str]:
        """The body of a function that takes the directions and then what the function takes.

        Args:
            call: its arguments, as it is called.
        """
        dtype = f"irad_np.{self.output.dtype}"
        tangents = [f"irad_tangents[{lane}]" for lane in range(self.width)]
        yield from (f"irad_copy{i} = {at}.copy()" for i, at in enumerate(self.written))
        yield f"irad_tangents = ({f'irad_shadow_like({self.at}), ' * self.width})"
        yield f"irad_products = irad_np.zeros((0, 0), {dtype})"
        yield "irad_count = irad_directions.shape[0]"
        yield f"for irad_first in range(0, irad_count, {self.width}):"
        yield from indented(when("irad_first > 0", [f"{at}[...] = irad_copy{i}" for i, at in enumerate(self.written)]))
        yield f"    for irad_lane in range(min({self.width}, irad_count - irad_first)):"
        yield "        irad_tangent = irad_tangents[irad_lane]"
        yield "        for irad_i in range(irad_tangent.size):"
        yield "            irad_tangent.flat[irad_i] = irad_directions[irad_first + irad_lane, irad_i]"
        yield f"    irad_value, irad_found = irad_push(({', '.join(f'({each}, )' for each in tangents)}, ), {call})"
        size = "irad_found[0].size" if self.output.is_array else "1"
        made = f"irad_products = irad_np.zeros((irad_count, {size}), {dtype})"
        yield from indented(when("irad_first == 0", [made]))
        yield f"    for irad_lane in range(min({self.width}, irad_count - irad_first)):"
        if self.output.is_array:
            yield "        irad_i = 0"
            yield "        for irad_number in irad_found[irad_lane].flat:"
            yield "            irad_products[irad_first + irad_lane, irad_i] = irad_number"
            yield "            irad_i += 1"
        else:
            yield "        irad_products[irad_first + irad_lane, 0] = irad_found[irad_lane]"
        yield "return irad_products"
