"""The public names of irad. This is what `irad.lazy` reads, so each name is written once."""

from irad import (
    cuda as cuda,
    data as data,
    implicit as implicit,
    integrate as integrate,
    interop as interop,
    interpolate as interpolate,
    nn as nn,
    ode as ode,
    rules as rules,
    sparse_linalg as sparse_linalg,
    testing as testing,
)
from irad.api.annotations import (
    Active as Active,
    BatchDuplicated as BatchDuplicated,
    BatchDuplicatedNoNeed as BatchDuplicatedNoNeed,
    BatchMixedDuplicated as BatchMixedDuplicated,
    Cache as Cache,
    Const as Const,
    Constant as Constant,
    Duplicated as Duplicated,
    DuplicatedNoNeed as DuplicatedNoNeed,
    Forward as Forward,
    ForwardWithPrimal as ForwardWithPrimal,
    MixedDuplicated as MixedDuplicated,
    Reverse as Reverse,
    ReverseSplit as ReverseSplit,
    ReverseSplitWithPrimal as ReverseSplitWithPrimal,
    ReverseWithPrimal as ReverseWithPrimal,
    shadow_like as shadow_like,
)
from irad.api.autodiff import autodiff as autodiff
from irad.api.checkpoint import (
    checkpoint as checkpoint,
    checkpoint_loop as checkpoint_loop,
    checkpoint_while as checkpoint_while,
)
from irad.api.custom.decorators import (
    custom_jvp as custom_jvp,
    custom_vjp as custom_vjp,
)
from irad.api.forward import (
    jvp as jvp,
    pushforward as pushforward,
)
from irad.api.grad import (
    grad as grad,
    value_and_grad as value_and_grad,
    value_and_grad_into as value_and_grad_into,
)
from irad.api.hessians import (
    hessian as hessian,
    hessian_into as hessian_into,
    hvp as hvp,
    hvp_and_grad as hvp_and_grad,
    hvp_and_grad_into as hvp_and_grad_into,
    hvp_into as hvp_into,
)
from irad.api.jacobians.jacobian import (
    jacobian as jacobian,
    value_and_jacobian as value_and_jacobian,
    value_and_jacobian_into as value_and_jacobian_into,
)
from irad.api.jit import jit as jit
from irad.api.linearize import linearize as linearize
from irad.api.sparse.matrices import sparse_hessian as sparse_hessian, sparse_jacobian as sparse_jacobian
from irad.api.split import split as split
from irad.api.taylor import jet as jet, taylor as taylor
from irad.api.vjp import vjp as vjp
from irad.backend.runtime.support import release_memory as release_memory
from irad.c_library.export import export as export
from irad.errors import (
    ActivityError as ActivityError,
    BackendError as BackendError,
    BarrierError as BarrierError,
    BoundsError as BoundsError,
    ChangedBufferError as ChangedBufferError,
    ChangedBufferWarning as ChangedBufferWarning,
    ChangedProgramError as ChangedProgramError,
    IntegrationWarning as IntegrationWarning,
    InternalError as InternalError,
    IradError as IradError,
    KernelBoundsError as KernelBoundsError,
    KernelError as KernelError,
    NonFiniteError as NonFiniteError,
    NonFiniteWarning as NonFiniteWarning,
    NoRuleError as NoRuleError,
    ParseError as ParseError,
    PlanError as PlanError,
    RaceError as RaceError,
    RuleError as RuleError,
    SignatureError as SignatureError,
    TapeLimitError as TapeLimitError,
    TieWarning as TieWarning,
    UnsupportedError as UnsupportedError,
    UnsupportedProgram as UnsupportedProgram,
    UntestedVersionWarning as UntestedVersionWarning,
    UsedTapeError as UsedTapeError,
)
from irad.frontend.custom.stop_gradient import (
    ignore_derivatives as ignore_derivatives,
    stop_gradient as stop_gradient,
    within_autodiff as within_autodiff,
)
from irad.options import Options as Options
from irad.report.check import check as check
from irad.report.inspection import (
    Inspection as Inspection,
    inspect as inspect,
)
from irad.report.results import (
    CheckReport as CheckReport,
    TapeReport as TapeReport,
)
from irad.report.tape_report import tape_report as tape_report

__version__: str
__all__: list[str]
