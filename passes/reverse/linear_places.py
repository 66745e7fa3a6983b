"""Places whose addresses are linear in the iteration of a reversed loop, as code in front of the loop.

Input   a candidate of `increments`, what has to hold of its places.
Output  `LinearPlaces`: addresses and strides, and a check that places are apart in all iterations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.values import Value, const_int
from irad.passes.reverse.increments import Candidate, Place
from irad.passes.reverse.strides import LINEAR

_ZERO = const_int(types.I64, 0)
_ONE = const_int(types.I64, 1)


@dataclass(eq=False, slots=True)
class LinearPlaces:
    """The places of one loop.

    Attributes:
        found: the loop.
        build: in front of it.
        lowest: the first iteration that counts.
        span: how many there are after it.
        roots: addresses in that iteration.
        steps: their strides in bytes.
    """

    found: Candidate
    build: Builder
    lowest: Value
    span: Value
    roots: dict[Value, Value] = field(default_factory=dict)
    steps: dict[Value, Value] = field(default_factory=dict)
    _first: dict[Value, Value] = field(default_factory=dict)
    _second: dict[Value, Value] = field(default_factory=dict)
    _spans: dict[Place, tuple[Value, Value]] = field(default_factory=dict)

    def add(self, root: Value) -> None:
        """Computes the address and the stride of a root."""
        if root in self.roots:
            return
        strides, build = self.found.strides, self.build
        stride = strides.of(root)
        self.roots[root] = strides.emit(build, root, self.lowest, self._first)
        if stride == LINEAR:
            after = strides.emit(build, root, build.add(self.lowest, _ONE), self._second)
            self.steps[root] = build.sub(_number(build, after), _number(build, self.roots[root]))
        else:
            assert isinstance(stride, int)
            self.steps[root] = const_int(types.I64, stride)

    def apart(self, pairs: Iterable[tuple[Place, Place]]) -> list[Value]:
        """Whether the places of each pair are apart."""
        conditions, build = list[Value](), self.build
        for one, other in pairs:
            (low, high), (other_low, other_high) = self._span(one), self._span(other)
            is_before, is_behind = build.icmp("ule", high, other_low), build.icmp("ule", other_high, low)
            conditions.append(build.or_(is_before, is_behind))
        return conditions

    def goes_on_by(self, root: Value, least: int) -> Value:
        """Whether a stride has that many bytes, in whichever direction."""
        self.add(root)
        size = self.build.select(
            self.build.icmp("slt", self.steps[root], _ZERO), self.build.sub(_ZERO, self.steps[root]), self.steps[root]
        )
        return self.build.icmp("sge", size, const_int(types.I64, least))

    def _span(self, place: Place) -> tuple[Value, Value]:
        """Where the accesses of all iterations begin, and where they end."""
        if place not in self._spans:
            self.add(place.root)
            build = self.build
            start = build.add(_number(build, self.roots[place.root]), const_int(types.I64, place.offset))
            end = build.add(start, build.mul(self.span, self.steps[place.root]))
            is_up = build.icmp("ule", start, end)
            low, high = build.select(is_up, start, end), build.select(is_up, end, start)
            self._spans[place] = low, build.add(high, const_int(types.I64, place.size))
        return self._spans[place]


def _number(build: Builder, pointer: Value) -> Value:
    return build.ptrtoint(pointer, types.I64)
