"""One function to differentiate, with everything the analyses found out about it.

A `Variant` names what is wanted of a function: which parameters take part and how. The same function may be wanted in
several variants; each becomes a pair of functions, the augmented primal and its reverse.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from irad.ir import types
from irad.ir.cfg import ControlFlow
from irad.ir.dominance import DominatorTree
from irad.ir.loops import LoopNest
from irad.ir.module import Block, Function, Module
from irad.ir.types import FunctionType
from irad.ir.values import Parameter
from irad.passes.activity import Activity
from irad.passes.effects import Effects
from irad.passes.memory_types import MemoryTypes
from irad.passes.objects import PointsTo
from irad.passes.parallel.modes import Sharing
from irad.passes.request import MemoryType, ParameterKind
from irad.passes.signatures import Signatures
from irad.ruleset.registry import Registry


@dataclass(frozen=True, slots=True)
class Variant:
    """A function together with the activity of its parameters and of its result; ``memory`` is what they point to.

    Attributes:
        is_lane: of the function of a parallel loop, what one lane does rather than all of them.
        stays: parameters whose memory stays as it is until the reverse sweep, but for what the function itself writes.
        apart: pairs of parameters whose memory does not overlap.
        overwritten: of a function whose pair comes from outside, parameters whose memory may change before the reverse.
        result_is_read: of such a function, whether the primal's value is used, other than linearly.
        unneeded: of such a function, parameters whose memory is not read after the call.
    """

    function: Function
    kinds: tuple[ParameterKind, ...]
    memory: tuple[MemoryType | None, ...]
    result_active: bool
    result_has_shadow: bool
    is_entry: bool = False
    is_lane: bool = False
    stays: frozenset[int] = frozenset()
    apart: frozenset[tuple[int, int]] = frozenset()
    overwritten: frozenset[int] = frozenset()
    result_is_read: bool = True
    unneeded: frozenset[int] = frozenset()

    @property
    def function_type(self) -> FunctionType:
        """Of the primal."""
        return self.function.function_type


@dataclass(frozen=True, slots=True)
class PointerVariant:
    """What a call through a pointer needs of the function there: as `Variant`, of some function of that type.

    ``by_value``: memory with a shadow lies behind pointers in an aggregate that is passed or returned. No pair can be
    had for that. It is no reason to refuse the program: Numba's function values have another entry, without aggregates,
    and code that chooses the one that is there.
    """

    function_type: FunctionType
    kinds: tuple[ParameterKind, ...]
    memory: tuple[MemoryType | None, ...]
    result_active: bool
    result_has_shadow: bool
    by_value: bool = False

    @property
    def shadows(self) -> tuple[int, ...]:
        """Indices of the parameters that come with a shadow."""
        return shadowed(self.kinds)


@dataclass(eq=False, slots=True)
class Unit:
    """A function in normal form and the results of its analyses.

    ``sharing`` is that of a lane; ``unneeded`` are parameters whose memory the caller does not read afterwards;
    ``workspace`` constant ones whose memory may have a shadow.
    """

    module: Module
    function: Function
    variant: Variant
    registry: Registry
    points_to: PointsTo
    memory_types: MemoryTypes
    activity: Activity
    cfg: ControlFlow
    dominators: DominatorTree
    loops: LoopNest
    live: frozenset[Block]
    effects: Effects
    everything: bool
    strict: bool
    zero_wins: bool = False
    signatures: Signatures = field(default_factory=dict)
    has_types: bool = False
    sharing: Sharing | None = None
    unneeded: frozenset[Parameter] = frozenset()
    workspace: frozenset[Parameter] = frozenset()

    def kind(self, param: Parameter) -> ParameterKind:
        """How a parameter takes part."""
        return self.variant.kinds[self.function.params.index(param)]


def shadowed(kinds: tuple[ParameterKind, ...]) -> tuple[int, ...]:
    """The parameters that get a shadow."""
    return tuple(i for i, kind in enumerate(kinds) if kind is ParameterKind.SHADOW)


def augmented_type(variant: Variant | PointerVariant, shadows: tuple[int, ...]) -> FunctionType:
    """Type of the augmented primal."""
    result = variant.function_type.result
    if variant.result_has_shadow:
        result = types.struct_type([result, types.PTR])
    params = [types.PTR, types.PTR, *variant.function_type.params, *(types.PTR for _ in shadows)]
    return types.function_type(result, params)


def reverse_type(variant: Variant | PointerVariant) -> FunctionType:
    """Type of the reverse."""
    result = variant.function_type.result
    seeds = [result] if variant.result_active else []
    outs = [types.PTR for kind in variant.kinds if kind is ParameterKind.ACTIVE]
    return types.function_type(types.VOID, [types.PTR, types.PTR, *seeds, *outs])
