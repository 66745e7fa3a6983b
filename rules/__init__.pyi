"""The names of irad.rules. This is what `irad.lazy` reads, so each name is written once."""

from irad.api.foreign import import_rule as import_rule
from irad.api.rules import (
    AugmentedReturn as AugmentedReturn,
)
from irad.api.rules import (
    RuleConfig as RuleConfig,
)
from irad.api.rules import (
    StatefulRule as StatefulRule,
)
from irad.api.rules import (
    Workspace as Workspace,
)
from irad.api.rules import (
    augmented_primal as augmented_primal,
)
from irad.api.rules import (
    build_rule as build_rule,
)
from irad.api.rules import (
    close as close,
)
from irad.api.rules import (
    easy_rule as easy_rule,
)
from irad.api.rules import (
    forward as forward,
)
from irad.api.rules import (
    has_rule as has_rule,
)
from irad.api.rules import (
    ignore_derivatives as ignore_derivatives,
)
from irad.api.rules import (
    inactive as inactive,
)
from irad.api.rules import (
    inactive_arg as inactive_arg,
)
from irad.api.rules import (
    inactive_type as inactive_type,
)
from irad.api.rules import (
    is_active as is_active,
)
from irad.api.rules import (
    is_needed as is_needed,
)
from irad.api.rules import (
    noalias as noalias,
)
from irad.api.rules import (
    noinline as noinline,
)
from irad.api.rules import (
    opt_out as opt_out,
)
from irad.api.rules import (
    remove as remove,
)
from irad.api.rules import (
    reverse as reverse,
)
from irad.api.rules import (
    stop_gradient as stop_gradient,
)
from irad.api.rules import (
    within_autodiff as within_autodiff,
)
from irad.api.rules import (
    workspace as workspace,
)
from irad.rules.builtin import ALL as ALL

__all__: list[str]
