"""One function to differentiate, with everything the analyses find out about it, pass by pass."""

from __future__ import annotations

from dataclasses import field

from irad.ir.cfg import ControlFlow, control_flow
from irad.ir.dominance import DominatorTree, dominators
from irad.ir.loops import LoopNest, loop_nest
from irad.ir.module import Block, Function, Module
from irad.ir.values import Parameter
from irad.passes.analysis.activity import Activity
from irad.passes.analysis.effects import Effects
from irad.passes.memory.memory_types import MemoryTypes
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.objects import PointsTo
from irad.passes.parallel.modes import Sharing
from irad.passes.parallel.ownership import ThreadAddresses
from irad.passes.program import Program
from irad.passes.request import MemoryType, ParameterKind
from irad.passes.variant import Variant
from irad.records import dataclass
from irad.ruleset.registry import Registry


@dataclass(eq=False, repr=False, slots=True)  # one of all that it holds would have no end
class Unit:
    """A function in normal form and the results of its analyses, each set by its pass (`irad.passes.pipeline`).

    Attributes:
        program: that it is a part of.
        variant: the variant of the function.
        kinds: roles of its parameters.
        memory: memory that its parameters point to.
        unneeded: parameters whose memory the caller does not read afterwards.
        workspace: constant parameters whose memory may have a shadow.
        everything: all memory counts as active, as for the oracle.
        kept: allocations that may be kept until the reverse sweep has ended, as a mask.
        sharing: of a lane: how lanes share shadows.
        meetings: of a kernel: where its threads meet.
    """

    program: Program
    variant: Variant
    kinds: dict[Parameter, ParameterKind] = field(init=False)
    memory: dict[Parameter, MemoryType | None] = field(init=False)
    unneeded: frozenset[Parameter] = frozenset()
    workspace: frozenset[Parameter] = frozenset()
    cfg: ControlFlow = field(init=False)
    dominators: DominatorTree = field(init=False)
    loops: LoopNest = field(init=False)
    mod_ref: ModRef = field(init=False)
    memory_types: MemoryTypes = field(init=False)
    kept: int = 0
    effects: Effects = field(init=False)
    activity: Activity = field(init=False)
    everything: bool = False
    live: frozenset[Block] = field(init=False)
    sharing: Sharing | None = None
    meetings: ThreadAddresses = field(default_factory=ThreadAddresses)

    def __post_init__(self) -> None:
        params, request = self.function.params, self.program.request
        self.kinds = dict(zip(params, self.variant.kinds, strict=True))
        self.memory = dict(zip(params, self.variant.memory, strict=True))
        if self.variant.is_entry:
            self.unneeded = frozenset(params[i] for i in request.unneeded)
            self.workspace = frozenset(params[i] for i in request.workspace)
        self.find_loops()

    def find_loops(self) -> None:
        """Finds the blocks and loops of the primal; again where a pass has changed them."""
        self.cfg = control_flow(self.function)
        self.dominators = dominators(self.cfg)
        self.loops = loop_nest(self.cfg, self.dominators)

    @property
    def function(self) -> Function:
        """The primal."""
        return self.variant.function

    @property
    def module(self) -> Module:
        """Module of the primal."""
        return self.program.module

    @property
    def registry(self) -> Registry:
        """The rules."""
        return self.program.registry

    @property
    def points_to(self) -> PointsTo:
        """Targets of the pointers of the primal."""
        return self.mod_ref.points_to

    @property
    def shadowable(self) -> frozenset[Parameter]:
        """The parameters whose memory may have a shadow."""
        return frozenset(
            param
            for param, kind in self.kinds.items()
            if kind is ParameterKind.SHADOW or (self.variant.is_entry and _has_floats(self.memory[param]))
        )

    def kind(self, param: Parameter) -> ParameterKind:
        """Kind of a parameter."""
        return self.kinds[param]


def _has_floats(memory: MemoryType | None) -> bool:
    return memory is not None and bool(memory.floats())
