"""The public names of irad. This is what `irad.lazy` reads, so each name is written once."""

from irad import (
    rules as rules,
)
from irad import (
    testing as testing,
)
from irad.api.annotate import (
    Active as Active,
)
from irad.api.annotate import (
    Const as Const,
)
from irad.api.annotate import (
    Duplicated as Duplicated,
)
from irad.api.annotate import (
    DuplicatedNoNeed as DuplicatedNoNeed,
)
from irad.api.annotate import (
    MixedDuplicated as MixedDuplicated,
)
from irad.api.annotate import (
    Reverse as Reverse,
)
from irad.api.annotate import (
    ReverseWithPrimal as ReverseWithPrimal,
)
from irad.api.autodiff import autodiff as autodiff
from irad.api.check import (
    CheckReport as CheckReport,
)
from irad.api.check import (
    check as check,
)
from irad.api.grad import (
    grad as grad,
)
from irad.api.grad import (
    value_and_grad as value_and_grad,
)
from irad.api.grad import (
    value_and_grad_into as value_and_grad_into,
)
from irad.api.jit import jit as jit
from irad.api.shadow import shadow_like as shadow_like
from irad.api.tape import (
    TapeReport as TapeReport,
)
from irad.api.tape import (
    tape_report as tape_report,
)
from irad.api.vjp import vjp as vjp
from irad.errors import (
    ActivityError as ActivityError,
)
from irad.errors import (
    BackendError as BackendError,
)
from irad.errors import (
    BoundsError as BoundsError,
)
from irad.errors import (
    ChangedBufferError as ChangedBufferError,
)
from irad.errors import (
    ChangedBufferWarning as ChangedBufferWarning,
)
from irad.errors import (
    ChangedProgramError as ChangedProgramError,
)
from irad.errors import (
    InternalError as InternalError,
)
from irad.errors import (
    IradError as IradError,
)
from irad.errors import (
    NonFiniteError as NonFiniteError,
)
from irad.errors import (
    NoRuleError as NoRuleError,
)
from irad.errors import (
    ParseError as ParseError,
)
from irad.errors import (
    PlanError as PlanError,
)
from irad.errors import (
    RuleError as RuleError,
)
from irad.errors import (
    SignatureError as SignatureError,
)
from irad.errors import (
    TapeLimitError as TapeLimitError,
)
from irad.errors import (
    TieWarning as TieWarning,
)
from irad.errors import (
    UnsupportedError as UnsupportedError,
)
from irad.errors import (
    UnsupportedProgram as UnsupportedProgram,
)
from irad.errors import (
    UntestedVersionWarning as UntestedVersionWarning,
)
from irad.options import Options as Options
from irad.report.inspection import (
    Inspection as Inspection,
)
from irad.report.inspection import (
    inspect as inspect,
)

__version__: str
__all__: list[str]
